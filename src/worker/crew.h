/* worker/crew.h — all workers of a process: one loop, one set of signals, one shutdown, one report (B19).
 *
 *      run: make members --> start --> ... --> signal or failure --> all drain in parallel --> status pages --> report --> code
 *
 * Supervision: a member whose source is lost for good, or that could not be made, is drained and made again after a pause that
 * doubles from 1 s to 30 s; the others go on (S4.16). After restarts_max failures in a row without a minute of health (it was
 * connected, and of use), the whole crew
 * drains, and the exit code says why. A source that refuses (no such group) counts the same: somebody may be about to make it.
 * One that is at its end, or was stopped by an operator, is not started again; when all have ended, the crew does.
 *
 * Shutdown: SIGTERM and SIGINT begin it, the first one is the reason (S3.2); the second one escalates every drain. The order is
 * always the same, also when a member could not be made at start (S3.25): members in parallel (each: gate, hand back, finish, abort,
 * flush, close), then the status pages, which answer until then (S3.40), then the report. Each step is guarded and bounded. */
#ifndef SL_WORKER_CREW_H
#define SL_WORKER_CREW_H

#include "worker/worker.h"

enum {
    SL_CREW_MEMBERS_MAX = 64
};

/* What a member is made of, each time it is made. All NULL before the call. */
typedef struct sl_crew_parts {
    sl_source *source;
    sl_handler *handler;
    sl_ack_file *acks; /* may stay NULL */
} sl_crew_parts;

typedef struct sl_crew_member {
    sl_work_settings settings; /* log is set by the crew */
    /* On anything but SL_OK `problem` has a sentence and nothing is left in *ret_parts. SL_ERR_INVALID: it will never work (the
     * configuration is wrong), so at start the crew ends at once; other codes are tried again. */
    sl_err (*make)(void *ctx, sl_loop *loop, const sl_logger *log, sl_text *problem,
                   sl_crew_parts *ret_parts);
    void *ctx;
} sl_crew_member;

typedef struct sl_crew_settings {
    const char *status_host; /* for /livez, /readyz, /metrics, /v1/state, /v1/drain ... */
    int32_t status_port;     /* 0: any free one; -1: no status pages */
    const char
        *report_file; /* NULL: none. Written when the drain is over: to a temporary name, then renamed */
    uint32_t restarts_max;
    bool notify_systemd; /* READY=1, STOPPING=1, WATCHDOG=1, STATUS= to $NOTIFY_SOCKET, if there is one */
    sl_log_level log_level;
    sl_log_format log_format;
} sl_crew_settings;

typedef enum sl_crew_cause { /* why it was given up, for those who give advice */
    SL_CREW_CAUSE_OTHER,
    SL_CREW_CAUSE_PORT_TAKEN,  /* by another process: that of the status pages */
    SL_CREW_CAUSE_BAD_ADDRESS, /* the status pages cannot be shown there */
    SL_CREW_CAUSE_REFUSED,     /* by a source */
    SL_CREW_CAUSE_AWAY         /* a source that could not be reached, or not any more */
} sl_crew_cause;

typedef struct sl_crew_hooks {
    sl_log_sink_fn *log_sink;
    /* Every member's source was connected once. status_address: "127.0.0.1:2115", or "" */
    void (*on_ready)(void *ctx, const char *status_address);
    /* May be NULL. Called once at most, for the problem that sl_crew_run() tells. */
    void (*on_give_up)(void *ctx, sl_crew_cause cause);
    void *ctx;
} sl_crew_hooks;

typedef enum sl_crew_end { /* the first of these that is not CLEAN stays, and UNCLEAN counts only if there is none */
    SL_CREW_CLEAN,         /* as asked, and every drain was clean */
    SL_CREW_BAD_CONFIG,  /* a member cannot be made, ever */
    SL_CREW_NOT_STARTED, /* the system refused something: a port that is taken, a file, no memory */
    SL_CREW_LOST,        /* a source refused or was lost too often */
    SL_CREW_UNCLEAN /* as asked, but a drain timed out, was cut short, or left something: the report says what */
} sl_crew_end;

/* Runs until everything has ended. `problem` gets the sentence for ends that are not CLEAN. */
sl_crew_end sl_crew_run(const sl_crew_settings *settings, const sl_crew_member *members, size_t member_count,
                        const sl_crew_hooks *hooks, sl_text *problem);

#endif
