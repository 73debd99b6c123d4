/* Rules of wire/codec/unpack.h: what protobuf-c gets to see, and what it may use. */
#include "codec/compare.h"

#include "wire/codec/google_protobuf.pb-c.h"
#include "wire/codec/unpack.h"
#include "wire/persistent_control.h"
#include "wire/streams_control.h"

static sl_err unpack_options(sl_str bytes, sl_arena *arena, const char **ret_reason)
{
    EventStore__Client__PersistentSubscriptions__ReadReq__Options *options;

    return sl_unpack(&event_store__client__persistent_subscriptions__read_req__options__descriptor, bytes,
                     arena, &options, ret_reason);
}

TEST(what_protobuf_c_would_take_too_lightly_is_refused_with_a_reason)
{
    static const struct {
        const char *hex, *reason;
    } rows[] = {
        { "", NULL },
        { "12 01 67", NULL },
        { "12 01 ff", "a text is not UTF-8" },
        { "12 03 61 00 62", "a text holds a zero byte" },
        { "0a 02 1a 00", NULL },
        { "0a 04 1a 02 ff 00", NULL }, /* the name of a stream is bytes */
        { "0a 02 18 00", "a known field has the wrong wire type" },
        { "10 01", "a known field has the wrong wire type" },
        { "1d 01 02 03 04", "a known field has the wrong wire type" },
        { "aa 06 06 0a 04 61 62 63", "a length points behind the end of the message" },
        { "ca 3e 05 01 02 03 04 05", NULL }, /* unknown: bytes */
        { "cb 3e cc 3e", "groups are not supported" },
        { "c8 3e", "the message ends within a number" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t memory[32];
        const sl_str bytes = from_hex(rows[i].hex, memory);
        char *const copy = exact_copy(bytes);
        const char *reason = NULL;
        sl_arena arena;

        test_arena_init(&arena);
        const sl_err err = unpack_options((sl_str){ copy, bytes.bytes }, &arena, &reason);
        EXPECT_ROW(err == (rows[i].reason == NULL ? SL_OK : SL_ERR_INVALID), i);
        EXPECT_ROW(rows[i].reason == NULL || strcmp(reason, rows[i].reason) == 0, i);
        sl_arena_done(&arena);
        free(copy);
    }
}

/* A list in a list in a list ... : each level is a Value in a ListValue or the other way round. Built from the inside, so
 * that the outermost is a field of a Value. */
static sl_str nested_lists(size_t levels, uint8_t *memory, size_t memory_bytes)
{
    sl_proto_writer writer = { .memory = memory, .capacity = memory_bytes };

    for (size_t i = levels; i-- > 0;)
        sl_proto_wrap(&writer, i % 2 == 0 ? 6 : 1, 0);
    return (sl_str){ (char *)memory + memory_bytes - writer.used, writer.used };
}

TEST(messages_nested_too_deep_are_refused_and_the_deepest_allowed_one_is_not)
{
    static const struct {
        size_t levels;
        sl_err err;
    } rows[] = { { 1, SL_OK }, { 100, SL_OK }, { 101, SL_ERR_INVALID }, { 200000, SL_ERR_INVALID } };
    const size_t memory_bytes = 4 << 20;
    uint8_t *const memory = malloc(memory_bytes);

    assert_non_null(memory);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reason = "";
        Google__Protobuf__Value *value;
        sl_arena arena;

        test_arena_init(&arena);
        EXPECT_ROW(sl_unpack(&google__protobuf__value__descriptor,
                             nested_lists(rows[i].levels, memory, memory_bytes), &arena, &value,
                             &reason) == rows[i].err,
                   i);
        if (rows[i].err != SL_OK)
            EXPECT_STR(reason, "messages are nested too deep");
        sl_arena_done(&arena);
    }
    free(memory);
}

