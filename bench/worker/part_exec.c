/* bench/worker/part_exec.c — a process for each message: the exec handler of the worker against posix_spawn() and waitpid().
 *
 * The bare loop gives the data over a pipe and waits for the end of the process, one at a time: as many at a time as the worker has
 * would be no faster on two cores, since starting a program is all that is done. So the worker has one slot here. Nothing is wanted
 * of the ratio: a handler for which it matters is one with lines. */
#include "handlers.h"
#include "meter.h"
#include "pipes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGES = 500,
};

static double bare_rate(const run_options *o)
{
    meter m = meter_of(run_messages(o, MESSAGES));
    char *const data = bench_allocate(o->data_bytes);

    memset(data, 'x', o->data_bytes);
    for (uint64_t done = 0; meter_note(&m, done); done++) {
        piped p = piped_start(child_command("once"));

        bench_check();
        if (write(p.to, data, o->data_bytes) != (ssize_t)o->data_bytes)
            bench_fail("a process does not take its message");
        piped_end(&p);
    }
    free(data);
    return meter_rate(&m);
}

static double our_rate(const run_options *o)
{
    const work_setup setup = { .messages = run_messages(o, MESSAGES),
                               .slots = 1,
                               .data_bytes = o->data_bytes,
                               .target = child_command("once"),
                               .make = make_exec };

    return work_run(&setup);
}

void part_exec(const run_options *o)
{
    static double ours[BENCH_ROUNDS_MAX], theirs[BENCH_ROUNDS_MAX];

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        bench_progress("exec", round, o->common.rounds);
        theirs[round] = bare_rate(o);
        ours[round] = our_rate(o);
    }
    bench_progress("", 0, 0);
    bench_report_speed("exec", "bare", ours, theirs, o->common.rounds, "messages/s");
}
