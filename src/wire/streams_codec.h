/* wire/streams_codec.h — the hot messages of the service Streams: what is appended, and what is read.
 *
 * Written by hand, because every event passes here: decoding gives views into the message and takes no memory, encoding
 * writes each byte once. tests/unit/codec holds them against protobuf-c, byte for byte.
 *
 * Decoders:
 *   SL_OK           *ret_ is filled in; its views are good as long as the message
 *   SL_ERR_INVALID  not protobuf, or not this message; *ret_reason, which may be NULL, says why in static memory; the content
 *                   of *ret_ is then not defined
 * Fields that come twice are treated as protobuf says: the last number or text wins, embedded messages are merged, a oneof
 * forgets the member that another follows. The exceptions stand beside their fields.
 *
 * Encoders: ask _size() first, then give _encode() exactly so many bytes. So a buffer is filled with many messages, each
 * behind its gRPC prefix, and the payload is copied once. */
#ifndef SL_WIRE_STREAMS_CODEC_H
#define SL_WIRE_STREAMS_CODEC_H

#include "wire/common_codec.h"

/* --- Append --- */

typedef enum sl_append_request_kind {
    SL_APPEND_REQUEST_UNSET,
    SL_APPEND_REQUEST_OPTIONS,
    SL_APPEND_REQUEST_EVENT,
} sl_append_request_kind;

typedef struct sl_append_options {
    sl_str stream; /* bytes as they came; nothing is said about UTF-8 */
    sl_wire_revision expected;
} sl_append_options;

typedef struct sl_append_request {
    sl_append_request_kind kind;
    union {
        sl_append_options options;
        sl_wire_proposed event;
    };
} sl_append_request;

sl_err sl_append_request_decode(sl_str message, sl_append_request *ret_request, const char **ret_reason);
size_t sl_append_request_size(const sl_append_request *request);
void sl_append_request_encode(const sl_append_request *request, uint8_t *message, size_t message_bytes);

typedef enum sl_append_response_kind {
    SL_APPEND_RESPONSE_UNSET,
    SL_APPEND_RESPONSE_SUCCESS,
    SL_APPEND_RESPONSE_WRONG_REVISION,
} sl_append_response_kind;

typedef struct sl_append_response {
    sl_append_response_kind kind;
    sl_wire_revision current;  /* both kinds; NUMBER or NO_STREAM */
    sl_wire_position position; /* SUCCESS */
    sl_wire_revision expected; /* WRONG_REVISION */
} sl_append_response;

/* A wrong revision is written in the old and in the new form, since clients read one or the other, and read from the
 * new one when that is there. */
sl_err sl_append_response_decode(sl_str message, sl_append_response *ret_response, const char **ret_reason);
size_t sl_append_response_size(const sl_append_response *response);
void sl_append_response_encode(const sl_append_response *response, uint8_t *message, size_t message_bytes);

/* --- BatchAppend --- */

typedef enum sl_batch_deadline_kind {
    SL_BATCH_DEADLINE_NONE,
    SL_BATCH_DEADLINE_AT,    /* a time since 1970: Node and .NET */
    SL_BATCH_DEADLINE_AFTER, /* a duration: Python and Rust */
} sl_batch_deadline_kind;

typedef struct sl_batch_options {
    sl_str stream;
    sl_wire_revision expected;
    sl_batch_deadline_kind deadline_kind;
    sl_wire_time deadline;
} sl_batch_options;

/* How long the client still wants to wait: 0 when its time is over, UINT64_MAX when it set none or one beyond counting. */
uint64_t sl_batch_options_left_ns(const sl_batch_options *options, uint64_t wall_now_ns);

typedef struct sl_batch_append_request {
    sl_str
        correlation; /* the UUID message as it came, to be echoed byte for byte; data is NULL when there is none. Of two
                         * the last is taken whole, not merged */
    bool has_options;
    sl_batch_options options;
    size_t event_count;
    sl_wire_items events; /* to be walked with sl_wire_items_walk() and sl_batch_append_next() */
    bool is_final;
} sl_batch_append_request;

/* Looks at the request without its events: those are decoded one by one, by sl_batch_append_next(). */
sl_err sl_batch_append_request_decode(sl_str message, sl_batch_append_request *ret_request,
                                      const char **ret_reason);

/*   SL_OK           *ret_event is the next one
 *   SL_ERR_EMPTY    there are no more
 *   SL_ERR_INVALID  this one is broken: nothing of the append counts, also not the events before it */
