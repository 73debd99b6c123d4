/* client/client.h — one connection to one server, and the calls on it.
 *
 *      idle --connect--> connecting --on_open--> open --on_end--> idle
 *                             \_____________on_end______________/
 *
 * The engine of wire in the role of a client, on a socket of net. Nothing here blocks and nothing retries: whether and when to
 * connect again is known only to whoever knows what the calls meant. Calls may be started as soon as sl_client_connect() has
 * returned; they wait for the connection, and their deadlines run meanwhile.
 *
 * Callbacks come from the loop, and from within sl_client_call_cancel(), sl_client_call_resume() and sl_client_free(). In a
 * callback everything here may be called except sl_client_free() and sl_client_connect(), the latter being allowed in on_end
 * of the client. One thread: that of the loop.
 *
 * Shutdown, is_open, pause and resume are for programs that keep a client for days, as a worker does: commands ask, and end. */
#ifndef SL_CLIENT_CLIENT_H
#define SL_CLIENT_CLIENT_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/str.h"
#include "client/address.h"
#include "net/loop.h"
#include "wire/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_client sl_client; /* opaque: the fields are in client/inside.h */

typedef struct sl_client_end {
    bool was_open;       /* false: never got that far */
    bool has_answered;   /* at least a byte came from the server */
    sl_net_end net;      /* what the socket said; NONE when the engine ended the connection */
    sl_end wire;         /* what the engine said; CLOSED when the socket did */
    const char *problem; /* a sentence without a full stop, good until the next sl_client_connect() */
} sl_client_end;

/* Where a user has written the address of the server, for advice about it. */
typedef struct sl_client_place {
    const char *option;  /* "--server" */
    const char *example; /* an address with ?tls=true as it would stand there */
} sl_client_place;

/* What can be done about such an end, as ". Is the server running?": to be added to a sentence without a full stop. Nothing is added
 * where nobody knows better. tls: the address asks for it. */
void sl_client_add_hint(const sl_client_end *end, const sl_client_place *place, bool tls, sl_text *text);

typedef struct sl_client_handler { /* any of them may be NULL */
    void (*on_open)(void *ctx);
    /* The server wants to close: calls go on, new ones need a new connection (SL_ERR_DRAINING until then). */
    void (*on_goaway)(void *ctx);
    /* After on_end of every call. The client is idle and may connect again. */
    void (*on_end)(void *ctx, const sl_client_end *end);
} sl_client_handler;

typedef struct sl_client_options {
    const sl_alloc *alloc;            /* NULL: the default one */
    const sl_client_address *address; /* copied; the password is wiped when the client is freed */
    uint64_t connect_timeout_ns;      /* lookup, connection and TLS together; 0: for ever */
    const sl_wire_limits *limits;     /* NULL: the defaults, without an end for being idle */
    const sl_client_handler *handler; /* may be NULL */
    void *ctx;
} sl_client_options;

/* What went wrong is said in `problem`.
 *   SL_OK
 *   SL_ERR_INVALID  the file with certificates cannot be used
 *   SL_ERR_NOMEM */
sl_err sl_client_new(sl_loop *loop, const sl_client_options *options, sl_text *problem,
                     sl_client **ret_client);

/* Every call ends with CONNECTION_LOST; on_end of the client does not come. NULL is allowed. */
void sl_client_free(sl_client *client);

/* Begins to connect; on_open or on_end follow, never from inside this call. Only for an idle client.
 *   SL_OK
 *   SL_ERR_INVALID  a host that cannot be one
 *   SL_ERR_NOMEM */
sl_err sl_client_connect(sl_client *client);

/* Starts no more calls; when the last one is over the connection is closed, and on_end comes with wire SHUTDOWN. */
void sl_client_shutdown(sl_client *client);

bool sl_client_is_idle(const sl_client *client);
bool sl_client_is_open(const sl_client *client);

/* Of this connection: at least a byte came. A system answers for a server that is frozen, so being open says less. */
bool sl_client_has_answered(const sl_client *client);

sl_loop *sl_client_loop(const sl_client *client);
const sl_client_address *sl_client_get_address(const sl_client *client);

/* --- calls: inside the things that need them --- */

typedef struct sl_client_call sl_client_call;

/* How a call ended. Texts and lists are good during the callback. */
typedef struct sl_client_result {
    sl_call_end_kind kind;
    sl_status status;
    sl_str message;                   /* the server's, or why the connection was lost */
    const sl_metadata_list *trailers; /* never NULL */
    bool unprocessed; /* the server has certainly not seen the call: sending it again is safe */
} sl_client_result;

typedef struct sl_client_call_handler { /* any of them may be NULL, except on_end */
    /* A whole message; the memory is good during the callback. Who cannot take more pauses the call. */
    void (*on_message)(void *ctx, sl_str message);
    /* sl_client_call_room() was 0, or sending gave SL_ERR_FULL; now there is room again. */
    void (*on_room)(void *ctx);
    /* The call is over; comes exactly once. The sl_client_call may be used again or freed here. */
    void (*on_end)(void *ctx, const sl_client_result *result);
} sl_client_call_handler;

struct sl_client_call { /* the caller's memory; needs no initialisation */
    sl_client *client;
    sl_call *call; /* NULL when it is over */
    const sl_client_call_handler *handler;
    void *ctx;
};

enum {
    SL_CLIENT_METADATA_MAX = 8 /* keys that a call may add to the client's own */
};

typedef struct sl_client_request {
    sl_str path;                 /* "/package.Service/Method" */
    const sl_metadata *metadata; /* besides "authorization" and "connection-name", which the address brings */
    size_t metadata_count;
    uint64_t timeout_ns;        /* from now on; 0: none */
    uint32_t message_bytes_max; /* of an answer; 0: the limit of the client */
    const sl_client_call_handler *handler;
    void *ctx;
} sl_client_request;

/* SL_OK, and on_end will come.
 *   SL_ERR_DRAINING  there is no connection, or it is ending
 *   SL_ERR_FULL      as many calls are open as the limits allow
 *   SL_ERR_NOMEM */
sl_err sl_client_call_start(sl_client *client, sl_client_call *call, const sl_client_request *request);

/* As the functions of wire/call.h. */
size_t sl_client_call_room(sl_client_call *call);
sl_err sl_client_call_send(sl_client_call *call, const sl_str *pieces, size_t piece_count);
sl_err sl_client_call_reserve(sl_client_call *call, size_t bytes, uint8_t **ret_data);
void sl_client_call_commit(sl_client_call *call, size_t bytes);
void sl_client_call_half_close(sl_client_call *call);
void sl_client_call_pause(sl_client_call *call);
void sl_client_call_resume(sl_client_call *call);

/* on_end comes before this returns. */
void sl_client_call_cancel(sl_client_call *call);

#endif
