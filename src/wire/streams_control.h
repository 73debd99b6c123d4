/* wire/streams_control.h — the other messages of Streams: how to read, and deleting.
 *
 * Seldom, so they go through protobuf-c and take memory from the arena that the caller gives, usually that of the call.
 * Decoders, here and in the other _control headers:
 *   SL_OK
 *   SL_ERR_INVALID    malformed; *ret_reason, which may be NULL, says why in static memory
 *   SL_ERR_TOO_LARGE  the arena's limit is too low
 *   SL_ERR_NOMEM
 * Encoders give SL_OK and a message in the arena, or SL_ERR_NOMEM. Views live as long as the arena. */
#ifndef SL_WIRE_STREAMS_CONTROL_H
#define SL_WIRE_STREAMS_CONTROL_H

#include "base/arena.h"
#include "wire/common_codec.h"

typedef enum sl_wire_start {
    SL_WIRE_START_UNSET,
    SL_WIRE_START_BEGIN,
    SL_WIRE_START_END,
    SL_WIRE_START_GIVEN, /* at a revision of a stream, at a position of $all */
} sl_wire_start;

typedef enum sl_wire_filter_kind {
    SL_WIRE_FILTER_UNSET,
    SL_WIRE_FILTER_NONE, /* "no filter", said aloud */
    SL_WIRE_FILTER_GIVEN,
} sl_wire_filter_kind;

typedef enum sl_wire_filter_on {
    SL_WIRE_FILTER_ON_UNSET,
    SL_WIRE_FILTER_ON_STREAM,
    SL_WIRE_FILTER_ON_TYPE,
} sl_wire_filter_on;

typedef enum sl_wire_window {
    SL_WIRE_WINDOW_UNSET,
    SL_WIRE_WINDOW_MAX,
    SL_WIRE_WINDOW_COUNT,
} sl_wire_window;

typedef struct sl_wire_filter {
    sl_wire_filter_kind kind;
    sl_wire_filter_on on; /* this and the rest: GIVEN only */
    sl_str regex;         /* counts when it is not empty, else the prefixes */
    const sl_str *prefixes;
    size_t prefix_count;
    sl_wire_window window;
    uint32_t window_max; /* MAX */
    uint32_t checkpoint_multiplier;
} sl_wire_filter;

typedef enum sl_read_extent {
    SL_READ_EXTENT_UNSET,
    SL_READ_EXTENT_COUNT,
    SL_READ_EXTENT_SUBSCRIPTION,
} sl_read_extent;

typedef struct sl_read_request {
    sl_wire_source source;
    sl_str stream; /* STREAM */
    sl_wire_start start;
    uint64_t revision;         /* STREAM, GIVEN */
    sl_wire_position position; /* ALL, GIVEN; its kind is not looked at */
    bool backwards;
    bool resolve_links;
    sl_read_extent extent;
    uint64_t count; /* COUNT */
    sl_wire_filter filter;
    bool has_id_option;
    sl_wire_id_form id_form; /* STRUCTURED or TEXT, ABSENT when the option says nothing */
    uint32_t compatibility;
} sl_read_request;

sl_err sl_read_request_decode(sl_str message, sl_arena *arena, sl_read_request *ret_request,
                              const char **ret_reason);
sl_err sl_read_request_encode(const sl_read_request *request, sl_arena *arena, sl_str *ret_message);

/* Delete and Tombstone. */
typedef struct sl_delete_request {
    sl_str stream;
    sl_wire_revision expected;
} sl_delete_request;

sl_err sl_delete_request_decode(sl_str message, sl_arena *arena, sl_delete_request *ret_request,
                                const char **ret_reason);
sl_err sl_delete_request_encode(const sl_delete_request *request, sl_arena *arena, sl_str *ret_message);

/* A position should always be GIVEN: a client uses it without looking. */
sl_err sl_delete_response_decode(sl_str message, sl_arena *arena, sl_wire_position *ret_position,
                                 const char **ret_reason);
sl_err sl_delete_response_encode(const sl_wire_position *position, sl_arena *arena, sl_str *ret_message);

#endif
