/* server/request.h — one call that is being served.
 *
 * A request outlives its call when a service holds it: the answer of a commit may come after the client has gone. Everything that
 * sends looks whether the call is still there and else drops what it was given, so a service need not ask. Sending from
 * wherever it may be (a commit, an alarm) wakes the connection. */
#ifndef SL_SERVER_REQUEST_H
#define SL_SERVER_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "server/host.h"
#include "server/identity.h"
#include "server/method.h"
#include "wire/call.h"

typedef struct sl_link sl_link; /* server/link.h */
typedef struct sl_recall_room sl_recall_room;

enum {
    SL_REQUEST_ARENA_CHUNK_BYTES = 4 * 1024,
    SL_REQUEST_ARENA_BYTES_MAX = 64 * 1024 * 1024, /* decoded control messages, the state of the method */
};

struct sl_request {
    sl_host *host;
    sl_link *link;           /* NULL once the call is over */
    sl_call *call;           /* NULL once the call is over */
    const sl_method *method; /* never NULL in a service */
    sl_identity identity;    /* who asks; its texts are in the arena */
    sl_recall_room *groups;  /* for server/recall.c; NULL until the groups of the user change */
    sl_arena arena;
    void *state;    /* method->state_bytes of zeros at the beginning */
    bool finished;  /* a status was given; nothing more can be sent */
    uint32_t holds; /* 1 for the call itself */
    sl_list node;   /* host->requests */
    sl_auth_ticket ticket;
    uint32_t message_count;
    sl_buf kept_message; /* of a method that takes one, until the client half-closes; counted by the link */
    bool message_waits;  /* there is such a message; it may be empty */
    bool asking;         /* the ticket is on its way */
    bool held_back;      /* by dispatch.c: nothing comes before begin() has returned */
    bool begun;          /* begin() was called, so end() will be */
    bool paused;         /* by the service */
    sl_str answer;       /* kept for a client that does not read: sent as soon as there is room */
    bool answer_waits;
    sl_call_end_kind end_kind; /* how the call ended; good in method->end and after it */
};

enum {
    SL_REQUEST_SPARES_MAX = 256, /* about a megabyte with their first chunks */
};

/* For dispatch.c: one with the state of its method, in host->requests. NULL: out of memory. */
sl_request *sl_request_new(sl_link *link, sl_call *call, const sl_method *method);
/* The call is over: nothing can be sent any more. */
void sl_request_detach(sl_request *request);
/* There is room again: true when an answer had waited for that, and is sent. */
bool sl_request_flush(sl_request *request);
/* For host.c. */
void sl_request_free_spares(sl_host *host);

/* A held request stays in memory; released the last time it is freed. */
sl_request *sl_request_hold(sl_request *request);
void sl_request_release(sl_request *request);

/* The call is there and has no status yet. */
bool sl_request_open(const sl_request *request);

/* How many bytes may still wait for the client. 0: wait for method->room. */
size_t sl_request_room(sl_request *request);

/* A message made in place, as sl_call_reserve() and sl_call_commit().
 *   SL_OK
 *   SL_ERR_FULL       no room; method->room follows
 *   SL_ERR_TOO_LARGE, SL_ERR_NOMEM
 *   SL_ERR_EMPTY      the call is over */
sl_err sl_request_reserve(sl_request *request, size_t bytes, uint8_t **ret_data);
void sl_request_commit(sl_request *request, size_t bytes);

/* A whole message, and for unary calls the message with status OK behind it. A message that cannot be sent ends the call
 * with RESOURCE_EXHAUSTED; an answer for which there is only no room yet is kept, because what it tells has happened. */
void sl_request_send(sl_request *request, sl_str message);
void sl_request_answer(sl_request *request, sl_str message);

/* The status; server/reply.h has the errors that clients know. Once; later ones are dropped. */
void sl_request_finish(sl_request *request, sl_status status, sl_str message, const sl_metadata *trailers,
                       size_t trailer_count);

/* Back-pressure: no method->message and no method->half_close between these two. Resuming calls them for what came
 * meanwhile before it returns, except from inside of these functions: whoever resumes holds the request if he needs it after. */
void sl_request_pause(sl_request *request);
void sl_request_resume(sl_request *request);

/* The first value of a request header, empty when there is none. */
sl_str sl_request_header(const sl_request *request, sl_str key);

/* For the log, and for who fails too often to log in: the address of the client, "127.0.0.1:40000". */
sl_str sl_request_peer(const sl_request *request);

#endif
