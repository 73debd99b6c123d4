/* tests/unit/base/test_pairing.c — the heap without an array: shape, order, cost and depth. */
#include "support.h"

#include "base/list.h"
#include "base/pairing.h"

enum {
    ITEMS = 40,
    MANY = 100000
};

typedef struct item {
    uint64_t key;
    sl_pairing_node node;
    bool in;
} item;

static size_t compare_count;

static const item *item_of(const sl_pairing_node *node)
{
    return SL_CONTAINER_OF(node, const item, node);
}

static bool before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    compare_count++;
    return item_of(a)->key < item_of(b)->key;
}

/* Number of nodes below and including `node`; 0 as soon as a link or the order is wrong. */
static size_t counted(const sl_pairing_node *node)
{
    size_t count = 1;

    for (const sl_pairing_node *child = node->child, *left = node; child != NULL; child = child->next) {
        const size_t below = counted(child);
        if (child->prev != left || before(child, node) || below == 0)
            return 0;
        left = child;
        count += below;
    }
    return count;
}

static size_t heap_count(const sl_pairing *heap)
{
    if (heap->root == NULL)
        return 0;
    return heap->root->prev == NULL && heap->root->next == NULL ? counted(heap->root) : SIZE_MAX;
}

TEST(an_empty_pairing_heap_has_no_first)
{
    sl_pairing heap;

    sl_pairing_init(&heap, before);
    EXPECT(sl_pairing_min(&heap) == NULL);
}

TEST(a_pairing_heap_of_one_becomes_empty)
{
    sl_pairing heap;
    item one;

    memset(&one, 0xee, sizeof one); /* a node needs no initialisation */
    sl_pairing_init(&heap, before);
    sl_pairing_insert(&heap, &one.node);
    EXPECT(sl_pairing_min(&heap) == &one.node);
    sl_pairing_remove(&heap, &one.node);
    EXPECT(sl_pairing_min(&heap) == NULL);
}

static uint64_t model_min(const item *items)
{
    uint64_t min = UINT64_MAX;

    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].in && items[i].key < min)
            min = items[i].key;
    }
    return min;
}

static void step_once(sl_pairing *heap, item *items, size_t *in_count, dice *d)
{
    item *chosen = &items[dice_pick(d, ITEMS)];

    if (dice_pick(d, 3) == 0 && sl_pairing_min(heap) != NULL)
        chosen = SL_CONTAINER_OF(sl_pairing_min(heap), item, node);
    if (chosen->in) {
        sl_pairing_remove(heap, &chosen->node);
        (*in_count)--;
    } else {
        chosen->key = dice_pick(d, 30);
        sl_pairing_insert(heap, &chosen->node);
        (*in_count)++;
    }
    chosen->in = !chosen->in;
}

TEST(a_pairing_heap_does_what_a_searched_table_would_do)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        dice d = dice_from(seed);
        item items[ITEMS] = { 0 };
        sl_pairing heap;
        size_t in_count = 0;

        sl_pairing_init(&heap, before);
        for (size_t step = 0; step < 600; step++) {
            step_once(&heap, items, &in_count, &d);
            EXPECT_RUN(heap_count(&heap) == in_count, seed, step);
            EXPECT_RUN(in_count == 0 || item_of(sl_pairing_min(&heap))->key == model_min(items), seed, step);
        }
    }
}

typedef enum pattern {
    RISING,  /* every new one becomes a child of the root: one node with very many children */
    FALLING, /* every new one becomes the root: a chain as deep as it is long */
    MIXED,
    PATTERN_COUNT
} pattern;

static uint64_t key_at(pattern p, size_t index, dice *d)
{
    switch (p) {
    case RISING: return index;
    case FALLING: return MANY - index;
    case MIXED: return dice_pick(d, MANY);
    case PATTERN_COUNT: break;
    }
    return 0;
}

static void fill(sl_pairing *heap, item *items, pattern p)
{
    dice d = dice_from(7);

    sl_pairing_init(heap, before);
    for (size_t i = 0; i < MANY; i++) {
        items[i].key = key_at(p, i, &d);
        sl_pairing_insert(heap, &items[i].node);
    }
}

TEST(a_hundred_thousand_come_out_in_order_with_few_comparisons)
{
    item *items = calloc(MANY, sizeof *items);

    for (pattern p = RISING; p < PATTERN_COUNT; p++) {
        sl_pairing heap;
        uint64_t last = 0;

        compare_count = 0;
        fill(&heap, items, p);
        EXPECT(compare_count < MANY);
        for (size_t i = 0; i < MANY; i++) {
            const uint64_t key = item_of(sl_pairing_min(&heap))->key;
            EXPECT_ROW(key >= last, p);
            last = key;
            sl_pairing_remove(&heap, heap.root);
        }
        EXPECT(sl_pairing_min(&heap) == NULL);
        EXPECT_ROW(compare_count < 2u * MANY * 17,
                   p); /* 17: the logarithm of MANY; joining one by one is far above */
    }
    free(items);
}

TEST(any_node_of_a_deep_heap_can_be_removed)
{
    item *items = calloc(MANY, sizeof *items);
    sl_pairing heap;

    fill(&heap, items, FALLING);
    for (size_t i = 0; i < MANY; i += 2)
        sl_pairing_remove(&heap, &items[i].node);
    for (size_t i = MANY - 1; i < MANY; i -= 2) {
        EXPECT_ROW(sl_pairing_min(&heap) == &items[i].node, i);
        sl_pairing_remove(&heap, &items[i].node);
    }
    EXPECT(sl_pairing_min(&heap) == NULL);
    free(items);
}

static void remove_twice(void)
{
    item items[2] = { { .key = 1 }, { .key = 2 } };
    sl_pairing heap;

    sl_pairing_init(&heap, before);
    sl_pairing_insert(&heap, &items[0].node);
    sl_pairing_insert(&heap, &items[1].node);
    sl_pairing_remove(&heap, &items[1].node);
    sl_pairing_remove(&heap, &items[1].node);
}

TEST(removing_from_a_pairing_heap_twice_stops_the_program)
{
    EXPECT(aborts(remove_twice));
}
