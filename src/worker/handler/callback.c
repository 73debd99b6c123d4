/* worker/handler/callback.c — a C function as a handler, seen from the loop's thread. See callback_inside.h. */
#include "worker/handler/callback_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

enum {
    CALLS_MS = 5 /* of functions in the loop's thread, in one turn; the last of them may be longer */
};

static callback *callback_of(sl_handler *handler)
{
    return SL_CONTAINER_OF(handler, callback, handler);
}

/* --- contexts --- */

static sl_ctx *ctx_new(callback *cb)
{
    sl_ctx *const ctx = sl_alloc_take(&sl_alloc_default, sizeof *ctx);

    if (ctx == NULL)
        return NULL;
    *ctx = (sl_ctx){ .callback = cb };
    sl_list_init(&ctx->line);
    sl_list_init(&ctx->running);
    return ctx;
}

void ctx_free(sl_ctx *ctx)
{
    sl_alloc_give(&sl_alloc_default, ctx->memory, ctx->memory_bytes);
    sl_alloc_give(&sl_alloc_default, ctx, sizeof *ctx);
}

static sl_ctx *pool_take(callback *cb)
{
    sl_ctx *ctx;

    if (sl_list_empty(&cb->pool))
        return ctx_new(cb);
    ctx = SL_CONTAINER_OF(sl_list_last(&cb->pool), sl_ctx, line); /* the last one used is the warmest */
    sl_list_remove(&ctx->line);
    return ctx;
}

/* There are never more in it than jobs ran at the same time. One that held a large message does not keep its memory. */
static void pool_give(callback *cb, sl_ctx *ctx)
{
    sl_list_remove(&ctx->running);
    if (ctx->memory_bytes > CTX_MEMORY_KEPT_BYTES_MAX) {
        sl_alloc_give(&sl_alloc_default, ctx->memory, ctx->memory_bytes);
        ctx->memory = NULL;
        ctx->memory_bytes = 0;
    }
    ctx->job = NULL;
    ctx->state = CTX_POOLED;
    sl_list_push_back(&cb->pool, &ctx->line);
}

static bool reserve(sl_ctx *ctx, size_t bytes)
{
    char *const memory = bytes <= ctx->memory_bytes ? ctx->memory : sl_alloc_take(&sl_alloc_default, bytes);

    if (memory == NULL)
        return false;
    if (memory == ctx->memory)
        return true;
    sl_alloc_give(&sl_alloc_default, ctx->memory, ctx->memory_bytes);
    ctx->memory = memory;
    ctx->memory_bytes = bytes;
    return true;
}

static bool copy_message(sl_ctx *ctx, const sl_job_message *from)
{
    sl_str *const texts[] = { &ctx->message.stream, &ctx->message.type,     &ctx->message.content_type,
                              &ctx->message.data,   &ctx->message.metadata, &ctx->message.group };
    size_t bytes = 0;
    char *at;

    ctx->message = *from;
    for (size_t i = 0; i < SL_COUNT_OF(texts); i++)
        bytes += texts[i]->bytes + 1;
    if (!reserve(ctx, bytes))
        return false;
    at = ctx->memory;
    for (size_t i = 0; i < SL_COUNT_OF(texts); i++) {
        if (texts[i]->bytes > 0)
            memcpy(at, texts[i]->data, texts[i]->bytes);
        at[texts[i]->bytes] = '\0';
        texts[i]->data = at;
        at += texts[i]->bytes + 1;
    }
    return true;
}

static void ctx_begin(callback *cb, sl_ctx *ctx, sl_job *job)
{
    ctx->job = job;
    ctx->state = CTX_QUEUED;
    ctx->abort_fn = NULL;
    ctx->retry_after_ns = 0;
    ctx->reason_bytes = 0;
    atomic_store_explicit(&ctx->until_ns, sl_min_u64(job->until_ns, cb->drain_until_ns),
                          memory_order_relaxed);
    atomic_store_explicit(&ctx->is_aborted, false, memory_order_relaxed);
    atomic_store_explicit(&ctx->has_progress, false, memory_order_relaxed);
    job->handler_data = ctx;
    sl_list_push_back(&cb->running, &ctx->running);
}

/* --- results --- */

