/* tests/unit/core/test_drain.c — the phases of a shutdown: their order, their bounds and what they report. */
#include "core/drain.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)

/* The parts of the default budget in seconds are 2 + 20 + 3 + 2 + 2 + 1. */
enum {
    BEGAN_S = 1000,
    FENCE_S = 2,
    SETTLE_S = 20,
    ABORT_S = 3,
    FLUSH_S = 2,
    CLOSE_S = 2
};

static const sl_drain_call by_sigterm = { SL_DRAIN_REASON_SIGTERM, true };

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static sl_drain running(bool finish_unstarted)
{
    sl_budget budget;
    sl_drain drain;

    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 30 * SECOND_NS }, &budget));
    sl_drain_init(&drain, &budget, finish_unstarted);
    return drain;
}

static sl_drain begun(sl_drain_held held)
{
    sl_drain drain = running(false);

    sl_drain_set_held(&drain, &held);
    EXPECT(sl_drain_begin(&drain, by_sigterm, BEGAN_S * SECOND_NS));
    return drain;
}

/* Ticks at this many seconds after begin; the wake time comes back in the same measure, but in nanoseconds. */
static uint64_t tick_after(sl_drain *drain, uint64_t seconds)
{
    const uint64_t wake_ns = sl_drain_tick(drain, (BEGAN_S + seconds) * SECOND_NS);

    return wake_ns == UINT64_MAX ? wake_ns : wake_ns - BEGAN_S * SECOND_NS;
}

static void hold(sl_drain *drain, sl_drain_held held)
{
    sl_drain_set_held(drain, &held);
}

static void expect_phase(const sl_drain *drain, sl_drain_phase phase)
{
    EXPECT_STR(sl_drain_phase_name(drain->phase), sl_drain_phase_name(phase));
}

TEST(drain_does_nothing_while_running)
{
    sl_drain drain = running(false);

    hold(&drain, (sl_drain_held){ .gates = 1, .started = 5 });
    EXPECT_EQ(sl_drain_tick(&drain, SECOND_NS), UINT64_MAX);
    expect_phase(&drain, SL_DRAIN_RUNNING);
    EXPECT_EQ(sl_drain_take_actions(&drain), 0);
    EXPECT_EQ(sl_drain_work_until_ns(&drain), UINT64_MAX);
    sl_drain_count(&drain, SL_DRAIN_FINISHED, 7); /* work outside of a drain is not the drain's */
    EXPECT_EQ(sl_drain_report_of(&drain).finished, 0);
    EXPECT_EQ(sl_drain_report_of(&drain).used_ns, 0);
    EXPECT(!sl_drain_report_of(&drain).clean);
}

/* S3.25: a start-up that failed before anything was created takes the same way. */
TEST(S3_25_drain_with_nothing_held_passes_all_phases_in_one_tick)
{
    sl_drain drain = running(false);

    EXPECT(sl_drain_begin(&drain, (sl_drain_call){ .reason = SL_DRAIN_REASON_START_FAILED }, 5));
    EXPECT_EQ(sl_drain_tick(&drain, 5), UINT64_MAX);
    expect_phase(&drain, SL_DRAIN_STOPPED);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_CLOSE_GATE | SL_DRAIN_HAND_BACK |
                                                 SL_DRAIN_RELEASE_REST | SL_DRAIN_FLUSH | SL_DRAIN_CLOSE);
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT(report.clean);
    EXPECT_EQ(report.reason, SL_DRAIN_REASON_START_FAILED);
    EXPECT_EQ(report.used_ns, 0);
    EXPECT_EQ(report.phases[SL_DRAIN_ABORTING].end, SL_DRAIN_END_NONE);
    EXPECT_EQ(report.phases[SL_DRAIN_CLOSING].end, SL_DRAIN_END_DONE);
}

