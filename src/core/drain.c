/* core/drain.c — see core/drain.h for the picture.
 *
 * Only three functions move the machine: sl_drain_begin() out of RUNNING, sl_drain_tick() along the phases,
 * and a begin that escalates. All others record what the caller says. A phase is left by leave() and entered
 * by enter(), nowhere else, so that every phase has its time, its end and its actions.
 *
 * Invariants, held by sl_drain_check():
 *   (1) there is a reason if and only if the machine is not RUNNING, and it never changes afterwards.
 *   (2) began_ns <= entered_ns <= now_ns.
 *   (3) an action is due or taken, never both: so it comes at most once.
 *   (4) phases from the present one on have no end yet; the present one has used no time yet.
 * Held by the deadlines and by the random walks in the tests:
 *   (5) with a tick at each time that was returned, STOPPED is entered at most the consumer's part of the
 * grace after begin, whatever the caller holds and whatever fails. */
#include "core/drain.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stddef.h>

static_assert((int)SL_DRAIN_FENCING - 1 == (int)SL_BUDGET_FENCE, "phases and parts are in the same order");
static_assert((int)SL_DRAIN_CLOSING - 1 == (int)SL_BUDGET_CLOSE, "phases and parts are in the same order");

static sl_budget_part part_of(sl_drain_phase phase)
{
    return (sl_budget_part)((unsigned)phase - SL_DRAIN_FENCING);
}

static bool is_draining(const sl_drain *drain)
{
    return drain->phase != SL_DRAIN_RUNNING && drain->phase != SL_DRAIN_STOPPED;
}

void sl_drain_check(const sl_drain *drain)
{
    sl_budget_check(&drain->budget);
    assert((unsigned)drain->phase < SL_DRAIN_PHASE_COUNT_);
    assert((drain->phase == SL_DRAIN_RUNNING) == (drain->reason == SL_DRAIN_REASON_NONE));
    assert(drain->began_ns <= drain->entered_ns);
    assert(drain->entered_ns <= drain->now_ns);
    assert((drain->actions_due & drain->actions_taken) == 0);
    for (unsigned phase = drain->phase; phase < SL_DRAIN_PHASE_COUNT_; phase++) {
        assert(drain->ends[phase] == SL_DRAIN_END_NONE);
        assert(drain->used_ns[phase] == 0);
    }
}

void sl_drain_init(sl_drain *drain, const sl_budget *budget, bool finish_unstarted)
{
    *drain = (sl_drain){ .budget = *budget, .finish_unstarted = finish_unstarted };
    sl_drain_check(drain);
}

