/* tests/contract/test_append.c — expected revisions and repeated appends: the table of store/verdict.h, as seen through
 * the door. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>

/* --- states of a stream x expectations --- */

typedef enum state {
    NEVER,         /* not heard of */
    METADATA_ONLY, /* no events */
    LIVE,          /* revisions 0 and 1 */
    SOFT,          /* the same, soft-deleted */
    TOMB           /* the same, tombstoned */
} state;

/* A fresh stream in that state; its name is valid until the next call. */
static const char *make(rig *r, state wanted)
{
    static char name[32];
    static uint64_t number;
    sl_op op;

    snprintf(name, sizeof name, "made-%llu", (unsigned long long)++number);
    if (wanted == METADATA_ONLY)
        expect_written(set_metadata(r, name, "{}"), 0);
    if (wanted == LIVE || wanted == SOFT || wanted == TOMB)
        expect_written(append(r, name, NO_STREAM, 10 * number, 2), 1);
    op = wanted == SOFT ? delete_op(name, EXACT(1)) : tombstone_op(name, EXACT(1));
    if (wanted == SOFT || wanted == TOMB)
        EXPECT_OK(commit(r, &op, 1).err);
    return name;
}

typedef struct row {
    state state;
    sl_expected expected;
    sl_err err;
    uint64_t revision; /* of the result */
} row;

static void expect_row(answer a, const row *wanted, size_t index)
{
    if (a.err != wanted->err || a.results[0].revision != wanted->revision || a.results[0].repeated)
        fail_msg("row %zu: \"%s\" with revision %lld, wanted \"%s\" with %lld", index, sl_err_text(a.err),
                 (long long)a.results[0].revision, sl_err_text(wanted->err), (long long)wanted->revision);
}

#define WRONG SL_ERR_WRONG_REVISION
#define GONE  SL_ERR_STREAM_DELETED
#define DEAD  SL_REVISION_MAX

TEST(an_append_is_written_or_refused_by_state_and_expectation)
{
    const row rows[] = {
        { NEVER, ANY, SL_OK, 0 },
        { NEVER, NO_STREAM, SL_OK, 0 },
        { NEVER, EXISTS, WRONG, NONE },
        { NEVER, EXACT(0), WRONG, NONE },
        { METADATA_ONLY, ANY, SL_OK, 0 },
        { METADATA_ONLY, NO_STREAM, SL_OK, 0 },
        { METADATA_ONLY, EXISTS, SL_OK, 0 },
        { METADATA_ONLY, EXACT(0), WRONG, NONE },
        { LIVE, ANY, SL_OK, 2 },
        { LIVE, NO_STREAM, WRONG, 1 },
        { LIVE, EXISTS, SL_OK, 2 },
        { LIVE, EXACT(0), WRONG, 1 },
        { LIVE, EXACT(1), SL_OK, 2 },
        { LIVE, EXACT(2), WRONG, 1 },
        { LIVE, EXACT(DEAD), WRONG, 1 },
        { SOFT, ANY, SL_OK, 2 },
        { SOFT, NO_STREAM, SL_OK, 2 },
        { SOFT, EXISTS, GONE, 1 },
        { SOFT, EXACT(0), WRONG, 1 },
        { SOFT, EXACT(1), SL_OK, 2 },
        { SOFT, EXACT(2), WRONG, 1 },
        { TOMB, ANY, GONE, DEAD },
        { TOMB, NO_STREAM, GONE, DEAD },
        { TOMB, EXISTS, GONE, DEAD },
        { TOMB, EXACT(1), GONE, DEAD },
        { TOMB, EXACT(DEAD), GONE, DEAD },
    };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        expect_row(append(&r, make(&r, rows[i].state), rows[i].expected, 100000 + i, 1), &rows[i], i);
    rig_close(&r);
}

