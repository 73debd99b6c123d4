/* Workers of the public interface, on messages in memory. Other threads and the work tell each other by events under one lock. */
#include "test.h"

#include "base/cleanup.h"

#include <sluice.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    API_PATIENCE_MS = 20000
};

typedef struct api_rig {
    sl_worker *worker;
    pthread_t thread;
    sl_worker_status status;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t begun, aborted, drains, failed;
    size_t may_fail; /* so many of those that wait for it in api_fail_when_told() */
    bool may_go;
    atomic_bool is_enough;
    atomic_size_t done;
    const char *stops_at; /* once: a line of the log with which somebody stops the worker */
    char log[8192];
} api_rig;

static void api_note(api_rig *rig, size_t *number)
{
    pthread_mutex_lock(&rig->lock);
    (*number)++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void api_log(void *user, const char *line)
{
    api_rig *const rig = user;

    if (strstr(line, " draining ") != NULL)
        api_note(rig, &rig->drains);
    if (strstr(line, " message failed, and is tried again ") != NULL)
        api_note(rig, &rig->failed);
    strncat(rig->log, line, sizeof rig->log - strlen(rig->log) - 1);
    if (rig->stops_at != NULL && strstr(line, rig->stops_at) != NULL) {
        rig->stops_at = NULL;
        sl_worker_stop(rig->worker);
    }
}

static void api_open(api_rig *rig, sl_worker_options options)
{
    char problem[SL_WORKER_PROBLEM_BYTES] = "";

    *rig = (api_rig){ 0 };
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    options.user = rig;
    options.log = api_log;
    if (sl_worker_new(&options, problem, sizeof problem, &rig->worker) != SL_WORKER_OK)
        fail_msg("%s", problem);
}

static void api_close(api_rig *rig)
{
    sl_worker_free(rig->worker);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

static void *api_run(void *arg)
{
    api_rig *const rig = arg;

    rig->status = sl_worker_run(rig->worker);
    return NULL;
}

static void api_start(api_rig *rig)
{
    EXPECT_EQ(pthread_create(&rig->thread, NULL, api_run, rig), 0);
}

static void api_await(api_rig *rig, const size_t *number, size_t wanted)
{
    pthread_mutex_lock(&rig->lock);
    while (*number < wanted)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static size_t api_count_of(api_rig *rig, const size_t *number)
{
    size_t count;

    pthread_mutex_lock(&rig->lock);
    count = *number;
    pthread_mutex_unlock(&rig->lock);
    return count;
}

static void api_go(api_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->may_go = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static sl_worker_result api_count(void *user, sl_ctx *ctx)
{
    (void)ctx;
    atomic_fetch_add(&((api_rig *)user)->done, 1);
    return SL_WORKER_DONE;
}

static sl_worker_result api_wait(void *user, sl_ctx *ctx)
{
    api_rig *const rig = user;

    api_note(rig, &rig->begun);
    pthread_mutex_lock(&rig->lock);
    while (!rig->may_go)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
    atomic_fetch_add(&rig->done, 1);
    return sl_ctx_is_aborted(ctx) ? SL_WORKER_STOPPED : SL_WORKER_DONE;
}

static void api_on_abort(void *arg)
{
    api_rig *const rig = arg;

    api_note(rig, &rig->aborted);
    api_go(rig);
}

static sl_worker_result api_until_aborted(void *user, sl_ctx *ctx)
{
    sl_ctx_on_abort(ctx, api_on_abort, user);
    return api_wait(user, ctx);
}

/* The first message is worked on until it is aborted, the others fail one by one when they are told to. */
static sl_worker_result api_fail_when_told(void *user, sl_ctx *ctx)
{
    api_rig *const rig = user;
    const size_t nth = (size_t)sl_ctx_revision(ctx) - 1; /* memory: counts from 1 */

    if (nth == 0)
        return api_until_aborted(user, ctx);
    api_note(rig, &rig->begun);
    api_await(rig, &rig->may_fail, nth);
    return SL_WORKER_FAILED;
}

TEST(a_worker_runs_to_the_end_of_its_source_and_again)
{
    for (uint32_t threads = 0; threads < 5; threads += 4) {
        api_rig rig;

        api_open(&rig, (sl_worker_options){
                           .from = "memory:count=1000,end=yes", .work = api_count, .threads = threads });
        EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
        EXPECT_EQ(rig.done, 1000);
        EXPECT_STR(sl_worker_last_report(rig.worker).reason, "finished");
        EXPECT_EQ(sl_worker_last_report(rig.worker).is_clean, 1);
        EXPECT_EQ(sl_worker_drain(rig.worker, 0, NULL),
                  SL_WORKER_OK); /* it is over, which is no stop for the next run */
        EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
        EXPECT_EQ(rig.done, 2000);
        api_close(&rig);
    }
}

TEST(a_drain_finishes_what_runs_hands_the_rest_back_and_says_so_S3_16_S4_20)
{
    sl_worker_report report;
    api_rig rig;

    api_open(&rig, (sl_worker_options){
                       .from = "memory:count=10", .work = api_wait, .threads = 2, .slots = 2, .window = 10 });
    for (int round = 0; round < 2; round++) { /* a stopped worker can be run again */
        rig.begun = 0;
        rig.may_go = false;
        api_start(&rig);
        api_await(&rig, &rig.begun, 2);
        EXPECT_EQ(sl_worker_join(rig.worker, 0), 1);
        EXPECT_EQ(sl_worker_drain(rig.worker, 0, &report), SL_WORKER_RUNNING);
        EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_RUNNING);
        api_await(&rig, &rig.drains, (size_t)round + 1); /* else two more may begin before it */
        api_go(&rig);
        EXPECT_EQ(sl_worker_drain(rig.worker, API_PATIENCE_MS, &report), SL_WORKER_OK);
        pthread_join(rig.thread, NULL);
        EXPECT_EQ(rig.status, SL_WORKER_OK);
        EXPECT_EQ(sl_worker_join(rig.worker, 0), 0);
        EXPECT_STR(report.reason, "operator");
        EXPECT_EQ(report.is_clean, 1);
        EXPECT_EQ(report.finished, 2);
        EXPECT_EQ(report.handed_back, 8);
        EXPECT_EQ(report.grace_ms, 30000);
        EXPECT_STR(report.phases[0].name, "fencing");
        EXPECT_STR(report.phases[4].end, "done");
    }
    EXPECT_EQ(rig.done, 4);
    api_close(&rig);
}

/* Results are taken in turns of the loop, and a stop is heeded at the end of one: when the second failure is told, the turn of the first one is
 * over, and with it whatever the second stop could have done. */
TEST(a_second_stop_does_not_hurry_and_stop_now_does_S3_2)
{
    sl_worker_report report;
    api_rig rig;

    api_open(&rig, (sl_worker_options){
                       .from = "memory:count=3", .work = api_fail_when_told, .threads = 3, .slots = 3 });
    api_start(&rig);
    api_await(&rig, &rig.begun, 3);
    sl_worker_stop(rig.worker);
    api_await(&rig, &rig.drains, 1);
    sl_worker_stop(rig.worker);
    for (size_t i = 1; i <= 2; i++) {
        api_note(&rig, &rig.may_fail);
        api_await(&rig, &rig.failed, i);
    }
    EXPECT_EQ(sl_worker_join(rig.worker, 0), 1);
    EXPECT_EQ(api_count_of(&rig, &rig.aborted), 0);
    sl_worker_stop_now(rig.worker);
    EXPECT_EQ(sl_worker_drain(rig.worker, API_PATIENCE_MS, &report), SL_WORKER_UNCLEAN);
    pthread_join(rig.thread, NULL);
    EXPECT_EQ(rig.aborted, 1);
    EXPECT_EQ(rig.drains, 1);
    EXPECT_EQ(report.was_cut_short, 1);
    EXPECT_EQ(report.finished, 2);
    EXPECT_EQ(report.interrupted, 1);
    api_close(&rig);
}

TEST(a_stop_that_comes_before_the_run_is_not_lost_S3_1)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=0,end=no", .work = api_count });
    sl_worker_stop(rig.worker);
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
    EXPECT_STR(sl_worker_last_report(rig.worker).reason, "operator");
    api_close(&rig);
}

static sl_worker *worker_of_the_signal;

static void on_test_signal(int number)
{
    (void)number;
    sl_worker_stop(worker_of_the_signal);
}

static sl_worker_result raise_and_drain(void *user, sl_ctx *ctx)
{
    api_rig *const rig = user;

    (void)ctx;
    raise(SIGUSR2);
    EXPECT_EQ(sl_worker_drain(rig->worker, -1, NULL), SL_WORKER_RUNNING); /* it does not wait for itself */
    EXPECT_EQ(sl_worker_join(rig->worker, -1), 1);
    atomic_fetch_add(&rig->done, 1);
    return SL_WORKER_DONE;
}

TEST(a_signal_handler_may_stop_a_worker_and_its_own_thread_never_waits_for_itself_S3_1_S3_3)
{
    struct sigaction action = { .sa_handler = on_test_signal }, before;
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=100", .work = raise_and_drain, .slots = 1 });
    worker_of_the_signal = rig.worker;
    sigaction(SIGUSR2, &action, &before);
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
    sigaction(SIGUSR2, &before, NULL);
    EXPECT(rig.done >= 1);
    EXPECT(rig.done < 100);
    api_close(&rig);
}

static sl_worker_result drain_from_inside(void *user, sl_ctx *ctx)
{
    api_rig *const rig = user;

    (void)ctx;
    EXPECT_EQ(sl_worker_drain(rig->worker, -1, NULL), SL_WORKER_RUNNING);
    EXPECT_EQ(sl_worker_join(rig->worker, -1), 1);
    return SL_WORKER_DONE;
}

/* A drain that waited for the function that asks for it would be over when its time is. */
TEST(a_function_in_a_thread_of_the_worker_never_waits_for_itself_S3_17)
{
    api_rig rig;

    api_open(&rig,
             (sl_worker_options){ .from = "memory:count=100", .work = drain_from_inside, .threads = 2 });
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
    EXPECT_EQ(sl_worker_last_report(rig.worker).interrupted, 0);
    api_close(&rig);
}

TEST(freeing_a_worker_that_runs_drains_it)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=1", .work = api_wait, .threads = 1 });
    api_start(&rig);
    api_await(&rig, &rig.begun, 1);
    api_go(&rig);
    sl_worker_free(rig.worker);
    pthread_join(rig.thread, NULL);
    EXPECT_EQ(rig.status, SL_WORKER_OK);
    EXPECT_EQ(rig.done, 1);
    EXPECT(strstr(rig.log, "INFO") != NULL);
}

static void *api_run_again_and_again(void *arg)
{
    api_rig *const rig = arg;

    while (!atomic_load(&rig->is_enough))
        (void)sl_worker_run(rig->worker);
    return NULL;
}

/* Mostly it runs again before this thread has noticed the end. */
TEST(a_drain_is_over_when_the_worker_was_run_again_at_once_S4_20)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=1", .work = api_count });
    EXPECT_EQ(pthread_create(&rig.thread, NULL, api_run_again_and_again, &rig), 0);
    for (size_t round = 0; round < 100; round++) {
        const size_t before = atomic_load(&rig.done);

        while (atomic_load(&rig.done) == before) /* a run that has done its only message waits for more */
            sched_yield();
        EXPECT_EQ(sl_worker_drain(rig.worker, API_PATIENCE_MS, NULL), SL_WORKER_OK);
    }
    atomic_store(&rig.is_enough, true);
    sl_worker_stop(rig.worker);
    pthread_join(rig.thread, NULL);
    api_close(&rig);
}

