/* bench/store/part_read.c — reads of what append has written, from the page cache: everything in order, 50 events of
 * one stream, single events. Everybody reads the same places, and has to find the same bytes there. */
#include "common/report.h"
#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    STREAM_EVENTS = 50,
    STREAM_READS = 2000,
    POINT_READS = 20000,
    WAYS = 3,
};

typedef struct reads {
    bench_place *streams, *points;
    uint32_t stream_count, point_count;
} reads;

/* Gives how many events were asked for, each time the same. */
typedef uint64_t read_fn(const bench_engine_kind *kind, bench_engine *engine, const reads *r,
                         bench_seen *seen);

static uint64_t read_all(const bench_engine_kind *kind, bench_engine *engine, const reads *r,
                         bench_seen *seen)
{
    (void)r;
    kind->read_all(engine, seen);
    return seen->count;
}

static uint64_t read_streams(const bench_engine_kind *kind, bench_engine *engine, const reads *r,
                             bench_seen *seen)
{
    for (uint32_t i = 0; i < r->stream_count; i++)
        kind->read_stream(engine, r->streams[i], STREAM_EVENTS, seen);
    return r->stream_count;
}

static uint64_t read_points(const bench_engine_kind *kind, bench_engine *engine, const reads *r,
                            bench_seen *seen)
{
    for (uint32_t i = 0; i < r->point_count; i++)
        kind->read_point(engine, r->points[i], seen);
    return r->point_count;
}

static const struct {
    const char *what, *unit;
    read_fn *read;
} ways[WAYS] = {
    { "read.position", "events/s", read_all },
    { "read.stream.50", "reads/s", read_streams },
    { "read.point", "reads/s", read_points },
};

/* --- the places --- */

/* From where there are so many events left, as far as there are. */
static bench_place draw_place(bench_source *source, uint64_t events_left)
{
    bench_place place = { 0 };

    do
        place.stream = (uint32_t)(bench_random(&source->random) % source->streams);
    while (source->revisions[place.stream] == 0);
    const uint64_t count = source->revisions[place.stream];
    if (count > events_left)
        place.revision = bench_random(&source->random) % (count - events_left + 1);
    return place;
}

static void reads_open(reads *r, bench_source *source, bool quick)
{
    *r = (reads){ .stream_count = quick ? STREAM_READS / 10 : STREAM_READS,
                  .point_count = quick ? POINT_READS / 10 : POINT_READS };
    r->streams = bench_allocate(r->stream_count * sizeof *r->streams);
    r->points = bench_allocate(r->point_count * sizeof *r->points);
    for (uint32_t i = 0; i < r->stream_count; i++)
        r->streams[i] = draw_place(source, STREAM_EVENTS);
    for (uint32_t i = 0; i < r->point_count; i++)
        r->points[i] = draw_place(source, 1);
}

static void reads_close(reads *r)
{
    free(r->streams);
    free(r->points);
}

/* --- measuring --- */

static void compare(const char *what, const char *name, bench_seen wanted, bench_seen seen)
{
    if (seen.count != wanted.count)
        bench_fail("%s: %s gave %" PRIu64 " events instead of %" PRIu64, what, name, seen.count,
                   wanted.count);
    if (seen.sum != wanted.sum)
        bench_fail("%s: %s gave other bytes than were written", what, name);
}

/* What everybody has to see: all that was made, or what the first one saw. */
static double measure(const bench_stores *stores, int engine, int way, const reads *r, bench_seen *wanted)
{
    bench_seen seen = { 0 };
    const double begin = bench_now_s();
    const uint64_t done = ways[way].read(stores->kinds[engine], stores->engines[engine], r, &seen);
    const double seconds = bench_now_s() - begin;

    if (wanted->count == 0)
        *wanted = seen;
    compare(ways[way].what, stores->kinds[engine]->name, *wanted, seen);
    return (double)done / seconds;
}

static void run_way(const bench_stores *stores, const bench_options *options, int way, const reads *r)
{
    static double rates[BENCH_ENGINES][BENCH_ROUNDS_MAX];
    bench_seen wanted = way == 0 ? stores->source.made : (bench_seen){ 0 };

    for (int engine = 0; engine < BENCH_ENGINES; engine++) /* so that the page cache has everything */
        if (stores->kinds[engine]->read_all != NULL)
            measure(stores, engine, way, r, &wanted);
    for (uint32_t round = 0; round < options->rounds; round++) {
        bench_progress(ways[way].what, round, options->rounds);
        bench_check();
        for (int engine = 0; engine < BENCH_ENGINES; engine++)
            if (stores->kinds[engine]->read_all != NULL)
                rates[engine][round] = measure(stores, engine, way, r, &wanted);
    }
    bench_progress("", 0, 0);
    if (way == 0)
        bench_report_least("read.position", bench_median(rates[0], options->rounds), "events/s", 5e6);
    for (int engine = 1; engine < BENCH_ENGINES; engine++)
        if (stores->kinds[engine]->read_all != NULL)
            bench_report_speed(ways[way].what, stores->kinds[engine]->name, rates[0], rates[engine],
                               options->rounds, ways[way].unit);
}

void bench_part_read(bench_stores *stores, const bench_options *options)
{
    reads r;

    reads_open(&r, &stores->source, options->quick);
    for (int way = 0; way < WAYS; way++)
        run_way(stores, options, way, &r);
    reads_close(&r);
}
