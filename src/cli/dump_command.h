/* cli/dump_command.h — `sluice journal dump`: the records of a journal, one line for each. */
#ifndef SL_CLI_DUMP_COMMAND_H
#define SL_CLI_DUMP_COMMAND_H

#include "cli/commands.h"

/* SL_EXIT_OK, SL_EXIT_DAMAGE when something damaged was passed, SL_EXIT_FAILED when the folder can not be read. */
extern const sl_command sl_command_journal_dump;

#endif
