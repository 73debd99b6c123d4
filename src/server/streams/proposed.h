/* server/streams/proposed.h — from what a client sends to what the store takes: expectations, events, and what is wrong with them.
 *
 * What is wrong is said once, as a refusal; Append makes a status with trailers of it, BatchAppend an answer inside of
 * the call, version 2 a detail. */
#ifndef SL_SERVER_STREAMS_PROPOSED_H
#define SL_SERVER_STREAMS_PROPOSED_H

#include "server/settings.h"
#include "store/store.h"
#include "wire/common_codec.h"

typedef enum sl_refusal_kind {
    SL_REFUSAL_NONE,
    SL_REFUSAL_INVALID,          /* a sentence */
    SL_REFUSAL_MISSING_METADATA, /* which key */
    SL_REFUSAL_EVENT_TOO_LARGE,
    SL_REFUSAL_APPEND_TOO_LARGE,
    SL_REFUSAL_ERROR, /* of the store or of memory, see server/reply.h */
} sl_refusal_kind;

typedef struct sl_refusal {
    sl_refusal_kind kind;
    const char *text; /* INVALID: the sentence; MISSING_METADATA: "type" or "content-type". Static memory */
    sl_uuid event_id; /* EVENT_TOO_LARGE */
    uint32_t event_bytes;
    sl_err err; /* ERROR */
} sl_refusal;

/* False when nothing is expected, or a number that no revision can be. 2^64 - 1 is the old way to say "no stream". */
bool sl_expected_from_wire(sl_wire_revision revision, sl_expected *ret_expected);

/* What the client is told then. */
#define SL_EXPECTED_COMPLAINT                                                                                \
    "The options do not say which revision of the stream is expected, or it is none that a stream can have."

/* The revision that a result has, as clients read it. */
sl_wire_revision sl_revision_to_wire(uint64_t revision);

/* Data, metadata and twice the characters of the type, as KurrentDB counts. */
uint64_t sl_event_size(const sl_event_in *event);

/* One event; its texts stay views of the message. Everything but `created_ns` is filled in. False: *ret_refusal says why. */
bool sl_proposed_take(const sl_wire_proposed *proposed, const sl_server_settings *settings,
                      sl_event_in *ret_event, sl_refusal *ret_refusal);

/* Why a name cannot be that of a stream, or of one that is written to, or a type that of an event: a sentence in static
 * memory, NULL when it can. The metadata of $$x may be asked for, as clients do, and is never there. */
const char *sl_stream_name_complaint(sl_str name);
const char *sl_stream_complaint(sl_str name);
const char *sl_type_complaint(sl_str type);

/* The store did not take an append, SL_ERR_INVALID or SL_ERR_TOO_LARGE: which of its rules was broken, as a refusal. Any other
 * error is passed on. */
sl_refusal sl_append_refusal(const sl_op *append, sl_err err);

#endif
