/* Getting space back: nothing that can be seen changes, positions stay, and what is hidden is gone. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ended {
    bool is_there;
    sl_scavenged result;
} ended;

static void note(void *ctx, const sl_scavenged *result)
{
    ended *const e = ctx;

    e->is_there = true;
    e->result = *result;
}

/* False when this store has nothing to scavenge. */
static bool scavenge(rig *r, uint64_t now_ns, sl_scavenged *ret_result)
{
    const sl_scavenge how = { .now_ns = now_ns };
    ended e = { 0 };
    sl_err err;

    while ((err = sl_store_scavenge(r->store, &how, note, &e)) == SL_ERR_EXISTS)
        pass_time(r); /* one that nobody asked for */
    if (err == SL_ERR_NOT_FOUND)
        return false;
    EXPECT_OK(err);
    sl_store_turn(r->store);
    while (!e.is_there)
        pass_time(r);
    EXPECT_OK(e.result.err);
    *ret_result = e.result;
    return true;
}

/* Enough for several segments: 20 streams with 200 events of 300 bytes each. */
static void fill(rig *r)
{
    static char text[300];
    uint64_t number = 1;

    memset(text, 'x', sizeof text);
    for (int round = 0; round < 200; round++) {
        sl_event_in events[20];
        sl_op ops[20];
        char names[20][32];

        for (int i = 0; i < 20; i++) {
            snprintf(names[i], sizeof names[i], "stream-%d", i);
            events[i] = event(number++);
            events[i].metadata = (sl_str){ text, sizeof text };
            events[i].type = SL_STR("filler");
            events[i].created_ns = NOW_NS + (uint64_t)round * SECOND_NS;
            ops[i] = append_op(names[i], ANY, &events[i], 1);
        }
        EXPECT_OK(commit(r, ops, 20).err);
    }
}

/* Of the first page nothing is missing in the second but what may be: positions are the same. */
static uint32_t expect_subset(const page *before, const page *after)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < after->count; i++) {
        while (at < before->count && before->seen[at].position < after->seen[i].position)
            at++;
        EXPECT(at < before->count);
        EXPECT_EQ(after->seen[i].position, before->seen[at].position);
        EXPECT_EQ(after->seen[i].revision, before->seen[at].revision);
        EXPECT_EQ(after->seen[i].number, before->seen[at].number);
    }
    return before->count - after->count;
}

static void expect_as_it_should_be(rig *r)
{
    expect_stream(r, "stream-0", 190, 199);
    expect_stream(r, "stream-1", 150, 199);
    expect_unreadable(r, "stream-2", SL_ERR_NOT_FOUND);
    expect_unreadable(r, "stream-3", SL_ERR_STREAM_DELETED);
    expect_stream(r, "stream-5", 0, 199);
    EXPECT_EQ(info_of(r, "stream-2").revision, 199);
    EXPECT_EQ(info_of(r, "stream-3").state, SL_STREAM_TOMBSTONED);
    EXPECT_EQ(info_of(r, "stream-0").max_count, 10);
}

TEST(what_is_hidden_goes_and_nothing_else)
{
    rig r = rig_open();
    const sl_read everything = { .from = 0 };
    const sl_op delete = delete_op("stream-2", ANY), tombstone = tombstone_op("stream-3", ANY);
    SL_CLEANUP(page_free) page before, after, again;
    sl_scavenged result;

    fill(&r);
    set_metadata(&r, "stream-0", "{\"$maxCount\": 10}");
    set_metadata(&r, "stream-1", "{\"$maxCount\": 20, \"$tb\": 3}");
    set_metadata(&r, "stream-1", "{\"$tb\": 150}");
    EXPECT_OK(commit(&r, &delete, 1).err);
    EXPECT_OK(commit(&r, &tombstone, 1).err);
    fill_segment(&r); /* so that all of it is sealed */
    before = read_by(&r, &everything, 64);
    if (!scavenge(&r, NOW_NS, &result)) {
        page_free(&before); /* skip() does not come back */
        rig_close(&r);
        skip();
    }
    EXPECT(result.segments_rewritten > 2);
    EXPECT(result.events_dropped >= 600 && result.bytes_freed > 100 * 1000);
    expect_as_it_should_be(&r);
    after = read_by(&r, &everything, 64);
    EXPECT_EQ(expect_subset(&before, &after), 190 + 150 + 199 + 200 + 1);
    rig_restart(&r, SL_RESTART_KILLED);
    expect_as_it_should_be(&r);
    again = read_by(&r, &everything, 64);
    EXPECT_EQ(expect_subset(&after, &again), 0);
    EXPECT(scavenge(&r, NOW_NS, &result));
    EXPECT_EQ(result.events_dropped, 0);
    expect_written(append(&r, "stream-2", EXACT(199), 900001, 1), 200);
    expect_refused(append(&r, "stream-3", ANY, 900002, 1), SL_ERR_STREAM_DELETED, SL_REVISION_MAX);
    rig_close(&r);
}

