/* Tests of net/socket.h: bytes both ways, back-pressure, half close, reset, stall, linger. */
#include "rig.h"

#include "base/support.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (UINT32_C(1024) * 1024)

static void both_ways(rig *r)
{
    end client = { .to_send = 10 * MIB, .pause_after = 3 * MIB };

    r->accepted_template = (end){ .to_send = 10 * MIB };
    net_rig_listen(r);
    net_rig_connect(r, &client);
    UNTIL(r, client.received >= client.pause_after && r->servers[0].received == 10 * MIB);
    /* The reader stands still: turn until the writer does too, then see that it is not asked for more. */
    UNTIL(r, sl_socket_get_info(r->servers[0].socket).unsent_bytes > 0 || r->servers[0].sent == 10 * MIB);
    const size_t paused_at = client.received;
    for (int i = 0; i < 50; i++)
        sl_loop_turn(r->loop, false);
    EXPECT_EQ(client.received, paused_at);
    EXPECT(sl_socket_get_info(r->servers[0].socket).unsent_bytes <= r->limits.unsent_bytes_max);
    client.pause_after = 0;
    sl_socket_resume(client.socket);
    UNTIL(r, client.received == 10 * MIB);
    EXPECT(!client.pattern_broken);
    EXPECT(!r->servers[0].pattern_broken);
    EXPECT_EQ(sl_socket_get_info(client.socket).unsent_bytes, 0);
    sl_socket_close(client.socket);
    UNTIL(r, r->servers[0].receive_ended);
    sl_socket_close(r->servers[0].socket);
    UNTIL(r, sl_listener_connection_count(r->listener) == 0);
}

TEST(ten_megabytes_go_both_ways_with_a_reader_that_pauses)
{
    static rig r;
    test_alloc counting = { 0 };
    const sl_alloc alloc = test_alloc_use(&counting);

    net_rig_init(&r, &alloc);
    both_ways(&r);
    EXPECT(r.counters.sends < 20 * MIB / 16384); /* large writes */
    EXPECT(r.counters.bytes_sent == 20 * MIB);
    net_rig_done(&r);
    EXPECT_EQ(counting.block_count, 0);
}

TEST(a_receiver_that_stops_costs_the_sender_no_more_than_one_buffer)
{
    static rig r;
    test_alloc counting = { 0 };
    const sl_alloc alloc = test_alloc_use(&counting);
    size_t idle_bytes;
    int fd;

    net_rig_init(&r, &alloc);
    net_rig_listen(&r);
    idle_bytes = counting.byte_count;
    r.accepted_template = (end){ .to_send = 1024 * (size_t)MIB };
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 1 && sl_socket_get_info(r.servers[0].socket).unsent_bytes > 0);
    for (int i = 0; i < 50; i++)
        sl_loop_turn(r.loop, false);
    EXPECT(counting.byte_count - idle_bytes < r.limits.unsent_bytes_max + 64 * 1024);
    EXPECT(r.servers[0].sent < 64 * (size_t)MIB);
    sl_socket_reset(r.servers[0].socket);
    close(fd);
    net_rig_done(&r);
}

TEST(many_small_wakes_in_one_turn_make_one_write)
{
    static rig r;
    end client = { 0 };
    uint64_t sends;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1 && r.servers[0].fills > 0);
    sends = r.counters.sends;
    for (int i = 0; i < 10; i++) {
        client.to_send += 100;
        sl_socket_wake(client.socket);
    }
    UNTIL(&r, r.servers[0].received == 1000);
    EXPECT_EQ(r.counters.sends, sends + 1);
    EXPECT_EQ(r.servers[0].receives, 1);
    net_rig_done(&r);
}

TEST(two_hundred_connections_are_served_together)
{
    static rig r;
    static end clients[200];

    net_rig_init(&r, NULL);
    r.accepted_template = (end){ .to_send = 5000 };
    net_rig_listen(&r);
    for (int i = 0; i < 200; i++) {
        clients[i] = (end){ .to_send = 3000 };
        net_rig_connect(&r, &clients[i]);
    }
    for (int i = 0; i < 200; i++)
        UNTIL(&r, clients[i].received == 5000);
    for (uint32_t i = 0; i < 200; i++)
        UNTIL(&r, r.servers[i].received == 3000);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 200);
    EXPECT_EQ(r.counters.accepted, 200);
    EXPECT_EQ(r.counters.connected, 200);
    for (int i = 0; i < 200; i++)
        sl_socket_close(clients[i].socket);
    for (uint32_t i = 0; i < 200; i++)
        UNTIL(&r, r.servers[i].receive_ended);
    for (uint32_t i = 0; i < 200; i++)
        sl_socket_close(r.servers[i].socket);
    UNTIL(&r, sl_listener_connection_count(r.listener) == 0);
    net_rig_done(&r);
}

