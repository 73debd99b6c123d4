/* store/journal/log.c — building and writing frames, and going on to the next segment. */
#include "store/journal/log_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sl_log_notify(sl_log *log)
{
    const uint64_t one = 1;

    if (write(log->wait_fd, &one, sizeof one) < 0) {
        /* The counter is full: then it is readable, and that is all that is wanted. */
    }
}

void sl_log_fail(sl_log *log)
{
    log->err = SL_ERR_STORE_FAILED;
    sl_log_notify(log);
}

sl_err sl_log_add_segment(sl_log *log, sl_file *file, uint64_t number)
{
    const uint64_t first = log->segment_count == 0 ? log->next : last_segment(log)->end;
    const uint8_t *bytes = NULL;
    sl_err err;

    if (log->segment_count == log->segment_capacity) {
        const uint32_t capacity = log->segment_capacity == 0 ? 16 : 2 * log->segment_capacity;
        segment *const more = realloc(log->segments, capacity * sizeof *more);
        if (more == NULL)
            return SL_ERR_NOMEM;
        log->segments = more;
        log->segment_capacity = capacity;
    }
    err = log->disk->ops->map(file, &bytes);
    if (err != SL_OK)
        return err;
    log->segments[log->segment_count++] = (segment){ .file = file,
                                                     .bytes = bytes,
                                                     .number = number,
                                                     .first = first,
                                                     .end = first,
                                                     .size_bytes = log->disk->ops->size(file),
                                                     .used_bytes = SL_SEGMENT_HEADER_BYTES,
                                                     .seed = sl_segment_seed(log->store, number) };
    log->written_bytes = SL_SEGMENT_HEADER_BYTES;
    return SL_OK;
}

/* --- building a frame --- */

static bool fits(const sl_log *log, size_t frame_bytes)
{
    const segment *const last = last_segment(log);

    return last->size_bytes - last->used_bytes >= frame_bytes;
}

/* Without a next segment, the end of this one is kept for what is urgent. Whether there will be one is asked only
 * here, near the end, when it has usually been made long ago. */
static bool is_reserved(sl_log *log, size_t frame_bytes)
{
    const segment *const last = last_segment(log);
    const uint64_t left = last->size_bytes - last->used_bytes;

    return left < frame_bytes + (last->size_bytes >> RESERVE_SHIFT) && !sl_log_spare_ready(log);
}

/* What is in the old segment becomes durable before anything stands in the new one: then only the last segment of a
 * log can have a torn end. */
static sl_err next_segment(sl_log *log)
{
    sl_file *file = NULL;
    sl_err err;

    sl_log_turn(log);
    if (log->err != SL_OK || (!log->sync_by_os && sl_log_sync_now(log) != SL_OK))
        return SL_ERR_STORE_FAILED;
    sl_log_spare_ask(log);
    err = sl_log_spare_take(log, &file);
    if (err == SL_OK)
        err = sl_log_add_segment(log, file, last_segment(log)->number + 1);
    if (err == SL_OK)
        sl_log_spare_ask(log);
    return err;
}

static sl_err reserve(sl_log *log, size_t bytes)
{
    size_t capacity = log->gathered_capacity == 0 ? 1 << 20 : log->gathered_capacity;
    uint8_t *more;

    while (capacity < log->gathered_bytes + bytes)
        capacity *= 2;
    if (capacity == log->gathered_capacity)
        return SL_OK;
    more = realloc(log->gathered, capacity);
    if (more == NULL)
        return SL_ERR_NOMEM;
    log->gathered = more;
    log->gathered_capacity = capacity;
    return SL_OK;
}

static sl_err make_place(sl_log *log, size_t frame_bytes, bool urgent)
{
    if (log->err != SL_OK)
        return log->err;
    if (frame_bytes > log->segment_bytes - SL_SEGMENT_HEADER_BYTES || frame_bytes > UINT32_MAX)
        return SL_ERR_TOO_LARGE;
    if (!urgent && is_reserved(log, frame_bytes)) {
        sl_log_spare_ask(log);
        return SL_ERR_NO_SPACE;
    }
    return fits(log, frame_bytes) ? SL_OK : next_segment(log);
}

sl_err sl_log_begin(sl_log *log, size_t record_bytes, bool urgent)
{
    const size_t frame_bytes = SL_FRAME_HEADER_BYTES + record_bytes;
    sl_err err = make_place(log, frame_bytes, urgent);

    assert(log->frame.size == 0 && record_bytes > 0 && record_bytes % 8 == 0);
    if (err == SL_OK)
        err = reserve(log, frame_bytes);
    if (err != SL_OK)
        return err;
    log->frame = (frame){ .at = log->gathered_bytes,
                          .used = SL_FRAME_HEADER_BYTES,
                          .size = frame_bytes,
                          .first_position = log->next };
    return SL_OK;
}

