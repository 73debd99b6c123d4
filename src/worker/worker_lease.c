/* worker/worker_lease.c — time: leases that are renewed, limits that are kept, handlers that hang (B8).
 *
 * A lease is renewed for what waits and for what runs, every third of its length, as long as there is a reason to: the handler
 * lives, shows itself where a heartbeat is asked for, and the job has neither waited nor run for longer than hold_max, which the wait
 * and the work have each: a message may be here for twice as long. Whoever stops renewing gives the message to others when the lease
 * ends, so a short lease is safe for slow work, and a hung handler cannot keep a message for ever. It is ended then.
 *
 * A source without leases (KurrentDB, a schedule) has nothing that could end by itself, so what runs is looked at all the same: a handler
 * that is stopped or silent is reported, silence for twice the heartbeat ends it (a lease of that length, renewed at the last sign of
 * life but not after, would be over by then), and hold_max, from its begin, ends whatever still runs. That is a failure and no
 * release, because the message would come straight back and hang again. What waits there is left alone: no lease keeps it from others.
 *
 * Nothing here costs anything while messages flow: timers are set once for the earliest time and find the next one when they fire. */
#include "worker/worker_private.h"

#include "base/cleanup.h"

#include <assert.h>

#define LOOK_NS                                                                                              \
    UINT64_C(10000000000) /* where neither lease nor heartbeat say how often: as for a lease of 30 s */

enum {
    RENEWALS_PER_LEASE = 3,
    SILENT_HEARTBEATS_MAX = 2 /* without a lease: then it is ended */
};

static const char why_time_limit[] = "it took longer than its time limit and was ended";
static const char why_hold_max[] = "it was held for longer than the maximum and was ended";
static const char why_silent[] = "it gave no sign of life for twice the heartbeat and was ended";

static bool has_lease(const sl_job *job)
{
    return job->lease_until_ns != UINT64_MAX;
}

/* --- ending work --- */

static uint64_t abort_ns(const sl_work *work)
{
    return work->settings.budget.part_ns[SL_BUDGET_ABORT];
}

/* First a wish. If it is not granted in time, work_limits_look() comes with more. */
void work_abort(sl_work *work, sl_job *job)
{
    assert(job->state == SL_JOB_RUNNING);
    if (job->is_aborted)
        return;
    job->is_aborted = true;
    job->due_ns = sl_add_sat_u64(work_now_ns(work), abort_ns(work));
    work_due_at(work, job->due_ns);
    work->handler->class->abort(work->handler, job); /* may be over when it returns */
}

void work_kill(sl_work *work, sl_job *job)
{
    assert(job->state == SL_JOB_RUNNING);
    if (job->is_killed)
        return;
    job->is_aborted = true;
    job->is_killed = true;
    job->due_ns = UINT64_MAX;
    work->handler->class->kill(work->handler, job); /* may be over when it returns */
}

/* --- limits --- */

static void time_is_over(sl_work *work, sl_job *job)
{
    if (job->is_aborted) {
        work_kill(work, job);
        return;
    }
    job->why_late = why_time_limit;
    work->counts.timed_out++;
    sl_log(&work->log, SL_LOG_WARN, "work takes longer than its time limit and is ended",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id),
           SL_LOG_DURATION("limit", work->settings.timeout_ns));
    work_abort(work, job);
}

static void look_at_running(sl_work *work, sl_job *job)
{
    if (job->due_ns <= work_now_ns(work))
        time_is_over(work, job);
    else
        work_due_at(work, job->due_ns);
}

static void end_pause(sl_work *work, sl_job *job)
{
    const sl_settle settle = { .kind = SL_SETTLE_RETRY, .reason = { job->reason, job->reason_bytes } };

    work_settle(work, job, &settle);
}

/* In a drain the pause is not worth a part of the budget. */
static void look_at_delayed(sl_work *work, sl_job *job)
{
    if (job->due_ns <= work_now_ns(work) || work->drain.phase != SL_DRAIN_RUNNING)
        end_pause(work, job);
    else
        work_due_at(work, job->due_ns);
}

uint64_t work_limits_look(sl_work *work)
{
    const bool ends_pauses = work->drain.phase != SL_DRAIN_RUNNING && work->state_counts[SL_JOB_DELAYED] > 0;

    if (work->next_limit_ns > work_now_ns(work) && !ends_pauses)
        return work->next_limit_ns;
    work->next_limit_ns = UINT64_MAX;
    work_each(work, SL_JOB_DELAYED, look_at_delayed);
    work_each(work, SL_JOB_RUNNING, look_at_running);
    return work->next_limit_ns;
}

