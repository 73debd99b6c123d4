/* store/journal/log_job.c — a thread that does one thing whenever it is wanted. */
#include "store/journal/log_private.h"

static void *run(void *ctx)
{
    log_job *const j = ctx;
    sl_log *const log = j->log;

    pthread_mutex_lock(&log->mutex);
    while (!log->quit) {
        if (j->wanted)
            j->work(log);
        else
            pthread_cond_wait(&log->wake, &log->mutex);
    }
    pthread_mutex_unlock(&log->mutex);
    return NULL;
}

sl_err sl_job_start(log_job *job, sl_log *log, void (*work)(sl_log *log))
{
    job->log = log;
    job->work = work;
    job->started = pthread_create(&job->thread, NULL, run, job) == 0;
    return job->started ? SL_OK : SL_ERR_NOMEM;
}

void sl_job_join(log_job *job)
{
    if (job->started)
        pthread_join(job->thread, NULL);
}

void sl_job_want(log_job *job)
{
    job->wanted = true;
    pthread_cond_broadcast(&job->log->wake);
}

void sl_job_done(log_job *job)
{
    job->wanted = false;
    pthread_cond_broadcast(&job->log->wake);
    sl_log_wake(job->log);
}

void sl_job_wait(log_job *job)
{
    while (job->wanted)
        pthread_cond_wait(&job->log->wake, &job->log->mutex);
}
