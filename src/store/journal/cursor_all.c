/* store/journal/cursor_all.c — all events by position: along the records of the log, forwards or backwards.
 *
 * Forwards is walking from record to record. Backwards is the same in small steps: from the last known place below, up to
 * where the reader stands, noting the events on the way; these are then given from the last to the first. */
#include "store/journal/cursor.h"

#include "store/filter.h"

/* SL_ERR_TOO_LARGE: the filter cannot judge it, so the cursor must not pass it. */
static sl_err look_at(journal_cursor *cursor, const sl_event *event, journal_page *page)
{
    const sl_filter_verdict verdict =
        cursor->filter == NULL ? SL_FILTER_YES : sl_filter_judge(cursor->filter, event->stream, event->type);

    if (verdict == SL_FILTER_GAVE_UP)
        return SL_ERR_TOO_LARGE;
    cursor->base.considered++;
    if (verdict == SL_FILTER_YES)
        page->events[page->count++] = *event;
    return SL_OK;
}

/* --- walking --- */

/* To the last known place at or below a position of this segment. */
static void place_in(journal_cursor *cursor, uint32_t shelf_number, uint64_t position)
{
    const journal_shelf *shelf;
    sl_index_place place = { .at = { SL_SEGMENT_HEADER_BYTES, SL_SEGMENT_HEADER_BYTES } };

    journal_cursor_enter(cursor, shelf_number);
    shelf = cursor->shelf;
    place.position = shelf->segment.first;
    if (shelf->index != NULL)
        (void)sl_index_place_of(shelf->index, position, &place);
    else
        (void)sl_recent_place_of(&shelf->recent, position, &place);
    cursor->offset = place.at.offset;
    cursor->frame_end = place.at.frame_end;
    cursor->bottom = place.position;
}

/* Between two frames: what the next one's header says. */
static sl_err enter_frame(journal_cursor *cursor)
{
    const journal_span span = { .shelf = cursor->shelf,
                                .offset = cursor->offset,
                                .bytes = SL_FRAME_HEADER_BYTES,
                                .end = journal_shelf_bytes(cursor->store, cursor->shelf_number) };
    sl_frame_header header;
    const uint8_t *bytes;
    size_t count;
    sl_err err = journal_fetch_bytes(&cursor->fetch, &span, &bytes, &count);

    if (err == SL_OK)
        err = sl_frame_header_get(bytes, count, cursor->shelf->segment.seed, &header);
    if (err == SL_ERR_CORRUPT || (err == SL_OK && header.bytes <= SL_FRAME_HEADER_BYTES))
        return journal_cursor_damage(cursor, false, cursor->offset);
    if (err != SL_OK)
        return err;
    cursor->frame_end = cursor->offset + header.bytes;
    cursor->offset += SL_FRAME_HEADER_BYTES;
    return SL_OK;
}

/* The next record of this segment; the cursor stands behind it then. SL_ERR_EMPTY: there is none. Whoever only passes by
 * needs no more than its header: an event may be large. */
static sl_err step(journal_cursor *cursor, bool only_head, sl_record_view *ret_record)
{
    sl_err err = SL_OK;

    if (cursor->offset == cursor->frame_end) {
        if (cursor->offset >= journal_shelf_bytes(cursor->store, cursor->shelf_number))
            return SL_ERR_EMPTY;
        err = enter_frame(cursor);
    }
    if (err == SL_OK)
        err = only_head ? journal_cursor_head(cursor, cursor->offset, cursor->frame_end, ret_record)
                        : journal_cursor_record(cursor, cursor->offset, ret_record);
    if (err != SL_OK)
        return err;
    if (ret_record->bytes > cursor->frame_end - cursor->offset)
        return journal_cursor_damage(cursor, false, cursor->offset);
    cursor->offset += ret_record->bytes;
    return SL_OK;
}

static sl_err decode(journal_cursor *cursor, const sl_record_view *record, sl_event *ret_event)
{
    const sl_err err = sl_event_get(record, ret_event);

    return err == SL_OK ? SL_OK : journal_cursor_damage(cursor, false, cursor->offset - record->bytes);
}

/* --- forwards --- */

/* SL_ERR_EMPTY: everything up to `end` was looked at. */
static sl_err forward_one(journal_cursor *cursor, uint64_t end, journal_page *page)
{
    sl_record_view record;
    sl_event event;
    sl_err err;

    if (cursor->next >= end)
        return SL_ERR_EMPTY;
    if (!journal_cursor_is_placed(cursor))
        place_in(cursor, journal_shelf_of(cursor->store, cursor->next), cursor->next);
    if (cursor->next >= journal_shelf_end(cursor->store, cursor->shelf_number)) {
        journal_cursor_forget(cursor);
        return SL_OK;
    }
    err = step(cursor, false, &record);
    if (err == SL_ERR_EMPTY) { /* rewritten: its last records are gone */
        cursor->next = journal_shelf_end(cursor->store, cursor->shelf_number);
        return SL_OK;
    }
    if (err != SL_OK || record.position < cursor->next)
        return err;
    page->looked_at++;
    if (record.kind == SL_RECORD_EVENT) {
        err = decode(cursor, &record, &event);
        if (err == SL_OK)
            err = look_at(cursor, &event, page);
    }
    if (err != SL_OK) {
        journal_cursor_forget(cursor); /* it stands behind the record, which comes again with the next call */
        return err;
    }
    cursor->next = record.position + 1;
    return SL_OK;
}

