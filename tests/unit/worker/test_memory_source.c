/* tests/unit/worker/test_memory_source.c — the queue inside of the process behaves like one outside of it. */
#include "worker/memory_source.h"

#include "scarce.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    JOBS_MAX = 2000,
    TURNS_MAX = 1000000 /* that a test waits for something; reached only when it never comes */
};

typedef struct memory_rig {
    sl_loop *loop;
    sl_source *source;
    sl_job *jobs[JOBS_MAX]; /* offered, and not settled */
    size_t job_count;
    unsigned offers, lost, done, refused, fences, ups, downs, fails, closes, stops;
    sl_source_failure failure;
    bool is_settling, settled_inside;
} memory_rig;

static void on_offer(void *ctx, sl_job *job)
{
    memory_rig *const r = ctx;

    EXPECT_EQ(r->fences, 0);
    assert_true(r->job_count < JOBS_MAX);
    r->jobs[r->job_count++] = job;
    r->offers++;
}

static void on_lost(void *ctx, sl_job *job)
{
    EXPECT(!job->is_lost);
    job->is_lost = true;
    ((memory_rig *)ctx)->lost++;
}

static void on_settled(void *ctx, sl_job *job, sl_settled_how how)
{
    memory_rig *const r = ctx;
    size_t at = 0;

    r->settled_inside |= r->is_settling;
    *(how == SL_SETTLED_DONE ? &r->done : &r->refused) += 1;
    while (at < r->job_count && r->jobs[at] != job)
        at++;
    if (at < r->job_count)
        r->jobs[at] = r->jobs[--r->job_count];
    sl_job_free(job);
}

static void on_fenced(void *ctx)
{
    ((memory_rig *)ctx)->fences++;
}

static void on_stop(void *ctx, __attribute__((unused)) sl_drain_reason by, __attribute__((unused)) sl_str why,
                    __attribute__((unused)) uint64_t deadline_ms)
{
    ((memory_rig *)ctx)->stops++;
}

static void on_up(void *ctx)
{
    ((memory_rig *)ctx)->ups++;
}

static void on_down(void *ctx, __attribute__((unused)) sl_str why)
{
    ((memory_rig *)ctx)->downs++;
}

static void on_failed(void *ctx, sl_source_failure failure, __attribute__((unused)) sl_str why)
{
    ((memory_rig *)ctx)->fails++;
    ((memory_rig *)ctx)->failure = failure;
}

static void on_closed(void *ctx)
{
    ((memory_rig *)ctx)->closes++;
}

static const sl_source_owner rig_owner = { on_offer, on_lost, on_settled, on_fenced, on_stop,
                                           on_up,    on_down, on_failed,  on_closed };

static memory_rig *rig_new(const sl_memory_settings *settings)
{
    memory_rig *const r = test_calloc(1, sizeof *r);

    EXPECT_OK(sl_loop_new(NULL, &(sl_loop_handler){ 0 }, NULL, &r->loop));
    EXPECT_OK(sl_memory_source_new(r->loop, settings, &r->source));
    r->source->owner = &rig_owner;
    r->source->owner_ctx = r;
    return r;
}

static void rig_free(memory_rig *r)
{
    r->source->class->free(r->source);
    for (size_t i = 0; i < r->job_count; i++)
        sl_job_free(r->jobs[i]);
    sl_loop_free(r->loop);
    test_free(r);
}

static void start(memory_rig *r)
{
    r->source->class->start(r->source);
}

static void turns(memory_rig *r, int count)
{
    for (int i = 0; i < count; i++)
        sl_loop_turn(r->loop, false);
}

/* Until a number has come to what is wanted. */
static void wait_for(memory_rig *r, const unsigned *number, unsigned wanted)
{
    for (int i = 0; i < TURNS_MAX && *number < wanted; i++)
        sl_loop_turn(r->loop, false);
    EXPECT_EQ(*number, wanted);
}

static void say(memory_rig *r, sl_job *job, sl_settle settle)
{
    r->is_settling = true;
    r->source->class->settle(r->source, job, &settle);
    r->is_settling = false;
}

static uint64_t put(memory_rig *r, const char *type)
{
    uint64_t number = 0;

    EXPECT_OK(sl_memory_source_put(r->source, &(sl_job_message){ .type = sl_str_from(type) }, &number));
    return number;
}

