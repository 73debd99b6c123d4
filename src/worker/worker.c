/* worker/worker.c — jobs from the source to the handler and back: see worker.h.
 *
 * The path of a job is short on purpose. It is offered (one list), taken when a slot is free (one list, one call to the handler),
 * judged when its result comes, and settled. There is no system call of ours in it: the source sends what was said once, at
 * the end of the turn. */
#include "worker/worker_private.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS UINT64_C(1000000)

uint64_t work_now_ns(const sl_work *work)
{
    return sl_loop_now_ns(work->loop);
}

void work_wake_at(sl_work *work, uint64_t at_ns)
{
    if (at_ns >= work->timer_ns)
        return;
    work->timer_ns = at_ns;
    sl_timer_set(&work->timer, at_ns);
}

void work_due_at(sl_work *work, uint64_t at_ns)
{
    work->next_limit_ns = sl_min_u64(work->next_limit_ns, at_ns);
    work_wake_at(work, at_ns);
}

static void on_timer(void *ctx)
{
    sl_work *const work = ctx;

    work->timer_ns = UINT64_MAX;
    work->is_dirty = true; /* the end of this turn looks at everything that is due */
}

/* --- where a job stands --- */

static void enter_state(sl_work *work, sl_job *job, sl_job_state state)
{
    job->state = state;
    sl_list_push_back(&work->lines[state], &job->line);
    work->state_counts[state]++;
    work->is_dirty = true;
}

void work_leave_state(sl_work *work, sl_job *job)
{
    sl_list_remove(&job->line);
    work->state_counts[job->state]--;
}

void work_move(sl_work *work, sl_job *job, sl_job_state state)
{
    work_leave_state(work, job);
    enter_state(work, job, state);
}

/* Those that are still to come stand in a list of their own meanwhile, from which they can leave like from any other. */
void work_each(sl_work *work, sl_job_state state, work_job_fn *fn)
{
    sl_list *const line = &work->lines[state];
    sl_list todo;

    sl_list_init(&todo);
    sl_list_splice(&todo, line);
    while (!sl_list_empty(&todo)) {
        sl_job *const job = SL_CONTAINER_OF(sl_list_first(&todo), sl_job, line);

        sl_list_remove(&job->line);
        sl_list_push_back(line, &job->line);
        fn(work, job);
    }
}

void work_forget(sl_work *work, sl_job *job)
{
    sl_list_remove(&job->all);
    sl_job_free(job);
    work->is_dirty = true;
}

static void on_handler_closed(void *ctx)
{
    sl_work *const work = ctx;

    work->handler_is_closed = true;
    work->is_dirty = true;
}

/* --- what the source says --- */

static void on_offer(void *ctx, sl_job *job)
{
    sl_work *const work = ctx;

    work->counts.offered++;
    job->offered_ns = work_now_ns(work);
    if (job->lease_until_ns != UINT64_MAX)
        work_late_offered(work, job);
    sl_list_push_back(&work->all, &job->all);
    enter_state(work, job, SL_JOB_WAITING);
    if (sl_destinations_add(work->destinations, job) != SL_OK) {
        sl_list_init(&job->waiting);
        job->destination = NULL;
        work_release(work, job);
        return;
    }
    if (work->gives_back) {
        work_hand_back(work, job);
        return;
    }
    work_lease_offered(work, job);
}

/* The source wants to hear something final of each job, also of this one. */
static void on_lost(void *ctx, sl_job *job)
{
    sl_work *const work = ctx;

    if (job->state == SL_JOB_SETTLING)
        return;
    job->is_lost = true;
    if (job == work->beginning)
        return; /* begin_one() sees it */
    if (job->state != SL_JOB_RUNNING) {
        work_release(work, job);
        return;
    }
    sl_log(&work->log, SL_LOG_WARN, "the lease of running work is lost: it is ended",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id));
    work_abort(work, job);
}

static void on_fenced(void *ctx)
{
    sl_work *const work = ctx;

    work->is_fenced = true;
    work->is_dirty = true;
}

