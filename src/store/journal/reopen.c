/* store/journal/reopen.c — what has to be known again after a restart.
 *
 *      streams     from rolls (roll.h), then from the last segment
 *      events      by the indexes of sealed segments; the last segment is read
 *      event ids   of the last two segments: a repeated append is usually of the last minutes
 *      groups      from the segment that the newest GROUPS_FROM record names
 *
 * Files that are missing or damaged and can be made from segments are made, with progress. */
#include "store/journal/journal_private.h"

#include "store/journal/cache_file.h"
#include "store/journal/roll.h"

typedef struct reopening {
    journal_store *store;
    const sl_journal_options *options;
    sl_text *report;
    uint64_t made; /* files that were made anew */
} reopening;

static void show_progress(const reopening *r, const char *what, uint64_t done)
{
    if (r->options->progress != NULL)
        r->options->progress(r->options->progress_ctx, what, done, r->store->shelf_count);
}

/* --- what is wrong --- */

static sl_err damaged(reopening *r, uint32_t shelf_number, uint64_t offset)
{
    sl_log_say_damage(r->report, r->store->shelves[shelf_number]->segment.number, offset);
    return SL_ERR_CORRUPT;
}

/* Visits all records of a segment; damage gets its sentence. */
static sl_err each_record(reopening *r, uint32_t shelf_number, sl_record_fn *visit, void *ctx)
{
    sl_segment_ref segment;
    uint64_t offset = 0;
    sl_err err;

    sl_log_segment(r->store->log, shelf_number, &segment);
    err = sl_segment_each(&segment, visit, ctx, &offset);
    return err == SL_ERR_CORRUPT ? damaged(r, shelf_number, offset) : err;
}

/* --- indexes --- */

typedef struct recalled {
    journal_store *store;
    sl_recent *recent;
} recalled;

static sl_err recall(void *ctx, const sl_record_view *record, sl_record_place place)
{
    const recalled *const to = ctx;
    const sl_stream *stream;
    sl_event event;
    sl_err err = sl_recent_record(to->recent, record->position, place.offset);

    sl_recent_frame(to->recent, place.frame_end);
    if (err != SL_OK || record->kind != SL_RECORD_EVENT)
        return err;
    err = sl_event_get(record, &event);
    stream = err == SL_OK ? sl_directory_find(&to->store->writer.directory, event.stream) : NULL;
    if (stream == NULL)
        return SL_ERR_CORRUPT;
    return sl_recent_event(to->recent, stream->id, event.revision, event.position, place.offset);
}

/* A full disk is no reason not to start: what the file would say is kept in memory. */
static sl_err make_index(reopening *r, uint32_t shelf_number)
{
    journal_shelf *const shelf = r->store->shelves[shelf_number];
    uint64_t offset = 0;
    sl_err err;

    show_progress(r, "index", shelf_number);
    r->made++;
    err = sl_index_build(r->store->disk, &shelf->segment, &offset);
    if (err == SL_ERR_CORRUPT)
        return damaged(r, shelf_number, offset);
    if (err == SL_ERR_NO_SPACE)
        return each_record(r, shelf_number, recall, &(recalled){ r->store, &shelf->recent });
    return err == SL_OK ? sl_index_open(r->store->disk, &shelf->segment, &shelf->index) : err;
}

static bool can_be_made(sl_err err)
{
    return err == SL_ERR_NOT_FOUND || err == SL_ERR_CORRUPT || err == SL_ERR_VERSION;
}

static sl_err open_indexes(reopening *r)
{
    journal_store *const store = r->store;
    sl_err err = SL_OK;

    for (uint32_t i = 0; i + 1 < store->shelf_count && err == SL_OK; i++) {
        journal_shelf *const shelf = store->shelves[i];

        err = sl_index_open(store->disk, &shelf->segment, &shelf->index);
        if (can_be_made(err))
            err = make_index(r, i);
    }
    return err;
}

/* --- streams --- */

