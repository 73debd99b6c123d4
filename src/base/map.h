/* base/map.h — a hash map whose nodes live inside the values; peers choose keys, so hashes are seeded.
 *
 * The map knows hashes, not keys: sl_map_find() gives the first node with that hash, sl_map_next() the one
 * after it, and the caller compares keys. So one map serves any kind of key, and equal keys may be in it
 * twice (event ids can repeat): they come out newest first. The caller brings the table; a map that is fuller
 * than its table gets slower, never wrong. */
#ifndef SL_BASE_MAP_H
#define SL_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_map_node {
    struct sl_map_node *next;
    struct sl_map_node **link; /* what points to this one: removing needs no walk, however long the chain */
    uint64_t hash;
} sl_map_node;

typedef struct sl_map {
    sl_map_node **table;
    size_t table_mask; /* table length - 1; the length is a power of two */
    size_t count;
} sl_map;

/* 128 secret bits: with them unknown, nobody can make many keys fall into one chain. */
typedef struct sl_hash_seed {
    uint64_t k0, k1;
} sl_hash_seed;

/* SipHash-1-3 of `bytes` bytes. */
uint64_t sl_hash(sl_hash_seed seed, const void *data, size_t bytes);

/* Table length for up to `nodes_max` nodes: a power of two, at least 8 and at least nodes_max. */
size_t sl_map_table_length(size_t nodes_max);

/* table: `table_length` pointers (a power of two) owned by the caller; they are cleared here. */
void sl_map_init(sl_map *map, sl_map_node **table, size_t table_length);

void sl_map_insert(sl_map *map, sl_map_node *node, uint64_t hash);

/* node must be in the map. O(1). */
void sl_map_remove(sl_map *map, sl_map_node *node);

/* First node with this hash, or NULL; then the next one with the same hash, or NULL. */
sl_map_node *sl_map_find(const sl_map *map, uint64_t hash);
sl_map_node *sl_map_next(const sl_map_node *node);

/* Moves every node into a table that the caller brings, larger or smaller; the old one is the caller's again. */
void sl_map_resize(sl_map *map, sl_map_node **table, size_t table_length);

#endif
