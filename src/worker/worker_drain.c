/* worker/worker_drain.c — core/drain carried out: what the machine asks for is done to the source, the handler and the jobs.
 *
 *      1  remember the first reason; not ready any more            work_drain_begin
 *      2  close the gate at the source, await its fence            CLOSE_GATE
 *      3  hand back what never began (or let it be begun)          HAND_BACK
 *      4  running work finishes                                    (nothing to do but wait)
 *      5  abort, then kill what runs; release what is left         ABORT, KILL, RELEASE_REST
 *      6  acks are confirmed                                       FLUSH
 *      7  close the handler, then the source                       CLOSE
 *      8  report                                                   STOPPED
 *
 * The same way for a signal, an operator, a source that fails or is at its end, and a start that does not succeed. A Sluice server that
 * restarts asks for no drain: its source waits and connects again (decision 0020). */
#include "worker/worker_private.h"

#include "base/cleanup.h"

#include <assert.h>

enum {
    LEFT_TOLD_MAX = 50 /* lines of the log about messages that are left */
};

/* Whoever leaves all at the defaults should not learn it from a deploy. */
void work_tell_limits(const sl_work *work)
{
    const uint64_t timeout_ns = work->settings.timeout_ns;
    const uint64_t settle_ns = work->settings.budget.part_ns[SL_BUDGET_SETTLE];

    if (work->source->class->cancels_work || (timeout_ns > 0 && timeout_ns <= settle_ns))
        return;
    sl_log(&work->log, SL_LOG_INFO,
           "work may take longer than it has in a drain; a shorter timeout or a longer grace helps",
           SL_LOG_STR("worker", work->name), SL_LOG_DURATION("timeout", timeout_ns),
           SL_LOG_DURATION("settle", settle_ns));
}

void work_hand_back(sl_work *work, sl_job *job)
{
    sl_drain_count(&work->drain, SL_DRAIN_HANDED_BACK, 1);
    work_release(work, job);
}

/* It was killed and did not come back: its lease is given up, and the job stays here until the handler lets go of it. */
static void disown(sl_work *work, sl_job *job)
{
    sl_log(&work->log, SL_LOG_WARN, "a handler cannot be ended: its message is released",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id));
    job->is_disowned = true;
    work->disowned_count++;
    sl_drain_count(&work->drain, SL_DRAIN_INTERRUPTED, 1);
    work_release(work, job);
}

/* --- the actions --- */

static void tell_until(sl_work *work, sl_job *job)
{
    job->until_ns = sl_min_u64(job->until_ns, sl_drain_work_until_ns(&work->drain));
}

static void close_gate(sl_work *work)
{
    const uint64_t until_ns = sl_drain_work_until_ns(&work->drain);

    sl_destinations_drain(work->destinations, until_ns);
    work_each(work, SL_JOB_RUNNING, tell_until);
    if (work->handler->class->draining != NULL)
        work->handler->class->draining(work->handler, until_ns);
    if (work->has_failed)
        work->is_fenced = true;
    else
        work->source->class->close_gate(work->source, !work->settings.finish_unstarted);
    if (work->source->class->cancels_work)
        work_each(work, SL_JOB_RUNNING, work_abort);
}

static void give_back(sl_work *work)
{
    work->gives_back = true;
    work_each(work, SL_JOB_WAITING, work_hand_back);
}

static void release_rest(sl_work *work)
{
    give_back(work); /* again: a second signal skips the first time */
    work_each(work, SL_JOB_RUNNING, disown);
}

/* Producers before connections: the handler may need the source's connection no more, the source is the last to go (S2.12). */
static void close_parts(sl_work *work)
{
    if (work->disowned_count == 0) {
        work->handler->class->close(work->handler);
    } else { /* it still has work that it cannot end: sl_work_free() will */
        sl_drain_step_failed(&work->drain, (sl_drain_failure){ .phase = SL_DRAIN_CLOSING, .hopeless = 0 });
        work->handler_is_closed = true;
    }
    work->source->class->close(work->source);
}

/* A source that has failed answers at once or never: what it has not answered is for the next process, and nobody waits for it. */
static void flush(sl_work *work)
{
    const uint32_t unanswered = work->state_counts[SL_JOB_SETTLING];

    if (work->source->class->turn_end != NULL)
        work->source->class->turn_end(work->source);
    if (work->has_failed && unanswered > 0)
        sl_drain_step_failed(&work->drain,
                             (sl_drain_failure){ .phase = SL_DRAIN_FLUSHING, .hopeless = unanswered });
}

static void carry_out(sl_work *work, unsigned actions)
{
    if (actions & SL_DRAIN_CLOSE_GATE)
        close_gate(work);
    if (actions & SL_DRAIN_HAND_BACK)
        give_back(work);
    if (actions & SL_DRAIN_ABORT)
        work_each(work, SL_JOB_RUNNING, work_abort);
    if (actions & SL_DRAIN_KILL)
        work_each(work, SL_JOB_RUNNING, work_kill);
    if (actions & SL_DRAIN_RELEASE_REST)
        release_rest(work);
    if (actions & SL_DRAIN_FLUSH)
        flush(work);
    if (actions & SL_DRAIN_CLOSE)
        close_parts(work);
}

