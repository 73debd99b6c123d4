/* Rules of a shutdown that concern the whole of it: steps that fail, time that is told, what is left. */
#include "test.h"
#include "work_rig.h"

#include "base/cleanup.h"

#define MS_NS UINT64_C(1000000)

/* --- a step that fails --- */

typedef struct broken_step {
    const char *part;
    sl_drain_phase phase;
    bool never_fences, never_dies, never_confirms, source_stays, handler_stays;
} broken_step;

static void break_step(work_rig *rig, const broken_step *step)
{
    rig->fences = !step->never_fences;
    rig->dies_on_kill = !step->never_dies;
    rig->confirms = !step->never_confirms;
    rig->closes = !step->source_stays;
    rig->handler_stays = step->handler_stays;
}

static bool has_warned(const work_rig *rig, const char *part)
{
    char words[128];
    sl_text text;

    sl_text_init(&text, words, sizeof words);
    sl_text_add(&text, "WARN  a part of the shutdown took all of its time worker=rig part=");
    sl_text_add(&text, part);
    sl_text_add(&text, " used=");
    return strstr(rig->log_text, words) != NULL;
}

/* One message that never ends by itself, and one step that never comes to its end: all others are taken, in their order, and the
 * whole is over within the grace. False: the machine stood still, and the grace was over before all steps had their time. */
static bool takes_all_other_steps(const broken_step *step)
{
    work_rig rig;
    sl_drain_report report;
    bool is_in_time;

    work_rig_init(&rig);
    break_step(&rig, step);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(work_rig_notes_have(&rig, "draining gate abort 1 kill 1 release 1 close-"));
    EXPECT(work_rig_notes_have(&rig, "close-source"));
    report = sl_work_report(rig.work);
    is_in_time =
        report.phases[step->phase].end == SL_DRAIN_END_TIMED_OUT && report.used_ns <= report.grace_ns;
    EXPECT(!is_in_time || has_warned(&rig, step->part));
    EXPECT(!report.clean);
    EXPECT_EQ(report.finished, 0);
    work_rig_done(&rig);
    return is_in_time;
}

TEST(each_step_that_never_ends_is_a_warning_with_its_name_and_all_others_are_taken_S2_16_S3_22_S3_23_S3_24)
{
    static const broken_step steps[] = {
        { .part = "fencing", .phase = SL_DRAIN_FENCING, .never_fences = true },
        { .part = "aborting", .phase = SL_DRAIN_ABORTING, .never_dies = true },
        { .part = "flushing", .phase = SL_DRAIN_FLUSHING, .never_confirms = true },
        { .part = "closing", .phase = SL_DRAIN_CLOSING, .source_stays = true },
        { .part = "closing", .phase = SL_DRAIN_CLOSING, .handler_stays = true },
        { "closing", SL_DRAIN_CLOSING, true, true, true, true, true },
    };

    for (size_t i = 0; i < SL_COUNT_OF(steps); i++)
        for (int tries = 1; !takes_all_other_steps(&steps[i]); tries++)
            EXPECT(tries < 20);
}

/* As if nobody had let it run since the drain began: nothing is waited for, the begin moves back. */
static void lose_time(sl_drain *drain, uint64_t time_ns)
{
    drain->began_ns -= time_ns;
    drain->entered_ns -= time_ns;
}

/* Whoever has sent SIGSTOP lets the worker go on when all of its time is over. */
TEST(each_step_that_ends_late_is_a_warning_also_when_one_turn_ends_many_S2_16_S3_22)
{
    static const broken_step all = { "", SL_DRAIN_CLOSING, true, true, true, true, true };
    sl_drain_report report;
    unsigned timed_out = 0;
    work_rig rig;

    work_rig_init(&rig);
    break_step(&rig, &all);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    lose_time(&rig.work->drain, rig.settings.budget.grace_ns);
    work_rig_until(&rig, work_rig_is_over);
    report = sl_work_report(rig.work);
    for (sl_drain_phase phase = SL_DRAIN_FENCING; phase < SL_DRAIN_STOPPED; phase++) {
        const bool is_late = report.phases[phase].end == SL_DRAIN_END_TIMED_OUT;

        EXPECT_EQ(has_warned(&rig, sl_drain_phase_name(phase)), is_late);
        timed_out += is_late;
    }
    EXPECT(timed_out > 2);
    work_rig_done(&rig);
}

static void fail_source(work_rig *rig)
{
    rig->source->source.owner->failed(rig->source->source.owner_ctx, SL_SOURCE_LOST, SL_STR("torn"));
}

static void expect_way_out_when_failing_in(sl_drain_phase phase)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.fences = phase != SL_DRAIN_FENCING;
    rig.confirms = phase != SL_DRAIN_FLUSHING;
    rig.closes = phase != SL_DRAIN_CLOSING;
    rig.dies_on_abort = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    while (rig.work->drain.phase != phase)
        sl_loop_turn(rig.loop, true);
    fail_source(&rig);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(work_rig_notes_have(&rig, "close-handler close-source"));
    EXPECT_EQ(sl_work_report(rig.work).reason, SL_DRAIN_REASON_SIGTERM); /* the first one (S3.2) */
    EXPECT(strstr(rig.log_text, "ERROR the source has failed worker=rig reason=torn") != NULL);
    work_rig_done(&rig);
}

