/* tests/sim/model_charge.c — the section "Charging" of the rules. */
#include "model.h"

#include <assert.h>

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* No pause that a client asks for is longer than a day. */
static uint64_t own_delay_ns(const sl_nack *nack)
{
    return nack->delay_ns > SL_LEASE_NS_MAX ? SL_LEASE_NS_MAX : nack->delay_ns;
}

bool model_counts_as_started(const model *m, const model_message *message)
{
    if (message->started)
        return true;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].id == message->holder)
            return !m->consumers[i].sends_started;
    return true;
}

/* The delay of the shape for the retry after `retries` others, before jitter. */
static uint64_t shape_delay(const sl_retry_policy *policy, uint32_t retries)
{
    __extension__ typedef unsigned __int128 wide;
    wide delay = policy->delay_first_ns;
    if (policy->kind == SL_RETRY_NONE)
        return 0;
    if (policy->kind == SL_RETRY_LINEAR)
        delay += (wide)policy->delay_step_ns * retries;
    for (uint32_t i = 0; policy->kind == SL_RETRY_EXPONENTIAL && i < retries; i++) {
        delay = delay * policy->factor_permille / 1000;
        if (delay > policy->delay_max_ns)
            break;
    }
    return delay > policy->delay_max_ns ? policy->delay_max_ns : (uint64_t)delay;
}

/* Bounds of the pause for a message that was charged `attempts` times. The core may round where it likes: a
 * nanosecond for each retry is allowed on both sides. */
static void pause_bounds(const sl_retry_policy *policy, uint32_t attempts, uint64_t *ret_min,
                         uint64_t *ret_max)
{
    const uint64_t delay = shape_delay(policy, attempts - 1);
    const uint64_t spread =
        delay / 1000 * policy->jitter_permille + delay % 1000 * policy->jitter_permille / 1000;
    const bool exact = policy->jitter_permille == 0 && policy->kind != SL_RETRY_EXPONENTIAL;
    const uint64_t slack = exact ? 0 : attempts;
    *ret_min = delay > spread + slack ? delay - spread - slack : 0;
    *ret_max = delay + spread + slack < policy->delay_max_ns ? delay + spread + slack : policy->delay_max_ns;
}

static bool charges(const model *m, const model_message *message, sl_back_cause cause, sl_counters counters)
{
    if (message->charged)
        return false;
    switch (cause) {
    case SL_BACK_RELEASED: return false;
    case SL_BACK_INTERRUPTED:
        return m->settings.interrupts_max > 0 && counters.interrupts > m->settings.interrupts_max;
    case SL_BACK_NACKED: return true;
    case SL_BACK_EXPIRED:
    case SL_BACK_LEFT:
    case SL_BACK_DIED: return model_counts_as_started(m, message);
    case SL_BACK_COUNT_: break;
    }
    assert(false);
    return false;
}

static model_next parked(const model_message *message, sl_park_cause cause, sl_back_cause last,
                         sl_counters counters)
{
    return (model_next){ .effect = { .kind = SL_EFFECT_PARK,
                                     .park = { .place = message->place,
                                               .id = message->id,
                                               .cause = cause,
                                               .last = last,
                                               .counters = counters } } };
}

/* When a message that is not charged may be given out again: at once, except that a nack after a charged expiry
 * may name its own delay, and otherwise leaves the pause of that expiry. */
static void uncharged_bounds(const model *m, const model_message *message, const sl_nack *nack,
                             model_next *next)
{
    const bool ended = message->current && !message->live;
    next->not_before_max_ns = m->now_ns;
    if (ended)
        next->not_before_min_ns = next->not_before_max_ns = message->not_before_ns;
    if (nack != NULL && nack->has_delay)
        next->not_before_min_ns = next->not_before_max_ns = add_up(m->now_ns, own_delay_ns(nack));
}

static void charged_bounds(const model *m, uint32_t attempts, const sl_nack *nack, model_next *next)
{
    uint64_t min_ns, max_ns;
    pause_bounds(&m->settings.backoff, attempts, &min_ns, &max_ns);
    if (nack != NULL && nack->has_delay)
        min_ns = max_ns = own_delay_ns(nack);
    next->not_before_min_ns = add_up(m->now_ns, min_ns);
    next->not_before_max_ns = add_up(m->now_ns, max_ns);
}

model_next model_return(const model *m, const model_message *message, sl_back_cause cause,
                        const sl_nack *nack)
{
    const bool ended = message->current && !message->live;
    sl_counters counters = message->counters;
    counters.interrupts += cause == SL_BACK_INTERRUPTED && !ended;
    counters.kills += cause == SL_BACK_DIED && message->started;
    const bool charged = charges(m, message, cause, counters);
    if (charged && m->settings.kills_max > 0 && counters.kills >= m->settings.kills_max)
        return parked(message, SL_PARK_KILLS, cause, counters);
    if (charged && counters.attempts >= m->settings.retries_max)
        return parked(message, SL_PARK_RETRIES, cause, counters);
    counters.attempts += charged;
    model_next next = { .effect = { .kind = SL_EFFECT_BACK,
                                    .back = { .place = message->place,
                                              .cause = cause,
                                              .charged = charged,
                                              .counters = counters } } };
    if (charged)
        charged_bounds(m, counters.attempts, nack, &next);
    else
        uncharged_bounds(m, message, nack, &next);
    return next;
}