static sl_result_kind kind_of(const sl_ctx *ctx)
{
    switch (ctx->result) {
    case SL_WORKER_DONE: return SL_RESULT_DONE;
    case SL_WORKER_RETRY: return SL_RESULT_RETRY;
    case SL_WORKER_PARK: return SL_RESULT_PARK;
    case SL_WORKER_STOPPED: return atomic_load(&ctx->is_aborted) ? SL_RESULT_STOPPED : SL_RESULT_FAILED;
    case SL_WORKER_FAILED:
    case SL_WORKER_LATER: break;
    }
    return SL_RESULT_FAILED; /* also for numbers that mean nothing */
}

static sl_str reason_of(const sl_ctx *ctx)
{
    if (ctx->reason_bytes > 0)
        return (sl_str){ ctx->reason, ctx->reason_bytes };
    if (ctx->result == SL_WORKER_STOPPED)
        return SL_STR("the function says that it was stopped, but nobody had asked it to");
    if ((unsigned)ctx->result >= SL_WORKER_LATER)
        return SL_STR("the function ended with a result that means nothing");
    return SL_STR("the function gave no reason");
}

/* The job is somebody else's as soon as this is called, and the context free before. */
static void deliver(callback *cb, sl_ctx *ctx)
{
    const sl_result_kind kind = kind_of(ctx);
    const bool has_failed = kind == SL_RESULT_RETRY || kind == SL_RESULT_FAILED;
    sl_job *const job = ctx->job;
    char reason[SL_RESULT_REASON_BYTES_MAX + 4];
    sl_result result = { .kind = kind };

    if (has_failed || kind == SL_RESULT_PARK) {
        result.is_fault = has_failed;
        result.retry_after_ns = has_failed ? ctx->retry_after_ns : 0;
        result.reason.bytes = reason_of(ctx).bytes;
        result.reason.data = memcpy(reason, reason_of(ctx).data, result.reason.bytes);
    }
    pool_give(cb, ctx);
    cb->handler.owner->finished(cb->handler.owner_ctx, job, &result);
}

static void deliver_end(callback *cb, sl_job *job, sl_result_kind kind)
{
    sl_result result = { .kind = kind };

    if (kind == SL_RESULT_UNBEGUN)
        result.reason = SL_STR("no thread was free for it");
    cb->handler.owner->finished(cb->handler.owner_ctx, job, &result);
}

void callback_wake(callback *cb)
{
    if (cb->is_woken || cb->loop == NULL)
        return;
    cb->is_woken = true;
    sl_loop_wake(cb->loop); /* under the lock, so that the loop cannot go meanwhile */
}

void callback_post(sl_ctx *ctx, sl_worker_result result)
{
    callback *const cb = ctx->callback;

    if (ctx->state == CTX_DISOWNED) {
        ctx_free(ctx);
        return;
    }
    if (ctx->state != CTX_WORKING)
        return; /* finished twice: only the first counts */
    ctx->state = CTX_FINISHED;
    ctx->result = result;
    sl_list_push_back(&cb->results, &ctx->line);
    callback_wake(cb);
}

static void tell_progress(callback *cb)
{
    SL_LIST_EACH (node, &cb->running) {
        sl_ctx *const ctx = SL_CONTAINER_OF(node, sl_ctx, running);

        if (atomic_exchange(&ctx->has_progress, false))
            cb->handler.owner->progress(cb->handler.owner_ctx, ctx->job);
    }
}

static void collect(callback *cb)
{
    bool has_progress, is_closed;
    sl_list results;

    sl_list_init(&results);
    pthread_mutex_lock(&cb->lock);
    sl_list_splice(&results, &cb->results);
    cb->is_woken = false;
    has_progress = cb->has_progress;
    cb->has_progress = false;
    is_closed = cb->wants_closed && cb->alive == cb->stuck;
    pthread_mutex_unlock(&cb->lock);
    if (has_progress)
        tell_progress(cb);
    while (!sl_list_empty(&results)) {
        sl_ctx *const ctx = SL_CONTAINER_OF(sl_list_first(&results), sl_ctx, line);

        sl_list_remove(&ctx->line);
        deliver(cb, ctx);
    }
    if (is_closed) {
        cb->wants_closed = false;
        cb->handler.owner->closed(cb->handler.owner_ctx);
    }
}

/* --- beginning --- */

