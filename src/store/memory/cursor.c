/* store/memory/cursor.c — reading: by position over everything, or by revision in one stream.
 *
 * A cursor holds the number it goes on from, never an index or a pointer into what may change. What is hidden is asked anew
 * at each call, so a stream that is shortened or deleted while it is read shows nothing that it no longer has. */
#include "store/memory/memory.h"

#include "base/cleanup.h"
#include "store/filter.h"

#include <assert.h>

enum {
    /* Events that one call looks at. The caller has others to serve: a filter may match nothing in a million. */
    LOOKED_AT_MAX = 4096
};

typedef struct memory_cursor {
    sl_cursor base;
    memory_store *store;
    const sl_filter *filter;
    bool backwards;
    uint32_t stream;
    uint64_t next; /* forwards: position or revision of the next one; backwards: one above it */
    uint64_t now_ns;
} memory_cursor;

typedef struct page { /* what a call gives back */
    sl_event *events;
    uint32_t max, count;
    uint32_t looked_at;
    bool gave_up; /* the filter, at the next event */
} page;

static memory_cursor *cursor_of(sl_cursor *cursor)
{
    return SL_CONTAINER_OF(cursor, memory_cursor, base);
}

static bool page_goes_on(const page *p)
{
    return p->count < p->max && p->looked_at < LOOKED_AT_MAX;
}

/* What to answer when the loop has ended; at_end: there was nothing left to look at. */
static sl_err page_end(const memory_cursor *cursor, const page *p, bool at_end, uint32_t *ret_count)
{
    if (p->count > 0) {
        *ret_count = p->count;
        return SL_OK;
    }
    if (p->gave_up)
        return SL_ERR_TOO_LARGE;
    if (at_end)
        return SL_ERR_EMPTY;
    memory_wake(cursor->store);
    return SL_ERR_AGAIN;
}

/* --- everything --- */

/* False: the filter cannot judge it, so the cursor must not pass it. */
static bool look_at(memory_cursor *cursor, const sl_event *event, page *p)
{
    const sl_filter_verdict verdict =
        cursor->filter == NULL ? SL_FILTER_YES : sl_filter_judge(cursor->filter, event->stream, event->type);

    p->gave_up = verdict == SL_FILTER_GAVE_UP;
    if (p->gave_up)
        return false;
    p->looked_at++;
    cursor->base.considered++;
    cursor->base.position = event->position;
    if (verdict == SL_FILTER_YES)
        p->events[p->count++] = *event;
    return true;
}

static sl_err all_forwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    memory_cursor *const cursor = cursor_of(base);
    const memory_store *const store = cursor->store;
    const size_t end = memory_events_find(store, store->synced_end);
    size_t index = memory_events_find(store, cursor->next);
    page p = { .events = events, .max = max };

    for (; index < end && page_goes_on(&p) && look_at(cursor, &store->events[index]->event, &p); index++)
        cursor->next = store->events[index]->event.position + 1;
    if (index >= end &&
        cursor->next < store->synced_end) { /* records of groups may be between it and the end */
        cursor->next = store->synced_end;
        base->position = store->synced_end - 1;
    }
    return page_end(cursor, &p, index >= end, ret_count);
}

static sl_err all_backwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    memory_cursor *const cursor = cursor_of(base);
    const memory_store *const store = cursor->store;
    size_t index = memory_events_find(store, cursor->next);
    page p = { .events = events, .max = max };

    for (; index > 0 && page_goes_on(&p) && look_at(cursor, &store->events[index - 1]->event, &p); index--)
        cursor->next = store->events[index - 1]->event.position;
    if (index == 0)
        base->position = 0;
    return page_end(cursor, &p, index == 0, ret_count);
}

/* --- one stream --- */

static bool is_shown(const memory_cursor *cursor, const memory_event *kept)
{
    return kept != NULL && kept->event.position < cursor->store->synced_end;
}

