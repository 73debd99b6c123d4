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

/* --- the last one --- */

/* How often and where the end of the request is said, and how many messages are known to be the last when they come. */
TEST(wire_a_message_is_said_to_be_the_last_when_its_frame_ends_the_request)
{
    static const struct {
        uint8_t first_flags, second_flags;
        bool second;
        unsigned last;
    } rows[] = {
        { NGHTTP2_FLAG_END_STREAM, 0, false, 1 },
        { 0, 0, false, 0 },
        { 0, NGHTTP2_FLAG_END_STREAM, true, 1 },
        { 0, 0, true, 0 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        for (size_t step = 1; step < 40; step++) { /* however the bytes are cut */
            raw w = { .finishes = true };

            raw_open(&w, NULL, true);
            raw_request(&w, 1, 0, "");
            raw_go(&w);
            raw_message(&w, 1, rows[i].first_flags, 0, "hello", 5);
            if (rows[i].second)
                raw_message(&w, 1, rows[i].second_flags, 0, "again", 5);
            raw_go_in_steps(&w, step);
            EXPECT_ROW(w.messages == 1 + (unsigned)rows[i].second, i);
            EXPECT_ROW(w.last_messages == rows[i].last && w.half_closes == rows[i].last, i);
            raw_close(&w);
        }
}

TEST(wire_of_two_messages_only_the_second_is_the_last_wherever_frames_cut_them)
{
    static const uint8_t two[] = { 0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 1, 'b' };

    for (size_t cut = 0; cut < sizeof two; cut++) {
        raw w = { .finishes = true };

        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "");
        raw_frame(&w, NGHTTP2_DATA, 0, 1, two, cut);
        raw_frame(&w, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, two + cut, sizeof two - cut);
        raw_go(&w);
        EXPECT_ROW(w.messages == 2 && w.last_messages == 1, cut);
        EXPECT_STR(w.last, "b");
        raw_close(&w);
    }
}

TEST(wire_an_end_behind_padding_or_in_a_frame_of_its_own_is_not_known_before_it_comes)
{
    static const uint8_t padded[] = { 2, 0, 0, 0, 0, 1, 'a', 0, 0 };

    for (int own_frame = 0; own_frame < 2; own_frame++) {
        raw w = { .finishes = true };

        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "");
        if (own_frame)
            raw_message(&w, 1, 0, 0, "a", 1);
        raw_frame(&w, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM | (own_frame ? 0 : NGHTTP2_FLAG_PADDED), 1,
                  padded, own_frame ? 0 : sizeof padded);
        raw_go(&w);
        EXPECT_EQ(w.messages, 1);
        EXPECT_EQ(w.last_messages, 0);
        EXPECT_EQ(w.half_closes, 1);
        EXPECT(strstr(w.headers, "grpc-status: 0\n") != NULL);
        raw_close(&w);
    }
}

TEST(wire_a_paused_call_knows_its_last_message_when_it_resumes)
{
    for (int ended = 0; ended < 2; ended++) {
        raw w = { 0 };

        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, "");
        raw_go(&w);
        sl_call_pause(w.call);
        raw_message(&w, 1, 0, 0, "first", 5);
        raw_message(&w, 1, 0, 0, "second", 6);
        raw_frame(&w, NGHTTP2_DATA, ended ? NGHTTP2_FLAG_END_STREAM : 0, 1, NULL, 0);
        raw_go(&w);
        EXPECT_EQ(w.messages, 0);
        sl_call_resume(w.call);
        EXPECT_EQ(w.messages, 2);
        EXPECT_EQ(w.last_messages, ended);
        raw_close(&w);
    }
}
