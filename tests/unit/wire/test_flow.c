/* tests/unit/wire/test_flow.c — back-pressure: what waits is bounded on both sides, and everything still arrives. */
#include "pair.h"

#include "base/cleanup.h"

static const size_t sizes[] = {
    0, 1, 16383, 16384, 65535, 65536, 524288, 1048576, 1048577, 4 << 20, 17 << 20
};

TEST(wire_a_message_larger_than_every_window_flows_both_ways)
{
    static uint8_t data[17 << 20];

    for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
        pair r = { 0 };
        seen *s;

        pair_fill(data, sizes[i], 3);
        EXPECT(pair_open(&r, NULL, NULL));
        s = pair_call(&r, PATH_ECHO);
        EXPECT_OK(pair_send(s, data, sizes[i]));
        pair_end(&r, s);
        EXPECT_ROW(s->ends == 1 && s->info.status == SL_STATUS_OK, i);
        EXPECT_ROW(s->bytes == sizes[i] && s->hash == pair_hash(0, data, sizes[i]), i);
        pair_close(&r);
    }
}

TEST(wire_many_large_messages_at_once_do_not_block_each_other)
{
    static uint8_t data[900000];
    pair r = { 0 };
    seen *s[40];

    pair_fill(data, sizeof data, 1);
    EXPECT(pair_open(&r, NULL, NULL));
    for (unsigned i = 0; i < 40; i++) {
        s[i] = pair_call(&r, PATH_COUNT);
        while (pair_send(s[i], data, sizeof data) != SL_OK)
            pair_run(&r);
    }
    for (unsigned i = 0; i < 40; i++)
        pair_end(&r, s[i]);
    for (unsigned i = 0; i < 40; i++)
        EXPECT_STATUS(s[i], SL_STATUS_OK);
    pair_close(&r);
}

TEST(wire_an_application_that_consumes_nothing_gets_no_more_than_the_window)
{
    static uint8_t data[10000];
    pair r = { 0 };
    seen *s, *at_server = &r.server.calls[0];

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_SILENT);
    for (unsigned i = 0; i < 1000; i++) {
        pair_send(s, data, sizeof data);
        pair_run(&r);
    }
    EXPECT(at_server->bytes <= sl_wire_limits_default.stream_window_bytes);
    EXPECT(at_server->bytes >= sl_wire_limits_default.stream_window_bytes / 2);
    EXPECT(sl_call_output_bytes(s->call) >= sl_wire_limits_default.call_output_bytes_max);
    EXPECT_EQ(sl_call_room(s->call), 0);
    EXPECT_ERR(pair_send(s, data, 1), SL_ERR_FULL);
    EXPECT(r.client.memory.byte_count < 2 << 20);
    /* When it consumes, everything goes on. */
    sl_call_consume(at_server->call, at_server->window_bytes);
    at_server->window_bytes = 0;
    pair_run(&r);
    EXPECT(s->rooms > 0);
    EXPECT(sl_call_room(s->call) > 0);
    pair_close(&r);
}

TEST(wire_one_slow_call_does_not_slow_the_others)
{
    pair r = { .many = 100000, .many_bytes = 100 };
    seen *slow, *fast;

    EXPECT(pair_open(&r, NULL, NULL));
    slow = pair_call(&r, PATH_MANY);
    slow->consumes = false;
    EXPECT_OK(pair_say(slow, "go"));
    pair_run(&r);
    EXPECT(slow->bytes <= sl_wire_limits_default.stream_window_bytes);
    fast = pair_call(&r, PATH_MANY);
    EXPECT_OK(pair_say(fast, "go"));
    pair_run(&r);
    EXPECT_STATUS(fast, SL_STATUS_OK);
    EXPECT_EQ(fast->messages, 100000);
    EXPECT_EQ(slow->ends, 0);
    pair_close(&r);
}

