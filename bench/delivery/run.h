/* bench/delivery/run.h — a producer in a process of its own, and consumers in this one. */
#ifndef BENCH_DELIVERY_RUN_H
#define BENCH_DELIVERY_RUN_H

#include "consumer.h"
#include "server/load.h"

typedef struct run_setup {
    const consumer_kind *kind;
    peer *server; /* started and prepared */
    uint32_t consumer_count, window;
    uint32_t group_count; /* ours: consumers are dealt out to so many; 0 or 1: one */
} run_setup;

/* The process of the producer, for run_rate() and run_latency(): it has the connection that peer_start() made, from now on. */
void run_begin(peer *server);
void run_end(void);

/* Produces as fast as it can for so many seconds, never more than AHEAD_MAX messages before the consumers; then until everything is
 * acknowledged. Messages a second over all that time. */
double run_rate(const run_setup *setup, double seconds);

/* So many messages a second: from when a message was due until a consumer has it. */
load_latency run_latency(const run_setup *setup, uint32_t per_second, double seconds);

/* What is there already: until so many are acknowledged. Messages a second. */
double run_backlog(const run_setup *setup, uint64_t count);

/* Takes so many of what is there and acknowledges nothing; what `look` says then. */
double run_held(const run_setup *setup, uint64_t count, const peer *p, double (*look)(const peer *p));

#endif
