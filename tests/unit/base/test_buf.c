/* tests/unit/base/test_buf.c — the byte buffer: limits, growth, moving, and random sequences against plain
 * bytes. */
#include "support.h"

#include "base/buf.h"
#include "base/cleanup.h"

TEST(a_new_buffer_holds_nothing_and_took_nothing)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf, zero = { 0 };

    sl_buf_init(&buf, &alloc, 100);
    EXPECT(sl_buf_data(&buf) == NULL);
    EXPECT_EQ(buf.bytes, 0);
    EXPECT_OK(sl_buf_reserve(&buf, 0));
    EXPECT_OK(sl_buf_append(&buf, NULL, 0));
    sl_buf_clear(&buf);
    sl_buf_consume(&buf, 0);
    sl_buf_done(&buf);
    sl_buf_done(&zero);
    EXPECT_EQ(counter.call_count, 0);
}

TEST(a_buffer_takes_exactly_its_limit)
{
    static const struct {
        size_t limit, bytes;
        sl_err err;
    } rows[] = {
        { 0, 0, SL_OK },     { 0, 1, SL_ERR_TOO_LARGE },
        { 1, 1, SL_OK },     { 1, 2, SL_ERR_TOO_LARGE },
        { 63, 63, SL_OK },   { 63, 64, SL_ERR_TOO_LARGE },
        { 64, 64, SL_OK },   { 64, 65, SL_ERR_TOO_LARGE },
        { 65, 65, SL_OK },   { 65, 66, SL_ERR_TOO_LARGE },
        { 100, 100, SL_OK }, { 100, 101, SL_ERR_TOO_LARGE },
        { 127, 127, SL_OK }, { 128, 128, SL_OK },
        { 129, 129, SL_OK }, { 129, SIZE_MAX, SL_ERR_TOO_LARGE },
    };
    static const uint8_t data[200] = { 1, 2, 3 };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_buf buf;
        sl_buf_init(&buf, &sl_alloc_default, rows[i].limit);
        EXPECT_ROW(sl_buf_append(&buf, data, rows[i].bytes) == rows[i].err, i);
        EXPECT_ROW(buf.bytes == (rows[i].err == SL_OK ? rows[i].bytes : 0), i);
        EXPECT_ROW(buf.capacity <= rows[i].limit, i);
        sl_buf_done(&buf);
    }
}

TEST(the_limit_is_reached_byte_by_byte_too_and_consuming_makes_room)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 150);
    for (unsigned i = 0; i < 150; i++)
        EXPECT_OK(sl_buf_append_u8(&buf, (uint8_t)i));
    EXPECT_ERR(sl_buf_append_u8(&buf, 0), SL_ERR_TOO_LARGE);
    EXPECT_ERR(sl_buf_append(&buf, "12345678", 8), SL_ERR_TOO_LARGE);
    sl_buf_consume(&buf, 1);
    EXPECT_OK(sl_buf_append_u8(&buf, 150));
    EXPECT_ERR(sl_buf_append_u8(&buf, 0), SL_ERR_TOO_LARGE);
    for (unsigned i = 0; i < 150; i++)
        EXPECT_EQ(sl_buf_data(&buf)[i], i + 1);
    sl_buf_done(&buf);
}

TEST(absurd_sizes_do_not_wrap)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, SIZE_MAX);
    EXPECT_OK(sl_buf_append(&buf, "abc", 3));
    EXPECT_ERR(sl_buf_reserve(&buf, SIZE_MAX), SL_ERR_TOO_LARGE);
    EXPECT_ERR(sl_buf_reserve(&buf, SIZE_MAX - 2), SL_ERR_TOO_LARGE);
    EXPECT_ERR(sl_buf_reserve(&buf, SIZE_MAX - 3), SL_ERR_NOMEM);
    EXPECT_ERR(sl_buf_reserve(&buf, SIZE_MAX / 2 + 1), SL_ERR_NOMEM);
    EXPECT_MEM(sl_buf_data(&buf), "abc", 3);
    sl_buf_done(&buf);
    EXPECT_EQ(counter.block_count, 0);
}

