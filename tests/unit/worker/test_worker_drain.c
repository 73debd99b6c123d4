/* The drain of a worker: S2 and S3 as far as source and handler do not matter. */
#include "test.h"
#include "work_rig.h"

#define MS_NS UINT64_C(1000000)

static sl_drain_report stop_and_wait(work_rig *rig)
{
    work_rig_stop(rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(rig, work_rig_is_over);
    EXPECT_EQ(rig->overs, 1);
    EXPECT_EQ(rig->drainings, 1);
    return sl_work_report(rig->work);
}

TEST(with_nothing_to_do_a_drain_is_over_at_once_and_clean_S3_28)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    work_rig_start(&rig);
    report = stop_and_wait(&rig);
    EXPECT(report.clean);
    work_rig_expect_notes(&rig, "draining gate close-handler close-source");
    work_rig_done(&rig);
}

TEST(gate_first_unstarted_back_started_finish_then_closed_S2_3_S2_5_S2_10_S2_11_S2_12_S2_18_S4_18)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "draining gate release 2");
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    work_rig_expect_notes(&rig, "ack 1 close-handler close-source");
    report = sl_work_report(rig.work);
    EXPECT(report.clean);
    EXPECT_EQ(report.finished, 1);
    EXPECT_EQ(report.handed_back, 1);
    EXPECT_EQ(report.interrupted, 0);
    work_rig_done(&rig);
}

TEST(what_arrives_behind_the_gate_goes_back_S2_18)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.fences = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_offer(&rig, 2); /* before the fence: not begun */
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 draining gate");
    rig.source->source.owner->fenced(rig.source->source.owner_ctx);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 2");
    work_rig_offer(&rig, 3); /* a source that breaks its word */
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 3");
    work_rig_done(&rig);
}

TEST(a_fence_that_never_comes_is_awaited_for_its_part_only_and_the_rest_is_done_S2_16_S2_19)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.fences = false;
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    report = stop_and_wait(&rig);
    EXPECT(!report.clean);
    EXPECT_EQ(report.phases[SL_DRAIN_FENCING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT(report.used_ns <= report.grace_ns + rig.stalled_ns);
    EXPECT(work_rig_notes_have(&rig, "close-handler close-source"));
    EXPECT(strstr(rig.log_text, "a part of the shutdown took all of its time") != NULL);
    work_rig_done(&rig);
}

TEST(after_the_grace_a_handler_is_asked_then_killed_and_its_message_goes_back_S2_6_S2_7_S4_25)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    report = stop_and_wait(&rig);
    work_rig_expect_notes(&rig,
                          "begin 1 run 1 draining gate abort 1 kill 1 release 1 close-handler close-source");
    EXPECT_EQ(report.interrupted, 1);
    EXPECT_EQ(report.phases[SL_DRAIN_SETTLING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT_EQ(report.phases[SL_DRAIN_ABORTING].end, SL_DRAIN_END_DONE);
    EXPECT(report.used_ns <= report.grace_ns + rig.stalled_ns);
    work_rig_done(&rig);
}

static bool is_aborting(work_rig *rig)
{
    return sl_work_phase(rig->work) == SL_DRAIN_ABORTING;
}

/* A turn that comes late finds both: the time of the abort is over, and a thread has brought its result. */
TEST(a_result_that_is_here_when_the_time_of_the_abort_is_over_still_counts_S2_8)
{
    const uint64_t late_ns = 10 * 1000 * MS_NS;
    work_rig rig;

    work_rig_init(&rig);
    rig.dies_on_kill = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, false);
    work_rig_until(&rig, is_aborting);
    rig.work->drain.began_ns -= late_ns;
    rig.work->drain.entered_ns -= late_ns;
    rig.collects = 1;
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(work_rig_notes_have(&rig, "ack 1"));
    EXPECT(!work_rig_notes_have(&rig, "release 1"));
    EXPECT_EQ(sl_work_report(rig.work).interrupted, 0);
    work_rig_done(&rig);
}

TEST(work_that_finishes_within_the_grace_is_settled_once_and_not_handed_back_S2_8_S2_9)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    work_rig_expect_notes(&rig, "begin 1 run 1 begin 2 run 2 draining gate ack 2 abort 1 kill 1 release 1 "
                                "close-handler close-source");
    report = sl_work_report(rig.work);
    EXPECT_EQ(report.finished, 1);
    EXPECT_EQ(report.interrupted, 1);
    work_rig_done(&rig);
}

