/* The path of a message through a worker, and what results mean. */
#include "test.h"
#include "work_rig.h"

#define MS_NS UINT64_C(1000000)

TEST(a_message_is_begun_at_the_source_before_its_handler_runs_and_acked_when_it_is_done_S2_15)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "ack 1");
    EXPECT_EQ(sl_work_get_counts(rig.work).acked, 1);
    EXPECT_EQ(sl_work_get_counts(rig.work).settling, 0);
    work_rig_done(&rig);
}

TEST(never_more_run_than_there_are_slots_and_the_next_begins_when_one_is_free)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 4; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 begin 2 run 2");
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "ack 2 begin 3 run 3");
    work_rig_done(&rig);
}

TEST(a_handler_that_answers_at_once_takes_all_that_is_there_in_one_turn)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.answers_at_once = true;
    rig.settings.slots = 1;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 ack 1 begin 2 run 2 ack 2 begin 3 run 3 ack 3");
    work_rig_done(&rig);
}

static void expect_result(sl_result_kind kind, uint32_t attempt, const char *said)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer_try(&rig, 1, attempt);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    work_rig_finish(&rig, 1, kind);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, said);
    work_rig_done(&rig);
}

TEST(the_log_does_not_promise_dead_letters_where_there_are_none_S3_38)
{
    work_rig rig;

    for (int has_none = 0; has_none < 2; has_none++) {
        work_rig_init(&rig);
        rig.source_class.has_no_dead_letters = has_none;
        work_rig_start(&rig);
        work_rig_offer(&rig, 1);
        work_rig_turns(&rig);
        work_rig_finish(&rig, 1, SL_RESULT_PARK);
        work_rig_turns(&rig);
        EXPECT_EQ(strstr(rig.log_text, "scheduled work was given up: nobody keeps it") != NULL, has_none);
        EXPECT_EQ(strstr(rig.log_text, "message goes to the dead letters") != NULL, !has_none);
        work_rig_done(&rig);
    }
}

TEST(the_log_calls_only_failures_so)
{
    work_rig rig;

    for (int is_failure = 0; is_failure < 2; is_failure++) {
        work_rig_init(&rig);
        work_rig_start(&rig);
        work_rig_offer(&rig, 1);
        work_rig_turns(&rig);
        work_rig_finish(&rig, 1, is_failure ? SL_RESULT_FAILED : SL_RESULT_RETRY);
        work_rig_turns(&rig);
        EXPECT_EQ(strstr(rig.log_text, " message failed, and is tried again ") != NULL, is_failure);
        EXPECT_EQ(strstr(rig.log_text, " message is tried again ") != NULL, !is_failure);
        work_rig_done(&rig);
    }
}

TEST(each_result_has_its_word_and_what_cannot_work_ends_in_the_dead_letters_with_its_cause_S2_15_S3_38)
{
    expect_result(SL_RESULT_DONE, 1, "ack 1");
    expect_result(SL_RESULT_PARK, 1, "park 1 (why not)");
    expect_result(SL_RESULT_FAILED, 1, "retry 1 later (why not)");
    expect_result(SL_RESULT_FAILED, 9, "retry 1 later (why not)");
    expect_result(SL_RESULT_FAILED, 10, "park 1 (given up after the last attempt: why not)");
    expect_result(SL_RESULT_RETRY, 10, "retry 1 later (why not)");
    expect_result(SL_RESULT_RETRY, 1000, "retry 1 later (why not)");
}

TEST(what_a_destination_asks_for_is_bounded_also_where_nothing_is_retried)
{
    work_rig rig;
    sl_result asks = { .kind = SL_RESULT_RETRY, .retry_after_ns = UINT64_MAX };

    work_rig_init(&rig);
    rig.settings.retry.kind = SL_RETRY_NONE;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.handler->handler.owner->finished(rig.handler->handler.owner_ctx, rig.jobs[1], &asks);
    work_rig_turns(&rig);
    EXPECT(strstr(rig.log_text, "after=1h") != NULL);
    work_rig_done(&rig);
}

static bool has_run_again(work_rig *rig)
{
    return work_rig_notes_have(rig, "run 1");
}

/* Released it would be an interruption, and parked after some of them. */
TEST(work_that_cannot_be_begun_waits_at_the_head_of_its_line_and_is_tried_after_a_pause)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_UNBEGUN);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    EXPECT_EQ(sl_work_get_counts(rig.work).waiting, 2);
    work_rig_until(&rig, has_run_again);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 ack 1 begin 2 run 2");
    EXPECT_EQ(sl_work_get_counts(rig.work).interrupted, 0);
    work_rig_done(&rig);
}

