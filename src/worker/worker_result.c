/* worker/worker_result.c — what a handler's result means, and the word about it to the source.
 *
 *      DONE      ack
 *      RETRY     again, after the pause of the policy or what the destination asked for, without a limit of attempts
 *      FAILED    again as the policy says, then park
 *      PARK      park
 *      STOPPED   by a drain or a lost lease: release, which the source counts as interrupted; by a limit of its own: FAILED;
 *                a poll that the drain of its source cancels: release, and the drain is clean all the same
 *      UNBEGUN   it waits again, and a pause before the next one; in a drain, or without its lease: release */
#include "worker/worker_private.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

enum {
    UNBEGUN_MS_FIRST = 100, /* the pause after a job that could not be begun doubles */
    UNBEGUN_DOUBLINGS_MAX = 7
};

/* --- saying what became of it --- */

/* Whoever meets a full file goes on without it; once in the log is enough to know that a kill may now repeat work. */
static void tell_acks_full(sl_work *work)
{
    if (work->acks_full_is_told)
        return;
    work->acks_full_is_told = true;
    sl_log(&work->log, SL_LOG_WARN,
           "the ack file is full: finished work that the source has not confirmed may be done again if this "
           "process is killed",
           SL_LOG_STR("worker", work->name), SL_LOG_U64("places", SL_ACK_FILE_PLACES));
}

static void note_ack(sl_work *work, sl_job *job, const sl_settle *settle)
{
    const sl_ack_entry entry = { .id = job->message.id,
                                 .token = job->message.token,
                                 .revision = job->message.revision,
                                 .is_park = settle->kind == SL_SETTLE_PARK,
                                 .reason = settle->reason };
    uint32_t place;

    if (work->acks == NULL || (settle->kind != SL_SETTLE_ACK && settle->kind != SL_SETTLE_PARK))
        return;
    if (sl_ack_file_put(work->acks, &entry, &place) == SL_OK)
        job->ack_place = place + 1;
    else
        tell_acks_full(work);
}

/* The word is noted in the file before it is said: killed in between, the next process says it. */
void work_settle(sl_work *work, sl_job *job, const sl_settle *settle)
{
    assert(job->state != SL_JOB_SETTLING);
    if (job->state == SL_JOB_WAITING)
        sl_destinations_remove(work->destinations, job);
    job->verdict = (uint8_t)settle->kind;
    work_move(work, job, SL_JOB_SETTLING);
    note_ack(work, job, settle);
    work->source->class->settle(work->source, job, settle);
}

void work_release(sl_work *work, sl_job *job)
{
    const sl_settle release = { .kind = SL_SETTLE_RELEASE };

    work_settle(work, job, &release);
}

static void count_settled(sl_work *work, const sl_job *job, sl_settled_how how)
{
    sl_work_counts *const counts = &work->counts;
    uint64_t *const by_verdict[SL_SETTLE_KIND_COUNT_] = {
        [SL_SETTLE_ACK] = &counts->acked,
        [SL_SETTLE_RETRY] = &counts->retried,
        [SL_SETTLE_PARK] = &counts->parked,
        [SL_SETTLE_RELEASE] = job->started_ns != 0 ? &counts->interrupted : &counts->released,
    };

    if (how == SL_SETTLED_LOST) {
        counts->lost++;
        return;
    }
    if (how == SL_SETTLED_UNSURE)
        counts->unsure++;
    (*by_verdict[job->verdict])++;
    if (job->is_recalled)
        counts->acks_replayed++;
    if (work->drain.phase >= SL_DRAIN_FLUSHING && job->verdict == SL_SETTLE_ACK)
        counts->acks_confirmed_late++;
}

/* What an earlier process had finished may still come again after the next start, where the source never says what became of it. */
static void end_entry(sl_work *work, const sl_job *job, sl_settled_how how)
{
    if (job->is_recalled && how == SL_SETTLED_UNSURE && !work->source->confirms)
        sl_ack_file_keep(work->acks, job->ack_place - 1, sl_ack_file_clock_s());
    else
        sl_ack_file_drop(work->acks, job->ack_place - 1);
}

