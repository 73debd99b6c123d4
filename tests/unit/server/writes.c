/* tests/unit/server/writes.c — see writes.h. */
#include "writes.h"

#include "server/door.h"

#include <stdio.h>
#include <string.h>

enum {
    MEMORY_BYTES_MAX = 1024 * 1024 * 1024,
    STORED_BYTES_MAX = 64 * 1024,
};

void writes_init(writes *w)
{
    server_rig_init(&w->rig);
    sl_arena_init(&w->memory, &sl_alloc_default, (sl_arena_sizes){ 64 * 1024, MEMORY_BYTES_MAX });
}

void writes_start(writes *w)
{
    writes_init(w);
    server_rig_start(&w->rig);
}

void writes_done(writes *w)
{
    server_rig_done(&w->rig);
    sl_arena_done(&w->memory);
}

static void *take(writes *w, size_t bytes)
{
    void *const memory = sl_arena_alloc(&w->memory, bytes);

    assert_non_null(memory);
    return memory;
}

static void deliver_from(server_peer *peer)
{
    static uint8_t piece[64 * 1024];
    size_t bytes;

    while ((bytes = sl_connection_output(peer->client, peer->rig->time.mono_ns, piece, sizeof piece)) > 0)
        sl_connection_receive(peer->link->connection, peer->rig->time.mono_ns, piece, bytes);
    peer->touched = true;
}

void writes_deliver(writes *w)
{
    SL_LIST_EACH (node, &w->rig.connections) {
        server_peer *const peer = SL_CONTAINER_OF(node, server_peer, node);

        if (peer->link != NULL)
            deliver_from(peer);
    }
}

sl_request *writes_request(const writes *w)
{
    sl_list *const last = sl_list_last(&w->rig.host->requests);

    assert_non_null(last);
    return SL_CONTAINER_OF(last, sl_request, node);
}

void writes_distrust(const writes *w)
{
    writes_request(w)->identity = (sl_identity){ .name = SL_STR("somebody") };
}

/* --- events --- */

static sl_uuid id_of(uint64_t number)
{
    return sl_uuid_from_halves(0x7700000000000000, (int64_t)number);
}

static sl_str printed(writes *w, const char *format, uint64_t number)
{
    char *const text = take(w, 48);
    const int bytes = snprintf(text, 48, format, (unsigned long long)number);

    return (sl_str){ text, (size_t)bytes };
}

sl_wire_proposed writes_event(writes *w, uint64_t number)
{
    return (sl_wire_proposed){ .id = { id_of(number), SL_WIRE_ID_STRUCTURED },
                               .type = printed(w, "t%llu", number),
                               .content_type = SL_STR("application/json"),
                               .data = printed(w, "{\"n\":%llu}", number) };
}

sl_wire_proposed *writes_events(writes *w, uint64_t first_number, size_t count)
{
    sl_wire_proposed *const events = take(w, count * sizeof *events);

    for (size_t i = 0; i < count; i++)
        events[i] = writes_event(w, first_number + i);
    return events;
}

sl_str writes_text(writes *w, size_t bytes, char c)
{
    char *const text = take(w, bytes);

    memset(text, c, bytes);
    return (sl_str){ text, bytes };
}

static const char *stored(writes *w, sl_str stream)
{
    char *const buffer = take(w, STORED_BYTES_MAX);
    sl_cursor *cursor = NULL;
    sl_event event;
    uint32_t count;
    sl_text text;

    sl_text_init(&text, buffer, STORED_BYTES_MAX);
    if (sl_store_read(w->rig.store, &(sl_read){ .stream = stream }, &cursor) != SL_OK)
        return buffer;
    while (sl_cursor_next(cursor, &event, 1, &count) == SL_OK) {
        if (text.bytes > 0)
            sl_text_add(&text, " ");
        if (stream.bytes > 0) {
            sl_text_add_u64(&text, event.revision);
            sl_text_add(&text, ":");
        }
        sl_text_add_str(&text, event.type);
        if (stream.bytes == 0) {
            sl_text_add(&text, "@");
            sl_text_add_str(&text, event.stream);
        }
    }
    sl_cursor_close(cursor);
    return buffer;
}

const char *writes_stored(writes *w, const char *stream)
{
    return stored(w, sl_str_from(stream));
}

const char *writes_stored_all(writes *w)
{
    return stored(w, SL_STR(""));
}

static void on_committed(void *ctx, const sl_commit *commit)
{
    EXPECT_OK(commit->err);
    *(bool *)ctx = true;
}

void writes_commit(writes *w, const sl_op *op)
{
    bool is_done = false;

    EXPECT_OK(
        sl_door_submit(w->rig.host->door, &(sl_batch){ .ops = op, .op_count = 1 }, on_committed, &is_done));
    server_rig_run_until(&w->rig, &is_done);
}

