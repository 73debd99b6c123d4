/* examples/worker.c — works on the messages of a group with four threads, and drains when it is told to terminate.
 *
 *     cc worker.c $(pkg-config --cflags --libs sluice) -o worker
 *     ./worker sluice://localhost:2113/orders/billing
 *     ./worker memory:count=20,bytes=100,end=yes                without a server
 *
 * SIGTERM or SIGINT: no new message is taken, what was not begun goes back, what runs is finished, and everything that was finished is
 * confirmed before the program ends, within the grace of 30 seconds. A second signal aborts what runs. */
#include <sluice.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sl_worker *stopped_by_signal;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    if (signals++ == 0)
        sl_worker_stop(stopped_by_signal);
    else
        sl_worker_stop_now(stopped_by_signal);
}

/* One message, in one of the threads. Long work asks sl_ctx_is_aborted() now and then, and returns SL_WORKER_STOPPED if it is. */
static sl_worker_result work(void *user, sl_ctx *ctx)
{
    const sl_consumer_bytes stream = sl_ctx_stream(ctx), data = sl_ctx_data(ctx);

    (void)user;
    printf("%.*s/%llu, attempt %u: %zu bytes\n", (int)stream.bytes, stream.data,
           (unsigned long long)sl_ctx_revision(ctx), (unsigned)sl_ctx_attempt(ctx), data.bytes);
    if (data.bytes == 0) {
        sl_ctx_set_reason(ctx, "an order without data");
        return SL_WORKER_PARK; /* it will never work: to the dead letters */
    }
    return SL_WORKER_DONE;
}

static void log_line(void *user, const char *line)
{
    (void)user;
    fputs(line, stderr);
}

static void show(const sl_worker_report *report)
{
    printf("ended (%s) after %llu ms: %llu finished, %llu handed back, %llu interrupted\n", report->reason,
           (unsigned long long)report->used_ms, (unsigned long long)report->finished,
           (unsigned long long)report->handed_back, (unsigned long long)report->interrupted);
}

int main(int argc, char **argv)
{
    sl_worker_options options = { .work = work, .slots = 4, .threads = 4, .grace_ms = 30000, .log = log_line };
    char problem[SL_WORKER_PROBLEM_BYTES];
    sl_worker_status status;
    sl_worker_report report;

    if (argc != 2) {
        fprintf(stderr, "usage: %s SOURCE\n", argv[0]);
        return 2;
    }
    options.from = argv[1];
    if (sl_worker_new(&options, problem, sizeof problem, &stopped_by_signal) != SL_WORKER_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], problem);
        return 2;
    }
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    status = sl_worker_run(stopped_by_signal);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    report = sl_worker_last_report(stopped_by_signal);
    show(&report);
    if (status != SL_WORKER_OK)
        fprintf(stderr, "%s: %s\n", sl_worker_status_text(status), sl_worker_problem(stopped_by_signal));
    sl_worker_free(stopped_by_signal);
    return status == SL_WORKER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
