/* tests/unit/worker/handled.c — see handled.h. */
#include "worker/handled.h"

#include <stdio.h>

static void on_finished(void *ctx, sl_job *job, const sl_result *result)
{
    handled *const h = ctx;
    sl_job *const next = h->next, *const victim = h->victim;

    h->finished++;
    h->kinds[result->kind]++;
    h->faults += result->is_fault && !result->is_told;
    h->last = *result;
    h->last_job = job;
    snprintf(h->reason, sizeof h->reason, "%.*s", (int)result->reason.bytes,
             result->reason.bytes == 0 ? "" : result->reason.data);
    EXPECT(result->reason.bytes <= SL_RESULT_REASON_BYTES_MAX);
    h->next = h->victim = NULL;
    if (victim != NULL)
        h->handler->class->kill(h->handler, victim);
    if (next != NULL)
        handled_run(h, next);
    if (h->close_next)
        h->handler->class->close(h->handler);
    h->close_next = false;
}

static void on_progress(void *ctx, sl_job *job)
{
    EXPECT(job != NULL);
    ((handled *)ctx)->progressed++;
}

static void on_closed(void *ctx)
{
    ((handled *)ctx)->closed++;
}

void handled_use(handled *h, sl_handler *handler)
{
    static const sl_handler_owner owner = { on_finished, on_progress, on_closed };

    *h = (handled){ .handler = handler };
    handler->owner = &owner;
    handler->owner_ctx = h;
}

sl_job_message handled_message(unsigned number, const char *data)
{
    sl_job_message message = { .token = 7,
                               .attempt = 1,
                               .revision = number,
                               .stream = SL_STR("orders"),
                               .group = SL_STR("g"),
                               .type = SL_STR("placed"),
                               .content_type = SL_STR("application/json"),
                               .data = sl_str_from(data) };

    message.id = sl_uuid_from_halves(0x1234, (int64_t)number + 1);
    return message;
}

sl_job *handled_job_of(const sl_job_message *message)
{
    sl_job *const job = sl_job_new(message);

    EXPECT(job != NULL);
    job->until_ns = UINT64_MAX;
    return job;
}

sl_job *handled_job(unsigned number, const char *data)
{
    const sl_job_message message = handled_message(number, data);

    return handled_job_of(&message);
}

void handled_run(handled *h, sl_job *job)
{
    h->handler->class->run(h->handler, job);
}
