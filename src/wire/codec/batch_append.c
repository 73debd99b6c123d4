/* wire/codec/batch_append.c — BatchAppendReq and BatchAppendResp: the fast way in.
 *
 * A request is looked at twice: once without its events, to know whose it is and whether there is room for them, and then
 * event by event on the way into the store's batch. Neither pass keeps a list. */
#include "base/cleanup.h"
#include "wire/codec/common.h"
#include "wire/streams_codec.h"

enum {
    CORRELATION = 1,
    OPTIONS = 2,
    EVENTS = 3,
    IS_FINAL = 4,
    OPTIONS_EXPECTED = 2,
    DEADLINE_AT = 6,
    DEADLINE_AFTER = 7,
    RESPONSE_STREAM = 4,
    RESPONSE_EXPECTED = 5,
    NS_PER_SECOND = 1000000000,
};

/* --- the request --- */

static void take_deadline(sl_proto_reader *reader, const sl_proto_field *field, sl_batch_options *into)
{
    const sl_batch_deadline_kind kind =
        field->number == DEADLINE_AT ? SL_BATCH_DEADLINE_AT : SL_BATCH_DEADLINE_AFTER;

    if (into->deadline_kind != kind)
        into->deadline = (sl_wire_time){ 0 };
    into->deadline_kind = kind;
    sl_wire_take_time(reader, field, &into->deadline);
}

static void take_options(sl_proto_reader *reader, const sl_proto_field *field, sl_batch_options *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_wire_take_stream(&inner, &part, &into->stream);
        else if (part.number < DEADLINE_AT)
            sl_wire_take_revision(&inner, &part, OPTIONS_EXPECTED, &into->expected);
        else if (part.number == DEADLINE_AT || part.number == DEADLINE_AFTER)
            take_deadline(&inner, &part, into);
    }
    sl_proto_leave(reader, &inner);
}

static void take_request_part(sl_proto_reader *reader, const sl_proto_field *field,
                              sl_batch_append_request *into)
{
    switch (field->number) {
    case CORRELATION: sl_proto_take_bytes(reader, field, &into->correlation); break;
    case OPTIONS:
        into->has_options = true;
        take_options(reader, field, &into->options);
        break;
    case EVENTS: into->event_count += sl_proto_is(reader, field, SL_PROTO_BYTES); break;
    case IS_FINAL: sl_proto_take_bool(reader, field, &into->is_final); break;
    default: break;
    }
}

sl_err sl_batch_append_request_decode(sl_str message, sl_batch_append_request *ret_request,
                                      const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    *ret_request = (sl_batch_append_request){ .events = { .part = message, .number = EVENTS } };
    while (sl_proto_next(&reader, &field))
        take_request_part(&reader, &field, ret_request);
    return sl_proto_result(&reader, ret_reason);
}

sl_err sl_batch_append_next(sl_wire_walk *walk, sl_wire_proposed *ret_event, const char **ret_reason)
{
    sl_proto_reader reader = { 0 };
    sl_proto_field field = { .type = SL_PROTO_BYTES };

    if (!sl_wire_items_next(walk, &field.bytes))
        return SL_ERR_EMPTY;
    *ret_event = (sl_wire_proposed){ 0 };
    sl_wire_take_proposed(&reader, &field, ret_event);
    return sl_proto_result(&reader, ret_reason);
}

/* Seconds and nanoseconds from peers may be anything; what does not fit is beyond counting on its side. */
static uint64_t total_ns(const sl_wire_time *time)
{
    uint64_t whole_ns;

    if (time->seconds < 0 || (time->seconds == 0 && time->nanos < 0))
        return 0;
    if (__builtin_mul_overflow((uint64_t)time->seconds, (uint64_t)NS_PER_SECOND, &whole_ns))
        return UINT64_MAX;
    if (time->nanos >= 0)
        return sl_add_sat_u64(whole_ns, (uint64_t)time->nanos);
    const uint64_t less_ns = (uint64_t) - (int64_t)time->nanos;
    return whole_ns > less_ns ? whole_ns - less_ns : 0;
}

uint64_t sl_batch_options_left_ns(const sl_batch_options *options, uint64_t wall_now_ns)
{
    const uint64_t deadline_ns = total_ns(&options->deadline);

    switch (options->deadline_kind) {
    case SL_BATCH_DEADLINE_NONE: return UINT64_MAX;
    case SL_BATCH_DEADLINE_AFTER: return deadline_ns;
    case SL_BATCH_DEADLINE_AT: break;
    }
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX;
    return deadline_ns > wall_now_ns ? deadline_ns - wall_now_ns : 0;
}

static void put_options(sl_proto_writer *writer, const sl_batch_options *options)
{
    const size_t before = writer->used;

    if (options->deadline_kind == SL_BATCH_DEADLINE_AFTER)
        sl_wire_put_time(writer, DEADLINE_AFTER, &options->deadline);
    else if (options->deadline_kind == SL_BATCH_DEADLINE_AT)
        sl_wire_put_time(writer, DEADLINE_AT, &options->deadline);
    sl_wire_put_revision(writer, OPTIONS_EXPECTED, options->expected);
    sl_wire_put_stream(writer, 1, options->stream);
    sl_proto_wrap(writer, OPTIONS, before);
}

