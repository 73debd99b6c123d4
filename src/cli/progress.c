/* cli/progress.c — see cli/progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "cli/print.h"

#define SECOND_NS UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void sl_progress_init(sl_progress *progress, const sl_invocation *invocation)
{
    const bool is_terminal = isatty(fileno(invocation->err)) != 0;

    *progress = (sl_progress){ .err = invocation->err,
                               .is_terminal = is_terminal,
                               .is_wanted = is_terminal || invocation->values[SL_OPT_PROGRESS].number != 0,
                               .began_ns = now_ns() };
}

static bool is_due(const sl_progress *progress, uint64_t now)
{
    const uint64_t pause_ns = progress->is_terminal ? SECOND_NS / 10 : SECOND_NS;

    return progress->is_wanted && now >= progress->began_ns + SECOND_NS / 2 &&
           now >= progress->told_ns + pause_ns;
}

void sl_progress_show(sl_progress *progress, const char *what, uint64_t done_bytes, uint64_t total_bytes)
{
    const uint64_t now = now_ns();

    if (!is_due(progress, now))
        return;
    sl_progress_clear(progress);
    fprintf(progress->err, "%s: ", what);
    if (total_bytes == 0) {
        fprintf(progress->err, "%" PRIu64 " s", (now - progress->began_ns) / SECOND_NS);
    } else {
        sl_print_bytes(progress->err, done_bytes);
        fprintf(progress->err, " of ");
        sl_print_bytes(progress->err, total_bytes);
        fprintf(progress->err, ", %.0f %%", 100.0 * (double)done_bytes / (double)total_bytes);
    }
    fprintf(progress->err, progress->is_terminal ? "" : "\n");
    fflush(progress->err);
    progress->is_shown = progress->is_terminal;
    progress->told_ns = now;
}

void sl_progress_clear(sl_progress *progress)
{
    if (!progress->is_shown)
        return;
    fprintf(progress->err, "\r\033[K"); /* to the beginning of the line, and erase it */
    fflush(progress->err);
    progress->is_shown = false;
}
