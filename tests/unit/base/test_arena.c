/* tests/unit/base/test_arena.c — memory with one lifetime: alignment, limits, chunks, and running out. */
#include "support.h"

#include "base/arena.h"
#include "base/cleanup.h"

enum {
    CHUNK = 1024,
    UNIT = _Alignof(max_align_t)
};

static const sl_arena_sizes roomy = { .chunk_bytes = CHUNK, .limit_bytes = 1u << 20 };

TEST(an_arena_takes_no_memory_before_it_is_asked)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena, zero = { 0 };

    sl_arena_init(&arena, &alloc, roomy);
    sl_arena_reset(&arena);
    sl_arena_done(&arena);
    sl_arena_done(&zero);
    EXPECT_EQ(counter.call_count, 0);
}

TEST(pieces_are_aligned_apart_and_all_there)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        enum {
            PIECES = 200
        };
        test_alloc counter = { 0 };
        const sl_alloc alloc = test_alloc_use(&counter);
        dice d = dice_from(seed);
        uint8_t *pieces[PIECES];
        size_t sizes[PIECES];
        sl_arena arena;

        sl_arena_init(&arena, &alloc, roomy);
        for (size_t i = 0; i < PIECES; i++) {
            sizes[i] = dice_pick(&d, dice_pick(&d, 8) == 0 ? 3 * CHUNK : 60);
            pieces[i] = sl_arena_alloc(&arena, sizes[i]);
            EXPECT_RUN(pieces[i] != NULL && (uintptr_t)pieces[i] % UNIT == 0, seed, i);
            memset(pieces[i], (int)(i & 255), sizes[i]);
        }
        for (size_t i = 0; i < PIECES; i++) { /* a piece that overlaps a later one has lost its bytes */
            for (size_t j = 0; j < sizes[i]; j++)
                EXPECT_RUN(pieces[i][j] == (i & 255), seed, i);
        }
        sl_arena_done(&arena);
        EXPECT_EQ(counter.block_count, 0);
    }
}

TEST(a_piece_of_no_bytes_is_not_a_failure)
{
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, roomy);
    EXPECT(sl_arena_alloc(&arena, 0) != NULL);
    EXPECT(sl_arena_alloc_zero(&arena, 0) != NULL);
    EXPECT(sl_arena_copy(&arena, NULL, 0) != NULL);
    EXPECT_STR(sl_arena_copy_str(&arena, (sl_str){ NULL, 0 }), "");
    sl_arena_done(&arena);
}

TEST(copies_and_zeroed_pieces_hold_what_they_say)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter); /* its memory is never zero by chance */
    static const uint8_t zeros[100];
    sl_arena arena;

    sl_arena_init(&arena, &alloc, roomy);
    EXPECT_MEM(sl_arena_alloc_zero(&arena, 100), zeros, 100);
    EXPECT_MEM(sl_arena_copy(&arena, "a\0b", 3), "a\0b", 3);
    EXPECT_STR(sl_arena_copy_str(&arena, (sl_str){ "stream-7", 6 }), "stream");
    sl_arena_done(&arena);
}

TEST(an_arena_gives_out_exactly_its_limit)
{
    static const struct {
        size_t bytes;
        bool given;
    } rows[] = {
        { 64, true },
        { 65, false },
        { SIZE_MAX, false },
        { SIZE_MAX - UNIT, false },
        { 48 - UNIT + 1, true } /* rounded up to 48 */,
        { 17, false },
        { 16, true },
        { 0, false },
        { 1, false },
    };
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ .chunk_bytes = CHUNK, .limit_bytes = 128 });
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW((sl_arena_alloc(&arena, rows[i].bytes) != NULL) == rows[i].given, i);
    EXPECT_EQ(arena.given_bytes, 128);
    EXPECT(sl_arena_copy_str(&arena, (sl_str){ "x", 1 }) == NULL);
    sl_arena_reset(&arena);
    EXPECT(sl_arena_alloc(&arena, 128) != NULL);
    EXPECT(sl_arena_alloc(&arena, 1) == NULL);
    sl_arena_done(&arena);
}

TEST(absurd_sizes_do_not_wrap_even_without_a_limit)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena;

    sl_arena_init(&arena, &alloc, (sl_arena_sizes){ .chunk_bytes = CHUNK, .limit_bytes = SIZE_MAX });
    for (size_t less = 0; less < 100; less++) {
        EXPECT_ROW(sl_arena_alloc(&arena, SIZE_MAX - less) == NULL, less);
        EXPECT_ROW(sl_arena_copy_str(&arena, (sl_str){ "", SIZE_MAX - less }) == NULL, less);
    }
    EXPECT_EQ(arena.given_bytes, 0);
    EXPECT(sl_arena_alloc(&arena, 10) != NULL);
    sl_arena_done(&arena);
}