TEST(S3_21_drain_phases_come_in_their_order_each_with_its_actions_once)
{
    sl_drain drain = begun((sl_drain_held){ 1, 2, 3, 0, 4 });

    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_CLOSE_GATE);
    EXPECT_EQ(tick_after(&drain, 0), FENCE_S * SECOND_NS);
    EXPECT_EQ(sl_drain_take_actions(&drain), 0);
    hold(&drain, (sl_drain_held){ 0, 2, 3, 0, 4 });
    EXPECT_EQ(tick_after(&drain, 1), (FENCE_S + SETTLE_S) * SECOND_NS);
    expect_phase(&drain, SL_DRAIN_SETTLING);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_HAND_BACK);
    sl_drain_count(&drain, SL_DRAIN_HANDED_BACK, 3);
    hold(&drain, (sl_drain_held){ 0, 2, 0, 3, 4 });
    tick_after(&drain, 1);
    expect_phase(&drain, SL_DRAIN_SETTLING);
    sl_drain_count(&drain, SL_DRAIN_FINISHED, 2);
    hold(&drain, (sl_drain_held){ 0, 0, 0, 5, 4 });
    EXPECT_EQ(tick_after(&drain, 9), (9 + FLUSH_S) * SECOND_NS);
    expect_phase(&drain, SL_DRAIN_FLUSHING);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_RELEASE_REST | SL_DRAIN_FLUSH);
    hold(&drain, (sl_drain_held){ 0, 0, 0, 0, 4 });
    EXPECT_EQ(tick_after(&drain, 10), (10 + CLOSE_S) * SECOND_NS);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_CLOSE);
    hold(&drain, (sl_drain_held){ 0 });
    EXPECT_EQ(tick_after(&drain, 11), UINT64_MAX);
    expect_phase(&drain, SL_DRAIN_STOPPED);

    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT(report.clean);
    EXPECT_EQ(report.finished, 2);
    EXPECT_EQ(report.handed_back, 3);
    EXPECT_EQ(report.used_ns, 11 * SECOND_NS);
    EXPECT_EQ(report.grace_ns, 30 * SECOND_NS);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].used_ns, SECOND_NS);
    EXPECT_EQ(report.phases[SL_DRAIN_SETTLING].used_ns, 8 * SECOND_NS);
    EXPECT_EQ(report.phases[SL_DRAIN_CLOSING].used_ns, SECOND_NS);
    tick_after(&drain, 20); /* the report is final */
    EXPECT_EQ(sl_drain_report_of(&drain).used_ns, 11 * SECOND_NS);
    EXPECT_EQ(sl_drain_report_of(&drain).phases[SL_DRAIN_STOPPED].used_ns, 0);
}

TEST(S3_2_drain_keeps_its_first_reason)
{
    sl_drain drain = begun((sl_drain_held){ .gates = 1 });

    EXPECT(
        !sl_drain_begin(&drain, (sl_drain_call){ SL_DRAIN_REASON_OPERATOR, false }, BEGAN_S * SECOND_NS + 1));
    EXPECT(!sl_drain_begin(&drain, (sl_drain_call){ SL_DRAIN_REASON_SIGINT, true }, BEGAN_S * SECOND_NS + 2));
    EXPECT_EQ(sl_drain_report_of(&drain).reason, SL_DRAIN_REASON_SIGTERM);
}

TEST(drain_begin_that_does_not_escalate_changes_nothing)
{
    sl_drain drain = begun((sl_drain_held){ .started = 1 });

    tick_after(&drain, 1);
    EXPECT(!sl_drain_begin(&drain, (sl_drain_call){ .reason = SL_DRAIN_REASON_OPERATOR },
                           (BEGAN_S + 2) * SECOND_NS));
    expect_phase(&drain, SL_DRAIN_SETTLING);
    EXPECT_EQ(tick_after(&drain, 3), (FENCE_S + SETTLE_S) * SECOND_NS);
}

