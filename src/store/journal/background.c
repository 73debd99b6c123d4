/* store/journal/background.c — see background.h. */
#include "store/journal/background.h"

#include <stddef.h>

static void push(sl_task_queue *queue, sl_task *task)
{
    task->next = NULL;
    if (queue->first == NULL)
        queue->first = task;
    else
        queue->last->next = task;
    queue->last = task;
}

static sl_task *pop(sl_task_queue *queue)
{
    sl_task *const task = queue->first;

    if (task != NULL)
        queue->first = task->next;
    return task;
}

static void run_one(sl_background *background, sl_task *task)
{
    background->busy = true;
    pthread_mutex_unlock(&background->mutex);
    task->run(task);
    pthread_mutex_lock(&background->mutex);
    background->busy = false;
    push(&background->done, task);
    pthread_cond_broadcast(&background->changed);
    background->wake(background->wake_ctx);
}

static void *run(void *ctx)
{
    sl_background *const background = ctx;

    pthread_mutex_lock(&background->mutex);
    while (!background->quit) {
        sl_task *const task = pop(&background->waiting);

        if (task != NULL)
            run_one(background, task);
        else
            pthread_cond_wait(&background->changed, &background->mutex);
    }
    pthread_mutex_unlock(&background->mutex);
    return NULL;
}

sl_err sl_background_start(sl_background *background, void (*wake)(void *ctx), void *wake_ctx)
{
    *background = (sl_background){ .wake = wake, .wake_ctx = wake_ctx };
    pthread_mutex_init(&background->mutex, NULL);
    pthread_cond_init(&background->changed, NULL);
    background->started = pthread_create(&background->thread, NULL, run, background) == 0;
    if (background->started)
        return SL_OK;
    pthread_mutex_destroy(&background->mutex);
    pthread_cond_destroy(&background->changed);
    return SL_ERR_NOMEM;
}

void sl_background_push(sl_background *background, sl_task *task)
{
    pthread_mutex_lock(&background->mutex);
    push(&background->waiting, task);
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->mutex);
}

static void finish_all(sl_task *task)
{
    while (task != NULL) {
        sl_task *const next = task->next;

        task->finish(task);
        task = next;
    }
}

void sl_background_collect(sl_background *background)
{
    sl_task *done;

    pthread_mutex_lock(&background->mutex);
    done = background->done.first;
    background->done.first = NULL;
    pthread_mutex_unlock(&background->mutex);
    finish_all(done);
}

void sl_background_stop(sl_background *background)
{
    if (!background->started)
        return;
    pthread_mutex_lock(&background->mutex);
    background->quit = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->mutex);
    pthread_join(background->thread, NULL);
    background->started = false;
    finish_all(background->done.first);
    finish_all(background->waiting.first);
    pthread_mutex_destroy(&background->mutex);
    pthread_cond_destroy(&background->changed);
}
