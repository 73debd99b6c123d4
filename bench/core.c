/* bench/core.c — what the delivery rules cost, without disk and network.
 *
 * First the common step: offer + lease + deliver + ack of one message, while N others are outstanding. The one to
 * be acked is drawn at random, so that heaps and maps are hit all over; rounds of all sizes are interleaved and
 * medians are shown. Beside it stands "bare", the least that any such bookkeeping must do: one entry of a hash
 * map and one of a heap of due times, made and removed again, with the same memory access pattern and nothing
 * else. The distance between the two is the price of the rules; what both have is the price of memory.
 *
 * Then the calls that touch many messages or many consumers at once (nack, release, stop, join, restart), each at
 * a size and at ten times that size. The cost for one message should hardly move between the two; a loop over
 * everything hidden in such a call would make it ten times as much.
 *
 * Ends with 1 when a cost grows more than it may. */
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/group.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 15,
    STEPS = 200000,
    SIZES = 4,
    CASE_ROUNDS = 5,
    RECORDS_FIRST = 1024
};

static const uint32_t sizes[SIZES] = { 1, 100, 10000, 1000000 };

/* From 1 to 10,000 outstanding: heaps become 13 levels deep, and no longer fit into the first cache. */
static const double growth_max = 3;

/* From a size to ten times that size, for the calls about many: between a cache that no longer holds everything
 * and a square. */
static const double case_growth_max = 5;

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

/* What must not fail in a measurement. */
static void must(sl_err err)
{
    if (err == SL_OK)
        return;
    fprintf(stderr, "bench-core: %s\n", sl_err_text(err));
    exit(1);
}

/* Only where somebody looks: in a log every round would be a line. */
static void show_progress(const char *what, int round, int round_count)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (round == round_count)
        fprintf(stderr, "\r%40s\r", "");
    else
        fprintf(stderr, "\r%s: round %d of %d", what, round + 1, round_count);
}

/* --- the group --- */

typedef struct bench {
    void *memory;
    sl_group *group;
    uint64_t *outstanding; /* numbers of the messages that were delivered and not acked */
    uint32_t outstanding_count, size;
    uint64_t consumer, position, now_ns, random;
    sl_effect *records; /* what a store would keep; NULL unless wanted */
    size_t record_count, record_room;
} bench;

static void keep_record(bench *b, const sl_effect *effect)
{
    if (b->record_count == b->record_room) {
        b->record_room *= 2;
        b->records = realloc(b->records, b->record_room * sizeof *b->records);
        if (b->records == NULL)
            abort();
    }
    b->records[b->record_count++] = *effect;
}

static void take_effect(void *ctx, const sl_effect *effect)
{
    bench *const b = ctx;

    if (effect->kind == SL_EFFECT_DELIVER)
        b->outstanding[b->outstanding_count++] = effect->deliver.place.position;
    if (b->records != NULL && sl_effect_is_record(effect->kind))
        keep_record(b, effect);
}

static void offer(bench *b)
{
    const sl_offer message = { .place = { SL_LANE_MAIN, b->position },
                               .id = id_of(b->position),
                               .key = b->position % 1000 };
    uint32_t taken = 0;

    b->position++;
    must(sl_group_offer(b->group, &message, 1, b->now_ns, &taken));
}

/* Takes one of the outstanding messages off the list, as a claim. */
static sl_claim draw_claim(bench *b)
{
    const uint32_t i = (uint32_t)(next_random(&b->random) % b->outstanding_count);
    const sl_claim claim = { .id = id_of(b->outstanding[i]) };

    b->outstanding[i] = b->outstanding[--b->outstanding_count];
    return claim;
}

static void ack_any(bench *b)
{
    const sl_claim claim = draw_claim(b);

    must(sl_group_ack(b->group, b->consumer, &claim, 1, b->now_ns));
}

static void join(bench *b, uint64_t number, uint32_t window)
{
    const sl_join call = { .session = id_of(number), .window = window };

    must(sl_group_join(b->group, &call, b->now_ns, &b->consumer));
}

