/* store/answers.h — batches that wait for their done(): the same for every backend.
 *
 * Two queues, by durability, because who waits for a write must not wait for somebody else's sync. Within a queue
 * answers go out in the order of submission. Patient ones are in the same queue, but make nobody begin a sync. */
#ifndef SL_STORE_ANSWERS_H
#define SL_STORE_ANSWERS_H

#include "store/store.h"

typedef struct sl_answer {
    struct sl_answer *next;
    uint64_t number;
    uint64_t end; /* done when everything below this position is as durable as wanted */
    uint64_t bytes;
    sl_done_fn *done;
    void *ctx;
    sl_err err;
    uint32_t failed_op, op_count;
    sl_op_result results[];
} sl_answer;

typedef struct sl_answer_queue {
    sl_answer *first, *last;
} sl_answer_queue;

typedef struct sl_answers {
    const sl_alloc *alloc;
    sl_answer_queue queues[2]; /* by sl_durability */
    uint64_t number;           /* of the next one */
    uint64_t waiting_bytes;
    uint64_t newest_end; /* of all in the queue of SYNC */
    uint64_t sync_end;   /* of the newest of them that does not want to wait for company */
} sl_answers;

/* An answer in the making, not in a queue yet. SL_OK, SL_ERR_FULL: more than SL_WAITING_BYTES_MAX would wait; SL_ERR_NOMEM. */
sl_err sl_answers_new(sl_answers *answers, const sl_batch *batch, sl_done_fn *done, void *ctx,
                      sl_answer **ret_answer);

/* It will never be given. */
void sl_answers_forget(sl_answers *answers, sl_answer *answer);

/* From now on it waits for `end`. */
void sl_answers_push(sl_answers *answers, const sl_batch *batch, sl_answer *answer, uint64_t end);

/* Everything that waits for a sync wants one now. */
static inline void sl_answers_hurry(sl_answers *answers)
{
    answers->sync_end = answers->newest_end;
}

/* A sync is wanted for everything below this; 0, or what is durable already: for nothing. */
static inline uint64_t sl_answers_sync_end(const sl_answers *answers)
{
    return answers->sync_end;
}

static inline bool sl_answers_wait(const sl_answers *answers, sl_durability durability)
{
    return answers->queues[durability].first != NULL;
}

/* True when sl_answers_give() would give one. */
bool sl_answers_due(const sl_answers *answers, sl_durability durability, uint64_t end);

/* Calls done() of everything that waits for `end` or less, but not of what number_end or a later one is: that came in
 * meanwhile, from a done(). failed: what was carried out gets this error instead. */
void sl_answers_give(sl_answers *answers, sl_durability durability, uint64_t end, uint64_t number_end,
                     sl_err failed);

/* Nobody is answered. */
void sl_answers_drop(sl_answers *answers);

#endif
