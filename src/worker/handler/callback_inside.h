/* worker/handler/callback_inside.h — one handler for a C function, its contexts and threads.
 *
 *      run() --> pending --next turn--> queued --> a thread: work() --> results --collect--> finished()
 *      loop's thread                 lock                            lock                 loop's thread
 *
 *      callback.c          the handler's side, in the loop's thread
 *      callback_threads.c  the threads
 *      callback_ctx.c      the public functions of a context
 *
 * Hand-overs are made in batches: jobs that begin in one turn go to the threads under one lock, results come back with one wake-up of the
 * loop, however many there are. Contexts come from a pool of the loop's thread; their message is copied into memory that they keep,
 * so the job may go while foreign code still looks at it.
 *
 * Disowned: killed while foreign code has it. The worker hears STOPPED at once; the context lives on until the code comes back,
 * which may be after the handler was freed. So the handler is counted: by its owner, by each thread and by each disowned context. */
#ifndef SL_WORKER_HANDLER_CALLBACK_INSIDE_H
#define SL_WORKER_HANDLER_CALLBACK_INSIDE_H

#include "worker/callback_handler.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CALLBACK_NAME_BYTES = 64,
    CTX_MEMORY_KEPT_BYTES_MAX = 64 * 1024 /* a context in the pool gives larger memory back */
};

typedef enum ctx_state {
    CTX_POOLED,
    CTX_QUEUED,   /* no foreign code has seen it */
    CTX_WORKING,  /* foreign code has it */
    CTX_FINISHED, /* its result is on the way to the loop */
    CTX_DISOWNED  /* foreign code has it, and nobody waits for it */
} ctx_state;

struct sl_ctx {
    struct callback *callback;
    sl_list line;    /* pool, pending (loop's thread); queued, results (lock) */
    sl_list running; /* loop's thread: of all that have a job */
    sl_job *job;     /* loop's thread */
    ctx_state state; /* lock */
    sl_job_message message;
    char *memory; /* of its texts */
    size_t memory_bytes;

    _Atomic uint64_t until_ns;
    atomic_bool is_aborted, has_progress;

    void (*abort_fn)(void *arg); /* lock */
    void *abort_arg;
    bool is_calling; /* lock: abort_fn is being called by the loop's thread */

    sl_worker_result result; /* the work's, until it is finished */
    uint64_t retry_after_ns;
    size_t reason_bytes;
    char reason[SL_RESULT_REASON_BYTES_MAX + 4]; /* a cut at the border of a character needs no more */
};

typedef struct callback_thread {
    struct callback *callback;
    pthread_t thread;
    uint32_t number;
    bool is_on; /* made and not joined */
    bool has_ended;
    bool is_stuck; /* what it has was disowned */
    sl_ctx *ctx;   /* what it has; NULL as soon as that is finished, by whoever */
} callback_thread;

typedef struct callback {
    sl_handler handler; /* first */
    sl_callback_settings settings;
    char name[CALLBACK_NAME_BYTES];

    /* The loop's thread. */
    sl_list pool, pending, running;
    uint32_t pending_count;
    uint32_t batch; /* without threads: so many begin in one turn */
    uint64_t drain_until_ns;
    bool wants_closed;
    sl_timer beginner;
    pthread_t loop_thread; /* the last one that called run(): a worker may be run again by another thread */

    pthread_mutex_t lock;
    pthread_cond_t work;   /* for threads */
    pthread_cond_t called; /* for who finishes while its abort function runs */
    pthread_cond_t ended;  /* for free() */
    sl_loop *loop;         /* NULL: freed */
    sl_list queued, results;
    bool is_woken; /* the loop was woken and has not looked yet */
    bool has_progress;
    bool is_closing;
    uint32_t idle;  /* threads that wait */
    uint32_t alive; /* threads */
    uint32_t stuck; /* of them */
    uint32_t holders;
    uint32_t thread_count; /* that were ever made */
    callback_thread threads[SL_CALLBACK_THREADS_MAX + SL_CALLBACK_STUCK_MAX];
} callback;

/* --- with the lock --- */

/* The work has ended, by whoever. A context that was disowned is gone after this. */
void callback_post(sl_ctx *ctx, sl_worker_result result);
void callback_wake(callback *cb);
/* One more thread; false: there is none to be had. */
bool callback_thread_add(callback *cb);
/* The thread that has this context will not come back soon: another one takes its place. */
void callback_thread_stuck(callback *cb, const sl_ctx *ctx);
/* The context is finished by sl_ctx_finish() and may go: a thread that still has it must not look at it any more. */
void callback_thread_forget(callback *cb, const sl_ctx *ctx);
void callback_threads_join(callback *cb); /* those that have ended */

/* Gives the lock back, and with it the caller's hold; the last one frees everything. */
void callback_unlock_and_drop(callback *cb, uint32_t holds);

/* --- without --- */

void ctx_free(sl_ctx *ctx);
void callback_free_threads(callback *cb, uint64_t until_ns); /* waits, warns, lets go */

#endif