/* The newest word on a stream. */
static sl_err learn_stream(void *ctx, const sl_roll_entry *entry)
{
    sl_directory *const directory = ctx;
    const sl_retention nothing = { 0 };
    const sl_stream *stream;
    uint32_t id;
    sl_err err = sl_directory_add(directory, entry->name, &id);

    if (err != SL_OK)
        return err;
    stream = sl_directory_at(directory, id);
    err = sl_directory_set(directory, id, entry->last, entry->is_metadata ? &nothing : &stream->keep);
    if (err == SL_OK && entry->is_metadata)
        err = sl_directory_set(directory, stream->partner, sl_directory_at(directory, stream->partner)->last,
                               &entry->keep);
    sl_directory_forget(directory);
    return err;
}

static sl_err learn_event(void *ctx, const sl_record_view *record, sl_record_place place)
{
    sl_directory *const directory = ctx;
    sl_event event;
    uint32_t id;
    sl_err err;

    (void)place;
    if (record->kind != SL_RECORD_EVENT)
        return SL_OK;
    err = sl_event_get(record, &event);
    if (err == SL_OK)
        err = sl_directory_add(directory, event.stream, &id);
    if (err == SL_OK)
        err = sl_directory_event(directory, id, event.revision, event.data);
    sl_directory_forget(directory);
    return err;
}

static sl_err learn_roll(reopening *r, uint32_t shelf_number)
{
    journal_store *const store = r->store;
    const sl_segment_ref *const segment = &store->shelves[shelf_number]->segment;
    sl_err err =
        sl_roll_each(store->disk, segment->store, segment->number, learn_stream, &store->writer.directory);
    uint64_t offset = 0;

    if (!can_be_made(err))
        return err;
    show_progress(r, "streams", shelf_number);
    r->made++;
    err = sl_roll_build(store->disk, segment, &offset);
    if (err == SL_ERR_CORRUPT)
        return damaged(r, shelf_number, offset);
    if (err == SL_ERR_NO_SPACE)
        return each_record(r, shelf_number, learn_event, &store->writer.directory);
    if (err != SL_OK)
        return err;
    return sl_roll_each(store->disk, segment->store, segment->number, learn_stream, &store->writer.directory);
}

/* The newest roll that reaches back to the first segment; shelf_count - 1 when there is none. */
static uint32_t find_large_roll(const journal_store *store)
{
    const uint32_t sealed = store->shelf_count - 1;
    const uint64_t first = store->shelves[0]->segment.number;

    for (uint32_t i = sealed; i > 0; i--) {
        const sl_segment_ref *const segment = &store->shelves[i - 1]->segment;
        sl_roll_info info;

        if (sl_roll_look(store->disk, segment->store, segment->number, &info) == SL_OK && info.from == first)
            return i - 1;
    }
    return sealed;
}

/* When the large roll is damaged, everything it covered is read again, one segment at a time. */
static sl_err learn_streams(reopening *r)
{
    journal_store *const store = r->store;
    const uint32_t sealed = store->shelf_count - 1;
    const uint32_t large = find_large_roll(store);
    const sl_segment_ref *const segment = &store->shelves[large]->segment;
    uint32_t next = 0;
    sl_err err = SL_OK;

    if (large < sealed) {
        err = sl_roll_each(store->disk, segment->store, segment->number, learn_stream,
                           &store->writer.directory);
        next = err == SL_OK ? large + 1 : 0;
    }
    if (can_be_made(err))
        err = SL_OK;
    for (; next < sealed && err == SL_OK; next++)
        err = learn_roll(r, next);
    return err;
}

/* --- records --- */

static sl_err replay_ids(void *ctx, const sl_record_view *record, sl_record_place place)
{
    journal_store *const store = ctx;
    const sl_stream *stream;
    sl_event event;

    (void)place;
    if (record->kind != SL_RECORD_EVENT)
        return SL_OK;
    if (sl_event_get(record, &event) != SL_OK)
        return SL_ERR_CORRUPT;
    stream = sl_directory_find(&store->writer.directory, event.stream);
    if (stream != NULL && event.revision != SL_REVISION_MAX)
        sl_ids_add(&store->writer.ids, stream->id, event.id,
                   (sl_ids_place){ event.revision, event.position });
    return SL_OK;
}

static sl_err replay_event(journal_store *store, const sl_record_view *record, uint32_t offset)
{
    sl_event event;
    uint32_t stream;
    sl_err err = sl_event_get(record, &event);

    if (err == SL_OK)
        err = sl_writer_replay(&store->writer, &event, &stream);
    if (err == SL_OK)
        err = sl_recent_event(&journal_last_shelf(store)->recent, stream, event.revision, event.position,
                              offset);
    return err;
}

