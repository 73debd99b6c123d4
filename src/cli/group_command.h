/* cli/group_command.h — `sluice group`: groups of consumers, made, changed, looked at and deleted. */
#ifndef SL_CLI_GROUP_COMMAND_H
#define SL_CLI_GROUP_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_group_create;
extern const sl_command sl_command_group_update;
extern const sl_command sl_command_group_delete;
extern const sl_command sl_command_group_info;
extern const sl_command sl_command_group_list;
extern const sl_command sl_command_group_watch;

#endif