TEST(a_side_that_has_ended_its_output_still_receives)
{
    static rig r;
    end client = { .to_send = 10 };

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_end_output(client.socket);
    UNTIL(&r, r.servers[0].receive_ended);
    EXPECT_EQ(r.servers[0].received, 10); /* the end comes after the last byte */
    r.servers[0].to_send = 1 * MIB;
    sl_socket_wake(r.servers[0].socket);
    UNTIL(&r, client.received == 1 * MIB);
    sl_socket_end_output(r.servers[0].socket);
    UNTIL(&r, client.receive_ended);
    net_rig_done(&r);
}

TEST(a_reset_is_told_as_one)
{
    static rig r;
    end client = { 0 };

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_reset(r.servers[0].socket);
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, SL_NET_END_RESET);
    EXPECT_STR(client.problem, "the peer reset the connection");
    EXPECT(!r.servers[0].has_ended); /* who does it is not told */
    EXPECT_EQ(r.counters.ended[SL_NET_END_RESET], 1);
    EXPECT_EQ(r.counters.ended[SL_NET_END_CLOSED], 1);
    net_rig_done(&r);
}

TEST(a_reset_reaches_a_side_that_has_paused)
{
    static rig r;
    end client = { 0 };

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_pause(client.socket);
    net_rig_turn(&r);
    sl_socket_reset(r.servers[0].socket);
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, SL_NET_END_RESET);
    net_rig_done(&r);
}

TEST(a_pause_holds_back_the_end_too)
{
    static rig r;
    end client = { 0 };

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_socket_pause(client.socket);
    r.servers[0].to_send = 10;
    sl_socket_end_output(r.servers[0].socket);
    UNTIL(&r, r.servers[0].sent == 10);
    for (int i = 0; i < 20; i++)
        sl_loop_turn(r.loop, false);
    EXPECT_EQ(client.received, 0);
    EXPECT(!client.receive_ended);
    sl_socket_resume(client.socket);
    UNTIL(&r, client.receive_ended);
    EXPECT_EQ(client.received, 10);
    net_rig_done(&r);
}

TEST(a_peer_that_takes_nothing_is_dropped_in_the_end)
{
    static rig r;
    int fd;

    net_rig_init(&r, NULL);
    r.limits.stall_timeout_ns = 20000000;
    r.accepted_template = (end){ .to_send = 1024 * (size_t)MIB };
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 1 && r.servers[0].has_ended);
    EXPECT_EQ(r.servers[0].reason, SL_NET_END_STALLED);
    EXPECT_EQ(r.counters.ended[SL_NET_END_STALLED], 1);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 0);
    close(fd);
    net_rig_done(&r);
}

TEST(closing_delivers_what_was_handed_over)
{
    static rig r;
    end client = { 0 };
    size_t handed_over;

    net_rig_init(&r, NULL);
    r.accepted_template = (end){ .to_send = 64 * (size_t)MIB };
    client.pause_after = 1;
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, r.server_count == 1 && sl_socket_get_info(r.servers[0].socket).unsent_bytes > 0);
    handed_over = r.servers[0].sent;
    sl_socket_close(r.servers[0].socket);
    client.pause_after = 0;
    sl_socket_resume(client.socket);
    UNTIL(&r, client.receive_ended);
    EXPECT_EQ(client.received, handed_over);
    EXPECT_EQ(r.servers[0].sent, handed_over); /* and nothing more was asked for */
    EXPECT_EQ(sl_listener_connection_count(r.listener), 1);
    sl_socket_close(client.socket);
    UNTIL(&r, sl_listener_connection_count(r.listener) == 0);
    EXPECT(!r.servers[0].has_ended);
    net_rig_done(&r);
}

