/* cli/work_members.h — all workers of one call of `sluice work`.
 *
 * Without a section [work NAME] in the file there is one worker, as the options say. With such sections there is one for each: its
 * own section first, then [work], then the lines before the first section. What the command line and the environment say counts for all
 * of them, so what makes a worker itself, its source, handler and name, is refused there. */
#ifndef SL_CLI_WORK_MEMBERS_H
#define SL_CLI_WORK_MEMBERS_H

#include "cli/commands.h"
#include "cli/config.h"
#include "cli/work_settings.h"

typedef struct sl_work_member {
    sl_option_value values[SL_OPT_COUNT_];
    sl_option_reading reading; /* has the repeated values of its own section */
    sl_work_plan plan;
} sl_work_member;

typedef struct sl_work_members {
    sl_work_member *all;
    size_t count;
    sl_budget budget; /* one for the process */
} sl_work_members;

/* The values of the invocation and its file must live as long as the result.
 *   SL_OK           sl_work_members_free() is due
 *   SL_ERR_INVALID  the complaint says which worker, what is wrong and what to do
 *   SL_ERR_NOMEM */
sl_err sl_work_members_read(const sl_invocation *invocation, sl_work_members *ret_members,
                            sl_complaint *ret_complaint);
void sl_work_members_free(sl_work_members *members); /* all zero is allowed */

#endif
