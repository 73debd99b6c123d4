/* tests/unit/wire/test_messages.c — messages as bytes: prefixes, compression, and what is wrong with them. */
#include "raw.h"

#include "base/cleanup.h"

#include <zlib.h>

/* Returns how many bytes it became. */
static size_t gzip(const void *data, size_t bytes, uint8_t *into, size_t into_bytes)
{
    z_stream z = { 0 };

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)bytes;
    z.next_out = into;
    z.avail_out = (uInt)into_bytes;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

TEST(wire_a_compressed_message_is_unpacked)
{
    uint8_t packed[1000];
    const size_t bytes = gzip("hello, hello, hello, hello", 26, packed, sizeof packed);
    raw w = { .finishes = true };

    raw_open(&w, NULL, true);
    raw_request(&w, 1, 0, "grpc-encoding: gzip\n");
    raw_message(&w, 1, 0, 1, packed, bytes);
    raw_message(&w, 1, 0, 0, "plain", 5); /* the flag says it for each message */
    raw_go(&w);
    EXPECT_EQ(w.messages, 2);
    EXPECT_EQ(w.message_bytes, 31);
    raw_message(&w, 1, NGHTTP2_FLAG_END_STREAM, 1, packed, bytes);
    raw_go(&w);
    EXPECT_STR(w.last, "hello, hello, hello, hello");
    EXPECT(strstr(w.headers, "grpc-status: 0\n") != NULL);
    raw_close(&w);
}

TEST(wire_a_bomb_is_unpacked_only_to_the_limit)
{
    static uint8_t zeros[10 << 20], packed[100000];
    const size_t bytes = gzip(zeros, sizeof zeros, packed, sizeof packed);
    static const struct {
        uint32_t max;
        unsigned messages;
    } rows[] = { { 10 << 20, 1 }, { (10 << 20) - 1, 0 }, { 100000, 0 } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        raw w = { .message_bytes_max = rows[i].max };
        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "grpc-encoding: gzip\n");
        raw_message(&w, 1, 0, 1, packed, bytes);
        raw_go(&w);
        EXPECT_ROW(w.messages == rows[i].messages, i);
        EXPECT_ROW(rows[i].messages == 1 || strstr(w.headers, "grpc-status: 8\n") != NULL, i);
        EXPECT_ROW(i < 2 || w.memory.byte_count < 1 << 20, i);
        raw_close(&w);
    }
}

TEST(wire_damaged_compression_ends_the_call_with_a_sentence)
{
    for (int kind = 0; kind < 5; kind++) {
        uint8_t packed[1000];
        size_t bytes = gzip("hello, hello, hello, hello", 26, packed, sizeof packed - 1);
        raw w = { 0 };

        packed[12] ^= kind == 0 ? 0x55 : 0; /* content */
        packed[bytes - 6] ^= kind == 1;     /* checksum */
        bytes -= kind == 2;                 /* cut */
        bytes += kind == 3;                 /* something behind it */
        bytes = kind == 4 ? 0 : bytes;      /* nothing at all */
        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "grpc-encoding: gzip\n");
        raw_message(&w, 1, 0, 1, packed, bytes);
        raw_go(&w);
        EXPECT_ROW(w.messages == 0, kind);
        EXPECT_ROW(strstr(w.headers, "grpc-status: 13\n") != NULL, kind);
        EXPECT_ROW(strstr(w.headers, "grpc-message: a compressed message is damaged\n") != NULL, kind);
        raw_close(&w);
    }
}

TEST(wire_a_wrong_prefix_ends_the_call)
{
    static const struct {
        uint8_t flag;
        const char *status;
    } rows[] = { { 1, "grpc-status: 13\n" }, { 2, "grpc-status: 13\n" }, { 255, "grpc-status: 13\n" } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
            raw w = { 0 };
            raw_open(&w, NULL, true);
            raw_request(&w, 1, 0, "");
            if (in_pieces) {
                raw_frame(&w, NGHTTP2_DATA, 0, 1, &rows[i].flag, 1);
                raw_frame(&w, NGHTTP2_DATA, 0, 1, "\0\0\0\x1x", 5);
            } else {
                raw_message(&w, 1, 0, rows[i].flag, "x", 1);
            }
            raw_go(&w);
            EXPECT_ROW(strstr(w.headers, rows[i].status) != NULL, i);
            EXPECT_ROW(w.messages == 0 && w.ends == 1, i);
            raw_close(&w);
        }
}

TEST(wire_a_huge_length_is_refused_by_its_prefix)
{
    for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
        raw w = { 0 };
        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "");
        raw_frame(&w, NGHTTP2_DATA, 0, 1, "\0\xff", in_pieces ? 2 : 0);
        raw_frame(&w, NGHTTP2_DATA, 0, 1, &"\0\xff\xff\xff\xff"[in_pieces ? 2 : 0], in_pieces ? 3 : 5);
        raw_go(&w);
        EXPECT(strstr(w.headers,
                      "grpc-message: a message of 4294967295 bytes is larger than the limit of 17825792\n") !=
               NULL);
        raw_close(&w);
    }
}

TEST(wire_a_stream_that_ends_inside_a_message_is_an_error)
{
    for (size_t bytes = 1; bytes < 8; bytes++) {
        raw w = { .finishes = true };
        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "");
        raw_frame(&w, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "\0\0\0\0\x3xyz", bytes);
        raw_go(&w);
        EXPECT_ROW(strstr(w.headers, "grpc-status: 13\n") != NULL, bytes);
        EXPECT_ROW(w.half_closes == 0, bytes);
        raw_close(&w);
    }
}

TEST(wire_padding_and_trailers_of_a_request_do_not_matter)
{
    raw w = { .finishes = true };
    sl_buf block;

    raw_open(&w, NULL, true);
    raw_request(&w, 1, 0, "");
    raw_frame(&w, NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\3\0\0\0\0\x2hi\0\0\0", 11);
    sl_buf_init(&block, &sl_alloc_default, 1000);
    raw_row(&block, "x", "y");
    raw_frame(&w, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, sl_buf_data(&block),
              block.bytes);
    raw_go(&w);
    EXPECT_STR(w.last, "hi");
    EXPECT_EQ(w.half_closes, 1);
    EXPECT(strstr(w.headers, "grpc-status: 0\n") != NULL);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0); /* both sides are done: nothing to reset */
    sl_buf_done(&block);
    raw_close(&w);
}
