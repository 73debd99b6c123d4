/* wire/codec/read.c — ReadResp of Streams: an event, or one of the eight other things that a read or a subscription is told.
 */
#include "wire/codec/common.h"
#include "wire/streams_codec.h"

/* --- reading --- */

static void take_confirmation(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part))
        if (part.number == 1)
            sl_proto_take_text(&inner, &part, into);
    sl_proto_leave(reader, &inner);
}

static void take_checkpoint(sl_proto_reader *reader, const sl_proto_field *field, sl_read_checkpoint *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    into->position.kind = SL_WIRE_POSITION_GIVEN;
    while (sl_proto_next(&inner, &part)) {
        switch (part.number) {
        case 1: sl_proto_take_u64(&inner, &part, &into->position.commit); break;
        case 2: sl_proto_take_u64(&inner, &part, &into->position.prepare); break;
        case 3: sl_wire_take_time(&inner, &part, &into->time); break;
        default: break;
        }
    }
    sl_proto_leave(reader, &inner);
}

static void take_not_found(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part))
        if (part.number == 1)
            sl_wire_take_stream(&inner, &part, into);
    sl_proto_leave(reader, &inner);
}

static void take_boundary(sl_proto_reader *reader, const sl_proto_field *field, sl_read_boundary *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        switch (part.number) {
        case 1: sl_wire_take_time(&inner, &part, &into->time); break;
        case 2:
            into->has_revision = true;
            sl_proto_take_i64(&inner, &part, &into->revision);
            break;
        case 3: sl_wire_take_position(&inner, &part, &into->position); break;
        default: break;
        }
    }
    sl_proto_leave(reader, &inner);
}

/* Only the member that follows is cleared, and of an event only what says which parts are there: the union is large. */
static void turn_to(sl_read_response *response, sl_read_response_kind kind)
{
    if (response->kind == kind)
        return;
    response->kind = kind;
    switch (kind) {
    case SL_READ_RESPONSE_EVENT:
        response->event.has_event = response->event.has_link = false;
        response->event.position_kind = SL_WIRE_POSITION_UNSET;
        response->event.commit_position = 0;
        response->event.retry_kind = SL_WIRE_RETRY_UNSET;
        response->event.retry_count = response->event.lease_ms = 0;
        response->event.lease_token = 0;
        break;
    case SL_READ_RESPONSE_CONFIRMATION: response->subscription_id = (sl_str){ 0 }; break;
    case SL_READ_RESPONSE_CHECKPOINT: response->checkpoint = (sl_read_checkpoint){ 0 }; break;
    case SL_READ_RESPONSE_STREAM_NOT_FOUND: response->stream = (sl_str){ 0 }; break;
    case SL_READ_RESPONSE_LAST_ALL_POSITION: response->all_position = (sl_wire_position){ 0 }; break;
    case SL_READ_RESPONSE_CAUGHT_UP:
    case SL_READ_RESPONSE_FELL_BEHIND: response->boundary = (sl_read_boundary){ 0 }; break;
    case SL_READ_RESPONSE_UNSET:
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION:
    case SL_READ_RESPONSE_LAST_STREAM_POSITION: break;
    }
}

static void take_content(sl_proto_reader *reader, const sl_proto_field *field, sl_read_response *into)
{
    switch (into->kind) {
    case SL_READ_RESPONSE_UNSET: break;
    case SL_READ_RESPONSE_EVENT: sl_wire_take_read_event(reader, field, false, &into->event); break;
    case SL_READ_RESPONSE_CONFIRMATION: take_confirmation(reader, field, &into->subscription_id); break;
    case SL_READ_RESPONSE_CHECKPOINT: take_checkpoint(reader, field, &into->checkpoint); break;
    case SL_READ_RESPONSE_STREAM_NOT_FOUND: take_not_found(reader, field, &into->stream); break;
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION:
    case SL_READ_RESPONSE_LAST_STREAM_POSITION:
        sl_proto_take_u64(reader, field, &into->stream_position);
        break;
    case SL_READ_RESPONSE_LAST_ALL_POSITION: sl_wire_take_position(reader, field, &into->all_position); break;
    case SL_READ_RESPONSE_CAUGHT_UP:
    case SL_READ_RESPONSE_FELL_BEHIND: take_boundary(reader, field, &into->boundary); break;
    }
}