/* Adds the event at a revision to the page unless it is too old. False: it is not there, or not durable yet. */
static bool look_in_stream(memory_cursor *cursor, const sl_stream *stream, uint64_t revision, page *p)
{
    const memory_event *const kept = memory_events_at(cursor->store, cursor->stream, revision);

    if (!is_shown(cursor, kept))
        return false;
    p->looked_at++;
    cursor->base.considered++;
    cursor->base.position = kept->event.position;
    if (revision == SL_REVISION_MAX || !sl_directory_expired(stream, kept->event.created_ns, cursor->now_ns))
        p->events[p->count++] = kept->event;
    return true;
}

/* As page_end(), for a stream that may be gone. The tombstone is the last that a forward cursor gives. */
static sl_err stream_end(const memory_cursor *cursor, const sl_stream *stream, const page *p, bool at_end,
                         uint32_t *ret_count)
{
    const bool deleted = sl_directory_state(&cursor->store->writer.directory, stream) == SL_STREAM_TOMBSTONED;
    const bool told = cursor->backwards || stream->last != SL_REVISION_MAX || cursor->next > SL_REVISION_MAX;

    if (p->count == 0 && at_end && deleted && told)
        return SL_ERR_STREAM_DELETED;
    return page_end(cursor, p, at_end, ret_count);
}

static sl_err stream_forwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    memory_cursor *const cursor = cursor_of(base);
    const sl_stream *const stream = sl_directory_at(&cursor->store->writer.directory, cursor->stream);
    const uint64_t first = sl_directory_first(stream);
    page p = { .events = events, .max = max };
    bool at_end = false;

    while (!at_end && page_goes_on(&p)) {
        const uint64_t revision = sl_max_u64(cursor->next, first);

        at_end = !look_in_stream(cursor, stream, revision, &p);
        if (!at_end)
            cursor->next = revision + 1; /* not before: what is hidden now says nothing of what comes later */
    }
    return stream_end(cursor, stream, &p, at_end, ret_count);
}

static sl_err stream_backwards(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    memory_cursor *const cursor = cursor_of(base);
    const sl_stream *const stream = sl_directory_at(&cursor->store->writer.directory, cursor->stream);
    const uint64_t first = sl_directory_first(stream);
    page p = { .events = events, .max = max };

    while (cursor->next > first && page_goes_on(&p)) {
        cursor->next--;
        (void)look_in_stream(cursor, stream, cursor->next,
                             &p); /* the newest may not be durable yet: passed over */
    }
    return stream_end(cursor, stream, &p, cursor->next <= first, ret_count);
}

/* --- opening --- */

static void cursor_close(sl_cursor *base)
{
    memory_cursor *const cursor = cursor_of(base);

    sl_alloc_give(cursor->store->alloc, cursor, sizeof *cursor);
}

static const sl_cursor_ops cursor_ops[2][2] = {
    /* [in one stream][backwards] */
    { { all_forwards, cursor_close }, { all_backwards, cursor_close } },
    { { stream_forwards, cursor_close }, { stream_backwards, cursor_close } },
};

/* SL_OK: it may be read, *ret_stream is it. */
static sl_err find_stream(const memory_store *store, const sl_read *read, const sl_stream **ret_stream)
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

static void start_in_stream(memory_cursor *cursor, const sl_stream *stream, uint64_t from)
{
    cursor->stream = stream->id;
    cursor->next = cursor->backwards ? sl_min_u64(above(from), above(stream->last)) : from;
}

static void start_in_all(memory_cursor *cursor, uint64_t from)
{
    cursor->next = cursor->backwards ? sl_min_u64(from, cursor->store->synced_end) : from;
    cursor->base.position = cursor->backwards || from == 0 ? cursor->next : from - 1;
}

sl_err memory_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    memory_store *const store = memory_of(base);
    const bool by_stream = read->stream.bytes > 0;
    const sl_stream *stream = NULL;
    const sl_err err = by_stream ? find_stream(store, read, &stream) : SL_OK;
    memory_cursor *cursor;

    if (err != SL_OK)
        return err;
    cursor = sl_alloc_take(store->alloc, sizeof *cursor);
    if (cursor == NULL)
        return SL_ERR_NOMEM;
    *cursor = (memory_cursor){ .base.ops = &cursor_ops[by_stream][read->backwards],
                               .store = store,
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
