/* store/journal/recent.c — chains of events with milestones. */
#include "store/journal/recent.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES_FIRST = 1024,
    PLACES_FIRST = 64,
    MILE = 64 /* revisions */
};

void sl_recent_done(sl_recent *recent)
{
    free(recent->nodes);
    free(recent->heads);
    free(recent->places);
    *recent = (sl_recent){ 0 };
}

/* --- adding --- */

/* NULL: no memory, and the old array is as it was. */
static void *grown(void *items, size_t *capacity, size_t item_bytes, size_t first)
{
    const size_t wanted = *capacity == 0 ? first : 2 * *capacity;
    void *const more = realloc(items, wanted * item_bytes);

    if (more != NULL)
        *capacity = wanted;
    return more;
}

static sl_err reserve_node(sl_recent *recent)
{
    sl_recent_node *more;

    if (recent->node_count < recent->node_capacity)
        return SL_OK;
    more = grown(recent->nodes, &recent->node_capacity, sizeof *more, NODES_FIRST);
    if (more == NULL)
        return SL_ERR_NOMEM;
    recent->nodes = more;
    if (recent->node_count == 0)
        recent->node_count = 1; /* number 0 means none */
    return SL_OK;
}

/* Fresh pages from calloc() are not touched until a stream of theirs is written to. */
static sl_err reserve_head(sl_recent *recent, uint32_t stream)
{
    size_t capacity = recent->head_capacity == 0 ? NODES_FIRST : recent->head_capacity;
    sl_recent_head *more;

    if (stream < recent->head_capacity)
        return SL_OK;
    while (capacity <= stream)
        capacity *= 2;
    more = calloc(capacity, sizeof *more);
    if (more == NULL)
        return SL_ERR_NOMEM;
    if (recent->head_capacity > 0)
        memcpy(more, recent->heads, recent->head_capacity * sizeof *more);
    free(recent->heads);
    recent->heads = more;
    recent->head_capacity = capacity;
    return SL_OK;
}

sl_err sl_recent_event(sl_recent *recent, uint32_t stream, uint64_t revision, uint64_t position,
                       uint32_t offset)
{
    sl_recent_head *head;

    if (reserve_node(recent) != SL_OK || reserve_head(recent, stream) != SL_OK)
        return SL_ERR_NOMEM;
    head = &recent->heads[stream];
    recent->nodes[recent->node_count] = (sl_recent_node){ .revision = revision,
                                                          .position = position,
                                                          .stream = stream,
                                                          .offset = offset,
                                                          .prev = head->newest,
                                                          .mile = head->mile };
    head->newest = (uint32_t)recent->node_count++;
    if (revision % MILE == 0)
        head->mile = head->newest;
    return SL_OK;
}

sl_err sl_recent_record(sl_recent *recent, uint64_t position, uint32_t offset)
{
    if (recent->since_place++ % SL_INDEX_PLACE_EVERY != 0)
        return SL_OK;
    if (recent->place_count == recent->place_capacity) {
        sl_index_place *const more =
            grown(recent->places, &recent->place_capacity, sizeof *more, PLACES_FIRST);
        if (more == NULL) {
            recent->since_place--;
            return SL_ERR_NOMEM;
        }
        recent->places = more;
    }
    recent->places[recent->place_count++] = (sl_index_place){ position, { offset, 0 } };
    return SL_OK;
}

void sl_recent_frame(sl_recent *recent, uint32_t frame_end)
{
    while (recent->placed_count < recent->place_count)
        recent->places[recent->placed_count++].at.frame_end = frame_end;
}

void sl_recent_cut(sl_recent *recent, uint64_t position)
{
    while (recent->node_count > 1 && recent->nodes[recent->node_count - 1].position >= position) {
        const sl_recent_node *const node = &recent->nodes[--recent->node_count];
        recent->heads[node->stream] = (sl_recent_head){ node->prev, node->mile };
    }
    while (recent->place_count > 0 && recent->places[recent->place_count - 1].position >= position)
        recent->place_count--;
    if (recent->placed_count > recent->place_count)
        recent->placed_count = recent->place_count;
    recent->since_place = 0; /* a place too many does no harm */
}

/* --- finding --- */

static bool is_above(const sl_recent_node *node, const sl_recent_query *query, uint64_t revision)
{
    return node->revision > revision || node->position >= query->below;
}

/* The newest node of the stream at or below a revision and below a position; 0: none. */
static uint32_t node_below(const sl_recent *recent, const sl_recent_query *query, uint64_t revision)
{
    const sl_recent_node *const n = recent->nodes;
    uint32_t at = query->stream < recent->head_capacity ? recent->heads[query->stream].newest : 0;

    while (at != 0 && is_above(&n[at], query, revision)) {
        const uint32_t mile = n[at].mile;

        at = mile != 0 && is_above(&n[mile], query, revision) ? mile : n[at].prev;
    }
    return at;
}

static sl_index_entry entry_of(const sl_recent *recent, uint32_t at)
{
    return (sl_index_entry){ .revision = recent->nodes[at].revision, .offset = recent->nodes[at].offset };
}

static uint32_t find_down(const sl_recent *recent, const sl_recent_query *query, sl_index_entry *entries,
                          uint32_t max)
{
    uint32_t at = node_below(recent, query, query->revision);
    uint32_t count = 0;

    for (; at != 0 && count < max; at = recent->nodes[at].prev)
        entries[count++] = entry_of(recent, at);
    return count;
}

/* The oldest node of the stream at or above a revision; 0: none. */
static uint32_t node_above(const sl_recent *recent, const sl_recent_query *query)
{
    const sl_recent_node *const n = recent->nodes;
    uint32_t at = node_below(recent, query, UINT64_MAX);

    if (at == 0 || n[at].revision < query->revision)
        return 0;
    while (n[at].prev != 0 && n[n[at].prev].revision >= query->revision)
        at = n[at].mile != 0 && n[n[at].mile].revision >= query->revision ? n[at].mile : n[at].prev;
    return at;
}

/* From above downwards, into the end of the array: the chain has only that direction. Revisions of a stream in one segment
 * have no gaps but before a tombstone, so it is known where to begin; a gap only makes the answer shorter than it could
 * be. */
static uint32_t find_up(const sl_recent *recent, const sl_recent_query *query, sl_index_entry *entries,
                        uint32_t max)
{
    const uint32_t oldest = node_above(recent, query);
    const uint64_t lowest = oldest == 0 ? 0 : recent->nodes[oldest].revision;
    uint32_t count = 0;

    if (oldest == 0)
        return 0;
    for (uint32_t at = node_below(recent, query, lowest > UINT64_MAX - max ? UINT64_MAX : lowest + max - 1);
         at != 0 && recent->nodes[at].revision >= lowest && count < max; at = recent->nodes[at].prev)
        entries[max - ++count] = entry_of(recent, at);
    memmove(entries, entries + (max - count), count * sizeof *entries);
    return count;
}

uint32_t sl_recent_find(const sl_recent *recent, const sl_recent_query *query, sl_index_entry *entries,
                        uint32_t max)
{
    return query->backwards ? find_down(recent, query, entries, max) : find_up(recent, query, entries, max);
}

bool sl_recent_place_of(const sl_recent *recent, uint64_t position, sl_index_place *ret_place)
{
    size_t low = 0, high = recent->placed_count;

    while (low < high) { /* the first place above the position */
        const size_t middle = low + (high - low) / 2;
        if (recent->places[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (recent->placed_count == 0)
        return false;
    *ret_place = recent->places[low == 0 ? 0 : low - 1];
    return true;
}
