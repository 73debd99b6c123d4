/* Tests of net/tls.h and of connections that use it: trust, names, reload, protocols, hostile handshakes. */
#include "rig.h"

#include "base/support.h"
#include "certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT32_C(1024) * 1024)

enum {
    HOUR_S = 3600
};

static void serve(rig *r, const papers *p, sl_tls_server_options options)
{
    options.certificate_file = p->certificate;
    options.key_file = p->key;
    EXPECT_OK(sl_tls_server_new(NULL, &options, NULL, &r->server_tls));
    net_rig_listen(r);
}

static void trust(rig *r, const sl_tls_client_options *options)
{
    sl_tls_free(r->client_tls);
    r->client_tls = NULL;
    EXPECT_OK(sl_tls_client_new(NULL, options, NULL, &r->client_tls));
}

/* A server with these papers, a client that trusts them. */
static void start(rig *r, papers *p, const char *name, long seconds_left)
{
    papers_init(p, name, seconds_left);
    net_rig_init(r, NULL);
    serve(r, p, (sl_tls_server_options){ 0 });
    trust(r, &(sl_tls_client_options){ .ca_file = p->certificate });
}

static void finish(rig *r, papers *p)
{
    net_rig_done(r);
    papers_done(p);
}

TEST(tls_carries_megabytes_both_ways_with_a_reader_that_pauses)
{
    static rig r;
    papers p;
    end client = { .to_send = 10 * MIB, .pause_after = 1 * MIB };

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    r.accepted_template = (end){ .to_send = 10 * MIB };
    net_rig_connect(&r, &client);
    UNTIL(&r, client.received >= 1 * MIB && r.servers[0].received == 10 * MIB);
    for (int i = 0; i < 50; i++)
        sl_loop_turn(r.loop, false);
    EXPECT(client.received < 2 * MIB);
    EXPECT(sl_socket_get_info(r.servers[0].socket).unsent_bytes <= r.limits.unsent_bytes_max);
    while (client.received < 10 * MIB) { /* now in many small pauses */
        client.pause_after = client.received + 1;
        sl_socket_resume(client.socket);
        net_rig_turn(&r);
        EXPECT(!r.guard_rang);
    }
    EXPECT(!client.pattern_broken);
    EXPECT(!r.servers[0].pattern_broken);
    EXPECT_STR(sl_socket_get_info(client.socket).alpn, "h2");
    EXPECT_STR(sl_socket_get_info(client.socket).tls_version, "TLSv1.3");
    EXPECT(sl_socket_get_info(r.servers[0].socket).tls);
    finish(&r, &p);
}

TEST(tls_says_goodbye_and_half_closes)
{
    static rig r;
    papers p;
    end client = { .to_send = 10 };

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_end_output(client.socket);
    UNTIL(&r, r.servers[0].receive_ended);
    EXPECT_EQ(r.servers[0].received, 10);
    r.servers[0].to_send = 100000;
    sl_socket_wake(r.servers[0].socket);
    sl_socket_end_output(r.servers[0].socket);
    UNTIL(&r, client.receive_ended);
    EXPECT_EQ(client.received, 100000);
    sl_socket_close(client.socket);
    sl_socket_close(r.servers[0].socket);
    UNTIL(&r, sl_listener_connection_count(r.listener) == 0);
    EXPECT_EQ(r.counters.ended[SL_NET_END_CLOSED], 2);
    finish(&r, &p);
}