TEST(wire_all_calls_together_are_bounded_by_the_connection)
{
    sl_wire_limits limits = sl_wire_limits_default;
    pair r = { .many = 1000, .many_bytes = 1000 };
    seen *s[10];

    limits.output_bytes_max = 100000;
    limits.call_output_bytes_max = 50000;
    EXPECT(pair_open(&r, &limits, NULL));
    for (unsigned i = 0; i < 10; i++) {
        s[i] = pair_call(&r, PATH_MANY);
        EXPECT_OK(pair_say(s[i], "go"));
    }
    pair_move(&r, &r.client, &r.server);
    EXPECT(sl_connection_output_bytes(r.server.connection) >= 100000);
    EXPECT(sl_connection_output_bytes(r.server.connection) <= 100000 + 1005);
    pair_run(&r);
    for (unsigned i = 0; i < 10; i++)
        EXPECT_STATUS(s[i], SL_STATUS_OK);
    EXPECT_EQ(sl_connection_output_bytes(r.server.connection), 0);
    pair_close(&r);
}

TEST(wire_a_paused_call_keeps_its_messages_for_later)
{
    pair r = { 0 };
    seen *s, *at_server = &r.server.calls[0];
    uint8_t data[1000];
    uint64_t sent = 0;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_PAUSED);
    for (unsigned i = 0; i < 100; i++) {
        pair_fill(data, sizeof data, i);
        sent = pair_hash(sent, data, sizeof data);
        EXPECT_OK(pair_send(s, data, sizeof data));
    }
    sl_call_half_close(s->call);
    pair_run(&r);
    EXPECT_EQ(at_server->messages, 0);
    EXPECT_EQ(at_server->half_closes, 0);
    sl_call_resume(at_server->call);
    EXPECT_EQ(at_server->messages, 100);
    EXPECT(at_server->hash == sent);
    EXPECT_EQ(at_server->half_closes, 1);
    pair_run(&r);
    EXPECT_STATUS(s, SL_STATUS_OK);
    pair_close(&r);
}

TEST(wire_a_paused_call_is_bounded_and_a_cut_message_goes_on_after_it)
{
    static uint8_t data[3 << 20];
    pair r = { .read_bytes = 1000 };
    seen *s, *at_server = &r.server.calls[0];

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_PAUSED);
    pair_fill(data, sizeof data, 9);
    EXPECT_OK(pair_say(s, "small"));
    EXPECT_OK(pair_send(s, data, sizeof data));
    pair_run(&r);
    EXPECT(r.server.memory.byte_count < 3 << 20); /* not all of it came */
    sl_call_resume(at_server->call);
    EXPECT_EQ(at_server->messages, 1);
    pair_run(&r);
    EXPECT_EQ(at_server->messages, 2);
    EXPECT(at_server->hash == pair_hash(pair_hash(0, "small", 5), data, sizeof data));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    pair_close(&r);
}

