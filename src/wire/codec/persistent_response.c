/* wire/codec/persistent_response.c — what a consumer gets: a confirmation, events, and our answers about stopping. */
#include "wire/codec/common.h"
#include "wire/persistent_codec.h"

enum {
    OUTSTANDING = 4,
    SETTLED_IDS = 1,
    SETTLED_LOST = 2,
};

/* --- reading --- */

static void take_stopped(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_response *into)
{
    switch (part->number) {
    case 1: sl_proto_take_u32(reader, part, &into->stopped.in_flight); break;
    case 2: sl_proto_take_bool(reader, part, &into->stopped.already_stopped); break;
    case 3: sl_proto_take_i32(reader, part, &into->stopped.asked_by); break;
    case OUTSTANDING: sl_wire_count_id(reader, part, &into->stopped.outstanding); break;
    default: break;
    }
}

static void take_drained(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_response *into)
{
    switch (part->number) {
    case 1: sl_proto_take_u32(reader, part, &into->drained.settled); break;
    case 2: sl_proto_take_u32(reader, part, &into->drained.released); break;
    case 3: sl_proto_take_u32(reader, part, &into->drained.lost); break;
    default: break;
    }
}

static void take_stop_requested(sl_proto_reader *reader, const sl_proto_field *part,
                                sl_persistent_response *into)
{
    if (part->number == 1)
        sl_proto_take_text(reader, part, &into->stop_requested.reason);
    else if (part->number == 2)
        sl_proto_take_u32(reader, part, &into->stop_requested.deadline_ms);
    else if (part->number == 3)
        sl_proto_take_bool(reader, part, &into->stop_requested.hand_back_unstarted);
}

static void take_settled(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_response *into)
{
    if (part->number == SETTLED_IDS)
        sl_wire_count_id(reader, part, &into->settled.ids);
    else if (part->number == SETTLED_LOST)
        sl_wire_count_id(reader, part, &into->settled.lost);
}

static void take_part(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_response *into)
{
    switch (into->kind) {
    case SL_PERSISTENT_RESPONSE_UNSET:
    case SL_PERSISTENT_RESPONSE_EVENT: break; /* not taken in parts */
    case SL_PERSISTENT_RESPONSE_CONFIRMATION:
        if (part->number == 1)
            sl_proto_take_text(reader, part, &into->subscription_id);
        break;
    case SL_PERSISTENT_RESPONSE_STOPPED: take_stopped(reader, part, into); break;
    case SL_PERSISTENT_RESPONSE_DRAINED: take_drained(reader, part, into); break;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED: take_stop_requested(reader, part, into); break;
    case SL_PERSISTENT_RESPONSE_SETTLED: take_settled(reader, part, into); break;
    }
}

static void take_content(sl_proto_reader *reader, const sl_proto_field *field, sl_persistent_response *into)
{
    sl_proto_reader inner;
    sl_proto_field part;

    if (into->kind == SL_PERSISTENT_RESPONSE_EVENT) {
        sl_wire_take_read_event(reader, field, true, &into->event);
        return;
    }
    inner = sl_proto_enter(reader, field);
    while (sl_proto_next(&inner, &part))
        take_part(&inner, &part, into);
    sl_proto_leave(reader, &inner);
}

/* Another member of the oneof begins: nothing of the one before stays, and lists are found from here on. */
static void begin(sl_persistent_response *response, sl_persistent_response_kind kind, sl_str part)
{
    *response = (sl_persistent_response){ .kind = kind };
    if (kind == SL_PERSISTENT_RESPONSE_STOPPED)
        response->stopped.outstanding.items = (sl_wire_items){ part, kind, OUTSTANDING };
    if (kind == SL_PERSISTENT_RESPONSE_SETTLED) {
        response->settled.ids.items = (sl_wire_items){ part, kind, SETTLED_IDS };
        response->settled.lost.items = (sl_wire_items){ part, kind, SETTLED_LOST };
    }
}

static bool is_kind(uint32_t number)
{
    return number == SL_PERSISTENT_RESPONSE_EVENT || number == SL_PERSISTENT_RESPONSE_CONFIRMATION ||
           (number >= SL_PERSISTENT_RESPONSE_STOPPED && number <= SL_PERSISTENT_RESPONSE_SETTLED);
}

sl_err sl_persistent_response_decode(sl_str message, sl_persistent_response *ret_response,
                                     const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    ret_response->kind = SL_PERSISTENT_RESPONSE_UNSET;
    for (const uint8_t *at = reader.at; sl_proto_next(&reader, &field); at = reader.at) {
        if (!is_kind(field.number))
            continue;
        if (field.number != (uint32_t)ret_response->kind)
            begin(ret_response, (sl_persistent_response_kind)field.number,
                  (sl_str){ (const char *)at, (size_t)(reader.end - at) });
        take_content(&reader, &field, ret_response);
    }
    return sl_proto_result(&reader, ret_reason);
}

/* --- writing --- */