static void expect_distrust(const char *certificate_name, long seconds_left, sl_net_end reason,
                            const char *problem_part)
{
    static rig r;
    papers p;
    end client = { 0 };

    start(&r, &p, certificate_name, seconds_left);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, reason);
    if (strstr(client.problem, problem_part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", client.problem, problem_part);
    EXPECT(!client.is_open);
    UNTIL(&r, sl_listener_connection_count(r.listener) == 0);
    EXPECT_EQ(r.server_count, 0);
    EXPECT_EQ(r.counters.ended[SL_NET_END_HANDSHAKE_FAILED], 1);
    finish(&r, &p);
}

TEST(a_certificate_for_another_name_is_not_trusted)
{
    expect_distrust("IP:127.0.0.2", HOUR_S, SL_NET_END_CERTIFICATE_NAME, "IP address mismatch");
}

TEST(an_expired_certificate_is_not_trusted)
{
    expect_distrust("IP:127.0.0.1", -60, SL_NET_END_CERTIFICATE, "certificate has expired");
}

TEST(a_name_is_checked_as_a_name)
{
    static rig r;
    papers p;
    end good = { 0 }, bad = { 0 };

    if (!net_rig_knows_localhost())
        skip();
    start(&r, &p, "localhost", HOUR_S);
    net_rig_connect_to(&r, &good, "localhost", sl_listener_port(r.listener), 0);
    UNTIL(&r, good.is_open);
    net_rig_connect(&r, &bad); /* 127.0.0.1 */
    UNTIL(&r, bad.has_ended);
    EXPECT_EQ(bad.reason, SL_NET_END_CERTIFICATE_NAME);
    finish(&r, &p);
}

TEST(a_stranger_is_not_trusted_unless_everybody_is)
{
    static rig r;
    papers p;
    end strict = { 0 }, easy = { 0 };

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    trust(&r, &(sl_tls_client_options){ 0 }); /* the system does not know this certificate */
    net_rig_connect(&r, &strict);
    UNTIL(&r, strict.has_ended);
    EXPECT_EQ(strict.reason, SL_NET_END_CERTIFICATE);
    trust(&r, &(sl_tls_client_options){ .unverified = true });
    net_rig_connect(&r, &easy);
    UNTIL(&r, easy.is_open);
    finish(&r, &p);
}

/* A pipe that nobody writes to would stop the server at its next SIGHUP: reading it never ends. */
TEST(certificates_that_are_no_files_are_refused_at_once)
{
    static rig r;
    papers p;
    char text[256];
    sl_text problem;

    start(&r, &p, "localhost", HOUR_S);
    for (int i = 0; i < 4; i++) {
        const char *const file = i % 2 == 0 ? p.certificate : p.key;

        papers_renew(&p, "localhost", HOUR_S);
        EXPECT_EQ(unlink(file), 0);
        EXPECT_EQ(i < 2 ? mkfifo(file, 0600) : mkdir(file, 0700), 0);
        sl_text_init(&problem, text, sizeof text);
        EXPECT_ERR(sl_tls_reload(r.server_tls, &problem), SL_ERR_INVALID);
        EXPECT(strstr(text, file) != NULL && strstr(text, "it is no regular file") != NULL);
        EXPECT_EQ(remove(file), 0);
    }
    papers_renew(&p, "localhost", HOUR_S);
    EXPECT_EQ(truncate(p.certificate, 2 * 1024 * 1024), 0); /* all of it would be read, in the loop */
    sl_text_init(&problem, text, sizeof text);
    EXPECT_ERR(sl_tls_reload(r.server_tls, &problem), SL_ERR_INVALID);
    EXPECT(strstr(text, "it is larger than 1 MiB") != NULL);
    finish(&r, &p);
}

TEST(a_reload_is_for_new_connections_and_a_bad_file_keeps_the_old_certificate)
{
    static rig r;
    papers p;
    end old = { 0 }, renewed = { 0 }, still = { 0 };
    char buffer[300];
    sl_text problem;

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    net_rig_connect(&r, &old);
    UNTIL(&r, old.is_open && r.server_count == 1);
    papers_renew(&p, "IP:127.0.0.1", HOUR_S);
    EXPECT_OK(sl_tls_reload(r.server_tls, NULL));
    trust(&r, &(sl_tls_client_options){ .ca_file = p.certificate }); /* the new one only */
    net_rig_connect(&r, &renewed);
    UNTIL(&r, renewed.is_open || renewed.has_ended);
    EXPECT(renewed.is_open);

    papers_spoil(p.certificate, "this is no certificate\n");
    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_ERR(sl_tls_reload(r.server_tls, &problem), SL_ERR_INVALID);
    EXPECT(strstr(buffer, "no certificate could be read from '") == buffer);
    net_rig_connect(&r, &still);
    UNTIL(&r, still.is_open);
    old.to_send = 100; /* and who was there before goes on */
    sl_socket_wake(old.socket);
    UNTIL(&r, r.servers[0].received == 100);
    finish(&r, &p);
}

TEST(files_that_are_missing_or_do_not_belong_together_are_told)
{
    papers p, other;
    char buffer[300];
    sl_text problem;
    sl_tls *tls = NULL;

    papers_init(&p, "localhost", HOUR_S);
    papers_init(&other, "localhost", HOUR_S);
    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_ERR(sl_tls_server_new(NULL, &(sl_tls_server_options){ "/nowhere/at/all", p.key, false, false },
                                 &problem, &tls),
               SL_ERR_INVALID);
    EXPECT_STR(buffer, "no certificate could be read from '/nowhere/at/all': No such file or directory");
    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_ERR(sl_tls_server_new(NULL, &(sl_tls_server_options){ p.certificate, other.key, false, false },
                                 &problem, &tls),
               SL_ERR_INVALID);
    EXPECT(strstr(buffer, "key values mismatch") != NULL);
    EXPECT_ERR(sl_tls_client_new(NULL, &(sl_tls_client_options){ .ca_file = p.key }, NULL, &tls),
               SL_ERR_INVALID);
    EXPECT(tls == NULL);
    papers_done(&p);
    papers_done(&other);
}

TEST(a_context_without_memory_is_refused_and_leaves_nothing)
{
    papers p;
    sl_tls *tls = NULL;

    papers_init(&p, "localhost", HOUR_S);
    for (size_t fail_at = 1; fail_at <= 3; fail_at++) {
        test_alloc counting = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&counting);
        EXPECT_ERR(sl_tls_server_new(&alloc, &(sl_tls_server_options){ p.certificate, p.key, false, false },
                                     NULL, &tls),
                   SL_ERR_NOMEM);
        EXPECT_EQ(counting.block_count, 0);
    }
    papers_done(&p);
}