/* --- renewal --- */

/* The wait of a message and the work on it have the maximum each: work that waited for long behind a breaker is not ended, and charged,
 * because of that. */
static uint64_t held_until_ns(const sl_work *work, const sl_job *job)
{
    const bool is_running = job->state == SL_JOB_RUNNING;

    return sl_add_sat_u64(is_running ? job->started_ns : job->offered_ns, work->settings.hold_max_ns);
}

static void count_wedged(sl_work *work, sl_job *job)
{
    work->counts.wedged += job->is_wedged ? 0 : 1;
    job->is_wedged = true;
}

static void report_wedged(sl_work *work, sl_job *job, const char *why)
{
    if (job->is_wedged)
        return;
    count_wedged(work, job);
    sl_log(&work->log, SL_LOG_WARN, has_lease(job) ? "work hangs: its lease is not renewed" : "work hangs",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id), SL_LOG_STR("why", why),
           SL_LOG_DURATION("running", work_now_ns(work) - job->started_ns));
}

/* Its own failure: why_late becomes the reason. Not of work that a drain or a lost lease has ended before. */
static void end_wedged(sl_work *work, sl_job *job, const char *why_late)
{
    if (job->is_aborted)
        return;
    count_wedged(work, job);
    job->why_late = why_late;
    sl_log(&work->log, SL_LOG_WARN, "work hangs and is ended", SL_LOG_STR("worker", work->name),
           SL_LOG_UUID("id", job->message.event_id), SL_LOG_STR("reason", why_late),
           SL_LOG_DURATION("running", work_now_ns(work) - job->started_ns));
    work_abort(work, job);
}

static uint64_t look_after_ns(const sl_work *work, const sl_job *job)
{
    const uint64_t heartbeat_ns = work->settings.heartbeat_ns;

    if (has_lease(job))
        return job->lease_ns / RENEWALS_PER_LEASE;
    return heartbeat_ns == 0 ? LOOK_NS : sl_min_u64(LOOK_NS, heartbeat_ns / RENEWALS_PER_LEASE);
}

/* What waits inside of its handler may begin right before the next look. */
static void note_unbegun(sl_work *work, sl_job *job, uint64_t now_ns)
{
    const sl_handler_class *const class = work->handler->class;

    if (class->is_unbegun != NULL && class->is_unbegun(work->handler, job))
        job->progress_ns = sl_add_sat_u64(now_ns, look_after_ns(work, job));
}

static bool is_silent(const sl_job *job, uint64_t max_ns, uint64_t now_ns)
{
    return max_ns != 0 && now_ns > sl_add_sat_u64(job->progress_ns, max_ns);
}

static bool shows_life(sl_work *work, sl_job *job, uint64_t now_ns)
{
    const sl_handler_class *const class = work->handler->class;

    if (class->is_alive != NULL && !class->is_alive(work->handler, job)) {
        report_wedged(work, job, "the handler is stopped or gone");
        return false;
    }
    note_unbegun(work, job, now_ns);
    if (is_silent(job, work->settings.heartbeat_ns, now_ns)) {
        report_wedged(work, job, "no sign of life for longer than the heartbeat");
        return false;
    }
    job->is_wedged = false;
    return true;
}

/* Nobody turned this loop for so long (a stopped process, a machine that slept) that the lease ran out unseen. Somebody else may work
 * on it by now, so it is neither begun nor asked for again: the source knows whose it is. */
bool work_lease_is_over(const sl_work *work, const sl_job *job)
{
    return job->state == SL_JOB_WAITING && job->lease_until_ns <= work_now_ns(work);
}

void work_lease_give_up(sl_work *work, sl_job *job)
{
    sl_log(&work->log, SL_LOG_WARN, "the lease of a waiting message has ended: it goes back",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id));
    work_release(work, job);
}

/* Held for so long that others shall have it. Waiting work goes back; running work is ended as late. */
static void let_go(sl_work *work, sl_job *job)
{
    if (job->state == SL_JOB_WAITING) {
        sl_log(&work->log, SL_LOG_WARN, "a message waited here for too long and goes back",
               SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id));
        work_release(work, job);
    } else if (job->state == SL_JOB_DELAYED) {
        end_pause(work, job);
    } else if (job->state == SL_JOB_RUNNING) {
        end_wedged(work, job, why_hold_max);
    }
}

