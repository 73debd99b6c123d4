/* tests/unit/worker/test_schedule_source.c — ticks on a loop, with intervals of a few milliseconds. */
#include "worker/schedule_source.h"

#include "scarce.h"
#include "test.h"

#include <cjson/cJSON.h>
#include <string.h>

#define MS_NS    UINT64_C(1000000)
#define HOUR_NS  UINT64_C(3600000000000)
#define GUARD_NS UINT64_C(30000000000) /* nothing here takes so long; it only fails */

typedef struct schedule_rig {
    sl_loop *loop;
    sl_logger log;
    sl_source *source;
    sl_job *job; /* what is out */
    unsigned ticks, settled, fences, ups, fails, closes;
    unsigned warnings, alarms; /* log lines */
    char last_line[1000], failure[200];
    sl_source_failure failed;
} schedule_rig;

static void on_offer(void *ctx, sl_job *job)
{
    schedule_rig *const r = ctx;

    assert_null(r->job); /* one at a time */
    EXPECT_EQ(r->fences, 0);
    r->job = job;
    r->ticks++;
}

static void on_lost(__attribute__((unused)) void *ctx, __attribute__((unused)) sl_job *job)
{
    fail_msg("a schedule has no leases");
}

static void on_settled(void *ctx, sl_job *job, sl_settled_how how)
{
    schedule_rig *const r = ctx;

    EXPECT_EQ(how, SL_SETTLED_DONE);
    assert_ptr_equal(r->job, job);
    r->job = NULL;
    r->settled++;
    sl_job_free(job);
}

static void on_fenced(void *ctx)
{
    ((schedule_rig *)ctx)->fences++;
}

static void on_stop(__attribute__((unused)) void *ctx, __attribute__((unused)) sl_drain_reason by,
                    __attribute__((unused)) sl_str why, __attribute__((unused)) uint64_t deadline_ms)
{
    fail_msg("nobody can ask a schedule to stop");
}

static void on_up(void *ctx)
{
    ((schedule_rig *)ctx)->ups++;
}

static void on_down(__attribute__((unused)) void *ctx, __attribute__((unused)) sl_str why)
{
    fail_msg("a schedule is never down");
}

static void on_failed(void *ctx, sl_source_failure failure, sl_str why)
{
    schedule_rig *const r = ctx;
    sl_text text;

    sl_text_init(&text, r->failure, sizeof r->failure);
    sl_text_add_str(&text, why);
    r->failed = failure;
    r->fails++;
}

static void on_closed(void *ctx)
{
    ((schedule_rig *)ctx)->closes++;
}

static const sl_source_owner rig_owner = { on_offer, on_lost, on_settled, on_fenced, on_stop,
                                           on_up,    on_down, on_failed,  on_closed };

static void on_line(void *ctx, const char *line, size_t line_bytes)
{
    schedule_rig *const r = ctx;
    sl_text text;

    sl_text_init(&text, r->last_line, sizeof r->last_line);
    sl_text_add_str(&text, (sl_str){ line, line_bytes });
    r->warnings += strstr(line, " WARN ") != NULL ? 1 : 0;
    r->alarms += strstr(line, "has not succeeded for two intervals") != NULL ? 1 : 0;
}

static schedule_rig *rig_new(const char *text)
{
    schedule_rig *const r = test_calloc(1, sizeof *r);
    char room[400];
    sl_text problem;

    EXPECT_OK(sl_loop_new(NULL, &(sl_loop_handler){ 0 }, NULL, &r->loop));
    r->log = (sl_logger){
        .level_min = SL_LOG_DEBUG, .clock = sl_loop_clock(r->loop), .sink = on_line, .sink_ctx = r
    };
    sl_text_init(&problem, room, sizeof room);
    EXPECT_OK(sl_schedule_source_open(r->loop, &r->log, sl_str_from(text), &problem, &r->source));
    r->source->owner = &rig_owner;
    r->source->owner_ctx = r;
    r->source->class->start(r->source);
    EXPECT_EQ(r->ups, 1);
    EXPECT_EQ(r->ticks, 0);
    return r;
}

static void rig_free(schedule_rig *r)
{
    r->source->class->free(r->source);
    sl_job_free(r->job);
    sl_loop_free(r->loop);
    test_free(r);
}

static void wait_for(schedule_rig *r, const unsigned *number, unsigned wanted)
{
    const uint64_t guard_ns = sl_loop_now_ns(r->loop) + GUARD_NS;

    while (*number < wanted && sl_loop_now_ns(r->loop) < guard_ns)
        sl_loop_turn(r->loop, sl_loop_wait_ms(r->loop) >= 0);
    EXPECT_EQ(*number, wanted);
}

static void say(schedule_rig *r, sl_settle settle)
{
    r->source->class->settle(r->source, r->job, &settle);
}

