/* cli/progress.h — a line on the error output while something takes long.
 *
 * On a terminal it is rewritten in place and taken away at the end; elsewhere it is a line each second, and only when
 * --progress asks for it, so that logs stay short. Nothing is shown in the first half second: most work is done by then. */
#ifndef SL_CLI_PROGRESS_H
#define SL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/commands.h"

typedef struct sl_progress {
    FILE *err;
    bool is_wanted, is_terminal, is_shown;
    uint64_t began_ns, told_ns;
} sl_progress;

void sl_progress_init(sl_progress *progress, const sl_invocation *invocation);

/* total 0: nobody knows how much it is, and the time that has passed is shown. */
void sl_progress_show(sl_progress *progress, const char *what, uint64_t done_bytes, uint64_t total_bytes);

/* Takes the line away; before anything else is written to the terminal. */
void sl_progress_clear(sl_progress *progress);

#endif