TEST(an_append_of_no_events_asks_and_writes_nothing)
{
    const row rows[] = {
        { NEVER, ANY, SL_OK, NONE },
        { NEVER, NO_STREAM, SL_OK, NONE },
        { NEVER, EXISTS, WRONG, NONE },
        { NEVER, EXACT(0), WRONG, NONE },
        { METADATA_ONLY, EXISTS, SL_OK, NONE },
        { LIVE, ANY, SL_OK, 1 },
        { LIVE, NO_STREAM, WRONG, 1 },
        { LIVE, EXISTS, SL_OK, 1 },
        { LIVE, EXACT(0), WRONG, 1 },
        { LIVE, EXACT(1), SL_OK, 1 },
        { LIVE, EXACT(2), WRONG, 1 },
        { SOFT, ANY, SL_OK, 1 },
        { SOFT, NO_STREAM, WRONG, 1 },
        { SOFT, EXISTS, GONE, 1 },
        { SOFT, EXACT(1), SL_OK, 1 },
        { TOMB, ANY, SL_OK, DEAD },
        { TOMB, NO_STREAM, WRONG, DEAD },
        { TOMB, EXACT(1), WRONG, DEAD },
    };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const char *const stream = make(&r, rows[i].state);
        const uint32_t before = count_all(&r);
        const sl_stream_state state_before = info_of(&r, stream).state;
        const answer a = append(&r, stream, rows[i].expected, 0, 0);

        expect_row(a, &rows[i], i);
        EXPECT_EQ(count_all(&r), before);
        EXPECT_EQ(info_of(&r, stream).state, state_before);
        if (a.err == SL_OK && before > 0)
            EXPECT_EQ(a.results[0].position, sl_store_end(r.store) - 1);
    }
    rig_close(&r);
}

TEST(a_soft_delete_is_written_or_refused_by_state_and_expectation)
{
    const row rows[] = {
        { NEVER, ANY, WRONG, NONE },
        { NEVER, NO_STREAM, WRONG, NONE },
        { NEVER, EXISTS, WRONG, NONE },
        { NEVER, EXACT(0), WRONG, NONE },
        { METADATA_ONLY, ANY, SL_OK, NONE },
        { METADATA_ONLY, NO_STREAM, SL_OK, NONE },
        { METADATA_ONLY, EXISTS, SL_OK, NONE },
        { METADATA_ONLY, EXACT(0), WRONG, NONE },
        { LIVE, ANY, SL_OK, 1 },
        { LIVE, NO_STREAM, WRONG, 1 },
        { LIVE, EXISTS, SL_OK, 1 },
        { LIVE, EXACT(0), WRONG, 1 },
        { LIVE, EXACT(1), SL_OK, 1 },
        { LIVE, EXACT(2), WRONG, 1 },
        { SOFT, ANY, SL_OK, 1 },
        { SOFT, NO_STREAM, SL_OK, 1 },
        { SOFT, EXISTS, GONE, 1 },
        { SOFT, EXACT(1), SL_OK, 1 },
        { SOFT, EXACT(0), WRONG, 1 },
        { TOMB, ANY, GONE, DEAD },
        { TOMB, NO_STREAM, GONE, DEAD },
        { TOMB, EXISTS, GONE, DEAD },
        { TOMB, EXACT(1), GONE, DEAD },
    };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const char *const stream = make(&r, rows[i].state);
        const sl_op op = delete_op(stream, rows[i].expected);

        expect_row(commit(&r, &op, 1), &rows[i], i);
        if (rows[i].err == SL_OK)
            expect_unreadable(&r, stream, SL_ERR_NOT_FOUND);
    }
    rig_close(&r);
}