static void put_stopped(sl_proto_writer *writer, const sl_persistent_response *response)
{
    sl_wire_put_ids(writer, OUTSTANDING, &response->stopped.outstanding);
    sl_proto_put_i64(writer, 3, response->stopped.asked_by);
    sl_proto_put_u64(writer, 2, response->stopped.already_stopped);
    sl_proto_put_u64(writer, 1, response->stopped.in_flight);
}

static void put_drained(sl_proto_writer *writer, const sl_persistent_response *response)
{
    sl_proto_put_u64(writer, 3, response->drained.lost);
    sl_proto_put_u64(writer, 2, response->drained.released);
    sl_proto_put_u64(writer, 1, response->drained.settled);
}

static void put_stop_requested(sl_proto_writer *writer, const sl_persistent_response *response)
{
    sl_proto_put_u64(writer, 3, response->stop_requested.hand_back_unstarted);
    sl_proto_put_u64(writer, 2, response->stop_requested.deadline_ms);
    sl_proto_put_bytes(writer, 1, response->stop_requested.reason);
}

static void put_settled(sl_proto_writer *writer, const sl_persistent_response *response)
{
    sl_wire_put_ids(writer, SETTLED_LOST, &response->settled.lost);
    sl_wire_put_ids(writer, SETTLED_IDS, &response->settled.ids);
}

static void put_response(sl_proto_writer *writer, const sl_persistent_response *response)
{
    const size_t before = writer->used;

    switch (response->kind) {
    case SL_PERSISTENT_RESPONSE_UNSET: return;
    case SL_PERSISTENT_RESPONSE_EVENT:
        sl_wire_put_read_event(writer, response->kind, true, &response->event);
        return;
    case SL_PERSISTENT_RESPONSE_CONFIRMATION: sl_proto_put_bytes(writer, 1, response->subscription_id); break;
    case SL_PERSISTENT_RESPONSE_STOPPED: put_stopped(writer, response); break;
    case SL_PERSISTENT_RESPONSE_DRAINED: put_drained(writer, response); break;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED: put_stop_requested(writer, response); break;
    case SL_PERSISTENT_RESPONSE_SETTLED: put_settled(writer, response); break;
    }
    sl_proto_wrap(writer, response->kind, before);
}

size_t sl_persistent_response_size(const sl_persistent_response *response)
{
    sl_proto_writer measure = { 0 };

    put_response(&measure, response);
    return measure.used;
}

void sl_persistent_response_encode(const sl_persistent_response *response, uint8_t *message,
                                   size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_response(&writer, response);
    sl_wire_writer_end(&writer);
}

size_t sl_persistent_event_size(const sl_wire_read_event *event)
{
    sl_proto_writer measure = { 0 };

    sl_wire_put_read_event(&measure, SL_PERSISTENT_RESPONSE_EVENT, true, event);
    return measure.used;
}

void sl_persistent_event_encode(const sl_wire_read_event *event, uint8_t *message, size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    sl_wire_put_read_event(&writer, SL_PERSISTENT_RESPONSE_EVENT, true, event);
    sl_wire_writer_end(&writer);
}

/* --- in two parts --- */

size_t sl_persistent_body_size(const sl_wire_read_event *event)
{
    sl_proto_writer measure = { 0 };

    sl_wire_put_read_event_parts(&measure, false, event);
    return measure.used;
}

void sl_persistent_body_encode(const sl_wire_read_event *event, uint8_t *body, size_t body_bytes)
{
    sl_proto_writer writer = sl_wire_writer(body, body_bytes);

    sl_wire_put_read_event_parts(&writer, false, event);
    sl_wire_writer_end(&writer);
}

sl_err sl_persistent_body_decode(sl_str body, sl_wire_read_event *ret_event)
{
    sl_proto_reader reader = sl_proto_reader_from(body);

    *ret_event = (sl_wire_read_event){ 0 };
    sl_wire_take_read_event_parts(&reader, false, ret_event);
    return sl_proto_result(&reader, NULL);
}

static void put_delivery(sl_proto_writer *writer, sl_str body, const sl_persistent_delivery *delivery)
{
    const size_t before = writer->used;

    sl_proto_put_i64(writer, 101, delivery->lease_ms);
    sl_proto_put_u64(writer, 100, delivery->lease_token);
    sl_proto_put_given(writer, 5, (uint64_t)(int64_t)delivery->retry_count);
    sl_proto_put_raw(writer, body);
    sl_proto_wrap(writer, SL_PERSISTENT_RESPONSE_EVENT, before);
}

size_t sl_persistent_delivery_size(sl_str body, const sl_persistent_delivery *delivery)
{
    sl_proto_writer measure = { 0 };

    put_delivery(&measure, body, delivery);
    return measure.used;
}

void sl_persistent_delivery_encode(sl_str body, const sl_persistent_delivery *delivery, uint8_t *message,
                                   size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_delivery(&writer, body, delivery);
    sl_wire_writer_end(&writer);
}
