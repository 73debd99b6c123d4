/* worker/worker_private.h — the fields of a worker, for worker*.c and their tests.
 *
 * Callbacks of source and handler only move jobs and note that something has changed; what follows from that is done at the end of
 * the turn, in one place. So whoever calls from inside of whatever finds the worker in a state that makes sense. */
#ifndef SL_WORKER_PRIVATE_H
#define SL_WORKER_PRIVATE_H

#include "worker/worker.h"

enum {
    SL_WORK_PROBLEM_BYTES = 512,
    SL_WORK_ROUNDS_MAX = 16 /* of one turn; what is left then is done in the next */
};

struct sl_work {
    sl_loop *loop;
    sl_work_settings settings;
    char name[SL_WORKER_NAME_BYTES_MAX + 1];
    sl_logger log;
    const sl_work_watcher *watcher;
    void *ctx;
    sl_source *source;
    sl_handler *handler;
    sl_ack_file *acks; /* NULL: none */
    bool acks_full_is_told;
    sl_destinations *destinations;

    sl_job_shelf shelf;
    sl_list all;                        /* jobs, in the order in which they came */
    sl_list lines[SL_JOB_STATE_COUNT_]; /* the same by state */
    uint32_t state_counts[SL_JOB_STATE_COUNT_];
    uint32_t disowned_count; /* settled jobs that a handler has not given back */
    sl_work_counts counts;
    uint64_t random;  /* for the jitter of pauses */
    size_t open_told; /* breakers that the log knows to be open */

    sl_drain drain;
    bool is_started, was_up, is_up;
    bool is_fenced;
    bool gives_back; /* what has not begun goes back, also what still arrives */
    bool source_is_closed, handler_is_closed;
    bool has_failed;
    bool over_is_told;
    bool is_dirty;  /* something has changed since the turn's work began */
    bool is_inside; /* of the turn's work */
    sl_work_end end;
    char problem[SL_WORK_PROBLEM_BYTES];

    uint64_t begin_not_before_ns; /* after a job that could not be begun */
    uint32_t unbegun_in_a_row;
    const sl_job *beginning; /* taken, and its source is being asked whether it may begin */
    sl_timer timer;          /* limits of running jobs, pauses, rates, the drain */
    uint64_t timer_ns;
    uint64_t next_limit_ns; /* before this no running or delayed job is due */
    sl_timer renewal;       /* of leases, and looks at work without one */
    uint64_t renewal_ns;    /* until the next, while one goes on */
    sl_timer beat;          /* comes late when nobody turned the loop */
    uint64_t beat_ns;       /* when it is due */
    uint64_t late_since_ns; /* before late_until_ns: so long what is read now may have lain in the socket */
    uint64_t late_until_ns;
};

uint64_t work_now_ns(const sl_work *work);

/* Wakes up at this time at the latest. */
void work_wake_at(sl_work *work, uint64_t at_ns);
/* The same, because a job is due then. */
void work_due_at(sl_work *work, uint64_t at_ns);

/* Calls fn for each job that is in the state now, in order. What fn does may end any job. */
typedef void work_job_fn(sl_work *work, sl_job *job);
void work_each(sl_work *work, sl_job_state state, work_job_fn *fn);

void work_move(sl_work *work, sl_job *job, sl_job_state state);
void work_leave_state(sl_work *work, sl_job *job);
void work_forget(sl_work *work, sl_job *job); /* and frees it */

/* worker_result.c: says something final of a job, in whatever state it is. */
void work_settle(sl_work *work, sl_job *job, const sl_settle *settle);
void work_release(sl_work *work, sl_job *job);
void work_on_settled(void *ctx, sl_job *job, sl_settled_how how);
void work_on_finished(void *ctx, sl_job *job, const sl_result *result);
void work_on_progress(void *ctx, sl_job *job);

/* worker_lease.c */
void work_lease_init(sl_work *work);
void work_lease_done(sl_work *work);
void work_lease_offered(sl_work *work, const sl_job *job);
void work_lease_begun(sl_work *work, const sl_job *job);
/* Of what waits: it must not be begun any more, and goes back. */
bool work_lease_is_over(const sl_work *work, const sl_job *job);
void work_lease_give_up(sl_work *work, sl_job *job);
/* Ends what has taken too long, says what has waited long enough; returns when to look again. */
uint64_t work_limits_look(sl_work *work);
void work_abort(sl_work *work, sl_job *job);
void work_kill(sl_work *work, sl_job *job);

/* worker_late.c */
void work_late_init(sl_work *work);
void work_late_done(sl_work *work);
void work_late_up(sl_work *work);
void work_late_offered(sl_work *work, sl_job *job); /* its lease may have begun earlier than it looks */

/* worker_drain.c: one step, if there is one; returns when to look again. */
uint64_t work_drain_step(sl_work *work);
void work_drain_begin(sl_work *work, sl_drain_call call);
/* Of what has not begun: it goes back, uncharged, and counts as that. */
void work_hand_back(sl_work *work, sl_job *job);
void work_tell_limits(const sl_work *work); /* to the log, at the start */
void work_tell_left(const sl_work *work);   /* to the log, at the end */

#endif
