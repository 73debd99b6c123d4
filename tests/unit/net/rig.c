/* tests/unit/net/rig.c — see rig.h. */
#include "rig.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUARD_NS UINT64_C(30000000000)

static uint8_t pattern(size_t position)
{
    return (uint8_t)(position * 7 + (position >> 8) * 13 + (position >> 16));
}

static void on_open(void *ctx)
{
    ((end *)ctx)->is_open = true;
}

static void on_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    end *e = ctx;

    e->receives++;
    for (size_t i = 0; i < bytes; i++)
        e->pattern_broken |= data[i] != pattern(e->received + i);
    e->received += bytes;
    if (e->pause_after != 0 && e->received >= e->pause_after)
        sl_socket_pause(e->socket);
}

static void on_receive_end(void *ctx)
{
    end *e = ctx;

    e->receive_ended = true;
    if (e->echo_end)
        sl_socket_end_output(e->socket);
}

static size_t fill(void *ctx, uint8_t *into, size_t capacity)
{
    end *e = ctx;
    size_t bytes = e->to_send - e->sent;

    e->fills++;
    bytes = bytes < capacity ? bytes : capacity;
    if (e->fill_max != 0 && bytes > e->fill_max)
        bytes = e->fill_max;
    for (size_t i = 0; i < bytes; i++)
        into[i] = pattern(e->sent + i);
    e->sent += bytes;
    return bytes;
}

static void on_end(void *ctx, sl_net_end reason, const char *problem)
{
    end *e = ctx;

    assert_false(e->has_ended);
    e->has_ended = true;
    e->reason = reason;
    e->socket = NULL;
    strncpy(e->problem, problem, sizeof e->problem - 1);
}

const sl_socket_handler end_handler = { on_open, on_receive, on_receive_end, fill, on_end };

static void on_accept(void *ctx, sl_socket *socket)
{
    rig *r = ctx;
    end *e = &r->servers[r->server_count++];

    assert_true(r->server_count < ENDS_MAX);
    *e = r->accepted_template;
    e->socket = socket;
    e->is_open = true;
    sl_socket_set_handler(socket, &end_handler, e);
    if (e->pause_at_start)
        sl_socket_pause(socket);
}

static void on_guard(void *ctx)
{
    ((rig *)ctx)->guard_rang = true;
}

static void on_turn_end(void *ctx)
{
    ((rig *)ctx)->turn_ends++;
}

void net_rig_init(rig *r, const sl_alloc *alloc)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };

    memset(r, 0, sizeof *r);
    r->limits = sl_net_limits_default;
    EXPECT_OK(sl_loop_new(alloc, &handler, r, &r->loop));
    sl_timer_init(&r->guard, r->loop, on_guard, r);
    sl_timer_set(&r->guard, sl_loop_now_ns(r->loop) + GUARD_NS);
}

void net_rig_listen(rig *r)
{
    const sl_listen_options options = { .host = SL_STR("127.0.0.1"),
                                        .limits = &r->limits,
                                        .counters = &r->counters,
                                        .tls = r->server_tls,
                                        .on_accept = on_accept,
                                        .ctx = r };

    EXPECT_OK(sl_listener_new(r->loop, &options, NULL, &r->listener));
    EXPECT(sl_listener_port(r->listener) != 0);
}

void net_rig_connect_to(rig *r, end *client, const char *host, uint16_t port, uint64_t timeout_ns)
{
    const sl_connect_options options = { .host = sl_str_from(host),
                                         .port = port,
                                         .timeout_ns = timeout_ns,
                                         .limits = &r->limits,
                                         .counters = &r->counters,
                                         .tls = r->client_tls,
                                         .handler = &end_handler,
                                         .ctx = client };

    EXPECT_OK(sl_socket_connect(r->loop, &options, &client->socket));
    EXPECT(!client->is_open);
    EXPECT(!client->has_ended);
}

void net_rig_connect(rig *r, end *client)
{
    net_rig_connect_to(r, client, "127.0.0.1", sl_listener_port(r->listener), 0);
}

void net_rig_turn(rig *r)
{
    sl_loop_turn(r->loop, true);
}

void net_rig_done(rig *r)
{
    sl_timer_stop(&r->guard);
    sl_listener_free(r->listener);
    sl_loop_free(r->loop);
    sl_tls_free(r->server_tls);
    sl_tls_free(r->client_tls);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

int raw_listen(int backlog, uint16_t *ret_port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    assert_true(backlog < 0 || listen(fd, backlog) == 0);
    assert_true(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

int raw_connect(uint16_t port)
{
    const struct sockaddr_in address = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

bool net_rig_knows_localhost(void)
{
    struct addrinfo *found = NULL;
    const bool known = getaddrinfo("localhost", NULL, NULL, &found) == 0;

    if (known)
        freeaddrinfo(found);
    return known;
}
