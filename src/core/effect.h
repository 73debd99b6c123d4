/* core/effect.h — what a group wants done. The caller carries effects out in the order in which they come.
 *
 * Two sorts. *Records* change the group: each is written to the store, and the same records, replayed in
 * order into an empty group, give the same group (core/group.h, invariant 8). *Answers* go to one consumer
 * and are never stored; an answer that promises something (SETTLED, DRAINED) comes after the records it
 * promises, so a caller that makes everything before it durable keeps the promise. */
#ifndef SL_CORE_EFFECT_H
#define SL_CORE_EFFECT_H

#include "base/uuid.h"
#include "core/settings.h"

#include <stdbool.h>
#include <stdint.h>

/* The values of these enums are on disk as well: new ones go to the end.
 *
 * Two lanes feed a group: the stream itself, and its parked messages when they are replayed. */
typedef enum sl_lane {
    SL_LANE_MAIN,
    SL_LANE_PARKED,
    SL_LANE_COUNT_
} sl_lane;

/* Where a message is from: its number in its lane. Grows strictly, gaps are fine. At most UINT64_MAX - 1. */
typedef struct sl_place {
    sl_lane lane;
    uint64_t position;
} sl_place;

typedef enum sl_asker {
    SL_ASKER_CONSUMER,
    SL_ASKER_OPERATOR,
    SL_ASKER_SERVER,
    SL_ASKER_COUNT_
} sl_asker;

/* Why a message came back unsettled. */
typedef enum sl_back_cause {
    SL_BACK_RELEASED,    /* handed back by its holder, never started: not charged */
    SL_BACK_INTERRUPTED, /* handed back by its holder after it was started: charged past interrupts_max */
    SL_BACK_NACKED,      /* its holder asked for another try: charged */
    SL_BACK_EXPIRED,     /* the lease ran out: charged if started */
    SL_BACK_LEFT,        /* its holder left: charged if started */
    SL_BACK_DIED, /* its holder did not come back in time, or came back without it: charged if started */
    SL_BACK_COUNT_
} sl_back_cause;

typedef enum sl_settle_cause {
    SL_SETTLE_ACKED,
    SL_SETTLE_SKIPPED,  /* nack with skip */
    SL_SETTLE_VANISHED, /* the event is no longer in its stream */
    SL_SETTLE_COUNT_
} sl_settle_cause;

typedef enum sl_park_cause {
    SL_PARK_ASKED,   /* nack with park */
    SL_PARK_RETRIES, /* charged retries_max times before */
    SL_PARK_KILLS,   /* kills_max sessions died while they worked on it */
    SL_PARK_COUNT_
} sl_park_cause;

/* The numbers of records are on disk: a new kind goes to the end, whatever it is. */
#define SL_EFFECT_MAP(XX) /* name, is it a record */                                                         \
    XX(EPOCH, true)       /* a new life of the group begins: tokens and ids from here on are larger */       \
    XX(SETTINGS, true)                                                                                       \
    XX(RULE, true)       /* an operator's stop of everyone with a tag, made or taken back */                 \
    XX(JOIN, true)       /* a consumer exists; once more when its session begins to say what it starts */    \
    XX(GONE, true)       /* a consumer exists no more; it holds nothing */                                   \
    XX(LEASE, true)      /* a message is given to a consumer */                                              \
    XX(STARTED, true)    /* its holder has begun to work on it */                                            \
    XX(EXTEND, true)     /* the lease runs longer, or shorter, than it did */                                \
    XX(MOVE, true)       /* the same lease, token and all, belongs to another consumer of the session */     \
    XX(BACK, true)       /* a message has no live lease any more and is not settled */                       \
    XX(SETTLE, true)     /* never delivered again */                                                         \
    XX(PARK, true)       /* settled here by going to the parked messages, in one step */                     \
    XX(CHECKPOINT, true) /* everything below is settled */                                                   \
    XX(PASSED, true)     /* snapshots only: a range in which everything is settled */                        \
    XX(MESSAGE, true)    /* snapshots only: an unsettled message with all that is known of it */             \
    XX(DELIVER, false)   /* send it; always right after its LEASE */                                         \
    XX(STOP_REQUESTED, false) /* operator or server wants this consumer to drain; STOPPED follows */         \
    XX(STOPPED, false)        /* no DELIVER for this consumer comes after this */                            \
    XX(SETTLED, false)        /* this ack, nack or release counts */                                         \
    XX(LOST, false)           /* this ack, nack, release, started, extend or resume came too late */         \
    XX(DRAINED, false)        /* the stopped consumer holds nothing any more; once for each stop */