TEST(lingering_ends_in_time_when_the_peer_does_not_close)
{
    static rig r;
    int fd;

    net_rig_init(&r, NULL);
    r.limits.linger_timeout_ns = 5000000;
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 1);
    sl_socket_close(r.servers[0].socket);
    UNTIL(&r, sl_listener_connection_count(r.listener) == 0);
    EXPECT_EQ(r.counters.ended[SL_NET_END_CLOSED], 1);
    close(fd);
    net_rig_done(&r);
}

TEST(lingering_ends_when_the_peer_never_stops_talking)
{
    static rig r;
    end client = { .to_send = 256 * (size_t)MIB };

    net_rig_init(&r, NULL);
    r.limits.linger_timeout_ns = UINT64_C(60000000000);
    r.limits.linger_bytes_max = 100000;
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, r.server_count == 1);
    sl_socket_close(r.servers[0].socket);
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, SL_NET_END_RESET);
    EXPECT_EQ(sl_listener_connection_count(r.listener), 0);
    net_rig_done(&r);
}

TEST(what_the_peer_said_before_it_hung_up_is_received_before_the_end)
{
    static rig r;
    const struct linger reset = { 1, 0 };
    static const uint8_t zero[1] = { 0 }; /* the first byte of the pattern */
    int fd;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 1 && r.servers[0].fills > 0);
    EXPECT_EQ(send(fd, zero, 1, 0), 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    r.servers[0].to_send = 1000;
    sl_socket_wake(r.servers[0].socket);
    UNTIL(&r, r.servers[0].has_ended);
    EXPECT_EQ(r.servers[0].received, 1);
    EXPECT_EQ(r.servers[0].reason, SL_NET_END_RESET);
    net_rig_done(&r);
}

TEST(a_connection_knows_its_peer_and_how_long_it_is_idle)
{
    static rig r;
    end client = { .to_send = 1 };
    sl_socket_info info;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, r.server_count == 1 && r.servers[0].received == 1);
    info = sl_socket_get_info(r.servers[0].socket);
    EXPECT_EQ(strncmp(info.peer, "127.0.0.1:", 10), 0);
    EXPECT(info.received_ns >= info.opened_ns);
    EXPECT_EQ(info.bytes_received, 1);
    EXPECT(!info.tls);
    EXPECT_STR(info.alpn, "");
    net_rig_done(&r);
}

/* --- acknowledgements ---
 *
 * How soon the system acknowledges is its own affair and a matter of milliseconds, which no test can rely on. What can be seen is
 * the wish: Linux tells whether a connection is in the state in which it acknowledges at once. */

#ifdef TCP_QUICKACK

/* The descriptor of this process that is connected to `fd`. */
static int far_end_of(int fd)
{
    struct sockaddr_in own = { 0 }, peer = { 0 };
    socklen_t bytes = sizeof own;

    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    for (int other = 3; other < 1024; other++) {
        bytes = sizeof peer;
        if (other != fd && getpeername(other, (struct sockaddr *)&peer, &bytes) == 0 &&
            peer.sin_family == AF_INET && peer.sin_port == own.sin_port)
            return other;
    }
    fail_msg("nobody is connected to it");
    return -1;
}

static int acknowledges_at_once(int fd)
{
    int value = -1;
    socklen_t bytes = sizeof value;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &value, &bytes), 0);
    return value;
}

static void say_byte(rig *r, int fd)
{
    static const uint8_t zero[1] = { 0 };
    const size_t wanted = r->servers[0].received + 1;

    EXPECT_EQ(send(fd, zero, 1, 0), 1);
    UNTIL(r, r->servers[0].received == wanted);
}

static void hear_byte(rig *r, int fd)
{
    uint8_t byte;

    r->servers[0].to_send++;
    sl_socket_wake(r->servers[0].socket);
    UNTIL(r, r->servers[0].sent == r->servers[0].to_send);
    EXPECT_EQ(recv(fd, &byte, 1, 0), 1);
}

TEST(what_came_is_acknowledged_at_once_when_the_turn_sends_nothing_back)
{
    static rig r;
    int fd;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 1);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5; i++) { /* a conversation: the system begins to wait for answers */
            say_byte(&r, fd);
            hear_byte(&r, fd);
        }
        if (acknowledges_at_once(far_end_of(fd)))
            break; /* not this system; there is nothing to be seen */
        say_byte(&r, fd);
        EXPECT_EQ(acknowledges_at_once(far_end_of(fd)), 1);
    }
    EXPECT(!r.servers[0].has_ended);
    close(fd);
    net_rig_done(&r);
}

#endif
