/* wire/codec/append.c — AppendReq and AppendResp.
 *
 * The answer to a wrong revision exists twice in one message: fields 1 to 5 for clients of before 20.6.1, 6 to 11 for later
 * ones. Both are written. The old form has no word for "expected no stream"; there it is the number 2^64 - 1. */
#include "wire/codec/common.h"
#include "wire/streams_codec.h"

enum {
    OPTIONS_EXPECTED = 2,
    SUCCESS_CURRENT = 1,
    SUCCESS_POSITION = 3,
    OLD_CURRENT = 1,
    OLD_EXPECTED = 3,
    OLD_EXPECTED_ANY = 4,
    OLD_EXPECTED_EXISTS = 5,
    NEW_CURRENT = 6,
    NEW_EXPECTED = 8,
    NEW_EXPECTED_ANY = 9,
    NEW_EXPECTED_EXISTS = 10,
    NEW_EXPECTED_NO_STREAM = 11,
};

#define OLD_NO_STREAM UINT64_MAX

/* --- the request --- */

static void take_options(sl_proto_reader *reader, const sl_proto_field *field, sl_append_options *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_wire_take_stream(&inner, &part, &into->stream);
        else if (part.number >= OPTIONS_EXPECTED && part.number < OPTIONS_EXPECTED + 4)
            sl_wire_take_revision(&inner, &part, OPTIONS_EXPECTED, &into->expected);
    }
    sl_proto_leave(reader, &inner);
}

/* The members of the oneof share memory: another one begins with nothing. */
static void turn_to(sl_append_request *request, sl_append_request_kind kind)
{
    if (request->kind == kind)
        return;
    if (kind == SL_APPEND_REQUEST_OPTIONS)
        request->options = (sl_append_options){ 0 };
    else
        request->event = (sl_wire_proposed){ 0 };
    request->kind = kind;
}

sl_err sl_append_request_decode(sl_str message, sl_append_request *ret_request, const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    ret_request->kind = SL_APPEND_REQUEST_UNSET;
    while (sl_proto_next(&reader, &field)) {
        if (field.number == 1) {
            turn_to(ret_request, SL_APPEND_REQUEST_OPTIONS);
            take_options(&reader, &field, &ret_request->options);
        } else if (field.number == 2) {
            turn_to(ret_request, SL_APPEND_REQUEST_EVENT);
            sl_wire_take_proposed(&reader, &field, &ret_request->event);
        }
    }
    return sl_proto_result(&reader, ret_reason);
}

static void put_options(sl_proto_writer *writer, const sl_append_options *options)
{
    const size_t before = writer->used;

    sl_wire_put_revision(writer, OPTIONS_EXPECTED, options->expected);
    sl_wire_put_stream(writer, 1, options->stream);
    sl_proto_wrap(writer, 1, before);
}

static void put_request(sl_proto_writer *writer, const sl_append_request *request)
{
    switch (request->kind) {
    case SL_APPEND_REQUEST_UNSET: break;
    case SL_APPEND_REQUEST_OPTIONS: put_options(writer, &request->options); break;
    case SL_APPEND_REQUEST_EVENT: sl_wire_put_proposed(writer, 2, &request->event); break;
    }
}

size_t sl_append_request_size(const sl_append_request *request)
{
    sl_proto_writer measure = { 0 };

    put_request(&measure, request);
    return measure.used;
}

void sl_append_request_encode(const sl_append_request *request, uint8_t *message, size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_request(&writer, request);
    sl_wire_writer_end(&writer);
}

/* --- the response --- */

static void take_success(sl_proto_reader *reader, const sl_proto_field *field, sl_append_response *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        if (part.number < SUCCESS_POSITION)
            sl_wire_take_revision(&inner, &part, SUCCESS_CURRENT, &into->current);
        else if (part.number == SUCCESS_POSITION)
            sl_wire_take_position(&inner, &part, &into->position);
        else if (part.number == SUCCESS_POSITION + 1)
            sl_wire_take_no_position(&inner, &part, &into->position);
    }
    sl_proto_leave(reader, &inner);
}

static void take_marker(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_revision_kind kind,
                        sl_wire_revision *into)
{
    sl_proto_take_empty(reader, field);
    *into = (sl_wire_revision){ .kind = kind };
}

typedef struct wrong_revision {
    sl_wire_revision old_current, old_expected, current, expected;
} wrong_revision;

static void take_wrong_part(sl_proto_reader *reader, const sl_proto_field *part, wrong_revision *into)
{
    switch (part->number) {
    case OLD_CURRENT:
    case OLD_CURRENT + 1: sl_wire_take_revision(reader, part, OLD_CURRENT, &into->old_current); break;
    case OLD_EXPECTED: sl_wire_take_revision(reader, part, OLD_EXPECTED, &into->old_expected); break;
    case OLD_EXPECTED_ANY: take_marker(reader, part, SL_WIRE_REVISION_ANY, &into->old_expected); break;
    case OLD_EXPECTED_EXISTS:
        take_marker(reader, part, SL_WIRE_REVISION_STREAM_EXISTS, &into->old_expected);
        break;
    case NEW_CURRENT:
    case NEW_CURRENT + 1: sl_wire_take_revision(reader, part, NEW_CURRENT, &into->current); break;
    case NEW_EXPECTED: sl_wire_take_revision(reader, part, NEW_EXPECTED, &into->expected); break;
    case NEW_EXPECTED_ANY: take_marker(reader, part, SL_WIRE_REVISION_ANY, &into->expected); break;
    case NEW_EXPECTED_EXISTS:
        take_marker(reader, part, SL_WIRE_REVISION_STREAM_EXISTS, &into->expected);
        break;
    case NEW_EXPECTED_NO_STREAM:
        take_marker(reader, part, SL_WIRE_REVISION_NO_STREAM, &into->expected);
        break;
    default: break;
    }
}