/* Under one lock all that began in the last turn, and no more threads are woken than there is work for. */
static void hand_over(callback *cb)
{
    uint32_t wakes;

    pthread_mutex_lock(&cb->lock);
    wakes = cb->pending_count < cb->idle ? cb->pending_count : cb->idle;
    sl_list_splice(&cb->queued, &cb->pending);
    cb->pending_count = 0;
    while (wakes-- > 0)
        pthread_cond_signal(&cb->work);
    pthread_mutex_unlock(&cb->lock);
}

static void call(callback *cb, sl_ctx *ctx)
{
    sl_worker_result result;

    ctx->state = CTX_WORKING;
    result = cb->settings.work(cb->settings.user, ctx);
    if (result == SL_WORKER_LATER || ctx->state != CTX_WORKING)
        return; /* the first: somebody else's from now on. The second: finished, and has a result too: only the first counts */
    ctx->result = result;
    deliver(cb, ctx);
}

/* After a while others have a turn: leases are renewed, and a drain begins in time. What was told to begin is charged if the process dies,
 * so it is not much more than what one turn gets done, and after a start as little as possible: a message of which the process has died
 * comes first, and then it dies alone. */
static void call_some(callback *cb)
{
    const sl_clock *const clock = sl_loop_stopwatch();
    const uint64_t until_ns = sl_clock_mono_ns(clock) + CALLS_MS * MS_NS;
    uint32_t count = 0;

    while (cb->pending_count > 0 &&
           (count == 0 ||
            sl_clock_mono_ns(clock) < until_ns)) { /* one at least: a batch of none would stay one */
        sl_ctx *const ctx = SL_CONTAINER_OF(sl_list_first(&cb->pending), sl_ctx, line);

        sl_list_remove(&ctx->line);
        cb->pending_count--;
        count++;
        call(cb, ctx);
    }
    if (cb->pending_count == 0) {
        cb->batch = cb->batch < cb->settings.slots ? 2 * cb->batch : cb->batch;
        return;
    }
    cb->batch = count;
    sl_timer_set(&cb->beginner, sl_loop_now_ns(cb->loop) + 1);
}

static bool callback_takes(const sl_handler *handler)
{
    const callback *const cb = SL_CONTAINER_OF(handler, const callback, handler);

    return cb->settings.threads > 0 || cb->pending_count < cb->batch;
}

static void begin_pending(void *ctx)
{
    callback *const cb = ctx;

    if (cb->settings.threads > 0)
        hand_over(cb);
    else
        call_some(cb);
}

/* The source has said that the job begins, but that leaves at the end of the turn only. Nobody works on it before: else a message that
 * kills its process would never be charged for that, and one of a process that is killed would be given away while it runs. */
static void queue(callback *cb, sl_ctx *ctx)
{
    sl_list_push_back(&cb->pending, &ctx->line);
    if (cb->pending_count++ == 0)
        sl_timer_set(&cb->beginner, sl_loop_now_ns(cb->loop) + 1);
}

static void note_thread(callback *cb)
{
    if (pthread_equal(cb->loop_thread, pthread_self()))
        return;
    pthread_mutex_lock(&cb->lock);
    cb->loop_thread = pthread_self();
    pthread_mutex_unlock(&cb->lock);
}

static void callback_run(sl_handler *handler, sl_job *job)
{
    static const sl_result no_memory = { .kind = SL_RESULT_UNBEGUN,
                                         .reason = SL_STR_INIT("there is no memory for the message") };
    callback *const cb = callback_of(handler);
    sl_ctx *const ctx = pool_take(cb);

    note_thread(cb);
    if (ctx == NULL || !copy_message(ctx, &job->message)) {
        if (ctx != NULL)
            ctx_free(ctx);
        handler->owner->finished(handler->owner_ctx, job, &no_memory);
        return;
    }
    ctx_begin(cb, ctx, job);
    queue(cb, ctx);
}

/* --- ending --- */

/* With the lock. No foreign code has seen it: it is as if it had never begun. */
static void unqueue(callback *cb, sl_ctx *ctx)
{
    bool was_pending = false;

    SL_LIST_EACH (node, &cb->pending)
        was_pending = was_pending || node == &ctx->line;
    if (was_pending)
        cb->pending_count--;
    sl_list_remove(&ctx->line);
}