void work_on_settled(void *ctx, sl_job *job, sl_settled_how how)
{
    sl_work *const work = ctx;

    assert(job->state == SL_JOB_SETTLING);
    count_settled(work, job, how);
    if (job->ack_place != 0)
        end_entry(work, job, how);
    work_leave_state(work, job);
    if (job->is_disowned) { /* the handler still has it: freed when it lets go */
        sl_list_init(&job->line);
        job->is_settled = true;
        work->is_dirty = true;
        return;
    }
    work_forget(work, job);
}

/* --- results --- */

static uint64_t next_random(sl_work *work)
{
    work->random ^= work->random << 13;
    work->random ^= work->random >> 7;
    work->random ^= work->random << 17;
    return work->random;
}

/* The source counts attempts, so a policy needs no memory of its own, and holds over restarts. */
static sl_retry_verdict ask_policy(sl_work *work, const sl_job *job, const sl_result *result)
{
    const sl_retry_past past = { .attempts = job->message.attempt, .retry_after_ns = result->retry_after_ns };
    sl_retry_policy policy = work->settings.retry;

    if (result->kind == SL_RESULT_RETRY)
        policy.attempts_max = 0;
    return sl_retry_next(&policy, &past, next_random(work));
}

static void keep_for_later(sl_work *work, sl_job *job, const sl_settle *settle)
{
    const size_t bytes = sl_min_u64(settle->reason.bytes, sizeof job->reason);

    if (bytes > 0)
        memcpy(job->reason, settle->reason.data, bytes);
    job->reason_bytes = (uint16_t)bytes;
    job->due_ns = sl_add_sat_u64(work_now_ns(work), settle->delay_ns);
    work_move(work, job, SL_JOB_DELAYED);
    work_due_at(work, job->due_ns);
}

static void retry(sl_work *work, sl_job *job, uint64_t delay_ns, sl_str reason)
{
    const sl_settle settle = { .kind = SL_SETTLE_RETRY, .delay_ns = delay_ns, .reason = reason };

    if (delay_ns > 0 && !work->source->keeps_delays && work->drain.phase == SL_DRAIN_RUNNING)
        keep_for_later(work, job, &settle);
    else
        work_settle(work, job, &settle);
}

static void park(sl_work *work, sl_job *job, const char *why, sl_str reason)
{
    char sentence[SL_RESULT_REASON_BYTES_MAX + 128];
    sl_settle settle = { .kind = SL_SETTLE_PARK };
    sl_text text;

    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, why);
    sl_text_add_str(&text, reason);
    settle.reason = sl_text_str(&text);
    sl_log(&work->log, SL_LOG_WARN,
           work->source->class->has_no_dead_letters ? "scheduled work was given up: nobody keeps it"
                                                    : "message goes to the dead letters",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id),
           SL_LOG_STR("stream", job->message.stream), SL_LOG_U64("attempt", job->message.attempt),
           SL_LOG_STR("reason", settle.reason));
    work_settle(work, job, &settle);
}

/* A handler that says "not now" has not failed, and whoever counts failures in the log should not find it there. */
static void try_again(sl_work *work, sl_job *job, const sl_result *result, uint64_t delay_ns)
{
    const bool is_retry = result->kind == SL_RESULT_RETRY;

    sl_log(&work->log, SL_LOG_INFO,
           is_retry ? "message is tried again" : "message failed, and is tried again",
           SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id),
           SL_LOG_U64("attempt", job->message.attempt), SL_LOG_STR("answer", is_retry ? "retry" : "failed"),
           SL_LOG_DURATION("after", delay_ns), SL_LOG_STR("reason", result->reason));
    retry(work, job, delay_ns, result->reason);
}

