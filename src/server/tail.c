/* server/tail.c — rings of readers, by what they wait for.
 *
 *      waits for a commit of one stream   by_stream: a map, found by the key of the stream
 *      waits for any commit               any
 *      waits for the disk                 disk
 *      waits for a place                  placeless
 *      can go on                          woken (a commit, the disk, a place), ready (it said so itself, in an earlier turn)
 *      can go on, but not in this turn    soon
 *
 * Why no wake-up is lost. The door tells the streams of a batch when the store answers it (sl_tail_touch() from done()), and not when
 * it is submitted. In every store the durable end moves before done() is called, so what a batch wrote is readable when its
 * streams are touched. A reader reads until the store says EMPTY and then waits, in one go and in the one thread there is.
 * So for each batch: either it was answered before the reader read, and the reader has seen it; or it is answered later,
 * and the reader is in the map by then. What became readable but is not answered yet (a sync in the caller's thread) may be
 * read early; then the touch that follows runs the reader once in vain.
 *
 * Only keys are kept of the streams of a batch that is under way, so a batch of thousands of streams needs eight bytes for each.
 * Two streams with the same key would run each other's readers in vain, no more.
 *
 * Who can go on is run in two groups, each with a share of the turn of its own: first the woken ones, which mostly have little to
 * do and somebody who waits for it (a live subscription, an append that waits for the rights of its stream), then those that
 * have more to do than one run allows. A group that has used its share keeps its order for the next turn. So neither
 * group can starve the other or anybody else, however many readers there are and whatever a run costs.
 *
 * A commit costs a look-up for each stream that was written, and then what it wakes. Those that wait elsewhere are not
 * looked at, however many they are. */
#include "server/tail.h"

#include <assert.h>

enum {
    TABLE_LENGTH_MIN = 64
};

enum waits_for {
    WAITS_NOT,
    WAITS_STREAM, /* in by_stream */
    WAITS_QUEUED, /* in one of the rings */
};

struct sl_tail {
    sl_host *host;
    sl_map by_stream;
    size_t table_length;
    sl_list any, disk, placeless;
    sl_list woken, ready, soon;
    uint32_t places_taken;
};

static sl_reader_node *reader_of(sl_list *node)
{
    return SL_CONTAINER_OF(node, sl_reader_node, queue);
}

static sl_map_node **table_new(const sl_alloc *alloc, size_t length)
{
    return sl_alloc_take(alloc, length * sizeof(sl_map_node *));
}

static void table_free(const sl_alloc *alloc, sl_map_node **table, size_t length)
{
    sl_alloc_give(alloc, table, length * sizeof *table);
}

sl_err sl_tail_new(sl_host *host, sl_tail **ret_tail)
{
    sl_map_node **const table = table_new(host->alloc, TABLE_LENGTH_MIN);
    sl_tail *const tail = table == NULL ? NULL : sl_alloc_take(host->alloc, sizeof *tail);

    if (table != NULL && tail == NULL)
        table_free(host->alloc, table, TABLE_LENGTH_MIN);
    if (tail == NULL)
        return SL_ERR_NOMEM;
    *tail = (sl_tail){ .host = host, .table_length = TABLE_LENGTH_MIN };
    sl_map_init(&tail->by_stream, table, TABLE_LENGTH_MIN);
    sl_list_init(&tail->any);
    sl_list_init(&tail->disk);
    sl_list_init(&tail->placeless);
    sl_list_init(&tail->woken);
    sl_list_init(&tail->ready);
    sl_list_init(&tail->soon);
    *ret_tail = tail;
    return SL_OK;
}

void sl_tail_free(sl_tail *tail)
{
    if (tail == NULL)
        return;
    assert(tail->by_stream.count == 0);
    assert(sl_list_empty(&tail->any) && sl_list_empty(&tail->disk) && sl_list_empty(&tail->placeless));
    assert(sl_list_empty(&tail->woken) && sl_list_empty(&tail->ready) && sl_list_empty(&tail->soon));
    assert(tail->places_taken == 0);
    table_free(tail->host->alloc, tail->by_stream.table, tail->table_length);
    sl_alloc_give(tail->host->alloc, tail, sizeof *tail);
}

/* --- waiting --- */

void sl_reader_init(sl_reader_node *reader, sl_str stream, void (*run)(void *ctx), void *ctx)
{
    *reader = (sl_reader_node){ .stream = stream, .run = run, .ctx = ctx };
    sl_list_init(&reader->queue);
}

void sl_tail_forget(sl_tail *tail, sl_reader_node *reader)
{
    if (reader->waits_for == WAITS_STREAM)
        sl_map_remove(&tail->by_stream, &reader->by_stream);
    else if (reader->waits_for == WAITS_QUEUED)
        sl_list_remove(&reader->queue);
    reader->waits_for = WAITS_NOT;
}

static void queue(sl_tail *tail, sl_list *ring, sl_reader_node *reader)
{
    assert(reader->run != NULL);
    sl_tail_forget(tail, reader);
    sl_list_push_back(ring, &reader->queue);
    reader->waits_for = WAITS_QUEUED;
}

