/* tests/unit/server/test_tail.c — readers are run when there is something for them, and only then. */
#include "../base/support.h"
#include "rig.h"

#include "server/door.h"
#include "server/tail.h"

typedef struct watcher {
    server_rig *rig;
    sl_reader_node reader;
    unsigned runs;
    enum {
        THEN_NOTHING,
        THEN_COMMIT,
        THEN_SOON
    } then;
} watcher;

static void on_run(void *ctx)
{
    watcher *const w = ctx;

    w->runs++;
    if (w->then == THEN_COMMIT)
        sl_tail_wait_commit(w->rig->host->tail, &w->reader);
    else if (w->then == THEN_SOON)
        sl_tail_run_soon(w->rig->host->tail, &w->reader);
}

static void watch(watcher *w, server_rig *rig, const char *stream)
{
    *w = (watcher){ .rig = rig, .then = THEN_COMMIT };
    sl_reader_init(&w->reader, sl_str_from(stream), on_run, w);
    sl_tail_wait_commit(rig->host->tail, &w->reader);
}

static void forget(watcher *w)
{
    sl_tail_forget(w->rig->host->tail, &w->reader);
}

static void start(server_rig *rig)
{
    server_rig_init(rig);
    server_rig_start(rig);
}

static void on_removed(void *ctx, const sl_commit *commit)
{
    EXPECT_OK(commit->err);
    *(bool *)ctx = true;
}

static void remove_stream(server_rig *rig, sl_op_kind kind, const char *stream)
{
    const sl_op op = { .kind = kind,
                       .remove = { .stream = sl_str_from(stream), .created_ns = 1, .id = { { 9 } } } };
    bool is_done = false;

    EXPECT_OK(
        sl_door_submit(rig->host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, on_removed, &is_done));
    server_rig_run(rig);
    EXPECT(is_done);
}

TEST(a_reader_is_run_for_its_own_stream_and_one_of_all_for_each_commit)
{
    server_rig rig;
    watcher a, b, all;

    start(&rig);
    watch(&a, &rig, "a");
    watch(&b, &rig, "b");
    watch(&all, &rig, "");
    server_rig_append(&rig, "a", "t", "{}");
    server_rig_run(&rig);
    EXPECT_EQ(a.runs, 1);
    EXPECT_EQ(b.runs, 0);
    EXPECT_EQ(all.runs, 1);
    server_rig_append(&rig, "c", "t", "{}");
    server_rig_append(&rig, "b", "t", "{}");
    server_rig_run(&rig);
    EXPECT_EQ(a.runs, 1);
    EXPECT_EQ(b.runs, 1);
    EXPECT_EQ(all.runs, 3);
    forget(&a);
    forget(&b);
    forget(&all);
    forget(&all); /* twice is harmless */
    server_rig_append(&rig, "a", "t", "{}");
    EXPECT_EQ(a.runs, 1);
    server_rig_done(&rig);
}

TEST(metadata_deletion_and_the_end_of_a_stream_are_news_for_its_readers)
{
    server_rig rig;
    watcher plain, metadata, other;

    start(&rig);
    server_rig_append(&rig, "x", "t", "{}");
    server_rig_append(&rig, "y", "t", "{}");
    watch(&plain, &rig, "x");
    watch(&metadata, &rig, "$$x");
    watch(&other, &rig, "$$y");
    server_rig_append(&rig, "$$x", "$metadata", "{\"$maxCount\":1}");
    server_rig_run(&rig);
    EXPECT_EQ(plain.runs, 1);
    EXPECT_EQ(metadata.runs, 1);
    remove_stream(&rig, SL_OP_DELETE, "x");
    EXPECT_EQ(plain.runs, 2);
    EXPECT_EQ(metadata.runs, 2);
    remove_stream(&rig, SL_OP_TOMBSTONE, "x");
    EXPECT_EQ(plain.runs, 3);
    EXPECT_EQ(other.runs, 0);
    forget(&plain);
    forget(&metadata);
    forget(&other);
    server_rig_done(&rig);
}

static void on_refused(void *ctx, const sl_commit *commit)
{
    EXPECT_ERR(commit->err, SL_ERR_WRONG_REVISION);
    *(bool *)ctx = true;
}

TEST(a_batch_that_was_refused_is_no_news)
{
    const sl_event_in event = { .id = { { 1 } }, .type = SL_STR_INIT("t"), .created_ns = 1 };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = SL_STR_INIT("a"),
                                   .expected = { SL_EXPECT_EXACT, 5 },
                                   .events = &event,
                                   .event_count = 1 } };
    server_rig rig;
    watcher a;
    bool is_done = false;

    start(&rig);
    watch(&a, &rig, "a");
    EXPECT_OK(sl_door_submit(rig.host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, on_refused, &is_done));
    server_rig_run(&rig);
    EXPECT(is_done);
    EXPECT_EQ(a.runs, 0);
    forget(&a);
    server_rig_done(&rig);
}

