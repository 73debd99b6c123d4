/* tests/faults/errnos.c — the same as calls.c for the real folder: each call to the operating system fails once, and reads
 * and writes that do only a part of their work.
 *
 * The case with number n lets call n / 3 fail with ENOSPC, EIO or EINTR. Afterwards everything that was promised is there. */
#include "folder.h"
#include "judge.h"
#include "report.h"
#include "suites.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>

static const int errors[] = { ENOSPC, EIO, EINTR };

enum {
    VARIANTS = 3,
    FAILURES_MAX = 5,
    STEPS = 150
};

static world whole; /* too large for a stack */
static bool happened;

static void begin(world *w, uint64_t seed)
{
    model_begin(false);
    world_init(w, seed);
    w->folder = folder_make();
    w->options = (sl_journal_options){ .segment_bytes = 32 * 1024 };
}

static void end(world *w)
{
    for (int life = 0; life < 2; life++) {
        world_open(w);
        judge_all(w, JUDGE_STRICT);
        world_work(w, 10);
        world_crash(w, WORLD_CLOSED, 0);
    }
    folder_remove();
    world_done(w);
}

static void run_errno(uint64_t number, const suite_options *options)
{
    world *const w = &whole;

    (void)options;
    begin(w, 1 + number / VARIANTS % 8);
    w->faults = true;
    system_fail_after(number / VARIANTS, errors[number % VARIANTS]);
    if (world_open(w) == SL_OK)
        world_work(w, STEPS);
    world_crash(w, WORLD_CLOSED, 0);
    happened = system_failed();
    system_fail_after(UINT64_MAX, 0);
    w->faults = false;
    end(w);
}

/* No error may come of it, so none is allowed. */
static void run_short(uint64_t number, const suite_options *options)
{
    world *const w = &whole;

    (void)options;
    begin(w, number);
    for (int life = 0; life < 3; life++) {
        system_be_tiresome(true);
        world_open(w);
        world_work(w, STEPS);
        world_crash(w, WORLD_CLOSED, 0);
        system_be_tiresome(false);
    }
    end(w);
}

static void run_variant(const suite_options *options, uint64_t variant)
{
    suite_options one = *options;
    int failures = 0;

    happened = true;
    for (one.first = variant; happened && failures < FAILURES_MAX; one.first += VARIANTS * options->every) {
        failures += !suite_try(&one, "errnos", 60, run_errno);
        system_fail_after(UINT64_MAX, 0);
    }
    if (failures == 0)
        tap_passed("errnos: each of %" PRIu64 " calls fails, variant %" PRIu64, one.first / VARIANTS,
                   variant);
}

void suite_errnos(const suite_options *options)
{
    if (options->count == 1) {
        suite_run(options, "errnos", 60, run_errno);
        return;
    }
    for (uint64_t variant = 0; variant < VARIANTS; variant++)
        run_variant(options, variant);
}

void suite_short(const suite_options *options)
{
    suite_run(options, "short", 60, run_short);
}
