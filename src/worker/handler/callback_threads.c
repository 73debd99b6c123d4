/* worker/handler/callback_threads.c — the threads that work: one lock for each job, which hands the last result over and takes the
 * next job. See callback_inside.h. */
#include "worker/handler/callback_inside.h"

#include "base/cleanup.h"

#include <signal.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    THREAD_NAME_BYTES = 16, /* what Linux allows, with the closing zero */
    THREAD_NUMBER_BYTES = 4
};

/* More than are wanted, because some that were stuck came back. */
static bool is_surplus(const callback *cb)
{
    return cb->alive - cb->stuck > cb->settings.threads;
}

static sl_ctx *take(callback *cb)
{
    sl_ctx *ctx;

    while (sl_list_empty(&cb->queued) && !cb->is_closing && !is_surplus(cb)) {
        cb->idle++;
        pthread_cond_wait(&cb->work, &cb->lock);
        cb->idle--;
    }
    if (sl_list_empty(&cb->queued) || is_surplus(cb))
        return NULL;
    ctx = SL_CONTAINER_OF(sl_list_first(&cb->queued), sl_ctx, line);
    sl_list_remove(&ctx->line);
    ctx->state = CTX_WORKING;
    return ctx;
}

/* Back from foreign code, which may have finished the context itself, so that it is somebody else's by now, or gone. */
static void give(callback_thread *thread, sl_worker_result result)
{
    callback *const cb = thread->callback;
    sl_ctx *ctx;

    while (result != SL_WORKER_LATER && thread->ctx != NULL && thread->ctx->is_calling)
        pthread_cond_wait(&cb->called, &cb->lock);
    ctx = SL_TAKE_PTR(thread->ctx);
    if (thread->is_stuck) {
        thread->is_stuck = false;
        cb->stuck--;
    }
    if (result == SL_WORKER_LATER || ctx == NULL)
        return; /* NULL: it was finished, and has a result too: only the first counts */
    if (ctx->state == CTX_DISOWNED)
        cb->holders--; /* the thread holds it as well, so this is not the last */
    callback_post(ctx, result);
}

static void work_one(callback_thread *thread, sl_ctx *ctx)
{
    callback *const cb = thread->callback;
    sl_worker_result result;

    thread->ctx = ctx;
    pthread_mutex_unlock(&cb->lock);
    result = cb->settings.work(cb->settings.user, ctx);
    pthread_mutex_lock(&cb->lock);
    give(thread, result);
}

static void thread_name(const callback_thread *thread, sl_text *text)
{
    sl_text_add(text, thread->callback->name);
    sl_text_add_char(text, '-');
    sl_text_add_u64(text, thread->number);
}

/* The system's name is short: the number must not be cut. */
static void name_thread(const callback_thread *thread)
{
    char name[THREAD_NAME_BYTES];
    sl_text text;

    sl_text_init(&text, name, sizeof name - THREAD_NUMBER_BYTES);
    sl_text_add(&text, thread->callback->name);
    text.capacity = sizeof name;
    text.cut = false;
    sl_text_add_char(&text, '-');
    sl_text_add_u64(&text, thread->number);
    (void)pthread_setname_np(pthread_self(), name);
}

static void *thread_main(void *arg)
{
    callback_thread *const thread = arg;
    callback *const cb = thread->callback;
    sl_ctx *ctx;

    name_thread(thread);
    pthread_mutex_lock(&cb->lock);
    while ((ctx = take(cb)) != NULL)
        work_one(thread, ctx);
    thread->has_ended = true;
    cb->alive--;
    if (cb->is_closing)
        callback_wake(cb);
    pthread_cond_broadcast(&cb->ended);
    callback_unlock_and_drop(cb, 1);
    return NULL;
}

/* A place whose thread is over, or a new one. NULL: as many are stuck as are allowed to be. */
static callback_thread *free_place(callback *cb)
{
    callback_threads_join(cb);
    for (uint32_t i = 0; i < cb->thread_count; i++)
        if (!cb->threads[i].is_on)
            return &cb->threads[i];
    if (cb->thread_count == cb->settings.threads + SL_CALLBACK_STUCK_MAX)
        return NULL;
    return &cb->threads[cb->thread_count++];
}

/* Signals are for the threads of the program, not for ours. */
bool callback_thread_add(callback *cb)
{
    callback_thread *const thread = free_place(cb);
    sigset_t all, old;

    if (thread == NULL)
        return false;
    *thread = (callback_thread){ .callback = cb, .number = (uint32_t)(thread - cb->threads) + 1 };
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    thread->is_on = pthread_create(&thread->thread, NULL, thread_main, thread) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (thread->is_on) {
        cb->alive++;
        cb->holders++;
    }
    return thread->is_on;
}

void callback_thread_stuck(callback *cb, const sl_ctx *ctx)
{
    for (uint32_t i = 0; i < cb->thread_count; i++) {
        callback_thread *const thread = &cb->threads[i];

        if (thread->ctx != ctx || thread->is_stuck)
            continue;
        thread->is_stuck = true;
        cb->stuck++;
        if (!cb->is_closing)
            (void)callback_thread_add(cb); /* without it the others have more to do */
        return;
    }
}

void callback_thread_forget(callback *cb, const sl_ctx *ctx)
{
    for (uint32_t i = 0; i < cb->thread_count; i++)
        if (cb->threads[i].ctx == ctx)
            cb->threads[i].ctx = NULL;
}

/* Those have given the lock back for the last time, so this takes no time. */
void callback_threads_join(callback *cb)
{
    for (uint32_t i = 0; i < cb->thread_count; i++) {
        callback_thread *const thread = &cb->threads[i];

        if (!thread->is_on || !thread->has_ended)
            continue;
        (void)pthread_join(thread->thread, NULL);
        thread->is_on = false;
    }
}

/* --- the end --- */

static void await_threads(callback *cb, uint64_t until_ns)
{
    const struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
                                    .tv_nsec = (long)(until_ns % SECOND_NS) };
    int late = 0;

    while (cb->alive > 0 && late == 0)
        late = pthread_cond_timedwait(&cb->ended, &cb->lock, &until);
}

static void let_go(const callback *cb, callback_thread *thread, uint64_t waited_ns)
{
    char name[CALLBACK_NAME_BYTES + 16];
    sl_text text;

    sl_text_init(&text, name, sizeof name);
    thread_name(thread, &text);
    sl_log(cb->settings.log, SL_LOG_WARN, "a thread did not come back from its work and is left behind",
           SL_LOG_STR("thread", name), SL_LOG_DURATION("limit", waited_ns));
    (void)pthread_detach(thread->thread);
    thread->is_on = false;
}

/* What a stuck thread needs stays where it is, on purpose: the thread frees it if it ever comes back, and if not, it is less than
 * what the thread itself takes. Waiting for it without an end would keep the whole process from ending (S3.24). */
void callback_free_threads(callback *cb, uint64_t until_ns)
{
    const uint64_t begin_ns = sl_clock_mono_ns(sl_loop_stopwatch());

    pthread_mutex_lock(&cb->lock);
    pthread_cond_broadcast(&cb->work);
    await_threads(cb, until_ns);
    callback_threads_join(cb);
    for (uint32_t i = 0; i < cb->thread_count; i++)
        if (cb->threads[i].is_on)
            let_go(cb, &cb->threads[i], until_ns > begin_ns ? until_ns - begin_ns : 0);
    pthread_mutex_unlock(&cb->lock);
}