static void ack(schedule_rig *r)
{
    say(r, (sl_settle){ .kind = SL_SETTLE_ACK });
}

static cJSON *describe(schedule_rig *r)
{
    cJSON *const object = cJSON_CreateObject();

    r->source->class->describe(r->source, object);
    return object;
}

static double number_in(const char *name, cJSON *object)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);
    const double number = cJSON_IsBool(item) ? (cJSON_IsTrue(item) ? 1 : 0) : cJSON_GetNumberValue(item);

    cJSON_Delete(object);
    return number;
}

TEST(ticks_come_one_at_a_time_for_as_long_as_nobody_stops_them_S3_7)
{
    schedule_rig *const r = rig_new("schedule:every=10ms");
    uint64_t last_ns = 0;
    sl_uuid last_id = { { 0 } };

    for (unsigned i = 1; i <= 5; i++) {
        wait_for(r, &r->ticks, i);
        EXPECT(!sl_uuid_equal(r->job->message.id, last_id));
        EXPECT_EQ(r->job->message.attempt, 1);
        EXPECT_EQ(r->job->message.revision, i - 1);
        EXPECT_EQ(r->job->lease_until_ns, UINT64_MAX);
        EXPECT(r->job->message.created_ns > last_ns);
        EXPECT(r->source->class->begin(r->source, r->job));
        last_ns = r->job->message.created_ns;
        last_id = r->job->message.id;
        ack(r);
    }
    EXPECT(!r->source->has_tokens && r->source->class->extend == NULL);
    rig_free(r);
}

TEST(a_tick_says_when_it_was_to_be_how_late_it_is_and_what_was_left_out)
{
    schedule_rig *const r = rig_new("every=10ms");
    const uint64_t start_ns = sl_loop_now_ns(r->loop);
    cJSON *data;

    wait_for(r, &r->ticks, 1);
    while (sl_loop_now_ns(r->loop) <
           start_ns + 35 * MS_NS) /* an overrun: due ticks are not offered meanwhile */
        sl_loop_turn(r->loop, false);
    EXPECT_EQ(r->ticks, 1);
    ack(r);
    wait_for(r, &r->ticks, 2);
    data = cJSON_ParseWithLength(r->job->message.data.data, r->job->message.data.bytes);
    EXPECT(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(data, "missed")) >= 3);
    EXPECT(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(data, "late_ms")) >= 0);
    EXPECT_EQ(strlen(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(data, "scheduled"))), 24);
    cJSON_Delete(data);
    EXPECT_EQ(r->warnings, 1);
    EXPECT(number_in("missed", describe(r)) >= 3);
    rig_free(r);
}

TEST(closing_the_gate_ends_the_pause_at_once_S3_4)
{
    schedule_rig *const r = rig_new("every=1h");

    wait_for(r, &r->ticks, 1);
    ack(r);
    EXPECT(number_in("next_in_ms", describe(r)) > 3500000);
    r->source->class->close_gate(r->source, true);
    EXPECT_EQ(r->fences, 1);
    EXPECT_EQ(sl_loop_wait_ms(r->loop), -1); /* nothing waits any more */
    r->source->class->close(r->source);
    EXPECT_EQ(r->closes, 1);
    rig_free(r);
}

TEST(a_tick_that_runs_is_cancelled_by_a_drain_and_not_repeated_S3_5)
{
    schedule_rig *const r = rig_new("every=10ms");

    EXPECT(r->source->class->cancels_work);
    EXPECT(r->source->class->has_no_dead_letters);
    wait_for(r, &r->ticks, 1);
    r->source->class->close_gate(r->source, true);
    EXPECT_EQ(r->fences, 1);
    EXPECT(!r->source->class->begin(r->source, r->job));
    say(r, (sl_settle){ .kind = SL_SETTLE_RELEASE });
    EXPECT_EQ(r->settled, 1);
    EXPECT_EQ(sl_loop_wait_ms(r->loop), -1);
    rig_free(r);
}

TEST(a_tick_that_was_offered_may_still_run_if_nothing_is_handed_back)
{
    schedule_rig *const r = rig_new("every=1h");

    wait_for(r, &r->ticks, 1);
    r->source->class->close_gate(r->source, false);
    EXPECT(r->source->class->begin(r->source, r->job));
    ack(r);
    EXPECT_EQ(r->settled, 1);
    EXPECT_EQ(sl_loop_wait_ms(r->loop), -1);
    rig_free(r);
}

