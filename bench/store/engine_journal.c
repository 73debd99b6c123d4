/* bench/store/engine_journal.c — ours, through store/store.h as a server with one client would use it.
 *
 * Closed loop: a batch is submitted, the turn ends, and the next batch waits for the answer of this one. */
#include "common/bench.h"
#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

enum {
    READ_EVENTS = 256,
    REPORT_BYTES = 4096,
    AHEAD_MAX = 8,  /* batches that wait for their answer */
    AHEAD_TURN = 2, /* batches in a turn, more than inline_max: so the sync runs in its own thread */
};

struct bench_engine {
    sl_store *store;
    uint32_t waiting, in_turn; /* batches without an answer, and without a turn */
};

/* --- open and wait --- */

static sl_err forget_group(void *ctx, uint64_t group, sl_str definition)
{
    (void)ctx, (void)group, (void)definition;
    return SL_OK;
}

static sl_err forget_record(void *ctx, uint64_t group, const sl_effect *record)
{
    (void)ctx, (void)group, (void)record;
    return SL_OK;
}

sl_store *bench_store_open(const sl_journal_options *options)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 1, 2 } };
    const sl_loader loader = { .group = forget_group, .record = forget_record };
    char buffer[REPORT_BYTES];
    sl_text report;
    sl_store *store = NULL;

    sl_text_init(&report, buffer, sizeof buffer);
    const sl_err err = sl_store_open_journal(&setup, options, &report, &store);
    if (err != SL_OK)
        bench_fail("the journal in %s does not open: %s. %s", options->folder, sl_err_text(err), report.data);
    bench_must(sl_store_load(store, &loader), "sl_store_load");
    return store;
}

static void wait_for_store(sl_store *store)
{
    struct pollfd wait = { .fd = sl_store_wait_fd(store), .events = POLLIN };

    if (poll(&wait, 1, -1) < 0 && errno != EINTR)
        bench_fail("poll failed");
    sl_store_poll(store);
}

/* --- append --- */

typedef struct answer {
    sl_err err;
    bool done;
} answer;

static void take_answer(void *ctx, const sl_commit *commit)
{
    *(answer *)ctx = (answer){ .err = commit->err, .done = true };
}

void bench_store_append(sl_store *store, const sl_op *ops, uint32_t count)
{
    const sl_batch batch = { .ops = ops, .op_count = count, .durability = SL_DURABLE_SYNC };
    answer got = { 0 };

    bench_must(sl_store_submit(store, &batch, take_answer, &got), "sl_store_submit");
    sl_store_turn(store);
    while (!got.done)
        wait_for_store(store);
    if (got.err != SL_OK)
        bench_fail("a batch was answered with: %s. %s", sl_err_text(got.err), sl_store_problem(store));
}

/* --- read --- */

/* Waits when what is next has to come from the disk. */
static sl_err next_events(sl_store *store, sl_cursor *cursor, sl_event *events, uint32_t max,
                          uint32_t *ret_count)
{
    sl_err err = sl_cursor_next(cursor, events, max, ret_count);

    while (err == SL_ERR_AGAIN) {
        wait_for_store(store);
        err = sl_cursor_next(cursor, events, max, ret_count);
    }
    if (err != SL_OK && err != SL_ERR_EMPTY)
        bench_fail("reading was answered with: %s. %s", sl_err_text(err), sl_store_problem(store));
    return err;
}

void bench_cursor_read(sl_store *store, sl_cursor *cursor, uint64_t max, bench_seen *seen)
{
    sl_event events[READ_EVENTS];
    uint32_t count = 0;

    while (max > 0) {
        const uint32_t wanted = max < READ_EVENTS ? (uint32_t)max : READ_EVENTS;
        if (next_events(store, cursor, events, wanted, &count) != SL_OK)
            return;
        for (uint32_t i = 0; i < count; i++)
            bench_seen_add(seen, events[i].data.data, events[i].data.bytes);
        max -= count;
    }
}

static void read_some(sl_store *store, const sl_read *read, uint64_t max, bench_seen *seen)
{
    sl_cursor *cursor = NULL;

    bench_must(sl_store_read(store, read, &cursor), "sl_store_read");
    bench_cursor_read(store, cursor, max, seen);
    sl_cursor_close(cursor);
}

static void journal_read_all(bench_engine *engine, bench_seen *seen)
{
    read_some(engine->store, &(sl_read){ .from = SL_POSITION_FIRST }, UINT64_MAX, seen);
}

static void journal_read_stream(bench_engine *engine, bench_place from, uint32_t max, bench_seen *seen)
{
    char name[BENCH_NAME_BYTES + 1];

    bench_stream_name(from.stream, name);
    read_some(engine->store, &(sl_read){ .stream = { name, BENCH_NAME_BYTES }, .from = from.revision }, max,
              seen);
}

static void journal_read_point(bench_engine *engine, bench_place place, bench_seen *seen)
{
    journal_read_stream(engine, place, 1, seen);
}

/* --- the engine --- */

static bench_engine *journal_open(const char *folder)
{
    bench_engine *const engine = bench_allocate(sizeof *engine);

    *engine = (bench_engine){ .store = bench_store_open(&(sl_journal_options){ .folder = folder }) };
    return engine;
}

static void journal_append(bench_engine *engine, const bench_batch *batch)
{
    bench_store_append(engine->store, batch->ops, batch->count);
}

static void journal_close(bench_engine *engine)
{
    sl_store_close(engine->store);
    free(engine);
}

const bench_engine_kind bench_journal = {
    .name = "journal",
    .open = journal_open,
    .append = journal_append,
    .read_all = journal_read_all,
    .read_stream = journal_read_stream,
    .read_point = journal_read_point,
    .close = journal_close,
};

/* --- the same, ahead --- */

static bench_engine *ahead_open(const char *folder)
{
    bench_engine *const engine = bench_allocate(sizeof *engine);

    *engine = (bench_engine){ .store = bench_store_open(
                                  &(sl_journal_options){ .folder = folder, .inline_max = 1 }) };
    return engine;
}

static void count_answer(void *ctx, const sl_commit *commit)
{
    bench_engine *const engine = ctx;

    bench_must(commit->err, "a batch was answered with");
    engine->waiting--;
}

static void end_turn(bench_engine *engine)
{
    sl_store_turn(engine->store);
    engine->in_turn = 0;
}

static void ahead_append(bench_engine *engine, const bench_batch *batch)
{
    const sl_batch taken = { .ops = batch->ops, .op_count = batch->count, .durability = SL_DURABLE_SYNC };

    bench_must(sl_store_submit(engine->store, &taken, count_answer, engine), "sl_store_submit");
    engine->waiting++;
    if (++engine->in_turn == AHEAD_TURN)
        end_turn(engine);
    while (engine->waiting >= AHEAD_MAX)
        wait_for_store(engine->store);
}

static void ahead_finish(bench_engine *engine)
{
    end_turn(engine);
    while (engine->waiting > 0)
        wait_for_store(engine->store);
}

const bench_engine_kind bench_ahead = {
    .name = "ahead",
    .open = ahead_open,
    .append = ahead_append,
    .finish = ahead_finish,
    .close = journal_close,
};
