/* wire/connection.h — one HTTP/2 connection that carries gRPC calls, without a socket and without a clock.
 *
 *      bytes from the socket --receive--> [ connection ] --callbacks--> calls, messages
 *      bytes to the socket   <--output--  [            ] <--call.h----  answers
 *
 * The owner of the socket gives what it read to sl_connection_receive() and fetches what is to be written with
 * sl_connection_output(), as much as the socket takes: the pace of the socket decides, and many messages leave
 * in one piece. After each turn it asks four questions: has_output (write), wants_input (read), due_ns (call
 * tick at that time), finished (close the socket and free the connection).
 *
 * Both roles are the same engine; a client starts calls with sl_call_start(), a server gets them by on_call.
 *
 * Callbacks come only from within receive, output, tick, end and free (and sl_call_cancel(), sl_call_resume()).
 * In a callback everything of call.h and sl_connection_shutdown() may be called; receive, output, tick, end
 * and free must not. One thread at a time. now_ns is any clock that never goes back. */
#ifndef SL_WIRE_CONNECTION_H
#define SL_WIRE_CONNECTION_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/limits.h"
#include "wire/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_connection sl_connection; /* opaque: the fields are in wire/engine.h */
typedef struct sl_call sl_call;

typedef enum sl_role {
    SL_ROLE_SERVER,
    SL_ROLE_CLIENT
} sl_role;

#define SL_END_MAP(XX) /* name, HTTP/2 error that the peer is told, text */                                  \
    XX(NONE, NO_ERROR, "the connection is open")                                                             \
    XX(CLOSED, NO_ERROR, "closed by the peer or by the owner")                                               \
    XX(SHUTDOWN, NO_ERROR, "all calls are finished and no new ones are taken")                               \
    XX(IDLE, NO_ERROR, "no call for a long time")                                                            \
    XX(HANDSHAKE_TIMEOUT, SETTINGS_TIMEOUT, "the HTTP/2 preface did not come in time")                       \
    XX(HEADERS_TIMEOUT, ENHANCE_YOUR_CALM, "a header block did not end in time")                             \
    XX(KEEPALIVE_TIMEOUT, NO_ERROR, "the peer answered no ping")                                             \
    XX(NOT_HTTP2, PROTOCOL_ERROR, "the peer does not speak HTTP/2")                                          \
    XX(PROTOCOL, PROTOCOL_ERROR, "the peer broke a rule of HTTP/2")                                          \
    XX(PING_FLOOD, ENHANCE_YOUR_CALM, "too many pings")                                                      \
    XX(SETTINGS_FLOOD, ENHANCE_YOUR_CALM, "too many changes of settings")                                    \
    XX(RESET_FLOOD, ENHANCE_YOUR_CALM, "too many streams were opened and reset")                             \
    XX(EMPTY_FRAME_FLOOD, ENHANCE_YOUR_CALM, "too many empty frames")                                        \
    XX(PRIORITY_FLOOD, ENHANCE_YOUR_CALM, "too many priorities")                                             \
    XX(WINDOW_UPDATE_FLOOD, ENHANCE_YOUR_CALM, "too many window updates")                                    \
    XX(CONTINUATION_FLOOD, ENHANCE_YOUR_CALM, "a header block of too many frames")                           \
    XX(HEADERS_TOO_LARGE, ENHANCE_YOUR_CALM, "headers far beyond the announced limit")                       \
    XX(UNREAD_OUTPUT, ENHANCE_YOUR_CALM, "the peer does not read our answers")                               \
    XX(NOMEM, INTERNAL_ERROR, "out of memory")

/* Why a connection ended: the first reason that came up. */
typedef enum sl_end {
#define XX(name, error, text) SL_END_##name,
    SL_END_MAP(XX)
#undef XX
    SL_END_COUNT_
} sl_end;

/* "PING_FLOOD", and a sentence without a full stop. */
const char *sl_end_name(sl_end end);
const char *sl_end_text(sl_end end);

/* How a call ended, seen from this side. */
typedef enum sl_call_end_kind {
    SL_CALL_FINISHED, /* with a status: a server's was handed to the output, a client's came from the peer */
    SL_CALL_PEER_CANCELLED,  /* the peer reset the stream */
    SL_CALL_CANCELLED,       /* sl_call_cancel() */
    SL_CALL_DEADLINE,        /* the deadline passed; a client has cancelled the call, a server has answered */
    SL_CALL_STALLED,         /* the peer took nothing for limits.stall_timeout_ns */
    SL_CALL_REFUSED,         /* the peer broke a rule or a limit of this call; it was told the status */
    SL_CALL_CONNECTION_LOST, /* the connection ended under the call */
    SL_CALL_END_KIND_COUNT_
} sl_call_end_kind;

typedef struct sl_call_end_info {
    sl_call_end_kind kind;
    sl_status status; /* never OK unless kind is FINISHED */
    sl_str message;   /* good during the callback */
    bool unprocessed; /* client: the server has certainly not looked at the call, so it may be sent again */
} sl_call_end_info;

typedef struct sl_message {
    const uint8_t *data; /* good during the callback; NULL when bytes is 0 */
    size_t bytes;
    size_t window_bytes; /* what to give to sl_call_consume() when this message is done with */
    bool is_last;        /* certainly no message follows; false: that is not known yet */
} sl_message;

