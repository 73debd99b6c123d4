/* wire/common_codec.h — the values that several messages share: ids, revisions, positions, times, events.
 *
 * Everything that was decoded is a view: it points into the message that it came from and is good as long as that is.
 * Nothing here allocates. What is not in a message is zero, and zero means "not set": the first value of each enum.
 * Whether something that is not set is an error is the business of the service, not of the codec. */
#ifndef SL_WIRE_COMMON_CODEC_H
#define SL_WIRE_COMMON_CODEC_H

#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "wire/proto_bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_WIRE_TICK_NS = 100 /* `created` and other times are counted in this */
};

/* --- ids --- */

typedef enum sl_wire_id_form {
    SL_WIRE_ID_ABSENT,
    SL_WIRE_ID_STRUCTURED, /* two numbers of 64 bits */
    SL_WIRE_ID_TEXT,
    SL_WIRE_ID_MALFORMED, /* as text, but no UUID. Only decoding gives this, and it is no error of the message:
                           * one bad id in a batch must not end the call that many appends share */
} sl_wire_id_form;

typedef struct sl_wire_id {
    sl_uuid uuid; /* zero unless the form is STRUCTURED or TEXT */
    sl_wire_id_form form;
} sl_wire_id;

/* Decodes a UUID message on its own, as sl_batch_append_request.correlation holds one. Text is taken with or without
 * dashes, and in {} or (). SL_OK or SL_ERR_INVALID. */
sl_err sl_wire_id_decode(sl_str message, sl_wire_id *ret_id, const char **ret_reason);

enum {
    SL_WIRE_ID_BYTES_MAX = 38 /* of an encoded id: text with tag and length */
};

/* Encodes a UUID message without a tag of its own; returns how many bytes of `message` were written. */
size_t sl_wire_id_encode(sl_wire_id id, uint8_t message[SL_WIRE_ID_BYTES_MAX]);

/* --- lists inside of a message --- */

/* The items of one repeated field. Read again from the message at each walk, so that no list is ever stored: a peer may
 * send hundreds of thousands. */
typedef struct sl_wire_items {
    sl_str part;     /* the message, or its end, from the first field on that counts */
    uint32_t arm;    /* the embedded message that has the items; 0: the message itself */
    uint32_t number; /* of the repeated field */
} sl_wire_items;

/* To be written: `list` and `form`. When decoded: `items`, every one of which is well-formed protobuf, and how many of them are no
 * UUIDs. */
typedef struct sl_wire_ids {
    size_t count, wrong_count;
    const sl_uuid *list;
    sl_wire_id_form form;
    sl_wire_items items;
} sl_wire_ids;

typedef struct sl_wire_label {
    sl_str key, value;
} sl_wire_label;

/* The same with pairs of texts. A key may be there twice; then the last one counts. */
typedef struct sl_wire_labels {
    size_t count;
    const sl_wire_label *list;
    sl_wire_items items;
} sl_wire_labels;

typedef struct sl_wire_walk {
    sl_proto_reader outer, inner;
    uint32_t arm, number;
} sl_wire_walk;

/* Over decoded items, in the order in which they came. The _next functions return false at the end. */
sl_wire_walk sl_wire_items_walk(const sl_wire_items *items);
bool sl_wire_items_next(sl_wire_walk *walk, sl_str *ret_item);
bool sl_wire_ids_next(sl_wire_walk *walk, sl_wire_id *ret_id);
bool sl_wire_labels_next(sl_wire_walk *walk, sl_wire_label *ret_label);

/* --- revisions, positions, times --- */

typedef enum sl_wire_revision_kind {
    SL_WIRE_REVISION_UNSET,
    SL_WIRE_REVISION_NUMBER,
    SL_WIRE_REVISION_NO_STREAM,
    SL_WIRE_REVISION_ANY,           /* expected only */
    SL_WIRE_REVISION_STREAM_EXISTS, /* expected only */
} sl_wire_revision_kind;

/* What a stream is expected to be at, or is at. */
typedef struct sl_wire_revision {
    sl_wire_revision_kind kind;
    uint64_t number; /* any 64 bits; 2^64 - 1 is not special here */
} sl_wire_revision;

typedef enum sl_wire_position_kind {
    SL_WIRE_POSITION_UNSET,
    SL_WIRE_POSITION_NONE, /* "there is none", said aloud */
    SL_WIRE_POSITION_GIVEN,
} sl_wire_position_kind;

typedef struct sl_wire_position {
    sl_wire_position_kind kind;
    uint64_t commit, prepare;
} sl_wire_position;

/* Since 1970, or a duration. Nothing is checked: clients send years beyond any calendar. */
typedef struct sl_wire_time {
    bool given;
    int64_t seconds;
    int32_t nanos;
} sl_wire_time;

sl_wire_time sl_wire_time_from_ns(uint64_t wall_ns);

/* --- where events come from --- */

typedef enum sl_wire_source {
    SL_WIRE_SOURCE_UNSET,
    SL_WIRE_SOURCE_STREAM,
    SL_WIRE_SOURCE_ALL,
} sl_wire_source;

/* --- events --- */

/* An event on its way in. */
typedef struct sl_wire_proposed {
    sl_wire_id id;
    sl_str type, content_type;    /* UTF-8; data is NULL when the metadata has no such key */
    sl_str custom_metadata, data; /* any bytes */
} sl_wire_proposed;

/* An event on its way out. */
typedef struct sl_wire_recorded {
    sl_wire_id id;
    sl_str stream;
    uint64_t revision;
    uint64_t commit_position, prepare_position;
    sl_str type, content_type; /* as above; a key whose data is NULL is not written */
    uint64_t created_ticks;    /* since 1970; always written, read as 0 when it is missing or no number */
    sl_str custom_metadata, data;
} sl_wire_recorded;

typedef enum sl_wire_retry_kind {
    SL_WIRE_RETRY_UNSET,
    SL_WIRE_RETRY_NONE,
    SL_WIRE_RETRY_COUNT,
} sl_wire_retry_kind;

/* What a reader gets. `link` is the link event through which it was found; `event` is missing when the link points to
 * nothing any more. The last four are of persistent subscriptions: Streams writes and reads none of them. */
typedef struct sl_wire_read_event {
    bool has_event, has_link;
    sl_wire_recorded event, link; /* only what has_ says is filled in */
    sl_wire_position_kind position_kind;
    uint64_t commit_position; /* GIVEN */
    sl_wire_retry_kind retry_kind;
    int32_t retry_count; /* COUNT */
    uint64_t lease_token;
    int32_t lease_ms;
} sl_wire_read_event;

#endif
