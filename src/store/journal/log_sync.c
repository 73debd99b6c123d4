/* store/journal/log_sync.c — making durable what was written, in this thread or in another.
 *
 * One sync at a time. It covers what was written when it began; whoever is written later and wants one waits for the next,
 * which begins as soon as this one is over. So under load each sync carries what gathered during the last. */
#include "store/journal/log_private.h"

#include "base/cleanup.h"

#include <unistd.h>

static void sync_one(sl_log *log)
{
    sl_file *const file = log->sync.file;
    sl_err err;

    pthread_mutex_unlock(&log->mutex);
    err = file->disk->ops->sync(file);
    pthread_mutex_lock(&log->mutex);
    if (err == SL_OK)
        log->sync.durable = log->sync.target;
    else
        log->sync.err = err;
    sl_job_done(&log->sync.job);
}

sl_err sl_log_sync_start(sl_log *log)
{
    return sl_job_start(&log->sync.job, log, sync_one);
}

void sl_log_sync_stop(sl_log *log)
{
    sl_job_join(&log->sync.job);
}

/* Takes over what the other thread found out. True while it is busy. */
static bool collect(sl_log *log)
{
    bool busy;

    pthread_mutex_lock(&log->mutex);
    busy = log->sync.job.wanted;
    if (log->sync.durable > log->durable)
        log->durable = log->sync.durable;
    if (log->sync.err != SL_OK)
        log->err = SL_ERR_STORE_FAILED;
    pthread_mutex_unlock(&log->mutex);
    return busy;
}

static void sync_there(sl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    log->sync.file = last_segment(log)->file;
    log->sync.target = log->written;
    sl_job_want(&log->sync.job);
    pthread_mutex_unlock(&log->mutex);
}

static void sync_here(sl_log *log)
{
    sl_file *const file = last_segment(log)->file;

    if (file->disk->ops->sync(file) == SL_OK)
        log->durable = log->written;
    else
        sl_log_fail(log);
    sl_log_wake(log);
}

void sl_log_sync(sl_log *log, uint64_t end)
{
    if (log->err != SL_OK || sl_log_durable(log) >= log->written)
        return;
    if (log->sync_by_os) {
        log->shown = log->written;
        sl_log_wake(log);
        return;
    }
    if (sl_log_durable(log) >= end)
        return;
    if (collect(log)) {
        log->sync_again = log->sync_again || log->sync.target < sl_min_u64(end, log->written);
        return;
    }
    log->sync_again = false;
    if (log->err != SL_OK)
        return;
    if (log->waiting <= log->inline_max)
        sync_here(log);
    else
        sync_there(log);
    log->waiting = 0;
}

void sl_log_poll(sl_log *log)
{
    uint64_t count;

    if (read(log->wait_fd, &count, sizeof count) < 0) {
        /* Nothing was there: then nothing has happened. */
    }
    if (!collect(log) && log->sync_again)
        sl_log_sync(log, UINT64_MAX);
}

sl_err sl_log_flush(sl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    sl_job_wait(&log->sync.job);
    pthread_mutex_unlock(&log->mutex);
    collect(log);
    if (log->err == SL_OK && log->durable < log->written)
        sync_here(log);
    log->waiting = 0;
    return log->err;
}
