/* tests/contract/test_read.c — reading: by revision and by position, in both directions, with all the borders. */
#include "rig.h"

#include "base/cleanup.h"
#include "store/filter.h"

#include <stdio.h>

/* Reads and compares the numbers of the events with `wanted`, which ends with 0. */
static void expect_numbers(rig *r, const sl_read *how, const uint64_t *wanted)
{
    for (uint32_t step = 1; step <= 4; step++) {
        SL_CLEANUP(page_free) page p = read_by(r, how, step);
        uint32_t count = 0;

        EXPECT_OK(p.opened);
        EXPECT_ERR(p.ended, SL_ERR_EMPTY);
        for (; wanted[count] != 0; count++)
            EXPECT(count < p.count && p.seen[count].number == wanted[count]);
        EXPECT_EQ(p.count, count);
    }
}

#define NUMBERS(...) ((const uint64_t[]){ __VA_ARGS__, 0 })
#define NOTHING      ((const uint64_t[]){ 0 })

TEST(a_stream_is_read_from_any_revision_in_both_directions)
{
    rig r = rig_open();
    const sl_str s = SL_STR("s");

    append(&r, "other", ANY, 100, 3);
    append(&r, "s", ANY, 10, 4); /* revision n is event 10 + n */
    append(&r, "other", ANY, 200, 3);
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 0 }, NUMBERS(10, 11, 12, 13));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 2 }, NUMBERS(12, 13));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 3 }, NUMBERS(13));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 4 }, NOTHING);
    expect_numbers(&r, &(sl_read){ .stream = s, .from = UINT64_MAX }, NOTHING);
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 0, .backwards = true }, NUMBERS(10));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 2, .backwards = true }, NUMBERS(12, 11, 10));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 3, .backwards = true }, NUMBERS(13, 12, 11, 10));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 4, .backwards = true }, NUMBERS(13, 12, 11, 10));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = UINT64_MAX, .backwards = true },
                   NUMBERS(13, 12, 11, 10));
    rig_close(&r);
}

TEST(a_read_below_the_first_revision_begins_at_the_first)
{
    rig r = rig_open();
    const sl_str s = SL_STR("s");

    append(&r, "s", ANY, 10, 5);
    set_metadata(&r, "s", "{\"$tb\":3}");
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 1, .now_ns = NOW_NS }, NUMBERS(13, 14));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 3, .backwards = true }, NUMBERS(13));
    expect_numbers(&r, &(sl_read){ .stream = s, .from = 2, .backwards = true }, NOTHING);
    rig_close(&r);
}

TEST(everything_is_read_by_position_inclusive_forwards_and_exclusive_backwards)
{
    rig r = rig_open();
    const uint64_t last = append(&r, "a", ANY, 1, 2).results[0].position;
    const sl_op create = create_op(1, "a record between them is no event");
    uint64_t at;

    EXPECT_OK(commit(&r, &create, 1).err);
    at = append(&r, "b", ANY, 3, 1).results[0].position;
    append(&r, "a", ANY, 4, 1);
    EXPECT(at > last);
    expect_numbers(&r, &(sl_read){ .from = 0 }, NUMBERS(1, 2, 3, 4));
    expect_numbers(&r, &(sl_read){ .from = SL_POSITION_FIRST }, NUMBERS(1, 2, 3, 4));
    expect_numbers(&r, &(sl_read){ .from = at }, NUMBERS(3, 4));
    expect_numbers(&r, &(sl_read){ .from = last + 1 }, NUMBERS(3, 4)); /* between two: from the next on */
    expect_numbers(&r, &(sl_read){ .from = at + 1 }, NUMBERS(4));
    expect_numbers(&r, &(sl_read){ .from = sl_store_end(r.store) }, NOTHING);
    expect_numbers(&r, &(sl_read){ .from = UINT64_MAX }, NOTHING);
    expect_numbers(&r, &(sl_read){ .from = UINT64_MAX, .backwards = true }, NUMBERS(4, 3, 2, 1));
    expect_numbers(&r, &(sl_read){ .from = sl_store_end(r.store), .backwards = true }, NUMBERS(4, 3, 2, 1));
    expect_numbers(&r, &(sl_read){ .from = at, .backwards = true }, NUMBERS(2, 1));
    expect_numbers(&r, &(sl_read){ .from = at + 1, .backwards = true }, NUMBERS(3, 2, 1));
    expect_numbers(&r, &(sl_read){ .from = SL_POSITION_FIRST, .backwards = true }, NOTHING);
    expect_numbers(&r, &(sl_read){ .from = 0, .backwards = true }, NOTHING);
    rig_close(&r);
}

