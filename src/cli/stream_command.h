/* cli/stream_command.h — `sluice stream info`, `delete` and `metadata`: a stream as a whole. */
#ifndef SL_CLI_STREAM_COMMAND_H
#define SL_CLI_STREAM_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_stream_info;
extern const sl_command sl_command_stream_delete;
extern const sl_command sl_command_stream_metadata;

#endif
