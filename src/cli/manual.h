/* cli/manual.h — `sluice manual`: the tables as man pages, sluice(1) and one for each command. */
#ifndef SL_CLI_MANUAL_H
#define SL_CLI_MANUAL_H

#include "cli/commands.h"

extern const sl_command sl_command_manual;

/* A page as roff; NULL: the one about all commands. */
void sl_manual_page(const sl_command *command, FILE *out);

#endif
