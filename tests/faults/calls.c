/* tests/faults/calls.c — every call to the disk fails once, with every error that it can give.
 *
 * The case with number n lets the call n / 4 fail: with an I/O error or for lack of room, in a store that is new or in
 * one that has just lost a process or its power. Afterwards a store without faults finds everything that was promised. */
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <inttypes.h>

enum {
    VARIANTS = 4,
    FAILURES_MAX = 5,
    STEPS_BEFORE = 250,
    STEPS = 250
};

static world whole; /* too large for a stack */
static bool happened;

static void run(uint64_t number, const suite_options *options)
{
    const uint64_t call = number / VARIANTS;
    world *const w = &whole;
    sl_err err;

    (void)options;
    model_begin(false);
    world_init(w, 1 + call % 8);
    w->disk = sl_faulty_new();
    w->options = (sl_journal_options){ .segment_bytes = 32 * 1024, .inline_max = call % 3 == 0 ? 1 : 16 };
    if (number % VARIANTS >= 2) {
        world_open(w);
        world_work(w, STEPS_BEFORE);
        world_crash(w, call % 2 == 0 ? WORLD_CUT : WORLD_KILLED, number);
    }
    w->faults = true;
    sl_faulty_fail_after(w->disk, call, number % 2 == 0 ? SL_ERR_IO : SL_ERR_NO_SPACE);
    err = world_open(w);
    if (err == SL_OK)
        world_work(w, STEPS);
    world_crash(w, (world_end)(call % 3), number);
    happened = sl_faulty_failed(w->disk);
    CHECK(err == SL_OK || happened, "it did not open, and nothing was made to fail: %s", w->words);
    sl_faulty_fail_after(w->disk, UINT64_MAX, SL_OK);
    w->faults = false;
    for (int life = 0; life < 2; life++) {
        world_open(w);
        judge_all(w, JUDGE_STRICT);
        world_work(w, 10);
        world_crash(w, WORLD_CLOSED, 0);
    }
    world_done(w);
}

/* All calls of one variant, until one case ends without having met its failure. */
static void run_variant(const suite_options *options, uint64_t variant)
{
    suite_options one = *options;
    int failures = 0;

    happened = true;
    for (one.first = variant; happened && failures < FAILURES_MAX; one.first += VARIANTS * options->every)
        failures += !suite_try(&one, "calls", 60, run);
    if (failures == 0)
        tap_passed("calls: each of %" PRIu64 " calls fails, variant %" PRIu64, one.first / VARIANTS, variant);
}

void suite_calls(const suite_options *options)
{
    if (options->count == 1) {
        suite_run(options, "calls", 60, run);
        return;
    }
    for (uint64_t variant = 0; variant < VARIANTS; variant++)
        run_variant(options, variant);
}