static void on_stop_asked(void *ctx, sl_drain_reason by, sl_str why, uint64_t deadline_ms)
{
    sl_work *const work = ctx;

    sl_log(&work->log, SL_LOG_INFO, "the source asks this worker to stop", SL_LOG_STR("worker", work->name),
           SL_LOG_STR("by", sl_drain_reason_name(by)), SL_LOG_STR("reason", why),
           SL_LOG_U64("deadline_ms", deadline_ms));
    if (deadline_ms > 0)
        sl_drain_shorten(&work->drain, sl_min_u64(deadline_ms, SL_BUDGET_GRACE_MAX_NS / MS_NS) * MS_NS);
    work_drain_begin(work, (sl_drain_call){ .reason = by });
}

static void on_up(void *ctx)
{
    sl_work *const work = ctx;

    work->is_up = true;
    work_late_up(work);
    work->problem[0] = '\0';
    work->is_dirty = true;
    sl_log(&work->log, SL_LOG_INFO, "connected to the source", SL_LOG_STR("worker", work->name));
    if (!work->was_up && work->watcher->up != NULL) {
        work->was_up = true;
        work->watcher->up(work->ctx, work);
    }
    work->was_up = true;
}

static void set_problem(sl_work *work, sl_str why)
{
    sl_text text;

    sl_text_init(&text, work->problem, sizeof work->problem);
    sl_text_add_str(&text, why);
}

static void on_down(void *ctx, sl_str why)
{
    sl_work *const work = ctx;

    work->is_up = false;
    set_problem(work, why);
    sl_log(&work->log, SL_LOG_WARN, "no connection to the source", SL_LOG_STR("worker", work->name),
           SL_LOG_STR("reason", why));
}

/* What it offered is lost with it, and there is nobody to wait for. */
static void on_failed(void *ctx, sl_source_failure failure, sl_str why)
{
    sl_work *const work = ctx;
    const sl_drain_reason reason = failure == SL_SOURCE_FINISHED ? SL_DRAIN_REASON_FINISHED
                                   : work->was_up                ? SL_DRAIN_REASON_FAILED
                                                                 : SL_DRAIN_REASON_START_FAILED;

    work->has_failed = failure != SL_SOURCE_FINISHED;
    if (work->has_failed) {
        work->is_up = false;
        work->end = failure == SL_SOURCE_REFUSED ? SL_WORK_ENDED_REFUSED : SL_WORK_ENDED_LOST;
        set_problem(work, why);
        sl_log(&work->log, SL_LOG_ERROR, "the source has failed", SL_LOG_STR("worker", work->name),
               SL_LOG_STR("reason", why));
    }
    work_drain_begin(work, (sl_drain_call){ .reason = reason });
}

static void on_source_closed(void *ctx)
{
    sl_work *const work = ctx;

    work->source_is_closed = true;
    work->is_dirty = true;
}

/* --- beginning --- */

static bool may_begin(const sl_work *work)
{
    if (work->state_counts[SL_JOB_RUNNING] + work->disowned_count >= work->settings.slots)
        return false;
    if (work->handler->class->takes != NULL && !work->handler->class->takes(work->handler))
        return false;
    if (work->drain.phase == SL_DRAIN_RUNNING)
        return true;
    return work->settings.finish_unstarted && work->drain.phase <= SL_DRAIN_SETTLING;
}

static uint64_t due_of(const sl_work *work, uint64_t now_ns)
{
    return work->settings.timeout_ns == 0 ? UINT64_MAX : sl_add_sat_u64(now_ns, work->settings.timeout_ns);
}

static void run(sl_work *work, sl_job *job)
{
    const uint64_t now_ns = work_now_ns(work);

    work_move(work, job, SL_JOB_RUNNING);
    work->counts.begun++;
    job->started_ns = now_ns;
    job->progress_ns = now_ns;
    job->due_ns = due_of(work, now_ns);
    job->until_ns = sl_min_u64(job->due_ns, sl_drain_work_until_ns(&work->drain));
    work_due_at(work, job->due_ns);
    work_lease_begun(work, job);
    work->handler->class->run(work->handler, job); /* may be over when it returns */
}