static void call_abort_fn(callback *cb, sl_ctx *ctx)
{
    void (*const fn)(void *arg) = ctx->abort_fn;
    void *const arg = ctx->abort_arg;

    if (fn == NULL)
        return;
    ctx->abort_fn = NULL;
    ctx->is_calling = true;
    pthread_mutex_unlock(&cb->lock);
    fn(arg);
    pthread_mutex_lock(&cb->lock);
    ctx->is_calling = false; /* which is what whoever finishes it waits for, so it is still there */
    pthread_cond_broadcast(&cb->called);
}

static void callback_abort(sl_handler *handler, sl_job *job)
{
    callback *const cb = callback_of(handler);
    sl_ctx *const ctx = job->handler_data;
    bool is_unbegun;

    note_thread(cb);
    pthread_mutex_lock(&cb->lock);
    is_unbegun = ctx->state == CTX_QUEUED;
    if (is_unbegun)
        unqueue(cb, ctx);
    if (ctx->state == CTX_WORKING) {
        atomic_store(&ctx->is_aborted, true);
        call_abort_fn(cb, ctx);
    }
    pthread_mutex_unlock(&cb->lock);
    if (!is_unbegun)
        return;
    pool_give(cb, ctx);
    deliver_end(cb, job, SL_RESULT_UNBEGUN);
}

/* With the lock. */
static void disown(callback *cb, sl_ctx *ctx)
{
    atomic_store(&ctx->is_aborted, true);
    ctx->state = CTX_DISOWNED;
    ctx->job = NULL;
    ctx->abort_fn = NULL;
    sl_list_remove(&ctx->running);
    cb->holders++;
    callback_thread_stuck(cb, ctx);
}

/* A result that is on its way comes in this turn, and is better than STOPPED. */
static void callback_kill(sl_handler *handler, sl_job *job)
{
    callback *const cb = callback_of(handler);
    sl_ctx *const ctx = job->handler_data;
    ctx_state state;

    pthread_mutex_lock(&cb->lock);
    state = ctx->state;
    if (state == CTX_QUEUED)
        unqueue(cb, ctx);
    if (state == CTX_WORKING)
        disown(cb, ctx);
    pthread_mutex_unlock(&cb->lock);
    if (state == CTX_FINISHED)
        return;
    if (state == CTX_QUEUED)
        pool_give(cb, ctx);
    deliver_end(cb, job, state == CTX_QUEUED ? SL_RESULT_UNBEGUN : SL_RESULT_STOPPED);
}

/* With threads that are all at work it waits for one of them. */
static bool callback_is_unbegun(sl_handler *handler, sl_job *job)
{
    callback *const cb = callback_of(handler);
    const sl_ctx *const ctx = job->handler_data;
    bool is_unbegun;

    pthread_mutex_lock(&cb->lock);
    is_unbegun = ctx->state == CTX_QUEUED;
    pthread_mutex_unlock(&cb->lock);
    return is_unbegun;
}

static void callback_draining(sl_handler *handler, uint64_t until_ns)
{
    callback *const cb = callback_of(handler);

    cb->drain_until_ns = until_ns;
    SL_LIST_EACH (node, &cb->running) {
        sl_ctx *const ctx = SL_CONTAINER_OF(node, sl_ctx, running);

        if (atomic_load(&ctx->until_ns) > until_ns)
            atomic_store(&ctx->until_ns, until_ns);
    }
}

/* --- life --- */

static void callback_turn_end(sl_handler *handler)
{
    collect(callback_of(handler));
}

static void callback_close(sl_handler *handler)
{
    callback *const cb = callback_of(handler);

    cb->wants_closed = true;
    pthread_mutex_lock(&cb->lock);
    cb->is_closing = true;
    pthread_cond_broadcast(&cb->work);
    pthread_mutex_unlock(&cb->lock);
    collect(cb);
}

static void callback_describe(const sl_handler *handler, struct cJSON *object)
{
    callback *const cb = SL_CONTAINER_OF(handler, callback, handler);
    uint32_t stuck;

    pthread_mutex_lock(&cb->lock);
    stuck = cb->stuck;
    pthread_mutex_unlock(&cb->lock);
    (void)cJSON_AddNumberToObject(object, "threads", cb->settings.threads);
    (void)cJSON_AddNumberToObject(object, "threads_stuck", stuck);
}