static void put_request(sl_proto_writer *writer, const sl_batch_append_draft *draft)
{
    sl_proto_put_u64(writer, IS_FINAL, draft->is_final);
    for (size_t i = draft->event_count; i-- > 0;)
        sl_wire_put_proposed(writer, EVENTS, &draft->events[i]);
    if (draft->options != NULL)
        put_options(writer, draft->options);
    sl_wire_put_id(writer, CORRELATION, draft->correlation);
}

size_t sl_batch_append_request_size(const sl_batch_append_draft *draft)
{
    sl_proto_writer measure = { 0 };

    put_request(&measure, draft);
    return measure.used;
}

void sl_batch_append_request_encode(const sl_batch_append_draft *draft, uint8_t *message,
                                    size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_request(&writer, draft);
    sl_wire_writer_end(&writer);
}

/* --- the response --- */

static void take_detail(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_status *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    into->detail_type = into->detail_value = (sl_str){ 0 }; /* a list: the one before is another detail */
    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_proto_take_text(&inner, &part, &into->detail_type);
        else if (part.number == 2)
            sl_proto_take_bytes(&inner, &part, &into->detail_value);
    }
    sl_proto_leave(reader, &inner);
}

static void take_status(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_status *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        switch (part.number) {
        case 1: sl_proto_take_i32(&inner, &part, &into->code); break;
        case 2: sl_proto_take_text(&inner, &part, &into->message); break;
        case 3: take_detail(&inner, &part, into); break;
        default: break;
        }
    }
    sl_proto_leave(reader, &inner);
}

static void take_success(sl_proto_reader *reader, const sl_proto_field *field, sl_batch_append_response *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        switch (part.number) {
        case 1:
        case 2: sl_wire_take_revision(&inner, &part, 1, &into->current); break;
        case 3: sl_wire_take_position(&inner, &part, &into->position); break;
        case 4: sl_wire_take_no_position(&inner, &part, &into->position); break;
        default: break;
        }
    }
    sl_proto_leave(reader, &inner);
}

/* The result is a oneof: what is no longer the case is forgotten. */
static void turn_to(sl_batch_append_response *response, sl_batch_append_response_kind kind)
{
    if (response->kind == kind)
        return;
    response->kind = kind;
    response->error = (sl_wire_status){ 0 };
    response->current = (sl_wire_revision){ 0 };
    response->position = (sl_wire_position){ 0 };
}

static void take_response_part(sl_proto_reader *reader, const sl_proto_field *field,
                               sl_batch_append_response *into)
{
    switch (field->number) {
    case CORRELATION: sl_proto_take_bytes(reader, field, &into->correlation); break;
    case 2:
        turn_to(into, SL_BATCH_APPEND_RESPONSE_ERROR);
        take_status(reader, field, &into->error);
        break;
    case 3:
        turn_to(into, SL_BATCH_APPEND_RESPONSE_SUCCESS);
        take_success(reader, field, into);
        break;
    case RESPONSE_STREAM: sl_wire_take_stream(reader, field, &into->stream); break;
    case RESPONSE_EXPECTED:
    case RESPONSE_EXPECTED + 1:
    case RESPONSE_EXPECTED + 2:
    case RESPONSE_EXPECTED + 3:
        sl_wire_take_revision(reader, field, RESPONSE_EXPECTED, &into->expected);
        break;
    default: break;
    }
}

sl_err sl_batch_append_response_decode(sl_str message, sl_batch_append_response *ret_response,
                                       const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    *ret_response = (sl_batch_append_response){ 0 };
    while (sl_proto_next(&reader, &field))
        take_response_part(&reader, &field, ret_response);
    return sl_proto_result(&reader, ret_reason);
}

static void put_status(sl_proto_writer *writer, const sl_wire_status *status)
{
    const size_t before = writer->used;

    if (status->detail_type.bytes > 0 || status->detail_value.bytes > 0) {
        sl_proto_put_bytes(writer, 2, status->detail_value);
        sl_proto_put_bytes(writer, 1, status->detail_type);
        sl_proto_wrap(writer, 3, before);
    }
    sl_proto_put_bytes(writer, 2, status->message);
    sl_proto_put_i64(writer, 1, status->code);
    sl_proto_wrap(writer, 2, before);
}

static void put_success(sl_proto_writer *writer, const sl_batch_append_response *response)
{
    const size_t before = writer->used;

    sl_wire_put_place(writer, 3, &response->position);
    sl_wire_put_revision(writer, 1, response->current);
    sl_proto_wrap(writer, 3, before);
}

static void put_response(sl_proto_writer *writer, const sl_batch_append_response *response)
{
    sl_wire_put_revision(writer, RESPONSE_EXPECTED, response->expected);
    sl_wire_put_stream(writer, RESPONSE_STREAM, response->stream);
    switch (response->kind) {
    case SL_BATCH_APPEND_RESPONSE_UNSET: break;
    case SL_BATCH_APPEND_RESPONSE_ERROR: put_status(writer, &response->error); break;
    case SL_BATCH_APPEND_RESPONSE_SUCCESS: put_success(writer, response); break;
    }
    if (response->correlation.data != NULL)
        sl_proto_put_bytes_given(writer, CORRELATION, response->correlation);
}

size_t sl_batch_append_response_size(const sl_batch_append_response *response)
{
    sl_proto_writer measure = { 0 };

    put_response(&measure, response);
    return measure.used;
}

void sl_batch_append_response_encode(const sl_batch_append_response *response, uint8_t *message,
                                     size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_response(&writer, response);
    sl_wire_writer_end(&writer);
}
