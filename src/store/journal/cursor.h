/* store/journal/cursor.h — what the two sorts of cursors share: cursor_all.c and cursor_stream.c.
 *
 * A cursor holds the number it goes on from. Everything else, where in which segment that is, is found again when it is not
 * valid any more: segments are sealed and rewritten while they are read. What is hidden is asked anew at each call. */
#ifndef SL_STORE_JOURNAL_CURSOR_H
#define SL_STORE_JOURNAL_CURSOR_H

#include "store/journal/fetch.h"

enum {
    /* Records that one call looks at. The caller has others to serve: a filter may match nothing in a million. */
    SL_LOOKED_AT_MAX = 4096,
    SL_PAGE_BYTES_MAX = 1 << 20, /* of memory for one page; a larger event comes alone */
    SL_CURSOR_ENTRIES = SL_INDEX_PLACE_EVERY,
};

typedef struct journal_cursor {
    sl_cursor base;
    journal_store *store;
    const sl_filter *filter;
    bool backwards;
    uint32_t stream;
    uint64_t stream_hash;
    uint64_t next; /* forwards: position or revision of the next one; backwards: one above it */
    uint64_t now_ns;
    journal_fetch fetch;

    journal_shelf *shelf; /* held; NULL: the place in the log is not known */
    uint32_t shelf_number;
    uint64_t offset, frame_end; /* in all events: of the next record, and where its frame ends */
    uint64_t bottom;            /* backwards: the position from which the entries were collected */
    uint64_t walked; /* backwards: the position after the last record that was looked at for them */
    bool collected;  /* backwards: all of them */
    uint64_t seek;   /* in a stream: entries of this segment from here on were not looked at */
    bool exhausted;  /* in a stream: there is no such revision */
    sl_index_entry entries[SL_CURSOR_ENTRIES];
    uint32_t entry_at, entry_count;
} journal_cursor;

typedef struct journal_page { /* what a call gives back */
    sl_event *events;
    uint32_t max, count;
    uint32_t looked_at;
} journal_page;

static inline journal_cursor *journal_cursor_of(sl_cursor *cursor)
{
    return SL_CONTAINER_OF(cursor, journal_cursor, base);
}

static inline bool journal_page_goes_on(const journal_cursor *cursor, const journal_page *page)
{
    return page->count < page->max && page->looked_at < SL_LOOKED_AT_MAX &&
           (page->looked_at == 0 || cursor->fetch.page_bytes < SL_PAGE_BYTES_MAX);
}

/* What to answer when the loop has ended with `err`; SL_OK: the page is full, SL_ERR_EMPTY: nothing is left. */
sl_err journal_page_end(journal_cursor *cursor, const journal_page *page, sl_err err, uint32_t *ret_count);

/* From now on the cursor is in this segment; what it knew of another is forgotten. */
void journal_cursor_enter(journal_cursor *cursor, uint32_t shelf_number);
void journal_cursor_forget(journal_cursor *cursor);

/* True when what the cursor knows of its segment still holds. */
bool journal_cursor_is_placed(const journal_cursor *cursor);

/* What the header of the record at an offset says: not checked, but possible up to `end`. */
sl_err journal_cursor_head(journal_cursor *cursor, uint64_t offset, uint64_t end, sl_record_view *ret_record);

/* The record at an offset of the cursor's segment, checked. Codes as journal_fetch_bytes(), SL_ERR_CORRUPT with a sentence. */
sl_err journal_cursor_record(journal_cursor *cursor, uint64_t offset, sl_record_view *ret_record);

/* SL_ERR_CORRUPT, with a sentence. */
sl_err journal_cursor_damage(journal_cursor *cursor, bool in_index, uint64_t offset);

extern const sl_cursor_ops journal_all_ops[2], journal_stream_ops[2]; /* by `backwards` */
void journal_cursor_close(sl_cursor *cursor);

#endif
