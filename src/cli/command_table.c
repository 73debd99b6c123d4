/* cli/command_table.c — all commands, in the order of the help. Each row stands at the end of its own file. */
#include <assert.h>

#include "base/cleanup.h"
#include "cli/append_command.h"
#include "cli/backup_command.h"
#include "cli/budget_command.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/consumer_command.h"
#include "cli/dump_command.h"
#include "cli/group_command.h"
#include "cli/help.h"
#include "cli/journal_command.h"
#include "cli/manual.h"
#include "cli/parked_command.h"
#include "cli/read_command.h"
#include "cli/scavenge_command.h"
#include "cli/serve_command.h"
#include "cli/stream_command.h"
#include "cli/user_command.h"
#include "cli/work_command.h"

/* A line for each, so that parts can be added side by side. */
/* clang-format off */
const sl_command *const sl_commands[] = {
    &sl_command_help,
    &sl_command_serve,
    &sl_command_work,
    &sl_command_append,
    &sl_command_read,
    &sl_command_stream_info,
    &sl_command_stream_delete,
    &sl_command_stream_metadata,
    &sl_command_group_create,
    &sl_command_group_update,
    &sl_command_group_delete,
    &sl_command_group_info,
    &sl_command_group_list,
    &sl_command_group_watch,
    &sl_command_consumer_list,
    &sl_command_consumer_show,
    &sl_command_consumer_stop,
    &sl_command_consumer_resume,
    &sl_command_consumer_drains,
    &sl_command_parked_list,
    &sl_command_parked_show,
    &sl_command_parked_replay,
    &sl_command_parked_truncate,
    &sl_command_user_add,
    &sl_command_user_passwd,
    &sl_command_user_list,
    &sl_command_user_remove,
    &sl_command_budget,
    &sl_command_journal_verify,
    &sl_command_journal_dump,
    &sl_command_journal_stats,
    &sl_command_backup,
    &sl_command_scavenge,
    &sl_command_completion,
    &sl_command_manual,
    &sl_command_version,
};
/* clang-format on */
const size_t sl_command_count = SL_COUNT_OF(sl_commands);
static_assert(SL_COUNT_OF(sl_commands) <= SL_COMMANDS_MAX, "a bit for each");
