/* cli/dump_command.c — a line for each record: position, kind, then what it says as names and values. */
#include "cli/dump_command.h"

#include <inttypes.h>
#include <unistd.h>

#include "cli/fields.h"
#include "cli/journal_command.h"
#include "cli/print.h"
#include "cli/progress.h"

enum {
    REPORT_BYTES = 1024
};

typedef struct dumping {
    const sl_invocation *invocation;
    bool shows_data;
    uint64_t segment; /* of the line before */
    sl_effect effect; /* the one to be shown, of a record of a group */
    sl_progress progress;
} dumping;

static void event_fields(const dumping *d, sl_fields *f, const sl_event *event)
{
    sl_field_text(f, "stream", event->stream);
    sl_field_number(f, "revision", event->revision);
    sl_field_text(f, "type", event->type);
    sl_field_uuid(f, "id", event->id);
    sl_field_time(f, "created", event->created_ns);
    if (f->json)
        sl_field_number(f, "created_ns", event->created_ns);
    sl_field_bool(f, f->json ? "is_json" : "json", event->is_json);
    sl_field_number(f, "data_bytes", event->data.bytes);
    sl_field_number(f, "metadata_bytes", event->metadata.bytes);
    if (!d->shows_data)
        return;
    sl_field_bytes(f, "data", event->data);
    sl_field_bytes(f, "metadata", event->metadata);
}

static uint64_t count_state(sl_str state)
{
    sl_effect effect;
    uint64_t count = 0;

    while (sl_journal_state_next(&state, &effect) == SL_OK)
        count++;
    return count;
}

static void state_records(sl_fields *f, sl_str state)
{
    sl_effect effect;
    bool first = true;

    if (f->json)
        fprintf(f->out, ", \"state\": [");
    while (sl_journal_state_next(&state, &effect) == SL_OK) {
        sl_fields inner = { .out = f->out, .json = f->json };
        fprintf(f->out, f->json ? "%s{" : "%s", f->json ? (first ? "" : ", ") : "\n#   ");
        sl_field_effect(&inner, &effect);
        fprintf(f->out, f->json ? "}" : "");
        first = false;
    }
    if (f->json)
        fprintf(f->out, "]");
}

static void state_fields(const dumping *d, sl_fields *f, const sl_journal_record *record)
{
    sl_field_bool(f, "first", record->is_first);
    sl_field_bool(f, "last", record->is_last);
    if (record->is_first)
        sl_field_bytes(f, "definition", record->definition);
    sl_field_number(f, "records", count_state(record->state));
    if (d->shows_data)
        state_records(f, record->state);
}

/* Numbers of kinds are in the order of their invention. */
static bool is_of_group(unsigned kind)
{
    return (kind >= SL_JOURNAL_GROUP_CREATE && kind <= SL_JOURNAL_GROUP_STATE) ||
           kind == SL_JOURNAL_GROUP_UPDATE;
}

static void record_fields(const dumping *d, sl_fields *f, const sl_journal_record *record)
{
    if (record->kind == SL_JOURNAL_EVENT) {
        event_fields(d, f, &record->event);
        return;
    }
    if (record->kind == SL_JOURNAL_GROUPS_FROM)
        sl_field_number(f, "from_segment", record->groups_from);
    if (!is_of_group(record->kind))
        return;
    sl_field_number(f, "group", record->group);
    if (record->kind == SL_JOURNAL_GROUP_CREATE || record->kind == SL_JOURNAL_GROUP_UPDATE)
        sl_field_bytes(f, "definition", record->definition);
    else if (record->kind == SL_JOURNAL_GROUP)
        sl_field_effect(f, &d->effect);
    else if (record->kind == SL_JOURNAL_GROUP_STATE)
        state_fields(d, f, record);
}

static void show_json(const dumping *d, const sl_journal_record *record)
{
    sl_fields f = { .out = d->invocation->out, .json = true };

    fputc('{', f.out);
    sl_field_number(&f, "position", record->position);
    sl_field_word(&f, "kind", sl_journal_kind_name(record->kind));
    sl_field_number(&f, "segment", record->segment);
    sl_field_number(&f, "offset", record->offset);
    sl_field_number(&f, "bytes", record->bytes);
    if (record->malformed || record->kind >= SL_JOURNAL_KIND_COUNT_)
        sl_field_number(&f, "kind_number", record->kind);
    if (record->malformed)
        sl_field_bool(&f, "malformed", true);
    else
        record_fields(d, &f, record);
    fputs("}\n", f.out);
}

