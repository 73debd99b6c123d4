/* wire/codec/multi_append.c — AppendRequest, AppendRecordsRequest and their answers. */
#include "wire/multi_append.h"

#include "wire/codec/streams_v2.pb-c.h"
#include "wire/codec/unpack.h"

typedef Google__Protobuf__Value value;
typedef Google__Protobuf__Struct__FieldsEntry object_member;
typedef Kurrentdb__Protocol__V2__Streams__AppendRecord append_record;
typedef Kurrentdb__Protocol__V2__Streams__AppendRecord__PropertiesEntry property;
typedef Kurrentdb__Protocol__V2__Streams__ConsistencyCheck consistency_check;

#define VALUE(name)  GOOGLE__PROTOBUF__VALUE__KIND_##name
#define STREAM_STATE KURRENTDB__PROTOCOL__V2__STREAMS__CONSISTENCY_CHECK__TYPE_STREAM_STATE

/* --- values --- */

/* The depth was limited before anything was unpacked. */
static bool from_value(const value *from, sl_arena *arena, sl_wire_value *into);

static bool from_list(const Google__Protobuf__ListValue *from, sl_arena *arena, sl_wire_value *into)
{
    sl_wire_value *const items = sl_arena_alloc_zero(arena, from->n_values * sizeof *items);

    into->kind = SL_WIRE_VALUE_LIST;
    into->items = items;
    into->item_count = from->n_values;
    for (size_t i = 0; items != NULL && i < from->n_values; i++)
        if (!from_value(from->values[i], arena, &items[i]))
            return false;
    return items != NULL;
}

static bool from_object(const Google__Protobuf__Struct *from, sl_arena *arena, sl_wire_value *into)
{
    sl_wire_value *const items = sl_arena_alloc_zero(arena, from->n_fields * sizeof *items);

    into->kind = SL_WIRE_VALUE_OBJECT;
    into->items = items;
    into->item_count = from->n_fields;
    for (size_t i = 0; items != NULL && i < from->n_fields; i++) {
        const object_member *const member = from->fields[i];
        items[i].name = sl_unpacked_text(member->key);
        if (!from_value(member->value, arena, &items[i]))
            return false;
    }
    return items != NULL;
}

static bool from_value(const value *from, sl_arena *arena, sl_wire_value *into)
{
    if (from == NULL)
        return true;
    switch ((int)from->kind_case) {
    case VALUE(NULL_VALUE): into->kind = SL_WIRE_VALUE_NULL; return true;
    case VALUE(NUMBER_VALUE):
        into->kind = SL_WIRE_VALUE_NUMBER;
        into->number = from->number_value;
        return true;
    case VALUE(STRING_VALUE):
        into->kind = SL_WIRE_VALUE_TEXT;
        into->text = sl_unpacked_text(from->string_value);
        return true;
    case VALUE(BOOL_VALUE):
        into->kind = SL_WIRE_VALUE_BOOL;
        into->flag = from->bool_value;
        return true;
    case VALUE(STRUCT_VALUE): return from_object(from->struct_value, arena, into);
    case VALUE(LIST_VALUE): return from_list(from->list_value, arena, into);
    default: return true;
    }
}

/* --- records --- */

static bool from_properties(const append_record *from, sl_arena *arena, sl_multi_record *into)
{
    sl_wire_value *const properties = sl_arena_alloc_zero(arena, from->n_properties * sizeof *properties);

    into->properties = properties;
    into->property_count = from->n_properties;
    for (size_t i = 0; properties != NULL && i < from->n_properties; i++) {
        const property *const entry = from->properties[i];
        properties[i].name = sl_unpacked_text(entry->key);
        if (!from_value(entry->value, arena, &properties[i]))
            return false;
    }
    return properties != NULL;
}

static bool from_record(const append_record *from, sl_arena *arena, sl_multi_record *into)
{
    into->id = sl_unpacked_text(from->record_id);
    into->stream = sl_unpacked_text(from->stream);
    into->has_schema = from->schema != NULL;
    if (from->schema != NULL) {
        into->schema_format = (int32_t)from->schema->format;
        into->schema_name = sl_unpacked_text(from->schema->name);
        into->schema_id = sl_unpacked_text(from->schema->id);
    }
    if (from->has_data)
        into->data = sl_unpacked_bytes(from->data);
    return from_properties(from, arena, into);
}

