/* bench/server/main.c — our server against other message systems, each with one producer on loopback, in one interleaved run.
 *
 *      append   messages of 256 bytes, confirmed, with 1, 16, 256 and 1000 on their way
 *      latency  at 2,000 messages a second, from when a message was due until it was confirmed
 *      read     ours alone: everything in order, and from an append until a subscriber has it
 *      node     ours alone: the official Node client, when tests/clients is installed
 *
 * One server at a time runs, all others wait, since the machine has two cores. Confirmed means something else for each: the table
 * in bench/README.md says who has the message on the disk by then. A figure that misses what is wanted is said, and is no
 * error. Not shown: many producers, other sizes, a network. */
#include "common/report.h"
#include "load.h"
#include "parts.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_name[] = "server";

const bench_wanted bench_wanted_ratios[] = {
    { "append.1", "raw", 0.8 },         { "append.1000", "redis-always", 3 }, { "append.1000", "*", 1 },
    { "p50.2000", "best-flushing", 1 }, { "p99.2000", "best-flushing", 1 },   { 0 },
};

static const char help[] =
    "usage: bench-server [option]...\n"
    "\n"
    "Measures the server against other message systems, as far as they are installed (tools/setup bench).\n"
    "\n"
    "  --only PARTS      of append, latency, read, node, with commas. Default: all\n"
    "  --peers NAMES     only these, with commas; none: only ours\n"
    "  --rounds N        interleaved rounds, 1 to 99. Default: 3\n"
    "  --seconds N       of one measurement, 1 to 60. Default: 2\n"
    "  --quick           one round of a fifth of a second: shows that it works, not how fast\n"
    "  --folder FOLDER   everything is written to a new folder in this one, which is removed again.\n"
    "                    Default: TMPDIR, else where the program is. Not in memory (tmpfs)\n"
    "  --json FILE       writes what was found to FILE as well; -: to the terminal, instead of the table\n"
    "  --help            this text\n";

static const char *const part_names[] = { "append", "latency", "read", "node", NULL };
static const char *const peer_names[] = { "none",       "redis-always",     "redis-everysec",
                                          "nats",       "rabbitmq-classic", "rabbitmq-quorum",
                                          "beanstalkd", "beanstalkd-f0",    "postgres",
                                          NULL };

static const struct option names[] = {
    { "only", required_argument, NULL, 'o' },
    { "peers", required_argument, NULL, 'p' },
    { "rounds", required_argument, NULL, 'r' },
    { "seconds", required_argument, NULL, 's' },
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
    case 'p': o->peers = value; break;
    case 'r': o->common.rounds = (uint32_t)bench_number("rounds", value, 1, BENCH_ROUNDS_MAX); break;
    case 's': o->seconds = (double)bench_number("seconds", value, 1, 60); break;
    case 'q': o->common.quick = true; break;
    case 'f': o->common.parent = value; break;
    case 'j': o->common.json = value; break;
    case 'h': fputs(help, stdout); exit(0);
    default: fputs("bench-server: --help shows what can be said\n", stderr); exit(2);
    }
}

static run_options read_options(int count, char **words)
{
    run_options o = { .common = { .rounds = 3 }, .seconds = 2 };
    int letter;

    while ((letter = getopt_long(count, words, "", names, NULL)) != -1)
        take_option(&o, letter, optarg);
    if (optind < count) {
        fprintf(stderr, "bench-server: what is '%s'? --help shows what can be said\n", words[optind]);
        exit(2);
    }
    bench_check_names("only", o.common.parts, part_names);
    bench_check_names("peers", o.peers, peer_names);
    if (o.common.quick) {
        o.common.rounds = 1;
        o.seconds = 0.2;
    }
    return o;
}

static void part(const run_options *o, const char *name, void (*run)(const run_options *))
{
    if (!bench_is_named(o->common.parts, name))
        return;
    run(o);
    if (o->common.json == NULL || strcmp(o->common.json, "-") != 0)
        bench_report_show();
}

int main(int count, char **words)
{
    const run_options o = read_options(count, words);

    bench_check();
    bench_at_end(peer_end_all);
    bench_folder_open(o.common.parent);
    bench_need_space((uint64_t)4 << 30);
    part(&o, "append", part_append);
    part(&o, "latency", part_latency);
    part(&o, "read", part_read);
    part(&o, "node", part_node);
    bench_report_end(&o.common);
    if (o.common.quick && o.common.json == NULL)
        printf("A quick run: what is met or missed says nothing.\n");
    bench_folder_close();
    return fflush(stdout) == 0 ? 0 : 1;
}
