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
    fprintf(out, "copied %" PRIu64 " segment%s, ", done->segments, done->segments == 1 ? "" : "s");
    sl_print_bytes(out, done->bytes);
    fprintf(out, ", and verified the copy: positions %" PRIu64 " to %" PRIu64 "\n", done->first,
            done->end - (done->end > 0)); /* "end" is the one after the last */
}

static int run_backup(const sl_invocation *invocation)
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

static const char backup_details[] =
    "Copies the data folder of a server, also while the server runs, into TARGET: a folder that does not "
    "exist or is empty. All that was confirmed before the backup began is in the copy, and what comes "
    "after it is there up to some moment, nothing half.\n\n"
    "The copy is made in TARGET.partial, verified, and gets its name at the end: under that name it is "
    "complete or not there. When it fails, nothing is left. When it is killed, TARGET.partial is left; "
    "delete it.\n\n"
    "To restore, copy TARGET back, or name it as the data folder. Of the same moment there should be "
    "only one server: do not run one on the copy and one on the original.\n";

const sl_command sl_command_backup = {
    .name = "backup",
    .bit = SL_COMMAND_BACKUP,
    .words = "FOLDER TARGET",
    .words_min = 2,
    .words_max = 2,
    .completes = SL_COMPLETES_FOLDER,
    .run = run_backup,
    .summary = "copy a journal, also while a server runs",
    .details = backup_details,
    .examples = "A copy with the date in its name:\n"
                "  sluice backup ./data ./backup-$(date +%F)\n",
    .exits =
        "0 done\n"
        "1 the copy could not be made\n" SL_EXITS_USAGE "3 the journal is damaged and nothing was copied\n",
};
