/* core/retry.h — after a failed attempt: try again, and when?
 *
 *      attempt --fails--> sl_retry_next() --again--> wait delay_ns --> attempt
 *                              |
 *                              +--not again--> park, with the reason why
 *
 * A policy is a shape and its caps. n is the number of retries that were made before this one:
 *
 *      none          never again
 *      constant      first                          first = 0 is "at once", as KurrentDB does
 *      linear        first + n * step
 *      exponential   first * factor^n
 *
 * The delay of the shape is cut to delay_max_ns, then spread by the jitter, then raised to what the
 * destination asked for. Two caps end the series: attempts, and the sum of all delays.
 *
 * Pure: the randomness is an argument, all arithmetic is on integers and saturates. One policy may be shared
 * by any number of messages; what belongs to one message is its sl_retry_past. */
#ifndef SL_CORE_RETRY_H
#define SL_CORE_RETRY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sl_retry_kind {
    SL_RETRY_NONE,
    SL_RETRY_CONSTANT,
    SL_RETRY_LINEAR,
    SL_RETRY_EXPONENTIAL,
    SL_RETRY_KIND_COUNT_
} sl_retry_kind;

enum {
    /* Growth below 1.1 is a constant in disguise and would make the power a long loop; above 100 every policy
     * is at its cap after one retry. */
    SL_RETRY_FACTOR_PERMILLE_MIN = 1100,
    SL_RETRY_FACTOR_PERMILLE_MAX = 100000,
};

/* No single delay may be longer: a year. It also keeps every sum below far from the end of 64 bits. */
#define SL_RETRY_DELAY_LIMIT_NS (UINT64_C(365) * 24 * 3600 * 1000000000)

typedef struct sl_retry_policy {
    sl_retry_kind kind;
    uint32_t factor_permille; /* exponential only: 2000 doubles */
    uint32_t jitter_permille; /* 200 spreads a delay over 80 % to 120 % of itself */
    uint32_t attempts_max;    /* attempts in all, the first one included; 0 is no limit */
    uint64_t delay_first_ns;
    uint64_t delay_step_ns;      /* linear only */
    uint64_t delay_max_ns;       /* of one delay, jitter included */
    uint64_t delay_total_max_ns; /* of all delays of one message together; 0 is no limit */
    uint64_t retry_after_max_ns; /* so far a destination may push its next attempt; 0 ignores its wish */
} sl_retry_policy;

/* What one message has behind it. */
typedef struct sl_retry_past {
    uint32_t attempts;       /* attempts that were made, the failed one included */
    uint64_t delay_total_ns; /* sum of the delays given so far */
    uint64_t retry_after_ns; /* what the destination asked for with this failure; 0 when it did not */
} sl_retry_past;

typedef enum sl_retry_reason {
    SL_RETRY_BY_POLICY,      /* again: the delay of the shape */
    SL_RETRY_BY_DESTINATION, /* again: the destination asked for a longer delay than the shape has */
    SL_RETRY_NEVER,          /* given up: the policy is none */
    SL_RETRY_ATTEMPTS_SPENT, /* given up: attempts_max were made */
    SL_RETRY_DELAY_SPENT,    /* given up: the next delay would cross delay_total_max_ns */
    SL_RETRY_REASON_COUNT_
} sl_retry_reason;

typedef struct sl_retry_verdict {
    bool again;
    sl_retry_reason reason;
    uint64_t delay_ns; /* 0 unless again */
} sl_retry_verdict;

/* Exponential: 1 s, doubling, at most 300 s, 10 attempts, jitter 0.2. The default of the outbox. */
sl_retry_policy sl_retry_default(void);

/* At once, at most retries_max times after the first attempt: a KurrentDB group with that maxRetryCount. */
sl_retry_policy sl_retry_kurrent(uint32_t retries_max);

/* To be called once for each policy that comes from outside, before it is used.
 *   SL_OK
 *   SL_ERR_INVALID  a number is out of its bounds
 * A policy without caps is valid: it is for callers that count attempts themselves, as a group does. */
sl_err sl_retry_validate(const sl_retry_policy *policy);

/* The verdict on one failed attempt. random: 64 uniform bits, fresh for each call. For a given policy both
 * ends of the range that the delay is drawn from never shrink while attempts grows. */
sl_retry_verdict sl_retry_next(const sl_retry_policy *policy, const sl_retry_past *past, uint64_t random);

/* For dead letters, logs and metrics: "attempts-spent". */
const char *sl_retry_reason_name(sl_retry_reason reason);

#endif
