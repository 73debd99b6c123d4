/* tests/unit/wire/test_half_open.c — a server's status comes before the end of the request: the client is left alone to read it.
 *
 * Clients on Rust's h2 lose a status that a reset follows at once, so the reset comes late or not at all; and nobody can use
 * that to make us keep more than the limits say. */
#include "pair.h"
#include "raw.h"

#include "base/cleanup.h"

#define SECOND UINT64_C(1000000000)

static void tick(raw *w, uint64_t ns)
{
    w->now_ns += ns;
    sl_connection_tick(w->server, w->now_ns);
    raw_go(w);
}

/* The peer has heard how large the windows are. */
static void open_acknowledged(raw *w, const sl_wire_limits *limits)
{
    raw_open(w, limits, true);
    raw_frame(w, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    raw_go(w);
}

static void answer(raw *w)
{
    sl_call_finish(w->call, SL_STATUS_NOT_FOUND, SL_STR("no such thing"), NULL, 0);
    raw_go(w);
}

/* A call that has its status, of a client that has not ended its side. */
static void begin_half_open(raw *w, uint32_t stream_id)
{
    raw_request(w, stream_id, 0, "");
    raw_go(w);
    EXPECT(w->call != NULL);
    answer(w);
}

static void end_side(raw *w, uint32_t stream_id)
{
    raw_frame(w, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream_id, NULL, 0);
    raw_go(w);
}

/* DATA frames of as many bytes together. */
static void say_bytes(raw *w, uint32_t stream_id, size_t bytes)
{
    static const uint8_t data[16384];

    for (size_t left = bytes, step; left > 0; left -= step) {
        step = left < sizeof data ? left : sizeof data;
        raw_frame(w, NGHTTP2_DATA, 0, stream_id, data, step);
    }
    raw_go(w);
}

TEST(wire_a_status_before_the_end_of_the_request_is_not_followed_by_a_reset)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.calls_max = 2;
    open_acknowledged(&w, &limits);
    begin_half_open(&w, 1);
    EXPECT(strstr(w.headers, "grpc-status: 5\n") != NULL);
    EXPECT_EQ(w.ends, 1); /* the application does not wait */
    EXPECT_EQ(w.info.kind, SL_CALL_FINISHED);
    EXPECT_EQ(sl_connection_call_count(w.server), 0);
    raw_message(&w, 1, 0, 0, "still talking", 13);
    raw_go(&w);
    EXPECT_EQ(w.messages, 0);
    end_side(&w, 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    begin_half_open(&w, 3); /* there is room for them: the first one has gone */
    raw_request(&w, 5, 0, "");
    raw_go(&w);
    EXPECT_EQ(w.calls, 3);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    raw_close(&w);
}

/* The server's own verdicts come as early as an application's. */
TEST(wire_every_early_status_can_be_read)
{
    static const struct {
        const char *rows, *answer;
        uint8_t compressed; /* 7: no such thing */
        uint64_t wait_ns;
    } table[] = {
        { ":method: GET\n", ":status: 405\n", 0, 0 },
        { "content-type: text/html\n", ":status: 415\n", 0, 0 },
        { "grpc-timeout: 1x\n", "grpc-status: 3\n", 0, 0 },
        { "grpc-encoding: snappy\n", "grpc-status: 12\n", 0, 0 },
        { "te: trailers\n", "grpc-status: 13\n", 7, 0 },
        { "grpc-timeout: 2S\n", "grpc-status: 4\n", 0, 2 * SECOND },
    };

    for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
        raw w = { 0 };

        open_acknowledged(&w, NULL);
        raw_request(&w, 1, 0, table[i].rows);
        raw_message(&w, 1, 0, table[i].compressed, "x", 1);
        raw_go(&w);
        tick(&w, table[i].wait_ns);
        EXPECT_ROW(strstr(w.headers, table[i].answer) != NULL, i);
        EXPECT_ROW(w.frames[NGHTTP2_RST_STREAM] == 0, i);
        EXPECT_ROW(sl_connection_call_count(w.server) == 0, i);
        EXPECT_ROW(w.ends == w.calls, i);
        end_side(&w, 1);
        EXPECT_ROW(w.frames[NGHTTP2_RST_STREAM] == 0, i);
        raw_close(&w);
    }
}

