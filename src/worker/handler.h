/* worker/handler.h — the one door of handlers: what is done with a message.
 *
 *      new --> run(job) ... finished(job, result) --> close --> closed() --> free
 *                   \--abort--> --kill--> finished
 *
 *   (1) finished() comes exactly once for each run(); it may come from inside of run(), abort() and kill().
 *   (2) abort() is a wish: SIGTERM, the abort callback, a line. The handler may still finish with whatever result it has.
 *   (3) kill() is for certain: finished() comes as soon as the system allows, and never waits for foreign code. Work that cannot
 *       be ended (a thread that does not return) is disowned: STOPPED now, and what it says later is dropped.
 *   (4) A result of STOPPED means: it was ended by us, before it came to an end of its own. Ended by somebody else (a signal from
 *       outside, out of memory) is FAILED: that is not swallowed (S3.6).
 *   (5) run() is called for at most `slots` jobs at the same time, as new was told.
 *   (6) is_alive(): the work is there and not frozen; leases are renewed only then. progress() tells of a sign of life.
 *   (7) close() comes when no job runs, and also before anything ever ran; idle processes and connections are ended, closed() follows.
 *       free() works at any moment, ends what is left at once, waits for that until until_ns at most (monotonic), and calls nobody.
 *
 * Everything in the thread of the loop; a handler that has threads brings results back to it. */
#ifndef SL_WORKER_HANDLER_H
#define SL_WORKER_HANDLER_H

#include "worker/job.h"

struct cJSON;

enum {
    SL_RESULT_REASON_BYTES_MAX =
        1000 /* of what people are told about a failure; longer ones are cut by the handler */
};

typedef enum sl_result_kind {
    SL_RESULT_DONE,
    SL_RESULT_RETRY,   /* for now it does not work: again after a pause, however often it happened before */
    SL_RESULT_FAILED,  /* again as the retry policy says, then to the dead letters */
    SL_RESULT_PARK,    /* it will never work: to the dead letters at once */
    SL_RESULT_STOPPED, /* ended by us */
    SL_RESULT_UNBEGUN, /* it could not even be begun (no process, no memory), or was not yet when it was ended: it waits again */
    SL_RESULT_KIND_COUNT_
} sl_result_kind;

typedef struct sl_result {
    sl_result_kind kind;
    bool is_fault; /* not the message but the destination is to blame: counts for its breaker */
    bool is_told;  /* with is_fault: another job's result told of the same fault, which counts once */
    uint64_t retry_after_ns; /* RETRY, FAILED: what the destination asked for; 0: nothing */
    sl_str reason;           /* RETRY, FAILED, PARK: for people; good during the call */
} sl_result;

typedef struct sl_handler_owner { /* all of them are there */
    void (*finished)(void *ctx, sl_job *job, const sl_result *result);
    void (*progress)(void *ctx, sl_job *job);
    void (*closed)(void *ctx);
} sl_handler_owner;

typedef struct sl_handler sl_handler;

typedef struct sl_handler_class {
    const char *name; /* "exec", "lines", "http", "append", "callback" */
    /* Does it take one more in this turn? It is asked again in the next. NULL: always. */
    bool (*takes)(const sl_handler *handler);
    void (*run)(sl_handler *handler, sl_job *job);
    void (*abort)(sl_handler *handler, sl_job *job);
    void (*kill)(sl_handler *handler, sl_job *job);
    bool (*is_alive)(sl_handler *handler, sl_job *job); /* NULL: always */
    /* Nobody outside has seen it yet, so no sign of life can be expected. NULL: somebody sees each at once. */
    bool (*is_unbegun)(sl_handler *handler, sl_job *job);
    /* A drain has begun, and running work has until then (monotonic). Once. NULL: nobody wants to know. */
    void (*draining)(sl_handler *handler, uint64_t until_ns);
    void (*close)(sl_handler *handler);
    void (*turn_end)(sl_handler *handler); /* at the end of each turn. NULL: nothing to do */
    void (*describe)(const sl_handler *handler, struct cJSON *object); /* NULL: nothing */
    void (*free)(sl_handler *handler, uint64_t until_ns);
} sl_handler_class;

struct sl_handler { /* the first field of each kind of handler */
    const sl_handler_class *class;
    const sl_handler_owner *owner; /* set by the worker before the first run() */
    void *owner_ctx;
};

#endif
