/* Rules of client/client.h and client/ask.h, against wire's own server in the same loop. */
#include "client/rig.h"

#include "base/support.h"
#include "client/ask.h"
#include "net/certificate.h"
#include "net/rig.h"

#include <sys/socket.h>

#define SECOND_NS      UINT64_C(1000000000)
#define MILLISECOND_NS UINT64_C(1000000)

enum {
    HOUR_S = 3600
};

TEST(a_call_brings_back_what_the_server_sends_and_its_status)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Echo", 0); /* before the connection stands: it waits for it */
    EXPECT(!sl_client_is_open(r.client) && !sl_client_is_idle(r.client));
    client_rig_send(&c, "one");
    CLIENT_UNTIL(&r, c.messages == 1);
    EXPECT_EQ(r.opens, 1);
    EXPECT_STR(c.last, "one");
    client_rig_send(&c, "two");
    sl_client_call_half_close(&c.call);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT_EQ(c.messages, 2);
    EXPECT_STR(c.last, "two");
    EXPECT(c.kind == SL_CALL_FINISHED && c.status == SL_STATUS_OK);
    EXPECT(c.call.call == NULL);
    client_rig_done(&r);
    EXPECT_EQ(r.ends, 0); /* whoever frees a client hears nothing of it */
}

TEST(credentials_and_the_name_of_the_connection_go_with_each_call)
{
    static const struct {
        const char *user, *who;
    } rows[] = {
        { "", "||e" },
        { "a:b@", "Basic YTpi||e" },       /* the padding of base64: none, */
        { "a:bc@", "Basic YTpiYw==||e" },  /* two, */
        { "ab:cd@", "Basic YWI6Y2Q=||e" }, /* one */
        { "%c3%a9@", "Basic w6k6||e" },    /* without a password it is empty */
    };
    static client_rig r;
    char address[128];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        client_rig_call c = { 0 };
        client_rig_init(&r, NULL);
        snprintf(address, sizeof address, "sluice://%s127.0.0.1:%u", rows[i].user,
                 sl_listener_port(r.listener));
        client_rig_connect(&r, address);
        client_rig_start(&r, &c, "/t/Who", 0);
        sl_client_call_half_close(&c.call);
        CLIENT_UNTIL(&r, c.ends == 1);
        EXPECT_STR(c.last, rows[i].who);
        client_rig_done(&r);
    }
}

TEST(a_connection_name_may_hold_any_text)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, client_rig_address(&r, "?connectionName=my%20w%C3%B6rker"));
    client_rig_start(&r, &c, "/t/Who", 0);
    sl_client_call_half_close(&c.call);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT_STR(c.last, "|my w%C3%B6rker|e"); /* as HTTP/2 allows it */
    client_rig_done(&r);
}

TEST(a_refusal_comes_with_status_text_and_trailers)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Refuse", 0);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT(c.kind == SL_CALL_FINISHED && c.status == SL_STATUS_PERMISSION_DENIED && !c.unprocessed);
    EXPECT_STR(c.message, "Access Denied");
    EXPECT_STR(c.exception, "access-denied");
    client_rig_done(&r);
}

TEST(a_server_that_is_not_there_ends_calls_with_a_sentence_and_they_may_be_sent_again)
{
    static client_rig r;
    client_rig_call c = { 0 };
    char wanted[128];
    uint16_t port;

    client_rig_init(&r, NULL);
    close(raw_listen(1, &port)); /* nobody listens there any more */
    snprintf(wanted, sizeof wanted, "127.0.0.1:%u", port);
    client_rig_connect(&r, wanted);
    client_rig_start(&r, &c, "/t/Echo", 0);
    CLIENT_UNTIL(&r, r.ends == 1);
    snprintf(wanted, sizeof wanted, "cannot reach 127.0.0.1:%u: connection refused", port);
    EXPECT_STR(r.problem, wanted);
    EXPECT_STR(c.message, wanted);
    EXPECT(c.ends == 1 && c.kind == SL_CALL_CONNECTION_LOST && c.status == SL_STATUS_UNAVAILABLE &&
           c.unprocessed);
    EXPECT(!r.end.was_open && !r.end.has_answered && r.end.net == SL_NET_END_REFUSED);
    EXPECT(sl_client_is_idle(r.client) && r.opens == 0);
    client_rig_done(&r);
}

