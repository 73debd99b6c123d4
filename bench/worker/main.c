/* bench/worker/main.c — the worker against the least that would have to be done without it, in one interleaved run.
 *
 *      callback  messages of a server through sl_worker and a C function, against a loop on sl_consumer that acks in its callback
 *      http      a POST for each message, against a loop on curl's multi handle
 *      lines     long-lived processes with a line for each message, against the same lines written and read by a poll loop
 *      exec      a process for each message, against posix_spawn() and waitpid() of the same command
 *      memory    resident memory after a tenth of a million messages and after all of them
 *
 * Each pair does the same work, in turns. Messages of http, lines, exec and memory come from a source inside of the process, so
 * that only the worker is measured; those of callback from `sluice serve` on the same machine. The first messages of each run are
 * not counted: connections and processes are made then. A figure that misses what is wanted is said, and is no error. */
#include "parts.h"

#include "server/peer.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_name[] = "worker";

const bench_wanted bench_wanted_ratios[] = {
    { "callback.loop", "bare", 0.85 },
    { "http", "bare", 0.7 },
    { "lines", "bare", 0.7 },
    { "memory.callback", "first-tenth", 0.95 },
    { "memory.lines", "first-tenth", 0.95 },
    { 0 },
};

static const char help[] =
    "usage: bench-worker [option]...\n"
    "\n"
    "Measures the worker against bare loops that do the same.\n"
    "\n"
    "  --only PARTS      of callback, http, lines, exec, memory, with commas. Default: all\n"
    "  --rounds N        interleaved rounds, 1 to 99. Default: 9\n"
    "  --messages N      percent of the usual number of messages, 1 to 10000. Default: 100\n"
    "  --memory N        messages of the part memory, 1000 to 1000000000. Default: 1000000\n"
    "  --slots N         requests or processes at the same time, 1 to 100. Default: 4\n"
    "  --bytes N         of the data of a message, 1 to 32768. Default: 256\n"
    "  --quick           one round of some messages: shows that it works, not how fast\n"
    "  --folder FOLDER   everything is written to a new folder in this one, which is removed again.\n"
    "                    Default: TMPDIR, else where the program is. Not in memory (tmpfs)\n"
    "  --json FILE       writes what was found to FILE as well; -: to the terminal, instead of the table\n"
    "  --help            this text\n";

static const char *const part_names[] = { "callback", "http", "lines", "exec", "memory", NULL };

static const struct option names[] = {
    { "only", required_argument, NULL, 'o' },
    { "rounds", required_argument, NULL, 'r' },
    { "messages", required_argument, NULL, 'm' },
    { "memory", required_argument, NULL, 'M' },
    { "slots", required_argument, NULL, 's' },
    { "bytes", required_argument, NULL, 'b' },
    { "quick", no_argument, NULL, 'q' },
    { "folder", required_argument, NULL, 'f' },
    { "json", required_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static void take_option(run_options *o, int letter, const char *value)
{
    switch (letter) {
    case 'o': o->common.parts = value; break;
    case 'r': o->common.rounds = (uint32_t)bench_number("rounds", value, 1, BENCH_ROUNDS_MAX); break;
    case 'm': o->scale = (double)bench_number("messages", value, 1, 10000) / 100; break;
    case 'M': o->memory_messages = bench_number("memory", value, 1000, 1000 * 1000 * 1000); break;
    case 's': o->slots = (uint32_t)bench_number("slots", value, 1, 100); break;
    case 'b': o->data_bytes = (uint32_t)bench_number("bytes", value, 1, 32768); break;
    case 'q': o->common.quick = true; break;
    case 'f': o->common.parent = value; break;
    case 'j': o->common.json = value; break;
    case 'h': fputs(help, stdout); exit(0);
    default: fputs("bench-worker: --help shows what can be said\n", stderr); exit(2);
    }
}

static run_options read_options(int count, char **words)
{
    run_options o = {
        .common = { .rounds = 9 }, .scale = 1, .memory_messages = 1000 * 1000, .slots = 4, .data_bytes = 256
    };
    int letter;

    while ((letter = getopt_long(count, words, "", names, NULL)) != -1)
        take_option(&o, letter, optarg);
    if (optind < count) {
        fprintf(stderr, "bench-worker: what is '%s'? --help shows what can be said\n", words[optind]);
        exit(2);
    }
    bench_check_names("only", o.common.parts, part_names);
    if (o.common.quick) {
        o.common.rounds = 1;
        o.scale = 0.02;
        o.memory_messages = 20 * 1000;
    }
    return o;
}

uint64_t run_messages(const run_options *o, uint64_t usual)
{
    const uint64_t count = (uint64_t)((double)usual * o->scale);

    return count < 100 ? 100 : count;
}

static void part(const run_options *o, const char *name, void (*run)(const run_options *))
{
    if (!bench_is_named(o->common.parts, name))
        return;
    run(o);
    if (o->common.json == NULL || strcmp(o->common.json, "-") != 0)
        bench_report_show();
}

static void end_all(void)
{
    child_end_all();
    peer_end_all();
}

int main(int count, char **words)
{
    const run_options o = read_options(count, words);

    bench_check();
    signal(SIGPIPE, SIG_IGN);
    bench_at_end(end_all);
    bench_folder_open(o.common.parent);
    bench_need_space((uint64_t)1 << 30);
    part(&o, "callback", part_callback);
    part(&o, "http", part_http);
    part(&o, "lines", part_lines);
    part(&o, "exec", part_exec);
    part(&o, "memory", part_memory);
    bench_report_end(&o.common);
    if (o.common.quick && o.common.json == NULL)
        printf("A quick run: what is met or missed says nothing.\n");
    bench_folder_close();
    return fflush(stdout) == 0 ? 0 : 1;
}
