/* server/peer.h — one client on a socket: moves bytes between net and a link, and knows when both are done.
 *
 *      socket --on_receive--> connection (wire) --calls--> services
 *      socket <----fill------ connection        <--touch--
 *
 * What a turn did to a peer is looked at once, at the end of the turn (sl_peers_settle): may it send, must it wait, when is
 * its next tick, is it done. A service that answers a thousand calls of one peer in a turn so costs one look. */
#ifndef SL_SERVER_PEER_H
#define SL_SERVER_PEER_H

#include "net/socket.h"
#include "server/host.h"

/* All peers of a server. */
typedef struct sl_peers {
    sl_host *host;
    sl_loop *loop;
    sl_list all;
    sl_list touched; /* to be looked at, at the end of the turn */
    uint32_t count;
    uint64_t calls_cut; /* calls whose connection was ended by sl_peers_cut_calls() or sl_peers_free() */
} sl_peers;

void sl_peers_init(sl_peers *peers, sl_host *host, sl_loop *loop);

/* Takes an accepted connection. Without memory it is closed. */
void sl_peers_accept(sl_peers *peers, sl_socket *socket);

/* After sl_host_turn(), before the turn sends. */
void sl_peers_settle(sl_peers *peers);

/* Calls that are open on all of them. */
uint64_t sl_peers_call_count(const sl_peers *peers);

/* GOAWAY to each: no new calls, and the connection ends with its last one. Who never said a word is closed. */
void sl_peers_shutdown(sl_peers *peers);

/* Closes those that still have calls. */
void sl_peers_cut_calls(sl_peers *peers);

/* Closes all of them; the host may be freed afterwards. */
void sl_peers_free(sl_peers *peers);

#endif