TEST(a_call_without_a_connection_is_refused_at_once)
{
    static client_rig r;
    client_rig_call c = { 0 };
    char problem[64];

    client_rig_init(&r, NULL);
    EXPECT_OK(client_rig_make(&r, client_rig_address(&r, ""), NULL, problem, sizeof problem));
    EXPECT_ERR(client_rig_begin(&r, &c, "/t/Echo", 0), SL_ERR_DRAINING);
    client_rig_done(&r);
    EXPECT_EQ(c.ends, 0);
}

TEST(a_deadline_ends_a_call_while_the_server_is_silent)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Silent", 50 * MILLISECOND_NS);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT(c.status == SL_STATUS_DEADLINE_EXCEEDED);
    CLIENT_UNTIL(&r, r.server_ends == 1); /* and the server hears of it */
    client_rig_done(&r);
}

TEST(a_deadline_also_runs_before_the_server_has_said_a_word)
{
    static client_rig r;
    client_rig_call c = { 0 };
    char address[64];
    uint16_t port;
    const int fd = raw_listen(1, &port);

    client_rig_init(&r, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    client_rig_connect(&r, address);
    client_rig_start(&r, &c, "/t/Echo", 50 * MILLISECOND_NS);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT(c.status == SL_STATUS_DEADLINE_EXCEEDED && !c.unprocessed); /* the connection stood: who knows */
    client_rig_done(&r);
    close(fd);
}

TEST(a_call_that_was_cancelled_before_there_was_a_connection_was_never_sent)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Echo", 0);
    sl_client_call_cancel(&c.call);
    EXPECT(c.ends == 1 && c.kind == SL_CALL_CANCELLED && c.unprocessed);
    client_rig_done(&r);
}

TEST(a_connection_that_is_cut_ends_its_calls_and_says_so)
{
    static client_rig r;
    client_rig_call a = { 0 }, b = { 0 };
    char wanted[128];

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &a, "/t/Silent", 0);
    client_rig_start(&r, &b, "/t/Echo", 0);
    CLIENT_UNTIL(&r, r.server_calls == 2);
    client_rig_server_cut(&r, 0);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(a.ends == 1 && b.ends == 1 && a.kind == SL_CALL_CONNECTION_LOST && !a.unprocessed);
    snprintf(wanted, sizeof wanted, "lost the connection to 127.0.0.1:%u: ", sl_listener_port(r.listener));
    EXPECT_MEM(a.message, wanted, strlen(wanted));
    EXPECT(r.end.was_open && r.end.has_answered);
    client_rig_done(&r);
}

TEST(whether_to_connect_again_is_up_to_the_user_and_works)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Silent", 0);
    CLIENT_UNTIL(&r, r.server_calls == 1);
    client_rig_server_cut(&r, 0);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT_OK(sl_client_connect(r.client));
    client_rig_start(&r, &c, "/t/Echo", 0);
    client_rig_send(&c, "again");
    CLIENT_UNTIL(&r, c.messages == 1);
    EXPECT_STR(c.last, "again");
    EXPECT_EQ(r.opens, 2);
    client_rig_done(&r);
}

TEST(each_end_has_a_sentence_of_its_own)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Silent", 0);
    CLIENT_UNTIL(&r, r.server_calls == 1);
    client_rig_server_cut(&r, 0);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(strstr(r.problem, "lost the connection") != NULL);
    sl_listener_free(r.listener);
    r.listener = NULL;
    EXPECT_OK(sl_client_connect(r.client));
    CLIENT_UNTIL(&r, r.ends == 2);
    EXPECT(strstr(r.problem, "connection refused") != NULL && !r.end.was_open && !r.end.has_answered);
    client_rig_done(&r);
}

