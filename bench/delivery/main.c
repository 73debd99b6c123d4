/* bench/delivery/main.c — append, deliver and acknowledge, our server against others, in one interleaved run.
 *
 *      rate     end to end: a producer with 1,000 unconfirmed, C consumers with a window of W; until everything is acknowledged
 *      latency  at 2,000 messages a second, from when a message was due until a consumer has it
 *      groups   ours alone: 1 to 1,000 groups that all get everything; deliveries a second
 *      behind   ours alone: a group that is 10 million messages behind
 *      memory   ours alone: bytes of the server for each message that is delivered and not settled
 *
 * One server at a time runs. The producer is a process, all consumers together are another one, so with the server three share
 * the cores. What "confirmed" and "acknowledged" mean for each system is in bench/README.md. A figure that misses what is wanted
 * is said, and is no error. */
#include "common/report.h"
#include "run.h"
#include "sluice_groups.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const char bench_name[] = "delivery";

const bench_wanted bench_wanted_ratios[] = {
    { "deliver.1x1000", "redis-always", 2.5 },
    { "deliver.1x1000", "redis-everysec", 1.3 },
    { "deliver.1x1000", "*", 1 },
    { "deliver.8x100", "redis-always", 2.5 },
    { "deliver.8x100", "redis-everysec", 1.3 },
    { "deliver.8x100", "*", 1 },
    { "p50.2000", "best-flushing", 1 / 0.6 },
    { "p99.2000", "best-flushing", 1 },
    { "groups.1000", "groups.1", 0.8 },
    { "behind", "live", 0.8 },
    { 0 },
};

enum {
    PACE = 2000,
    OTHERS_MAX = 16,
    HELD_GROUPS = 20,
    HELD_EACH = 4000,
    HELD_BYTES_WANTED = 200,
};

typedef struct shape {
    uint32_t consumers, window;
    bool with_peers;
} shape;

static const shape shapes[] = { { 1, 10, false },  { 1, 100, true },  { 1, 1000, true },
                                { 8, 10, false },  { 8, 100, true },  { 8, 1000, false },
                                { 64, 10, false }, { 64, 100, true }, { 64, 1000, false } };
enum {
    SHAPE_COUNT = sizeof shapes / sizeof shapes[0]
};

typedef struct options {
    bench_options common;
    const char *peers;
    double seconds;
    uint64_t behind;
} options;

typedef struct figures {
    const consumer_kind *kind;
    double rate[SHAPE_COUNT][BENCH_ROUNDS_MAX];
    double p50_ms[BENCH_ROUNDS_MAX], p99_ms[BENCH_ROUNDS_MAX];
} figures;

static const char help[] =
    "usage: bench-delivery [option]...\n"
    "\n"
    "Measures persistent subscriptions against the queues of other message systems, as far as they are\n"
    "installed (tools/setup bench).\n"
    "\n"
    "  --only PARTS      of rate, latency, groups, behind, memory, with commas. Default: all\n"
    "  --peers NAMES     only these, with commas; none: only ours\n"
    "  --rounds N        interleaved rounds, 1 to 99. Default: 3\n"
    "  --seconds N       of one measurement, 1 to 60. Default: 2\n"
    "  --behind N        messages of the part `behind`. Default: 10000000\n"
    "  --quick           one round of a fifth of a second: shows that it works, not how fast\n"
    "  --folder FOLDER   everything is written to a new folder in this one, which is removed again.\n"
    "                    Default: TMPDIR, else where the program is. Not in memory (tmpfs)\n"
    "  --json FILE       writes what was found to FILE as well; -: to the terminal, instead of the table\n"
    "  --help            this text\n";

/* --- who takes part --- */

static size_t choose(const options *o, figures *others)
{
    size_t count = 0;

    for (size_t i = 0; consumer_others[i] != NULL; i++) {
        const peer_kind *const server = consumer_others[i]->peer;

        if (!bench_is_named(o->peers, server->name))
            continue;
        if (peer_available(server))
            others[count++].kind = consumer_others[i];
        else
            fprintf(stderr, "bench-delivery: %s is not installed and left out (tools/setup bench)\n",
                    server->name);
    }
    return count;
}

static void start(peer *p, const consumer_kind *kind)
{
    peer_start(p, kind->peer);
    if (kind->prepare != NULL)
        kind->prepare(p);
    run_begin(p);
}

static void stop(peer *p)
{
    run_end();
    peer_stop(p);
    bench_quiet();
}

/* --- rate --- */

static void measure_rates(figures *f, const options *o, uint32_t round, bool ours)
{
    peer p;

    bench_progress(f->kind->peer->name, round, o->common.rounds);
    start(&p, f->kind);
    for (size_t i = 0; i < SHAPE_COUNT; i++)
        if (ours || shapes[i].with_peers)
            f->rate[i][round] = run_rate(&(run_setup){ .kind = f->kind,
                                                       .server = &p,
                                                       .consumer_count = shapes[i].consumers,
                                                       .window = shapes[i].window },
                                         o->seconds);
    stop(&p);
}

