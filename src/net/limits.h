/* net/limits.h — everything that a peer could make grow or last, each with its bound.
 *
 * What is beyond a limit ends the connection with a reason from net/reason.h, and the reason is counted. */
#ifndef SL_NET_LIMITS_H
#define SL_NET_LIMITS_H

#include <stdint.h>

typedef struct sl_net_limits {
    /* How many. */
    uint32_t connections_max; /* of one listener, with those that are still closing */
    uint32_t
        handshakes_max; /* of one listener: TLS that has begun but not ended; beyond it the oldest goes */
    uint32_t backlog;   /* connections that the system keeps for a listener that does not accept yet */
    uint32_t accepts_per_turn; /* so that a storm of new connections does not hold up the others */

    /* How much. */
    uint32_t
        unsent_bytes_max; /* of one connection: what the system did not take; at least SL_SEND_BYTES_MAX */
    uint32_t linger_bytes_max; /* that a closed connection still reads and drops */

    /* How long. 0 means for ever, except for linger, where it means not at all. */
    uint64_t handshake_timeout_ns; /* of TLS, from the accepted or made connection to its end */
    uint64_t stall_timeout_ns;     /* there are unsent bytes and the peer takes none of them */
    uint64_t linger_timeout_ns;    /* after sl_socket_close(): to deliver the rest and see the peer's end */
    uint64_t keepalive_ns;         /* of silence, before the system asks whether the peer is still there */
} sl_net_limits;

/* Good for a server on the open network; tests and clients change single fields. */
extern const sl_net_limits sl_net_limits_default;

#endif
