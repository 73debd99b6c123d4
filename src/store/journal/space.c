/* store/journal/space.c — getting space back: which segments are rewritten when, and how the store goes over to the new
 * ones.
 *
 * What may go is decided here, in the loop, from the directory, and holds only once everything it was decided from is
 * durable: an event that made another one superfluous could be lost in a power cut, and then both would be gone. Then one
 * segment after the other is looked at in the background; a new one takes the place of the old one between two turns.
 * Whoever reads the old one goes on with it.
 *
 * Besides, each time a segment is sealed one of the older ones is looked at: so space comes back without anybody asking. */
#include "store/journal/journal_private.h"

#include "store/journal/scavenge.h"

#include <stdlib.h>

enum {
    OWN_DEAD_SHARE = 50,    /* percent: what is worth rewriting a segment for when nobody asked */
    DECIDED_AT_ONCE = 4096, /* streams: well under a millisecond */
    TAIL_SHARE = 4,         /* a segment of which a quarter was never used is worth it as well */
};

struct journal_space {
    sl_task task;
    journal_store *store;
    sl_scavenge how;
    sl_scavenged result;
    sl_scavenged_fn *done; /* NULL: nobody asked */
    void *ctx;
    sl_doomed *streams;
    size_t stream_capacity;
    sl_doom doom;
    uint32_t decided_count; /* streams that were looked at */
    bool is_decided;
    uint64_t decided_at; /* begins when everything below this position is durable */
    bool begun;
    uint32_t next, end; /* shelves */

    /* of one segment */
    sl_segment_ref segment;
    sl_dead dead;
    sl_file *file;
    sl_index *index;
    sl_segment_header header;
    uint64_t offset;
    bool is_sorted; /* the background does it */
    bool for_seal;  /* only waits until its seal, which is before it in the queue, is done */
    bool ran;
};

/* --- deciding --- */

static bool may_go(const sl_directory *directory, const sl_stream *stream, sl_doomed *ret_doomed)
{
    const bool tombstoned = sl_directory_state(directory, stream) == SL_STREAM_TOMBSTONED;
    const uint64_t first = tombstoned ? SL_REVISION_MAX : sl_directory_first(stream);

    if (stream->last == SL_REVISION_NONE || (first == 0 && stream->keep.max_age_s == 0))
        return false;
    *ret_doomed = (sl_doomed){ .name = sl_stream_name(stream),
                               .first = first,
                               .last = stream->last,
                               .max_age_s = stream->keep.max_age_s };
    return true;
}

static sl_err push_doomed(journal_space *space, sl_doomed doomed)
{
    if (space->doom.stream_count == space->stream_capacity) {
        const size_t capacity = space->stream_capacity == 0 ? 256 : 2 * space->stream_capacity;
        sl_doomed *const more = realloc(space->streams, capacity * sizeof *more);

        if (more == NULL)
            return SL_ERR_NOMEM;
        space->streams = more;
        space->stream_capacity = capacity;
    }
    space->streams[space->doom.stream_count++] = doomed;
    return SL_OK;
}

/* Some streams more; there may be millions, and the loop has others to serve. Names are good as long as the store: the
 * directory never moves them. */
static sl_err decide_some(journal_space *space)
{
    const sl_directory *const directory = &space->store->writer.directory;
    const sl_uuid store = sl_log_store(space->store->log);
    const uint32_t left = directory->count - space->decided_count;
    const uint32_t end = space->decided_count + (left < DECIDED_AT_ONCE ? left : DECIDED_AT_ONCE);
    sl_err err = SL_OK;

    for (; space->decided_count < end && err == SL_OK; space->decided_count++) {
        sl_doomed doomed;

        if (!may_go(directory, sl_directory_at(directory, space->decided_count), &doomed))
            continue;
        doomed.hash = sl_stream_hash(store, doomed.name);
        err = push_doomed(space, doomed);
    }
    return err;
}

