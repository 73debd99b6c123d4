/* wire/persistent_codec.h — the two messages of the call Read of PersistentSubscriptions, with our extensions.
 *
 * Hot, and so written by hand: an event out and an ack in for every delivery. Errors, views and sizes as in
 * streams_codec.h. Every id and label of a request is looked at while it is decoded, so that a request which is not
 * well-formed is refused before any of it has had an effect; the walks over them cannot fail any more. */
#ifndef SL_WIRE_PERSISTENT_CODEC_H
#define SL_WIRE_PERSISTENT_CODEC_H

#include "wire/common_codec.h"

/* --- what a consumer sends; the values are the field numbers --- */

typedef enum sl_persistent_request_kind {
    SL_PERSISTENT_REQUEST_UNSET = 0,
    SL_PERSISTENT_REQUEST_OPTIONS = 1,
    SL_PERSISTENT_REQUEST_ACK = 2,
    SL_PERSISTENT_REQUEST_NACK = 3,
    SL_PERSISTENT_REQUEST_STOP = 4,
    SL_PERSISTENT_REQUEST_RELEASE = 100,
    SL_PERSISTENT_REQUEST_EXTEND = 101,
    SL_PERSISTENT_REQUEST_STARTED = 102,
} sl_persistent_request_kind;

typedef struct sl_persistent_options {
    sl_wire_source source;
    sl_str stream; /* STREAM */
    sl_str group;
    int32_t buffer_size;
    bool has_id_option;      /* the client has to say how it wants ids */
    sl_wire_id_form id_form; /* STRUCTURED or TEXT; ABSENT when the option is there and says nothing */
    sl_str consumer_name;    /* from here on: extensions */
    sl_wire_labels labels;
    bool extensions;
    int32_t reconnect_ms;
    sl_wire_ids resume;
} sl_persistent_options;

/* Numbers as on the wire; a peer may send others. */
typedef enum sl_wire_nack {
    SL_WIRE_NACK_UNKNOWN = 0,
    SL_WIRE_NACK_PARK = 1,
    SL_WIRE_NACK_RETRY = 2,
    SL_WIRE_NACK_SKIP = 3,
    SL_WIRE_NACK_STOP = 4,
} sl_wire_nack;

typedef struct sl_persistent_request {
    sl_persistent_request_kind kind;
    union {
        sl_persistent_options options;
        struct {
            sl_wire_ids ids;     /* all but STOP */
            sl_str subscription; /* ACK and NACK: some clients put a name there, servers ignore it */
            int32_t action;      /* NACK: one of sl_wire_nack, or anything */
            sl_str reason;       /* NACK */
            int32_t lease_ms;    /* EXTEND */
            int32_t delay_ms;    /* NACK, an extension: 0: not said */
        };
        bool hand_back_unstarted; /* STOP */
    };
} sl_persistent_request;

sl_err sl_persistent_request_decode(sl_str message, sl_persistent_request *ret_request,
                                    const char **ret_reason);
size_t sl_persistent_request_size(const sl_persistent_request *request);
void sl_persistent_request_encode(const sl_persistent_request *request, uint8_t *message,
                                  size_t message_bytes);

/* --- what a consumer gets; the values are the field numbers --- */

typedef enum sl_persistent_response_kind {
    SL_PERSISTENT_RESPONSE_UNSET = 0, /* never to be sent */
    SL_PERSISTENT_RESPONSE_EVENT = 1,
    SL_PERSISTENT_RESPONSE_CONFIRMATION = 2,
    SL_PERSISTENT_RESPONSE_STOPPED = 100,
    SL_PERSISTENT_RESPONSE_DRAINED = 101,
    SL_PERSISTENT_RESPONSE_STOP_REQUESTED = 102,
    SL_PERSISTENT_RESPONSE_SETTLED = 103,
} sl_persistent_response_kind;

typedef enum sl_wire_asked_by {
    SL_WIRE_ASKED_BY_CONSUMER = 0,
    SL_WIRE_ASKED_BY_OPERATOR = 1,
    SL_WIRE_ASKED_BY_SERVER = 2,
} sl_wire_asked_by;

typedef struct sl_persistent_response {
    sl_persistent_response_kind kind;
    union {
        sl_wire_read_event event;
        sl_str subscription_id; /* CONFIRMATION: "STREAM::GROUP" */
        struct {
            uint32_t in_flight;
            bool already_stopped;
            int32_t asked_by; /* one of sl_wire_asked_by, or what a later server says */
            sl_wire_ids outstanding;
        } stopped;
        struct {
            uint32_t settled, released, lost;
        } drained;
        struct {
            sl_str reason;
            uint32_t deadline_ms;
            bool hand_back_unstarted; /* a wish: the server cannot know what was begun */
        } stop_requested;
        struct {
            sl_wire_ids ids, lost;
        } settled;
    };
} sl_persistent_response;

sl_err sl_persistent_response_decode(sl_str message, sl_persistent_response *ret_response,
                                     const char **ret_reason);
size_t sl_persistent_response_size(const sl_persistent_response *response);
void sl_persistent_response_encode(const sl_persistent_response *response, uint8_t *message,
                                   size_t message_bytes);

/* The same for the most frequent of them, without a copy into the union. */
size_t sl_persistent_event_size(const sl_wire_read_event *event);
void sl_persistent_event_encode(const sl_wire_read_event *event, uint8_t *message, size_t message_bytes);

/* --- an event that is delivered more than once ---
 *
 * The body is what is the same each time: the event, its link and its position. It is encoded once and kept; a delivery is a
 * copy of it with a few bytes in front and behind, and gives the same message as sl_persistent_event_encode() with a
 * retry count. The form of its ids is that of the event it was made from; decoding gives views into it. */

size_t sl_persistent_body_size(const sl_wire_read_event *event);
void sl_persistent_body_encode(const sl_wire_read_event *event, uint8_t *body, size_t body_bytes);
sl_err sl_persistent_body_decode(sl_str body, sl_wire_read_event *ret_event);

typedef struct sl_persistent_delivery {
    int32_t retry_count;
    uint64_t lease_token; /* 0: not written, and so with lease_ms */
    int32_t lease_ms;
} sl_persistent_delivery;

size_t sl_persistent_delivery_size(sl_str body, const sl_persistent_delivery *delivery);
void sl_persistent_delivery_encode(sl_str body, const sl_persistent_delivery *delivery, uint8_t *message,
                                   size_t message_bytes);

#endif
