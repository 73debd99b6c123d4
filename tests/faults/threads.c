/* tests/faults/threads.c — everything at once for a while: appending, syncing, sealing, reading with slow reads, and a cursor
 * that follows. Made for the thread sanitizer. Odd cases run on the simulated disk, even ones on a folder. */
#include "folder.h"
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <time.h>

static world whole; /* too large for a stack */

static bool is_over(const struct timespec *began)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > began->tv_sec && (now.tv_sec > began->tv_sec + 1 || now.tv_nsec >= began->tv_nsec);
}

static void one_life(world *w)
{
    struct timespec began;

    world_open(w);
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (w->batch_count < WORLD_BATCHES_MAX - 50 && !is_over(&began)) {
        world_work(w, 20);
        world_settle(w);
        judge_stream(w, (int)dice_pick(&w->timing, (uint64_t)(2 * MODEL_STREAMS)), JUDGE_STRICT);
    }
    world_crash(w, WORLD_CLOSED, 0);
}

static void run(uint64_t number, const suite_options *options)
{
    world *const w = &whole;

    (void)options;
    model_begin(false);
    world_init(w, number);
    w->options = (sl_journal_options){ .segment_bytes = 32 * 1024, .inline_max = 1 };
    if (number % 2 == 0) {
        w->folder = folder_make();
    } else {
        w->disk = sl_faulty_new();
        sl_faulty_slow_reads(w->disk, 2);
    }
    for (int life = 0; life < 4; life++)
        one_life(w);
    if (w->folder != NULL)
        folder_remove();
    world_done(w);
}

void suite_threads(const suite_options *options)
{
    suite_run(options, "threads", 120, run);
}