sl_err sl_batch_append_next(sl_wire_walk *walk, sl_wire_proposed *ret_event, const char **ret_reason);

/* What a client writes. */
typedef struct sl_batch_append_draft {
    sl_wire_id correlation;
    const sl_batch_options *options; /* NULL: not the first request of the append */
    const sl_wire_proposed *events;
    size_t event_count;
    bool is_final;
} sl_batch_append_draft;

size_t sl_batch_append_request_size(const sl_batch_append_draft *draft);
void sl_batch_append_request_encode(const sl_batch_append_draft *draft, uint8_t *message,
                                    size_t message_bytes);

typedef enum sl_batch_append_response_kind {
    SL_BATCH_APPEND_RESPONSE_UNSET,
    SL_BATCH_APPEND_RESPONSE_ERROR,
    SL_BATCH_APPEND_RESPONSE_SUCCESS,
} sl_batch_append_response_kind;

/* google.rpc.Status with one detail. wire/error_details.h makes the details. */
typedef struct sl_wire_status {
    int32_t code;
    sl_str message; /* UTF-8 */
    sl_str detail_type,
        detail_value; /* an Any, not written when both are empty; of several the last is read */
} sl_wire_status;

typedef struct sl_batch_append_response {
    sl_str correlation; /* as in the request: a UUID message; data NULL: none. Of two the last is taken */
    sl_batch_append_response_kind kind;
    sl_wire_status error;      /* ERROR */
    sl_wire_revision current;  /* SUCCESS; NUMBER or NO_STREAM */
    sl_wire_position position; /* SUCCESS */
    sl_str stream;             /* always written: clients use it without looking */
    sl_wire_revision expected; /* the real server leaves it unset */
} sl_batch_append_response;

sl_err sl_batch_append_response_decode(sl_str message, sl_batch_append_response *ret_response,
                                       const char **ret_reason);
size_t sl_batch_append_response_size(const sl_batch_append_response *response);
void sl_batch_append_response_encode(const sl_batch_append_response *response, uint8_t *message,
                                     size_t message_bytes);

/* --- Read --- */

/* The values are the field numbers. */
typedef enum sl_read_response_kind {
    SL_READ_RESPONSE_UNSET = 0, /* never to be sent: a client panics */
    SL_READ_RESPONSE_EVENT = 1,
    SL_READ_RESPONSE_CONFIRMATION = 2,
    SL_READ_RESPONSE_CHECKPOINT = 3,
    SL_READ_RESPONSE_STREAM_NOT_FOUND = 4,
    SL_READ_RESPONSE_FIRST_STREAM_POSITION = 5,
    SL_READ_RESPONSE_LAST_STREAM_POSITION = 6,
    SL_READ_RESPONSE_LAST_ALL_POSITION = 7,
    SL_READ_RESPONSE_CAUGHT_UP = 8,
    SL_READ_RESPONSE_FELL_BEHIND = 9,
} sl_read_response_kind;

typedef struct sl_read_checkpoint {
    sl_wire_position position; /* its kind is not looked at: it is always there */
    sl_wire_time time;
} sl_read_checkpoint;

typedef struct sl_read_boundary {
    sl_wire_time time;
    bool has_revision;
    int64_t revision;          /* of a stream */
    sl_wire_position position; /* of $all: GIVEN or UNSET */
} sl_read_boundary;

typedef struct sl_read_response {
    sl_read_response_kind kind;
    union {
        sl_wire_read_event event;
        sl_str subscription_id; /* CONFIRMATION */
        sl_read_checkpoint checkpoint;
        sl_str stream;                 /* STREAM_NOT_FOUND */
        uint64_t stream_position;      /* FIRST_ and LAST_STREAM_POSITION */
        sl_wire_position all_position; /* LAST_ALL_POSITION */
        sl_read_boundary boundary;     /* CAUGHT_UP and FELL_BEHIND */
    };
} sl_read_response;

sl_err sl_read_response_decode(sl_str message, sl_read_response *ret_response, const char **ret_reason);
size_t sl_read_response_size(const sl_read_response *response);
void sl_read_response_encode(const sl_read_response *response, uint8_t *message, size_t message_bytes);

/* The same for the most frequent of them, without a copy into the union. */
size_t sl_read_event_size(const sl_wire_read_event *event);
void sl_read_event_encode(const sl_wire_read_event *event, uint8_t *message, size_t message_bytes);

#endif