typedef enum sl_effect_kind {
#define XX(name, is_record) SL_EFFECT_##name,
    SL_EFFECT_MAP(XX)
#undef XX
    SL_EFFECT_COUNT_
} sl_effect_kind;

/* All that is known of an unsettled message beside its lease. */
typedef struct sl_counters {
    uint32_t deliveries; /* leases given */
    uint32_t attempts;   /* charged: started work that failed or died. Clients see it as the retry count */
    uint32_t interrupts; /* started work that was handed back */
    uint32_t kills;      /* sessions that died while working on it */
} sl_counters;

typedef struct sl_effect {
    sl_effect_kind kind; /* exactly the arm of the same name is filled */
    union {
        struct {
            uint64_t epoch;
            uint32_t messages_max; /* of the group that writes this; a smaller one could not read it again */
        } epoch;
        sl_settings settings;
        struct {
            uint64_t tag;
            bool stop; /* false: taken back */
        } rule;
        struct {
            uint64_t consumer;
            sl_uuid session;
            bool sends_started; /* its session has done so before, or has said that it will */
        } join;
        struct {
            uint64_t consumer;
        } gone;
        struct {
            sl_place place;
            sl_uuid id;
            uint64_t key, consumer, token, until_ns;
            uint32_t deliveries; /* this one included */
        } lease;
        struct {
            sl_place place;
            uint64_t token;
        } started;
        struct {
            sl_place place;
            uint64_t token, until_ns;
        } extend;
        struct {
            sl_place place;
            uint64_t token, consumer; /* the new holder */
        } move;
        struct {
            sl_place place;
            sl_back_cause cause;
            bool charged;
            sl_counters counters; /* as they are now */
            uint64_t not_before_ns;
        } back;
        struct {
            sl_place place;
            sl_uuid id;
            uint64_t from, to; /* every message of the lane in [from, to) is settled now */
            sl_settle_cause cause;
        } settle;
        struct {
            sl_place place;
            sl_uuid id;
            uint64_t from, to;
            sl_park_cause cause;
            sl_back_cause last; /* how its last delivery ended; COUNT_: a BACK has told. Not in the record */
            sl_counters counters;
        } park;
        struct {
            sl_lane lane;
            uint64_t below; /* every message with a position below this one is settled */
        } checkpoint;
        struct {
            sl_lane lane;
            uint64_t from, to;
        } passed;
        struct {
            sl_place place;
            sl_uuid id;
            uint64_t key, consumer, token, until_ns; /* consumer 0: no lease, or one that was given up */
            sl_counters counters;
            uint64_t not_before_ns;
            bool started, charged, ended;
        } message;
        struct {
            sl_place place;
            sl_uuid id;
            uint64_t consumer, token, lease_ns;
            sl_counters counters;
        } deliver;
        struct {
            uint64_t consumer;
            sl_asker asked_by;
            uint64_t deadline_ns; /* 0: none was named */
            bool
                hand_back; /* a wish: release what was not begun. Said again, without STOPPED, if wished later */
        } stop_requested;
        struct {
            uint64_t consumer;
            sl_asker asked_by;
            bool already_stopped;
            uint32_t in_flight; /* sl_group_held() lists them */
        } stopped;
        struct {
            uint64_t consumer;
            sl_uuid id;
        } settled;
        struct {
            uint64_t consumer;
            sl_uuid id;
        } lost;
        struct {
            uint64_t consumer;
            uint32_t settled, released, lost; /* leases that ended so since the stop */
            uint32_t interrupted;             /* of released: after they were started */
        } drained;
    };
} sl_effect;

typedef void sl_effect_fn(void *ctx, const sl_effect *effect);

/* Where effects go. Called from inside the group: it must not call the group again. */
typedef struct sl_sink {
    sl_effect_fn *emit;
    void *ctx;
} sl_sink;

bool sl_effect_is_record(sl_effect_kind kind);
const char *sl_effect_name(sl_effect_kind kind);

#endif
