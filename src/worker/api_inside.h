/* worker/api_inside.h — a worker with a loop of its own, for api.c (its life) and api_parts.c (what it is made of). */
#ifndef SL_WORKER_API_INSIDE_H
#define SL_WORKER_API_INSIDE_H

#include "worker/worker.h"

#include <sluice.h>

#include <pthread.h>
#include <stdatomic.h>

typedef enum worker_wish {
    WISH_NONE,
    WISH_STOP,
    WISH_STOP_NOW
} worker_wish;

typedef struct worker_label {
    char key[SL_CONSUMER_LABEL_BYTES_MAX + 1], value[SL_CONSUMER_LABEL_BYTES_MAX + 1];
} worker_label;

typedef struct worker_texts {                /* copies of what the options point to */
    char from[SL_WORKER_FROM_BYTES_MAX + 1]; /* may hold a password */
    char name[SL_WORKER_NAME_BYTES_MAX + 1];
    char ack_file[SL_WORKER_FROM_BYTES_MAX + 1];
    worker_label labels[SL_CONSUMER_LABELS_MAX];
    sl_consumer_label label_views[SL_CONSUMER_LABELS_MAX];
} worker_texts;

struct sl_worker {
    sl_worker_options options; /* with the defaults filled in; texts point to the copies */
    worker_texts texts;
    sl_work_settings settings;
    sl_logger log;
    sl_loop *loop; /* as long as the worker, so that it can be woken at any moment */

    /* The thread of sl_worker_run(). */
    sl_work *work; /* NULL: to be made before the next run */
    worker_wish heeded;
    bool ends_by_wish; /* and not because the source failed or came to its end */

    atomic_int wish; /* worker_wish; also set by signal handlers */

    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_running;
    uint64_t end_count; /* of runs */
    pthread_t runner;
    sl_worker_status status; /* of the last run */
    sl_drain_report report;
    char problem[SL_WORKER_PROBLEM_BYTES];
};

/* api.c: carries out what was wished for, if it was not yet; in the thread of the loop. */
void worker_heed(sl_worker *worker);

/* api_parts.c */

/* Is this thread inside of its function? */
bool worker_is_inside(const sl_worker *worker);

/* Checks and copies. SL_OK, or SL_ERR_INVALID and a sentence. */
sl_err worker_options_take(sl_worker *worker, const sl_worker_options *options, sl_text *problem);
/* Source, handler, ack file, and the runtime between them: worker->work. Codes and `problem` as their makers have them. */
sl_err worker_make(sl_worker *worker, const sl_work_watcher *watcher, sl_text *problem);

#endif