TEST(a_large_piece_gets_its_own_chunk_and_leaves_the_current_one_in_use)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena;

    sl_arena_init(&arena, &alloc, roomy);
    char *small = sl_arena_alloc(&arena, UNIT);
    EXPECT(sl_arena_alloc(&arena, 10 * CHUNK) != NULL);
    EXPECT_EQ(counter.call_count, 2);
    EXPECT(sl_arena_alloc(&arena, UNIT) == (void *)(small + UNIT));
    EXPECT_EQ(counter.call_count, 2);
    sl_arena_done(&arena);
    EXPECT_EQ(counter.block_count, 0);
}

TEST(small_pieces_share_chunks_of_the_named_size)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena;

    sl_arena_init(&arena, &alloc, roomy);
    for (size_t i = 0; i < 10 * CHUNK / 32; i++)
        EXPECT(sl_arena_alloc(&arena, 32) != NULL);
    EXPECT(counter.block_count >= 10 && counter.block_count <= 11);
    EXPECT(counter.byte_count <= counter.block_count * CHUNK);
    sl_arena_done(&arena);
}

TEST(memory_held_is_bounded_by_what_was_given_out)
{
    for (size_t bytes = UNIT; bytes <= 2 * CHUNK; bytes += UNIT) {
        test_alloc counter = { 0 };
        const sl_alloc alloc = test_alloc_use(&counter);
        sl_arena arena;

        sl_arena_init(&arena, &alloc, roomy);
        for (size_t i = 0; i < 40; i++)
            EXPECT(sl_arena_alloc(&arena, bytes) != NULL);
        /* A quarter may be lost at the end of a chunk, and each chunk has a head. */
        EXPECT_ROW(counter.byte_count <= 40 * bytes * 4 / 3 + CHUNK + counter.block_count * 48, bytes);
        sl_arena_done(&arena);
    }
}

TEST(a_reset_keeps_the_first_chunk_and_nothing_else)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena;

    sl_arena_init(&arena, &alloc, roomy);
    EXPECT(sl_arena_alloc(&arena, 5 * CHUNK) != NULL); /* large and first: not what is kept */
    void *first = sl_arena_alloc(&arena, 100);
    for (size_t i = 0; i < 100; i++)
        EXPECT(sl_arena_alloc(&arena, 100) != NULL);
    sl_arena_reset(&arena);
    EXPECT_EQ(counter.block_count, 1);
    EXPECT(counter.byte_count <= CHUNK);
    EXPECT_EQ(arena.given_bytes, 0);

    const size_t calls_before = counter.call_count;
    for (size_t round = 0; round < 3; round++) {
        EXPECT(sl_arena_alloc(&arena, 100) == first);
        EXPECT(sl_arena_alloc(&arena, 100) != NULL);
        sl_arena_reset(&arena);
    }
    EXPECT_EQ(counter.call_count, calls_before);
    sl_arena_done(&arena);
    EXPECT_EQ(counter.block_count, 0);
}

/* Takes the same pieces each time; returns how many of them came back NULL. */
static size_t take_pieces(sl_arena *arena)
{
    static const size_t sizes[] = { 10, 200, 200, 200, 200, 200, 4000, 10, 0, 300, 100, 100, 9000, 1 };
    size_t failures = 0;

    for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
        void *piece = sl_arena_alloc(arena, sizes[i]);
        if (piece == NULL)
            failures++;
        else
            memset(piece, 1, sizes[i]);
    }
    return failures;
}

TEST(an_arena_survives_each_single_failed_allocation)
{
    size_t fail_at = 1;

    for (;; fail_at++) {
        test_alloc counter = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&counter);
        sl_arena arena;

        sl_arena_init(&arena, &alloc, roomy);
        const size_t failures = take_pieces(&arena);
        const bool was_reached = counter.call_count >= fail_at;
        EXPECT_ROW(failures == (was_reached ? 1 : 0), fail_at); /* only the piece that needed it is missing */
        sl_arena_reset(&arena);
        EXPECT_ROW(was_reached ? take_pieces(&arena) == 0 : true, fail_at);
        sl_arena_done(&arena);
        EXPECT_EQ(counter.block_count, 0);
        if (!was_reached)
            break;
    }
    EXPECT(fail_at > 4); /* else the pieces were too few to prove anything */
}

TEST(an_arena_without_any_memory_says_no_and_counts_nothing)
{
    test_alloc counter = { .fail_at = 1, .stays_out = true };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_arena arena;

    sl_arena_init(&arena, &alloc, roomy);
    EXPECT_EQ(take_pieces(&arena), 14);
    EXPECT(sl_arena_alloc_zero(&arena, 5) == NULL);
    EXPECT(sl_arena_copy(&arena, "abc", 3) == NULL);
    EXPECT(sl_arena_copy_str(&arena, SL_STR("abc")) == NULL);
    EXPECT_EQ(arena.given_bytes, 0);
    sl_arena_done(&arena);
}
