/* cli/journal_command.h — `sluice journal verify` and `stats`: is it whole, and what is in it. */
#ifndef SL_CLI_JOURNAL_COMMAND_H
#define SL_CLI_JOURNAL_COMMAND_H

#include "cli/commands.h"
#include "store/inspect.h"

/* SL_EXIT_OK, SL_EXIT_DAMAGE with all damage shown (B13), SL_EXIT_FAILED when the folder can not be read. */
extern const sl_command sl_command_journal_verify;
extern const sl_command sl_command_journal_stats;

/* A finding as lines for people, or as a JSON object; for the other commands that look at journals. */
void sl_print_finding(FILE *out, const sl_finding *finding, const char *prefix);
void sl_print_json_finding(FILE *out, const sl_finding *finding);

#endif
