/* examples/consumer.c — takes messages of a group, "works" on them one after the other, and drains when it is told to terminate.
 *
 *     cc consumer.c $(pkg-config --cflags --libs sluice) -o consumer
 *     ./consumer sluice://localhost:2113 orders billing billing-7
 *
 * SIGTERM or SIGINT: no new message is taken, the one in work is finished and acked, what was not begun goes back uncounted to the
 * other consumers, and when the server has confirmed that nothing is held any more the program ends. A second signal is impatient:
 * the program ends at once, and the server gives what it held to others. */
#include <sluice.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 10
};

typedef struct program {
    sl_consumer *consumer;
    sl_consumer_id waiting[WINDOW]; /* given out, not begun; oldest first */
    size_t waiting_count;
    int is_stopping;
    sl_consumer_status status;
} program;

static volatile sig_atomic_t signals;
static sl_consumer *woken_by_signal;

static void on_signal(int number)
{
    (void)number;
    signals++;
    sl_consumer_wake(woken_by_signal);
}

/* The event is only lent to us: here it is enough to remember its id. */
static void on_event(void *ctx, const sl_consumer_event *event)
{
    program *const p = ctx;

    printf("got %.*s/%llu, a %.*s of %zu bytes\n", (int)event->stream.bytes, event->stream.data,
           (unsigned long long)event->revision, (int)event->type.bytes, event->type.data, event->data.bytes);
    if (p->waiting_count < WINDOW)
        p->waiting[p->waiting_count++] = event->id;
    sl_consumer_wake(p->consumer); /* sl_consumer_run() returns, and loop() works */
}

static void forget(program *p, size_t index)
{
    p->waiting_count--;
    memmove(&p->waiting[index], &p->waiting[index + 1], (p->waiting_count - index) * sizeof p->waiting[0]);
}

/* Settled, handed back, or lost while it waited: whatever it was, it is not ours to begin any more. */
static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    program *const p = ctx;
    size_t index = 0;

    while (index < p->waiting_count && memcmp(&p->waiting[index], &id, sizeof id) != 0)
        index++;
    if (index < p->waiting_count)
        forget(p, index);
    if (outcome != SL_CONSUMER_SETTLED)
        printf("one message was %s\n", sl_consumer_outcome_text(outcome));
}

static void on_stop_requested(void *ctx, sl_consumer_bytes reason, uint32_t deadline_ms)
{
    (void)ctx;
    printf("asked to stop within %u ms: %.*s\n", (unsigned)deadline_ms, (int)reason.bytes, reason.data);
}

static void on_drained(void *ctx, const sl_consumer_drained *drained)
{
    program *const p = ctx;

    printf("drained: %u settled, %u released, %u lost\n", (unsigned)drained->settled,
           (unsigned)drained->released, (unsigned)drained->lost);
    if (p->is_stopping)
        sl_consumer_leave(p->consumer);
}

static void on_connected(void *ctx, const sl_consumer_connected *connected)
{
    sl_consumer_wake(((program *)ctx)->consumer); /* what waits may be begun again */
    printf("connected, %u messages are still ours%s\n", (unsigned)connected->resumed,
           connected->extensions ? "" : " (this server knows no Stop)");
}

static void on_disconnected(void *ctx, const char *sentence, uint32_t retry_ms)
{
    (void)ctx;
    printf("%s; next try in %u ms\n", sentence, (unsigned)retry_ms);
}

static void on_ended(void *ctx, sl_consumer_status status, const char *sentence)
{
    program *const p = ctx;

    printf("ended: %s\n", sentence);
    p->status = status;
}

/* One message: mark it, work, ack it. 0: it must not be begun now, because there is no connection or it is being handed back. A
 * real program would work in other threads, which tell this one by sl_consumer_wake() when they are done. */
static int work(program *p)
{
    const sl_consumer_id id = p->waiting[0];

    if (sl_consumer_started(p->consumer, &id, 1) == 0)
        return 0;
    forget(p, 0);
    sl_consumer_ack(p->consumer, &id, 1);
    return 1;
}

static void loop(program *p)
{
    int has_worked = 0;

    while (sl_consumer_run(p->consumer, has_worked && p->waiting_count > 0 ? 0 : -1)) {
        if (signals > 1)
            return;
        if (signals == 1 && !p->is_stopping) {
            p->is_stopping = 1;
            sl_consumer_stop(p->consumer, 1);
        }
        has_worked = p->waiting_count > 0 && work(p);
    }
}

int main(int argc, char **argv)
{
    static const sl_consumer_handler handler = { .event = on_event,
                                                 .settled = on_settled,
                                                 .stop_requested = on_stop_requested,
                                                 .drained = on_drained,
                                                 .connected = on_connected,
                                                 .disconnected = on_disconnected,
                                                 .ended = on_ended };
    program p = { .status = SL_CONSUMER_OK };
    sl_consumer_options options = { .window = WINDOW, .says_started = 1, .handler = &handler, .ctx = &p };
    char problem[SL_CONSUMER_PROBLEM_BYTES];

    if (argc != 5) {
        fprintf(stderr, "usage: %s ADDRESS STREAM GROUP NAME\n", argv[0]);
        return 2;
    }
    options.address = argv[1];
    options.stream = argv[2];
    options.group = argv[3];
    options.name = argv[4];
    if (sl_consumer_open(&options, problem, sizeof problem, &p.consumer) != SL_CONSUMER_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], problem);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    woken_by_signal = p.consumer;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    loop(&p);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    sl_consumer_close(p.consumer);
    return p.status == SL_CONSUMER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