static sl_memory_look look(const memory_rig *r, uint64_t number)
{
    sl_memory_look seen = { 0 };

    EXPECT(sl_memory_source_look(r->source, number, &seen));
    return seen;
}

TEST(a_memory_source_offers_within_its_window_and_ends_when_all_is_settled)
{
    sl_memory_settings settings = sl_memory_settings_default();
    settings.count = 1000;
    settings.data_bytes = 100;
    settings.window = 64;
    settings.has_end = true;
    memory_rig *const r = rig_new(&settings);

    start(r);
    EXPECT_EQ(r->ups, 0);
    while (r->fails == 0) {
        turns(r, 1);
        EXPECT(r->job_count <= 64);
        while (r->job_count > 0 && sl_memory_source_totals(r->source).out > 0) {
            EXPECT_EQ(r->jobs[0]->message.data.bytes, 100);
            EXPECT(r->source->class->begin(r->source, r->jobs[0]));
            say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_ACK });
            wait_for(r, &r->done, r->done + 1);
        }
    }
    EXPECT_EQ(r->failure, SL_SOURCE_FINISHED);
    EXPECT_EQ(r->done, 1000);
    EXPECT_EQ(sl_memory_source_totals(r->source).acked, 1000);
    EXPECT(!r->settled_inside);
    rig_free(r);
}

TEST(a_memory_source_answers_at_once_only_if_it_is_told_to)
{
    sl_memory_settings settings = sl_memory_settings_default();
    settings.answers_at_once = true;
    memory_rig *const r = rig_new(&settings);
    const uint64_t number = put(r, "a");

    start(r);
    turns(r, 1);
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_ACK });
    EXPECT(r->settled_inside);
    EXPECT_EQ(look(r, number).state, SL_MEMORY_ACKED);
    rig_free(r);
}

TEST(a_memory_source_charges_a_retry_and_keeps_its_pause_but_not_a_release)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);
    const uint64_t number = put(r, "a");

    start(r);
    wait_for(r, &r->offers, 1);
    EXPECT(r->source->class->begin(r->source, r->jobs[0]));
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_RELEASE });
    wait_for(r, &r->offers, 2);
    EXPECT_EQ(r->jobs[0]->message.attempt, 1);
    EXPECT_EQ(r->jobs[0]->message.token, 2);
    say(r, r->jobs[0],
        (sl_settle){ .kind = SL_SETTLE_RETRY, .delay_ns = 1000000, .reason = SL_STR("not yet") });
    wait_for(r, &r->done, 2);
    EXPECT_EQ(look(r, number).state, SL_MEMORY_DELAYED);
    EXPECT_STR(look(r, number).reason, "not yet");
    wait_for(r, &r->offers, 3);
    EXPECT_EQ(r->jobs[0]->message.attempt, 2);
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_PARK, .reason = SL_STR("never") });
    wait_for(r, &r->done, 3);
    EXPECT_EQ(look(r, number).state, SL_MEMORY_PARKED);
    EXPECT_EQ(look(r, number).delay_ns, 1000000);
    rig_free(r);
}

TEST(what_a_memory_source_gets_back_is_offered_in_the_old_order)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);

    for (int i = 0; i < 5; i++)
        (void)put(r, "a");
    start(r);
    wait_for(r, &r->offers, 5);
    for (size_t i = 5; i-- > 0;)
        say(r, r->jobs[i], (sl_settle){ .kind = SL_SETTLE_RELEASE });
    wait_for(r, &r->offers, 10);
    for (size_t i = 0; i < 5; i++)
        EXPECT_EQ(r->jobs[i]->message.revision, i + 1);
    rig_free(r);
}

TEST(a_lease_of_a_memory_source_that_runs_out_is_lost_and_begun_work_is_charged)
{
    sl_memory_settings settings = sl_memory_settings_default();
    settings.lease_ns = 2000000;
    settings.window = 3;
    memory_rig *const r = rig_new(&settings);
    const uint64_t begun = put(r, "begun"), waiting = put(r, "waiting");

    start(r);
    wait_for(r, &r->offers, 2);
    EXPECT(r->source->class->begin(r->source, r->jobs[0]));
    wait_for(r, &r->lost, 2);
    EXPECT(!r->source->class->begin(r->source, r->jobs[1]));
    wait_for(r, &r->offers, 3); /* the third place of the window: the lost ones have not been given up yet */
    EXPECT_EQ(r->jobs[2]->message.attempt, 2);
    EXPECT_EQ(r->jobs[2]->message.token, 2);
    EXPECT_EQ(look(r, begun).charged, 1);
    EXPECT_EQ(look(r, waiting).charged, 0);
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_ACK });
    wait_for(r, &r->refused, 1);
    EXPECT(look(r, begun).state != SL_MEMORY_ACKED);
    rig_free(r);
}

