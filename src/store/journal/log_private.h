/* store/journal/log_private.h — the fields of a log, for log.c, log_open.c, log_sync.c and log_spare.c.
 *
 * The caller's thread owns everything but what stands under `mutex`; the syncing thread sees files and numbers that
 * were handed to it, the one that makes segments only the disk and the number of the next. */
#ifndef SL_STORE_JOURNAL_LOG_PRIVATE_H
#define SL_STORE_JOURNAL_LOG_PRIVATE_H

#include "store/journal/log.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    /* Of the last segment, kept for what is urgent (settles, releases) when there is no next one: an eighth. */
    RESERVE_SHIFT = 3,
    NEARLY_SHIFT = 6, /* so near to it the log counts as full: a sixty-fourth */
};

typedef struct segment {
    sl_file *file;
    uint64_t number, rewrites, first, end;
    uint64_t size_bytes, used_bytes; /* used: up to the last frame, written or gathered */
    uint32_t seed;
} segment;

typedef struct frame {
    size_t at;        /* where it begins in the gathered bytes */
    size_t used;      /* so far */
    size_t size;      /* as announced: it may become smaller */
    uint32_t records; /* so far */
    uint64_t first_position;
    size_t open_record; /* offset of the record whose payload is being filled; 0: none */
    uint32_t open_payload_bytes;
    sl_record_kind open_kind;
} frame;

/* A thread that does one thing whenever it is wanted. `work` is called with the log's mutex locked, may unlock it
 * meanwhile, and ends by clearing `wanted`; who waits for the end waits for that, on the log's `wake`. */
typedef struct log_job {
    sl_log *log;
    void (*work)(sl_log *log);
    pthread_t thread;
    bool started, wanted;
} log_job;

struct sl_log {
    sl_disk *disk;
    uint64_t segment_bytes;
    sl_uuid store;
    bool sync_by_os;
    uint32_t inline_max;
    uint64_t epoch;
    sl_err err;

    segment *segments; /* ascending; the last one is written to */
    uint32_t segment_count, segment_capacity;

    uint8_t *gathered; /* frames that are built and not written; they belong into the last segment */
    size_t gathered_bytes, gathered_capacity;
    frame frame; /* the one being built; size 0: none */
    uint64_t next, written, durable;
    uint64_t shown; /* durability "os": what counts as durable for others. `durable` is what is synced */
    uint64_t said_durable;  /* opening: the most that a frame of the last segment says */
    uint64_t written_bytes; /* of the last segment */
    uint32_t waiting;       /* frames that were written since the last sync began */

    int wait_fd;
    pthread_mutex_t mutex; /* for everything below */
    pthread_cond_t wake;
    bool quit;

    struct {
        log_job job;
        sl_file *file;
        uint64_t target; /* what will be durable when it is done */
        uint64_t durable;
        sl_err err;
    } sync;
    bool sync_again; /* the caller's: somebody waits for more than the running sync gives */

    struct {
        log_job job;
        uint64_t number;
        sl_file *file; /* the next segment, when it is ready */
        sl_err err;    /* why there is none: SL_ERR_NO_SPACE is tried again */
        bool hurried;  /* somebody waits for it */
        pthread_cond_t hurry;
        _Atomic uint64_t used_bytes; /* of the segment before it; without the mutex */
    } spare;
};

static inline segment *last_segment(const sl_log *log)
{
    return &log->segments[log->segment_count - 1];
}

/* log.c */
sl_err sl_log_add_segment(sl_log *log, sl_file *file, const sl_segment_header *header);
void sl_log_fail(sl_log *log);

/* log_end.c */
typedef struct log_behind { /* the most that frames behind the end say */
    uint64_t durable, epoch;
    uint64_t aside; /* the segment without a readable beginning that says so; 0: it is the last one itself */
} log_behind;

extern const char sl_log_restore_advice[];
void sl_log_say(sl_text *report, const char *what, uint64_t number, uint64_t offset, const char *advice);
void sl_log_say_head(sl_text *report, uint64_t number,
                     sl_err err); /* what is wrong with the head of a segment */
sl_err sl_log_set_last_aside(sl_log *log, log_behind *most);
sl_err sl_log_find_end(sl_log *log, log_behind *most, sl_text *report);
sl_err sl_log_make_sure(sl_log *log);

/* log_job.c: the last three with the mutex locked */
sl_err sl_job_start(log_job *job, sl_log *log, void (*work)(sl_log *log));
void sl_job_join(log_job *job); /* after log->quit was set; harmless when it was never started */
void sl_job_want(log_job *job);
void sl_job_done(log_job *job); /* by `work`: also makes wait_fd readable */
void sl_job_wait(log_job *job); /* until it is not wanted any more */

/* log_sync.c */
sl_err sl_log_sync_start(sl_log *log);
void sl_log_sync_stop(sl_log *log);

/* log_spare.c */
sl_err sl_log_spare_start(sl_log *log);
void sl_log_spare_stop(sl_log *log);
void sl_log_spare_ask(sl_log *log);                        /* for the segment after the last one */
sl_err sl_log_spare_take(sl_log *log, sl_file **ret_file); /* waits if it is being made */
bool sl_log_spare_failed(sl_log *log);
bool sl_log_spare_ready(
    sl_log *log); /* waits if it is being made: only then is known whether there is room */
sl_err sl_log_make_segment(sl_disk *disk, const sl_segment_header *header, const sl_pace *pace,
                           sl_file **ret_file);

#endif
