/* bench/worker/part_lines.c — long-lived processes: the lines handler of the worker against a poll loop that writes and reads the same.
 *
 * The bare loop writes a line that was made before, and looks for nothing in an answer but its end. The worker makes each line, finds a
 * message's end in it by its id, and keeps its lease, its time limit and its place in a drain meanwhile. */
#include "handlers.h"
#include "meter.h"
#include "pipes.h"

#include "base/buf.h"
#include "worker/lines_text.h"
#include "worker/memory_source.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGES = 50 * 1000,
    SLOTS_MAX = 100,
    ANSWER_BYTES_MAX = 256,
    POLL_MS_MAX = 10 * 1000,
};

/* --- the bare loop --- */

/* As the memory source makes them, so that both have the same bytes to move. */
static void make_line(const run_options *o, sl_buf *ret_line)
{
    char *const data = bench_allocate(o->data_bytes + 1);
    const bool is_json = o->data_bytes >= SL_MEMORY_JSON_BYTES_MIN;
    const sl_memory_settings usual = sl_memory_settings_default();
    sl_job_message message = { .token = 1,
                               .attempt = 1,
                               .revision = MESSAGES,
                               .stream = SL_STR("memory"),
                               .type = sl_str_from(usual.type),
                               .content_type =
                                   is_json ? SL_STR("application/json") : SL_STR("application/octet-stream"),
                               .data = { data, o->data_bytes } };

    memset(data, 'x', o->data_bytes);
    if (is_json) {
        data[0] = data[o->data_bytes - 1] = '"';
    }
    sl_job *const job = sl_job_new(&message);
    if (job == NULL)
        bench_fail("no memory for a message");
    job->until_ns = UINT64_MAX;
    sl_buf_init(ret_line, &sl_alloc_default, 1 << 20);
    bench_must(sl_lines_add_message(ret_line, job, 0), "a line");
    sl_job_free(job);
    free(data);
}

static void write_line(const piped *p, const sl_buf *line)
{
    if (write(p->to, sl_buf_data(line), line->bytes) != (ssize_t)line->bytes)
        bench_fail("a process does not take a line: %s", strerror(errno));
}

static uint32_t read_answers(const piped *p)
{
    char text[ANSWER_BYTES_MAX];
    const ssize_t got = read(p->from, text, sizeof text);

    if (got <= 0)
        bench_fail("a process went away");
    return text[got - 1] == '\n'; /* one message at a time: more than one line cannot come */
}

static void run_lines(const piped *children, uint32_t count, const sl_buf *line, meter *m)
{
    struct pollfd ready[SLOTS_MAX];
    uint64_t begun = 0, done = 0;

    for (uint32_t i = 0; i < count; i++, begun++) {
        ready[i] = (struct pollfd){ .fd = children[i].from, .events = POLLIN };
        write_line(&children[i], line);
    }
    while (meter_note(m, done)) {
        bench_check();
        if (poll(ready, count, POLL_MS_MAX) == 0)
            bench_fail("the processes do not answer");
        for (uint32_t i = 0; i < count; i++) {
            if (ready[i].revents == 0 || read_answers(&children[i]) == 0)
                continue;
            done++;
            if (begun++ < m->total)
                write_line(&children[i], line);
        }
    }
}

static double bare_rate(const run_options *o)
{
    piped children[SLOTS_MAX];
    meter m = meter_of(run_messages(o, MESSAGES));
    sl_buf line;

    make_line(o, &line);
    for (uint32_t i = 0; i < o->slots; i++)
        children[i] = piped_start(child_command(""));
    run_lines(children, o->slots, &line, &m);
    for (uint32_t i = 0; i < o->slots; i++)
        piped_end(&children[i]);
    sl_buf_done(&line);
    return meter_rate(&m);
}

/* --- ours --- */

static double our_rate(const run_options *o)
{
    const work_setup setup = { .messages = run_messages(o, MESSAGES),
                               .slots = o->slots,
                               .data_bytes = o->data_bytes,
                               .target = child_command(""),
                               .make = make_lines };

    return work_run(&setup);
}

void part_lines(const run_options *o)
{
    static double ours[BENCH_ROUNDS_MAX], theirs[BENCH_ROUNDS_MAX];

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        bench_progress("lines", round, o->common.rounds);
        theirs[round] = bare_rate(o);
        ours[round] = our_rate(o);
    }
    bench_progress("", 0, 0);
    bench_report_speed("lines", "bare", ours, theirs, o->common.rounds, "messages/s");
}
