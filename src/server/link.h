/* server/link.h — one connection of a client: the engine of wire, and the way from its calls to the methods.
 *
 * A link knows no socket. Its owner brings bytes in, fetches bytes, and is told by `touch` when something outside of its own calls
 * made output or changed the time of the next tick.
 *
 * Who connects and never makes a call that is let in must go after SL_LINK_NEWCOMER_NS: connections are counted, and a
 * stranger without a password could hold all of them for the whole idle time. */
#ifndef SL_SERVER_LINK_H
#define SL_SERVER_LINK_H

#include "server/host.h"
#include "wire/connection.h"

enum {
    SL_LINK_KEPT_BYTES_MAX =
        64 * 1024 * 1024 /* of requests that wait for their half-close: as much as the engine
                                                 lets a connection leave unfinished */
};

typedef struct sl_link_owner {
    /* Look at has_output, due_ns and finished again, in this turn. Comes often, also from inside of receive and of
     * sl_link_free(), so it only remembers. */
    void (*touch)(void *ctx);
    void *ctx;
    sl_str peer; /* "127.0.0.1:40000"; copied */
} sl_link_owner;

/* Long enough for a client that connects before it has something to ask. */
#define SL_LINK_NEWCOMER_NS (UINT64_C(60) * 1000 * 1000 * 1000)

struct sl_link {
    sl_host *host;
    sl_connection *connection; /* the owner drives it: receive, output, tick, finished */
    sl_link_owner owner;
    sl_list node;
    sl_alarm newcomer; /* until the first call that is let in */
    size_t kept_bytes; /* of all its requests; at most SL_LINK_KEPT_BYTES_MAX */
    char peer[64];
};
typedef struct sl_link sl_link;

/* SL_OK or SL_ERR_NOMEM. */
sl_err sl_link_new(sl_host *host, const sl_link_owner *owner, sl_link **ret_link);

/* A call was let in: the peer is no stranger any more. */
void sl_link_admit(sl_link *link);

/* Every call ends with CONNECTION_LOST. NULL is allowed. */
void sl_link_free(sl_link *link);

#endif