TEST(an_empty_store_has_nothing_to_read)
{
    rig r = rig_open();

    expect_unreadable(&r, "s", SL_ERR_NOT_FOUND);
    expect_numbers(&r, &(sl_read){ .from = 0 }, NOTHING);
    expect_numbers(&r, &(sl_read){ .from = UINT64_MAX, .backwards = true }, NOTHING);
    EXPECT_EQ(info_of(&r, "s").state, SL_STREAM_MISSING);
    EXPECT_EQ(info_of(&r, "s").revision, NONE);
    EXPECT(sl_store_end(r.store) >= SL_POSITION_FIRST); /* a store may have records of its own */
    rig_close(&r);
}

TEST(every_field_of_an_event_comes_back)
{
    rig r = rig_open();
    const sl_event_in in = { .id = sl_uuid_from_halves(INT64_MIN, -1),
                             .type = SL_STR("Bestellung bezahlt €"),
                             .data = SL_STR("\0\1\xff"),
                             .metadata = SL_STR("\xfe"),
                             .is_json = true,
                             .created_ns = UINT64_MAX };
    const sl_op op = append_op("s", ANY, &in, 1);
    const sl_read how = { .stream = SL_STR("s") };
    const answer a = commit(&r, &op, 1);

    for (int i = 0; i < 2; i++) {
        sl_cursor *cursor = NULL;
        sl_event e;

        EXPECT_OK(sl_store_read(r.store, &how, &cursor));
        EXPECT_OK(next_one(&r, cursor, &e));
        EXPECT(sl_uuid_equal(e.id, in.id));
        EXPECT(sl_str_equal(e.type, in.type) && sl_str_equal(e.data, in.data) &&
               sl_str_equal(e.metadata, in.metadata));
        EXPECT(sl_str_equal(e.stream, SL_STR("s")) && e.is_json && e.created_ns == in.created_ns);
        EXPECT(e.revision == 0 && e.position == a.results[0].position);
        sl_cursor_close(cursor);
        rig_restart(&r, SL_RESTART_KILLED);
    }
    rig_close(&r);
}

TEST(a_cursor_follows_the_tail)
{
    const sl_read hows[] = { { .from = 0 }, { .stream = SL_STR("s") } };
    rig r = rig_open();

    append(&r, "s", ANY, 1, 2);
    for (size_t i = 0; i < SL_COUNT_OF(hows); i++) {
        uint64_t number = 100 * (i + 1);
        sl_cursor *cursor = NULL;
        sl_event e;
        sl_err err;

        EXPECT_OK(sl_store_read(r.store, &hows[i], &cursor));
        while ((err = next_one(&r, cursor, &e)) == SL_OK) {
        }
        for (int turn = 0; turn < 3; turn++, number++) {
            EXPECT_ERR(err, SL_ERR_EMPTY);
            append(&r, "s", ANY, number, 1);
            EXPECT_OK(next_one(&r, cursor, &e));
            EXPECT_EQ(number_of(e.id), number);
            err = next_one(&r, cursor, &e);
        }
        sl_cursor_close(cursor);
    }
    rig_close(&r);
}

