/* store/ids.c — a ring of the newest entries, with a table of their hashes.
 *
 * The entry with number n stands in slot n mod length of the ring, so forgetting the oldest is overwriting it, and undoing
 * the newest is taking them away in reverse order. The table holds only the newest entry of a key: else a client that gives
 * all its events one id would make a run as long as the ring.
 *
 * Nearly every question is about an id that is new. The table answers that alone: open addressing with 32 bits of the hash
 * beside each number, at most half full, so that one cache line is looked at and the ring, which is too large for the cache,
 * is not. Removing moves later slots of the run back, so nothing has to be swept. Hashes are seeded: nobody can make a long
 * run. */
#include "store/ids.h"

#include <assert.h>
#include <string.h>

struct sl_ids_entry {
    sl_uuid id;
    uint64_t revision, position;
    uint32_t
        hides; /* how many entries before this one the one of the same key stands that it took out; 0: none */
    uint32_t stream;
    uint32_t hash;
    bool in_table;
};

struct sl_ids_slot {
    uint32_t hash;
    uint32_t entry; /* index in the ring + 1; 0: free */
};

enum {
    AHEAD = 8 /* entries that will be forgotten soon: their slots are fetched before they are needed */
};

static_assert(sizeof(sl_ids_entry) <= 48, "SL_IDS_MAX is chosen for entries of 48 bytes");

sl_err sl_ids_init(sl_ids *ids, const sl_alloc *alloc, sl_hash_seed seed, size_t ids_max)
{
    const size_t table_length = 2 * ids_max;
    sl_ids_entry *const ring = sl_alloc_take(alloc, ids_max * sizeof *ring);
    sl_ids_slot *const table = sl_alloc_take(alloc, table_length * sizeof *table);

    assert(ids_max > 0 && (ids_max & (ids_max - 1)) == 0 && ids_max < UINT32_MAX / 2);
    if (ring == NULL || table == NULL) {
        sl_alloc_give(alloc, ring, ring == NULL ? 0 : ids_max * sizeof *ring);
        sl_alloc_give(alloc, table, table == NULL ? 0 : table_length * sizeof *table);
        return SL_ERR_NOMEM;
    }
    memset(table, 0, table_length * sizeof *table);
    *ids = (sl_ids){ .alloc = alloc,
                     .seed = seed,
                     .table = table,
                     .table_mask = table_length - 1,
                     .ring = ring,
                     .ring_length = ids_max };
    return SL_OK;
}

void sl_ids_done(sl_ids *ids)
{
    if (ids->ring == NULL)
        return;
    sl_alloc_give(ids->alloc, ids->ring, ids->ring_length * sizeof *ids->ring);
    sl_alloc_give(ids->alloc, ids->table, (ids->table_mask + 1) * sizeof *ids->table);
    *ids = (sl_ids){ 0 };
}

static uint32_t hash_of(const sl_ids *ids, uint32_t stream, sl_uuid id)
{
    uint8_t key[sizeof stream + sizeof id.bytes];

    memcpy(key, &stream, sizeof stream);
    memcpy(key + sizeof stream, id.bytes, sizeof id.bytes);
    return (uint32_t)sl_hash(ids->seed, key, sizeof key);
}

static size_t ring_index(const sl_ids *ids, uint64_t number)
{
    return (size_t)number & (ids->ring_length - 1);
}

static sl_ids_entry *entry_at(const sl_ids *ids, uint64_t number)
{
    return &ids->ring[ring_index(ids, number)];
}

/* --- the table --- */

/* The entry in the table with this key, or NULL. */
static sl_ids_entry *entry_of(const sl_ids *ids, uint32_t hash, uint32_t stream, sl_uuid id)
{
    for (size_t at = hash & ids->table_mask; ids->table[at].entry != 0; at = (at + 1) & ids->table_mask) {
        sl_ids_entry *const entry = &ids->ring[ids->table[at].entry - 1];

        if (ids->table[at].hash == hash && entry->stream == stream && sl_uuid_equal(entry->id, id))
            return entry;
    }
    return NULL;
}