TEST(who_does_not_finish_the_handshake_is_dropped_in_time)
{
    static rig r;
    papers p;
    int fd;

    papers_init(&p, "localhost", HOUR_S);
    net_rig_init(&r, NULL);
    r.limits.handshake_timeout_ns = 10000000;
    serve(&r, &p, (sl_tls_server_options){ 0 });
    fd = raw_connect(sl_listener_port(r.listener));
    EXPECT_EQ(send(fd, "\x16\x03\x01", 3, 0), 3); /* begins like one */
    UNTIL(&r, r.counters.ended[SL_NET_END_HANDSHAKE_TIMEOUT] == 1);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 0);
    EXPECT_EQ(r.server_count, 0);
    close(fd);
    finish(&r, &p);
}

TEST(garbage_instead_of_a_handshake_is_refused)
{
    static const char *const garbage[] = { "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                           "\x16\x03\x01\xff\xff long but not so long as it says it would be",
                                           "\x15\x03\x03\x01\x02\x02\x28 an alert of a strange length" };
    static rig r;
    papers p;

    start(&r, &p, "localhost", HOUR_S);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        const int fd = raw_connect(sl_listener_port(r.listener));
        const ssize_t bytes = (ssize_t)strlen(garbage[i]);
        EXPECT_EQ(send(fd, garbage[i], (size_t)bytes, 0), bytes);
        shutdown(fd, SHUT_WR);
        UNTIL(&r, r.counters.ended[SL_NET_END_HANDSHAKE_FAILED] == i + 1);
        close(fd);
    }
    EXPECT_EQ(r.server_count, 0);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 0);
    finish(&r, &p);
}

/* Closed by the other side; does not wait for that. */
static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
}

/* Silent connections, with or without a first byte, must not keep anybody out by being there first. */
TEST(the_oldest_unfinished_handshake_makes_room_for_a_newcomer)
{
    static rig r;
    papers p;
    int fds[3];

    papers_init(&p, "localhost", HOUR_S);
    net_rig_init(&r, NULL);
    r.limits.handshakes_max = 2;
    serve(&r, &p, (sl_tls_server_options){ 0 });
    for (int i = 0; i < 3; i++)
        fds[i] = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.counters.ended[SL_NET_END_HANDSHAKES_FULL] == 1);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 2);
    EXPECT(is_closed(fds[0])); /* the oldest, and nobody else */
    EXPECT(!is_closed(fds[1]));
    trust(&r, &(sl_tls_client_options){ .unverified = true });
    for (int i = 0; i < 5;
         i++) { /* the first goes instead of the second; handshakes that are done do not count */
        end client = { 0 };
        net_rig_connect(&r, &client);
        UNTIL(&r, client.is_open);
        UNTIL(&r, r.server_count == (uint32_t)i + 1);
        sl_socket_reset(client.socket);
    }
    EXPECT_EQ(r.counters.ended[SL_NET_END_HANDSHAKES_FULL], 2);
    EXPECT(is_closed(fds[1]));
    EXPECT(!is_closed(fds[2]));
    close(fds[2]);
    UNTIL(&r, r.counters.ended[SL_NET_END_HANDSHAKE_FAILED] == 1);
    close(fds[0]);
    close(fds[1]);
    finish(&r, &p);
}