TEST(wire_a_half_open_call_is_reset_without_blame_after_a_while)
{
    raw w = { 0 };

    open_acknowledged(&w, NULL);
    begin_half_open(&w, 1);
    EXPECT(sl_connection_due_ns(w.server) == w.now_ns + 5 * SECOND);
    tick(&w, 5 * SECOND - 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    tick(&w, 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
    EXPECT_EQ(w.reset_error, NGHTTP2_NO_ERROR);
    EXPECT_EQ(w.ends, 1);
    EXPECT_EQ(sl_connection_call_count(w.server), 0);
    say_bytes(&w, 1, 100); /* on its way before the peer knew */
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    raw_close(&w);
}

TEST(wire_what_a_half_open_call_still_says_opens_the_window_of_the_connection_and_not_its_own)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };
    size_t opened;

    limits.stream_window_bytes = 200000;
    limits.window_bytes = 100000;
    open_acknowledged(&w, &limits);
    begin_half_open(&w, 1);
    opened = w.window_bytes;
    say_bytes(&w, 1, 90000);
    say_bytes(&w, 1, 90000);
    EXPECT(w.window_bytes - opened >= 90000); /* nghttp2 says it when half of it is used */
    EXPECT_EQ(w.stream_window_opens, 0);
    EXPECT_EQ(w.messages, 0);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    EXPECT(w.memory.byte_count < 100000); /* nothing of it is kept */
    raw_close(&w);
}

/* A call that was refused in the middle of its message gets no window either, and what was held of it is given back. */
TEST(wire_a_call_that_is_refused_gets_no_more_window)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { .message_bytes_max = 1000 };
    size_t opened;

    limits.stream_window_bytes = 200000;
    limits.window_bytes = 100000;
    open_acknowledged(&w, &limits);
    raw_request(&w, 1, 0, "");
    raw_frame(&w, NGHTTP2_DATA, 0, 1, "\0\0\0\x10\0", 5); /* 4,096 bytes shall follow */
    raw_go(&w);
    EXPECT(strstr(w.headers, "grpc-status: 8\n") != NULL);
    opened = w.window_bytes;
    say_bytes(&w, 1, 90000);
    EXPECT(w.window_bytes - opened >= 50000);
    EXPECT_EQ(w.stream_window_opens, 0);
    raw_close(&w);
}

TEST(wire_who_has_used_up_his_window_is_reset_sooner_but_not_at_once)
{
    for (int before_the_status = 0; before_the_status < 2; before_the_status++) {
        sl_wire_limits limits = sl_wire_limits_default;
        raw w = { 0 };

        limits.stream_window_bytes = 100000;
        open_acknowledged(&w, &limits);
        raw_request(&w, 1, 0, "");
        raw_go(&w);
        if (before_the_status) {
            sl_call_pause(w.call);
            say_bytes(&w, 1, 100000);
            answer(&w);
        } else {
            answer(&w);
            say_bytes(&w, 1, 99999);
            EXPECT(sl_connection_due_ns(w.server) == w.now_ns + 5 * SECOND);
            say_bytes(&w, 1, 1);
        }
        EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
        EXPECT(sl_connection_due_ns(w.server) == w.now_ns + 1 * SECOND);
        tick(&w, SECOND - 1);
        EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
        tick(&w, 1);
        EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
        EXPECT_EQ(w.reset_error, NGHTTP2_NO_ERROR);
        raw_close(&w);
    }
}

