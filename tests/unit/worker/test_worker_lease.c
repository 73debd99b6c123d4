/* Limits of work that is held: the maximum of running work, and handlers that hang where there are no leases. (What renewal does is
 * in test_worker.c.) */
#include "test.h"
#include "work_rig.h"

#include "base/cleanup.h"

#define MS_NS UINT64_C(1000000)

#define HELD_TOO_LONG "it was held for longer than the maximum and was ended"
#define SILENT        "it gave no sign of life for twice the heartbeat and was ended"

static bool was_extended(work_rig *rig)
{
    return work_rig_notes_have(rig, "extend 1");
}

static bool was_killed(work_rig *rig)
{
    return work_rig_notes_have(rig, "kill 1");
}

static bool was_aborted(work_rig *rig)
{
    return work_rig_notes_have(rig, "abort 1");
}

static bool is_wedged(work_rig *rig)
{
    return sl_work_get_counts(rig->work).wedged > 0;
}

static void look_now(work_rig *rig)
{
    sl_timer_set(&rig->work->renewal, sl_loop_now_ns(rig->loop));
    work_rig_turns(rig);
}

/* Everything here has been held for longer than the maximum from now on. */
static void reach_maximum(work_rig *rig)
{
    rig->work->settings.hold_max_ns = 1;
    look_now(rig);
}

static void look_when_renewal_is_due(work_rig *rig)
{
    rig->jobs[1]->lease_until_ns = sl_loop_now_ns(rig->loop) + 60 * 1000 * MS_NS;
    look_now(rig);
}

/* Two looks long, and then, because nobody knows when it began, one more. */
TEST(work_that_waits_inside_of_its_handler_is_not_silent_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    rig.settings.heartbeat_ns = 1;
    rig.is_unbegun = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    for (int i = 0; i < 3; i++) {
        rig.is_unbegun = i < 2;
        look_when_renewal_is_due(&rig);
        EXPECT(!is_wedged(&rig));
    }
    EXPECT(was_extended(&rig));
    rig.jobs[1]->progress_ns = 0; /* long ago */
    look_when_renewal_is_due(&rig);
    EXPECT(is_wedged(&rig));
    work_rig_done(&rig);
}

static void was_not_turned_for(work_rig *rig, uint64_t late_ns)
{
    rig->work->beat_ns = sl_loop_now_ns(rig->loop) - late_ns;
}

/* Nobody knows how long it lay in the socket. */
TEST(what_is_read_in_a_turn_that_comes_late_is_begun_only_if_its_lease_cannot_be_over_B5)
{
    static const uint64_t leases_ns[] = { 3600 * 1000 * MS_NS, 1000 * MS_NS };
    work_rig rig;

    for (size_t i = 0; i < SL_COUNT_OF(leases_ns); i++) {
        work_rig_init(&rig);
        rig.lease_ns = leases_ns[i];
        work_rig_start(&rig);
        was_not_turned_for(&rig, 5000 * MS_NS);
        work_rig_offer(&rig, 1);
        work_rig_turns(&rig);
        work_rig_expect_notes(&rig, i == 0 ? "begin 1 run 1" : "release 1");
        work_rig_done(&rig);
    }
}

TEST(what_follows_a_late_turn_counts_from_before_it_too_and_soon_nothing_does_B5)
{
    uint64_t begin_ns;
    work_rig rig;

    work_rig_init(&rig);
    begin_ns = sl_loop_now_ns(rig.loop);
    rig.lease_ns = 1000 * MS_NS;
    work_rig_start(&rig);
    rig.work->source->has_tokens = true;
    work_late_up(rig.work);
    was_not_turned_for(&rig, 5000 * MS_NS);
    sl_timer_set(&rig.work->beat, 0); /* it comes at last */
    work_rig_turns(&rig);
    EXPECT(rig.work->beat_ns > begin_ns);
    EXPECT(rig.work->late_until_ns > begin_ns);
    rig.work->late_until_ns = UINT64_MAX; /* however long the next line takes */
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "release 1");
    rig.work->late_until_ns = 0; /* it is over */
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 2 run 2");
    work_rig_done(&rig);
}

