/* wire/call.h — one gRPC call: what it brought, what is answered, and how fast.
 *
 *      client:  start   send*  half_close                 on_headers  on_message*  on_end
 *      server:  on_call on_message* on_half_close         headers?    send*        finish     on_end
 *
 * A call is the engine's; the pointer is good from on_call or sl_call_start() until on_end has returned.
 *
 * Back-pressure, both ways. Outgoing: sl_call_room() says how many bytes may still wait; a message is taken as
 * long as that is not 0, however large it is, and on_room says when to go on. Incoming: the peer's window opens
 * again only by sl_call_consume(); an application that wants no messages at all for a while pauses the call. */
#ifndef SL_WIRE_CALL_H
#define SL_WIRE_CALL_H

#include "base/err.h"
#include "base/str.h"
#include "wire/connection.h"
#include "wire/metadata.h"
#include "wire/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What came with the call. */

sl_str sl_call_path(const sl_call *call);

/* The application's own pointer; NULL at first. */
void *sl_call_user(const sl_call *call);
void sl_call_set_user(sl_call *call, void *user);

/* In the time of now_ns; UINT64_MAX: none. The engine itself ends the call then. */
uint64_t sl_call_deadline_ns(const sl_call *call);

/* Metadata of the peer: a server has that of the request, a client that of the answer's beginning and, in
 * on_end, that of its end. Without what belongs to HTTP/2 and gRPC themselves. */
const sl_metadata_list *sl_call_metadata(const sl_call *call);
const sl_metadata_list *sl_call_trailers(const sl_call *call);

/* Another limit for received messages of this call; to be set in on_call or right after sl_call_start(). */
void sl_call_set_message_bytes_max(sl_call *call, uint32_t message_bytes_max);

/* Incoming. */

/* Messages are done with: `window_bytes` of one or the sum of several. */
void sl_call_consume(sl_call *call, size_t window_bytes);

/* No on_message and no on_half_close until sl_call_resume(). What comes meanwhile is kept and stays unconsumed.
 * Resuming delivers what was kept, before it returns, unless it is called from within on_message. */
void sl_call_pause(sl_call *call);
void sl_call_resume(sl_call *call);

/* Outgoing. */

/* How many bytes may still wait for the peer, here and on the connection; 0: wait for on_room. */
size_t sl_call_room(sl_call *call);

/* Bytes of messages that wait to be sent. */
size_t sl_call_output_bytes(const sl_call *call);

/* Server: the first metadata of the answer; once, before the first message. Without it, it is sent empty.
 *   SL_OK, SL_ERR_NOMEM (the call will be reset). Keys must be allowed by sl_metadata_key_allowed(). */
sl_err sl_call_send_headers(sl_call *call, const sl_metadata *metadata, size_t count);

/* A message made in place: up to `bytes` bytes at *ret_data, then commit how many it became. Nothing else may be
 * done with the call between the two.
 *   SL_OK
 *   SL_ERR_FULL       room is 0; on_room follows
 *   SL_ERR_TOO_LARGE  more than limits.sent_message_bytes_max
 *   SL_ERR_NOMEM      the call goes on, the message is not sent */
sl_err sl_call_reserve(sl_call *call, size_t bytes, uint8_t **ret_data);
void sl_call_commit(sl_call *call, size_t bytes);

/* A message made of pieces. Codes as sl_call_reserve(). */
sl_err sl_call_send(sl_call *call, const sl_str *pieces, size_t piece_count);

/* Client: no more messages will follow. */
void sl_call_half_close(sl_call *call);

/* Server: the status, after everything sent before. Nothing may be sent afterwards; on_end follows when the
 * output has it, and messages that still come are dropped, before that and after it (half_open.c). Values that
 * HTTP/2 does not allow travel as %XX; keys must be allowed. Never fails for the caller: without memory the stream is reset. */
void sl_call_finish(sl_call *call, sl_status status, sl_str message, const sl_metadata *trailers,
                    size_t count);

/* The stream is reset and what was not sent is dropped. on_end comes before this returns. */
void sl_call_cancel(sl_call *call);

/* Starting. */

typedef struct sl_call_request {
    sl_str path;                 /* "/package.Service/Method" */
    const sl_metadata *metadata; /* keys must be allowed */
    size_t metadata_count;
    uint64_t deadline_ns; /* in the time of now_ns; UINT64_MAX: none */
    void *user;
} sl_call_request;

/* Client. All parts of the request are copied.
 *   SL_OK
 *   SL_ERR_DRAINING  the connection is ending: take another
 *   SL_ERR_FULL      limits.calls_max are open
 *   SL_ERR_NOMEM */
sl_err sl_call_start(sl_connection *connection, const sl_call_request *request, sl_call **ret_call);

#endif