void sl_drain_shorten(sl_drain *drain, uint64_t grace_ns)
{
    const sl_budget_wish wish = { .grace_ns =
                                      sl_max_u64(grace_ns, SL_BUDGET_GRACE_LEAST_MS * UINT64_C(1000000)) };
    sl_budget shorter;

    if (drain->phase != SL_DRAIN_RUNNING || sl_budget_make(&wish, &shorter) != SL_OK ||
        shorter.grace_ns >= drain->budget.grace_ns)
        return;
    for (int i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        shorter.part_ns[i] = sl_min_u64(shorter.part_ns[i], drain->budget.part_ns[i]);
    drain->budget = shorter;
    sl_drain_check(drain);
}

static void note_time(sl_drain *drain, uint64_t now_ns)
{
    assert(now_ns >= drain->now_ns);
    drain->now_ns = now_ns;
}

/* Fencing and settling share one stretch, so that a quick fence leaves more time to handlers. The later
 * phases have their own part and no more; if an earlier one was late, what remains until the planned end. */
static uint64_t deadline_of(const sl_drain *drain)
{
    const sl_budget_part part = part_of(drain->phase);
    const uint64_t planned_ns = sl_add_sat_u64(drain->began_ns, sl_budget_until_end_ns(&drain->budget, part));

    if (drain->phase <= SL_DRAIN_SETTLING)
        return planned_ns;
    return sl_min_u64(planned_ns, sl_add_sat_u64(drain->entered_ns, drain->budget.part_ns[part]));
}

/* Half of the abort for SIGTERM, half for SIGKILL to take effect and for the releases. */
static uint64_t kill_at(const sl_drain *drain)
{
    const uint64_t end_ns = sl_max_u64(deadline_of(drain), drain->entered_ns);

    return drain->entered_ns + (end_ns - drain->entered_ns) / 2;
}

static void make_due(sl_drain *drain, unsigned actions)
{
    drain->actions_due |= actions & ~drain->actions_taken;
}

/* RELEASE_REST is due even when nothing is held: without a confirmed fence something may still arrive. */
static unsigned actions_of(const sl_drain *drain)
{
    switch (drain->phase) {
    case SL_DRAIN_FENCING: return SL_DRAIN_CLOSE_GATE;
    case SL_DRAIN_SETTLING: return drain->finish_unstarted ? 0 : SL_DRAIN_HAND_BACK;
    case SL_DRAIN_ABORTING: return SL_DRAIN_ABORT;
    case SL_DRAIN_FLUSHING: return SL_DRAIN_RELEASE_REST | SL_DRAIN_FLUSH;
    case SL_DRAIN_CLOSING: return SL_DRAIN_CLOSE;
    case SL_DRAIN_RUNNING:
    case SL_DRAIN_STOPPED:
    case SL_DRAIN_PHASE_COUNT_: break;
    }
    return 0;
}

static void enter(sl_drain *drain, sl_drain_phase phase)
{
    drain->phase = phase;
    drain->entered_ns = drain->now_ns;
    make_due(drain, actions_of(drain));
}

/* Aborting is for handlers: when none runs there is nothing to abort, and the rest is released anyway. */
static sl_drain_phase phase_after_work(const sl_drain *drain)
{
    return drain->held.started > 0 ? SL_DRAIN_ABORTING : SL_DRAIN_FLUSHING;
}

static sl_drain_phase phase_after(const sl_drain *drain)
{
    return drain->phase == SL_DRAIN_SETTLING ? phase_after_work(drain) : drain->phase + 1;
}

static void leave(sl_drain *drain, sl_drain_end end, sl_drain_phase next)
{
    drain->ends[drain->phase] = end;
    drain->used_ns[drain->phase] = drain->now_ns - drain->entered_ns;
    enter(drain, next);
}

static void escalate(sl_drain *drain)
{
    if (drain->phase > SL_DRAIN_SETTLING)
        return;
    drain->escalated = true;
    leave(drain, SL_DRAIN_END_CUT_SHORT, phase_after_work(drain));
}

bool sl_drain_begin(sl_drain *drain, sl_drain_call call, uint64_t now_ns)
{
    const bool begins = drain->phase == SL_DRAIN_RUNNING;

    assert(call.reason != SL_DRAIN_REASON_NONE);
    sl_drain_check(drain);
    note_time(drain, now_ns);
    if (begins) {
        drain->reason = call.reason;
        drain->began_ns = now_ns;
        enter(drain, SL_DRAIN_FENCING);
    } else if (call.escalates) {
        escalate(drain);
    }
    sl_drain_check(drain);
    return begins;
}

void sl_drain_set_held(sl_drain *drain, const sl_drain_held *held)
{
    if (drain->phase != SL_DRAIN_STOPPED)
        drain->held = *held;
}

void sl_drain_count(sl_drain *drain, sl_drain_outcome outcome, uint64_t count)
{
    assert((unsigned)outcome < SL_DRAIN_OUTCOME_COUNT_);
    if (is_draining(drain))
        drain->outcomes[outcome] = sl_add_sat_u64(drain->outcomes[outcome], count);
}

void sl_drain_step_failed(sl_drain *drain, sl_drain_failure failure)
{
    assert(failure.phase > SL_DRAIN_RUNNING && failure.phase < SL_DRAIN_STOPPED);
    if (drain->phase == SL_DRAIN_STOPPED)
        return;
    drain->failed_steps[failure.phase]++;
    drain->hopeless[failure.phase] = sl_add_sat_u64(drain->hopeless[failure.phase], failure.hopeless);
}

/* What the phase waits for came true. A hand-back that failed is no reason to give up a handler that runs. */
static bool is_over(const sl_drain *drain)
{
    const uint64_t awaited[SL_DRAIN_PHASE_COUNT_] = {
        [SL_DRAIN_FENCING] = drain->held.gates,    [SL_DRAIN_SETTLING] = drain->held.unstarted,
        [SL_DRAIN_ABORTING] = drain->held.started, [SL_DRAIN_FLUSHING] = drain->held.unconfirmed,
        [SL_DRAIN_CLOSING] = drain->held.open,
    };

    assert(is_draining(drain));
    if (drain->phase == SL_DRAIN_SETTLING && drain->held.started > 0)
        return false;
    return awaited[drain->phase] <= drain->hopeless[drain->phase];
}

static bool is_kill_due(const sl_drain *drain)
{
    return drain->phase == SL_DRAIN_ABORTING && drain->held.started > 0 && drain->now_ns >= kill_at(drain);
}

/* One phase further, if counts or time allow it. */
static bool step(sl_drain *drain)
{
    const bool failed = drain->failed_steps[drain->phase] > 0;

    if (is_kill_due(drain))
        make_due(drain, SL_DRAIN_KILL);
    if (is_over(drain))
        leave(drain, failed ? SL_DRAIN_END_FAILED : SL_DRAIN_END_DONE, phase_after(drain));
    else if (drain->now_ns >= deadline_of(drain))
        leave(drain, SL_DRAIN_END_TIMED_OUT, phase_after(drain));
    else
        return false;
    return true;
}

static uint64_t wake_at(const sl_drain *drain)
{
    if (!is_draining(drain))
        return UINT64_MAX;
    if (drain->phase == SL_DRAIN_ABORTING && drain->now_ns < kill_at(drain))
        return kill_at(drain);
    return deadline_of(drain);
}

uint64_t sl_drain_tick(sl_drain *drain, uint64_t now_ns)
{
    sl_drain_check(drain);
    note_time(drain, now_ns);
    while (is_draining(drain) && step(drain))
        ;
    sl_drain_check(drain);
    return wake_at(drain);
}

unsigned sl_drain_take_actions(sl_drain *drain)
{
    const unsigned actions = drain->actions_due;

    sl_drain_check(drain);
    drain->actions_due = 0;
    drain->actions_taken |= actions;
    sl_drain_check(drain);
    return actions;
}

uint64_t sl_drain_work_until_ns(const sl_drain *drain)
{
    if (drain->phase == SL_DRAIN_RUNNING)
        return UINT64_MAX;
    if (drain->phase <= SL_DRAIN_SETTLING)
        return sl_add_sat_u64(drain->began_ns, sl_budget_until_end_ns(&drain->budget, SL_BUDGET_SETTLE));
    return drain->began_ns + drain->used_ns[SL_DRAIN_FENCING] + drain->used_ns[SL_DRAIN_SETTLING];
}

uint64_t sl_drain_leave_until_ns(const sl_drain *drain)
{
    const uint64_t reserve_ns = drain->budget.part_ns[SL_BUDGET_RESERVE];

    if (drain->phase == SL_DRAIN_RUNNING)
        return UINT64_MAX;
    return sl_add_sat_u64(drain->began_ns, drain->budget.grace_ns - reserve_ns / 4);
}

static bool is_clean(const sl_drain *drain, const sl_drain_report *report)
{
    for (unsigned phase = 0; phase < SL_DRAIN_PHASE_COUNT_; phase++)
        if (drain->ends[phase] != SL_DRAIN_END_NONE && drain->ends[phase] != SL_DRAIN_END_DONE)
            return false;
    return drain->phase == SL_DRAIN_STOPPED && report->failed_steps == 0 && report->interrupted == 0 &&
           report->abandoned == 0 && report->acks_unconfirmed == 0;
}

static void report_phases(const sl_drain *drain, sl_drain_report *report)
{
    for (unsigned phase = 0; phase < SL_DRAIN_PHASE_COUNT_; phase++) {
        report->phases[phase].used_ns = drain->used_ns[phase];
        report->phases[phase].end = drain->ends[phase];
        report->phases[phase].failed_steps = drain->failed_steps[phase];
        report->failed_steps += drain->failed_steps[phase];
    }
    if (is_draining(drain))
        report->phases[drain->phase].used_ns = drain->now_ns - drain->entered_ns;
}

sl_drain_report sl_drain_report_of(const sl_drain *drain)
{
    const uint64_t until_ns = drain->phase == SL_DRAIN_STOPPED ? drain->entered_ns : drain->now_ns;
    sl_drain_report report = {
        .reason = drain->reason,
        .escalated = drain->escalated,
        .grace_ns = drain->budget.grace_ns,
        .used_ns = drain->phase == SL_DRAIN_RUNNING ? 0 : until_ns - drain->began_ns,
        .finished = drain->outcomes[SL_DRAIN_FINISHED],
        .handed_back = drain->outcomes[SL_DRAIN_HANDED_BACK],
        .interrupted = drain->outcomes[SL_DRAIN_INTERRUPTED],
        .abandoned = drain->held.started + drain->held.unstarted,
        .acks_unconfirmed = drain->held.unconfirmed,
    };

    report_phases(drain, &report);
    report.clean = is_clean(drain, &report);
    return report;
}

const char *sl_drain_phase_name(sl_drain_phase phase)
{
    static const char *const names[] = { "running",  "fencing", "settling", "aborting",
                                         "flushing", "closing", "stopped" };
    static_assert(SL_COUNT_OF(names) == SL_DRAIN_PHASE_COUNT_, "one name for each phase");

    assert((unsigned)phase < SL_DRAIN_PHASE_COUNT_);
    return names[phase];
}

const char *sl_drain_reason_name(sl_drain_reason reason)
{
    static const char *const names[] = {
#define XX(name, text) [SL_DRAIN_REASON_##name] = text,
        SL_DRAIN_REASON_MAP(XX)
#undef XX
    };
    static_assert(SL_COUNT_OF(names) == SL_DRAIN_REASON_COUNT_, "one name for each reason");

    assert((unsigned)reason < SL_DRAIN_REASON_COUNT_);
    return names[reason];
}

const char *sl_drain_end_name(sl_drain_end end)
{
    static const char *const names[] = { "none", "done", "failed", "timed out", "cut short" };
    static_assert(SL_COUNT_OF(names) == SL_DRAIN_END_COUNT_, "one name for each end");

    assert((unsigned)end < SL_DRAIN_END_COUNT_);
    return names[end];
}