static sl_err all_forwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    journal_cursor *const cursor = journal_cursor_of(base);
    const uint64_t end = sl_log_durable(cursor->store->log);
    const uint64_t started = cursor->next;
    journal_page page = { .events = events, .max = max };
    sl_err err = SL_OK;

    journal_fetch_page(&cursor->fetch);
    while (err == SL_OK && journal_page_goes_on(cursor, &page))
        err = forward_one(cursor, end, &page);
    if (cursor->next > started)
        base->position = cursor->next - 1;
    return journal_page_end(cursor, &page, err, ret_count);
}

/* --- backwards --- */

/* Notes an event. There are not more of them than fit: places are that close. */
static sl_err note_event(journal_cursor *cursor, const sl_record_view *record)
{
    const uint32_t offset = (uint32_t)(cursor->offset - record->bytes);

    if (cursor->entry_count == SL_CURSOR_ENTRIES)
        return journal_cursor_damage(cursor, cursor->shelf->index != NULL, offset);
    cursor->entries[cursor->entry_count++] =
        (sl_index_entry){ .revision = record->position, .offset = offset };
    return SL_OK;
}

/* On the way from the place to where the reader stands. The checksum of an event is looked at when it is given; of whatever
 * is passed over here, because its header says so, it is looked at now. */
static sl_err collect_record(journal_cursor *cursor, journal_page *page)
{
    sl_record_view record;
    sl_err err = step(cursor, true, &record);

    if (err == SL_OK && (record.kind != SL_RECORD_EVENT || record.position >= cursor->next))
        err = journal_cursor_record(cursor, cursor->offset - record.bytes, &record);
    if (err != SL_OK)
        return err;
    if (record.position >= cursor->next)
        return SL_ERR_EMPTY;
    if (record.position < cursor->walked)
        return journal_cursor_damage(cursor, false, cursor->offset - record.bytes);
    cursor->walked = record.position + 1;
    page->looked_at++;
    return record.kind == SL_RECORD_EVENT ? note_event(cursor, &record) : SL_OK;
}

/* After an error the next call comes to the same record again: this one may have a page to give first, and must not be the only
 * one that hears of it. */
static sl_err collect_one(journal_cursor *cursor, journal_page *page)
{
    const uint64_t offset = cursor->offset, frame_end = cursor->frame_end;
    const sl_err err = cursor->walked >= cursor->next ? SL_ERR_EMPTY : collect_record(cursor, page);

    if (err != SL_OK && err != SL_ERR_EMPTY) {
        cursor->offset = offset;
        cursor->frame_end = frame_end;
    }
    return err;
}

/* SL_OK: go on with the next call, or all of them are collected. */
static sl_err collect(journal_cursor *cursor, journal_page *page)
{
    sl_err err = SL_OK;

    if (!journal_cursor_is_placed(cursor))
        place_in(cursor, journal_shelf_of(cursor->store, cursor->next - 1), cursor->next - 1);
    while (err == SL_OK && journal_page_goes_on(cursor, page))
        err = collect_one(cursor, page);
    if (err != SL_ERR_EMPTY)
        return err;
    cursor->entry_at = cursor->entry_count; /* from here down */
    cursor->collected = true;
    return SL_OK;
}

static sl_err give_one(journal_cursor *cursor, journal_page *page)
{
    const sl_index_entry *const entry = &cursor->entries[cursor->entry_at - 1];
    sl_record_view record;
    sl_event event;
    sl_err err = journal_cursor_record(cursor, entry->offset, &record);

    if (err == SL_OK && (record.kind != SL_RECORD_EVENT || sl_event_get(&record, &event) != SL_OK ||
                         record.position != entry->revision))
        err = journal_cursor_damage(cursor, false, entry->offset);
    if (err != SL_OK)
        return err;
    page->looked_at++;
    err = look_at(cursor, &event, page);
    if (err != SL_OK)
        return err;
    cursor->entry_at--;
    cursor->next = cursor->base.position = event.position;
    return SL_OK;
}

/* Below the place is the place before it, or the segment before this one. */
static void go_below(journal_cursor *cursor)
{
    const bool found = cursor->walked > 0; /* else the segment has nothing left down here */

    cursor->next = found ? cursor->bottom : cursor->shelf->segment.first;
    journal_cursor_forget(cursor);
}

static sl_err backward_one(journal_cursor *cursor, journal_page *page)
{
    if (cursor->shelf != NULL && !journal_cursor_is_placed(cursor))
        journal_cursor_forget(cursor); /* rewritten meanwhile */
    if (cursor->shelf != NULL && cursor->entry_at > 0)
        return give_one(cursor, page);
    if (cursor->shelf != NULL && cursor->collected) {
        go_below(cursor);
        return SL_OK;
    }
    if (cursor->next <= cursor->store->shelves[0]->segment.first)
        return SL_ERR_EMPTY;
    return collect(cursor, page);
}

static sl_err all_backwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    journal_cursor *const cursor = journal_cursor_of(base);
    journal_page page = { .events = events, .max = max };
    sl_err err = SL_OK;

    journal_fetch_page(&cursor->fetch);
    while (err == SL_OK && journal_page_goes_on(cursor, &page))
        err = backward_one(cursor, &page);
    if (err == SL_ERR_EMPTY)
        base->position = 0;
    return journal_page_end(cursor, &page, err, ret_count);
}

const sl_cursor_ops journal_all_ops[2] = {
    { all_forwards, journal_cursor_close },
    { all_backwards, journal_cursor_close },
};
