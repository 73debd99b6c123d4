/* tests/unit/journal/test_index_faults.c — index files: damage is seen, and no half-made file is left. */
#include "base/cleanup.h"
#include "index_rig.h"
#include "store/journal/caches.h"
#include "store/journal/index_build.h"

/* --- damage --- */

TEST(every_flipped_bit_of_an_index_file_is_seen)
{
    dice d = dice_from(3);
    uint64_t bytes = 0;
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 12, 700);
    rig_build(&r);
    EXPECT_OK(rig_look_at_everything(&r));
    assert_non_null(sl_faulty_content(r.faulty, RIG_INDEX, &bytes));
    EXPECT_EQ(bytes, 7 * SL_INDEX_BLOCK_BYTES);
    for (uint64_t offset = 0; offset < bytes; offset += SWEEP_STEP) {
        const unsigned bit = (unsigned)dice_pick(&d, 8);
        EXPECT(sl_faulty_flip(r.faulty, RIG_INDEX, offset, bit));
        EXPECT_ROW(rig_look_at_everything(&r) == SL_ERR_CORRUPT, offset);
        EXPECT(sl_faulty_flip(r.faulty, RIG_INDEX, offset, bit));
    }
    EXPECT_OK(rig_look_at_everything(&r));
    rig_end(&r);
}

/* Writes a file of its own in place of the index. */
static void replace_index(rig *r, const uint8_t *bytes, uint64_t byte_count)
{
    sl_file *file = NULL;

    EXPECT_OK(sl_index_remove(r->disk, RIG_NUMBER));
    EXPECT_OK(r->disk->ops->create(r->disk, RIG_INDEX, 0, NULL, &file));
    EXPECT_OK(r->disk->ops->write(file, 0, bytes, byte_count));
    r->disk->ops->close(file);
}

static uint8_t *copy_index(rig *r, uint64_t *ret_bytes)
{
    const uint8_t *const content = sl_faulty_content(r->faulty, RIG_INDEX, ret_bytes);
    uint8_t *const copy = malloc(*ret_bytes + SL_INDEX_BLOCK_BYTES);

    assert_non_null(copy);
    memset(copy, 0, *ret_bytes + SL_INDEX_BLOCK_BYTES);
    memcpy(copy, content, *ret_bytes);
    return copy;
}

TEST(an_index_file_of_another_length_or_with_moved_blocks_is_refused)
{
    dice d = dice_from(4);
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    uint64_t bytes = 0;
    uint8_t *copy;
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 12, 700);
    rig_build(&r);
    copy = copy_index(&r, &bytes);
    for (uint64_t length = 0; length <= bytes + SL_INDEX_BLOCK_BYTES; length += SL_INDEX_BLOCK_BYTES / 2) {
        replace_index(&r, copy, length);
        EXPECT_ROW(rig_look_at_everything(&r) == (length == bytes ? SL_OK : SL_ERR_CORRUPT), length);
    }
    memcpy(block, copy + SL_INDEX_BLOCK_BYTES,
           sizeof block); /* the first two blocks of entries change places */
    memcpy(copy + SL_INDEX_BLOCK_BYTES, copy + 2 * SL_INDEX_BLOCK_BYTES, sizeof block);
    memcpy(copy + 2 * SL_INDEX_BLOCK_BYTES, block, sizeof block);
    replace_index(&r, copy, bytes);
    EXPECT_ERR(rig_look_at_everything(&r), SL_ERR_CORRUPT);
    free(copy);
    rig_end(&r);
}

TEST(an_index_of_another_version_of_the_segment_is_refused)
{
    sl_segment_ref refs[6];
    sl_index *index = NULL;
    rig r;

    rig_begin(&r, 0);
    made_event(&r.made, 0, SL_STR("a"), 0, SL_STR(""));
    rig_build(&r);
    for (size_t i = 0; i < SL_COUNT_OF(refs); i++)
        refs[i] = r.made.ref;
    refs[1].rewrites++;
    refs[2].first--;
    refs[3].end++;
    refs[4].store.bytes[15]++;
    refs[5].number++;
    for (size_t i = 0; i < SL_COUNT_OF(refs); i++) {
        const sl_err wanted[] = { SL_OK,          SL_ERR_CORRUPT, SL_ERR_CORRUPT,
                                  SL_ERR_CORRUPT, SL_ERR_CORRUPT, SL_ERR_NOT_FOUND };
        const sl_err err = sl_index_open(r.disk, &refs[i], &index);
        EXPECT_ROW(err == wanted[i], i);
        if (err == SL_OK)
            sl_index_close(index);
    }
    EXPECT_OK(r.disk->ops->rename(r.disk, RIG_INDEX, "000000000000002b.idx"));
    EXPECT_ERR(sl_index_open(r.disk, &refs[5], &index),
               SL_ERR_CORRUPT); /* the name alone does not make it one */
    rig_end(&r);
}

