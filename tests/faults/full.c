/* tests/faults/full.c — no room on the disk: appends are refused, settling goes on, and room is enough to go on. */
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <time.h>

static world whole; /* too large for a stack */

/* One batch, sent and answered. True: it was taken. */
static bool try(world *w, draw_what what)
{
    const uint32_t refused = w->refused;

    w->from.what = what;
    CHECK(world_send(w), "the store failed: %s", sl_store_problem(w->store));
    world_settle(w);
    w->from.what = DRAW_ANYTHING;
    CHECK(!w->failed, "the store failed: %s", sl_store_problem(w->store));
    return w->refused == refused;
}

/* One that is small may find a place that a larger one did not. */
static void fill(world *w)
{
    int sent = 0, refused = 0;

    for (; refused < 5; sent++) {
        refused = try(w, DRAW_APPENDS) ? 0 : refused + 1;
        CHECK(sent < 800, "the disk is full, and everything is written");
    }
}

/* The reserve is an eighth of a segment: more than this. */
static void settle_some(world *w)
{
    for (int i = 0; i < 20; i++)
        CHECK(try(w, DRAW_RECORDS), "record %d of a group was refused; there is a reserve for it", i);
}

static void wait_for_room(world *w)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };

    for (int i = 0; !try(w, DRAW_APPENDS); i++) {
        CHECK(i < 5000, "there is room again, and appends are still refused");
        nanosleep(&pause, NULL);
        world_poll(w);
    }
}

static void run(uint64_t seed, const suite_options *options)
{
    world *const w = &whole;
    bool again;

    (void)options;
    model_begin(false);
    world_init(w, seed);
    w->disk = sl_faulty_new();
    w->options = (sl_journal_options){ .segment_bytes = 64 * 1024, .inline_max = seed % 2 == 0 ? 1 : 100 };
    again = dice_one_in(&w->timing, 3);
    world_open(w);
    w->faults = true; /* refused for lack of room; nothing else fails here */
    world_work(w, dice_pick(&w->timing, 100));
    try(w, DRAW_RECORDS); /* the group is there now: making one is not urgent */
    sl_faulty_set_full(w->disk, true);
    fill(w);
    settle_some(w);
    judge_all(w, JUDGE_STRICT);
    if (again) { /* a crash on a full disk: it opens, or says that it needs room, and nothing is lost */
        world_crash(w, dice_one_in(&w->timing, 2) ? WORLD_CUT : WORLD_KILLED, seed);
        if (world_open(w) == SL_OK)
            world_crash(w, WORLD_CUT, seed + 1);
    }
    sl_faulty_set_full(w->disk, false);
    if (again)
        CHECK(world_open(w) == SL_OK, "there is room again, but: %s", w->words);
    wait_for_room(w);
    world_work(w, 60);
    CHECK(!w->failed, "the store failed: %s", sl_store_problem(w->store));
    w->faults = false;
    world_crash(w, dice_one_in(&w->timing, 2) ? WORLD_CUT : WORLD_KILLED, seed);
    world_open(w);
    judge_all(w, JUDGE_STRICT);
    world_crash(w, WORLD_CLOSED, 0);
    world_done(w);
}

void suite_full(const suite_options *options)
{
    suite_run(options, "full", 60, run);
}