static void finish_record(sl_log *log)
{
    frame *const f = &log->frame;
    uint8_t *const at = log->gathered + f->at + f->open_record;

    if (f->open_record == 0)
        return;
    f->used += sl_record_finish(at, f->first_position + f->records, (uint8_t)f->open_kind,
                                f->open_payload_bytes, last_segment(log)->seed);
    f->records++;
    f->open_record = 0;
}

uint8_t *sl_log_record(sl_log *log, sl_record_kind kind, uint32_t payload_bytes, uint64_t *ret_position)
{
    frame *const f = &log->frame;

    assert(f->size != 0);
    finish_record(log);
    assert(f->used + sl_record_size(payload_bytes) <= f->size);
    f->open_record = f->used;
    f->open_kind = kind;
    f->open_payload_bytes = payload_bytes;
    *ret_position = f->first_position + f->records;
    return log->gathered + f->at + f->used + SL_RECORD_HEADER_BYTES;
}

uint64_t sl_log_end(sl_log *log)
{
    frame *const f = &log->frame;
    segment *const last = last_segment(log);

    finish_record(log);
    assert(f->used == f->size && f->records > 0);
    sl_frame_header_put(&(sl_frame_header){ .bytes = (uint32_t)f->size,
                                            .record_count = f->records,
                                            .first_position = f->first_position,
                                            .durable_below = log->durable,
                                            .epoch = log->epoch },
                        last->seed, log->gathered + f->at);
    log->gathered_bytes += f->size;
    log->next += f->records;
    last->used_bytes += f->size;
    last->end = log->next;
    log->waiting++;
    *f = (frame){ 0 };
    return log->next;
}

/* --- writing --- */

void sl_log_turn(sl_log *log)
{
    assert(log->frame.size == 0);
    if (log->gathered_bytes == 0 || log->err != SL_OK)
        return;
    if (log->disk->ops->write(last_segment(log)->file, log->written_bytes, log->gathered,
                              log->gathered_bytes) != SL_OK) {
        sl_log_fail(log);
        return;
    }
    log->written_bytes += log->gathered_bytes;
    log->gathered_bytes = 0;
    log->written = log->next;
}

int sl_log_wait_fd(const sl_log *log)
{
    return log->wait_fd;
}

uint64_t sl_log_next(const sl_log *log)
{
    return log->next;
}

uint64_t sl_log_written(const sl_log *log)
{
    return log->written;
}

uint64_t sl_log_durable(const sl_log *log)
{
    return log->durable;
}

size_t sl_log_gathered(const sl_log *log)
{
    return log->gathered_bytes;
}

sl_err sl_log_err(const sl_log *log)
{
    return log->err;
}

/* --- reading --- */

uint32_t sl_log_segment_count(const sl_log *log)
{
    return log->segment_count;
}

void sl_log_segment(const sl_log *log, uint32_t index, sl_segment_view *ret_view)
{
    const segment *const s = &log->segments[index];
    const bool last = index + 1 == log->segment_count;

    *ret_view = (sl_segment_view){ .number = s->number,
                                   .first = s->first,
                                   .end = last ? log->written : s->end,
                                   .bytes = s->bytes,
                                   .used_bytes = last ? log->written_bytes : s->used_bytes,
                                   .seed = s->seed,
                                   .sealed = !last };
}

static sl_err visit_frame(const sl_segment_view *view, uint64_t offset, const sl_frame_header *header,
                          sl_log_visit_fn *visit, void *ctx)
{
    uint64_t at = offset + SL_FRAME_HEADER_BYTES;
    sl_err err = SL_OK;

    for (uint32_t i = 0; i < header->record_count && err == SL_OK; i++) {
        sl_record_view record;
        err = sl_record_get(view->bytes + at, view->used_bytes - at, view->seed, &record);
        if (err != SL_OK)
            break;
        err = visit(ctx, &record, (uint32_t)at);
        at += record.bytes;
    }
    return err;
}

sl_err sl_log_visit(const sl_segment_view *view, sl_log_visit_fn *visit, void *ctx, uint64_t *ret_offset)
{
    uint64_t offset = SL_SEGMENT_HEADER_BYTES;
    uint64_t position = view->first;
    sl_err err = SL_OK;

    while (position < view->end && err == SL_OK) {
        sl_frame_header header;
        err = sl_frame_check(view->bytes + offset, view->used_bytes - offset, view->seed, &header);
        if (err == SL_OK && header.first_position != position)
            err = SL_ERR_CORRUPT;
        *ret_offset = offset;
        if (err == SL_OK)
            err = visit_frame(view, offset, &header, visit, ctx);
        if (err == SL_OK) {
            position += header.record_count;
            offset += header.bytes;
        }
    }
    return err;
}
