/* tests/unit/server/test_dispatch.c — from a call to the functions of its method, and every way in which it can end. */
#include "../base/support.h"
#include "made.h"

static void start(server_rig *rig)
{
    server_rig_init(rig);
    made_start(rig);
}

static server_call *unary(server_rig *rig, const char *path, const char *request)
{
    return server_rig_unary(rig, path, sl_str_from(request));
}

/* --- what a method sees --- */

TEST(a_unary_call_gets_its_answer_and_the_method_sees_begin_message_end)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = unary(&rig, MADE_ECHO, "hello");
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_STR(call->messages[0].data, "hello");
    EXPECT_STR(made_story, "begin;message hello;end;");
    EXPECT_EQ(rig.host->counters.calls_begun, 1);
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_OK], 1);
    server_rig_done(&rig);
}

TEST(an_empty_request_is_a_request)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = unary(&rig, MADE_ECHO, "");
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_EQ(call->messages[0].bytes, 0);
    server_rig_done(&rig);
}

TEST(a_conversation_goes_on_until_the_client_half_closes)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_TALK);
    server_call_send(call, SL_STR("a"));
    server_rig_run(&rig);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_EQ(rig.host->counters.calls_now, 1);
    server_call_send(call, SL_STR("b"));
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 2);
    EXPECT_STR(made_story, "begin;message a;message b;half-close;end;");
    server_rig_done(&rig);
}

TEST(a_method_that_takes_one_message_gets_one_or_the_call_is_invalid)
{
    server_rig rig;
    server_call *none, *two;

    start(&rig);
    none = server_rig_call(&rig, MADE_LATER);
    server_call_half_close(none);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(none, SL_STATUS_INVALID_ARGUMENT);
    EXPECT_STR(none->message, "This method takes exactly one request message, and none came.");
    EXPECT_STR(made_story, "begin;end;");
    made_forget();
    two = server_rig_call(&rig, MADE_LATER);
    server_call_send(two, SL_STR("1"));
    server_call_send(two, SL_STR("2"));
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(two, SL_STATUS_INVALID_ARGUMENT);
    EXPECT_STR(two->message, "This method takes exactly one request message, and a second one came.");
    EXPECT_STR(made_story, "begin;end;"); /* the first one was not acted on */
    server_rig_done(&rig);
}

/* Some clients say the end of their request later than the message. A method that answered before would leave them with a stream
 * that is over for us and not for them. */
TEST(a_method_that_takes_one_message_gets_it_when_the_client_has_half_closed)
{
    static const char *const paths[] = { MADE_ECHO, MADE_MANY }; /* unary, server stream */
    server_rig rig;

    start(&rig);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        server_call *const call = server_rig_call(&rig, paths[i]);

        made_forget();
        server_call_send(call, SL_STR("1"));
        server_rig_run(&rig);
        EXPECT_ROW(strstr(made_story, "message") == NULL && call->message_count == 0 && !call->ended, i);
        server_call_half_close(call);
        server_rig_run(&rig);
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT_ROW(call->message_count == 1, i);
    }
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    server_rig_done(&rig);
}

TEST(a_message_that_is_kept_arrives_whole_however_large_it_is)
{
    static const size_t sizes[] = { 0, 1, 5000, 1 << 20, 10 << 20 };
    test_alloc memory = { 0 };
    const sl_alloc alloc = test_alloc_use(&memory);
    char *const data = malloc(10 << 20);
    server_rig rig;

    for (size_t i = 0; i < 10 << 20; i++)
        data[i] = (char)(i * 7 + (i >> 8));
    server_rig_init(&rig);
    rig.alloc = &alloc;
    made_start(&rig);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        server_call *const call = server_rig_call(&rig, MADE_ECHO);

        server_call_send(call, (sl_str){ data, sizes[i] });
        server_rig_run(&rig);
        EXPECT_ROW(!call->ended, i);
        server_call_half_close(call);
        server_rig_run(&rig);
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT_ROW(call->messages[0].bytes == sizes[i], i);
        EXPECT_ROW(sizes[i] == 0 || memcmp(call->messages[0].data, data, sizes[i]) == 0, i);
    }
    server_rig_done(&rig);
    EXPECT_EQ(memory.block_count, 0);
    free(data);
}

