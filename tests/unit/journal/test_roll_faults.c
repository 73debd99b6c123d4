/* tests/unit/journal/test_roll_faults.c — rolls: damage is seen, and a merge can be cut short anywhere. */
#include "base/cleanup.h"
#include "rolls.h"
#include "store/journal/roll_file.h"

/* --- damage --- */

TEST(every_flipped_bit_of_a_roll_is_seen)
{
    static const char name[] = "0000000000000001.roll";
    dice d = dice_from(8);
    uint64_t bytes = 0;
    static rolls r;

    rolls_begin(&r);
    rolls_add_segment(&r, &d, 20, 60);
    assert_non_null(sl_faulty_content(r.faulty, name, &bytes));
    for (uint64_t offset = 0; offset < bytes; offset += SWEEP_STEP) {
        const unsigned bit = (unsigned)dice_pick(&d, 8);
        EXPECT(sl_faulty_flip(r.faulty, name, offset, bit));
        EXPECT_ROW(rolls_load(&r, 1) == SL_ERR_CORRUPT, offset);
        EXPECT(sl_faulty_flip(r.faulty, name, offset, bit));
    }
    EXPECT_OK(rolls_load(&r, 1));
    EXPECT(rolls_like_model(&r));
    rolls_end(&r);
}

TEST(a_roll_of_another_length_is_refused_by_its_header_alone)
{
    static const char name[] = "0000000000000001.roll";
    dice d = dice_from(10);
    sl_file *file = NULL;
    sl_roll_info info;
    uint64_t bytes = 0;
    static rolls r;

    rolls_begin(&r);
    rolls_add_segment(&r, &d, 20, 60);
    assert_non_null(sl_faulty_content(r.faulty, name, &bytes));
    EXPECT_OK(r.disk->ops->open(r.disk, name, &file));
    EXPECT_OK(r.disk->ops->write(file, bytes, "x", 1));
    r.disk->ops->close(file);
    EXPECT_ERR(sl_roll_look(r.disk, made_store(), 1, &info), SL_ERR_CORRUPT);
    rolls_end(&r);
}

TEST(a_roll_of_another_store_or_segment_or_version_is_refused)
{
    sl_uuid other = made_store();
    sl_roll_writer writer;
    sl_roll_info info;
    dice d = dice_from(9);
    static rolls r;

    rolls_begin(&r);
    rolls_add_segment(&r, &d, 20, 60);
    other.bytes[0]++;
    EXPECT_ERR(sl_roll_look(r.disk, other, 1, &info), SL_ERR_CORRUPT);
    EXPECT_OK(r.disk->ops->rename(r.disk, "0000000000000001.roll", "0000000000000002.roll"));
    EXPECT_ERR(sl_roll_look(r.disk, made_store(), 2, &info), SL_ERR_CORRUPT);
    EXPECT_ERR(sl_roll_look(r.disk, made_store(), 1, &info), SL_ERR_NOT_FOUND);
    EXPECT_OK(sl_roll_writer_open(&writer, r.disk, made_store(), 1, 1));
    writer.id.version = 2;
    EXPECT_OK(sl_roll_writer_commit(&writer));
    sl_roll_writer_done(&writer);
    EXPECT_ERR(sl_roll_look(r.disk, made_store(), 1, &info), SL_ERR_VERSION);
    rolls_end(&r);
}

/* With right checksums, by somebody who wants to do harm. */
TEST(a_hostile_roll_is_refused)
{
    enum {
        FROM_AFTER_TO,
        TOO_MANY_ENTRIES,
        ONE_ENTRY_MORE,
        ONE_ENTRY_LESS,
        NAME_WITHOUT_DOLLARS,
        RIGHT,
        ROWS
    };
    static rolls r;

    rolls_begin(&r);
    r.segment_count = 1;
    for (int row = 0; row < ROWS; row++) {
        const sl_roll_entry entry = { .name = SL_STR("s0-"), .is_metadata = row == NAME_WITHOUT_DOLLARS };
        sl_roll_writer writer;
        sl_roll_info info;

        EXPECT_OK(sl_roll_writer_open(&writer, r.disk, made_store(), row == FROM_AFTER_TO ? 2 : 1, 1));
        for (int i = 0; i < 2; i++)
            EXPECT_OK(sl_roll_writer_add(&writer, &entry));
        writer.entry_count += row == TOO_MANY_ENTRIES ? UINT64_MAX / 2 : row == ONE_ENTRY_MORE;
        writer.entry_count -= row == ONE_ENTRY_LESS;
        EXPECT_OK(sl_roll_writer_commit(&writer));
        sl_roll_writer_done(&writer);
        EXPECT_ROW(rolls_load(&r, 1) == (row == RIGHT ? SL_OK : SL_ERR_CORRUPT), row);
        EXPECT_ROW((sl_roll_look(r.disk, made_store(), 1, &info) == SL_OK) == (row > TOO_MANY_ENTRIES), row);
    }
    rolls_end(&r);
}

