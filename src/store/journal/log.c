/* store/journal/log.c — building and writing frames, and going on to the next segment. */
#include "store/journal/log_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GATHERED_FIRST_BYTES = 1 << 20,
    GATHERED_KEPT_BYTES = 4 << 20
};

void sl_log_wake(sl_log *log)
{
    const uint64_t one = 1;

    if (write(log->wait_fd, &one, sizeof one) < 0) {
        /* The counter is full: then it is readable, and that is all that is wanted. */
    }
}

void sl_log_fail(sl_log *log)
{
    log->err = SL_ERR_STORE_FAILED;
    sl_log_wake(log);
}

static sl_err segments_reserve(sl_log *log)
{
    const uint32_t capacity = log->segment_capacity == 0 ? 16 : 2 * log->segment_capacity;
    segment *more;

    if (log->segment_count < log->segment_capacity)
        return SL_OK;
    more = realloc(log->segments, capacity * sizeof *more);
    if (more == NULL)
        return SL_ERR_NOMEM;
    log->segments = more;
    log->segment_capacity = capacity;
    return SL_OK;
}

sl_err sl_log_add_segment(sl_log *log, sl_file *file, const sl_segment_header *header)
{
    const uint64_t first = log->segment_count == 0 ? log->next : last_segment(log)->end;

    if (segments_reserve(log) != SL_OK)
        return SL_ERR_NOMEM;
    log->segments[log->segment_count++] = (segment){ .file = file,
                                                     .number = header->number,
                                                     .first = first,
                                                     .end = first,
                                                     .size_bytes = log->disk->ops->size(file),
                                                     .used_bytes = SL_SEGMENT_HEADER_BYTES,
                                                     .seed = sl_segment_seed(log->store, header->number) };
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

sl_room sl_log_room(sl_log *log)
{
    const segment *const last = last_segment(log);
    const uint64_t left = last->size_bytes - last->used_bytes, reserve = last->size_bytes >> RESERVE_SHIFT;

    if (left >= reserve + (last->size_bytes >> NEARLY_SHIFT) || !sl_log_spare_failed(log))
        return SL_ROOM_ENOUGH;
    sl_log_spare_ask(log);
    return left < reserve / 2 ? SL_ROOM_LAST : SL_ROOM_SETTLING;
}

/* What is in the old segment becomes durable before anything stands in the new one: then only the last segment of a
 * log can have a torn end. */
static sl_err next_segment(sl_log *log)
{
    const sl_segment_header header = { .number = last_segment(log)->number + 1 };
    sl_file *file = NULL;
    sl_err err;

    sl_log_turn(log);
    if (log->err != SL_OK || sl_log_flush(log) != SL_OK)
        return SL_ERR_STORE_FAILED;
    sl_log_spare_ask(log);
    err = sl_log_spare_take(log, &file);
    if (err != SL_OK)
        return err;
    err = sl_log_add_segment(log, file, &header);
    if (err == SL_OK)
        sl_log_spare_ask(log);
    else
        log->disk->ops->close(file); /* it is there, empty, and made again at the next start */
    return err;
}

static sl_err reserve(sl_log *log, size_t bytes)
{
    size_t capacity = log->gathered_capacity == 0 ? GATHERED_FIRST_BYTES : log->gathered_capacity;
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

size_t sl_log_frame_max(const sl_log *log)
{
    return log->segment_bytes - SL_SEGMENT_HEADER_BYTES - SL_FRAME_HEADER_BYTES;
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

uint8_t *sl_log_record(sl_log *log, sl_record_kind kind, uint32_t payload_bytes, sl_log_place *ret_place)
{
    frame *const f = &log->frame;

    assert(f->size != 0);
    finish_record(log);
    if (sl_record_size(payload_bytes) > f->size - f->used)
        return NULL;
    f->open_record = f->used;
    f->open_kind = kind;
    f->open_payload_bytes = payload_bytes;
    *ret_place =
        (sl_log_place){ f->first_position + f->records, (uint32_t)(last_segment(log)->used_bytes + f->used) };
    return log->gathered + f->at + f->used + SL_RECORD_HEADER_BYTES;
}

uint64_t sl_log_end(sl_log *log)
{
    frame *const f = &log->frame;
    segment *const last = last_segment(log);

    finish_record(log);
    assert(f->records > 0);
    sl_frame_header_put(&(sl_frame_header){ .bytes = (uint32_t)f->used,
                                            .record_count = f->records,
                                            .first_position = f->first_position,
                                            .durable_below = log->durable,
                                            .epoch = log->epoch },
                        last->seed, log->gathered + f->at);
    log->gathered_bytes += f->used;
    log->next += f->records;
    last->used_bytes += f->used;
    last->end = log->next;
    log->waiting++;
    *f = (frame){ 0 };
    return log->next;
}

void sl_log_abort(sl_log *log)
{
    log->frame = (frame){ 0 };
}

const uint8_t *sl_log_peek(sl_log *log, uint32_t offset)
{
    if (offset < log->written_bytes)
        return NULL;
    if (log->frame.size != 0)
        finish_record(log);
    return log->gathered + (offset - log->written_bytes);
}

/* --- writing --- */

/* One large batch is no reason to keep its memory. */
static void shrink(sl_log *log)
{
    if (log->gathered_capacity <= GATHERED_KEPT_BYTES)
        return;
    free(log->gathered);
    log->gathered = NULL;
    log->gathered_capacity = 0;
}

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
    atomic_store_explicit(&log->spare.used_bytes, log->written_bytes, memory_order_relaxed);
    log->gathered_bytes = 0;
    log->written = log->next;
    shrink(log);
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
    return log->shown > log->durable ? log->shown : log->durable;
}

uint64_t sl_log_synced(const sl_log *log)
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

void sl_log_segment(const sl_log *log, uint32_t index, sl_segment_ref *ret_segment)
{
    const segment *const s = &log->segments[index];
    const bool last = index + 1 == log->segment_count;

    *ret_segment = (sl_segment_ref){ .file = s->file,
                                     .store = log->store,
                                     .number = s->number,
                                     .rewrites = s->rewrites,
                                     .first = s->first,
                                     .end = last ? log->written : s->end,
                                     .size_bytes = s->size_bytes,
                                     .seed = s->seed };
}

uint64_t sl_log_written_bytes(const sl_log *log)
{
    return log->written_bytes;
}

sl_uuid sl_log_store(const sl_log *log)
{
    return log->store;
}

sl_file *sl_log_replace(sl_log *log, uint32_t index, sl_file *file, const sl_segment_header *header)
{
    segment *const s = &log->segments[index];
    sl_file *const old = s->file;

    assert(index + 1 < log->segment_count && header->number == s->number);
    s->file = file;
    s->rewrites = header->rewrites;
    s->size_bytes = s->used_bytes = header->segment_bytes;
    return old;
}