/* A group for `size` messages and one more; nobody is there yet. */
static bench *bench_new(uint32_t size, uint32_t consumers_max, sl_strategy strategy)
{
    bench *const b = allocate(sizeof *b);
    sl_group_setup setup = { .limits = { .messages_max = size + 1,
                                         .consumers_max = consumers_max,
                                         .keyed = sl_strategy_is_pinned(strategy) },
                             .settings = sl_settings_default(),
                             .seed = { 1, 2 },
                             .sink = { take_effect, b } };

    setup.settings.strategy = strategy;
    setup.settings.buffer_max = size + 1;
    setup.settings.retries_max = UINT32_MAX;
    *b = (bench){ .size = size, .random = 88172645463325252u, .now_ns = 1 };
    b->memory = allocate(sl_group_bytes(&setup.limits));
    b->outstanding = allocate(((size_t)size + 1) * sizeof *b->outstanding);
    b->group = sl_group_init(b->memory, &setup);
    return b;
}

/* The same, with a consumer that holds `size` messages. */
static bench *bench_new_busy(uint32_t size, sl_strategy strategy)
{
    bench *const b = bench_new(size, 2, strategy);

    must(sl_group_open(b->group, b->now_ns));
    join(b, 1, size + 1);
    while (b->outstanding_count < size)
        offer(b);
    return b;
}

static void bench_free(bench *b)
{
    free(b->records);
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
        groups[s] = bench_new_busy(sizes[s], SL_STRATEGY_ROUND_ROBIN);
        pinned[s] = bench_new_busy(sizes[s], SL_STRATEGY_PINNED);
        bares[s] = bare_new(sizes[s]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        show_progress("deliver and ack", round, ROUNDS);
        for (int s = 0; s < SIZES; s++) {
            group_ns[s][round] = run_group(groups[s]);
            pinned_ns[s][round] = run_group(pinned[s]);
            bare_ns[s][round] = run_bare(bares[s]);
        }
    }
    show_progress("", ROUNDS, ROUNDS);
    for (int s = 0; s < SIZES; s++) {
        results[s] =
            (result){ median(group_ns[s], ROUNDS), median(pinned_ns[s], ROUNDS), median(bare_ns[s], ROUNDS) };
        bench_free(groups[s]);
        bench_free(pinned[s]);
        bare_free(bares[s]);
    }
}

/* --- calls about many --- */

/* Each gives the nanoseconds for one of `size` things. */
typedef double case_fn(uint32_t size);

static double run_nack(uint32_t size)
{
    const sl_nack again = { .action = SL_NACK_RETRY };
    bench *const b = bench_new_busy(size, SL_STRATEGY_ROUND_ROBIN);
    const double begin = now_s();

    for (uint32_t i = 0; i < size; i++) {
        const sl_claim claim = draw_claim(b);
        must(sl_group_nack(b->group, b->consumer, &claim, 1, &again, b->now_ns));
    }
    const double cost_ns = (now_s() - begin) * 1e9 / size;
    bench_free(b);
    return cost_ns;
}

static double run_release(uint32_t size)
{
    bench *const b = bench_new_busy(size, SL_STRATEGY_ROUND_ROBIN);
    const double begin = now_s();

    for (uint32_t i = 0; i < size; i++) {
        const sl_claim claim = draw_claim(b);
        must(sl_group_release(b->group, b->consumer, &claim, 1, b->now_ns));
    }
    const double cost_ns = (now_s() - begin) * 1e9 / size;
    bench_free(b);
    return cost_ns;
}

/* One call that hands everything back: to the group, and from there to another consumer. */
static double run_stop(uint32_t size)
{
    const sl_stop stop = { .asked_by = SL_ASKER_CONSUMER, .hand_back_unstarted = true };
    bench *const b = bench_new_busy(size, SL_STRATEGY_ROUND_ROBIN);
    const uint64_t stopping = b->consumer;

    join(b, 2, size + 1);
    b->outstanding_count = 0;
    const double begin = now_s();
    must(sl_group_stop(b->group, stopping, &stop, b->now_ns));
    const double cost_ns = (now_s() - begin) * 1e9 / size;
    bench_free(b);
    return cost_ns;
}

