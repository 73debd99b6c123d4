/* cli/parked_command.h — `sluice parked`: messages that a group has given up, and what becomes of them. */
#ifndef SL_CLI_PARKED_COMMAND_H
#define SL_CLI_PARKED_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_parked_list;
extern const sl_command sl_command_parked_show;
extern const sl_command sl_command_parked_replay;
extern const sl_command sl_command_parked_truncate;

#endif
