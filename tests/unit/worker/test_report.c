/* tests/unit/worker/test_report.c — the report of a shutdown: JSON, the file, the last line, the sentence. */
#include "test.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew_rig.h"
#include "view_rig.h"
#include "worker/report.h"

static double number_in(const cJSON *object, const char *name)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item))
        fail_msg("no number \"%s\"", name);
    return item->valuedouble;
}

static const char *text_in(const cJSON *object, const char *name)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsString(item))
        fail_msg("no text \"%s\"", name);
    return item->valuestring;
}

static cJSON *parsed(const view_rig *rig)
{
    char *const text = sl_report_text(&rig->view);
    cJSON *const top = cJSON_Parse(text);

    EXPECT(top != NULL);
    cJSON_free(text);
    return top;
}

static void timed_out(view_rig *rig)
{
    view_rig_init(rig);
    view_rig_drain(rig);
    view_rig_end(rig);
    rig->view.end = SL_CREW_UNCLEAN;
    rig->members[1].report.clean = false;
    rig->members[1].report.abandoned = 3;
    rig->members[1].report.acks_unconfirmed = 1;
    rig->members[1].report.interrupted = 2;
    rig->members[1].report.phases[SL_DRAIN_SETTLING].used_ns = UINT64_C(20000000000);
    rig->members[1].report.phases[SL_DRAIN_SETTLING].end = SL_DRAIN_END_TIMED_OUT;
    rig->members[1].report.phases[SL_DRAIN_SETTLING].failed_steps = 4;
    rig->members[1].counts.acks_confirmed_late = 6;
    rig->members[1].counts.unsure = 7;
}

TEST(a_report_says_of_the_process_how_it_ended_and_what_became_of_messages_B12)
{
    view_rig rig;
    cJSON *top;

    timed_out(&rig);
    top = parsed(&rig);
    EXPECT_STR(text_in(top, "reason"), "SIGTERM");
    EXPECT_STR(text_in(top, "end"), "unclean");
    EXPECT_STR(text_in(top, "started"), "2026-11-16T14:12:52.123Z");
    EXPECT(cJSON_IsFalse(cJSON_GetObjectItem(top, "clean")));
    EXPECT(cJSON_IsTrue(cJSON_GetObjectItem(top, "timed_out")));
    EXPECT(cJSON_IsFalse(cJSON_GetObjectItem(top, "escalated")));
    EXPECT(number_in(top, "grace_seconds") == 30 && number_in(top, "used_seconds") == 4);
    EXPECT(number_in(top, "finished") == 10 && number_in(top, "handed_back") == 4);
    EXPECT(number_in(top, "interrupted") == 2 && number_in(top, "abandoned") == 3);
    EXPECT(number_in(top, "acks_unconfirmed") == 1 && number_in(top, "acks_confirmed_late") == 6);
    cJSON_Delete(top);
}

TEST(a_report_says_of_each_worker_what_each_part_took_and_how_it_ended_B12_S4_17)
{
    const cJSON *member, *drain, *phase;
    view_rig rig;
    cJSON *top;

    timed_out(&rig);
    top = parsed(&rig);
    member = cJSON_GetArrayItem(cJSON_GetObjectItem(top, "workers"), 1);
    EXPECT_STR(text_in(member, "name"), "mail");
    EXPECT_STR(text_in(member, "end"), "as asked");
    EXPECT(number_in(member, "unsure") == 7);
    drain = cJSON_GetObjectItem(member, "drain");
    EXPECT(number_in(drain, "finished") == 5);
    phase = cJSON_GetObjectItem(cJSON_GetObjectItem(drain, "phases"), "settling");
    EXPECT(number_in(phase, "used_seconds") == 20 && number_in(phase, "failed_steps") == 4);
    EXPECT_STR(text_in(phase, "end"), "timed out");
    phase = cJSON_GetObjectItem(cJSON_GetObjectItem(drain, "phases"), "fencing");
    EXPECT(number_in(phase, "used_seconds") == 1.5);
    EXPECT_STR(text_in(phase, "end"), "done");
    cJSON_Delete(top);
}

TEST(a_worker_that_never_was_has_no_drain_in_the_report_S3_23_S3_25)
{
    const cJSON *member;
    view_rig rig;
    cJSON *top;

    timed_out(&rig);
    rig.members[0] = view_rig_member("billing");
    top = parsed(&rig);
    member = cJSON_GetArrayItem(cJSON_GetObjectItem(top, "workers"), 0);
    EXPECT_STR(text_in(member, "end"), "never started");
    EXPECT(cJSON_GetObjectItem(member, "drain") == NULL);
    cJSON_Delete(top);
}

/* --- the file --- */

TEST(a_report_replaces_the_one_before_in_one_step_B12)
{
    crew_place place;
    struct stat before, after;
    char *text;
    view_rig rig;
    FILE *old;

    crew_place_make(&place);
    old = fopen(place.file, "w");
    EXPECT(old != NULL && fputs("old", old) >= 0);
    EXPECT_EQ(fstat(fileno(old), &before), 0);
    timed_out(&rig);
    EXPECT_OK(sl_report_write(&rig.view, place.file, NULL));
    EXPECT_EQ(stat(place.file, &after), 0);
    EXPECT(before.st_ino != after.st_ino); /* who has the old one open still reads all of the old one */
    text = crew_place_read(&place);
    EXPECT(text != NULL && text[0] == '{' && text[strlen(text) - 1] == '\n');
    free(text);
    fclose(old);
    crew_place_clear(&place);
}

