/* The directory of streams: finding, linking, undoing, and what it costs. */
#include "../base/support.h"

#include "store/directory.h"

static const sl_hash_seed seed = { 5, 6 };

static sl_directory directory_new(const sl_alloc *alloc)
{
    sl_directory directory;

    EXPECT_OK(sl_directory_init(&directory, alloc, seed));
    return directory;
}

static uint32_t add(sl_directory *directory, const char *name)
{
    uint32_t id = SL_STREAM_NO_ID;

    EXPECT_OK(sl_directory_add(directory, sl_str_from(name), &id));
    return id;
}

TEST(streams_are_found_by_name_and_by_id)
{
    sl_directory directory = directory_new(&sl_alloc_default);
    const uint32_t a = add(&directory, "a"), b = add(&directory, "b");

    EXPECT_EQ(a, 0);
    EXPECT_EQ(b, 1);
    EXPECT_EQ(add(&directory, "a"), a);
    EXPECT(sl_directory_find(&directory, SL_STR("b")) == sl_directory_at(&directory, b));
    EXPECT(sl_str_equal(sl_stream_name(sl_directory_at(&directory, b)), SL_STR("b")));
    EXPECT(sl_directory_find(&directory, SL_STR("c")) == NULL);
    EXPECT_EQ(sl_directory_at(&directory, a)->last, SL_REVISION_NONE);
    sl_directory_done(&directory);
}

TEST(a_metadata_stream_and_its_stream_know_each_other)
{
    sl_directory directory = directory_new(&sl_alloc_default);
    const uint32_t early = add(&directory, "early"), early_metadata = add(&directory, "$$early");
    const uint32_t late_metadata = add(&directory, "$$late"), late = add(&directory, "late");

    EXPECT_EQ(sl_directory_at(&directory, early)->partner, early_metadata);
    EXPECT_EQ(sl_directory_at(&directory, early_metadata)->partner, early);
    EXPECT_EQ(sl_directory_at(&directory, late)->partner, late_metadata);
    EXPECT(sl_directory_at(&directory, late_metadata)->is_metadata);
    EXPECT(!sl_directory_at(&directory, late)->is_metadata);
    EXPECT_EQ(directory.count, 4);
    sl_directory_done(&directory);
}

TEST(an_event_of_a_metadata_stream_changes_what_its_stream_shows)
{
    sl_directory directory = directory_new(&sl_alloc_default);
    const uint32_t s = add(&directory, "s"), metadata = add(&directory, "$$s");
    const sl_stream *const stream = sl_directory_at(&directory, s);

    EXPECT_OK(sl_directory_event(&directory, s, 9, SL_STR("{\"$tb\":5}"))); /* its own data means nothing */
    EXPECT_EQ(sl_directory_first(stream), 0);
    EXPECT_OK(
        sl_directory_event(&directory, metadata, 0, SL_STR("{\"$maxCount\":3,\"$maxAge\":4,\"$tb\":5}")));
    EXPECT_EQ(stream->last, 9);
    EXPECT_EQ(sl_directory_first(stream), 7);
    EXPECT_EQ(stream->keep.max_age_s, 4);
    EXPECT_OK(sl_directory_event(&directory, metadata, 1, SL_STR("{}")));
    EXPECT_EQ(sl_directory_first(stream), 0);
    EXPECT_EQ(sl_directory_first(sl_directory_at(&directory, metadata)), 1);
    sl_directory_done(&directory);
}