/* One incident is one pause, however many it hits; what a drain finds like this goes back uncounted. */
TEST(while_nothing_can_be_begun_one_is_tried_at_a_time_and_a_drain_hands_back_S4_18)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.slots = 4;
    rig.answers_at_once = true;
    rig.answer = (sl_result){ .kind = SL_RESULT_UNBEGUN };
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    EXPECT_EQ(rig.work->unbegun_in_a_row, 1);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, false);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT_EQ(sl_work_report(rig.work).handed_back, 3);
    EXPECT_EQ(sl_work_report(rig.work).interrupted, 0);
    EXPECT_EQ(sl_work_get_counts(rig.work).interrupted, 0);
    work_rig_done(&rig);
}

TEST(several_that_could_not_be_begun_together_are_one_pause)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.slots = 4;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 4; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    for (uint32_t i = 1; i <= 4; i++)
        work_rig_finish(&rig, i, SL_RESULT_UNBEGUN);
    EXPECT_EQ(rig.work->unbegun_in_a_row, 1);
    EXPECT_EQ(sl_work_get_counts(rig.work).waiting, 4);
    work_rig_done(&rig);
}

TEST(what_the_source_does_not_let_begin_waits_until_it_does)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.begins = false;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "");
    rig.begins = true;
    rig.source->source.owner->up(rig.source->source.owner_ctx);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    work_rig_done(&rig);
}

static bool has_retried(work_rig *rig)
{
    return work_rig_notes_have(rig, "retry 1 (why not)");
}

TEST(a_pause_that_the_source_cannot_keep_is_waited_for_here)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.retry.delay_first_ns = 5 * MS_NS;
    work_rig_start(&rig);
    rig.source->source.keeps_delays = false;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    EXPECT_EQ(sl_work_get_counts(rig.work).delayed, 1);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    work_rig_until(&rig, has_retried);
    EXPECT_EQ(sl_work_get_counts(rig.work).delayed, 0);
    work_rig_done(&rig);
}

/* --- leases --- */

static bool was_extended_twice(work_rig *rig)
{
    return work_rig_notes_have(rig, "extend 2 extend 1") || work_rig_notes_have(rig, "extend 1 extend 2");
}

TEST(leases_of_waiting_and_of_running_work_are_renewed_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 600 * MS_NS; /* long enough for a busy machine to come back to it in time */
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_until(&rig, was_extended_twice);
    work_rig_done(&rig);
}

static bool was_extended(work_rig *rig)
{
    return work_rig_notes_have(rig, "extend 2");
}

TEST(a_short_lease_is_renewed_in_time_beside_a_long_one_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    work_rig_offer(&rig, 1);
    rig.lease_ns = 30 * MS_NS;
    work_rig_offer(&rig, 2);
    work_rig_until(&rig, was_extended);
    EXPECT(!work_rig_notes_have(&rig, "extend 1"));
    work_rig_done(&rig);
}

static bool is_wedged(work_rig *rig)
{
    return sl_work_get_counts(rig->work).wedged > 0;
}

TEST(a_frozen_handler_is_reported_and_its_lease_is_not_renewed_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 30 * MS_NS;
    work_rig_start(&rig);
    rig.is_frozen = true;
    work_rig_offer(&rig, 1);
    work_rig_until(&rig, is_wedged);
    EXPECT(!work_rig_notes_have(&rig, "extend"));
    EXPECT(strstr(rig.log_text, "work hangs") != NULL);
    work_rig_done(&rig);
}

TEST(without_a_sign_of_life_within_the_heartbeat_a_lease_is_not_renewed_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 60 * MS_NS;
    rig.settings.heartbeat_ns = 1 * MS_NS;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_until(&rig, is_wedged);
    EXPECT(!work_rig_notes_have(&rig, "extend"));
    rig.handler->handler.owner->progress(rig.handler->handler.owner_ctx, rig.jobs[1]);
    EXPECT(strstr(rig.log_text, "work goes on again") != NULL);
    work_rig_done(&rig);
}

static bool was_killed(work_rig *rig)
{
    return work_rig_notes_have(rig, "kill 1");
}

static bool was_aborted(work_rig *rig)
{
    return work_rig_notes_have(rig, "abort 1");
}

TEST(work_that_hangs_is_ended_when_its_lease_is_over_and_not_before_B5_B8)
{
    work_rig rig;
    uint64_t until_ns;

    work_rig_init(&rig);
    rig.lease_ns = 30 * MS_NS;
    work_rig_start(&rig);
    rig.is_frozen = true;
    work_rig_offer(&rig, 1);
    until_ns = rig.jobs[1]->lease_until_ns;
    work_rig_until(&rig, was_aborted);
    EXPECT(sl_loop_now_ns(rig.loop) >= until_ns);
    EXPECT(strstr(rig.log_text, "the lease of work that hangs is over") != NULL);
    work_rig_until(&rig, was_killed); /* the abort was not heard */
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1 kill 1 release 1");
    work_rig_done(&rig);
}

static bool was_released(work_rig *rig)
{
    return work_rig_notes_have(rig, "release 1");
}

