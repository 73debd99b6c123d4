/* bench/store/work.c — events over random streams, from a seed. */
#include "work.h"

#include "common/bench.h"
#include "store/journal/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENT_TYPE "order-placed"

void bench_stream_name(uint32_t stream, char name[BENCH_NAME_BYTES + 1])
{
    snprintf(name, BENCH_NAME_BYTES + 1, "orders-%07" PRIu32, stream % BENCH_STREAMS_MAX);
}

void bench_source_open(bench_source *source, uint32_t streams, uint64_t seed)
{
    *source = (bench_source){ .streams = streams, .random = seed * 2 + 1 };
    source->names = bench_allocate(streams * sizeof *source->names);
    source->revisions = bench_allocate(streams * sizeof *source->revisions);
    source->pool = bench_allocate(BENCH_POOL_BYTES + BENCH_EVENT_BYTES);
    for (uint32_t i = 0; i < streams; i++) {
        bench_stream_name(i, source->names[i]);
        source->revisions[i] = 0;
    }
    for (size_t i = 0; i < BENCH_POOL_BYTES + BENCH_EVENT_BYTES; i++)
        source->pool[i] = (uint8_t)(bench_random(&source->random) >> 32);
}

void bench_source_close(bench_source *source)
{
    free(source->names);
    free(source->revisions);
    free(source->pool);
}

sl_str bench_source_name(const bench_source *source, uint32_t stream)
{
    return (sl_str){ source->names[stream], BENCH_NAME_BYTES };
}

void bench_seen_add(bench_seen *seen, const void *data, size_t bytes)
{
    const uint8_t *const at = data;
    uint64_t sum = 0, word;

    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        sum += word;
    }
    seen->sum += sum;
    seen->count++;
}

static void make_event(bench_source *source, sl_event_in *event, bench_place *place)
{
    const uint64_t drawn = bench_random(&source->random);

    *place = (bench_place){ .stream = (uint32_t)((drawn >> 20) % source->streams) };
    place->revision = source->revisions[place->stream]++;
    *event =
        (sl_event_in){ .type = SL_STR(EVENT_TYPE),
                       .data = { (const char *)source->pool + drawn % BENCH_POOL_BYTES, BENCH_EVENT_BYTES },
                       .created_ns = UINT64_C(1700000000000000000) + source->made.count };
    memcpy(event->id.bytes, &drawn, sizeof drawn);
    memcpy(event->id.bytes + sizeof drawn, &source->made.count, sizeof source->made.count);
    bench_seen_add(&source->made, event->data.data, event->data.bytes);
}

void bench_work_make(bench_work *work, bench_source *source, uint32_t batch_count, uint32_t batch_events)
{
    const size_t count = (size_t)batch_count * batch_events;

    *work = (bench_work){ .batch_count = batch_count, .batch_events = batch_events };
    work->events = bench_allocate(count * sizeof *work->events);
    work->places = bench_allocate(count * sizeof *work->places);
    work->ops = bench_allocate(count * sizeof *work->ops);
    for (size_t i = 0; i < count; i++) {
        make_event(source, &work->events[i], &work->places[i]);
        work->ops[i] = (sl_op){ .kind = SL_OP_APPEND,
                                .append = { .stream = bench_source_name(source, work->places[i].stream),
                                            .expected = { .kind = SL_EXPECT_ANY },
                                            .events = &work->events[i],
                                            .event_count = 1 } };
    }
}

void bench_work_free(bench_work *work)
{
    free(work->ops);
    free(work->events);
    free(work->places);
}

bench_batch bench_work_batch(const bench_work *work, uint32_t index)
{
    const size_t first = (size_t)index * work->batch_events;

    return (bench_batch){ .ops = work->ops + first,
                          .events = work->events + first,
                          .places = work->places + first,
                          .count = work->batch_events,
                          .journal_bytes =
                              bench_frame_bytes(work->batch_events * bench_event_record_bytes()) };
}

size_t bench_event_record_bytes(void)
{
    const sl_event event = { .stream = { NULL, BENCH_NAME_BYTES },
                             .type = SL_STR(EVENT_TYPE),
                             .data = { NULL, BENCH_EVENT_BYTES } };

    return sl_record_size(sl_event_payload_bytes(&event));
}

size_t bench_frame_bytes(size_t record_bytes)
{
    return SL_FRAME_HEADER_BYTES + record_bytes;
}