TEST(a_connection_that_is_cut_without_goodbye_is_told_as_such)
{
    static rig r;
    papers p;
    end client = { 0 };

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    r.limits.linger_timeout_ns = 0; /* closing the client cuts it */
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_close(client.socket);
    UNTIL(&r, r.servers[0].has_ended);
    EXPECT_EQ(r.servers[0].reason, SL_NET_END_TLS_CUT);
    finish(&r, &p);
}

TEST(the_protocol_is_agreed_on_as_the_owner_decides)
{
    static const struct {
        bool http1_allowed, http1_only, opens;
        const char *alpn;
    } rows[] = {
        { false, false, true, "h2" },
        { false, true, false, "" },
        { true, false, true, "h2" },
        { true, true, true, "http/1.1" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static rig r;
        papers p;
        end client = { 0 };
        papers_init(&p, "localhost", HOUR_S);
        net_rig_init(&r, NULL);
        serve(&r, &p, (sl_tls_server_options){ .http1_allowed = rows[i].http1_allowed });
        trust(&r, &(sl_tls_client_options){ .unverified = true, .http1_only = rows[i].http1_only });
        net_rig_connect(&r, &client);
        UNTIL(&r, client.has_ended || (client.is_open && r.server_count == 1));
        EXPECT_ROW(client.is_open == rows[i].opens, i);
        if (rows[i].opens)
            EXPECT_STR(sl_socket_get_info(r.servers[0].socket).alpn, rows[i].alpn);
        else
            EXPECT_ROW(strstr(client.problem, "no application protocol") != NULL, i);
        finish(&r, &p);
    }
}

TEST(closing_a_listener_cuts_handshakes_that_nobody_knows_of)
{
    static rig r;
    papers p;
    int fd;
    char byte;

    start(&r, &p, "localhost", HOUR_S);
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, sl_listener_connection_count(r.listener) == 1);
    sl_listener_free(r.listener);
    r.listener = NULL;
    EXPECT(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
    finish(&r, &p);
}

TEST(bytes_that_came_with_the_handshake_wait_for_an_owner_that_pauses_at_once)
{
    static rig r;
    papers p;
    end client = { .to_send = 1000 };

    start(&r, &p, "IP:127.0.0.1", HOUR_S);
    r.accepted_template = (end){ .pause_at_start = true };
    net_rig_connect(&r, &client);
    UNTIL(&r, r.server_count == 1 && client.sent == 1000);
    for (int i = 0; i < 20; i++)
        sl_loop_turn(r.loop, false);
    EXPECT_EQ(r.servers[0].received, 0);
    sl_socket_resume(r.servers[0].socket);
    UNTIL(&r, r.servers[0].received == 1000 || r.servers[0].has_ended);
    EXPECT_EQ(r.servers[0].received, 1000);
    EXPECT(!r.servers[0].pattern_broken);
    finish(&r, &p);
}

/* A client of OpenSSL alone, which offers no protocol. True when the handshake came to a good end. */
static bool shakes_hands_without_alpn(rig *r)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    const int fd = raw_connect(sl_listener_port(r->listener));
    int result = -1;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    SSL_set_fd(ssl, fd);
    while (result != 1) {
        result = SSL_connect(ssl);
        if (result != 1 && SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ)
            break;
        sl_loop_turn(r->loop, false);
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return result == 1;
}

TEST(a_client_that_offers_no_protocol_is_refused_only_when_one_is_required)
{
    for (int required = 0; required < 2; required++) {
        static rig r;
        papers p;
        papers_init(&p, "localhost", HOUR_S);
        net_rig_init(&r, NULL);
        serve(&r, &p, (sl_tls_server_options){ .alpn_required = required == 1 });
        EXPECT_EQ(shakes_hands_without_alpn(&r), required == 0);
        finish(&r, &p);
    }
}
