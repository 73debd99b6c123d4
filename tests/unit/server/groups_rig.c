/* tests/unit/server/groups_rig.c — see groups_rig.h. */
#include "groups_rig.h"

#include "server/request.h"
#include "server/services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- start and end --- */

static const sl_clock_manual first_time = { 1000000000, 1700000000000000000 };

static void start(groups *g, sl_store *store, sl_clock_manual time, const sl_alloc *alloc)
{
    server_rig_init(&g->rig);
    g->rig.time = time;
    g->rig.store = store;
    g->rig.alloc = alloc;
    g->store = store;
    server_rig_start(&g->rig);
    server_rig_run(&g->rig);
}

void groups_start_on(groups *g, sl_store *store)
{
    start(g, store, first_time, &sl_alloc_default);
}

void groups_start(groups *g)
{
    groups_start_on(g, groups_memory_store());
}

void groups_start_with(groups *g, sl_store *store, const sl_alloc *alloc)
{
    start(g, store, first_time, alloc);
}

void groups_done(groups *g)
{
    server_rig_done(&g->rig);
    sl_store_close(g->store);
}

/* Links go first, as in a process that dies: what that would make the server write must not count. */
static void restart(groups *g, sl_restart kind)
{
    const sl_clock_manual time = g->rig.time;

    g->rig.host->stopping = true;
    server_rig_done(&g->rig);
    EXPECT_OK(sl_store_memory_restart(groups_inner_store(g->store), kind));
    start(g, g->store, time, &sl_alloc_default);
}

void groups_kill(groups *g)
{
    restart(g, SL_RESTART_KILLED);
}

void groups_cut_power(groups *g)
{
    restart(g, SL_RESTART_POWER_CUT);
}

/* --- who asks --- */

static const char *user_name;

static void begin_as_user(sl_request *request)
{
    sl_method_persistent_read.begin(request);
    request->identity = (sl_identity){ .name = sl_str_from(user_name) };
}

static const sl_method *find_as_user(sl_str path, const char **ret_why)
{
    static sl_method method;

    if (sl_method_find(path, ret_why) != &sl_method_persistent_read)
        return sl_method_find(path, ret_why);
    method = sl_method_persistent_read;
    method.begin = begin_as_user;
    return &method;
}

void groups_as_user(groups *g, const char *name)
{
    user_name = name;
    g->rig.host->find_method = find_as_user;
}

/* --- groups --- */

sl_group_definition groups_definition(const char *stream, const char *group)
{
    return (sl_group_definition){
        .of_all = strcmp(stream, "$all") == 0,
        .stream = sl_str_from(stream),
        .name = sl_str_from(group),
        .start = SL_WIRE_START_BEGIN,
        .filter = { .kind = SL_WIRE_FILTER_NONE },
        .settings = { .message_timeout = { .given = true, .value = 30000 },
                      .checkpoint_after = { .given = true, .value = 2000 },
                      .max_retry_count = 10,
                      .min_checkpoint_count = 10,
                      .max_checkpoint_count = 1000,
                      .live_buffer_size = 500,
                      .read_batch_size = 20,
                      .history_buffer_size = 500,
                      .strategy = SL_STR_INIT("RoundRobin") },
    };
}

typedef struct outcome {
    bool is_done;
    sl_err err;
} outcome;

static void on_created(void *ctx, sl_err err)
{
    *(outcome *)ctx = (outcome){ true, err };
}

void groups_create(groups *g, const sl_group_definition *definition)
{
    outcome result = { 0 };

    EXPECT_OK(sl_registry_create(g->rig.host->registry, definition, on_created, &result));
    server_rig_run_until(&g->rig, &result.is_done);
    EXPECT_OK(result.err);
    server_rig_run(&g->rig);
}

sl_desk *groups_plain(groups *g)
{
    const sl_group_definition definition = groups_definition("orders", "g");

    groups_create(g, &definition);
    return groups_find(g, "orders", "g");
}

sl_desk *groups_find(groups *g, const char *stream, const char *group)
{
    sl_desk *const desk = sl_registry_find(g->rig.host->registry, sl_str_from(stream), sl_str_from(group));

    assert_non_null(desk);
    return desk;
}

/* --- consumers --- */

void groups_send(server_call *call, const sl_persistent_request *request)
{
    const size_t bytes = sl_persistent_request_size(request);
    uint8_t *const message = malloc(bytes + 1);

    assert_non_null(message);
    sl_persistent_request_encode(request, message, bytes);
    server_call_send(call, (sl_str){ (const char *)message, bytes });
    free(message);
}

