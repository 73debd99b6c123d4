/* tests/sim/stream.h — the truth about one lane: every event that was ever put in, whatever a group thinks of it. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "core/effect.h"

typedef struct sim_event {
    uint64_t position;
    sl_uuid id;
    uint64_t key;
    bool concerns; /* false: a filter of the group passes over it */
    bool gone;     /* deleted from the stream: it is not read again */
    bool durable;  /* its settle was synced: nobody may ever get it again */
} sim_event;

typedef struct sim_stream {
    sim_event *events; /* by position */
    uint32_t event_count, event_room;
} sim_stream;

void sim_stream_init(sim_stream *stream);
void sim_stream_done(sim_stream *stream);

/* Copies the event to the end; its position must be above all others. */
void sim_stream_append(sim_stream *stream, const sim_event *event);

/* Forgets all but the first event_count events: what they came from was never durable. */
void sim_stream_cut(sim_stream *stream, uint32_t event_count);

/* Index of the first event at or above the position; event_count if there is none. */
uint32_t sim_stream_find(const sim_stream *stream, uint64_t position);

/* The event at exactly this position, or NULL. */
sim_event *sim_stream_at(const sim_stream *stream, uint64_t position);

#endif
