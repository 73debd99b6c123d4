/* tests/unit/worker/test_view.c — ready, safe to terminate, and all drains as one. */
#include "test.h"

#include <string.h>

#include "view_rig.h"

static void expect_unready(const view_rig *rig, const char *wanted)
{
    char buffer[256];
    sl_text why;

    sl_text_init(&why, buffer, sizeof buffer);
    EXPECT(!sl_view_is_ready(&rig->view, &why));
    EXPECT_STR(buffer, wanted);
    EXPECT(!sl_view_is_ready(&rig->view, NULL));
}

TEST(a_crew_is_ready_only_while_every_worker_is_up_and_none_drains_S3_40)
{
    view_rig rig;

    view_rig_init(&rig);
    EXPECT(sl_view_is_ready(&rig.view, NULL));
    rig.members[1].counts.is_up = false;
    rig.members[1].problem = "nobody listens there";
    expect_unready(&rig, "Worker mail is not connected to its source: nobody listens there");
    rig.members[1].state = SL_MEMBER_UNMADE;
    expect_unready(&rig, "Worker mail waits to be started: nobody listens there");
    view_rig_init(&rig);
    rig.members[0].phase = SL_DRAIN_FENCING;
    expect_unready(&rig, "Worker billing drains");
    rig.members[0].state = SL_MEMBER_ENDED;
    expect_unready(&rig, "Worker billing has ended");
    view_rig_init(&rig);
    rig.view.is_draining = true;
    rig.view.reason = SL_DRAIN_REASON_SIGINT;
    expect_unready(&rig, "All workers drain: SIGINT");
}

/* The second has ended, or is going to. */
TEST(a_process_drains_when_its_last_worker_does_for_good_S3_40)
{
    view_rig rig;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    EXPECT(sl_view_last_to_drain(&rig.view) == NULL); /* of SIGTERM the crew itself knows */
    for (int i = 0; i < 2; i++)
        rig.members[i].report.reason = SL_DRAIN_REASON_OPERATOR;
    EXPECT(sl_view_last_to_drain(&rig.view) != NULL);
    rig.members[1].state = SL_MEMBER_ENDED;
    EXPECT(sl_view_last_to_drain(&rig.view) == &rig.members[0]);
    rig.members[0].report.reason = SL_DRAIN_REASON_FAILED; /* it comes back */
    EXPECT(sl_view_last_to_drain(&rig.view) == NULL);
    view_rig_end(&rig);
    EXPECT(sl_view_last_to_drain(&rig.view) == NULL);
    view_rig_init(&rig);
    rig.members[0].phase = SL_DRAIN_FENCING;
    rig.members[0].report.reason = SL_DRAIN_REASON_OPERATOR;
    EXPECT(sl_view_last_to_drain(&rig.view) == NULL); /* the other one works on */
}

TEST(it_is_safe_to_terminate_when_nothing_is_held_whatever_it_is_called_B17)
{
    view_rig rig;

    view_rig_init(&rig);
    EXPECT_EQ(sl_view_held(&rig.view), 0);
    rig.members[0].counts.waiting = 1;
    rig.members[0].counts.running = 2;
    rig.members[1].counts.delayed = 4;
    rig.members[1].counts.settling = 8;
    EXPECT_EQ(sl_view_held(&rig.view), 15);
    rig.members[1].state = SL_MEMBER_ENDED; /* whoever waited for it would wait in vain */
    EXPECT_EQ(sl_view_held(&rig.view), 3);
}

TEST(to_remove_a_replica_costs_what_runs_in_all_its_workers_and_then_what_waits_B17)
{
    view_rig rig;

    view_rig_init(&rig);
    EXPECT_EQ(sl_view_removal_cost(&rig.view), 0);
    rig.members[0].counts.waiting = 1;
    rig.members[0].counts.delayed = 2;
    rig.members[1].counts.settling = 4;
    EXPECT_EQ(sl_view_removal_cost(&rig.view), 7);
    rig.members[1].counts.running = 3;
    EXPECT_EQ(sl_view_removal_cost(&rig.view), 3007);
    rig.members[1].state = SL_MEMBER_ENDED; /* what its last life held is not held any more */
    EXPECT_EQ(sl_view_removal_cost(&rig.view), 3);
}

TEST(what_is_left_of_a_grace_is_counted_from_the_begin_of_the_drain_B17)
{
    view_rig rig;

    view_rig_init(&rig);
    EXPECT_EQ(sl_member_remaining_ns(&rig.members[0], rig.view.now_ns), 0);
    view_rig_drain(&rig);
    EXPECT_EQ(sl_member_remaining_ns(&rig.members[0], rig.view.now_ns), UINT64_C(26000000000));
    EXPECT_EQ(sl_member_remaining_ns(&rig.members[0], rig.view.now_ns + UINT64_C(99000000000)), 0);
}

TEST(what_is_left_for_a_stop_with_a_deadline_is_counted_from_that_B17)
{
    view_rig rig;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    rig.members[0].report.grace_ns = UINT64_C(5000000000);
    EXPECT_EQ(sl_member_remaining_ns(&rig.members[0], rig.view.now_ns), UINT64_C(1000000000));
}

TEST(drains_side_by_side_take_as_long_as_the_slowest_and_drain_the_sum_B12_S2_17)
{
    view_rig rig;
    sl_drain_report sum;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    rig.members[1].report.used_ns = UINT64_C(9000000000);
    rig.members[1].report.phases[SL_DRAIN_SETTLING].end = SL_DRAIN_END_TIMED_OUT;
    rig.members[1].report.clean = false;
    rig.members[1].report.abandoned = 3;
    sum = sl_view_sum(&rig.view);
    EXPECT_EQ(sum.reason, SL_DRAIN_REASON_SIGTERM);
    EXPECT_EQ(sum.finished, 10);
    EXPECT_EQ(sum.handed_back, 4);
    EXPECT_EQ(sum.abandoned, 3);
    EXPECT_EQ(sum.used_ns, UINT64_C(9000000000));
    EXPECT_EQ(sum.phases[SL_DRAIN_FENCING].used_ns, UINT64_C(1500000000));
    EXPECT_EQ(sum.phases[SL_DRAIN_SETTLING].end, SL_DRAIN_END_TIMED_OUT);
    EXPECT(!sum.clean);
    EXPECT(sl_report_timed_out(&sum));
}

TEST(a_worker_that_was_never_made_counts_as_nothing_drained_S3_23)
{
    view_rig rig;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    rig.members[1] = view_rig_member("mail");
    rig.members[1].state = SL_MEMBER_ENDED;
    EXPECT_EQ(sl_view_sum(&rig.view).finished, 5);
    EXPECT(sl_view_sum(&rig.view).clean);
}
