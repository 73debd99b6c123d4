/* cli/scavenge_command.c — opens the journal as a server would, lets it scavenge, waits.
 *
 * There is no loop here to wait in: the store is asked now and then, which is soon enough for work of seconds or hours. */
#include "cli/scavenge_command.h"

#include <inttypes.h>
#include <sys/random.h>
#include <time.h>

#include "cli/print.h"
#include "cli/progress.h"
#include "store/inspect.h"
#include "store/store.h"

enum {
    REPORT_BYTES = 1024,
    ASK_EVERY_NS = 5 * 1000 * 1000
};

typedef struct scavenging {
    const sl_invocation *invocation;
    sl_progress progress;
    sl_store *store;
    bool is_done;
    sl_scavenged result;
} scavenging;

static void note_done(void *ctx, const sl_scavenged *result)
{
    scavenging *const s = ctx;

    s->is_done = true;
    s->result = *result;
}

static uint64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void wait_a_little(scavenging *s)
{
    const struct timespec pause = { .tv_nsec = ASK_EVERY_NS };

    (void)nanosleep(&pause, NULL);
    sl_store_turn(s->store);
    sl_store_poll(s->store);
    sl_progress_show(&s->progress, "scavenge", 0, 0);
}

/* The store may be at it by itself already, with one segment. */
static sl_err run(scavenging *s, const sl_scavenge *how)
{
    sl_err err;

    while ((err = sl_store_scavenge(s->store, how, note_done, s)) == SL_ERR_EXISTS)
        wait_a_little(s);
    while (err == SL_OK && !s->is_done)
        wait_a_little(s);
    return err;
}

/* --- opening --- */

static void show_opening(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    scavenging *const s = ctx;

    (void)done;
    (void)total; /* of files, not of bytes */
    sl_progress_show(&s->progress, what, 0, 0);
}

static int fail_open(const sl_invocation *invocation, sl_err err, sl_text *report)
{
    int code;

    if (err == SL_ERR_LOCKED)
        sl_text_add(report, ", or leave it to that server: it gives space back by itself");
    if (report->bytes == 0)
        sl_text_add(report, sl_err_text(err));
    code = sl_cli_fail(invocation, report->data);
    return err == SL_ERR_CORRUPT ? SL_EXIT_DAMAGE : code;
}

static sl_err open_store(scavenging *s, sl_text *report)
{
    sl_store_setup setup = { .alloc = &sl_alloc_default };
    sl_journal_options options = { .folder = s->invocation->words[0],
                                   .progress = show_opening,
                                   .progress_ctx = s };
    const sl_err err = sl_journal_look(options.folder, report, &options.segment_bytes);

    if (err != SL_OK)
        return err;
    if (getrandom(&setup.seed, sizeof setup.seed, 0) != (ssize_t)sizeof setup.seed)
        return SL_ERR_IO;
    return sl_store_open_journal(&setup, &options, report, &s->store);
}

/* --- the answer --- */

static void print_result(const sl_invocation *invocation, const sl_scavenged *result)
{
    FILE *const out = invocation->out;

    if (invocation->json) {
        fprintf(out, "{\"segments_seen\": %" PRIu64 ", \"segments_rewritten\": %" PRIu64,
                result->segments_seen, result->segments_rewritten);
        fprintf(out,
                ", \"events_dropped\": %" PRIu64 ", \"records_dropped\": %" PRIu64
                ", \"bytes_freed\": %" PRIu64 "}\n",
                result->events_dropped, result->records_dropped, result->bytes_freed);
        return;
    }
    sl_print_bytes(out, result->bytes_freed);
    fprintf(out,
            " freed: %" PRIu64 " of %" PRIu64 " sealed segments rewritten without %" PRIu64
            " events and %" PRIu64 " other records\n",
            result->segments_rewritten, result->segments_seen, result->events_dropped,
            result->records_dropped - result->events_dropped);
}

static int answer(const scavenging *s)
{
    char buffer[REPORT_BYTES];
    sl_text text;
    int code;

    if (s->result.err == SL_OK) {
        print_result(s->invocation, &s->result);
        return SL_EXIT_OK;
    }
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "It ended early after ");
    sl_text_add_u64(&text, s->result.segments_rewritten);
    sl_text_add(&text, " segments were rewritten, which stay so: ");
    sl_text_add(&text, sl_err_text(s->result.err));
    sl_text_add(&text, sl_store_problem(s->store)[0] == '\0' ? "" : ". ");
    sl_text_add(&text, sl_store_problem(s->store));
    code = sl_cli_fail(s->invocation, buffer);
    return s->result.err == SL_ERR_CORRUPT ? SL_EXIT_DAMAGE : code;
}

static int run_scavenge(const sl_invocation *invocation)
{
    const sl_scavenge how = { .now_ns = wall_ns(),
                              .dead_share = (uint32_t)invocation->values[SL_OPT_DEAD_SHARE].number };
    scavenging s = { .invocation = invocation };
    char buffer[REPORT_BYTES];
    sl_text report;
    int code;
    sl_err err;

    sl_text_init(&report, buffer, sizeof buffer);
    sl_progress_init(&s.progress, invocation);
    err = open_store(&s, &report);
    if (err == SL_OK) {
        sl_text_init(&report, buffer, sizeof buffer); /* what opening found is a matter of the server */
        err = run(&s, &how);
    }
    sl_progress_clear(&s.progress);
    code = err == SL_OK ? answer(&s) : fail_open(invocation, err, &report);
    if (s.store != NULL)
        sl_store_close(s.store);
    return code;
}

static const char scavenge_details[] =
    "Gives space back that hidden events (by deletion, $maxCount, $maxAge, $tb) and old records of "
    "groups take: segments are rewritten without them. Positions do not change, and the last event of a "
    "stream stays.\n\n"
    "It opens the journal, so no server may run on the folder: it is refused then, with the number of "
    "the process. A running server does the same by itself, each time it has filled a segment, with "
    "segments that are half dead. The last segment is never rewritten.\n\n"
    "It can be ended at any time: each segment is replaced in one step.\n";

const sl_command sl_command_scavenge = {
    .name = "scavenge",
    .bit = SL_COMMAND_SCAVENGE,
    .words = "FOLDER",
    .words_min = 1,
    .words_max = 1,
    .completes = SL_COMPLETES_FOLDER,
    .run = run_scavenge,
    .summary = "give space back that nobody needs any more",
    .details = scavenge_details,
    .examples = "Everything that can be given back, however little it is:\n"
                "  sluice scavenge ./data --dead-share 0\n",
    .exits = "0 done\n"
             "1 it could not be done\n" SL_EXITS_USAGE "3 the journal is damaged\n",
};
