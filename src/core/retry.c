/* core/retry.c — the shapes, the spread and the caps of retries. See core/retry.h for the model.
 *
 * The order of the steps is the contract:
 *
 *      shape --cut--> [0, delay_max] --spread--> [low, high] --raise--> at least what the destination wants
 *
 * The spread is cut at delay_max as a range, not as a value: with a cut value half of all delays would be
 * exactly delay_max once a policy has reached it, and the messages that a dead destination has piled up would
 * come back in one wave, which is what jitter is there to prevent. */
#include "core/retry.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stddef.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    PERMILLE = 1000
};

typedef struct range {
    uint64_t low_ns, high_ns;
} range;

sl_retry_policy sl_retry_default(void)
{
    return (sl_retry_policy){
        .kind = SL_RETRY_EXPONENTIAL,
        .factor_permille = 2000,
        .jitter_permille = 200,
        .attempts_max = 10,
        .delay_first_ns = SECOND_NS,
        .delay_max_ns = 300 * SECOND_NS,
        .retry_after_max_ns = 3600 * SECOND_NS, /* rate limits are often by the hour, seldom by the day */
    };
}

sl_retry_policy sl_retry_kurrent(uint32_t retries_max)
{
    return (sl_retry_policy){
        .kind = SL_RETRY_CONSTANT,
        .attempts_max = retries_max == UINT32_MAX ? UINT32_MAX : retries_max + 1,
    };
}

static bool delays_in_bounds(const sl_retry_policy *policy)
{
    return policy->delay_first_ns <= policy->delay_max_ns &&
           policy->delay_max_ns <= SL_RETRY_DELAY_LIMIT_NS &&
           policy->delay_step_ns <= SL_RETRY_DELAY_LIMIT_NS &&
           policy->retry_after_max_ns <= SL_RETRY_DELAY_LIMIT_NS;
}

/* Zero has no powers: an exponential policy that begins with it would never leave it. */
static bool shape_grows(const sl_retry_policy *policy)
{
    return policy->delay_first_ns > 0 && policy->factor_permille >= SL_RETRY_FACTOR_PERMILLE_MIN &&
           policy->factor_permille <= SL_RETRY_FACTOR_PERMILLE_MAX;
}

sl_err sl_retry_validate(const sl_retry_policy *policy)
{
    if ((unsigned)policy->kind >= SL_RETRY_KIND_COUNT_)
        return SL_ERR_INVALID;
    if (policy->kind == SL_RETRY_NONE)
        return SL_OK;
    if (!delays_in_bounds(policy) || policy->jitter_permille > PERMILLE)
        return SL_ERR_INVALID;
    if (policy->kind == SL_RETRY_EXPONENTIAL && !shape_grows(policy))
        return SL_ERR_INVALID;
    return SL_OK;
}

/* value * permille / 1000, rounded up, so that growth never stands still on small numbers. Cannot overflow
 * for values up to the delay limit and factors up to theirs: 3.2e16 * 100. */
static uint64_t scale_up(uint64_t value, uint32_t permille)
{
    const uint64_t whole = value / PERMILLE, rest = value % PERMILLE;

    assert(value <= SL_RETRY_DELAY_LIMIT_NS);
    return whole * permille + (rest * permille + PERMILLE - 1) / PERMILLE;
}

/* Multiplies until the cap is reached. With the least factor that is fewer than 500 turns from 1 ns to a
 * year, however many retries there were. */
static uint64_t exponential(const sl_retry_policy *policy, uint32_t retries)
{
    uint64_t delay_ns = policy->delay_first_ns;

    while (retries-- > 0 && delay_ns < policy->delay_max_ns)
        delay_ns = sl_min_u64(scale_up(delay_ns, policy->factor_permille), policy->delay_max_ns);
    return delay_ns;
}

/* Division instead of multiplication, so that a step for each of four billion retries cannot overflow. */
static uint64_t linear(const sl_retry_policy *policy, uint32_t retries)
{
    const uint64_t room_ns = policy->delay_max_ns - policy->delay_first_ns;

    if (retries > 0 && policy->delay_step_ns > room_ns / retries)
        return policy->delay_max_ns;
    return policy->delay_first_ns + policy->delay_step_ns * retries;
}

static uint64_t shape(const sl_retry_policy *policy, uint32_t retries)
{
    switch (policy->kind) {
    case SL_RETRY_LINEAR: return linear(policy, retries);
    case SL_RETRY_EXPONENTIAL: return exponential(policy, retries);
    case SL_RETRY_CONSTANT:
    case SL_RETRY_NONE:
    case SL_RETRY_KIND_COUNT_: break;
    }
    return policy->delay_first_ns;
}

static range spread(const sl_retry_policy *policy, uint64_t delay_ns)
{
    const uint64_t whole = delay_ns / PERMILLE, rest = delay_ns % PERMILLE;
    const uint64_t reach_ns = whole * policy->jitter_permille + rest * policy->jitter_permille / PERMILLE;

    assert(reach_ns <= delay_ns); /* or the lower end would be negative */
    return (range){ delay_ns - reach_ns, sl_min_u64(delay_ns + reach_ns, policy->delay_max_ns) };
}

static uint64_t draw(range range_ns, uint64_t random)
{
    assert(range_ns.low_ns <= range_ns.high_ns);
    return range_ns.low_ns + random % (range_ns.high_ns - range_ns.low_ns + 1);
}

static sl_retry_verdict give_up(sl_retry_reason reason)
{
    return (sl_retry_verdict){ .again = false, .reason = reason };
}

static bool crosses_total(const sl_retry_policy *policy, uint64_t delay_total_ns, uint64_t delay_ns)
{
    return policy->delay_total_max_ns != 0 &&
           sl_add_sat_u64(delay_total_ns, delay_ns) > policy->delay_total_max_ns;
}

sl_retry_verdict sl_retry_next(const sl_retry_policy *policy, const sl_retry_past *past, uint64_t random)
{
    const uint32_t retries = past->attempts > 0 ? past->attempts - 1 : 0;
    const uint64_t wish_ns = sl_min_u64(past->retry_after_ns, policy->retry_after_max_ns);

    assert(sl_retry_validate(policy) == SL_OK);
    if (policy->kind == SL_RETRY_NONE)
        return give_up(SL_RETRY_NEVER);
    if (policy->attempts_max != 0 && past->attempts >= policy->attempts_max)
        return give_up(SL_RETRY_ATTEMPTS_SPENT);

    const uint64_t own_ns = draw(spread(policy, shape(policy, retries)), random);
    const uint64_t delay_ns = sl_max_u64(own_ns, wish_ns);

    if (crosses_total(policy, past->delay_total_ns, delay_ns))
        return give_up(SL_RETRY_DELAY_SPENT);
    return (sl_retry_verdict){
        .again = true,
        .reason = wish_ns > own_ns ? SL_RETRY_BY_DESTINATION : SL_RETRY_BY_POLICY,
        .delay_ns = delay_ns,
    };
}

const char *sl_retry_reason_name(sl_retry_reason reason)
{
    static const char *const names[] = {
        [SL_RETRY_BY_POLICY] = "by-policy",
        [SL_RETRY_BY_DESTINATION] = "by-destination",
        [SL_RETRY_NEVER] = "never",
        [SL_RETRY_ATTEMPTS_SPENT] = "attempts-spent",
        [SL_RETRY_DELAY_SPENT] = "delay-spent",
    };
    static_assert(SL_COUNT_OF(names) == SL_RETRY_REASON_COUNT_, "one name for each reason");

    assert((unsigned)reason < SL_RETRY_REASON_COUNT_);
    return names[reason];
}
