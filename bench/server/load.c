/* bench/server/load.c — see load.h. */
#include "load.h"

#include <stdlib.h>

enum {
    CHUNKS_PER_WINDOW = 4, /* refilled when a quarter is confirmed, as a batching producer does */
};

static const uint64_t answer_ns = (uint64_t)ANSWER_SECONDS_MAX * 1000000000;

static uint32_t await_some(peer *p)
{
    const uint32_t confirmed = p->kind->wait(p, answer_ns);

    if (confirmed == 0)
        bench_fail("%s: nothing was confirmed for %d seconds", p->kind->name, ANSWER_SECONDS_MAX);
    return confirmed;
}

double load_closed(peer *p, uint32_t window, double seconds)
{
    const double begin_s = bench_now_s();
    const uint32_t chunk = window < CHUNKS_PER_WINDOW ? 1 : window / CHUNKS_PER_WINDOW;
    uint64_t sent = 0, confirmed = 0;

    do {
        if (window - (uint32_t)(sent - confirmed) >= chunk) {
            const uint32_t count = window - (uint32_t)(sent - confirmed);
            p->kind->put(p, count);
            sent += count;
        }
        confirmed += await_some(p);
    } while (bench_now_s() - begin_s < seconds);
    const double rate = (double)confirmed / (bench_now_s() - begin_s);
    while (confirmed < sent)
        confirmed += await_some(p);
    return rate;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

load_latency load_summary(double *latency_s, size_t count)
{
    qsort(latency_s, count, sizeof *latency_s, by_value);
    return (load_latency){ .p50_ms = latency_s[count / 2] * 1e3,
                           .p99_ms = latency_s[count * 99 / 100] * 1e3 };
}

load_latency load_paced(peer *p, uint32_t per_second, double seconds)
{
    const size_t count = (size_t)(per_second * seconds);
    double *const latency_s = bench_allocate(count * sizeof *latency_s);
    const double begin_s = bench_now_s(), step_s = 1.0 / per_second;
    size_t sent = 0, confirmed = 0;

    while (confirmed < count) {
        double now_s = bench_now_s();
        size_t due = (size_t)((now_s - begin_s) / step_s) + 1;
        due = due < count ? due : count;
        if (due > sent)
            p->kind->put(p, (uint32_t)(due - sent));
        sent = due;
        const double next_s = sent < count ? begin_s + (double)sent * step_s : now_s + ANSWER_SECONDS_MAX;
        const uint32_t came = p->kind->wait(p, next_s > now_s ? (uint64_t)((next_s - now_s) * 1e9) : 0);
        now_s = bench_now_s();
        for (uint32_t i = 0; i < came && confirmed < count; i++, confirmed++)
            latency_s[confirmed] = now_s - (begin_s + (double)confirmed * step_s);
        if (now_s - begin_s > seconds + ANSWER_SECONDS_MAX)
            bench_fail("%s: cannot keep up", p->kind->name);
    }
    load_latency summary = load_summary(latency_s, count);
    summary.overloaded = bench_now_s() - begin_s > seconds * 1.1 + 0.1;
    free(latency_s);
    return summary;
}