TEST(a_cancellation_that_no_drain_caused_is_logged_and_tried_again_S3_6)
{
    schedule_rig *const r = rig_new("every=1h");
    sl_uuid id;

    wait_for(r, &r->ticks, 1);
    id = r->job->message.id;
    say(r, (sl_settle){
               .kind = SL_SETTLE_RETRY, .delay_ns = 2 * MS_NS, .reason = SL_STR("killed by signal 9") });
    EXPECT_EQ(r->warnings, 1);
    assert_non_null(strstr(r->last_line, "killed by signal 9"));
    wait_for(r, &r->ticks, 2);
    EXPECT(sl_uuid_equal(id, r->job->message.id)); /* the same tick, its second try */
    EXPECT_EQ(r->job->message.attempt, 2);
    rig_free(r);
}

TEST(a_retry_comes_not_later_than_the_next_tick)
{
    schedule_rig *const r = rig_new("every=20ms");

    wait_for(r, &r->ticks, 1);
    say(r, (sl_settle){ .kind = SL_SETTLE_RETRY, .delay_ns = HOUR_NS });
    wait_for(r, &r->ticks, 2);
    EXPECT_EQ(r->job->message.attempt, 1);
    EXPECT_EQ(r->job->message.revision, 1);
    rig_free(r);
}

TEST(what_was_handed_back_without_a_drain_comes_again_uncharged)
{
    schedule_rig *const r = rig_new("every=1h");
    sl_uuid id;

    wait_for(r, &r->ticks, 1);
    id = r->job->message.id;
    say(r, (sl_settle){ .kind = SL_SETTLE_RELEASE });
    wait_for(r, &r->ticks, 2);
    EXPECT(sl_uuid_equal(id, r->job->message.id));
    EXPECT_EQ(r->job->message.attempt, 1);
    rig_free(r);
}

TEST(a_tick_for_which_there_was_no_memory_comes_again_uncharged)
{
    schedule_rig *const r = rig_new("every=1h");

    scarce_begin((scarce_plan){ .fail_at = 1 });
    wait_for(r, &r->ticks, 1);
    EXPECT(scarce_end(NULL));
    EXPECT_EQ(r->job->message.attempt, 1);
    EXPECT_EQ(r->job->message.revision, 0);
    rig_free(r);
}

TEST(work_that_can_never_succeed_fails_the_source_with_its_reason)
{
    schedule_rig *const r = rig_new("every=10ms");

    wait_for(r, &r->ticks, 1);
    say(r, (sl_settle){ .kind = SL_SETTLE_PARK, .reason = SL_STR("configuration: fatal: no such file") });
    EXPECT_EQ(r->settled, 1);
    EXPECT_EQ(r->fails, 1);
    EXPECT_EQ(r->failed, SL_SOURCE_LOST);
    EXPECT_STR(r->failure, "configuration: fatal: no such file");
    EXPECT_EQ(sl_loop_wait_ms(r->loop), -1);
    r->source->class->close_gate(r->source, true);
    EXPECT_EQ(r->fences, 1);
    rig_free(r);
}

TEST(without_success_for_two_intervals_there_is_an_error_once_in_an_interval_until_it_works)
{
    schedule_rig *const r = rig_new("every=100ms");
    const uint64_t start_ns = sl_loop_now_ns(r->loop);

    wait_for(r, &r->ticks, 1);
    EXPECT(number_in("overdue", describe(r)) == 0 || sl_loop_now_ns(r->loop) >= start_ns + 200 * MS_NS);
    wait_for(r, &r->alarms, 1);
    EXPECT(sl_loop_now_ns(r->loop) >= start_ns + 200 * MS_NS);
    EXPECT_EQ(number_in("overdue", describe(r)), 1);
    assert_non_null(strstr(r->last_line, " ERROR "));
    wait_for(r, &r->alarms, 2);
    EXPECT(sl_loop_now_ns(r->loop) >= start_ns + 300 * MS_NS);
    ack(r);
    EXPECT_EQ(number_in("overdue", describe(r)), 0);
    r->source->class->close_gate(r->source, true);
    EXPECT_EQ(sl_loop_wait_ms(r->loop), -1); /* no alarm in a drain */
    rig_free(r);
}

/* The first tick takes until the second is due. The next one comes an hour later, because of the cooldown: two intervals are not long. */
TEST(after_an_overrun_success_is_not_overdue_before_its_time_has_come)
{
    schedule_rig *const r = rig_new("every=10ms,cooldown=1h");
    const uint64_t start_ns = sl_loop_now_ns(r->loop);

    wait_for(r, &r->ticks, 1);
    while (sl_loop_now_ns(r->loop) <= start_ns + 10 * MS_NS)
        sl_loop_turn(r->loop, false);
    ack(r);
    r->alarms = 0; /* before the ack one may be right */
    while (sl_loop_now_ns(r->loop) <= start_ns + 100 * MS_NS)
        sl_loop_turn(r->loop, false);
    EXPECT_EQ(r->alarms, 0);
    EXPECT_EQ(number_in("overdue", describe(r)), 0);
    rig_free(r);
}
