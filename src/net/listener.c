/* net/listener.c — accepts what comes, up to its limits, and refuses the rest at once.
 *
 * Beyond the limit a connection is accepted and closed: left in the backlog, its peer would wait for a time-out
 * instead of trying another server. Where too many handshakes are under way it is the oldest of them that goes and not the
 * newcomer: an honest client needs two round trips, so the oldest is most likely one that never meant to finish, and
 * silent connections cannot keep others out by being there first. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_RETRY_NS UINT64_C(100000000)

static void on_ready(uv_poll_t *poll, int status, int events);

static void start_accepting(void *ctx)
{
    sl_listener *listener = ctx;

    if (!listener->paused)
        uv_poll_start(&listener->poll, UV_READABLE, on_ready);
}

/* --- accepting --- */

static void count_refusal(const sl_listener *listener, sl_net_end end)
{
    if (listener->counters != NULL)
        listener->counters->ended[end]++;
}

static void end_handshake(sl_listener *listener, sl_socket *socket)
{
    if (sl_list_empty(&socket->handshake_node))
        return; /* it was over before, or there was none */
    sl_list_remove(&socket->handshake_node);
    listener->handshake_count--;
}

void sl_listener_forget(sl_listener *listener, sl_socket *socket)
{
    listener->connection_count--;
    end_handshake(listener, socket);
}

void sl_listener_opened(sl_listener *listener, sl_socket *socket)
{
    end_handshake(listener, socket);
    listener->on_accept(listener->ctx, socket);
}

static sl_net_end refusal(const sl_listener *listener)
{
    if (listener->connection_count >= listener->limits.connections_max)
        return SL_NET_END_CONNECTIONS_FULL;
    if (listener->tls != NULL && listener->limits.handshakes_max == 0)
        return SL_NET_END_HANDSHAKES_FULL;
    return SL_NET_END_NONE;
}

static void make_room(sl_listener *listener)
{
    if (listener->handshake_count >= listener->limits.handshakes_max)
        sl_socket_vanish(SL_CONTAINER_OF(sl_list_first(&listener->handshakes), sl_socket, handshake_node),
                         SL_NET_END_HANDSHAKES_FULL);
}

static void begin(sl_listener *listener, sl_socket *socket, const struct sockaddr_storage *peer)
{
    sl_address_text(peer, socket->info.peer, sizeof socket->info.peer);
    socket->listener = listener;
    socket->tls = listener->tls;
    listener->connection_count++;
    if (listener->tls != NULL) {
        make_room(listener);
        sl_list_push_back(&listener->handshakes, &socket->handshake_node);
        listener->handshake_count++;
    }
    sl_socket_begin(socket);
}

static void welcome(sl_listener *listener, int fd, const struct sockaddr_storage *peer)
{
    const sl_net_end refused = refusal(listener);
    sl_socket *socket;

    if (refused != SL_NET_END_NONE) {
        close(fd);
        count_refusal(listener, refused);
        return;
    }
    socket = sl_socket_make(listener->loop, &listener->limits, listener->counters);
    if (socket == NULL) {
        close(fd);
        count_refusal(listener, SL_NET_END_NOMEM);
    } else if (sl_socket_adopt_fd(socket, fd) != SL_OK) {
        close(fd);
        sl_socket_vanish(socket, SL_NET_END_SYSTEM);
    } else {
        begin(listener, socket, peer);
    }
}

/* Without a free descriptor the connection stays in the backlog and the listener stays ready: asking again at once
 * would only burn the processor. */
static void no_descriptor(sl_listener *listener, int number)
{
    count_refusal(listener, sl_net_end_from_errno(number));
    uv_poll_stop(&listener->poll);
    sl_timer_set(&listener->retry, sl_loop_now_ns(listener->loop) + ACCEPT_RETRY_NS);
}

static bool is_lack(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    sl_listener *listener = poll->data;

    (void)status;
    (void)events;
    for (uint32_t i = 0; i < listener->limits.accepts_per_turn && !uv_is_closing((uv_handle_t *)poll); i++) {
        struct sockaddr_storage peer = { 0 };
        socklen_t bytes = sizeof peer;
        const int fd = accept4(listener->fd, (struct sockaddr *)&peer, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            welcome(listener, fd, &peer);
        } else if (is_lack(errno)) {
            no_descriptor(listener, errno);
            return;
        } else if (errno == EAGAIN) {
            return;
        } /* else this one connection is broken already: the next */
        if (listener->paused)
            return;
    }
}

/* --- listening --- */

static sl_err explain(sl_text *problem, const char *what, int number)
{
    if (problem != NULL) {
        sl_text_add(problem, what);
        sl_text_add(problem, ": ");
        sl_text_add(problem, strerrordesc_np(number) == NULL ? "unknown error" : strerrordesc_np(number));
    }
    if (number == EADDRINUSE)
        return SL_ERR_EXISTS;
    if (number == EADDRNOTAVAIL || number == EACCES || number == EAFNOSUPPORT)
        return SL_ERR_INVALID;
    return is_lack(number) ? (number == EMFILE || number == ENFILE ? SL_ERR_OPEN_FILES : SL_ERR_NOMEM)
                           : SL_ERR_IO;
}

static bool is_any_six(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* The descriptor, or minus the number of the error. */
static int open_at(const struct sockaddr_storage *address, uint32_t backlog)
{
    const int on = 1, off = 0;
    const int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int number;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (is_any_six(address)) /* "all addresses" means both kinds, whatever the system's default is */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (const struct sockaddr *)address, sl_address_bytes(address)) == 0 &&
        listen(fd, (int)sl_min_u64(backlog, INT32_MAX)) == 0)
        return fd;
    number = errno;
    close(fd);
    return -number;
}

