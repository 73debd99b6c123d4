/* net/socket.c — the life of a connection: made, open, closed by its owner or by an error, lingering, gone.
 *
 * The descriptor is ours and libuv only waits for it (uv_poll). Its own TCP handles would not do: they write
 * without MSG_NOSIGNAL, so a peer that hangs up could kill the process, and they want memory that lives until a
 * write is done, where we ask the owner for bytes only when the system takes some.
 *
 * A connection has one timer, because each state waits for one thing only: CONNECTING for an answer, HANDSHAKE for
 * its end, OPEN for a peer that takes bytes, LINGERING for the peer's end. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static void on_timer(void *ctx);

sl_socket *sl_socket_make(sl_loop *loop, const sl_net_limits *limits, sl_net_counters *counters)
{
    sl_socket *socket = sl_alloc_take(loop->alloc, sizeof *socket);

    if (socket == NULL)
        return NULL;
    memset(socket, 0, sizeof *socket);
    socket->loop = loop;
    socket->fd = -1;
    socket->limits = *limits;
    socket->counters = counters;
    socket->info.tls_version = "";
    sl_list_push_back(&loop->sockets, &socket->node);
    sl_list_init(&socket->handshake_node);
    sl_list_init(&socket->receiver_node);
    sl_list_init(&socket->sender_node);
    sl_list_init(&socket->unanswered_node);
    sl_timer_init(&socket->timer, loop, on_timer, socket);
    sl_buf_init(&socket->held, loop->alloc, SL_RECEIVE_BYTES);
    sl_buf_init(&socket->unsent, loop->alloc, limits->unsent_bytes_max);
    uv_idle_init(&loop->uv, &socket->grave);
    socket->grave.data = socket;
    socket->handles_open = 1;
    loop->things++;
    return socket;
}

static void set_number(int fd, int level, int option, int value)
{
    /* What a system does not know costs speed, not correctness, so the answer does not matter. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static void set_options(const sl_socket *socket)
{
    const uint64_t keepalive_s = socket->limits.keepalive_ns / SECOND_NS;

    set_number(socket->fd, IPPROTO_TCP, TCP_NODELAY,
               1); /* we write whole answers: nothing is worth waiting for */
    if (socket->limits.keepalive_ns == 0)
        return;
    set_number(socket->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(socket->fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)sl_min_u64(sl_max_u64(keepalive_s, 1), 32767));
    set_number(socket->fd, IPPROTO_TCP, TCP_KEEPINTVL,
               (int)sl_min_u64(sl_max_u64(keepalive_s / 4, 1), 32767));
    set_number(socket->fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

sl_err sl_socket_adopt_fd(sl_socket *socket, int fd)
{
    assert(!socket->poll_made);
    socket->poll.data = socket;
    if (uv_poll_init(&socket->loop->uv, &socket->poll, fd) != 0)
        return SL_ERR_IO;
    socket->poll_made = true;
    socket->handles_open++;
    socket->fd = fd;
    return SL_OK;
}

static void handle_closed(uv_handle_t *handle)
{
    sl_socket *socket = handle->data;
    sl_loop *loop = socket->loop;

    if (--socket->handles_open > 0)
        return;
    SSL_free(socket->ssl);
    sl_buf_done(&socket->held);
    sl_buf_done(&socket->unsent);
    loop->things--;
    sl_alloc_give(loop->alloc, socket, sizeof *socket);
}

static void close_handles(sl_socket *socket)
{
    if (socket->poll_made)
        uv_close((uv_handle_t *)&socket->poll, handle_closed);
    if (socket->fd >= 0)
        close(socket->fd);
    socket->fd = -1;
    uv_close((uv_handle_t *)&socket->grave, handle_closed);
}

void sl_socket_vanish(sl_socket *socket, sl_net_end end)
{
    assert(socket->state != SL_SOCKET_GONE);
    if (socket->listener != NULL)
        sl_listener_forget(socket->listener, socket);
    socket->listener = NULL;
    socket->state = SL_SOCKET_GONE;
    if (socket->counters != NULL)
        socket->counters->ended[end]++;
    sl_timer_stop(&socket->timer);
    sl_list_remove(&socket->node);
    sl_list_remove(&socket->receiver_node);
    sl_list_remove(&socket->sender_node);
    sl_list_remove(&socket->unanswered_node);
    sl_connect_forget_lookup(socket);
    close_handles(socket);
}

/* The counters may be gone by now, so they are left alone. */
void sl_socket_abandon(sl_socket *socket)
{
    socket->counters = NULL;
    sl_socket_vanish(socket, SL_NET_END_CLOSED);
}

/* A server's owner does not know of a connection whose handshake is under way, and one who closed it does not want
 * to hear of it any more. */
static bool owner_listens(const sl_socket *socket)
{
    return socket->state == SL_SOCKET_OPEN || (socket->state < SL_SOCKET_OPEN && socket->listener == NULL);
}

void sl_socket_fail(sl_socket *socket, sl_net_end end, const char *detail)
{
    const sl_socket_handler handler = socket->handler;
    const bool tell = owner_listens(socket) && handler.on_end != NULL;
    char problem[SL_DETAIL_BYTES + 128];
    sl_text text;

    if (socket->state == SL_SOCKET_GONE)
        return;
    sl_socket_vanish(socket, socket->state == SL_SOCKET_LINGERING ? SL_NET_END_CLOSED : end);
    if (!tell)
        return;
    sl_text_init(&text, problem, sizeof problem);
    sl_text_add(&text, sl_net_end_text(end));
    sl_text_add(&text, detail == NULL || detail[0] == '\0' ? "" : ": ");
    sl_text_add(&text, detail == NULL ? "" : detail);
    sl_loop_hurry(socket->loop);
    handler.on_end(socket->ctx, end, problem);
}

void sl_socket_arm(sl_socket *socket, uint64_t after_ns)
{
    if (after_ns == 0)
        sl_timer_stop(&socket->timer);
    else
        sl_timer_set(&socket->timer, sl_add_sat_u64(sl_loop_now_ns(socket->loop), after_ns));
}

/* Otherwise close() would leave the unsent bytes with the system, for a peer that does not want them. */
static void make_close_a_reset(const sl_socket *socket)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (socket->fd >= 0)
        (void)setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void on_timer(void *ctx)
{
    sl_socket *socket = ctx;

    switch (socket->state) {
    case SL_SOCKET_RESOLVING:
    case SL_SOCKET_CONNECTING: sl_connect_timer(socket); break;
    case SL_SOCKET_HANDSHAKE: sl_socket_fail(socket, SL_NET_END_HANDSHAKE_TIMEOUT, NULL); break;
    case SL_SOCKET_OPEN:
        make_close_a_reset(socket);
        sl_socket_fail(socket, SL_NET_END_STALLED, NULL);
        break;
    case SL_SOCKET_LINGERING: sl_socket_vanish(socket, SL_NET_END_CLOSED); break;
    case SL_SOCKET_GONE: assert(false); break;
    }
}

/* The descriptor is in an error. Who reads finds it behind the last bytes; who does not must be told here. */
static void on_error(sl_socket *socket)
{
    int number = 0;
    socklen_t bytes = sizeof number;

    if (!socket->paused && !socket->peer_ended) {
        sl_receive_ready(socket);
        if (socket->state != SL_SOCKET_GONE)
            sl_socket_watch(socket);
        return;
    }
    (void)getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &number, &bytes);
    sl_socket_fail(socket, number == 0 ? SL_NET_END_RESET : sl_net_end_from_errno(number), NULL);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    sl_socket *socket = poll->data;

    if (status < 0)
        socket->watched = 0; /* libuv has stopped */
    if (socket->state == SL_SOCKET_CONNECTING) {
        sl_connect_answered(socket);
        return;
    }
    if (status < 0) {
        on_error(socket);
        return;
    }
    if ((events & UV_WRITABLE) != 0)
        sl_send_want(socket);
    if ((events & UV_READABLE) != 0) {
        sl_receive_ready(socket);
    } else if ((events & UV_DISCONNECT) != 0) {
        socket->hangup_seen = true; /* the peer is done sending, which its owner learns when it resumes */
        sl_socket_watch(socket);
    }
}