static void decided(journal_space *space)
{
    space->is_decided = true;
    space->doom.streams = space->streams;
    space->doom.now_ns = space->how.now_ns;
    space->doom.groups_from = space->store->states_from;
    space->decided_at = sl_log_next(space->store->log);
}

static void space_free(journal_space *space)
{
    free(space->streams);
    free(space);
}

/* --- one segment, in the background --- */

static bool is_worth_it(const journal_space *space)
{
    const uint64_t size = space->segment.size_bytes - SL_SEGMENT_HEADER_BYTES;
    const uint64_t waste = size > space->dead.live_bytes ? size - space->dead.live_bytes : 0;

    if (space->dead.records == 0 && (space->segment.rewrites > 0 || waste < size / TAIL_SHARE))
        return false;
    return waste * 100 >= size * space->how.dead_share;
}

static void space_run(sl_task *task)
{
    journal_space *const space = SL_CONTAINER_OF(task, journal_space, task);
    sl_disk *const disk = space->segment.file->disk;
    sl_segment_ref new_segment = space->segment;
    sl_err err;

    space->ran = true;
    if (space->for_seal)
        return;
    if (!space->is_sorted)
        sl_doom_sort(space->streams, space->doom.stream_count);
    space->is_sorted = true;
    err = sl_scavenge_count(&space->segment, &space->doom, &space->dead, &space->offset);
    if (err == SL_OK && is_worth_it(space)) {
        err = sl_scavenge_rewrite(disk, &space->segment, &space->doom, &space->dead, &space->file,
                                  &space->header, &space->offset);
        new_segment.file = space->file;
        new_segment.rewrites = space->header.rewrites;
        new_segment.size_bytes = space->header.segment_bytes;
        if (err == SL_OK)
            err = sl_index_build(disk, &new_segment, &space->offset);
        if (err == SL_OK)
            err = sl_index_open(disk, &new_segment, &space->index);
    }
    space->result.err = err;
}

/* --- going over to it --- */

static sl_err take_over(journal_space *space)
{
    journal_store *const store = space->store;
    journal_shelf *const old = store->shelves[space->next];
    journal_shelf *const shelf = sl_alloc_take(store->alloc, sizeof *shelf);

    if (shelf == NULL)
        return SL_ERR_NOMEM;
    *shelf = (journal_shelf){ .refs = 1, .index = space->index };
    (void)sl_log_replace(store->log, space->next, space->file, &space->header);
    sl_log_segment(store->log, space->next, &shelf->segment);
    store->shelves[space->next] = shelf;
    old->owns_file = true; /* what the log gave back */
    journal_shelf_release(store, old);
    space->file = NULL;
    space->index = NULL;
    return SL_OK;
}

static void count_result(journal_space *space)
{
    const uint64_t old_bytes = space->segment.size_bytes;

    space->result.segments_rewritten++;
    space->result.events_dropped += space->dead.events;
    space->result.records_dropped += space->dead.records;
    space->result.bytes_freed +=
        old_bytes > space->header.segment_bytes ? old_bytes - space->header.segment_bytes : 0;
}

/* Without its index, or without memory, the old one is used on; it lives as long as it is open. */
static void drop_new(journal_space *space)
{
    if (space->index != NULL)
        sl_index_close(space->index);
    if (space->file != NULL)
        space->file->disk->ops->close(space->file);
    space->index = NULL;
    space->file = NULL;
}

static void finish_all(journal_space *space)
{
    space->store->space = NULL;
    if (space->store->closing && space->result.err == SL_OK && space->next < space->end)
        space->result.err = SL_ERR_AGAIN; /* ended early */
    if (space->done != NULL)
        space->done(space->ctx, &space->result);
    space_free(space);
}

static void run_next(journal_space *space);

