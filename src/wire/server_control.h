/* wire/server_control.h — what clients ask a server about itself: features, members, operations, users, statistics.
 *
 * Through protobuf-c on the caller's arena; errors and lifetimes as in streams_control.h. Answers and requests that are
 * not here are empty messages: no bytes at all. */
#ifndef SL_WIRE_SERVER_CONTROL_H
#define SL_WIRE_SERVER_CONTROL_H

#include "base/arena.h"
#include "wire/common_codec.h"

/* --- ServerFeatures --- */

/* Names in lower case: most clients compare them byte for byte. */
typedef struct sl_supported_method {
    sl_str method, service;
    const sl_str *features;
    size_t feature_count;
} sl_supported_method;

typedef struct sl_supported_methods {
    const sl_supported_method *methods;
    size_t method_count;
    sl_str version; /* three numbers with dots between them, else some clients do not connect */
} sl_supported_methods;

sl_err sl_supported_methods_decode(sl_str message, sl_arena *arena, sl_supported_methods *ret_methods,
                                   const char **ret_reason);
sl_err sl_supported_methods_encode(const sl_supported_methods *methods, sl_arena *arena, sl_str *ret_message);

/* --- Gossip --- */

typedef enum sl_member_state { /* numbers as on the wire; the others belong to clusters */
    SL_MEMBER_FOLLOWER = 6,
    SL_MEMBER_LEADER = 8,
    SL_MEMBER_SHUTTING_DOWN = 10,
} sl_member_state;

/* The only member of our cluster. */
typedef struct sl_cluster_member {
    sl_uuid instance;
    uint64_t now_ticks; /* since 1970 */
    sl_member_state state;
    bool is_alive;
    sl_str address; /* where clients can reach it: they connect there */
    uint32_t port;
} sl_cluster_member;

sl_err sl_cluster_info_encode(const sl_cluster_member *member, sl_arena *arena, sl_str *ret_message);

/* What a client may get from others: several, in states that are not listed above. */
typedef struct sl_cluster_info {
    const sl_cluster_member *members;
    size_t member_count;
} sl_cluster_info;

sl_err sl_cluster_info_decode(sl_str message, sl_arena *arena, sl_cluster_info *ret_info,
                              const char **ret_reason);

/* --- Operations --- */

typedef struct sl_scavenge_start {
    int32_t thread_count, start_from_chunk;
} sl_scavenge_start;

sl_err sl_scavenge_start_decode(sl_str message, sl_arena *arena, sl_scavenge_start *ret_start,
                                const char **ret_reason);
sl_err sl_scavenge_stop_decode(sl_str message, sl_arena *arena, sl_str *ret_scavenge_id,
                               const char **ret_reason);

typedef enum sl_scavenge_result { /* numbers as on the wire */
    SL_SCAVENGE_RESULT_STARTED = 0,
    SL_SCAVENGE_RESULT_IN_PROGRESS = 1,
    SL_SCAVENGE_RESULT_STOPPED = 2,
} sl_scavenge_result;

sl_err sl_scavenge_response_encode(sl_str scavenge_id, sl_scavenge_result result, sl_arena *arena,
                                   sl_str *ret_message);
sl_err sl_node_priority_decode(sl_str message, sl_arena *arena, int32_t *ret_priority,
                               const char **ret_reason);

/* --- Users --- */

typedef enum sl_user_call {
    SL_USER_CALL_CREATE,
    SL_USER_CALL_UPDATE,
    SL_USER_CALL_NAME_ONLY, /* Delete, Disable, Enable, Details */
    SL_USER_CALL_CHANGE_PASSWORD,
    SL_USER_CALL_RESET_PASSWORD,
} sl_user_call;

/* What the call does not have is empty. The arena then holds passwords: clear it with care. */
typedef struct sl_user_request {
    sl_str login_name;   /* empty in Details: all users */
    sl_str password;     /* of CREATE and UPDATE; the current one of CHANGE_PASSWORD */
    sl_str new_password; /* of CHANGE_ and RESET_PASSWORD */
    sl_str full_name;
    const sl_str *groups;
    size_t group_count;
} sl_user_request;

sl_err sl_user_request_decode(sl_user_call call, sl_str message, sl_arena *arena,
                              sl_user_request *ret_request, const char **ret_reason);
sl_err sl_user_request_encode(sl_user_call call, const sl_user_request *request, sl_arena *arena,
                              sl_str *ret_message);

typedef struct sl_user_details {
    sl_str login_name, full_name;
    const sl_str *groups;
    size_t group_count;
    uint64_t updated_ticks; /* since 1970 */
    bool disabled;
} sl_user_details;

sl_err sl_user_details_encode(const sl_user_details *details, sl_arena *arena, sl_str *ret_message);
sl_err sl_user_details_decode(sl_str message, sl_arena *arena, sl_user_details *ret_details,
                              const char **ret_reason);

/* --- Monitoring --- */

typedef struct sl_stats_request {
    bool use_metadata;
    uint64_t refresh_ms;
} sl_stats_request;

sl_err sl_stats_request_decode(sl_str message, sl_arena *arena, sl_stats_request *ret_request,
                               const char **ret_reason);
sl_err sl_stats_encode(const sl_wire_label *stats, size_t stat_count, sl_arena *arena, sl_str *ret_message);

#endif