/* While paused only a hang-up is waited for, so that a peer that was reset does not stay for ever. */
static int wanted_events(const sl_socket *socket)
{
    const int writable = socket->unsent.bytes > 0 ? UV_WRITABLE : 0;

    if (socket->state == SL_SOCKET_CONNECTING)
        return UV_WRITABLE;
    if (socket->peer_ended)
        return writable;
    if (socket->paused)
        return writable | (socket->hangup_seen ? 0 : UV_DISCONNECT);
    return writable | UV_READABLE;
}

void sl_socket_watch(sl_socket *socket)
{
    const int wanted = wanted_events(socket);

    assert(socket->poll_made);
    if (wanted == socket->watched)
        return;
    socket->watched = wanted;
    if (wanted == 0)
        uv_poll_stop(&socket->poll);
    else
        uv_poll_start(&socket->poll, wanted, on_poll);
}

void sl_socket_begin(sl_socket *socket)
{
    set_options(socket);
    if (socket->tls == NULL) {
        socket->state = SL_SOCKET_OPEN;
        sl_socket_opened(socket);
        return;
    }
    socket->state = SL_SOCKET_HANDSHAKE;
    sl_socket_arm(socket, socket->limits.handshake_timeout_ns);
    if (socket->connect_by_ns != 0 && (!socket->timer.is_set || socket->timer.at_ns > socket->connect_by_ns))
        sl_timer_set(&socket->timer, socket->connect_by_ns);
    if (sl_session_start(socket))
        sl_socket_watch(socket);
}