TEST(calls_that_end_with_their_connection_may_end_each_other)
{
    static client_rig r;
    client_rig_call a = { 0 }, b = { .cancel_at_end = &a };

    a.cancel_at_end = &b;
    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &a, "/t/Silent", 0);
    client_rig_start(&r, &b, "/t/Silent", 0);
    CLIENT_UNTIL(&r, r.server_calls == 2);
    client_rig_server_cut(&r, 0);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(a.ends == 1 && b.ends == 1 && sl_client_is_idle(r.client));
    client_rig_done(&r);
}

TEST(a_server_that_wants_to_close_lets_calls_finish_and_takes_no_new_ones)
{
    static client_rig r;
    client_rig_call c = { 0 }, late = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Echo", 0);
    client_rig_send(&c, "one");
    CLIENT_UNTIL(&r, c.messages == 1);
    client_rig_server_goaway(&r, 0);
    CLIENT_UNTIL(&r, r.goaways >= 1);
    EXPECT_ERR(client_rig_begin(&r, &late, "/t/Echo", 0), SL_ERR_DRAINING);
    client_rig_send(&c, "two");
    sl_client_call_half_close(&c.call);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT(c.messages == 2 && c.status == SL_STATUS_OK);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(sl_client_is_idle(r.client));
    client_rig_done(&r);
}

TEST(a_shutdown_waits_for_the_last_call)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Echo", 0);
    client_rig_send(&c, "one");
    CLIENT_UNTIL(&r, c.messages == 1);
    sl_client_shutdown(r.client);
    client_rig_send(&c, "two");
    CLIENT_UNTIL(&r, c.messages == 2);
    EXPECT_EQ(r.ends, 0);
    sl_client_call_half_close(&c.call);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(c.ends == 1 && c.status == SL_STATUS_OK);
    EXPECT(r.end.wire == SL_END_SHUTDOWN && r.end.net == SL_NET_END_NONE);
    sl_client_shutdown(r.client); /* of an idle one: nothing */
    client_rig_done(&r);
}

TEST(a_shutdown_without_calls_is_over_when_the_server_was_told)
{
    static client_rig r;
    client_rig_call c = { 0 };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Echo", 0);
    client_rig_send(&c, "one");
    CLIENT_UNTIL(&r, c.messages == 1);
    sl_client_shutdown(r.client);
    sl_client_call_cancel(&c.call); /* the last one, from outside */
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(r.end.wire == SL_END_SHUTDOWN);
    EXPECT_OK(sl_client_connect(r.client));
    CLIENT_UNTIL(&r, r.opens == 2);
    sl_client_shutdown(r.client); /* there never was one */
    CLIENT_UNTIL(&r, r.ends == 2);
    client_rig_done(&r);
}

