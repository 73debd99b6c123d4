/* cli/group_settings.h — from the options of `group create` and `group update` to a request.
 *
 * The server takes what a request does not say for 0, and an Update replaces everything. So a new group gets the defaults of the option
 * table, and a group that is there what it has, with the given options over it. */
#ifndef SL_CLI_GROUP_SETTINGS_H
#define SL_CLI_GROUP_SETTINGS_H

#include "cli/commands.h"
#include "wire/persistent_control.h"

enum {
    SL_GROUP_PREFIXES_MAX = 256 /* as many as the reader of options takes */
};

typedef struct sl_group_plan {
    sl_wire_group_request request;
    sl_str prefixes[SL_GROUP_PREFIXES_MAX];
} sl_group_plan;

/* Both return SL_EXIT_OK, or SL_EXIT_USAGE after the complaint. The plan points into itself and must not be moved. */
int sl_group_plan_create(sl_group_plan *plan, const sl_invocation *invocation);

/* Only the check; the values come when the present ones are known. */
int sl_group_plan_check_update(const sl_invocation *invocation);

/* After the check. `info` is what the group has. False when its start cannot be understood. */
bool sl_group_plan_update(sl_group_plan *plan, const sl_invocation *invocation,
                          const sl_wire_group_info *info);

#endif
