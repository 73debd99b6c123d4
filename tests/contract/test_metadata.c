/* tests/contract/test_metadata.c — what $maxCount, $maxAge and $tb hide when a stream is read. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>

TEST(metadata_hides_events_at_once_and_shows_them_again)
{
    static const struct {
        const char *json;
        uint64_t first; /* of the revisions 0 to 9 */
    } rows[] = {
        { "{}", 0 },
        { "{\"$maxCount\":3}", 7 },
        { "{\"$maxCount\":1}", 9 },
        { "{\"$maxCount\":10}", 0 },
        { "{\"$maxCount\":11}", 0 },
        { "{\"$maxCount\":0}", 0 },
        { "{\"$maxCount\":-1}", 0 },
        { "{\"$maxCount\":\"3\"}", 0 },
        { "{\"$maxCount\":1.5}", 0 },
        { "{\"$tb\":4}", 4 },
        { "{\"$tb\":0}", 0 },
        { "{\"$tb\":10}", 10 },
        { "{\"$tb\":1000}", 1000 },
        { "{\"$tb\":-1}", 0 },
        { "{\"$tb\":4,\"$maxCount\":3}", 7 },
        { "{\"$tb\":8,\"$maxCount\":3}", 8 },
        { "{\"$tb\":null,\"$maxCount\":3}", 7 },
        { "not json", 0 },
        { "", 0 },
        { "[{\"$tb\":4}]", 0 },
        { "{\"$tb\":4}", 4 },
    };
    rig r = rig_open();

    append(&r, "s", ANY, 1, 10);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_OK(set_metadata(&r, "s", rows[i].json).err);
        EXPECT_EQ(info_of(&r, "s").first, rows[i].first);
        expect_stream(&r, "s", rows[i].first, 9);
    }
    rig_restart(&r, SL_RESTART_KILLED);
    expect_stream(&r, "s", 4, 9);
    rig_close(&r);
}

TEST(max_count_moves_with_the_stream)
{
    rig r = rig_open();

    set_metadata(&r, "s", "{\"$maxCount\":2}"); /* may come before the stream */
    EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_MISSING);
    expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
    for (uint64_t i = 0; i < 5; i++) {
        append(&r, "s", ANY, i + 1, 1);
        expect_stream(&r, "s", i < 1 ? 0 : i - 1, i);
    }
    rig_close(&r);
}

TEST(max_age_hides_what_is_older_by_the_time_of_the_reader)
{
    static const struct {
        uint64_t
            now_s; /* after NOW_NS; events 0, 1, 2 were made 0, 10, 20 seconds after NOW_NS; max age is 15 */
        uint32_t shown;
    } rows[] = { { 0, 3 }, { 15, 3 }, { 16, 2 }, { 25, 2 }, { 26, 1 }, { 35, 1 }, { 36, 0 } };
    rig r = rig_open();
    sl_event_in events[] = { event(1), event(2), event(3) };
    const sl_op op = append_op("s", ANY, events, 3);

    events[1].created_ns += 10 * SECOND_NS;
    events[2].created_ns += 20 * SECOND_NS;
    EXPECT_OK(commit(&r, &op, 1).err);
    set_metadata(&r, "s", "{\"$maxAge\":15}");
    EXPECT_EQ(info_of(&r, "s").max_age_s, 15);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const uint64_t now_ns = NOW_NS + rows[i].now_s * SECOND_NS;
        const sl_read up = { .stream = SL_STR("s"), .now_ns = now_ns };
        const sl_read down = {
            .stream = SL_STR("s"), .now_ns = now_ns, .backwards = true, .from = UINT64_MAX
        };
        SL_CLEANUP(page_free) page forwards = read_by(&r, &up, 2);
        SL_CLEANUP(page_free) page backwards = read_by(&r, &down, 2);

        EXPECT_EQ(forwards.count, rows[i].shown);
        EXPECT_EQ(backwards.count, rows[i].shown);
        EXPECT_ERR(forwards.ended, SL_ERR_EMPTY); /* also with nothing left: the stream is there */
    }
    rig_close(&r);
}

TEST(a_read_of_everything_ignores_metadata)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 10);
    set_metadata(&r, "s", "{\"$maxCount\":1,\"$maxAge\":1,\"$tb\":9}");
    EXPECT_EQ(count_all(&r), 11);
    rig_close(&r);
}

TEST(a_metadata_stream_shows_its_last_event_only)
{
    rig r = rig_open();

    expect_unreadable(&r, "$$s", SL_ERR_NOT_FOUND);
    for (uint64_t i = 0; i < 3; i++) {
        expect_written(set_metadata(&r, "s", "{}"), i);
        expect_stream(&r, "$$s", i, i);
    }
    EXPECT_EQ(info_of(&r, "$$s").max_count, 1);
    expect_refused(append(&r, "$$s", EXACT(1), 1, 1), SL_ERR_WRONG_REVISION, 2);
    expect_refused(append(&r, "$$s", NO_STREAM, 1, 1), SL_ERR_WRONG_REVISION, 2);
    rig_close(&r);
}

TEST(the_last_event_of_one_append_to_a_metadata_stream_counts)
{
    rig r = rig_open();
    sl_event_in events[] = { event(1), event(2) };
    const sl_op op = append_op("$$s", NO_STREAM, events, 2);

    append(&r, "s", ANY, 10, 5);
    events[0].data = SL_STR("{\"$tb\":1}");
    events[1].data = SL_STR("{\"$maxCount\":2}");
    EXPECT_OK(commit(&r, &op, 1).err);
    EXPECT_EQ(info_of(&r, "s").truncate_before, 0);
    expect_stream(&r, "s", 3, 4);
    rig_close(&r);
}

TEST(hostile_metadata_means_nothing_and_harms_nothing)
{
    static char deep[SL_METADATA_BYTES_MAX + 1], many[SL_METADATA_BYTES_MAX + 1];
    const char *const texts[] = { deep,
                                  many,
                                  "{\"$tb\":1e400}",
                                  "{\"$tb\":1e300,\"$maxCount\":1e19}",
                                  "{\"$tb\":\"\\ud800\"}",
                                  "{\"$tb\":NaN}",
                                  "{\"$maxAge\":99999999999999999999999999}",
                                  "{\"$tb\":3}garbage",
                                  "{",
                                  "\xff\xfe" };
    rig r = rig_open();

    memset(deep, '[', SL_METADATA_BYTES_MAX);
    for (size_t i = 0; i + 10 < SL_METADATA_BYTES_MAX; i += 10)
        memcpy(many + i, i == 0 ? "{\"$tb\":77," : "\"$tb\":078,", 10);
    append(&r, "s", ANY, 1, 3);
    for (size_t i = 0; i < SL_COUNT_OF(texts); i++) {
        EXPECT_OK(set_metadata(&r, "s", texts[i]).err);
        expect_stream(&r, "s", 0, 2);
    }
    rig_close(&r);
}

TEST(of_two_members_with_one_name_the_last_counts)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 9);
    set_metadata(&r, "s", "{\"$tb\":3,\"x\":{\"$tb\":4},\"$tb\":5}");
    expect_stream(&r, "s", 5, 8);
    rig_close(&r);
}