static sl_err replay(void *ctx, const sl_record_view *record, sl_record_place place)
{
    journal_store *const store = ctx;
    sl_recent *const recent = &journal_last_shelf(store)->recent;
    sl_err err = sl_recent_record(recent, record->position, place.offset);

    if (err == SL_OK && record->kind == SL_RECORD_EVENT)
        err = replay_event(store, record, place.offset);
    sl_recent_frame(recent, place.frame_end);
    return err;
}

static sl_err replay_last(reopening *r)
{
    const uint32_t last = r->store->shelf_count - 1;
    sl_err err = last > 0 ? each_record(r, last - 1, replay_ids, r->store) : SL_OK;

    if (err == SL_OK)
        err = each_record(r, last, replay, r->store);
    r->store->writer.next_position = sl_log_next(r->store->log);
    return err;
}

/* --- groups --- */

typedef struct groups_replay {
    journal_store *store;
    uint64_t segment;
    uint64_t from; /* what the newest GROUPS_FROM record of this segment says; 0: none */
} groups_replay;

static sl_err find_from(void *ctx, const sl_record_view *record, sl_record_place place)
{
    groups_replay *const g = ctx;

    (void)place;
    if (record->kind == SL_RECORD_GROUPS_FROM && record->payload_bytes == sizeof(uint64_t))
        g->from = sl_get_u64(record->payload);
    return SL_OK;
}

static sl_err replay_groups(void *ctx, const sl_record_view *record, sl_record_place place)
{
    groups_replay *const g = ctx;

    (void)place;
    return journal_is_group_record(record->kind)
               ? journal_groups_replay(&g->store->groups, record, g->segment)
               : SL_OK;
}

/* The newest one counts; normally it is in the last segment. */
static sl_err groups_from(reopening *r, uint64_t *ret_from)
{
    groups_replay g = { .store = r->store };
    sl_err err = SL_OK;

    for (uint32_t i = r->store->shelf_count; i > 0 && g.from == 0 && err == SL_OK; i--) {
        err = each_record(r, i - 1, find_from, &g);
        if (g.from != 0 && i == r->store->shelf_count)
            r->store->states_number = journal_last_shelf(r->store)->segment.number;
    }
    if (r->store->shelf_count == 1) /* whether or not it says so */
        r->store->states_number = journal_last_shelf(r->store)->segment.number;
    r->store->states_from = g.from;
    *ret_from = g.from;
    return err;
}

static sl_err learn_groups(reopening *r)
{
    groups_replay g = { .store = r->store };
    uint64_t from = 0;
    sl_err err = groups_from(r, &from);

    for (uint32_t i = 0; i < r->store->shelf_count && err == SL_OK; i++) {
        g.segment = r->store->shelves[i]->segment.number;
        if (g.segment >= from)
            err = each_record(r, i, replay_groups, &g);
    }
    return err;
}

/* --- all of it --- */

sl_err journal_reopen(journal_store *store, const sl_journal_options *options, sl_text *report)
{
    reopening r = { .store = store, .options = options, .report = report };
    sl_err err = SL_OK;

    while (err == SL_OK && store->shelf_count < sl_log_segment_count(store->log)) {
        err = journal_shelf_reserve(store);
        if (err == SL_OK)
            journal_shelf_add(store);
    }
    if (err == SL_OK)
        err = sl_cache_remove(store->disk, journal_last_shelf(store)->segment.number, "roll");
    if (err == SL_OK)
        err = sl_cache_remove(store->disk, journal_last_shelf(store)->segment.number, "idx");
    if (err == SL_OK)
        err = learn_streams(&r);
    if (err == SL_OK)
        err = open_indexes(&r);
    if (err == SL_OK)
        err = replay_last(&r);
    if (err == SL_OK)
        err = learn_groups(&r);
    if (err == SL_OK && r.made > 0) {
        sl_text_add(report, "Made ");
        sl_text_add_u64(report, r.made);
        sl_text_add(report, " index files anew that were missing or damaged. ");
    }
    return err;
}
