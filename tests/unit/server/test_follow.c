/* tests/unit/server/test_follow.c — no wake-up is lost: random writers and readers, and in the end everybody has seen everything.
 *
 * Each reader does what a subscription does: reads until the store says EMPTY, then waits for a commit. It knows nothing else, so
 * a commit of which it is not told leaves it behind for ever, and the test fails. Writers submit at random moments, also between
 * two turns and while a sync runs; readers come and go. On the store in memory, and on a journal that syncs in the caller's
 * thread, or in another one. */
#include "../base/support.h"
#include "rig.h"

#include "server/door.h"
#include "server/tail.h"

#include <ftw.h>

enum {
    STREAMS = 5,
    READERS = 12,
    STEPS = 600
};

typedef struct follower {
    struct crowd *crowd;
    sl_reader_node reader;
    sl_cursor *cursor;
    int stream;    /* -1: all */
    uint64_t next; /* revision; of all: how many events were seen */
    bool is_open;
} follower;

typedef struct crowd {
    server_rig rig;
    dice d;
    uint64_t seed, step;
    follower followers[READERS];
    uint64_t written[STREAMS]; /* accepted */
    uint64_t answered, total;
} crowd;

static const char *const names[STREAMS] = { "a", "b", "c", "d", "e" };

static void close_follower(follower *f)
{
    sl_tail_forget(f->crowd->rig.host->tail, &f->reader);
    sl_cursor_close(f->cursor);
    f->cursor = NULL;
    f->is_open = false;
}

/* True when there is something to read from. */
static bool open_cursor(follower *f)
{
    const sl_read read = { .stream = f->stream < 0 ? SL_STR("") : sl_str_from(names[f->stream]), .from = 0 };
    const sl_err err = f->cursor != NULL ? SL_OK : sl_store_read(f->crowd->rig.store, &read, &f->cursor);

    EXPECT_RUN(err == SL_OK || err == SL_ERR_NOT_FOUND, f->crowd->seed, f->crowd->step);
    return err == SL_OK;
}

static void check(follower *f, const sl_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, f->next++)
        EXPECT_RUN(f->stream < 0 || events[i].revision == f->next, f->crowd->seed, f->crowd->step);
}

static void follow(void *ctx)
{
    follower *const f = ctx;
    sl_tail *const tail = f->crowd->rig.host->tail;
    sl_event events[3];
    uint32_t count;
    sl_err err = open_cursor(f) ? SL_OK : SL_ERR_EMPTY;

    for (int round = 0; err == SL_OK && round < 4; round++) {
        err = sl_cursor_next(f->cursor, events, 3, &count);
        if (err == SL_OK)
            check(f, events, count);
    }
    EXPECT_RUN(err == SL_OK || err == SL_ERR_EMPTY || err == SL_ERR_AGAIN, f->crowd->seed, f->crowd->step);
    if (err == SL_OK)
        sl_tail_run_soon(tail, &f->reader);
    else if (err == SL_ERR_AGAIN)
        sl_tail_wait_disk(tail, &f->reader);
    else
        sl_tail_wait_commit(tail, &f->reader);
}

static void open_follower(crowd *c, follower *f)
{
    *f = (follower){ .crowd = c, .stream = (int)dice_pick(&c->d, STREAMS + 1) - 1, .is_open = true };
    sl_reader_init(&f->reader, f->stream < 0 ? SL_STR("") : sl_str_from(names[f->stream]), follow, f);
    sl_tail_run_soon(c->rig.host->tail, &f->reader);
}

static void on_written(void *ctx, const sl_commit *commit)
{
    crowd *const c = ctx;

    EXPECT_RUN(commit->err == SL_OK, c->seed, c->step);
    c->answered++;
}

static void write_some(crowd *c)
{
    sl_event_in events[3] = { { .type = SL_STR("t"), .created_ns = 1 } };
    sl_op ops[3];
    const uint32_t op_count = 1 + (uint32_t)dice_pick(&c->d, 3);

    for (uint32_t i = 0; i < op_count; i++) {
        const size_t stream = dice_pick(&c->d, STREAMS);

        events[i] = events[0];
        c->total++;
        memcpy(events[i].id.bytes, &c->total, sizeof c->total);
        ops[i] = (sl_op){
            .kind = SL_OP_APPEND,
            .append = { .stream = sl_str_from(names[stream]), .events = &events[i], .event_count = 1 }
        };
        c->written[stream]++;
    }
    EXPECT_OK(
        sl_door_submit(c->rig.host->door, &(sl_batch){ .ops = ops, .op_count = op_count }, on_written, c));
}

static void step(crowd *c)
{
    follower *const f = &c->followers[dice_pick(&c->d, READERS)];
    const size_t choice = dice_pick(&c->d, 10);

    if (choice < 4)
        write_some(c);
    else if (choice < 6 && f->is_open)
        close_follower(f);
    else if (choice < 6)
        open_follower(c, f);
    else if (choice < 9)
        server_rig_turn(&c->rig);
    else
        sl_host_poll(c->rig.host);
}

static bool all_have_all(const crowd *c)
{
    for (size_t i = 0; i < READERS; i++) {
        const follower *const f = &c->followers[i];

        if (f->is_open && f->next != (f->stream < 0 ? c->total : c->written[f->stream]))
            return false;
    }
    return c->rig.host->counters.batches_accepted == c->answered;
}

/* A reader that was forgotten never gets there; the rig says so after a while. */
static void let_them_finish(crowd *c)
{
    while (!all_have_all(c))
        if (!server_rig_turn(&c->rig) && !all_have_all(c)) {
            if (sl_door_inside(c->rig.host->door) == 0 && c->rig.store_is_own)
                fail_msg("seed %llu: a reader was forgotten", (unsigned long long)c->seed);
            server_rig_wait(&c->rig);
        }
}

static void run_crowd(uint64_t seed, sl_store *store)
{
    static crowd c;

    c = (crowd){ .seed = seed, .d = dice_from(seed) };
    server_rig_init(&c.rig);
    c.rig.store = store;
    server_rig_start(&c.rig);
    for (c.step = 0; c.step < STEPS; c.step++)
        step(&c);
    let_them_finish(&c);
    for (size_t i = 0; i < READERS; i++)
        if (c.followers[i].is_open)
            close_follower(&c.followers[i]);
    server_rig_done(&c.rig);
}

TEST(no_reader_misses_a_commit_of_a_store_in_memory)
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        run_crowd(seed, NULL);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void follow_journal(uint64_t seed, uint32_t inline_max)
{
    char folder[] = "/tmp/sluice-follow-XXXXXX";
    char report[1024];
    const sl_store_setup setup = { .alloc = &sl_alloc_default };
    const sl_journal_options options = { .folder = folder, .inline_max = inline_max };
    sl_store *store;
    sl_text text;

    EXPECT(mkdtemp(folder) != NULL);
    sl_text_init(&text, report, sizeof report);
    EXPECT_OK(sl_store_open_journal(&setup, &options, &text, &store));
    run_crowd(seed, store);
    sl_store_close(store);
    EXPECT_EQ(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TEST(no_reader_misses_a_commit_of_a_journal)
{
    for (uint64_t seed = 100; seed < 104; seed++) {
        follow_journal(seed, 1);    /* another thread syncs */
        follow_journal(seed, 1000); /* the thread of the turn does */
    }
}
