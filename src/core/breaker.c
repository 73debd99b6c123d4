/* core/breaker.c — see core/breaker.h for the model.
 *
 * The ticket number moves whenever what was sent before stops being news: at opening, at closing, at each
 * probe and at the end of a drain. So within one number there is
 *
 *      closed              any number of ordinary sends
 *      open, no drain      nothing, or exactly one probe
 *      open, in a drain    the bypasses, and the probe that was out when the drain began, counted as one
 *                          of them
 *
 * and a current ticket needs no further mark to say what it was for.
 *
 * Invariants, held by sl_breaker_check():
 *   (1) open_until_ns is set if and only if failures has reached failures_max.
 *   (2) a probe is out only while open, and never in a drain.
 *   (3) bypasses exist only while open and in a drain; bypasses_failed <= bypasses <= bypasses_max.
 *
 * A probe that has run out of time is not forgotten: until another one is given, its late result counts. This
 * is the same rule as for a lease that ran out and was not taken by anybody else. */
#include "core/breaker.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stddef.h>

#define SECOND_NS UINT64_C(1000000000)

sl_breaker_rules sl_breaker_rules_default(void)
{
    return (sl_breaker_rules){
        .failures_max = 5,
        .bypasses_max = 3,
        .cool_down_ns = 60 * SECOND_NS,
        .cool_down_max_ns = 600 * SECOND_NS,
        .probe_max_ns = 60 * SECOND_NS,
    };
}

sl_err sl_breaker_rules_validate(const sl_breaker_rules *rules)
{
    if (rules->failures_max == 0 || rules->bypasses_max == 0)
        return SL_ERR_INVALID;
    if (rules->cool_down_ns == 0 || rules->probe_max_ns == 0)
        return SL_ERR_INVALID;
    return rules->cool_down_max_ns < rules->cool_down_ns ? SL_ERR_INVALID : SL_OK;
}

static bool is_open(const sl_breaker *breaker)
{
    return breaker->failures >= breaker->rules.failures_max;
}

static bool is_draining(const sl_breaker *breaker)
{
    return breaker->drain_until_ns != 0;
}

void sl_breaker_check(const sl_breaker *breaker)
{
    assert(breaker->ticket != 0);
    assert(is_open(breaker) == (breaker->open_until_ns != 0));
    assert(breaker->probe_until_ns == 0 || is_open(breaker));
    assert(breaker->probe_until_ns == 0 || !is_draining(breaker));
    assert(breaker->bypasses == 0 || (is_open(breaker) && is_draining(breaker)));
    assert(breaker->bypasses_failed <= breaker->bypasses);
    assert(breaker->bypasses <= breaker->rules.bypasses_max);
}

void sl_breaker_init(sl_breaker *breaker, const sl_breaker_rules *rules)
{
    assert(sl_breaker_rules_validate(rules) == SL_OK);
    *breaker = (sl_breaker){ .rules = *rules, .ticket = 1 };
    sl_breaker_check(breaker);
}

sl_breaker_state sl_breaker_state_at(const sl_breaker *breaker, uint64_t now_ns)
{
    if (!is_open(breaker))
        return SL_BREAKER_CLOSED;
    return now_ns < breaker->open_until_ns ? SL_BREAKER_OPEN : SL_BREAKER_HALF_OPEN;
}

/* Makes everything that was sent so far old news. */
static void turn_page(sl_breaker *breaker)
{
    breaker->ticket++;
    breaker->probe_until_ns = 0;
    breaker->bypasses = breaker->bypasses_failed = 0;
}

static sl_breaker_verdict pass(const sl_breaker *breaker, sl_breaker_verdict_kind kind)
{
    return (sl_breaker_verdict){ .kind = kind, .ticket = breaker->ticket };
}

static sl_breaker_verdict wait_until(uint64_t until_ns)
{
    return (sl_breaker_verdict){ .kind = SL_BREAKER_WAIT, .until_ns = until_ns };
}

static sl_breaker_verdict ask_in_drain(sl_breaker *breaker, uint64_t now_ns)
{
    const sl_breaker_verdict keep = { .kind = SL_BREAKER_KEEP };

    if (now_ns >= breaker->drain_until_ns)
        return keep;
    if (!is_open(breaker))
        return pass(breaker, SL_BREAKER_SEND);
    if (breaker->bypasses_failed == breaker->rules.bypasses_max)
        return keep;
    if (breaker->bypasses == breaker->rules.bypasses_max)
        return wait_until(breaker->drain_until_ns); /* an answer that is still out decides, or time does */
    breaker->bypasses++;
    return pass(breaker, SL_BREAKER_SEND);
}

