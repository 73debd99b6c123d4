/* tests/unit/server/groups_rig.c — see groups_rig.h. */
#include "groups_rig.h"

#include "server/request.h"
#include "server/services.h"
#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- start and end --- */

static void start(groups *g, sl_store *store, sl_clock_manual time)
{
    server_rig_init(&g->rig);
    g->rig.time = time;
    g->rig.store = store;
    g->store = store;
    server_rig_start(&g->rig);
    server_rig_run(&g->rig);
}

void groups_start_on(groups *g, sl_store *store)
{
    start(g, store, (sl_clock_manual){ 1000000000, 1700000000000000000 });
}

void groups_start(groups *g)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    sl_store *store;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    groups_start_on(g, store);
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
    EXPECT_OK(sl_store_memory_restart(g->store, kind));
    start(g, g->store, time);
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
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED: sl_text_add(text, "stop-requested"); break;
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

const char *groups_stored(groups *g, const char *stream)
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
        sl_text_add_u64(&text, event.revision);
        sl_text_add(&text, ":");
        sl_text_add_str(&text, event.data);
    }
    sl_cursor_close(cursor);
    return buffer;
}

/* --- a store that holds back what is durable --- */

typedef struct held_store {
    sl_store base;
    sl_store *inner;
    bool holds, holds_all, refuses, is_full, blocks;
    sl_list waiting;
    bool reads_slowly, reads_stick, loses;
    uint64_t lost; /* revision, in every stream */
} held_store;

typedef struct held_note {
    held_store *store;
    sl_list node;
    sl_done_fn *done;
    void *ctx;
    bool sync;
    sl_commit commit;
    uint32_t count;
    sl_op_result results[SL_BATCH_OPS_MAX];
} held_note;

static held_store *held_of(const sl_store *store)
{
    return SL_CONTAINER_OF(store, held_store, base);
}

static void held_give(held_note *note)
{
    note->commit.results = note->results;
    note->done(note->ctx, &note->commit);
    free(note);
}

static void held_done(void *ctx, const sl_commit *commit)
{
    held_note *const note = ctx;

    note->commit = *commit;
    memcpy(note->results, commit->results, note->count * sizeof *note->results);
    if (note->store->holds_all ||
        (note->sync && (note->store->holds || !sl_list_empty(&note->store->waiting))))
        sl_list_push_back(&note->store->waiting, &note->node);
    else
        held_give(note);
}

static bool has_append(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_APPEND || batch->ops[i].kind == SL_OP_DELETE)
            return true;
    return false;
}

static sl_err held_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    held_store *const store = held_of(base);
    held_note *const note = malloc(sizeof *note);
    sl_err err;

    assert_non_null(note);
    if (store->blocks && !has_append(batch)) {
        free(note);
        return SL_ERR_NO_SPACE;
    }
    *note = (held_note){ .store = store,
                         .done = done,
                         .ctx = ctx,
                         .sync = batch->durability == SL_DURABLE_SYNC,
                         .count = batch->op_count };
    sl_list_init(&note->node);
    if (store->refuses && has_append(batch)) {
        note->commit.err = SL_ERR_NO_SPACE;
        sl_list_push_back(&store->waiting, &note->node);
        return SL_OK;
    }
    err = sl_store_submit(store->inner, batch, held_done, note);
    if (err != SL_OK)
        free(note);
    return err;
}

static void held_turn(sl_store *base)
{
    sl_store_turn(held_of(base)->inner);
}

static void held_write(sl_store *base)
{
    sl_store_write(held_of(base)->inner);
}

static void held_hurry(sl_store *base)
{
    sl_store_hurry(held_of(base)->inner);
}

static int held_wait_fd(const sl_store *base)
{
    return sl_store_wait_fd(held_of(base)->inner);
}

static void held_poll(sl_store *base)
{
    held_store *const store = held_of(base);

    sl_store_poll(store->inner);
    while (!store->holds && !store->holds_all && !sl_list_empty(&store->waiting)) {
        held_note *const note = SL_CONTAINER_OF(sl_list_first(&store->waiting), held_note, node);

        sl_list_remove(&note->node);
        held_give(note);
    }
    if (base->on_commit != NULL)
        base->on_commit(base->on_commit_ctx, sl_store_end(store->inner));
}