/* Their line is the list of the kept ones now; settling takes them out of it. */
static void release_kept(sl_work *work, sl_list *kept)
{
    while (!sl_list_empty(kept))
        work_hand_back(work, SL_CONTAINER_OF(sl_list_first(kept), sl_job, line));
}

/* Asks the source, which may say no, and may say from inside of that that the job is lost. */
static bool source_lets_begin(sl_work *work, sl_job *job)
{
    bool lets;

    work->beginning = job;
    lets = work->source->class->begin(work->source, job);
    work->beginning = NULL;
    return lets;
}

/* One job, if there is a slot and one may begin. False: there is no sense in trying the next. */
static bool begin_one(sl_work *work, uint64_t *ret_wake_ns)
{
    sl_list kept;
    sl_job *job;
    bool lets;

    sl_list_init(&kept);
    job = sl_destinations_take(work->destinations, work_now_ns(work), &kept, ret_wake_ns);
    release_kept(work, &kept);
    if (job == NULL)
        return false;
    if (work_lease_is_over(work, job)) {
        sl_destinations_put_back(work->destinations, job);
        work_lease_give_up(work, job);
        return true;
    }
    lets = source_lets_begin(work, job);
    if (job->is_lost) {
        sl_destinations_ended(work->destinations, job, SL_DESTINATION_UNKNOWN, 0, work_now_ns(work));
        work_release(work, job);
        return true;
    }
    if (!lets) {
        sl_destinations_put_back(work->destinations, job);
        *ret_wake_ns = UINT64_MAX; /* the source will say when it has changed */
        return false;
    }
    run(work, job);
    return true;
}

static uint64_t begin_all(sl_work *work)
{
    uint64_t wake_ns = UINT64_MAX;

    if (work->state_counts[SL_JOB_WAITING] == 0)
        return UINT64_MAX;
    while (work->begin_not_before_ns <=
           work_now_ns(work)) { /* work that cannot be begun sets it from inside */
        if (!may_begin(work) || !begin_one(work, &wake_ns))
            return wake_ns;
        wake_ns = UINT64_MAX;
    }
    return work->begin_not_before_ns;
}

/* --- a turn --- */

static void tell_over(sl_work *work)
{
    if (work->over_is_told || !sl_work_is_over(work))
        return;
    work->over_is_told = true;
    sl_timer_stop(&work->timer);
    sl_timer_stop(&work->renewal);
    work_late_done(work);
    work_tell_left(work);
    if (work->watcher->over != NULL)
        work->watcher->over(work->ctx, work);
}

static void turn_once(sl_work *work)
{
    uint64_t wake_ns;

    work->is_dirty = false;
    if (work->drain.phase != SL_DRAIN_RUNNING && work->handler->class->turn_end != NULL)
        work->handler->class->turn_end(
            work->handler); /* a result that is here already goes before a deadline */
    wake_ns = sl_min_u64(work_limits_look(work), work_drain_step(work));
    wake_ns = sl_min_u64(wake_ns, begin_all(work));
    if (work->source->class->turn_end != NULL)
        work->source->class->turn_end(work->source);
    if (work->handler->class->turn_end != NULL)
        work->handler->class->turn_end(work->handler);
    work_wake_at(work, wake_ns);
}

void sl_work_turn_end(sl_work *work)
{
    if (!work->is_started || work->over_is_told || work->is_inside)
        return;
    work->is_inside = true;
    for (int round = 0; round < SL_WORK_ROUNDS_MAX && (round == 0 || work->is_dirty); round++)
        turn_once(work);
    if (work->is_dirty)
        work_wake_at(work, work_now_ns(work));
    work->is_inside = false;
    tell_over(work);
}

/* --- life --- */