TEST(a_source_that_fails_in_the_middle_of_a_drain_stops_none_of_its_steps_S2_16_S3_22)
{
    static const sl_drain_phase phases[] = { SL_DRAIN_FENCING, SL_DRAIN_SETTLING, SL_DRAIN_FLUSHING,
                                             SL_DRAIN_CLOSING };

    for (size_t i = 0; i < SL_COUNT_OF(phases); i++)
        expect_way_out_when_failing_in(phases[i]);
}

/* --- time --- */

/* The rest of the grace is for the steps behind the work, so what a handler is told is less than it. */
TEST(a_drain_tells_running_and_beginning_work_how_long_it_has_S2_20_B7)
{
    work_rig rig;
    uint64_t until_ns, work_ns;

    work_rig_init(&rig);
    rig.settings.slots = 1;
    rig.settings.finish_unstarted = true;
    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 3600 * 1000 * MS_NS }, &rig.settings.budget));
    work_ns = rig.settings.budget.part_ns[SL_BUDGET_FENCE] + rig.settings.budget.part_ns[SL_BUDGET_SETTLE];
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    EXPECT_EQ(rig.jobs[1]->until_ns, UINT64_MAX);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    until_ns = rig.work->drain.began_ns + work_ns;
    EXPECT_EQ(rig.told_until_ns, until_ns);
    EXPECT_EQ(rig.jobs[1]->until_ns, until_ns);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    EXPECT_EQ(rig.jobs[2]->until_ns, until_ns); /* it began in the drain */
    work_rig_done(&rig);
}

TEST(an_unlimited_part_ends_with_the_grace_and_nothing_new_is_begun_S4_15)
{
    const sl_budget_wish wish = { .grace_ns = 600 * MS_NS, .part_ns[SL_BUDGET_SETTLE] = SL_BUDGET_UNLIMITED };
    work_rig rig;

    work_rig_init(&rig);
    rig.fences = false;
    rig.settings.slots = 2;
    EXPECT_OK(sl_budget_make(&wish, &rig.settings.budget));
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_offer(&rig, 2); /* there is a free slot, and the source has not confirmed its fence */
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(!work_rig_notes_have(&rig, "begin 2"));
    EXPECT(work_rig_notes_have(&rig, "release 2"));
    EXPECT(sl_work_report(rig.work).used_ns <= wish.grace_ns + rig.stalled_ns);
    EXPECT_EQ(sl_work_report(rig.work).interrupted, 1);
    work_rig_done(&rig);
}

/* --- what is left --- */

static bool is_named(const work_rig *rig, uint32_t number, const char *words)
{
    char line[160];
    sl_text text;

    sl_text_init(&text, line, sizeof line);
    sl_text_add(&text, "WARN  a message is left behind worker=rig id=00000000-0000-0000-0000-0000000000");
    sl_text_add(&text, number < 10 ? "0" : "");
    sl_text_add_u64(&text, number);
    sl_text_add(&text, " revision=");
    sl_text_add_u64(&text, number);
    sl_text_add(&text, words);
    return strstr(rig->log_text, line) != NULL;
}

TEST(what_a_drain_did_not_manage_is_counted_and_each_message_is_named_S3_36)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.confirms = false;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT_EQ(sl_work_report(rig.work).acks_unconfirmed, 3);
    EXPECT(is_named(&rig, 1, " state=\"not confirmed\" said=ack"));
    EXPECT(is_named(&rig, 2, " state=\"not confirmed\" said=release"));
    EXPECT(is_named(&rig, 3, " state=\"not confirmed\" said=release"));
    EXPECT(strstr(rig.log_text, "work was interrupted, and its message is released worker=rig id=0") != NULL);
    work_rig_done(&rig);
}

TEST(what_a_worker_holds_that_is_left_to_itself_is_named_with_a_limit_S3_36)
{
    const char *more = "WARN  more messages are left behind worker=rig more=10";
    work_rig rig;

    work_rig_init(&rig);
    rig.fences = false;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 60; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    EXPECT(strstr(rig.log_text, "left behind") == NULL);
    sl_work_free(SL_TAKE_PTR(rig.work));
    EXPECT(strstr(rig.log_text, "state=running said=nothing") != NULL);
    EXPECT(strstr(rig.log_text, "state=waiting said=nothing") != NULL);
    EXPECT(strstr(rig.log_text, more) != NULL);
    work_rig_done(&rig);
}

TEST(what_was_all_settled_leaves_no_such_line_S3_36)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(sl_work_report(rig.work).clean);
    EXPECT(strstr(rig.log_text, "left behind") == NULL);
    work_rig_done(&rig);
}

TEST(a_source_that_fails_with_its_work_was_of_use_only_if_some_of_that_succeeded_S3_25)
{
    work_rig rig;

    for (int fails_with_work = 0; fails_with_work < 2; fails_with_work++) {
        work_rig_init(&rig);
        rig.source_class.has_no_dead_letters = fails_with_work;
        work_rig_start(&rig);
        work_rig_offer(&rig, 1);
        work_rig_turns(&rig);
        EXPECT_EQ(sl_work_was_of_use(rig.work), !fails_with_work);
        work_rig_finish(&rig, 1, SL_RESULT_DONE);
        work_rig_turns(&rig);
        EXPECT(sl_work_was_of_use(rig.work));
        work_rig_done(&rig);
    }
}