/* The lease ends between two looks, which are twenty minutes apart. */
TEST(work_that_hangs_is_looked_at_when_its_lease_ends_and_not_later_B5_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    work_rig_start(&rig);
    rig.is_frozen = true;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    look_when_renewal_is_due(&rig);
    EXPECT(is_wedged(&rig));
    EXPECT(rig.work->renewal.is_set);
    EXPECT(rig.work->renewal.at_ns <= rig.jobs[1]->lease_until_ns + 1000 * MS_NS);
    rig.jobs[1]->lease_until_ns = sl_loop_now_ns(rig.loop);
    look_now(&rig);
    EXPECT(was_aborted(&rig));
    work_rig_until(&rig, was_killed);
    work_rig_turns(&rig);
    EXPECT(strstr(rig.log_text, "work was ended, and its lease is over") != NULL);
    work_rig_done(&rig);
}

TEST(running_work_is_ended_at_the_maximum_although_its_lease_was_renewed_and_fails_with_that_reason_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 30 * MS_NS;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_until(&rig, was_extended);
    EXPECT(!was_aborted(&rig));
    rig.jobs[1]->lease_until_ns += 3600 * 1000 * MS_NS; /* it has not run out */
    reach_maximum(&rig);
    EXPECT(strstr(rig.log_text, "work hangs and is ended") != NULL);
    work_rig_until(&rig, was_killed);
    work_rig_turns(&rig);
    EXPECT(work_rig_notes_have(&rig, " abort 1 kill 1 retry 1 later (" HELD_TOO_LONG ")"));
    EXPECT_EQ(sl_work_get_counts(rig.work).wedged, 1);
    EXPECT_EQ(sl_work_get_counts(rig.work).timed_out, 0);
    work_rig_done(&rig);
}

/* It waited behind a breaker, say: whoever is back at last does not get work that is ended, and charged, for the wait. */
TEST(the_maximum_of_running_work_begins_with_the_work_and_not_with_the_wait_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    rig.settings.hold_max_ns = 30 * 1000 * MS_NS; /* machines are up for longer than that */
    work_rig_start(&rig);
    rig.begins = false;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.begins = true;
    look_now(&rig);
    EXPECT_EQ(sl_work_get_counts(rig.work).running, 1);
    rig.jobs[1]->offered_ns = 0;
    look_now(&rig);
    EXPECT(!was_aborted(&rig));
    rig.jobs[1]->started_ns = 0;
    look_now(&rig);
    EXPECT(was_aborted(&rig));
    work_rig_done(&rig);
}

/* The hour until the first renewal is not when the maximum is looked at. */
TEST(a_long_lease_does_not_put_off_the_maximum_B8)
{
    work_rig rig;
    uint64_t until_ns;

    work_rig_init(&rig);
    rig.lease_ns = 3 * 3600 * 1000 * MS_NS;
    rig.settings.hold_max_ns = 5 * MS_NS;
    rig.settings.slots = 1;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    until_ns = rig.jobs[1]->offered_ns + rig.settings.hold_max_ns;
    work_rig_until(&rig, was_aborted);
    EXPECT(sl_loop_now_ns(rig.loop) >= until_ns);
    EXPECT(work_rig_notes_have(&rig, "release 2"));
    work_rig_done(&rig);
}

TEST(work_that_a_drain_has_aborted_is_interrupted_and_does_not_become_a_failure_at_the_maximum_B6_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.lease_ns = 3600 * 1000 * MS_NS;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, false);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, true);
    work_rig_until(&rig, was_aborted);
    reach_maximum(&rig);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT(work_rig_notes_have(&rig, "abort 1 kill 1 release 1"));
    EXPECT_EQ(sl_work_report(rig.work).interrupted, 1);
    work_rig_done(&rig);
}

/* --- without leases --- */

TEST(without_leases_running_work_is_ended_at_the_maximum_from_its_begin_B8)
{
    work_rig rig;
    uint64_t begun_ns;

    work_rig_init(&rig);
    rig.dies_on_abort = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    rig.work->settings.hold_max_ns = 20 * MS_NS;
    begun_ns = rig.jobs[1]->started_ns;
    rig.jobs[1]->offered_ns = 0; /* it came long ago, and waited */
    rig.jobs[1]->started_ns += 3600 * 1000 * MS_NS;
    look_now(&rig);
    EXPECT(!was_aborted(&rig));
    rig.jobs[1]->started_ns = begun_ns;
    look_now(&rig);
    work_rig_until(&rig, was_aborted);
    EXPECT(sl_loop_now_ns(rig.loop) >= begun_ns + 20 * MS_NS);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1 retry 1 later (" HELD_TOO_LONG ")");
    work_rig_done(&rig);
}

