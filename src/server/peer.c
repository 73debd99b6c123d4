/* server/peer.c — see peer.h for the picture.
 *
 * Two rules. `touch` comes from inside of the connection's own callbacks as well, so it only remembers the peer; nothing is
 * freed or ticked there. And whatever frees a peer is the last thing that its function does. */
#include "server/peer.h"

#include "server/link.h"

typedef struct peer {
    sl_list node, touched_node;
    sl_peers *peers;
    sl_socket *socket;
    sl_link *link;
    sl_timer timer;
    bool paused;
    bool input_ended; /* the client sends no more, and hears our last word before we close */
} peer;

void sl_peers_init(sl_peers *peers, sl_host *host, sl_loop *loop)
{
    *peers = (sl_peers){ .host = host, .loop = loop };
    sl_list_init(&peers->all);
    sl_list_init(&peers->touched);
}

static uint64_t now_ns(const peer *p)
{
    return sl_loop_now_ns(p->peers->loop);
}

static void peer_free(peer *p)
{
    sl_peers *const peers = p->peers;

    sl_timer_stop(&p->timer);
    sl_list_remove(&p->node);
    sl_link_free(p->link); /* ends its calls, which may touch it once more */
    sl_list_remove(&p->touched_node);
    peers->count--;
    sl_alloc_give(peers->host->alloc, p, sizeof *p);
}

static void peer_close(peer *p)
{
    sl_socket_close(p->socket);
    peer_free(p);
}

static bool is_done(const peer *p)
{
    const sl_connection *const connection = p->link->connection;

    return sl_connection_finished(connection) || (p->input_ended && !sl_connection_has_output(connection));
}

/* The four questions of wire/connection.h. May free the peer. */
static void peer_settle(peer *p)
{
    const sl_connection *const connection = p->link->connection;
    const uint64_t due_ns = sl_connection_due_ns(connection);
    const bool wants_input = sl_connection_wants_input(connection);

    sl_list_remove(&p->touched_node);
    if (is_done(p)) {
        peer_close(p);
        return;
    }
    if (sl_connection_has_output(connection))
        sl_socket_wake(p->socket);
    if (wants_input == p->paused) {
        p->paused = !wants_input;
        (wants_input ? sl_socket_resume : sl_socket_pause)(p->socket);
    }
    if (!p->timer.is_set || p->timer.at_ns != due_ns)
        sl_timer_set(&p->timer, due_ns);
}

void sl_peers_settle(sl_peers *peers)
{
    sl_list *node;

    while ((node = sl_list_first(&peers->touched)) != NULL)
        peer_settle(SL_CONTAINER_OF(node, peer, touched_node));
}

/* --- what the socket says --- */

static void on_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    peer *const p = ctx;

    sl_connection_receive(p->link->connection, now_ns(p), data, bytes);
    peer_settle(p);
}

/* A client that closes has gone, and its calls with it: nobody would hear the answers. Only a last word that explains why we
 * ended the connection still leaves (somebody spoke HTTP/1.1 to us, and `nc` closes after its question). */
static void on_receive_end(void *ctx)
{
    peer *const p = ctx;

    p->input_ended = true;
    if (sl_connection_end_reason(p->link->connection) == SL_END_NONE)
        sl_connection_end(p->link->connection);
    peer_settle(p);
}

static size_t fill(void *ctx, uint8_t *into, size_t capacity)
{
    peer *const p = ctx;
    const size_t bytes = sl_connection_output(p->link->connection, now_ns(p), into, capacity);

    if (bytes == 0 || !sl_connection_has_output(p->link->connection))
        peer_settle(p); /* may free it */
    return bytes;
}

static void on_end(void *ctx, sl_net_end end, const char *problem)
{
    (void)end;
    (void)problem; /* counted by net; told in summaries by notices.c */
    peer_free(ctx);
}

/* --- what the link and the clock say --- */

static void touch(void *ctx)
{
    peer *const p = ctx;

    if (sl_list_empty(&p->touched_node))
        sl_list_push_back(&p->peers->touched, &p->touched_node);
}

static void on_timer(void *ctx)
{
    peer *const p = ctx;

    sl_connection_tick(p->link->connection, now_ns(p));
    peer_settle(p);
}

static peer *peer_new(sl_peers *peers, sl_socket *socket)
{
    const sl_socket_info info = sl_socket_get_info(socket);
    peer *const p = sl_alloc_take(peers->host->alloc, sizeof *p);

    if (p == NULL)
        return NULL;
    *p = (peer){ .peers = peers, .socket = socket };
    const sl_link_owner owner = { .touch = touch, .ctx = p, .peer = sl_str_from(info.peer) };
    sl_list_init(&p->node);
    sl_list_init(&p->touched_node);
    sl_timer_init(&p->timer, peers->loop, on_timer, p);
    if (sl_link_new(peers->host, &owner, &p->link) != SL_OK) {
        sl_alloc_give(peers->host->alloc, p, sizeof *p);
        return NULL;
    }
    sl_list_push_back(&peers->all, &p->node);
    peers->count++;
    return p;
}

void sl_peers_accept(sl_peers *peers, sl_socket *socket)
{
    static const sl_socket_handler handler = {
        .on_receive = on_receive, .on_receive_end = on_receive_end, .fill = fill, .on_end = on_end
    };
    peer *const p = peer_new(peers, socket);

    if (p == NULL) {
        sl_socket_reset(socket);
        return;
    }
    sl_socket_set_handler(socket, &handler, p);
    touch(p);
}

/* --- the end --- */

uint64_t sl_peers_call_count(const sl_peers *peers)
{
    uint64_t count = 0;

    SL_LIST_EACH (node, &peers->all)
        count += sl_connection_call_count(SL_CONTAINER_OF(node, peer, node)->link->connection);
    return count;
}

void sl_peers_shutdown(sl_peers *peers)
{
    SL_LIST_EACH_SAFE (node, &peers->all) {
        peer *const p = SL_CONTAINER_OF(node, peer, node);

        if (sl_socket_get_info(p->socket).bytes_received == 0) {
            peer_close(p);
            continue;
        }
        sl_connection_shutdown(p->link->connection);
        touch(p);
    }
}

static void cut(peer *p)
{
    p->peers->calls_cut += sl_connection_call_count(p->link->connection);
    peer_close(p);
}

void sl_peers_cut_calls(sl_peers *peers)
{
    SL_LIST_EACH_SAFE (node, &peers->all) {
        peer *const p = SL_CONTAINER_OF(node, peer, node);

        if (sl_connection_call_count(p->link->connection) > 0)
            cut(p);
    }
}

void sl_peers_free(sl_peers *peers)
{
    SL_LIST_EACH_SAFE (node, &peers->all)
        cut(SL_CONTAINER_OF(node, peer, node));
}