/* Every newcomer takes its share of the buckets from those that were there. */
static double run_join_pinned(uint32_t size)
{
    bench *const b = bench_new(2 * size, size, SL_STRATEGY_PINNED);

    must(sl_group_open(b->group, b->now_ns));
    for (uint32_t i = 0; i < 2 * size; i++)
        offer(b);
    const double begin = now_s();
    for (uint32_t i = 0; i < size; i++)
        join(b, i, 10);
    const double cost_ns = (now_s() - begin) * 1e9 / size;
    bench_free(b);
    return cost_ns;
}

/* The records of a life in which every second of 2 * size messages was acked: size are left, with leases. */
static bench *life_with_records(uint32_t size)
{
    bench *const b = bench_new(2 * size, 2, SL_STRATEGY_ROUND_ROBIN);

    b->record_room = RECORDS_FIRST;
    b->records = allocate(b->record_room * sizeof *b->records);
    must(sl_group_open(b->group, b->now_ns));
    join(b, 1, 2 * size);
    for (uint32_t i = 0; i < 2 * size; i++)
        offer(b);
    for (uint64_t position = 0; position < 2 * (uint64_t)size; position += 2) {
        const sl_claim claim = { .id = id_of(position) };
        must(sl_group_ack(b->group, b->consumer, &claim, 1, b->now_ns));
    }
    return b;
}

static double replay_all(bench *b, const bench *life)
{
    const double begin = now_s();

    for (size_t i = 0; i < life->record_count; i++)
        must(sl_group_replay(b->group, &life->records[i]));
    return (now_s() - begin) * 1e9 / (double)life->record_count;
}

static double run_replay(uint32_t size)
{
    bench *const life = life_with_records(size), *const b = bench_new(2 * size, 2, SL_STRATEGY_ROUND_ROBIN);
    const double cost_ns = replay_all(b, life);

    bench_free(life);
    bench_free(b);
    return cost_ns;
}

/* Opening counts as well: it is what a restart waits for. */
static double run_read_again(uint32_t size)
{
    bench *const life = life_with_records(size), *const b = bench_new(2 * size, 2, SL_STRATEGY_ROUND_ROBIN);

    replay_all(b, life);
    const double begin = now_s();
    must(sl_group_open(b->group, b->now_ns));
    while (b->position < 2 * (uint64_t)size)
        offer(b);
    const double cost_ns = (now_s() - begin) * 1e9 / size;
    bench_free(life);
    bench_free(b);
    return cost_ns;
}

typedef struct bench_case {
    const char *name, *what;
    uint32_t size; /* and ten times as many */
    case_fn *run;
} bench_case;

static const bench_case cases[] = {
    { "nack", "one nack of so many outstanding, and its redelivery", 1000, run_nack },
    { "release", "one release of so many outstanding, and its redelivery", 1000, run_release },
    { "stop", "stop that hands back so many, for one of them", 1000, run_stop },
    { "join_pinned", "one of so many consumers that join a pinned group", 1000, run_join_pinned },
    { "replay", "one record, of a life that left so many messages", 10000, run_replay },
    { "read_again", "open, and read again one that was left and one that was settled", 10000,
      run_read_again },
};
enum {
    CASES = sizeof cases / sizeof cases[0]
};

typedef struct case_result {
    double few_ns, many_ns;
} case_result;

static case_result measure_case(const bench_case *which)
{
    double few_ns[CASE_ROUNDS], many_ns[CASE_ROUNDS];

    for (int round = 0; round < CASE_ROUNDS; round++) {
        show_progress(which->name, round, CASE_ROUNDS);
        few_ns[round] = which->run(which->size);
        many_ns[round] = which->run(10 * which->size);
    }
    show_progress("", CASE_ROUNDS, CASE_ROUNDS);
    return (case_result){ median(few_ns, CASE_ROUNDS), median(many_ns, CASE_ROUNDS) };
}

