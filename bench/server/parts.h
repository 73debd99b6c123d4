/* bench/server/parts.h — what is measured; each reports (common/report.h) what it found. */
#ifndef BENCH_SERVER_PARTS_H
#define BENCH_SERVER_PARTS_H

#include "common/bench.h"

typedef struct run_options {
    bench_options common;
    const char *peers; /* names with commas; NULL: all that are installed */
    double seconds;    /* of one measurement */
} run_options;

void part_append(const run_options *options);
void part_latency(const run_options *options);
void part_read(const run_options *options);
void part_node(const run_options *options);

#endif
