/* core/group.h — a consumer group: which consumer holds which message, and until when.
 *
 * Pure: the caller brings memory and time, and carries out the effects that come back. One thread at a time.
 *
 *                 offer                  lease                  ack, nack park, nack skip
 *      stream -----------> available ----------------> held -------------------------------> settled or parked
 *                              ^                         |        (also after its end, until somebody else takes it)
 *                              +-------------------------+
 *                       release, nack retry, leave, away, expiry
 *
 * None of these words is stored. A message has at most one lease {token, holder, until}, counters and a
 * not_before (core/lease.h is the one place that says what follows from them). The queues inside are indexes
 * over that, and every call first lets what is due by `now` become so.
 *
 * Consumers, for everybody and everywhere:
 *
 *      join ---> active ---stop---> stopping ---last lease ends---> drained ---leave---> gone
 *                 |  ^                 |  |                                               ^
 *                 |  +--undo-----------+  |  (an operator's or the server's stop)         |
 *                 +----connection lost----+---> away ---too late, or back as a new call---+
 *
 * Invariants; sl_group_check() holds those that can be seen from inside, tests/sim judges all of them:
 *    1. At most one live lease for a message; a DELIVER always follows its LEASE.
 *    2. After STOPPED for a consumer there is no DELIVER for it, whatever happens next, unless its stop is
 *       undone.
 *    3. A settle, release, started or extend whose holder or token is not the current one changes nothing and
 *       yields LOST.
 *    4. Stop is idempotent; a consumer leaves the strategy exactly once, by stop, leave, or both.
 *    5. What comes back comes in position order, before any later message that was not yet delivered; handing
 *       back what was not started charges nothing, whatever was started is charged as docs/DELIVERY.md says.
 *    6. A consumer whose in-flight has reached its window gets nothing more (what it resumes may exceed it); messages
 *       known <= the limits; sl_group_room() says how many more are wanted.
 *    7. With no active consumer nothing is lost or stalled: the next one to join gets everything.
 *    8. From the records alone a group resumes with exactly the unsettled messages, their counters and their
 *       live leases: a settled message is never delivered again.
 *    9. Pinned: a key with a live lease is not given to another consumer; only that key waits.
 *   10. Without further faults and with one consumer that stays, every message ends settled or parked.
 *
 * Time: `now_ns` is nanoseconds of the store's clock. The group's time never goes back: a smaller `now_ns`
 * than one seen before counts as that one. */
#ifndef SL_CORE_GROUP_H
#define SL_CORE_GROUP_H

#include "base/map.h"
#include "core/effect.h"

#include <stddef.h>

typedef struct sl_group sl_group; /* opaque: the fields are in core/group_private.h */

typedef struct sl_group_limits { /* memory is sized for these, once; each below 2^28 */
    uint32_t messages_max;       /* unsettled messages known at a time */
    uint32_t consumers_max;      /* consumers at a time, those that are stopping or away included */
    bool keyed;                  /* memory for the pinned strategies as well: a key for each message */
} sl_group_limits;

enum {
    SL_TAGS_MAX = 9,   /* of one consumer: its name and eight labels */
    SL_RULES_MAX = 64, /* operator's stops by tag that are in force at a time */
};

#define SL_TAG_EVERYONE UINT64_C(0) /* a rule with this tag stops every consumer of the group */
#define SL_NEVER        UINT64_MAX

/* Bytes that sl_group_init() needs, aligned for any type. The caller owns that memory; there is no _free(). */
size_t sl_group_bytes(const sl_group_limits *limits);

typedef struct sl_group_setup {
    sl_group_limits limits;
    sl_settings settings; /* must be valid */
    uint64_t start;       /* first position of the main lane that concerns this group */
    sl_hash_seed seed;    /* secret: peers choose ids and keys */
    sl_sink sink;
} sl_group_setup;

/* The group takes records (sl_group_replay) until sl_group_open(); nothing else works before that. */
sl_group *sl_group_init(void *memory, const sl_group_setup *setup);

/* Applies one record that this or an earlier life of the group emitted.
 *   SL_OK
 *   SL_ERR_CORRUPT   it does not fit to what came before it; the group must not be used
 *   SL_ERR_FULL      the limits are smaller than those of the group that wrote it */