TEST(what_waits_for_longer_than_the_maximum_goes_back_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 6 * MS_NS;
    rig.settings.hold_max_ns = 20 * MS_NS;
    work_rig_start(&rig);
    rig.begins = false;
    work_rig_offer(&rig, 1);
    work_rig_until(&rig, was_released);
    work_rig_done(&rig);
}

TEST(a_lost_lease_ends_the_handler_and_its_result_does_not_count_B5)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.source->source.owner->lost(rig.source->source.owner_ctx, rig.jobs[1]);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1");
    work_rig_finish(&rig, 1, SL_RESULT_STOPPED);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 1");
    EXPECT_EQ(sl_work_get_counts(rig.work).lost, 1);
    EXPECT_EQ(sl_work_get_counts(rig.work).interrupted, 0);
    work_rig_done(&rig);
}

TEST(a_lost_lease_of_waiting_work_is_never_begun_B5)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.begins = false;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.source->source.owner->lost(rig.source->source.owner_ctx, rig.jobs[1]);
    rig.begins = true;
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 1");
    work_rig_done(&rig);
}

/* As after a SIGSTOP: time has passed, and nobody was there to renew. */
static void let_lease_run_out(work_rig *rig, uint32_t number)
{
    rig->jobs[number]->lease_until_ns = sl_loop_now_ns(rig->loop);
}

TEST(a_lease_that_ran_out_while_the_worker_was_stopped_is_not_begun_B5)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_offer(&rig, 3);
    work_rig_turns(&rig);
    let_lease_run_out(&rig, 2);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 ack 1 release 2 begin 3 run 3");
    work_rig_done(&rig);
}

static bool second_was_released(work_rig *rig)
{
    return work_rig_notes_have(rig, "release 2");
}

TEST(a_lease_that_ran_out_while_the_worker_was_stopped_is_not_asked_for_again_B5)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 30 * MS_NS;
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    let_lease_run_out(&rig, 2);
    work_rig_until(&rig, second_was_released);
    EXPECT(!work_rig_notes_have(&rig, "extend 2"));
    work_rig_done(&rig);
}

TEST(a_lease_that_is_lost_while_its_work_is_to_begin_is_released_and_the_next_begins_B5)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.destination.interval_ns = 1;
    work_rig_start(&rig);
    rig.loses_in_begin = true;
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 1 release 2");
    EXPECT_EQ(sl_work_get_counts(rig.work).lost, 2);
    rig.loses_in_begin = false;
    work_rig_offer(&rig, 3);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 3 run 3");
    work_rig_done(&rig);
}

static void expect_lost(sl_result_kind kind)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.source->source.keeps_delays = false; /* a pause would be kept here */
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.source->source.owner->lost(rig.source->source.owner_ctx, rig.jobs[1]);
    work_rig_finish(&rig, 1, kind);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1 release 1");
    EXPECT(strstr(rig.log_text, "dead letters") == NULL);
    work_rig_done(&rig);
}

TEST(whatever_becomes_of_work_whose_lease_is_lost_nothing_is_said_about_its_message_B5)
{
    expect_lost(SL_RESULT_DONE);
    expect_lost(SL_RESULT_FAILED);
    expect_lost(SL_RESULT_RETRY);
    expect_lost(SL_RESULT_PARK);
}

/* --- time limits --- */

TEST(work_past_its_limit_is_asked_to_end_then_killed_and_counts_as_failed_S2_6_S2_15)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.timeout_ns = 5 * MS_NS;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_until(&rig, was_killed);
    work_rig_turns(&rig);
    work_rig_expect_notes(
        &rig,
        "begin 1 run 1 abort 1 kill 1 retry 1 later (it took longer than its time limit and was ended)");
    EXPECT_EQ(sl_work_get_counts(rig.work).timed_out, 1);
    work_rig_done(&rig);
}

TEST(a_handler_sees_the_own_id_of_a_message_however_its_source_names_this_delivery)
{
    const sl_job_message plain = { .id.bytes = { 1 } };
    const sl_job_message replayed = { .id.bytes = { 2 }, .event_id.bytes = { 1 } };
    sl_job *const first = sl_job_new(&plain);
    sl_job *const second = sl_job_new(&replayed);

    EXPECT_EQ(first->message.event_id.bytes[0], 1);
    EXPECT_EQ(second->message.event_id.bytes[0], 1);
    EXPECT_EQ(second->message.id.bytes[0], 2);
    sl_job_free(first);
    sl_job_free(second);
}

TEST(a_problem_that_is_over_is_not_told_any_more_B17)
{
    const sl_source_owner *owner;
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    owner = rig.source->source.owner;
    owner->down(rig.source->source.owner_ctx, SL_STR("connection refused"));
    EXPECT_STR(sl_work_problem(rig.work), "connection refused");
    owner->up(rig.source->source.owner_ctx);
    EXPECT_STR(sl_work_problem(rig.work), "");
    work_rig_done(&rig);
}
