/* server/dispatch.c — the life of a call on the server: who is asked for, who asks, may he, and then the method's functions.
 *
 *      on_call --> find the method --> who is it? --> may he call it? --> begin --> messages ... --> end
 *                     |                  |               |
 *                     UNIMPLEMENTED      UNAUTHENTICATED PERMISSION_DENIED
 *
 * The call is paused until it is known who asks, since that may take a helper thread some milliseconds; what the client sends
 * meanwhile waits in the engine, within its window.
 *
 * The message of a method that takes one waits for the half-close. Most clients say both in one frame; then nothing is kept. Of the
 * others a copy is kept, in memory of its own that goes when the method has seen it (a subscription lasts for weeks, and its
 * arena with it). The window opens at once all the same, since some clients cannot even say that they are done when the window of
 * the connection is used up; so what a connection may make us keep has a limit of its own, SL_LINK_KEPT_BYTES_MAX.
 *
 * A call that no method will ever see (unknown, or no memory for it) has no request: its user pointer is NULL.
 *
 * Functions of a method may end the call while they run (the engine then calls on_end inside), so whoever calls one holds the
 * request and looks at request->call afterwards. */
#include "server/dispatch.h"

#include "server/auth.h"
#include "server/link.h"
#include "server/reply.h"

#include <assert.h>

static bool takes_one_message(const sl_method *method)
{
    return method->kind == SL_METHOD_UNARY || method->kind == SL_METHOD_SERVER_STREAM;
}

/* --- who asks, and may he --- */

static bool may_call(const sl_request *request)
{
    const sl_identity *const identity = &request->identity;

    if (identity->is_trusted)
        return true;
    switch (request->method->who) {
    case SL_FOR_ANYONE: return true;
    case SL_FOR_READERS: return identity->name.bytes > 0 || request->host->settings->anonymous;
    case SL_FOR_OPERATORS: return identity->is_operator || identity->is_admin;
    case SL_FOR_ADMINS: return identity->is_admin;
    }
    return false;
}

static void begin(sl_request *request)
{
    request->begun = true;
    sl_link_admit(request->link);
    if (request->method->begin != NULL)
        request->method->begin(request);
    request->held_back = false;
    if (!request->paused)
        sl_request_resume(request);
}

static void deny(sl_request *request)
{
    request->host->counters.access_denied++;
    sl_reply_access_denied(request);
}

static void admit(sl_request *request, const sl_identity *identity)
{
    if (sl_identity_copy(identity, &request->arena, &request->identity) != SL_OK)
        sl_reply_error(request, SL_ERR_NOMEM);
    else if (may_call(request))
        begin(request);
    else
        deny(request);
}

static void on_verdict(void *ctx, sl_auth_verdict verdict, const sl_identity *identity)
{
    sl_request *const request = sl_request_hold(ctx);

    request->asking = false;
    switch (verdict) {
    case SL_AUTH_OK: admit(request, identity); break;
    case SL_AUTH_REFUSED: sl_reply_unauthenticated(request); break;
    case SL_AUTH_TOO_OFTEN: sl_reply_too_often(request); break;
    case SL_AUTH_NOT_READY: sl_reply_not_ready(request); break;
    }
    sl_request_release(request);
}

static void ask_who(sl_request *request)
{
    sl_call_pause(request->call);
    request->held_back = true;
    request->asking = true;
    sl_auth_check(request->host->auth, sl_request_header(request, SL_STR("authorization")),
                  sl_request_peer(request), &request->ticket, on_verdict, request);
}

static void stop_asking(sl_request *request)
{
    if (request->asking)
        sl_auth_cancel(request->host->auth, &request->ticket);
    request->asking = false;
}

/* --- what the engine tells --- */

static void refuse_call(sl_call *call, sl_status status, const char *sentence)
{
    sl_call_finish(call, status, sl_str_from(sentence), NULL, 0);
}

/* Its method has not seen it. */
static void refuse_stopping(sl_request *request)
{
    request->host->counters.calls_refused++;
    sl_reply_stopping(request);
}

static void on_call(void *ctx, sl_call *call)
{
    sl_link *const link = ctx;
    const char *why = NULL;
    const sl_method *const method = link->host->find_method(sl_call_path(call), &why);
    sl_request *const request = method == NULL ? NULL : sl_request_new(link, call, method);

    link->host->counters.calls_begun++;
    link->host->counters.calls_now++;
    if (method == NULL)
        refuse_call(call, SL_STATUS_UNIMPLEMENTED, why);
    else if (request == NULL)
        refuse_call(call, SL_STATUS_RESOURCE_EXHAUSTED,
                    "The server is out of memory. Try again in a moment.");
    if (request == NULL)
        return;
    sl_call_set_user(call, request);
    if (method->message_bytes_max > 0)
        sl_call_set_message_bytes_max(call, method->message_bytes_max);
    if (link->host->stopping)
        refuse_stopping(request);
    else
        ask_who(request);
}

