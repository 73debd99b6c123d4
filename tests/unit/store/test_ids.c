/* The memory of recently written ids: bounded, newest first, undoable. */
#include "../base/support.h"

#include "store/ids.h"

static const sl_hash_seed seed = { 3, 4 };

static sl_uuid id(uint64_t number)
{
    return sl_uuid_from_halves(1, (int64_t)number);
}

static bool knows(sl_ids *ids, uint32_t stream, uint64_t number, uint64_t revision)
{
    sl_ids_place place = { 0 };

    return sl_ids_find(ids, stream, id(number), &place) && place.revision == revision &&
           place.position == revision + 1000;
}

static void add(sl_ids *ids, uint32_t stream, uint64_t number, uint64_t revision)
{
    sl_ids_add(ids, stream, id(number), (sl_ids_place){ revision, revision + 1000 });
}

TEST(ids_are_known_by_stream_and_id)
{
    sl_ids ids;
    sl_ids_place place = { 5, 5 };

    EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 8));
    add(&ids, 1, 10, 0);
    add(&ids, 2, 10, 7);
    EXPECT(knows(&ids, 1, 10, 0));
    EXPECT(knows(&ids, 2, 10, 7));
    EXPECT(!sl_ids_find(&ids, 3, id(10), &place));
    EXPECT(!sl_ids_find(&ids, 1, id(11), &place));
    EXPECT_EQ(place.revision, 5);
    sl_ids_done(&ids);
}

TEST(the_oldest_ids_are_forgotten_one_by_one)
{
    sl_ids ids;

    EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 8));
    for (uint64_t i = 0; i < 100; i++) {
        add(&ids, 1, i, i);
        for (uint64_t back = 0; back <= i && back < 12; back++)
            EXPECT_EQ(knows(&ids, 1, i - back, i - back), back < 8);
    }
    sl_ids_done(&ids);
}

TEST(of_one_id_the_newest_counts_also_when_it_fills_the_ring)
{
    sl_ids ids;

    EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 8));
    for (uint64_t i = 0; i < 20; i++) {
        add(&ids, 1, 1, i);
        EXPECT(knows(&ids, 1, 1, i));
    }
    for (uint64_t i = 0; i < 8; i++) {
        EXPECT(knows(&ids, 1, 1, 19));
        add(&ids, 1, 100 + i, i);
    }
    EXPECT(!knows(&ids, 1, 1, 19));
    sl_ids_done(&ids);
}

TEST(rolled_back_ids_are_unknown_and_what_they_hid_is_known_again)
{
    sl_ids ids;
    uint64_t mark;

    EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 8));
    add(&ids, 1, 1, 0);
    add(&ids, 1, 2, 1);
    mark = sl_ids_mark(&ids);
    add(&ids, 1, 1, 2);
    add(&ids, 1, 1, 3);
    add(&ids, 1, 3, 4);
    sl_ids_rollback(&ids, mark);
    EXPECT(knows(&ids, 1, 1, 0));
    EXPECT(knows(&ids, 1, 2, 1));
    EXPECT(!knows(&ids, 1, 3, 4));
    sl_ids_done(&ids);
}

TEST(rolling_back_more_than_the_ring_holds_forgets_everything)
{
    sl_ids ids;
    uint64_t mark;

    EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 8));
    add(&ids, 1, 1, 0);
    mark = sl_ids_mark(&ids);
    for (uint64_t i = 0; i < 30; i++)
        add(&ids, 1, 50 + i, i);
    sl_ids_rollback(&ids, mark);
    EXPECT(!knows(&ids, 1, 1, 0)); /* it had to make room */
    for (uint64_t i = 0; i < 30; i++)
        EXPECT(!knows(&ids, 1, 50 + i, i));
    add(&ids, 1, 2, 1);
    EXPECT(knows(&ids, 1, 2, 1));
    sl_ids_done(&ids);
}

/* What is remembered, as a list that is searched from its end. */
typedef struct naive {
    struct {
        uint64_t number, revision;
    } list[4096];
    uint64_t count, oldest;
} naive;

static bool naive_knows(const naive *n, uint64_t number, uint64_t *ret_revision)
{
    for (uint64_t i = n->count; i-- > n->oldest;)
        if (n->list[i].number == number) {
            *ret_revision = n->list[i].revision;
            return true;
        }
    return false;
}

TEST(random_adding_and_rolling_back_ends_as_a_list_would)
{
    static naive n;

    for (uint64_t run = 1; run <= 20; run++) {
        dice d = dice_from(run);
        sl_ids ids;

        n = (naive){ 0 };
        EXPECT_OK(sl_ids_init(&ids, &sl_alloc_default, seed, 16));
        for (uint64_t step = 0; step < 1000; step++) {
            const uint64_t mark = sl_ids_mark(&ids), number = dice_pick(&d, 30);
            const size_t added = dice_pick(&d, 5);
            uint64_t revision = 0;
            sl_ids_place place = { 0 };

            for (size_t i = 0; i < added && n.count < 4096; i++) {
                n.list[n.count].number = dice_pick(&d, 30);
                n.list[n.count].revision = step;
                add(&ids, 1, n.list[n.count].number, step);
                n.count++;
                n.oldest = n.count - n.oldest > 16 ? n.count - 16 : n.oldest;
            }
            if (dice_pick(&d, 3) == 0) {
                sl_ids_rollback(&ids, mark);
                n.count = mark;
                n.oldest = n.oldest > mark ? mark : n.oldest;
            }
            EXPECT_RUN(sl_ids_find(&ids, 1, id(number), &place) == naive_knows(&n, number, &revision), run,
                       step);
            EXPECT_RUN(place.revision == revision, run, step);
        }
        sl_ids_done(&ids);
    }
}

TEST(without_memory_there_is_no_ring_and_no_leak)
{
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        test_alloc t = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&t);
        sl_ids ids = { 0 };

        EXPECT_ERR(sl_ids_init(&ids, &alloc, seed, 8), SL_ERR_NOMEM);
        EXPECT_EQ(t.block_count, 0);
        sl_ids_done(&ids);
    }
}