/* Without memory the chains get longer, and nothing else happens. */
static void grow(sl_tail *tail)
{
    const size_t length = tail->table_length;
    sl_map_node **const old = tail->by_stream.table;
    sl_map_node **const table =
        tail->by_stream.count < length ? NULL : table_new(tail->host->alloc, 2 * length);

    if (table == NULL)
        return;
    sl_map_resize(&tail->by_stream, table, 2 * length);
    tail->table_length = 2 * length;
    table_free(tail->host->alloc, old, length);
}

uint64_t sl_tail_key(const sl_tail *tail, sl_str stream)
{
    if (sl_str_starts_with(stream, SL_STR("$$")))
        stream = (sl_str){ stream.data + 2, stream.bytes - 2 };
    return sl_hash(tail->host->seed, stream.data, stream.bytes);
}

void sl_tail_wait_commit(sl_tail *tail, sl_reader_node *reader)
{
    if (reader->stream.bytes == 0) {
        queue(tail, &tail->any, reader);
        return;
    }
    sl_tail_forget(tail, reader);
    if (reader->key == 0)
        reader->key = sl_tail_key(tail, reader->stream);
    grow(tail);
    sl_map_insert(&tail->by_stream, &reader->by_stream, reader->key);
    reader->waits_for = WAITS_STREAM;
}

void sl_tail_wait_disk(sl_tail *tail, sl_reader_node *reader)
{
    queue(tail, &tail->disk, reader);
}

void sl_tail_run_soon(sl_tail *tail, sl_reader_node *reader)
{
    queue(tail, &tail->soon, reader);
}

/* --- places --- */

bool sl_tail_place_wanted(const sl_tail *tail)
{
    return !sl_list_empty(&tail->placeless);
}

bool sl_tail_take_place(sl_tail *tail, sl_reader_node *reader)
{
    if (reader->has_place)
        return true;
    if (tail->places_taken >= SL_TAIL_PLACES_MAX)
        return false;
    assert(!sl_tail_place_wanted(
        tail)); /* a place that is left is handed on, and never free while somebody waits */
    tail->places_taken++;
    reader->has_place = true;
    return true;
}

/* Handed on at once, or somebody who comes by could take it from those who wait. */
void sl_tail_leave_place(sl_tail *tail, sl_reader_node *reader)
{
    sl_list *const first = sl_list_first(&tail->placeless);

    if (!reader->has_place)
        return;
    assert(tail->places_taken > 0);
    reader->has_place = false;
    if (first == NULL) {
        tail->places_taken--;
        return;
    }
    reader_of(first)->has_place = true;
    queue(tail, &tail->woken, reader_of(first));
}

void sl_tail_wait_place(sl_tail *tail, sl_reader_node *reader)
{
    sl_tail_leave_place(tail, reader);
    assert(tail->places_taken == SL_TAIL_PLACES_MAX); /* else nobody would ever wake it */
    queue(tail, &tail->placeless, reader);
}

/* --- waking --- */

void sl_tail_touch(sl_tail *tail, uint64_t key)
{
    sl_map_node *node;

    while ((node = sl_map_find(&tail->by_stream, key)) != NULL)
        queue(tail, &tail->woken, SL_CONTAINER_OF(node, sl_reader_node, by_stream));
}

void sl_tail_committed(sl_tail *tail)
{
    sl_list_splice(&tail->woken, &tail->any);
}

void sl_tail_polled(sl_tail *tail)
{
    sl_list_splice(&tail->woken, &tail->disk);
}

/* --- running --- */

static bool someone_can_run(const sl_tail *tail)
{
    return !sl_list_empty(&tail->woken) || !sl_list_empty(&tail->ready) || !sl_list_empty(&tail->soon);
}

/* Those in the ring at this moment, at least one of them. Each may forget or free itself and any other. */
static void run_ring(sl_tail *tail, sl_list *ring)
{
    const sl_clock *const stopwatch = tail->host->stopwatch;
    sl_list now;
    uint64_t ends_ns;

    if (sl_list_empty(ring))
        return;
    ends_ns = sl_clock_mono_ns(stopwatch) + SL_TAIL_SHARE_NS;
    sl_list_init(&now);
    sl_list_splice(&now, ring);
    do {
        sl_reader_node *const reader = reader_of(sl_list_first(&now));

        sl_tail_forget(tail, reader);
        reader->run(reader->ctx);
    } while (!sl_list_empty(&now) && sl_clock_mono_ns(stopwatch) < ends_ns);
    sl_list_splice(&now, ring); /* who came meanwhile is behind those that are left */
    sl_list_splice(ring, &now);
}

bool sl_tail_run(sl_tail *tail)
{
    sl_list_splice(&tail->ready,
                   &tail->soon); /* now: who is run and wants more is not run again in this turn */
    run_ring(tail, &tail->woken);
    run_ring(tail, &tail->ready);
    return someone_can_run(tail);
}

bool sl_tail_run_woken(sl_tail *tail)
{
    run_ring(tail, &tail->woken);
    return someone_can_run(tail);
}
