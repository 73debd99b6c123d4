/* bench/worker/work_run.c — see work_run.h. */
#include "work_run.h"

#include "meter.h"

#include "worker/memory_source.h"
#include "worker/worker.h"

#include <stdio.h>

enum {
    WINDOW_MIN = 100, /* as many as a consumer would be given */
    WINDOW_SLOTS = 4, /* and more than can run, so that no slot waits for a message */
};

#define SECOND_NS UINT64_C(1000000000)

typedef struct work_bench {
    const work_setup *setup;
    sl_loop *loop;
    sl_work *work;
    sl_logger log;
    meter meter;
    bool is_over;
} work_bench;

static void print_line(void *ctx, const char *line, size_t line_bytes)
{
    (void)ctx;
    fwrite(line, 1, line_bytes, stderr);
}

static void on_turn_end(void *ctx)
{
    work_bench *const b = ctx;

    bench_check();
    if (b->work == NULL || b->is_over)
        return;
    sl_work_turn_end(b->work);
    const uint64_t acked = sl_work_get_counts(b->work).acked;
    (void)meter_note(&b->meter, acked);
    if (b->setup->look != NULL)
        b->setup->look(b->setup->look_ctx, acked);
}

static void on_over(void *ctx, sl_work *work)
{
    work_bench *const b = ctx;

    (void)work;
    b->is_over = true;
    sl_loop_stop(b->loop);
}

static sl_source *make_source(work_bench *b)
{
    sl_memory_settings settings = sl_memory_settings_default();
    sl_source *source = NULL;

    settings.count = b->setup->messages;
    settings.data_bytes = b->setup->data_bytes;
    settings.window = b->setup->slots * WINDOW_SLOTS;
    if (settings.window < WINDOW_MIN)
        settings.window = WINDOW_MIN;
    settings.has_end = true;
    bench_must(sl_memory_source_new(b->loop, &settings, &source), "the source of messages");
    return source;
}

static void make_work(work_bench *b)
{
    static const sl_work_watcher watcher = { .over = on_over };
    const sl_budget_wish wish = { .grace_ns = 30 * SECOND_NS };
    sl_work_settings settings = { .name = "bench",
                                  .slots = b->setup->slots,
                                  .retry = sl_retry_default(),
                                  .hold_max_ns = 3600 * SECOND_NS,
                                  .log = &b->log };

    bench_must(sl_budget_make(&wish, &settings.budget), "the budget");
    sl_source *const source = make_source(b);
    sl_handler *const handler = b->setup->make(b->loop, &b->log, b->setup);
    bench_must(sl_work_new(b->loop, &settings, source, handler, NULL, &watcher, b, &b->work), "the worker");
}

double work_run(const work_setup *setup)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };
    work_bench b = { .setup = setup, .meter = meter_of(setup->messages) };

    bench_must(sl_loop_new(NULL, &handler, &b, &b.loop), "the loop");
    b.log = (sl_logger){ .level_min = SL_LOG_WARN, .clock = sl_loop_clock(b.loop), .sink = print_line };
    make_work(&b);
    sl_work_start(b.work);
    sl_loop_run(b.loop);
    const sl_work_counts counts = sl_work_get_counts(b.work);
    if (counts.acked != setup->messages || counts.begun != setup->messages)
        bench_fail("%llu of %llu messages were acked, and work was begun %llu times",
                   (unsigned long long)counts.acked, (unsigned long long)setup->messages,
                   (unsigned long long)counts.begun);
    sl_work_free(b.work);
    sl_loop_free(b.loop);
    return meter_rate(&b.meter);
}
