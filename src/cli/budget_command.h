/* cli/budget_command.h — `sluice budget`: how a grace period will be spent, before a deploy spends it. */
#ifndef SL_CLI_BUDGET_COMMAND_H
#define SL_CLI_BUDGET_COMMAND_H

#include "cli/commands.h"
#include "core/budget.h"

/* Shows the split as a table or as JSON. SL_EXIT_FAILED with the arithmetic when the parts do not fit
 * (S3.32). */
extern const sl_command sl_command_budget;

/* --grace and the parts, as they were asked for: what is not set is to be derived. */
sl_budget_wish sl_budget_wish_read(const sl_option_value *values);

/* The table for people; for programs the members of an object, from "parts" on. */
void sl_budget_print_table(const sl_budget *budget, FILE *out);
void sl_budget_print_json_parts(const sl_budget *budget, FILE *out);

#endif