static void judge_failure(sl_work *work, sl_job *job, const sl_result *result)
{
    const sl_retry_verdict verdict = ask_policy(work, job, result);

    if (verdict.again)
        try_again(work, job, result, verdict.delay_ns);
    else if (
        result->kind ==
        SL_RESULT_RETRY) /* a policy of "never": what the destination asks for, else the source's own pause */
        try_again(work, job, result,
                  sl_min_u64(result->retry_after_ns, work->settings.retry.retry_after_max_ns));
    else
        park(work, job,
             verdict.reason == SL_RETRY_NEVER ? "" : "given up after the last attempt: ", result->reason);
}

static const char *how_stopped(const sl_work *work, bool is_lost)
{
    if (work->source->class->cancels_work)
        return "the poll was cancelled";
    return is_lost ? "work was ended, and its lease is over"
                   : "work was interrupted, and its message is released";
}

/* Ended by us: because its time was over, which is its own failure; or by a drain or a lost lease, which is not. */
static void judge_stopped(sl_work *work, sl_job *job)
{
    const bool is_cancelled = work->source->class->cancels_work;
    const bool is_lost = job->is_lost || job->lease_until_ns <= work_now_ns(work);

    if (job->why_late != NULL && !job->is_lost) {
        judge_failure(work, job,
                      &(sl_result){ .kind = SL_RESULT_FAILED, .reason = sl_str_from(job->why_late) });
        return;
    }
    sl_log(&work->log, SL_LOG_INFO, how_stopped(work, is_lost), SL_LOG_STR("worker", work->name),
           SL_LOG_UUID("id", job->message.event_id), SL_LOG_U64("attempt", job->message.attempt),
           SL_LOG_BOOL("lease_lost", is_lost));
    /* Where work is cancelled by design (S3.5) that is no reason to end with anything but 0 (S3.28). */
    sl_drain_count(&work->drain, is_cancelled ? SL_DRAIN_HANDED_BACK : SL_DRAIN_INTERRUPTED, 1);
    work_release(work, job);
}

/* No process could be started, no memory: the next one would fare no better at once. Several that fail together are one incident. */
static void pause_begins(sl_work *work, const sl_result *result)
{
    const uint64_t now_ns = work_now_ns(work);
    const uint32_t doublings =
        work->unbegun_in_a_row < UNBEGUN_DOUBLINGS_MAX ? work->unbegun_in_a_row : UNBEGUN_DOUBLINGS_MAX;

    if (work->begin_not_before_ns > now_ns)
        return;
    work->begin_not_before_ns = now_ns + (UNBEGUN_MS_FIRST * MS_NS << doublings);
    work->unbegun_in_a_row++;
    sl_log(&work->log, SL_LOG_ERROR, "work could not be begun, and is tried again after a pause",
           SL_LOG_STR("worker", work->name), SL_LOG_STR("reason", result->reason));
}

/* The handler has seen nothing of it: it waits as before, at the head of its line. Released it would count as interrupted, because the
 * source was told that it begins, and a worker without descriptors would fill the dead letters with work that nobody ever began. */
static void wait_again(sl_work *work, sl_job *job, sl_str reason)
{
    if (job->why_late != NULL)
        sl_log(&work->log, SL_LOG_WARN, "its handler had not begun in that time: it waits again",
               SL_LOG_STR("worker", work->name), SL_LOG_UUID("id", job->message.event_id),
               SL_LOG_STR("reason", reason));
    sl_destinations_put_back(work->destinations, job);
    job->started_ns = 0;
    job->why_late = NULL;
    job->is_aborted = job->is_killed = job->is_wedged = false;
    work_move(work, job, SL_JOB_WAITING);
}

static bool may_wait_again(const sl_work *work, const sl_job *job)
{
    return work->drain.phase == SL_DRAIN_RUNNING && !job->is_lost && !job->is_disowned;
}

