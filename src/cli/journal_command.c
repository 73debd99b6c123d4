/* cli/journal_command.c — what store/inspect.h finds, as text or JSON.
 *
 * Findings are written as they come, also as JSON: a folder that is damaged everywhere has many. */
#include "cli/journal_command.h"

#include <inttypes.h>

#include "cli/print.h"
#include "cli/progress.h"

enum {
    REPORT_BYTES = 1024,
    LABEL_WIDTH = 16,
};

/* --- findings --- */

static void print_loss(FILE *out, const sl_finding *finding)
{
    if (finding->lost_to <= finding->lost_from)
        return;
    if (finding->lost_from == 0)
        fprintf(out, " Positions before %" PRIu64 " are lost.", finding->lost_to);
    else if (finding->lost_to == finding->lost_from + 1)
        fprintf(out, " Position %" PRIu64 " is lost.", finding->lost_from);
    else
        fprintf(out,
                finding->lost_in_part ? " At least one of the positions %" PRIu64 " to %" PRIu64 " is lost."
                                      : " Positions %" PRIu64 " to %" PRIu64 " are lost.",
                finding->lost_from, finding->lost_to - 1);
}

void sl_print_finding(FILE *out, const sl_finding *finding, const char *prefix)
{
    fprintf(out, "%s%s %s at byte %" PRIu64 ": %s", prefix, finding->is_damage ? "DAMAGE" : "note",
            finding->file, finding->offset, finding->what);
    print_loss(out, finding);
    fprintf(out, " %s\n", finding->advice);
}

void sl_print_json_finding(FILE *out, const sl_finding *finding)
{
    fprintf(out, "{\"damage\": %s, \"file\": ", finding->is_damage ? "true" : "false");
    sl_print_json_text(out, finding->file);
    fprintf(out, ", \"offset\": %" PRIu64 ", \"what\": ", finding->offset);
    sl_print_json_text(out, finding->what);
    fprintf(out, ", \"advice\": ");
    sl_print_json_text(out, finding->advice);
    if (finding->lost_to > finding->lost_from)
        fprintf(out, ", \"lost_first\": %" PRIu64 ", \"lost_last\": %" PRIu64, finding->lost_from,
                finding->lost_to - 1);
    fprintf(out, "}");
}

/* --- verify --- */

typedef struct looking {
    const sl_invocation *invocation;
    sl_progress progress;
    uint64_t findings;
} looking;

static void show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    looking *const l = ctx;

    sl_progress_show(&l->progress, what, done, total);
}

static void show_finding(void *ctx, const sl_finding *finding)
{
    looking *const l = ctx;
    FILE *const out = l->invocation->out;

    sl_progress_clear(&l->progress);
    if (!l->invocation->json) {
        sl_print_finding(out, finding, "");
        return;
    }
    fprintf(out, "%s", l->findings++ == 0 ? "{\"findings\": [" : ", ");
    sl_print_json_finding(out, finding);
}

static void begin(looking *l, const sl_invocation *invocation)
{
    *l = (looking){ .invocation = invocation };
    sl_progress_init(&l->progress, invocation);
}

static sl_inspection inspection_of(looking *l)
{
    return (sl_inspection){
        .folder = l->invocation->words[0], .ctx = l, .finding = show_finding, .progress = show_progress
    };
}

static void print_json_verified(const looking *l, const sl_verified *v, FILE *out)
{
    fprintf(out, "%s], \"clean\": %s", l->findings == 0 ? "{\"findings\": [" : "",
            v->damages == 0 ? "true" : "false");
    fprintf(out, ", \"damages\": %" PRIu64 ", \"notes\": %" PRIu64 ", \"positions_lost\": %" PRIu64,
            v->damages, v->notes, v->positions_lost);
    fprintf(out,
            ", \"segments\": %" PRIu64 ", \"frames\": %" PRIu64 ", \"records\": %" PRIu64
            ", \"bytes\": %" PRIu64,
            v->segments, v->frames, v->records, v->bytes);
    fprintf(out, ", \"indexes\": %" PRIu64 ", \"rolls\": %" PRIu64, v->indexes, v->rolls);
    fprintf(out, ", \"first_position\": %" PRIu64 ", \"end_position\": %" PRIu64 "}\n", v->first, v->end);
}