TEST(S2_19_drain_awaits_the_fence_but_not_for_ever)
{
    sl_drain drain = begun((sl_drain_held){ .gates = 2 });

    hold(&drain, (sl_drain_held){ .gates = 1 });
    tick_after(&drain, 1);
    expect_phase(&drain, SL_DRAIN_FENCING);
    tick_after(&drain, FENCE_S);
    expect_phase(&drain, SL_DRAIN_STOPPED);
    EXPECT_EQ(sl_drain_report_of(&drain).phases[SL_DRAIN_FENCING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT(!sl_drain_report_of(&drain).clean); /* S4.17: a time-out is never silent */
}

TEST(S2_5_drain_gives_the_time_that_fencing_did_not_use_to_handlers)
{
    sl_drain drain = begun((sl_drain_held){ .started = 1 });

    EXPECT_EQ(tick_after(&drain, 0), (FENCE_S + SETTLE_S) * SECOND_NS);
    EXPECT_EQ(sl_drain_work_until_ns(&drain), (BEGAN_S + FENCE_S + SETTLE_S) * SECOND_NS); /* S2.20 */
    tick_after(&drain, FENCE_S + SETTLE_S - 1);
    expect_phase(&drain, SL_DRAIN_SETTLING);
    tick_after(&drain, FENCE_S + SETTLE_S);
    expect_phase(&drain, SL_DRAIN_ABORTING);
}

TEST(what_is_cleared_away_after_a_drain_leaves_time_for_the_report_S3_24)
{
    sl_drain drain = running(false);
    const uint64_t reserve_ns = drain.budget.part_ns[SL_BUDGET_RESERVE];

    EXPECT_EQ(sl_drain_leave_until_ns(&drain), UINT64_MAX);
    drain = begun((sl_drain_held){ .started = 1 });
    EXPECT_EQ(sl_drain_leave_until_ns(&drain), (BEGAN_S + 30) * SECOND_NS - reserve_ns / 4);
    EXPECT(reserve_ns / 4 > 0);
}

TEST(S2_6_drain_aborts_then_kills_then_releases_what_does_not_finish)
{
    sl_drain drain = begun((sl_drain_held){ .started = 2, .unstarted = 1 });
    const uint64_t abort_s = FENCE_S + SETTLE_S;

    tick_after(&drain, 0);
    sl_drain_take_actions(&drain);
    EXPECT_EQ(tick_after(&drain, abort_s), abort_s * SECOND_NS + ABORT_S * SECOND_NS / 2);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_ABORT);
    EXPECT_EQ(tick_after(&drain, abort_s + 1), abort_s * SECOND_NS + ABORT_S * SECOND_NS / 2);
    EXPECT_EQ(sl_drain_take_actions(&drain), 0);
    EXPECT_EQ(tick_after(&drain, abort_s + 2), (abort_s + ABORT_S) * SECOND_NS);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_KILL);
    sl_drain_count(&drain, SL_DRAIN_INTERRUPTED, 2);
    hold(&drain, (sl_drain_held){ .unstarted = 1, .unconfirmed = 2 });
    tick_after(&drain, abort_s + 2);
    expect_phase(&drain, SL_DRAIN_FLUSHING);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_RELEASE_REST | SL_DRAIN_FLUSH);
    hold(&drain, (sl_drain_held){ 0 });
    tick_after(&drain, abort_s + 3);
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT_EQ(report.interrupted, 2);
    EXPECT_EQ(report.abandoned, 0);
    EXPECT(!report.clean);
}

/* A handler that ends on SIGTERM is not killed, and aborting ends with it. */
TEST(drain_does_not_kill_handlers_that_end_when_asked)
{
    sl_drain drain = begun((sl_drain_held){ .started = 1 });

    tick_after(&drain, 1);
    tick_after(&drain, FENCE_S + SETTLE_S);
    hold(&drain, (sl_drain_held){ 0 });
    tick_after(&drain, FENCE_S + SETTLE_S + 2); /* after the time for the kill */
    expect_phase(&drain, SL_DRAIN_STOPPED);
    EXPECT(!(sl_drain_take_actions(&drain) & SL_DRAIN_KILL));
    EXPECT_EQ(sl_drain_work_until_ns(&drain), (BEGAN_S + FENCE_S + SETTLE_S) * SECOND_NS);
}