/* Whoever makes a header knows checksums too: what it says is held against the size of the file. */
TEST(a_hostile_header_of_an_index_is_refused_before_anything_is_taken)
{
    static const struct {
        sl_index_section section;
        sl_index_extent said;
    } rows[] = {
        { SL_INDEX_ENTRIES, { UINT32_MAX, 1 } }, { SL_INDEX_ENTRIES, { 0, 1 } },
        { SL_INDEX_FENCES, { UINT32_MAX, 2 } },  { SL_INDEX_FENCES, { 1, 0 } },
        { SL_INDEX_PLACES, { UINT32_MAX, 3 } },  { SL_INDEX_PLACES, { 1, UINT32_MAX } },
        { SL_INDEX_SIEVE, { 1u << 31, 4 } },     { SL_INDEX_SIEVE, { 3, 4 } },
        { SL_INDEX_SIEVE, { 8192, 4 } },
    };
    uint64_t bytes = 0;
    uint8_t *copy;
    rig r;

    rig_begin(&r, 0);
    made_event(&r.made, 0, SL_STR("a"), 0, SL_STR(""));
    rig_build(&r);
    copy = copy_index(&r, &bytes);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_index_header header;
        uint8_t block[SL_INDEX_BLOCK_BYTES];
        EXPECT_OK(sl_index_header_get(copy, bytes, &header));
        header.sections[rows[i].section] = rows[i].said;
        sl_index_header_put(&header, block);
        EXPECT_ROW(sl_index_header_get(block, bytes, &header) == SL_ERR_CORRUPT, i);
        EXPECT_ROW(sl_index_header_get(block, UINT64_MAX, &header) == SL_ERR_CORRUPT, i);
    }
    free(copy);
    rig_end(&r);
}

TEST(an_index_file_of_a_later_version_is_told_from_damage)
{
    sl_index_header header;
    sl_index *index = NULL;
    uint64_t bytes = 0;
    uint8_t *copy;
    rig r;

    rig_begin(&r, 0);
    rig_build(&r);
    copy = copy_index(&r, &bytes);
    EXPECT_OK(sl_index_header_get(copy, bytes, &header));
    header.id.version = 2;
    sl_index_header_put(&header, copy);
    replace_index(&r, copy, bytes);
    EXPECT_ERR(sl_index_open(r.disk, &r.made.ref, &index), SL_ERR_VERSION);
    free(copy);
    rig_end(&r);
}

TEST(an_index_that_does_not_say_what_the_segment_says_is_found_by_verify)
{
    dice d = dice_from(6);
    sl_index_builder builder;
    uint64_t offset = 1;
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 12, 700);
    rig_build(&r);
    EXPECT_OK(sl_index_verify(r.disk, &r.made.ref, &offset));

    sl_index_builder_init(&builder, &r.made.ref); /* right in itself, but one revision is wrong */
    for (size_t i = 0; i < r.made.record_count; i++) {
        const made_record *const record = &r.made.records[i];
        EXPECT_OK(sl_index_builder_record(&builder, record->position, record->place));
        if (record->is_event)
            EXPECT_OK(sl_index_builder_event(&builder, record->hash, record->revision, record->place.offset));
    }
    EXPECT_OK(sl_index_builder_finish(&builder));
    builder.entries[300].offset++;
    EXPECT_OK(sl_index_builder_write(&builder, r.disk));
    sl_index_builder_done(&builder);
    EXPECT_OK(rig_look_at_everything(&r));
    EXPECT_ERR(sl_index_verify(r.disk, &r.made.ref, &offset), SL_ERR_CORRUPT);
    EXPECT_EQ(offset, 2 * SL_INDEX_BLOCK_BYTES);
    EXPECT_OK(sl_index_remove(r.disk, RIG_NUMBER));
    EXPECT_ERR(sl_index_verify(r.disk, &r.made.ref, &offset), SL_ERR_NOT_FOUND);
    EXPECT_OK(sl_index_remove(r.disk, RIG_NUMBER)); /* and again: there is none, and that is fine */
    rig_end(&r);
}

