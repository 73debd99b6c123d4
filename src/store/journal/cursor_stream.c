/* store/journal/cursor_stream.c — the events of one stream, by revision, from segment to segment.
 *
 * An index knows 32 bits of a stream's hash: an entry may be of another stream, and whoever follows it finds out. */
#include "store/journal/cursor.h"

static sl_err read_block(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block)
{
    journal_cursor *const cursor = ctx;
    const journal_span span = { .shelf = cursor->shelf,
                                .of_index = true,
                                .offset = offset,
                                .bytes = SL_INDEX_BLOCK_BYTES,
                                .end = file->disk->ops->size(file) };
    size_t count;

    return journal_fetch_bytes(&cursor->fetch, &span, ret_block, &count);
}

/* --- entries --- */

static sl_err find(journal_cursor *cursor)
{
    const journal_shelf *const shelf = cursor->shelf;
    const sl_block_reader reader = { cursor, read_block };
    const sl_index_query query = { (uint32_t)cursor->stream_hash, cursor->seek, cursor->backwards };
    uint64_t offset = 0;
    sl_err err;

    if (shelf->index == NULL) {
        const uint64_t end = sl_log_durable(cursor->store->log);

        cursor->entry_count = sl_recent_find(
            &shelf->recent, &(sl_recent_query){ cursor->stream, cursor->seek, cursor->backwards, end },
            cursor->entries, SL_CURSOR_ENTRIES);
        return SL_OK;
    }
    if (!sl_index_may_have(shelf->index, cursor->stream_hash))
        return SL_OK;
    err = sl_index_find(shelf->index, &query, &reader, cursor->entries, SL_CURSOR_ENTRIES,
                        &cursor->entry_count, &offset);
    return err == SL_ERR_CORRUPT ? journal_cursor_damage(cursor, true, offset) : err;
}

/* Entries that share their revision with one that did not fit are left for the next time. */
static void leave_last_revision(journal_cursor *cursor)
{
    const sl_index_entry *const entries = cursor->entries;
    uint32_t count = cursor->entry_count;

    if (count < SL_CURSOR_ENTRIES)
        return;
    while (count > 0 && entries[count - 1].revision == entries[SL_CURSOR_ENTRIES - 1].revision)
        count--;
    if (count > 0)
        cursor->entry_count = count;
}

/* The next entries of this segment. SL_ERR_EMPTY: there are no more. */
static sl_err more_entries(journal_cursor *cursor)
{
    sl_err err;

    cursor->entry_at = cursor->entry_count = 0;
    err = find(cursor);
    if (err != SL_OK || cursor->entry_count == 0) {
        cursor->entry_count = 0;
        return err == SL_OK ? SL_ERR_EMPTY : err;
    }
    leave_last_revision(cursor);
    return SL_OK;
}

/* What was looked at is not looked for again. */
static void pass_entry(journal_cursor *cursor)
{
    const uint64_t revision = cursor->entries[cursor->entry_at++].revision;

    if (cursor->entry_at < cursor->entry_count && cursor->entries[cursor->entry_at].revision == revision)
        return;
    cursor->seek = cursor->backwards ? revision - 1 : revision + 1;
    cursor->exhausted = cursor->backwards ? revision == 0 : revision == UINT64_MAX;
}

static void enter(journal_cursor *cursor, uint32_t shelf_number, uint64_t revision)
{
    journal_cursor_enter(cursor, shelf_number);
    cursor->seek = revision;
    cursor->exhausted = false;
}

/* --- events --- */

/* The event of the current entry. SL_ERR_NOT_FOUND: it is of another stream. */
static sl_err event_of_entry(journal_cursor *cursor, const sl_stream *stream, sl_event *ret_event)
{
    const sl_index_entry *const entry = &cursor->entries[cursor->entry_at];
    sl_record_view record;
    const sl_err err = journal_cursor_record(cursor, entry->offset, &record);

    if (err != SL_OK)
        return err;
    if (record.kind != SL_RECORD_EVENT || sl_event_get(&record, ret_event) != SL_OK ||
        ret_event->revision != entry->revision)
        return journal_cursor_damage(cursor, cursor->shelf->index != NULL, entry->offset);
    return sl_str_equal(ret_event->stream, sl_stream_name(stream)) ? SL_OK : SL_ERR_NOT_FOUND;
}

static void look_at(journal_cursor *cursor, const sl_stream *stream, const sl_event *event,
                    journal_page *page)
{
    cursor->base.considered++;
    cursor->base.position = event->position;
    if (event->revision == SL_REVISION_MAX ||
        !sl_directory_expired(stream, event->created_ns, cursor->now_ns))
        page->events[page->count++] = *event;
}

