/* bench/worker/part_memory.c — is memory flat? Resident memory of a process after a tenth of its messages and after all of them.
 *
 * Each run has a process of its own, since memory that another part has used would hide what this one takes. The first tenth is where
 * buffers and pools find their sizes; what comes after that must add nothing. */
#include "handlers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CALLBACK_SLOTS = 100,
};

typedef struct samples {
    double first, last; /* resident bytes */
} samples;

typedef struct memory_run {
    work_setup setup;
    samples found;
    int answer_fd;
} memory_run;

static void look(void *ctx, uint64_t acked)
{
    memory_run *const m = ctx;

    if (m->found.first == 0 && acked >= m->setup.messages / 10)
        m->found.first = resident_bytes();
    if (m->found.last == 0 && acked == m->setup.messages)
        m->found.last = resident_bytes();
}

static void run(void *ctx)
{
    memory_run *const m = ctx;

    m->setup.look = look;
    m->setup.look_ctx = m;
    (void)work_run(&m->setup);
    if (write(m->answer_fd, &m->found, sizeof m->found) != (ssize_t)sizeof m->found)
        _exit(1);
}

static samples measure(const work_setup *setup)
{
    memory_run m = { .setup = *setup };
    int answer[2];

    if (pipe(answer) < 0)
        bench_fail("no pipe: %s", strerror(errno));
    m.answer_fd = answer[1];
    const pid_t process = child_fork(run, &m);
    close(answer[1]);
    const ssize_t got = read(answer[0], &m.found, sizeof m.found);
    close(answer[0]);
    child_end(process);
    if (got != (ssize_t)sizeof m.found)
        bench_fail("the process whose memory is measured did not come to its end");
    return m.found;
}

static void report(const char *what, samples found)
{
    const double first = found.first / (1 << 20), last = found.last / (1 << 20);

    bench_report_cost(what, "first-tenth", &last, &first, 1, "MiB");
}

void part_memory(const run_options *o)
{
    const work_setup callback = { .messages = o->memory_messages,
                                  .slots = CALLBACK_SLOTS,
                                  .data_bytes = o->data_bytes,
                                  .make = make_callback };
    const work_setup lines = { .messages = o->memory_messages,
                               .slots = o->slots,
                               .data_bytes = o->data_bytes,
                               .target = child_command(""),
                               .make = make_lines };

    bench_progress("memory", 0, 2);
    report("memory.callback", measure(&callback));
    bench_progress("memory", 1, 2);
    report("memory.lines", measure(&lines));
    bench_progress("", 0, 0);
}
