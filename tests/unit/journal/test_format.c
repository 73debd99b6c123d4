/* The bytes of a segment: what is written is read, and nothing else is. */
#include "../test.h"
#include "store/journal/format.h"

#include <string.h>

static const sl_uuid store = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

/* One frame of two records, 5 and 12 bytes of payload. */
static size_t make_frame(uint8_t *at, uint32_t seed)
{
    size_t size = SL_FRAME_HEADER_BYTES;

    memcpy(at + size + SL_RECORD_HEADER_BYTES, "hello", 5);
    size += sl_record_finish(at + size, 40, SL_RECORD_EVENT, 5, seed);
    memcpy(at + size + SL_RECORD_HEADER_BYTES, "twelve bytes", 12);
    size += sl_record_finish(at + size, 41, SL_RECORD_GROUP_CREATE, 12, seed);
    sl_frame_header_put(&(sl_frame_header){ .bytes = (uint32_t)size,
                                            .record_count = 2,
                                            .first_position = 40,
                                            .durable_below = 39,
                                            .epoch = 7 },
                        seed, at);
    return size;
}

TEST(a_frame_is_read_as_it_was_written)
{
    uint64_t end;
    const uint32_t seed = sl_segment_seed(store, 3);
    uint8_t bytes[256] = { 0 };
    const size_t size = make_frame(bytes, seed);
    sl_frame_header header;
    sl_record_view record;

    EXPECT_EQ(size, 48 + 32 + 40);
    EXPECT_OK(sl_frame_check(bytes, size, seed, &header, &end));
    EXPECT_EQ(header.epoch, 7);
    EXPECT_EQ(header.durable_below, 39);
    EXPECT_OK(sl_record_get(bytes + 48, size - 48, seed, &record));
    EXPECT_EQ(record.position, 40);
    EXPECT_EQ(record.payload_bytes, 5);
    EXPECT_MEM(record.payload, "hello", 5);
    EXPECT_OK(sl_record_get(bytes + 80, size - 80, seed, &record));
    EXPECT_EQ(record.kind, SL_RECORD_GROUP_CREATE);
}

TEST(every_bit_of_a_frame_counts)
{
    uint64_t end;
    const uint32_t seed = sl_segment_seed(store, 3);
    uint8_t bytes[256] = { 0 };
    const size_t size = make_frame(bytes, seed);
    sl_frame_header header;

    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        EXPECT_ERR(sl_frame_check(bytes, size, seed, &header, &end), SL_ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++)
        EXPECT_ERR(sl_frame_check(bytes, cut, seed, &header, &end), SL_ERR_CORRUPT);
    EXPECT_OK(sl_frame_check(bytes, size, seed, &header, &end));
}

TEST(the_records_of_a_frame_stand_in_sequence_and_fill_it)
{
    uint64_t end;
    const uint32_t seed = sl_segment_seed(store, 3);
    uint8_t bytes[256] = { 0 };
    const size_t size = make_frame(bytes, seed);
    sl_frame_header header = {
        .bytes = (uint32_t)size, .record_count = 1, .first_position = 40, .durable_below = 39, .epoch = 7
    };

    sl_record_finish(bytes + 80, 42, SL_RECORD_GROUP_CREATE, 12,
                     seed); /* right in itself, but 41 should be here */
    EXPECT_ERR(sl_frame_check(bytes, size, seed, &header, &end), SL_ERR_CORRUPT);
    make_frame(bytes, seed);
    sl_frame_header_put(&header, seed, bytes); /* one record of the two: the rest of the frame is nobody's */
    EXPECT_ERR(sl_frame_check(bytes, size, seed, &header, &end), SL_ERR_CORRUPT);
}

/* A frame of a rewritten segment says so, and only then may positions be missing. They grow all the same. */
TEST(a_sparse_frame_may_have_gaps_but_no_disorder)
{
    const uint32_t seed = sl_segment_seed(store, 3);
    uint8_t bytes[256] = { 0 };
    const size_t size = make_frame(bytes, seed);
    sl_frame_header header = {
        .bytes = (uint32_t)size, .record_count = 2, .first_position = 40, .sparse = true
    };
    uint64_t end;

    sl_record_finish(bytes + 80, 50, SL_RECORD_GROUP_CREATE, 12, seed);
    sl_frame_header_put(&header, seed, bytes);
    EXPECT_OK(sl_frame_check(bytes, size, seed, &header, &end));
    EXPECT(header.sparse);
    EXPECT_EQ(end, 51);
    sl_record_finish(bytes + 80, 40, SL_RECORD_GROUP_CREATE, 12, seed);
    EXPECT_ERR(sl_frame_check(bytes, size, seed, &header, &end), SL_ERR_CORRUPT);
}

TEST(a_frame_of_another_segment_or_store_is_no_frame)
{
    uint64_t end;
    uint8_t bytes[256] = { 0 };
    const size_t size = make_frame(bytes, sl_segment_seed(store, 3));
    const sl_uuid other = { { 9 } };
    sl_frame_header header;

    EXPECT_ERR(sl_frame_check(bytes, size, sl_segment_seed(store, 4), &header, &end), SL_ERR_CORRUPT);
    EXPECT_ERR(sl_frame_check(bytes, size, sl_segment_seed(other, 3), &header, &end), SL_ERR_CORRUPT);
}

TEST(a_segment_header_is_read_as_it_was_written_and_another_version_is_named)
{
    const sl_segment_header header = { .version = SL_JOURNAL_VERSION,
                                       .number = 5,
                                       .segment_bytes = 1 << 20,
                                       .store = store,
                                       .rewrites = 2,
                                       .first = 100,
                                       .end = 200,
                                       .groups_from = 9 };
    sl_segment_header later = header, read;
    uint8_t block[SL_SEGMENT_HEADER_BYTES];

    sl_segment_header_put(&header, block);
    EXPECT_OK(sl_segment_header_get(block, &read));
    EXPECT_EQ(read.number, 5);
    EXPECT_EQ(read.segment_bytes, 1 << 20);
    EXPECT(sl_uuid_equal(read.store, store));
    EXPECT(read.rewrites == 2 && read.first == 100 && read.end == 200 && read.groups_from == 9);
    for (size_t bit = 0; bit < 8 * 84; bit++) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        EXPECT_ERR(sl_segment_header_get(block, &read), SL_ERR_CORRUPT);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    later.version = SL_JOURNAL_VERSION + 1;
    sl_segment_header_put(&later, block);
    EXPECT_ERR(sl_segment_header_get(block, &read), SL_ERR_VERSION);
}

/* The first frame of the first journal ever, byte by byte: what was written then must be read for ever. */
TEST(the_bytes_of_a_frame_are_those_of_version_1)
{
    static const uint8_t head[40] = {
        'S', 'L', 'R', 'M', 120, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0,
        0,   0,   0,   0,   7,   0, 0, 0, 0,  0, 0, 0, 2, 0, 0, 0, 0,  0, 0, 0
    };
    static const uint8_t record[28] = { 32, 0, 0, 0, 40, 0, 0,   0,   0,   0,   0,   0, 5, 0,
                                        0,  0, 3, 0, 0,  0, 'h', 'e', 'l', 'l', 'o', 0, 0, 0 };
    uint8_t bytes[256] = { 0 };

    make_frame(bytes, sl_segment_seed(store, 3));
    EXPECT_MEM(bytes, head, sizeof head);
    EXPECT_MEM(bytes + 52, record, sizeof record);
}
