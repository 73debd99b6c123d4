/* bench/server/load.h — the two ways to put load on a peer: so many unconfirmed, or so many in a second. */
#ifndef BENCH_SERVER_LOAD_H
#define BENCH_SERVER_LOAD_H

#include "peer.h"

/* Messages a second with at most `window` of them unconfirmed, for about `seconds`. */
double load_closed(peer *p, uint32_t window, double seconds);

typedef struct load_latency {
    double p50_ms, p99_ms;
    bool overloaded; /* it could not keep up; the figures say only that */
} load_latency;

/* From the time when a message was due to be sent until it was confirmed, so that a system that makes its client wait does
 * not get a better figure for it. */
load_latency load_paced(peer *p, uint32_t per_second, double seconds);

load_latency load_summary(double *latency_s, size_t count);

#endif
