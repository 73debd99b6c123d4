/* worker/api.c — the public functions of a worker: see include/sluice.h. What it is made of is in api_parts.c. */
#include "worker/api_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

static sl_worker_status status_of(sl_err err)
{
    if (err == SL_OK)
        return SL_WORKER_OK;
    if (err == SL_ERR_NOMEM)
        return SL_WORKER_NOMEM;
    return err == SL_ERR_INVALID || err == SL_ERR_TOO_LARGE || err == SL_ERR_BUDGET ? SL_WORKER_INVALID
                                                                                    : SL_WORKER_SYSTEM;
}

const char *sl_worker_status_text(sl_worker_status status)
{
    switch (status) {
    case SL_WORKER_OK: return "it ended as it was asked to";
    case SL_WORKER_INVALID: return "an option is wrong";
    case SL_WORKER_NOMEM: return "out of memory";
    case SL_WORKER_SYSTEM: return "the system refused a descriptor, a thread or a file";
    case SL_WORKER_REFUSED: return "the source refuses this worker";
    case SL_WORKER_LOST: return "the source is gone for good";
    case SL_WORKER_UNCLEAN: return "it ended, but not everything came to its end";
    case SL_WORKER_RUNNING: return "it runs";
    }
    return "unknown status";
}

/* --- in the thread of the loop --- */

/* The wish may have come from a signal handler, which can do no more than set it. */
void worker_heed(sl_worker *worker)
{
    const worker_wish wish = (worker_wish)atomic_load(&worker->wish);

    if (worker->work == NULL || wish <= worker->heeded)
        return;
    if (worker->heeded == WISH_NONE) {
        worker->ends_by_wish = sl_work_phase(worker->work) == SL_DRAIN_RUNNING;
        sl_work_stop(worker->work, (sl_drain_call){ .reason = SL_DRAIN_REASON_OPERATOR });
    }
    if (wish == WISH_STOP_NOW)
        sl_work_stop(worker->work, (sl_drain_call){ .reason = SL_DRAIN_REASON_OPERATOR, .escalates = true });
    worker->heeded = wish;
}

static void on_turn_end(void *ctx)
{
    sl_worker *const worker = ctx;

    worker_heed(worker);
    if (worker->work != NULL)
        sl_work_turn_end(worker->work);
}

static void on_over(void *ctx, sl_work *work)
{
    (void)work;
    sl_loop_stop(((sl_worker *)ctx)->loop);
}

static const sl_work_watcher watcher = { .over = on_over };

/* --- life --- */

static void init_lock(sl_worker *worker)
{
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic); /* on Linux none of these can fail */
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_cond_init(&worker->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

static void destroy(sl_worker *worker)
{
    sl_work_free(worker->work);
    sl_loop_free(worker->loop);
    pthread_cond_destroy(&worker->ended);
    pthread_mutex_destroy(&worker->lock);
    explicit_bzero(&worker->texts, sizeof worker->texts); /* an address may hold a password */
    sl_alloc_give(&sl_alloc_default, worker, sizeof *worker);
}

static sl_err make(sl_worker *worker, const sl_worker_options *options, sl_text *problem)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };
    sl_err err = worker_options_take(worker, options, problem);

    if (err == SL_OK)
        err = sl_loop_new(NULL, &handler, worker, &worker->loop);
    if (err == SL_OK) {
        worker->log.clock = sl_loop_clock(worker->loop);
        err = worker_make(worker, &watcher, problem);
    }
    if (err != SL_OK && problem->bytes == 0)
        sl_text_add(problem, sl_err_text(err));
    return err;
}

sl_worker_status sl_worker_new(const sl_worker_options *options, char *problem, size_t problem_bytes,
                               sl_worker **ret_worker)
{
    sl_worker *const worker = sl_alloc_take(&sl_alloc_default, sizeof *worker);
    sl_text text;
    sl_err err;

    sl_text_init(&text, problem, problem_bytes);
    if (worker == NULL) {
        sl_text_add(&text, sl_err_text(SL_ERR_NOMEM));
        return SL_WORKER_NOMEM;
    }
    memset(worker, 0, sizeof *worker);
    init_lock(worker);
    err = make(worker, options, &text);
    if (err != SL_OK) {
        destroy(worker);
        return status_of(err);
    }
    *ret_worker = worker;
    return SL_WORKER_OK;
}

void sl_worker_free(sl_worker *worker)
{
    if (worker == NULL)
        return;
    (void)sl_worker_drain(worker, -1, NULL);
    destroy(worker);
}

/* --- running --- */

static bool begin(sl_worker *worker)
{
    bool is_free;

    pthread_mutex_lock(&worker->lock);
    is_free = !worker->is_running;
    if (is_free) {
        worker->is_running = true;
        worker->runner = pthread_self();
        worker->problem[0] = '\0';
    }
    pthread_mutex_unlock(&worker->lock);
    return is_free;
}

static sl_worker_status run_to_the_end(sl_worker *worker)
{
    sl_work_end end;

    worker->heeded = WISH_NONE;
    worker->ends_by_wish = false;
    sl_work_start(worker->work);
    worker_heed(worker);
    while (!sl_work_is_over(worker->work))
        sl_loop_run(worker->loop);
    end = sl_work_get_end(worker->work);
    if (end == SL_WORK_ENDED_REFUSED)
        return SL_WORKER_REFUSED;
    if (end == SL_WORK_ENDED_LOST)
        return SL_WORKER_LOST;
    return sl_work_report(worker->work).clean ? SL_WORKER_OK : SL_WORKER_UNCLEAN;
}

