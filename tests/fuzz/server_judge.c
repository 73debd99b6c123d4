/* tests/fuzz/server_judge.c — see server_judge.h. */
#include "server_judge.h"

#include "server/services.h"

#include <assert.h>
#include <string.h>

enum {
    ARENA_CHUNK_BYTES = 4096,
    ARENA_BYTES_MAX = 1 << 20
};

static bool keep_name(sl_str name, char into[JUDGE_NAME_BYTES_MAX], size_t *ret_bytes)
{
    if (name.bytes == 0 || name.bytes > JUDGE_NAME_BYTES_MAX)
        return false;
    memcpy(into, name.data, name.bytes);
    *ret_bytes = name.bytes;
    return true;
}

static bool has_uuid(sl_wire_id id)
{
    return id.form == SL_WIRE_ID_STRUCTURED || id.form == SL_WIRE_ID_TEXT;
}

static bool has_text(sl_str message, sl_str text)
{
    return message.bytes > 0 && memmem(message.data, message.bytes, text.data, text.bytes) != NULL;
}

/* --- what the client sends --- */

/* Options first, then events: whatever breaks that is refused, and then there is no success to be judged. */
static void append_sent(judge_append *append, uint32_t message_index, sl_str message)
{
    sl_append_request request;

    if (sl_append_request_decode(message, &request, NULL) != SL_OK)
        append->stream_bytes = 0;
    else if (message_index == 0 && request.kind == SL_APPEND_REQUEST_OPTIONS)
        (void)keep_name(request.options.stream, append->stream, &append->stream_bytes);
    else if (message_index > 0 && request.kind == SL_APPEND_REQUEST_EVENT)
        append->last_id = request.event.id.uuid;
    append->is_known = append->stream_bytes > 0 && message_index > 0;
}

/* Of an append in parts nothing is known: its parts may be mixed with those of others. */
static bool batch_read(const sl_batch_append_request *request, judge_append *append)
{
    sl_wire_walk walk = sl_wire_items_walk(&request->events);
    sl_wire_proposed event;
    sl_err err;

    while ((err = sl_batch_append_next(&walk, &event, NULL)) == SL_OK)
        append->last_id = event.id.uuid;
    return err == SL_ERR_EMPTY && request->event_count > 0 && request->has_options && request->is_final &&
           sl_wire_id_decode(request->correlation, &append->correlation, NULL) == SL_OK &&
           has_uuid(append->correlation) &&
           keep_name(request->options.stream, append->stream, &append->stream_bytes);
}

/* Two with the same correlation cannot be told apart, whatever else they are. */
static void batch_sent(judge_call *call, sl_str message)
{
    judge_append append = { .is_known = true };
    sl_batch_append_request request;
    sl_wire_id id;

    if (sl_batch_append_request_decode(message, &request, NULL) != SL_OK ||
        sl_wire_id_decode(request.correlation, &id, NULL) != SL_OK)
        return;
    for (uint32_t i = 0; i < call->batch_count; i++)
        if (sl_uuid_equal(call->batches[i].correlation.uuid, id.uuid)) {
            call->batches[i].is_known = false;
            return;
        }
    if (call->batch_count == JUDGE_BATCHES_MAX)
        return;
    append.is_known = batch_read(&request, &append);
    append.correlation = id;
    call->batches[call->batch_count++] = append;
}

static void read_sent(judge_read *read, uint32_t message_index, sl_str message)
{
    sl_read_request request;
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    if (message_index == 0 && sl_read_request_decode(message, &arena, &request, NULL) == SL_OK) {
        read->all = request.source == SL_WIRE_SOURCE_ALL;
        read->backwards = request.backwards;
        read->count_max = request.extent == SL_READ_EXTENT_COUNT ? request.count : UINT64_MAX;
        read->is_known = read->all || keep_name(request.stream, read->stream, &read->stream_bytes);
    }
    sl_arena_done(&arena);
}

/* Who changes a user may make another administrator of him. Links point to the administrator's own stream: to name that is no change. */
static bool changes_users(const sl_method *method, sl_str message)
{
    const sl_str service = method == NULL ? SL_STR("") : method->service;

    return sl_str_equal(service, sl_method_users_update.service) || has_text(message, SL_STR("$user-bob")) ||
           has_text(message, SL_STR("$users"));
}

void judge_sent(judge *j, judge_call *call, const sl_method *method, uint32_t message_index, sl_str message)
{
    j->users_are_changed |= changes_users(method, message);
    if (method == &sl_method_streams_append)
        append_sent(&call->append, message_index, message);
    else if (method == &sl_method_streams_batch_append)
        batch_sent(call, message);
    else if (method == &sl_method_streams_read)
        read_sent(&call->read, message_index, message);
}

/* --- what the server answers --- */

static void acknowledge(judge *j, const judge_call *call, const judge_append *append,
                        sl_wire_revision revision, sl_wire_position position)
{
    judge_ack *ack;

    assert(!call->began_shut);
    if (!append->is_known)
        return;
    assert(revision.kind == SL_WIRE_REVISION_NUMBER);
    assert(position.kind == SL_WIRE_POSITION_GIVEN);
    assert(position.commit < sl_store_end(j->store)); /* nobody hears of it before it is durable */
    if (j->ack_count == JUDGE_ACKS_MAX)
        return;
    ack = &j->acks[j->ack_count++];
    *ack = (judge_ack){ .stream_bytes = append->stream_bytes,
                        .last_id = append->last_id,
                        .revision = revision.number };
    memcpy(ack->stream, append->stream, append->stream_bytes);
}

