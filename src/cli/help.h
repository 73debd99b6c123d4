/* cli/help.h — `sluice help` and `sluice version`: what the tables say, on a terminal. */
#ifndef SL_CLI_HELP_H
#define SL_CLI_HELP_H

#include "cli/commands.h"

extern const sl_command sl_command_help;
extern const sl_command sl_command_version;

/* All commands; those that begin with a word; one of them with its options. */
void sl_help_overview(FILE *out);
void sl_help_family(const char *family, FILE *out);
void sl_help_command(const sl_command *command, FILE *out);

#endif
