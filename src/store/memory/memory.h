/* store/memory/memory.h — the store that keeps everything in memory: what its files share.
 *
 * A real backend, for simulations and tests, and the model that others are compared with. It behaves as one with a disk
 * would: what is submitted is written at the end of the turn, what is written becomes durable by a sync that ends at a
 * later poll, and only what is durable is shown. Four positions say where everything stands:
 *
 *      events, records ...... | ........ | ........ | ........ |
 *                         synced_end  syncing_end  written_end  writer.next_position
 *                         shown, safe   under way    survives a   gone with this process
 *                                                    kill
 *
 * memory.c has the queue of batches and restarts, events.c the events, cursor.c reading, groups.c the groups. */
#ifndef SL_STORE_MEMORY_MEMORY_H
#define SL_STORE_MEMORY_MEMORY_H

#include "base/list.h"
#include "store/answers.h"
#include "store/backend.h"
#include "store/writer.h"

typedef struct memory_event {
    sl_event event; /* its texts stand behind it */
    uint32_t stream;
    size_t bytes; /* of this block */
} memory_event;

/* The events of one stream, by revision; a tombstone is the last one. */
typedef struct memory_stream {
    memory_event **events;
    size_t count, capacity;
} memory_stream;

typedef struct memory_groups {
    sl_map by_number; /* the newest of a number first: an older one may wait for the sync of its deletion */
    sl_list all;      /* in the order of creation */
    sl_list due;      /* have so many records that a snapshot is wanted */
    size_t unsettled; /* deletions, updates and snapshots that are not synced yet */
} memory_groups;

typedef struct memory_store {
    sl_store base;
    const sl_alloc *alloc;
    sl_hash_seed seed;
    sl_writer writer;
    memory_event **events; /* by position */
    size_t event_count, event_capacity;
    memory_stream *streams; /* by id */
    size_t stream_capacity;
    memory_groups groups;
    sl_answers answers;
    uint64_t written_end, syncing_end, synced_end; /* syncing_end is 0 while no sync runs */
    int wait_fd;
    bool closing;
} memory_store;

static inline memory_store *memory_of(sl_store *store)
{
    return SL_CONTAINER_OF(store, memory_store, base);
}

/* Makes the descriptor readable. */
void memory_wake(const memory_store *store);

/* --- events.c --- */

/* SL_OK or SL_ERR_NOMEM, then nothing has changed. */
sl_err memory_events_add(memory_store *store, uint32_t stream, const sl_event *event);

/* Drops all events from this position on. */
void memory_events_cut(memory_store *store, uint64_t position);

/* The event with this revision, durable or not; NULL: none. */
memory_event *memory_events_at(const memory_store *store, uint32_t stream, uint64_t revision);

/* Index of the first event at or above a position. */
size_t memory_events_find(const memory_store *store, uint64_t position);

/* Tells the writer of all events again, after sl_writer_init(). SL_OK or SL_ERR_NOMEM. */
sl_err memory_events_replay(memory_store *store);

void memory_events_free(memory_store *store);

/* --- cursor.c --- */

sl_err memory_read(sl_store *store, const sl_read *read, sl_cursor **ret_cursor);

/* --- groups.c --- */

sl_err memory_groups_init(memory_store *store);

/* SL_OK, SL_ERR_EXISTS, SL_ERR_NOT_FOUND or SL_ERR_NOMEM; nothing has changed then. */
sl_err memory_groups_take(memory_store *store, uint64_t position, const sl_op *op);

/* Undoes everything from this position on. */
void memory_groups_cut(memory_store *store, uint64_t position);

/* Asks the groups that have gathered many records for their state. */
void memory_groups_snapshot(memory_store *store);

/* What was deleted or replaced (by a snapshot, by another definition) before store->synced_end is forgotten. */
void memory_groups_synced(memory_store *store);

sl_err memory_groups_load(sl_store *store, const sl_loader *loader);
void memory_groups_free(memory_store *store);

#endif