/* What does not depend on the number of outstanding messages must not cost more with many of them. */
static void measure_idle(void)
{
    enum {
        CONSUMERS = 10000,
        MESSAGES = 1000000,
        TICKS = 1000000
    };
    const sl_group_limits limits = { .messages_max = MESSAGES + 1, .consumers_max = CONSUMERS };
    bench *const b = bench_new(MESSAGES, CONSUMERS, SL_STRATEGY_ROUND_ROBIN);

    must(sl_group_open(b->group, 1));
    for (uint64_t i = 0; i < MESSAGES; i++)
        offer(b);
    double begin = now_s();
    for (uint64_t i = 0; i < CONSUMERS; i++)
        join(b, i, 10);
    printf("1,000,000 messages behind, %d consumers join and get 10 each: %.0f ns for each delivery\n",
           CONSUMERS, (now_s() - begin) * 1e9 / (10.0 * CONSUMERS));
    begin = now_s();
    for (int i = 0; i < TICKS; i++)
        sl_group_tick(b->group, 2);
    printf(
        "idle tick: %.1f ns; memory for each message: %.0f bytes, 64 of them touched only after a restart\n",
        (now_s() - begin) * 1e9 / TICKS, (double)sl_group_bytes(&limits) / MESSAGES);
    bench_free(b);
}

/* --- reporting --- */

/* True when it stays within its bound. */
static bool report_growth(const char *what, double growth, double bound)
{
    printf("growth of %s: %.2f times, at most %.1f%s\n", what, growth, bound,
           growth <= bound ? "" : "   TOO MUCH");
    return growth <= bound;
}

static bool report_cases(void)
{
    case_result results[CASES];
    bool good = true;

    printf("\n%12s %12s %12s   ns for ...\n", "", "size", "10 x size");
    for (int i = 0; i < CASES; i++) {
        results[i] = measure_case(&cases[i]);
        printf("%12s %12.0f %12.0f   %s (%" PRIu32 ")\n", cases[i].name, results[i].few_ns,
               results[i].many_ns, cases[i].what, cases[i].size);
    }
    for (int i = 0; i < CASES; i++)
        printf("ratio %s.%" PRIu32 " %s.%" PRIu32 " %.3f\n", cases[i].name, 10 * cases[i].size, cases[i].name,
               cases[i].size, results[i].few_ns / results[i].many_ns);
    for (int i = 0; i < CASES; i++)
        good &= report_growth(cases[i].name, results[i].many_ns / results[i].few_ns, case_growth_max);
    return good;
}

static bool report_steps(const result results[SIZES])
{
    printf("%12s %14s %14s %14s   ns for one message, median of %d\n", "outstanding", "round robin", "pinned",
           "bare", ROUNDS);
    for (int s = 0; s < SIZES; s++)
        printf("%12" PRIu32 " %14.0f %14.0f %14.0f\n", sizes[s], results[s].group_ns, results[s].pinned_ns,
               results[s].bare_ns);
    printf("bare: one hash map entry and one heap entry, made and removed; the least that must be done\n");
    for (int s = 0; s < SIZES; s++)
        printf("ratio deliver_ack.%" PRIu32 " bare %.3f\n", sizes[s],
               results[s].bare_ns / results[s].group_ns);
    for (int s = 1; s < SIZES; s++)
        printf("ratio deliver_ack.%" PRIu32 " deliver_ack.1 %.3f\n", sizes[s],
               results[0].group_ns / results[s].group_ns);
    const bool ring = report_growth("deliver and ack, 1 to 10,000 outstanding",
                                    results[2].group_ns / results[0].group_ns, growth_max);
    const bool pinned =
        report_growth("the same, pinned", results[2].pinned_ns / results[0].pinned_ns, growth_max);
    return ring && pinned;
}

int main(void)
{
    result results[SIZES];

    measure(results);
    const bool steps = report_steps(results);
    measure_idle();
    const bool many = report_cases();
    return steps && many ? 0 : 1;
}