TEST(a_lease_of_a_memory_source_that_is_extended_stays)
{
    sl_memory_settings settings = sl_memory_settings_default();
    settings.lease_ns = 50000000;
    memory_rig *const r = rig_new(&settings);
    const uint64_t number = put(r, "a");
    uint64_t first_end_ns;

    start(r);
    wait_for(r, &r->offers, 1);
    first_end_ns = r->jobs[0]->lease_until_ns;
    while (sl_loop_now_ns(r->loop) <= first_end_ns + 1000000 && r->lost == 0) {
        if (sl_loop_now_ns(r->loop) + 40000000 > r->jobs[0]->lease_until_ns)
            r->source->class->extend(r->source, r->jobs[0]);
        turns(r, 1);
    }
    if (r->lost == 0) /* a machine that stands still for so long proves nothing */
        EXPECT(look(r, number).extended > 0);
    rig_free(r);
}

TEST(a_memory_source_that_is_down_begins_nothing_and_answers_when_it_is_back)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);

    (void)put(r, "a");
    (void)put(r, "b");
    start(r);
    wait_for(r, &r->offers, 2);
    sl_memory_source_set_down(r->source, true);
    EXPECT_EQ(r->downs, 1);
    EXPECT(!r->source->class->begin(r->source, r->jobs[0]));
    say(r, r->jobs[1], (sl_settle){ .kind = SL_SETTLE_ACK });
    (void)put(r, "c");
    turns(r, 5);
    EXPECT_EQ(r->done, 0);
    EXPECT_EQ(r->offers, 2);
    sl_memory_source_set_down(r->source, false);
    wait_for(r, &r->done, 1);
    wait_for(r, &r->offers, 3);
    EXPECT_EQ(r->ups, 2);
    rig_free(r);
}

TEST(nothing_is_offered_behind_the_fence_of_a_memory_source_which_can_be_held)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);

    (void)put(r, "a");
    start(r);
    wait_for(r, &r->offers, 1);
    sl_memory_source_hold_fence(r->source, true);
    r->source->class->close_gate(r->source, true);
    EXPECT(!r->source->class->begin(r->source, r->jobs[0]));
    (void)put(r, "b");
    turns(r, 5);
    EXPECT_EQ(r->fences, 0);
    sl_memory_source_hold_fence(r->source, false);
    wait_for(r, &r->fences, 1);
    turns(r, 5);
    EXPECT_EQ(r->fences, 1);
    EXPECT_EQ(r->offers, 1);
    r->source->class->close(r->source);
    wait_for(r, &r->closes, 1);
    rig_free(r);
}

TEST(a_memory_source_that_failed_gives_its_fence_and_refuses_what_is_left)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);
    const uint64_t number = put(r, "a");

    start(r);
    wait_for(r, &r->offers, 1);
    sl_memory_source_hold_answers(r->source, true);
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_ACK });
    turns(r, 5);
    EXPECT_EQ(r->done, 0);
    sl_memory_source_fail(r->source, SL_SOURCE_LOST, SL_STR("gone"));
    sl_memory_source_fail(r->source, SL_SOURCE_LOST, SL_STR("gone"));
    EXPECT_EQ(r->fails, 1);
    sl_memory_source_hold_answers(r->source, false);
    r->source->class->close_gate(r->source, false);
    wait_for(r, &r->refused, 1);
    wait_for(r, &r->fences, 1);
    EXPECT(look(r, number).state != SL_MEMORY_ACKED);
    rig_free(r);
}