sl_err sl_group_replay(sl_group *group, const sl_effect *record);

/* Ends loading. Emits EPOCH: the caller makes it durable before it lets anyone join, so that no token is ever
 * given twice. Whoever held leases is away until they end, or until it joins again under its session.
 *   SL_OK
 *   SL_ERR_CORRUPT   the records call a message both settled and not; nothing was emitted */
sl_err sl_group_open(sl_group *group, uint64_t now_ns);

/* Writes the state as records into `sink` instead of the group's own: replayed into an empty group they give
 * this group. Everything recorded before may be forgotten then. */
void sl_group_snapshot(const sl_group *group, sl_sink sink);

/* --- messages come in --- */

typedef struct sl_offer {
    sl_place place;
    sl_uuid id;   /* what consumers ack by. May repeat: then the oldest delivery goes first */
    uint64_t key; /* affinity, a hash; only the pinned strategies look at it */
} sl_offer;

/* First position of a lane that has not been offered: where to read on. After open: where to read again; what
 * is settled already is then passed over here. */
uint64_t sl_group_read_from(const sl_group *group, sl_lane lane);

/* How many messages the group would take now. 0: wait until something is settled. After a restart at least 1,
 * until everything that the records told of was read again: a lane that has nothing left of that waits for the
 * other one, its offers are SL_ERR_FULL until then. */
uint32_t sl_group_room(const sl_group *group);

/* Would this place become a message if it were offered now? False: it was read before, or records say that it is settled, and
 * offering it only tells that it was looked at. So that nobody keeps what nobody will ask for. */
bool sl_group_wants(const sl_group *group, sl_place place);

/* Takes messages in ascending position for each lane; one below sl_group_read_from() is passed over.
 *   SL_OK
 *   SL_ERR_FULL      the first *ret_taken were taken, there was no room for more
 *   SL_ERR_INVALID   a lane or position that does not exist; the first *ret_taken were taken */
sl_err sl_group_offer(sl_group *group, const sl_offer *offers, uint32_t offer_count, uint64_t now_ns,
                      uint32_t *ret_taken);

/* The reader has looked at everything up to and including `position`, `considered` events, and none that was
 * not offered concerns this group. Moves the checkpoint of filtered groups; what was known and is gone is
 * settled. */
sl_err sl_group_advance(sl_group *group, sl_place place, uint32_t considered, uint64_t now_ns);

/* --- consumers --- */

typedef struct sl_join {
    sl_uuid session;       /* who it is over several calls; a random one for the nameless */
    const uint64_t *tags;  /* what operators may call it by: hashes of its name and labels, none of them 0 */
    uint32_t tag_count;    /* <= SL_TAGS_MAX */
    uint32_t window;       /* how many messages it takes at a time, >= 1 */
    bool extensions;       /* it understands away and resume */
    bool sends_started;    /* the caller knows that this session says what it starts */
    uint64_t reconnect_ns; /* how long it may be away with started work */
    const sl_uuid *resume; /* what it still holds from its earlier call: kept, and not sent again */
    uint32_t resume_count;
} sl_join;

/* A new call. Under a session that has dead calls: with extensions it comes back to the one whose leases it lists, takes
 * over what it lists, and what it does not list of that one goes back at once (docs/DELIVERY.md, Coming back); what it
 * lists in vain is LOST. Without, it may settle what dead calls of its session were given, and those leases run on.
 *   SL_OK                 *ret_consumer is its id, never used before or again
 *   SL_ERR_CONSUMERS_MAX  as many are active as settings allow (stopping and away ones do not count). Who comes back to
 *                         leases that it lists is let in all the same, stopped, to finish them
 *   SL_ERR_FULL           the limits allow no more consumers of any state
 *   SL_ERR_INVALID        window 0, too many tags, a tag 0 */
sl_err sl_group_join(sl_group *group, const sl_join *join, uint64_t now_ns, uint64_t *ret_consumer);

/* The call was cancelled: everything it held goes back at once, what was started is charged.
 * SL_OK or SL_ERR_NO_CONSUMER (also for one that is away: its call has ended before). */