static void judge(sl_work *work, sl_job *job, const sl_result *result)
{
    static const sl_settle ack = { .kind = SL_SETTLE_ACK };

    if (result->kind != SL_RESULT_STOPPED && result->kind != SL_RESULT_UNBEGUN) {
        sl_drain_count(&work->drain, SL_DRAIN_FINISHED, 1);
        work->unbegun_in_a_row = 0;
        if (job->is_lost) { /* somebody else has the message: no dead letter, no pause, nothing for the ack file */
            work_release(work, job);
            return;
        }
    }
    switch (result->kind) {
    case SL_RESULT_DONE: work_settle(work, job, &ack); break;
    case SL_RESULT_RETRY:
    case SL_RESULT_FAILED: judge_failure(work, job, result); break;
    case SL_RESULT_PARK: park(work, job, "", result->reason); break;
    case SL_RESULT_STOPPED: judge_stopped(work, job); break;
    case SL_RESULT_UNBEGUN: work_hand_back(work, job); break;
    case SL_RESULT_KIND_COUNT_: assert(false);
    }
}

static sl_destination_result about_destination(const sl_job *job, const sl_result *result)
{
    if (result->is_fault)
        return result->is_told ? SL_DESTINATION_UNKNOWN : SL_DESTINATION_FAILED;
    if (result->kind == SL_RESULT_UNBEGUN || (result->kind == SL_RESULT_STOPPED && job->why_late == NULL))
        return SL_DESTINATION_UNKNOWN;
    return result->kind == SL_RESULT_STOPPED ? SL_DESTINATION_FAILED : SL_DESTINATION_WORKED;
}

/* Only what has changed is told, and only when something may have. */
static void tell_breakers(sl_work *work, sl_destination_result about, sl_str reason)
{
    size_t open_count;

    if (!work->settings.destination.has_breaker || (about != SL_DESTINATION_FAILED && work->open_told == 0))
        return;
    open_count = sl_destinations_open_count(work->destinations, work_now_ns(work));
    if (open_count > work->open_told)
        sl_log(&work->log, SL_LOG_WARN, "a destination fails: its messages wait until it works again",
               SL_LOG_STR("worker", work->name), SL_LOG_U64("destinations_open", open_count),
               SL_LOG_STR("reason", reason));
    else if (open_count < work->open_told)
        sl_log(&work->log, SL_LOG_INFO, "a destination works again", SL_LOG_STR("worker", work->name),
               SL_LOG_U64("destinations_open", open_count));
    work->open_told = open_count;
}

static void end_at_destination(sl_work *work, sl_job *job, const sl_result *result)
{
    const sl_destination_result about = about_destination(job, result);
    const bool is_late = result->kind == SL_RESULT_STOPPED && job->why_late != NULL;

    sl_destinations_ended(work->destinations, job, about, result->retry_after_ns, work_now_ns(work));
    tell_breakers(work, about, is_late ? sl_str_from(job->why_late) : result->reason);
}

void work_on_finished(void *ctx, sl_job *job, const sl_result *result)
{
    sl_work *const work = ctx;

    if (result->kind == SL_RESULT_UNBEGUN && !job->is_aborted)
        pause_begins(work, result);
    if (result->kind == SL_RESULT_UNBEGUN && may_wait_again(work, job)) {
        wait_again(work, job, result->reason);
        return;
    }
    work->counts.finished++;
    end_at_destination(work, job, result);
    if (!job->is_disowned) {
        judge(work, job, result);
        return;
    }
    job->is_disowned = false;
    work->disowned_count--;
    work->is_dirty = true;
    if (job->is_settled)
        work_forget(work, job);
}

void work_on_progress(void *ctx, sl_job *job)
{
    sl_work *const work = ctx;

    job->progress_ns = work_now_ns(work);
    if (job->is_wedged)
        sl_log(&work->log, SL_LOG_INFO, "work goes on again", SL_LOG_STR("worker", work->name),
               SL_LOG_UUID("id", job->message.event_id));
    job->is_wedged = false;
}
