/* The handler that calls a C function. "The work has begun", "it may go on" and the like are events under one lock; the loop is turned by
 * the test, and waits only for what must come. */
#include "test.h"

#include "worker/callback_handler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    CALL_JOBS_MAX = 200,
    CALL_TURNS_MAX = 100000
};

typedef struct call_rig {
    sl_loop *loop;
    sl_handler *handler;
    sl_callback_settings settings;
    sl_logger log;
    char log_text[2048];
    size_t wakes, finished, progress, closed;
    sl_result results[CALL_JOBS_MAX]; /* by revision */
    char reasons[CALL_JOBS_MAX][SL_RESULT_REASON_BYTES_MAX + 1];
    pthread_t thread; /* of the loop */
    sl_job *jobs[CALL_JOBS_MAX];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool may_go;
    size_t begun, returned;
    sl_ctx *later[CALL_JOBS_MAX];
    char seen[256];
    atomic_int abort_calls;
} call_rig;

static void call_on_finished(void *ctx, sl_job *job, const sl_result *result)
{
    call_rig *const rig = ctx;
    const size_t number = (size_t)job->message.revision;

    EXPECT(pthread_equal(rig->thread, pthread_self()));
    EXPECT(rig->jobs[number] == job);
    rig->results[number] = *result;
    memcpy(rig->reasons[number], result->reason.bytes == 0 ? "" : result->reason.data, result->reason.bytes);
    rig->reasons[number][result->reason.bytes] = '\0';
    rig->finished++;
    rig->jobs[number] = NULL;
    memset((char *)(job + 1), '?', job->memory_bytes - sizeof *job); /* whoever still reads it, sees that */
    sl_job_free(job);
}

static void call_on_progress(void *ctx, sl_job *job)
{
    (void)job;
    ((call_rig *)ctx)->progress++;
}

static void call_on_closed(void *ctx)
{
    ((call_rig *)ctx)->closed++;
}

static void call_on_wake(void *ctx)
{
    ((call_rig *)ctx)->wakes++;
}

static void call_on_turn_end(void *ctx)
{
    call_rig *const rig = ctx;

    if (rig->handler != NULL)
        rig->handler->class->turn_end(rig->handler);
}

static void call_log(void *ctx, const char *line, size_t bytes)
{
    call_rig *const rig = ctx;

    (void)bytes;
    strncat(rig->log_text, line, sizeof rig->log_text - strlen(rig->log_text) - 1);
}

static void call_open(call_rig *rig, sl_worker_fn *work, uint32_t threads)
{
    static const sl_handler_owner owner = { call_on_finished, call_on_progress, call_on_closed };
    static const sl_loop_handler loop_handler = { .on_turn_end = call_on_turn_end, .on_wake = call_on_wake };

    memset(rig, 0, sizeof *rig);
    rig->thread = pthread_self();
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    EXPECT_OK(sl_loop_new(NULL, &loop_handler, rig, &rig->loop));
    rig->log = (sl_logger){ .clock = sl_loop_clock(rig->loop), .sink = call_log, .sink_ctx = rig };
    rig->settings = (sl_callback_settings){ .work = work,
                                            .user = rig,
                                            .slots = CALL_JOBS_MAX,
                                            .threads = threads,
                                            .name = "billing",
                                            .join_ns = UINT64_C(20000000000),
                                            .log = &rig->log };
    EXPECT_OK(sl_callback_new(rig->loop, &rig->settings, &rig->handler));
    rig->handler->owner = &owner;
    rig->handler->owner_ctx = rig;
}

static void call_free_handler(call_rig *rig)
{
    sl_handler *const handler = rig->handler;

    rig->handler = NULL;
    handler->class->free(handler);
}