static void space_finish(sl_task *task)
{
    journal_space *const space = SL_CONTAINER_OF(task, journal_space, task);
    journal_store *const store = space->store;

    if (space->result.err == SL_ERR_CORRUPT)
        journal_complain(store, "Damage was found while scavenging", store->shelves[space->next], false,
                         space->offset);
    if (space->ran && !space->for_seal)
        space->result.segments_seen++;
    if (space->result.err == SL_OK && space->index != NULL) {
        space->result.err = take_over(space);
        if (space->result.err == SL_OK)
            count_result(space);
    }
    drop_new(space);
    space->next += !space->for_seal;
    if (store->closing || !space->ran || space->result.err != SL_OK)
        finish_all(space);
    else
        run_next(space);
}

/* A segment whose index could not be made waits for the next time. */
static bool is_ready(const journal_shelf *shelf)
{
    return shelf->index != NULL || shelf->sealing;
}

static void run_next(journal_space *space)
{
    journal_store *const store = space->store;

    while (space->next < space->end && !is_ready(store->shelves[space->next]))
        space->next++;
    if (space->next >= space->end) {
        finish_all(space);
        return;
    }
    space->ran = false;
    space->for_seal = store->shelves[space->next]->index == NULL;
    space->dead = (sl_dead){ 0 };
    sl_log_segment(store->log, space->next, &space->segment);
    sl_background_push(&store->sealer, &space->task);
}

/* --- beginning --- */

static sl_err space_new(journal_store *store, const sl_scavenge *how, journal_space **ret_space)
{
    journal_space *const space = malloc(sizeof *space);

    if (space == NULL)
        return SL_ERR_NOMEM;
    *space =
        (journal_space){ .task = { .run = space_run, .finish = space_finish }, .store = store, .how = *how };
    *ret_space = space;
    return SL_OK;
}

sl_err journal_scavenge(sl_store *base, const sl_scavenge *how, sl_scavenged_fn *done, void *ctx)
{
    journal_store *const store = journal_of(base);
    journal_space *space;
    sl_err err = sl_log_err(store->log);

    if (err == SL_OK && store->space != NULL)
        err = SL_ERR_EXISTS;
    if (err == SL_OK)
        err = space_new(store, how, &space);
    if (err != SL_OK)
        return err;
    space->done = done;
    space->ctx = ctx;
    space->end = store->shelf_count - 1;
    store->space = space;
    sl_log_wake(store->log); /* everything may be durable already */
    return SL_OK;
}

void journal_space_sealed(journal_store *store)
{
    const sl_scavenge how = { .dead_share = OWN_DEAD_SHARE };
    const uint32_t sealed = store->shelf_count - 1;
    journal_space *space;

    if (store->space != NULL || sealed == 0 || store->closing || space_new(store, &how, &space) != SL_OK)
        return;
    space->next = store->space_next++ % sealed;
    space->end = space->next + 1;
    store->space = space;
}

bool journal_space_waits(const journal_store *store)
{
    return store->space != NULL && store->space->is_decided && !store->space->begun;
}

/* Durability "os" syncs nothing by itself; here somebody has to be sure. */
static bool is_synced(journal_store *store, uint64_t position)
{
    if (store->sync_by_os)
        (void)sl_log_flush(store->log);
    return sl_log_synced(store->log) >= position;
}

static void go_on_deciding(journal_space *space)
{
    sl_log *const log = space->store->log;
    const sl_err err = decide_some(space);

    if (err != SL_OK) {
        space->result.err = err;
        finish_all(space);
    } else if (space->decided_count == space->store->writer.directory.count) {
        decided(space);
    }
    sl_log_wake(log);
}

void journal_space_poll(journal_store *store)
{
    journal_space *const space = store->space;

    if (space == NULL || space->begun)
        return;
    if (!space->is_decided) {
        go_on_deciding(space);
    } else if (sl_log_err(store->log) == SL_OK && is_synced(store, space->decided_at)) {
        space->begun = true;
        run_next(space);
    }
}

void journal_space_done(journal_store *store)
{
    if (store->space != NULL)
        finish_all(store->space); /* never begun: the background has ended the others */
}
