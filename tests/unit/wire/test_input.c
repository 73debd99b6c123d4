/* tests/unit/wire/test_input.c — input that is not complete: how much of it a server keeps, and for how long. */
#include "raw.h"

#define SECOND UINT64_C(1000000000)

enum {
    FRAME_BYTES = 16 * 1024,
    WINDOW_BYTES = 65535, /* that every connection begins with */
};

/* The next bytes of a message; it begins with its prefix when `announced` is not 0. */
static void say(raw *w, uint32_t stream_id, uint32_t announced, size_t bytes)
{
    static uint8_t frame[FRAME_BYTES];
    const uint8_t prefix[] = { 0, (uint8_t)(announced >> 24), (uint8_t)(announced >> 16),
                               (uint8_t)(announced >> 8), (uint8_t)announced };

    if (announced > 0)
        raw_frame(w, NGHTTP2_DATA, 0, stream_id, prefix, sizeof prefix);
    for (size_t at = 0; at < bytes; at += FRAME_BYTES)
        raw_frame(w, NGHTTP2_DATA, 0, stream_id, frame,
                  bytes - at < FRAME_BYTES ? bytes - at : (size_t)FRAME_BYTES);
    raw_go(w);
}

static void begin(raw *w, uint32_t stream_id, uint32_t announced, size_t bytes)
{
    raw_request(w, stream_id, 0, "");
    say(w, stream_id, announced, bytes);
}

static void let_pass(raw *w, uint64_t ns)
{
    w->now_ns += ns;
    sl_connection_tick(w->server, w->now_ns);
    raw_go(w);
}

/* The peer knows our settings: it may use the windows that they give. */
static void open_known(raw *w, const sl_wire_limits *limits)
{
    raw_open(w, limits, true);
    raw_frame(w, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    raw_go(w);
}

static void open_silent(raw *w)
{
    sl_wire_limits limits = sl_wire_limits_default;

    limits.keepalive_interval_ns = 0;
    limits.window_bytes = WINDOW_BYTES;
    open_known(w, &limits);
}

TEST(wire_connections_share_a_budget_for_messages_that_are_not_complete)
{
    sl_wire_budget budget = { .bytes_max = 200000 };
    raw a = { .input = &budget }, b = { .input = &budget };

    open_known(&a, NULL);
    open_known(&b, NULL);
    begin(&a, 1, 250000, 200000);
    EXPECT_EQ(budget.bytes, 200005 - SL_INPUT_FREE_BYTES);
    begin(&b, 1, 250000, 200000);
    EXPECT(strstr(b.headers, "grpc-status: 8\n") != NULL);
    EXPECT_EQ(a.ends, 0);
    EXPECT_EQ(budget.bytes, 200005 - SL_INPUT_FREE_BYTES);
    begin(&b, 3, 1000, 10); /* little is always taken */
    say(&b, 3, 0, 990);
    EXPECT_EQ(b.messages, 1);
    say(&a, 1, 0, 50000);
    EXPECT_EQ(a.messages, 1);
    EXPECT_EQ(budget.bytes, 0);
    begin(&b, 5, 250000, 250000);
    EXPECT_EQ(b.messages, 2);
    begin(&b, 7, 250000, 200000);
    EXPECT(budget.bytes > 0);
    raw_close(&a);
    raw_close(&b); /* in the middle of a message */
    EXPECT_EQ(budget.bytes, 0);
}

/* What comes for a paused call is the same memory. */
TEST(wire_the_budget_counts_what_waits_for_a_paused_call)
{
    sl_wire_budget budget = { .bytes_max = 100000 };
    raw w = { .input = &budget };

    open_known(&w, NULL);
    raw_request(&w, 1, 0, "");
    raw_go(&w);
    sl_call_pause(w.call);
    say(&w, 1, 100000, 100000);
    EXPECT_EQ(budget.bytes, 100005 - SL_INPUT_FREE_BYTES);
    sl_call_resume(w.call);
    EXPECT_EQ(w.messages, 1);
    EXPECT_EQ(budget.bytes, 0);
    sl_call_pause(w.call);
    say(&w, 1, 200000, 200000);
    EXPECT(strstr(w.headers, "grpc-status: 8\n") != NULL);
    EXPECT_EQ(budget.bytes, 0);
    raw_close(&w);
}

TEST(wire_a_message_that_was_begun_must_come_on)
{
    raw w = { 0 };

    open_silent(&w);
    begin(&w, 1, 1000, 10);
    let_pass(&w, 29 * SECOND);
    say(&w, 1, 0, 10);
    let_pass(&w, 29 * SECOND);
    EXPECT_EQ(w.ends, 0);
    let_pass(&w, 1 * SECOND);
    EXPECT_EQ(w.ends, 1);
    EXPECT_EQ(w.info.kind, SL_CALL_REFUSED);
    EXPECT(strstr(w.headers, "grpc-status: 4\n") != NULL);
    raw_close(&w);
}

TEST(wire_between_two_messages_a_call_may_be_silent)
{
    raw w = { 0 };

    open_silent(&w);
    begin(&w, 1, 1000, 10);
    say(&w, 1, 0, 990);
    EXPECT_EQ(w.messages, 1);
    let_pass(&w, 100 * SECOND);
    EXPECT_EQ(w.ends, 0);
    say(&w, 1, 1000, 10); /* the next one has its own time */
    let_pass(&w, 29 * SECOND);
    EXPECT_EQ(w.ends, 0);
    let_pass(&w, 1 * SECOND);
    EXPECT_EQ(w.ends, 1);
    raw_close(&w);
}

/* It is not the peer's fault when the application takes nothing of other calls and their bytes fill the window. */
TEST(wire_a_message_that_we_hold_up_ourselves_is_not_blamed_on_the_peer)
{
    raw w = { 0 };

    open_silent(&w);
    begin(&w, 1, 1000, 10);
    raw_request(&w, 3, 0, "");
    raw_go(&w);
    sl_call_pause(w.call);
    say(&w, 3, WINDOW_BYTES - 15 - 5, WINDOW_BYTES - 15 - 5);
    let_pass(&w, 40 * SECOND);
    let_pass(&w, 40 * SECOND);
    EXPECT_EQ(w.ends, 0);
    sl_call_resume(w.call);
    raw_go(&w);
    EXPECT_EQ(w.messages, 1);
    let_pass(&w, 30 * SECOND);
    EXPECT_EQ(w.ends, 1); /* now it could */
    raw_close(&w);
}