TEST(a_report_that_cannot_be_written_leaves_nothing_behind_and_says_why_S3_22)
{
    char buffer[512], wrong[160];
    crew_place place;
    sl_text problem;
    view_rig rig;

    crew_place_make(&place);
    timed_out(&rig);
    sl_text_init(&problem, buffer, sizeof buffer);
    snprintf(wrong, sizeof wrong, "%s/none/report.json", place.folder);
    EXPECT_ERR(sl_report_write(&rig.view, wrong, &problem), SL_ERR_IO);
    EXPECT(strstr(buffer, "open: No such file or directory") != NULL);
    EXPECT_EQ(mkdir(place.file, 0700), 0); /* a folder is where the file should be: only the rename fails */
    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_ERR(sl_report_write(&rig.view, place.file, &problem), SL_ERR_IO);
    EXPECT(strstr(buffer, "rename: ") != NULL);
    EXPECT_EQ(rmdir(place.file), 0);
    crew_place_clear(&place);
}

TEST(a_report_never_takes_the_place_of_a_device)
{
    crew_place place;
    struct stat seen;
    view_rig rig;
    char line[2] = "";
    int reader;

    crew_place_make(&place);
    timed_out(&rig);
    EXPECT_EQ(mkfifo(place.file, 0600), 0); /* a device that nobody needs rights to make */
    reader = open(place.file, O_RDONLY | O_NONBLOCK);
    EXPECT(reader >= 0);
    EXPECT_OK(sl_report_write(&rig.view, place.file, NULL));
    EXPECT(stat(place.file, &seen) == 0 && S_ISFIFO(seen.st_mode));
    EXPECT(read(reader, line, 1) == 1 && line[0] == '{');
    close(reader);
    crew_place_clear(&place);
}

TEST(a_report_goes_to_where_a_link_points_and_leaves_the_link)
{
    char link_path[160];
    crew_place place;
    struct stat seen;
    view_rig rig;
    char *text;
    FILE *old;

    crew_place_make(&place);
    timed_out(&rig);
    old = fopen(place.file, "w");
    EXPECT(old != NULL && fputs("old", old) >= 0 && fclose(old) == 0);
    snprintf(link_path, sizeof link_path, "%s/link", place.folder);
    EXPECT_EQ(symlink(place.file, link_path), 0);
    EXPECT_OK(sl_report_write(&rig.view, link_path, NULL));
    EXPECT(lstat(link_path, &seen) == 0 && S_ISLNK(seen.st_mode));
    text = crew_place_read(&place);
    EXPECT(text != NULL && text[0] == '{');
    free(text);
    EXPECT_EQ(unlink(link_path), 0);
    crew_place_clear(&place);
}

/* --- the last line, the sentence --- */

static void keep_line(void *ctx, const char *line, size_t line_bytes)
{
    memcpy(ctx, line, line_bytes + 1);
}

static void expect_line(const view_rig *rig, const char *wanted)
{
    char line[SL_LOG_LINE_BYTES_MAX + 1] = "";
    sl_clock_manual manual = { 0 };
    const sl_clock clock = sl_clock_manual_clock(&manual);
    const sl_logger log = { .clock = &clock, .sink = keep_line, .sink_ctx = line };

    sl_report_log(&rig->view, &log);
    if (strstr(line, wanted) == NULL)
        fail_msg("no \"%s\" in %s", wanted, line);
}

TEST(the_last_line_has_the_reason_and_the_number_of_drained_messages_S3_27)
{
    view_rig rig;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    view_rig_end(&rig);
    expect_line(&rig, "INFO  stopped reason=SIGTERM end=clean drained=10 handed_back=4");
    expect_line(&rig, "grace=30s used=4s fencing=1.5s settling=0s aborting=0s flushing=0s closing=0s");
    timed_out(&rig);
    expect_line(&rig, "WARN  stopped reason=SIGTERM end=unclean drained=10");
    expect_line(&rig, " acks_unconfirmed=1 acks_confirmed_late=6 ");
}

TEST(an_unclean_end_names_the_workers_that_left_something_B12)
{
    char buffer[512];
    sl_text problem;
    view_rig rig;

    timed_out(&rig);
    sl_text_init(&problem, buffer, sizeof buffer);
    sl_report_explain(&rig.view, &problem);
    EXPECT_STR(
        buffer,
        "Worker mail did not drain in time, 2 handed back, 2 interrupted, 3 abandoned (others get them "
        "when their leases end), 1 finished but not confirmed");
}

TEST(an_unclean_end_names_the_part_in_which_a_step_failed_B12)
{
    char buffer[512];
    sl_text problem;
    view_rig rig;

    timed_out(&rig);
    rig.members[1].report = (sl_drain_report){ .failed_steps = 1 };
    rig.members[1].report.phases[SL_DRAIN_CLOSING].failed_steps = 1;
    sl_text_init(&problem, buffer, sizeof buffer);
    sl_report_explain(&rig.view, &problem);
    EXPECT_STR(buffer, "Worker mail left something behind, 1 failed step (closing)");
    rig.members[1].report.failed_steps = 3;
    rig.members[1].report.phases[SL_DRAIN_FLUSHING].failed_steps = 2;
    sl_text_init(&problem, buffer, sizeof buffer);
    sl_report_explain(&rig.view, &problem);
    EXPECT_STR(buffer, "Worker mail left something behind, 3 failed steps (flushing, closing)");
}
