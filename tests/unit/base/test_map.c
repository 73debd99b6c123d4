/* tests/unit/base/test_map.c — the hash and the map.
 *
 * The wanted hashes were computed with a second implementation, written in Python from the definition of
 * SipHash and first tried on the published example of its 2-4 form (15 bytes, a129ca6149be45e5). */
#include "support.h"

#include "base/cleanup.h"
#include "base/list.h"
#include "base/map.h"

TEST(hashes_are_those_of_siphash_1_3)
{
    /* Key 00 01 .. 0f, data 00 01 02 .., of each length on either side of a word. */
    static const struct {
        size_t bytes;
        uint64_t hash;
    } rows[] = {
        { 0, 0xabac0158050fc4dc },   { 1, 0xc9f49bf37d57ca93 },   { 2, 0x82cb9b024dc7d44d },
        { 3, 0x8bf80ab8e7ddf7fb },   { 4, 0xcf75576088d38328 },   { 5, 0xdef9d52f49533b67 },
        { 6, 0xc50d2b50c59f22a7 },   { 7, 0xd3927d989bb11140 },   { 8, 0x369095118d299a8e },
        { 9, 0x25a48eb36c063de4 },   { 13, 0x306f760c1229ffa7 },  { 15, 0xd320d86d2a519956 },
        { 16, 0xcc4fdd1a7d908b66 },  { 17, 0x9cf2689063dbd80c },  { 24, 0xf464aeb267349c8c },
        { 31, 0x2370dd1f8c21d1bc },  { 63, 0x9d199062b7bbb3a8 },  { 64, 0xf17997ec4b4a6065 },
        { 255, 0xf76214e3153c4a15 }, { 256, 0x75b3e64e167de370 }, { 257, 0x5d8ffca6213c73b8 },
    };
    const sl_hash_seed seed = { .k0 = 0x0706050403020100, .k1 = 0x0f0e0d0c0b0a0908 };
    uint8_t data[257];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_hash(seed, data, rows[i].bytes) == rows[i].hash, i);
    EXPECT(sl_hash((sl_hash_seed){ 0, 0 }, NULL, 0) == 0xd1fba762150c532c);
    EXPECT(sl_hash((sl_hash_seed){ UINT64_MAX, UINT64_MAX }, "order-4711", 10) == 0xd4a53e831ed73dbb);
}

TEST(a_hash_does_not_depend_on_where_the_bytes_stand)
{
    const sl_hash_seed seed = { 1, 2 };
    char memory[64];

    for (size_t offset = 0; offset < 16; offset++) {
        memcpy(memory + offset, "a-stream-of-orders-0", 20);
        EXPECT_ROW(sl_hash(seed, memory + offset, 20) == sl_hash(seed, "a-stream-of-orders-0", 20), offset);
    }
}

TEST(a_hash_reads_no_byte_outside_of_the_key)
{
    for (size_t bytes = 0; bytes < 40; bytes++) { /* the address sanitizer guards both ends of the block */
        uint8_t *data = malloc(bytes + 1);
        memset(data, 7, bytes + 1);
        sl_hash((sl_hash_seed){ 3, 4 }, data + 1, bytes);
        sl_hash((sl_hash_seed){ 3, 4 }, data, bytes);
        free(data);
    }
}

TEST(each_bit_of_the_seed_and_of_the_key_changes_the_hash)
{
    const uint8_t key[16] = "sixteen bytes..";
    const uint64_t plain = sl_hash((sl_hash_seed){ 10, 20 }, key, 16);

    for (unsigned bit = 0; bit < 64; bit++) {
        EXPECT_ROW(sl_hash((sl_hash_seed){ 10 ^ 1ull << bit, 20 }, key, 16) != plain, bit);
        EXPECT_ROW(sl_hash((sl_hash_seed){ 10, 20 ^ 1ull << bit }, key, 16) != plain, bit);
    }
    for (unsigned bit = 0; bit < 128; bit++) {
        uint8_t other[16];
        memcpy(other, key, 16);
        other[bit / 8] = (uint8_t)(other[bit / 8] ^ 1u << bit % 8);
        EXPECT_ROW(sl_hash((sl_hash_seed){ 10, 20 }, other, 16) != plain, bit);
    }
}

TEST(a_key_with_a_zero_more_has_another_hash)
{
    static const uint8_t zeros[64];

    for (size_t bytes = 0; bytes < 63; bytes++) {
        const sl_hash_seed seed = { 5, 6 };
        EXPECT_ROW(sl_hash(seed, zeros, bytes) != sl_hash(seed, zeros, bytes + 1), bytes);
    }
}

