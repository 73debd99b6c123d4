/* Tests of sl_socket_connect(): refusals, time-outs, names. */
#include "rig.h"

#include <string.h>
#include <unistd.h>

TEST(a_port_where_nobody_listens_refuses)
{
    static rig r;
    end client = { 0 };
    uint16_t port;
    const int fd = raw_listen(-1, &port); /* bound, so that nobody else gets it, but not listening */

    net_rig_init(&r, NULL);
    net_rig_connect_to(&r, &client, "127.0.0.1", port, 0);
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, SL_NET_END_REFUSED);
    EXPECT_STR(client.problem, "the connection was refused: nobody listens there: 127.0.0.1");
    EXPECT_EQ(r.counters.ended[SL_NET_END_REFUSED], 1);
    EXPECT(!client.is_open);
    close(fd);
    net_rig_done(&r);
}

TEST(a_peer_that_does_not_answer_is_given_up_in_time)
{
    static rig r;
    end clients[8];
    uint16_t port;
    const int fd = raw_listen(0, &port); /* its backlog takes one or two; the rest gets no answer */
    size_t late = 0;

    net_rig_init(&r, NULL);
    for (int i = 0; i < 8; i++) {
        clients[i] = (end){ 0 };
        net_rig_connect_to(&r, &clients[i], "127.0.0.1", port, 30000000);
    }
    for (int i = 0; i < 8; i++) {
        UNTIL(&r, clients[i].has_ended || clients[i].is_open);
        if (!clients[i].has_ended)
            continue;
        EXPECT_EQ(clients[i].reason, SL_NET_END_CONNECT_TIMEOUT);
        late++;
    }
    EXPECT(late >= 4);
    EXPECT_EQ(r.counters.ended[SL_NET_END_CONNECT_TIMEOUT], late);
    close(fd);
    net_rig_done(&r);
}

TEST(a_name_is_resolved_and_its_addresses_are_tried_in_turn)
{
    static rig r;
    end client = { .to_send = 5 };

    if (!net_rig_knows_localhost())
        skip();
    net_rig_init(&r, NULL);
    net_rig_listen(&r); /* on IPv4 only: where localhost is ::1 too, that one refuses first */
    net_rig_connect_to(&r, &client, "localhost", sl_listener_port(r.listener), UINT64_C(20000000000));
    UNTIL(&r, r.server_count == 1 && r.servers[0].received == 5);
    EXPECT(client.is_open);
    EXPECT_EQ(strncmp(sl_socket_get_info(client.socket).peer, "127.0.0.1:", 10), 0);
    net_rig_done(&r);
}

TEST(a_name_that_does_not_exist_is_told)
{
    static rig r;
    end client = { 0 };

    net_rig_init(&r, NULL);
    net_rig_connect_to(&r, &client, "no such name", 1, UINT64_C(20000000000));
    UNTIL(&r, client.has_ended);
    EXPECT_EQ(client.reason, SL_NET_END_NAME_UNKNOWN);
    net_rig_done(&r);
}

TEST(closing_while_a_name_is_looked_up_is_silent)
{
    static rig r;
    end client = { 0 }, other = { 0 };

    net_rig_init(&r, NULL);
    net_rig_connect_to(&r, &client, "localhost", 1, 0);
    sl_socket_close(client.socket);
    net_rig_connect_to(&r, &other, "127.0.0.1", 1, 0);
    sl_socket_close(other.socket);
    sl_loop_turn(r.loop, false);
    EXPECT(!client.has_ended);
    EXPECT_EQ(r.counters.ended[SL_NET_END_CLOSED], 2);
    net_rig_done(&r);
}

TEST(a_host_that_cannot_be_one_is_refused_at_once)
{
    static rig r;
    static char longest[300];
    sl_socket *socket = NULL;
    sl_connect_options options = { .host = SL_STR("a\0b"), .port = 1, .handler = &end_handler };

    net_rig_init(&r, NULL);
    EXPECT_ERR(sl_socket_connect(r.loop, &options, &socket), SL_ERR_INVALID);
    options.host = SL_STR("");
    EXPECT_ERR(sl_socket_connect(r.loop, &options, &socket), SL_ERR_INVALID);
    memset(longest, 'a', sizeof longest);
    options.host = (sl_str){ longest, sizeof longest };
    EXPECT_ERR(sl_socket_connect(r.loop, &options, &socket), SL_ERR_INVALID);
    options = (sl_connect_options){ .host = SL_STR("127.0.0.1"), .port = 0, .handler = &end_handler };
    EXPECT_ERR(sl_socket_connect(r.loop, &options, &socket), SL_ERR_INVALID);
    EXPECT(socket == NULL);
    net_rig_done(&r);
}