static void part_rate(const options *o)
{
    static figures ours = { .kind = &consumer_sluice }, others[OTHERS_MAX];
    const size_t count = choose(o, others);
    char what[32];

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        measure_rates(&ours, o, round, true);
        for (size_t i = 0; i < count; i++)
            measure_rates(&others[i], o, round, false);
    }
    bench_progress("", 0, 0);
    for (size_t s = 0; s < SHAPE_COUNT; s++) {
        snprintf(what, sizeof what, "deliver.%ux%u", shapes[s].consumers, shapes[s].window);
        bench_report_least(what, bench_median(ours.rate[s], o->common.rounds), "messages/s", 0);
        for (size_t i = 0; i < count && shapes[s].with_peers; i++)
            bench_report_speed(what, others[i].kind->peer->name, ours.rate[s], others[i].rate[s],
                               o->common.rounds, "messages/s");
    }
}

/* --- latency --- */

static void measure_latency(figures *f, const options *o, uint32_t round)
{
    peer p;

    bench_progress(f->kind->peer->name, round, o->common.rounds);
    start(&p, f->kind);
    const load_latency found =
        run_latency(&(run_setup){ .kind = f->kind, .server = &p, .consumer_count = 1, .window = 100 }, PACE,
                    o->seconds * 2);
    f->p50_ms[round] = found.p50_ms;
    f->p99_ms[round] = found.p99_ms;
    stop(&p);
}

static void report_best(const char *what, const double *ours, const figures *others, size_t count, bool tail,
                        const options *o)
{
    double best[BENCH_ROUNDS_MAX];
    bool any = false;

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        best[round] = 1e9;
        for (size_t i = 0; i < count; i++) {
            const double value = tail ? others[i].p99_ms[round] : others[i].p50_ms[round];
            if (others[i].kind->peer->flushes && value < best[round])
                best[round] = value, any = true;
        }
    }
    if (any)
        bench_report_cost(what, "best-flushing", ours, best, o->common.rounds, "ms");
}

static void part_latency(const options *o)
{
    static figures ours = { .kind = &consumer_sluice }, others[OTHERS_MAX];
    const size_t count = choose(o, others);

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        measure_latency(&ours, o, round);
        for (size_t i = 0; i < count; i++)
            measure_latency(&others[i], o, round);
    }
    bench_progress("", 0, 0);
    bench_report_most("p50.2000", bench_median(ours.p50_ms, o->common.rounds), "ms", 0);
    bench_report_most("p99.2000", bench_median(ours.p99_ms, o->common.rounds), "ms", 0);
    for (size_t i = 0; i < count; i++) {
        bench_report_cost("p50.2000", others[i].kind->peer->name, ours.p50_ms, others[i].p50_ms,
                          o->common.rounds, "ms");
        bench_report_cost("p99.2000", others[i].kind->peer->name, ours.p99_ms, others[i].p99_ms,
                          o->common.rounds, "ms");
    }
    report_best("p50.2000", ours.p50_ms, others, count, false, o);
    report_best("p99.2000", ours.p99_ms, others, count, true, o);
}

/* --- ours alone --- */

static double measure_groups(const options *o, uint32_t groups)
{
    peer p;

    peer_start(&p, &peer_sluice);
    sluice_groups_make(&p, groups > 1 ? "group" : "workers", groups, false);
    run_begin(&p);
    const double rate = run_rate(&(run_setup){ .kind = &consumer_sluice,
                                               .server = &p,
                                               .consumer_count = groups,
                                               .window = 100,
                                               .group_count = groups },
                                 o->seconds);
    stop(&p);
    return rate;
}

static void part_groups(const options *o)
{
    static const uint32_t counts[] = { 1, 10, 100, 1000 };
    static double rate[4][BENCH_ROUNDS_MAX];
    char what[32];

    for (uint32_t round = 0; round < o->common.rounds; round++)
        for (size_t i = 0; i < 4; i++) {
            bench_progress("groups", round, o->common.rounds);
            rate[i][round] = measure_groups(o, counts[i]);
        }
    bench_progress("", 0, 0);
    bench_report_least("groups.1", bench_median(rate[0], o->common.rounds), "deliveries/s", 0);
    for (size_t i = 1; i < 4; i++) {
        snprintf(what, sizeof what, "groups.%u", counts[i]);
        bench_report_speed(what, "groups.1", rate[i], rate[0], o->common.rounds, "deliveries/s");
    }
}

static void fill(peer *p, uint64_t count)
{
    for (uint64_t done = 0; done < count;) {
        p->kind->put(p, 1000);
        const uint32_t confirmed = p->kind->wait(p, (uint64_t)ANSWER_SECONDS_MAX * 1000000000);
        if (confirmed == 0)
            bench_fail("sluice: no answer");
        done += confirmed;
    }
}