sl_err sl_group_leave(sl_group *group, uint64_t consumer, uint64_t now_ns);

/* The connection broke. With extensions: what was not started goes back uncharged, the rest waits for its
 * return, no longer than reconnect_ns. Without: as sl_group_leave(). SL_OK or SL_ERR_NO_CONSUMER. */
sl_err sl_group_away(sl_group *group, uint64_t consumer, uint64_t now_ns);

typedef struct sl_stop {
    sl_asker asked_by;
    /* Also release what it has not marked as started. Of others than the consumer it is a wish, which STOP_REQUESTED tells; the
     * server's is done where there are no extensions. */
    bool hand_back_unstarted;
    uint64_t deadline_ns; /* told to the consumer, not enforced; 0: none */
} sl_stop;

/* No new message for this consumer. STOPPED answers, DRAINED follows when it holds nothing.
 *   SL_OK
 *   SL_ERR_ALREADY_STOPPED  STOPPED says so as well if the consumer asks itself; hand_back_unstarted has been honoured, or told
 *                           to one that is not drained. A stop by the consumer itself is final, also as the second one
 *   SL_ERR_NO_CONSUMER      also for one that is away */
sl_err sl_group_stop(sl_group *group, uint64_t consumer, const sl_stop *stop, uint64_t now_ns);

/* Takes back the stop of an operator or the server.
 *   SL_OK               it is active (also if it had never been stopped)
 *   SL_ERR_DRAINED      too late, or it had stopped itself: it joins again with a new call
 *   SL_ERR_ALREADY_STOPPED  a rule (below) still stops it; taking that back resumes it
 *   SL_ERR_CONSUMERS_MAX    as many are active as settings allow
 *   SL_ERR_NO_CONSUMER */
sl_err sl_group_resume(sl_group *group, uint64_t consumer, uint64_t now_ns);

/* An operator (stop->asked_by) stops everyone with this tag, now and when it joins later, until it is taken back; who
 * joins later holds nothing, so the rest of `stop` is for those that are there.
 * SL_OK (also when the rule was there before), SL_ERR_FULL (SL_RULES_MAX); undo: SL_OK or SL_ERR_NOT_FOUND. */
sl_err sl_group_stop_tag(sl_group *group, uint64_t tag, const sl_stop *stop, uint64_t now_ns);
sl_err sl_group_resume_tag(sl_group *group, uint64_t tag, uint64_t now_ns);

/* A cordoned consumer is about to be stopped: it gets new messages only when no other has room, so that a
 * rollout moves a message at most once. SL_OK or SL_ERR_NO_CONSUMER. */
sl_err sl_group_cordon(sl_group *group, uint64_t consumer, bool cordoned, uint64_t now_ns);

/* --- what a consumer says of its messages --- */

typedef struct sl_claim {
    sl_uuid id;
    uint64_t token; /* 0: whatever token this consumer holds for the id */
} sl_claim;

typedef enum sl_nack_action {
    SL_NACK_RETRY, /* and "unknown" */
    SL_NACK_PARK,
    SL_NACK_SKIP, /* and KurrentDB's nack "stop", which is not our Stop */
    SL_NACK_COUNT_
} sl_nack_action;

typedef struct sl_nack {
    sl_nack_action action;
    bool
        has_delay; /* for RETRY: delay_ns (at most SL_PAUSE_NS_MAX) instead of the pause of settings.backoff */
    uint64_t delay_ns;
} sl_nack;

/* Each claim is answered once, in order: SETTLED or LOST for ack, nack and release; only LOST for the others.
 * A settle after the lease ran out counts while nobody else has taken the message; started and extend need a
 * live lease. SL_OK or SL_ERR_NO_CONSUMER (also for one that is away), for all of them. */
sl_err sl_group_ack(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                    uint64_t now_ns);
sl_err sl_group_nack(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                     const sl_nack *nack, uint64_t now_ns);
sl_err sl_group_release(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                        uint64_t now_ns);

/* Without claims: it starts nothing yet, but its session is one that says what it starts. So a client that says this
 * first is never charged for what was on its way to it. */
