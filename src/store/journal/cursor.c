/* store/journal/cursor.c — opening and closing cursors, and records for both sorts. */
#include "store/journal/cursor.h"

#include "base/cleanup.h"

sl_err journal_page_end(journal_cursor *cursor, const journal_page *page, sl_err err, uint32_t *ret_count)
{
    if (page->count > 0) { /* an error is found again by the next call */
        *ret_count = page->count;
        return SL_OK;
    }
    if (err == SL_ERR_EMPTY)
        journal_fetch_rest(&cursor->fetch);
    if (err != SL_OK)
        return err;
    sl_log_wake(cursor->store->log); /* much was looked at in vain: others first */
    return SL_ERR_AGAIN;
}

void journal_cursor_forget(journal_cursor *cursor)
{
    if (cursor->shelf != NULL)
        journal_shelf_release(cursor->store, cursor->shelf);
    cursor->shelf = NULL;
    cursor->entry_at = cursor->entry_count = 0;
    cursor->walked = 0;
    cursor->collected = false;
}

void journal_cursor_enter(journal_cursor *cursor, uint32_t shelf_number)
{
    journal_cursor_forget(cursor);
    cursor->shelf_number = shelf_number;
    cursor->shelf = cursor->store->shelves[shelf_number];
    cursor->shelf->refs++;
}

bool journal_cursor_is_placed(const journal_cursor *cursor)
{
    return cursor->shelf != NULL && cursor->shelf == cursor->store->shelves[cursor->shelf_number];
}

sl_err journal_cursor_damage(journal_cursor *cursor, bool in_index, uint64_t offset)
{
    journal_complain(cursor->store, "Damage", cursor->shelf, in_index, offset);
    return SL_ERR_CORRUPT;
}

sl_err journal_cursor_head(journal_cursor *cursor, uint64_t offset, uint64_t end, sl_record_view *ret_record)
{
    const journal_span span = { .shelf = cursor->shelf,
                                .offset = offset,
                                .bytes = SL_RECORD_HEADER_BYTES,
                                .end = journal_shelf_bytes(cursor->store, cursor->shelf_number) };
    const uint8_t *bytes;
    size_t count;
    const sl_err err = journal_fetch_bytes(&cursor->fetch, &span, &bytes, &count);

    if (err != SL_OK)
        return err == SL_ERR_CORRUPT ? journal_cursor_damage(cursor, false, offset) : err;
    *ret_record = sl_record_peek(bytes);
    if (ret_record->bytes != sl_record_size(ret_record->payload_bytes) || ret_record->bytes > end - offset)
        return journal_cursor_damage(cursor, false, offset);
    return SL_OK;
}

/* The header says how much there is; the checksum whether that is true. */
sl_err journal_cursor_record(journal_cursor *cursor, uint64_t offset, sl_record_view *ret_record)
{
    journal_span span = { .shelf = cursor->shelf,
                          .offset = offset,
                          .bytes = SL_RECORD_HEADER_BYTES,
                          .end = journal_shelf_bytes(cursor->store, cursor->shelf_number) };
    const uint8_t *bytes;
    size_t count;
    sl_err err = journal_fetch_bytes(&cursor->fetch, &span, &bytes, &count);

    if (err == SL_OK && sl_record_peek(bytes).bytes > count) {
        span.bytes = sl_record_peek(bytes).bytes;
        err = journal_fetch_bytes(&cursor->fetch, &span, &bytes, &count);
    }
    if (err == SL_OK)
        err = sl_record_get(bytes, count, cursor->shelf->segment.seed, ret_record);
    return err == SL_ERR_CORRUPT ? journal_cursor_damage(cursor, false, offset) : err;
}

/* --- opening --- */

/* SL_OK: it may be read, *ret_stream is it. */
static sl_err find_stream(const journal_store *store, const sl_read *read, const sl_stream **ret_stream)
{
    const sl_stream *const stream = sl_directory_find(&store->writer.directory, read->stream);
    sl_stream_info info;

    sl_directory_info(&store->writer.directory, read->stream, &info);
    if (info.state == SL_STREAM_TOMBSTONED && !(read->shows_end && info.revision == SL_REVISION_MAX))
        return SL_ERR_STREAM_DELETED;
    if (info.state != SL_STREAM_LIVE && info.state != SL_STREAM_TOMBSTONED)
        return SL_ERR_NOT_FOUND;
    *ret_stream = stream;
    return SL_OK;
}

static uint64_t above(uint64_t number)
{
    return number == UINT64_MAX ? number : number + 1;
}

static void start_in_stream(journal_cursor *cursor, const sl_stream *stream, uint64_t from)
{
    cursor->stream = stream->id;
    cursor->stream_hash = sl_stream_hash(sl_log_store(cursor->store->log), sl_stream_name(stream));
    cursor->next = cursor->backwards ? sl_min_u64(above(from), above(stream->last)) : from;
    cursor->shelf_number = cursor->backwards ? cursor->store->shelf_count - 1 : 0;
}

static void start_in_all(journal_cursor *cursor, uint64_t from)
{
    const uint64_t end = sl_log_durable(cursor->store->log);

    cursor->next = cursor->backwards ? sl_min_u64(from, end) : from;
    cursor->base.position = cursor->backwards || from == 0 ? cursor->next : from - 1;
}

void journal_cursor_close(sl_cursor *base)
{
    journal_cursor *const cursor = journal_cursor_of(base);

    journal_fetch_done(&cursor->fetch);
    journal_cursor_forget(cursor);
    sl_alloc_give(cursor->store->alloc, cursor, sizeof *cursor);
}

sl_err journal_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    journal_store *const store = journal_of(base);
    const bool by_stream = read->stream.bytes > 0;
    const sl_stream *stream = NULL;
    const sl_err err = by_stream ? find_stream(store, read, &stream) : SL_OK;
    journal_cursor *cursor;

    if (err != SL_OK)
        return err;
    cursor = sl_alloc_take(store->alloc, sizeof *cursor);
    if (cursor == NULL)
        return SL_ERR_NOMEM;
    *cursor = (journal_cursor){ .base.ops = by_stream ? &journal_stream_ops[read->backwards]
                                                      : &journal_all_ops[read->backwards],
                                .store = store,
                                .fetch.store = store,
                                .filter = read->filter,
                                .backwards = read->backwards,
                                .now_ns = read->now_ns };
    if (by_stream)
        start_in_stream(cursor, stream, read->from);
    else
        start_in_all(cursor, read->from);
    *ret_cursor = &cursor->base;
    return SL_OK;
}