TEST(a_table_length_is_a_power_of_two_that_is_enough)
{
    static const struct {
        size_t nodes_max, length;
    } rows[] = {
        { 0, 8 },
        { 1, 8 },
        { 7, 8 },
        { 8, 8 },
        { 9, 16 },
        { 16, 16 },
        { 17, 32 },
        { 1u << 20, 1u << 20 },
        { (1u << 20) + 1, 1u << 21 },
        { SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_map_table_length(rows[i].nodes_max) == rows[i].length, i);
}

TEST(equal_hashes_come_out_newest_first)
{
    sl_map_node *table[8], nodes[4];
    sl_map map;

    sl_map_init(&map, table, 8);
    sl_map_insert(&map, &nodes[0], 5);
    sl_map_insert(&map, &nodes[1], 5 + 8); /* same chain, other hash */
    sl_map_insert(&map, &nodes[2], 5);
    sl_map_insert(&map, &nodes[3], 6);
    EXPECT(sl_map_find(&map, 5) == &nodes[2]);
    EXPECT(sl_map_next(&nodes[2]) == &nodes[0]);
    EXPECT(sl_map_next(&nodes[0]) == NULL);
    EXPECT(sl_map_find(&map, 5 + 8) == &nodes[1]);
    EXPECT(sl_map_next(&nodes[1]) == NULL);
    EXPECT(sl_map_find(&map, 7) == NULL);
    EXPECT(sl_map_find(&map, 5 + 16) == NULL);
    EXPECT_EQ(map.count, 4);
}

enum {
    ITEMS = 64,
    HASHES = 12,
    TABLE_MAX = 128
};

typedef struct item {
    sl_map_node node;
    bool in;
    size_t hash_index;
    uint64_t inserted_at; /* larger is newer */
} item;

typedef struct run {
    sl_map map;
    sl_map_node *tables[2][TABLE_MAX];
    size_t table_index;
    item items[ITEMS];
    uint64_t hashes[HASHES];
    size_t in_count;
} run;

/* The newest item of that hash that is older than `than`, by searching all of them. */
static item *model_next(run *r, size_t hash_index, uint64_t than)
{
    item *best = NULL;

    for (size_t i = 0; i < ITEMS; i++) {
        item *candidate = &r->items[i];
        if (!candidate->in || candidate->hash_index != hash_index || candidate->inserted_at >= than)
            continue;
        if (best == NULL || candidate->inserted_at > best->inserted_at)
            best = candidate;
    }
    return best;
}

static void expect_same(run *r, uint64_t seed, size_t step)
{
    EXPECT_RUN(r->map.count == r->in_count, seed, step);
    for (size_t h = 0; h < HASHES; h++) {
        const item *wanted = model_next(r, h, UINT64_MAX);
        const sl_map_node *found = sl_map_find(&r->map, r->hashes[h]);
        for (; wanted != NULL; wanted = model_next(r, h, wanted->inserted_at), found = sl_map_next(found))
            EXPECT_RUN(found == &wanted->node, seed, step);
        EXPECT_RUN(found == NULL, seed, step);
    }
}

static void step_once(run *r, dice *d, size_t step)
{
    item *chosen = &r->items[dice_pick(d, ITEMS)];

    if (dice_pick(d, 10) == 0) {
        r->table_index = 1 - r->table_index;
        sl_map_resize(&r->map, r->tables[r->table_index], (size_t)1 << dice_pick(d, 8));
    } else if (chosen->in) {
        sl_map_remove(&r->map, &chosen->node);
        chosen->in = false;
        r->in_count--;
    } else {
        chosen->in = true;
        chosen->hash_index = dice_pick(d, HASHES);
        chosen->inserted_at = step;
        sl_map_insert(&r->map, &chosen->node, r->hashes[chosen->hash_index]);
        r->in_count++;
    }
}

TEST(a_map_does_what_a_searched_table_would_do_also_over_resizes)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        dice d = dice_from(seed);
        run r = { .in_count = 0 };

        for (size_t h = 0; h < HASHES; h++) /* half of them differ only in bits that no table looks at */
            r.hashes[h] = h % 2 == 0 ? dice_u64(&d) : r.hashes[h - 1] ^ 1ull << 63;
        memset(r.tables, 0xee, sizeof r.tables); /* the map clears what it is given */
        sl_map_init(&r.map, r.tables[0], 8);
        for (size_t step = 0; step < 500; step++) {
            step_once(&r, &d, step);
            expect_same(&r, seed, step);
        }
    }
}

static void remove_what_is_not_in(void)
{
    sl_map_node *table[8], node = { .hash = 3 };
    sl_map map;

    sl_map_init(&map, table, 8);
    sl_map_remove(&map, &node);
}

static void init_with_odd_length(void)
{
    sl_map_node *table[6];
    sl_map map;

    sl_map_init(&map, table, 6);
}

TEST(wrong_use_of_a_map_stops_the_program)
{
    EXPECT(aborts(remove_what_is_not_in));
    EXPECT(aborts(init_with_odd_length));
}
