/* store/journal/scan.c — a window that moves over a segment. */
#include "store/journal/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_BYTES = 1 << 20 /* at least; larger reads gain nothing */
};

void sl_scan_init(sl_scan *scan, sl_file *file, uint32_t seed, uint64_t size_bytes)
{
    *scan =
        (sl_scan){ .file = file, .seed = seed, .offset = SL_SEGMENT_HEADER_BYTES, .size_bytes = size_bytes };
}

void sl_scan_done(sl_scan *scan)
{
    free(scan->window);
    scan->window = NULL;
    scan->window_bytes = scan->window_capacity = 0;
}

static sl_err window_grow(sl_scan *scan, size_t bytes)
{
    const size_t capacity = bytes < WINDOW_BYTES ? WINDOW_BYTES : bytes;
    uint8_t *larger;

    if (capacity <= scan->window_capacity)
        return SL_OK;
    larger = realloc(scan->window, capacity);
    if (larger == NULL)
        return SL_ERR_NOMEM;
    scan->window = larger;
    scan->window_capacity = capacity;
    return SL_OK;
}

/* What the window has of the new place already is moved to its front. */
static sl_err window_move(sl_scan *scan, uint64_t offset, size_t bytes)
{
    const uint64_t old_end = scan->window_at + scan->window_bytes;
    const size_t kept = offset >= scan->window_at && offset < old_end ? (size_t)(old_end - offset) : 0;
    uint64_t wanted;
    sl_err err = window_grow(scan, bytes);

    if (err != SL_OK)
        return err;
    wanted = scan->size_bytes - offset;
    if (wanted > scan->window_capacity)
        wanted = scan->window_capacity;
    if (kept > 0)
        memmove(scan->window, scan->window + (offset - scan->window_at), kept);
    scan->window_at = offset;
    scan->window_bytes = kept;
    err = scan->file->disk->ops->read(scan->file, offset + kept, scan->window + kept, (size_t)wanted - kept);
    if (err == SL_OK)
        scan->window_bytes = (size_t)wanted;
    return err;
}

sl_err sl_scan_bytes(sl_scan *scan, uint64_t offset, size_t bytes, const uint8_t **ret_bytes)
{
    assert(offset + bytes <= scan->size_bytes);
    if (offset < scan->window_at || offset + bytes > scan->window_at + scan->window_bytes) {
        const sl_err err = window_move(scan, offset, bytes);
        if (err != SL_OK)
            return err;
    }
    *ret_bytes = scan->window + (offset - scan->window_at);
    return SL_OK;
}

/* How many bytes the frame at the offset says it has. */
static sl_err frame_size(sl_scan *scan, uint32_t *ret_bytes)
{
    const uint64_t left = scan->size_bytes - scan->offset;
    const uint8_t *at;
    sl_frame_header header;
    sl_err err;

    if (left < SL_FRAME_HEADER_BYTES)
        return SL_ERR_CORRUPT;
    err = sl_scan_bytes(scan, scan->offset, SL_FRAME_HEADER_BYTES, &at);
    if (err == SL_OK)
        err = sl_frame_header_get(at, SL_FRAME_HEADER_BYTES, scan->seed, &header);
    if (err != SL_OK)
        return err;
    if (header.bytes > left)
        return SL_ERR_CORRUPT;
    *ret_bytes = header.bytes;
    return SL_OK;
}

sl_err sl_scan_frame(sl_scan *scan, sl_frame_view *ret_frame)
{
    sl_frame_view frame = { .offset = scan->offset };
    uint32_t bytes = 0;
    sl_err err = frame_size(scan, &bytes);

    if (err == SL_OK)
        err = sl_scan_bytes(scan, scan->offset, bytes, &frame.bytes);
    if (err == SL_OK)
        err = sl_frame_check(frame.bytes, bytes, scan->seed, &frame.header, &frame.end);
    if (err != SL_OK)
        return err;
    scan->offset += bytes;
    *ret_frame = frame;
    return SL_OK;
}

sl_err sl_frame_each(const sl_frame_view *frame, sl_record_fn *visit, void *ctx)
{
    const uint32_t frame_end = (uint32_t)(frame->offset + frame->header.bytes);
    uint32_t offset = SL_FRAME_HEADER_BYTES;
    sl_err err = SL_OK;

    while (offset < frame->header.bytes && err == SL_OK) {
        const sl_record_view record = sl_record_peek(frame->bytes + offset);

        err = visit(ctx, &record, (sl_record_place){ (uint32_t)frame->offset + offset, frame_end });
        offset += record.bytes;
    }
    return err;
}

/* Of a rewritten segment the last record may be gone: it ends with its file. */
static bool at_end(const sl_segment_ref *segment, const sl_scan *scan, uint64_t next)
{
    return segment->rewrites > 0 ? scan->offset == segment->size_bytes : next >= segment->end;
}

static bool comes_next(const sl_segment_ref *segment, const sl_frame_view *frame, uint64_t next)
{
    if (frame->end > segment->end)
        return false;
    return frame->header.sparse ? segment->rewrites > 0 && frame->header.first_position >= next
                                : frame->header.first_position == next;
}

sl_err sl_segment_each_frame(const sl_segment_ref *segment, sl_frame_fn *visit, void *ctx,
                             uint64_t *ret_offset)
{
    uint64_t next = segment->first;
    sl_err err = SL_OK;
    sl_scan scan;

    sl_scan_init(&scan, segment->file, segment->seed, segment->size_bytes);
    while (err == SL_OK && !at_end(segment, &scan, next)) {
        sl_frame_view frame;

        *ret_offset = scan.offset;
        err = sl_scan_frame(&scan, &frame);
        if (err == SL_OK && !comes_next(segment, &frame, next))
            err = SL_ERR_CORRUPT;
        if (err == SL_OK) {
            err = visit(ctx, &frame);
            next = frame.end;
        }
    }
    sl_scan_done(&scan);
    return err;
}

typedef struct record_visit {
    sl_record_fn *visit;
    void *ctx;
} record_visit;

static sl_err visit_frame(void *ctx, const sl_frame_view *frame)
{
    const record_visit *const each = ctx;

    return sl_frame_each(frame, each->visit, each->ctx);
}

sl_err sl_segment_each(const sl_segment_ref *segment, sl_record_fn *visit, void *ctx, uint64_t *ret_offset)
{
    record_visit each = { visit, ctx };

    return sl_segment_each_frame(segment, visit_frame, &each, ret_offset);
}