TEST(a_tombstone_is_written_or_refused_by_state_and_expectation)
{
    const row rows[] = {
        { NEVER, ANY, SL_OK, DEAD },
        { NEVER, NO_STREAM, SL_OK, DEAD },
        { NEVER, EXISTS, WRONG, NONE },
        { NEVER, EXACT(0), WRONG, NONE },
        { METADATA_ONLY, ANY, SL_OK, DEAD },
        { METADATA_ONLY, NO_STREAM, SL_OK, DEAD },
        { METADATA_ONLY, EXISTS, SL_OK, DEAD },
        { METADATA_ONLY, EXACT(0), WRONG, NONE },
        { LIVE, ANY, SL_OK, DEAD },
        { LIVE, NO_STREAM, WRONG, 1 },
        { LIVE, EXISTS, SL_OK, DEAD },
        { LIVE, EXACT(0), WRONG, 1 },
        { LIVE, EXACT(1), SL_OK, DEAD },
        { SOFT, ANY, SL_OK, DEAD },
        { SOFT, NO_STREAM, SL_OK, DEAD },
        { SOFT, EXISTS, GONE, 1 },
        { SOFT, EXACT(1), SL_OK, DEAD },
        { SOFT, EXACT(0), WRONG, 1 },
        { TOMB, ANY, GONE, DEAD },
        { TOMB, NO_STREAM, GONE, DEAD },
        { TOMB, EXISTS, GONE, DEAD },
        { TOMB, EXACT(1), GONE, DEAD },
    };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const char *const stream = make(&r, rows[i].state);
        const sl_op op = tombstone_op(stream, rows[i].expected);

        expect_row(commit(&r, &op, 1), &rows[i], i);
        if (rows[i].err == SL_OK)
            expect_unreadable(&r, stream, SL_ERR_STREAM_DELETED);
    }
    rig_close(&r);
}

/* --- repeats --- */

TEST(a_repeated_append_is_answered_with_its_first_numbers)
{
    const sl_expected expectations[] = { ANY, EXISTS, NO_STREAM, EXACT(1) };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(expectations); i++) {
        char stream[32];
        const sl_expected expected = expectations[i];
        const bool behind =
            expected.kind != SL_EXPECT_NO_STREAM; /* else it is the first append to the stream */
        const uint64_t base = 100 * (i + 1), last = behind ? 4 : 2;
        answer first;

        snprintf(stream, sizeof stream, "repeat-%zu", i);
        if (behind)
            append(&r, stream, NO_STREAM, base, 2);
        first = append(&r, stream, expected, base + 10, 3);
        expect_written(first, last);
        expect_repeated(append(&r, stream, expected, base + 10, 3), last, first.results[0].position);
        append(&r, stream, ANY, base + 20, 2); /* others came after it */
        expect_repeated(append(&r, stream, expected, base + 10, 3), last, first.results[0].position);
        expect_stream(&r, stream, 0, last + 2);
    }
    rig_close(&r);
}

TEST(the_beginning_of_an_earlier_append_counts_as_repeated)
{
    rig r = rig_open();
    const answer first = append(&r, "s", NO_STREAM, 1, 3);

    expect_repeated(append(&r, "s", NO_STREAM, 1, 2), 1, first.results[0].position - 1);
    expect_repeated(append(&r, "s", ANY, 1, 1), 0, first.results[0].position - 2);
    expect_repeated(append(&r, "s", EXACT(0), 2, 2), 2, first.results[0].position);
    expect_stream(&r, "s", 0, 2);
    rig_close(&r);
}

TEST(an_append_of_which_only_the_beginning_is_there_is_refused)
{
    rig r = rig_open();

    append(&r, "s", NO_STREAM, 1, 2);
    expect_refused(append(&r, "s", NO_STREAM, 1, 3), SL_ERR_WRONG_REVISION, 1);
    expect_refused(append(&r, "s", ANY, 1, 3), SL_ERR_WRONG_REVISION, 1);
    expect_refused(append(&r, "s", EXISTS, 2, 2), SL_ERR_WRONG_REVISION, 1);
    expect_refused(append(&r, "s", EXACT(0), 2, 2), SL_ERR_WRONG_REVISION, 1);
    expect_stream(&r, "s", 0, 1);
    rig_close(&r);
}

