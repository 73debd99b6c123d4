/* Tests of net/listener.h: limits, pausing, closing, addresses. */
#include "rig.h"

#include "base/support.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void no_accept(void *ctx, sl_socket *socket)
{
    (void)ctx;
    sl_socket_reset(socket);
}

static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, 0) <= 0;
}

TEST(beyond_the_limit_a_connection_is_refused_at_once_and_counted)
{
    static rig r;
    int fds[3];

    net_rig_init(&r, NULL);
    r.limits.connections_max = 2;
    net_rig_listen(&r);
    for (int i = 0; i < 3; i++)
        fds[i] = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.counters.ended[SL_NET_END_CONNECTIONS_FULL] == 1);
    EXPECT_EQ(r.server_count, 2);
    EXPECT(is_closed(fds[2]));
    sl_socket_reset(r.servers[0].socket); /* makes room */
    close(fds[2]);
    fds[2] = raw_connect(sl_listener_port(r.listener));
    UNTIL(&r, r.server_count == 3);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    net_rig_done(&r);
}

TEST(a_paused_listener_lets_connections_wait)
{
    static rig r;
    int fd;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    sl_listener_pause(r.listener);
    fd = raw_connect(sl_listener_port(r.listener));
    for (int i = 0; i < 10; i++)
        sl_loop_turn(r.loop, false);
    EXPECT_EQ(r.server_count, 0);
    sl_listener_resume(r.listener);
    UNTIL(&r, r.server_count == 1);
    close(fd);
    net_rig_done(&r);
}

TEST(closing_a_listener_leaves_its_connections_alone)
{
    static rig r;
    end client = { 0 }, late = { 0 };
    uint16_t port;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    port = sl_listener_port(r.listener);
    net_rig_connect(&r, &client);
    UNTIL(&r, client.is_open && r.server_count == 1);
    sl_listener_free(r.listener);
    r.listener = NULL;
    net_rig_connect_to(&r, &late, "127.0.0.1", port, 0);
    UNTIL(&r, late.has_ended);
    EXPECT_EQ(late.reason, SL_NET_END_REFUSED);
    client.to_send = 100;
    sl_socket_wake(client.socket);
    UNTIL(&r, r.servers[0].received == 100);
    net_rig_done(&r);
}

TEST(a_port_that_is_taken_and_an_address_that_is_not_ours_are_told_apart)
{
    static rig r;
    char buffer[200];
    sl_text problem;
    sl_listener *second = NULL;
    sl_listen_options options = { .host = SL_STR("127.0.0.1"), .on_accept = no_accept };

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    options.port = sl_listener_port(r.listener);
    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_ERR(sl_listener_new(r.loop, &options, &problem, &second), SL_ERR_EXISTS);
    EXPECT_STR(buffer, "127.0.0.1: Address already in use");
    options = (sl_listen_options){ .host = SL_STR("192.0.2.1"), .on_accept = no_accept };
    EXPECT_ERR(sl_listener_new(r.loop, &options, NULL, &second), SL_ERR_INVALID);
    options.host = SL_STR("no such name");
    EXPECT_ERR(sl_listener_new(r.loop, &options, NULL, &second), SL_ERR_INVALID);
    options.host = SL_STR("a\0b");
    EXPECT_ERR(sl_listener_new(r.loop, &options, NULL, &second), SL_ERR_INVALID);
    EXPECT(second == NULL);
    net_rig_done(&r);
}

TEST(all_addresses_means_both_kinds)
{
    static rig r;
    end four = { 0 }, six = { 0 };
    const sl_listen_options options = { .on_accept = no_accept };

    net_rig_init(&r, NULL);
    EXPECT_OK(sl_listener_new(r.loop, &options, NULL, &r.listener));
    net_rig_connect_to(&r, &four, "127.0.0.1", sl_listener_port(r.listener), 0);
    UNTIL(&r, four.has_ended);
    EXPECT_EQ(four.reason, SL_NET_END_RESET);
    net_rig_connect_to(&r, &six, "::1", sl_listener_port(r.listener), 0);
    UNTIL(&r, six.has_ended); /* a machine may be without IPv6 */
    EXPECT(six.reason == SL_NET_END_RESET || six.reason == SL_NET_END_UNREACHABLE);
    net_rig_done(&r);
}

TEST(without_free_descriptors_a_listener_waits_and_goes_on)
{
    static rig r;
    struct rlimit before, tight;
    int fd;

    net_rig_init(&r, NULL);
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)fd; /* the next descriptor would be beyond it */
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    sl_loop_turn(r.loop, true);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(r.counters.ended[SL_NET_END_OPEN_FILES], 1);
    EXPECT_EQ(r.server_count, 0);
    UNTIL(&r, r.server_count == 1);
    close(fd);
    net_rig_done(&r);
}

TEST(a_connection_without_memory_is_refused_and_counted)
{
    static rig r;
    test_alloc counting = { 0 };
    const sl_alloc alloc = test_alloc_use(&counting);
    const sl_connect_options options = { .host = SL_STR("127.0.0.1"), .port = 1, .handler = &end_handler };
    sl_socket *socket = NULL;
    int fd;

    net_rig_init(&r, &alloc);
    net_rig_listen(&r);
    fd = raw_connect(sl_listener_port(r.listener));
    counting.fail_at = counting.call_count + 1;
    UNTIL(&r, r.counters.ended[SL_NET_END_NOMEM] == 1);
    EXPECT(is_closed(fd));
    counting.fail_at = counting.call_count + 1;
    EXPECT_ERR(sl_socket_connect(r.loop, &options, &socket), SL_ERR_NOMEM);
    close(fd);
    net_rig_done(&r);
    EXPECT_EQ(counting.block_count, 0);
}

TEST(unsent_bytes_without_memory_end_the_connection_and_no_other)
{
    static rig r;
    test_alloc counting = { 0 };
    const sl_alloc alloc = test_alloc_use(&counting);
    end client = { .pause_after = 1 };

    net_rig_init(&r, &alloc);
    r.accepted_template = (end){ .to_send = 64 << 20 };
    net_rig_listen(&r);
    net_rig_connect(&r, &client);
    UNTIL(&r, r.server_count == 1);
    counting.fail_at = counting.call_count + 1; /* the next is the buffer for what the system does not take */
    UNTIL(&r, r.servers[0].has_ended);
    EXPECT_EQ(r.servers[0].reason, SL_NET_END_NOMEM);
    net_rig_done(&r);
    EXPECT_EQ(counting.block_count, 0);
}
