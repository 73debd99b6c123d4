/* bench/worker/part_callback.c — messages of a server through a C function: the worker against a loop on the same client engine.
 *
 * A stream of messages and a new group at its beginning for each run. The bare loop acks each event in its callback, which is the least
 * that a consumer can do. `bare-started` also says of each that work on it begins, as a worker does so that a killed process is only charged
 * for what it had begun: the difference between the two is what the server and the wire cost for that, and not the worker. */
#include "meter.h"
#include "server/peer.h"

#include "base/arena.h"
#include "client/ask.h"
#include "wire/persistent_client.h"

#include <sluice.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    MESSAGES = 100 * 1000,
    WINDOW = 1000,
    PUT_AT_ONCE = 1000,
    LEASE_MS = 60 * 1000,
    THREADS = 2,
    GROUP_BYTES = 32,
};

#define SECOND_NS UINT64_C(1000000000)

typedef struct bare {
    sl_consumer *consumer;
    meter meter;
    uint64_t settled;
    bool says_started;
} bare;

typedef struct served {
    const peer *server;
    char address[32];
    char group[GROUP_BYTES];
} served;

/* --- the server --- */

static void fill(peer *p, uint64_t count)
{
    for (uint64_t done = 0; done < count;) {
        p->kind->put(p, PUT_AT_ONCE);
        const uint32_t confirmed = p->kind->wait(p, ANSWER_SECONDS_MAX * SECOND_NS);
        if (confirmed == 0)
            bench_fail("sluice: no answer");
        done += confirmed;
    }
}

static sl_str encode_group(const char *name, sl_arena *arena)
{
    const sl_wire_group_request request = {
        .source = SL_WIRE_SOURCE_STREAM,
        .stream = SL_STR("bench"),
        .group = sl_str_from(name),
        .start = SL_WIRE_START_BEGIN,
        .has_settings = true,
        .settings = { .message_timeout = { .given = true, .value = LEASE_MS },
                      .checkpoint_after = { .given = true, .value = 2000 },
                      .max_retry_count = 10,
                      .min_checkpoint_count = 10,
                      .max_checkpoint_count = 1000,
                      .live_buffer_size = 5000,
                      .read_batch_size = 500,
                      .history_buffer_size = 5000,
                      .strategy = SL_STR("RoundRobin") },
    };
    sl_str message;

    bench_must(sl_wire_group_create_encode(&request, arena, &message), "sluice");
    return message;
}

static void ask_for_group(sl_loop *loop, const served *s)
{
    char problem[256];
    sl_client_address address;
    sl_client_answer answer;
    sl_client *client;
    sl_arena arena;
    sl_text text;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    sl_text_init(&text, problem, sizeof problem);
    const sl_str message = encode_group(s->group, &arena);
    bench_must(sl_client_address_parse(sl_str_from(s->address), &text, &address), "sluice");
    bench_must(sl_client_new(loop, &(sl_client_options){ .address = &address }, &text, &client), "sluice");
    bench_must(
        sl_client_ask(
            client,
            &(sl_client_question){
                .path = SL_STR("/event_store.client.persistent_subscriptions.PersistentSubscriptions/Create"),
                .messages = &message,
                .message_count = 1 },
            &answer),
        "sluice: a group");
    if (answer.status != SL_STATUS_OK)
        bench_fail("sluice: a group: %s", answer.message);
    sl_client_answer_done(&answer);
    sl_client_free(client);
    sl_arena_done(&arena);
}

/* A group at the beginning of the stream, for one run. */
static served serve_anew(const peer *p)
{
    static uint32_t number;
    served s = { .server = p };
    sl_loop *loop;

    snprintf(s.address, sizeof s.address, "127.0.0.1:%u", p->port);
    snprintf(s.group, sizeof s.group, "group%u", ++number);
    bench_must(sl_loop_new(NULL, &(sl_loop_handler){ 0 }, NULL, &loop), "the loop");
    ask_for_group(loop, &s);
    sl_loop_free(loop);
    bench_quiet();
    return s;
}

/* --- the bare loop --- */

static void on_event(void *ctx, const sl_consumer_event *event)
{
    bare *const b = ctx;

    if (b->says_started && sl_consumer_started(b->consumer, &event->id, 1) != 1)
        bench_fail("a message cannot be begun");
    if (sl_consumer_ack(b->consumer, &event->id, 1) != 1)
        bench_fail("a message cannot be acked");
}

static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    bare *const b = ctx;

    (void)id;
    if (outcome != SL_CONSUMER_SETTLED)
        bench_fail("an ack did not count");
    if (!meter_note(&b->meter, ++b->settled))
        sl_consumer_wake(b->consumer);
}

