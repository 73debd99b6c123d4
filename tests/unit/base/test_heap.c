/* tests/unit/base/test_heap.c — the array heap: borders, then random sequences against a table that is
 * searched. */
#include "support.h"

#include "base/heap.h"

enum {
    NODES = 40
};

TEST(an_empty_heap_is_never_due)
{
    sl_heap heap;

    sl_heap_init(&heap, NULL, 0);
    EXPECT(sl_heap_min(&heap) == NULL);
    EXPECT(sl_heap_min_key(&heap) == UINT64_MAX);
    sl_heap_check(&heap);
}

TEST(a_node_knows_its_place_in_the_heap)
{
    sl_heap_slot slots[3];
    sl_heap_node nodes[3] = { 0 };
    sl_heap heap;

    sl_heap_init(&heap, slots, 3);
    EXPECT(!sl_heap_has(&nodes[0]));
    sl_heap_insert(&heap, &nodes[0], 30);
    EXPECT_EQ(nodes[0].place, 1);
    sl_heap_insert(&heap, &nodes[1], 20);
    EXPECT_EQ(nodes[1].place, 1);
    EXPECT_EQ(nodes[0].place, 2);
    sl_heap_insert(&heap, &nodes[2], UINT64_MAX);
    EXPECT_EQ(heap.count, 3);

    sl_heap_remove(&heap, &nodes[1]);
    EXPECT(!sl_heap_has(&nodes[1]));
    EXPECT(sl_heap_min(&heap) == &nodes[0]);
    EXPECT(sl_heap_key(&heap, &nodes[2]) == UINT64_MAX);
}

TEST(keys_come_out_in_order_from_zero_to_the_largest)
{
    static const uint64_t keys[] = { 5, UINT64_MAX, 0, 5, 1, UINT64_MAX - 1, 0, 7 };
    sl_heap_slot slots[8];
    sl_heap_node nodes[8] = { 0 };
    sl_heap heap;
    uint64_t last = 0;

    sl_heap_init(&heap, slots, 8);
    for (size_t i = 0; i < 8; i++)
        sl_heap_insert(&heap, &nodes[i], keys[i]);
    for (size_t i = 0; i < 8; i++) {
        const uint64_t key = sl_heap_min_key(&heap);
        EXPECT(key >= last);
        EXPECT(key == keys[sl_heap_min(&heap) - nodes]);
        last = key;
        sl_heap_remove(&heap, sl_heap_min(&heap));
        sl_heap_check(&heap);
    }
    EXPECT(last == UINT64_MAX);
    EXPECT(sl_heap_min(&heap) == NULL);
}

TEST(what_fills_a_hole_may_have_to_rise)
{
    /* The last entry, 11, is smaller than the parent (100) of the hole that it fills. */
    static const uint64_t keys[] = { 1, 100, 10, 101, 102, 103, 11 };
    sl_heap_slot slots[7];
    sl_heap_node nodes[7] = { 0 };
    sl_heap heap;

    sl_heap_init(&heap, slots, 7);
    for (size_t i = 0; i < 7; i++)
        sl_heap_insert(&heap, &nodes[i], keys[i]);
    EXPECT_EQ(nodes[3].place, 4);
    sl_heap_remove(&heap, &nodes[3]);
    sl_heap_check(&heap);
    EXPECT_EQ(nodes[6].place, 2);
}

typedef struct model {
    bool in[NODES];
    uint64_t keys[NODES];
} model;

static uint64_t model_min(const model *m)
{
    uint64_t min = UINT64_MAX;

    for (size_t i = 0; i < NODES; i++) {
        if (m->in[i] && m->keys[i] < min)
            min = m->keys[i];
    }
    return min;
}

typedef struct run {
    sl_heap heap;
    sl_heap_slot slots[NODES];
    sl_heap_node nodes[NODES];
    model m;
} run;

static void step_once(run *r, dice *d)
{
    const size_t i = dice_pick(d, 4) == 0 && r->heap.count > 0 ? (size_t)(sl_heap_min(&r->heap) - r->nodes)
                                                               : dice_pick(d, NODES);
    const uint64_t key = dice_pick(d, 30); /* few keys, so that equal ones are common */

    if (!r->m.in[i])
        sl_heap_insert(&r->heap, &r->nodes[i], key);
    else if (dice_pick(d, 2) == 0)
        sl_heap_rekey(&r->heap, &r->nodes[i], key);
    else {
        sl_heap_remove(&r->heap, &r->nodes[i]);
        r->m.in[i] = false;
        return;
    }
    r->m.in[i] = true;
    r->m.keys[i] = key;
}

TEST(a_heap_does_what_a_searched_table_would_do)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        dice d = dice_from(seed);
        run r = { .heap = { 0 } };

        sl_heap_init(&r.heap, r.slots, NODES);
        for (size_t step = 0; step < 600; step++) {
            step_once(&r, &d);
            sl_heap_check(&r.heap);
            EXPECT_RUN(sl_heap_min_key(&r.heap) == model_min(&r.m), seed, step);
            for (size_t i = 0; i < NODES; i++) {
                EXPECT_RUN(sl_heap_has(&r.nodes[i]) == r.m.in[i], seed, step);
                EXPECT_RUN(!r.m.in[i] || sl_heap_key(&r.heap, &r.nodes[i]) == r.m.keys[i], seed, step);
            }
        }
    }
}

static void insert_into_full(void)
{
    sl_heap_slot slots[1];
    sl_heap_node nodes[2] = { 0 };
    sl_heap heap;

    sl_heap_init(&heap, slots, 1);
    sl_heap_insert(&heap, &nodes[0], 1);
    sl_heap_insert(&heap, &nodes[1], 2);
}

static void insert_twice(void)
{
    sl_heap_slot slots[2];
    sl_heap_node node = { 0 };
    sl_heap heap;

    sl_heap_init(&heap, slots, 2);
    sl_heap_insert(&heap, &node, 1);
    sl_heap_insert(&heap, &node, 1);
}

static void remove_from_other_heap(void)
{
    sl_heap_slot slots[2][1];
    sl_heap_node nodes[2] = { 0 };
    sl_heap heaps[2];

    for (size_t i = 0; i < 2; i++) {
        sl_heap_init(&heaps[i], slots[i], 1);
        sl_heap_insert(&heaps[i], &nodes[i], 1);
    }
    sl_heap_remove(&heaps[0], &nodes[1]);
}

static void check_wrong_order(void)
{
    sl_heap_node nodes[2] = { { 1 }, { 2 } };
    sl_heap_slot slots[2] = { { 9, &nodes[0] }, { 8, &nodes[1] } };

    sl_heap_check(&(sl_heap){ .slots = slots, .count = 2, .capacity = 2 });
}

static void check_wrong_place(void)
{
    sl_heap_node nodes[2] = { { 1 }, { 1 } };
    sl_heap_slot slots[2] = { { 7, &nodes[0] }, { 8, &nodes[1] } };

    sl_heap_check(&(sl_heap){ .slots = slots, .count = 2, .capacity = 2 });
}

TEST(wrong_use_of_a_heap_stops_the_program)
{
    EXPECT(aborts(insert_into_full));
    EXPECT(aborts(insert_twice));
    EXPECT(aborts(remove_from_other_heap));
}

TEST(the_checker_of_a_heap_sees_wrong_order_and_wrong_places)
{
    EXPECT(aborts(check_wrong_order));
    EXPECT(aborts(check_wrong_place));
}