TEST(wire_a_used_up_window_does_not_make_the_time_longer)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.stream_window_bytes = 100000;
    open_acknowledged(&w, &limits);
    begin_half_open(&w, 1);
    tick(&w, 9 * SECOND / 2);
    say_bytes(&w, 1, 100000);
    tick(&w, SECOND / 2 - 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    tick(&w, 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
    raw_close(&w);
}

TEST(wire_of_too_many_half_open_calls_the_oldest_is_reset)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.half_open_calls_max = 3;
    open_acknowledged(&w, &limits);
    for (uint32_t i = 0; i < 3; i++)
        begin_half_open(&w, 1 + 2 * i);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    end_side(&w, 3); /* one of them leaves, so there is a place */
    begin_half_open(&w, 7);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    begin_half_open(&w, 9);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
    EXPECT_EQ(w.reset_stream_id, 1);
    EXPECT_EQ(w.reset_error, NGHTTP2_NO_ERROR);
    begin_half_open(&w, 11);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 2);
    EXPECT_EQ(w.reset_stream_id, 5);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    raw_close(&w);
}

/* All of them get their status before a single reset has left: the resets wait behind in the same output. */
TEST(wire_too_many_half_open_calls_at_once_are_reset_down_to_the_limit)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.half_open_calls_max = 3;
    open_acknowledged(&w, &limits);
    for (uint32_t i = 0; i < 20; i++)
        raw_request(&w, 1 + 2 * i, 0, "content-type: text/html\n");
    raw_go(&w);
    EXPECT_EQ(w.frames[NGHTTP2_HEADERS], 20);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 17);
    EXPECT_EQ(w.reset_stream_id, 1 + 2 * 16);
    tick(&w, 5 * SECOND);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 20);
    raw_close(&w);
}

TEST(wire_a_limit_of_no_half_open_calls_resets_at_once)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.half_open_calls_max = 0;
    open_acknowledged(&w, &limits);
    begin_half_open(&w, 1);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
    EXPECT_EQ(w.reset_error, NGHTTP2_NO_ERROR);
    raw_close(&w);
}

TEST(wire_half_open_calls_take_places_of_open_ones)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.calls_max = 5;
    raw_open(&w, &limits, true);
    for (uint32_t i = 0; i < 5; i++)
        raw_request(&w, 1 + 2 * i, 0, i < 2 ? "content-type: text/html\n" : "");
    raw_request(&w, 11, 0, ""); /* two have their status, three are open */
    raw_go(&w);
    EXPECT_EQ(w.calls, 3);
    EXPECT_EQ(w.reset_stream_id, 11);
    EXPECT_EQ(w.reset_error, NGHTTP2_REFUSED_STREAM);
    end_side(&w, 3);
    raw_request(&w, 13, 0, "");
    raw_go(&w);
    EXPECT_EQ(w.calls, 4);
    tick(&w, 5 * SECOND);
    EXPECT_EQ(w.reset_stream_id, 1);
    EXPECT_EQ(sl_connection_call_count(w.server), 4);
    raw_close(&w);
}

TEST(wire_half_open_calls_take_no_more_than_half_of_the_places)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.calls_max = 4;
    open_acknowledged(&w, &limits);
    for (uint32_t i = 0; i < 50; i++) /* of a client that never ends its side */
        begin_half_open(&w, 1 + 2 * i);
    EXPECT_EQ(w.calls, 50);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 48);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    raw_close(&w);
}