static sl_breaker_verdict ask_half_open(sl_breaker *breaker, uint64_t now_ns)
{
    if (now_ns < breaker->probe_until_ns)
        return wait_until(breaker->probe_until_ns);
    turn_page(breaker);
    breaker->probe_until_ns = sl_add_sat_u64(now_ns, breaker->rules.probe_max_ns);
    return pass(breaker, SL_BREAKER_PROBE);
}

static sl_breaker_verdict decide(sl_breaker *breaker, uint64_t now_ns)
{
    if (is_draining(breaker))
        return ask_in_drain(breaker, now_ns);
    if (!is_open(breaker))
        return pass(breaker, SL_BREAKER_SEND);
    if (now_ns < breaker->open_until_ns)
        return wait_until(breaker->open_until_ns);
    return ask_half_open(breaker, now_ns);
}

sl_breaker_verdict sl_breaker_ask(sl_breaker *breaker, uint64_t now_ns)
{
    sl_breaker_check(breaker);
    const sl_breaker_verdict verdict = decide(breaker, now_ns);

    sl_breaker_check(breaker);
    return verdict;
}

void sl_breaker_succeeded(sl_breaker *breaker, uint64_t ticket)
{
    sl_breaker_check(breaker);
    if (ticket != breaker->ticket)
        return;
    if (is_open(breaker)) {
        turn_page(breaker);
        breaker->open_until_ns = 0;
    }
    breaker->failures = 0;
    sl_breaker_check(breaker);
}

/* The destination may ask for a longer rest, within bounds, but never for a shorter one. */
static uint64_t rest_until(const sl_breaker *breaker, sl_breaker_failure failure)
{
    const uint64_t wish_ns = sl_min_u64(failure.retry_after_ns, breaker->rules.cool_down_max_ns);

    return sl_add_sat_u64(failure.now_ns, sl_max_u64(breaker->rules.cool_down_ns, wish_ns));
}

/* Old news does not count as a failure, but "come back in ten minutes" is as true from an old answer as from
 * a new one. Once the rest is over it is not prolonged any more: a probe may be out, and that one decides. */
static void heed_old_failure(sl_breaker *breaker, sl_breaker_failure failure)
{
    const bool resting = sl_breaker_state_at(breaker, failure.now_ns) == SL_BREAKER_OPEN;

    if (resting && failure.retry_after_ns != 0)
        breaker->open_until_ns = sl_max_u64(breaker->open_until_ns, rest_until(breaker, failure));
}

static void count_failure(sl_breaker *breaker, sl_breaker_failure failure)
{
    const bool was_open = is_open(breaker);

    if (breaker->failures < UINT32_MAX)
        breaker->failures++;
    if (!is_open(breaker))
        return;
    breaker->open_until_ns = rest_until(breaker, failure);
    if (was_open && is_draining(breaker))
        breaker->bypasses_failed++; /* the other bypasses stay current: their answers are wanted as well */
    else
        turn_page(breaker);
}

void sl_breaker_failed(sl_breaker *breaker, uint64_t ticket, sl_breaker_failure failure)
{
    sl_breaker_check(breaker);
    if (ticket == breaker->ticket)
        count_failure(breaker, failure);
    else
        heed_old_failure(breaker, failure);
    sl_breaker_check(breaker);
}

void sl_breaker_withdrawn(sl_breaker *breaker, uint64_t ticket)
{
    sl_breaker_check(breaker);
    if (ticket == breaker->ticket && is_open(breaker)) {
        if (is_draining(breaker))
            breaker->bypasses--;
        else
            turn_page(breaker);
    }
    sl_breaker_check(breaker);
}

void sl_breaker_drain(sl_breaker *breaker, uint64_t until_ns)
{
    assert(until_ns != 0);
    sl_breaker_check(breaker);
    breaker->drain_until_ns = until_ns;
    if (breaker->probe_until_ns != 0) { /* its answer still counts, as that of the first bypass */
        breaker->probe_until_ns = 0;
        breaker->bypasses = 1;
    }
    sl_breaker_check(breaker);
}

void sl_breaker_drain_end(sl_breaker *breaker)
{
    sl_breaker_check(breaker);
    if (!is_draining(breaker))
        return;
    breaker->drain_until_ns = 0;
    if (is_open(breaker))
        turn_page(breaker);
    sl_breaker_check(breaker);
}

const char *sl_breaker_state_name(sl_breaker_state state)
{
    static const char *const names[] = { "closed", "open", "half-open" };
    static_assert(SL_COUNT_OF(names) == SL_BREAKER_STATE_COUNT_, "one name for each state");

    assert((unsigned)state < SL_BREAKER_STATE_COUNT_);
    return names[state];
}
