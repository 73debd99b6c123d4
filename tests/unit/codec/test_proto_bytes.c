/* Rules of wire/proto_bytes.h. */
#include "codec/compare.h"

#include "wire/proto_bytes.h"

static const char *walk(sl_str message)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    while (sl_proto_next(&reader, &field))
        continue;
    return reader.reason;
}

TEST(every_number_is_written_in_the_size_that_was_said_and_read_back)
{
    dice d = dice_from(7);

    for (int i = 0; i < 20000; i++) {
        const uint64_t value = random_u64(&d);
        uint8_t memory[SL_PROTO_VARINT_BYTES_MAX];
        sl_proto_writer writer = { .memory = memory, .capacity = sizeof memory };
        sl_proto_reader reader;
        uint64_t again;

        sl_proto_put_varint(&writer, value);
        EXPECT_EQ(writer.used, sl_proto_varint_size(value));
        reader = sl_proto_reader_from((sl_str){ (char *)memory + sizeof memory - writer.used, writer.used });
        EXPECT(sl_proto_varint(&reader, &again));
        EXPECT(again == value && reader.at == reader.end);
    }
}

TEST(a_writer_without_memory_counts_what_one_with_memory_writes)
{
    uint8_t memory[64];
    sl_proto_writer writers[] = { { 0 }, { .memory = memory, .capacity = sizeof memory } };

    for (size_t i = 0; i < 2; i++) {
        sl_proto_put_bytes(&writers[i], 5, SL_STR("abc"));
        sl_proto_put_bytes(&writers[i], 4, SL_STR(""));
        sl_proto_put_u64(&writers[i], 3, 0);
        sl_proto_put_given(&writers[i], 3, 0);
        sl_proto_put_empty(&writers[i], 2);
        sl_proto_put_i64(&writers[i], 1, -1);
    }
    EXPECT_EQ(writers[0].used, writers[1].used);
    EXPECT_EQ(writers[1].used, 11 + 2 + 2 + 5);
    EXPECT_MEM(memory + sizeof memory - 9,
               "\x12\x00\x18\x00\x2a\x03"
               "abc",
               9);
}

static void write_too_much(void)
{
    uint8_t memory[4];
    sl_proto_writer writer = { .memory = memory, .capacity = sizeof memory };

    sl_proto_put_bytes(&writer, 1, SL_STR("abc"));
}

TEST(a_writer_never_writes_in_front_of_its_memory)
{
    EXPECT(aborts(write_too_much));
}