/* S3.36: what was not finished is counted. S4.17: and is visible. */
TEST(S3_36_drain_that_hears_nothing_ends_before_the_reserve_and_counts_what_is_left)
{
    sl_drain drain = begun((sl_drain_held){ 1, 2, 3, 4, 5 });
    uint64_t wake_ns = BEGAN_S * SECOND_NS, last_ns = 0;

    while (wake_ns != UINT64_MAX) {
        last_ns = wake_ns;
        wake_ns = sl_drain_tick(&drain, wake_ns);
    }
    EXPECT_EQ(last_ns, (BEGAN_S + 29) * SECOND_NS);
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT_EQ(report.abandoned, 5);
    EXPECT_EQ(report.acks_unconfirmed, 4);
    EXPECT_EQ(report.used_ns, 29 * SECOND_NS);
    EXPECT(!report.clean);
    for (unsigned phase = SL_DRAIN_FENCING; phase < SL_DRAIN_STOPPED; phase++)
        EXPECT_EQ(report.phases[phase].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT_EQ(sl_drain_take_actions(&drain), (SL_DRAIN_CLOSE << 1) - 1);
    hold(&drain, (sl_drain_held){ 0 }); /* the report is final */
    sl_drain_count(&drain, SL_DRAIN_FINISHED, 5);
    sl_drain_step_failed(&drain, (sl_drain_failure){ SL_DRAIN_CLOSING, 1 });
    EXPECT_EQ(sl_drain_report_of(&drain).abandoned, 5);
    EXPECT_EQ(sl_drain_report_of(&drain).finished, 0);
    EXPECT_EQ(sl_drain_report_of(&drain).failed_steps, 0);
}

/* The process was frozen: everything that is overdue happens in one tick, the kill included. */
TEST(drain_catches_up_in_one_tick_that_comes_too_late)
{
    sl_drain drain = begun((sl_drain_held){ 1, 1, 1, 1, 1 });

    EXPECT_EQ(tick_after(&drain, 500), UINT64_MAX);
    expect_phase(&drain, SL_DRAIN_STOPPED);
    EXPECT_EQ(sl_drain_take_actions(&drain), (SL_DRAIN_CLOSE << 1) - 1);
    EXPECT_EQ(sl_drain_report_of(&drain).used_ns, 500 * SECOND_NS);
}

TEST(drain_phase_that_begins_late_has_only_what_is_left_until_its_planned_end)
{
    sl_drain drain = begun((sl_drain_held){ .started = 1, .unconfirmed = 1 });
    const uint64_t abort_end_s = FENCE_S + SETTLE_S + ABORT_S;

    EXPECT_EQ(tick_after(&drain, abort_end_s - 1), abort_end_s * SECOND_NS - SECOND_NS / 2);
    expect_phase(&drain, SL_DRAIN_ABORTING);
    tick_after(&drain, abort_end_s);
    expect_phase(&drain, SL_DRAIN_FLUSHING);
}

/* Architecture section 8: a second signal skips to the abort. */
TEST(drain_second_signal_aborts_handlers_at_once)
{
    sl_drain drain = begun((sl_drain_held){ .gates = 1, .started = 1, .unstarted = 1 });

    EXPECT(!sl_drain_begin(&drain, by_sigterm, (BEGAN_S + 1) * SECOND_NS));
    expect_phase(&drain, SL_DRAIN_ABORTING);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_CLOSE_GATE | SL_DRAIN_ABORT);
    EXPECT_EQ(sl_drain_work_until_ns(&drain), (BEGAN_S + 1) * SECOND_NS);
    EXPECT(!sl_drain_begin(&drain, by_sigterm, (BEGAN_S + 1) * SECOND_NS)); /* a third one changes nothing */
    expect_phase(&drain, SL_DRAIN_ABORTING);
    tick_after(&drain, 1 + ABORT_S);
    expect_phase(&drain, SL_DRAIN_STOPPED); /* nothing unconfirmed, nothing open */
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT(report.escalated && !report.clean);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].end, SL_DRAIN_END_CUT_SHORT);
    EXPECT_EQ(report.phases[SL_DRAIN_SETTLING].end, SL_DRAIN_END_NONE);
    EXPECT_EQ(report.abandoned, 2);
}

TEST(drain_second_signal_without_a_running_handler_goes_on_to_flush)
{
    sl_drain drain = begun((sl_drain_held){ .unstarted = 1, .unconfirmed = 1 });

    tick_after(&drain, 1);
    sl_drain_begin(&drain, by_sigterm, (BEGAN_S + 2) * SECOND_NS);
    expect_phase(&drain, SL_DRAIN_FLUSHING);
    EXPECT(sl_drain_take_actions(&drain) & SL_DRAIN_RELEASE_REST);
    EXPECT_EQ(tick_after(&drain, 2), (2 + FLUSH_S) * SECOND_NS);
}

