/* tests/unit/server/test_multi_records.c — version 2: what becomes of a record and its properties. */
#include "../base/support.h"
#include "multi_made.h"

static sl_event stored_event(writes *w, const char *stream, sl_cursor **ret_cursor)
{
    sl_event event;
    uint32_t count;

    EXPECT_OK(sl_store_read(w->rig.store, &(sl_read){ .stream = sl_str_from(stream) }, ret_cursor));
    EXPECT_OK(sl_cursor_next(*ret_cursor, &event, 1, &count));
    return event;
}

TEST(a_record_becomes_an_event_with_its_properties_as_metadata)
{
    writes w;
    multi_request *request;
    multi_record *record;
    Google__Protobuf__Value *value;
    sl_cursor *cursor;
    sl_event event;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    record = request->records[0];
    record->schema->id = multi_text(&w, "v7");
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE);
    value->string_value = multi_text(&w, "say \"hi\"\n\\ \xc3\xbc");
    multi_add_property(&w, record, "text", value);
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE);
    value->number_value = 0.1;
    multi_add_property(&w, record, "a number", value);
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE);
    value->bool_value = true;
    multi_add_property(&w, record, "flag", value);
    multi_add_property(&w, record, "$schema.name", value); /* the schema itself goes before it */
    multi_add_property(&w, record, "none", multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE));
    multi_add_property(&w, record, "unset", NULL);
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE);
    value->number_value = 12345678901;
    multi_add_property(&w, record, "flag", value); /* twice: the last one counts */
    EXPECT_CALL_STATUS(multi_session(&w, &request, 1), SL_STATUS_OK);
    event = stored_event(&w, "s", &cursor);
    EXPECT(event.is_json && sl_str_equal(event.type, SL_STR("t1")) &&
           sl_str_equal(event.data, SL_STR("{\"n\":1}")));
    EXPECT(
        sl_str_equal(event.metadata,
                     SL_STR("{\"a number\":0.1,\"flag\":12345678901,\"none\":null,"
                            "\"text\":\"say \\\"hi\\\"\\u000a\\\\ \xc3\xbc\",\"unset\":null,"
                            "\"$schema.name\":\"t1\",\"$schema.format\":\"Json\",\"$schema.id\":\"v7\"}")));
    sl_cursor_close(cursor);
    writes_done(&w);
}

TEST(objects_and_lists_nest_in_properties)
{
    Google__Protobuf__ListValue list = GOOGLE__PROTOBUF__LIST_VALUE__INIT;
    Google__Protobuf__Struct object = GOOGLE__PROTOBUF__STRUCT__INIT;
    Google__Protobuf__Struct__FieldsEntry member;
    Google__Protobuf__Struct__FieldsEntry *members[] = { &member };
    Google__Protobuf__Value *items[2];
    Google__Protobuf__Value *value;
    multi_request *request;
    sl_cursor *cursor;
    sl_event event;
    writes w;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    request->records[0]->schema->format = KURRENTDB__PROTOCOL__V2__STREAMS__SCHEMA_FORMAT__SCHEMA_FORMAT_AVRO;
    items[0] = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE);
    items[0]->number_value = -1.5e300;
    items[1] = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE);
    items[1]->struct_value = &object;
    google__protobuf__struct__fields_entry__init(&member);
    member.key = multi_text(&w, "k");
    member.value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE);
    object.n_fields = 1;
    object.fields = members;
    list.n_values = 2;
    list.values = items;
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE);
    value->list_value = &list;
    multi_add_property(&w, request->records[0], "l", value);
    EXPECT_CALL_STATUS(multi_session(&w, &request, 1), SL_STATUS_OK);
    event = stored_event(&w, "s", &cursor);
    EXPECT(!event.is_json);
    EXPECT(sl_str_equal(event.metadata, SL_STR("{\"l\":[-1.5e+300,{\"k\":false}],\"$schema.name\":\"t1\","
                                               "\"$schema.format\":\"Avro\"}")));
    sl_cursor_close(cursor);
    writes_done(&w);
}

TEST(a_record_without_an_id_gets_one)
{
    writes w;
    multi_request *request;
    sl_cursor *cursor;
    sl_uuid first;

    writes_start(&w);
    request = multi_request_of(&w, "a", SL_STATE_ANY, 1, 1);
    request->records[0]->record_id = NULL;
    EXPECT_CALL_STATUS(multi_session(&w, &request, 1), SL_STATUS_OK);
    request->stream = multi_text(&w, "b");
    EXPECT_CALL_STATUS(multi_session(&w, &request, 1), SL_STATUS_OK);
    first = stored_event(&w, "a", &cursor).id;
    sl_cursor_close(cursor);
    EXPECT(!sl_uuid_is_zero(first) && !sl_uuid_equal(first, stored_event(&w, "b", &cursor).id));
    sl_cursor_close(cursor);
    writes_done(&w);
}