TEST(a_message_that_is_lost_after_the_last_word_was_said_is_refused_and_comes_again_S4_11)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    memory_rig *const r = rig_new(&settings);
    const uint64_t number = put(r, "a");

    start(r);
    wait_for(r, &r->offers, 1);
    sl_memory_source_hold_answers(r->source, true);
    say(r, r->jobs[0], (sl_settle){ .kind = SL_SETTLE_ACK });
    EXPECT(sl_memory_source_lose(r->source, number));
    EXPECT_EQ(r->lost, 0);
    wait_for(r, &r->offers, 2);
    EXPECT_EQ(look(r, number).token, 2);
    sl_memory_source_hold_answers(r->source, false);
    wait_for(r, &r->refused, 1);
    EXPECT_EQ(look(r, number).state, SL_MEMORY_OUT);
    EXPECT(sl_memory_source_lose(r->source, number));
    EXPECT_EQ(r->lost, 1);
    rig_free(r);
}

TEST(what_an_earlier_process_finished_is_settled_and_not_offered_if_nobody_had_it_since_B3)
{
    const sl_memory_settings settings = sl_memory_settings_default();
    const sl_settle ack = { .kind = SL_SETTLE_ACK };
    memory_rig *const r = rig_new(&settings);
    sl_job_message message = { .id = { { 1 } }, .token = 5 };
    uint64_t number = 0;

    EXPECT_OK(sl_memory_source_put(r->source, &message, &number));
    r->source->class->recall(r->source, sl_job_new(&message), &ack);
    message = (sl_job_message){ .id = { { 2 } }, .token = 7 };
    EXPECT_OK(sl_memory_source_put(r->source, &message, NULL));
    message.token = 6; /* another one had it later */
    r->source->class->recall(r->source, sl_job_new(&message), &ack);
    start(r);
    wait_for(r, &r->done, 1);
    wait_for(r, &r->refused, 1);
    wait_for(r, &r->offers, 1);
    turns(r, 3);
    EXPECT_EQ(r->offers, 1);
    EXPECT_EQ(r->jobs[0]->message.token, 8);
    EXPECT_EQ(look(r, number).state, SL_MEMORY_ACKED);
    EXPECT_EQ(sl_memory_source_totals(r->source).recalled, 1);
    rig_free(r);
}

TEST(the_words_of_a_memory_source_are_read_and_refused_with_a_sentence)
{
    static const char *const wrong[] = { "count",     "count=-1",   "bytes=1048577",
                                         "type=",     "window=0",   "lease=1",
                                         "end=maybe", "colour=red", "count=1,,bytes=1" };
    char room[400];
    sl_memory_settings settings = { 0 };
    sl_text problem;

    sl_text_init(&problem, room, sizeof room);
    EXPECT_OK(sl_memory_settings_parse(
        SL_STR("memory:count=10,bytes=48,type=t,window=5,lease=2s,fail=7,end=no"), &problem, &settings));
    EXPECT(settings.count == 10 && settings.data_bytes == 48 && settings.window == 5 && !settings.has_end);
    EXPECT(settings.lease_ns == 2 * SECOND_NS && settings.fail_after == 7);
    EXPECT_STR(settings.type, "t");
    EXPECT_OK(sl_memory_settings_parse(SL_STR("memory:count=1"), &problem, &settings));
    EXPECT(settings.has_end);
    EXPECT_OK(sl_memory_settings_parse(SL_STR("memory:"), &problem, &settings));
    EXPECT_EQ(problem.bytes, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sl_text_init(&problem, room, sizeof room);
        EXPECT_ERR(sl_memory_settings_parse(sl_str_from(wrong[i]), &problem, &settings), SL_ERR_INVALID);
        EXPECT(problem.bytes > 40 && !problem.cut && room[problem.bytes - 1] == '.');
    }
}

/* A delivery, a record and a job are taken for a message; the memory is out from each of them on. */
TEST(messages_for_which_there_was_no_memory_come_when_there_is_some_again)
{
    for (size_t fail_at = 1; fail_at <= 3; fail_at++) {
        memory_rig *const r = rig_new(&(sl_memory_settings){ .count = 2, .window = 10, .has_end = true });

        start(r);
        scarce_begin((scarce_plan){ .fail_at = fail_at, .stays_out = true });
        turns(r, 10);
        EXPECT(scarce_end(NULL));
        EXPECT_EQ(r->offers, 0);
        EXPECT_EQ(r->fails, 0); /* it is not at its end either */
        wait_for(r, &r->offers, 2);
        EXPECT_EQ(r->jobs[0]->message.revision, 1);
        EXPECT_EQ(r->jobs[0]->message.attempt, 1);
        EXPECT_EQ(r->jobs[1]->message.revision, 2);
        rig_free(r);
    }
}
