/* tests/unit/server/read_rig.c — see read_rig.h. */
#include "read_rig.h"

#include "server/door.h"
#include "server/request.h"
#include "server/services.h"
#include "store/faulty/faulty.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *user_name;

/* Only this method, so that these tests need no other service. */
static const sl_method *find_read(sl_str path, const char **ret_why)
{
    *ret_why = "Only Read is offered here.";
    return sl_str_equal(path, SL_STR(READ_PATH)) ? &sl_method_streams_read : NULL;
}

void reads_start(server_rig *rig, sl_store *store)
{
    server_rig_init(rig);
    rig->store = store;
    server_rig_start(rig);
    rig->host->find_method = find_read;
}

/* --- who asks --- */

static void begin_as_user(sl_request *request)
{
    request->identity = (sl_identity){ .name = sl_str_from(user_name) };
}

static const sl_method *find_read_as_user(sl_str path, const char **ret_why)
{
    static sl_method method;

    if (find_read(path, ret_why) == NULL)
        return NULL;
    method = sl_method_streams_read;
    method.begin = begin_as_user;
    return &method;
}

void reads_as_user(server_rig *rig, const char *name)
{
    user_name = name;
    rig->host->find_method = find_read_as_user;
}

/* --- writing --- */

static sl_uuid next_id(void)
{
    static uint64_t count;
    sl_uuid id = { { 0xbb } };

    count++;
    memcpy(id.bytes + 8, &count, sizeof count);
    return id;
}

static void on_done(void *ctx, const sl_commit *commit)
{
    if (ctx == NULL)
        return;
    EXPECT_OK(commit->err);
    *(bool *)ctx = true;
}

static void submit(server_rig *rig, const sl_op *op, bool *done)
{
    EXPECT_OK(sl_door_submit(rig->host->door, &(sl_batch){ .ops = op, .op_count = 1 }, on_done, done));
}

void reads_commit(server_rig *rig, const sl_op *op)
{
    bool done = false;

    submit(rig, op, &done);
    server_rig_run_until(rig, &done);
    server_rig_run(rig);
}

static sl_op append_op(const char *stream, const sl_event_in *events, uint32_t event_count)
{
    return (
        sl_op){ .kind = SL_OP_APPEND,
                .append = { .stream = sl_str_from(stream), .events = events, .event_count = event_count } };
}

static sl_event_in event(const server_rig *rig, const char *type, sl_str data)
{
    return (sl_event_in){ .id = next_id(),
                          .type = sl_str_from(type),
                          .data = data,
                          .is_json = true,
                          .created_ns = rig->time.wall_ns };
}

enum {
    AT_ONCE = 1000
};

void reads_append_burst(server_rig *rig, const char *stream, unsigned count, size_t data_bytes)
{
    static sl_event_in events[AT_ONCE];
    char *const data = malloc(data_bytes);
    const sl_op op = append_op(stream, events, count);

    EXPECT(data != NULL && count <= AT_ONCE);
    memset(data, 'x', data_bytes);
    for (unsigned i = 0; i < count; i++)
        events[i] = event(rig, "t", (sl_str){ data, data_bytes });
    reads_commit(rig, &op);
    free(data);
}

void reads_append(server_rig *rig, const char *stream, unsigned count)
{
    for (; count > AT_ONCE; count -= AT_ONCE)
        reads_append_burst(rig, stream, AT_ONCE, 2);
    reads_append_burst(rig, stream, count, 2);
}

void reads_append_bytes(server_rig *rig, const char *stream, size_t data_bytes)
{
    reads_append_burst(rig, stream, 1, data_bytes);
}

void reads_append_event(server_rig *rig, const char *stream, const sl_event_in *event_in)
{
    const sl_op op = append_op(stream, event_in, 1);

    reads_commit(rig, &op);
}

void reads_append_typed(server_rig *rig, const char *stream, const char *type, const char *data)
{
    const sl_event_in one = event(rig, type, sl_str_from(data));

    reads_append_event(rig, stream, &one);
}

