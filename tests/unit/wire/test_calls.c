/* tests/unit/wire/test_calls.c — calls of every kind between two engines. */
#include "pair.h"

TEST(wire_a_unary_call_brings_its_answer_and_its_status)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    EXPECT_OK(pair_say(s, "hello"));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_EQ(s->info.kind, SL_CALL_FINISHED);
    EXPECT_EQ(s->headers, 1);
    EXPECT_EQ(s->messages, 1);
    EXPECT_STR(s->last, "hello");
    EXPECT_STATUS(&r.server.calls[0], SL_STATUS_OK);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_FINISHED);
    EXPECT_EQ(r.server.calls[0].half_closes, 1);
    EXPECT_EQ(r.server.counters.calls_ended[SL_CALL_FINISHED], 1);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    pair_close(&r);
}

TEST(wire_a_client_streams_and_gets_one_answer)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_COUNT);
    for (int i = 0; i < 1000; i++)
        EXPECT_OK(pair_say(s, "some text of a message"));
    EXPECT_OK(pair_send(s, NULL, 0));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_STR(s->last, "1001 messages");
    pair_close(&r);
}

TEST(wire_a_server_streams_at_the_pace_of_the_client)
{
    pair r = { .many = 20000, .many_bytes = 300 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    EXPECT_OK(pair_say(s, "go"));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_EQ(s->messages, 20000);
    EXPECT_EQ(s->bytes, 20000 * 300);
    EXPECT(r.server.calls[0].rooms > 2); /* 6 MB do not fit at once into 256 KiB */
    pair_close(&r);
}

TEST(wire_both_sides_stream_and_messages_keep_their_order)
{
    pair r = { 0 };
    seen *s;
    uint64_t sent = 0;
    uint8_t data[5000];

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    for (unsigned i = 0; i < 500; i++) {
        pair_fill(data, i * 10, i);
        sent = pair_hash(sent, data, i * 10);
        EXPECT_OK(pair_send(s, data, i * 10));
        if (i % 50 == 0)
            pair_run(&r);
    }
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_EQ(s->messages, 500);
    EXPECT(s->hash == sent);
    pair_close(&r);
}

TEST(wire_bytes_may_be_cut_anywhere)
{
    for (size_t read_bytes = 1; read_bytes < 40; read_bytes++) {
        pair r = { .read_bytes = read_bytes };
        seen *s;

        EXPECT(pair_open(&r, NULL, NULL));
        s = pair_call(&r, PATH_ECHO);
        for (unsigned i = 0; i < 20; i++)
            EXPECT_OK(pair_say(s, "cut me into pieces"));
        pair_end(&r, s);
        EXPECT_STATUS(s, SL_STATUS_OK);
        EXPECT_EQ(s->messages, 20);
        EXPECT_EQ(s->bytes, 20 * 18);
        EXPECT_EQ(r.server.memory.block_count > 0, true);
        pair_close(&r);
    }
}

TEST(wire_a_call_that_fails_at_once_is_one_header_block)
{
    static const char wanted[] =
        "exception=stream-not-found;stream-name=gr%C3%BC%C3%9F e;detail-bin=\x00\xff\x01;";
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_FAIL);
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_NOT_FOUND);
    EXPECT_EQ(s->headers, 0); /* there was no block before the last one */
    EXPECT_STR(s->message, "100% g\xc3\xbcltig\n");
    /* Text that HTTP/2 does not allow arrives as %XX; bytes arrive as they are. */
    EXPECT_MEM(s->trailers, wanted, sizeof wanted);
    pair_close(&r);
}

TEST(wire_a_server_may_finish_before_the_client_does)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_FAIL);
    EXPECT_OK(pair_say(s, "still talking"));
    pair_run(&r);
    EXPECT_STATUS(s, SL_STATUS_NOT_FOUND);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0); /* the stream is not left half open */
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    pair_close(&r);
}

