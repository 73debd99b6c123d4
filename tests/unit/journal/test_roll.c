/* tests/unit/journal/test_roll.c — rolls: every stream is known, and the newest word counts. */
#include "base/cleanup.h"
#include "rolls.h"
#include "store/journal/cache_file.h"
#include "store/journal/caches.h"
#include "store/journal/index.h"

/* --- building and merging --- */

typedef struct order {
    uint64_t hash, count;
} order;

static sl_err expect_ascending(void *ctx, const sl_roll_entry *entry)
{
    order *const o = ctx;
    const uint64_t hash = sl_stream_hash(made_store(), entry->name);

    EXPECT(o->count == 0 || hash > o->hash);
    *o = (order){ .hash = hash, .count = o->count + 1 };
    return SL_OK;
}

TEST(a_roll_says_the_last_word_on_each_stream_of_its_segment_in_the_order_of_hashes)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        dice d = dice_from(seed);
        order o = { 0 };
        sl_roll_info info;
        static rolls r;

        rolls_begin(&r);
        rolls_add_segment(&r, &d, seed == 1 ? 1 : STREAMS_MAX, seed == 1 ? 1 : 600 * seed);
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_RUN(rolls_like_model(&r), seed, 0);
        EXPECT_OK(sl_roll_each(r.disk, made_store(), 1, expect_ascending, &o));
        EXPECT_OK(sl_roll_look(r.disk, made_store(), 1, &info));
        EXPECT(info.from == 1 && info.to == 1 && info.entry_count == o.count);
        rolls_end(&r);
    }
}

TEST(a_segment_without_events_has_an_empty_roll)
{
    sl_roll_info info;
    dice d = dice_from(1);
    static rolls r;

    rolls_begin(&r);
    rolls_add_segment(&r, &d, 1, 0);
    EXPECT_OK(sl_roll_look(r.disk, made_store(), 1, &info));
    EXPECT_EQ(info.entry_count, 0);
    EXPECT_OK(rolls_load(&r, 1));
    EXPECT(rolls_like_model(&r));
    rolls_end(&r);
}

TEST(index_and_roll_from_one_walk_are_the_same_as_from_two)
{
    static const char *const names[] = { "0000000000000001.idx", "0000000000000001.roll" };
    char memory[SL_STREAM_NAME_BYTES_MAX];
    uint8_t *before[2];
    uint64_t bytes[2], offset;
    made_segment made;
    static rolls r;

    rolls_begin(&r);
    made_init(&made, 1, 1, 0);
    for (size_t i = 0; i < 500; i++)
        made_event(&made, i, rolls_name(i % 100, memory), i / 100, SL_STR("{\"$maxAge\":5}"));
    made_write(&made, r.disk);
    EXPECT_OK(sl_index_build(r.disk, &made.ref, &offset));
    EXPECT_OK(sl_roll_build(r.disk, &made.ref, &offset));
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *const content = sl_faulty_content(r.faulty, names[i], &bytes[i]);
        before[i] = malloc(bytes[i]);
        memcpy(before[i], content, bytes[i]);
        EXPECT_OK(r.disk->ops->remove(r.disk, names[i]));
    }
    EXPECT_OK(sl_index_and_roll_build(r.disk, &made.ref, &offset));
    for (size_t i = 0; i < 2; i++) {
        uint64_t bytes_now = 0;
        const uint8_t *const content = sl_faulty_content(r.faulty, names[i], &bytes_now);
        EXPECT_EQ(bytes_now, bytes[i]);
        EXPECT_MEM(content, before[i], bytes[i]);
        free(before[i]);
    }
    made_done(&made);
    rolls_end(&r);
}

TEST(merged_rolls_say_what_the_chain_said_and_are_one_file)
{
    static const uint64_t counts[] = { 1, 2, 5, 16, 17, 33, SEGMENTS_MAX };

    for (size_t i = 0; i < SL_COUNT_OF(counts); i++) {
        dice d = dice_from(i);
        sl_roll_info info;
        order o = { 0 };
        static rolls r;

        rolls_begin(&r);
        while (r.segment_count < counts[i])
            rolls_add_segment(&r, &d, STREAMS_MAX, dice_pick(&d, 300));
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_RUN(rolls_like_model(&r), i, 0);
        EXPECT_OK(sl_roll_merge(r.disk, made_store(), 1, r.segment_count));
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_RUN(rolls_like_model(&r), i, 1);
        EXPECT_EQ(rolls_count(&r), 1);
        EXPECT_OK(sl_roll_look(r.disk, made_store(), r.segment_count, &info));
        EXPECT(info.from == 1 && info.to == counts[i]);
        EXPECT_OK(
            sl_roll_each(r.disk, made_store(), r.segment_count, expect_ascending, &o)); /* each stream once */
        EXPECT_EQ(o.count, info.entry_count);
        rolls_end(&r);
    }
}

/* The large one is merged with newer ones again and again, as in a store that runs for long. */
TEST(a_roll_grows_by_merging_when_it_is_due)
{
    dice d = dice_from(3);
    unsigned merges = 0;
    static rolls r;

    rolls_begin(&r);
    while (r.segment_count < SEGMENTS_MAX) {
        rolls_add_segment(&r, &d, STREAMS_MAX, dice_pick(&d, 400));
        if (sl_roll_is_due(r.disk, made_store(), 1, r.segment_count)) {
            EXPECT_OK(sl_roll_merge(r.disk, made_store(), 1, r.segment_count));
            EXPECT(!sl_roll_is_due(r.disk, made_store(), 1, r.segment_count));
            merges++;
        }
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_RUN(rolls_like_model(&r), 3, r.segment_count);
    }
    EXPECT(merges > 3 && merges < SEGMENTS_MAX - 1);
    rolls_end(&r);
}

