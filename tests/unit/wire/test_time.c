/* tests/unit/wire/test_time.c — deadlines, keepalive, idle connections, and both ways to end. */
#include "pair.h"

#define SECOND UINT64_C(1000000000)

static seen *call_with_deadline(pair *r, const char *path, uint64_t timeout_ns)
{
    return pair_call_with(
        r, &(sl_call_request){ .path = sl_str_from(path), .deadline_ns = r->now_ns + timeout_ns });
}

TEST(wire_a_deadline_ends_the_call_on_both_sides)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    pair_run(&r);
    sl_connection_tick(r.client.connection, r.now_ns);
    s = call_with_deadline(&r, PATH_SILENT, 2 * SECOND);
    EXPECT_OK(pair_say(s, "x"));
    pair_run(&r);
    EXPECT(sl_call_deadline_ns(r.server.calls[0].call) == r.now_ns + 2 * SECOND);
    EXPECT(sl_connection_due_ns(r.client.connection) == r.now_ns + 2 * SECOND);
    EXPECT(sl_connection_due_ns(r.server.connection) == r.now_ns + 2 * SECOND);
    pair_wait(&r, 2 * SECOND - 1);
    EXPECT_EQ(s->ends, 0);
    pair_wait(&r, 1);
    EXPECT_STATUS(s, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_DEADLINE);
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    pair_close(&r);
}

TEST(wire_a_server_answers_when_only_its_clock_has_passed_the_deadline)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = call_with_deadline(&r, PATH_SILENT, SECOND);
    EXPECT_OK(pair_say(s, "x"));
    pair_run(&r);
    r.now_ns += SECOND;
    sl_connection_tick(r.server.connection, r.now_ns);
    pair_run(&r);
    EXPECT_STATUS(s, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_EQ(s->info.kind, SL_CALL_FINISHED); /* it was told so */
    pair_close(&r);
}

TEST(wire_a_deadline_does_not_wait_for_a_client_that_reads_nothing)
{
    pair r = { .many = 100000, .many_bytes = 1000 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = call_with_deadline(&r, PATH_MANY, SECOND);
    s->consumes = false;
    EXPECT_OK(pair_say(s, "go"));
    pair_run(&r);
    EXPECT(sl_connection_output_bytes(r.server.connection) > 0);
    r.now_ns += SECOND;
    sl_connection_tick(r.server.connection, r.now_ns);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_DEADLINE);
    pair_run(&r);
    EXPECT_EQ(s->info.kind, SL_CALL_PEER_CANCELLED); /* a status cannot overtake the messages before it */
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    EXPECT_EQ(sl_connection_output_bytes(r.server.connection), 0);
    pair_close(&r);
}

TEST(wire_a_silent_peer_is_pinged_and_then_given_up)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_SILENT);
    pair_run(&r);
    for (int i = 0; i < 5; i++) /* pings are answered, so it lives for ever */
        pair_wait(&r, 10 * SECOND);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_NONE);
    r.now_ns += 10 * SECOND;
    sl_connection_tick(r.server.connection, r.now_ns);
    EXPECT(sl_connection_has_output(r.server.connection));
    EXPECT(sl_connection_due_ns(r.server.connection) == r.now_ns + 10 * SECOND);
    r.now_ns += 10 * SECOND; /* and nothing is moved */
    sl_connection_tick(r.server.connection, r.now_ns);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_KEEPALIVE_TIMEOUT);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_CONNECTION_LOST);
    pair_run(&r);
    EXPECT_EQ(r.client.goaways, 1);
    sl_connection_end(r.client.connection); /* as when the socket is closed */
    EXPECT_STATUS(s, SL_STATUS_UNAVAILABLE);
    pair_close(&r);
}

TEST(wire_a_connection_without_calls_is_closed_after_a_while)
{
    sl_wire_limits limits = sl_wire_limits_default;
    pair r = { 0 };
    seen *s;

    limits.idle_timeout_ns = 60 * SECOND;
    EXPECT(pair_open(&r, &limits, NULL));
    s = pair_call(&r, PATH_ECHO);
    pair_run(&r);
    for (int i = 0; i < 20; i++)
        pair_wait(&r, 5 * SECOND); /* a call is open: not idle */
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_NONE);
    pair_end(&r, s);
    for (int i = 0; i < 11; i++)
        pair_wait(&r, 5 * SECOND);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_NONE);
    pair_wait(&r, 5 * SECOND);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_IDLE);
    EXPECT(pair_server_finishes(&r));
    EXPECT_EQ(r.client.goaways, 1);
    EXPECT(sl_connection_finished(r.client.connection));
    pair_close(&r);
}