TEST(without_leases_a_frozen_handler_is_reported_and_ended_at_the_maximum_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    work_rig_start(&rig);
    rig.is_frozen = true;
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    look_now(&rig);
    EXPECT_EQ(sl_work_get_counts(rig.work).wedged, 1);
    EXPECT(!was_aborted(&rig));
    EXPECT(strstr(rig.log_text, "work hangs worker=rig") != NULL);
    EXPECT(strstr(rig.log_text, "stopped or gone") != NULL);
    EXPECT(rig.work->renewal.is_set);
    reach_maximum(&rig);
    work_rig_until(&rig, was_killed);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1 kill 1 retry 1 later (" HELD_TOO_LONG ")");
    EXPECT_EQ(sl_work_get_counts(rig.work).wedged, 1); /* once, although it was told twice */
    work_rig_done(&rig);
}

TEST(without_leases_silence_is_reported_after_the_heartbeat_and_ended_after_twice_of_it_B8)
{
    work_rig rig;
    uint64_t begun_ns;

    work_rig_init(&rig);
    rig.settings.heartbeat_ns = 30 * MS_NS;
    rig.dies_on_abort = true;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    begun_ns = rig.jobs[1]->started_ns;
    work_rig_until(&rig, is_wedged);
    EXPECT(sl_loop_now_ns(rig.loop) > begun_ns + rig.settings.heartbeat_ns);
    work_rig_until(&rig, was_aborted);
    EXPECT(sl_loop_now_ns(rig.loop) >= begun_ns + 2 * rig.settings.heartbeat_ns);
    work_rig_turns(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 abort 1 retry 1 later (" SILENT ")");
    EXPECT_EQ(sl_work_get_counts(rig.work).wedged, 1);
    work_rig_done(&rig);
}

/* Three heartbeats pass. */
static void be_silent(work_rig *rig)
{
    rig->jobs[1]->progress_ns -= 3 * rig->settings.heartbeat_ns;
}

TEST(without_leases_a_handler_that_shows_itself_is_left_alone_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.heartbeat_ns = 60 * 1000 * MS_NS;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    for (int i = 0; i < 3; i++) {
        be_silent(&rig);
        rig.handler->handler.owner->progress(rig.handler->handler.owner_ctx, rig.jobs[1]);
        look_now(&rig);
    }
    EXPECT_EQ(sl_work_get_counts(rig.work).wedged, 0);
    work_rig_expect_notes(&rig, "begin 1 run 1");
    be_silent(&rig);
    look_now(&rig);
    work_rig_expect_notes(&rig, "abort 1");
    work_rig_done(&rig);
}

/* What waits is not held by any lease, so nobody would get it sooner for being given back; and a pause is as long as it was meant. */
TEST(without_leases_what_waits_and_what_pauses_is_left_alone_at_the_maximum_B8)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.settings.slots = 1;
    rig.settings.retry.delay_first_ns = rig.settings.retry.delay_max_ns = 3600 * 1000 * MS_NS;
    work_rig_start(&rig);
    rig.source->source.keeps_delays = false;
    for (uint32_t i = 1; i <= 3; i++)
        work_rig_offer(&rig, i);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_FAILED);
    work_rig_turns(&rig);
    reach_maximum(&rig);
    work_rig_expect_notes(&rig, "begin 1 run 1 begin 2 run 2 abort 2");
    EXPECT_EQ(sl_work_get_counts(rig.work).waiting, 1);
    EXPECT_EQ(sl_work_get_counts(rig.work).delayed, 1);
    work_rig_done(&rig);
}

/* One timer for all of them, set by the first: those that come and go meanwhile do not touch it. */
TEST(without_leases_messages_that_flow_set_no_timer_of_their_own)
{
    work_rig rig;
    uint64_t at_ns;

    work_rig_init(&rig);
    rig.answers_at_once = true;
    work_rig_start(&rig);
    EXPECT(!rig.work->renewal.is_set);
    work_rig_offer(&rig, 1);
    work_rig_turns(&rig);
    at_ns = rig.work->renewal.at_ns;
    EXPECT(rig.work->renewal.is_set);
    for (uint32_t i = 2; i < 40; i++) {
        work_rig_offer(&rig, i);
        work_rig_turns(&rig);
        EXPECT_EQ(rig.work->renewal.at_ns, at_ns);
    }
    look_now(&rig);
    EXPECT(!rig.work->renewal.is_set); /* nothing runs any more */
    work_rig_done(&rig);
}
