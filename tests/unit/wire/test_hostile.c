/* tests/unit/wire/test_hostile.c — a peer that breaks rules or floods: each limit, one step below and one above. */
#include "raw.h"

#include "base/cleanup.h"

#define SECOND UINT64_C(1000000000)

TEST(wire_http_1_gets_a_sentence_and_the_door)
{
    static const char *const requests[] = { "GET / HTTP/1.1\r\nhost: x\r\n\r\n", "POST /x HTTP/1.1\r\n\r\n",
                                            "PRI * HTTP/1.1\r\n\r\n", "PUT / HTTP/1.0\r\n\r\n" };

    for (size_t i = 0; i < SL_COUNT_OF(requests); i++)
        for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
            raw w = { 0 };
            raw_open(&w, NULL, false);
            EXPECT(!sl_connection_has_output(w.server)); /* no binary greeting before we know who it is */
            for (const char *at = requests[i]; *at != 0 && by_bytes; at++) {
                raw_bytes(&w, at, 1);
                raw_go(&w);
            }
            raw_bytes(&w, requests[i], by_bytes ? 0 : strlen(requests[i]));
            raw_go(&w);
            EXPECT_ROW(strncmp(w.text, "HTTP/1.1 400 Bad Request\r\n", 26) == 0, i);
            EXPECT_ROW(strstr(w.text, "gRPC") != NULL, i);
            EXPECT_EQ(strlen(strstr(w.text, "\r\n\r\n") + 4), 118);
            EXPECT(raw_finishes(&w));
            EXPECT_EQ(w.counters.connections_ended[SL_END_NOT_HTTP2], 1);
            raw_close(&w);
        }
}

TEST(wire_what_is_neither_http_1_nor_2_gets_nothing)
{
    raw w = { 0 };

    raw_open(&w, NULL, false);
    raw_bytes(&w, "\x16\x03\x01\x02\x00", 5); /* TLS to a port without TLS */
    raw_go(&w);
    EXPECT_EQ(w.text_bytes, 0);
    EXPECT(raw_finishes(&w));
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NOT_HTTP2);
    raw_close(&w);
}

TEST(wire_a_preface_that_does_not_come_ends_the_connection)
{
    for (int part = 0; part < 3; part++) {
        raw w = { 0 };
        raw_open(&w, NULL, false);
        raw_bytes(&w, NGHTTP2_CLIENT_MAGIC, part == 0 ? 0 : part == 1 ? 10 : 24);
        raw_go(&w);
        EXPECT(sl_connection_due_ns(w.server) == w.now_ns + 10 * SECOND);
        w.now_ns += 10 * SECOND - 1;
        sl_connection_tick(w.server, w.now_ns);
        EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
        w.now_ns += 1;
        sl_connection_tick(w.server, w.now_ns);
        raw_go(&w);
        EXPECT_END(&w, SL_END_HANDSHAKE_TIMEOUT, part == 2 ? NGHTTP2_SETTINGS_TIMEOUT : 0);
        raw_close(&w);
    }
}

TEST(wire_headers_that_drip_in_end_the_connection)
{
    for (int drips = 0; drips < 2; drips++) {
        raw w = { 0 };
        sl_buf block;

        raw_open(&w, NULL, true);
        sl_buf_init(&block, &sl_alloc_default, 1000);
        raw_row(&block, ":method", "POST");
        raw_frame(&w, NGHTTP2_HEADERS, 0, 1, sl_buf_data(&block), block.bytes);
        raw_head(&w, NGHTTP2_CONTINUATION, 0, 1, 100);
        raw_bytes(&w, "\0\1x\x40", drips ? 4 : 0); /* a row with a value of 64 bytes */
        raw_go(&w);
        for (int i = 0; i < 9; i++) {
            w.now_ns += SECOND;
            raw_bytes(&w, "v", drips ? 1 : 0);
            raw_go(&w);
            sl_connection_tick(w.server, w.now_ns);
        }
        EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
        w.now_ns += SECOND;
        sl_connection_tick(w.server, w.now_ns);
        raw_go(&w);
        EXPECT_END(&w, SL_END_HEADERS_TIMEOUT, NGHTTP2_ENHANCE_YOUR_CALM);
        sl_buf_done(&block);
        raw_close(&w);
    }
}

