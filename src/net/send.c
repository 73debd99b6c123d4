/* net/send.c — from the owner to the system: asked for when there is room, kept only when a write fell short.
 *
 *      fill() --> (encrypt) --> loop->out --> system
 *                                  \--> unsent, when the system takes only a part --> system, when it can
 *
 * While there is an unsent byte the owner is not asked. So a slow peer costs one buffer and no more, and a fast one
 * costs no memory of its own at all. */
#include "net/inside.h"

#include <assert.h>
#include <errno.h>

void sl_send_want(sl_socket *socket)
{
    if (!sl_list_empty(&socket->sender_node))
        return;
    sl_list_push_back(&socket->loop->senders, &socket->sender_node);
    sl_loop_hurry(socket->loop);
}

static void count_sent(sl_socket *socket, size_t bytes)
{
    socket->info.sent_ns = sl_loop_now_ns(socket->loop);
    socket->info.bytes_sent += bytes;
    sl_list_remove(&socket->unanswered_node); /* what is sent acknowledges what came */
    if (socket->counters != NULL) {
        socket->counters->bytes_sent += bytes;
        socket->counters->sends++;
    }
}

/* What the peer said before it hung up is still there to be read, and often says why. */
static void broken(sl_socket *socket, int number)
{
    socket->send_broken = true;
    if (socket->state == SL_SOCKET_OPEN && !socket->paused && !socket->peer_ended) {
        sl_loop_hurry(socket->loop);
        sl_receive_ready(socket);
    }
    sl_socket_fail(socket, sl_net_end_from_errno(number), NULL);
}

/* *ret_sent: how much the system took. False: the socket is GONE. */
static bool send_once(sl_socket *socket, const uint8_t *data, size_t bytes, size_t *ret_sent)
{
    ssize_t count;

    do {
        count = send(socket->fd, data, bytes, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && errno != EAGAIN) {
        broken(socket, errno);
        return false;
    }
    *ret_sent = count < 0 ? 0 : (size_t)count;
    if (count > 0)
        count_sent(socket, (size_t)count);
    return true;
}

/* The stall timer runs while there are unsent bytes; in other states the timer has another meaning. */
static void unsent_changed(sl_socket *socket)
{
    if (socket->unsent.bytes == 0 && socket->unsent.capacity > SL_UNSENT_KEPT_BYTES) {
        sl_buf_done(&socket->unsent);
        sl_buf_init(&socket->unsent, socket->loop->alloc, socket->limits.unsent_bytes_max);
    }
    if (socket->state == SL_SOCKET_OPEN)
        sl_socket_arm(socket, socket->unsent.bytes == 0 ? 0 : socket->limits.stall_timeout_ns);
    sl_socket_watch(socket);
}

bool sl_send_or_keep(sl_socket *socket, const uint8_t *data, size_t bytes)
{
    size_t sent = 0;
    sl_err err;

    if (socket->send_broken || bytes == 0)
        return socket->state != SL_SOCKET_GONE;
    if (socket->unsent.bytes == 0 && !send_once(socket, data, bytes, &sent))
        return false;
    if (sent == bytes)
        return true;
    err = sl_buf_append(&socket->unsent, data + sent, bytes - sent);
    if (err == SL_OK)
        unsent_changed(socket);
    else
        sl_socket_fail(socket, err == SL_ERR_NOMEM ? SL_NET_END_NOMEM : SL_NET_END_STALLED, NULL);
    return err == SL_OK;
}

/* True when nothing is unsent any more. */
static bool flush(sl_socket *socket)
{
    size_t sent = 0;

    if (socket->unsent.bytes == 0)
        return true;
    if (!send_once(socket, sl_buf_data(&socket->unsent), socket->unsent.bytes, &sent))
        return false;
    if (sent > 0) {
        sl_buf_consume(&socket->unsent, sent);
        unsent_changed(socket);
    }
    return socket->unsent.bytes == 0;
}

/* After the last byte: TLS's goodbye, then the system's. */
static void end_output(sl_socket *socket)
{
    if (socket->ssl != NULL && !socket->goodbye_said) {
        socket->goodbye_said = true;
        if (!sl_send_or_keep(socket, socket->loop->out, sl_session_goodbye(socket)))
            return;
        if (socket->unsent.bytes > 0)
            return; /* this is called again when it has gone */
    }
    if (!socket->output_ended)
        (void)shutdown(socket->fd, SHUT_WR);
    socket->output_ended = true;
    if (socket->state == SL_SOCKET_LINGERING && socket->peer_ended)
        sl_socket_vanish(socket, SL_NET_END_CLOSED);
}

/* Asks the owner. The bytes are in loop->out, ready for the system. */
static size_t produce(sl_socket *socket)
{
    uint8_t *into = socket->ssl == NULL ? socket->loop->out : socket->loop->plain;
    size_t bytes;

    if (socket->state != SL_SOCKET_OPEN || socket->output_ended || socket->goodbye_said ||
        socket->handler.fill == NULL)
        return 0;
    bytes = socket->handler.fill(socket->ctx, into, SL_SEND_BYTES_MAX);
    assert(bytes <= SL_SEND_BYTES_MAX);
    if (bytes > 0)
        sl_loop_hurry(socket->loop); /* the owner has acted after the end of the turn */
    if (bytes == 0 || socket->state == SL_SOCKET_GONE || socket->ssl == NULL)
        return bytes;
    return sl_session_encrypt(socket, bytes);
}

void sl_send_pump(sl_socket *socket)
{
    for (int i = 0; i < SL_FILLS_PER_TURN; i++) {
        if (socket->state < SL_SOCKET_HANDSHAKE || socket->state == SL_SOCKET_GONE || !flush(socket))
            return;
        const size_t bytes = produce(socket);
        if (socket->state == SL_SOCKET_GONE)
            return;
        if (bytes == 0 && (socket->ending_output || socket->state == SL_SOCKET_LINGERING))
            end_output(socket);
        if (bytes == 0 || !sl_send_or_keep(socket, socket->loop->out, bytes) || socket->unsent.bytes > 0)
            return;
    }
    sl_send_want(socket); /* the others first */
}
