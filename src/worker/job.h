/* worker/job.h — one delivery on its way through a worker.
 *
 *      source --offer--> WAITING --> RUNNING --> SETTLING --settled--> freed
 *                           |           |            ^
 *                           |           +--> DELAYED-+    a retry whose pause the source cannot keep
 *                           +------- handed back ----+
 *
 * A job is one piece of memory: this structure and behind it everything that its texts point to. The source makes it, the worker
 * owns it from offer() on, and frees it when the source has said what became of it.
 *
 * Everything happens in the thread of the loop. Handlers that have threads hand those copies or the job itself, whose texts never
 * change. */
#ifndef SL_WORKER_JOB_H
#define SL_WORKER_JOB_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_JOB_REASON_BYTES = 200 /* kept of a reason while its retry waits here */
};

typedef enum sl_job_state {
    SL_JOB_WAITING,  /* in the intake: never begun */
    SL_JOB_RUNNING,  /* its handler has it */
    SL_JOB_DELAYED,  /* it failed, and will be nacked for retry when its pause is over */
    SL_JOB_SETTLING, /* something final was said of it; the source has not confirmed that */
    SL_JOB_STATE_COUNT_
} sl_job_state;

/* What a message is, as its source says. Texts may be empty, never NULL with bytes. */
typedef struct sl_job_message {
    sl_uuid id; /* how the source knows it: another one when it comes through a link, or is replayed */
    sl_uuid
        event_id; /* its own, the same for each delivery: what handlers see, an idempotency key. Zero: as id */
    uint64_t token;      /* fencing: grows with each delivery; 0: the source has none */
    uint32_t attempt;    /* which try this is, from 1: charged attempts before, plus one */
    uint64_t revision;   /* place in its stream */
    uint64_t created_ns; /* since 1970 */
    sl_str stream, type, content_type, data, metadata;
    sl_str group; /* of the source; empty where there is no such thing */
} sl_job_message;

typedef struct sl_job_shelf sl_job_shelf;

typedef struct sl_job {
    sl_job_message message;
    size_t memory_bytes; /* of the whole piece */
    sl_job_shelf *shelf; /* where its memory goes when it is freed; NULL: to the allocator */

    /* The source's. */
    sl_map_node by_id;
    uint64_t lease_until_ns; /* monotonic; UINT64_MAX: a source without leases */
    uint64_t lease_ns;       /* what an extend gives */
    void *source_data;

    /* The worker's. */
    sl_job_state state;
    sl_list line;    /* of those in its state */
    sl_list all;     /* of the worker */
    sl_list waiting; /* of its destination, while WAITING */
    struct sl_destination *destination;
    uint64_t ticket;      /* of the destination's breaker; 0: none */
    uint64_t offered_ns;  /* when it came */
    uint64_t started_ns;  /* RUNNING: since when */
    uint64_t progress_ns; /* the last sign of life */
    uint64_t due_ns;      /* RUNNING: its own time limit; DELAYED: when the pause is over */
    uint64_t
        until_ns; /* RUNNING: when it will be aborted, by its own limit or by a drain; UINT64_MAX: no limit. For handlers */
    const char *
        why_late; /* aborted because its time was over, as this says, and not because of a drain; NULL: it was not */
    uint32_t ack_place; /* in the ack file, plus one; 0: not in it */
    bool is_lost;       /* the lease is gone: whatever the handler says does not count */
    bool is_aborted;    /* the handler was asked to end */
    bool is_killed;     /* and then made to */
    bool is_wedged;     /* reported as such */
    bool is_recalled;   /* finished by an earlier process */
    bool is_disowned;   /* settled although its handler has not given it back */
    bool is_settled;    /* and the source has confirmed that */
    uint8_t verdict;    /* SETTLING: sl_settle_kind */

    /* The handler's, while RUNNING. */
    void *handler_data;

    uint16_t reason_bytes;
    char reason[SL_JOB_REASON_BYTES]; /* DELAYED: why; not cleared before */
} sl_job;

/* A job with copies of the message's texts, everything else zero. NULL: no memory. Each copied text is followed by a zero byte. */
sl_job *sl_job_new(const sl_job_message *message);
/* The same with memory of the shelf, if that has some; NULL: there is no shelf. */
sl_job *sl_job_new_from(sl_job_shelf *shelf, const sl_job_message *message);
void sl_job_free(sl_job *job); /* NULL is allowed */

/* --- a shelf: memory of jobs that are over, kept for the next ones ---
 *
 * Jobs come and go by the thousand at a time, more than allocators keep at hand. A worker has one, and its source takes from it. Not in
 * builds with the address sanitizer, which is to find whoever uses a job that is over. */

enum {
    SL_JOB_SHELF_STEP_BYTES = 512, /* pieces are as large as whole steps */
    SL_JOB_SHELF_STEPS_MAX = 8,    /* larger ones are not kept */
    SL_JOB_SHELF_BYTES_MAX = 4 * 1024 * 1024
};

typedef struct sl_job_spare sl_job_spare;

struct sl_job_shelf {
    sl_job_spare *spares[SL_JOB_SHELF_STEPS_MAX]; /* by size */
    size_t bytes, bytes_max;
};

void sl_job_shelf_init(sl_job_shelf *shelf);
/* Jobs that were taken from it must be freed before. */
void sl_job_shelf_done(sl_job_shelf *shelf);

#endif
