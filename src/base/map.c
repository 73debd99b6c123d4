/* base/map.c — the chained hash map of map.h and its seeded hash.
 *
 * A chain holds its nodes newest first; nodes of equal hash are always in the same chain, so "equal keys come
 * out newest first" follows from inserting at the front, and sl_map_resize() has only to keep the order in a
 * chain.
 *
 * The hash is SipHash-1-3: one mixing round for each word of input and three at the end. It is keyed, short
 * enough for a lookup in the path of every message, and no practical way is known to find colliding keys
 * without the seed. Words are little-endian on every machine: one seed, the same hashes. */
#include "base/map.h"

#include <assert.h>
#include <string.h>

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t rotate_left(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void sip_round(sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 = rotate_left(s->v2, 32);
}

static inline void sip_word(sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t sip_finish(sip *s)
{
    s->v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline uint64_t load_word(const uint8_t *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof word); /* one load: the data may stand at any address */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The 0 to 7 bytes after the last full word, in at most three loads. */
static inline uint64_t load_tail(const uint8_t *data, size_t bytes)
{
    uint64_t tail = 0;
    int shift = 0;

    if (bytes & 4) {
        tail = data[0] | (uint64_t)data[1] << 8 | (uint64_t)data[2] << 16 | (uint64_t)data[3] << 24;
        data += 4;
        shift = 32;
    }
    if (bytes & 2) {
        tail |= (data[0] | (uint64_t)data[1] << 8) << shift;
        data += 2;
        shift += 16;
    }
    if (bytes & 1)
        tail |= (uint64_t)data[0] << shift;
    return tail;
}

uint64_t sl_hash(sl_hash_seed seed, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    const uint64_t length_byte = (uint64_t)bytes << 56; /* the last word tells "a" from "a\0" */
    sip s = {
        .v0 = seed.k0 ^ 0x736f6d6570736575, /* the four constants are part of the definition of SipHash */
        .v1 = seed.k1 ^ 0x646f72616e646f6d,
        .v2 = seed.k0 ^ 0x6c7967656e657261,
        .v3 = seed.k1 ^ 0x7465646279746573,
    };

    for (size_t left = bytes / 8; left > 0; left--, at += 8)
        sip_word(&s, load_word(at));
    sip_word(&s, length_byte | load_tail(at, bytes & 7));
    return sip_finish(&s);
}

static sl_map_node **chain_of(const sl_map *map, uint64_t hash)
{
    return &map->table[(size_t)hash & map->table_mask];
}

static void push(sl_map_node **chain, sl_map_node *node)
{
    node->next = *chain;
    node->link = chain;
    if (node->next != NULL)
        node->next->link = &node->next;
    *chain = node;
}

static void use_table(sl_map *map, sl_map_node **table, size_t table_length)
{
    assert(table_length > 0 && (table_length & (table_length - 1)) == 0);
    for (size_t i = 0; i < table_length; i++)
        table[i] = NULL;
    map->table = table;
    map->table_mask = table_length - 1;
}

size_t sl_map_table_length(size_t nodes_max)
{
    size_t length = 8;

    assert(nodes_max <= SIZE_MAX / 2 + 1); /* the largest power of two */
    while (length < nodes_max)
        length *= 2;
    return length;
}

void sl_map_init(sl_map *map, sl_map_node **table, size_t table_length)
{
    map->count = 0;
    use_table(map, table, table_length);
}

void sl_map_insert(sl_map *map, sl_map_node *node, uint64_t hash)
{
    node->hash = hash;
    push(chain_of(map, hash), node);
    map->count++;
}

void sl_map_remove(sl_map *map, sl_map_node *node)
{
    assert(node->link != NULL && *node->link == node); /* else the node is in no map */
    *node->link = node->next;
    if (node->next != NULL)
        node->next->link = node->link;
    node->next = NULL;
    node->link = NULL;
    map->count--;
}

static sl_map_node *first_with(sl_map_node *node, uint64_t hash)
{
    while (node != NULL && node->hash != hash)
        node = node->next;
    return node;
}

sl_map_node *sl_map_find(const sl_map *map, uint64_t hash)
{
    return first_with(*chain_of(map, hash), hash);
}

sl_map_node *sl_map_next(const sl_map_node *node)
{
    return first_with(node->next, node->hash);
}

static sl_map_node *reversed(sl_map_node *chain)
{
    sl_map_node *result = NULL;

    for (sl_map_node *node = chain, *rest; node != NULL; node = rest) {
        rest = node->next;
        push(&result, node);
    }
    return result;
}

void sl_map_resize(sl_map *map, sl_map_node **table, size_t table_length)
{
    sl_map_node **const old_table = map->table;
    const size_t old_length = map->table_mask + 1;

    assert(table != old_table);
    use_table(map, table, table_length);
    for (size_t i = 0; i < old_length; i++) {
        /* Oldest first, because pushing turns the order around once more. */
        for (sl_map_node *node = reversed(old_table[i]), *rest; node != NULL; node = rest) {
            rest = node->next;
            push(chain_of(map, node->hash), node);
        }
    }
}
