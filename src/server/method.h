/* server/method.h — the calls that are offered: one row for each, and a sentence for those that are not.
 *
 * A method is a handful of functions around a request. They are called in this order: begin, then message for each message,
 * half_close once, room whenever there is room again after there was none, end exactly once. Any of them may be NULL.
 *
 * A method that takes exactly one message gets it when the client has half-closed, and not before: it may answer at once, to a client
 * that is done sending, and it never begins something for a client that breaks the rule with a second message. Its half_close
 * would say nothing new, so it has none.
 *
 * A message is the caller's memory: good during the call only. It is consumed when `message` returns, so a service that cannot
 * take more pauses the request. */
#ifndef SL_SERVER_METHOD_H
#define SL_SERVER_METHOD_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_request sl_request;

typedef enum sl_method_kind {
    SL_METHOD_UNARY, /* exactly one request message; the dispatcher sees to that */
    SL_METHOD_CLIENT_STREAM,
    SL_METHOD_SERVER_STREAM, /* exactly one request message */
    SL_METHOD_BIDI,
} sl_method_kind;

/* Who may call it at all. What he may do to which stream is asked by the service itself (server/access.h). */
typedef enum sl_method_for {
    SL_FOR_ANYONE,    /* also without credentials: features, gossip */
    SL_FOR_READERS,   /* whoever may be known: users, and anonymous callers where these are allowed */
    SL_FOR_OPERATORS, /* $ops and $admins */
    SL_FOR_ADMINS,
} sl_method_for;

typedef struct sl_method {
    sl_str service, name; /* as in the path: "event_store.client.streams.Streams", "Append" */
    sl_method_kind kind;
    sl_method_for who;
    uint32_t message_bytes_max; /* 0: the engine's default */
    size_t state_bytes;
    const sl_str *features; /* what ServerFeatures says about it */
    size_t feature_count;
    void (*begin)(sl_request *request);
    void (*message)(sl_request *request, sl_str message);
    void (*half_close)(sl_request *request); /* NULL for those that take exactly one message */
    void (*room)(sl_request *request);
    /* The call is over, however it ended: request->call is NULL. What `state` owns is freed here, unless somebody still
     * holds the request. */
    void (*end)(sl_request *request);
    /* The server is stopping: the service ends the call when what it has accepted is answered. NULL: unary calls are left to
     * finish, all others end at once, UNAVAILABLE with the reason. */
    void (*stop)(sl_request *request);
} sl_method;

/* All rows, for the dispatcher and for ServerFeatures. */
extern const sl_method *const sl_methods[];
extern const size_t sl_method_count;

/* NULL when there is none; then *ret_why, never NULL, is the sentence that the client gets with UNIMPLEMENTED. */
const sl_method *sl_method_find(sl_str path, const char **ret_why);

#endif