static void put_in(sl_ids *ids, sl_ids_entry *entry)
{
    size_t at = entry->hash & ids->table_mask;

    while (ids->table[at].entry != 0)
        at = (at + 1) & ids->table_mask;
    ids->table[at] = (sl_ids_slot){ entry->hash, (uint32_t)(entry - ids->ring) + 1 };
    entry->in_table = true;
}

/* A slot of the run may go to the free place when that does not lie before the place it would like best. */
static void close_gap(sl_ids *ids, size_t gap)
{
    const size_t mask = ids->table_mask;

    for (size_t at = (gap + 1) & mask; ids->table[at].entry != 0; at = (at + 1) & mask) {
        const size_t wanted = ids->table[at].hash & mask;
        if (((at - wanted) & mask) < ((at - gap) & mask))
            continue;
        ids->table[gap] = ids->table[at];
        gap = at;
    }
    ids->table[gap] = (sl_ids_slot){ 0 };
}

static void take_out(sl_ids *ids, sl_ids_entry *entry)
{
    const uint32_t wanted = (uint32_t)(entry - ids->ring) + 1;
    size_t at = entry->hash & ids->table_mask;

    if (!entry->in_table)
        return;
    while (ids->table[at].entry != wanted)
        at = (at + 1) & ids->table_mask;
    close_gap(ids, at);
    entry->in_table = false;
}

/* --- the ring --- */

/* Takes the entry of the same key out of the table and gives how far before the next one it stands; 0: there is none. */
static uint32_t hide(sl_ids *ids, uint32_t hash, uint32_t stream, sl_uuid id)
{
    sl_ids_entry *const entry = entry_of(ids, hash, stream, id);
    size_t back;

    if (entry == NULL)
        return 0;
    take_out(ids, entry);
    back = (ring_index(ids, ids->next) - (size_t)(entry - ids->ring)) & (ids->ring_length - 1);
    return (uint32_t)(back == 0 ? ids->ring_length : back);
}

static void forget_oldest(sl_ids *ids)
{
    take_out(ids, entry_at(ids, ids->oldest));
    ids->oldest++;
    __builtin_prefetch(&ids->table[entry_at(ids, ids->oldest + AHEAD)->hash & ids->table_mask], 1);
}

void sl_ids_add(sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place place)
{
    sl_ids_entry *const entry = entry_at(ids, ids->next);
    const bool is_new = ids->asked.missing && ids->asked.stream == stream && sl_uuid_equal(ids->asked.id, id);
    const uint32_t hash = is_new ? ids->asked.hash : hash_of(ids, stream, id);
    const uint32_t hidden = is_new ? 0 : hide(ids, hash, stream, id);

    ids->asked.missing = false;
    if (ids->next - ids->oldest == ids->ring_length)
        forget_oldest(ids);
    *entry = (sl_ids_entry){ .id = id,
                             .stream = stream,
                             .revision = place.revision,
                             .position = place.position,
                             .hides = hidden,
                             .hash = hash };
    put_in(ids, entry);
    ids->next++;
}

void sl_ids_fetch(const sl_ids *ids, uint32_t stream, sl_uuid id)
{
    __builtin_prefetch(&ids->table[hash_of(ids, stream, id) & ids->table_mask], 1);
}

bool sl_ids_find(sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place *ret_place)
{
    const uint32_t hash = hash_of(ids, stream, id);
    const sl_ids_entry *const entry = entry_of(ids, hash, stream, id);

    ids->asked.id = id;
    ids->asked.stream = stream;
    ids->asked.hash = hash;
    ids->asked.missing = entry == NULL;
    if (entry == NULL)
        return false;
    *ret_place = (sl_ids_place){ entry->revision, entry->position };
    return true;
}

static void undo_newest(sl_ids *ids)
{
    sl_ids_entry *const entry = entry_at(ids, --ids->next);

    take_out(ids, entry);
    if (entry->hides != 0 && ids->next - ids->oldest >= entry->hides)
        put_in(ids, entry_at(ids, ids->next - entry->hides));
}

void sl_ids_rollback(sl_ids *ids, uint64_t mark)
{
    assert(mark <= ids->next);
    ids->asked.missing = false;
    while (ids->next > mark && ids->next > ids->oldest)
        undo_newest(ids);
    ids->next = mark; /* what came before it may be forgotten as well */
    ids->oldest = ids->oldest > mark ? mark : ids->oldest;
}