/* One that works, of the addresses of a name. This happens at start, so it may wait. */
static int open_at_name(const char *name, const sl_listen_options *options, uint32_t backlog)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    int fd = -EADDRNOTAVAIL;

    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return fd;
    for (const struct addrinfo *one = found; one != NULL && fd < 0; one = one->ai_next) {
        struct sockaddr_storage address = { 0 };
        memcpy(&address, one->ai_addr, one->ai_addrlen);
        sl_address_set_port(&address, options->port);
        fd = open_at(&address, backlog);
    }
    freeaddrinfo(found);
    return fd;
}

static int open_socket(const char *host, const sl_listen_options *options, uint32_t backlog)
{
    struct sockaddr_storage address;
    int fd;

    if (host[0] != '\0')
        return sl_address_parse(host, options->port, &address) ? open_at(&address, backlog)
                                                               : open_at_name(host, options, backlog);
    (void)sl_address_parse("::", options->port, &address);
    fd = open_at(&address, backlog);
    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    (void)sl_address_parse("0.0.0.0", options->port, &address); /* a machine without IPv6 */
    return open_at(&address, backlog);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t bytes = sizeof address;

    (void)getsockname(fd, (struct sockaddr *)&address, &bytes);
    return sl_address_port(&address);
}

static void fill_in(sl_listener *listener, sl_loop *loop, const sl_listen_options *options)
{
    listener->port = port_of(listener->fd);
    listener->loop = loop;
    listener->counters = options->counters;
    listener->tls = options->tls;
    listener->on_accept = options->on_accept;
    listener->ctx = options->ctx;
    listener->poll.data = listener;
    sl_list_init(&listener->handshakes);
    sl_timer_init(&listener->retry, loop, start_accepting, listener);
}

static sl_err start(sl_loop *loop, int fd, const sl_listen_options *options, sl_listener **ret_listener)
{
    sl_listener *listener = sl_alloc_take(loop->alloc, sizeof *listener);

    if (listener == NULL)
        return SL_ERR_NOMEM;
    *listener = (sl_listener){ .fd = fd };
    listener->limits = options->limits == NULL ? sl_net_limits_default : *options->limits;
    fill_in(listener, loop, options);
    if (uv_poll_init(&loop->uv, &listener->poll, fd) != 0) {
        sl_alloc_give(loop->alloc, listener, sizeof *listener);
        return SL_ERR_IO;
    }
    start_accepting(listener);
    loop->things++;
    *ret_listener = listener;
    return SL_OK;
}

static bool copy_host(sl_str host, char *into)
{
    if (host.bytes > SL_HOST_BYTES_MAX || sl_str_find(host, '\0') != host.bytes)
        return false;
    if (host.bytes > 0)
        memcpy(into, host.data, host.bytes);
    into[host.bytes] = '\0';
    return true;
}

sl_err sl_listen_open(const sl_listen_options *options, sl_text *problem, int *ret_fd, uint16_t *ret_port)
{
    const uint32_t backlog =
        options->limits == NULL ? sl_net_limits_default.backlog : options->limits->backlog;
    char host[SL_HOST_BYTES_MAX + 1];
    int fd;

    if (!copy_host(options->host, host))
        return explain(problem, "the address is no text of at most 255 bytes", EADDRNOTAVAIL);
    fd = open_socket(host, options, backlog);
    if (fd < 0)
        return explain(problem, host[0] == '\0' ? "all addresses" : host, -fd);
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return SL_OK;
}

sl_err sl_listener_new(sl_loop *loop, const sl_listen_options *options, sl_text *problem,
                       sl_listener **ret_listener)
{
    uint16_t port;
    sl_err err;
    int fd;

    assert(options->on_accept != NULL);
    err = sl_listen_open(options, problem, &fd, &port);
    if (err != SL_OK)
        return err;
    err = start(loop, fd, options, ret_listener);
    if (err != SL_OK) {
        close(fd);
        if (problem != NULL)
            sl_text_add(problem, sl_err_text(err));
    }
    return err;
}

/* --- the rest of its life --- */

static void listener_closed(uv_handle_t *handle)
{
    sl_listener *listener = handle->data;

    listener->loop->things--;
    sl_alloc_give(listener->loop->alloc, listener, sizeof *listener);
}

void sl_listener_free(sl_listener *listener)
{
    if (listener == NULL)
        return;
    SL_LIST_EACH_SAFE (node, &listener->loop->sockets) {
        sl_socket *socket = SL_CONTAINER_OF(node, sl_socket, node);
        if (socket->listener != listener)
            continue;
        if (socket->state == SL_SOCKET_HANDSHAKE)
            sl_socket_vanish(socket, SL_NET_END_CLOSED);
        else
            socket->listener = NULL; /* it is its owner's alone now */
    }
    sl_timer_stop(&listener->retry);
    uv_close((uv_handle_t *)&listener->poll, listener_closed);
    close(listener->fd);
}

void sl_listener_pause(sl_listener *listener)
{
    listener->paused = true;
    sl_timer_stop(&listener->retry);
    uv_poll_stop(&listener->poll);
}

void sl_listener_resume(sl_listener *listener)
{
    listener->paused = false;
    start_accepting(listener);
}

uint16_t sl_listener_port(const sl_listener *listener)
{
    return listener->port;
}

uint32_t sl_listener_connection_count(const sl_listener *listener)
{
    return listener->connection_count;
}
