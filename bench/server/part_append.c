/* bench/server/part_append.c — messages a second that are confirmed, and how long one takes at a steady pace. */
#include "common/report.h"
#include "load.h"
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW_COUNT = 4,
    OTHERS_MAX = 16,
    PACE = 2000,
    RAW_BYTES = 512, /* what an event of 256 bytes with its head takes, in sectors */
    RAW_FILE_BYTES = 64 * 1024 * 1024,
};

static const uint32_t windows[WINDOW_COUNT] = { 1, 16, 256, 1000 };

const peer_kind *const peer_others[] = { &peer_redis_always,     &peer_redis_everysec,  &peer_nats,
                                         &peer_rabbitmq_classic, &peer_rabbitmq_quorum, &peer_beanstalkd,
                                         &peer_beanstalkd_flush, &peer_postgres,        NULL };

typedef struct figures {
    const peer_kind *kind;
    double rate[WINDOW_COUNT][BENCH_ROUNDS_MAX];
    double p50_ms[BENCH_ROUNDS_MAX], p99_ms[BENCH_ROUNDS_MAX];
    bool overloaded;
} figures;

static bool is_wanted(const run_options *o, const peer_kind *kind)
{
    return bench_is_named(o->peers, kind->name);
}

static size_t choose(const run_options *o, figures *all)
{
    size_t count = 0;

    for (size_t i = 0; peer_others[i] != NULL; i++)
        if (is_wanted(o, peer_others[i]) && peer_available(peer_others[i]))
            all[count++].kind = peer_others[i];
        else if (is_wanted(o, peer_others[i]))
            fprintf(stderr, "bench-server: %s is not installed and left out (tools/setup bench)\n",
                    peer_others[i]->name);
    return count;
}

/* --- appends --- */

static void measure_rates(figures *f, const run_options *o, uint32_t round)
{
    peer p;

    bench_progress(f->kind->name, round, o->common.rounds);
    peer_start(&p, f->kind);
    load_closed(&p, 16, o->seconds / 4); /* caches, files and just-in-time compilers */
    for (size_t w = 0; w < WINDOW_COUNT; w++)
        f->rate[w][round] = load_closed(&p, windows[w], o->seconds);
    peer_stop(&p);
    bench_quiet();
}

/* What the disk can do at best, one after the other: a write and a flush, into a file that is there already. */
static double measure_raw(double seconds)
{
    static char block[RAW_BYTES];
    static char zeros[1 << 20];
    const char *const path = bench_path("raw");
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    uint64_t count = 0;

    for (off_t at = 0; at < RAW_FILE_BYTES; at += (off_t)sizeof zeros)
        if (fd < 0 || pwrite(fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            bench_fail("cannot write %s: %s", path, strerror(errno));
    fsync(fd);
    const double begin_s = bench_now_s();
    while (bench_now_s() - begin_s < seconds) {
        memset(block, (int)count + 1, sizeof block);
        if (pwrite(fd, block, sizeof block, (off_t)(count * RAW_BYTES % RAW_FILE_BYTES)) != RAW_BYTES ||
            fdatasync(fd) < 0)
            bench_fail("cannot write %s: %s", path, strerror(errno));
        count++;
    }
    const double rate = (double)count / (bench_now_s() - begin_s);
    close(fd);
    unlink(path);
    return rate;
}

static void report_rates(const figures *ours, const figures *others, size_t count, const run_options *o)
{
    char what[32];

    for (size_t w = 0; w < WINDOW_COUNT; w++)
        for (size_t i = 0; i < count; i++) {
            snprintf(what, sizeof what, "append.%u", windows[w]);
            bench_report_speed(what, others[i].kind->name, ours->rate[w], others[i].rate[w], o->common.rounds,
                               "messages/s");
        }
}

static void report_own(const char *name, const figures *f, const run_options *o)
{
    char what[32];

    for (size_t w = 0; w < WINDOW_COUNT; w++) {
        snprintf(what, sizeof what, "%s.%u", name, windows[w]);
        bench_report_least(what, bench_median(f->rate[w], o->common.rounds), "messages/s", 0);
    }
}

void part_append(const run_options *o)
{
    static figures ours = { .kind = &peer_sluice }, calls = { .kind = &peer_sluice_calls },
                   batch = { .kind = &peer_sluice_batch }, others[OTHERS_MAX];
    double raw[BENCH_ROUNDS_MAX];
    const size_t count = choose(o, others);

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        raw[round] = measure_raw(o->seconds);
        measure_rates(&ours, o, round);
        for (size_t i = 0; i < count; i++)
            measure_rates(&others[i], o, round);
        measure_rates(&calls, o, round);
        measure_rates(&batch, o, round);
    }
    bench_progress("", 0, 0);
    bench_report_speed("append.1", "raw", ours.rate[0], raw, o->common.rounds, "messages/s");
    report_rates(&ours, others, count, o);
    report_own("calls", &calls, o);
    report_own("batch", &batch, o);
}

/* --- latency --- */

static void measure_latency(figures *f, const run_options *o, uint32_t round)
{
    peer p;

    bench_progress(f->kind->name, round, o->common.rounds);
    peer_start(&p, f->kind);
    load_closed(&p, 16, o->seconds / 4);
    const load_latency found = load_paced(&p, PACE, o->seconds * 2);
    f->p50_ms[round] = found.p50_ms;
    f->p99_ms[round] = found.p99_ms;
    f->overloaded |= found.overloaded;
    peer_stop(&p);
    bench_quiet();
}

/* The best of those that flush before they confirm, round by round. */
static void report_best(const char *what, const double *ours, figures *others, size_t count, bool tail,
                        const run_options *o)
{
    double best[BENCH_ROUNDS_MAX];
    bool any = false;

    for (uint32_t round = 0; round < o->common.rounds; round++) {
        best[round] = 1e9;
        for (size_t i = 0; i < count; i++) {
            const double value = tail ? others[i].p99_ms[round] : others[i].p50_ms[round];
            if (others[i].kind->flushes && !others[i].overloaded && value < best[round])
                best[round] = value, any = true;
        }
    }
    if (any)
        bench_report_cost(what, "best-flushing", ours, best, o->common.rounds, "ms");
}

void part_latency(const run_options *o)
{
    static figures ours = { .kind = &peer_sluice }, others[OTHERS_MAX];
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
        if (others[i].overloaded)
            continue;
        bench_report_cost("p50.2000", others[i].kind->name, ours.p50_ms, others[i].p50_ms, o->common.rounds,
                          "ms");
        bench_report_cost("p99.2000", others[i].kind->name, ours.p99_ms, others[i].p99_ms, o->common.rounds,
                          "ms");
    }
    report_best("p50.2000", ours.p50_ms, others, count, false, o);
    report_best("p99.2000", ours.p99_ms, others, count, true, o);
}
