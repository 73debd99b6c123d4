/* store/journal/dump.c — records as they stand in the journal, decoded. */
#include "base/cleanup.h"
#include "store/journal/groups.h"
#include "store/journal/inspect_private.h"
#include "store/journal/records.h"
#include "store/journal/walk.h"

#include <assert.h>

static_assert((int)SL_JOURNAL_OPEN == (int)SL_RECORD_OPEN, "the same numbers");
static_assert((int)SL_JOURNAL_EVENT == (int)SL_RECORD_EVENT, "the same numbers");
static_assert((int)SL_JOURNAL_GROUP == (int)SL_RECORD_GROUP, "the same numbers");
static_assert((int)SL_JOURNAL_GROUPS_FROM == (int)SL_RECORD_GROUPS_FROM, "the same numbers");
static_assert((int)SL_JOURNAL_GROUP_UPDATE == (int)SL_RECORD_GROUP_UPDATE, "the same numbers");

const char *sl_journal_kind_name(unsigned kind)
{
    static const char *const names[] = { [SL_JOURNAL_OPEN] = "open",
                                         [SL_JOURNAL_CLOSE] = "close",
                                         [SL_JOURNAL_EVENT] = "event",
                                         [SL_JOURNAL_GROUP_CREATE] = "group create",
                                         [SL_JOURNAL_GROUP_DELETE] = "group delete",
                                         [SL_JOURNAL_GROUP] = "group record",
                                         [SL_JOURNAL_GROUP_STATE] = "group state",
                                         [SL_JOURNAL_GROUPS_FROM] = "groups from",
                                         [SL_JOURNAL_GROUP_UPDATE] = "group update" };
    static_assert(SL_COUNT_OF(names) == SL_JOURNAL_KIND_COUNT_, "a name for each kind");

    return kind == 0 || kind >= SL_JOURNAL_KIND_COUNT_ ? "unknown" : names[kind];
}

/* --- one record --- */

sl_err sl_journal_state_next(sl_str *state, sl_effect *ret_effect)
{
    return state->bytes == 0 ? SL_ERR_EMPTY : sl_group_state_next(state, ret_effect);
}

static sl_err read_state(const sl_record_view *view, sl_journal_record *record)
{
    sl_group_state part;
    sl_effect effect;
    sl_str rest;
    sl_err err = sl_group_state_get(view, &part);

    if (err != SL_OK)
        return err;
    record->group = part.group;
    record->definition = part.definition;
    record->is_first = part.is_first;
    record->is_last = part.is_last;
    record->state = rest = sl_group_state_records(&part);
    while ((err = sl_journal_state_next(&rest, &effect)) == SL_OK) {
    }
    return err == SL_ERR_EMPTY ? SL_OK : err;
}

static sl_err read_records(sl_str rest, sl_journal_record *record)
{
    sl_effect effect;
    sl_err err;

    record->records = rest;
    do
        err = sl_group_next(&rest, &effect);
    while (err == SL_OK && rest.bytes > 0);
    return err;
}

sl_err sl_journal_record_next(sl_str *records, sl_effect *ret_effect)
{
    return records->bytes == 0 ? SL_ERR_EMPTY : sl_group_next(records, ret_effect);
}

static sl_err read_group(const sl_record_view *view, sl_journal_record *record)
{
    sl_str rest;
    const sl_err err = sl_group_get(view, &record->group, &rest);

    if (err != SL_OK)
        return err;
    if (view->kind == SL_RECORD_GROUP)
        return read_records(rest, record);
    if (view->kind == SL_RECORD_GROUP_CREATE || view->kind == SL_RECORD_GROUP_UPDATE)
        record->definition = rest;
    else if (rest.bytes > 0)
        return SL_ERR_CORRUPT;
    return SL_OK;
}

static sl_err read_payload(const sl_record_view *view, sl_journal_record *record)
{
    switch (view->kind) {
    case SL_RECORD_EVENT: return sl_event_get(view, &record->event);
    case SL_RECORD_GROUP:
    case SL_RECORD_GROUP_CREATE:
    case SL_RECORD_GROUP_DELETE:
    case SL_RECORD_GROUP_UPDATE: return read_group(view, record);
    case SL_RECORD_GROUP_STATE: return read_state(view, record);
    case SL_RECORD_GROUPS_FROM:
        if (view->payload_bytes != sizeof(uint64_t))
            return SL_ERR_CORRUPT;
        record->groups_from = sl_get_u64(view->payload);
        return SL_OK;
    default: return SL_OK; /* open and close are empty; what others hold only a later version knows */
    }
}

void sl_journal_record_read(const sl_record_view *view, sl_journal_record *ret_record)
{
    *ret_record = (sl_journal_record){ .position = view->position, .kind = view->kind, .bytes = view->bytes };
    ret_record->malformed = read_payload(view, ret_record) != SL_OK;
}

/* --- all of them --- */

typedef struct dumping {
    const sl_inspection *how;
    const sl_dump_range *range;
    sl_journal_record_fn *visit;
    uint64_t segment, given, damages;
} dumping;

static bool is_wanted(const dumping *d, const sl_journal_record *record)
{
    const sl_str stream = d->range->stream;

    if (record->position < d->range->from)
        return false;
    return stream.bytes == 0 || (record->kind == SL_JOURNAL_EVENT && !record->malformed &&
                                 sl_str_equal(record->event.stream, stream));
}

/* SL_ERR_EMPTY: that was all that was asked for. */
static sl_err dump_record(void *ctx, const sl_record_view *view, sl_record_place place)
{
    dumping *const d = ctx;
    sl_journal_record record;

    sl_journal_record_read(view, &record);
    if (!is_wanted(d, &record))
        return SL_OK;
    record.segment = d->segment;
    record.offset = place.offset;
    d->damages += record.malformed;
    d->visit(d->how->ctx, &record);
    return ++d->given == d->range->count ? SL_ERR_EMPTY : SL_OK;
}

static sl_err dump_frame(void *ctx, const sl_segment_ref *segment, const sl_frame_view *frame)
{
    dumping *const d = ctx;

    d->segment = segment->number;
    return frame->end <= d->range->from ? SL_OK : sl_frame_each(frame, dump_record, d);
}

static void pass_finding(void *ctx, const sl_finding *finding)
{
    dumping *const d = ctx;

    d->damages += finding->is_damage;
    if (d->how->finding != NULL)
        d->how->finding(d->how->ctx, finding);
}

sl_err sl_dump_disk(sl_disk *disk, const sl_inspection *how, const sl_dump_range *range,
                    sl_journal_record_fn *visit, uint64_t *ret_damages)
{
    dumping d = { .how = how, .range = range, .visit = visit };
    const sl_walk_visitor visitor = { .ctx = &d,
                                      .frame = dump_frame,
                                      .finding = pass_finding,
                                      .progress = how->progress,
                                      .progress_ctx = how->ctx };
    sl_walk walk;
    sl_err err = sl_walk_init(&walk, disk, &visitor);

    walk.only_segment = range->segment;
    walk.from = range->from;
    if (err == SL_OK)
        err = sl_walk_run(&walk);
    sl_walk_done(&walk);
    if (err == SL_ERR_EMPTY)
        err = SL_OK;
    if (err == SL_OK)
        *ret_damages = d.damages;
    return err;
}
