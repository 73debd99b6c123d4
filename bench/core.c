/* bench/core.c — what the delivery rules cost, without disk and network.
 *
 * One step is offer + lease + deliver + ack of one message, while N others are outstanding; the one to be
 * acked is drawn at random, so that heaps and maps are hit all over. Runs of the sizes are interleaved and
 * medians are shown. The peer "bare" is the least that any such bookkeeping must do: one hash map entry and
 * one entry in a heap of due times, made and removed again. */
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/group.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    ROUNDS = 15,
    STEPS = 200000,
    SIZES = 4
};

static const uint32_t sizes[SIZES] = { 1, 100, 10000, 1000000 };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static sl_uuid id_of(uint64_t number)
{
    return sl_uuid_from_halves((int64_t)(number * 0x9e3779b97f4a7c15u), (int64_t)number);
}

static void *allocate(size_t bytes)
{
    void *const memory = malloc(bytes);

    if (memory == NULL) {
        fprintf(stderr, "bench-core: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

/* --- the group --- */

typedef struct bench {
    void *memory;
    sl_group *group;
    uint64_t *outstanding; /* numbers of the messages that were delivered and not acked */
    uint32_t outstanding_count, size;
    uint64_t consumer, position, now_ns, random;
} bench;

static void take_effect(void *ctx, const sl_effect *effect)
{
    bench *const b = ctx;

    if (effect->kind == SL_EFFECT_DELIVER)
        b->outstanding[b->outstanding_count++] = effect->deliver.place.position;
}

static void offer(bench *b)
{
    const sl_offer message = { .place = { SL_LANE_MAIN, b->position },
                               .id = id_of(b->position),
                               .key = b->position % 1000 };
    uint32_t taken = 0;

    b->position++;
    if (sl_group_offer(b->group, &message, 1, b->now_ns, &taken) != SL_OK)
        abort();
}

static void ack_any(bench *b)
{
    const uint32_t i = (uint32_t)(next_random(&b->random) % b->outstanding_count);
    const sl_claim claim = { .id = id_of(b->outstanding[i]) };

    b->outstanding[i] = b->outstanding[--b->outstanding_count];
    if (sl_group_ack(b->group, b->consumer, &claim, 1, b->now_ns) != SL_OK)
        abort();
}

static bench *bench_new(uint32_t size, sl_strategy strategy)
{
    bench *const b = allocate(sizeof *b);
    sl_group_setup setup = {
        .limits = { .messages_max = size + 1, .consumers_max = 2, .keyed = sl_strategy_is_pinned(strategy) },
        .settings = sl_settings_default(),
        .seed = { 1, 2 },
        .sink = { take_effect, b }
    };
    const sl_join join = { .session = { { 1 } }, .window = size + 1 };

    setup.settings.strategy = strategy;
    setup.settings.buffer_max = size + 1;
    *b = (bench){ .size = size, .random = 88172645463325252u, .now_ns = 1 };
    b->memory = allocate(sl_group_bytes(&setup.limits));
    b->outstanding = allocate((size + 1) * sizeof *b->outstanding);
    b->group = sl_group_init(b->memory, &setup);
    if (sl_group_open(b->group, b->now_ns) != SL_OK)
        abort();
    if (sl_group_join(b->group, &join, b->now_ns, &b->consumer) != SL_OK)
        abort();
    while (b->outstanding_count < size)
        offer(b);
    return b;
}

static void bench_free(bench *b)
{
    free(b->outstanding);
    free(b->memory);
    free(b);
}

static double run_group(bench *b)
{
    const double begin = now_s();

    for (int i = 0; i < STEPS; i++) {
        b->now_ns += 1000;
        offer(b);
        ack_any(b);
    }
    return (now_s() - begin) * 1e9 / STEPS;
}

/* --- the least that must be done --- */

typedef struct bare_node {
    sl_map_node by_id;
    sl_heap_node due;
    sl_uuid id;
} bare_node;

typedef struct bare {
    bare_node *nodes;
    sl_map_node **table;
    sl_heap_slot *slots;
    sl_map map;
    sl_heap heap;
    uint32_t size;
    uint64_t number, now_ns, random;
} bare;

static void bare_insert(bare *b, bare_node *node)
{
    node->id = id_of(b->number++);
    sl_map_insert(&b->map, &node->by_id, sl_hash((sl_hash_seed){ 1, 2 }, node->id.bytes, 16));
    sl_heap_insert(&b->heap, &node->due, b->now_ns + 30000000000u);
}

static bare *bare_new(uint32_t size)
{
    bare *const b = allocate(sizeof *b);

    *b = (bare){ .size = size, .random = 88172645463325252u };
    b->nodes = calloc(size, sizeof *b->nodes);
    b->table = allocate(sl_map_table_length(size) * sizeof *b->table);
    b->slots = allocate(size * sizeof *b->slots);
    sl_map_init(&b->map, b->table, sl_map_table_length(size));
    sl_heap_init(&b->heap, b->slots, size);
    for (uint32_t i = 0; i < size; i++)
        bare_insert(b, &b->nodes[i]);
    return b;
}

static void bare_free(bare *b)
{
    free(b->nodes);
    free(b->table);
    free(b->slots);
    free(b);
}

static double run_bare(bare *b)
{
    const double begin = now_s();

    for (int i = 0; i < STEPS; i++) {
        bare_node *const wanted = &b->nodes[next_random(&b->random) % b->size];
        sl_map_node *node = sl_map_find(&b->map, sl_hash((sl_hash_seed){ 1, 2 }, wanted->id.bytes, 16));

        while (!sl_uuid_equal(SL_CONTAINER_OF(node, bare_node, by_id)->id, wanted->id))
            node = sl_map_next(node);
        b->now_ns += 1000;
        sl_map_remove(&b->map, node);
        sl_heap_remove(&b->heap, &wanted->due);
        bare_insert(b, wanted);
    }
    return (now_s() - begin) * 1e9 / STEPS;
}

/* --- measuring --- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

typedef struct result {
    double group_ns, pinned_ns, bare_ns;
} result;

static void measure(result results[SIZES])
{
    static double group_ns[SIZES][ROUNDS], pinned_ns[SIZES][ROUNDS], bare_ns[SIZES][ROUNDS];
    bench *groups[SIZES], *pinned[SIZES];
    bare *bares[SIZES];

    for (int s = 0; s < SIZES; s++) {
        groups[s] = bench_new(sizes[s], SL_STRATEGY_ROUND_ROBIN);
        pinned[s] = bench_new(sizes[s], SL_STRATEGY_PINNED);
        bares[s] = bare_new(sizes[s]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        fprintf(stderr, "\rround %d of %d", round + 1, ROUNDS);
        for (int s = 0; s < SIZES; s++) {
            group_ns[s][round] = run_group(groups[s]);
            pinned_ns[s][round] = run_group(pinned[s]);
            bare_ns[s][round] = run_bare(bares[s]);
        }
    }
    fprintf(stderr, "\r                    \r");
    for (int s = 0; s < SIZES; s++) {
        results[s] =
            (result){ median(group_ns[s], ROUNDS), median(pinned_ns[s], ROUNDS), median(bare_ns[s], ROUNDS) };
        bench_free(groups[s]);
        bench_free(pinned[s]);
        bare_free(bares[s]);
    }
}

/* What does not depend on the number of outstanding messages must not cost more with many of them. */
static void measure_idle(void)
{
    enum {
        CONSUMERS = 10000,
        MESSAGES = 1000000,
        TICKS = 1000000
    };
    bench b = { .now_ns = 1, .outstanding = allocate((MESSAGES + 1) * sizeof(uint64_t)) };
    sl_group_setup setup = { .limits = { .messages_max = MESSAGES, .consumers_max = CONSUMERS },
                             .settings = sl_settings_default(),
                             .seed = { 1, 2 },
                             .sink = { take_effect, &b } };
    const size_t bytes = sl_group_bytes(&setup.limits);
    double begin;

    setup.settings.buffer_max = MESSAGES;
    b.memory = allocate(bytes);
    b.group = sl_group_init(b.memory, &setup);
    if (sl_group_open(b.group, 1) != SL_OK)
        abort();
    for (uint64_t i = 0; i < MESSAGES; i++)
        offer(&b);
    begin = now_s();
    for (uint64_t i = 0; i < CONSUMERS; i++) {
        const sl_join join = { .session = id_of(i), .window = 10 };
        if (sl_group_join(b.group, &join, 1, &b.consumer) != SL_OK)
            abort();
    }
    printf("1,000,000 messages behind, %d consumers join and get 10 each: %.0f ns for each delivery\n",
           CONSUMERS, (now_s() - begin) * 1e9 / (10.0 * CONSUMERS));
    begin = now_s();
    for (int i = 0; i < TICKS; i++)
        sl_group_tick(b.group, 2);
    printf(
        "idle tick: %.1f ns; memory for each message: %.0f bytes, 64 of them touched only after a restart\n",
        (now_s() - begin) * 1e9 / TICKS, (double)bytes / MESSAGES);
    free(b.memory);
    free(b.outstanding);
}

int main(void)
{
    const double bound =
        1 + log2((double)sizes[2]); /* cost at 1 is the unit; growth by a constant for each doubling */
    result results[SIZES];
    double growth;

    measure(results);
    printf("%12s %14s %14s %14s   ns for one message, median of %d\n", "outstanding", "round robin", "pinned",
           "bare", ROUNDS);
    for (int s = 0; s < SIZES; s++)
        printf("%12" PRIu32 " %14.0f %14.0f %14.0f\n", sizes[s], results[s].group_ns, results[s].pinned_ns,
               results[s].bare_ns);
    measure_idle();
    for (int s = 0; s < SIZES; s++)
        printf("ratio deliver_ack.%" PRIu32 " bare %.3f\n", sizes[s],
               results[s].bare_ns / results[s].group_ns);
    for (int s = 1; s < SIZES; s++)
        printf("ratio deliver_ack.%" PRIu32 " deliver_ack.1 %.3f\n", sizes[s],
               results[0].group_ns / results[s].group_ns);
    growth = results[2].group_ns / results[0].group_ns;
    printf("growth from 1 to 10,000 outstanding: %.2f times; logarithmic would allow %.1f\n", growth, bound);
    return growth <= bound ? 0 : 1;
}