TEST(memory_doubles_so_that_a_million_bytes_cost_few_allocations)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, 1u << 20);
    for (size_t i = 0; i < 1u << 20; i++)
        EXPECT_OK(sl_buf_append_u8(&buf, (uint8_t)i));
    EXPECT_EQ(counter.call_count, 15); /* 64 bytes, then 14 times twice as many */
    EXPECT_EQ(buf.capacity, 1u << 20);
    sl_buf_done(&buf);
}

TEST(what_is_reserved_can_be_appended_without_memory)
{
    test_alloc counter = { .fail_at = 2, .stays_out = true };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, 1000);
    EXPECT_OK(sl_buf_reserve(&buf, 1000));
    for (size_t i = 0; i < 1000; i++)
        EXPECT_OK(sl_buf_append_u8(&buf, 1));
    EXPECT_EQ(counter.call_count, 1);
    sl_buf_done(&buf);
}

TEST(bytes_can_be_written_in_place)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 1000);
    EXPECT_OK(sl_buf_append(&buf, "ab", 2));
    EXPECT_OK(sl_buf_reserve(&buf, 500));
    memcpy(sl_buf_tail(&buf), "cde", 3);
    sl_buf_added(&buf, 3);
    sl_buf_added(&buf, 0);
    EXPECT_EQ(buf.bytes, 5);
    EXPECT_MEM(sl_buf_data(&buf), "abcde", 5);
    sl_buf_done(&buf);
}

TEST(a_taken_buffer_is_the_callers_and_the_old_one_starts_anew)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, 10);
    EXPECT_OK(sl_buf_append(&buf, "0123456789", 10));
    sl_buf_consume(&buf, 4);
    sl_buf taken = sl_buf_take(&buf);
    EXPECT_EQ(buf.bytes, 0);
    EXPECT_OK(sl_buf_append(&buf, "new", 3));
    EXPECT_ERR(sl_buf_append(&buf, "too much", 8), SL_ERR_TOO_LARGE);
    EXPECT_EQ(taken.bytes, 6);
    EXPECT_MEM(sl_buf_data(&taken), "456789", 6);
    EXPECT_MEM(sl_buf_data(&buf), "new", 3);
    sl_buf_done(&taken);
    sl_buf_done(&buf);
    EXPECT_EQ(counter.block_count, 0);
}

TEST(a_buffer_that_is_emptied_again_and_again_keeps_its_first_memory)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, 1u << 20);
    for (size_t i = 0; i < 10000; i++) {
        EXPECT_OK(sl_buf_append(&buf, "0123456789", 10));
        if (i % 6 == 5)
            sl_buf_consume(&buf, 60);
    }
    sl_buf_clear(&buf);
    EXPECT_EQ(counter.call_count, 1);
    sl_buf_done(&buf);
}

TEST(an_emptied_buffer_has_all_of_its_memory_for_what_comes_next)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 64);
    for (size_t round = 0; round < 2; round++) {
        EXPECT_OK(sl_buf_append(&buf, "0123456789", 10));
        sl_buf_consume(&buf, 3);
        if (round == 0)
            sl_buf_consume(&buf, 7);
        else
            sl_buf_clear(&buf);
        EXPECT(sl_buf_tail(&buf) == buf.memory);
    }
    sl_buf_done(&buf);
}

TEST(a_queue_that_never_empties_does_not_grow_without_end)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 1u << 20);
    EXPECT_OK(sl_buf_append(&buf, "01234567890123456789012345678901234567890123456789", 50));
    for (size_t i = 0; i < 100000; i++) {
        EXPECT_OK(sl_buf_append_u8(&buf, (uint8_t)i));
        sl_buf_consume(&buf, 1);
    }
    EXPECT_EQ(buf.bytes, 50);
    EXPECT(buf.capacity <= 256);
    EXPECT_EQ(sl_buf_data(&buf)[49], (uint8_t)99999);
    sl_buf_done(&buf);
}