TEST(a_damaged_segment_gets_no_index_and_the_place_is_named)
{
    uint64_t offset = 0;
    sl_index *index = NULL;
    rig r;

    rig_begin(&r, 0);
    made_event(&r.made, 0, SL_STR("a"), 0, SL_STR("first"));
    made_end_frame(&r.made);
    made_event(&r.made, 0, SL_STR("a"), 1, SL_STR("second"));
    made_write(&r.made, r.disk);
    EXPECT(sl_faulty_flip(r.faulty, RIG_SEGMENT, r.made.records[1].place.offset + 60, 3));
    EXPECT_ERR(sl_index_and_roll_build(r.disk, &r.made.ref, &offset), SL_ERR_CORRUPT);
    EXPECT_EQ(offset, r.made.records[0].place.frame_end);
    EXPECT_ERR(sl_index_open(r.disk, &r.made.ref, &index), SL_ERR_NOT_FOUND);
    rig_end(&r);
}

/* --- faults --- */

static void count_name(void *ctx, const char *name)
{
    *(unsigned *)ctx += strstr(name, ".seg") == NULL;
}

TEST(every_call_that_fails_while_an_index_is_built_is_told_and_leaves_nothing_half_made)
{
    static const sl_err errors[] = { SL_ERR_IO, SL_ERR_NO_SPACE };

    for (size_t e = 0; e < SL_COUNT_OF(errors); e++) {
        dice d = dice_from(e);
        unsigned name_count = 0;
        uint64_t step = 0, offset;
        sl_index *index = NULL;
        rig r;

        rig_begin(&r, 0);
        rig_fill(&r, &d, 12, 700);
        made_write(&r.made, r.disk);
        for (;; step++) {
            sl_faulty_fail_after(r.faulty, step, errors[e]);
            const sl_err err = sl_index_build(r.disk, &r.made.ref, &offset);
            if (!sl_faulty_failed(r.faulty)) {
                EXPECT_OK(err);
                break;
            }
            EXPECT_ROW(err == SL_ERR_IO || err == SL_ERR_NO_SPACE, step);
            sl_faulty_fail_after(r.faulty, UINT64_MAX, SL_OK);
            EXPECT_ERR(sl_index_open(r.disk, &r.made.ref, &index), SL_ERR_NOT_FOUND);
        }
        EXPECT(step >= 6); /* reads, create, writes, sync, rename at least */
        sl_faulty_fail_after(r.faulty, UINT64_MAX, SL_OK);
        sl_faulty_each(r.faulty, count_name, &name_count);
        EXPECT_EQ(name_count, 1); /* nothing is left under a passing name */
        EXPECT_OK(rig_look_at_everything(&r));
        rig_end(&r);
    }
}

TEST(every_call_that_fails_while_an_index_is_opened_is_told)
{
    dice d = dice_from(8);
    uint64_t step = 0;
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 12, 700);
    rig_build(&r);
    for (;; step++) {
        sl_faulty_fail_after(r.faulty, step, SL_ERR_IO);
        const sl_err err = rig_look_at_everything(&r);
        if (!sl_faulty_failed(r.faulty))
            break;
        EXPECT_ROW(err == SL_ERR_IO, step);
    }
    EXPECT(step > 3);
    rig_end(&r);
}

static void rig_restart(rig *r)
{
    if (!sl_faulty_is_dead(r->faulty))
        sl_faulty_power_cut(r->faulty, 1);
    r->disk->ops->close(r->made.ref.file);
    r->disk->ops->free(r->disk);
    sl_faulty_settle(r->faulty);
    r->disk = sl_faulty_door(r->faulty);
    EXPECT_OK(r->disk->ops->open(r->disk, RIG_SEGMENT, &r->made.ref.file));
}

/* The power goes at each call: under its name the file is whole or not there. The second time there is one already, which
 * stays until the new one is whole. */
TEST(a_power_cut_while_an_index_is_built_leaves_a_whole_file_or_none)
{
    bool done = false;

    for (uint64_t step = 0; !done; step++) {
        for (uint64_t with_old = 0; with_old < 2; with_old++) {
            dice d = dice_from(2);
            uint64_t offset;
            sl_err err;
            rig r;

            rig_begin(&r, 0);
            rig_fill(&r, &d, 12, 700);
            made_write(&r.made, r.disk);
            if (with_old)
                EXPECT_OK(sl_index_build(r.disk, &r.made.ref, &offset));
            sl_faulty_cut_after(r.faulty, step, 31 * step + with_old);
            (void)sl_index_build(r.disk, &r.made.ref, &offset);
            done = !sl_faulty_is_dead(r.faulty);
            rig_restart(&r);
            err = rig_look_at_everything(&r);
            EXPECT_ROW(err == SL_OK || (err == SL_ERR_NOT_FOUND && !with_old && !done), step);
            EXPECT_OK(sl_index_build(r.disk, &r.made.ref, &offset)); /* whatever was left is no hindrance */
            EXPECT_OK(rig_look_at_everything(&r));
            rig_end(&r);
        }
    }
}
