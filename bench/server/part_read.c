/* bench/server/part_read.c — ours alone: reading everything in order, subscriptions, and the official Node client. */
#include "common/report.h"
#include "load.h"
#include "parts.h"
#include "sluice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_EVENTS = 2 * 1000 * 1000,
    QUICK_READ_EVENTS = 20 * 1000,
    PACE = 2000,
};

static const uint64_t long_ns = (uint64_t)ANSWER_SECONDS_MAX * 1000000000;

static bool has_ended(const sluice *s)
{
    return s->ended;
}

static bool has_caught_up(const sluice *s)
{
    return s->caught_up;
}

static void fill(peer *p, uint64_t count)
{
    for (uint64_t done = 0; done < count;) {
        p->kind->put(p, 1000);
        const uint32_t confirmed = p->kind->wait(p, long_ns);
        if (confirmed == 0)
            bench_fail("sluice: no answer");
        done += confirmed;
    }
}

/* Events for a second of one core of the server: the reader has the other one. */
static void measure_read(const run_options *o)
{
    const uint64_t wanted = o->common.quick ? QUICK_READ_EVENTS : READ_EVENTS;
    double rate[BENCH_ROUNDS_MAX], core_rate[BENCH_ROUNDS_MAX];
    peer p;

    peer_start(&p, &peer_sluice_batch);
    fill(&p, wanted);
    for (uint32_t round = 0; round < o->common.rounds; round++) {
        const double begin_s = bench_now_s(), begin_cpu_s = peer_cpu_s(&p);
        sluice *const s = p.state;

        bench_progress("read", round, o->common.rounds);
        sluice_read_all(s, false);
        if (!sluice_run(s, has_ended, long_ns) || s->events_read < wanted)
            bench_fail("sluice: only %llu of %llu events were read", (unsigned long long)s->events_read,
                       (unsigned long long)wanted);
        rate[round] = (double)s->events_read / (bench_now_s() - begin_s);
        core_rate[round] = (double)s->events_read / (peer_cpu_s(&p) - begin_cpu_s + 1e-9);
    }
    peer_stop(&p);
    bench_report_least("read", bench_median(rate, o->common.rounds), "events/s", 0);
    bench_report_least("read.core", bench_median(core_rate, o->common.rounds), "events/s", 1000 * 1000);
}

/* --- subscriptions --- */

static bool never(const sluice *s)
{
    (void)s;
    return false;
}

static bool has_all(const sluice *s)
{
    return s->events_read >= s->event_count_max;
}

/* The reader is a connection of its own, turned in the pauses of the writer. */
static load_latency measure_subscription(const run_options *o)
{
    const size_t count = (size_t)(PACE * o->seconds * 2);
    double *const sent_s = bench_allocate(count * sizeof *sent_s), *const latency_s = bench_allocate(
                                                                       count * sizeof *latency_s);
    peer p;

    peer_start(&p, &peer_sluice);
    sluice *const reader = sluice_open(&p);
    sluice_read_all(reader, true);
    if (!sluice_run(reader, has_caught_up, long_ns))
        bench_fail("sluice: the subscription did not begin");
    reader->sent_s = sent_s;
    reader->latency_s = latency_s;
    reader->event_count_max = count;
    const double begin_s = bench_now_s();
    for (size_t sent = 0; sent < count; sent++) {
        sent_s[sent] = begin_s + (double)sent / PACE;
        p.kind->put(&p, 1);
        p.kind->wait(&p, 0);
        const double next_s = begin_s + (double)(sent + 1) / PACE, now_s = bench_now_s();
        sluice_run(reader, never, next_s > now_s ? (uint64_t)((next_s - now_s) * 1e9) : 0);
    }
    if (!sluice_run(reader, has_all, long_ns))
        bench_fail("sluice: the subscriber got %llu of %zu events", (unsigned long long)reader->events_read,
                   count);
    const load_latency found = load_summary(latency_s, count);
    sluice_close(reader);
    peer_stop(&p);
    free(sent_s);
    free(latency_s);
    return found;
}

void part_read(const run_options *o)
{
    double p50_ms[BENCH_ROUNDS_MAX], p99_ms[BENCH_ROUNDS_MAX];

    measure_read(o);
    for (uint32_t round = 0; round < o->common.rounds; round++) {
        bench_progress("subscription", round, o->common.rounds);
        const load_latency found = measure_subscription(o);
        p50_ms[round] = found.p50_ms;
        p99_ms[round] = found.p99_ms;
    }
    bench_progress("", 0, 0);
    bench_report_most("subscribed.p50", bench_median(p50_ms, o->common.rounds), "ms", 0);
    bench_report_most("subscribed.p99", bench_median(p99_ms, o->common.rounds), "ms", 0);
}

/* --- the official client --- */

void part_node(const run_options *o)
{
    char command[256], name[32];
    double value;
    peer p;

    if (access("tests/clients/node_modules/@kurrent/kurrentdb-client", R_OK) != 0) {
        fprintf(stderr, "bench-server: the Node client is not installed and left out (tools/setup test)\n");
        return;
    }
    peer_start(&p, &peer_sluice);
    snprintf(command, sizeof command, "node bench/server/node.mjs %u %g", p.port, o->seconds);
    FILE *const output = popen(command, "r");
    while (output != NULL && fscanf(output, "%31s %lf", name, &value) == 2)
        bench_report_least(name, value, "events/s", 0);
    if (output == NULL || pclose(output) != 0)
        bench_fail("the Node client did not work");
    peer_stop(&p);
}
