/* cli/backup_command.c — the copy is made by store/inspect.h; here it gets words. */
#include "cli/backup_command.h"

#include <inttypes.h>

#include "cli/journal_command.h"
#include "cli/print.h"
#include "cli/progress.h"

enum {
    REPORT_BYTES = 2048
};

typedef struct copying {
    const sl_invocation *invocation;
    sl_progress progress;
} copying;

static void show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    copying *const c = ctx;

    sl_progress_show(&c->progress, what, done, total);
}

/* On the error output: what goes to the other one is about the copy. */
static void show_finding(void *ctx, const sl_finding *finding)
{
    copying *const c = ctx;

    sl_progress_clear(&c->progress);
    sl_print_finding(c->invocation->err, finding, "sluice: ");
}

static void print_done(const sl_invocation *invocation, const sl_backed_up *done)
{
    FILE *const out = invocation->out;

    if (invocation->json) {
        fprintf(out, "{\"target\": ");
        sl_print_json_text(out, invocation->words[1]);
        fprintf(out, ", \"segments\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"caches\": %" PRIu64,
                done->segments, done->bytes, done->caches);
        fprintf(out,
                ", \"first_position\": %" PRIu64 ", \"end_position\": %" PRIu64 ", \"rounds\": %" PRIu64
                "}\n",
                done->first, done->end, done->rounds);
        return;
    }
    fprintf(out, "copied %" PRIu64 " segments, ", done->segments);
    sl_print_bytes(out, done->bytes);
    fprintf(out, ", and verified the copy: positions %" PRIu64 " to %" PRIu64 "\n", done->first,
            done->end - (done->end > 0)); /* "end" is the one after the last */
}

int sl_backup_command(const sl_invocation *invocation)
{
    copying c = { .invocation = invocation };
    const sl_inspection how = {
        .folder = invocation->words[0], .ctx = &c, .finding = show_finding, .progress = show_progress
    };
    char buffer[REPORT_BYTES];
    sl_backed_up done;
    sl_text report;
    sl_err err;

    sl_text_init(&report, buffer, sizeof buffer);
    sl_progress_init(&c.progress, invocation);
    err = sl_journal_backup(&how, invocation->words[1], &report, &done);
    sl_progress_clear(&c.progress);
    if (err != SL_OK) {
        const int code = sl_cli_fail(invocation, buffer);
        return err == SL_ERR_CORRUPT ? SL_EXIT_DAMAGE : code;
    }
    print_done(invocation, &done);
    return SL_EXIT_OK;
}
