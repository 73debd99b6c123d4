/* tests/unit/base/test_alloc.c — the default allocator, and the two ways in which other tests make memory run
 * out. */
#include "support.h"

#include "scarce.h"

#include "base/alloc.h"

TEST(the_default_allocator_takes_resizes_and_gives_back)
{
    char *memory = sl_alloc_take(&sl_alloc_default, 3);

    EXPECT(memory != NULL);
    memcpy(memory, "abc", 3);
    memory = sl_alloc_resize(&sl_alloc_default, memory, 3, 100000);
    EXPECT(memory != NULL);
    EXPECT_MEM(memory, "abc", 3);
    memory[99999] = 'z';
    memory = sl_alloc_resize(&sl_alloc_default, memory, 100000, 2);
    EXPECT_MEM(memory, "ab", 2);
    sl_alloc_give(&sl_alloc_default, memory, 2);
    sl_alloc_give(&sl_alloc_default, NULL, 0);
}

TEST(a_resize_of_nothing_is_a_take)
{
    char *memory = sl_alloc_resize(&sl_alloc_default, NULL, 0, 8);

    EXPECT(memory != NULL);
    sl_alloc_give(&sl_alloc_default, memory, 8);
}

TEST(the_test_allocator_fails_at_the_chosen_call_and_counts_what_is_out)
{
    test_alloc counter = { .fail_at = 2 };
    const sl_alloc alloc = test_alloc_use(&counter);
    void *first = sl_alloc_take(&alloc, 10);

    EXPECT(first != NULL);
    EXPECT(sl_alloc_take(&alloc, 10) == NULL);
    EXPECT_EQ(counter.byte_count, 10);
    first = sl_alloc_resize(&alloc, first, 10, 25);
    EXPECT(first != NULL);
    EXPECT_EQ(counter.block_count, 1);
    EXPECT_EQ(counter.byte_count, 25);
    sl_alloc_give(&alloc, first, 25);
    EXPECT_EQ(counter.block_count, 0);
    EXPECT_EQ(counter.byte_count, 0);
}

TEST(the_default_allocator_fails_at_the_chosen_call_only_while_it_is_scarce)
{
    const scarce_plan second = { .fail_at = 2 };
    char *first;
    long blocks;

    scarce_begin(second);
    first = sl_alloc_take(&sl_alloc_default, 3);
    EXPECT(first != NULL);
    memcpy(first, "abc", 3);
    EXPECT(sl_alloc_resize(&sl_alloc_default, first, 3, 100) == NULL);
    EXPECT_MEM(first, "abc", 3);
    first = sl_alloc_resize(&sl_alloc_default, first, 3, 100);
    EXPECT(first != NULL);
    EXPECT(scarce_end(&blocks));
    EXPECT_EQ(blocks, 1);
    sl_alloc_give(&sl_alloc_default, first, 100);
    scarce_begin((scarce_plan){ .fail_at = 1, .stays_out = true });
    EXPECT(sl_alloc_take(&sl_alloc_default, 3) == NULL);
    EXPECT(sl_alloc_take(&sl_alloc_default, 3) == NULL);
    EXPECT(scarce_end(&blocks));
    EXPECT_EQ(blocks, 0);
}

static void take_nothing(void)
{
    sl_alloc_take(&sl_alloc_default, 0);
}

static void give_without_size(void)
{
    sl_alloc_give(&sl_alloc_default, malloc(1), 0);
}

TEST(wrong_use_of_an_allocator_stops_the_program)
{
    EXPECT(aborts(take_nothing));
    EXPECT(aborts(give_without_size));
}
