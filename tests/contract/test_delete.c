/* tests/contract/test_delete.c — soft deletes and tombstones: what is hidden, and what comes back. */
#include "rig.h"

#include "base/cleanup.h"

static void soft_delete(rig *r, const char *stream)
{
    const sl_op op = delete_op(stream, ANY);

    EXPECT_OK(commit(r, &op, 1).err);
}

static void tombstone(rig *r, const char *stream)
{
    const sl_op op = tombstone_op(stream, ANY);

    EXPECT_OK(commit(r, &op, 1).err);
}

/* The newest event of a stream, copied as far as the tests look at it. */
static void expect_newest(rig *r, const char *stream, const char *type, const char *data)
{
    const sl_read how = { .stream = sl_str_from(stream), .backwards = true, .from = UINT64_MAX };
    sl_cursor *cursor = NULL;
    sl_event e;

    EXPECT_OK(sl_store_read(r->store, &how, &cursor));
    EXPECT_OK(next_one(r, cursor, &e));
    EXPECT(sl_str_equal(e.type, sl_str_from(type)));
    if (!sl_str_equal(e.data, sl_str_from(data)))
        fail_msg("data is %.*s", (int)e.data.bytes, e.data.data);
    EXPECT(sl_str_equal(e.stream, sl_str_from(stream)));
    EXPECT(!sl_uuid_is_zero(e.id));
    EXPECT_EQ(e.created_ns, NOW_NS);
    sl_cursor_close(cursor);
}

TEST(a_soft_deleted_stream_is_not_found_and_says_so)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 3);
    soft_delete(&r, "s");
    expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
    EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_SOFT_DELETED);
    EXPECT_EQ(info_of(&r, "s").revision, 2);
    EXPECT_EQ(info_of(&r, "s").truncate_before, SL_REVISION_MAX);
    expect_newest(&r, "$$s", "$metadata", "{\"$tb\":9223372036854775807}");
    EXPECT_EQ(count_all(&r), 4); /* what is hidden in the stream stays among all events */
    rig_close(&r);
}

TEST(an_append_revives_a_soft_deleted_stream_without_its_old_events)
{
    rig r = rig_open();
    answer a;

    append(&r, "s", ANY, 1, 3);
    soft_delete(&r, "s");
    a = append(&r, "s", ANY, 10, 2);
    expect_written(a, 4);
    expect_stream(&r, "s", 3, 4);
    EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_LIVE);
    expect_newest(&r, "$$s", "$metadata", "{\"$tb\":3}");
    rig_restart(&r, SL_RESTART_KILLED);
    expect_stream(&r, "s", 3, 4);
    EXPECT_EQ(count_all(&r), 7); /* 3 + 2 events, 2 of metadata */
    rig_close(&r);
}

TEST(reviving_keeps_the_other_metadata_byte_by_byte)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 2);
    set_metadata(&r, "s", "{ \"$tb\" : 9223372036854775807, \"big\":12345678901234567890, \"$maxCount\":9}");
    expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
    append(&r, "s", ANY, 10, 1);
    expect_stream(&r, "s", 2, 2);
    expect_newest(&r, "$$s", "$metadata", "{\"big\":12345678901234567890,\"$maxCount\":9,\"$tb\":2}");
    EXPECT_EQ(info_of(&r, "s").max_count, 9);
    rig_close(&r);
}

TEST(a_soft_delete_loses_the_other_metadata)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 2);
    set_metadata(&r, "s", "{\"$maxCount\":1}");
    soft_delete(&r, "s");
    append(&r, "s", ANY, 10, 3);
    EXPECT_EQ(info_of(&r, "s").max_count, 0);
    expect_stream(&r, "s", 2, 4);
    rig_close(&r);
}

TEST(writing_metadata_revives_a_soft_deleted_stream_with_nothing_in_it)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 2);
    soft_delete(&r, "s");
    set_metadata(&r, "s", "{\"$maxCount\":5,\"$tb\":0}");
    expect_newest(&r, "$$s", "$metadata", "{\"$maxCount\":5,\"$tb\":2}");
    EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_LIVE);
    expect_stream(&r, "s", 1, 0); /* there, and empty */
    append(&r, "s", EXACT(1), 10, 1);
    expect_stream(&r, "s", 2, 2);
    rig_close(&r);
}

TEST(a_stream_can_be_deleted_and_revived_again_and_again)
{
    rig r = rig_open();

    for (uint64_t i = 0; i < 5; i++) {
        expect_written(append(&r, "s", NO_STREAM, 10 * i + 1, 2), 2 * i + 1);
        expect_stream(&r, "s", 2 * i, 2 * i + 1);
        soft_delete(&r, "s");
        soft_delete(&r, "s");
        expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
        rig_restart(&r, i % 2 == 0 ? SL_RESTART_KILLED : SL_RESTART_POWER_CUT);
    }
    rig_close(&r);
}

TEST(a_tombstone_is_for_ever)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 3);
    tombstone(&r, "s");
    for (int i = 0; i < 2; i++) {
        expect_unreadable(&r, "s", SL_ERR_STREAM_DELETED);
        EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_TOMBSTONED);
        EXPECT_EQ(info_of(&r, "s").revision, SL_REVISION_MAX);
        expect_refused(append(&r, "s", ANY, 10, 1), SL_ERR_STREAM_DELETED, SL_REVISION_MAX);
        EXPECT_EQ(count_all(&r), 4);
        rig_restart(&r, SL_RESTART_KILLED);
    }
    rig_close(&r);
}