TEST(a_reader_that_wants_to_go_on_is_run_once_in_a_turn)
{
    server_rig rig;
    watcher greedy, modest;

    start(&rig);
    watch(&greedy, &rig, "");
    watch(&modest, &rig, "");
    greedy.then = THEN_SOON;
    sl_tail_run_soon(rig.host->tail, &greedy.reader);
    sl_tail_run_soon(rig.host->tail, &modest.reader);
    for (unsigned turn = 1; turn <= 5; turn++) {
        EXPECT(sl_host_turn(rig.host)); /* the next turn must come at once */
        EXPECT_EQ(greedy.runs, turn);
        EXPECT_EQ(modest.runs, 1);
    }
    greedy.then = THEN_NOTHING;
    EXPECT(!sl_host_turn(rig.host));
    EXPECT_EQ(greedy.runs, 6);
    forget(&modest);
    server_rig_done(&rig);
}

/* A commit in the same turn runs those that it woke, but not those that had their share and only want more. */
TEST(a_commit_runs_a_greedy_reader_not_more_often)
{
    server_rig rig;
    watcher greedy, woken;

    start(&rig);
    watch(&greedy, &rig, "");
    watch(&woken, &rig, "a");
    greedy.then = THEN_SOON;
    sl_tail_run_soon(rig.host->tail, &greedy.reader);
    EXPECT_EQ(server_rig_append(&rig, "a", "t", "{}"), 0); /* takes one turn */
    EXPECT_EQ(woken.runs, 1);
    EXPECT_EQ(greedy.runs, 1);
    forget(&greedy);
    forget(&woken);
    server_rig_done(&rig);
}

TEST(who_waits_for_the_disk_is_run_after_the_next_poll)
{
    server_rig rig;
    watcher w;

    start(&rig);
    watch(&w, &rig, "a");
    sl_tail_wait_disk(rig.host->tail, &w.reader); /* forgets that it waits for a commit */
    EXPECT(!sl_host_turn(rig.host));
    EXPECT_EQ(w.runs, 0);
    w.then = THEN_NOTHING;
    sl_host_poll(rig.host);
    EXPECT_EQ(w.runs, 0); /* only from a turn */
    sl_host_turn(rig.host);
    EXPECT_EQ(w.runs, 1);
    server_rig_append(&rig, "a", "t", "{}");
    EXPECT_EQ(w.runs, 1);
    server_rig_done(&rig);
}

/* --- shares of a turn --- */

/* Runs for so long each time, and wants more. */
typedef struct worker {
    server_rig *rig;
    sl_reader_node reader;
    uint64_t run_ns;
    unsigned runs;
    bool wants_more;
} worker;

static void work(void *ctx)
{
    worker *const w = ctx;

    w->runs++;
    w->rig->time.mono_ns += w->run_ns;
    if (w->wants_more)
        sl_tail_run_soon(w->rig->host->tail, &w->reader);
}

static void hire(worker *w, server_rig *rig, uint64_t run_ns, bool wants_more)
{
    *w = (worker){ .rig = rig, .run_ns = run_ns, .wants_more = wants_more };
    sl_reader_init(&w->reader, SL_STR(""), work, w);
}

TEST(readers_have_a_share_of_a_turn_and_go_on_in_order_in_the_next)
{
    enum {
        WORKERS = 10
    };
    worker workers[WORKERS];
    server_rig rig;

    start(&rig);
    for (int i = 0; i < WORKERS; i++) {
        hire(&workers[i], &rig, SL_TAIL_SHARE_NS * 3 / 4, true);
        sl_tail_run_soon(rig.host->tail, &workers[i].reader);
    }
    for (unsigned turn = 1; turn <= WORKERS; turn++) { /* two in each turn: the second one ends the share */
        EXPECT(sl_host_turn(rig.host));
        for (unsigned i = 0; i < WORKERS; i++)
            EXPECT_ROW(workers[i].runs == (2 * turn + WORKERS - 1 - i) / WORKERS, i);
    }
    for (int i = 0; i < WORKERS; i++)
        sl_tail_forget(rig.host->tail, &workers[i].reader);
    server_rig_done(&rig);
}

