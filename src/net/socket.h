/* net/socket.h — one connection, accepted or made: bytes to the owner, bytes from the owner, one end.
 *
 *      (resolving -> connecting ->) (TLS handshake ->) open -> lingering -> gone
 *                                                       \______________/
 *
 * Receiving: the owner is handed what came, in memory that all connections share, and takes what it needs. An owner
 * that cannot keep up pauses; then the system's buffer fills and the peer has to wait.
 *
 * Sending is pulled: the owner says that it has something (sl_socket_wake()), and after the end of the turn it is
 * asked to fill a large buffer, again and again until it has nothing or the system takes no more. At most one such
 * buffer waits for a slow peer; until it has gone the owner is not asked, and so knows that it must not produce.
 *
 * The end: on_end comes exactly once, and after it the pointer is no good. An owner that ends the connection itself
 * (sl_socket_close(), sl_socket_reset()) hears nothing more. Both may be called from any callback. */
#ifndef SL_NET_SOCKET_H
#define SL_NET_SOCKET_H

#include "base/str.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/reason.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_socket sl_socket; /* opaque */

enum {
    SL_SEND_BYTES_MAX = 256 * 1024, /* what fill is offered, and so the size of a write */
    SL_HOST_BYTES_MAX = 255,        /* as names in DNS */
    SL_PEER_TEXT_BYTES = 64         /* "[address]:port" with its closing zero */
};

typedef struct sl_socket_handler { /* any of them may be NULL */
    /* Client: the connection stands, with TLS if that was asked for. */
    void (*on_open)(void *ctx);
    /* Bytes came; the memory is good during the call. */
    void (*on_receive)(void *ctx, const uint8_t *data, size_t bytes);
    /* The peer sends no more but may still listen. NULL: that is the end, PEER_CLOSED. */
    void (*on_receive_end)(void *ctx);
    /* Writes up to capacity bytes and returns how many; 0: nothing for now, ask again after sl_socket_wake(). */
    size_t (*fill)(void *ctx, uint8_t *into, size_t capacity);
    /* The connection is over. `problem` is a sentence without a full stop, good during the call. */
    void (*on_end)(void *ctx, sl_net_end end, const char *problem);
} sl_socket_handler;

typedef struct sl_socket_info {
    char peer[SL_PEER_TEXT_BYTES]; /* "127.0.0.1:2113", "[::1]:2113"; empty before the connection stands */
    uint64_t opened_ns, received_ns, sent_ns; /* monotonic; the last two say how long it is idle */
    uint64_t bytes_received, bytes_sent;      /* as the system saw them */
    size_t unsent_bytes;
    bool tls, paused;
    const char *tls_version; /* "TLSv1.3", or "" */
    char alpn[16];           /* what was agreed on, for example "h2", or empty */
} sl_socket_info;

typedef struct sl_connect_options {
    sl_str host; /* a name or an address, without brackets */
    uint16_t port;
    uint64_t timeout_ns;         /* for lookup, all addresses and TLS together; 0 means for ever */
    const sl_net_limits *limits; /* NULL: the defaults; copied */
    sl_net_counters *counters;   /* may be NULL; must live as long as the socket and its lingering */
    sl_tls *tls;                 /* NULL: plain; a client's, must live until on_open or on_end */
    const sl_socket_handler *handler;
    void *ctx;
} sl_connect_options;

/* Begins to connect; on_open or on_end follows, never from inside this call.
 *   SL_OK
 *   SL_ERR_INVALID  a host that is empty, too long or has a zero byte in it, or port 0
 *   SL_ERR_NOMEM */
sl_err sl_socket_connect(sl_loop *loop, const sl_connect_options *options, sl_socket **ret_socket);

/* Who hears of this connection from now on. For an accepted one: to be called in on_accept. */
void sl_socket_set_handler(sl_socket *socket, const sl_socket_handler *handler, void *ctx);

/* The owner has something to send. Cheap, and may be called as often as one likes. */
void sl_socket_wake(sl_socket *socket);

/* Back-pressure: no on_receive and no on_receive_end between these two. A peer that is reset meanwhile is noticed. */
void sl_socket_pause(sl_socket *socket);
void sl_socket_resume(sl_socket *socket);

/* After everything that fill still has to give: tells the peer that no more will come. Receiving goes on. */
void sl_socket_end_output(sl_socket *socket);

/* The owner is done: bytes that it handed over are still delivered and the peer's end is awaited, both within
 * limits.linger_timeout_ns; fill is not asked any more. What the peer still sends is dropped. */
void sl_socket_close(sl_socket *socket);

/* At once; unsent bytes are lost and the peer sees a reset. */
void sl_socket_reset(sl_socket *socket);

/* Copied at this moment. */
sl_socket_info sl_socket_get_info(const sl_socket *socket);

#endif