sl_err sl_group_started(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                        uint64_t now_ns);

/* The lease ends lease_ns from now, 0: settings.lease_ns from now; at most SL_LEASE_NS_MAX. */
sl_err sl_group_extend(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                       uint64_t lease_ns, uint64_t now_ns);

/* --- the rest --- */

typedef enum sl_hold {
    SL_HOLD_NOTHING,
    SL_HOLD_PARKS, /* no message is parked unless a nack asks for it: what has used up its tries comes back like any other */
    SL_HOLD_ALL, /* besides, nothing is given out */
} sl_hold;

/* Everything else goes on as always. Afterwards the next call, if only a tick, parks what has to be and was not given out once more
 * meanwhile, and gives out what there is. Not part of what is recorded (a message that was to be parked when the process ended has
 * one more try): for a caller that cannot carry out deliveries, or has no room for what is parked, at the moment. */
void sl_group_hold(sl_group *group, sl_hold hold);

/* New rules for what happens from now on; leases and counters stay, consumers stay.
 * SL_OK or SL_ERR_INVALID (the settings, or a pinned strategy in a group that is not keyed). */
sl_err sl_group_update(sl_group *group, const sl_settings *settings, uint64_t now_ns);

/* Lets what is due happen. Returns when to call again, SL_NEVER when nothing is due by itself. O(1) when
 * idle. */
uint64_t sl_group_tick(sl_group *group, uint64_t now_ns);

typedef enum sl_consumer_state {
    SL_CONSUMER_ACTIVE,
    SL_CONSUMER_STOPPING,
    SL_CONSUMER_DRAINED,
    SL_CONSUMER_AWAY,
    SL_CONSUMER_STATE_COUNT_
} sl_consumer_state;

typedef struct sl_consumer_info {
    uint64_t consumer;
    sl_uuid session;
    sl_consumer_state state;
    sl_asker asked_by; /* of the stop, when stopping or drained */
    uint64_t since_ns; /* in this state */
    uint32_t window, in_flight;
    uint64_t deliveries;              /* since it joined */
    uint32_t settled, released, lost; /* leases that ended so since the stop, when stopping or drained */
    uint32_t interrupted;             /* of released: after they were started */
    bool cordoned;
    bool sends_started; /* else nobody knows what it has begun of what it holds */
} sl_consumer_info;

typedef void sl_consumer_fn(void *ctx, const sl_consumer_info *info);

/* SL_OK or SL_ERR_NO_CONSUMER. */
sl_err sl_group_consumer(const sl_group *group, uint64_t consumer, sl_consumer_info *ret_info);

/* Calls fn for every consumer, in the order in which they joined. */
void sl_group_consumers(const sl_group *group, sl_consumer_fn *fn, void *ctx);

typedef struct sl_held {
    sl_place place;
    sl_uuid id;
    uint64_t token, until_ns;
    bool started;
} sl_held;

typedef void sl_held_fn(void *ctx, const sl_held *held);

/* Calls fn for every live lease of a consumer. SL_OK or SL_ERR_NO_CONSUMER. */
sl_err sl_group_held(const sl_group *group, uint64_t consumer, sl_held_fn *fn, void *ctx);

typedef struct sl_group_info {
    uint32_t messages;  /* known and unsettled: the next three together */
    uint32_t in_flight; /* with a live lease */
    uint32_t available; /* could be given out now */
    uint32_t waiting;   /* for their not_before, or to be read again after a restart */
    uint32_t consumers[SL_CONSUMER_STATE_COUNT_];
    uint64_t checkpoint[SL_LANE_COUNT_]; /* everything below is settled */
    uint64_t epoch;
    uint64_t deliveries, settled, parked, lost, charged; /* since open */
    uint32_t rules;                                      /* stops by tag that are in force */
    bool everyone_stopped;                               /* one of them has SL_TAG_EVERYONE */
} sl_group_info;

void sl_group_info_get(const sl_group *group, sl_group_info *ret_info);
const sl_settings *sl_group_settings(const sl_group *group);

/* Asserts everything that can be seen from inside. O(n): for tests, simulations and debug builds. */
void sl_group_check(const sl_group *group);

#endif