void reads_set_metadata(server_rig *rig, const char *stream, const char *json)
{
    char name[1100];

    snprintf(name, sizeof name, "$$%s", stream);
    reads_append_typed(rig, name, "$metadata", json);
}

static void remove_stream(server_rig *rig, const char *stream, sl_op_kind kind)
{
    const sl_op op = {
        .kind = kind,
        .remove = { .stream = sl_str_from(stream), .created_ns = rig->time.wall_ns, .id = next_id() }
    };

    reads_commit(rig, &op);
}

void reads_delete(server_rig *rig, const char *stream)
{
    remove_stream(rig, stream, SL_OP_DELETE);
}

void reads_tombstone(server_rig *rig, const char *stream)
{
    remove_stream(rig, stream, SL_OP_TOMBSTONE);
}

void reads_submit(server_rig *rig, const char *stream)
{
    const sl_event_in one = event(rig, "t", SL_STR("{}"));
    const sl_op op = append_op(stream, &one, 1);

    submit(rig, &op, NULL);
}

/* --- asking --- */

sl_read_request reads_of_stream(const char *stream)
{
    return (sl_read_request){ .source = SL_WIRE_SOURCE_STREAM,
                              .stream = sl_str_from(stream),
                              .start = SL_WIRE_START_BEGIN,
                              .extent = SL_READ_EXTENT_COUNT,
                              .count = READ_UNTIL_END,
                              .filter = { .kind = SL_WIRE_FILTER_NONE },
                              .has_id_option = true,
                              .id_form = SL_WIRE_ID_TEXT };
}

sl_read_request reads_of_all(void)
{
    sl_read_request request = reads_of_stream("");

    request.source = SL_WIRE_SOURCE_ALL;
    return request;
}

sl_read_request reads_subscription(const char *stream)
{
    sl_read_request request = reads_of_stream(stream);

    request.extent = SL_READ_EXTENT_SUBSCRIPTION;
    return request;
}

sl_read_request reads_subscription_to_all(void)
{
    sl_read_request request = reads_of_all();

    request.extent = SL_READ_EXTENT_SUBSCRIPTION;
    return request;
}

sl_read_request reads_filtered(const char *prefix, uint32_t window, uint32_t multiplier)
{
    static sl_str prefixes[1];
    sl_read_request request = reads_subscription_to_all();

    prefixes[0] = sl_str_from(prefix);
    request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                       .on = SL_WIRE_FILTER_ON_STREAM,
                                       .prefixes = prefixes,
                                       .prefix_count = 1,
                                       .window = window == 0 ? SL_WIRE_WINDOW_COUNT : SL_WIRE_WINDOW_MAX,
                                       .window_max = window,
                                       .checkpoint_multiplier = multiplier };
    return request;
}

sl_read_request reads_from(sl_read_request request, uint64_t revision_or_position)
{
    request.start = SL_WIRE_START_GIVEN;
    request.revision = revision_or_position;
    request.position =
        (sl_wire_position){ SL_WIRE_POSITION_GIVEN, revision_or_position, revision_or_position };
    return request;
}

sl_read_request reads_from_end(sl_read_request request)
{
    request.start = SL_WIRE_START_END;
    return request;
}

sl_read_request reads_backwards(sl_read_request request)
{
    request.backwards = true;
    return request;
}

sl_read_request reads_count(sl_read_request request, uint64_t count)
{
    request.count = count;
    return request;
}

server_call *reads_call_on(server_rig *rig, server_peer *peer, const sl_read_request *request)
{
    server_call *const call =
        server_rig_call_with(rig, &(server_call_options){ .peer = peer, .path = READ_PATH });
    sl_arena arena;
    sl_str message;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_read_request_encode(request, &arena, &message));
    server_call_send(call, message);
    server_call_half_close(call);
    sl_arena_done(&arena);
    return call;
}

server_call *reads_call(server_rig *rig, const sl_read_request *request)
{
    return reads_call_on(rig, NULL, request);
}

server_call *reads_do(server_rig *rig, sl_read_request request)
{
    server_call *const call = reads_call(rig, &request);

    server_rig_run_until_ended(rig, call);
    return call;
}