TEST(a_known_id_behind_a_new_one_is_written_again)
{
    rig r = rig_open();
    const sl_event_in events[] = { event(50), event(1) };
    const sl_op op = append_op("s", ANY, events, 2);

    append(&r, "s", NO_STREAM, 1, 2);
    expect_written(commit(&r, &op, 1), 3);
    rig_close(&r);
}

TEST(an_id_is_known_only_in_its_own_stream)
{
    rig r = rig_open();

    append(&r, "s", ANY, 1, 2);
    expect_written(append(&r, "t", ANY, 1, 2), 1);
    expect_written(append(&r, "u", NO_STREAM, 1, 2), 1);
    rig_close(&r);
}

TEST(at_the_right_revision_no_id_is_looked_at)
{
    rig r = rig_open();

    append(&r, "s", NO_STREAM, 1, 2);
    expect_written(append(&r, "s", EXACT(1), 1, 2), 3);
    rig_close(&r);
}

TEST(two_events_of_one_append_may_have_one_id)
{
    rig r = rig_open();
    const sl_event_in events[] = { event(1), event(1) };
    const sl_op op = append_op("s", ANY, events, 2);
    const answer first = commit(&r, &op, 1);

    expect_written(first, 1);
    expect_repeated(commit(&r, &op, 1), 1, first.results[0].position);
    expect_stream(&r, "s", 0, 1);
    rig_close(&r);
}

TEST(a_repeat_with_other_data_leaves_the_first_data)
{
    rig r = rig_open();
    sl_event_in changed = event(1);
    const sl_op op = append_op("s", NO_STREAM, &changed, 1);
    const sl_read how = { .stream = SL_STR("s") };
    page p;

    append(&r, "s", NO_STREAM, 1, 1);
    changed.data = SL_STR("something else");
    EXPECT(commit(&r, &op, 1).results[0].repeated);
    p = read_by(&r, &how, 1); /* compares the data with that of event(1) */
    EXPECT_EQ(p.count, 1);
    page_free(&p);
    rig_close(&r);
}

/* With an exact revision the stream itself says what is there; that needs no memory of recent ids. */
TEST(a_repeat_at_an_exact_revision_is_known_after_a_restart)
{
    rig r = rig_open();
    const answer first = append(&r, "s", NO_STREAM, 1, 3);

    rig_restart(&r, SL_RESTART_KILLED);
    expect_repeated(append(&r, "s", NO_STREAM, 1, 3), 2, first.results[0].position);
    expect_repeated(append(&r, "s", EXACT(1), 3, 1), 2, first.results[0].position);
    expect_refused(append(&r, "s", NO_STREAM, 7, 1), SL_ERR_WRONG_REVISION, 2);
    rig_close(&r);
}

TEST(a_repeat_is_known_in_a_soft_deleted_stream)
{
    rig r = rig_open();
    const sl_op op = delete_op("s", ANY);
    const answer first = append(&r, "s", NO_STREAM, 1, 2);

    EXPECT_OK(commit(&r, &op, 1).err);
    expect_repeated(append(&r, "s", NO_STREAM, 1, 2), 1, first.results[0].position);
    expect_refused(append(&r, "s", NO_STREAM, 1, 3), SL_ERR_WRONG_REVISION, 1);
    expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
    expect_written(append(&r, "s", NO_STREAM, 5, 1), 2);
    rig_close(&r);
}

TEST(positions_grow_with_every_event_and_are_never_given_twice)
{
    rig r = rig_open();
    uint64_t last = 0;

    for (uint64_t i = 0; i < 20; i++) {
        const answer a = append(&r, i % 2 == 0 ? "even" : "odd", ANY, 10 * i + 1, 2);

        EXPECT(a.results[0].position >= last + 2);
        last = a.results[0].position;
        if (i % 5 == 4)
            rig_restart(&r, SL_RESTART_KILLED);
    }
    rig_close(&r);
}
