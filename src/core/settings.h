/* core/settings.h — the rules of one group that its owner may choose, with defaults and bounds.
 *
 * Limits (how much memory) are another thing: they are fixed when the group is made, see core/group.h. */
#ifndef SL_CORE_SETTINGS_H
#define SL_CORE_SETTINGS_H

#include "base/err.h"
#include "core/retry.h"

#include <stdbool.h>
#include <stdint.h>

/* No lease and no pause is longer than a day, however it is asked for: a clock or a client that was wrong must not
 * hold a message for ever. */
#define SL_LEASE_NS_MAX (UINT64_C(86400) * 1000000000)
#define SL_PAUSE_NS_MAX SL_LEASE_NS_MAX

typedef enum sl_strategy {
    SL_STRATEGY_ROUND_ROBIN,           /* in turn, whoever has room */
    SL_STRATEGY_DISPATCH_TO_SINGLE,    /* one is filled before the next gets anything */
    SL_STRATEGY_PINNED,                /* a key (the source stream) stays with one consumer */
    SL_STRATEGY_PINNED_BY_CORRELATION, /* the same; the caller computes the key from the correlation id */
    SL_STRATEGY_COUNT_
} sl_strategy;

typedef struct sl_settings {
    sl_strategy strategy;
    bool key_order;    /* pinned only: the next message of a key waits until the one before is settled */
    uint64_t lease_ns; /* how long a delivery may take before the message is given to another */
    uint32_t
        retries_max; /* charged failures before a message is parked: it is delivered retries_max + 1 times */
    uint32_t kills_max; /* sessions that died while working on it before it is parked; 0: no such limit */
    uint32_t interrupts_max; /* interruptions that are not charged; each further one is. 0: none is charged */
    sl_retry_policy
        backoff;         /* pause before a charged message is given out again; attempts are limited above */
    uint32_t buffer_max; /* messages that wait in memory, delivered or not, before the group takes no more */
    uint32_t consumers_max; /* active ones at a time; 0: as many as the limits allow */
    uint64_t
        checkpoint_after_ns; /* shortest time between two checkpoints; 0: only checkpoint_count_max counts */
    uint32_t checkpoint_count_min; /* messages that a timed checkpoint must cover, unless the group is idle */
    uint32_t checkpoint_count_max; /* messages after which a checkpoint is written at once */
} sl_settings;

/* 30 s lease, 10 retries at once, buffer 500, checkpoint after 2 s with 10..1000 messages, RoundRobin: what
 * official clients ask for when their user says nothing. */
sl_settings sl_settings_default(void);

/* SL_OK, or SL_ERR_INVALID with *ret_field set to the name of the first setting that is out of bounds. */
sl_err sl_settings_validate(const sl_settings *settings, const char **ret_field);

/* A switch without default, so that the compiler asks about a new strategy. */
static inline bool sl_strategy_is_pinned(sl_strategy strategy)
{
    switch (strategy) {
    case SL_STRATEGY_ROUND_ROBIN:
    case SL_STRATEGY_DISPATCH_TO_SINGLE: return false;
    case SL_STRATEGY_PINNED:
    case SL_STRATEGY_PINNED_BY_CORRELATION: return true;
    case SL_STRATEGY_COUNT_: break;
    }
    return false;
}

/* "RoundRobin", "DispatchToSingle", "Pinned", "PinnedByCorrelation": the names that clients use. */
const char *sl_strategy_name(sl_strategy strategy);

#endif
