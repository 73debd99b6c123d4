/* store/journal/log_spare.c — the next segment, made ahead.
 *
 * Filling 64 MB with zeros takes the disk a while; a thread does it as soon as the segment before it is in use. It is
 * made under a passing name and gets its own when it is complete, so that a crash leaves a file that is plainly
 * nothing. When there is none, each append that is refused asks again.
 *
 * All at once it would keep the syncs of the log waiting, for 100 ms and more. So it is made in small pieces with a rest after each,
 * but always twice as far as the segment in use is filled, and without rest once somebody waits for it. */
#include "store/journal/log_private.h"

#include <time.h>

enum {
    REST_MS = 40, /* an idle server needs ten seconds for 64 MB */
};

static const char passing_name[] = "next.tmp";

/* Waits for the hurry of another, or until it is time to go on. */
static void rest(void *ctx, uint64_t done_bytes)
{
    sl_log *const log = ctx;
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += REST_MS * 1000000L;
    end.tv_sec += end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&log->mutex);
    while (!log->spare.hurried &&
           done_bytes / 2 > atomic_load_explicit(&log->spare.used_bytes, memory_order_relaxed))
        if (pthread_cond_timedwait(&log->spare.hurry, &log->mutex, &end) != 0)
            break;
    pthread_mutex_unlock(&log->mutex);
}

/* With the mutex. */
static void hurry(sl_log *log)
{
    log->spare.hurried = true;
    pthread_cond_signal(&log->spare.hurry);
}

sl_err sl_log_make_segment(sl_disk *disk, const sl_segment_header *header, const sl_pace *pace,
                           sl_file **ret_file)
{
    uint8_t block[SL_SEGMENT_HEADER_BYTES];
    char name[SL_SEGMENT_NAME_BYTES];
    sl_file *file = NULL;
    sl_err err;

    (void)disk->ops->remove(disk, passing_name); /* what a crash left, if anything */
    err = disk->ops->create(disk, passing_name, header->segment_bytes, pace, &file);
    if (err != SL_OK)
        return err;
    sl_segment_header_put(header, block);
    sl_segment_name(header->number, ".seg", name);
    err = disk->ops->write(file, 0, block, sizeof block);
    if (err == SL_OK)
        err = disk->ops->sync(file);
    if (err == SL_OK)
        err = disk->ops->rename(disk, passing_name, name);
    if (err != SL_OK) {
        disk->ops->close(file);
        return err;
    }
    *ret_file = file;
    return SL_OK;
}

static void make_one(sl_log *log)
{
    const sl_segment_header header = { .version = SL_JOURNAL_VERSION,
                                       .number = log->spare.number,
                                       .segment_bytes = log->segment_bytes,
                                       .store = log->store };
    const sl_pace pace = { rest, log };
    sl_file *file = NULL;
    sl_err err;

    log->spare.hurried = log->quit;
    pthread_mutex_unlock(&log->mutex);
    err = sl_log_make_segment(log->disk, &header, &pace, &file);
    pthread_mutex_lock(&log->mutex);
    log->spare.file = file;
    log->spare.err = err;
    sl_job_done(&log->spare.job);
}

sl_err sl_log_spare_start(sl_log *log)
{
    return sl_job_start(&log->spare.job, log, make_one);
}

void sl_log_spare_stop(sl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    hurry(log);
    pthread_mutex_unlock(&log->mutex);
    sl_job_join(&log->spare.job);
    if (log->spare.file != NULL)
        log->disk->ops->close(log->spare.file);
}

void sl_log_spare_ask(sl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    if (log->spare.file == NULL && !log->spare.job.wanted) {
        log->spare.number = last_segment(log)->number + 1;
        sl_job_want(&log->spare.job);
    }
    pthread_mutex_unlock(&log->mutex);
}

/* When the last attempt has failed, nobody waits for the next one: it will hardly be the one that succeeds. */
bool sl_log_spare_ready(sl_log *log)
{
    bool ready;

    pthread_mutex_lock(&log->mutex);
    hurry(log);
    if (log->spare.err == SL_OK)
        sl_job_wait(&log->spare.job);
    ready = log->spare.file != NULL;
    pthread_mutex_unlock(&log->mutex);
    return ready;
}

/* There is none, and the last attempt to make one has failed. */
bool sl_log_spare_failed(sl_log *log)
{
    bool failed;

    pthread_mutex_lock(&log->mutex);
    failed = log->spare.file == NULL && log->spare.err != SL_OK;
    pthread_mutex_unlock(&log->mutex);
    return failed;
}

sl_err sl_log_spare_take(sl_log *log, sl_file **ret_file)
{
    sl_err err;

    pthread_mutex_lock(&log->mutex);
    hurry(log);
    sl_job_wait(&log->spare.job);
    err = log->spare.file != NULL ? SL_OK : SL_ERR_NO_SPACE; /* sl_log_spare_err() says more */
    *ret_file = log->spare.file;
    log->spare.file = NULL;
    pthread_mutex_unlock(&log->mutex);
    return err;
}

sl_err sl_log_spare_err(sl_log *log)
{
    sl_err err;

    pthread_mutex_lock(&log->mutex);
    err = log->spare.err;
    pthread_mutex_unlock(&log->mutex);
    return err;
}