/* C2: the policy of a consumer that wants its buffer finished. S4.18 is the caller's: it counts as unstarted. */
TEST(drain_may_finish_what_has_not_started_instead_of_handing_it_back)
{
    sl_drain drain = running(true);

    hold(&drain, (sl_drain_held){ .unstarted = 2 });
    sl_drain_begin(&drain, by_sigterm, BEGAN_S * SECOND_NS);
    tick_after(&drain, 0);
    EXPECT_EQ(sl_drain_take_actions(&drain), SL_DRAIN_CLOSE_GATE);
    hold(&drain, (sl_drain_held){ .started = 1, .unstarted = 1 });
    tick_after(&drain, 5);
    expect_phase(&drain, SL_DRAIN_SETTLING);
    hold(&drain, (sl_drain_held){ 0 });
    tick_after(&drain, 6);
    EXPECT(sl_drain_report_of(&drain).clean);
}

/* S2.16, S3.22, S3.23: a step that fails is counted and shown, and stops none of the others. */
TEST(S3_22_drain_goes_on_after_each_step_that_fails)
{
    sl_drain drain = begun((sl_drain_held){ 1, 1, 2, 3, 4 });

    for (sl_drain_phase phase = SL_DRAIN_FENCING; phase < SL_DRAIN_STOPPED; phase++)
        sl_drain_step_failed(&drain, (sl_drain_failure){ phase, UINT64_MAX });
    tick_after(&drain, 1);
    expect_phase(&drain, SL_DRAIN_SETTLING); /* a handler still runs: that is not given up */
    hold(&drain, (sl_drain_held){ 1, 0, 2, 3, 4 });
    tick_after(&drain, 2);
    expect_phase(&drain, SL_DRAIN_STOPPED);
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT_EQ(report.failed_steps, 5);
    EXPECT_EQ(report.abandoned, 2);
    EXPECT_EQ(report.acks_unconfirmed, 3);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].end, SL_DRAIN_END_FAILED);
    EXPECT_EQ(report.phases[SL_DRAIN_CLOSING].failed_steps, 1);
    EXPECT(!report.clean);
}

TEST(S2_16_drain_waits_for_the_gates_that_did_not_fail)
{
    sl_drain drain = begun((sl_drain_held){ .gates = 3 });

    sl_drain_step_failed(&drain, (sl_drain_failure){ SL_DRAIN_FENCING, 1 });
    hold(&drain, (sl_drain_held){ .gates = 2 });
    tick_after(&drain, 0);
    expect_phase(&drain, SL_DRAIN_FENCING);
    hold(&drain, (sl_drain_held){ .gates = 1 });
    tick_after(&drain, 1);
    expect_phase(&drain, SL_DRAIN_STOPPED);
}

TEST(S2_16_drain_does_not_wait_for_a_handler_that_cannot_be_killed)
{
    sl_drain drain = begun((sl_drain_held){ .started = 1 });

    tick_after(&drain, FENCE_S + SETTLE_S);
    sl_drain_step_failed(&drain, (sl_drain_failure){ SL_DRAIN_ABORTING, 1 });
    tick_after(&drain, FENCE_S + SETTLE_S);
    expect_phase(&drain, SL_DRAIN_STOPPED);
    EXPECT_EQ(sl_drain_report_of(&drain).abandoned, 1);
}

/* S3.23: a step that failed after its phase was over still makes the drain unclean. */
TEST(drain_failure_that_is_told_late_is_counted)
{
    sl_drain drain = begun((sl_drain_held){ .open = 1 });

    tick_after(&drain, 0);
    sl_drain_step_failed(&drain, (sl_drain_failure){ SL_DRAIN_FLUSHING, 0 });
    hold(&drain, (sl_drain_held){ 0 });
    tick_after(&drain, 1);
    EXPECT_EQ(sl_drain_report_of(&drain).phases[SL_DRAIN_FLUSHING].end, SL_DRAIN_END_DONE);
    EXPECT(!sl_drain_report_of(&drain).clean);
}

TEST(drain_report_shows_progress)
{
    sl_drain drain = begun((sl_drain_held){ .gates = 1, .started = 4 });

    tick_after(&drain, 1);
    sl_drain_count(&drain, SL_DRAIN_FINISHED, 1);
    const sl_drain_report report = sl_drain_report_of(&drain);
    EXPECT_EQ(report.used_ns, SECOND_NS);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].used_ns, SECOND_NS);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].end, SL_DRAIN_END_NONE);
    EXPECT_EQ(report.finished, 1);
    EXPECT(!report.clean);
}