/* The first messages of a long backlog against the last ones of a short one. */
static void part_behind(const options *o)
{
    const uint64_t count = o->common.quick ? 20 * 1000 : 400 * 1000;
    const run_setup setup = { .kind = &consumer_sluice, .consumer_count = 8, .window = 100 };
    double behind[1], live[1];
    run_setup now = setup;
    peer p;

    bench_progress("behind", 0, 1);
    peer_start(&p, &peer_sluice_batch);
    now.server = &p;
    consumer_sluice.prepare(&p);
    fill(&p, count);
    live[0] = run_backlog(&now, count);
    fill(&p, o->common.quick ? 2 * count : o->behind);
    behind[0] = run_backlog(&now, count);
    peer_stop(&p);
    bench_progress("", 0, 0);
    bench_report_speed("behind", "live", behind, live, 1, "messages/s");
}

static double resident_bytes(const peer *p)
{
    char path[64];
    unsigned long pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)p->process);
    FILE *const file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        bench_fail("no memory figures of the server");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void part_memory(const options *o)
{
    const uint32_t each = o->common.quick ? HELD_EACH / 10 : HELD_EACH;
    peer p;

    bench_progress("memory", 0, 1);
    peer_start(&p, &peer_sluice_batch);
    fill(&p, each);
    const double before = resident_bytes(&p);
    sluice_groups_make(&p, "group", HELD_GROUPS, false); /* from here on they read ahead */
    const double held = run_held(&(run_setup){ .kind = &consumer_sluice,
                                               .server = &p,
                                               .consumer_count = HELD_GROUPS,
                                               .window = each,
                                               .group_count = HELD_GROUPS },
                                 (uint64_t)HELD_GROUPS * each, &p, resident_bytes);
    peer_stop(&p);
    bench_progress("", 0, 0);
    bench_report_most("memory", (held - before) / ((double)HELD_GROUPS * each) - PAYLOAD_BYTES,
                      "bytes/message", HELD_BYTES_WANTED);
}

/* --- the program --- */

static const char *const part_names[] = { "rate", "latency", "groups", "behind", "memory", NULL };
static const char *const peer_names[] = { "none",       "redis-always",     "redis-everysec",
                                          "nats",       "rabbitmq-classic", "rabbitmq-quorum",
                                          "beanstalkd", "beanstalkd-f0",    "postgres",
                                          NULL };

static const struct option names[] = {
    { "only", required_argument, NULL, 'o' },   { "peers", required_argument, NULL, 'p' },
    { "rounds", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
    { "behind", required_argument, NULL, 'b' }, { "quick", no_argument, NULL, 'q' },
    { "folder", required_argument, NULL, 'f' }, { "json", required_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },         { 0 },
};

static void take_option(options *o, int letter, const char *value)
{
    switch (letter) {
    case 'o': o->common.parts = value; break;
    case 'p': o->peers = value; break;
    case 'r': o->common.rounds = (uint32_t)bench_number("rounds", value, 1, BENCH_ROUNDS_MAX); break;
    case 's': o->seconds = (double)bench_number("seconds", value, 1, 60); break;
    case 'b': o->behind = bench_number("behind", value, 1, 1000 * 1000 * 1000); break;
    case 'q': o->common.quick = true; break;
    case 'f': o->common.parent = value; break;
    case 'j': o->common.json = value; break;
    case 'h': fputs(help, stdout); exit(0);
    default: fputs("bench-delivery: --help shows what can be said\n", stderr); exit(2);
    }
}

static options read_options(int count, char **words)
{
    options o = { .common = { .rounds = 3 }, .seconds = 2, .behind = 10 * 1000 * 1000 };
    int letter;

    while ((letter = getopt_long(count, words, "", names, NULL)) != -1)
        take_option(&o, letter, optarg);
    if (optind < count) {
        fprintf(stderr, "bench-delivery: what is '%s'? --help shows what can be said\n", words[optind]);
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

static void part(const options *o, const char *name, void (*run)(const options *))
{
    if (!bench_is_named(o->common.parts, name))
        return;
    run(o);
    if (o->common.json == NULL || strcmp(o->common.json, "-") != 0)
        bench_report_show();
}

/* A thousand groups are as many connections, here and there. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int count, char **words)
{
    const options o = read_options(count, words);

    bench_check();
    allow_many_files();
    bench_at_end(peer_end_all);
    bench_folder_open(o.common.parent);
    bench_need_space((uint64_t)8 << 30);
    part(&o, "rate", part_rate);
    part(&o, "latency", part_latency);
    part(&o, "groups", part_groups);
    part(&o, "behind", part_behind);
    part(&o, "memory", part_memory);
    bench_report_end(&o.common);
    if (o.common.quick && o.common.json == NULL)
        printf("A quick run: what is met or missed says nothing.\n");
    bench_folder_close();
    return fflush(stdout) == 0 ? 0 : 1;
}
