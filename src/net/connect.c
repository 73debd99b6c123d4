/* net/connect.c — making a connection: find the addresses of a name, try one after the other.
 *
 * Each address gets an equal share of the time that is left, so that a dead first one (often IPv6) does not use up
 * what the others need. The reason that is told in the end is that of the last address. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* libuv's handle is bound to the number of its descriptor, so the next attempt takes over the number. */
static sl_err use_fd(sl_socket *socket, int fd)
{
    if (!socket->poll_made)
        return sl_socket_adopt_fd(socket, fd);
    uv_poll_stop(&socket->poll);
    socket->watched = 0;
    if (dup3(fd, socket->fd, O_CLOEXEC) < 0)
        return SL_ERR_IO;
    close(fd);
    return SL_OK;
}

static void set_share_of_time(sl_socket *socket)
{
    const uint64_t now_ns = sl_loop_now_ns(socket->loop);
    const uint64_t by_ns = socket->connect_by_ns;
    const uint64_t left = socket->address_count - socket->address_next + 1; /* with the one being tried */

    if (by_ns != 0)
        sl_timer_set(&socket->timer, by_ns <= now_ns ? now_ns : now_ns + (by_ns - now_ns) / left);
    else
        sl_timer_stop(&socket->timer);
}

static int open_fd(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* True when an answer will come. */
static bool try_address(sl_socket *socket, const struct sockaddr_storage *address)
{
    const int fd = open_fd(address->ss_family);

    if (fd < 0) {
        socket->connect_problem = sl_net_end_from_errno(errno);
        return false;
    }
    if (connect(fd, (const struct sockaddr *)address, sl_address_bytes(address)) != 0 &&
        errno != EINPROGRESS) {
        socket->connect_problem = sl_net_end_from_errno(errno);
        close(fd);
        return false;
    }
    if (use_fd(socket, fd) != SL_OK) {
        socket->connect_problem = SL_NET_END_SYSTEM;
        close(fd);
        return false;
    }
    return true;
}

static void try_next(sl_socket *socket)
{
    while (socket->address_next < socket->address_count) {
        if (!try_address(socket, &socket->addresses[socket->address_next++]))
            continue;
        socket->state = SL_SOCKET_CONNECTING;
        set_share_of_time(socket);
        sl_socket_watch(socket);
        return;
    }
    sl_socket_fail(socket, socket->connect_problem, socket->host);
}

void sl_connect_answered(sl_socket *socket)
{
    int number = 0;
    socklen_t bytes = sizeof number;

    (void)getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &number, &bytes);
    if (number == 0) {
        sl_address_text(&socket->addresses[socket->address_next - 1], socket->info.peer,
                        sizeof socket->info.peer);
        sl_socket_begin(socket);
        return;
    }
    socket->connect_problem =
        number == ETIMEDOUT ? SL_NET_END_CONNECT_TIMEOUT : sl_net_end_from_errno(number);
    try_next(socket);
}

/* Its first ring is the start of a connection to an address that needs no lookup. */
void sl_connect_timer(sl_socket *socket)
{
    const bool is_start = socket->state == SL_SOCKET_RESOLVING && socket->address_count > 0;
    const bool is_late = socket->connect_by_ns != 0 && sl_loop_now_ns(socket->loop) >= socket->connect_by_ns;

    if (!is_start)
        socket->connect_problem = SL_NET_END_CONNECT_TIMEOUT;
    if (is_start || !is_late)
        try_next(socket);
    else
        sl_socket_fail(socket, SL_NET_END_CONNECT_TIMEOUT, socket->host);
}

/* --- names --- */

static void free_lookup(sl_lookup *lookup)
{
    sl_alloc_give(lookup->loop->alloc, lookup, sizeof *lookup);
}

static void keep_addresses(sl_socket *socket, const struct addrinfo *found)
{
    for (; found != NULL && socket->address_count < SL_ADDRESSES_MAX; found = found->ai_next) {
        struct sockaddr_storage *address = &socket->addresses[socket->address_count];
        if (found->ai_family != AF_INET && found->ai_family != AF_INET6)
            continue;
        memcpy(address, found->ai_addr, found->ai_addrlen);
        sl_address_set_port(address, socket->port);
        socket->address_count++;
    }
}

static void looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    sl_lookup *lookup = SL_CONTAINER_OF(request, sl_lookup, request);
    sl_socket *socket = lookup->socket;

    free_lookup(lookup);
    if (socket != NULL) {
        socket->lookup = NULL;
        keep_addresses(socket, found);
        if (socket->address_count > 0)
            try_next(socket);
        else
            sl_socket_fail(socket, SL_NET_END_NAME_UNKNOWN, socket->host);
    }
    (void)status; /* without an address it failed, whatever it says */
    uv_freeaddrinfo(found);
}

void sl_connect_forget_lookup(sl_socket *socket)
{
    if (socket->lookup == NULL)
        return;
    socket->lookup->socket = NULL;
    (void)uv_cancel((uv_req_t *)&socket->lookup->request); /* one that runs already ends by itself */
    socket->lookup = NULL;
}

static sl_err look_up(sl_socket *socket)
{
    static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    sl_loop *loop = socket->loop;
    sl_lookup *lookup = sl_alloc_take(loop->alloc, sizeof *lookup);

    if (lookup == NULL)
        return SL_ERR_NOMEM;
    *lookup = (sl_lookup){ .loop = loop, .socket = socket };
    if (uv_getaddrinfo(&loop->uv, &lookup->request, looked_up, socket->host, NULL, &hints) != 0) {
        free_lookup(lookup);
        return SL_ERR_INVALID; /* a name that cannot be one */
    }
    socket->lookup = lookup;
    if (socket->connect_by_ns != 0)
        sl_timer_set(&socket->timer, socket->connect_by_ns);
    return SL_OK;
}

static sl_err start(sl_socket *socket)
{
    if (!sl_address_parse(socket->host, socket->port, &socket->addresses[0]))
        return look_up(socket);
    socket->address_count = 1;
    sl_timer_set(&socket->timer, 0); /* the first chance outside of this call */
    return SL_OK;
}

static void fill_in(sl_socket *socket, const sl_connect_options *options)
{
    memcpy(socket->host, options->host.data, options->host.bytes);
    socket->port = options->port;
    socket->tls = options->tls;
    socket->connect_problem = SL_NET_END_NAME_UNKNOWN;
    if (options->timeout_ns != 0)
        socket->connect_by_ns = sl_add_sat_u64(sl_loop_now_ns(socket->loop), options->timeout_ns);
    sl_socket_set_handler(socket, options->handler, options->ctx);
}

sl_err sl_socket_connect(sl_loop *loop, const sl_connect_options *options, sl_socket **ret_socket)
{
    const sl_str host = options->host;
    sl_socket *socket;
    sl_err err;

    if (host.bytes == 0 || host.bytes > SL_HOST_BYTES_MAX || options->port == 0 ||
        sl_str_find(host, '\0') != host.bytes)
        return SL_ERR_INVALID;
    socket = sl_socket_make(loop, options->limits == NULL ? &sl_net_limits_default : options->limits,
                            options->counters);
    if (socket == NULL)
        return SL_ERR_NOMEM;
    fill_in(socket, options);
    err = start(socket);
    if (err == SL_OK)
        *ret_socket = socket;
    else
        sl_socket_abandon(socket);
    return err;
}
