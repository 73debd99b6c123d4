/* cli/work_command.h — `sluice work`: options to settings, the log to the error output, the ready line to the output. What runs is
 * in src/worker. */
#ifndef SL_CLI_WORK_COMMAND_H
#define SL_CLI_WORK_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_work;

#endif
