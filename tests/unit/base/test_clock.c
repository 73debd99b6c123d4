/* tests/unit/base/test_clock.c — the clock that tests move by hand. */
#include "test.h"

#include "base/clock.h"

TEST(a_manual_clock_stands_still_until_it_is_moved)
{
    sl_clock_manual manual = { .mono_ns = 5, .wall_ns = 1000 };
    const sl_clock clock = sl_clock_manual_clock(&manual);

    EXPECT_EQ(sl_clock_mono_ns(&clock), 5);
    EXPECT_EQ(sl_clock_mono_ns(&clock), 5);
    EXPECT_EQ(sl_clock_wall_ns(&clock), 1000);
    sl_clock_manual_advance(&manual, 10);
    EXPECT_EQ(sl_clock_mono_ns(&clock), 15);
    EXPECT_EQ(sl_clock_wall_ns(&clock), 1010);
}

TEST(setting_the_wall_clock_back_does_not_move_monotonic_time)
{
    sl_clock_manual manual = { .mono_ns = 5, .wall_ns = 1000 };
    const sl_clock clock = sl_clock_manual_clock(&manual);

    sl_clock_manual_set_wall(&manual, 3);
    EXPECT_EQ(sl_clock_wall_ns(&clock), 3);
    EXPECT_EQ(sl_clock_mono_ns(&clock), 5);
}

TEST(a_manual_clock_does_not_start_over_at_the_end_of_time)
{
    sl_clock_manual manual = { .mono_ns = UINT64_MAX - 1, .wall_ns = 7 };
    const sl_clock clock = sl_clock_manual_clock(&manual);

    sl_clock_manual_advance(&manual, 1);
    EXPECT(sl_clock_mono_ns(&clock) == UINT64_MAX);
    sl_clock_manual_advance(&manual, UINT64_MAX);
    EXPECT(sl_clock_mono_ns(&clock) == UINT64_MAX);
    EXPECT(sl_clock_wall_ns(&clock) == UINT64_MAX);
}