/* A client that never half-closes makes us keep so much and no more, and the others do not notice. */
TEST(messages_that_are_kept_are_bounded_for_a_connection)
{
    enum {
        CALLS = 70,
        BYTES = 1000 * 1000,
        KEPT = SL_LINK_KEPT_BYTES_MAX / BYTES
    };
    test_alloc memory = { 0 };
    const sl_alloc alloc = test_alloc_use(&memory);
    char *const data = calloc(1, BYTES);
    server_call *calls[CALLS];
    server_peer *peer;
    server_rig rig;
    size_t before;

    server_rig_init(&rig);
    rig.alloc = &alloc;
    made_start(&rig);
    unary(&rig, MADE_ECHO, "the connection is there");
    peer = server_rig_connect(&rig, "10.0.0.1:1");
    before = memory.byte_count;
    for (int round = 0; round < 2; round++) { /* what was given back counts no more */
        for (size_t i = 0; i < CALLS; i++) {
            calls[i] = server_rig_call_with(&rig, &(server_call_options){ .peer = peer, .path = MADE_LATER });
            server_call_send(calls[i], (sl_str){ data, BYTES });
            server_rig_run(&rig);
            EXPECT_ROW(calls[i]->ended == (i >= KEPT), i);
        }
        EXPECT_CALL_STATUS(calls[KEPT], SL_STATUS_RESOURCE_EXHAUSTED);
        EXPECT(memory.byte_count - before < 80 << 20);
        EXPECT_CALL_STATUS(unary(&rig, MADE_ECHO, "another connection"), SL_STATUS_OK);
        for (size_t i = 0; i < KEPT; i++) {
            made_forget();
            if (i % 2 == 0)
                server_call_half_close(calls[i]);
            else
                server_call_cancel(calls[i]);
            server_rig_run(&rig);
            EXPECT_ROW((strstr(made_story, "message") != NULL) == (i % 2 == 0), i);
        }
        for (size_t i = 0; i < KEPT; i += 2)
            server_call_cancel(calls[i]);
        server_rig_run(&rig);
        EXPECT_EQ(peer->link->kept_bytes, 0);
    }
    server_rig_done(&rig);
    EXPECT_EQ(memory.block_count, 0);
    free(data);
}

/* Cancelled, late, lost: what was kept goes with the call, and nobody acts on it. */
TEST(a_call_that_ends_before_its_half_close_does_nothing_and_leaves_nothing)
{
    test_alloc memory = { 0 };
    const sl_alloc alloc = test_alloc_use(&memory);
    server_rig rig;

    server_rig_init(&rig);
    rig.alloc = &alloc;
    made_start(&rig);
    for (int way = 0; way < 3; way++) {
        server_call *const call = server_rig_call_with(
            &rig, &(server_call_options){ .path = MADE_LATER, .timeout_ns = 1000000000 });

        made_forget();
        server_call_send(call, SL_STR("kept"));
        server_rig_run(&rig);
        EXPECT_STR(made_story, "begin;");
        if (way == 0)
            server_call_cancel(call);
        else if (way == 1)
            server_rig_advance(&rig, 1000000000);
        else
            server_rig_break(call->peer);
        server_rig_run(&rig);
        EXPECT_STR(made_story, "begin;end;");
    }
    server_rig_done(&rig);
    EXPECT_EQ(memory.block_count, 0);
}

TEST(a_method_may_cancel_its_call_inside_of_a_message_that_was_kept)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_CANCEL_ONE);
    server_call_send(call, SL_STR("a"));
    server_rig_run(&rig);
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_CANCELLED);
    EXPECT_STR(made_story, "begin;message a;end;");
    server_rig_done(&rig);
}