server_call *reads_begin(server_rig *rig, sl_read_request request)
{
    server_call *const call = reads_call(rig, &request);

    server_rig_run(rig);
    return call;
}

/* --- what was said --- */

sl_read_response reads_message(const server_call *call, size_t index)
{
    sl_read_response response;
    const char *reason = "";

    EXPECT(index < call->message_count);
    EXPECT_OK(sl_read_response_decode(call->messages[index], &response, &reason));
    return response;
}

static void say_recorded(sl_text *text, const sl_wire_recorded *recorded)
{
    sl_text_add_str(text, recorded->stream);
    sl_text_add_char(text, ':');
    sl_text_add_u64(text, recorded->revision);
}

static void say_event(sl_text *text, const sl_wire_read_event *event_read)
{
    if (event_read->has_event)
        say_recorded(text, &event_read->event);
    else
        sl_text_add(text, "-");
    if (!event_read->has_link)
        return;
    sl_text_add(text, "<");
    say_recorded(text, &event_read->link);
}

static void say_number(sl_text *text, const char *what, uint64_t number)
{
    sl_text_add(text, what);
    sl_text_add_char(text, '@');
    sl_text_add_u64(text, number);
}

static void say_caught_up(sl_text *text, const sl_read_boundary *boundary)
{
    EXPECT(boundary->time.given);
    if (boundary->has_revision)
        say_number(text, "caught-up", (uint64_t)boundary->revision);
    else if (boundary->position.kind == SL_WIRE_POSITION_GIVEN)
        say_number(text, "caught-up", boundary->position.commit);
    else
        sl_text_add(text, "caught-up");
}

static void say(sl_text *text, const sl_read_response *response)
{
    switch (response->kind) {
    case SL_READ_RESPONSE_EVENT: say_event(text, &response->event); break;
    case SL_READ_RESPONSE_CONFIRMATION: sl_text_add(text, "confirmed"); break;
    case SL_READ_RESPONSE_CHECKPOINT:
        EXPECT(response->checkpoint.time.given);
        EXPECT_EQ(response->checkpoint.position.commit, response->checkpoint.position.prepare);
        say_number(text, "checkpoint", response->checkpoint.position.commit);
        break;
    case SL_READ_RESPONSE_STREAM_NOT_FOUND:
        sl_text_add(text, "not-found:");
        sl_text_add_str(text, response->stream);
        break;
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION: say_number(text, "first", response->stream_position); break;
    case SL_READ_RESPONSE_LAST_STREAM_POSITION: say_number(text, "last", response->stream_position); break;
    case SL_READ_RESPONSE_CAUGHT_UP: say_caught_up(text, &response->boundary); break;
    case SL_READ_RESPONSE_UNSET:
    case SL_READ_RESPONSE_LAST_ALL_POSITION:
    case SL_READ_RESPONSE_FELL_BEHIND: fail_msg("a message that must never be sent"); break;
    }
}

const char *reads_said_after(const server_call *call, size_t message_count)
{
    static char buffer[64 * 1024];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = message_count; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (text.bytes > 0)
            sl_text_add_char(&text, ' ');
        say(&text, &response);
    }
    if (call->ended) {
        sl_text_add(&text, text.bytes > 0 ? " " : "");
        sl_text_add(&text, sl_status_name(call->status));
    }
    return buffer;
}

const char *reads_said(const server_call *call)
{
    return reads_said_after(call, 0);
}

size_t reads_waiting_bytes(const server_call *call)
{
    return sl_connection_output_bytes(call->peer->link->connection);
}

/* --- a slow disk --- */

slow_store slow_store_open(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 5, 6 } };
    const sl_journal_options options = { .segment_bytes = 256 * 1024 };
    slow_store slow = { .disk = sl_faulty_new() };
    char words[512];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    assert_non_null(slow.disk);
    EXPECT_OK(sl_store_open_faulty(&setup, &options, slow.disk, &report, &slow.store));
    sl_faulty_slow_reads(slow.disk, 1);
    return slow;
}

void slow_store_close(slow_store *slow)
{
    sl_store_close(slow->store);
    sl_faulty_free(slow->disk);
}
