/* core/drain.h — the way from "running" to "stopped": the machine that server and worker share.
 *
 *      RUNNING --begin--> FENCING ------> SETTLING -----------------> FLUSHING --> CLOSING --> STOPPED
 *                            |                |  time is up               ^
 *                            |                v                           |
 *                            +--second--> ABORTING -----------------------+
 *                               signal
 *
 *      phase      waits until        bound    actions at its begin
 *      FENCING    gates == 0         fence    CLOSE_GATE: ask every source for its fence
 *      SETTLING   nothing is held    settle   HAND_BACK: what has not started goes back
 *      ABORTING   started == 0       abort    ABORT: SIGTERM to handlers; after half of the time KILL
 *      FLUSHING   unconfirmed == 0   flush    RELEASE_REST: whatever is held; FLUSH: await confirmations
 *      CLOSING    open == 0          close    CLOSE: channels, producers, connections, threads
 *
 * HAND_BACK and RELEASE_REST are also meant for what arrives later: a source that did not confirm its fence
 * may still send.
 *
 * Nothing here waits, and nothing here acts. The caller says what it holds (sl_drain_set_held) and what time
 * it is (sl_drain_tick), carries out the actions that are due, in the order of their bits, and says again
 * what it holds:
 *
 *      wake_ns = sl_drain_tick(drain, now_ns);
 *      while ((actions = sl_drain_take_actions(drain)) != 0) {
 *          carry_out(actions);                         // counts change: sl_drain_set_held()
 *          wake_ns = sl_drain_tick(drain, now_ns);     // so the next phase may begin at once
 *      }
 *
 * What is not there is not waited for: with every count at zero one tick goes from FENCING to STOPPED. So a
 * failure during start-up takes the same way, whatever had been created by then (S3.25).
 *
 * Time. Each phase is bounded by its part of the budget. Time that fencing did not use goes to settling; time
 * that any phase took too long (a late tick) is taken from those after it, so that the end is never later
 * than the grace minus the reserve. A step that fails is counted and shown, and stops none of those after it
 * (S2.16, S3.22).
 *
 * Pure, one thread at a time. now_ns must not run backwards. */
#ifndef SL_CORE_DRAIN_H
#define SL_CORE_DRAIN_H

#include "core/budget.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sl_drain_phase {
    SL_DRAIN_RUNNING,
    SL_DRAIN_FENCING,
    SL_DRAIN_SETTLING,
    SL_DRAIN_ABORTING,
    SL_DRAIN_FLUSHING,
    SL_DRAIN_CLOSING,
    SL_DRAIN_STOPPED,
    SL_DRAIN_PHASE_COUNT_
} sl_drain_phase;

#define SL_DRAIN_REASON_MAP(XX) /* name, text */                                                             \
    XX(NONE, "none")                                                                                         \
    XX(SIGTERM, "SIGTERM")                                                                                   \
    XX(SIGINT, "SIGINT")                                                                                     \
    XX(OPERATOR, "operator")         /* by command, admin API or dashboard */                                \
    XX(SERVER, "server")             /* the server asked its consumers to leave */                           \
    XX(FINISHED, "finished")         /* there is nothing more to do: a bounded source is at its end */       \
    XX(START_FAILED, "start failed") /* a part did not come up */                                            \
    XX(FAILED, "failed")             /* a part that was up has failed for good */

typedef enum sl_drain_reason {
#define XX(name, text) SL_DRAIN_REASON_##name,
    SL_DRAIN_REASON_MAP(XX)
#undef XX
    SL_DRAIN_REASON_COUNT_
} sl_drain_reason;

/* Bits, in the order in which they are to be carried out. Each comes at most once in a drain. */
typedef enum sl_drain_action {
    SL_DRAIN_CLOSE_GATE = 1 << 0,
    SL_DRAIN_HAND_BACK = 1 << 1,
    SL_DRAIN_ABORT = 1 << 2,
    SL_DRAIN_KILL = 1 << 3,
    SL_DRAIN_RELEASE_REST = 1 << 4,
    SL_DRAIN_FLUSH = 1 << 5,
    SL_DRAIN_CLOSE = 1 << 6,
} sl_drain_action;

/* What the caller has at this moment. All zero until it says otherwise. */
typedef struct sl_drain_held {
    uint64_t gates;       /* sources that may still send: open, or closed without their confirmation */
    uint64_t started;     /* messages whose handler runs */
    uint64_t unstarted;   /* messages that are here but have not started */
    uint64_t unconfirmed; /* acknowledgements and releases that were made but are not confirmed */
    uint64_t open;        /* things that must be closed: channels, connections, threads */
} sl_drain_held;

/* What has become of a message in the drain. What is still held at the end is counted without being told. */
typedef enum sl_drain_outcome {
    SL_DRAIN_FINISHED,    /* its handler came to an end of its own */
    SL_DRAIN_HANDED_BACK, /* it never started */
    SL_DRAIN_INTERRUPTED, /* it started, was aborted and released */
    SL_DRAIN_OUTCOME_COUNT_
} sl_drain_outcome;

typedef enum sl_drain_end {
    SL_DRAIN_END_NONE,      /* the phase was not entered, or goes on */
    SL_DRAIN_END_DONE,      /* what it waited for came true */
    SL_DRAIN_END_FAILED,    /* a step of it failed; what could be waited for came true */
    SL_DRAIN_END_TIMED_OUT, /* its time was up */
    SL_DRAIN_END_CUT_SHORT, /* a second signal */
    SL_DRAIN_END_COUNT_
} sl_drain_end;