TEST(a_handler_that_cannot_be_killed_does_not_keep_the_process_and_its_message_is_released_S3_24)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.dies_on_kill = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    report = stop_and_wait(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 draining gate abort 1 kill 1 release 1 close-source");
    EXPECT(!report.clean);
    EXPECT_EQ(report.phases[SL_DRAIN_ABORTING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT_EQ(report.interrupted, 1);
    EXPECT(report.used_ns <= report.grace_ns + rig.stalled_ns);
    work_rig_finish(&rig, 1, SL_RESULT_DONE); /* much too late: nothing happens, nothing leaks */
    work_rig_expect_notes(&rig, "");
    work_rig_done(&rig);
}

TEST(the_first_reason_stays_and_a_second_signal_skips_to_the_abort_S3_1_S3_2)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.settings.budget = (sl_budget){ 0 };
    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 3600 * 1000 * MS_NS }, &rig.settings.budget));
    rig.dies_on_abort = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    EXPECT(!work_rig_is_over(&rig));
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGINT, true);
    work_rig_until(&rig, work_rig_is_over);
    report = sl_work_report(rig.work);
    EXPECT_EQ(report.reason, SL_DRAIN_REASON_SIGTERM);
    EXPECT(report.escalated);
    EXPECT_EQ(report.interrupted, 1);
    work_rig_expect_notes(&rig, "begin 1 run 1 draining gate abort 1 release 1 close-handler close-source");
    work_rig_done(&rig);
}

TEST(acks_are_awaited_for_their_part_and_what_was_not_confirmed_is_counted_S4_19)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.confirms = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    report = stop_and_wait(&rig);
    EXPECT_EQ(report.acks_unconfirmed, 1);
    EXPECT_EQ(report.phases[SL_DRAIN_FLUSHING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT(!report.clean);
    work_rig_done(&rig);
}

static bool is_told_at_start(uint64_t timeout_ms, bool cancels_work)
{
    work_rig rig;
    bool is_told;

    work_rig_init(&rig);
    rig.source_class.cancels_work = cancels_work;
    rig.settings.timeout_ns = timeout_ms * MS_NS;
    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 30 * 1000 * MS_NS }, &rig.settings.budget));
    work_rig_start(&rig);
    is_told =
        strstr(rig.log_text,
               "work may take longer than it has in a drain; a shorter timeout or a longer grace helps") !=
        NULL;
    work_rig_done(&rig);
    return is_told;
}

TEST(a_start_tells_when_work_may_take_longer_than_it_has_in_a_drain_S3_32)
{
    EXPECT(is_told_at_start(20001, false));
    EXPECT(is_told_at_start(0, false));
    EXPECT(!is_told_at_start(20000, false));
    EXPECT(!is_told_at_start(60000, true));
}

/* A poll that can be made again: cancelling it is what was asked for, so the end is a clean one. */
TEST(a_source_that_cancels_work_has_its_running_poll_aborted_at_once_S3_5_S3_28)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.source_class.cancels_work = true;
    rig.dies_on_abort = true;
    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 3600 * 1000 * MS_NS }, &rig.settings.budget));
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(&rig, work_rig_is_over);
    work_rig_expect_notes(&rig, "begin 1 run 1 draining gate abort 1 release 1 close-handler close-source");
    report = sl_work_report(rig.work);
    EXPECT(report.clean);
    EXPECT_EQ(report.handed_back, 1);
    EXPECT_EQ(report.interrupted, 0);
    EXPECT(strstr(rig.log_text, "INFO  the poll was cancelled worker=rig") != NULL);
    EXPECT(strstr(rig.log_text, "interrupted") == NULL);
    work_rig_done(&rig);
}