TEST(a_message_above_the_limit_of_its_method_ends_the_call)
{
    server_rig rig;

    start(&rig);
    EXPECT_CALL_STATUS(unary(&rig, MADE_SMALL, "0123456789"), SL_STATUS_OK);
    EXPECT_CALL_STATUS(unary(&rig, MADE_SMALL, "0123456789x"), SL_STATUS_RESOURCE_EXHAUSTED);
    EXPECT_CALL_STATUS(unary(&rig, MADE_ECHO, "0123456789x"), SL_STATUS_OK);
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_RESOURCE_EXHAUSTED], 1);
    server_rig_done(&rig);
}

TEST(what_came_while_a_method_had_paused_comes_when_it_resumes)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_PAUSED);
    server_call_send(call, SL_STR("a"));
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT_STR(made_story, "begin;");
    sl_request_resume(made_last);
    EXPECT_STR(made_story, "begin;message a;half-close;");
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    server_rig_done(&rig);
}

TEST(no_message_comes_before_begin_has_returned)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_HASTY);
    server_call_send(call, SL_STR("a"));
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_STR(made_story, "begin;message a;half-close;end;");
    server_rig_done(&rig);
}

TEST(a_method_may_cancel_its_call_inside_of_a_message)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_CANCEL);
    server_call_send(call, SL_STR("a"));
    server_call_send(call, SL_STR("b"));
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_CANCELLED);
    EXPECT_STR(made_story, "begin;message a;end;");
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_CANCELLED], 1);
    server_rig_done(&rig);
}

/* --- sending from elsewhere: a commit, an alarm --- */

TEST(what_is_sent_outside_of_the_connections_own_turn_leaves_at_once)
{
    server_rig rig;
    server_call *call;
    uint8_t *data;

    start(&rig);
    call = server_rig_call(&rig, MADE_TALK);
    server_rig_run(&rig);
    sl_request_send(made_last, SL_STR("sent"));
    server_rig_run(&rig);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_OK(sl_request_reserve(made_last, 100, &data));
    memcpy(data, "made", 4);
    sl_request_commit(made_last, 4);
    server_rig_run(&rig);
    EXPECT_EQ(call->message_count, 2);
    EXPECT_STR(call->messages[1].data, "made");
    sl_request_finish(made_last, SL_STATUS_OK, SL_STR(""), NULL, 0);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    server_rig_done(&rig);
}

TEST(a_client_whose_window_was_full_hears_that_it_is_open_again)
{
    enum {
        BYTES = 1200 * 1000 /* more than the window of a call */
    };
    char *const data = calloc(1, BYTES);
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_COUNT);
    server_rig_run(&rig);
    sl_request_pause(made_last);
    for (int i = 0; i < 10; i++)
        server_call_send(call, (sl_str){ data, BYTES / 10 });
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT(!call->ended);
    sl_request_resume(made_last);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_STR(call->messages[0].data, "1200000");
    free(data);
    server_rig_done(&rig);
}

/* --- what is not offered --- */

TEST(an_unknown_method_is_answered_with_a_sentence_and_never_hangs)
{
    static const struct {
        const char *path, *words;
    } rows[] = {
        { "/event_store.client.projections.Projections/Create", "no projections" },
        { "/event_store.client.redaction.Redaction/SwitchChunks", "redact" },
        { "/event_store.client.persistent_subscriptions.PersistentSubscriptions/Nothing", "no such method" },
        { "/kurrentdb.protocol.v2.indexes.IndexesService/Create", "indexes" },
        { "/kurrentdb.protocol.v2.registry.SchemaRegistryService/CreateSchema", "registry" },
        { "/event_store.cluster.Elections/ViewChange", "single node" },
        { "/event_store.cluster.Gossip/Update", "single node" },
        { "/event_store.client.streams.Streams/Nothing", "no such method" },
        { "/a/b/c", "no such method" },
        { "/", "no such method" },
    };
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig); /* with the methods of the server */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = unary(&rig, rows[i].path, "x");

        EXPECT_CALL_STATUS(call, SL_STATUS_UNIMPLEMENTED);
        EXPECT_ROW(strstr(call->message, rows[i].words) != NULL, i);
    }
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_UNIMPLEMENTED], sizeof rows / sizeof rows[0]);
    server_rig_done(&rig);
}