TEST(a_shutdown_needs_no_answer)
{
    static client_rig r;
    char address[64];
    uint16_t port;
    const int fd = raw_listen(1, &port);

    client_rig_init(&r, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    client_rig_connect(&r, address);
    CLIENT_UNTIL(&r, r.opens == 1);
    sl_client_shutdown(r.client);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(!r.end.has_answered && r.end.wire == SL_END_SHUTDOWN);
    client_rig_done(&r);
    close(fd);
}

TEST(a_paused_call_stops_the_server_and_loses_nothing)
{
    static client_rig r;
    client_rig_call c = { .pause_at_first = true };
    uint64_t sent;

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Flood", 0);
    CLIENT_UNTIL(&r, c.messages == 1);
    do { /* until the windows are full */
        sent = r.flood_sent;
        for (int i = 0; i < 100; i++)
            sl_loop_turn(r.loop, false);
    } while (r.flood_sent > sent);
    EXPECT_EQ(c.messages, 1);
    EXPECT(r.flood_sent * CLIENT_RIG_FLOOD_BYTES <
           4 * 1024 * 1024); /* window, and what waits in the server */
    sl_client_call_resume(&c.call);
    CLIENT_UNTIL(&r, c.messages > 3 * sent);
    EXPECT(!c.order_broken);
    client_rig_done(&r);
    EXPECT_EQ(c.ends, 1);
}

TEST(a_server_that_takes_nothing_stops_the_sender)
{
    static client_rig r;
    static char piece[16 * 1024];
    client_rig_call c = { 0 };
    const sl_str text = { piece, sizeof piece };
    size_t sent = 0;

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Silent", 0);
    for (int quiet = 0; quiet < 1000; quiet++) { /* until it takes no more */
        while (sl_client_call_room(&c.call) > 0) {
            EXPECT_OK(sl_client_call_send(&c.call, &text, 1));
            sent += sizeof piece;
            quiet = 0;
        }
        sl_loop_turn(r.loop, false);
    }
    EXPECT(sent < 4 * 1024 * 1024);
    EXPECT_ERR(sl_client_call_send(&c.call, &text, 1), SL_ERR_FULL);
    EXPECT(c.rooms > 0);
    client_rig_done(&r);
    EXPECT(c.ends == 1 && c.kind == SL_CALL_CONNECTION_LOST);
}

TEST(a_call_may_be_cancelled_from_inside_of_its_own_message)
{
    static client_rig r;
    client_rig_call c = { .cancel_at_first = true };

    client_rig_init(&r, NULL);
    client_rig_connect(&r, NULL);
    client_rig_start(&r, &c, "/t/Flood", 0);
    CLIENT_UNTIL(&r, c.ends == 1);
    EXPECT(c.kind == SL_CALL_CANCELLED && c.messages == 1);
    CLIENT_UNTIL(&r, r.server_ends == 1);
    client_rig_start(&r, &c, "/t/Echo", 0); /* the connection goes on */
    client_rig_send(&c, "still");
    CLIENT_UNTIL(&r, strcmp(c.last, "still") == 0);
    client_rig_done(&r);
}

/* A server of another kind: what it says is no HTTP/2. */
TEST(a_peer_that_speaks_something_else_is_told_apart)
{
    static const char words[] = "220 mail.example ready for whatever you want to say to me, stranger\r\n";
    static client_rig r;
    client_rig_call c = { 0 };
    char address[64];
    uint16_t port;
    const int fd = raw_listen(1, &port);
    int peer;

    client_rig_init(&r, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    client_rig_connect(&r, address);
    client_rig_start(&r, &c, "/t/Echo", 0);
    CLIENT_UNTIL(&r, r.opens == 1);
    peer = accept(fd, NULL, NULL);
    EXPECT_EQ(write(peer, words, sizeof words - 1), sizeof words - 1);
    CLIENT_UNTIL(&r, r.ends == 1);
    EXPECT(c.ends == 1 && r.end.has_answered && r.end.net == SL_NET_END_NONE);
    EXPECT(r.end.wire == SL_END_NOT_HTTP2 || r.end.wire == SL_END_PROTOCOL);
    client_rig_done(&r);
    close(peer);
    close(fd);
}

/* --- TLS --- */

static sl_tls *server_tls(const papers *p)
{
    const sl_tls_server_options options = { .certificate_file = p->certificate, .key_file = p->key };
    sl_tls *tls;

    EXPECT_OK(sl_tls_server_new(NULL, &options, NULL, &tls));
    return tls;
}

TEST(with_tls_the_server_must_be_known_unless_the_address_says_otherwise)
{
    static const char *const more[] = {
        "?tls=true&tlsCAFile=", "?tls=true&tlsVerifyCert=false&connectionName=", "?tls=true&connectionName="
    };
    static client_rig r;
    papers p;
    sl_tls *tls;
    char text[256];

    papers_init(&p, "IP:127.0.0.1", HOUR_S);
    tls = server_tls(&p);
    for (size_t i = 0; i < 3; i++) {
        client_rig_call c = { 0 };
        client_rig_init(&r, tls);
        snprintf(text, sizeof text, "%s%s", more[i], p.certificate);
        client_rig_connect(&r, client_rig_address(&r, text));
        client_rig_start(&r, &c, "/t/Echo", 0);
        sl_client_call_half_close(&c.call);
        CLIENT_UNTIL(&r, c.ends == 1);
        EXPECT_ROW((c.status == SL_STATUS_OK) == (i < 2), i);
        EXPECT_ROW(
            i < 2 || (r.end.net == SL_NET_END_CERTIFICATE && strstr(r.problem, "cannot reach") != NULL), i);
        client_rig_done(&r);
    }
    sl_tls_free(tls);
    papers_done(&p);
}

TEST(a_file_with_certificates_that_cannot_be_used_is_told_before_anything_is_sent)
{
    static client_rig r;
    char problem[512];

    client_rig_init(&r, NULL);
    EXPECT_ERR(
        client_rig_make(&r, "sluice://h?tls=true&tlsCAFile=/does/not/exist", NULL, problem, sizeof problem),
        SL_ERR_INVALID);
    EXPECT(strstr(problem, "/does/not/exist") != NULL);
    client_rig_done(&r);
}

/* --- memory --- */

/* One call from its beginning to its end, as far as memory allows. */
static sl_err live_once(client_rig *r, const sl_alloc *alloc, client_rig_call *c)
{
    const sl_str text = SL_STR("x");
    char problem[512];
    sl_err err =
        client_rig_make(r, client_rig_address(r, "?connectionName=n"), alloc, problem, sizeof problem);

    if (err == SL_OK)
        err = sl_client_connect(r->client);
    if (err == SL_OK)
        err = client_rig_begin(r, c, "/t/Echo", 0);
    if (err != SL_OK)
        return err;
    if (sl_client_call_send(&c->call, &text, 1) == SL_OK)
        sl_client_call_half_close(&c->call);
    else
        sl_client_call_cancel(&c->call);
    CLIENT_UNTIL(r, c->ends == 1);
    return SL_OK;
}

TEST(a_client_without_memory_fails_cleanly_wherever_it_happens)
{
    static client_rig r;
    bool was_complete = false;

    for (size_t fail_at = 1; !was_complete && fail_at < 400; fail_at++) {
        test_alloc memory = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&memory);
        client_rig_call c = { 0 };

        client_rig_init(&r, NULL);
        const sl_err err = live_once(&r, &alloc, &c);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, fail_at);
        EXPECT_ROW(c.ends == (err == SL_OK), fail_at);
        was_complete = memory.call_count < fail_at;
        EXPECT_ROW(!was_complete || (c.status == SL_STATUS_OK && c.messages == 1), fail_at);
        client_rig_done(&r);
        EXPECT_ROW(memory.block_count == 0 && memory.byte_count == 0, fail_at);
    }
    EXPECT(was_complete);
}