TEST(one_reader_is_run_in_each_turn_however_long_it_takes)
{
    worker slow, other;
    server_rig rig;

    start(&rig);
    hire(&slow, &rig, SL_TAIL_SHARE_NS * 100, true);
    hire(&other, &rig, 0, true);
    sl_tail_run_soon(rig.host->tail, &slow.reader);
    sl_tail_run_soon(rig.host->tail, &other.reader);
    for (unsigned turn = 0; turn < 6; turn++)
        EXPECT(sl_host_turn(rig.host));
    EXPECT_EQ(slow.runs, 6);
    EXPECT_EQ(other.runs, 5); /* not in the first turn, and then always before it */
    sl_tail_forget(rig.host->tail, &slow.reader);
    sl_tail_forget(rig.host->tail, &other.reader);
    server_rig_done(&rig);
}

TEST(who_was_woken_does_not_wait_for_those_that_always_want_more)
{
    enum {
        WORKERS = 50
    };
    worker workers[WORKERS], woken[3];
    server_rig rig;

    start(&rig);
    for (int i = 0; i < WORKERS; i++) {
        hire(&workers[i], &rig, SL_TAIL_SHARE_NS, true);
        sl_tail_run_soon(rig.host->tail, &workers[i].reader);
    }
    EXPECT(sl_host_turn(rig.host));
    for (int i = 0; i < 3; i++) {
        hire(&woken[i], &rig, SL_TAIL_SHARE_NS * 3 / 4, false);
        sl_tail_wait_disk(rig.host->tail, &woken[i].reader);
    }
    sl_host_poll(rig.host);
    EXPECT(sl_host_turn(rig.host));
    EXPECT(woken[0].runs == 1 && woken[1].runs == 1 && woken[2].runs == 0);
    EXPECT_EQ(workers[1].runs, 1); /* and the others have their share all the same */
    EXPECT(sl_host_turn(rig.host));
    EXPECT_EQ(woken[2].runs, 1);
    EXPECT_EQ(workers[2].runs, 1);
    for (int i = 0; i < WORKERS; i++)
        sl_tail_forget(rig.host->tail, &workers[i].reader);
    server_rig_done(&rig);
}

static void wake_others(void *ctx)
{
    worker *const w = ctx;

    work(w);
    sl_tail_polled(w->rig->host->tail);
}

TEST(who_is_woken_during_a_turn_comes_behind_those_that_the_turn_left)
{
    worker waker, left, late;
    server_rig rig;

    start(&rig);
    hire(&waker, &rig, SL_TAIL_SHARE_NS, false);
    hire(&left, &rig, SL_TAIL_SHARE_NS, false);
    hire(&late, &rig, SL_TAIL_SHARE_NS, false);
    waker.reader.run = wake_others;
    sl_tail_wait_disk(rig.host->tail, &waker.reader);
    sl_tail_wait_disk(rig.host->tail, &left.reader);
    sl_tail_polled(rig.host->tail);
    sl_tail_wait_disk(rig.host->tail, &late.reader);
    EXPECT(sl_host_turn(rig.host));
    EXPECT(waker.runs == 1 && left.runs == 0 && late.runs == 0);
    EXPECT(sl_host_turn(rig.host));
    EXPECT(left.runs == 1 && late.runs == 0);
    EXPECT(!sl_host_turn(rig.host));
    EXPECT_EQ(late.runs, 1);
    server_rig_done(&rig);
}

TEST(places_are_few_and_handed_on_in_the_order_of_waiting)
{
    static worker workers[SL_TAIL_PLACES_MAX + 3];
    worker *const late = &workers[SL_TAIL_PLACES_MAX];
    sl_tail *tail;
    server_rig rig;

    start(&rig);
    tail = rig.host->tail;
    for (int i = 0; i < SL_TAIL_PLACES_MAX + 3; i++)
        hire(&workers[i], &rig, 0, false);
    for (int i = 0; i < SL_TAIL_PLACES_MAX; i++) {
        EXPECT(sl_tail_take_place(tail, &workers[i].reader));
        EXPECT(sl_tail_take_place(tail, &workers[i].reader)); /* the same one */
    }
    for (int i = 0; i < 3; i++) {
        EXPECT(!sl_tail_take_place(tail, &late[i].reader));
        sl_tail_wait_place(tail, &late[i].reader);
    }
    EXPECT(sl_tail_place_wanted(tail));
    EXPECT(!sl_host_turn(rig.host));
    sl_tail_forget(tail, &late[1].reader); /* who goes away is not waited for */
    sl_tail_wait_place(tail, &workers[0].reader);
    EXPECT(!sl_tail_take_place(tail, &workers[0].reader));
    sl_host_turn(rig.host);
    EXPECT(late[0].runs == 1 && late[2].runs == 0 && workers[0].runs == 0);
    sl_tail_leave_place(tail, &workers[1].reader);
    sl_tail_leave_place(tail, &late[0].reader);
    sl_tail_leave_place(tail, &late[0].reader); /* has none any more */
    sl_host_turn(rig.host);
    EXPECT(late[2].runs == 1 && workers[0].runs == 1 && late[1].runs == 0);
    EXPECT(!sl_tail_place_wanted(tail));
    for (int i = 0; i < SL_TAIL_PLACES_MAX + 3; i++)
        sl_tail_leave_place(tail, &workers[i].reader);
    EXPECT(sl_tail_take_place(tail, &late[1].reader));
    sl_tail_leave_place(tail, &late[1].reader);
    server_rig_done(&rig); /* which expects that all were left */
}