static void give_message(sl_request *request, sl_str message)
{
    if (request->method->message != NULL)
        request->method->message(request, message);
}

static void keep_message(sl_request *request, sl_str message)
{
    static const sl_str too_many = SL_STR_INIT(
        "Too many requests of this connection wait for their end. Half-close each behind its message.");
    sl_link *const link = request->link;

    if (message.bytes > SL_LINK_KEPT_BYTES_MAX - link->kept_bytes)
        sl_request_finish(request, SL_STATUS_RESOURCE_EXHAUSTED, too_many, NULL, 0);
    else if (sl_buf_append(&request->kept_message, message.data, message.bytes) != SL_OK)
        sl_reply_error(request, SL_ERR_NOMEM);
    link->kept_bytes += request->kept_message.bytes;
    request->message_waits = true;
}

/* It is taken out first, because the call may end under the method, and what the request keeps goes with the call. */
static void give_kept_message(sl_request *request)
{
    sl_buf kept = sl_buf_take(&request->kept_message);

    request->link->kept_bytes -= kept.bytes;
    give_message(request, (sl_str){ (const char *)sl_buf_data(&kept), kept.bytes });
    sl_buf_done(&kept);
}

static void take_message(sl_request *request, sl_str message, bool is_last)
{
    if (!sl_request_open(request))
        return;
    request->message_count++;
    if (!takes_one_message(request->method))
        give_message(request, message);
    else if (request->message_count > 1)
        sl_reply_invalid(request, "This method takes exactly one request message, and a second one came.");
    else if (is_last)
        give_message(request, message);
    else
        keep_message(request, message);
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    sl_request *const request = sl_call_user(call);

    (void)ctx;
    if (request == NULL) {
        sl_call_consume(call, message->window_bytes);
        return;
    }
    sl_request_hold(request);
    take_message(request, (sl_str){ (const char *)message->data, message->bytes }, message->is_last);
    if (request->call != NULL)
        sl_call_consume(call, message->window_bytes);
    sl_request_release(request);
}

static void on_half_close(void *ctx, sl_call *call)
{
    sl_request *const request = sl_call_user(call);

    (void)ctx;
    if (request == NULL || !sl_request_open(request))
        return;
    sl_request_hold(request);

    if (takes_one_message(request->method) && request->message_count == 0)
        sl_reply_invalid(request, "This method takes exactly one request message, and none came.");
    else if (request->message_waits)
        give_kept_message(request);
    else if (!takes_one_message(request->method) && request->method->half_close != NULL)
        request->method->half_close(request);
    sl_request_release(request);
}

static void on_room(void *ctx, sl_call *call)
{
    sl_request *const request = sl_call_user(call);

    (void)ctx;
    if (request == NULL)
        return;
    sl_request_hold(request);
    if (!sl_request_flush(request) && sl_request_open(request) && request->begun &&
        request->method->room != NULL)
        request->method->room(request);
    sl_request_release(request);
}

static sl_status status_counted(const sl_call_end_info *info)
{
    switch (info->kind) {
    case SL_CALL_FINISHED:
    case SL_CALL_DEADLINE:
    case SL_CALL_REFUSED: return info->status;
    case SL_CALL_PEER_CANCELLED:
    case SL_CALL_CANCELLED:
    case SL_CALL_STALLED:
    case SL_CALL_CONNECTION_LOST:
    case SL_CALL_END_KIND_COUNT_: break;
    }
    return SL_STATUS_CANCELLED;
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    sl_link *const link = ctx;
    sl_host *const host = link->host;
    sl_request *const request = sl_call_user(call);

    link->owner.touch(link->owner.ctx); /* whoever cancelled the call has made output */
    assert(host->counters.calls_now > 0);
    host->counters.calls_now--;
    host->counters.calls_ended[status_counted(info)]++;
    if (request == NULL)
        return;
    stop_asking(request);
    request->end_kind = info->kind;
    sl_request_detach(request);
    if (request->begun && request->method->end != NULL)
        request->method->end(request);
    sl_request_release(request);
}

const sl_connection_handler sl_dispatch_handler = {
    .on_call = on_call,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_end = on_end,
};

/* --- the end of the server --- */

void sl_dispatch_stop(sl_request *request)
{
    sl_request_hold(request);
    stop_asking(request);
    if (!request->begun)
        refuse_stopping(request);
    else if (request->method->stop != NULL)
        request->method->stop(request);
    else if (request->method->kind != SL_METHOD_UNARY)
        sl_reply_stopping(request);
    sl_request_release(request);
}