static void show_text(dumping *d, const sl_journal_record *record)
{
    sl_fields f = { .out = d->invocation->out };

    if (record->segment != d->segment)
        fprintf(f.out, "# segment %" PRIu64 ", file %016" PRIx64 ".seg, byte %" PRIu64 "\n", record->segment,
                record->segment, record->offset);
    d->segment = record->segment;
    fprintf(f.out, "%" PRIu64 " %s", record->position, sl_journal_kind_name(record->kind));
    f.any = true;
    if (record->malformed)
        fprintf(f.out, " malformed: its checksum is right, but what it says does not add up");
    else if (record->kind >= SL_JOURNAL_KIND_COUNT_)
        sl_field_number(&f, "kind", record->kind);
    else
        record_fields(d, &f, record);
    fputc('\n', f.out);
}

static void show_one(dumping *d, const sl_journal_record *record)
{
    if (d->invocation->json)
        show_json(d, record);
    else
        show_text(d, record);
}

/* A line for each of several records of a group that were written as one: they happened one after the other. */
static void show_record(void *ctx, const sl_journal_record *record)
{
    dumping *const d = ctx;
    sl_str rest = record->records;

    if (record->malformed || record->kind != SL_JOURNAL_GROUP) {
        show_one(d, record);
        return;
    }
    while (sl_journal_record_next(&rest, &d->effect) == SL_OK)
        show_one(d, record);
}

static void show_finding(void *ctx, const sl_finding *finding)
{
    const dumping *const d = ctx;

    if (!d->invocation->json) {
        sl_print_finding(d->invocation->out, finding, "# ");
        return;
    }
    sl_print_json_finding(d->invocation->out, finding);
    fputc('\n', d->invocation->out);
}

static void show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    dumping *const d = ctx;

    sl_progress_show(&d->progress, what, done, total);
}

static sl_dump_range read_range(const sl_option_value *values)
{
    return (sl_dump_range){ .segment = values[SL_OPT_SEGMENT].number,
                            .from = values[SL_OPT_FROM].number,
                            .count = values[SL_OPT_LIMIT].number,
                            .stream = sl_str_from(values[SL_OPT_STREAM].text) };
}

static int run_dump(const sl_invocation *invocation)
{
    const sl_dump_range range = read_range(invocation->values);
    dumping d = { .invocation = invocation, .shows_data = invocation->values[SL_OPT_DATA].number != 0 };
    sl_inspection how = { .folder = invocation->words[0], .ctx = &d, .finding = show_finding };
    char buffer[REPORT_BYTES];
    uint64_t damages = 0;
    sl_text report;
    sl_err err;

    sl_text_init(&report, buffer, sizeof buffer);
    sl_progress_init(&d.progress, invocation);
    if (!isatty(fileno(invocation->out))) /* else the lines are progress enough */
        how.progress = show_progress;
    err = sl_journal_dump(&how, &range, show_record, &report, &damages);
    sl_progress_clear(&d.progress);
    if (err != SL_OK)
        return sl_cli_fail(invocation, buffer);
    return damages == 0 ? SL_EXIT_OK : SL_EXIT_DAMAGE;
}

static const char dump_details[] =
    "Shows the records of a journal, one line for each: position, kind, and what it says. Events with "
    "stream, revision, type, id, time and sizes, records of groups with their fields. A line that begins "
    "with # is about the file: a segment begins, or something in it is damaged; then it goes on with the "
    "next frame that can be read. With --json each line is an object.\n\n"
    "Events that are hidden (by deletion, $maxCount, $maxAge or $tb) and not yet scavenged are shown as "
    "well. A server may be running on the folder: what it has written is shown, also what it has not "
    "confirmed yet.\n";

const sl_command sl_command_journal_dump = {
    .name = "journal dump",
    .bit = SL_COMMAND_JOURNAL_DUMP,
    .words = "FOLDER",
    .words_min = 1,
    .words_max = 1,
    .completes = SL_COMPLETES_FOLDER,
    .run = run_dump,
    .summary = "show the records of a journal",
    .details = dump_details,
    .examples = "The first ten events of one stream, with what is in them:\n"
                "  sluice journal dump ./data --stream order-1 --count 10 --data\n",
    .exits = "0 done\n"
             "1 the folder could not be read\n" SL_EXITS_USAGE "3 damage was passed on the way\n",
};
