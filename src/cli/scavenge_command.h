/* cli/scavenge_command.h — `sluice scavenge`: space back, while no server runs. */
#ifndef SL_CLI_SCAVENGE_COMMAND_H
#define SL_CLI_SCAVENGE_COMMAND_H

#include "cli/commands.h"

/* SL_EXIT_OK, SL_EXIT_DAMAGE, SL_EXIT_FAILED (also: a server runs on the folder). */
extern const sl_command sl_command_scavenge;

#endif