TEST(rolls_are_due_when_the_newer_have_half_as_many_entries_as_the_large_one)
{
    dice d = dice_from(4);
    made_segment made;
    uint64_t offset;
    char memory[SL_STREAM_NAME_BYTES_MAX];
    static rolls r;

    rolls_begin(&r);
    EXPECT(!sl_roll_is_due(r.disk, made_store(), 1, 1)); /* there is none */
    for (uint64_t number = 1; number <= 3; number++) {
        static const size_t entries[] = { 0, 10, 4, 1 };
        made_init(&made, number, number * 100, 0);
        for (size_t i = 0; i < entries[number]; i++)
            made_event(&made, i, rolls_name(i, memory), dice_pick(&d, 9), SL_STR(""));
        made_write(&made, r.disk);
        EXPECT_OK(sl_roll_build(r.disk, &made.ref, &offset));
        made_done(&made);
        EXPECT_EQ(sl_roll_is_due(r.disk, made_store(), 1, number), number == 3);
    }
    EXPECT(!sl_roll_is_due(r.disk, made_store(), 0, 3)); /* the roll of segment 0 is missing */
    EXPECT(sl_roll_is_due(r.disk, made_store(), 2, 3) == false);
    rolls_end(&r);
}

/* Segments at the front go, and what the first roll covers then begins before the first segment. */
TEST(a_roll_that_begins_before_the_first_segment_covers_it)
{
    dice d = dice_from(5);
    static rolls r;

    rolls_begin(&r);
    while (r.segment_count < 4)
        rolls_add_segment(&r, &d, 30, 100);
    EXPECT_OK(sl_roll_merge(r.disk, made_store(), 1, 3));
    EXPECT_OK(sl_roll_merge(r.disk, made_store(), 2, 4));
    EXPECT_EQ(rolls_count(&r), 1);
    EXPECT_OK(rolls_load(&r, 2));
    EXPECT(rolls_like_model(&r));
    rolls_end(&r);
}

TEST(a_chain_with_a_missing_roll_names_it_and_is_not_merged)
{
    dice d = dice_from(6);
    sl_roll_chain chain = { 0 };
    uint64_t number = 0;
    static rolls r;

    rolls_begin(&r);
    while (r.segment_count < 4)
        rolls_add_segment(&r, &d, 30, 100);
    EXPECT_OK(r.disk->ops->remove(r.disk, "0000000000000002.roll"));
    EXPECT_ERR(sl_roll_chain_find(r.disk, made_store(), 1, 4, &chain, &number), SL_ERR_NOT_FOUND);
    EXPECT_EQ(number, 2);
    EXPECT_ERR(sl_roll_merge(r.disk, made_store(), 1, 4), SL_ERR_NOT_FOUND);
    EXPECT_EQ(rolls_count(&r), 3);
    EXPECT_OK(sl_roll_chain_find(r.disk, made_store(), 3, 4, &chain, &number));
    EXPECT(chain.count == 2 && chain.rolls[0].to == 3 && chain.rolls[1].to == 4);
    sl_roll_chain_done(&chain);
    rolls_end(&r);
}

static sl_err refuse(void *ctx, const sl_roll_entry *entry)
{
    (void)entry;
    return *(const sl_err *)ctx;
}

TEST(the_first_error_of_whoever_visits_a_roll_is_given_back)
{
    dice d = dice_from(7);
    sl_err errors[] = { SL_ERR_NOMEM, SL_ERR_EMPTY };
    static rolls r;

    rolls_begin(&r);
    rolls_add_segment(&r, &d, 30, 100);
    for (size_t i = 0; i < SL_COUNT_OF(errors); i++)
        EXPECT_ERR(sl_roll_each(r.disk, made_store(), 1, refuse, &errors[i]), errors[i]);
    rolls_end(&r);
}

TEST(the_number_in_the_name_of_a_file_is_read_back_and_other_names_are_not_taken_for_one)
{
    static const char *const others[] = { "",
                                          "0000000000000001.idx",
                                          "0000000000000001.roll.tmp",
                                          "000000000000001.roll",
                                          "000000000000000X.roll",
                                          "00000000000000AB.roll",
                                          " 00000000000001.roll",
                                          "+000000000000001.roll",
                                          "0x00000000000001.roll",
                                          "0000000000000001-roll" };
    static const uint64_t numbers[] = { 0, 1, 0xabcdef, UINT64_MAX };
    char name[SL_CACHE_NAME_BYTES];
    uint64_t number = 7;

    for (size_t i = 0; i < SL_COUNT_OF(others); i++)
        EXPECT_ROW(!sl_cache_number(others[i], "roll", &number), i);
    EXPECT_EQ(number, 7);
    for (size_t i = 0; i < SL_COUNT_OF(numbers); i++) {
        sl_cache_name(numbers[i], "roll", name);
        EXPECT_ROW(sl_cache_number(name, "roll", &number) && number == numbers[i], i);
    }
}
