/* Acks that take their time: the file that keeps them, and a drain that waits for them. */
#include "test.h"
#include "work_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char ack_folder[64], ack_path[96];

static void make_folder(void)
{
    (void)snprintf(ack_folder, sizeof ack_folder, "/tmp/sluice-acks-XXXXXX");
    assert_non_null(mkdtemp(ack_folder));
    (void)snprintf(ack_path, sizeof ack_path, "%s/acks", ack_folder);
}

static void remove_folder(void)
{
    EXPECT_EQ(unlink(ack_path), 0);
    EXPECT_EQ(rmdir(ack_folder), 0);
}

static sl_ack_file *open_acks(void)
{
    sl_ack_file *file = NULL;
    char problem_data[256];
    sl_text problem;

    sl_text_init(&problem, problem_data, sizeof problem_data);
    EXPECT_OK(sl_ack_file_open(ack_path, SL_STR("rig"), SL_STR("c"), &problem, &file));
    return file;
}

/* A worker whose source confirms nothing finishes three messages and is gone. */
static void finish_unconfirmed(void)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.acks = open_acks();
    rig.confirms = false;
    rig.settings.slots = 3;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_offer_try(&rig, 3, 10);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_finish(&rig, 2, SL_RESULT_PARK);
    work_rig_finish(&rig, 3, SL_RESULT_FAILED);
    work_rig_turns(&rig);
    work_rig_done(&rig);
}

TEST(what_a_worker_finished_is_said_by_the_next_one_and_a_park_with_its_reason_B3_S3_38)
{
    work_rig rig;

    make_folder();
    finish_unconfirmed();
    work_rig_init(&rig);
    rig.acks = open_acks();
    work_rig_start(&rig);
    EXPECT_STR(rig.start_notes, "recall 1 recall-park 2 (why not) recall-park 3 (given up after the last "
                                "attempt: why not) start");
    EXPECT_EQ(sl_work_get_counts(rig.work).acks_replayed, 3);
    work_rig_done(&rig);
    work_rig_init(&rig); /* they are confirmed: nothing is left for the next */
    rig.acks = open_acks();
    work_rig_start(&rig);
    EXPECT_STR(rig.start_notes, "start");
    work_rig_done(&rig);
    remove_folder();
}

/* The source never says whether they counted: they may come again to the process after this one. */
TEST(what_a_source_is_unsure_about_stays_in_the_file_for_the_next_process_B3)
{
    work_rig rig;

    make_folder();
    finish_unconfirmed();
    for (int i = 0; i < 2; i++) {
        work_rig_init(&rig);
        rig.acks = open_acks();
        rig.confirms_how = SL_SETTLED_UNSURE;
        work_rig_start(&rig);
        EXPECT_EQ(sl_work_get_counts(rig.work).unsure, 3);
        work_rig_done(&rig);
    }
    work_rig_init(&rig);
    rig.acks = open_acks();
    EXPECT_EQ(sl_ack_file_count(rig.acks), 3);
    work_rig_start(&rig);
    EXPECT_EQ(sl_ack_file_count(rig.work->acks), 0); /* now they are confirmed */
    work_rig_done(&rig);
    remove_folder();
}

TEST(a_full_ack_file_is_told_once_and_work_goes_on_B3)
{
    const sl_ack_entry entry = { .revision = 7 };
    const char *told;
    uint32_t place;
    work_rig rig;

    make_folder();
    work_rig_init(&rig);
    rig.acks = open_acks();
    rig.source_class.recall = NULL;
    while (sl_ack_file_put(rig.acks, &entry, &place) == SL_OK)
        continue;
    work_rig_start(&rig);
    for (uint32_t i = 1; i <= 2; i++) {
        work_rig_offer(&rig, i);
        work_rig_turns(&rig);
        work_rig_finish(&rig, i, SL_RESULT_DONE);
        work_rig_turns(&rig);
    }
    work_rig_expect_notes(&rig, "begin 1 run 1 ack 1 begin 2 run 2 ack 2");
    told = strstr(rig.log_text, "the ack file is full");
    EXPECT(told != NULL);
    EXPECT(strstr(told + 1, "the ack file is full") == NULL);
    work_rig_done(&rig);
    remove_folder();
}

static bool is_flushing(work_rig *rig)
{
    return sl_work_phase(rig->work) == SL_DRAIN_FLUSHING;
}

/* Two were finished before; one of them is confirmed in time. */
TEST(an_ack_that_is_confirmed_while_a_drain_waits_for_it_is_counted_as_late_S4_19)
{
    work_rig rig;

    work_rig_init(&rig);
    rig.confirms = false;
    work_rig_start(&rig);
    work_rig_offer(&rig, 1);
    work_rig_offer(&rig, 2);
    work_rig_turns(&rig);
    work_rig_finish(&rig, 1, SL_RESULT_DONE);
    work_rig_finish(&rig, 2, SL_RESULT_DONE);
    work_rig_confirm(&rig, 1, SL_SETTLED_DONE);
    work_rig_stop(&rig, SL_DRAIN_REASON_SIGTERM, false);
    work_rig_until(&rig, is_flushing);
    EXPECT_EQ(sl_work_get_counts(rig.work).acks_confirmed_late, 0);
    work_rig_confirm(&rig, 2, SL_SETTLED_DONE);
    work_rig_until(&rig, work_rig_is_over);
    EXPECT_EQ(sl_work_get_counts(rig.work).acks_confirmed_late, 1);
    EXPECT_EQ(sl_work_report(rig.work).acks_unconfirmed, 0);
    EXPECT(sl_work_report(rig.work).clean);
    work_rig_done(&rig);
}
