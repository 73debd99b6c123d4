/* client/consuming.h — the consumer's side of the call Read of persistent subscriptions: what it says, and what answers mean.
 *
 * Without a connection, a loop or a clock: messages come in, messages go out, callbacks of the user are called. Whoever has the
 * connection tells when a call has begun and when it is over; this side remembers over many calls what the process holds.
 *
 *      begin --> options --confirmation--> events, answers ... --> over --> begin --> options with `resume` --> ...
 *
 * A message may come again although it was acked: the connection broke before the answer, and the server had given up the lease.
 * Work that was done is not done again because of that: such a message is acked once more and not given out. And a message that is
 * still held and comes again has a new lease: the work goes on under it. */
#ifndef SL_CLIENT_CONSUMING_H
#define SL_CLIENT_CONSUMING_H

#include "base/arena.h"
#include "base/str.h"
#include "client/holding.h"
#include "wire/persistent_codec.h"

#include <sluice.h>

enum {
    SL_CONSUMING_IDS_MAX = 2000 /* in one message: 50 KB; servers take a megabyte */
};

/* Where messages go: a call. Codes as sl_call_reserve(). */
typedef struct sl_consuming_output {
    sl_err (*reserve)(void *ctx, size_t bytes, uint8_t **ret_data);
    void (*commit)(void *ctx, size_t bytes);
    void *ctx;
} sl_consuming_output;

typedef struct sl_consuming {
    const sl_alloc *alloc;
    sl_consumer_handler handler;
    void *ctx;
    sl_arena arena; /* the texts */
    sl_str stream, group, name;
    sl_wire_label *labels;
    size_t label_count;
    uint32_t window, reconnect_ms;
    bool says_started; /* the user has promised to mark each message */
    sl_holding holding;
    sl_holding_entry **batch; /* what a message is being made of: SL_CONSUMING_IDS_MAX */
    sl_uuid *ids;
    uint64_t sent_count; /* messages */
    uint32_t nth;        /* calls that were confirmed */

    /* Of this call. */
    bool is_open, extensions;
    bool is_greeted, is_confirmed; /* options were sent, and answered */
    bool is_promised;              /* it was said that starts are marked */
    bool stop_said, hand_back_said;
    bool joined_stopped; /* the stop was wanted before: what comes goes back */
    bool is_stopped, is_drained;
    sl_consumer_asker stopped_by; /* who may let events come again */
    uint32_t resumed_count;
    bool keeps_delays; /* the server does: set after begin */

    /* Of the process. */
    bool stop_wanted, hand_back_wanted;
    bool stop_told, drained_told; /* to the user, about his own stop */
    bool sends_started;
    sl_consumer_drained since_stop; /* counted here, for when no server does */
    uint64_t renewed_count, absorbed_count, dropped_count,
        unexpected_count; /* for tests and curious people */
    const char *problem;  /* why the last sl_consuming_receive() was false: a sentence without a full stop */
} sl_consuming;

/* Texts are copied; everything was checked. SL_OK, SL_ERR_NOMEM. */
sl_err sl_consuming_init(sl_consuming *c, const sl_alloc *alloc, const sl_consumer_options *options,
                         sl_hash_seed seed);
/* Also right for one that is all zero. */
void sl_consuming_done(sl_consuming *c);

/* --- the call --- */

/* A call has begun. extensions: the server knows them. */
void sl_consuming_begin(sl_consuming *c, bool extensions);

/* False: the server has broken the contract, see problem; the call is to be cancelled. */
bool sl_consuming_receive(sl_consuming *c, sl_str message, uint64_t now_ns);

/* Everything that is to be said, in as few messages as possible.
 *   SL_OK         nothing is left
 *   SL_ERR_FULL   when there is room again
 *   SL_ERR_NOMEM, SL_ERR_TOO_LARGE */
sl_err sl_consuming_flush(sl_consuming *c, const sl_consuming_output *output);

/* The call is over, however that came. */
void sl_consuming_over(sl_consuming *c);

/* Everything that is held or unanswered is lost: there will be no other call. */
void sl_consuming_abandon(sl_consuming *c);

/* --- without the help of a server --- */

/* To be called at the end of each turn, before flush: stops without a connection or without extensions happen here. */
void sl_consuming_step(sl_consuming *c);

/* Without extensions, after a stop: what was said is over, and the consumer drained, when the server is known to have got it all. Then:
 * sl_consuming_proved(). */
bool sl_consuming_wants_proof(const sl_consuming *c);
void sl_consuming_proved(sl_consuming *c);

/* --- the user --- */

size_t sl_consuming_settle(sl_consuming *c, const sl_consumer_id *ids, size_t count, sl_holding_verb verb,
                           sl_holding_words *words);
size_t sl_consuming_nack(sl_consuming *c, const sl_consumer_id *ids, size_t count, int32_t action,
                         const char *reason);
/* Not sooner than after delay_ms, if the server can keep that. */
size_t sl_consuming_nack_later(sl_consuming *c, const sl_consumer_id *ids, size_t count, int32_t action,
                               const char *reason, uint32_t delay_ms);
size_t sl_consuming_extend(sl_consuming *c, const sl_consumer_id *ids, size_t count, uint32_t lease_ms,
                           uint64_t now_ns);
size_t sl_consuming_started(sl_consuming *c, const sl_consumer_id *ids, size_t count);
void sl_consuming_stop(sl_consuming *c, bool hand_back_unstarted);

/* Everything that the user said was answered (or sent, where there are no answers). */
bool sl_consuming_is_quiet(const sl_consuming *c);

/* --- what an earlier process was done with: consuming_recall.c --- */

/* Before the first call. SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE: more than SL_CONSUMER_FINISHED_MAX; none of them is taken then. */
sl_err sl_consuming_recall(sl_consuming *c, const sl_consumer_finished *finished, size_t count);
/* SL_CONSUMER_FINISHED_MS_MAX have passed: nothing is known again, and what only waited for that is unsure. */
void sl_consuming_forget_recalled(sl_consuming *c);

/* --- between the files --- */

/* consuming_recall.c: a call begins; the end of a stop without extensions; an event that may be one of them, or NULL. */
void consuming_recalled_begin(sl_consuming *c);
void consuming_recalled_stop(sl_consuming *c);
sl_holding_entry *consuming_recalled_find(sl_consuming *c, const sl_wire_read_event *event, sl_uuid id,
                                          uint64_t place);

/* consuming.c: why a nack, as much as is sent; NULL, like "", is no reason. One user, as of sl_holding_words_new(). NULL: no memory. */
sl_holding_words *consuming_words(sl_consuming *c, int32_t action, const char *reason);

/* consuming.c: it is over for the user, who hears of it once. */
void consuming_finish(sl_consuming *c, sl_holding_entry *held, sl_consumer_outcome outcome);
/* The same for what was sent to a server without extensions. */
void consuming_finish_unanswered(sl_consuming *c, sl_holding_entry *held);
void consuming_tell_stopped(sl_consuming *c, const sl_consumer_stopped *stopped);
void consuming_tell_drained(sl_consuming *c, const sl_consumer_drained *drained);

#endif