TEST(backwards_over_what_was_scavenged)
{
    rig r = rig_open();
    const sl_read up = { .from = 0 }, down = { .from = UINT64_MAX, .backwards = true };
    SL_CLEANUP(page_free) page forwards = { 0 }, backwards = { 0 };
    sl_scavenged result;

    fill(&r);
    for (int i = 0; i < 18; i++) {
        char name[32];
        snprintf(name, sizeof name, "stream-%d", i);
        set_metadata(&r, name, "{\"$maxCount\": 1}");
    }
    fill_segment(&r);
    if (!scavenge(&r, NOW_NS, &result)) {
        rig_close(&r);
        skip();
    }
    forwards = read_by(&r, &up, 7);
    backwards = read_by(&r, &down, 7);
    EXPECT_ERR(forwards.ended, SL_ERR_EMPTY);
    EXPECT_ERR(backwards.ended, SL_ERR_EMPTY);
    EXPECT_EQ(forwards.count, backwards.count);
    for (uint32_t i = 0; i < forwards.count; i++)
        EXPECT_EQ(forwards.seen[i].position, backwards.seen[backwards.count - 1 - i].position);
    rig_close(&r);
}

TEST(old_events_go_by_age_but_never_the_last)
{
    rig r = rig_open();
    sl_scavenged result;

    fill(&r);
    set_metadata(&r, "stream-7", "{\"$maxAge\": 50}");
    fill_segment(&r);
    if (!scavenge(&r, NOW_NS + 1000 * SECOND_NS, &result)) {
        rig_close(&r);
        skip();
    }
    EXPECT_EQ(result.events_dropped, 199);
    EXPECT_EQ(info_of(&r, "stream-7").revision, 199);
    rig_restart(&r, SL_RESTART_KILLED);
    EXPECT_EQ(info_of(&r, "stream-7").revision, 199);
    rig_close(&r);
}

/* Whoever reads meanwhile misses nothing that stays, and sees nothing twice. */
TEST(a_cursor_reads_on_while_segments_are_rewritten)
{
    rig r = rig_open();
    const sl_read in_stream = { .stream = SL_STR("stream-5") }, everything = { .from = 0 };
    const sl_read down = { .from = UINT64_MAX, .backwards = true };
    const sl_scavenge how = { .now_ns = NOW_NS };
    sl_cursor *one = NULL, *all = NULL, *back = NULL;
    uint64_t position = 0, below = UINT64_MAX;
    ended e = { 0 };
    sl_err err;

    fill(&r);
    for (int i = 6; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "stream-%d", i);
        set_metadata(&r, name, "{\"$maxCount\": 1}");
    }
    fill_segment(&r);
    EXPECT_OK(sl_store_read(r.store, &in_stream, &one));
    EXPECT_OK(sl_store_read(r.store, &everything, &all));
    EXPECT_OK(sl_store_read(r.store, &down, &back));
    while ((err = sl_store_scavenge(r.store, &how, note, &e)) == SL_ERR_EXISTS)
        pass_time(&r);
    for (uint64_t i = 0; i < 200; i++) {
        sl_event event;

        EXPECT_OK(next_one(&r, one, &event));
        EXPECT_EQ(event.revision, i);
        EXPECT_OK(next_one(&r, all, &event));
        EXPECT(event.position > position);
        position = event.position;
        EXPECT_OK(next_one(&r, back, &event));
        EXPECT(event.position < below);
        below = event.position;
        sl_store_turn(r.store);
        sl_store_poll(r.store);
    }
    while (err == SL_OK && !e.is_there)
        pass_time(&r);
    sl_cursor_close(one);
    sl_cursor_close(all);
    sl_cursor_close(back);
    rig_close(&r);
}