TEST(wire_a_peer_that_takes_nothing_loses_its_call)
{
    pair r = { .many = 100000, .many_bytes = 1000 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    s->consumes = false;
    EXPECT_OK(pair_say(s, "go"));
    pair_run(&r);
    for (int i = 0; i < 359; i++)
        pair_wait(&r, 5 * SECOND);
    EXPECT_EQ(r.server.calls[0].ends, 0);
    for (int i = 0; i < 2; i++)
        pair_wait(&r, 5 * SECOND);
    EXPECT_EQ(r.server.calls[0].ends, 1);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_STALLED);
    EXPECT_EQ(sl_connection_output_bytes(r.server.connection), 0);
    EXPECT_EQ(s->info.kind, SL_CALL_PEER_CANCELLED);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_NONE);
    pair_close(&r);
}

TEST(wire_a_slow_reader_that_takes_something_is_not_stalled)
{
    pair r = { .many = 100000, .many_bytes = 1000 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    s->consumes = false;
    EXPECT_OK(pair_say(s, "go"));
    pair_run(&r);
    for (int i = 0; i < 800; i++) {
        pair_wait(&r, 5 * SECOND);
        if (i % 100 == 0) {
            sl_call_consume(s->call, s->window_bytes);
            s->window_bytes = 0;
            pair_run(&r);
        }
    }
    EXPECT_EQ(s->ends, 0);
    pair_close(&r);
}

TEST(wire_a_graceful_end_lets_calls_finish_and_takes_no_new_ones)
{
    pair r = { 0 };
    seen *s;
    sl_call *call;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    EXPECT_OK(pair_say(s, "before"));
    pair_run(&r);
    sl_connection_shutdown(r.server.connection);
    sl_connection_shutdown(r.server.connection);
    pair_run(&r);
    EXPECT_EQ(r.client.goaways, 1);
    EXPECT_ERR(sl_call_start(r.client.connection, &(sl_call_request){ .path = SL_STR_INIT("/x") }, &call),
               SL_ERR_DRAINING);
    EXPECT(!sl_connection_finished(r.server.connection));
    EXPECT_OK(pair_say(s, "after"));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_EQ(s->messages, 2);
    EXPECT(pair_server_finishes(&r));
    EXPECT(sl_connection_finished(r.client.connection));
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_SHUTDOWN);
    pair_close(&r);
}

TEST(wire_a_call_on_its_way_during_a_graceful_end_is_still_taken)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    pair_run(&r);
    sl_connection_shutdown(r.server.connection);
    s = pair_call(&r, PATH_ECHO); /* the client has not heard of it yet */
    EXPECT_OK(pair_say(s, "crossing"));
    sl_call_half_close(s->call);
    pair_move(&r, &r.client, &r.server);
    pair_run(&r);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT(pair_server_finishes(&r));
    pair_close(&r);
}

TEST(wire_a_graceful_end_does_not_wait_for_a_peer_that_answers_no_ping)
{
    pair r = { 0 };

    EXPECT(pair_open(&r, NULL, NULL));
    pair_run(&r);
    sl_connection_shutdown(r.server.connection);
    EXPECT(sl_connection_due_ns(r.server.connection) == r.now_ns + SECOND);
    while (pair_move(&r, &r.server, &r.client) > 0)
        ;
    EXPECT(!sl_connection_finished(r.server.connection));
    r.now_ns += SECOND;
    sl_connection_tick(r.server.connection, r.now_ns);
    while (pair_move(&r, &r.server, &r.client) > 0)
        ;
    EXPECT(pair_server_finishes(&r));
    pair_close(&r);
}

TEST(wire_a_client_can_leave_gracefully_too)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    EXPECT_OK(pair_say(s, "x"));
    pair_run(&r);
    sl_connection_shutdown(r.client.connection);
    pair_run(&r);
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT(sl_connection_finished(r.client.connection));
    pair_close(&r);
}

/* A consumer that was sent a lot and works on it for long. */
TEST(wire_memory_for_what_was_sent_goes_after_a_second_of_silence)
{
    pair r = { .many = 200, .many_bytes = 1000 };
    size_t in_hand;
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    EXPECT_OK(pair_say(s, "go"));
    pair_run(&r);
    EXPECT_EQ(s->messages, 200);
    in_hand = r.server.memory.byte_count;
    EXPECT(sl_connection_due_ns(r.server.connection) <= r.now_ns + SECOND);
    pair_wait(&r, SECOND - 1);
    EXPECT_EQ(r.server.memory.byte_count, in_hand);
    pair_wait(&r, 1);
    EXPECT(r.server.memory.byte_count + 64 * 1024 < in_hand);
    EXPECT(sl_connection_due_ns(r.server.connection) > r.now_ns + SECOND);
    pair_close(&r);
}