static void call_done(call_rig *rig)
{
    if (rig->handler != NULL)
        call_free_handler(rig);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        sl_job_free(rig->jobs[i]);
    sl_loop_free(rig->loop);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

static sl_job *call_run(call_rig *rig, size_t number)
{
    const sl_job_message message = { .revision = number,
                                     .attempt = 3,
                                     .token = 77,
                                     .created_ns = 5,
                                     .id = { .bytes = { 1, 2, 3 } },
                                     .stream = SL_STR("orders"),
                                     .type = SL_STR("placed"),
                                     .data = SL_STR("{}"),
                                     .metadata = SL_STR("m"),
                                     .group = SL_STR("billing"),
                                     .content_type = SL_STR("application/json") };
    sl_job *const job = sl_job_new(&message);

    EXPECT(job != NULL);
    job->until_ns = UINT64_MAX;
    rig->jobs[number] = job;
    rig->handler->class->run(rig->handler, job);
    return job;
}

/* The same to the end of the next turn, in which a function in the loop's thread is called. */
static sl_job *call_now(call_rig *rig, size_t number)
{
    sl_job *const job = call_run(rig, number);

    sl_loop_turn(rig->loop, false);
    return job;
}

static void turn_until(call_rig *rig, const size_t *number, size_t wanted)
{
    for (int i = 0; i < CALL_TURNS_MAX && *number < wanted; i++)
        sl_loop_turn(rig->loop, true);
    EXPECT_EQ(*number, wanted);
}

static void note_begun(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->begun++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void await_go(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    while (!rig->may_go)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static void go(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->may_go = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void await_number(call_rig *rig, const size_t *number, size_t wanted)
{
    pthread_mutex_lock(&rig->lock);
    while (*number < wanted)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

/* --- in the loop's thread --- */

static sl_worker_result result_by_number(void *user, sl_ctx *ctx)
{
    (void)user;
    if (sl_ctx_revision(ctx) < 8)
        sl_ctx_set_reason(ctx, "because");
    sl_ctx_set_retry_after_ms(ctx, 2000);
    return (sl_worker_result)(sl_ctx_revision(ctx) % 8);
}

TEST(each_result_of_a_function_is_one_of_a_handler)
{
    const struct {
        sl_result_kind kind;
        bool is_fault;
        uint64_t retry_after_ns;
        const char *reason;
    } rows[] = { [SL_WORKER_DONE] = { SL_RESULT_DONE, false, 0, "" },
                 [SL_WORKER_RETRY] = { SL_RESULT_RETRY, true, 2000000000, "because" },
                 [SL_WORKER_FAILED] = { SL_RESULT_FAILED, true, 2000000000, "because" },
                 [SL_WORKER_PARK] = { SL_RESULT_PARK, false, 0, "because" },
                 [SL_WORKER_STOPPED] = { SL_RESULT_FAILED, true, 2000000000, "because" } };
    call_rig rig;

    call_open(&rig, result_by_number, 0);
    for (size_t i = 0; i <= SL_WORKER_STOPPED; i++) {
        call_now(&rig, i);
        EXPECT_EQ(rig.results[i].kind, rows[i].kind);
        EXPECT_EQ(rig.results[i].is_fault, rows[i].is_fault);
        EXPECT_EQ(rig.results[i].retry_after_ns, rows[i].retry_after_ns);
        EXPECT_STR(rig.reasons[i], rows[i].reason);
    }
    call_now(&rig, 8 + SL_WORKER_STOPPED); /* without a reason of its own */
    EXPECT_STR(rig.reasons[12], "the function says that it was stopped, but nobody had asked it to");
    call_now(&rig, 7);
    EXPECT_EQ(rig.results[7].kind, SL_RESULT_FAILED);
    EXPECT_EQ(rig.finished, 7);
    call_done(&rig);
}

static sl_worker_result look(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    snprintf(rig->seen, sizeof rig->seen, "%d %d %d %d %s %s %s %s %s %s %d", sl_ctx_id(ctx).bytes[1],
             (int)sl_ctx_token(ctx), (int)sl_ctx_attempt(ctx), (int)sl_ctx_created_ns(ctx),
             sl_ctx_stream(ctx).data, sl_ctx_type(ctx).data, sl_ctx_content_type(ctx).data,
             sl_ctx_data(ctx).data, sl_ctx_metadata(ctx).data, sl_ctx_group(ctx).data,
             sl_ctx_remaining_ms(ctx) == INT64_MAX);
    return SL_WORKER_DONE;
}

TEST(a_context_shows_the_whole_message)
{
    call_rig rig;

    call_open(&rig, look, 0);
    call_now(&rig, 0);
    EXPECT_STR(rig.seen, "2 77 3 5 orders placed application/json {} m billing 1");
    call_done(&rig);
}

static sl_worker_result later(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    rig->later[sl_ctx_revision(ctx)] = ctx;
    note_begun(rig);
    return SL_WORKER_LATER;
}

static void *finish_both(void *arg)
{
    call_rig *const rig = arg;

    sl_ctx_set_reason(rig->later[0], "elsewhere");
    sl_ctx_finish(rig->later[0], SL_WORKER_PARK);
    sl_ctx_finish(rig->later[1], SL_WORKER_DONE);
    return NULL;
}

TEST(work_that_goes_on_is_finished_from_any_thread)
{
    call_rig rig;
    pthread_t thread;

    call_open(&rig, later, 0);
    call_now(&rig, 0);
    call_now(&rig, 1);
    EXPECT_EQ(rig.finished, 0);
    EXPECT_EQ(pthread_create(&thread, NULL, finish_both, &rig), 0);
    turn_until(&rig, &rig.finished, 2);
    pthread_join(thread, NULL);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    EXPECT_STR(rig.reasons[0], "elsewhere");
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    call_done(&rig);
}

TEST(a_drain_shortens_the_time_that_is_left_and_an_abort_ends_it_S2_20_B7)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, later, 0);
    job = call_now(&rig, 0);
    EXPECT_EQ(sl_ctx_remaining_ms(rig.later[0]), INT64_MAX);
    rig.handler->class->draining(rig.handler, sl_loop_now_ns(rig.loop) + UINT64_C(60000000000));
    EXPECT(sl_ctx_remaining_ms(rig.later[0]) <= 60000);
    EXPECT(sl_ctx_remaining_ms(rig.later[0]) > 30000);
    call_now(&rig, 1); /* also of what begins in the drain */
    EXPECT(sl_ctx_remaining_ms(rig.later[1]) <= 60000);
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 0);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 1);
    EXPECT_EQ(sl_ctx_remaining_ms(rig.later[0]), 0);
    sl_ctx_finish(rig.later[0], SL_WORKER_STOPPED);
    sl_ctx_finish(rig.later[1], SL_WORKER_DONE);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    call_done(&rig);
}

static void count_abort(void *arg)
{
    atomic_fetch_add(&((call_rig *)arg)->abort_calls, 1);
}

TEST(an_abort_function_is_called_once_and_at_once_when_it_comes_late)
{
    call_rig rig;
    sl_job *first, *second;

    call_open(&rig, later, 0);
    first = call_now(&rig, 0);
    second = call_now(&rig, 1);
    sl_ctx_on_abort(rig.later[0], count_abort, &rig);
    rig.handler->class->abort(rig.handler, first);
    rig.handler->class->abort(rig.handler, first);
    EXPECT_EQ(rig.abort_calls, 1);
    rig.handler->class->abort(rig.handler, second);
    sl_ctx_on_abort(rig.later[1], count_abort, &rig);
    EXPECT_EQ(rig.abort_calls, 2);
    sl_ctx_on_abort(rig.later[1], NULL, NULL);
    sl_ctx_finish(rig.later[0], SL_WORKER_DONE); /* the work may still have come to its end */
    sl_ctx_finish(rig.later[1], SL_WORKER_STOPPED);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_DONE);
    call_done(&rig);
}

