/* bench/store/engine.h — one who stores events: the journal, or somebody to compare it with.
 *
 * Every function either does what it says or ends the program (bench_fail): a wrong answer is no measurement. */
#ifndef BENCH_STORE_ENGINE_H
#define BENCH_STORE_ENGINE_H

#include "work.h"

typedef struct bench_engine bench_engine;

typedef struct bench_engine_kind {
    const char *name;
    bench_engine *(*open)(const char *folder);

    /* Outside the clock: what is done ahead of so many bytes of batches. NULL: nothing. */
    void (*prepare)(bench_engine *engine, uint64_t bytes);

    /* Durable when it returns, or, for one who works ahead, when finish() returns (NULL: there is nothing to finish). */
    void (*append)(bench_engine *engine, const bench_batch *batch);
    void (*finish)(bench_engine *engine);

    /* NULL for one who cannot read. All events in order; up to `max` of a stream from a revision on; exactly one. */
    void (*read_all)(bench_engine *engine, bench_seen *seen);
    void (*read_stream)(bench_engine *engine, bench_place from, uint32_t max, bench_seen *seen);
    void (*read_point)(bench_engine *engine, bench_place place, bench_seen *seen);
    void (*close)(bench_engine *engine);
} bench_engine_kind;

extern const bench_engine_kind bench_journal, bench_raw, bench_sqlite, bench_lmdb;

/* The journal with several batches on their way, as a server with several clients has them: storing one goes on while
 * another is synced. */
extern const bench_engine_kind bench_ahead;

/* --- the journal, for parts that need more of it --- */

/* Opens and loads. */
sl_store *bench_store_open(const sl_journal_options *options);

/* One batch, done when this returns. */
void bench_store_append(sl_store *store, const sl_op *ops, uint32_t count);

/* Reads up to `max` events from where the cursor is; fewer when there are no more. */
void bench_cursor_read(sl_store *store, sl_cursor *cursor, uint64_t max, bench_seen *seen);

#endif