TEST(views_stay_valid_until_the_next_call_on_the_cursor)
{
    rig r = rig_open();
    const sl_read how = { .from = 0 };
    sl_cursor *cursor = NULL, *other = NULL;
    sl_event events[4], e;
    uint32_t count = 0;

    append(&r, "s", ANY, 1, 4);
    EXPECT_OK(sl_store_read(r.store, &how, &cursor));
    EXPECT_OK(sl_store_read(r.store, &how, &other));
    EXPECT_OK(sl_cursor_next(cursor, events, 4, &count));
    for (uint64_t i = 0; i < 50; i++)
        append(&r, "t", ANY, 100 + 10 * i, 10);
    while (next_one(&r, other, &e) == SL_OK) {
    }
    for (uint32_t i = 0; i < count; i++) {
        char data[32];

        snprintf(data, sizeof data, "data %u", i + 1);
        EXPECT(sl_str_equal(events[i].data, sl_str_from(data)) &&
               sl_str_equal(events[i].stream, SL_STR("s")));
    }
    sl_cursor_close(cursor);
    sl_cursor_close(other);
    rig_close(&r);
}

/* --- filters --- */

static sl_filter *filter_new(sl_filter_on on, const char *prefix, const char *expression)
{
    const sl_str text = sl_str_from(prefix);
    const sl_filter_setup setup = { on, &text, prefix == NULL ? 0 : 1, sl_str_from(expression) };
    sl_filter *filter = NULL;

    EXPECT_OK(sl_filter_new(&setup, NULL, &filter));
    return filter;
}

TEST(a_filter_shows_what_matches_by_stream_or_type)
{
    static const struct {
        sl_filter_on on;
        const char *prefix, *expression;
        uint64_t numbers[8];
    } rows[] = {
        { SL_FILTER_ON_STREAM, "order-", NULL, { 1, 2, 5 } },
        { SL_FILTER_ON_STREAM, "order-2", NULL, { 5 } },
        { SL_FILTER_ON_STREAM, "", NULL, { 1, 2, 3, 4, 5 } },
        { SL_FILTER_ON_STREAM, "none", NULL, { 0 } },
        { SL_FILTER_ON_STREAM, NULL, "^[^$].*", { 1, 2, 3, 4, 5 } },
        { SL_FILTER_ON_STREAM, NULL, "^(?!(order))", { 3, 4 } },
        { SL_FILTER_ON_TYPE, "type-3", NULL, { 3 } },
        { SL_FILTER_ON_TYPE, NULL, "-[45]$", { 4, 5 } },
    };
    rig r = rig_open();

    append(&r, "order-1", ANY, 1, 2);
    append(&r, "cart-1", ANY, 3, 2);
    append(&r, "order-2", ANY, 5, 1);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_filter *const filter = filter_new(rows[i].on, rows[i].prefix, rows[i].expression);
        uint64_t down[8] = { 0 };
        size_t count = 0;

        expect_numbers(&r, &(sl_read){ .from = 0, .filter = filter }, rows[i].numbers);
        while (rows[i].numbers[count] != 0)
            count++;
        for (size_t at = 0; at < count; at++)
            down[at] = rows[i].numbers[count - 1 - at];
        expect_numbers(&r, &(sl_read){ .from = UINT64_MAX, .backwards = true, .filter = filter }, down);
        sl_filter_free(filter);
    }
    rig_close(&r);
}

TEST(a_filtered_cursor_says_how_far_and_at_how_many_it_has_looked)
{
    rig r = rig_open();
    sl_filter *const filter = filter_new(SL_FILTER_ON_STREAM, "wanted", NULL);
    const sl_read how = { .from = 0, .filter = filter };
    const sl_op create = create_op(1, "");
    sl_cursor *cursor = NULL;
    uint64_t position;
    sl_event e;

    append(&r, "other", ANY, 1, 10);
    position = append(&r, "wanted", ANY, 20, 1).results[0].position;
    append(&r, "other", ANY, 30, 10);
    EXPECT_OK(commit(&r, &create, 1).err); /* a record at the end that is no event */
    EXPECT_OK(sl_store_read(r.store, &how, &cursor));
    EXPECT_EQ(sl_cursor_position(cursor), 0);
    EXPECT_EQ(sl_cursor_considered(cursor), 0);
    EXPECT_OK(next_one(&r, cursor, &e));
    EXPECT_EQ(sl_cursor_position(cursor), position);
    EXPECT_EQ(sl_cursor_considered(cursor), 11);
    EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_EMPTY);
    EXPECT_EQ(sl_cursor_position(cursor), sl_store_end(r.store) - 1);
    EXPECT_EQ(sl_cursor_considered(cursor), 21);
    append(&r, "other", ANY, 50, 1);
    EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_EMPTY);
    EXPECT_EQ(sl_cursor_position(cursor), sl_store_end(r.store) - 1);
    EXPECT_EQ(sl_cursor_considered(cursor), 22);
    sl_cursor_close(cursor);
    sl_filter_free(filter);
    rig_close(&r);
}

