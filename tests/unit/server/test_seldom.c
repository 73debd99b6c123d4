/* tests/unit/server/test_seldom.c — lines that clients cause are bounded, and what was left out is counted. */
#include "test.h"

#include "server/seldom.h"

TEST(a_line_that_comes_too_often_is_left_out_and_counted)
{
    sl_seldom seldom = { 0 };
    uint64_t unsaid = 7, said = 0;

    for (uint64_t i = 0; i < 100; i++)
        said += sl_seldom_may(&seldom, 1000 + i, &unsaid);
    EXPECT_EQ(said, SL_SELDOM_LINES);
    EXPECT_EQ(unsaid, 0);
    EXPECT(!sl_seldom_may(&seldom, 1000 + SL_SELDOM_NS - 1, &unsaid));
    EXPECT(sl_seldom_may(&seldom, 1000 + SL_SELDOM_NS, &unsaid));
    EXPECT_EQ(unsaid, 100 - SL_SELDOM_LINES + 1);
    EXPECT(sl_seldom_may(&seldom, 1000 + SL_SELDOM_NS, &unsaid));
    EXPECT_EQ(unsaid, 0);
}

TEST(a_line_that_comes_seldom_is_always_written)
{
    sl_seldom seldom = { 0 };
    uint64_t unsaid;

    for (uint64_t i = 0; i < 100; i++) {
        EXPECT(sl_seldom_may(&seldom, i * SL_SELDOM_NS, &unsaid));
        EXPECT_EQ(unsaid, 0);
    }
    EXPECT(sl_seldom_may(&seldom, UINT64_MAX, &unsaid));
}