static bool wants_renewal(const sl_job *job, uint64_t now_ns)
{
    const uint64_t left_ns = job->lease_until_ns > now_ns ? job->lease_until_ns - now_ns : 0;

    return left_ns <= job->lease_ns - job->lease_ns / RENEWALS_PER_LEASE;
}

/* Nobody tells us, because we did not ask: but by our clock the message is somebody else's about now. Work that comes to life again must
 * not go on with it (B5). Released and not failed: the source counts the lease that ran out, and may have given the message to us again. */
static void lease_is_over(sl_work *work, sl_job *job)
{
    if (job->is_aborted)
        return;
    sl_log(&work->log, SL_LOG_WARN, "the lease of work that hangs is over: it is ended",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id));
    work_abort(work, job);
}

static void renew(sl_work *work, sl_job *job, uint64_t now_ns)
{
    const bool is_running = job->state == SL_JOB_RUNNING;

    if (is_running && job->is_lost)
        return;
    if (is_running && !shows_life(work, job, now_ns)) {
        if (job->lease_until_ns <= now_ns)
            lease_is_over(work, job);
        return;
    }
    work->source->class->extend(work->source, job);
}

/* Without a lease: nothing ends by itself when it is not renewed. */
static void watch(sl_work *work, sl_job *job, uint64_t now_ns)
{
    const uint64_t silent_max_ns = SILENT_HEARTBEATS_MAX * work->settings.heartbeat_ns;

    if (job->is_aborted || shows_life(work, job, now_ns))
        return;
    if (is_silent(job, silent_max_ns, now_ns))
        end_wedged(work, job, why_silent);
}

/* --- when to look --- */

/* At the latest when the lease ends, if nothing renews it: somebody else may begin with the message in the next moment. */
static void look_again(sl_work *work, const sl_job *job, uint64_t now_ns)
{
    const uint64_t held_ns = held_until_ns(work, job);

    work->renewal_ns = sl_min_u64(work->renewal_ns, look_after_ns(work, job));
    if (held_ns > now_ns)
        work->renewal_ns = sl_min_u64(work->renewal_ns, held_ns - now_ns);
    if (job->lease_until_ns > now_ns)
        work->renewal_ns = sl_min_u64(work->renewal_ns, job->lease_until_ns - now_ns);
}

static void look_at_job(sl_work *work, sl_job *job)
{
    const uint64_t now_ns = work_now_ns(work);

    if (!has_lease(job) && job->state != SL_JOB_RUNNING)
        return;
    look_again(work, job, now_ns);
    if (held_until_ns(work, job) <= now_ns)
        let_go(work, job);
    else if (work_lease_is_over(work, job))
        work_lease_give_up(work, job);
    else if (!has_lease(job))
        watch(work, job, now_ns);
    else if (wants_renewal(job, now_ns))
        renew(work, job, now_ns);
}

static void look_at_latest(sl_work *work, uint64_t at_ns)
{
    if (!work->renewal.is_set || at_ns < work->renewal.at_ns)
        sl_timer_set(&work->renewal, at_ns);
}

static void on_renewal(void *ctx)
{
    sl_work *const work = ctx;

    work->renewal_ns = UINT64_MAX;
    work_each(work, SL_JOB_WAITING, look_at_job);
    work_each(work, SL_JOB_DELAYED, look_at_job);
    work_each(work, SL_JOB_RUNNING, look_at_job);
    work->is_dirty = true;
    if (work->renewal_ns != UINT64_MAX)
        look_at_latest(work, sl_add_sat_u64(work_now_ns(work), work->renewal_ns));
}

static uint64_t first_look_ns(const sl_work *work, const sl_job *job)
{
    return sl_min_u64(look_after_ns(work, job), work->settings.hold_max_ns);
}

/* The timer runs only while there is something to look at, and rings in time for the shortest lease. */
void work_lease_offered(sl_work *work, const sl_job *job)
{
    if (has_lease(job))
        look_at_latest(work, sl_add_sat_u64(job->offered_ns, first_look_ns(work, job)));
}

void work_lease_begun(sl_work *work, const sl_job *job)
{
    if (!has_lease(job))
        look_at_latest(work, sl_add_sat_u64(job->started_ns, first_look_ns(work, job)));
}

void work_lease_init(sl_work *work)
{
    sl_timer_init(&work->renewal, work->loop, on_renewal, work);
}

void work_lease_done(sl_work *work)
{
    sl_timer_stop(&work->renewal);
}