/* --- one call after the other --- */

typedef struct heard {
    uint32_t count;
    size_t bytes;
    bool *stop; /* set to true at the first message */
} heard;

static void on_heard(void *ctx, sl_str message)
{
    heard *h = ctx;

    h->count++;
    h->bytes += message.bytes;
    if (h->stop != NULL)
        *h->stop = true;
}

TEST(asking_connects_sends_waits_and_keeps_the_answer)
{
    static client_rig r;
    char problem[64];
    const sl_str messages[] = { SL_STR("a"), SL_STR("bc") };
    heard h = { 0 };
    const sl_client_question question = {
        .path = SL_STR("/t/Echo"), .messages = messages, .message_count = 2, .on_message = on_heard, .ctx = &h
    };
    const sl_client_question refused = { .path = SL_STR("/t/Refuse"),
                                         .messages = messages,
                                         .message_count = 1 };
    sl_client_answer answer;

    client_rig_init(&r, NULL);
    EXPECT_OK(client_rig_make(&r, client_rig_address(&r, ""), NULL, problem, sizeof problem));
    EXPECT_OK(sl_client_ask(r.client, &question, &answer));
    EXPECT(answer.status == SL_STATUS_OK && answer.message_count == 2 && h.count == 2 && h.bytes == 3);
    EXPECT_EQ(sl_client_answer_trailer(&answer, SL_STR("exception")).bytes, 0);
    sl_client_answer_done(&answer);
    EXPECT_OK(sl_client_ask(r.client, &refused, &answer));
    EXPECT_EQ(answer.status, SL_STATUS_PERMISSION_DENIED);
    EXPECT_STR(answer.message, "Access Denied");
    EXPECT(sl_str_equal(sl_client_answer_trailer(&answer, SL_STR("exception")), SL_STR("access-denied")));
    sl_client_answer_done(&answer);
    EXPECT_EQ(r.opens, 1); /* one connection for both */
    client_rig_done(&r);
}

