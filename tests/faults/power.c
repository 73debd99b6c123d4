/* tests/faults/power.c — power cuts, kills and orderly ends, several in each case, at any moment: while segments are sealed,
 * while the store opens, in the middle of a turn. */
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world whole; /* too large for a stack */
static struct {
    uint64_t cuts, kills, closes, broken_openings, batches, snapshots, rewritten;
} totals;

static void choose_options(world *w)
{
    static const uint64_t segments[] = { 32, 64, 64, 128, 256 };
    static const uint32_t inline_max[] = { 1, 4, 16, 1000 };
    static const uint64_t slow[] = { 0, 0, 2, 3, 7 };

    w->options.segment_bytes = 1024 * segments[dice_pick(&w->timing, 5)];
    w->options.inline_max = inline_max[dice_pick(&w->timing, 4)];
    if (w->disk == NULL)
        return;
    sl_faulty_slow_reads(w->disk, slow[dice_pick(&w->timing, 5)]);
    sl_faulty_slow_syncs(w->disk, dice_one_in(&w->timing, 8) ? 1 + dice_pick(&w->timing, 200) : 0);
}

/* Files that can be made anew are gone, some or all. */
typedef struct broom {
    world *w;
    sl_disk *door;
    bool all;
} broom;

static void sweep(void *ctx, const char *name)
{
    const broom *const b = ctx;

    if (strstr(name, ".idx") == NULL && strstr(name, ".roll") == NULL)
        return;
    if (b->all || dice_one_in(&b->w->timing, 3))
        b->door->ops->remove(b->door, name);
}

static void lose_caches(world *w)
{
    broom b = { w, sl_faulty_door(w->disk), dice_one_in(&w->timing, 2) };

    sl_faulty_each(w->disk, sweep, &b);
    b.door->ops->free(b.door);
}

/* False: the power went before it was open. */
static bool open_or_not(world *w)
{
    if (w->disk != NULL && dice_one_in(&w->timing, 5)) {
        sl_faulty_cut_after(w->disk, dice_pick(&w->timing, 60), dice_draw(&w->timing) | 1);
        w->faults = true;
    }
    if (world_open(w) != SL_OK) {
        CHECK(sl_faulty_is_dead(w->disk), "it did not open, and that was not the power: %s", w->words);
        totals.broken_openings++;
        world_crash(w, WORLD_CUT, 1);
        w->faults = false;
        return false;
    }
    w->faults = false;
    if (w->disk != NULL && !sl_faulty_is_dead(w->disk))
        sl_faulty_cut_after(w->disk, UINT64_MAX, 0);
    return true;
}

/* The moment is either between two calls of the store, or any call to the disk. */
static void arm(world *w)
{
    if (w->disk == NULL)
        return;
    if (dice_one_in(&w->timing, 3))
        sl_faulty_cut_after(w->disk, dice_pick(&w->timing, 150), dice_draw(&w->timing) | 1);
    else if (dice_one_in(&w->timing, 8)) {
        sl_faulty_fail_after(w->disk, dice_pick(&w->timing, 150), SL_ERR_IO);
        w->faults = true;
    }
}

static void end_life(world *w)
{
    const uint64_t what = dice_pick(&w->timing, 10);
    const world_end how = sl_faulty_is_dead(w->disk) || what < 6 ? WORLD_CUT
                          : what < 8                             ? WORLD_KILLED
                                                                 : WORLD_CLOSED;

    totals.cuts += how == WORLD_CUT;
    totals.kills += how == WORLD_KILLED;
    totals.closes += how == WORLD_CLOSED;
    totals.batches += w->batch_count;
    world_crash(w, how, dice_draw(&w->timing) | 1);
    sl_faulty_fail_after(w->disk, UINT64_MAX, SL_OK);
    sl_faulty_cut_after(w->disk, UINT64_MAX, 0);
    w->faults = false;
    if (dice_one_in(&w->timing, 6))
        lose_caches(w);
}

static void end_life_in_memory(world *w)
{
    const world_end how = (world_end)dice_pick(&w->timing, 3);

    totals.cuts += how == WORLD_CUT;
    world_crash(w, how, 0);
}

static void one_life(world *w)
{
    choose_options(w);
    if (!open_or_not(w))
        return;
    arm(w);
    world_work(w, dice_pick(&w->timing, dice_one_in(&w->timing, 4) ? 300 : 60));
    if (w->disk != NULL)
        end_life(w);
    else
        end_life_in_memory(w);
}

static void run(uint64_t seed, const suite_options *options)
{
    world *const w = &whole;

    model_begin(false);
    world_init(w, seed);
    w->disk = options->in_memory ? NULL : sl_faulty_new();
    for (uint64_t i = 0, lives = 3 + dice_pick(&w->timing, 4); i < lives; i++)
        one_life(w);
    choose_options(w);
    world_open(w);
    judge_all(w, JUDGE_STRICT);
    totals.snapshots += w->snapshots;
    totals.rewritten += w->rewritten;
    world_crash(w, WORLD_CLOSED, 0);
    world_done(w);
}

void suite_power(const suite_options *options)
{
    memset(&totals, 0, sizeof totals);
    suite_run(options, "power", 60, run);
    tap_note("%" PRIu64 " power cuts, %" PRIu64 " of them while opening; %" PRIu64 " kills, %" PRIu64
             " orderly ends; %" PRIu64 " batches, %" PRIu64 " snapshots, %" PRIu64 " segments rewritten",
             totals.cuts + totals.broken_openings, totals.broken_openings, totals.kills, totals.closes,
             totals.batches, totals.snapshots, totals.rewritten);
}