static void print_count(FILE *out, uint64_t count, const char *one, const char *many)
{
    fprintf(out, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

static void print_verified(const sl_verified *v, FILE *out)
{
    print_count(out, v->segments, "segment", "segments");
    fputs(", ", out);
    print_count(out, v->frames, "frame", "frames");
    fputs(", ", out);
    print_count(out, v->records, "record", "records");
    fputs(", ", out);
    sl_print_bytes(out, v->bytes);
    fputs("; ", out);
    print_count(out, v->indexes, "index", "indexes");
    fputs(", ", out);
    print_count(out, v->rolls, "roll", "rolls");
    fprintf(out, "; positions %" PRIu64 " to %" PRIu64 "\n", v->first,
            v->end - (v->end > 0)); /* "end" is the one after the last */
    if (v->damages == 0)
        fprintf(out, "no damage\n");
    else
        fprintf(out, "DAMAGE: places %" PRIu64 ", positions lost at most %" PRIu64 "\n", v->damages,
                v->positions_lost);
}

/* An error after the first finding must not leave half an object. */
static int fail(const looking *l, const char *report)
{
    if (l->findings > 0) {
        char quoted[REPORT_BYTES];

        sl_quote_into(quoted, sizeof quoted, report);
        fprintf(l->invocation->out, "], \"error\": ");
        sl_print_json_text(l->invocation->out, quoted);
        fprintf(l->invocation->out, "}\n");
        sl_print_complaint(l->invocation->err, quoted);
        return SL_EXIT_FAILED;
    }
    return sl_cli_fail(l->invocation, report);
}

static int run_verify(const sl_invocation *invocation)
{
    char buffer[REPORT_BYTES];
    sl_inspection how;
    sl_verified verified;
    sl_text report;
    looking l;
    sl_err err;

    begin(&l, invocation);
    how = inspection_of(&l);
    sl_text_init(&report, buffer, sizeof buffer);
    err = sl_journal_verify(&how, &report, &verified);
    sl_progress_clear(&l.progress);
    if (err != SL_OK)
        return fail(&l, buffer);
    if (invocation->json)
        print_json_verified(&l, &verified, invocation->out);
    else
        print_verified(&verified, invocation->out);
    return verified.damages == 0 ? SL_EXIT_OK : SL_EXIT_DAMAGE;
}

static const char verify_details[] =
    "Reads everything in the data folder of a server: all segments with their checksums and positions, "
    "all indexes against their segments, all lists of streams. Shows all damage, not only the first: "
    "file, byte, what it means, which positions are lost, what to do.\n\n"
    "What a crash left behind the end is no damage: it is shown as a note and cut when the journal is "
    "opened. Neither is a missing index: it is made anew.\n\n"
    "Nothing is changed and nothing is locked: a server may be running on the folder. It may fill the "
    "disk's time, though: everything is read once.\n";

const sl_command sl_command_journal_verify = {
    .name = "journal verify",
    .bit = SL_COMMAND_JOURNAL_VERIFY,
    .words = "FOLDER",
    .words_min = 1,
    .words_max = 1,
    .completes = SL_COMPLETES_FOLDER,
    .run = run_verify,
    .summary = "look for damage in a journal",
    .details = verify_details,
    .examples = "In a script that must know:\n"
                "  sluice journal verify ./data --json || echo damaged\n",
    .exits = "0 no damage\n"
             "1 the folder could not be read\n" SL_EXITS_USAGE "3 damage\n",
};

/* --- stats --- */

static void print_row(FILE *out, const char *label)
{
    fprintf(out, "%-*s  ", LABEL_WIDTH, label);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

static void print_files(FILE *out, const sl_journal_stats *s)
{
    print_row(out, "segments");
    fprintf(out, "%" PRIu64 ", of which %" PRIu64 " rewritten; ", s->segments, s->rewritten_segments);
    sl_print_bytes(out, s->segment_bytes);
    fprintf(out, ", used ");
    sl_print_bytes(out, s->used_bytes);
    fputc('\n', out);
    print_row(out, "indexes");
    fprintf(out, "%" PRIu64 ", ", s->indexes);
    sl_print_bytes(out, s->index_bytes);
    fputc('\n', out);
    print_row(out, "rolls");
    fprintf(out, "%" PRIu64 ", ", s->rolls);
    sl_print_bytes(out, s->roll_bytes);
    fputc('\n', out);
    print_row(out, "positions");
    fprintf(out, "%" PRIu64 " to %" PRIu64 "\n", s->first, s->end - (s->end > 0));
    print_row(out, "opened");
    fprintf(out, "%" PRIu64 " times, closed in order %" PRIu64 " times; epoch %" PRIu64 "\n", s->opened,
            s->closed, s->epoch);
}

static void print_kinds(FILE *out, const sl_journal_stats *s)
{
    char label[LABEL_WIDTH + 8];

    for (unsigned kind = 0; kind < SL_JOURNAL_KIND_COUNT_; kind++) {
        if (s->records[kind] == 0)
            continue;
        snprintf(label, sizeof label, "  %s", sl_journal_kind_name(kind));
        print_row(out, label);
        fprintf(out, "%" PRIu64 ", ", s->records[kind]);
        sl_print_bytes(out, s->record_bytes[kind]);
        fputc('\n', out);
    }
}

static void print_contents(FILE *out, const sl_journal_stats *s)
{
    const uint64_t events = s->records[SL_JOURNAL_EVENT];
    const uint64_t event_bytes = s->record_bytes[SL_JOURNAL_EVENT];

    fprintf(out, "records\n");
    print_kinds(out, s);
    print_row(out, "events");
    fprintf(out, "%" PRIu64 "; on average ", events);
    sl_print_bytes(out, events == 0 ? 0 : event_bytes / events);
    fprintf(out, ", of which data ");
    sl_print_bytes(out, events == 0 ? 0 : s->event_data_bytes / events);
    fputc('\n', out);
    print_row(out, "streams");
    fprintf(out, "%" PRIu64 ", of which %" PRIu64 " soft-deleted, %" PRIu64 " tombstoned\n", s->streams,
            s->soft_deleted, s->tombstoned);
    print_row(out, "groups");
    fprintf(out, "%" PRIu64 "\n", s->groups);
    print_row(out, "hidden");
    fprintf(out, "about %" PRIu64 " events, %.0f %% of their bytes\n", s->hidden_events,
            percent(s->hidden_bytes, event_bytes));
    print_row(out, "replaced");
    sl_print_bytes(out, s->old_group_bytes);
    fprintf(out, " of records of groups\n");
}

static void print_stats(const sl_journal_stats *s, FILE *out)
{
    char store[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(s->store, store);
    print_row(out, "store");
    fprintf(out, "%s\n", store);
    print_files(out, s);
    print_contents(out, s);
    if (s->largest_count > 0)
        fprintf(out, "largest streams\n");
    for (uint32_t i = 0; i < s->largest_count; i++) {
        fprintf(out, "  ");
        sl_print_quoted(out, (sl_str){ s->largest[i].name, s->largest[i].name_bytes });
        fprintf(out, "  %" PRIu64 " events, ", s->largest[i].events);
        sl_print_bytes(out, s->largest[i].bytes);
        fputc('\n', out);
    }
    if (s->damages > 0)
        fprintf(out,
                "DAMAGE: places %" PRIu64
                "; what is lost is not in these numbers, see `sluice journal verify`\n",
                s->damages);
}

static void json_number(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, ", \"%s\": %" PRIu64, name, value);
}

static void print_json_kinds(const sl_journal_stats *s, FILE *out)
{
    bool first = true;

    fprintf(out, ", \"records\": {");
    for (unsigned kind = 0; kind < SL_JOURNAL_KIND_COUNT_; kind++) {
        if (s->records[kind] == 0)
            continue;
        fprintf(out, "%s\"%s\": {\"count\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", first ? "" : ", ",
                sl_journal_kind_name(kind), s->records[kind], s->record_bytes[kind]);
        first = false;
    }
    fprintf(out, "}");
}

static void print_json_streams(const sl_journal_stats *s, FILE *out)
{
    fprintf(out, ", \"largest_streams\": [");
    for (uint32_t i = 0; i < s->largest_count; i++) {
        fprintf(out, "%s{\"stream\": ", i == 0 ? "" : ", ");
        sl_print_json_str(out, (sl_str){ s->largest[i].name, s->largest[i].name_bytes });
        fprintf(out, ", \"events\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", s->largest[i].events,
                s->largest[i].bytes);
    }
    fprintf(out, "]");
}

static void print_json_stats(const sl_journal_stats *s, FILE *out)
{
    char store[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(s->store, store);
    fprintf(out, "{\"store\": \"%s\"", store);
    json_number(out, "segments", s->segments);
    json_number(out, "rewritten_segments", s->rewritten_segments);
    json_number(out, "segment_bytes", s->segment_bytes);
    json_number(out, "used_bytes", s->used_bytes);
    json_number(out, "indexes", s->indexes);
    json_number(out, "index_bytes", s->index_bytes);
    json_number(out, "rolls", s->rolls);
    json_number(out, "roll_bytes", s->roll_bytes);
    json_number(out, "first_position", s->first);
    json_number(out, "end_position", s->end);
    json_number(out, "epoch", s->epoch);
    json_number(out, "opened", s->opened);
    json_number(out, "closed", s->closed);
    print_json_kinds(s, out);
    json_number(out, "events", s->records[SL_JOURNAL_EVENT]);
    json_number(out, "event_data_bytes", s->event_data_bytes);
    json_number(out, "streams", s->streams);
    json_number(out, "soft_deleted_streams", s->soft_deleted);
    json_number(out, "tombstoned_streams", s->tombstoned);
    json_number(out, "groups", s->groups);
    json_number(out, "hidden_events", s->hidden_events);
    json_number(out, "hidden_bytes", s->hidden_bytes);
    json_number(out, "replaced_group_bytes", s->old_group_bytes);
    print_json_streams(s, out);
    json_number(out, "damages", s->damages);
    fprintf(out, "}\n");
}

static int run_stats(const sl_invocation *invocation)
{
    char buffer[REPORT_BYTES];
    sl_journal_stats stats;
    sl_inspection how;
    sl_text report;
    looking l;
    sl_err err;

    begin(&l, invocation);
    how = inspection_of(&l);
    how.finding = NULL; /* where it is damaged is the question of verify */
    sl_text_init(&report, buffer, sizeof buffer);
    err = sl_journal_stats_read(&how, &report, &stats);
    sl_progress_clear(&l.progress);
    if (err != SL_OK)
        return sl_cli_fail(invocation, buffer);
    (invocation->json ? print_json_stats : print_stats)(&stats, invocation->out);
    return stats.damages == 0 ? SL_EXIT_OK : SL_EXIT_DAMAGE;
}

static const char stats_details[] =
    "Reads all segments and shows what is in them: records by kind, events, streams, groups, the largest "
    "streams, what is hidden and waits for a scavenge, sizes of indexes, how often the journal was "
    "opened.\n\n"
    "Hidden events are estimated from revisions, without those that only $maxAge hides. Memory grows "
    "with the number of streams, about 150 bytes each. A server may be running on the folder.\n";

const sl_command sl_command_journal_stats = {
    .name = "journal stats",
    .bit = SL_COMMAND_JOURNAL_STATS,
    .words = "FOLDER",
    .words_min = 1,
    .words_max = 1,
    .completes = SL_COMPLETES_FOLDER,
    .run = run_stats,
    .summary = "show what is in a journal",
    .details = stats_details,
    .examples = "What would a scavenge give back?\n"
                "  sluice journal stats ./data\n",
    .exits =
        "0 done\n"
        "1 the folder could not be read\n" SL_EXITS_USAGE "3 damage was found and is not in the numbers\n",
};
