/* tests/unit/base/test_cleanup.c — release at scope end, moved pointers, sums that do not wrap. */
#include "test.h"

#include "base/cleanup.h"

static int released_sum;

static void release(int *value)
{
    released_sum += *value;
}

static int leave_early(int which)
{
    SL_CLEANUP(release) int first = 1;

    if (which == 0)
        return 0;
    SL_CLEANUP(release) int second = 10;
    return first + second;
}

TEST(what_was_opened_is_released_on_every_way_out)
{
    released_sum = 0;
    leave_early(0);
    EXPECT_EQ(released_sum, 1);
    EXPECT_EQ(leave_early(1), 11);
    EXPECT_EQ(released_sum, 12);
}

TEST(a_taken_pointer_leaves_null_behind)
{
    int value = 5;
    int *pointers[] = { &value, &value };
    size_t index = 0;
    int *taken = SL_TAKE_PTR(pointers[index++]);

    EXPECT(taken == &value);
    EXPECT(pointers[0] == NULL && pointers[1] == &value);
    EXPECT_EQ(index, 1); /* the argument is evaluated once */
    EXPECT(SL_TAKE_PTR(pointers[0]) == NULL);
}

TEST(sums_stop_at_the_largest_number)
{
    static const struct {
        uint64_t a, b, sum;
    } rows[] = {
        { 0, 0, 0 },
        { 1, 2, 3 },
        { UINT64_MAX, 0, UINT64_MAX },
        { UINT64_MAX - 1, 1, UINT64_MAX },
        { UINT64_MAX, 1, UINT64_MAX },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX },
        { 1ull << 63, 1ull << 63, UINT64_MAX },
        { 1ull << 63, (1ull << 63) - 1, UINT64_MAX },
        { (1ull << 63) - 1, (1ull << 63) - 1, UINT64_MAX - 1 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT(sl_add_sat_u64(rows[i].a, rows[i].b) == rows[i].sum);
        EXPECT(sl_add_sat_u64(rows[i].b, rows[i].a) == rows[i].sum);
    }
}

TEST(the_smaller_and_the_larger_of_two)
{
    EXPECT_EQ(sl_min_u64(1, 2), 1);
    EXPECT_EQ(sl_min_u64(2, 1), 1);
    EXPECT_EQ(sl_max_u64(1, 2), 2);
    EXPECT_EQ(sl_max_u64(2, 1), 2);
    EXPECT(sl_max_u64(0, UINT64_MAX) == UINT64_MAX);
    EXPECT_EQ(sl_min_u64(0, UINT64_MAX), 0);
}