static const sl_source_owner source_owner = {
    .offer = on_offer,
    .lost = on_lost,
    .settled = work_on_settled,
    .fenced = on_fenced,
    .stop_asked = on_stop_asked,
    .up = on_up,
    .down = on_down,
    .failed = on_failed,
    .closed = on_source_closed,
};

static const sl_handler_owner handler_owner = {
    .finished = work_on_finished,
    .progress = work_on_progress,
    .closed = on_handler_closed,
};

static void own_parts(sl_work *work)
{
    work->source->owner = &source_owner;
    work->source->owner_ctx = work;
    work->source->shelf = &work->shelf;
    work->handler->owner = &handler_owner;
    work->handler->owner_ctx = work;
}

static void init_lists(sl_work *work)
{
    sl_list_init(&work->all);
    for (int state = 0; state < SL_JOB_STATE_COUNT_; state++)
        sl_list_init(&work->lines[state]);
}

static bool are_valid(const sl_work_settings *settings)
{
    return settings->slots > 0 && settings->slots <= SL_WORKER_SLOTS_MAX && settings->hold_max_ns > 0 &&
           sl_retry_validate(&settings->retry) == SL_OK &&
           (!settings->destination.has_breaker ||
            sl_breaker_rules_validate(&settings->destination.breaker) == SL_OK);
}

static sl_err fill(sl_work *work, const sl_work_settings *settings)
{
    sl_text name;

    work->settings = *settings;
    sl_text_init(&name, work->name, sizeof work->name);
    sl_text_add(&name, settings->name);
    work->settings.name = work->name;
    work->log = *settings->log;
    if (getrandom(&work->random, sizeof work->random, 0) != (ssize_t)sizeof work->random)
        return SL_ERR_IO;
    work->random |= 1;
    sl_drain_init(&work->drain, &settings->budget, settings->finish_unstarted);
    work->timer_ns = UINT64_MAX;
    work->next_limit_ns = UINT64_MAX;
    sl_timer_init(&work->timer, work->loop, on_timer, work);
    work_lease_init(work);
    work_late_init(work);
    return sl_destinations_new(&settings->destination, &work->destinations);
}

/* For what does not end though it was killed. */
static uint64_t soon_ns(void)
{
    return sl_clock_mono_ns(sl_loop_stopwatch()) + SL_WORK_FREE_MS * MS_NS;
}

sl_err sl_work_new(sl_loop *loop, const sl_work_settings *settings, sl_source *source, sl_handler *handler,
                   sl_ack_file *acks, const sl_work_watcher *watcher, void *ctx, sl_work **ret_work)
{
    sl_work *const work = sl_alloc_take(&sl_alloc_default, sizeof *work);
    sl_err err = are_valid(settings) ? SL_OK : SL_ERR_INVALID;

    if (work == NULL) {
        source->class->free(source);
        handler->class->free(handler, soon_ns());
        sl_ack_file_close(acks);
        return SL_ERR_NOMEM;
    }
    *work = (sl_work){
        .loop = loop, .source = source, .handler = handler, .acks = acks, .watcher = watcher, .ctx = ctx
    };
    init_lists(work);
    sl_job_shelf_init(&work->shelf);
    own_parts(work);
    if (err == SL_OK)
        err = fill(work, settings);
    if (err != SL_OK) {
        sl_work_free(work);
        return err;
    }
    *ret_work = work;
    return SL_OK;
}

void sl_work_free(sl_work *work)
{
    if (work == NULL)
        return;
    if (work->drain.phase != SL_DRAIN_RUNNING && !work->over_is_told) /* it did not end in time */
        work_tell_left(work);
    work->handler->class->free(work->handler, sl_min_u64(soon_ns(), sl_drain_leave_until_ns(&work->drain)));
    work->source->class->free(work->source);
    while (!sl_list_empty(&work->all)) {
        sl_job *const job = SL_CONTAINER_OF(sl_list_first(&work->all), sl_job, all);

        sl_list_remove(&job->all);
        sl_job_free(job);
    }
    sl_job_shelf_done(&work->shelf);
    sl_destinations_free(work->destinations);
    sl_ack_file_close(work->acks);
    if (work->timer.loop != NULL) {
        sl_timer_stop(&work->timer);
        work_lease_done(work);
        work_late_done(work);
    }
    sl_alloc_give(&sl_alloc_default, work, sizeof *work);
}

