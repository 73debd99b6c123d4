/* server/groups/desk.h — one persistent subscription at work: the core's group, its reader, its consumers, its records.
 *
 *      stream --reader--> offer --> [ core group ] --effects--> records --> door --> durable --> answers --> seats
 *                                        ^                                                          |
 *                                        +------------- acks, nacks, stops, ticks ------------------+
 *
 * Every effect of the core comes out in order and is carried out in order. Records are collected while the core is called and
 * handed to the door at the end of the turn, in as few batches as possible: consecutive records that a power cut may take
 * (leases and what belongs to them) as WRITTEN, all others as SYNC; the log keeps their order. An answer leaves when the batch with the
 * records before it is done: an event after its lease is written, Settled and Drained after they are durable.
 *
 * The desk keeps the encoded event of each message that the core knows, from offer to settle, so that a delivery is a copy. The
 * time of a group is wall time that never goes back, because leases live longer than a process. */
#ifndef SL_SERVER_GROUPS_DESK_H
#define SL_SERVER_GROUPS_DESK_H

#include "core/group.h"
#include "server/groups/card.h"
#include "server/groups/definition.h"
#include "server/host.h"

typedef struct sl_seat sl_seat; /* one consumer of it: a call that is open */

enum {
    SL_DESK_CONSUMERS_MAX = 4096,          /* with those that are away */
    SL_DESK_PAYLOAD_BYTES_MAX = 256 << 20, /* of messages known and unsettled: beyond, the reader waits */
    SL_SEAT_WINDOW_MAX = 10 * 1000,
    SL_DESK_MESSAGES_MAX =
        8 * 1024, /* known and unsettled, all windows together; never smaller than it was: core/effect.h */
};

/* --- life: groups/registry.c --- */

/* A group that exists in the store under `number`. Takes records until sl_desk_open(). SL_OK, SL_ERR_NOMEM. */
sl_err sl_desk_new(sl_host *host, uint64_t number, const sl_group_definition *definition, sl_desk **ret_desk);
sl_err sl_desk_load(sl_desk *desk, const sl_effect *record);

/* Begins to read and takes seats as soon as its epoch is durable. SL_OK, SL_ERR_CORRUPT, SL_ERR_NOMEM, SL_ERR_DRAINING. */
sl_err sl_desk_open(sl_desk *desk);

/* It is about to be deleted in the store: nothing of it is written any more, and seats are dropped at the end of the turn. */
void sl_desk_close(sl_desk *desk);

/* Every seat is dropped (handler->dropped). Nothing of it is written any more: the caller deletes it in the store, or the
 * process ends. */
void sl_desk_free(sl_desk *desk);

const sl_group_definition *sl_desk_definition(const sl_desk *desk);
uint64_t sl_desk_number(const sl_desk *desk);
sl_host *sl_desk_host(const sl_desk *desk);
const char *sl_desk_key(const sl_desk *desk); /* "STREAM::GROUP" */
uint64_t sl_desk_now_ns(const sl_desk *desk); /* the time of the group: for sl_stop.deadline_ns */

/* New settings, durable by the caller. Unlike KurrentDB nothing is delivered again; seats are dropped as clients expect it. */
sl_err sl_desk_update(sl_desk *desk, const sl_group_definition *definition);

/* For the store's snapshots. */
void sl_desk_snapshot(const sl_desk *desk, sl_sink sink);

/* Everything for GetInfo and List; texts are in the arena. SL_OK, SL_ERR_NOMEM. */
sl_err sl_desk_info(const sl_desk *desk, sl_arena *arena, sl_wire_group_info *ret_info);

/* stop_at UINT64_MAX: all. done: begun (replay) or durable (truncate).
 *   SL_OK, SL_ERR_EXISTS ("A replay or truncate is already in progress.")
 *   SL_ERR_AGAIN, SL_ERR_STORE_FAILED  as for sl_desk_join()
 *   SL_ERR_DRAINING, SL_ERR_NOMEM      truncate: the server ends; memory. done does not come after any error */
sl_err sl_desk_replay_parked(sl_desk *desk, uint64_t stop_at);
sl_err sl_desk_truncate_parked(sl_desk *desk, uint64_t stop_at, void (*done)(void *ctx, sl_err err),
                               void *ctx);

/* --- seats: groups/consumer.c --- */

/* Called in order, at the end of a turn or when the store has answered; never from inside of sl_desk_join(). False: there is no room
 * for it; it and what is behind it come again after sl_seat_room(). Each may leave its seat. */
typedef struct sl_seat_handler {
    /* `body` is ReadEvent without what differs between deliveries: sl_persistent_delivery_encode(). */
    bool (*event)(void *ctx, sl_str body, const sl_effect *deliver);
    /* reason: what an operator has said; empty when he said nothing, or it is the server that asks. */
    bool (*stop_requested)(void *ctx, const sl_effect *requested, uint32_t deadline_ms, sl_str reason);
    bool (*stopped)(void *ctx, const sl_effect *stopped, const sl_uuid *outstanding,
                    uint32_t outstanding_count);
    /* Only with extensions. */
    bool (*settled)(void *ctx, const sl_uuid *ids, uint32_t id_count, const sl_uuid *lost,
                    uint32_t lost_count);
    bool (*drained)(void *ctx, const sl_effect *drained);
    void (*go_on)(void *ctx);   /* sl_seat_is_held() was true and is not any more */
    void (*dropped)(void *ctx); /* the group was updated, deleted, restarted or failed: the seat is gone */
} sl_seat_handler;

