/* bench/store/main.c — the journal against the physical limit and against two databases, in one interleaved run.
 *
 *      part_append   durable appends in batches of 1, 10, 100, 1000; bytes sent to the device for each event
 *      part_read     by position, by stream, single events, from the page cache
 *      part_lease    a lease and a settle for each of 100 messages in a commit
 *      part_open     opening a folder of sealed segments, and the memory that it takes
 *
 * Shown is what an embedded store costs one caller who waits for each commit. Not shown: many callers at once, other
 * sizes of events, reads that need the disk, a network. A figure that misses what is wanted is said, and is no error; an
 * answer that is wrong is one. */
#include "common/report.h"
#include "parts.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char help[] =
    "usage: bench-store [option]...\n"
    "\n"
    "Measures the journal against a raw write and fdatasync of the same bytes, SQLite and LMDB.\n"
    "\n"
    "  --only PARTS      of append, read, lease, open, with commas; read needs append. Default: all\n"
    "  --rounds N        interleaved rounds, 1 to 99. Default: 7\n"
    "  --quick           3 short rounds and a small folder: shows that it works, not how fast\n"
    "  --streams N       streams that the events are spread over, 1 to 10000000. Default: 10000\n"
    "  --gigabytes N     size of the folder that is opened, 1 to 1000. Default: 1\n"
    "  --events N        the same, in events of 256 bytes\n"
    "  --seed N          of streams and data. Default: 1\n"
    "  --folder FOLDER   everything is written to a new folder in this one, which is removed again.\n"
    "                    Default: TMPDIR, else where the program is. Not in memory (tmpfs)\n"
    "  --json FILE       writes what was found to FILE as well; -: to the terminal, instead of the table\n"
    "  --inspect FOLDER  only opens that journal, reads, and prints seconds and memory; used by the program "
    "itself\n"
    "  --help            this text\n"
    "\n"
    "For the figures that the project wants: bench-store --only open --gigabytes 10, and\n"
    "bench-store --only open --events 20000000 --streams 1000000. Ends with 1 when something does not "
    "work.\n";

const char bench_name[] = "store";

const bench_wanted bench_wanted_ratios[] = {
    { "append.1", "raw", 0.8 },         { "append.10", "raw", 0.8 },
    { "append.100", "raw", 0.8 },       { "append.1000", "raw", 0.8 },
    { "append.100", "sqlite", 3.5 },    { "append.1000", "sqlite", 7 },
    { "lease_settle.100", "raw", 0.8 }, { 0 },
};

enum {
    ROUNDS = 7,
    QUICK_ROUNDS = 3,
    STREAMS = 10000,
    QUICK_EVENTS = 300000,
    SPACE_APPEND_MB = 6000, /* all four, with what SQLite and LMDB make of it; a quick run needs a fifth */
    SPACE_FACTOR = 2,       /* of the opened folder: index files, a segment made ahead */
};

/* --- options --- */

static const char *const parts[] = { "append", "read", "lease", "open", NULL };

static const struct option names[] = {
    { "only", required_argument, NULL, 'o' },   { "rounds", required_argument, NULL, 'r' },
    { "quick", no_argument, NULL, 'q' },        { "streams", required_argument, NULL, 's' },
    { "events", required_argument, NULL, 'e' }, { "gigabytes", required_argument, NULL, 'g' },
    { "seed", required_argument, NULL, 'd' },   { "folder", required_argument, NULL, 'f' },
    { "json", required_argument, NULL, 'j' },   { "inspect", required_argument, NULL, 'i' },
    { "help", no_argument, NULL, 'h' },         { 0 },
};

typedef struct request {
    bench_options options;
    const char *inspect; /* NULL: measure */
} request;

static void take_option(request *r, int letter, const char *value)
{
    bench_options *const o = &r->options;

    switch (letter) {
    case 'o': o->parts = value; break;
    case 'r': o->rounds = (uint32_t)bench_number("rounds", value, 1, BENCH_ROUNDS_MAX); break;
    case 'q': o->quick = true; break;
    case 's': o->streams = (uint32_t)bench_number("streams", value, 1, BENCH_STREAMS_MAX); break;
    case 'e': o->events = bench_number("events", value, 1, UINT64_C(10000000000)); break;
    case 'g': o->gigabytes = bench_number("gigabytes", value, 1, 1000); break;
    case 'd': o->seed = bench_number("seed", value, 0, UINT32_MAX); break;
    case 'f': o->parent = value; break;
    case 'j': o->json = value; break;
    case 'i': r->inspect = value; break;
    case 'h': fputs(help, stdout); exit(0);
    default: fputs("bench-store: --help shows what can be said\n", stderr); exit(2);
    }
}

static request read_options(int count, char **words)
{
    request r = { .options = { .streams = STREAMS, .gigabytes = 1, .seed = 1 } };
    int letter;

    while ((letter = getopt_long(count, words, "", names, NULL)) != -1)
        take_option(&r, letter, optarg);
    if (optind < count) {
        fprintf(stderr, "bench-store: what is '%s'? --help shows what can be said\n", words[optind]);
        exit(2);
    }
    bench_check_names("only", r.options.parts, parts);
    if (r.options.rounds == 0)
        r.options.rounds = r.options.quick ? QUICK_ROUNDS : ROUNDS;
    if (r.options.quick && r.options.events == 0)
        r.options.events = QUICK_EVENTS;
    return r;
}

/* --- running --- */

static void show(const bench_options *options)
{
    if (options->json == NULL || strcmp(options->json, "-") != 0)
        bench_report_show();
}

static void need_space(const bench_options *options)
{
    const uint64_t append_bytes = (uint64_t)SPACE_APPEND_MB << 20;
    const uint64_t open_bytes =
        options->events != 0 ? options->events * bench_event_record_bytes() : options->gigabytes << 30;

    if (bench_is_named(options->parts, "append"))
        bench_need_space(options->quick ? append_bytes / 5 : append_bytes * options->rounds / ROUNDS);
    if (bench_is_named(options->parts, "open"))
        bench_need_space(SPACE_FACTOR * open_bytes + ((uint64_t)1 << 28));
}

static void run_append_and_read(const bench_options *options)
{
    bench_stores stores;

    bench_stores_open(&stores, options);
    bench_part_append(&stores, options);
    show(options);
    if (bench_is_named(options->parts, "read"))
        bench_part_read(&stores, options);
    show(options);
    bench_stores_close(&stores);
}

static void run(const bench_options *options)
{
    bench_check();
    bench_folder_open(options->parent);
    need_space(options);
    if (bench_is_named(options->parts, "append") || bench_is_named(options->parts, "read"))
        run_append_and_read(options);
    if (bench_is_named(options->parts, "lease"))
        bench_part_lease(options);
    show(options);
    if (bench_is_named(options->parts, "open"))
        bench_part_open(options);
    show(options);
    bench_report_end(options);
    if (options->quick && options->json == NULL)
        printf("A quick run: what is met or missed says nothing.\n");
    bench_folder_close();
}

int main(int count, char **words)
{
    const request r = read_options(count, words);

    if (r.inspect != NULL)
        bench_inspect(r.inspect, &r.options);
    else
        run(&r.options);
    return fflush(stdout) == 0 ? 0 : 1;
}
