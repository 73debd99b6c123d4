/* net/listener.h — accepts connections and bounds how many there are.
 *
 * With TLS the owner hears of a connection when its handshake is done: who cannot or does not want to finish one
 * never costs more than memory and time with a limit. What is refused is counted by its reason. */
#ifndef SL_NET_LISTENER_H
#define SL_NET_LISTENER_H

#include "net/socket.h"

typedef struct sl_listener sl_listener; /* opaque */

typedef struct sl_listen_options {
    sl_str host;   /* an address or a name, without brackets; a name may wait for DNS. Empty: all addresses */
    uint16_t port; /* 0: any that is free */
    const sl_net_limits *limits; /* NULL: the defaults; copied, also into each connection */
    sl_net_counters *counters;   /* may be NULL; must live as long as the listener and its connections */
    sl_tls *tls;                 /* NULL: plain; a server's, must live as long as the listener */
    /* Gives the owner an open connection. It calls sl_socket_set_handler(), or closes it. */
    void (*on_accept)(void *ctx, sl_socket *socket);
    void *ctx;
} sl_listen_options;

/* Listens from now on. What went wrong is said in `problem`, which may be NULL.
 *   SL_OK
 *   SL_ERR_INVALID     no such address or name
 *   SL_ERR_EXISTS      another process listens there
 *   SL_ERR_NOMEM, SL_ERR_OPEN_FILES, SL_ERR_IO */
sl_err sl_listener_new(sl_loop *loop, const sl_listen_options *options, sl_text *problem,
                       sl_listener **ret_listener);

/* Only a descriptor that listens, for a library that accepts by itself; it is the caller's. Of the options host, port and
 * limits->backlog count. *ret_port: where it listens. Codes as sl_listener_new(). */
sl_err sl_listen_open(const sl_listen_options *options, sl_text *problem, int *ret_fd, uint16_t *ret_port);

/* Accepts no more and refuses at once who still comes; connections stay. A connection of which the owner has not
 * heard, because its handshake is under way, is cut. NULL is allowed; the pointer is no good afterwards. */
void sl_listener_free(sl_listener *listener);

/* While paused, new connections wait in the system's backlog. */
void sl_listener_pause(sl_listener *listener);
void sl_listener_resume(sl_listener *listener);

uint16_t sl_listener_port(const sl_listener *listener);

/* Connections that it accepted and that are not gone, with those in a handshake and those that linger. */
uint32_t sl_listener_connection_count(const sl_listener *listener);

#endif
