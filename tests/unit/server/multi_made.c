/* tests/unit/server/multi_made.c — see multi_made.h. */
#include "multi_made.h"

#include "wire/proto_bytes.h"

#include <stdio.h>
#include <string.h>

typedef Kurrentdb__Protocol__V2__Streams__SchemaInfo schema_info;
typedef Kurrentdb__Protocol__V2__Streams__AppendRecord__PropertiesEntry properties_entry;
typedef Kurrentdb__Protocol__V2__Streams__ConsistencyCheck consistency_check;
typedef Kurrentdb__Protocol__V2__Streams__ConsistencyCheck__StreamStateCheck state_check;
typedef Kurrentdb__Protocol__V2__Streams__AppendSessionResponse session_response;
typedef Kurrentdb__Protocol__V2__Streams__AppendRecordsResponse records_response;

enum {
    PROPERTIES_MAX = 16,
};

static void *take(writes *w, size_t bytes)
{
    void *const memory = sl_arena_alloc_zero(&w->memory, bytes);

    assert_non_null(memory);
    return memory;
}

char *multi_text(writes *w, const char *text)
{
    return text == NULL ? NULL : sl_arena_copy_str(&w->memory, sl_str_from(text));
}

/* --- requests --- */

multi_record *multi_record_of(writes *w, const char *stream, uint64_t number)
{
    multi_record *const record = take(w, sizeof *record);
    schema_info *const schema = take(w, sizeof *schema);
    const sl_wire_proposed event = writes_event(w, number);
    char id[SL_UUID_TEXT_BYTES + 1];

    kurrentdb__protocol__v2__streams__append_record__init(record);
    kurrentdb__protocol__v2__streams__schema_info__init(schema);
    sl_uuid_format(event.id.uuid, id);
    record->record_id = multi_text(w, id);
    record->stream = multi_text(w, stream);
    record->schema = schema;
    record->has_data = true;
    record->data.data = (uint8_t *)(uintptr_t)event.data.data;
    record->data.len = event.data.bytes;
    schema->has_format = true;
    schema->format = KURRENTDB__PROTOCOL__V2__STREAMS__SCHEMA_FORMAT__SCHEMA_FORMAT_JSON;
    schema->name = sl_arena_copy_str(&w->memory, event.type);
    return record;
}

Google__Protobuf__Value *multi_value(writes *w, Google__Protobuf__Value__KindCase kind)
{
    Google__Protobuf__Value *const value = take(w, sizeof *value);

    google__protobuf__value__init(value);
    value->kind_case = kind;
    return value;
}

void multi_add_property(writes *w, multi_record *record, const char *name, Google__Protobuf__Value *value)
{
    properties_entry *const entry = take(w, sizeof *entry);

    kurrentdb__protocol__v2__streams__append_record__properties_entry__init(entry);
    entry->key = multi_text(w, name);
    entry->value = value;
    if (record->properties == NULL)
        record->properties = take(w, PROPERTIES_MAX * sizeof *record->properties);
    assert_true(record->n_properties < PROPERTIES_MAX);
    record->properties[record->n_properties++] = entry;
}

multi_request *multi_request_of(writes *w, const char *stream, int64_t expected, uint64_t first_number,
                                size_t count)
{
    multi_request *const request = take(w, sizeof *request);

    kurrentdb__protocol__v2__streams__append_request__init(request);
    request->stream = multi_text(w, stream);
    request->has_expected_revision = expected != SL_STATE_ANY; /* absent means any */
    request->expected_revision = expected;
    request->n_records = count;
    request->records = take(w, (count + 1) * sizeof *request->records);
    for (size_t i = 0; i < count; i++)
        request->records[i] = multi_record_of(w, NULL, first_number + i);
    return request;
}

sl_str multi_packed(writes *w, const void *message)
{
    const size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *const packed = take(w, bytes);

    protobuf_c_message_pack(message, packed);
    return (sl_str){ (const char *)packed, bytes };
}

server_call *multi_session(writes *w, multi_request *const *requests, size_t request_count)
{
    server_call *const call = server_rig_call(&w->rig, MULTI_SESSION_PATH);

    for (size_t i = 0; i < request_count && call->call != NULL; i++)
        server_call_send(call, multi_packed(w, requests[i]));
    if (call->call != NULL)
        server_call_half_close(call);
    server_rig_run_until_ended(&w->rig, call);
    return call;
}

static consistency_check *made_check(writes *w, const multi_check *from)
{
    consistency_check *const check = take(w, sizeof *check);
    state_check *const state = take(w, sizeof *state);

    kurrentdb__protocol__v2__streams__consistency_check__init(check);
    kurrentdb__protocol__v2__streams__consistency_check__stream_state_check__init(state);
    if (from->stream == NULL)
        return check;
    state->stream = multi_text(w, from->stream);
    state->has_expected_state = true;
    state->expected_state = from->expected;
    check->type_case = KURRENTDB__PROTOCOL__V2__STREAMS__CONSISTENCY_CHECK__TYPE_STREAM_STATE;
    check->stream_state = state;
    return check;
}

sl_str multi_records_packed(writes *w, multi_record **records, size_t record_count, const multi_check *checks,
                            size_t check_count)
{
    Kurrentdb__Protocol__V2__Streams__AppendRecordsRequest request =
        KURRENTDB__PROTOCOL__V2__STREAMS__APPEND_RECORDS_REQUEST__INIT;

    request.n_records = record_count;
    request.records = records;
    request.n_checks = check_count;
    request.checks = take(w, (check_count + 1) * sizeof *request.checks);
    for (size_t i = 0; i < check_count; i++)
        request.checks[i] = made_check(w, &checks[i]);
    return multi_packed(w, &request);
}