TEST(each_method_is_found_by_its_path_and_listed_once)
{
    char path[256];
    const char *why = NULL;

    for (size_t i = 0; i < sl_method_count; i++) {
        const sl_method *const method = sl_methods[i];

        snprintf(path, sizeof path, "/%.*s/%.*s", (int)method->service.bytes, method->service.data,
                 (int)method->name.bytes, method->name.data);
        EXPECT_ROW(sl_method_find(sl_str_from(path), &why) == method, i);
        EXPECT_ROW(method->half_close == NULL || method->kind == SL_METHOD_CLIENT_STREAM ||
                       method->kind == SL_METHOD_BIDI,
                   i); /* nobody would call it */
    }
    EXPECT(sl_method_find(SL_STR(""), &why) == NULL && why != NULL);
    EXPECT(sl_method_find(SL_STR("no slash"), &why) == NULL);
}

/* --- how calls end --- */

TEST(the_end_comes_once_whoever_ends_the_call)
{
    server_rig rig;
    server_call *cancelled, *late, *lost;

    start(&rig);
    cancelled = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    server_call_cancel(cancelled);
    server_rig_run(&rig);
    EXPECT_STR(made_story, "begin;end;");

    late = server_rig_call_with(&rig, &(server_call_options){ .path = MADE_LATER, .timeout_ns = 1000000000 });
    server_rig_run(&rig);
    made_forget();
    server_rig_advance(&rig, 1000000000);
    EXPECT_CALL_STATUS(late, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_STR(made_story, "end;");

    lost = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    made_forget();
    server_rig_break(lost->peer);
    EXPECT(lost->ended);
    EXPECT_STR(made_story, "end;");
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_CANCELLED], 2);
    EXPECT_EQ(rig.host->counters.calls_ended[SL_STATUS_DEADLINE_EXCEEDED], 1);
    server_rig_done(&rig);
}

TEST(a_held_request_outlives_its_call_and_sends_nothing)
{
    server_rig rig;
    server_call *call;
    uint8_t *data;

    start(&rig);
    call = server_rig_call(&rig, MADE_HELD);
    server_rig_run(&rig);
    EXPECT(sl_request_open(made_last));
    EXPECT(sl_request_room(made_last) > 0);
    server_call_cancel(call);
    server_rig_run(&rig);
    EXPECT_STR(made_story, "begin;end;");
    EXPECT(!sl_request_open(made_last));
    EXPECT_EQ(sl_request_room(made_last), 0);
    EXPECT_ERR(sl_request_reserve(made_last, 1, &data), SL_ERR_EMPTY);
    sl_request_send(made_last, SL_STR("nobody"));
    sl_request_answer(made_last, SL_STR("hears"));
    sl_request_finish(made_last, SL_STATUS_OK, SL_STR("this"), NULL, 0);
    sl_request_pause(made_last);
    sl_request_resume(made_last);
    EXPECT_EQ(sl_request_header(made_last, SL_STR("any")).bytes, 0);
    EXPECT_EQ(sl_request_peer(made_last).bytes, 0);
    sl_request_release(made_last);
    server_rig_done(&rig);
}

TEST(only_the_first_status_counts)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    call = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    sl_request_finish(made_last, SL_STATUS_ABORTED, SL_STR("first"), NULL, 0);
    sl_request_finish(made_last, SL_STATUS_OK, SL_STR("second"), NULL, 0);
    sl_request_answer(made_last, SL_STR("third"));
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_ABORTED);
    EXPECT_STR(call->message, "first");
    EXPECT_EQ(call->message_count, 0);
    server_rig_done(&rig);
}

