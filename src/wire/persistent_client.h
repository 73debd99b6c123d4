/* wire/persistent_client.h — managing consumer groups, as a client sees it: requests written, answers read.
 *
 * The other direction of persistent_control.h, with the same structs. Through protobuf-c on the caller's arena; errors and lifetimes as
 * in streams_control.h. Requests are written in the present form only, never in the old one. */
#ifndef SL_WIRE_PERSISTENT_CLIENT_H
#define SL_WIRE_PERSISTENT_CLIENT_H

#include "wire/persistent_control.h"

/* Settings are written whether or not has_settings says so: without any, a server takes all of them for 0. */
sl_err sl_wire_group_create_encode(const sl_wire_group_request *request, sl_arena *arena,
                                   sl_str *ret_message);

/* An Update has no filter, and names its strategy by a number, which PinnedByCorrelation has not.
 *   SL_ERR_INVALID  the strategy has no number */
sl_err sl_wire_group_update_encode(const sl_wire_group_request *request, sl_arena *arena,
                                   sl_str *ret_message);

sl_err sl_wire_group_delete_encode(const sl_wire_group_name *name, sl_arena *arena, sl_str *ret_message);
sl_err sl_wire_group_info_request_encode(const sl_wire_group_name *name, sl_arena *arena,
                                         sl_str *ret_message);
sl_err sl_parked_request_encode(const sl_parked_request *request, sl_arena *arena, sl_str *ret_message);
sl_err sl_wire_group_list_request_encode(const sl_wire_group_list_request *request, sl_arena *arena,
                                         sl_str *ret_message);

/* An answer without an info is one in which everything is empty. */
sl_err sl_wire_group_info_decode(sl_str message, sl_arena *arena, sl_wire_group_info *ret_info,
                                 const char **ret_reason);

typedef struct sl_wire_group_infos {
    const sl_wire_group_info *list;
    size_t count;
} sl_wire_group_infos;

sl_err sl_wire_group_list_decode(sl_str message, sl_arena *arena, sl_wire_group_infos *ret_infos,
                                 const char **ret_reason);

#endif
