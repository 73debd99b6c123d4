/* worker/worker.h — one source, one handler, and what stands between them.
 *
 *      source --offer--> intake --> slots (handler) --result--> settle --> source --settled-->
 *
 *      worker.c         offers in, jobs begun while slots are free, the work of a turn
 *      worker_result.c  results judged, messages settled
 *      worker_lease.c   renewal while the handler lives, time limits, wedged handlers (B8)
 *      worker_drain.c   core/drain carried out: the eight steps (S2, S3)
 *      destination.c    breaker and rate (B18)
 *      ack_file.c       finished work that is not confirmed (B3)
 *      report.c         what the drain was like, as JSON and as a log line (B12)
 *      crew.c           several workers in one process: signals, supervision, one shutdown (B19)
 *
 * A worker lives on a loop that others may share. Its owner calls sl_work_turn_end() at the end of each turn. Everything happens
 * in the thread of the loop. */
#ifndef SL_WORKER_WORKER_H
#define SL_WORKER_WORKER_H

#include "base/log.h"
#include "core/budget.h"
#include "core/drain.h"
#include "core/retry.h"
#include "net/loop.h"
#include "worker/ack_file.h"
#include "worker/destination.h"
#include "worker/handler.h"
#include "worker/source.h"

enum {
    SL_WORKER_SLOTS_MAX = 4000,
    SL_WORKER_NAME_BYTES_MAX = 64,
    SL_WORK_FREE_MS =
        1000 /* that sl_work_free() waits for what does not end though it was killed; less at the end of a drain */
};

typedef struct sl_work
    sl_work; /* opaque: a worker on a loop; sl_worker of sluice.h is one with a loop of its own */

typedef struct sl_work_settings {
    const char *name; /* for logs, metrics and reports; copied */
    uint32_t slots;   /* jobs that run at the same time */
    sl_budget budget;
    bool finish_unstarted; /* in a drain, waiting jobs are begun and finished instead of handed back */
    sl_retry_policy retry; /* of FAILED; the pause of RETRY too, whose attempts are not limited */
    sl_destination_rules destination;
    uint64_t timeout_ns; /* of one job: aborted then, killed after the budget's abort part, FAILED. 0: none */
    /* No lease is renewed for longer than this while its job waits, and again for no longer than this while it runs: what waits goes back
     * then, what runs is ended (B8). Without a lease only what runs is looked at. Not 0. */
    uint64_t hold_max_ns;
    /* A handler that gives no sign for so long is wedged: reported, its lease not renewed; without a lease: ended after twice as long.
     * 0: only being alive counts. */
    uint64_t heartbeat_ns;
    const sl_logger *log;
} sl_work_settings;

/* Told to the owner; any may be NULL. Not from inside of sl_work_free(). */
typedef struct sl_work_watcher {
    void (*up)(void *ctx, sl_work *work);       /* the source is connected, the first time */
    void (*draining)(void *ctx, sl_work *work); /* for whatever reason */
    void (*over)(void *ctx, sl_work *work);     /* STOPPED: sl_work_report() is final */
} sl_work_watcher;

/* Takes source, handler and ack file (NULL: none) over, also when it fails: they are freed then. SL_OK, SL_ERR_NOMEM, SL_ERR_INVALID. */
sl_err sl_work_new(sl_loop *loop, const sl_work_settings *settings, sl_source *source, sl_handler *handler,
                   sl_ack_file *acks, const sl_work_watcher *watcher, void *ctx, sl_work **ret_work);
void sl_work_free(sl_work *work); /* NULL is allowed; whatever is left is left */

void sl_work_start(sl_work *work);

/* Begins the drain, or with `escalates` cuts one short. Harmless when it is over. */
void sl_work_stop(sl_work *work, sl_drain_call call);

void sl_work_turn_end(sl_work *work);

/* --- for looking at --- */

typedef enum sl_work_end {  /* why it ended, for exit codes and supervision */
    SL_WORK_ENDED_AS_ASKED, /* a signal, an operator, the server, or a source at its end */
    SL_WORK_ENDED_REFUSED,  /* by the source */
    SL_WORK_ENDED_LOST      /* the source is gone for good */
} sl_work_end;

typedef struct sl_work_counts {                                   /* since the start */
    uint64_t offered, begun, finished;                            /* results that came */
    uint64_t acked, retried, parked, released, interrupted, lost; /* as confirmed by the source */
    uint64_t timed_out, wedged, unsure, acks_replayed, acks_confirmed_late;
    uint32_t waiting, running, delayed, settling; /* now */
    uint32_t destinations_open;
    bool is_up;
} sl_work_counts;

sl_work_counts sl_work_get_counts(const sl_work *work);
sl_drain_phase sl_work_phase(const sl_work *work);
bool sl_work_is_over(const sl_work *work);
sl_work_end sl_work_get_end(const sl_work *work);
/* It was connected, and if its source fails with the work that it gave out (a schedule), some of that succeeded. */
bool sl_work_was_of_use(const sl_work *work);
const char *sl_work_problem(const sl_work *work); /* the last sentence about the source; "" */
sl_drain_report sl_work_report(const sl_work *work);
const sl_source *sl_work_source(const sl_work *work);
const sl_handler *sl_work_handler(const sl_work *work);
const sl_destinations *sl_work_destinations(const sl_work *work);

#endif