TEST(wire_metadata_goes_both_ways_and_bytes_survive)
{
    const sl_metadata rows[] = { { SL_STR_INIT("authorization"), SL_STR_INIT("Basic YTpi") },
                                 { SL_STR_INIT("a-bin"), SL_STR_INIT("\x01\x00\x02") },
                                 { SL_STR_INIT("b-bin"), SL_STR_INIT("") },
                                 { SL_STR_INIT("twice"), SL_STR_INIT("1") },
                                 { SL_STR_INIT("twice"), SL_STR_INIT("2") } };
    static const char wanted[] =
        "user-agent=grpc-c-sluice;authorization=Basic YTpi;a-bin=\x01\x00\x02;b-bin=;twice=1;twice=2;";
    pair r = { 0 };
    seen *s;
    sl_str value;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call_with(&r, &(sl_call_request){ .path = SL_STR_INIT(PATH_HEADER),
                                               .metadata = rows,
                                               .metadata_count = 5,
                                               .deadline_ns = UINT64_MAX });
    pair_run(&r);
    EXPECT_EQ(s->headers, 1);
    EXPECT(sl_metadata_list_find(sl_call_metadata(s->call), SL_STR("a-bin"), &value));
    EXPECT_EQ(value.bytes, 3);
    EXPECT_MEM(value.data, "\x01\x00\x02", 3);
    EXPECT(!sl_metadata_list_find(sl_call_metadata(s->call), SL_STR("content-type"), &value));
    pair_end(&r, s);
    EXPECT_STATUS(s, SL_STATUS_OK);
    EXPECT_MEM(s->trailers, wanted, sizeof wanted);
    pair_close(&r);
}

TEST(wire_a_client_that_cancels_is_seen_by_the_server)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_SILENT);
    EXPECT_OK(pair_say(s, "one"));
    pair_run(&r);
    sl_call_cancel(s->call);
    EXPECT_EQ(s->ends, 1);
    EXPECT_EQ(s->info.kind, SL_CALL_CANCELLED);
    pair_run(&r);
    EXPECT_STATUS(&r.server.calls[0], SL_STATUS_CANCELLED);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_PEER_CANCELLED);
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    pair_close(&r);
}

TEST(wire_a_call_cancelled_before_its_first_byte_leaves_nothing)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_ECHO);
    EXPECT_OK(pair_say(s, "one"));
    sl_call_cancel(s->call);
    pair_run(&r);
    EXPECT_EQ(s->ends, 1);
    EXPECT_EQ(sl_connection_call_count(r.client.connection), 0);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    EXPECT_EQ(sl_connection_output_bytes(r.client.connection), 0);
    pair_close(&r);
}

TEST(wire_a_call_may_be_cancelled_from_within_its_message)
{
    pair r = { .many = 10, .many_bytes = 100, .read_bytes = 50 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_MANY);
    s->cancels = true;
    EXPECT_OK(pair_say(s, "go"));
    pair_run(&r);
    EXPECT_EQ(s->messages, 1);
    EXPECT_EQ(s->info.kind, SL_CALL_CANCELLED);
    EXPECT_EQ(sl_connection_call_count(r.server.connection), 0);
    pair_close(&r);
}

TEST(wire_many_calls_share_a_connection_fairly)
{
    pair r = { .many = 300, .many_bytes = 10000 };
    seen *s[20];
    unsigned begun = 0;

    EXPECT(pair_open(&r, NULL, NULL));
    for (unsigned i = 0; i < 20; i++) {
        s[i] = pair_call(&r, PATH_MANY);
        EXPECT_OK(pair_say(s[i], "go"));
    }
    pair_move(&r, &r.client, &r.server);
    while (s[0]->messages < 50) {
        pair_move(&r, &r.server, &r.client);
        pair_move(&r, &r.client, &r.server);
    }
    for (unsigned i = 0; i < 20; i++)
        begun += s[i]->messages > 10;
    EXPECT_EQ(begun, 20); /* nobody waits until the first one is done */
    pair_run(&r);
    for (unsigned i = 0; i < 20; i++) {
        EXPECT_STATUS(s[i], SL_STATUS_OK);
        EXPECT_EQ(s[i]->bytes, 3000000);
    }
    pair_close(&r);
}

