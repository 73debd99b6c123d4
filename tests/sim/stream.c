/* tests/sim/stream.c — a growing array of events, searched by position. */
#include "stream.h"

#include <assert.h>
#include <stdlib.h>

void sim_stream_init(sim_stream *stream)
{
    *stream = (sim_stream){ .events = NULL };
}

void sim_stream_done(sim_stream *stream)
{
    free(stream->events);
    sim_stream_init(stream);
}

void sim_stream_append(sim_stream *stream, const sim_event *event)
{
    const uint32_t count = stream->event_count;
    assert(count == 0 || stream->events[count - 1].position < event->position);
    if (count == stream->event_room) {
        stream->event_room = count == 0 ? 64 : 2 * count;
        stream->events = realloc(stream->events, stream->event_room * sizeof stream->events[0]);
        assert(stream->events != NULL);
    }
    stream->events[stream->event_count++] = *event;
}

void sim_stream_cut(sim_stream *stream, uint32_t event_count)
{
    assert(event_count <= stream->event_count);
    stream->event_count = event_count;
}

uint32_t sim_stream_find(const sim_stream *stream, uint64_t position)
{
    uint32_t low = 0, high = stream->event_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (stream->events[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

sim_event *sim_stream_at(const sim_stream *stream, uint64_t position)
{
    const uint32_t index = sim_stream_find(stream, position);
    if (index == stream->event_count || stream->events[index].position != position)
        return NULL;
    return &stream->events[index];
}