TEST(a_request_knows_its_headers_its_deadline_and_its_peer)
{
    const sl_metadata row = { SL_STR("requires-leader"), SL_STR("true") };
    server_rig rig;
    sl_str peer;

    start(&rig);
    server_rig_call_with(&rig, &(server_call_options){ .peer = server_rig_connect(&rig, "10.1.2.3:4567"),
                                                       .path = MADE_LATER,
                                                       .metadata = &row,
                                                       .metadata_count = 1,
                                                       .timeout_ns = 5000000000 });
    server_rig_run(&rig);
    EXPECT(sl_str_equal(sl_request_header(made_last, SL_STR("requires-leader")), SL_STR("true")));
    EXPECT_EQ(sl_request_header(made_last, SL_STR("other")).bytes, 0);
    EXPECT_EQ(sl_call_deadline_ns(made_last->call), rig.time.mono_ns + 5000000000);
    peer = sl_request_peer(made_last);
    EXPECT(sl_str_equal(peer, SL_STR("10.1.2.3:4567")));
    server_rig_done(&rig);
}

/* --- back-pressure --- */

TEST(a_slow_reader_is_sent_no_more_than_there_is_room_and_gets_all_in_the_end)
{
    server_rig rig;
    server_call *call, *other;

    start(&rig);
    call = server_rig_call(&rig, MADE_MANY);
    call->slow = true;
    server_call_send(call, SL_STR("5000"));
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT(call->message_count < 2000); /* window and what waits, not all of it */
    EXPECT(!call->ended);
    other = unary(&rig, MADE_ECHO, "and the others do not wait");
    EXPECT_CALL_STATUS(other, SL_STATUS_OK);
    server_call_read_on(call);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 5000);
    EXPECT_EQ(call->messages[4999].data[0], 'b');
    server_rig_done(&rig);
}

TEST(a_client_may_send_far_more_than_a_window_because_messages_are_consumed)
{
    server_rig rig;
    server_call *call;
    char *const megabyte = calloc(1, 1 << 20);

    start(&rig);
    call = server_rig_call(&rig, MADE_COUNT);
    for (int i = 0; i < 40; i++)
        server_call_send(call, (sl_str){ megabyte, 1 << 20 });
    server_call_half_close(call);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_STR(call->messages[0].data, "41943040");
    free(megabyte);
    server_rig_done(&rig);
}

TEST(an_answer_waits_for_a_client_that_reads_nothing)
{
    server_rig rig;
    server_call *calls[40];
    char *const megabyte = calloc(1, 1 << 20);

    start(&rig);
    unary(&rig, MADE_ECHO, "the connection is there");
    for (size_t i = 0; i < 40; i++) {
        rig.first->stuck = true;
        calls[i] = server_rig_call(&rig, MADE_LATER);
        server_call_send(calls[i], SL_STR("x"));
        server_rig_run(&rig);
        sl_request_answer(made_last, (sl_str){ megabyte, 1 << 20 }); /* far above the output limit */
    }
    EXPECT(sl_connection_output_bytes(rig.first->link->connection) < 20 << 20);
    rig.first->stuck = false;
    server_rig_run(&rig);
    for (size_t i = 0; i < 40; i++) {
        EXPECT_CALL_STATUS(calls[i], SL_STATUS_OK);
        EXPECT_EQ(calls[i]->messages[0].bytes, 1 << 20);
    }
    free(megabyte);
    server_rig_done(&rig);
}

TEST(a_message_that_no_client_would_take_ends_the_call)
{
    server_rig rig;
    server_call *call;
    char *const large = calloc(1, 18 << 20);

    start(&rig);
    call = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    sl_request_answer(made_last, (sl_str){ large, 18 << 20 });
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_RESOURCE_EXHAUSTED);
    free(large);
    server_rig_done(&rig);
}
