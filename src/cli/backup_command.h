/* cli/backup_command.h — `sluice backup`: a consistent copy of a journal, also while a server runs on it. */
#ifndef SL_CLI_BACKUP_COMMAND_H
#define SL_CLI_BACKUP_COMMAND_H

#include "cli/commands.h"

/* SL_EXIT_OK; SL_EXIT_DAMAGE with the findings, and no copy; SL_EXIT_FAILED, and no copy. */
extern const sl_command sl_command_backup;

#endif