/* One call may not look at any number of events: others wait for their turn. */
TEST(a_filter_that_matches_little_among_many_finds_it)
{
    rig r = rig_open();
    sl_filter *const filter = filter_new(SL_FILTER_ON_STREAM, "wanted", NULL);
    const sl_read up = { .from = 0, .filter = filter };
    const sl_read down = { .from = UINT64_MAX, .backwards = true, .filter = filter };
    sl_event_in events[500];
    sl_op op = append_op("other", ANY, events, SL_COUNT_OF(events));
    uint64_t number = 1;

    append(&r, "wanted", ANY, 1000001, 1);
    for (int i = 0; i < 40; i++) {
        for (size_t at = 0; at < SL_COUNT_OF(events); at++)
            events[at] = event(number++);
        EXPECT_OK(commit(&r, &op, 1).err);
    }
    append(&r, "wanted", ANY, 1000002, 1);
    for (int i = 0; i < 2; i++) {
        SL_CLEANUP(page_free) page p = read_by(&r, i == 0 ? &up : &down, 8);

        EXPECT_EQ(p.count, 2);
        EXPECT_EQ(p.considered, 40 * 500 + 2);
        EXPECT_EQ(p.seen[0].number, 1000001 + (uint64_t)i);
    }
    sl_filter_free(filter);
    rig_close(&r);
}

/* Nobody knows whether it is wanted: what comes before it is given, it is not passed, and the cursor stays good. */
TEST(a_cursor_does_not_pass_an_event_that_its_filter_cannot_judge)
{
    rig r = rig_open();
    sl_filter *const filter = filter_new(SL_FILTER_ON_STREAM, NULL, "(a+)+[^a]");
    char name[901] = { 0 };
    uint64_t position;

    memset(name, 'a', sizeof name - 1);
    append(&r, "ab", ANY, 1, 3);
    position = append(&r, name, ANY, 4, 1).results[0].position;
    append(&r, "ab", ANY, 5, 3);
    for (int backwards = 0; backwards < 2; backwards++) {
        const sl_read how = { .from = backwards ? UINT64_MAX : 0, .backwards = backwards, .filter = filter };
        sl_cursor *cursor = NULL;
        sl_event e;

        EXPECT_OK(sl_store_read(r.store, &how, &cursor));
        for (uint64_t i = 0; i < 3; i++) {
            EXPECT_OK(next_one(&r, cursor, &e));
            EXPECT_EQ(number_of(e.id), backwards ? 7 - i : 1 + i);
        }
        for (int again = 0; again < 3; again++) {
            EXPECT_ERR(next_one(&r, cursor, &e), SL_ERR_TOO_LARGE);
            EXPECT_EQ(sl_cursor_considered(cursor), 3);
            if (backwards)
                EXPECT(sl_cursor_position(cursor) > position);
            else
                EXPECT(sl_cursor_position(cursor) < position);
        }
        sl_cursor_close(cursor);
    }
    sl_filter_free(filter);
    rig_close(&r);
}

TEST(a_filter_is_only_for_a_read_of_everything)
{
    rig r = rig_open();
    sl_filter *const filter = filter_new(SL_FILTER_ON_TYPE, "t", NULL);
    const sl_read how = { .stream = SL_STR("s"), .filter = filter };
    sl_cursor *cursor = NULL;

    append(&r, "s", ANY, 1, 1);
    EXPECT_ERR(sl_store_read(r.store, &how, &cursor), SL_ERR_INVALID);
    sl_filter_free(filter);
    rig_close(&r);
}
