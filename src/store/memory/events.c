/* store/memory/events.c — events in blocks of their own, listed twice: by position, and by stream and revision. */
#include "store/memory/memory.h"

#include "store/array.h"

#include <assert.h>
#include <string.h>

static sl_str keep_text(char **at, sl_str text)
{
    const sl_str kept = { *at, text.bytes };

    if (text.bytes > 0)
        memcpy(*at, text.data, text.bytes);
    *at += text.bytes;
    return kept;
}

static memory_event *event_new(const sl_alloc *alloc, uint32_t stream, const sl_event *event)
{
    const size_t text_bytes =
        event->stream.bytes + event->type.bytes + event->data.bytes + event->metadata.bytes;
    memory_event *const kept = sl_alloc_take(alloc, sizeof *kept + text_bytes);
    char *at;

    if (kept == NULL)
        return NULL;
    at = (char *)(kept + 1);
    *kept = (memory_event){ .event = *event, .stream = stream, .bytes = sizeof *kept + text_bytes };
    kept->event.stream = keep_text(&at, event->stream);
    kept->event.type = keep_text(&at, event->type);
    kept->event.data = keep_text(&at, event->data);
    kept->event.metadata = keep_text(&at, event->metadata);
    return kept;
}

/* Room for one more event of this stream. */
static sl_err reserve_in_stream(memory_store *store, uint32_t id)
{
    const size_t old_capacity = store->stream_capacity;
    memory_stream *const streams =
        sl_array_grow(store->alloc, store->streams, &store->stream_capacity, sizeof *streams, (size_t)id + 1);
    memory_event **events;

    if (streams == NULL)
        return SL_ERR_NOMEM;
    store->streams = streams;
    if (store->stream_capacity > old_capacity)
        memset(streams + old_capacity, 0, (store->stream_capacity - old_capacity) * sizeof *streams);
    events = sl_array_grow(store->alloc, streams[id].events, &streams[id].capacity, sizeof(memory_event *),
                           streams[id].count + 1);
    if (events == NULL)
        return SL_ERR_NOMEM;
    streams[id].events = events;
    return SL_OK;
}

static sl_err reserve(memory_store *store)
{
    memory_event **const events = sl_array_grow(store->alloc, store->events, &store->event_capacity,
                                                sizeof(memory_event *), store->event_count + 1);

    if (events == NULL)
        return SL_ERR_NOMEM;
    store->events = events;
    return SL_OK;
}

sl_err memory_events_add(memory_store *store, uint32_t stream, const sl_event *event)
{
    memory_event *kept;
    memory_stream *list;

    if (reserve(store) != SL_OK || reserve_in_stream(store, stream) != SL_OK)
        return SL_ERR_NOMEM;
    kept = event_new(store->alloc, stream, event);
    if (kept == NULL)
        return SL_ERR_NOMEM;
    list = &store->streams[stream];
    assert(event->revision == list->count || event->revision == SL_REVISION_MAX);
    store->events[store->event_count++] = kept;
    list->events[list->count++] = kept;
    return SL_OK;
}

void memory_events_cut(memory_store *store, uint64_t position)
{
    while (store->event_count > 0 && store->events[store->event_count - 1]->event.position >= position) {
        memory_event *const last = store->events[--store->event_count];

        store->streams[last->stream].count--;
        sl_alloc_give(store->alloc, last, last->bytes);
    }
}

memory_event *memory_events_at(const memory_store *store, uint32_t stream, uint64_t revision)
{
    const memory_stream *list;
    memory_event *found;

    if (stream >= store->stream_capacity || store->streams[stream].count == 0)
        return NULL;
    list = &store->streams[stream];
    if (revision < list->count)
        found = list->events[revision];
    else
        found = list->events[list->count - 1]; /* it may be the tombstone that is asked for */
    return found->event.revision == revision ? found : NULL;
}

size_t memory_events_find(const memory_store *store, uint64_t position)
{
    size_t low = 0, high = store->event_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (store->events[middle]->event.position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The ids of streams are given out anew, in the same order. */
sl_err memory_events_replay(memory_store *store)
{
    for (size_t i = 0; i < store->event_count; i++) {
        uint32_t stream = 0;
        const sl_err err = sl_writer_replay(&store->writer, &store->events[i]->event, &stream);

        if (err != SL_OK)
            return err;
        assert(stream == store->events[i]->stream);
    }
    return SL_OK;
}

void memory_events_free(memory_store *store)
{
    memory_events_cut(store, 0);
    for (size_t i = 0; i < store->stream_capacity; i++)
        sl_alloc_give(store->alloc, store->streams[i].events,
                      store->streams[i].capacity * sizeof(memory_event *));
    sl_alloc_give(store->alloc, store->streams, store->stream_capacity * sizeof *store->streams);
    sl_alloc_give(store->alloc, store->events, store->event_capacity * sizeof *store->events);
}