/* Says one frame of each kind of flood. */
static void one_of_flood(raw *w, sl_end reason, unsigned i)
{
    const uint8_t eight[8] = { 0, 0, 0, 1, 0, 0, 0, 0 };

    switch ((int)reason) {
    case SL_END_PING_FLOOD: raw_frame(w, NGHTTP2_PING, 0, 0, eight, 8); break;
    case SL_END_SETTINGS_FLOOD: raw_frame(w, NGHTTP2_SETTINGS, 0, 0, NULL, 0); break;
    case SL_END_RESET_FLOOD:
        raw_request(w, 1 + 2 * i, 0, "");
        raw_frame(w, NGHTTP2_RST_STREAM, 0, 1 + 2 * i, eight, 4);
        break;
    case SL_END_EMPTY_FRAME_FLOOD:
        if (i == 0)
            raw_request(w, 1, 0, "");
        raw_frame(w, NGHTTP2_DATA, i % 2 == 0 ? 0 : NGHTTP2_FLAG_PADDED, 1, "\3\0\0\0", i % 2 == 0 ? 0 : 4);
        break;
    case SL_END_PRIORITY_FLOOD: raw_frame(w, NGHTTP2_PRIORITY, 0, 3 + 2 * i, "\0\0\0\0\7", 5); break;
    case SL_END_WINDOW_UPDATE_FLOOD: raw_frame(w, NGHTTP2_WINDOW_UPDATE, 0, 0, eight, 4); break;
    default: fail_msg("no such flood"); break;
    }
}

static sl_wire_limits flood_limits(unsigned already)
{
    const sl_rate rate = { 20, 10 }, with_first = { 20 + already, 10 };
    sl_wire_limits limits = sl_wire_limits_default;

    limits.pings = limits.resets = limits.empty_frames = limits.priorities = limits.window_updates = rate;
    limits.settings = with_first;
    limits.handshake_timeout_ns = 0;
    return limits;
}

TEST(wire_every_flood_is_ended_at_its_limit_and_not_before)
{
    const sl_wire_limits limits = flood_limits(1);

    for (int reason = SL_END_PING_FLOOD; reason <= SL_END_WINDOW_UPDATE_FLOOD; reason++) {
        raw w = { 0 };
        raw_open(&w, &limits, true);
        for (unsigned i = 0; i < 20; i++)
            one_of_flood(&w, (sl_end)reason, i);
        raw_go(&w);
        EXPECT_ROW(sl_connection_end_reason(w.server) == SL_END_NONE, reason);
        one_of_flood(&w, (sl_end)reason, 20);
        raw_go(&w);
        EXPECT_END(&w, (sl_end)reason, NGHTTP2_ENHANCE_YOUR_CALM);
        EXPECT_STR(w.goaway_text, sl_end_text((sl_end)reason));
        raw_close(&w);
    }
}

TEST(wire_the_same_frames_at_a_normal_pace_are_welcome)
{
    const sl_wire_limits limits = flood_limits(1);

    for (int reason = SL_END_PING_FLOOD; reason <= SL_END_WINDOW_UPDATE_FLOOD; reason++) {
        raw w = { 0 };
        raw_open(&w, &limits, true);
        for (unsigned i = 0; i < 500; i++) {
            w.now_ns += SECOND / 10;
            one_of_flood(&w, (sl_end)reason, i);
            raw_go(&w);
        }
        EXPECT_ROW(sl_connection_end_reason(w.server) == SL_END_NONE, reason);
        EXPECT_EQ(w.frames[NGHTTP2_GOAWAY], 0);
        raw_close(&w);
    }
}

TEST(wire_who_makes_us_reset_streams_pays_for_it)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.resets = (sl_rate){ 20, 10 };
    raw_open(&w, &limits, true);
    for (unsigned i = 0; i < 21; i++) { /* a window that grows beyond 2^31 is an error of the stream */
        raw_request(&w, 1 + 2 * i, 0, "");
        raw_frame(&w, NGHTTP2_WINDOW_UPDATE, 0, 1 + 2 * i, "\x7f\xff\xff\xff", 4);
        raw_go(&w);
    }
    EXPECT_END(&w, SL_END_RESET_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
    raw_close(&w);
}