static sl_worker_result stop_after_one(void *user, sl_ctx *ctx)
{
    sl_worker_stop(((api_rig *)user)->worker);
    return api_count(user, ctx);
}

/* The next tick would come in an hour: the stop does not wait for it. */
TEST(a_worker_on_a_schedule_stops_between_two_ticks_S3_4)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "schedule:every=1h,at-start=yes", .work = stop_after_one });
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_OK);
    EXPECT_EQ(rig.done, 1);
    api_close(&rig);
}

TEST(a_source_that_is_lost_ends_the_run_and_says_why)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=10,fail=3", .work = api_count });
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_LOST);
    EXPECT(sl_worker_problem(rig.worker)[0] != '\0');
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_LOST); /* each run begins anew */
    api_close(&rig);
}

/* As somebody has it who runs again for as long as the source is only lost: the signal comes while a run ends for that reason. */
TEST(a_stop_that_comes_while_a_run_fails_ends_the_next_one_S3_1)
{
    api_rig rig;

    api_open(&rig, (sl_worker_options){ .from = "memory:count=10,fail=3", .work = api_count });
    rig.stops_at = "the source has failed";
    EXPECT_EQ(sl_worker_run(rig.worker), SL_WORKER_LOST);
    EXPECT_STR(sl_worker_last_report(rig.worker).reason, "failed");
    (void)sl_worker_run(rig.worker);
    EXPECT_STR(sl_worker_last_report(rig.worker).reason, "operator");
    (void)sl_worker_run(rig.worker);
    EXPECT_STR(sl_worker_last_report(rig.worker).reason, "failed"); /* it was for one run */
    api_close(&rig);
}