/* Fields are for reading in tests only; everything else goes through the functions. */
typedef struct sl_drain {
    sl_budget budget;
    bool finish_unstarted;
    bool escalated;
    sl_drain_phase phase;
    sl_drain_reason reason;
    uint64_t began_ns;   /* of the drain */
    uint64_t entered_ns; /* of the phase */
    uint64_t now_ns;     /* the latest time that was passed in */
    sl_drain_held held;
    unsigned actions_due, actions_taken;
    uint64_t outcomes[SL_DRAIN_OUTCOME_COUNT_];
    uint64_t hopeless[SL_DRAIN_PHASE_COUNT_]; /* what failed steps leave behind: held, but not waited for */
    uint32_t failed_steps[SL_DRAIN_PHASE_COUNT_];
    uint64_t used_ns[SL_DRAIN_PHASE_COUNT_];
    sl_drain_end ends[SL_DRAIN_PHASE_COUNT_];
} sl_drain;

/* B12, S4.17, S3.36: what the last log line, the report and the exit code are made of. */
typedef struct sl_drain_report {
    sl_drain_reason reason; /* the first one (S3.2) */
    bool escalated;         /* a second signal cut it short */
    bool clean; /* every phase came to its end, nothing was interrupted, abandoned or left unconfirmed */
    uint64_t grace_ns;
    uint64_t used_ns; /* from begin to STOPPED, or to the latest tick */
    struct {
        uint64_t used_ns;
        sl_drain_end end;
        uint32_t failed_steps;
    } phases[SL_DRAIN_PHASE_COUNT_];
    uint64_t finished, handed_back, interrupted;
    uint64_t abandoned;        /* still held: their leases run out */
    uint64_t acks_unconfirmed; /* to be replayed by the next process */
    uint64_t failed_steps;
} sl_drain_report;

/* budget: a checked one, copied. finish_unstarted: work that is here but has not started is finished as well
 * instead of being handed back; the gate at the source closes all the same. Also for a new start (S4.20). */
void sl_drain_init(sl_drain *drain, const sl_budget *budget, bool finish_unstarted);

typedef struct sl_drain_call {
    sl_drain_reason reason;
    bool escalates; /* if a drain is on already: stop waiting for handlers, abort them. For signals */
} sl_drain_call;

/* A drain that has not begun gets less time than usual: all parts are derived from this grace, and none becomes longer than it was. A
 * longer grace changes nothing, and SL_BUDGET_GRACE_LEAST_MS is the shortest. */
void sl_drain_shorten(sl_drain *drain, uint64_t grace_ns);

/* Begins the drain. True when this call began it; a later one never changes the reason. */
bool sl_drain_begin(sl_drain *drain, sl_drain_call call, uint64_t now_ns);

/* What the caller holds now. Allowed in every phase; ignored when STOPPED, because the report is final. */
void sl_drain_set_held(sl_drain *drain, const sl_drain_held *held);

/* For the report: count messages ended like this. Ignored outside of a drain. */
void sl_drain_count(sl_drain *drain, sl_drain_outcome outcome, uint64_t count);

typedef struct sl_drain_failure {
    sl_drain_phase phase; /* FENCING to CLOSING; it may be over or not yet begun */
    uint64_t hopeless;    /* how many of what the phase waits for will never come; UINT64_MAX: all */
} sl_drain_failure;

/* A step failed: a gate did not confirm, a hand-back was refused, a connection broke before the last
 * confirmation. The counts of sl_drain_set_held() stay true; the phase just waits no longer for the hopeless
 * ones. SETTLING waits for started work in any case: a hand-back that failed is no reason to abort a handler.
 * Allowed before the drain begins; ignored when STOPPED. */
void sl_drain_step_failed(sl_drain *drain, sl_drain_failure failure);

/* Moves on as far as counts and time allow. Returns when to call again at the latest; UINT64_MAX is never. */
uint64_t sl_drain_tick(sl_drain *drain, uint64_t now_ns);

/* The actions that have become due since the last call, as bits of sl_drain_action. */
unsigned sl_drain_take_actions(sl_drain *drain);

/* When started work will be aborted, for handlers that want to know and for sl_breaker_drain() (S2.20,
 * S3.37). UINT64_MAX while RUNNING; not in the future any more once it is being aborted. */
uint64_t sl_drain_work_until_ns(const sl_drain *drain);

/* Up to when whoever was STOPPED may clear away what is left, such as a process that cannot be killed. The last quarter of the reserve
 * is for the report. UINT64_MAX while RUNNING. */
uint64_t sl_drain_leave_until_ns(const sl_drain *drain);

/* Final when STOPPED, progress before. */
sl_drain_report sl_drain_report_of(const sl_drain *drain);

/* "settling", "SIGTERM", "timed out". */
const char *sl_drain_phase_name(sl_drain_phase phase);
const char *sl_drain_reason_name(sl_drain_reason reason);
const char *sl_drain_end_name(sl_drain_end end);

/* Asserts what must always hold. begin and tick call it on entry and exit. */
void sl_drain_check(const sl_drain *drain);

#endif
