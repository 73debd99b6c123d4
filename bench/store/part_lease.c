/* bench/store/part_lease.c — what delivery writes: a lease and a settle for each of 100 messages, in one commit, against
 * a write and a sync of the same bytes. */
#include "common/report.h"
#include "core/record.h"
#include "parts.h"
#include "store/journal/records.h"

#include <stdlib.h>

enum {
    PAIRS = 100,
    OPS = 2 * PAIRS, /* of a batch */
    BATCHES_MOST = 1200,
    GROUP = 1,
    PEERS = 2,
};

typedef struct leases {
    sl_effect *effects;
    sl_op *ops;
    uint32_t batch_count;
    size_t batch_bytes; /* as the journal writes it */
    uint64_t position;  /* of the next message */
} leases;

static sl_uuid id_of(uint64_t number)
{
    return sl_uuid_from_halves((int64_t)(number * 0x9e3779b97f4a7c15u), (int64_t)number);
}

static void make_pair(leases *l, sl_effect *effects)
{
    const sl_place place = { SL_LANE_MAIN, ++l->position };

    effects[0] = (sl_effect){ .kind = SL_EFFECT_LEASE,
                              .lease = { .place = place,
                                         .id = id_of(place.position),
                                         .key = place.position % 1000,
                                         .consumer = 1,
                                         .token = place.position,
                                         .until_ns = UINT64_C(1700000030000000000) + place.position,
                                         .deliveries = 1 } };
    effects[1] = (sl_effect){ .kind = SL_EFFECT_SETTLE,
                              .settle = { .place = place,
                                          .id = id_of(place.position),
                                          .from = place.position,
                                          .to = place.position + 1,
                                          .cause = SL_SETTLE_ACKED } };
}

static size_t record_bytes(const sl_effect *effect)
{
    uint8_t bytes[SL_RECORD_BYTES_MAX];

    return sl_record_size(SL_GROUP_HEAD_BYTES + sl_record_encode(effect, bytes));
}

static void leases_make(leases *l)
{
    const size_t count = (size_t)l->batch_count * OPS;
    size_t bytes = 0;

    for (size_t i = 0; i < count; i += 2)
        make_pair(l, &l->effects[i]);
    for (size_t i = 0; i < count; i++)
        l->ops[i] = (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { GROUP, &l->effects[i], 1 } };
    for (size_t i = 0; i < OPS; i++)
        bytes += record_bytes(&l->effects[i]);
    l->batch_bytes = bench_frame_bytes(bytes);
}

static void leases_open(leases *l, uint32_t batch_count)
{
    *l = (leases){ .batch_count = batch_count };
    l->effects = bench_allocate((size_t)batch_count * OPS * sizeof *l->effects);
    l->ops = bench_allocate((size_t)batch_count * OPS * sizeof *l->ops);
}

static void leases_close(leases *l)
{
    free(l->effects);
    free(l->ops);
}

static void create_group(bench_engine *journal)
{
    const sl_op op = { .kind = SL_OP_GROUP_CREATE, .group_create = { GROUP, SL_STR("{}") } };
    const bench_batch batch = { .ops = &op, .count = 1 };

    bench_journal.append(journal, &batch);
}

/* Pairs in a second. */
static double measure(const bench_engine_kind *kind, bench_engine *engine, const leases *l)
{
    if (kind->prepare != NULL)
        kind->prepare(engine, l->batch_count * l->batch_bytes);
    bench_quiet();
    const double begin = bench_now_s();
    for (uint32_t i = 0; i < l->batch_count; i++) {
        const bench_batch batch = { .ops = l->ops + (size_t)i * OPS,
                                    .count = OPS,
                                    .journal_bytes = l->batch_bytes };
        kind->append(engine, &batch);
        bench_check();
    }
    return (double)l->batch_count * PAIRS / (bench_now_s() - begin);
}

void bench_part_lease(const bench_options *options)
{
    static const bench_engine_kind *const kinds[PEERS] = { &bench_journal, &bench_raw };
    static double rates[PEERS][BENCH_ROUNDS_MAX];
    bench_engine *engines[PEERS];
    leases l;

    for (int i = 0; i < PEERS; i++)
        engines[i] = kinds[i]->open(bench_path(kinds[i]->name));
    create_group(engines[0]);
    leases_open(&l, bench_batches(options, BATCHES_MOST));
    for (uint32_t round = 0; round < options->rounds; round++) {
        bench_progress("lease_settle", round, options->rounds);
        leases_make(&l);
        for (uint32_t i = 0; i < PEERS; i++)
            rates[(round + i) % PEERS][round] =
                measure(kinds[(round + i) % PEERS], engines[(round + i) % PEERS], &l);
    }
    bench_progress("", 0, 0);
    bench_report_speed("lease_settle.100", "raw", rates[0], rates[1], options->rounds, "pairs/s");
    leases_close(&l);
    for (int i = 0; i < PEERS; i++) {
        kinds[i]->close(engines[i]);
        bench_folder_remove(bench_path(kinds[i]->name));
    }
}