TEST(S4_20_drain_can_be_started_again_after_it_stopped)
{
    sl_drain drain = begun((sl_drain_held){ 0 });
    const sl_budget budget = drain.budget;

    tick_after(&drain, 0);
    EXPECT(!sl_drain_begin(&drain, by_sigterm, (BEGAN_S + 1) * SECOND_NS)); /* stopped is stopped */
    expect_phase(&drain, SL_DRAIN_STOPPED);
    sl_drain_init(&drain, &budget, false);
    expect_phase(&drain, SL_DRAIN_RUNNING);
    EXPECT(sl_drain_begin(&drain, by_sigterm, (BEGAN_S + 2) * SECOND_NS));
}

TEST(drain_words_have_names)
{
    EXPECT_STR(sl_drain_phase_name(SL_DRAIN_RUNNING), "running");
    EXPECT_STR(sl_drain_phase_name(SL_DRAIN_STOPPED), "stopped");
    EXPECT_STR(sl_drain_reason_name(SL_DRAIN_REASON_SIGTERM), "SIGTERM"); /* S3.27: the last log line */
    EXPECT_STR(sl_drain_reason_name(SL_DRAIN_REASON_FAILED), "failed");
    EXPECT_STR(sl_drain_end_name(SL_DRAIN_END_NONE), "none");
    EXPECT_STR(sl_drain_end_name(SL_DRAIN_END_CUT_SHORT), "cut short");
}

/* The random walk: budgets, counts, failures, signals and ticks come from a seed. Its judge knows the header
 * only:
 *   - phases go forward, in the order of the picture; the first reason stays;
 *   - a phase is left when what it waits for came true, when its time is up, or by a second signal, and for
 * no other reason; and it is never stayed in when one of the first two holds;
 *   - each action comes at most once, and at or after the begin of its phase;
 *   - with a tick at each wake time, STOPPED comes before the grace minus the reserve is over. */
typedef struct walk {
    sl_drain drain;
    sl_budget budget;
    uint64_t seed, now_ns, began_ns, wake_ns, hopeless[SL_DRAIN_PHASE_COUNT_];
    sl_drain_held held;
    sl_drain_reason reason;
    sl_drain_report before;
    sl_drain_phase phase_before;
    unsigned actions, escalations;
    bool late; /* ticks may come late: then only the order is bound to hold */
} walk;

static uint64_t pick(walk *w, uint64_t below)
{
    return next_random(&w->seed) % below;
}

static uint64_t awaited(const walk *w, unsigned phase)
{
    const sl_drain_held *held = &w->held;
    const uint64_t all[] = { 0, held->gates, held->unstarted, held->started, held->unconfirmed, held->open };
    const uint64_t left = all[phase] > w->hopeless[phase] ? all[phase] - w->hopeless[phase] : 0;

    return phase == SL_DRAIN_SETTLING ? left + held->started : left;
}

/* Time from begin to the planned end of a phase. */
static uint64_t planned_ns(const walk *w, unsigned phase)
{
    uint64_t sum_ns = 0;

    for (unsigned i = SL_DRAIN_FENCING; i <= phase; i++)
        sum_ns += w->budget.part_ns[i - 1];
    return sum_ns;
}

static bool is_time_up(const walk *w, unsigned phase, uint64_t used_ns)
{
    const bool own_time = phase > SL_DRAIN_SETTLING && used_ns >= w->budget.part_ns[phase - 1];

    return own_time || w->now_ns - w->began_ns >= planned_ns(w, phase);
}

static void judge_end(const walk *w, unsigned phase, sl_drain_end end, uint64_t used_ns)
{
    switch (end) {
    case SL_DRAIN_END_DONE:
    case SL_DRAIN_END_FAILED: EXPECT_EQ(awaited(w, phase), 0); break;
    case SL_DRAIN_END_TIMED_OUT:
        EXPECT(is_time_up(w, phase, used_ns));
        EXPECT(awaited(w, phase) > 0);
        break;
    case SL_DRAIN_END_CUT_SHORT: EXPECT(w->escalations > 0 && phase <= SL_DRAIN_SETTLING); break;
    case SL_DRAIN_END_NONE: EXPECT(phase == SL_DRAIN_ABORTING || w->escalations > 0); break; /* left out */
    case SL_DRAIN_END_COUNT_: EXPECT(false);
    }
}

