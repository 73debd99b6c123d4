/* cli/read_command.h — `sluice read`: events of a stream, or of all streams, and those that are still to come. */
#ifndef SL_CLI_READ_COMMAND_H
#define SL_CLI_READ_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_read;

#endif
