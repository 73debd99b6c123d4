/* bench/store/part_append.c — durable appends: the journal, the physical limit, SQLite, LMDB, in turns.
 *
 * Each round takes every batch size, and with each size everybody does the same batches one after the other; who begins
 * moves on with the round. Between two measurements everything that was written is synced and the device comes to rest.
 *
 * "ahead" is the journal once more, with several batches on their way: what a server does that has more than one client.
 *
 * Bytes that the device was sent are counted twice: during the measurement (device.N), and with what was done ahead or
 * behind it (device.all): the zeros of the next segment, index files, checkpoints. */
#include "common/report.h"
#include "parts.h"

#include <math.h>
#include <stdio.h>

enum {
    SIZES = 4,
    MEASURE_MS = 250,
    PROBES = 100,
};

/* The most batches in a measurement: those of a disk that syncs in 0.15 ms. More events in one would only make the
 * databases take the whole time. */
static const struct {
    uint32_t batch_events, batches_most;
    const char *append, *ahead, *device;
} sizes[SIZES] = {
    { 1, 1500, "append.1", "ahead.1", "device.1" },
    { 10, 1500, "append.10", "ahead.10", "device.10" },
    { 100, 600, "append.100", "ahead.100", "device.100" },
    { 1000, 80, "append.1000", "ahead.1000", "device.1000" },
};

typedef struct found {
    double rates[SIZES][BENCH_ENGINES][BENCH_ROUNDS_MAX];  /* events/s */
    double device[SIZES][BENCH_ENGINES][BENCH_ROUNDS_MAX]; /* bytes for each event; NAN: unknown */
    double all_bytes[BENCH_ENGINES], all_events;
} found;

/* --- the stores --- */

void bench_stores_open(bench_stores *stores, const bench_options *options)
{
    *stores =
        (bench_stores){ .kinds = { &bench_journal, &bench_raw, &bench_sqlite, &bench_lmdb, &bench_ahead } };
    bench_source_open(&stores->source, options->streams, options->seed);
    for (int i = 0; i < BENCH_ENGINES; i++)
        stores->engines[i] = stores->kinds[i]->open(bench_path(stores->kinds[i]->name));
}

void bench_stores_close(bench_stores *stores)
{
    for (int i = 0; i < BENCH_ENGINES; i++) {
        stores->kinds[i]->close(stores->engines[i]);
        bench_folder_remove(bench_path(stores->kinds[i]->name));
    }
    bench_source_close(&stores->source);
}

/* --- how much --- */

static double probe_sync_s(void)
{
    const bench_batch batch = { .count = 1, .journal_bytes = bench_frame_bytes(bench_event_record_bytes()) };
    bench_engine *const engine = bench_raw.open(bench_path("probe"));

    bench_raw.prepare(engine, PROBES * batch.journal_bytes);
    const double begin = bench_now_s();
    for (int i = 0; i < PROBES; i++)
        bench_raw.append(engine, &batch);
    const double sync_s = (bench_now_s() - begin) / PROBES;
    bench_raw.close(engine);
    bench_folder_remove(bench_path("probe"));
    return sync_s;
}

uint32_t bench_batches(const bench_options *options, uint32_t batches_most)
{
    static double sync_s;

    if (sync_s <= 0)
        sync_s = probe_sync_s();
    const double fitting = MEASURE_MS / 1000.0 / sync_s;
    const uint32_t batches = fitting < batches_most ? (uint32_t)fitting : batches_most;
    const uint32_t wanted = options->quick ? batches / 10 : batches;
    return wanted < 10 ? 10 : wanted;
}

/* --- measuring --- */

static double bytes_between(uint64_t before, uint64_t after)
{
    return before == UINT64_MAX || after == UINT64_MAX ? NAN : (double)(after - before);
}

static void measure(bench_stores *stores, int engine, const bench_work *work, found *f, int size,
                    uint32_t round)
{
    const bench_engine_kind *const kind = stores->kinds[engine];
    const double events = (double)work->batch_count * work->batch_events;
    const uint64_t first = bench_device_bytes();

    if (kind->prepare != NULL)
        kind->prepare(stores->engines[engine],
                      (uint64_t)work->batch_count * bench_work_batch(work, 0).journal_bytes);
    bench_quiet();
    const uint64_t before = bench_device_bytes();
    const double begin = bench_now_s();
    for (uint32_t i = 0; i < work->batch_count; i++) {
        const bench_batch batch = bench_work_batch(work, i);
        kind->append(stores->engines[engine], &batch);
        bench_check();
    }
    if (kind->finish != NULL)
        kind->finish(stores->engines[engine]);
    f->rates[size][engine][round] = events / (bench_now_s() - begin);
    bench_quiet();
    f->device[size][engine][round] = bytes_between(before, bench_device_bytes()) / events;
    f->all_bytes[engine] += bytes_between(first, bench_device_bytes());
}

static void run_round(bench_stores *stores, const bench_options *options, found *f, uint32_t round)
{
    bench_work work;

    for (int size = 0; size < SIZES; size++) {
        bench_progress(sizes[size].append, round, options->rounds);
        bench_work_make(&work, &stores->source, bench_batches(options, sizes[size].batches_most),
                        sizes[size].batch_events);
        for (uint32_t i = 0; i < BENCH_ENGINES; i++)
            measure(stores, (int)((round + i) % BENCH_ENGINES), &work, f, size, round);
        f->all_events += (double)work.batch_count * work.batch_events;
        bench_work_free(&work);
    }
}

/* --- reporting --- */

static void report_appends(const bench_stores *stores, const found *f, uint32_t rounds)
{
    for (int size = 0; size < SIZES; size++)
        for (int i = BENCH_RAW; i <= BENCH_LMDB; i++)
            bench_report_speed(sizes[size].append, stores->kinds[i]->name, f->rates[size][BENCH_JOURNAL],
                               f->rates[size][i], rounds, "events/s");
    for (int size = 0; size < SIZES; size++)
        bench_report_speed(sizes[size].ahead, "raw", f->rates[size][BENCH_AHEAD], f->rates[size][BENCH_RAW],
                           rounds, "events/s");
}

static void report_device(const char *what, const char *peer, const double *ours, const double *theirs,
                          uint32_t rounds)
{
    if (isnan(ours[0]) || isnan(theirs[0]))
        bench_report_missing(what, peer, "B/event");
    else
        bench_report_cost(what, peer, ours, theirs, rounds, "B/event");
}

static void report_devices(const bench_stores *stores, const found *f, uint32_t rounds)
{
    const double ours = f->all_bytes[BENCH_JOURNAL] / f->all_events;

    for (int size = 0; size < SIZES; size++)
        for (int i = BENCH_RAW; i <= BENCH_LMDB; i++)
            report_device(sizes[size].device, stores->kinds[i]->name, f->device[size][BENCH_JOURNAL],
                          f->device[size][i], rounds);
    for (int i = BENCH_RAW; i <= BENCH_LMDB; i++) {
        const double theirs = f->all_bytes[i] / f->all_events;
        report_device("device.all", stores->kinds[i]->name, &ours, &theirs, 1);
    }
}

void bench_part_append(bench_stores *stores, const bench_options *options)
{
    static found f;

    for (uint32_t round = 0; round < options->rounds; round++)
        run_round(stores, options, &f, round);
    bench_progress("", 0, 0);
    report_appends(stores, &f, options->rounds);
    report_devices(stores, &f, options->rounds);
}