TEST(wrong_options_are_refused_with_a_sentence)
{
    const struct {
        sl_worker_options options;
        const char *part;
    } rows[] = {
        { { .from = "memory:" }, "function" },
        { { .work = api_count }, "address of the source is missing" },
        { { .work = api_count, .from = "gopher://x" }, "" },
        { { .work = api_count, .from = "memory:count=x" }, "" },
        { { .work = api_count, .from = "schedule:every=x" }, "" },
        { { .work = api_count, .from = "memory:", .slots = 5000 }, "slots" },
        { { .work = api_count, .from = "memory:", .threads = 1000 }, "threads" },
        { { .work = api_count, .from = "memory:", .slots = 10, .window = 5 }, "window" },
        { { .work = api_count, .from = "memory:", .grace_ms = 100 }, "grace" },
        { { .work = api_count, .from = "memory:", .key = "nothing" }, "data.NAME" },
        { { .work = api_count, .from = "memory:", .retry_first_ms = 10, .retry_max_ms = 5 },
          "retry_first_ms" },
        { { .work = api_count, .from = "memory:", .timeout_ms = 10, .hold_max_ms = 5 }, "hold_max_ms" },
        { { .work = api_count, .from = "memory:", .label_count = 9 }, "labels" },
        { { .work = api_count, .from = "memory:", .ack_file = "x" }, "ack file" },
        { { .work = api_count, .from = "memory:", .name = "\xff" }, "name" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        char problem[SL_WORKER_PROBLEM_BYTES] = "";
        sl_worker *worker = NULL;

        EXPECT_EQ(sl_worker_new(&rows[i].options, problem, sizeof problem, &worker), SL_WORKER_INVALID);
        if (problem[0] == '\0' || strstr(problem, rows[i].part) == NULL)
            fail_msg("row %zu says: %s", i, problem);
        EXPECT(worker == NULL);
    }
    sl_worker_free(NULL);
}