/* Any of them may be NULL when it does not matter to the application. ctx is that of the options. */
typedef struct sl_connection_handler {
    /* Server: a call has come; its path and metadata are there, its messages follow. */
    void (*on_call)(void *ctx, sl_call *call);
    /* Client: the first metadata of the answer is there. */
    void (*on_headers)(void *ctx, sl_call *call);
    /* A whole message. Until sl_call_consume() was called for it, it counts against the window of the peer. */
    void (*on_message)(void *ctx, sl_call *call, const sl_message *message);
    /* Server: the peer sends no more messages. Comes after the last of them. */
    void (*on_half_close)(void *ctx, sl_call *call);
    /* sl_call_room() was 0, or sending gave SL_ERR_FULL; now there is room again. */
    void (*on_room)(void *ctx, sl_call *call);
    /* The call is over; comes exactly once for each call that the application knows. The pointer is good until
     * this returns. */
    void (*on_end)(void *ctx, sl_call *call, const sl_call_end_info *info);
    /* The peer wants to close: existing calls go on, a client starts no new ones here. */
    void (*on_goaway)(void *ctx, sl_connection *connection);
} sl_connection_handler;

/* Owned by the caller and shared by as many connections as he likes; nothing is ever counted down. */
typedef struct sl_wire_counters {
    uint64_t connections, connections_ended[SL_END_COUNT_];
    uint64_t calls, calls_ended[SL_CALL_END_KIND_COUNT_];
    uint64_t messages_received, messages_sent;
    uint64_t bytes_received, bytes_sent;
} sl_wire_counters;

/* Input that waits in memory, of all connections that share it: messages whose rest has not come, and what came for calls that
 * are paused. The owner fills bytes_max and leaves the rest alone. Beyond it the call that would make it grow is refused,
 * RESOURCE_EXHAUSTED; the first SL_INPUT_FREE_BYTES of a connection do not count. */
typedef struct sl_wire_budget {
    uint64_t bytes, bytes_max;
} sl_wire_budget;

enum {
    SL_INPUT_FREE_BYTES = 64 * 1024
};

typedef struct sl_connection_options {
    sl_role role;
    const sl_alloc *alloc;        /* NULL: the default one; must live as long as the connection */
    const sl_wire_limits *limits; /* NULL: the defaults; copied */
    const sl_connection_handler *handler;
    void *ctx;
    sl_wire_counters *counters; /* may be NULL */
    sl_wire_budget *input;      /* NULL: only the limits count; else it must live as long as the connection */
    sl_str authority;           /* client: "host:port"; copied */
    bool tls;                   /* client: the scheme is https */
} sl_connection_options;

enum {
    SL_OUTPUT_BYTES_MIN =
        16 * 1024 + 9 /* one DATA frame of the size that every peer accepts, with its head */
};

/* SL_OK, or SL_ERR_NOMEM and nothing was made. */
sl_err sl_connection_new(const sl_connection_options *options, uint64_t now_ns,
                         sl_connection **ret_connection);

/* Ends what is still open (see sl_connection_end()) and frees everything. NULL is allowed. */
void sl_connection_free(sl_connection *connection);

/* Bytes that came from the peer. All of them are used; memory is bounded by the limits. */
void sl_connection_receive(sl_connection *connection, uint64_t now_ns, const void *data, size_t bytes);

/* Writes what is to be sent into the caller's memory and returns how many bytes it is; 0 when there is nothing.
 * capacity must be at least SL_OUTPUT_BYTES_MIN; 64 KB and more is fast. */
size_t sl_connection_output(sl_connection *connection, uint64_t now_ns, void *into, size_t capacity);

bool sl_connection_has_output(const sl_connection *connection);
bool sl_connection_wants_input(const sl_connection *connection);

/* Nothing more will come out and nothing that comes in matters: close the socket. A server waits a moment before
 * it says so (limits.linger_timeout_ns), because closing with unread input destroys what the peer has not read yet;
 * it is sooner when the owner sees that the peer has closed, and calls sl_connection_end(). */
bool sl_connection_finished(const sl_connection *connection);

/* When to call tick: deadlines, keepalive and timeouts. UINT64_MAX: nothing waits for a time. It may change with
 * every call of another function. */
uint64_t sl_connection_due_ns(const sl_connection *connection);
void sl_connection_tick(sl_connection *connection, uint64_t now_ns);

/* Graceful end: the peer is told to start no new calls here, existing ones go on, and when the last one is over
 * the connection is finished. A second call changes nothing. */
void sl_connection_shutdown(sl_connection *connection);

/* Hard end, for example because the socket is closed: every call ends with CONNECTION_LOST. Output that was not
 * fetched is dropped. */
void sl_connection_end(sl_connection *connection);

/* SL_END_NONE while it is open. */
sl_end sl_connection_end_reason(const sl_connection *connection);

/* Calls that are not over. On a server: whose status is not out yet; what the peer still says to one is no call any more. */
uint32_t sl_connection_call_count(const sl_connection *connection);

enum {
    SL_AUTHORITY_BYTES_MAX = 255 + 1 + 5 /* a name, a colon, a port */
};

/* "host:port" as the client calls this server: what it was made with, and on a server what the first call said. Empty when
 * nothing is known. Any characters: a peer chose them. */
sl_str sl_connection_authority(const sl_connection *connection);

/* Bytes of messages that wait in all calls. */
size_t sl_connection_output_bytes(const sl_connection *connection);

#endif