typedef struct sl_seat_setup {
    sl_join join; /* session, tags, window, extensions ... */
    sl_wire_id_form id_form;
    sl_str user, connection_name; /* for GetInfo; copied, as the next three */
    sl_str address;
    const sl_wire_label *labels; /* join.tags has the hashes of the name and of these */
    size_t label_count;
    const sl_seat_handler *handler;
    void *ctx;
} sl_seat_setup;

/*   SL_OK
 *   SL_ERR_CONSUMERS_MAX   maximum-subscribers-reached
 *   SL_ERR_AGAIN           not open yet: sl_desk_wait()
 *   SL_ERR_STORE_FAILED    the group has failed (stream tombstoned, reader broken): a confirmation, then dropped
 *   SL_ERR_FULL, SL_ERR_NOMEM, SL_ERR_INVALID */
sl_err sl_desk_join(sl_desk *desk, const sl_seat_setup *setup, sl_seat **ret_seat);

/* Somebody who got SL_ERR_AGAIN: fn is called once, when it is worth trying again. */
typedef struct sl_desk_waiter {
    sl_list node;
    void (*fn)(void *ctx);
    void *ctx;
} sl_desk_waiter;

void sl_desk_wait(sl_desk *desk, sl_desk_waiter *waiter);
bool sl_desk_is_opening(const sl_desk *desk); /* it will be open, or fail, and tell those who wait */
void sl_desk_forget(sl_desk_waiter *waiter);  /* also right for one that does not wait, or is all zero */

/* The store is behind, or its own answers wait for the client: what it says now is taken, but nothing more should be read from it
 * until go_on(). */
bool sl_seat_is_held(const sl_seat *seat);

void sl_seat_room(sl_seat *seat);  /* there is room again for answers */
void sl_seat_leave(sl_seat *seat); /* cancelled; the pointer is no good afterwards */
void sl_seat_away(sl_seat *seat);  /* the connection broke; the same */
void sl_seat_close(sl_seat *seat); /* the server ends: its leases stay as they are; the same */

void sl_seat_ack(sl_seat *seat, const sl_claim *claims, uint32_t count);
void sl_seat_nack(sl_seat *seat, const sl_claim *claims, uint32_t count, const sl_nack *nack, sl_str reason);
void sl_seat_release(sl_seat *seat, const sl_claim *claims, uint32_t count);
void sl_seat_started(sl_seat *seat, const sl_claim *claims, uint32_t count);
void sl_seat_extend(sl_seat *seat, const sl_claim *claims, uint32_t count, uint64_t lease_ns);
void sl_seat_stop(sl_seat *seat, const sl_stop *stop);
bool sl_seat_is_stopped(const sl_seat *seat); /* by whomever; taking it back makes this false again */

/* --- for operators: groups/operators.c; desk_stop.c, desk_marks.c, desk_card.c and desk_info.c have them --- */

/* As the functions of the core, in a group that is open; SL_ERR_AGAIN and SL_ERR_STORE_FAILED as sl_desk_join(). `mark` is
 * told when the rule is durable, or that nobody knows; only if the function gave SL_OK. */
sl_err sl_desk_stop_tag(sl_desk *desk, uint64_t tag, const sl_stop *stop, sl_str reason, sl_desk_mark *mark);
sl_err sl_desk_resume_tag(sl_desk *desk, uint64_t tag, sl_desk_mark *mark);
sl_err sl_desk_stop_one(sl_desk *desk, uint64_t consumer, const sl_stop *stop, sl_str reason);
sl_err sl_desk_resume_one(sl_desk *desk, uint64_t consumer);
void sl_desk_mark_forget(sl_desk_mark *mark); /* also right for one that is all zero */

typedef struct sl_desk_consumer {
    sl_consumer_info info;
    const sl_card *card;
    uint32_t started; /* of what it holds */
    uint64_t in_state_ns;
} sl_desk_consumer;

/* Every consumer that the core knows, in the order in which they joined. */
typedef void sl_desk_consumer_fn(void *ctx, const sl_desk_consumer *consumer);
void sl_desk_consumers(const sl_desk *desk, sl_desk_consumer_fn *fn, void *ctx);

/* Those with a card. fn may call the core, by the functions above: that lets happen what is due, so the card that it got and any
 * other may be gone afterwards. Not from inside of fn. */
typedef void sl_card_fn(void *ctx, sl_card *card);
void sl_desk_cards(sl_desk *desk, sl_card_fn *fn, void *ctx);
void sl_desk_unnamed_cards(const sl_desk *desk, sl_card_fn *fn,
                           void *ctx); /* only card->is_unnamed; fn may not */
bool sl_desk_has_consumers(const sl_desk *desk);
sl_err sl_card_info(const sl_card *card, sl_consumer_info *ret_info);

/* Of those that the core counts as parked: there was no stream to keep them. Since it was opened or changed, as the counts. */
uint64_t sl_desk_skipped(const sl_desk *desk);

/* All zero before it was opened. */
void sl_desk_counts(const sl_desk *desk, sl_group_info *ret_info);

/* What waits in the stream of parked messages; counts: of sl_desk_counts(). */
uint64_t sl_desk_parked(const sl_desk *desk, const sl_group_info *counts);
uint64_t sl_desk_read_up_to(const sl_desk *desk); /* everything below was read; 0: nothing yet */

#endif