TEST(age_is_compared_without_wrapping)
{
    static const struct {
        uint64_t max_age_s, created_ns, now_ns;
        bool expired;
    } rows[] = {
        { 0, 0, UINT64_MAX, false },
        { 1, 0, 1000000000, false },
        { 1, 0, 1000000001, true },
        { 1, 5000000000, 1, false }, /* made in the future */
        { UINT64_MAX, 0, UINT64_MAX, false },
        { 18446744073, 0, UINT64_MAX, true },
        { 18446744074, 0, UINT64_MAX, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_stream stream = { .keep.max_age_s = rows[i].max_age_s };

        EXPECT_ROW(sl_directory_expired(&stream, rows[i].created_ns, rows[i].now_ns) == rows[i].expired, i);
    }
}

/* --- undoing --- */

TEST(rolling_back_undoes_numbers_streams_and_links)
{
    sl_directory directory = directory_new(&sl_alloc_default);
    const uint32_t s = add(&directory, "s");
    sl_stream_info info;
    size_t mark;

    EXPECT_OK(sl_directory_event(&directory, s, 3, (sl_str){ 0 }));
    mark = sl_directory_mark(&directory);
    EXPECT_OK(sl_directory_event(&directory, s, 4, (sl_str){ 0 }));
    EXPECT_OK(sl_directory_event(&directory, add(&directory, "$$s"), 0, SL_STR("{\"$tb\":2}")));
    EXPECT_OK(sl_directory_event(&directory, add(&directory, "$$new"), 0, SL_STR("{\"$tb\":2}")));
    EXPECT_OK(sl_directory_event(&directory, s, SL_REVISION_MAX, (sl_str){ 0 }));
    EXPECT_EQ(directory.count, 4);
    sl_directory_rollback(&directory, mark);
    EXPECT_EQ(directory.count, 1);
    EXPECT(sl_directory_find(&directory, SL_STR("$$s")) == NULL);
    EXPECT(sl_directory_find(&directory, SL_STR("new")) == NULL);
    EXPECT_EQ(sl_directory_at(&directory, s)->partner, SL_STREAM_NO_ID);
    sl_directory_info(&directory, SL_STR("s"), &info);
    EXPECT(info.state == SL_STREAM_LIVE && info.revision == 3 && info.first == 0);
    EXPECT_EQ(add(&directory, "other"), 1); /* the ids are given out again */
    sl_directory_done(&directory);
}

TEST(rolling_back_to_an_older_mark_includes_the_newer)
{
    sl_directory directory = directory_new(&sl_alloc_default);
    const size_t first = sl_directory_mark(&directory);
    size_t second;

    add(&directory, "a");
    second = sl_directory_mark(&directory);
    add(&directory, "b");
    sl_directory_rollback(&directory, second);
    EXPECT(sl_directory_find(&directory, SL_STR("a")) != NULL &&
           sl_directory_find(&directory, SL_STR("b")) == NULL);
    add(&directory, "c");
    sl_directory_rollback(&directory, first);
    EXPECT_EQ(directory.count, 0);
    add(&directory, "a");
    sl_directory_forget(&directory);
    sl_directory_rollback(&directory, 0);
    EXPECT_EQ(directory.count, 1); /* final */
    sl_directory_done(&directory);
}

/* A name of `bytes` bytes that differs for each number. */
static sl_str long_name(uint64_t number, size_t bytes)
{
    static char text[SL_STREAM_NAME_BYTES_MAX + 1];

    memset(text, 'x', sizeof text);
    snprintf(text, 24, "%023llu", (unsigned long long)number);
    return (sl_str){ text, bytes };
}

TEST(refused_batches_with_new_names_fill_no_memory)
{
    test_alloc t = { 0 };
    const sl_alloc alloc = test_alloc_use(&t);
    sl_directory directory = directory_new(&alloc);
    size_t bytes_then = 0;

    for (uint64_t i = 0; i < 5000; i++) {
        const size_t mark = sl_directory_mark(&directory);
        uint32_t id;

        for (uint64_t at = 0; at < 40; at++) /* more names than a chunk holds */
            EXPECT_OK(sl_directory_add(&directory, long_name(40 * i + at, SL_STREAM_NAME_BYTES_MAX), &id));
        sl_directory_rollback(&directory, mark);
        if (i == 0)
            bytes_then = t.byte_count;
        EXPECT(t.byte_count <= bytes_then);
    }
    sl_directory_done(&directory);
    EXPECT_EQ(t.block_count, 0);
}

TEST(a_hundred_thousand_streams_cost_what_is_stated_and_are_all_found)
{
    enum {
        STREAMS = 100 * 1000,
        NAME = 40
    };
    test_alloc t = { 0 };
    const sl_alloc alloc = test_alloc_use(&t);
    sl_directory directory = directory_new(&alloc);
    uint32_t id;

    for (uint64_t i = 0; i < STREAMS; i++) {
        EXPECT_OK(sl_directory_add(&directory, long_name(i, NAME), &id));
        EXPECT_EQ(id, i);
        sl_directory_forget(&directory);
    }
    EXPECT(t.byte_count <= (size_t)STREAMS * (80 + 16 + NAME)); /* directory.h says so */
    for (uint64_t i = 0; i < STREAMS; i++) {
        const sl_stream *const stream = sl_directory_find(&directory, long_name(i, NAME));

        EXPECT(stream != NULL && stream->id == i);
    }
    sl_directory_done(&directory);
    EXPECT_EQ(t.block_count, 0);
}

/* --- no memory --- */

static sl_err fill(sl_directory *directory)
{
    sl_err err = SL_OK;

    for (uint64_t i = 0; i < 1500 && err == SL_OK; i++) {
        uint32_t id = 0;

        err = sl_directory_add(directory, long_name(i, 30), &id);
        if (err == SL_OK)
            err = sl_directory_event(directory, id, i, (sl_str){ 0 });
    }
    return err;
}

TEST(without_memory_a_stream_is_made_completely_or_not_at_all)
{
    test_alloc counting = { 0 };
    const sl_alloc count = test_alloc_use(&counting);
    sl_directory whole = directory_new(&count);

    EXPECT_OK(fill(&whole));
    sl_directory_done(&whole);
    for (size_t fail_at = 2; fail_at <= counting.call_count; fail_at++) {
        test_alloc t = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&t);
        sl_directory directory = directory_new(&alloc);

        EXPECT_ERR(fill(&directory), SL_ERR_NOMEM);
        EXPECT_EQ(directory.count, directory.map.count);
        EXPECT_OK(fill(&directory)); /* there is memory again */
        sl_directory_rollback(&directory, 0);
        EXPECT_EQ(directory.count, 0);
        sl_directory_done(&directory);
        EXPECT_EQ(t.block_count, 0);
    }
}
