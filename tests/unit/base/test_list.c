/* tests/unit/base/test_list.c — the ring, by hand and against an array that does the same. */
#include "support.h"

#include "base/list.h"

typedef struct item {
    char before; /* so that the node is not at offset 0 and SL_CONTAINER_OF has something to do */
    sl_list node;
    int number;
} item;

static int number_of(sl_list *node)
{
    return SL_CONTAINER_OF(node, item, node)->number;
}

TEST(a_new_ring_is_empty)
{
    sl_list head;

    sl_list_init(&head);
    EXPECT(sl_list_empty(&head));
    EXPECT(sl_list_first(&head) == NULL);
    EXPECT(sl_list_last(&head) == NULL);
    SL_LIST_EACH (node, &head)
        fail_msg("%s", "an empty ring has no node");
}

TEST(a_ring_has_two_ends)
{
    sl_list head;
    item items[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };

    sl_list_init(&head);
    sl_list_push_back(&head, &items[1].node);
    sl_list_push_back(&head, &items[2].node);
    sl_list_push_front(&head, &items[0].node);
    EXPECT_EQ(number_of(sl_list_first(&head)), 0);
    EXPECT_EQ(number_of(sl_list_last(&head)), 2);
    EXPECT(!sl_list_empty(&head));

    int wanted = 0;
    SL_LIST_EACH (node, &head)
        EXPECT_EQ(number_of(node), wanted++);
    EXPECT_EQ(wanted, 3);
}

TEST(a_ring_is_emptied_into_the_end_of_another)
{
    sl_list head, from;
    item items[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
    int wanted = 0;

    sl_list_init(&head);
    sl_list_init(&from);
    sl_list_splice(&head, &from); /* nothing into nothing */
    EXPECT(sl_list_empty(&head));
    sl_list_push_back(&head, &items[0].node);
    sl_list_push_back(&from, &items[1].node);
    sl_list_push_back(&from, &items[2].node);
    sl_list_splice(&head, &from);
    EXPECT(sl_list_empty(&from));
    SL_LIST_EACH (node, &head)
        EXPECT_EQ(number_of(node), wanted++);
    EXPECT_EQ(wanted, 3);
    EXPECT_EQ(number_of(sl_list_last(&head)), 2);
}

TEST(removing_a_node_twice_is_harmless)
{
    sl_list head;
    item items[2] = { 0 };

    sl_list_init(&head);
    sl_list_push_back(&head, &items[0].node);
    sl_list_push_back(&head, &items[1].node);
    sl_list_remove(&items[0].node);
    EXPECT(sl_list_empty(&items[0].node));
    sl_list_remove(&items[0].node);
    EXPECT(sl_list_first(&head) == &items[1].node);
    EXPECT(sl_list_last(&head) == &items[1].node);
}

TEST(a_walk_may_remove_the_node_it_stands_on)
{
    sl_list head;
    item items[5] = { 0 };
    size_t seen_count = 0;

    sl_list_init(&head);
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        sl_list_push_back(&head, &items[i].node);
    }
    SL_LIST_EACH_SAFE (node, &head) {
        seen_count++;
        if (number_of(node) % 2 == 0)
            sl_list_remove(node);
    }
    EXPECT_EQ(seen_count, 5);
    EXPECT_EQ(number_of(sl_list_first(&head)), 1);
    EXPECT_EQ(number_of(sl_list_last(&head)), 3);
}

enum {
    ITEMS = 24
};

typedef struct model {
    int order[ITEMS];
    size_t count;
} model;

static void model_insert(model *m, size_t at, int number)
{
    for (size_t i = m->count++; i > at; i--)
        m->order[i] = m->order[i - 1];
    m->order[at] = number;
}

static void model_remove(model *m, int number)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (m->order[i] != number)
            m->order[kept++] = m->order[i];
    }
    m->count = kept;
}

static void expect_same(sl_list *head, const model *m, uint64_t seed, size_t step)
{
    size_t at = 0;

    SL_LIST_EACH (node, head) {
        EXPECT_RUN(at < m->count && number_of(node) == m->order[at], seed, step);
        EXPECT_RUN(node->next->prev == node && node->prev->next == node, seed, step);
        at++;
    }
    EXPECT_RUN(at == m->count, seed, step);
}

TEST(a_ring_does_what_an_array_would_do)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        dice d = dice_from(seed);
        item items[ITEMS];
        sl_list head;
        model m = { .count = 0 };

        sl_list_init(&head);
        for (int i = 0; i < ITEMS; i++) {
            items[i].number = i;
            sl_list_init(&items[i].node);
        }
        for (size_t step = 0; step < 300; step++) {
            item *chosen = &items[dice_pick(&d, ITEMS)];
            const size_t place = dice_pick(&d, m.count + 1);
            if (!sl_list_empty(&chosen->node)) {
                sl_list_remove(&chosen->node);
                model_remove(&m, chosen->number);
            } else if (place == m.count) {
                sl_list_push_back(&head, &chosen->node);
                model_insert(&m, m.count, chosen->number);
            } else if (place == 0) {
                sl_list_push_front(&head, &chosen->node);
                model_insert(&m, 0, chosen->number);
            } else {
                sl_list_insert_before(&items[m.order[place]].node, &chosen->node);
                model_insert(&m, place, chosen->number);
            }
            expect_same(&head, &m, seed, step);
        }
    }
}
