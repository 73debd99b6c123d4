/* worker/handler/callback_ctx.c — the public functions of a context: see include/sluice.h, and callback_inside.h for who may touch
 * what. */
#include "worker/handler/callback_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

static sl_consumer_bytes view(sl_str text)
{
    return (sl_consumer_bytes){ text.data, text.bytes };
}

sl_consumer_id sl_ctx_id(const sl_ctx *ctx)
{
    sl_consumer_id id;

    static_assert(sizeof id == sizeof ctx->message.event_id, "an id is 16 bytes everywhere");
    memcpy(&id, &ctx->message.event_id, sizeof id);
    return id;
}

uint64_t sl_ctx_token(const sl_ctx *ctx)
{
    return ctx->message.token;
}

uint32_t sl_ctx_attempt(const sl_ctx *ctx)
{
    return ctx->message.attempt;
}

uint64_t sl_ctx_revision(const sl_ctx *ctx)
{
    return ctx->message.revision;
}

uint64_t sl_ctx_created_ns(const sl_ctx *ctx)
{
    return ctx->message.created_ns;
}

sl_consumer_bytes sl_ctx_stream(const sl_ctx *ctx)
{
    return view(ctx->message.stream);
}

sl_consumer_bytes sl_ctx_type(const sl_ctx *ctx)
{
    return view(ctx->message.type);
}

sl_consumer_bytes sl_ctx_content_type(const sl_ctx *ctx)
{
    return view(ctx->message.content_type);
}

sl_consumer_bytes sl_ctx_data(const sl_ctx *ctx)
{
    return view(ctx->message.data);
}

sl_consumer_bytes sl_ctx_metadata(const sl_ctx *ctx)
{
    return view(ctx->message.metadata);
}

sl_consumer_bytes sl_ctx_group(const sl_ctx *ctx)
{
    return view(ctx->message.group);
}

int64_t sl_ctx_remaining_ms(const sl_ctx *ctx)
{
    const uint64_t until_ns = atomic_load_explicit(&ctx->until_ns, memory_order_relaxed);
    uint64_t now_ns;

    if (sl_ctx_is_aborted(ctx))
        return 0;
    if (until_ns == UINT64_MAX)
        return INT64_MAX;
    now_ns = sl_clock_mono_ns(sl_loop_stopwatch());
    return until_ns <= now_ns ? 0 : (int64_t)((until_ns - now_ns) / MS_NS);
}

int sl_ctx_is_aborted(const sl_ctx *ctx)
{
    return atomic_load(&ctx->is_aborted) ? 1 : 0;
}

/* With the lock. Inside of the abort function itself nobody waits for its end. */
static void await_abort_fn(sl_ctx *ctx)
{
    callback *const cb = ctx->callback;

    while (ctx->is_calling && !pthread_equal(cb->loop_thread, pthread_self()))
        pthread_cond_wait(&cb->called, &cb->lock);
}

void sl_ctx_on_abort(sl_ctx *ctx, void (*fn)(void *arg), void *arg)
{
    callback *const cb = ctx->callback;
    bool is_late;

    pthread_mutex_lock(&cb->lock);
    await_abort_fn(ctx);
    is_late = atomic_load(&ctx->is_aborted);
    ctx->abort_fn = is_late ? NULL : fn;
    ctx->abort_arg = arg;
    pthread_mutex_unlock(&cb->lock);
    if (is_late && fn != NULL)
        fn(arg);
}

/* Only the first sign since the loop has looked costs more than a look at a flag. */
void sl_ctx_progress(sl_ctx *ctx)
{
    callback *const cb = ctx->callback;

    if (atomic_exchange(&ctx->has_progress, true))
        return;
    pthread_mutex_lock(&cb->lock);
    if (ctx->state == CTX_WORKING) {
        cb->has_progress = true;
        callback_wake(cb);
    }
    pthread_mutex_unlock(&cb->lock);
}

void sl_ctx_set_reason(sl_ctx *ctx, const char *reason)
{
    sl_text text;

    sl_text_init(&text, ctx->reason, SL_RESULT_REASON_BYTES_MAX + 1);
    sl_text_add(&text, reason == NULL ? "" : reason);
    ctx->reason_bytes = text.bytes;
}

void sl_ctx_set_retry_after_ms(sl_ctx *ctx, uint32_t retry_after_ms)
{
    ctx->retry_after_ns = retry_after_ms * MS_NS;
}

void sl_ctx_finish(sl_ctx *ctx, sl_worker_result result)
{
    callback *const cb = ctx->callback;
    bool is_disowned;

    pthread_mutex_lock(&cb->lock);
    await_abort_fn(ctx);
    is_disowned = ctx->state == CTX_DISOWNED;
    callback_thread_forget(cb, ctx);
    callback_post(ctx, result);
    callback_unlock_and_drop(cb, is_disowned ? 1 : 0);
}
