/* tests/faults/kill.c — real processes on a real folder, ended by SIGKILL at any moment.
 *
 * A child works on the folder and says in shared memory how far it came; the parent kills it. What the child has sent
 * follows from the seed alone, so the parent draws the same batches for its own model. Then a second child opens the folder,
 * compares, and says which batch was the last one that is there. It leaves without closing, as if killed, so that every
 * opening of a case but the first finds what a dead process has left. */
#include "folder.h"
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 10, /* of one case, on one folder */
    MICROSECONDS_MAX = 12 * 1000
};

typedef struct shared {
    world_progress progress;
    model survived;
    _Atomic bool opened;
} shared;

static world whole; /* too large for a stack */
static shared *both;
static uint64_t batch_total, promised_total;

/* The child of which nothing comes back but what it wrote down. */
__attribute__((noreturn)) static void work_until_killed(world *w)
{
    report_in_child();
    world_open(w);
    both->opened = true;
    for (;;) {
        world_work(w, 100);
        if (w->batch_count > WORLD_BATCHES_MAX - 200)
            pause(); /* it is fast: nothing more is left to be sent */
    }
}

__attribute__((noreturn)) static void look(world *w, bool in_order)
{
    report_in_child();
    world_open(w);
    both->survived = w->now;
    both->progress.end = sl_store_end(w->store);
    if (in_order)
        world_crash(w, WORLD_CLOSED, 0);
    _exit(0);
}

static pid_t start(void)
{
    const pid_t child = fork();

    CHECK(child >= 0, "no process can be started");
    return child;
}

static void pause_for(uint64_t microseconds)
{
    const struct timespec time = { .tv_nsec = (long)microseconds * 1000 };

    nanosleep(&time, NULL);
}

/* Sometimes at once, in the middle of opening, mostly later. */
static void kill_at_some_moment(world *w, pid_t child)
{
    const uint64_t patience = dice_pick(&w->timing, MICROSECONDS_MAX);
    int status = 0;

    if (!dice_one_in(&w->timing, 5))
        while (!both->opened && waitpid(child, &status, WNOHANG) == 0)
            pause_for(100);
    pause_for(patience);
    kill(child, SIGKILL);
    if (status == 0)
        waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
          "the working process ended by itself, see above");
}

static void one_round(world *w)
{
    pid_t child;
    int status;

    both->opened = false;
    child = start();
    if (child == 0)
        work_until_killed(w);
    kill_at_some_moment(w, child);
    batch_total += both->progress.sent;
    promised_total += both->progress.synced;
    world_replay(w, both->progress.sent);
    w->ended = WORLD_KILLED;
    child = start();
    if (child == 0)
        look(w, dice_one_in(&w->timing, 4));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "what the killed process left is not right, see above");
}

/* The model goes on where the second child found the store. */
static void go_on(world *w)
{
    const uint64_t end = both->progress.end;

    w->now = w->history[0] = both->survived;
    w->batch_count = 0;
    w->from.fresh_number = w->from.next_number;
    memset(&both->progress, 0, sizeof both->progress);
    both->progress.end = end;
    w->ended = WORLD_CLOSED;
    w->timing = dice_from(w->seed, dice_draw(&w->timing));
}

static void run(uint64_t seed, const suite_options *options)
{
    static const uint64_t segments[] = { 32, 64, 256 };
    world *const w = &whole;

    (void)options;
    model_begin(true);
    world_init(w, seed);
    memset(both, 0, sizeof *both);
    w->folder = folder_make();
    w->progress = &both->progress;
    w->options.segment_bytes = 1024 * segments[seed % 3];
    w->options.inline_max = seed % 2 == 0 ? 1 : 16;
    for (int i = 0; i < ROUNDS; i++) {
        one_round(w);
        go_on(w);
    }
    folder_remove();
    world_done(w);
}

void suite_kill(const suite_options *options)
{
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED)
        abort();
    suite_run(options, "kill", 60, run);
    tap_note("%" PRIu64 " kills; %" PRIu64 " batches, of which %" PRIu64 " were promised",
             options->count * ROUNDS, batch_total, promised_total);
    munmap(both, sizeof *both);
}