static void append_received(judge *j, const judge_call *call, sl_str message)
{
    sl_append_response response;
    const sl_err err = sl_append_response_decode(message, &response, NULL);

    assert(err == SL_OK && response.kind != SL_APPEND_RESPONSE_UNSET);
    if (response.kind == SL_APPEND_RESPONSE_SUCCESS)
        acknowledge(j, call, &call->append, response.current, response.position);
}

/* NULL: none that was sent; too many were sent to remember all. */
static judge_append *find_batch(judge_call *call, sl_str correlation)
{
    sl_wire_id id;

    if (sl_wire_id_decode(correlation, &id, NULL) != SL_OK)
        return NULL;
    for (uint32_t i = 0; i < call->batch_count; i++)
        if (sl_uuid_equal(call->batches[i].correlation.uuid, id.uuid))
            return &call->batches[i];
    return NULL;
}

static void batch_received(judge *j, judge_call *call, sl_str message)
{
    sl_batch_append_response response;
    const sl_err err = sl_batch_append_response_decode(message, &response, NULL);
    judge_append *append;

    assert(err == SL_OK && response.kind != SL_BATCH_APPEND_RESPONSE_UNSET);
    append = find_batch(call, response.correlation);
    if (append == NULL)
        return;
    append->answer_count++;
    assert(!append->is_known || append->answer_count == 1);
    if (response.kind == SL_BATCH_APPEND_RESPONSE_SUCCESS)
        acknowledge(j, call, append, response.current, response.position);
}

/* Found through a link, it is the link that stands in the stream. */
static void event_received(judge_read *read, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const found = event->has_link ? &event->link : &event->event;
    const uint64_t number = read->all ? found->commit_position : found->revision;

    assert(event->has_event || event->has_link);
    assert(read->event_count < read->count_max);
    if (!read->all)
        assert(sl_str_equal(found->stream, (sl_str){ read->stream, read->stream_bytes }));
    if (read->event_count > 0)
        assert(read->backwards ? number < read->last : number > read->last);
    read->event_count++;
    read->last = number;
}

static void read_received(judge_read *read, sl_str message)
{
    sl_read_response response;
    const sl_err err = sl_read_response_decode(message, &response, NULL);

    assert(err == SL_OK && response.kind != SL_READ_RESPONSE_UNSET);
    if (read->is_known && response.kind == SL_READ_RESPONSE_EVENT)
        event_received(read, &response.event);
}

void judge_received(judge *j, judge_call *call, const sl_method *method, sl_str message)
{
    call->received_count++;
    if (j->secret.bytes > 0 && call->is_stranger && !j->users_are_changed)
        assert(!has_text(message, j->secret));
    if (method == &sl_method_streams_append)
        append_received(j, call, message);
    else if (method == &sl_method_streams_batch_append)
        batch_received(j, call, message);
    else if (method == &sl_method_streams_read)
        read_received(&call->read, message);
}

void judge_ended(const judge_call *call, const sl_method *method, sl_status status)
{
    if (status != SL_STATUS_OK)
        return;
    assert(method != NULL);
    if (method->kind == SL_METHOD_UNARY || method->kind == SL_METHOD_CLIENT_STREAM)
        assert(call->received_count == 1);
    for (uint32_t i = 0; i < call->batch_count; i++)
        assert(!call->batches[i].is_known || call->batches[i].answer_count == 1);
}

/* --- what is stored --- */

/* Deleted, shortened or too old: it may be hidden, and nothing is said about it. */
static bool is_shown(const judge *j, const judge_ack *ack)
{
    sl_stream_info info;

    sl_store_stream(j->store, (sl_str){ ack->stream, ack->stream_bytes }, &info);
    assert(info.state != SL_STREAM_MISSING);
    return info.state == SL_STREAM_LIVE && ack->revision >= info.first && info.max_age_s == 0;
}

static void check_ack(const judge *j, const judge_ack *ack, uint64_t now_ns)
{
    const sl_read read = { .stream = { ack->stream, ack->stream_bytes },
                           .from = ack->revision,
                           .now_ns = now_ns };
    sl_cursor *cursor = NULL;
    sl_event event;
    uint32_t count;
    sl_err err = sl_store_read(j->store, &read, &cursor);

    assert(err == SL_OK);
    err = sl_cursor_next(cursor, &event, 1, &count);
    assert(err == SL_OK);
    assert(event.revision == ack->revision);
    assert(sl_uuid_equal(event.id, ack->last_id));
    sl_cursor_close(cursor);
}

void judge_acks(const judge *j, uint64_t now_ns)
{
    for (uint32_t i = 0; i < j->ack_count; i++)
        if (is_shown(j, &j->acks[i]))
            check_ack(j, &j->acks[i], now_ns);
}

/* What consumers have done is still taken, and nothing else. */
void judge_door(judge *j, uint64_t batches_accepted, uint64_t others_accepted, uint64_t batches_inside)
{
    if (!j->door_is_shut)
        return;
    assert(others_accepted == j->others_at_shut);
    if (batches_accepted != j->accepted_at_shut)
        return;
    if (!j->end_is_known && batches_inside == 0) {
        j->end_is_known = true;
        j->end_at_shut = sl_store_end(j->store);
    }
    if (j->end_is_known)
        assert(sl_store_end(j->store) == j->end_at_shut);
}