server_call *groups_call(groups *g, groups_consumer how)
{
    const char *const stream = how.stream == NULL ? "orders" : how.stream;
    const sl_metadata name = { SL_STR("connection-name"), sl_str_from(how.name) };
    server_call *const call = server_rig_call_with(
        &g->rig, &(server_call_options){ .peer = how.peer,
                                         .path = GROUPS_PATH,
                                         .metadata = &name,
                                         .metadata_count = how.name != NULL && !how.extensions ? 1 : 0 });
    const bool all = strcmp(stream, "$all") == 0;
    const sl_persistent_request request = {
        .kind = SL_PERSISTENT_REQUEST_OPTIONS,
        .options = { .source = all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                     .stream = all ? SL_STR("") : sl_str_from(stream),
                     .group = sl_str_from(how.group == NULL ? "g" : how.group),
                     .buffer_size = how.window == 0 ? 10 : how.window,
                     .has_id_option = true,
                     .id_form = how.id_form == SL_WIRE_ID_ABSENT ? SL_WIRE_ID_STRUCTURED : how.id_form,
                     .consumer_name = sl_str_from(how.extensions ? how.name : NULL),
                     .labels = { .count = how.label_count, .list = how.labels },
                     .extensions = how.extensions,
                     .reconnect_ms = how.reconnect_ms,
                     .resume = { .count = how.resume_count,
                                 .list = how.resume,
                                 .form = SL_WIRE_ID_STRUCTURED } },
    };

    groups_send(call, &request);
    return call;
}

server_call *groups_join(groups *g, groups_consumer how)
{
    server_call *const call = groups_call(g, how);

    server_rig_run(&g->rig);
    return call;
}

void groups_send_ids(server_call *call, sl_persistent_request_kind kind, const sl_uuid *ids, size_t count)
{
    const sl_persistent_request request = {
        .kind = kind, .ids = { .count = count, .list = ids, .form = SL_WIRE_ID_STRUCTURED }
    };

    groups_send(call, &request);
}

/* About events that were heard. */
static void about(server_call *call, size_t first, size_t count, sl_persistent_request request)
{
    sl_uuid ids[64];

    EXPECT(count <= 64);
    for (size_t i = 0; i < count; i++)
        ids[i] = groups_id(call, first + i);
    request.ids = (sl_wire_ids){ .count = count, .list = ids, .form = SL_WIRE_ID_TEXT };
    groups_send(call, &request);
    server_rig_run(call->peer->rig);
}

void groups_ack(server_call *call, size_t first, size_t count)
{
    about(call, first, count, (sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_ACK });
}

void groups_nack(server_call *call, size_t first, size_t count, sl_wire_nack action, const char *reason)
{
    about(call, first, count,
          (sl_persistent_request){
              .kind = SL_PERSISTENT_REQUEST_NACK, .action = (int32_t)action, .reason = sl_str_from(reason) });
}

void groups_send_nack(server_call *call, sl_uuid id, sl_wire_nack action, const char *reason)
{
    groups_send(
        call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_NACK,
                                        .action = (int32_t)action,
                                        .reason = sl_str_from(reason),
                                        .ids = { .count = 1, .list = &id, .form = SL_WIRE_ID_STRUCTURED } });
}

void groups_release(server_call *call, size_t first, size_t count)
{
    about(call, first, count, (sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_RELEASE });
}

void groups_started(server_call *call, size_t first, size_t count)
{
    about(call, first, count, (sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STARTED });
}

void groups_extend(server_call *call, size_t first, size_t count, int32_t lease_ms)
{
    about(call, first, count,
          (sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_EXTEND, .lease_ms = lease_ms });
}

void groups_stop(server_call *call, bool hand_back_unstarted)
{
    const sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_STOP,
                                            .hand_back_unstarted = hand_back_unstarted };

    groups_send(call, &request);
    server_rig_run(call->peer->rig);
}

/* --- what was heard --- */

sl_persistent_response groups_message(const server_call *call, size_t index)
{
    sl_persistent_response response;
    const char *reason = "";

    EXPECT(index < call->message_count);
    EXPECT_OK(sl_persistent_response_decode(call->messages[index], &response, &reason));
    return response;
}

sl_uuid groups_id(const server_call *call, size_t index)
{
    const sl_persistent_response response = groups_message(call, index);

    EXPECT_EQ(response.kind, SL_PERSISTENT_RESPONSE_EVENT);
    return response.event.has_link ? response.event.link.id.uuid : response.event.event.id.uuid;
}

