/* bench/store/work.h — what is written: the same events in the same batches for everybody.
 *
 * Streams are drawn at random from a seed. A batch is made before the clock runs, in the form in which a server has it
 * when it has read its requests (sl_op), so that only storing it is measured. */
#ifndef BENCH_STORE_WORK_H
#define BENCH_STORE_WORK_H

#include "store/store.h"

enum {
    BENCH_EVENT_BYTES = 256,
    BENCH_NAME_BYTES = 14, /* "orders-1234567": all alike, so that batches of one length have one size */
    BENCH_STREAMS_MAX = 10 * 1000 * 1000,
    BENCH_POOL_BYTES = 1024 * 1024, /* data of events are pieces of so many random bytes */
};

typedef struct bench_place {
    uint32_t stream;
    uint64_t revision;
} bench_place;

/* One durable commit. For events there are as many of each; for leases only ops. */
typedef struct bench_batch {
    const sl_op *ops;
    const sl_event_in *events;
    const bench_place *places;
    uint32_t count;
    size_t journal_bytes; /* what the journal writes for it, headers included */
} bench_batch;

typedef struct bench_seen { /* of events that were written or read; the same when all of them were the same */
    uint64_t count, sum;
} bench_seen;

typedef struct bench_source {
    char (*names)[BENCH_NAME_BYTES + 1];
    uint64_t *revisions; /* that the next event of each stream gets */
    uint8_t *pool;
    uint32_t streams;
    uint64_t random;
    bench_seen made; /* all so far */
} bench_source;

typedef struct bench_work {
    sl_op *ops;
    sl_event_in *events;
    bench_place *places;
    uint32_t batch_count, batch_events;
} bench_work;

void bench_stream_name(uint32_t stream, char name[BENCH_NAME_BYTES + 1]);
void bench_source_open(bench_source *source, uint32_t streams, uint64_t seed);
void bench_source_close(bench_source *source);
sl_str bench_source_name(const bench_source *source, uint32_t stream);

/* The next batches; free() with bench_work_free(). */
void bench_work_make(bench_work *work, bench_source *source, uint32_t batch_count, uint32_t batch_events);
void bench_work_free(bench_work *work);
bench_batch bench_work_batch(const bench_work *work, uint32_t index);

/* What the journal writes for one such event, and for a batch of records that sum up to so many bytes. */
size_t bench_event_record_bytes(void);
size_t bench_frame_bytes(size_t record_bytes);

/* Looks at every byte of an event, so that nobody can win by not reading it. */
void bench_seen_add(bench_seen *seen, const void *data, size_t bytes);

#endif