/* Whoever has the status and resets the call has said goodbye. Whoever does it before is counted, as ever. */
TEST(wire_a_client_may_reset_as_many_answered_calls_as_it_likes_and_only_those)
{
    sl_wire_limits limits = sl_wire_limits_default;
    raw w = { 0 };

    limits.resets = (sl_rate){ 5, 1 };
    open_acknowledged(&w, &limits);
    for (uint32_t i = 0; i < 50; i++) {
        begin_half_open(&w, 1 + 2 * i);
        raw_frame(&w, NGHTTP2_RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x8", 4);
        raw_go(&w);
    }
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 0);
    for (uint32_t i = 50; i < 56; i++) {
        raw_request(&w, 1 + 2 * i, 0, "");
        raw_frame(&w, NGHTTP2_RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x8", 4);
        raw_go(&w);
    }
    EXPECT_END(&w, SL_END_RESET_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
    raw_close(&w);
}

TEST(wire_a_graceful_end_waits_for_a_half_open_call_no_longer_than_it_may_last)
{
    raw w = { 0 };

    open_acknowledged(&w, NULL);
    begin_half_open(&w, 1);
    sl_connection_shutdown(w.server);
    tick(&w, 1 * SECOND); /* no answer to the ping: the second GOAWAY */
    EXPECT_EQ(w.frames[NGHTTP2_GOAWAY], 2);
    EXPECT_EQ(sl_connection_call_count(w.server), 0);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_NONE);
    tick(&w, 4 * SECOND);
    EXPECT_EQ(w.frames[NGHTTP2_RST_STREAM], 1);
    EXPECT_EQ(sl_connection_end_reason(w.server), SL_END_SHUTDOWN);
    EXPECT(raw_finishes(&w));
    raw_close(&w);
}

TEST(wire_a_connection_may_end_with_half_open_calls)
{
    raw w = { 0 };

    open_acknowledged(&w, NULL);
    for (uint32_t i = 0; i < 10; i++)
        begin_half_open(&w, 1 + 2 * i);
    sl_connection_end(w.server);
    EXPECT(sl_connection_finished(w.server));
    EXPECT_EQ(w.ends, 10);
    raw_close(&w); /* sees that nothing is left */
}

/* Random ways of a half-open call, against the limits: what is open is never more than calls_max, and all is gone in the end. */
TEST(wire_random_half_open_calls_stay_within_their_limits)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        dice d = dice_from(seed);
        sl_wire_limits limits = sl_wire_limits_default;
        raw w = { 0 };
        uint32_t next_id = 1;

        limits.calls_max = 8;
        limits.half_open_calls_max = 5;
        limits.stream_window_bytes = 70000;
        limits.resets = (sl_rate){ 1000000, 1000000 };
        limits.keepalive_interval_ns = limits.idle_timeout_ns = 0;
        raw_open(&w, &limits, true); /* more calls than allowed are refused and no error before its ACK */
        for (unsigned step = 0; step < 300; step++) {
            const uint32_t id = 1 + 2 * (uint32_t)dice_pick(&d, next_id / 2 + 1);
            const bool is_known = id < next_id;

            switch (dice_pick(&d, 6)) {
            case 0:
            case 1:
                raw_request(&w, next_id, 0, dice_pick(&d, 2) == 0 ? "" : "content-type: text/html\n");
                next_id += 2;
                break;
            case 2:
                if (is_known)
                    raw_frame(&w, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x8", 4);
                break;
            case 3:
                if (w.call != NULL && dice_pick(&d, 2) == 0)
                    sl_call_finish(w.call, SL_STATUS_OK, SL_STR(""), NULL, 0);
                w.call = NULL;
                break;
            case 4: tick(&w, dice_pick(&d, 3) * SECOND / 2); break;
            default: break;
            }
            raw_go(&w);
            EXPECT_RUN(sl_connection_call_count(w.server) <= 8, seed, step);
            EXPECT_RUN(sl_connection_end_reason(w.server) == SL_END_NONE, seed, step);
        }
        tick(&w, 5 * SECOND);
        EXPECT_RUN(sl_connection_due_ns(w.server) == UINT64_MAX, seed, 300); /* nothing waits for a time */
        raw_close(&w);
    }
}

/* Between two engines: the client has its status, ends its side, and nobody is left with anything. */
TEST(wire_a_client_of_ours_ends_its_side_when_it_has_the_status)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    for (int i = 0; i < 50; i++) {
        s = pair_call(&r, PATH_FAIL);
        EXPECT_OK(pair_say(s, "still talking"));
        pair_run(&r);
        EXPECT_STATUS(s, SL_STATUS_NOT_FOUND);
        EXPECT_EQ(s->info.kind, SL_CALL_FINISHED);
    }
    EXPECT(sl_connection_due_ns(r.server.connection) > r.now_ns + 5 * SECOND); /* only keepalive */
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    pair_close(&r);
}