TEST(a_message_that_needs_more_than_the_limit_of_its_arena_is_too_large)
{
    /* Two bytes on the wire, dozens in memory. */
    char bytes[20000];
    sl_arena arena;

    for (size_t i = 0; i < sizeof bytes; i += 2) {
        bytes[i] = 0x78; /* an unknown number */
        bytes[i + 1] = 1;
    }
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ .chunk_bytes = 4096, .limit_bytes = 65536 });
    EXPECT_ERR(unpack_options((sl_str){ bytes, sizeof bytes }, &arena, NULL), SL_ERR_TOO_LARGE);
    EXPECT(arena.given_bytes <= 65536);
    sl_arena_done(&arena);
}

TEST(every_allocation_may_fail_and_nothing_leaks)
{
    dice d = dice_from(5);
    sl_arena made;
    bool succeeded = false;

    test_arena_init(&made);
    const sl_str bytes =
        packed(random_message(&event_store__client__persistent_subscriptions__read_req__options__descriptor,
                              &d, &made),
               &made);
    for (size_t fail_at = 1; !succeeded; fail_at++) {
        test_alloc counting = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&counting);
        sl_arena arena;

        sl_arena_init(&arena, &alloc, (sl_arena_sizes){ .chunk_bytes = 256, .limit_bytes = 1 << 20 });
        const sl_err err = unpack_options(bytes, &arena, NULL);
        succeeded = err == SL_OK;
        EXPECT(succeeded || err == SL_ERR_NOMEM);
        sl_arena_done(&arena);
        EXPECT_EQ(counting.block_count, 0);
        EXPECT(fail_at < 100);
    }
    sl_arena_done(&made);
}

TEST(a_packer_that_failed_once_packs_nothing)
{
    Google__Protobuf__Any any;
    sl_arena arena;
    sl_str bytes = SL_STR("as it was");

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ .chunk_bytes = 256, .limit_bytes = 64 });
    sl_packer packer = { .arena = &arena };
    google__protobuf__any__init(&any);
    any.type_url =
        sl_packer_text(&packer, SL_STR("12345678901234567890123456789012345678901234567890123456789012345"));
    EXPECT(packer.failed && any.type_url[0] == '\0');
    EXPECT(sl_packer_take(&packer, 1) == NULL);
    EXPECT_ERR(sl_pack(&packer, &any.base, &bytes), SL_ERR_NOMEM);
    EXPECT(sl_str_equal(bytes, SL_STR("as it was")));
    sl_arena_done(&arena);
}

/* With less memory than needed, by 16 bytes at a time: there is an error at the first piece that is missing, and no
 * message with a hole is ever looked at. */
TEST(any_piece_of_an_encoded_message_may_be_missing)
{
    static const sl_str prefixes[] = { SL_STR_INIT("a"), SL_STR_INIT("b") };
    static const sl_wire_group_measurement measured = { SL_STR_INIT("Mean"), 1 };
    static const sl_wire_group_connection connection = { .measurements = &measured, .measurement_count = 1 };
    const sl_read_request request = { .filter = { .kind = SL_WIRE_FILTER_GIVEN,
                                                  .on = SL_WIRE_FILTER_ON_TYPE,
                                                  .prefixes = prefixes,
                                                  .prefix_count = 2 } };
    const sl_wire_group_info info = { .connections = &connection, .connection_count = 1 };
    unsigned succeeded = 0, refused = 0;

    for (size_t limit = 0; limit < 4096; limit += 16) {
        sl_arena arena;
        sl_str bytes;

        sl_arena_init(&arena, &sl_alloc_default,
                      (sl_arena_sizes){ .chunk_bytes = 8192, .limit_bytes = limit });
        const sl_err first = sl_read_request_encode(&request, &arena, &bytes);
        sl_arena_reset(&arena);
        const sl_err second = sl_wire_group_list_encode(&info, 1, &arena, &bytes);
        EXPECT((first == SL_OK || first == SL_ERR_NOMEM) && (second == SL_OK || second == SL_ERR_NOMEM));
        succeeded += first == SL_OK && second == SL_OK;
        refused += first != SL_OK || second != SL_OK;
        sl_arena_done(&arena);
    }
    EXPECT(succeeded > 10 && refused > 10);
}