/* An entry of an earlier process is a job that is settled from the beginning. */
static void recall_one(sl_work *work, const sl_ack_entry *entry, uint32_t place)
{
    const sl_job_message message = { .id = entry->id, .token = entry->token, .revision = entry->revision };
    const sl_settle settle = { .kind = entry->is_park ? SL_SETTLE_PARK : SL_SETTLE_ACK,
                               .reason = entry->reason };
    sl_job *const job = sl_job_new(&message);

    if (job == NULL)
        return; /* it stays in the file, for the next process */
    job->is_recalled = true;
    job->ack_place = place + 1;
    job->verdict = (uint8_t)settle.kind;
    sl_list_push_back(&work->all, &job->all);
    enter_state(work, job, SL_JOB_SETTLING);
    work->source->class->recall(work->source, job, &settle);
}

static void recall_all(sl_work *work)
{
    static const size_t bytes = SL_ACK_FILE_PLACES * (sizeof(sl_ack_entry) + sizeof(uint32_t));
    sl_ack_entry *const entries = sl_alloc_take(&sl_alloc_default, bytes);
    uint32_t *const places = entries == NULL ? NULL : (uint32_t *)(entries + SL_ACK_FILE_PLACES);
    const size_t count =
        entries == NULL ? 0 : sl_ack_file_left(work->acks, entries, places, SL_ACK_FILE_PLACES);

    if (count > 0)
        sl_log(&work->log, SL_LOG_INFO, "finished work of an earlier process is acknowledged again",
               SL_LOG_STR("worker", work->name), SL_LOG_U64("count", count));
    for (size_t i = 0; i < count; i++)
        recall_one(work, &entries[i], places[i]);
    if (entries != NULL)
        sl_alloc_give(&sl_alloc_default, entries, bytes);
}

void sl_work_start(sl_work *work)
{
    assert(!work->is_started);
    work->is_started = true;
    work_tell_limits(work);
    if (work->acks != NULL && work->source->class->recall != NULL)
        recall_all(work);
    work->source->class->start(work->source);
    work_wake_at(work, work_now_ns(work));
}

void sl_work_stop(sl_work *work, sl_drain_call call)
{
    work_drain_begin(work, call);
}

/* --- for looking at --- */

sl_work_counts sl_work_get_counts(const sl_work *work)
{
    sl_work_counts counts = work->counts;

    counts.waiting = work->state_counts[SL_JOB_WAITING];
    counts.running = work->state_counts[SL_JOB_RUNNING] + work->disowned_count;
    counts.delayed = work->state_counts[SL_JOB_DELAYED];
    counts.settling = work->state_counts[SL_JOB_SETTLING];
    counts.destinations_open = (uint32_t)sl_destinations_open_count(work->destinations, work_now_ns(work));
    counts.is_up = work->is_up;
    return counts;
}

sl_drain_phase sl_work_phase(const sl_work *work)
{
    return work->drain.phase;
}

bool sl_work_is_over(const sl_work *work)
{
    return work->drain.phase == SL_DRAIN_STOPPED;
}

sl_work_end sl_work_get_end(const sl_work *work)
{
    return work->end;
}

bool sl_work_was_of_use(const sl_work *work)
{
    return work->was_up && (!work->source->class->has_no_dead_letters || work->counts.acked > 0);
}

const char *sl_work_problem(const sl_work *work)
{
    return work->problem;
}

sl_drain_report sl_work_report(const sl_work *work)
{
    return sl_drain_report_of(&work->drain);
}

const sl_source *sl_work_source(const sl_work *work)
{
    return work->source;
}

const sl_handler *sl_work_handler(const sl_work *work)
{
    return work->handler;
}

const sl_destinations *sl_work_destinations(const sl_work *work)
{
    return work->destinations;
}