server_call *multi_records(writes *w, const char *streams, uint64_t first_number, const multi_check *checks,
                           size_t check_count)
{
    const size_t count = strlen(streams);
    multi_record **const records = take(w, (count + 1) * sizeof *records);

    for (size_t i = 0; i < count; i++)
        records[i] = multi_record_of(w, (char[]){ streams[i], 0 }, first_number + i);
    return server_rig_unary(&w->rig, MULTI_RECORDS_PATH,
                            multi_records_packed(w, records, count, checks, check_count));
}

/* --- answers --- */

static void add_revision(sl_text *text, const char *stream, int64_t revision)
{
    sl_text_add(text, stream);
    sl_text_add(text, ":");
    sl_text_add_i64(text, revision);
    sl_text_add(text, " ");
}

static void add_session(sl_text *text, sl_str message)
{
    session_response *const response = kurrentdb__protocol__v2__streams__append_session_response__unpack(
        NULL, message.bytes, (const uint8_t *)message.data);

    assert_non_null(response);
    for (size_t i = 0; i < response->n_output; i++)
        add_revision(text, response->output[i]->stream, response->output[i]->stream_revision);
    sl_text_add(text, "@");
    sl_text_add_i64(text, response->position);
    kurrentdb__protocol__v2__streams__append_session_response__free_unpacked(response, NULL);
}

static void add_records(sl_text *text, sl_str message)
{
    records_response *const response = kurrentdb__protocol__v2__streams__append_records_response__unpack(
        NULL, message.bytes, (const uint8_t *)message.data);

    assert_non_null(response);
    for (size_t i = 0; i < response->n_revisions; i++)
        add_revision(text, response->revisions[i]->stream, response->revisions[i]->revision);
    sl_text_add(text, "@");
    sl_text_add_i64(text, response->position);
    kurrentdb__protocol__v2__streams__append_records_response__free_unpacked(response, NULL);
}

static const char *answer(writes *w, const server_call *call, void (*add)(sl_text *text, sl_str message))
{
    char *const buffer = take(w, 4096);
    sl_text text;

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    sl_text_init(&text, buffer, 4096);
    add(&text, call->messages[0]);
    return buffer;
}

const char *multi_session_answer(writes *w, const server_call *call)
{
    return answer(w, call, add_session);
}

const char *multi_records_answer(writes *w, const server_call *call)
{
    return answer(w, call, add_records);
}

/* --- errors --- */

static sl_str without_prefix(sl_str type)
{
    static const sl_str prefix = SL_STR_INIT("type.googleapis.com/");

    EXPECT(sl_str_starts_with(type, prefix));
    return (sl_str){ type.data + prefix.bytes, type.bytes - prefix.bytes };
}

/* Two texts, fields 1 and 2: an Any, and an ErrorInfo. */
static void read_two(sl_str message, sl_str *one, sl_str *two)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    while (sl_proto_next(&reader, &field))
        *(field.number == 1 ? one : two) = field.bytes;
}

static void read_detail(sl_str any, multi_status *status)
{
    sl_str type = { NULL, 0 }, value = { NULL, 0 };

    read_two(any, &type, &value);
    if (sl_str_equal(without_prefix(type), SL_STR("google.rpc.ErrorInfo"))) {
        EXPECT_EQ(status->reason.bytes, 0); /* it comes first: one client reads only the last */
        read_two(value, &status->reason, &status->domain);
    } else {
        EXPECT(status->reason.bytes > 0);
        status->detail_type = without_prefix(type);
        status->detail = value;
    }
}

static sl_str details_of(const server_call *call, uint8_t *bytes)
{
    static const char key[] = "grpc-status-details-bin=";
    const char *hex = strstr(call->trailers, key);
    size_t count = 0;
    unsigned byte;

    assert_non_null(hex);
    for (hex += strlen(key); sscanf(hex, "%2x", &byte) == 1; hex += 2)
        bytes[count++] = (uint8_t)byte;
    return (sl_str){ (const char *)bytes, count };
}

multi_status multi_details(const server_call *call)
{
    static uint8_t bytes[2048];
    sl_proto_reader reader = sl_proto_reader_from(details_of(call, bytes));
    multi_status status = { 0 };
    sl_proto_field field;

    while (sl_proto_next(&reader, &field)) {
        if (field.number == 1)
            status.code = field.value;
        else if (field.number == 2)
            status.message = field.bytes;
        else if (field.number == 3)
            read_detail(field.bytes, &status);
    }
    return status;
}

static bool ends_with(sl_str text, sl_str end)
{
    return text.bytes >= end.bytes &&
           sl_str_equal((sl_str){ text.data + text.bytes - end.bytes, end.bytes }, end);
}

void multi_expect(const server_call *call, sl_status status, const char *reason, const char *detail)
{
    multi_status is;

    EXPECT_CALL_STATUS(call, status);
    is = multi_details(call);
    EXPECT_EQ(is.code, status);
    EXPECT(sl_str_equal(is.message, sl_str_from(call->message)));
    if (!sl_str_equal(is.reason, sl_str_from(reason)))
        fail_msg("%.*s, wanted %s", (int)is.reason.bytes, is.reason.data, reason);
    EXPECT(detail[0] == 0 ? is.detail_type.bytes == 0 : ends_with(is.detail_type, sl_str_from(detail)));
}