TEST(a_question_of_many_messages_waits_for_room)
{
    enum {
        COUNT = 400
    };
    static client_rig r;
    static char piece[8 * 1024];
    static sl_str messages[COUNT];
    char problem[64];
    heard h = { 0 };
    const sl_client_question question = { .path = SL_STR("/t/Tally"),
                                          .messages = messages,
                                          .message_count = COUNT,
                                          .on_message = on_heard,
                                          .ctx = &h };
    sl_client_answer answer;

    for (size_t i = 0; i < COUNT; i++)
        messages[i] = (sl_str){ piece, sizeof piece };
    client_rig_init(&r, NULL);
    EXPECT_OK(client_rig_make(&r, client_rig_address(&r, ""), NULL, problem, sizeof problem));
    EXPECT_OK(sl_client_ask(r.client, &question, &answer));
    EXPECT(answer.status == SL_STATUS_OK && h.count == COUNT);
    EXPECT_EQ(r.swallowed_bytes, COUNT * sizeof piece);
    sl_client_answer_done(&answer);
    client_rig_done(&r);
}

TEST(a_question_is_given_up_when_its_owner_says_so)
{
    static client_rig r;
    char problem[64];
    bool stop = false;
    heard h = { .stop = &stop };
    const sl_client_question question = {
        .path = SL_STR("/t/Flood"), .on_message = on_heard, .ctx = &h, .stop = &stop
    };
    sl_client_answer answer;

    client_rig_init(&r, NULL);
    EXPECT_OK(client_rig_make(&r, client_rig_address(&r, ""), NULL, problem, sizeof problem));
    EXPECT_OK(sl_client_ask(r.client, &question, &answer));
    EXPECT(answer.kind == SL_CALL_CANCELLED && h.count > 0);
    sl_client_answer_done(&answer);
    client_rig_done(&r);
}

TEST(a_message_above_the_limit_is_refused_and_the_server_hears_of_no_half_call)
{
    enum {
        TOO_LARGE = 18 * 1024 * 1024
    };
    static client_rig r;
    char problem[64], *const large = calloc(1, TOO_LARGE);
    const sl_str message = { large, TOO_LARGE };
    const sl_client_question question = { .path = SL_STR("/t/Echo"),
                                          .messages = &message,
                                          .message_count = 1 };
    sl_client_answer answer;

    client_rig_init(&r, NULL);
    EXPECT_OK(client_rig_make(&r, client_rig_address(&r, ""), NULL, problem, sizeof problem));
    EXPECT_ERR(sl_client_ask(r.client, &question, &answer), SL_ERR_TOO_LARGE);
    client_rig_done(&r);
    free(large);
}