static void judge(walk *w)
{
    const sl_drain_report report = sl_drain_report_of(&w->drain);
    const sl_drain_phase phase = w->drain.phase;
    uint64_t sum_ns = 0;

    EXPECT(phase >= w->phase_before);
    EXPECT_EQ(report.reason, w->reason);
    for (unsigned i = SL_DRAIN_FENCING; i < SL_DRAIN_STOPPED; i++) {
        sum_ns += report.phases[i].used_ns;
        if (i >= w->phase_before && i < phase)
            judge_end(w, i, report.phases[i].end, report.phases[i].used_ns);
        else
            EXPECT_EQ(report.phases[i].end, w->before.phases[i].end);
    }
    EXPECT_EQ(sum_ns, report.used_ns);
    w->before = report;
    w->phase_before = phase;
}

static void take_actions(walk *w)
{
    static const sl_drain_phase phases[] = { SL_DRAIN_FENCING,  SL_DRAIN_SETTLING, SL_DRAIN_ABORTING,
                                             SL_DRAIN_ABORTING, SL_DRAIN_FLUSHING, SL_DRAIN_FLUSHING,
                                             SL_DRAIN_CLOSING };
    const unsigned actions = sl_drain_take_actions(&w->drain);

    EXPECT_EQ(actions & w->actions, 0);
    for (unsigned bit = 0; bit < 7; bit++)
        if (actions >> bit & 1)
            EXPECT(w->drain.phase >= phases[bit]);
    w->actions |= actions;
}

static void walk_tick(walk *w)
{
    w->wake_ns = sl_drain_tick(&w->drain, w->now_ns);
    judge(w);
    if (w->drain.phase > SL_DRAIN_RUNNING && w->drain.phase < SL_DRAIN_STOPPED) {
        EXPECT(awaited(w, w->drain.phase) > 0);
        EXPECT(!is_time_up(w, w->drain.phase, w->before.phases[w->drain.phase].used_ns));
        EXPECT(w->wake_ns > w->now_ns);
        EXPECT(w->wake_ns <= w->began_ns + planned_ns(w, w->drain.phase));
    } else {
        EXPECT_EQ(w->wake_ns, UINT64_MAX);
    }
    if (pick(w, 2) == 0)
        take_actions(w);
}

static void walk_begin(walk *w)
{
    const sl_drain_call call = { (sl_drain_reason)(1 + pick(w, SL_DRAIN_REASON_COUNT_ - 1)),
                                 pick(w, 2) == 0 };
    const bool first = w->reason == SL_DRAIN_REASON_NONE;

    EXPECT_EQ(sl_drain_begin(&w->drain, call, w->now_ns), first);
    w->reason = first ? call.reason : w->reason;
    w->began_ns = first ? w->now_ns : w->began_ns;
    w->escalations += !first && call.escalates;
    judge(w);
    walk_tick(w); /* the caller ticks after each event: a begin may have set an earlier deadline */
}

static void walk_change(walk *w)
{
    const uint64_t most = pick(w, 4);

    if (pick(w, 8) == 0) {
        const sl_drain_failure failure = { (sl_drain_phase)(1 + pick(w, 5)), pick(w, 3) };

        sl_drain_step_failed(&w->drain, failure);
        w->hopeless[failure.phase] += failure.hopeless;
        return;
    }
    if (w->drain.phase == SL_DRAIN_STOPPED)
        return;
    w->held = (sl_drain_held){ pick(w, 1 + most), pick(w, 1 + most), pick(w, 1 + most), pick(w, 1 + most),
                               pick(w, 1 + most) };
    sl_drain_set_held(&w->drain, &w->held);
}

/* Time goes on to a moment at or before the wake time, or past it in walks with late ticks. */
static void walk_step(walk *w)
{
    const uint64_t jump_ns = w->wake_ns == UINT64_MAX ? SECOND_NS : w->wake_ns - w->now_ns;

    if (pick(w, 3) == 0)
        w->now_ns += w->late ? pick(w, 3 * jump_ns) : pick(w, 3) == 0 ? jump_ns : pick(w, jump_ns);
    switch (pick(w, 12)) {
    case 0: walk_begin(w); break;
    case 1:
    case 2:
    case 3: walk_change(w); break;
    default: break;
    }
    walk_tick(w);
}

