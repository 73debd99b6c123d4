/* wire/persistent_control.h — managing consumer groups: create, change, look at, replay, delete.
 *
 * Through protobuf-c on the caller's arena; errors and lifetimes as in streams_control.h. The answers of Create, Update,
 * Delete, ReplayParked, TruncateParked and RestartSubsystem are empty messages: no bytes at all. */
#ifndef SL_WIRE_PERSISTENT_CONTROL_H
#define SL_WIRE_PERSISTENT_CONTROL_H

#include "base/arena.h"
#include "wire/common_codec.h"
#include "wire/streams_control.h"

/* A time that clients give in ticks or in milliseconds. */
typedef struct sl_wire_group_time {
    bool given;
    bool in_ticks; /* of 100 ns */
    int64_t value; /* any; negative ones too */
} sl_wire_group_time;

/* A number that only Sluice knows: clients of KurrentDB do not give it. */
typedef struct sl_wire_group_limit {
    bool given;
    int32_t value;
} sl_wire_group_limit;

/* Numbers as on the wire; nothing is checked here. */
typedef struct sl_wire_group_settings {
    bool resolve_links, extra_statistics;
    sl_wire_group_time message_timeout, checkpoint_after;
    int32_t max_retry_count;
    int32_t min_checkpoint_count, max_checkpoint_count;
    int32_t max_subscriber_count;
    int32_t live_buffer_size, read_batch_size, history_buffer_size;
    sl_str
        strategy; /* the text when it is there, else the name of the number; empty for a number without a name */
    sl_wire_group_limit max_interrupts,
        max_kills; /* not given: an Update keeps them, a Create has the usual */
} sl_wire_group_settings;

/* Create and Update. Some clients send the stream in an old form, without a start; here both forms look the same. */
typedef struct sl_wire_group_request {
    sl_wire_source source; /* never UNSET: without a word about it, it is a stream */
    sl_str stream;         /* STREAM */
    sl_str group;
    sl_wire_start start;
    uint64_t revision;         /* STREAM, GIVEN. In the old form 2^64 - 1 has become END */
    sl_wire_position position; /* ALL, GIVEN */
    sl_wire_filter filter;     /* ALL; UNSET in an Update, which keeps the one that is stored */
    bool has_settings;
    sl_wire_group_settings settings;
} sl_wire_group_request;

sl_err sl_wire_group_create_decode(sl_str message, sl_arena *arena, sl_wire_group_request *ret_request,
                                   const char **ret_reason);
sl_err sl_wire_group_update_decode(sl_str message, sl_arena *arena, sl_wire_group_request *ret_request,
                                   const char **ret_reason);

/* Which group a request is about. */
typedef struct sl_wire_group_name {
    sl_wire_source source;
    sl_str stream; /* STREAM */
    sl_str group;
} sl_wire_group_name;

sl_err sl_wire_group_delete_decode(sl_str message, sl_arena *arena, sl_wire_group_name *ret_name,
                                   const char **ret_reason);
sl_err sl_wire_group_info_request_decode(sl_str message, sl_arena *arena, sl_wire_group_name *ret_name,
                                         const char **ret_reason);

typedef enum sl_parked_limit {
    SL_PARKED_LIMIT_UNSET,
    SL_PARKED_LIMIT_NONE,
    SL_PARKED_LIMIT_STOP_AT,
} sl_parked_limit;

/* ReplayParked and TruncateParked. */
typedef struct sl_parked_request {
    sl_wire_group_name name;
    sl_parked_limit limit;
    int64_t stop_at; /* STOP_AT */
} sl_parked_request;

sl_err sl_parked_request_decode(sl_str message, sl_arena *arena, sl_parked_request *ret_request,
                                const char **ret_reason);

typedef enum sl_wire_group_list_kind {
    SL_WIRE_GROUP_LIST_UNSET,
    SL_WIRE_GROUP_LIST_EVERY, /* all groups there are */
    SL_WIRE_GROUP_LIST_OF,    /* those of one source */
} sl_wire_group_list_kind;

typedef struct sl_wire_group_list_request {
    sl_wire_group_list_kind kind;
    sl_wire_source source; /* OF */
    sl_str stream;         /* OF, STREAM */
} sl_wire_group_list_request;

sl_err sl_wire_group_list_request_decode(sl_str message, sl_arena *arena,
                                         sl_wire_group_list_request *ret_request, const char **ret_reason);

typedef struct sl_wire_group_measurement {
    sl_str key;
    int64_t value;
} sl_wire_group_measurement;

typedef struct sl_wire_group_connection {
    sl_str from, username, connection_name;
    int32_t average_items_per_second;
    int64_t total_items, count_since_last_measurement;
    int32_t available_slots, in_flight_messages;
    const sl_wire_group_measurement *measurements;
    size_t measurement_count;
} sl_wire_group_connection;

/* Positions are texts: "123" for a stream, "C:1/P:1" for $all. */
typedef struct sl_wire_group_info {
    sl_str event_source, group, status;
    const sl_wire_group_connection *connections;
    size_t connection_count;
    int32_t average_per_second;
    int64_t total_items, count_since_last_measurement;
    sl_str last_checkpointed_position, last_known_position, start_from;
    bool resolve_links, extra_statistics;
    int32_t message_timeout_ms, max_retry_count;
    int32_t live_buffer_size, buffer_size, read_batch_size;
    int32_t checkpoint_after_ms, min_checkpoint_count, max_checkpoint_count;
    int32_t read_buffer_count, retry_buffer_count;
    int64_t live_buffer_count;
    int32_t in_flight_count, outstanding_count;
    sl_str strategy;
    int32_t max_subscriber_count;
    int64_t parked_count;
    uint32_t stop_rules;   /* of operators, for whoever joins later */
    bool everyone_stopped; /* one of them is for everybody */
    int32_t max_interrupts, max_kills;
} sl_wire_group_info;

sl_err sl_wire_group_info_encode(const sl_wire_group_info *info, sl_arena *arena, sl_str *ret_message);
sl_err sl_wire_group_list_encode(const sl_wire_group_info *infos, size_t info_count, sl_arena *arena,
                                 sl_str *ret_message);

#endif