TEST(when_memory_is_out_the_consumed_part_is_still_used)
{
    test_alloc counter = { .fail_at = 2, .stays_out = true };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_buf buf;

    sl_buf_init(&buf, &alloc, 1000);
    for (unsigned i = 0; i < 64; i++)
        EXPECT_OK(sl_buf_append_u8(&buf, (uint8_t)i));
    EXPECT_ERR(sl_buf_append_u8(&buf, 64), SL_ERR_NOMEM);
    sl_buf_consume(&buf, 2);
    EXPECT_OK(sl_buf_append(&buf, "\x40\x41", 2)); /* growing fails, moving by two bytes helps */
    EXPECT_ERR(sl_buf_append_u8(&buf, 0x42), SL_ERR_NOMEM);
    for (unsigned i = 0; i < 64; i++)
        EXPECT_EQ(sl_buf_data(&buf)[i], i + 2);
    sl_buf_done(&buf);
    EXPECT_EQ(counter.block_count, 0);
}

enum {
    LIMIT = 700,
    CHUNK_MAX = 120
};

typedef struct model {
    uint8_t bytes[LIMIT];
    size_t count;
} model;

/* One random operation on both. When memory may fail, NOMEM is the only difference that is allowed. */
static void step_once(sl_buf *buf, model *m, dice *d, uint64_t seed, size_t step)
{
    uint8_t chunk[CHUNK_MAX];
    const size_t bytes = dice_pick(d, CHUNK_MAX);
    const size_t consumed = dice_pick(d, m->count + 1);

    for (size_t i = 0; i < bytes; i++)
        chunk[i] = (uint8_t)dice_pick(d, 256);
    switch (dice_pick(d, 8)) {
    case 0:
        sl_buf_clear(buf);
        m->count = 0;
        break;
    case 1:
    case 2:
    case 3:
        sl_buf_consume(buf, consumed);
        memmove(m->bytes, m->bytes + consumed, m->count - consumed);
        m->count -= consumed;
        break;
    default: {
        const sl_err err = sl_buf_append(buf, chunk, bytes);
        const bool fits = bytes <= LIMIT - m->count;
        EXPECT_RUN(fits ? err == SL_OK || err == SL_ERR_NOMEM : err == SL_ERR_TOO_LARGE, seed, step);
        if (err == SL_OK) {
            memcpy(m->bytes + m->count, chunk, bytes);
            m->count += bytes;
        }
    }
    }
}

static void run_against_model(uint64_t seed, size_t fail_at)
{
    test_alloc counter = { .fail_at = fail_at, .stays_out = seed % 2 == 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    dice d = dice_from(seed);
    model m = { .count = 0 };
    sl_buf buf;

    sl_buf_init(&buf, &alloc, LIMIT);
    for (size_t step = 0; step < 400; step++) {
        step_once(&buf, &m, &d, seed, step);
        EXPECT_RUN(buf.bytes == m.count, seed, step);
        EXPECT_RUN(m.count == 0 || memcmp(sl_buf_data(&buf), m.bytes, m.count) == 0, seed, step);
        EXPECT_RUN(buf.capacity <= LIMIT, seed, step);
    }
    sl_buf_done(&buf);
    EXPECT_RUN(counter.block_count == 0, seed, 400);
}

TEST(a_buffer_does_what_plain_bytes_would_do)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        run_against_model(seed, 0);
}

TEST(a_failed_allocation_at_any_point_leaves_the_content_of_a_buffer_unchanged)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        for (size_t fail_at = 1; fail_at <= 6; fail_at++) /* 64 to 700 bytes are five steps */
            run_against_model(seed, fail_at);
    }
}

static void consume_too_much(void)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 10);
    sl_buf_consume(&buf, 1);
}

static void add_what_was_not_reserved(void)
{
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 10);
    sl_buf_added(&buf, 1);
}

TEST(wrong_use_of_a_buffer_stops_the_program)
{
    EXPECT(aborts(consume_too_much));
    EXPECT(aborts(add_what_was_not_reserved));
}