TEST(wire_a_client_that_paused_gets_its_messages_before_the_end)
{
    pair r = { .many = 50, .many_bytes = 100 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    sl_call_pause(s->call);
    EXPECT_OK(pair_say(s, "go"));
    pair_end(&r, s);
    EXPECT_EQ(s->ends, 0);
    EXPECT_EQ(s->messages, 0);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    sl_call_resume(s->call);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_EQ(s->messages, 50);
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    pair_close(&r);
}

TEST(wire_a_paused_call_of_a_client_can_be_cancelled_or_run_out)
{
    for (int cancel = 0; cancel < 2; cancel++) {
        pair r = { .many = 5, .many_bytes = 100 };
        seen *s;

        EXPECT(pair_open(&r, NULL, NULL));
        s = pair_call_with(&r,
                           &(sl_call_request){ .path = SL_STR_INIT(PATH_MANY), .deadline_ns = 3000000000 });
        sl_call_pause(s->call);
        EXPECT_OK(pair_say(s, "go"));
        pair_end(&r, s);
        if (cancel)
            sl_call_cancel(s->call);
        else
            pair_wait(&r, 3000000000);
        EXPECT_EQ(s->info.kind, cancel ? SL_CALL_CANCELLED : SL_CALL_DEADLINE);
        EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
        pair_close(&r);
    }
}

TEST(wire_a_message_beyond_the_limit_ends_the_call_and_only_that)
{
    static const struct {
        size_t bytes;
        sl_status status;
    } rows[] = { { 999, SL_STATUS_OK }, { 1000, SL_STATUS_OK }, { 1001, SL_STATUS_RESOURCE_EXHAUSTED } };
    sl_wire_limits limits = sl_wire_limits_default;
    uint8_t data[2000] = { 0 };
    pair r = { 0 };
    seen *other;

    limits.message_bytes_max = 1000;
    EXPECT(pair_open(&r, &limits, NULL));
    other = pair_call(&r, PATH_ECHO);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        seen *s = pair_call(&r, PATH_COUNT);
        EXPECT_OK(pair_send(s, data, rows[i].bytes));
        pair_run(&r);
        if (s->ends == 0)
            pair_end(&r, s);
        EXPECT_ROW(s->ends == 1 && s->info.status == rows[i].status, i);
    }
    EXPECT_STR(r.client.calls[3].message, "a message of 1001 bytes is larger than the limit of 1000");
    EXPECT_EQ(r.server.calls[3].info.kind, SL_CALL_REFUSED);
    EXPECT_OK(pair_say(other, "still here"));
    pair_end(&r, other);
    EXPECT_STATUS(other, SL_STATUS_OK);
    pair_close(&r);
}

TEST(wire_unfinished_messages_are_bounded_for_the_connection)
{
    static uint8_t data[300000];
    sl_wire_limits limits = sl_wire_limits_default;
    pair r = { 0 };
    unsigned refused = 0;

    limits.unfinished_bytes_max = 1000000;
    EXPECT(pair_open(&r, &limits, NULL));
    for (unsigned i = 0; i < 20; i++)
        EXPECT_OK(pair_send(pair_call(&r, PATH_COUNT), data, sizeof data));
    pair_run(&r);
    for (unsigned i = 0; i < 20; i++)
        refused +=
            r.client.calls[i].ends == 1 && r.client.calls[i].info.status == SL_STATUS_RESOURCE_EXHAUSTED;
    EXPECT(refused > 0);
    EXPECT(refused < 20);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_NONE);
    pair_close(&r);
}

TEST(wire_a_sent_message_beyond_the_limit_is_refused_here)
{
    sl_wire_limits limits = sl_wire_limits_default;
    uint8_t data[101] = { 0 };
    pair r = { 0 };
    seen *s;

    limits.sent_message_bytes_max = 100;
    EXPECT(pair_open(&r, NULL, &limits));
    s = pair_call(&r, PATH_ECHO);
    EXPECT_ERR(pair_send(s, data, 101), SL_ERR_TOO_LARGE);
    EXPECT_OK(pair_send(s, data, 100));
    pair_end(&r, s);
    EXPECT_EQ(s->bytes, 100);
    pair_close(&r);
}

TEST(wire_streaming_takes_no_memory_for_each_message)
{
    pair r = { .many = 1000, .many_bytes = 300 };
    size_t before;
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    for (unsigned i = 0; i < 2000; i++) {
        EXPECT_OK(pair_say(s, "warm up, then count"));
        if (i % 100 == 0)
            pair_run(&r);
    }
    pair_run(&r);
    before = r.server.memory.call_count;
    for (unsigned i = 0; i < 10000; i++) {
        EXPECT_OK(pair_say(s, "the hot path"));
        if (i % 100 == 0)
            pair_run(&r);
    }
    pair_run(&r);
    EXPECT_EQ(s->messages, 12000);
    EXPECT(r.server.memory.call_count - before < 50); /* frames of nghttp2, a few for each turn at most */
    pair_close(&r);
}
