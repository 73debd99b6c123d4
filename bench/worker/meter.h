/* bench/worker/meter.h — how fast something goes, without its beginning. */
#ifndef BENCH_WORKER_METER_H
#define BENCH_WORKER_METER_H

#include "parts.h"

/* The first of them are not counted: connections and processes are made then, and memory is taken. */
enum {
    METER_WARM_PART = 20, /* one in so many */
};

typedef struct meter {
    uint64_t total, counted_from;
    double start_s, end_s;
} meter;

static inline meter meter_of(uint64_t total)
{
    return (meter){ .total = total };
}

/* So many are done by now. False: all of them are. */
static inline bool meter_note(meter *m, uint64_t done)
{
    if (m->start_s == 0 && done >= m->total / METER_WARM_PART) {
        m->start_s = bench_now_s();
        m->counted_from = done;
    }
    if (done >= m->total && m->end_s == 0)
        m->end_s = bench_now_s();
    return done < m->total;
}

/* In a second. */
static inline double meter_rate(const meter *m)
{
    return (double)(m->total - m->counted_from) / (m->end_s - m->start_s);
}

#endif
