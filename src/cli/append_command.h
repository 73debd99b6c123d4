/* cli/append_command.h — `sluice append`: one event, or one for each line of a file or a pipe. */
#ifndef SL_CLI_APPEND_COMMAND_H
#define SL_CLI_APPEND_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_append;

#endif
