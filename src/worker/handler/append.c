/* worker/handler/append.c — see append_handler.h: the slots, the door of handlers, and making one. */
#include "worker/handler/append_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <cjson/cJSON.h>

static appender *appender_of(sl_handler *handler)
{
    return SL_CONTAINER_OF(handler, appender, handler);
}

/* --- slots --- */

void append_end_slot(appender *a, append_slot *s, const sl_result *result)
{
    sl_job *const job = SL_TAKE_PTR(s->job);

    s->use++;
    sl_list_remove(&s->line);
    sl_list_push_front(&a->free, &s->line);
    s->is_sent = false;
    job->handler_data = NULL;
    a->handler.owner->finished(a->handler.owner_ctx, job, result);
}

void append_give_up(appender *a, append_slot *s)
{
    char buffer[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    if (a->problem[0] == '\0') {
        sl_text_add(&text, "server ");
        sl_text_add(&text, a->address);
        sl_text_add(&text, " has not taken the event yet");
    } else {
        sl_text_add(&text, a->problem);
    }
    const sl_result unbegun = { .kind = SL_RESULT_UNBEGUN, .reason = sl_text_str(&text) };
    append_end_slot(a, s, &unbegun);
}

/* --- the door of handlers --- */

static void run(sl_handler *handler, sl_job *job)
{
    appender *const a = appender_of(handler);
    sl_list *const node = sl_list_first(&a->free);
    append_slot *const s = SL_CONTAINER_OF(node, append_slot, line);

    assert(node != NULL);
    sl_list_remove(node);
    sl_list_push_back(&a->unsent, node);
    s->job = job;
    job->handler_data = s;
    append_go_on(a);
}

/* What was sent is answered in no time, or its server does not answer: nothing to be asked. */
static void abort_job(sl_handler *handler, sl_job *job)
{
    append_slot *const s = job->handler_data;

    if (!s->is_sent)
        append_give_up(appender_of(handler), s);
}

static void kill_job(sl_handler *handler, sl_job *job)
{
    static const sl_result stopped = { .kind = SL_RESULT_STOPPED };
    append_slot *const s = job->handler_data;

    assert(s != NULL);
    if (s->is_sent)
        append_end_slot(appender_of(handler), s, &stopped);
    else
        append_give_up(appender_of(handler), s);
}

static bool is_alive(sl_handler *handler, sl_job *job)
{
    (void)handler;
    return job->handler_data != NULL;
}

/* It waits for a server that is away, or for room on the way there. */
static bool is_unbegun(sl_handler *handler, sl_job *job)
{
    const append_slot *const s = job->handler_data;

    (void)handler;
    return s != NULL && !s->is_sent;
}

/* What waits in a pause has its next try at once. */
static void draining(sl_handler *handler, uint64_t until_ns)
{
    appender *const a = appender_of(handler);

    (void)until_ns; /* abort() comes then */
    a->is_draining = true;
    a->not_before_ns = sl_loop_now_ns(a->loop);
    append_go_on(a);
}

/* close() may come from inside of a callback of the client, which must not be freed there. */
static void on_closing(void *ctx)
{
    appender *const a = ctx;

    sl_client_free(SL_TAKE_PTR(a->client));
    a->handler.owner->closed(a->handler.owner_ctx);
}

static void close_handler(sl_handler *handler)
{
    appender *const a = appender_of(handler);

    sl_timer_set(&a->closing, sl_loop_now_ns(a->loop));
}

static void describe(const sl_handler *handler, struct cJSON *object)
{
    const appender *const a = SL_CONTAINER_OF(handler, const appender, handler);
    char stream[SL_APPEND_TARGET_BYTES_MAX + 1];
    sl_text text;

    sl_text_init(&text, stream, sizeof stream);
    sl_text_add_str(&text, (sl_str){ a->stream, a->stream_bytes });
    cJSON_AddStringToObject(object, "server", a->address);
    cJSON_AddStringToObject(object, "stream", stream);
    cJSON_AddBoolToObject(object, "connected", a->client != NULL && sl_client_is_open(a->client));
}

static void free_handler(sl_handler *handler, uint64_t until_ns)
{
    appender *const a = appender_of(handler);

    (void)until_ns; /* nothing takes time */
    a->is_silent = true;
    sl_timer_stop(&a->again);
    sl_timer_stop(&a->closing);
    sl_client_free(a->client);
    sl_alloc_give(&sl_alloc_default, a->slots, a->slot_count * sizeof *a->slots);
    sl_alloc_give(&sl_alloc_default, a, sizeof *a);
}

static const sl_handler_class append_class = { .name = "append",
                                               .run = run,
                                               .abort = abort_job,
                                               .kill = kill_job,
                                               .is_alive = is_alive,
                                               .is_unbegun = is_unbegun,
                                               .draining = draining,
                                               .close = close_handler,
                                               .describe = describe,
                                               .free = free_handler };

/* --- making --- */

static sl_err make_slots(appender *a, uint32_t count)
{
    a->slots = sl_alloc_take(&sl_alloc_default, count * sizeof *a->slots);
    if (a->slots == NULL)
        return SL_ERR_NOMEM;
    a->slot_count = count;
    for (uint32_t i = 0; i < count; i++) {
        a->slots[i] = (append_slot){ .use = 1 };
        sl_list_push_back(&a->free, &a->slots[i].line);
    }
    return SL_OK;
}

static void set_up(appender *a, sl_loop *loop, const sl_append_handler_options *options)
{
    sl_text address;

    memset(a, 0, sizeof *a);
    a->handler.class = &append_class;
    a->loop = loop;
    sl_list_init(&a->free);
    sl_list_init(&a->unsent);
    sl_list_init(&a->sent);
    sl_timer_init(&a->again, loop, append_on_again, a);
    sl_timer_init(&a->closing, loop, on_closing, a);
    a->stream_bytes = options->stream.bytes;
    if (a->stream_bytes > 0)
        memcpy(a->stream, options->stream.data, a->stream_bytes);
    sl_text_init(&address, a->address, sizeof a->address);
    sl_client_address_show(options->address, &address);
}

sl_err sl_append_handler_new(sl_loop *loop, const sl_append_handler_options *options, sl_text *problem,
                             sl_handler **ret_handler)
{
    appender *a;
    sl_err err;

    assert(options->slots > 0);
    if (options->stream.bytes > SL_APPEND_TARGET_BYTES_MAX) {
        sl_text_add(problem, "the name of the stream to append to is longer than 1024 bytes");
        return SL_ERR_INVALID;
    }
    a = sl_alloc_take(&sl_alloc_default, sizeof *a);
    if (a != NULL)
        set_up(a, loop, options);
    err = a == NULL ? SL_ERR_NOMEM : make_slots(a, options->slots);
    if (err == SL_OK)
        err = append_make_client(a, options, problem);
    if (err == SL_OK) {
        *ret_handler = &a->handler;
        return SL_OK;
    }
    if (err == SL_ERR_NOMEM)
        sl_text_add(problem, "there is not enough memory for the appends");
    if (a != NULL)
        free_handler(&a->handler, 0);
    return err;
}