/* A cursor that gives one event after the other, each as late as the test wants. */
typedef struct held_cursor {
    sl_cursor base;
    held_store *store;
    sl_cursor *inner;
    bool asked; /* the disk */
} held_cursor;

static sl_err held_cursor_next(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    held_cursor *const cursor = (held_cursor *)base;
    sl_err err;

    if (cursor->store->reads_stick || (cursor->store->reads_slowly && !cursor->asked)) {
        cursor->asked = true;
        return SL_ERR_AGAIN;
    }
    cursor->asked = false;
    do
        err = sl_cursor_next(cursor->inner, events, cursor->store->loses ? 1 : max, ret_count);
    while (err == SL_OK && cursor->store->loses && events[0].revision == cursor->store->lost);
    base->position = sl_cursor_position(cursor->inner);
    base->considered = sl_cursor_considered(cursor->inner);
    return err;
}

static void held_cursor_close(sl_cursor *base)
{
    sl_cursor_close(((held_cursor *)base)->inner);
    free(base);
}

static const sl_cursor_ops held_cursor_ops = { held_cursor_next, held_cursor_close };

static sl_err held_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    sl_cursor *inner;
    const sl_err err = sl_store_read(held_of(base)->inner, read, &inner);
    held_cursor *cursor;

    if (err != SL_OK)
        return err;
    cursor = malloc(sizeof *cursor);
    assert_non_null(cursor);
    *cursor = (held_cursor){ .base = { .ops = &held_cursor_ops }, .store = held_of(base), .inner = inner };
    *ret_cursor = &cursor->base;
    return SL_OK;
}

static void held_stream(const sl_store *base, sl_str stream, sl_stream_info *ret_info)
{
    sl_store_stream(held_of(base)->inner, stream, ret_info);
}

static uint64_t held_end(const sl_store *base)
{
    return sl_store_end(held_of(base)->inner);
}

static sl_err held_load(sl_store *base, const sl_loader *loader)
{
    return sl_store_load(held_of(base)->inner, loader);
}

static bool held_is_full(sl_store *base)
{
    return held_of(base)->is_full;
}

static const char *held_problem(const sl_store *base)
{
    (void)base;
    return "";
}

static void held_close(sl_store *base)
{
    held_store *const store = held_of(base);

    store->holds = store->holds_all = false;
    sl_store_close(store->inner);
    while (!sl_list_empty(&store->waiting)) {
        held_note *const note = SL_CONTAINER_OF(sl_list_first(&store->waiting), held_note, node);

        sl_list_remove(&note->node);
        held_give(note);
    }
    free(store);
}

static const sl_store_ops held_ops = {
    .name = "held",
    .submit = held_submit,
    .turn = held_turn,
    .write = held_write,
    .hurry = held_hurry,
    .wait_fd = held_wait_fd,
    .poll = held_poll,
    .read = held_read,
    .stream = held_stream,
    .end = held_end,
    .load = held_load,
    .is_full = held_is_full,
    .problem = held_problem,
    .close = held_close,
};

sl_store *groups_held_store(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    held_store *const store = malloc(sizeof *store);

    assert_non_null(store);
    *store = (held_store){ .base = { .ops = &held_ops } };
    sl_list_init(&store->waiting);
    EXPECT_OK(sl_store_open_memory(&setup, &store->inner));
    return &store->base;
}

void groups_held_store_hold(sl_store *store, bool hold)
{
    held_of(store)->holds = hold;
}

void groups_held_store_hold_all(sl_store *store, bool hold)
{
    held_of(store)->holds_all = hold;
}

void groups_held_store_refuse(sl_store *store, bool refuse)
{
    held_of(store)->refuses = refuse;
}

void groups_held_store_fill(sl_store *store, bool full)
{
    held_of(store)->is_full = held_of(store)->refuses = full;
}

void groups_held_store_block(sl_store *store, bool block)
{
    held_of(store)->blocks = block;
}

void groups_held_store_slow(sl_store *store, bool slow)
{
    held_of(store)->reads_slowly = slow;
}

void groups_held_store_stick(sl_store *store, bool stick)
{
    held_of(store)->reads_stick = stick;
}

void groups_held_store_lose(sl_store *store, uint64_t revision)
{
    held_of(store)->loses = true;
    held_of(store)->lost = revision;
}
