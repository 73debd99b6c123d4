/* core/pool.h — memory that is there from the beginning and touched only when it is needed.
 *
 * Limits are for the worst day: thousands of messages and consumers of one group. Most groups never see it, and a server has thousands
 * of groups. What was never used is not written to, not even to put it into a list; so it costs addresses and no memory. What
 * was given back is used again first, newest first, because that is in the cache. */
#ifndef SL_CORE_POOL_H
#define SL_CORE_POOL_H

#include "base/list.h"
#include "base/map.h"

#include <stdint.h>

/* Places for things of one kind, each linked by a node inside of it. */
typedef struct sl_pool {
    sl_list free;         /* used before */
    unsigned char *fresh; /* the node of the first that was never used */
    uint32_t fresh_count;
    size_t item_bytes;
} sl_pool;

/* first: the node inside of the first of `count` things that lie side by side. */
static inline void sl_pool_init(sl_pool *pool, void *first, uint32_t count, size_t item_bytes)
{
    *pool = (sl_pool){ .fresh = first, .fresh_count = count, .item_bytes = item_bytes };
    sl_list_init(&pool->free);
}

static inline bool sl_pool_empty(const sl_pool *pool)
{
    return pool->fresh_count == 0 && sl_list_empty(&pool->free);
}

/* A node in no ring; everything around it is undefined. NULL: all are in use. */
static inline sl_list *sl_pool_take(sl_pool *pool)
{
    sl_list *node = sl_list_first(&pool->free);

    if (node != NULL) {
        sl_list_remove(node);
        return node;
    }
    if (pool->fresh_count == 0)
        return NULL;
    node = (sl_list *)(void *)pool->fresh;
    pool->fresh += pool->item_bytes;
    pool->fresh_count--;
    sl_list_init(node);
    return node;
}

/* node is in no ring. */
static inline void sl_pool_give(sl_pool *pool, sl_list *node)
{
    sl_list_push_front(&pool->free, node);
}

/* --- a map whose table grows within the memory that it has ---
 *
 * Tables of 8, 16, 32 ... entries lie one behind the other, up to one that is long enough; together twice as many as that. */

typedef struct sl_pool_map {
    sl_map map;
    size_t length_max;
} sl_pool_map;

/* How many entries the tables of a map for up to nodes_max nodes have together. */
static inline size_t sl_pool_map_entries(size_t nodes_max)
{
    return 2 * sl_map_table_length(nodes_max) - sl_map_table_length(0);
}

static inline void sl_pool_map_init(sl_pool_map *map, sl_map_node **entries, size_t nodes_max)
{
    map->length_max = sl_map_table_length(nodes_max);
    sl_map_init(&map->map, entries, sl_map_table_length(0));
}

static inline void sl_pool_map_insert(sl_pool_map *map, sl_map_node *node, uint64_t hash)
{
    const size_t length = map->map.table_mask + 1;

    if (map->map.count >= length && length < map->length_max)
        sl_map_resize(&map->map, map->map.table + length, 2 * length);
    sl_map_insert(&map->map, node, hash);
}

#endif
