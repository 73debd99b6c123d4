/* store/directory.h — which streams there are, for every backend, in memory.
 *
 * A stream is found by name (a seeded hash map that grows) and by id (ids are 0, 1, 2, ... in the order in which the
 * streams came). What is kept of a stream is what the next append or read has to know: its last revision and what its
 * metadata hides.
 *
 *      "orders"    id 0   last 41   keep {max_count 10}   partner 1
 *      "$$orders"  id 1   last  0                         partner 0      its metadata stream: one level, no more
 *
 * Cost: 80 bytes for each stream, 8 to 16 for its share of the hash table, and its name.
 *
 * Changes are made in steps that can be undone: a batch marks the place, changes, and rolls back to the mark when one of its
 * ops fails. A stream that was new is gone then, with its id and its name, so that refused batches fill no memory.
 *
 * One thread at a time. A pointer to a stream is good until the stream is rolled back: streams never move. */
#ifndef SL_STORE_DIRECTORY_H
#define SL_STORE_DIRECTORY_H

#include "base/alloc.h"
#include "base/map.h"
#include "store/metadata.h"
#include "store/store.h"
#include "store/verdict.h"

#define SL_STREAM_NO_ID UINT32_MAX

typedef struct sl_stream { /* read it freely, change it only through the functions below */
    sl_map_node node;
    const char *name;
    uint64_t last;     /* SL_REVISION_NONE without events; SL_REVISION_MAX: tombstoned */
    sl_retention keep; /* all zero for a metadata stream, which shows its last event in any case */
    uint32_t id;
    uint32_t partner; /* of "x" the id of "$$x" and the other way round; SL_STREAM_NO_ID: none */
    uint16_t name_bytes;
    bool is_metadata;
} sl_stream;

typedef struct sl_directory_undo sl_directory_undo;   /* in store/directory.c */
typedef struct sl_directory_names sl_directory_names; /* in store/directory.c */

typedef struct sl_directory {
    const sl_alloc *alloc;
    sl_hash_seed seed;
    sl_map map;
    sl_stream **blocks; /* of SL_DIRECTORY_BLOCK streams each */
    size_t block_count, block_capacity;
    uint32_t count;            /* streams; also the next id */
    sl_directory_names *names; /* the chunk that is being filled, older ones behind it */
    sl_directory_undo *undo;
    size_t undo_count, undo_capacity;
} sl_directory;

enum {
    SL_DIRECTORY_BLOCK = 256
};

/* SL_OK or SL_ERR_NOMEM. alloc must live as long as the directory. */
sl_err sl_directory_init(sl_directory *directory, const sl_alloc *alloc, sl_hash_seed seed);

/* Also right for one that is all zero. */
void sl_directory_done(sl_directory *directory);

/* --- asking --- */

/* NULL when there is none. */
const sl_stream *sl_directory_find(const sl_directory *directory, sl_str name);

/* The same in two steps, for whoever knows a while before what he will ask: what is fetched meanwhile need not be waited for.
 * Guess: the stream, if nobody else has its hash; NULL: there is none. */
uint64_t sl_directory_hash(const sl_directory *directory, sl_str name);
const sl_stream *sl_directory_find_hashed(const sl_directory *directory, sl_str name, uint64_t hash);
void sl_directory_fetch(const sl_directory *directory, uint64_t hash);
const sl_stream *sl_directory_guess(const sl_directory *directory, uint64_t hash);

/* id must be below directory->count. */
const sl_stream *sl_directory_at(const sl_directory *directory, uint32_t id);

static inline sl_str sl_stream_name(const sl_stream *stream)
{
    return (sl_str){ stream->name, stream->name_bytes };
}

/* For the rules of store/verdict.h; right for any name. stream: what sl_directory_find() gave for it, NULL too. */
sl_known sl_directory_known(const sl_directory *directory, sl_str name, const sl_stream *stream);

/* A metadata stream has the state of its stream once that is tombstoned. */
sl_stream_state sl_directory_state(const sl_directory *directory, const sl_stream *stream);

/* Lowest revision that is shown; above the last one when nothing is. */
uint64_t sl_directory_first(const sl_stream *stream);

/* True when an event made at created_ns is older than the stream's $maxAge allows. */
bool sl_directory_expired(const sl_stream *stream, uint64_t created_ns, uint64_t now_ns);

void sl_directory_info(const sl_directory *directory, sl_str name, sl_stream_info *ret_info);

/* --- changing --- */

/* Finds the stream or makes it, and for a metadata stream its stream as well.
 *   SL_OK
 *   SL_ERR_NOMEM
 *   SL_ERR_FULL    there are 2^32 - 1 streams */
sl_err sl_directory_add(sl_directory *directory, sl_str name, uint32_t *ret_id);

/* The stream has an event with this revision now, and none after it. Of a metadata stream `data` counts from now on: it is
 * what the event holds. All that a backend has to call when it reads its events again. SL_OK or SL_ERR_NOMEM. */
sl_err sl_directory_event(sl_directory *directory, uint32_t id, uint64_t revision, sl_str data);

/* Sets all that is kept of a stream, for a backend that stores the directory itself. SL_OK or SL_ERR_NOMEM. */
sl_err sl_directory_set(sl_directory *directory, uint32_t id, uint64_t last, const sl_retention *keep);

/* Everything that was changed since the mark is undone; marks are numbers that grow, rolling back to an older one includes
 * the newer. Forgetting makes all changes final and all marks invalid: the next mark is 0 again. */
size_t sl_directory_mark(const sl_directory *directory);
void sl_directory_rollback(sl_directory *directory, size_t mark);
void sl_directory_forget(sl_directory *directory);

#endif
