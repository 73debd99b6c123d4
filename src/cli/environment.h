/* cli/environment.h — variables that look like ours and are not: a mistyped one would be passed over without a word. */
#ifndef SL_CLI_ENVIRONMENT_H
#define SL_CLI_ENVIRONMENT_H

#include <stdbool.h>
#include <stdio.h>

/* A line for each variable that begins with SLUICE_, means nothing, and is nearly the name of one that does: SLUICE_PROT. Others
 * are left alone, because orchestrators make names as well (SLUICE_SERVICE_HOST). `variables` as in environ. */
void sl_environment_warn(char *const *variables, FILE *err);

/* SLUICE_ID and others, which handlers of `sluice work` get: not ours to read, and no mistakes. */
bool sl_environment_is_of_handlers(const char *name);

#endif
