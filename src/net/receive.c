/* net/receive.c — from the system to the owner, through one buffer that all connections share.
 *
 * Acknowledgements. The system likes to acknowledge what came together with the answer, and waits up to 40 ms for one. A client that
 * has not switched Nagle's algorithm off (hyper, and with it the bridge of an official client) holds its next bytes back until
 * then: it has written the headers of a call, we wait for the message, and both wait for the system. So when a turn has received
 * something and sends nothing back, the acknowledgement is asked for. When it does send, the answer carries it, and the system call
 * is saved. The system forgets the wish with the next answer, so it is said each time. */
#include "net/inside.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>

void sl_receive_give(sl_socket *socket, const uint8_t *data, size_t bytes)
{
    if (socket->handler.on_receive != NULL)
        socket->handler.on_receive(socket->ctx, data, bytes);
}

static void linger_ended(sl_socket *socket)
{
    socket->peer_ended = true;
    if (socket->output_ended)
        sl_socket_vanish(socket, SL_NET_END_CLOSED);
    else
        sl_socket_watch(socket);
}

/* The owner hears that the peer sends no more. With TLS this is the peer's goodbye. */
void sl_receive_end(sl_socket *socket)
{
    socket->peer_ended = true;
    if (socket->handler.on_receive_end == NULL) {
        sl_socket_fail(socket, SL_NET_END_PEER_CLOSED, NULL);
        return;
    }
    sl_socket_watch(socket);
    socket->handler.on_receive_end(socket->ctx);
}

static void ended_by_system(sl_socket *socket)
{
    if (socket->state == SL_SOCKET_LINGERING)
        linger_ended(socket);
    else if (socket->state == SL_SOCKET_HANDSHAKE)
        sl_socket_fail(socket, SL_NET_END_HANDSHAKE_FAILED, "the peer closed the connection");
    else if (socket->ssl != NULL)
        sl_socket_fail(socket, SL_NET_END_TLS_CUT, NULL); /* an attacker could have cut it, too */
    else
        sl_receive_end(socket);
}

/* Reading what nobody wants keeps close() from turning into a reset, which would destroy our last words on their
 * way. A peer that never stops is not worth that. */
static void drop(sl_socket *socket, size_t bytes)
{
    socket->linger_bytes += bytes;
    if (socket->linger_bytes > socket->limits.linger_bytes_max)
        sl_socket_vanish(socket, SL_NET_END_CLOSED);
}

/* Only Linux knows this, and only for TCP. Who does not know it acknowledges as it likes: that costs time and nothing else. */
void sl_receive_acknowledge(sl_socket *socket)
{
#ifdef TCP_QUICKACK
    static const int on = 1;

    if (!socket->quickack_refused)
        socket->quickack_refused = setsockopt(socket->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on) != 0;
#else
    (void)socket;
#endif
}

static void take(sl_socket *socket, size_t bytes)
{
    if (sl_list_empty(&socket->unanswered_node))
        sl_list_push_back(&socket->loop->unanswered, &socket->unanswered_node);
    socket->info.received_ns = sl_loop_now_ns(socket->loop);
    socket->info.bytes_received += bytes;
    if (socket->counters != NULL) {
        socket->counters->bytes_received += bytes;
        socket->counters->receives++;
    }
    if (socket->state == SL_SOCKET_LINGERING)
        drop(socket, bytes);
    else if (socket->ssl != NULL)
        (void)sl_session_receive(socket, socket->loop->in, bytes);
    else
        sl_receive_give(socket, socket->loop->in, bytes);
}

static bool wants_more(const sl_socket *socket)
{
    return socket->state != SL_SOCKET_GONE && !socket->paused && !socket->peer_ended;
}

/* One system call; true when there may be more. */
static bool receive_once(sl_socket *socket)
{
    ssize_t count;

    do {
        count = recv(socket->fd, socket->loop->in, SL_RECEIVE_BYTES, 0);
    } while (count < 0 && errno == EINTR);
    if (count > 0) {
        take(socket, (size_t)count);
        return count == SL_RECEIVE_BYTES && wants_more(socket);
    }
    if (count == 0)
        ended_by_system(socket);
    else if (errno != EAGAIN)
        sl_socket_fail(socket, sl_net_end_from_errno(errno), NULL);
    return false;
}

void sl_receive_ready(sl_socket *socket)
{
    if (!sl_list_empty(&socket->receiver_node)) { /* what TLS held back comes first */
        sl_list_remove(&socket->receiver_node);
        sl_receive_held(socket);
    }
    for (int i = 0; i < SL_RECEIVES_PER_TURN && wants_more(socket); i++)
        if (!receive_once(socket))
            return;
}

/* The owner has resumed: gives it what TLS has, decrypted or not. */
void sl_receive_held(sl_socket *socket)
{
    sl_buf held;

    if (socket->state != SL_SOCKET_OPEN || !wants_more(socket))
        return;
    assert(socket->ssl != NULL);
    held = sl_buf_take(&socket->held); /* the rest of it goes back there when the owner pauses again */
    (void)sl_session_receive(socket, sl_buf_data(&held), held.bytes);
    sl_buf_done(&held);
}
