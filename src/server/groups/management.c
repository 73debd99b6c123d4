/* server/groups/management.c — PersistentSubscriptions/Create, Update, Delete and RestartSubsystem: for admins and operators.
 *
 *      decode --> right in itself? --> is there such a group? --> its sizes --> registry --> durable --> open --> answer
 *
 * The client is answered when what it asked for would survive a power cut, and a group that was made or changed is at work: who looks at
 * it next finds it "Live". If the client goes away before, all of that happens all the same. While the server stops, the
 * door refuses and the client is told why. */
#include "server/groups/management.h"

#include "base/cleanup.h"
#include "server/reply.h"
#include "server/services.h"

const sl_str management_features[] = { SL_STR_INIT("stream"), SL_STR_INIT("all") };

static_assert(SL_COUNT_OF(management_features) == MANAGEMENT_FEATURE_COUNT, "both are said");

sl_str management_stream(sl_wire_source source, sl_str stream)
{
    return source == SL_WIRE_SOURCE_ALL ? SL_STR("$all") : stream;
}

sl_desk *management_find(sl_request *request, sl_str stream, sl_str group)
{
    sl_desk *const desk = sl_registry_find(request->host->registry, stream, group);

    if (desk == NULL)
        sl_reply_group_not_found(request, stream, group);
    return desk;
}

/* --- a change on its way --- */

typedef struct change_call {
    sl_str stream, group; /* in the arena of the request */
    const char *log_line;
    sl_desk_waiter waiter; /* of a group that is being opened */
    bool waits;
} change_call;

static void log_change(const sl_request *request)
{
    const change_call *const call = request->state;

    sl_log(request->host->log, SL_LOG_INFO, call->log_line, SL_LOG_STR("stream", call->stream),
           SL_LOG_STR("group", call->group), SL_LOG_STR("by", request->identity.name));
}

static void answer(sl_request *request, sl_err err)
{
    const change_call *const call = request->state;

    switch ((int)err) {
    case SL_OK:
        log_change(request);
        sl_request_answer(request, SL_STR(""));
        break;
    case SL_ERR_EXISTS: sl_reply_group_exists(request, call->stream, call->group); break;
    case SL_ERR_NOT_FOUND: sl_reply_group_not_found(request, call->stream, call->group); break;
    case SL_ERR_FULL:
        sl_reply_group_failed(request, call->stream, call->group,
                              SL_STR("The server has as many groups as it can hold."));
        break;
    default: sl_reply_error(request, err); break;
    }
}

static void on_open(void *ctx)
{
    sl_request *const request = ctx;
    change_call *const call = request->state;

    call->waits = false;
    answer(request, SL_OK);
    sl_request_release(request);
}

/* False: it is at work, or there is none any more, or nobody would hear of it. */
static bool wait_for_desk(sl_request *request)
{
    change_call *const call = request->state;
    sl_desk *const desk = sl_registry_find(request->host->registry, call->stream, call->group);

    if (desk == NULL || !sl_desk_is_opening(desk) || !sl_request_open(request))
        return false;
    call->waiter = (sl_desk_waiter){ .fn = on_open, .ctx = request };
    call->waits = true;
    sl_list_init(&call->waiter.node);
    sl_desk_wait(desk, &call->waiter);
    return true;
}

static void on_done(void *ctx, sl_err err)
{
    sl_request *const request = ctx;

    if (err == SL_OK && wait_for_desk(request))
        return;
    answer(request, err);
    sl_request_release(request);
}

static void on_end(sl_request *request)
{
    change_call *const call = request->state;

    if (!call->waits)
        return;
    call->waits = false;
    sl_desk_forget(&call->waiter);
    log_change(request);
    sl_request_release(request);
}

/* What the registry said at once. The hold is for on_done(), which does not come after an error. */
static void handed_over(sl_request *request, sl_err err)
{
    if (err != SL_OK)
        on_done(request, err);
}