static void on_submitted(void *ctx, const sl_commit *commit)
{
    (void)ctx;
    EXPECT_OK(commit->err);
}

bool writes_submit(writes *w, const sl_op *op)
{
    const sl_err err =
        sl_door_submit(w->rig.host->door, &(sl_batch){ .ops = op, .op_count = 1 }, on_submitted, NULL);

    EXPECT(err == SL_OK || err == SL_ERR_FULL);
    return err == SL_OK;
}

/* --- Append --- */

static sl_str append_message(writes *w, const sl_append_request *request)
{
    const size_t bytes = sl_append_request_size(request);
    uint8_t *const message = take(w, bytes);

    sl_append_request_encode(request, message, bytes);
    return (sl_str){ (const char *)message, bytes };
}

sl_str writes_append_options(writes *w, sl_str stream, sl_wire_revision expected)
{
    return append_message(
        w, &(sl_append_request){ .kind = SL_APPEND_REQUEST_OPTIONS, .options = { stream, expected } });
}

sl_str writes_append_event(writes *w, const sl_wire_proposed *event)
{
    return append_message(w, &(sl_append_request){ .kind = SL_APPEND_REQUEST_EVENT, .event = *event });
}

server_call *writes_append_sent(writes *w, const char *stream, sl_wire_revision expected,
                                uint64_t first_number, size_t count)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_APPEND_PATH);

    server_call_send(call, writes_append_options(w, sl_str_from(stream), expected));
    for (size_t i = 0; i < count; i++) {
        const sl_wire_proposed event = writes_event(w, first_number + i);
        server_call_send(call, writes_append_event(w, &event));
    }
    server_call_half_close(call);
    return call;
}

server_call *writes_append(writes *w, const char *stream, sl_wire_revision expected, uint64_t first_number,
                           size_t count)
{
    server_call *const call = writes_append_sent(w, stream, expected, first_number, count);

    server_rig_run_until_ended(&w->rig, call);
    return call;
}

sl_append_response writes_append_answer(const server_call *call)
{
    sl_append_response answer = { 0 };

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_OK(sl_append_response_decode(call->messages[0], &answer, NULL));
    return answer;
}

/* --- BatchAppend --- */

sl_wire_id writes_correlation(uint64_t number)
{
    return (sl_wire_id){ sl_uuid_from_halves(0x0c00000000000000, (int64_t)number), SL_WIRE_ID_STRUCTURED };
}

void writes_batch_draft(writes *w, server_call *call, const sl_batch_append_draft *draft)
{
    const size_t bytes = sl_batch_append_request_size(draft);
    uint8_t *const message = take(w, bytes);

    sl_batch_append_request_encode(draft, message, bytes);
    server_call_send(call, (sl_str){ (const char *)message, bytes });
}

void writes_batch(writes *w, server_call *call, uint64_t correlation, const char *stream,
                  sl_wire_revision expected, uint64_t first_number, size_t count)
{
    const sl_batch_options options = { .stream = sl_str_from(stream), .expected = expected };

    writes_batch_draft(w, call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(correlation),
                                                 .options = &options,
                                                 .events = writes_events(w, first_number, count),
                                                 .event_count = count,
                                                 .is_final = true });
}

sl_batch_append_response writes_batch_answer(const server_call *call, size_t index)
{
    sl_batch_append_response answer = { 0 };

    EXPECT(index < call->message_count);
    EXPECT_OK(sl_batch_append_response_decode(call->messages[index], &answer, NULL));
    return answer;
}

uint64_t writes_batch_number(const sl_batch_append_response *answer)
{
    int64_t most, least;
    sl_wire_id id;

    EXPECT_OK(sl_wire_id_decode(answer->correlation, &id, NULL));
    sl_uuid_to_halves(id.uuid, &most, &least);
    return (uint64_t)least;
}

void writes_expect_error(const server_call *call, size_t index, int32_t code, const char *message,
                         const char *detail)
{
    static const sl_str prefix = SL_STR_INIT("type.googleapis.com/");
    const sl_batch_append_response answer = writes_batch_answer(call, index);
    const sl_str type = answer.error.detail_type;

    EXPECT_EQ(answer.kind, SL_BATCH_APPEND_RESPONSE_ERROR);
    EXPECT_EQ(answer.error.code, code);
    if (!sl_str_equal(answer.error.message, sl_str_from(message)))
        fail_msg("\"%.*s\", wanted \"%s\"", (int)answer.error.message.bytes, answer.error.message.data,
                 message);
    EXPECT(sl_str_starts_with(type, prefix));
    EXPECT(
        sl_str_equal((sl_str){ type.data + prefix.bytes, type.bytes - prefix.bytes }, sl_str_from(detail)));
}