TEST(wire_default_limits_bear_what_normal_clients_do)
{
    raw w = { 0 };

    raw_open(&w, NULL, true);
    for (unsigned i = 0; i < 900; i++) { /* a burst of cancelled calls */
        raw_request(&w, 1 + 2 * i, 0, "");
        raw_frame(&w, NGHTTP2_RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x8", 4);
    }
    for (unsigned i = 0; i < 10000; i++)
        raw_frame(&w, NGHTTP2_PING, 0, 0, "pingping", 8);
    raw_go(&w);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    EXPECT_EQ(w.frames[NGHTTP2_PING], 10000);
    EXPECT_EQ(w.calls, 900);
    EXPECT_EQ(w.ends, 900);
    raw_close(&w);
}

TEST(wire_an_endless_header_block_is_cut)
{
    for (unsigned count = 8; count <= 9; count++) {
        raw w = { 0 };
        sl_buf block;

        raw_open(&w, NULL, true);
        sl_buf_init(&block, &sl_alloc_default, 1000);
        raw_row(&block, "x", "y");
        raw_request(&w, 1, 0, "");
        sl_buf_data(&w.out)[4] &= (uint8_t)~NGHTTP2_FLAG_END_HEADERS;
        for (unsigned i = 0; i < count; i++)
            raw_frame(&w, NGHTTP2_CONTINUATION, i + 1 == 8 && count == 8 ? NGHTTP2_FLAG_END_HEADERS : 0, 1,
                      sl_buf_data(&block), block.bytes);
        raw_go(&w);
        if (count == 9)
            EXPECT_END(&w, SL_END_CONTINUATION_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
        EXPECT_EQ(w.calls, count == 8);
        sl_buf_done(&block);
        raw_close(&w);
    }
}

TEST(wire_headers_beyond_the_limit_are_refused_and_far_beyond_end_the_connection)
{
    static const struct {
        unsigned rows;
        unsigned calls;
        sl_end reason;
    } table[] = { { 5, 1, SL_END_NONE }, { 60, 0, SL_END_NONE }, { 600, 0, SL_END_HEADERS_TOO_LARGE } };
    static char rows[30000];
    sl_wire_limits limits = sl_wire_limits_default;

    limits.header_bytes_max = 1000;
    for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
        raw w = { 0 };
        rows[0] = 0;
        for (unsigned n = 0; n < table[i].rows; n++)
            strcat(rows, "a: b\n");
        raw_open(&w, &limits, true);
        raw_request(&w, 1, NGHTTP2_FLAG_END_STREAM, rows);
        raw_go(&w);
        EXPECT_ROW(w.calls == table[i].calls, i);
        EXPECT_ROW(sl_connection_end_reason(w.server) == table[i].reason, i);
        if (table[i].rows == 60)
            EXPECT(strstr(w.headers, "grpc-status: 8\n") != NULL);
        raw_close(&w);
    }
}

TEST(wire_too_many_header_rows_are_refused)
{
    for (unsigned extra = 3; extra <= 5; extra++) {
        sl_wire_limits limits = sl_wire_limits_default;
        raw w = { 0 };
        char rows[100] = "";

        limits.header_count_max = 10;
        for (unsigned n = 0; n < extra; n++)
            strcat(rows, "a: b\n");
        raw_open(&w, &limits, true);
        raw_request(&w, 1, NGHTTP2_FLAG_END_STREAM, rows);
        raw_go(&w);
        EXPECT_EQ(w.calls, 6 + extra <= 10);
        raw_close(&w);
    }
}

TEST(wire_what_is_no_grpc_is_told_so)
{
    static const struct {
        const char *rows, *answer;
        unsigned calls;
    } table[] = {
        { ":method: GET\n", ":status: 405\nallow: POST\n", 0 },
        { "content-type: text/html\n", ":status: 415\n", 0 },
        { "content-type: application/grpc-web\n", ":status: 415\n", 0 },
        { "content-type: application/grpc-web-text\n", ":status: 415\n", 0 },
        { "content-type: application/grpc+json\n", ":status: 415\n", 0 },
        { "content-type: application/grpcx\n", ":status: 415\n", 0 },
        { "content-type: application/grpc+proto\n", "", 1 },
        { "content-type: application/grpc;charset=utf-8\n", "", 1 },
        { "grpc-timeout: 1x\n", "grpc-status: 3\n", 0 },
        { "grpc-timeout: 123456789S\n", "grpc-status: 3\n", 0 },
        { "grpc-timeout: 99999999H\n", "", 1 },
        { "x-bin: !!\n", "grpc-status: 3\n", 0 },
        { "x-bin: YQ==,Yg\n", "", 1 },
        { "grpc-encoding: identity\n", "", 1 },
        { "grpc-encoding: gzip\n", "", 1 },
        { "grpc-encoding: snappy\n", "grpc-status: 12\n", 0 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
        raw w = { 0 };
        raw_open(&w, NULL, true);
        raw_request(&w, 1, 0, table[i].rows);
        raw_message(&w, 1, 0, 0, "x", 1); /* must not disturb */
        raw_go(&w);
        EXPECT_ROW(w.calls == table[i].calls, i);
        EXPECT_ROW(strstr(w.headers, table[i].answer) != NULL, i);
        EXPECT_ROW(w.frames[NGHTTP2_RST_STREAM] == 0, i); /* who is refused may read why */
        EXPECT_ROW(sl_connection_call_count(w.server) == table[i].calls, i);
        EXPECT_ROW(w.counters.calls_ended[SL_CALL_REFUSED] == 1 - table[i].calls, i);
        if (strstr(table[i].rows, "snappy") != NULL)
            EXPECT(strstr(w.headers, "grpc-accept-encoding: identity,gzip\n") != NULL);
        raw_close(&w);
    }
}

TEST(wire_rules_of_http2_are_kept_by_ending_the_connection)
{
    static const struct {
        uint8_t type, flags;
        uint32_t stream_id;
        size_t bytes;
        uint32_t error;
    } table[] = {
        { NGHTTP2_DATA, 0, 0, 5, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_HEADERS, 4, 0, 5, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_HEADERS, 4, 2, 0, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_SETTINGS, 0, 1, 0, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_SETTINGS, 0, 0, 5, NGHTTP2_FRAME_SIZE_ERROR },
        { NGHTTP2_PING, 0, 0, 7, NGHTTP2_FRAME_SIZE_ERROR },
        { NGHTTP2_PUSH_PROMISE, 4, 1, 8, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_CONTINUATION, 4, 1, 0, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_WINDOW_UPDATE, 0, 0, 4, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_RST_STREAM, 0, 9, 4, NGHTTP2_PROTOCOL_ERROR },
        { NGHTTP2_DATA, 0, 1, 20000, NGHTTP2_FRAME_SIZE_ERROR },
    };
    static const uint8_t zeros[20000];

    for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
        raw w = { 0 };
        raw_open(&w, NULL, true);
        raw_frame(&w, table[i].type, table[i].flags, table[i].stream_id, zeros, table[i].bytes);
        raw_go(&w);
        EXPECT_ROW(sl_connection_end_reason(w.server) == SL_END_PROTOCOL, i);
        EXPECT_ROW(w.goaway_error == table[i].error, i);
        EXPECT_ROW(raw_finishes(&w), i);
        raw_close(&w);
    }
}

TEST(wire_a_peer_that_ignores_the_window_is_stopped)
{
    static const uint8_t data[16000];
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.stream_window_bytes = 65535;
    raw_open(&w, &limits, true);
    raw_request(&w, 1, 0, "");
    raw_go(&w);
    sl_call_pause(w.call);
    for (int i = 0; i < 5; i++) {
        raw_frame(&w, NGHTTP2_DATA, 0, 1, data, sizeof data);
        raw_go(&w);
    }
    EXPECT_EQ(w.ends, 1);
    EXPECT_EQ(w.reset_error, NGHTTP2_FLOW_CONTROL_ERROR);
    raw_close(&w);
}

TEST(wire_a_peer_that_never_reads_is_ended_before_answers_pile_up)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };
    size_t before;

    limits.queued_frames_max = 100;
    limits.pings = (sl_rate){ 1000000, 1000000 };
    raw_open(&w, &limits, true);
    before = w.memory.byte_count;
    for (int i = 0; i < 50; i++) {
        for (int n = 0; n < 50; n++)
            raw_frame(&w, NGHTTP2_PING, 0, 0, "pingping", 8);
        sl_connection_receive(w.server, w.now_ns, sl_buf_data(&w.out), w.out.bytes);
        sl_buf_clear(&w.out);
    }
    EXPECT(w.memory.byte_count - before < 100000);
    raw_go(&w);
    EXPECT_END(&w, SL_END_UNREAD_OUTPUT, NGHTTP2_ENHANCE_YOUR_CALM);
    raw_close(&w);
}

TEST(wire_refusals_that_nobody_reads_do_not_pile_up_either)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.queued_frames_max = 100;
    raw_open(&w, &limits, true);
    for (unsigned i = 0; i < 101; i++)
        raw_request(&w, 1 + 2 * i, 0, "content-type: text/html\n");
    raw_go(&w);
    EXPECT_END(&w, SL_END_UNREAD_OUTPUT, NGHTTP2_ENHANCE_YOUR_CALM);
    raw_close(&w);
}

TEST(wire_more_streams_than_allowed_are_refused_and_the_others_go_on)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.calls_max = 10;
    raw_open(&w, &limits, true);
    for (unsigned i = 0; i < 30; i++)
        raw_request(&w, 1 + 2 * i, 0, "");
    raw_go(&w);
    EXPECT_EQ(w.calls, 10);
    EXPECT_EQ(w.reset_error, NGHTTP2_REFUSED_STREAM);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    raw_close(&w);
}
