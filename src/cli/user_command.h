/* cli/user_command.h — `sluice user add`, `passwd`, `list` and `remove`: who may do what. */
#ifndef SL_CLI_USER_COMMAND_H
#define SL_CLI_USER_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_user_add;
extern const sl_command sl_command_user_passwd;
extern const sl_command sl_command_user_list;
extern const sl_command sl_command_user_remove;

#endif