TEST(what_is_not_protobuf_is_refused_with_a_reason)
{
    static const struct {
        const char *hex, *reason;
    } rows[] = {
        { "", NULL },
        { "08 01", NULL },
        { "08", "the message ends within a number" },
        { "08 80", "the message ends within a number" },
        { "88", "the message ends within a number" },
        { "08 ff ff ff ff ff ff ff ff ff 01", NULL },
        { "08 ff ff ff ff ff ff ff ff ff 02", "a number has more than 64 bits" },
        { "08 ff ff ff ff ff ff ff ff ff 81", "a number has more than 64 bits" },
        { "08 80 80 80 80 80 80 80 80 80 80 00", "a number has more than 64 bits" },
        { "08 81 80 80 80 80 80 80 80 80 00", NULL }, /* 1, with needless zero bits */
        { "00 01", "a field has no valid number" },
        { "07", "a field has no valid number" },
        { "f8 ff ff ff 0f 00", NULL }, /* the largest number of a field */
        { "80 80 80 80 10 00", "a field has no valid number" },
        { "f8 ff ff ff ff ff ff ff ff 01 00", "a field has no valid number" },
        { "0a 02 61", "a length points behind the end of the message" },
        { "0a 02 61 62", NULL },
        { "0a ff ff ff ff ff ff ff ff ff 01", "a length points behind the end of the message" },
        { "0a ff ff ff ff 0f 61", "a length points behind the end of the message" },
        { "09 01 02 03 04 05 06 07 08", NULL },
        { "09 01 02 03 04 05 06 07", "the message ends within a number" },
        { "0d 01 02 03 04", NULL },
        { "0d 01 02 03", "the message ends within a number" },
        { "0b 0c", "groups are not supported" },
        { "0c", "groups are not supported" },
        { "0e", "a field has a wire type that does not exist" },
        { "0f", "a field has a wire type that does not exist" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t memory[32];
        const sl_str bytes = from_hex(rows[i].hex, memory);
        char *const copy = exact_copy(bytes);
        const char *const reason = walk((sl_str){ copy, bytes.bytes });

        EXPECT_ROW((reason == NULL) == (rows[i].reason == NULL), i);
        EXPECT_ROW(reason == NULL || strcmp(reason, rows[i].reason) == 0, i);
        free(copy);
    }
}

TEST(numbers_and_fixed_numbers_are_read_as_they_were_written)
{
    uint8_t memory[64];
    sl_proto_reader reader = sl_proto_reader_from(from_hex(
        "08 ff ff ff ff ff ff ff ff ff 01  11 01 02 03 04 05 06 07 88  1d 01 02 03 84  22 02 68 69", memory));
    sl_proto_field field;

    EXPECT(sl_proto_next(&reader, &field));
    EXPECT(field.number == 1 && field.type == SL_PROTO_VARINT && field.value == UINT64_MAX);
    EXPECT(sl_proto_next(&reader, &field));
    EXPECT(field.number == 2 && field.type == SL_PROTO_FIXED64 &&
           field.value == UINT64_C(0x8807060504030201));
    EXPECT(sl_proto_next(&reader, &field));
    EXPECT(field.number == 3 && field.type == SL_PROTO_FIXED32 && field.value == UINT64_C(0x84030201));
    EXPECT(sl_proto_next(&reader, &field));
    EXPECT(field.number == 4 && sl_str_equal(field.bytes, SL_STR("hi")));
    EXPECT(!sl_proto_next(&reader, &field) && reader.reason == NULL);
}

TEST(the_first_reason_is_kept_and_nothing_is_read_after_it)
{
    uint8_t memory[8];
    sl_proto_reader reader = sl_proto_reader_from(from_hex("08 01 10 02", memory));
    sl_proto_field field;
    sl_str text = SL_STR("as it was");
    const char *reason = NULL;

    EXPECT(sl_proto_next(&reader, &field));
    sl_proto_take_bytes(&reader, &field, &text);
    sl_proto_fail(&reader, "another one");
    EXPECT(!sl_proto_next(&reader, &field));
    EXPECT(sl_str_equal(text, SL_STR("as it was")));
    EXPECT_ERR(sl_proto_result(&reader, &reason), SL_ERR_INVALID);
    EXPECT_STR(reason, "a known field has the wrong wire type");
    EXPECT_ERR(sl_proto_result(&reader, NULL), SL_ERR_INVALID);
}

TEST(numbers_of_32_bits_drop_their_upper_half_and_any_bit_makes_a_bool_true)
{
    uint8_t memory[32];
    sl_proto_reader reader =
        sl_proto_reader_from(from_hex("08 ff ff ff ff ff ff ff ff ff 01 10 80 80 80 80 10", memory));
    sl_proto_field field;
    int32_t small = 0;
    uint32_t unsigned_small = 0;
    bool flag = false;

    EXPECT(sl_proto_next(&reader, &field));
    sl_proto_take_i32(&reader, &field, &small);
    sl_proto_take_u32(&reader, &field, &unsigned_small);
    EXPECT(small == -1 && unsigned_small == UINT32_MAX);
    EXPECT(sl_proto_next(&reader, &field));
    sl_proto_take_bool(&reader, &field, &flag);
    sl_proto_take_i32(&reader, &field, &small);
    EXPECT(flag && small == 0);
}

TEST(text_has_to_be_utf8_whatever_its_length)
{
    /* A byte that is no UTF-8, at every place of texts around the sizes that are looked at in one go. */
    for (size_t length = 1; length < 40; length++)
        for (size_t bad = 0; bad <= length; bad++) {
            char *const text = malloc(length);
            sl_proto_reader reader = { 0 };
            const sl_proto_field field = { .type = SL_PROTO_BYTES, .bytes = { text, length } };
            sl_str taken = { 0 };

            assert_non_null(text);
            memset(text, 'a', length);
            if (bad < length)
                text[bad] = (char)0xff;
            sl_proto_take_text(&reader, &field, &taken);
            EXPECT_ROW((reader.reason == NULL) == (bad == length), length * 100 + bad);
            EXPECT_ROW(taken.bytes == (bad == length ? length : 0), length * 100 + bad);
            free(text);
        }
}
