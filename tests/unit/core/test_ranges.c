#include "../test.h"
#include "core/ranges.h"

#include <string.h>

enum {
    POSITIONS = 200,
    RANGES = 128
};

static sl_range items[RANGES];

TEST(ranges_that_touch_become_one)
{
    static const struct {
        uint64_t from, to;
        uint32_t count;
    } rows[] = { { 10, 20, 1 }, { 30, 40, 2 }, { 20, 25, 2 },   { 5, 10, 2 },
                 { 25, 30, 1 }, { 7, 7, 1 },   { 100, 101, 2 }, { 0, 200, 1 } };
    sl_ranges ranges;

    sl_ranges_init(&ranges, items, RANGES);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_OK(sl_ranges_add(&ranges, rows[i].from, rows[i].to));
        sl_ranges_check(&ranges);
        EXPECT_EQ(ranges.count, rows[i].count);
    }
}

TEST(a_full_set_takes_only_what_needs_no_new_range)
{
    sl_range two[2];
    sl_ranges ranges;

    sl_ranges_init(&ranges, two, 2);
    EXPECT_OK(sl_ranges_add(&ranges, 0, 1));
    EXPECT_OK(sl_ranges_add(&ranges, 5, 6));
    EXPECT_ERR(sl_ranges_add(&ranges, 9, 10), SL_ERR_FULL);
    EXPECT_OK(sl_ranges_add(&ranges, 1, 5));
    EXPECT_EQ(ranges.count, 1);
    EXPECT_EQ(sl_ranges_skip(&ranges, 3), 6);
    EXPECT_EQ(sl_ranges_skip(&ranges, 6), 6);
}

static void compare(const sl_ranges *ranges, const bool *model)
{
    for (uint64_t p = 0; p < POSITIONS; p++) {
        uint64_t skip = p;
        while (skip < POSITIONS && model[skip])
            skip++;
        EXPECT_EQ(sl_ranges_has(ranges, p), model[p]);
        EXPECT_EQ(sl_ranges_skip(ranges, p), skip);
    }
}

/* Against a plain array of booleans. */
TEST(random_ranges_are_the_set_that_they_should_be)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        bool model[POSITIONS] = { false };
        uint64_t random = seed;
        sl_ranges ranges;

        sl_ranges_init(&ranges, items, RANGES);
        for (int step = 0; step < 40; step++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint64_t from = (random >> 33) % POSITIONS;
            const uint64_t to =
                from + (random >> 50) % 12 > POSITIONS ? POSITIONS : from + (random >> 50) % 12;
            if (step % 10 == 9) {
                sl_ranges_drop_below(&ranges, from / 4);
                memset(model, 0, from / 4);
            } else {
                EXPECT_OK(sl_ranges_add(&ranges, from, to));
                memset(model + from, 1, to - from);
            }
            sl_ranges_check(&ranges);
            compare(&ranges, model);
        }
    }
}

TEST(what_was_dropped_from_the_front_is_used_again)
{
    sl_range two[2];
    sl_ranges ranges;

    sl_ranges_init(&ranges, two, 2);
    for (uint64_t p = 0; p < 100; p += 10) {
        EXPECT_OK(sl_ranges_add(&ranges, p, p + 1));
        EXPECT_OK(sl_ranges_add(&ranges, p + 5, p + 6));
        EXPECT_ERR(sl_ranges_add(&ranges, p + 8, p + 9), SL_ERR_FULL);
        sl_ranges_drop_below(&ranges, p + 10);
        EXPECT_EQ(ranges.count, 0);
        sl_ranges_check(&ranges);
    }
}
