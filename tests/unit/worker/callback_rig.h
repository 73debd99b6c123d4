/* tests/unit/worker/callback_rig.h — the handler that calls a C function, without a worker. "The work has begun", "it may go on" and the
 * like are events under one lock; the loop is turned by the test, and waits only for what must come. */
#ifndef SL_TESTS_CALLBACK_RIG_H
#define SL_TESTS_CALLBACK_RIG_H

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

static inline void call_on_finished(void *ctx, sl_job *job, const sl_result *result)
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

static inline void call_on_progress(void *ctx, sl_job *job)
{
    (void)job;
    ((call_rig *)ctx)->progress++;
}

static inline void call_on_closed(void *ctx)
{
    ((call_rig *)ctx)->closed++;
}

static inline void call_on_wake(void *ctx)
{
    ((call_rig *)ctx)->wakes++;
}

static inline void call_on_turn_end(void *ctx)
{
    call_rig *const rig = ctx;

    if (rig->handler != NULL)
        rig->handler->class->turn_end(rig->handler);
}

static inline void call_log(void *ctx, const char *line, size_t bytes)
{
    call_rig *const rig = ctx;

    (void)bytes;
    strncat(rig->log_text, line, sizeof rig->log_text - strlen(rig->log_text) - 1);
}

static inline void call_open(call_rig *rig, sl_worker_fn *work, uint32_t threads)
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
                                            .log = &rig->log };
    EXPECT_OK(sl_callback_new(rig->loop, &rig->settings, &rig->handler));
    rig->handler->owner = &owner;
    rig->handler->owner_ctx = rig;
}

static inline void call_free_within(call_rig *rig, uint64_t limit_ns)
{
    sl_handler *const handler = rig->handler;

    rig->handler = NULL;
    handler->class->free(handler, sl_clock_mono_ns(sl_loop_stopwatch()) + limit_ns);
}

static inline void call_free_handler(call_rig *rig)
{
    call_free_within(rig, UINT64_C(20000000000));
}

static inline void call_done(call_rig *rig)
{
    if (rig->handler != NULL)
        call_free_handler(rig);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        sl_job_free(rig->jobs[i]);
    sl_loop_free(rig->loop);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

static inline sl_job *call_run(call_rig *rig, size_t number)
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
static inline sl_job *call_now(call_rig *rig, size_t number)
{
    sl_job *const job = call_run(rig, number);

    sl_loop_turn(rig->loop, false);
    return job;
}

static inline void turn_until(call_rig *rig, const size_t *number, size_t wanted)
{
    for (int i = 0; i < CALL_TURNS_MAX && *number < wanted; i++)
        sl_loop_turn(rig->loop, true);
    EXPECT_EQ(*number, wanted);
}

static inline void note_begun(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->begun++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static inline void await_go(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    while (!rig->may_go)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static inline void go(call_rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->may_go = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static inline void await_number(call_rig *rig, const size_t *number, size_t wanted)
{
    pthread_mutex_lock(&rig->lock);
    while (*number < wanted)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

/* --- functions --- */

static inline sl_worker_result later(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    rig->later[sl_ctx_revision(ctx)] = ctx;
    note_begun(rig);
    return SL_WORKER_LATER;
}

static inline sl_worker_result count_and_end(void *user, sl_ctx *ctx)
{
    (void)ctx;
    note_begun(user);
    return SL_WORKER_DONE;
}

#endif