TEST(with_that_policy_waiting_work_is_begun_and_finished_in_the_drain_S3_8)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    rig.settings.slots = 1;
    rig.settings.finish_unstarted = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 draining gate-only");
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "ack 1 begin 2 run 2");
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    report = sl_work_report(rig.work);
    EXPECT(report.clean);
    EXPECT_EQ(report.finished, 2);
    work_rig_done(&rig);
}

static void use_breaker(work_rig *rig)
{
    rig->settings.destination.has_breaker = true;
    rig->settings.destination.breaker = sl_breaker_rules_default();
    rig->settings.destination.breaker.failures_max = 1;
    rig->answer = (sl_result){ .kind = SL_RESULT_FAILED, .is_fault = true, .reason = SL_STR("dead") };
}

TEST(an_open_breaker_keeps_messages_waiting_instead_of_dead_lettering_them_S3_19_B18)
{
    work_rig rig;

    work_rig_init(&rig);
    use_breaker(&rig);
    rig.settings.slots = 1;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 retry 1 later (dead)");
    EXPECT_EQ(sl_work_get_counts(rig.work).waiting, 2);
    EXPECT_EQ(sl_work_get_counts(rig.work).destinations_open, 1);
    EXPECT(strstr(rig.log_text, "a destination fails: its messages wait until it works again") != NULL);
    work_rig_done(&rig);
}

static bool is_open(work_rig *rig)
{
    return sl_work_get_counts(rig->work).destinations_open > 0;
}

TEST(a_breaker_that_opens_because_nothing_ends_in_time_is_told_with_that_reason_B18)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.timeout_ns = 5 * MS_NS;
    rig.settings.slots = 1;
    rig.settings.destination.has_breaker = true;
    rig.settings.destination.breaker = sl_breaker_rules_default();
    rig.settings.destination.breaker.failures_max = 2;
    rig.dies_on_abort = true;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_until(&rig, is_open);
    EXPECT(strstr(rig.log_text, "a destination fails") != NULL);
    EXPECT(strstr(strstr(rig.log_text, "a destination fails"), "time limit") != NULL);
    work_rig_done(&rig);
}

TEST(a_fault_that_was_told_with_another_message_counts_once_B18)
{
    work_rig rig;

    work_rig_init(&rig);
    use_breaker(&rig);
    rig.settings.destination.breaker.failures_max = 2;
    rig.settings.slots = 3;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    rig.answer.is_told = true;
    work_rig_finish(&rig, 2, SL_RESULT_FAILED);
    EXPECT_EQ(sl_work_get_counts(rig.work).destinations_open, 0);
    rig.answer.is_told = false;
    work_rig_finish(&rig, 3, SL_RESULT_FAILED); /* and it did not count as a success either */
    EXPECT_EQ(sl_work_get_counts(rig.work).destinations_open, 1);
    work_rig_done(&rig);
}

TEST(in_a_drain_accepted_work_passes_an_open_breaker_S3_18)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    use_breaker(&rig);
    rig.settings.slots = 1;
    rig.settings.finish_unstarted = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 retry 1 later (dead)");
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "draining gate-only begin 2 run 2");
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    report = sl_work_report(rig.work);
    EXPECT(strstr(rig.log_text, "a destination works again") != NULL);
    EXPECT(report.clean);
    work_rig_done(&rig);
}

TEST(in_a_drain_a_dead_destination_does_not_burn_the_budget_and_the_rest_stays_stored_S3_39)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    use_breaker(&rig);
    rig.settings.slots = 1;
    rig.settings.finish_unstarted = true;
    rig.answers_at_once = true;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 20; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 retry 1 later (dead)");
    report = stop_and_wait(&rig);
    EXPECT_EQ(report.finished, rig.settings.destination.breaker.bypasses_max);
    EXPECT_EQ(report.handed_back, 19 - rig.settings.destination.breaker.bypasses_max);
    EXPECT(!work_rig_notes_have(&rig, "park"));
    work_rig_done(&rig);
}