sl_err sl_read_response_decode(sl_str message, sl_read_response *ret_response, const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    ret_response->kind = SL_READ_RESPONSE_UNSET;
    while (sl_proto_next(&reader, &field))
        if (field.number <= SL_READ_RESPONSE_FELL_BEHIND) {
            turn_to(ret_response, (sl_read_response_kind)field.number);
            take_content(&reader, &field, ret_response);
        }
    return sl_proto_result(&reader, ret_reason);
}

/* --- writing --- */

static void put_confirmation(sl_proto_writer *writer, uint32_t number, sl_str subscription_id)
{
    const size_t before = writer->used;

    sl_proto_put_bytes(writer, 1, subscription_id);
    sl_proto_wrap(writer, number, before);
}

static void put_checkpoint(sl_proto_writer *writer, uint32_t number, const sl_read_checkpoint *checkpoint)
{
    const size_t before = writer->used;

    sl_wire_put_time(writer, 3, &checkpoint->time);
    sl_proto_put_u64(writer, 2, checkpoint->position.prepare);
    sl_proto_put_u64(writer, 1, checkpoint->position.commit);
    sl_proto_wrap(writer, number, before);
}

static void put_not_found(sl_proto_writer *writer, uint32_t number, sl_str stream)
{
    const size_t before = writer->used;

    sl_wire_put_stream(writer, 1, stream);
    sl_proto_wrap(writer, number, before);
}

static void put_boundary(sl_proto_writer *writer, uint32_t number, const sl_read_boundary *boundary)
{
    const size_t before = writer->used;

    if (boundary->position.kind == SL_WIRE_POSITION_GIVEN)
        sl_wire_put_position(writer, 3, &boundary->position);
    if (boundary->has_revision)
        sl_proto_put_given(writer, 2, (uint64_t)boundary->revision);
    sl_wire_put_time(writer, 1, &boundary->time);
    sl_proto_wrap(writer, number, before);
}

static void put_response(sl_proto_writer *writer, const sl_read_response *response)
{
    const uint32_t number = response->kind;

    switch (response->kind) {
    case SL_READ_RESPONSE_UNSET: break;
    case SL_READ_RESPONSE_EVENT: sl_wire_put_read_event(writer, number, false, &response->event); break;
    case SL_READ_RESPONSE_CONFIRMATION: put_confirmation(writer, number, response->subscription_id); break;
    case SL_READ_RESPONSE_CHECKPOINT: put_checkpoint(writer, number, &response->checkpoint); break;
    case SL_READ_RESPONSE_STREAM_NOT_FOUND: put_not_found(writer, number, response->stream); break;
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION:
    case SL_READ_RESPONSE_LAST_STREAM_POSITION:
        sl_proto_put_given(writer, number, response->stream_position);
        break;
    case SL_READ_RESPONSE_LAST_ALL_POSITION:
        sl_wire_put_position(writer, number, &response->all_position);
        break;
    case SL_READ_RESPONSE_CAUGHT_UP:
    case SL_READ_RESPONSE_FELL_BEHIND: put_boundary(writer, number, &response->boundary); break;
    }
}

size_t sl_read_response_size(const sl_read_response *response)
{
    sl_proto_writer measure = { 0 };

    put_response(&measure, response);
    return measure.used;
}

void sl_read_response_encode(const sl_read_response *response, uint8_t *message, size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_response(&writer, response);
    sl_wire_writer_end(&writer);
}

size_t sl_read_event_size(const sl_wire_read_event *event)
{
    sl_proto_writer measure = { 0 };

    sl_wire_put_read_event(&measure, SL_READ_RESPONSE_EVENT, false, event);
    return measure.used;
}

void sl_read_event_encode(const sl_wire_read_event *event, uint8_t *message, size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    sl_wire_put_read_event(&writer, SL_READ_RESPONSE_EVENT, false, event);
    sl_wire_writer_end(&writer);
}
