/* cli/work_files.h — the files that `sluice work` will need, looked at before anything starts.
 *
 * A worker that cannot be made is tried again, because a source may come back. A file that is not there does not: who mistypes a path
 * is told at once, and a report that cannot be written is not found out about when there is something to report. */
#ifndef SL_CLI_WORK_FILES_H
#define SL_CLI_WORK_FILES_H

#include "cli/work_members.h"

/* Opens nothing that others lock and makes nothing. problem: a sentence without a full stop, which says what to do.
 *   SL_OK
 *   SL_ERR_INVALID  there is no password for --user, or none that can be one
 *   SL_ERR_IO       a file cannot be used, or what is in it */
sl_err sl_work_files_check(const sl_invocation *invocation, const sl_work_members *members, sl_text *problem);

#endif