static void on_ended(void *ctx, sl_consumer_status status, const char *sentence)
{
    (void)ctx;
    (void)status;
    bench_fail("the consumer has ended: %s", sentence);
}

static double bare_rate(const served *s, uint64_t count, bool says_started)
{
    static const sl_consumer_handler handler = { .event = on_event,
                                                 .settled = on_settled,
                                                 .ended = on_ended };
    bare b = { .meter = meter_of(count), .says_started = says_started };
    char problem[SL_CONSUMER_PROBLEM_BYTES];
    const sl_consumer_options options = { .address = s->address,
                                          .stream = "bench",
                                          .group = s->group,
                                          .window = WINDOW,
                                          .says_started = says_started,
                                          .handler = &handler,
                                          .ctx = &b };

    if (sl_consumer_open(&options, problem, sizeof problem, &b.consumer) != SL_CONSUMER_OK)
        bench_fail("%s", problem);
    while (b.settled < count) {
        bench_check();
        sl_consumer_run(b.consumer, 1000);
    }
    sl_consumer_close(b.consumer);
    return meter_rate(&b.meter);
}

/* --- ours --- */

typedef struct ours {
    sl_worker *worker;
    uint64_t total;
    atomic_uint_fast64_t begun;
    double start_s;
} ours;

/* In one of the worker's threads, or in the only one. The time begins as the meter of the bare loop does. */
static sl_worker_result work(void *user, sl_ctx *ctx)
{
    ours *const w = user;
    const uint64_t nth = atomic_fetch_add_explicit(&w->begun, 1, memory_order_relaxed) + 1;

    (void)ctx;
    if (nth == w->total / METER_WARM_PART)
        w->start_s = bench_now_s();
    if (nth == w->total)
        sl_worker_stop(w->worker);
    return SL_WORKER_DONE;
}

/* Until it has drained: all acks are confirmed then, and the connection is closed. */
static double our_rate(const served *s, uint64_t count, uint32_t threads)
{
    ours w = { .total = count };
    char from[128], problem[SL_WORKER_PROBLEM_BYTES];
    const sl_worker_options options = {
        .from = from, .work = work, .user = &w, .slots = WINDOW, .threads = threads, .window = WINDOW
    };

    snprintf(from, sizeof from, "sluice://%s/bench/%s", s->address, s->group);
    if (sl_worker_new(&options, problem, sizeof problem, &w.worker) != SL_WORKER_OK)
        bench_fail("%s", problem);
    const sl_worker_status status = sl_worker_run(w.worker);
    const double end_s = bench_now_s();
    if (status != SL_WORKER_OK || w.begun != count)
        bench_fail("the worker ended %s, after %llu messages: %s", sl_worker_status_text(status),
                   (unsigned long long)w.begun, sl_worker_problem(w.worker));
    sl_worker_free(w.worker);
    return (double)(count - count / METER_WARM_PART) / (end_s - w.start_s);
}

typedef enum way {
    WAY_BARE,
    WAY_LOOP,
    WAY_STARTED,
    WAY_THREADS,
    WAY_COUNT_
} way;

static double measure(const peer *p, uint64_t count, way how)
{
    const served s = serve_anew(p);

    if (how == WAY_BARE || how == WAY_STARTED)
        return bare_rate(&s, count, how == WAY_STARTED);
    return our_rate(&s, count, how == WAY_THREADS ? THREADS : 0);
}

static void report(const char *what, const double *worker, double rates[WAY_COUNT_][BENCH_ROUNDS_MAX],
                   uint32_t rounds)
{
    bench_report_speed(what, "bare", worker, rates[WAY_BARE], rounds, "messages/s");
    bench_report_speed(what, "bare-started", worker, rates[WAY_STARTED], rounds, "messages/s");
}

void part_callback(const run_options *o)
{
    static double rates[WAY_COUNT_][BENCH_ROUNDS_MAX];
    const uint64_t count = run_messages(o, MESSAGES);
    const uint32_t rounds = o->common.rounds;
    peer p;

    peer_start(&p, &peer_sluice_batch);
    fill(&p, count);
    for (uint32_t round = 0; round < rounds; round++) {
        bench_progress("callback", round, rounds);
        /* Each begins as often as the others: which core the system puts us on depends on what ran before, and makes a fifth. */
        for (uint32_t i = 0; i < WAY_COUNT_; i++) {
            const way how = (way)((round + i) % WAY_COUNT_);

            rates[how][round] = measure(&p, count, how);
        }
    }
    bench_progress("", 0, 0);
    peer_stop(&p);
    report("callback.loop", rates[WAY_LOOP], rates, rounds);
    report("callback.threads", rates[WAY_THREADS], rates, rounds);
}
