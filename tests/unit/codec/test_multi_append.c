/* Rules of wire/multi_append.h. */
#include "codec/compare.h"

#include "wire/codec/streams_v2.pb-c.h"
#include "wire/multi_append.h"

typedef Kurrentdb__Protocol__V2__Streams__AppendRecord append_record;

static bool same_value(const sl_wire_value *ours, const Google__Protobuf__Value *theirs);

static bool same_list(const sl_wire_value *ours, const Google__Protobuf__ListValue *theirs)
{
    for (size_t i = 0; i < theirs->n_values; i++)
        if (!same_value(&ours->items[i], theirs->values[i]))
            return false;
    return ours->item_count == theirs->n_values;
}

static bool same_object(const sl_wire_value *ours, const Google__Protobuf__Struct *theirs)
{
    for (size_t i = 0; i < theirs->n_fields; i++)
        if (!same_text(ours->items[i].name, theirs->fields[i]->key) ||
            !same_value(&ours->items[i], theirs->fields[i]->value))
            return false;
    return ours->item_count == theirs->n_fields;
}

/* The kinds have the numbers of the fields. */
static bool same_value(const sl_wire_value *ours, const Google__Protobuf__Value *theirs)
{
    if ((theirs == NULL ? 0 : (int)theirs->kind_case) != (int)ours->kind)
        return false;
    switch (ours->kind) {
    case SL_WIRE_VALUE_UNSET:
    case SL_WIRE_VALUE_NULL: return true;
    case SL_WIRE_VALUE_NUMBER: return memcmp(&ours->number, &theirs->number_value, sizeof ours->number) == 0;
    case SL_WIRE_VALUE_TEXT: return same_text(ours->text, theirs->string_value);
    case SL_WIRE_VALUE_BOOL: return ours->flag == theirs->bool_value;
    case SL_WIRE_VALUE_OBJECT: return same_object(ours, theirs->struct_value);
    case SL_WIRE_VALUE_LIST: return same_list(ours, theirs->list_value);
    }
    return false;
}

static bool same_record(const sl_multi_record *ours, const append_record *theirs)
{
    const Kurrentdb__Protocol__V2__Streams__SchemaInfo *const schema = theirs->schema;

    for (size_t i = 0; i < theirs->n_properties; i++)
        if (!same_text(ours->properties[i].name, theirs->properties[i]->key) ||
            !same_value(&ours->properties[i], theirs->properties[i]->value))
            return false;
    return ours->property_count == theirs->n_properties && same_text(ours->id, theirs->record_id) &&
           same_text(ours->stream, theirs->stream) && ours->has_schema == (schema != NULL) &&
           (schema == NULL ||
            (ours->schema_format == (int32_t)schema->format && same_text(ours->schema_name, schema->name) &&
             same_text(ours->schema_id, schema->id))) &&
           (theirs->has_data ? same_bytes(ours->data, theirs->data) : ours->data.bytes == 0);
}

TEST(requests_for_several_streams_are_read_field_by_field)
{
    for (uint64_t run = 0; run < 1000; run++) {
        dice d = dice_from(run);
        sl_arena arena, decoded;
        sl_multi_append ours;

        test_arena_init(&arena);
        test_arena_init(&decoded);
        const Kurrentdb__Protocol__V2__Streams__AppendRequest *const theirs =
            random_message(&kurrentdb__protocol__v2__streams__append_request__descriptor, &d, &arena);
        EXPECT_OK(sl_multi_append_decode(packed(theirs, &arena), &decoded, &ours, NULL));
        EXPECT(same_text(ours.stream, theirs->stream) && ours.record_count == theirs->n_records);
        EXPECT(ours.expected == (theirs->has_expected_revision ? theirs->expected_revision : SL_STATE_ANY));
        for (size_t i = 0; i < ours.record_count; i++)
            EXPECT_RUN(same_record(&ours.records[i], theirs->records[i]), run, i);
        sl_arena_done(&decoded);
        sl_arena_done(&arena);
    }
}

TEST(checks_of_streams_are_read_and_those_of_another_kind_are_marked)
{
    uint8_t memory[64];
    sl_multi_records records;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_multi_records_decode(
        from_hex("0a 03 2a 01 73  12 07 0a 05 0a 01 73 10 07  12 03 12 01 78", memory), &arena, &records,
        NULL));
    EXPECT(records.record_count == 1 && same_text(records.records[0].stream, "s"));
    EXPECT(records.check_count == 2 && records.checks[0].known && same_text(records.checks[0].stream, "s"));
    EXPECT(records.checks[0].expected == -4); /* 7 in zig-zag */
    EXPECT(!records.checks[1].known);
    sl_arena_done(&arena);
}

TEST(an_expected_revision_that_is_not_there_means_any_and_zero_means_zero)
{
    uint8_t memory[16];
    sl_multi_append append;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_multi_append_decode((sl_str){ 0 }, &arena, &append, NULL));
    EXPECT_EQ(append.expected, SL_STATE_ANY);
    EXPECT_OK(sl_multi_append_decode(from_hex("18 00", memory), &arena, &append, NULL));
    EXPECT_EQ(append.expected, 0);
    EXPECT_OK(sl_multi_append_decode(from_hex("18 01", memory), &arena, &append, NULL));
    EXPECT_EQ(append.expected, SL_STATE_NO_STREAM);
    sl_arena_done(&arena);
}

TEST(answers_about_several_streams_say_also_a_revision_of_zero)
{
    static const sl_multi_revision revisions[] = { { SL_STR_INIT("a"), 0 }, { SL_STR_INIT("b"), -1 } };
    const sl_multi_result result = { revisions, 2, 5 };
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_multi_append_response_encode(&result, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x05\x0a\x01"
                                      "a\x10\x00\x0a\x05\x0a\x01"
                                      "b\x10\x01\x10\x0a")));
    EXPECT_OK(sl_multi_records_response_encode(&result, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x05\x0a\x01"
                                      "a\x10\x00\x0a\x05\x0a\x01"
                                      "b\x10\x01\x10\x0a")));
    sl_arena_done(&arena);
}