static sl_worker_result finish_twice(void *user, sl_ctx *ctx)
{
    (void)user;
    sl_ctx_finish(ctx, SL_WORKER_PARK);
    return SL_WORKER_DONE;
}

TEST(of_two_results_the_first_counts)
{
    call_rig rig;

    call_open(&rig, finish_twice, 0);
    call_now(&rig, 0);
    turn_until(&rig, &rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    call_done(&rig);
}

TEST(killed_work_that_goes_on_elsewhere_is_disowned_and_keeps_its_message)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, later, 0);
    job = call_now(&rig, 0);
    rig.handler->class->kill(rig.handler, job); /* the job is freed by this */
    EXPECT_EQ(rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    EXPECT_STR(sl_ctx_data(rig.later[0]).data, "{}");
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 1);
    call_free_handler(&rig);
    EXPECT_STR(sl_ctx_stream(rig.later[0]).data, "orders");
    sl_ctx_progress(rig.later[0]);
    sl_ctx_finish(rig.later[0], SL_WORKER_DONE); /* dropped; the last one frees everything */
    EXPECT_EQ(rig.finished, 1);
    call_done(&rig);
}

static sl_worker_result count_and_end(void *user, sl_ctx *ctx)
{
    (void)ctx;
    note_begun(user);
    return SL_WORKER_DONE;
}

/* What the source says leaves at the end of the turn. */
TEST(nothing_is_called_in_the_turn_in_which_its_begin_is_told_B2_B6)
{
    for (uint32_t threads = 0; threads <= 2; threads += 2) {
        call_rig rig;
        sl_job *job;

        call_open(&rig, count_and_end, threads);
        job = call_run(&rig, 0);
        rig.handler->class->turn_end(rig.handler);
        EXPECT_EQ(rig.finished, 0);
        rig.handler->class->abort(rig.handler, job);
        EXPECT_EQ(rig.results[0].kind, SL_RESULT_UNBEGUN);
        call_run(&rig, 1);
        turn_until(&rig, &rig.finished, 2);
        EXPECT_EQ(rig.begun, 1);
        call_done(&rig);
    }
}