/* A wish that ended this run is taken back with it. One that came when the run was ending anyway is not: whoever runs again because
 * the source was lost would never hear of it. */
static void end(sl_worker *worker, sl_worker_status status, const sl_drain_report *report)
{
    pthread_mutex_lock(&worker->lock);
    worker->status = status;
    worker->report = *report;
    worker->end_count++;
    worker->is_running = false;
    if (worker->ends_by_wish)
        atomic_store(&worker->wish, WISH_NONE);
    worker->ends_by_wish = false;
    pthread_cond_broadcast(&worker->ended);
    pthread_mutex_unlock(&worker->lock);
}

sl_worker_status sl_worker_run(sl_worker *worker)
{
    sl_worker_status status = SL_WORKER_OK;
    sl_drain_report report = { 0 };
    sl_text problem;

    if (!begin(worker))
        return SL_WORKER_RUNNING;
    sl_text_init(&problem, worker->problem, sizeof worker->problem);
    if (worker->work == NULL)
        status = status_of(worker_make(worker, &watcher, &problem));
    if (status == SL_WORKER_OK) {
        status = run_to_the_end(worker);
        report = sl_work_report(worker->work);
        sl_text_add(&problem, sl_work_problem(worker->work));
        sl_work_free(worker->work);
        worker->work = NULL;
    }
    end(worker, status, &report);
    return status;
}

/* True: there was none before. */
static bool wish(sl_worker *worker, worker_wish wanted)
{
    int had = WISH_NONE;

    while (had < (int)wanted && !atomic_compare_exchange_weak(&worker->wish, &had, (int)wanted)) {
    }
    sl_loop_wake(worker->loop);
    return had == WISH_NONE;
}

void sl_worker_stop(sl_worker *worker)
{
    (void)wish(worker, WISH_STOP);
}

void sl_worker_stop_now(sl_worker *worker)
{
    (void)wish(worker, WISH_STOP_NOW);
}

/* --- waiting for the end --- */

/* With the lock. False: it still runs. One that runs again since somebody looked has ended all the same. */
static bool await_end(sl_worker *worker, int timeout_ms)
{
    const uint64_t until_ns =
        sl_clock_mono_ns(sl_loop_stopwatch()) + (timeout_ms < 0 ? 0 : (uint64_t)timeout_ms * MS_NS);
    const struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
                                    .tv_nsec = (long)(until_ns % SECOND_NS) };
    const uint64_t end_count = worker->end_count;
    int late = 0;

    if (worker->is_running && (pthread_equal(worker->runner, pthread_self()) || worker_is_inside(worker)))
        return false; /* it would wait for itself */
    while (worker->is_running && worker->end_count == end_count && late == 0)
        late = timeout_ms < 0 ? pthread_cond_wait(&worker->ended, &worker->lock)
                              : pthread_cond_timedwait(&worker->ended, &worker->lock, &until);
    return !worker->is_running || worker->end_count != end_count;
}

static sl_worker_report report_of(const sl_drain_report *from)
{
    sl_worker_report report = {
        .reason = sl_drain_reason_name(from->reason),
        .is_clean = from->clean,
        .was_cut_short = from->escalated,
        .grace_ms = from->grace_ns / MS_NS,
        .used_ms = from->used_ns / MS_NS,
        .finished = from->finished,
        .handed_back = from->handed_back,
        .interrupted = from->interrupted,
        .abandoned = from->abandoned,
        .acks_unconfirmed = from->acks_unconfirmed,
        .failed_steps = from->failed_steps,
    };

    static_assert((int)SL_WORKER_PHASES == SL_DRAIN_CLOSING - SL_DRAIN_FENCING + 1,
                  "each phase is in the report");
    for (int i = 0; i < SL_WORKER_PHASES; i++) {
        report.phases[i].name = sl_drain_phase_name((sl_drain_phase)(SL_DRAIN_FENCING + i));
        report.phases[i].end = sl_drain_end_name(from->phases[SL_DRAIN_FENCING + i].end);
        report.phases[i].used_ms = from->phases[SL_DRAIN_FENCING + i].used_ns / MS_NS;
    }
    return report;
}

sl_worker_status sl_worker_drain(sl_worker *worker, int timeout_ms, sl_worker_report *ret_report)
{
    sl_worker_status status = SL_WORKER_RUNNING;
    int is_ours = WISH_STOP;
    bool was_running, is_new = false;

    pthread_mutex_lock(&worker->lock);
    was_running = worker->is_running;
    if (was_running || worker->end_count == 0) /* one that has ended needs no stop, and may be run again */
        is_new = wish(worker, WISH_STOP);
    if (await_end(worker, timeout_ms)) {
        if (was_running && is_new &&
            !worker->is_running) /* what was wished for is there: none is left behind for the next run */
            (void)atomic_compare_exchange_strong(&worker->wish, &is_ours, WISH_NONE);
        status = worker->status;
        if (ret_report != NULL)
            *ret_report = report_of(&worker->report);
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

int sl_worker_join(sl_worker *worker, int timeout_ms)
{
    bool has_ended;

    pthread_mutex_lock(&worker->lock);
    has_ended = await_end(worker, timeout_ms);
    pthread_mutex_unlock(&worker->lock);
    return has_ended ? 0 : 1;
}

sl_worker_report sl_worker_last_report(sl_worker *worker)
{
    sl_worker_report report;

    pthread_mutex_lock(&worker->lock);
    report = report_of(&worker->report);
    pthread_mutex_unlock(&worker->lock);
    return report;
}

const char *sl_worker_problem(sl_worker *worker)
{
    return worker->problem;
}
