/* store/ids.h — which events were written recently, by stream and event id.
 *
 * A client that got no answer sends its append again. With an exact revision the store sees that from what stands in the
 * stream; with "any" and "stream exists" it only has this memory. It is bounded: the newest SL_IDS_MAX events of all
 * streams, so a repeat that comes after that many others is written twice. An id may have been written several times, even
 * in one stream: the newest counts. */
#ifndef SL_STORE_IDS_H
#define SL_STORE_IDS_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/map.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_IDS_MAX =
        128 * 1024 /* 48 bytes each and 16 in the table, 8 MiB, as KurrentDB. Unused pages cost nothing */
};

typedef struct sl_ids_entry sl_ids_entry; /* both in store/ids.c */
typedef struct sl_ids_slot sl_ids_slot;

typedef struct sl_ids {
    const sl_alloc *alloc;
    sl_hash_seed seed;
    sl_ids_slot *table;
    size_t table_mask;
    sl_ids_entry *ring;
    size_t ring_length;
    uint64_t oldest, next; /* counted over all time; what is remembered is [oldest, next) */
    struct {
        sl_uuid id;
        uint32_t stream, hash;
        bool missing;
    } asked; /* what sl_ids_find() was asked last and did not find: it is usually added next */
} sl_ids;

typedef struct sl_ids_place {
    uint64_t revision, position;
} sl_ids_place;

/* ids_max: a power of two, SL_IDS_MAX but for tests. SL_OK or SL_ERR_NOMEM. */
sl_err sl_ids_init(sl_ids *ids, const sl_alloc *alloc, sl_hash_seed seed, size_t ids_max);

/* Also right for one that is all zero. */
void sl_ids_done(sl_ids *ids);

/* The oldest is forgotten when there is no room. */
void sl_ids_add(sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place place);

/* The newest event of the stream with this id. False: not remembered, *ret_place is untouched. */
bool sl_ids_find(sl_ids *ids, uint32_t stream, sl_uuid id, sl_ids_place *ret_place);

/* This will be asked soon. */
void sl_ids_fetch(const sl_ids *ids, uint32_t stream, sl_uuid id);

/* A mark is the number of events added so far. Rolling back forgets what was added since; what had to make room for it
 * does not come back. */
static inline uint64_t sl_ids_mark(const sl_ids *ids)
{
    return ids->next;
}

void sl_ids_rollback(sl_ids *ids, uint64_t mark);

#endif
