/* bench/store/parts.h — what is measured, one function for each part. Each reports (report.h) what it found. */
#ifndef BENCH_STORE_PARTS_H
#define BENCH_STORE_PARTS_H

#include "common/bench.h"
#include "engine.h"

enum {
    BENCH_JOURNAL, /* places in the tables below */
    BENCH_RAW,
    BENCH_SQLITE,
    BENCH_LMDB,
    BENCH_AHEAD,
    BENCH_ENGINES
};

/* Stores that append has filled and read then reads. */
typedef struct bench_stores {
    bench_source source;
    const bench_engine_kind *kinds[BENCH_ENGINES];
    bench_engine *engines[BENCH_ENGINES];
} bench_stores;

void bench_stores_open(bench_stores *stores, const bench_options *options);
void bench_stores_close(bench_stores *stores);

void bench_part_append(bench_stores *stores, const bench_options *options);
void bench_part_read(bench_stores *stores, const bench_options *options);
void bench_part_lease(const bench_options *options);
void bench_part_open(const bench_options *options);

/* How many batches make a measurement of a quarter of a second at the speed of this disk, within bounds. */
uint32_t bench_batches(const bench_options *options, uint32_t batches_most);

/* What `--inspect` does: opens the folder in a process that has done nothing else, and says what that cost. */
void bench_inspect(const char *folder, const bench_options *options);

#endif
