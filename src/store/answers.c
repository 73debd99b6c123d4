/* store/answers.c — see answers.h. */
#include "store/answers.h"

#include "store/backend.h"

#include <string.h>

static size_t answer_bytes(uint32_t op_count)
{
    return sizeof(sl_answer) + op_count * sizeof(sl_op_result);
}

sl_err sl_answers_new(sl_answers *answers, const sl_batch *batch, sl_done_fn *done, void *ctx,
                      sl_answer **ret_answer)
{
    const uint64_t bytes = sl_batch_bytes(batch);
    sl_answer *answer;

    if (answers->waiting_bytes + bytes > SL_WAITING_BYTES_MAX)
        return SL_ERR_FULL;
    answer = sl_alloc_take(answers->alloc, answer_bytes(batch->op_count));
    if (answer == NULL)
        return SL_ERR_NOMEM;
    *answer = (sl_answer){ .bytes = bytes, .done = done, .ctx = ctx, .op_count = batch->op_count };
    memset(answer->results, 0,
           batch->op_count * sizeof *answer->results); /* whoever is refused sees no old memory */
    answers->waiting_bytes += bytes;
    *ret_answer = answer;
    return SL_OK;
}

void sl_answers_forget(sl_answers *answers, sl_answer *answer)
{
    answers->waiting_bytes -= answer->bytes;
    sl_alloc_give(answers->alloc, answer, answer_bytes(answer->op_count));
}

static void want_sync(sl_answers *answers, const sl_batch *batch, uint64_t end)
{
    answers->newest_end = end;
    if (!batch->patient)
        answers->sync_end = end;
}

void sl_answers_push(sl_answers *answers, const sl_batch *batch, sl_answer *answer, uint64_t end)
{
    sl_answer_queue *const queue = &answers->queues[batch->durability];

    answer->next = NULL;
    answer->end = end;
    answer->number = answers->number++;
    if (queue->first == NULL)
        queue->first = answer;
    else
        queue->last->next = answer;
    queue->last = answer;
    if (batch->durability == SL_DURABLE_SYNC)
        want_sync(answers, batch, end);
}

static sl_answer *pop(sl_answer_queue *queue)
{
    sl_answer *const answer = queue->first;

    queue->first = answer->next;
    return answer;
}

bool sl_answers_due(const sl_answers *answers, sl_durability durability, uint64_t end)
{
    const sl_answer *const first = answers->queues[durability].first;

    return first != NULL && first->end <= end;
}

static void give(sl_answers *answers, sl_answer *answer, sl_err failed)
{
    const sl_commit commit = { .err = answer->err == SL_OK ? failed : answer->err,
                               .failed_op = answer->failed_op,
                               .results = answer->results };

    answer->done(answer->ctx, &commit);
    sl_answers_forget(answers, answer);
}

void sl_answers_give(sl_answers *answers, sl_durability durability, uint64_t end, uint64_t number_end,
                     sl_err failed)
{
    sl_answer_queue *const queue = &answers->queues[durability];

    while (sl_answers_due(answers, durability, end) && queue->first->number < number_end)
        give(answers, pop(queue), failed);
}

void sl_answers_drop(sl_answers *answers)
{
    for (int durability = SL_DURABLE_SYNC; durability <= SL_DURABLE_WRITTEN; durability++)
        while (answers->queues[durability].first != NULL)
            sl_answers_forget(answers, pop(&answers->queues[durability]));
    answers->newest_end = answers->sync_end = 0;
}