static void begin_change(sl_request *request, sl_str stream, sl_str group, const char *log_line)
{
    *(change_call *)request->state = (change_call){ .stream = stream, .group = group, .log_line = log_line };
    (void)sl_request_hold(request);
}

/* --- Create --- */

static bool is_new(sl_request *request, const sl_group_definition *definition)
{
    if (sl_registry_find(request->host->registry, definition->stream, definition->name) == NULL)
        return true;
    sl_reply_group_exists(request, definition->stream, definition->name);
    return false;
}

static void create(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_wire_group_request asked;
    sl_group_definition definition;
    const sl_err err = sl_wire_group_create_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    if (!management_define(request, &asked, NULL, &definition) || !is_new(request, &definition) ||
        !management_check_rest(request, &definition))
        return;
    begin_change(request, definition.stream, definition.name, "persistent subscription created");
    handed_over(request, sl_registry_create(request->host->registry, &definition, on_done, request));
}

/* --- Update --- */

static void update(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_wire_group_request asked;
    sl_group_definition definition;
    const sl_desk *desk;
    const sl_err err = sl_wire_group_update_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    desk = management_find(request, management_stream(asked.source, asked.stream), asked.group);
    if (desk == NULL || !management_define(request, &asked, sl_desk_definition(desk), &definition) ||
        !management_check_rest(request, &definition))
        return;
    begin_change(request, definition.stream, definition.name, "persistent subscription updated");
    handed_over(request, sl_registry_update(request->host->registry, &definition, on_done, request));
}

/* --- Delete --- */

static void delete (sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_wire_group_name name;
    sl_str stream;
    const sl_err err = sl_wire_group_delete_decode(message, &request->arena, &name, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    if (name.source == SL_WIRE_SOURCE_UNSET) {
        sl_reply_invalid(request, "The request names neither a stream nor all.");
        return;
    }
    stream = management_stream(name.source, name.stream);
    if (management_find(request, stream, name.group) == NULL)
        return;
    begin_change(request, stream, name.group, "persistent subscription deleted");
    handed_over(request, sl_registry_delete(request->host->registry, stream, name.group, on_done, request));
}

/* --- RestartSubsystem --- */

/* The answer does not tell when it is over, only that it was begun; here both are the same moment. */
void sl_management_restart(sl_request *request)
{
    sl_host *const host = request->host;
    const sl_err err = host->stopping ? SL_ERR_DRAINING : sl_registry_restart(host->registry);

    sl_log(host->log, err == SL_OK ? SL_LOG_INFO : SL_LOG_ERROR, "persistent subscriptions restarted",
           SL_LOG_STR("by", request->identity.name), SL_LOG_ERR("result", err));
    if (err == SL_OK)
        sl_request_answer(request, SL_STR(""));
    else
        sl_reply_error(request, err);
}

static void restart(sl_request *request, sl_str message)
{
    (void)message;
    sl_management_restart(request);
}

#define MANAGEMENT(variable, method_name, function, bytes_max)                                               \
    const sl_method sl_method_persistent_##variable = {                                                      \
        .service = SL_STR_INIT(MANAGEMENT_SERVICE),                                                          \
        .name = SL_STR_INIT(method_name),                                                                    \
        .kind = SL_METHOD_UNARY,                                                                             \
        .who = SL_FOR_OPERATORS,                                                                             \
        .message_bytes_max = bytes_max,                                                                      \
        .state_bytes = sizeof(change_call),                                                                  \
        .features = management_features,                                                                     \
        .feature_count = MANAGEMENT_FEATURE_COUNT,                                                           \
        .message = function,                                                                                 \
        .end = on_end,                                                                                       \
    }

MANAGEMENT(create, "Create", create, MANAGEMENT_CREATE_BYTES_MAX);
MANAGEMENT(update, "Update", update, MANAGEMENT_CREATE_BYTES_MAX);
MANAGEMENT(delete, "Delete", delete, MANAGEMENT_NAME_BYTES_MAX);
MANAGEMENT(restart_subsystem, "RestartSubsystem", restart, MANAGEMENT_NAME_BYTES_MAX);