/* state is OPEN already: it was HANDSHAKE before, or there was none. */
void sl_socket_opened(sl_socket *socket)
{
    const uint64_t now_ns = sl_loop_now_ns(socket->loop);

    sl_timer_stop(&socket->timer);
    socket->info.opened_ns = socket->info.received_ns = socket->info.sent_ns = now_ns;
    sl_socket_watch(socket);
    if (socket->counters != NULL && socket->listener != NULL)
        socket->counters->accepted++;
    else if (socket->counters != NULL)
        socket->counters->connected++;
    if (socket->listener != NULL)
        sl_listener_opened(socket->listener, socket);
    else if (socket->handler.on_open != NULL)
        socket->handler.on_open(socket->ctx);
    sl_socket_wake(socket); /* most owners have something to say at once */
}

void sl_socket_set_handler(sl_socket *socket, const sl_socket_handler *handler, void *ctx)
{
    socket->handler = *handler;
    socket->ctx = ctx;
}

void sl_socket_wake(sl_socket *socket)
{
    if (socket->state == SL_SOCKET_OPEN && socket->unsent.bytes == 0)
        sl_send_want(socket); /* otherwise it is asked anyway when the system takes bytes again */
}

void sl_socket_pause(sl_socket *socket)
{
    if (socket->state != SL_SOCKET_OPEN || socket->paused)
        return;
    socket->paused = true;
    socket->hangup_seen = false;
    sl_socket_watch(socket);
}

void sl_socket_resume(sl_socket *socket)
{
    if (socket->state != SL_SOCKET_OPEN || !socket->paused)
        return;
    socket->paused = false;
    sl_socket_watch(socket);
    if (socket->ssl == NULL || !sl_list_empty(&socket->receiver_node))
        return;
    sl_list_push_back(&socket->loop->receivers, &socket->receiver_node); /* TLS may hold bytes back */
    sl_loop_hurry(socket->loop);
}

void sl_socket_end_output(sl_socket *socket)
{
    if (socket->state != SL_SOCKET_OPEN || socket->ending_output)
        return;
    socket->ending_output = true;
    sl_socket_wake(socket);
}

void sl_socket_close(sl_socket *socket)
{
    if (socket->state == SL_SOCKET_GONE || socket->state == SL_SOCKET_LINGERING)
        return;
    if (socket->state != SL_SOCKET_OPEN || socket->limits.linger_timeout_ns == 0) {
        sl_socket_vanish(socket, SL_NET_END_CLOSED);
        return;
    }
    socket->state = SL_SOCKET_LINGERING;
    socket->handler = (sl_socket_handler){ 0 };
    socket->paused = false;
    sl_buf_clear(&socket->held);
    sl_list_remove(&socket->receiver_node);
    sl_socket_arm(socket, socket->limits.linger_timeout_ns);
    sl_socket_watch(socket);
    sl_send_want(socket);
}

void sl_socket_reset(sl_socket *socket)
{
    if (socket->state == SL_SOCKET_GONE)
        return;
    make_close_a_reset(socket);
    sl_socket_vanish(socket, SL_NET_END_CLOSED);
}

sl_socket_info sl_socket_get_info(const sl_socket *socket)
{
    sl_socket_info info = socket->info;

    info.unsent_bytes = socket->unsent.bytes;
    info.paused = socket->paused;
    info.tls = socket->ssl != NULL;
    return info;
}
