/* store/journal/background.h — a thread that carries out tasks one after the other, for what may wait for the disk.
 *
 *      loop: push(task) --> thread: task->run(task) --> loop: collect() calls task->finish(task)
 *
 * A task belongs to the thread from push to finish; nothing else is shared, so tasks need no locks. */
#ifndef SL_STORE_JOURNAL_BACKGROUND_H
#define SL_STORE_JOURNAL_BACKGROUND_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct sl_task {
    struct sl_task *next;
    void (*run)(struct sl_task *task);    /* in the thread */
    void (*finish)(struct sl_task *task); /* in the loop; may free it */
} sl_task;

typedef struct sl_task_queue {
    sl_task *first, *last;
} sl_task_queue;

typedef struct sl_background {
    pthread_t thread;
    bool started;
    void (*wake)(void *ctx); /* from the thread: something can be collected */
    void *wake_ctx;
    pthread_mutex_t mutex; /* for everything below */
    pthread_cond_t changed;
    sl_task_queue waiting, done;
    bool busy, quit;
} sl_background;

/* SL_OK or SL_ERR_NOMEM: the system gives no thread. */
sl_err sl_background_start(sl_background *background, void (*wake)(void *ctx), void *wake_ctx);

void sl_background_push(sl_background *background, sl_task *task);

/* Calls finish() of everything that is done. */
void sl_background_collect(sl_background *background);

/* Lets the running task end, gives up the waiting ones (finish() is called, run() was not), ends the thread. Right for one
 * that is all zero. */
void sl_background_stop(sl_background *background);

#endif