TEST(after_a_start_few_begin_together_so_that_a_message_that_kills_its_process_dies_alone_B6)
{
    call_rig rig;

    call_open(&rig, count_and_end, 0);
    for (size_t batch = 1; batch <= 4; batch *= 2) {
        for (size_t i = 0; i < batch; i++, call_run(&rig, batch + i))
            EXPECT(rig.handler->class->takes(rig.handler));
        EXPECT(!rig.handler->class->takes(rig.handler));
        sl_loop_turn(rig.loop, false);
    }
    EXPECT_EQ(rig.finished, 7);
    call_done(&rig);
}

static sl_worker_result compute_for_2_ms(void *user, sl_ctx *ctx)
{
    const sl_clock *const clock = sl_loop_stopwatch();
    const uint64_t until_ns = sl_clock_mono_ns(clock) + 2000000;

    (void)ctx;
    while (sl_clock_mono_ns(clock) < until_ns)
        ;
    note_begun(user);
    return SL_WORKER_DONE;
}

TEST(functions_in_the_loops_thread_let_others_have_a_turn_B8)
{
    call_rig rig;

    call_open(&rig, compute_for_2_ms, 0);
    for (size_t i = 0; i < 10; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false);
    EXPECT(rig.begun >= 1 && rig.begun <= 3);
    EXPECT(!rig.handler->class->takes(rig.handler)); /* enough waits for the next turn */
    turn_until(&rig, &rig.finished, 10);
    call_done(&rig);
}

/* --- in threads --- */

TEST(threads_do_all_jobs_and_results_come_in_the_thread_of_the_loop)
{
    call_rig rig;

    call_open(&rig, count_and_end, 4);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        call_run(&rig, i);
    turn_until(&rig, &rig.finished, CALL_JOBS_MAX);
    EXPECT_EQ(rig.begun, CALL_JOBS_MAX);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_done(&rig);
}

TEST(many_results_wake_the_loop_once)
{
    call_rig rig;
    size_t before;

    call_open(&rig, later, 2);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false); /* hands them over */
    await_number(&rig, &rig.begun, CALL_JOBS_MAX);
    before = rig.wakes;
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        sl_ctx_finish(rig.later[i], SL_WORKER_DONE);
    turn_until(&rig, &rig.finished, CALL_JOBS_MAX);
    EXPECT_EQ(rig.wakes, before + 1);
    call_done(&rig);
}

static sl_worker_result wait_for_go(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    note_begun(rig);
    await_go(rig);
    pthread_mutex_lock(&rig->lock); /* there may be two threads here */
    snprintf(rig->seen, sizeof rig->seen, "%s %d", sl_ctx_data(ctx).data, sl_ctx_is_aborted(ctx));
    rig->returned++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_WORKER_DONE;
}

TEST(a_job_that_no_thread_has_taken_ends_at_once_when_it_is_aborted_or_killed)
{
    call_rig rig;
    sl_job *jobs[4];

    call_open(&rig, wait_for_go, 1);
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    jobs[0] = call_run(&rig, 1);
    jobs[1] = call_run(&rig, 2);
    sl_loop_turn(rig.loop, false); /* queued */
    jobs[2] = call_run(&rig, 3);
    jobs[3] = call_run(&rig, 4); /* pending */
    rig.handler->class->abort(rig.handler, jobs[0]);
    rig.handler->class->kill(rig.handler, jobs[1]);
    rig.handler->class->abort(rig.handler, jobs[2]);
    rig.handler->class->kill(rig.handler, jobs[3]);
    EXPECT_EQ(rig.finished, 4);
    for (int i = 1; i <= 4; i++)
        EXPECT_EQ(rig.results[i].kind, SL_RESULT_UNBEGUN);
    go(&rig);
    turn_until(&rig, &rig.finished, 5);
    EXPECT_EQ(rig.begun, 1);
    call_done(&rig);
}

TEST(a_thread_that_does_not_return_is_disowned_and_replaced_and_its_late_result_is_dropped)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, wait_for_go, 1);
    job = call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(rig.finished, 0);
    rig.handler->class->kill(rig.handler, job);
    EXPECT_EQ(rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    call_run(&rig, 1); /* there is a thread for it */
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 2);
    go(&rig);
    turn_until(&rig, &rig.finished, 2);
    await_number(&rig, &rig.returned, 2);
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_done(&rig);
    EXPECT_EQ(rig.finished, 2);
}