static void free_list(sl_list *head)
{
    while (!sl_list_empty(head)) {
        sl_ctx *const ctx = SL_CONTAINER_OF(sl_list_first(head), sl_ctx, line);

        sl_list_remove(&ctx->line);
        sl_list_remove(&ctx->running);
        ctx_free(ctx);
    }
}

static void destroy(callback *cb)
{
    pthread_cond_destroy(&cb->work);
    pthread_cond_destroy(&cb->called);
    pthread_cond_destroy(&cb->ended);
    pthread_mutex_destroy(&cb->lock);
    sl_alloc_give(&sl_alloc_default, cb, sizeof *cb);
}

void callback_unlock_and_drop(callback *cb, uint32_t holds)
{
    bool is_last;

    cb->holders -= holds;
    is_last = cb->holders == 0;
    pthread_mutex_unlock(&cb->lock);
    if (is_last)
        destroy(cb);
}

static void callback_free(sl_handler *handler, uint64_t until_ns)
{
    callback *const cb = callback_of(handler);

    sl_timer_stop(&cb->beginner);
    pthread_mutex_lock(&cb->lock);
    cb->loop = NULL;
    cb->is_closing = true;
    free_list(&cb->pending);
    free_list(&cb->queued);
    free_list(&cb->results);
    while (!sl_list_empty(&cb->running))
        disown(cb, SL_CONTAINER_OF(sl_list_first(&cb->running), sl_ctx, running));
    pthread_mutex_unlock(&cb->lock);
    free_list(&cb->pool);
    callback_free_threads(cb, until_ns);
    pthread_mutex_lock(&cb->lock);
    callback_unlock_and_drop(cb, 1);
}

static const sl_handler_class callback_class = {
    .name = "callback",
    .takes = callback_takes,
    .run = callback_run,
    .abort = callback_abort,
    .kill = callback_kill,
    .is_unbegun = callback_is_unbegun,
    .draining = callback_draining,
    .close = callback_close,
    .turn_end = callback_turn_end,
    .describe = callback_describe,
    .free = callback_free,
};

static void init_locks(callback *cb)
{
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic); /* on Linux none of these can fail */
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&cb->lock, NULL);
    (void)pthread_cond_init(&cb->work, NULL);
    (void)pthread_cond_init(&cb->called, NULL);
    (void)pthread_cond_init(&cb->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

static void init(callback *cb, sl_loop *loop, const sl_callback_settings *settings)
{
    sl_text name;

    *cb = (callback){ .handler.class = &callback_class,
                      .settings = *settings,
                      .drain_until_ns = UINT64_MAX,
                      .batch = 1,
                      .loop = loop,
                      .loop_thread = pthread_self(),
                      .holders = 1 };
    sl_text_init(&name, cb->name, sizeof cb->name);
    sl_text_add(&name, settings->name == NULL ? "worker" : settings->name);
    cb->settings.name = cb->name;
    sl_list_init(&cb->pool);
    sl_list_init(&cb->pending);
    sl_list_init(&cb->running);
    sl_list_init(&cb->queued);
    sl_list_init(&cb->results);
    sl_timer_init(&cb->beginner, loop, begin_pending, cb);
    init_locks(cb);
}

static bool start_threads(callback *cb)
{
    bool is_fine = true;

    pthread_mutex_lock(&cb->lock);
    for (uint32_t i = 0; i < cb->settings.threads && is_fine; i++)
        is_fine = callback_thread_add(cb);
    pthread_mutex_unlock(&cb->lock);
    return is_fine;
}

sl_err sl_callback_new(sl_loop *loop, const sl_callback_settings *settings, sl_handler **ret_handler)
{
    callback *cb;

    if (settings->work == NULL || settings->threads > SL_CALLBACK_THREADS_MAX)
        return SL_ERR_INVALID;
    cb = sl_alloc_take(&sl_alloc_default, sizeof *cb);
    if (cb == NULL)
        return SL_ERR_NOMEM;
    init(cb, loop, settings);
    if (!start_threads(cb)) {
        callback_free(&cb->handler, UINT64_MAX); /* those that were made have nothing to do, and end */
        return SL_ERR_IO;
    }
    *ret_handler = &cb->handler;
    return SL_OK;
}