static void say_recorded(sl_text *text, const sl_wire_recorded *recorded)
{
    sl_text_add_str(text, recorded->stream);
    sl_text_add_char(text, ':');
    sl_text_add_u64(text, recorded->revision);
}

static void say_event(sl_text *text, const sl_wire_read_event *event)
{
    if (event->has_event)
        say_recorded(text, &event->event);
    else
        sl_text_add(text, "-");
    if (event->has_link) {
        sl_text_add(text, "<");
        say_recorded(text, &event->link);
    }
    EXPECT_EQ(event->retry_kind, SL_WIRE_RETRY_COUNT);
    if (event->retry_count == 0)
        return;
    sl_text_add(text, "#");
    sl_text_add_i64(text, event->retry_count);
}

static void say_three(sl_text *text, const char *word, uint64_t a, uint64_t b, uint64_t c)
{
    char buffer[128];

    snprintf(buffer, sizeof buffer, "%s:%ju/%ju/%ju", word, (uintmax_t)a, (uintmax_t)b, (uintmax_t)c);
    sl_text_add(text, buffer);
}

static void say_stopped(sl_text *text, const sl_persistent_response *response)
{
    static const char *const askers[] = { "", "^operator", "^server" };

    EXPECT_EQ(response->stopped.outstanding.count, response->stopped.in_flight);
    sl_text_add(text, "stopped:");
    sl_text_add_u64(text, response->stopped.in_flight);
    sl_text_add(text, response->stopped.already_stopped ? "!" : "");
    sl_text_add(text, askers[response->stopped.asked_by]);
}

static void say_message(sl_text *text, const sl_persistent_response *response)
{
    switch (response->kind) {
    case SL_PERSISTENT_RESPONSE_UNSET: sl_text_add(text, "NOTHING"); break;
    case SL_PERSISTENT_RESPONSE_EVENT: say_event(text, &response->event); break;
    case SL_PERSISTENT_RESPONSE_CONFIRMATION:
        sl_text_add(text, "confirmed:");
        sl_text_add_str(text, response->subscription_id);
        break;
    case SL_PERSISTENT_RESPONSE_STOPPED: say_stopped(text, response); break;
    case SL_PERSISTENT_RESPONSE_DRAINED:
        say_three(text, "drained", response->drained.settled, response->drained.released,
                  response->drained.lost);
        break;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED:
        sl_text_add(text,
                    response->stop_requested.hand_back_unstarted ? "stop-requested+back" : "stop-requested");
        break;
    case SL_PERSISTENT_RESPONSE_SETTLED:
        sl_text_add(text, "settled:");
        sl_text_add_u64(text, response->settled.ids.count);
        if (response->settled.lost.count == 0)
            break;
        sl_text_add(text, "/");
        sl_text_add_u64(text, response->settled.lost.count);
        break;
    }
}

const char *groups_heard_from(const server_call *call, size_t first)
{
    static char buffer[32 * 1024];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = first; i < call->message_count; i++) {
        const sl_persistent_response response = groups_message(call, i);

        sl_text_add(&text, text.bytes == 0 ? "" : " ");
        say_message(&text, &response);
    }
    if (call->ended) {
        sl_text_add(&text, text.bytes == 0 ? "" : " ");
        sl_text_add(&text, sl_status_name(call->status));
    }
    return buffer;
}

const char *groups_heard(const server_call *call)
{
    return groups_heard_from(call, 0);
}

static void say_data(sl_text *text, const sl_event *event)
{
    sl_text_add_u64(text, event->revision);
    sl_text_add(text, ":");
    sl_text_add_str(text, event->data);
}

static void say_metadata(sl_text *text, const sl_event *event)
{
    sl_text_add_str(text, event->metadata);
}

static const char *stored(groups *g, const char *stream, void (*say)(sl_text *text, const sl_event *event))
{
    static char buffer[32 * 1024];
    const sl_read read = { .stream = sl_str_from(stream), .now_ns = g->rig.time.wall_ns };
    sl_cursor *cursor;
    sl_event event;
    uint32_t count;
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    if (sl_store_read(g->store, &read, &cursor) != SL_OK)
        return buffer;
    while (sl_cursor_next(cursor, &event, 1, &count) == SL_OK) {
        sl_text_add(&text, text.bytes == 0 ? "" : " ");
        say(&text, &event);
    }
    sl_cursor_close(cursor);
    return buffer;
}

const char *groups_stored(groups *g, const char *stream)
{
    return stored(g, stream, say_data);
}

const char *groups_stored_metadata(groups *g, const char *stream)
{
    return stored(g, stream, say_metadata);
}