static bool from_records(append_record *const *from, size_t count, sl_arena *arena,
                         const sl_multi_record **ret_records)
{
    sl_multi_record *const records = sl_arena_alloc_zero(arena, count * sizeof *records);

    if (records == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!from_record(from[i], arena, &records[i]))
            return false;
    *ret_records = records;
    return true;
}

static bool from_checks(consistency_check *const *from, size_t count, sl_arena *arena,
                        const sl_multi_check **ret_checks)
{
    sl_multi_check *const checks = sl_arena_alloc_zero(arena, count * sizeof *checks);

    if (checks == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        checks[i].known = from[i]->type_case == STREAM_STATE;
        if (checks[i].known) {
            checks[i].stream = sl_unpacked_text(from[i]->stream_state->stream);
            checks[i].expected = from[i]->stream_state->expected_state;
        }
    }
    *ret_checks = checks;
    return true;
}

/* --- requests --- */

sl_err sl_multi_append_decode(sl_str message, sl_arena *arena, sl_multi_append *ret_append,
                              const char **ret_reason)
{
    Kurrentdb__Protocol__V2__Streams__AppendRequest *unpacked;
    sl_multi_append append;
    const sl_err err = sl_unpack(&kurrentdb__protocol__v2__streams__append_request__descriptor, message,
                                 arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    append = (sl_multi_append){
        .stream = sl_unpacked_text(unpacked->stream),
        .expected = unpacked->has_expected_revision ? unpacked->expected_revision : SL_STATE_ANY,
        .record_count = unpacked->n_records,
    };
    if (!from_records(unpacked->records, unpacked->n_records, arena, &append.records))
        return SL_ERR_NOMEM;
    *ret_append = append;
    return SL_OK;
}

sl_err sl_multi_records_decode(sl_str message, sl_arena *arena, sl_multi_records *ret_records,
                               const char **ret_reason)
{
    Kurrentdb__Protocol__V2__Streams__AppendRecordsRequest *unpacked;
    sl_multi_records records;
    const sl_err err = sl_unpack(&kurrentdb__protocol__v2__streams__append_records_request__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    records = (sl_multi_records){ .record_count = unpacked->n_records, .check_count = unpacked->n_checks };
    if (!from_records(unpacked->records, unpacked->n_records, arena, &records.records) ||
        !from_checks(unpacked->checks, unpacked->n_checks, arena, &records.checks))
        return SL_ERR_NOMEM;
    *ret_records = records;
    return SL_OK;
}

/* --- answers --- */

sl_err sl_multi_append_response_encode(const sl_multi_result *result, sl_arena *arena, sl_str *ret_message)
{
    typedef Kurrentdb__Protocol__V2__Streams__AppendResponse append_response;
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__AppendSessionResponse packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__APPEND_SESSION_RESPONSE__INIT;
    append_response **const list = sl_packer_take(&packer, result->revision_count * sizeof *list);
    append_response *const items = sl_packer_take(&packer, result->revision_count * sizeof *items);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < result->revision_count; i++) {
        kurrentdb__protocol__v2__streams__append_response__init(&items[i]);
        items[i].stream = sl_packer_text(&packer, result->revisions[i].stream);
        items[i].has_stream_revision = true;
        items[i].stream_revision = result->revisions[i].revision;
        list[i] = &items[i];
    }
    packed.n_output = result->revision_count;
    packed.output = list;
    packed.has_position = true;
    packed.position = result->position;
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_multi_records_response_encode(const sl_multi_result *result, sl_arena *arena, sl_str *ret_message)
{
    typedef Kurrentdb__Protocol__V2__Streams__StreamRevision stream_revision;
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__AppendRecordsResponse packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__APPEND_RECORDS_RESPONSE__INIT;
    stream_revision **const list = sl_packer_take(&packer, result->revision_count * sizeof *list);
    stream_revision *const items = sl_packer_take(&packer, result->revision_count * sizeof *items);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < result->revision_count; i++) {
        kurrentdb__protocol__v2__streams__stream_revision__init(&items[i]);
        items[i].stream = sl_packer_text(&packer, result->revisions[i].stream);
        items[i].has_revision = true;
        items[i].revision = result->revisions[i].revision;
        list[i] = &items[i];
    }
    packed.n_revisions = result->revision_count;
    packed.revisions = list;
    packed.has_position = true;
    packed.position = result->position;
    return sl_pack(&packer, &packed.base, ret_message);
}