TEST(a_roll_whose_entries_do_not_ascend_is_not_merged)
{
    static const char *const names[] = { "s0-", "s1-" };
    static rolls r;

    rolls_begin(&r);
    for (uint64_t number = 1; number <= 2; number++) {
        const bool turn = sl_stream_hash(made_store(), sl_str_from(names[0])) <
                          sl_stream_hash(made_store(), sl_str_from(names[1]));
        sl_roll_writer writer;

        EXPECT_OK(sl_roll_writer_open(&writer, r.disk, made_store(), number, number));
        for (size_t i = 0; i < 2; i++)
            EXPECT_OK(sl_roll_writer_add(&writer, &(sl_roll_entry){ .name = sl_str_from(names[i ^ turn]) }));
        EXPECT_OK(sl_roll_writer_commit(&writer));
        sl_roll_writer_done(&writer);
    }
    EXPECT_ERR(sl_roll_merge(r.disk, made_store(), 1, 2), SL_ERR_CORRUPT);
    EXPECT_EQ(rolls_count(&r), 2);
    rolls_end(&r);
}

/* --- faults --- */

static void fill_for_faults(rolls *r, uint64_t segment_count)
{
    dice d = dice_from(segment_count);

    rolls_begin(r);
    while (r->segment_count < segment_count)
        rolls_add_roll(r, &d, 20, 30);
}

TEST(every_call_that_fails_while_rolls_are_merged_is_told_and_loses_nothing)
{
    static rolls r;
    bool failed = true;

    for (uint64_t step = 0; failed; step += SWEEP_STEP) {
        sl_err err;
        fill_for_faults(&r, 18); /* more than are merged at a time: the chain gets shorter in steps */
        sl_faulty_fail_after(r.faulty, step, step % 2 ? SL_ERR_IO : SL_ERR_NO_SPACE);
        err = sl_roll_merge(r.disk, made_store(), 1, 18);
        failed = sl_faulty_failed(r.faulty);
        sl_faulty_fail_after(r.faulty, UINT64_MAX, SL_OK);
        EXPECT_ROW(failed ? err == SL_ERR_IO || err == SL_ERR_NO_SPACE : err == SL_OK, step);
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_ROW(rolls_like_model(&r), step);
        EXPECT_OK(sl_roll_merge(r.disk, made_store(), 1, 18));
        EXPECT_EQ(rolls_count(&r), 1);
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_ROW(rolls_like_model(&r), step);
        rolls_end(&r);
    }
}

TEST(a_power_cut_at_any_call_of_a_merge_loses_no_stream)
{
    static rolls r;
    bool is_dead = true;

    for (uint64_t step = 0; is_dead; step += SWEEP_STEP) {
        fill_for_faults(&r, 18);
        sl_faulty_cut_after(r.faulty, step, 77 * step + 1);
        (void)sl_roll_merge(r.disk, made_store(), 1, 18);
        is_dead = sl_faulty_is_dead(r.faulty);
        sl_faulty_cut_after(r.faulty, UINT64_MAX, 0);
        r.disk->ops->free(r.disk);
        r.disk = sl_faulty_door(r.faulty);
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_ROW(rolls_like_model(&r), step);
        EXPECT_OK(sl_roll_merge(r.disk, made_store(), 1, 18));
        EXPECT_EQ(rolls_count(&r), 1); /* also what was left under a passing name is gone */
        EXPECT_OK(rolls_load(&r, 1));
        EXPECT_ROW(rolls_like_model(&r), step);
        rolls_end(&r);
    }
}

TEST(every_call_that_fails_while_a_roll_is_built_is_told_and_leaves_nothing_half_made)
{
    char memory[SL_STREAM_NAME_BYTES_MAX];
    made_segment made;
    bool failed = true;
    uint64_t offset;
    sl_roll_info info;
    static rolls r;

    rolls_begin(&r);
    made_init(&made, 1, 1, 0);
    for (size_t i = 0; i < 300; i++)
        made_event(&made, i, rolls_name(i, memory), 0, SL_STR(""));
    made_write(&made, r.disk);
    for (uint64_t step = 0; failed; step++) {
        sl_err err;
        sl_faulty_fail_after(r.faulty, step, SL_ERR_IO);
        err = sl_roll_build(r.disk, &made.ref, &offset);
        failed = sl_faulty_failed(r.faulty);
        sl_faulty_fail_after(r.faulty, UINT64_MAX, SL_OK);
        EXPECT_ROW(err == (failed ? SL_ERR_IO : SL_OK), step);
        EXPECT_ERR(sl_roll_look(r.disk, made_store(), 1, &info), failed ? SL_ERR_NOT_FOUND : SL_OK);
    }
    EXPECT_EQ(rolls_count(&r), 1);
    made_done(&made);
    rolls_end(&r);
}