typedef struct assassin {
    server_rig *rig;
    sl_reader_node reader;
    struct assassin *victim;
    unsigned *runs;
} assassin;

static void kill_victim_and_self(void *ctx)
{
    assassin *const a = ctx;

    (*a->runs)++;
    if (a->victim != NULL) {
        sl_tail_forget(a->rig->host->tail, &a->victim->reader);
        free(a->victim);
    }
    free(a);
}

TEST(a_reader_may_free_itself_and_the_one_that_comes_next)
{
    server_rig rig;
    assassin *readers[3];
    unsigned runs = 0;

    start(&rig);
    for (int i = 0; i < 3; i++) {
        readers[i] = malloc(sizeof *readers[i]);
        *readers[i] = (assassin){ .rig = &rig, .runs = &runs };
        sl_reader_init(&readers[i]->reader, SL_STR("a"), kill_victim_and_self, readers[i]);
        sl_tail_wait_commit(rig.host->tail, &readers[i]->reader);
    }
    readers[0]->victim = readers[1]; /* the others have none */
    readers[2]->victim = NULL;
    for (int i = 0; i < 3; i++)
        sl_tail_run_soon(rig.host->tail, &readers[i]->reader);
    sl_host_turn(rig.host);
    EXPECT_EQ(runs, 2);
    server_rig_done(&rig);
}

TEST(ten_thousand_readers_of_other_streams_sleep_through_a_commit)
{
    enum {
        READERS = 10000
    };
    static watcher watchers[READERS];
    static char names[READERS][24];
    server_rig rig;
    unsigned runs = 0;

    start(&rig);
    for (int i = 0; i < READERS; i++) {
        snprintf(names[i], sizeof names[i], "stream-%d", i);
        watch(&watchers[i], &rig, names[i]);
    }
    server_rig_append(&rig, "stream-4711", "t", "{}");
    server_rig_append(&rig, "another", "t", "{}");
    for (int i = 0; i < READERS; i++) {
        runs += watchers[i].runs;
        forget(&watchers[i]);
    }
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(watchers[4711].runs, 1);
    server_rig_done(&rig);
}

TEST(a_table_that_cannot_grow_gets_slower_and_never_wrong)
{
    enum {
        READERS = 500
    };
    static watcher watchers[READERS];
    static char names[READERS][24];
    test_alloc memory = { 0 };
    const sl_alloc alloc = test_alloc_use(&memory);
    sl_clock_manual time = { 1, 1 };
    const sl_clock clock = sl_clock_manual_clock(&time);
    sl_host host = { .alloc = &alloc, .seed = { 5, 6 }, .stopwatch = &clock };
    server_rig rig = { .host = &host };

    EXPECT_OK(sl_tail_new(&host, &host.tail));
    memory.fail_at = memory.call_count + 1;
    memory.stays_out = true;
    for (int i = 0; i < READERS; i++) {
        snprintf(names[i], sizeof names[i], "stream-%d", i);
        watch(&watchers[i], &rig, names[i]);
    }
    for (int i = 0; i < READERS; i++) {
        sl_tail_touch(host.tail, sl_tail_key(host.tail, sl_str_from(names[i])));
        EXPECT(!sl_tail_run(host.tail));
        EXPECT_ROW(watchers[i].runs == 1, i);
    }
    for (int i = 0; i < READERS; i++) {
        EXPECT_ROW(watchers[i].runs == 1, i);
        forget(&watchers[i]);
    }
    sl_tail_free(host.tail);
    EXPECT_EQ(memory.block_count, 0);
}

TEST(without_memory_there_is_no_tail_and_nothing_stays_behind)
{
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        test_alloc memory = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&memory);
        sl_host host = { .alloc = &alloc };

        EXPECT_ERR(sl_tail_new(&host, &host.tail), SL_ERR_NOMEM);
        EXPECT_EQ(memory.block_count, 0);
    }
}