/* The current entry, and on to the next one. */
static sl_err take_entry(journal_cursor *cursor, const sl_stream *stream, journal_page *page)
{
    sl_event event;
    const sl_err err = event_of_entry(cursor, stream, &event);

    if (err != SL_OK && err != SL_ERR_NOT_FOUND)
        return err;
    page->looked_at++;
    if (err == SL_OK) {
        look_at(cursor, stream, &event, page);
        cursor->next = cursor->backwards ? event.revision : event.revision + 1;
    }
    pass_entry(cursor);
    return SL_OK;
}

/* As journal_page_end(), for a stream that may be gone. The tombstone is the last that a forward cursor gives. */
static sl_err stream_end(journal_cursor *cursor, const sl_stream *stream, const journal_page *page,
                         sl_err err, uint32_t *ret_count)
{
    const bool deleted = sl_directory_state(&cursor->store->writer.directory, stream) == SL_STREAM_TOMBSTONED;
    const bool told = cursor->backwards || stream->last != SL_REVISION_MAX || cursor->next > SL_REVISION_MAX;

    if (page->count == 0 && err == SL_ERR_EMPTY && deleted && told)
        err = SL_ERR_STREAM_DELETED;
    return journal_page_end(cursor, page, err, ret_count);
}

/* --- forwards --- */

static sl_err forward_one(journal_cursor *cursor, const sl_stream *stream, uint64_t first, journal_page *page)
{
    const uint64_t revision = cursor->next > first ? cursor->next : first;
    sl_err err;

    if (stream->last != SL_REVISION_NONE && revision > stream->last)
        return SL_ERR_EMPTY; /* also when all is hidden: what is hidden now says nothing of what comes later */
    if (!journal_cursor_is_placed(cursor))
        enter(cursor, cursor->shelf_number, revision);
    if (cursor->entry_at < cursor->entry_count) {
        if (cursor->entries[cursor->entry_at].revision >= revision)
            return take_entry(cursor, stream, page);
        enter(cursor, cursor->shelf_number, revision); /* hidden meanwhile */
    }
    if (cursor->seek < revision)
        cursor->seek = revision;
    err = cursor->exhausted ? SL_ERR_EMPTY : more_entries(cursor);
    if (err != SL_ERR_EMPTY || cursor->shelf_number + 1 == cursor->store->shelf_count)
        return err;
    enter(cursor, cursor->shelf_number + 1, revision);
    return SL_OK;
}

static sl_err stream_forwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    journal_cursor *const cursor = journal_cursor_of(base);
    const sl_stream *const stream = sl_directory_at(&cursor->store->writer.directory, cursor->stream);
    const uint64_t first = sl_directory_first(stream);
    journal_page page = { .events = events, .max = max };
    sl_err err = SL_OK;

    journal_fetch_page(&cursor->fetch);
    while (err == SL_OK && journal_page_goes_on(cursor, &page))
        err = forward_one(cursor, stream, first, &page);
    return stream_end(cursor, stream, &page, err, ret_count);
}

/* --- backwards --- */

static sl_err backward_one(journal_cursor *cursor, const sl_stream *stream, uint64_t first,
                           journal_page *page)
{
    sl_err err;

    if (cursor->next <= first)
        return SL_ERR_EMPTY;
    if (!journal_cursor_is_placed(cursor))
        enter(cursor, cursor->shelf_number, cursor->next - 1);
    if (cursor->entry_at < cursor->entry_count) {
        if (cursor->entries[cursor->entry_at].revision < first)
            return SL_ERR_EMPTY;
        return take_entry(cursor, stream, page);
    }
    err = cursor->exhausted ? SL_ERR_EMPTY : more_entries(cursor);
    if (err != SL_ERR_EMPTY || cursor->shelf_number == 0)
        return err;
    enter(cursor, cursor->shelf_number - 1, cursor->next - 1);
    return SL_OK;
}

static sl_err stream_backwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    journal_cursor *const cursor = journal_cursor_of(base);
    const sl_stream *const stream = sl_directory_at(&cursor->store->writer.directory, cursor->stream);
    const uint64_t first = sl_directory_first(stream);
    journal_page page = { .events = events, .max = max };
    sl_err err = SL_OK;

    journal_fetch_page(&cursor->fetch);
    while (err == SL_OK && journal_page_goes_on(cursor, &page))
        err = backward_one(cursor, stream, first, &page);
    return stream_end(cursor, stream, &page, err, ret_count);
}

const sl_cursor_ops journal_stream_ops[2] = {
    { stream_forwards, journal_cursor_close },
    { stream_backwards, journal_cursor_close },
};