static void take_wrong(sl_proto_reader *reader, const sl_proto_field *field, wrong_revision *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part))
        take_wrong_part(&inner, &part, into);
    sl_proto_leave(reader, &inner);
}

static void choose_form(const wrong_revision *wrong, sl_append_response *response)
{
    const bool has_current = wrong->current.kind != SL_WIRE_REVISION_UNSET;
    const bool has_expected = wrong->expected.kind != SL_WIRE_REVISION_UNSET;
    sl_wire_revision *const expected = &response->expected;

    response->current = has_current ? wrong->current : wrong->old_current;
    *expected = has_expected ? wrong->expected : wrong->old_expected;
    if (!has_expected && expected->kind == SL_WIRE_REVISION_NUMBER && expected->number == OLD_NO_STREAM)
        *expected = (sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM };
}

sl_err sl_append_response_decode(sl_str message, sl_append_response *ret_response, const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;
    wrong_revision wrong = { 0 };
    sl_append_response response = { 0 };

    while (sl_proto_next(&reader, &field)) {
        if (field.number == 1) {
            take_success(&reader, &field, &response);
            response.kind = SL_APPEND_RESPONSE_SUCCESS;
            wrong = (wrong_revision){ 0 };
        } else if (field.number == 2) {
            take_wrong(&reader, &field, &wrong);
            response = (sl_append_response){ .kind = SL_APPEND_RESPONSE_WRONG_REVISION };
        }
    }
    if (response.kind == SL_APPEND_RESPONSE_WRONG_REVISION)
        choose_form(&wrong, &response);
    *ret_response = response;
    return sl_proto_result(&reader, ret_reason);
}

static void put_success(sl_proto_writer *writer, const sl_append_response *response)
{
    const size_t before = writer->used;

    sl_wire_put_place(writer, SUCCESS_POSITION, &response->position);
    sl_wire_put_revision(writer, SUCCESS_CURRENT, response->current);
    sl_proto_wrap(writer, 1, before);
}

static void put_expected(sl_proto_writer *writer, sl_wire_revision expected)
{
    switch (expected.kind) {
    case SL_WIRE_REVISION_UNSET: break;
    case SL_WIRE_REVISION_NUMBER: sl_proto_put_given(writer, NEW_EXPECTED, expected.number); break;
    case SL_WIRE_REVISION_NO_STREAM: sl_proto_put_empty(writer, NEW_EXPECTED_NO_STREAM); break;
    case SL_WIRE_REVISION_ANY: sl_proto_put_empty(writer, NEW_EXPECTED_ANY); break;
    case SL_WIRE_REVISION_STREAM_EXISTS: sl_proto_put_empty(writer, NEW_EXPECTED_EXISTS); break;
    }
}

static void put_old_expected(sl_proto_writer *writer, sl_wire_revision expected)
{
    switch (expected.kind) {
    case SL_WIRE_REVISION_UNSET: break;
    case SL_WIRE_REVISION_NUMBER: sl_proto_put_given(writer, OLD_EXPECTED, expected.number); break;
    case SL_WIRE_REVISION_NO_STREAM: sl_proto_put_given(writer, OLD_EXPECTED, OLD_NO_STREAM); break;
    case SL_WIRE_REVISION_ANY: sl_proto_put_empty(writer, OLD_EXPECTED_ANY); break;
    case SL_WIRE_REVISION_STREAM_EXISTS: sl_proto_put_empty(writer, OLD_EXPECTED_EXISTS); break;
    }
}

static void put_wrong(sl_proto_writer *writer, const sl_append_response *response)
{
    const size_t before = writer->used;

    put_expected(writer, response->expected);
    sl_wire_put_revision(writer, NEW_CURRENT, response->current);
    put_old_expected(writer, response->expected);
    sl_wire_put_revision(writer, OLD_CURRENT, response->current);
    sl_proto_wrap(writer, 2, before);
}

static void put_response(sl_proto_writer *writer, const sl_append_response *response)
{
    switch (response->kind) {
    case SL_APPEND_RESPONSE_UNSET: break;
    case SL_APPEND_RESPONSE_SUCCESS: put_success(writer, response); break;
    case SL_APPEND_RESPONSE_WRONG_REVISION: put_wrong(writer, response); break;
    }
}

size_t sl_append_response_size(const sl_append_response *response)
{
    sl_proto_writer measure = { 0 };

    put_response(&measure, response);
    return measure.used;
}

void sl_append_response_encode(const sl_append_response *response, uint8_t *message, size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_response(&writer, response);
    sl_wire_writer_end(&writer);
}