TEST(wire_more_calls_than_the_server_takes_wait_for_their_turn)
{
    sl_wire_limits few = sl_wire_limits_default;
    pair r = { 0 };
    seen *s[12];

    few.calls_max = 3;
    EXPECT(pair_open(&r, &few, NULL));
    pair_run(&r); /* the client knows the limit now */
    for (unsigned i = 0; i < 12; i++) {
        s[i] = pair_call(&r, PATH_ECHO);
        EXPECT_OK(pair_say(s[i], "x"));
    }
    pair_run(&r);
    EXPECT_EQ(r.server.call_count, 3);
    for (unsigned i = 0; i < 12; i++)
        pair_end(&r, s[i]);
    for (unsigned i = 0; i < 12; i++)
        EXPECT_STATUS(s[i], SL_STATUS_OK);
    pair_close(&r);
}

TEST(wire_a_client_has_a_limit_of_its_own)
{
    sl_wire_limits few = sl_wire_limits_default;
    pair r = { 0 };
    sl_call *call;

    few.calls_max = 2;
    EXPECT(pair_open(&r, NULL, &few));
    pair_call(&r, PATH_ECHO);
    pair_call(&r, PATH_ECHO);
    EXPECT_ERR(sl_call_start(r.client.connection, &(sl_call_request){ .path = SL_STR_INIT("/x") }, &call),
               SL_ERR_FULL);
    pair_close(&r);
}

TEST(wire_a_lost_connection_ends_every_call)
{
    pair r = { 0 };
    seen *s;

    EXPECT(pair_open(&r, NULL, NULL));
    s = pair_call(&r, PATH_SILENT);
    EXPECT_OK(pair_say(s, "x"));
    pair_run(&r);
    sl_connection_end(r.server.connection);
    EXPECT_EQ(r.server.calls[0].info.kind, SL_CALL_CONNECTION_LOST);
    EXPECT(sl_connection_finished(r.server.connection));
    sl_connection_end(r.client.connection);
    EXPECT_STATUS(s, SL_STATUS_UNAVAILABLE);
    EXPECT_EQ(s->info.kind, SL_CALL_CONNECTION_LOST);
    EXPECT_EQ(sl_connection_end_reason(r.client.connection), SL_END_CLOSED);
    EXPECT_EQ(r.client.counters.connections_ended[SL_END_CLOSED], 1);
    pair_close(&r);
}

TEST(wire_random_traffic_arrives_whole)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        dice d = dice_from(seed);
        pair r = { .chop = &d };
        uint64_t sent[8] = { 0 };
        seen *s[8];
        static uint8_t data[40000];

        EXPECT(pair_open(&r, NULL, NULL));
        for (unsigned i = 0; i < 8; i++)
            s[i] = pair_call(&r, PATH_ECHO);
        for (unsigned step = 0; step < 200; step++) {
            const size_t i = dice_pick(&d, 8),
                         bytes = dice_pick(&d, dice_pick(&d, 10) == 0 ? sizeof data : 300);
            pair_fill(data, bytes, step);
            if (pair_send(s[i], data, bytes) == SL_OK)
                sent[i] = pair_hash(sent[i], data, bytes);
            if (dice_pick(&d, 4) == 0)
                pair_move(&r, &r.client, &r.server);
            if (dice_pick(&d, 4) == 0)
                pair_move(&r, &r.server, &r.client);
            if (dice_pick(&d, 10) == 0)
                pair_run(&r);
        }
        for (unsigned i = 0; i < 8; i++)
            pair_end(&r, s[i]);
        for (unsigned i = 0; i < 8; i++) {
            EXPECT_RUN(s[i]->ends == 1 && s[i]->info.status == SL_STATUS_OK, seed, i);
            EXPECT_RUN(s[i]->hash == sent[i], seed, i);
        }
        pair_close(&r);
    }
}