static sl_budget random_budget(walk *w)
{
    sl_budget_wish wish = { .grace_ns = SECOND_NS + pick(w, 60 * SECOND_NS) };
    sl_budget budget;

    wish.part_ns[pick(w, SL_BUDGET_PART_COUNT_)] = SECOND_NS / 10 + pick(w, SECOND_NS / 2);
    EXPECT_OK(sl_budget_make(&wish, &budget));
    return budget;
}

/* Returns the phases that ended by time. */
static unsigned run(uint64_t seed, bool silent)
{
    walk w = { .seed = seed, .wake_ns = UINT64_MAX, .now_ns = 1 };
    unsigned timed_out = 0;

    w.late = !silent && pick(&w, 3) == 0;
    w.budget = random_budget(&w);
    sl_drain_init(&w.drain, &w.budget, pick(&w, 2) == 0);
    while (w.reason == SL_DRAIN_REASON_NONE) {
        walk_change(&w);
        if (pick(&w, 3) == 0)
            walk_begin(&w);
    }
    for (unsigned i = 0; w.drain.phase != SL_DRAIN_STOPPED; i++) {
        EXPECT(i < 100000);
        if (silent || i > 200)
            w.now_ns = w.wake_ns;
        if (silent || i > 200)
            walk_tick(&w);
        else
            walk_step(&w);
    }
    for (unsigned i = 0; i < SL_DRAIN_PHASE_COUNT_; i++)
        timed_out += w.before.phases[i].end == SL_DRAIN_END_TIMED_OUT;
    if (!w.late)
        EXPECT(w.before.used_ns <= w.budget.grace_ns - w.budget.part_ns[SL_BUDGET_RESERVE]);
    EXPECT_EQ(w.before.abandoned, w.held.started + w.held.unstarted);
    EXPECT_EQ(w.before.acks_unconfirmed, w.held.unconfirmed);
    return timed_out;
}

TEST(drain_random_walks_end_within_the_grace_whatever_happens)
{
    unsigned timed_out = 0;

    for (uint64_t seed = 1; seed <= 3000; seed++)
        timed_out += run(seed, false);
    EXPECT(timed_out > 1000);
}

TEST(drain_without_a_single_event_ends_within_the_grace)
{
    unsigned timed_out = 0;

    for (uint64_t seed = 1; seed <= 1000; seed++)
        timed_out += run(seed, true);
    EXPECT(timed_out > 1000);
}

/* --- less time than usual --- */

TEST(a_shorter_drain_derives_its_parts_and_lengthens_none_B10)
{
    const sl_budget_wish wish = { .grace_ns = 30 * SECOND_NS, .part_ns[SL_BUDGET_SETTLE] = SECOND_NS };
    sl_budget budget;
    sl_drain drain;

    EXPECT_OK(sl_budget_make(&wish, &budget));
    sl_drain_init(&drain, &budget, false);
    sl_drain_shorten(&drain, 20 * SECOND_NS);
    EXPECT_EQ(drain.budget.grace_ns, 20 * SECOND_NS);
    for (int i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        EXPECT(drain.budget.part_ns[i] <= budget.part_ns[i]);
    EXPECT_EQ(drain.budget.part_ns[SL_BUDGET_SETTLE], SECOND_NS);
    sl_drain_shorten(&drain, 1);
    EXPECT_EQ(drain.budget.grace_ns, SL_BUDGET_GRACE_LEAST_MS * (SECOND_NS / 1000));
}

TEST(a_drain_is_not_lengthened_and_not_shortened_once_it_is_on)
{
    sl_drain drain = running(false);

    sl_drain_shorten(&drain, 31 * SECOND_NS);
    EXPECT_EQ(drain.budget.grace_ns, 30 * SECOND_NS);
    sl_drain_shorten(&drain, UINT64_MAX);
    EXPECT_EQ(drain.budget.grace_ns, 30 * SECOND_NS);
    EXPECT(sl_drain_begin(&drain, by_sigterm, BEGAN_S * SECOND_NS));
    sl_drain_shorten(&drain, SECOND_NS);
    EXPECT_EQ(drain.budget.grace_ns, 30 * SECOND_NS);
}
