/* store/ids.c — a ring of the newest entries, with a hash map over it.
 *
 * The entry with number n stands in slot n mod length, so forgetting the oldest is overwriting it, and undoing the newest
 * is taking them away in reverse order. The map holds only the newest entry of a key: else a client that gives all its
 * events one id would make a chain as long as the ring. */
#include "store/ids.h"

#include "base/list.h"

#include <assert.h>
#include <string.h>

struct sl_ids_entry {
    sl_map_node node;
    sl_uuid id;
    uint64_t revision, position;
    uint64_t hides; /* number of the entry of the same key that this one took out of the map, or NOTHING */
    uint32_t stream;
    bool in_map;
};

#define NOTHING UINT64_MAX

static_assert(sizeof(sl_ids_entry) <= 72, "SL_IDS_MAX is chosen for entries of 72 bytes");

sl_err sl_ids_init(sl_ids *ids, const sl_alloc *alloc, sl_hash_seed seed, size_t ids_max)
{
    const size_t table_length = sl_map_table_length(ids_max);
    sl_ids_entry *const ring = sl_alloc_take(alloc, ids_max * sizeof *ring);
    sl_map_node **const table = sl_alloc_take(alloc, table_length * sizeof *table);

    assert(ids_max > 0 && (ids_max & (ids_max - 1)) == 0);
    if (ring == NULL || table == NULL) {
        sl_alloc_give(alloc, ring, ring == NULL ? 0 : ids_max * sizeof *ring);
        sl_alloc_give(alloc, table, table == NULL ? 0 : table_length * sizeof *table);
        return SL_ERR_NOMEM;
    }
    *ids = (sl_ids){ .alloc = alloc, .seed = seed, .ring = ring, .ring_length = ids_max };
    sl_map_init(&ids->map, table, table_length);
    return SL_OK;
}

void sl_ids_done(sl_ids *ids)
{
    if (ids->ring == NULL)
        return;
    sl_alloc_give(ids->alloc, ids->ring, ids->ring_length * sizeof *ids->ring);
    sl_alloc_give(ids->alloc, ids->map.table, (ids->map.table_mask + 1) * sizeof(sl_map_node *));
    *ids = (sl_ids){ 0 };
}

static uint64_t hash_of(const sl_ids *ids, uint32_t stream, sl_uuid id)
{
    uint8_t key[sizeof stream + sizeof id.bytes];

    memcpy(key, &stream, sizeof stream);
    memcpy(key + sizeof stream, id.bytes, sizeof id.bytes);
    return sl_hash(ids->seed, key, sizeof key);
}

static sl_ids_entry *entry_at(const sl_ids *ids, uint64_t number)
{
    return &ids->ring[number & (ids->ring_length - 1)];
}

/* The entry in the map with this key, or NULL. */
static sl_ids_entry *entry_of(const sl_ids *ids, uint64_t hash, uint32_t stream, sl_uuid id)
{
    for (sl_map_node *node = sl_map_find(&ids->map, hash); node != NULL; node = sl_map_next(node)) {
        sl_ids_entry *const entry = SL_CONTAINER_OF(node, sl_ids_entry, node);

        if (entry->stream == stream && sl_uuid_equal(entry->id, id))
            return entry;
    }
    return NULL;
}

static void take_out(sl_ids *ids, sl_ids_entry *entry)
{
    if (entry->in_map)
        sl_map_remove(&ids->map, &entry->node);
    entry->in_map = false;
}

static void put_in(sl_ids *ids, sl_ids_entry *entry)
{
    sl_map_insert(&ids->map, &entry->node, hash_of(ids, entry->stream, entry->id));
    entry->in_map = true;
}

/* Takes the entry of the same key out of the map and gives its number. */
static uint64_t hide(sl_ids *ids, uint32_t stream, sl_uuid id)
{
    sl_ids_entry *const entry = entry_of(ids, hash_of(ids, stream, id), stream, id);
    uint64_t back;

    if (entry == NULL)
        return NOTHING;
    take_out(ids, entry);
    back = (ids->next - (uint64_t)(entry - ids->ring)) & (ids->ring_length - 1);
    return ids->next - (back == 0 ? ids->ring_length : back);
}

void sl_ids_add(sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place place)
{
    sl_ids_entry *const entry = entry_at(ids, ids->next);
    const uint64_t hidden = hide(ids, stream, id);

    if (ids->next - ids->oldest == ids->ring_length) {
        take_out(ids, entry);
        ids->oldest++;
    }
    *entry = (sl_ids_entry){
        .id = id, .stream = stream, .revision = place.revision, .position = place.position, .hides = hidden
    };
    put_in(ids, entry);
    ids->next++;
}

bool sl_ids_find(const sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place *ret_place)
{
    const sl_ids_entry *const entry = entry_of(ids, hash_of(ids, stream, id), stream, id);

    if (entry == NULL)
        return false;
    *ret_place = (sl_ids_place){ entry->revision, entry->position };
    return true;
}

static void undo_newest(sl_ids *ids)
{
    sl_ids_entry *const entry = entry_at(ids, --ids->next);

    take_out(ids, entry);
    if (entry->hides != NOTHING && entry->hides >= ids->oldest)
        put_in(ids, entry_at(ids, entry->hides));
}

void sl_ids_rollback(sl_ids *ids, uint64_t mark)
{
    assert(mark <= ids->next);
    while (ids->next > mark && ids->next > ids->oldest)
        undo_newest(ids);
    ids->next = mark; /* what came before it may be forgotten as well */
    ids->oldest = ids->oldest > mark ? mark : ids->oldest;
}