TEST(closing_does_not_wait_for_a_stuck_thread_and_free_waits_not_longer_than_it_says_S3_24)
{
    call_rig rig;

    call_open(&rig, wait_for_go, 2);
    call_free_handler(&rig);
    rig.settings.join_ns = 1000000;
    EXPECT_OK(sl_callback_new(rig.loop, &rig.settings, &rig.handler));
    rig.handler->owner = &(const sl_handler_owner){ call_on_finished, call_on_progress, call_on_closed };
    rig.handler->owner_ctx = &rig;
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->kill(rig.handler, rig.jobs[0]);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_free_handler(&rig);
    EXPECT(strstr(rig.log_text, "WARN") != NULL);
    EXPECT(strstr(rig.log_text, "thread=billing-") != NULL);
    EXPECT(strstr(rig.log_text, "limit=1ms") != NULL);
    go(&rig); /* it comes back to nobody */
    await_number(&rig, &rig.returned, 1);
    EXPECT_STR(rig.seen, "{} 1");
    EXPECT_EQ(rig.finished, 1);
    sl_loop_free(rig.loop);
}

static sl_worker_result finish_and_stay(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    sl_ctx_finish(ctx, SL_WORKER_PARK);
    note_begun(rig);
    await_go(rig);
    pthread_mutex_lock(&rig->lock);
    rig->returned++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_WORKER_DONE;
}

/* The context has gone meanwhile: into the pool, and with the handler. */
TEST(a_thread_that_comes_back_from_a_context_that_it_has_finished_touches_it_no_more)
{
    call_rig rig;

    call_open(&rig, finish_and_stay, 1);
    call_free_handler(&rig);
    rig.settings.join_ns = 1000000;
    EXPECT_OK(sl_callback_new(rig.loop, &rig.settings, &rig.handler));
    rig.handler->owner = &(const sl_handler_owner){ call_on_finished, call_on_progress, call_on_closed };
    rig.handler->owner_ctx = &rig;
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    turn_until(&rig, &rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    call_free_handler(&rig);
    go(&rig);
    await_number(&rig, &rig.returned, 1);
    EXPECT_EQ(rig.finished, 1);
    sl_loop_free(rig.loop);
}

static void wait_a_moment(void *arg)
{
    call_rig *const rig = arg;

    go(rig); /* the work may end now, but must not be over before this function is */
    for (int i = 0; i < 1000; i++)
        sched_yield();
    pthread_mutex_lock(&rig->lock);
    rig->returned = rig->begun; /* the only thread has not gone on to the next message */
    pthread_mutex_unlock(&rig->lock);
    atomic_fetch_add(&rig->abort_calls, 1);
}

static sl_worker_result end_on_abort(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    sl_ctx_on_abort(ctx, wait_a_moment, rig);
    note_begun(rig);
    await_go(rig);
    return sl_ctx_is_aborted(ctx) ? SL_WORKER_STOPPED : SL_WORKER_DONE;
}

TEST(work_is_not_over_while_its_abort_function_runs)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, end_on_abort, 1);
    job = call_run(&rig, 0);
    call_run(&rig, 1);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(rig.abort_calls, 1);
    EXPECT_EQ(rig.returned, 1);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    call_done(&rig);
}

static sl_worker_result show_progress(void *user, sl_ctx *ctx)
{
    sl_ctx_progress(ctx);
    sl_ctx_progress(ctx);
    note_begun(user);
    await_go(user);
    return SL_WORKER_DONE;
}

TEST(signs_of_life_reach_the_worker_B8)
{
    call_rig rig;

    call_open(&rig, show_progress, 1);
    call_run(&rig, 0);
    turn_until(&rig, &rig.progress, 1);
    go(&rig);
    turn_until(&rig, &rig.finished, 1);
    EXPECT_EQ(rig.progress, 1);
    call_done(&rig);
}

TEST(a_callback_without_threads_closes_at_once_and_free_works_in_the_middle_of_everything)
{
    call_rig rig;

    call_open(&rig, later, 0);
    rig.handler->class->close(rig.handler);
    EXPECT_EQ(rig.closed, 1);
    call_done(&rig);
    call_open(&rig, count_and_end, 2);
    for (size_t i = 0; i < 50; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false);
    call_free_handler(&rig);
    call_done(&rig);
}
