/* cli/work_make.h — from a plan to what a worker is made of: source, handler and ack file. The only file of the command that knows
 * which kinds there are. */
#ifndef SL_CLI_WORK_MAKE_H
#define SL_CLI_WORK_MAKE_H

#include "cli/options.h"
#include "cli/password.h"
#include "cli/work_settings.h"
#include "worker/crew.h"

typedef struct sl_work_maker {
    const sl_work_plan *plan;
    sl_option_environment *environment; /* for SLUICE_PASSWORD */
} sl_work_maker;

/* sl_crew_member.make; ctx is a sl_work_maker. A password file is read each time, so that a new password needs no restart. */
sl_err sl_work_make(void *ctx, sl_loop *loop, const sl_logger *log, sl_text *problem,
                    sl_crew_parts *ret_parts);

/* Of --user. Nobody is asked at a terminal: a worker is started by machines. Codes as sl_password_from_file(). */
sl_err sl_work_find_password(const sl_work_maker *maker, sl_text *problem, sl_password *ret_password);

/* May --user and its password go to this server? */
bool sl_work_user_is_for(const sl_work_plan *plan, const sl_client_address *address);

#endif