/* --- the steps --- */

static void set_held(sl_work *work)
{
    const sl_drain_held held = {
        .gates = work->is_fenced ? 0 : 1,
        .started = work->state_counts[SL_JOB_RUNNING],
        .unstarted = work->state_counts[SL_JOB_WAITING],
        .unconfirmed = (uint64_t)work->state_counts[SL_JOB_SETTLING] + work->state_counts[SL_JOB_DELAYED],
        .open = (work->source_is_closed ? 0 : 1) + (work->handler_is_closed ? 0 : 1),
    };

    sl_drain_set_held(&work->drain, &held);
}

static void log_phase(const sl_work *work, sl_drain_phase phase)
{
    const sl_drain_report report = sl_drain_report_of(&work->drain);

    if (report.phases[phase].end == SL_DRAIN_END_NONE)
        return; /* passed over */
    if (report.phases[phase].end == SL_DRAIN_END_TIMED_OUT)
        sl_log(&work->log, SL_LOG_WARN, "a part of the shutdown took all of its time",
               SL_LOG_STR("worker", work->name), SL_LOG_STR("part", sl_drain_phase_name(phase)),
               SL_LOG_DURATION("used", report.phases[phase].used_ns));
    else
        sl_log(&work->log, SL_LOG_DEBUG, "a part of the shutdown is over", SL_LOG_STR("worker", work->name),
               SL_LOG_STR("part", sl_drain_phase_name(phase)),
               SL_LOG_STR("how", sl_drain_end_name(report.phases[phase].end)));
}

/* A turn that comes late may end several at once. */
static void log_phases(const sl_work *work, sl_drain_phase before)
{
    for (sl_drain_phase phase = before; phase < work->drain.phase; phase++)
        log_phase(work, phase);
}

static void tell_left_job(const sl_work *work, const sl_job *job)
{
    static const char *const states[SL_JOB_STATE_COUNT_] = { [SL_JOB_WAITING] = "waiting",
                                                             [SL_JOB_RUNNING] = "running",
                                                             [SL_JOB_DELAYED] = "waiting for its retry",
                                                             [SL_JOB_SETTLING] = "not confirmed" };
    static const char *const words[SL_SETTLE_KIND_COUNT_] = { "ack", "retry", "park", "release" };

    sl_log(&work->log, SL_LOG_WARN, "a message is left behind", SL_LOG_STR("worker", work->name),
           SL_LOG_UUID("id", job->message.event_id), SL_LOG_U64("revision", job->message.revision),
           SL_LOG_STR("state", states[job->state]),
           SL_LOG_STR("said", job->state == SL_JOB_SETTLING ? words[job->verdict] : "nothing"));
}

/* What is left at the end is not only counted but named (S3.36): whoever looks for a message finds where it was last. Its lease ends,
 * and somebody else gets it; what was finished is in the ack file, if there is one. */
void work_tell_left(const sl_work *work)
{
    uint32_t left = 0;

    for (unsigned state = SL_JOB_STATE_COUNT_; state-- > 0;) /* those with which most has happened first */
        SL_LIST_EACH (node, &work->lines[state])
            if (left++ < LEFT_TOLD_MAX)
                tell_left_job(work, SL_CONTAINER_OF(node, const sl_job, line));
    if (left > LEFT_TOLD_MAX)
        sl_log(&work->log, SL_LOG_WARN, "more messages are left behind", SL_LOG_STR("worker", work->name),
               SL_LOG_U64("more", left - LEFT_TOLD_MAX));
}

uint64_t work_drain_step(sl_work *work)
{
    const uint64_t now_ns = work_now_ns(work);
    sl_drain_phase before = work->drain.phase;
    uint64_t wake_ns;
    unsigned actions;

    if (before == SL_DRAIN_RUNNING)
        return UINT64_MAX;
    set_held(work);
    wake_ns = sl_drain_tick(&work->drain, now_ns);
    while ((actions = sl_drain_take_actions(&work->drain)) != 0) {
        log_phases(work, before);
        before = work->drain.phase;
        carry_out(work, actions);
        set_held(work);
        wake_ns = sl_drain_tick(&work->drain, now_ns);
    }
    log_phases(work, before);
    return wake_ns;
}

void work_drain_begin(sl_work *work, sl_drain_call call)
{
    bool begins;

    set_held(work);
    begins = sl_drain_begin(&work->drain, call, work_now_ns(work));
    work->is_dirty = true;
    work_wake_at(work, work_now_ns(work)); /* also when it is called outside of a turn */
    if (!begins)
        return;
    sl_log(&work->log, SL_LOG_INFO, "draining", SL_LOG_STR("worker", work->name),
           SL_LOG_STR("reason", sl_drain_reason_name(call.reason)),
           SL_LOG_U64("running", work->state_counts[SL_JOB_RUNNING]),
           SL_LOG_U64("waiting", work->state_counts[SL_JOB_WAITING]),
           SL_LOG_DURATION("grace", work->drain.budget.grace_ns));
    if (work->watcher->draining != NULL)
        work->watcher->draining(work->ctx, work);
}
