/* store/journal/scan.h — reading a segment from its beginning to its end, frame by frame.
 *
 * For opening, sealing, verifying and rewriting: whoever needs every record. Bytes come through a window that is as
 * large as the largest frame at most, so a segment is never in memory as a whole. Reads may wait for the disk. */
#ifndef SL_STORE_JOURNAL_SCAN_H
#define SL_STORE_JOURNAL_SCAN_H

#include "store/journal/disk.h"
#include "store/journal/format.h"

/* A segment whose end is known. */
typedef struct sl_segment_ref {
    sl_file *file;
    sl_uuid store;
    uint64_t number, rewrites;
    uint64_t first, end; /* positions */
    uint64_t size_bytes; /* of the file */
    uint32_t seed;       /* sl_segment_seed() */
} sl_segment_ref;

typedef struct sl_scan {
    sl_file *file;
    uint32_t seed;
    uint64_t offset;     /* of the next frame */
    uint64_t size_bytes; /* nothing is read behind this */
    uint8_t *window;
    uint64_t window_at;
    size_t window_bytes, window_capacity;
} sl_scan;

typedef struct sl_frame_view {
    sl_frame_header header;
    uint64_t end;         /* position after its last record */
    uint64_t offset;      /* in the segment */
    const uint8_t *bytes; /* header.bytes of them; until the next call */
} sl_frame_view;

/* Begins at the first frame. Takes no memory yet. */
void sl_scan_init(sl_scan *scan, sl_file *file, uint32_t seed, uint64_t size_bytes);
void sl_scan_done(sl_scan *scan);

/* The next frame, checked as a whole.
 *   SL_OK
 *   SL_ERR_CORRUPT   what stands at scan->offset is no frame: the end of the log, or damage
 *   SL_ERR_IO, SL_ERR_NOMEM */
sl_err sl_scan_frame(sl_scan *scan, sl_frame_view *ret_frame);

/* Bytes of the segment at any offset, as many as asked for, through the same window. SL_OK, SL_ERR_IO, SL_ERR_NOMEM. */
sl_err sl_scan_bytes(sl_scan *scan, uint64_t offset, size_t bytes, const uint8_t **ret_bytes);

typedef struct sl_record_place {
    uint32_t offset;    /* of the record in its segment */
    uint32_t frame_end; /* offset of what follows its frame */
} sl_record_place;

/* Gives the first error of visit. */
typedef sl_err sl_record_fn(void *ctx, const sl_record_view *record, sl_record_place place);
sl_err sl_frame_each(const sl_frame_view *frame, sl_record_fn *visit, void *ctx);

/* All frames of a segment, in order; the same codes as the next one. */
typedef sl_err sl_frame_fn(void *ctx, const sl_frame_view *frame);
sl_err sl_segment_each_frame(const sl_segment_ref *segment, sl_frame_fn *visit, void *ctx,
                             uint64_t *ret_offset);

/* All records of a segment, in order. Gives the first error of visit, SL_ERR_IO, SL_ERR_NOMEM, or SL_ERR_CORRUPT when
 * something is damaged or missing; *ret_offset is where it stopped. */
sl_err sl_segment_each(const sl_segment_ref *segment, sl_record_fn *visit, void *ctx, uint64_t *ret_offset);

#endif
