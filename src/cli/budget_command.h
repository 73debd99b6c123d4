/* cli/budget_command.h — `sluice budget`: how a grace period will be spent, before a deploy spends it. */
#ifndef SL_CLI_BUDGET_COMMAND_H
#define SL_CLI_BUDGET_COMMAND_H

#include "cli/commands.h"

/* Shows the split as a table or as JSON. SL_EXIT_FAILED with the arithmetic when the parts do not fit
 * (S3.32). */
extern const sl_command sl_command_budget;

#endif
