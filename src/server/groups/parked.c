/* server/groups/parked.c — PersistentSubscriptions/ReplayParked and TruncateParked: for admins and operators.
 *
 * A replay is answered when it has begun, a truncation when it is durable. One of them at a time for each group. A group that was
 * made this very moment is waited for: its maker was told that it is there. */
#include "server/groups/management.h"

#include "server/door.h"
#include "server/reply.h"
#include "server/services.h"

#define STOP_AT_NONE UINT64_MAX

typedef struct parked_call {
    sl_request *request;
    sl_str stream, group;
    uint64_t stop_at;
    bool truncates;
    sl_desk_waiter waiter;
} parked_call;

/* --- answers --- */

static void fail(parked_call *call, const char *reason)
{
    sl_reply_group_failed(call->request, call->stream, call->group, sl_str_from(reason));
}

static void answer(parked_call *call, sl_err err)
{
    switch ((int)err) {
    case SL_OK:
        sl_log(call->request->host->log, SL_LOG_INFO,
               call->truncates ? "parked messages truncated" : "parked messages are replayed",
               SL_LOG_STR("stream", call->stream), SL_LOG_STR("group", call->group),
               SL_LOG_STR("by", call->request->identity.name));
        sl_request_answer(call->request, SL_STR(""));
        break;
    case SL_ERR_EXISTS: fail(call, "A replay or truncate is already in progress."); break;
    case SL_ERR_NOT_FOUND: sl_reply_group_not_found(call->request, call->stream, call->group); break;
    case SL_ERR_STORE_FAILED:
        if (!sl_door_store_failed(call->request->host->door)) {
            fail(call, "The group has failed, or was changed or deleted meanwhile.");
            break;
        }
        sl_reply_error(call->request, err);
        break;
    default: sl_reply_error(call->request, err); break;
    }
}

static void on_truncated(void *ctx, sl_err err)
{
    parked_call *const call = ctx;
    sl_request *const request = call->request;

    answer(call, err);
    sl_request_release(request);
}

/* --- begun --- */

static void look_again(void *ctx);

static sl_err begin(parked_call *call, sl_desk *desk)
{
    sl_err err;

    if (!call->truncates)
        return sl_desk_replay_parked(desk, call->stop_at);
    (void)sl_request_hold(call->request);
    err = sl_desk_truncate_parked(desk, call->stop_at, on_truncated, call);
    if (err != SL_OK)
        sl_request_release(call->request);
    return err;
}

/* The desk may have gone since, and another may be there under its name. */
static void attempt(parked_call *call)
{
    sl_desk *const desk = sl_registry_find(call->request->host->registry, call->stream, call->group);
    const sl_err err = desk == NULL ? SL_ERR_NOT_FOUND : begin(call, desk);

    if (err == SL_ERR_AGAIN) {
        call->waiter = (sl_desk_waiter){ .fn = look_again, .ctx = call };
        sl_list_init(&call->waiter.node);
        sl_desk_wait(desk, &call->waiter);
    } else if (err != SL_OK || !call->truncates) {
        answer(call, err);
    }
}

static void look_again(void *ctx)
{
    parked_call *const call = ctx;
    sl_request *const request = sl_request_hold(call->request);

    if (sl_request_open(request))
        attempt(call);
    sl_request_release(request);
}

/* --- requests --- */

/* False: the call is over. */
static bool take(sl_request *request, sl_str message, sl_parked_request *ret_asked)
{
    const char *reason = NULL;
    const sl_err err = sl_parked_request_decode(message, &request->arena, ret_asked, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else if (ret_asked->name.source == SL_WIRE_SOURCE_UNSET)
        sl_reply_invalid(request, "The request names neither a stream nor all.");
    else if (ret_asked->limit == SL_PARKED_LIMIT_UNSET)
        sl_reply_invalid(request, "The request has neither stop_at nor no_limit.");
    return sl_request_open(request);
}

static void begin_call(sl_request *request, sl_str message, bool truncates)
{
    parked_call *const call = request->state;
    sl_parked_request asked;

    if (!take(request, message, &asked))
        return;
    *call = (parked_call){ .request = request,
                           .stream = management_stream(asked.name.source, asked.name.stream),
                           .group = asked.name.group,
                           .stop_at =
                               asked.limit == SL_PARKED_LIMIT_NONE ? STOP_AT_NONE : (uint64_t)asked.stop_at,
                           .truncates = truncates };
    if (management_find(request, call->stream, call->group) == NULL)
        return;
    if (asked.limit == SL_PARKED_LIMIT_STOP_AT && asked.stop_at < 0)
        fail(call, truncates ? "Cannot truncate parked messages at a negative version."
                             : "Cannot stop replaying parked message at a negative version.");
    else
        attempt(call);
}

static void replay(sl_request *request, sl_str message)
{
    begin_call(request, message, false);
}

static void truncate_parked(sl_request *request, sl_str message)
{
    begin_call(request, message, true);
}

static void on_end(sl_request *request)
{
    parked_call *const call = request->state;

    sl_desk_forget(&call->waiter);
}

#define PARKED(variable, method_name, function)                                                              \
    const sl_method sl_method_persistent_##variable = {                                                      \
        .service = SL_STR_INIT(MANAGEMENT_SERVICE),                                                          \
        .name = SL_STR_INIT(method_name),                                                                    \
        .kind = SL_METHOD_UNARY,                                                                             \
        .who = SL_FOR_OPERATORS,                                                                             \
        .message_bytes_max = MANAGEMENT_NAME_BYTES_MAX,                                                      \
        .state_bytes = sizeof(parked_call),                                                                  \
        .features = management_features,                                                                     \
        .feature_count = MANAGEMENT_FEATURE_COUNT,                                                           \
        .message = function,                                                                                 \
        .end = on_end,                                                                                       \
    }

PARKED(replay_parked, "ReplayParked", replay);
PARKED(truncate_parked, "TruncateParked", truncate_parked);
