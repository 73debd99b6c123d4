/* cli/consumer_command.h — `sluice consumer`: who consumes, stop them before a deploy, and let them go on. */
#ifndef SL_CLI_CONSUMER_COMMAND_H
#define SL_CLI_CONSUMER_COMMAND_H

#include "cli/commands.h"

extern const sl_command sl_command_consumer_list;
extern const sl_command sl_command_consumer_show;
extern const sl_command sl_command_consumer_stop;
extern const sl_command sl_command_consumer_resume;
extern const sl_command sl_command_consumer_drains;

#endif