/* Where processes hang inside of the system, the next part of the way out is the report, which must come within the grace. */
TEST(what_cannot_be_ended_is_waited_for_within_the_grace_S3_24)
{
    work_rig rig;

    for (int drains = 0; drains < 2; drains++) {
        uint64_t begin_ns, leave_ns = UINT64_MAX;

        work_rig_init(&rig);
        work_rig_start(&rig);
        if (drains) {
            (void)stop_and_wait(&rig);
            leave_ns = sl_drain_leave_until_ns(&rig.work->drain);
        }
        begin_ns = sl_clock_mono_ns(sl_loop_stopwatch());
        work_rig_done(&rig);
        EXPECT(rig.free_until_ns <= leave_ns);
        EXPECT(drains || rig.free_until_ns >= begin_ns + SL_WORK_FREE_MS * MS_NS);
    }
}

TEST(a_source_that_fails_takes_the_same_way_and_is_told_S3_22)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.source->source.owner->failed(rig.source->source.owner_ctx, SL_SOURCE_LOST, SL_STR("gone for good"));
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    work_rig_expect_notes(&rig, "begin 1 run 1 ack 1 draining close-handler close-source");
    EXPECT_EQ(sl_work_get_end(rig.work), SL_WORK_ENDED_LOST);
    EXPECT_EQ(sl_work_report(rig.work).reason, SL_DRAIN_REASON_FAILED);
    EXPECT_STR(sl_work_problem(rig.work), "gone for good");
    work_rig_done(&rig);
}

TEST(what_a_source_that_has_failed_did_not_answer_is_counted_and_not_waited_for_S3_22_S3_36)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.confirms = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.source->source.owner->failed(rig.source->source.owner_ctx, SL_SOURCE_REFUSED,
                                     SL_STR("no such group"));
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT_EQ(sl_work_report(rig.work).acks_unconfirmed, 1);
    EXPECT_EQ(sl_work_report(rig.work).phases[SL_DRAIN_FLUSHING].end, SL_DRAIN_END_FAILED);
    EXPECT(!sl_work_report(rig.work).clean);
    work_rig_done(&rig);
}

TEST(a_pause_of_a_retry_is_cut_short_by_a_drain_S3_37)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.source->source.keeps_delays = false;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    report = stop_and_wait(&rig);
    EXPECT(report.clean);
    EXPECT(work_rig_notes_have(&rig, "retry 1 (why not)"));
    work_rig_done(&rig);
}

static void ask_to_stop_within(work_rig *rig, uint64_t deadline_ms)
{
    rig->source->source.owner->stop_asked(rig->source->source.owner_ctx, SL_DRAIN_REASON_OPERATOR,
                                          SL_STR("deploy"), deadline_ms);
}

TEST(a_stop_with_a_deadline_ends_handlers_before_it_and_not_at_the_grace_B10)
{
    work_rig rig;
    sl_drain_report report;

    work_rig_init(&rig);
    EXPECT_OK(sl_budget_make(&(sl_budget_wish){ .grace_ns = 60 * 1000 * MS_NS }, &rig.settings.budget));
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    ask_to_stop_within(&rig, SL_BUDGET_GRACE_LEAST_MS);
    work_rig_until(&rig, work_rig_is_over);
    report = sl_work_report(rig.work);
    EXPECT_EQ(report.grace_ns, SL_BUDGET_GRACE_LEAST_MS * UINT64_C(1000000));
    EXPECT_EQ(report.interrupted, 1);
    EXPECT(report.used_ns < 30 * 1000 * MS_NS);
    work_rig_done(&rig);
}

TEST(a_stop_that_a_source_asks_for_is_a_drain_with_its_reason_B10)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    ask_to_stop_within(&rig, 5000);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT_EQ(sl_work_report(rig.work).reason, SL_DRAIN_REASON_OPERATOR);
    EXPECT_EQ(sl_work_get_end(rig.work), SL_WORK_ENDED_AS_ASKED);
    work_rig_done(&rig);
}
