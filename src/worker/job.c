/* worker/job.c — see job.h. */
#include "worker/job.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

struct sl_job_spare {
    sl_job_spare *next;
};

/* --- the shelf --- */

void sl_job_shelf_init(sl_job_shelf *shelf)
{
    *shelf = (sl_job_shelf){ .bytes_max = SL_JOB_SHELF_BYTES_MAX };
#ifdef __SANITIZE_ADDRESS__
    shelf->bytes_max = 0;
#endif
}

void sl_job_shelf_done(sl_job_shelf *shelf)
{
    for (size_t i = 0; i < SL_JOB_SHELF_STEPS_MAX; i++) {
        while (shelf->spares[i] != NULL) {
            sl_job_spare *const spare = shelf->spares[i];

            shelf->spares[i] = spare->next;
            sl_alloc_give(&sl_alloc_default, spare, (i + 1) * SL_JOB_SHELF_STEP_BYTES);
        }
    }
    shelf->bytes = 0;
}

/* The place for pieces of this size, or NULL: such are not kept. */
static sl_job_spare **place_of(sl_job_shelf *shelf, size_t bytes)
{
    const size_t steps = bytes / SL_JOB_SHELF_STEP_BYTES;

    return shelf == NULL || steps > SL_JOB_SHELF_STEPS_MAX ? NULL : &shelf->spares[steps - 1];
}

static void *take(sl_job_shelf *shelf, size_t bytes)
{
    sl_job_spare **const place = place_of(shelf, bytes);
    sl_job_spare *spare;

    if (place == NULL || *place == NULL)
        return sl_alloc_take(&sl_alloc_default, bytes);
    spare = *place;
    *place = spare->next;
    shelf->bytes -= bytes;
    return spare;
}

static void give(sl_job_shelf *shelf, void *memory, size_t bytes)
{
    sl_job_spare **const place = place_of(shelf, bytes);
    sl_job_spare *const spare = memory;

    if (place == NULL || shelf->bytes + bytes > shelf->bytes_max) {
        sl_alloc_give(&sl_alloc_default, memory, bytes);
        return;
    }
    spare->next = *place;
    *place = spare;
    shelf->bytes += bytes;
}

/* --- jobs --- */

static char *copy_text(char *at, sl_str from, sl_str *ret_copy)
{
    if (from.bytes > 0)
        memcpy(at, from.data, from.bytes);
    at[from.bytes] = '\0';
    *ret_copy = (sl_str){ at, from.bytes };
    return at + from.bytes + 1;
}

static size_t memory_bytes(const sl_job_message *message)
{
    const sl_str texts[] = { message->stream, message->type,     message->content_type,
                             message->data,   message->metadata, message->group };
    size_t bytes = sizeof(sl_job);

    for (size_t i = 0; i < SL_COUNT_OF(texts); i++)
        bytes += texts[i].bytes + 1;
    return (bytes + SL_JOB_SHELF_STEP_BYTES - 1) / SL_JOB_SHELF_STEP_BYTES * SL_JOB_SHELF_STEP_BYTES;
}

sl_job *sl_job_new_from(sl_job_shelf *shelf, const sl_job_message *message)
{
    const size_t bytes = memory_bytes(message);
    sl_job *const job = take(shelf, bytes);
    char *at;

    if (job == NULL)
        return NULL;
    memset(job, 0, offsetof(sl_job, reason));
    job->message = *message;
    if (sl_uuid_is_zero(message->event_id))
        job->message.event_id = message->id;
    job->memory_bytes = bytes;
    job->shelf = shelf;
    at = (char *)(job + 1);
    at = copy_text(at, message->stream, &job->message.stream);
    at = copy_text(at, message->type, &job->message.type);
    at = copy_text(at, message->content_type, &job->message.content_type);
    at = copy_text(at, message->data, &job->message.data);
    at = copy_text(at, message->metadata, &job->message.metadata);
    (void)copy_text(at, message->group, &job->message.group);
    return job;
}

sl_job *sl_job_new(const sl_job_message *message)
{
    return sl_job_new_from(NULL, message);
}

void sl_job_free(sl_job *job)
{
    if (job != NULL)
        give(job->shelf, job, job->memory_bytes);
}