TEST(a_tombstoned_stream_shows_its_end_to_who_asks_for_it)
{
    rig r = rig_open();
    const sl_op removal = tombstone_op("s", ANY), never = tombstone_op("never", ANY);

    append(&r, "s", ANY, 1, 3);
    append(&r, "$$s", ANY, 9, 1);
    EXPECT_OK(commit(&r, &removal, 1).err);
    EXPECT_OK(commit(&r, &never, 1).err);
    for (int restarted = 0; restarted < 2; restarted++) {
        static const struct {
            const char *stream;
            uint64_t from;
            bool has_event;
        } rows[] = { { "s", 0, true },
                     { "s", 2, true },
                     { "s", 77, true },
                     { "s", SL_REVISION_MAX, true },
                     { "s", SL_REVISION_MAX + UINT64_C(1), false },
                     { "never", 0, true } };

        for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
            const sl_read how = { .stream = sl_str_from(rows[i].stream),
                                  .from = rows[i].from,
                                  .shows_end = true };
            sl_cursor *cursor = NULL;
            sl_event e;

            EXPECT_OK(sl_store_read(r.store, &how, &cursor));
            if (rows[i].has_event) {
                EXPECT_OK(next_one(&r, cursor, &e));
                EXPECT_EQ(e.revision, SL_REVISION_MAX);
                EXPECT(sl_str_equal(e.type, SL_STR("$streamDeleted")));
            }
            EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_STREAM_DELETED);
            sl_cursor_close(cursor);
        }
        expect_unreadable(&r, "s", SL_ERR_STREAM_DELETED);
        EXPECT_ERR(sl_store_read(r.store, &(sl_read){ .stream = SL_STR("$$s"), .shows_end = true },
                                 &(sl_cursor *){ NULL }),
                   SL_ERR_STREAM_DELETED);
        EXPECT_ERR(sl_store_read(r.store, &(sl_read){ .stream = SL_STR("missing"), .shows_end = true },
                                 &(sl_cursor *){ NULL }),
                   SL_ERR_NOT_FOUND);
        rig_restart(&r, SL_RESTART_KILLED);
    }
    rig_close(&r);
}

TEST(the_metadata_stream_of_a_tombstoned_stream_counts_as_deleted)
{
    rig r = rig_open();

    append(&r, "with", ANY, 1, 1);
    set_metadata(&r, "with", "{}");
    tombstone(&r, "with");
    tombstone(&r, "without");
    EXPECT_ERR(set_metadata(&r, "with", "{}").err, SL_ERR_STREAM_DELETED);
    EXPECT_ERR(set_metadata(&r, "without", "{}").err, SL_ERR_STREAM_DELETED);
    expect_unreadable(&r, "$$with", SL_ERR_STREAM_DELETED);
    expect_unreadable(&r, "$$without", SL_ERR_STREAM_DELETED);
    EXPECT_EQ(info_of(&r, "$$with").state, SL_STREAM_TOMBSTONED);
    EXPECT_EQ(info_of(&r, "$$without").state, SL_STREAM_TOMBSTONED);
    rig_close(&r);
}

/* A catch-up subscription gets the event that says so, and then the error. */
TEST(an_open_cursor_gives_the_tombstone_and_nothing_it_hides)
{
    rig r = rig_open();
    const sl_read up = { .stream = SL_STR("s") };
    const sl_read down = { .stream = SL_STR("s"), .backwards = true, .from = UINT64_MAX };
    const sl_op op = tombstone_op("s", ANY);
    sl_cursor *forwards = NULL, *backwards = NULL;
    sl_event e;
    answer a;

    append(&r, "s", ANY, 1, 3);
    EXPECT_OK(sl_store_read(r.store, &up, &forwards));
    EXPECT_OK(sl_store_read(r.store, &down, &backwards));
    EXPECT_OK(next_one(&r, forwards, &e));
    EXPECT_OK(next_one(&r, backwards, &e));
    EXPECT_EQ(e.revision, 2);
    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_SYNC, &a));
    EXPECT_ERR(next_one(&r, forwards, &e), SL_ERR_EMPTY); /* not durable yet, but what it hides is hidden */
    sl_store_turn(r.store);
    wait_for(&r, 2);
    EXPECT_OK(next_one(&r, forwards, &e));
    EXPECT_EQ(e.revision, SL_REVISION_MAX);
    EXPECT(sl_str_equal(e.type, SL_STR("$streamDeleted")));
    EXPECT_EQ(e.data.bytes, 0);
    EXPECT_ERR(next_one(&r, forwards, &e), SL_ERR_STREAM_DELETED);
    EXPECT_ERR(next_one(&r, forwards, &e), SL_ERR_STREAM_DELETED);
    EXPECT_ERR(next_one(&r, backwards, &e), SL_ERR_STREAM_DELETED);
    sl_cursor_close(forwards);
    sl_cursor_close(backwards);
    rig_close(&r);
}

TEST(an_open_cursor_waits_over_a_soft_delete_for_new_events)
{
    rig r = rig_open();
    const sl_read up = { .stream = SL_STR("s") };
    sl_cursor *cursor = NULL;
    sl_event e;

    append(&r, "s", ANY, 1, 3);
    EXPECT_OK(sl_store_read(r.store, &up, &cursor));
    EXPECT_OK(next_one(&r, cursor, &e));
    soft_delete(&r, "s");
    EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_EMPTY);
    append(&r, "s", ANY, 10, 1);
    EXPECT_OK(next_one(&r, cursor, &e));
    EXPECT_EQ(e.revision, 3);
    EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_EMPTY);
    sl_cursor_close(cursor);
    rig_close(&r);
}
