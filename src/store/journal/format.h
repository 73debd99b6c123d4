/* store/journal/format.h — the bytes of a segment. docs/JOURNAL.md says the same for strangers.
 *
 *      segment   header block (4096) | frame | frame | ... | zeros or what a crash left behind
 *      frame     header (48) | record | record | ...          one batch: all of it counts, or nothing
 *      record    header (24) | payload | zeros to the next multiple of 8
 *
 * Little-endian. Everything begins at a multiple of 8. Each checksum begins with the segment's seed (store and segment
 * number), so that blocks of other files, which a crash may leave in this one, can not be taken for its own; a frame
 * carries the epoch of the process that wrote it, which never goes down, for what an earlier life left behind.
 *
 * `durable_below` is how the end of the log is told from damage: a frame names the position below which everything
 * was synced when it was written. A frame that can not be read and lies below what a later one calls durable is
 * damage; above that, it is what a crash may leave, and is cut. */
#ifndef SL_STORE_JOURNAL_FORMAT_H
#define SL_STORE_JOURNAL_FORMAT_H

#include "base/err.h"
#include "base/little.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_SEGMENT_HEADER_BYTES = 4096,
    SL_FRAME_HEADER_BYTES = 48,
    SL_RECORD_HEADER_BYTES = 24,
    SL_JOURNAL_VERSION = 1,
};

typedef struct sl_segment_header {
    uint32_t version;
    uint64_t number;        /* of the segment, from 1 on */
    uint64_t segment_bytes; /* size of the file */
    sl_uuid store;          /* which store it belongs to */

    /* Of one that was rewritten to free space, else 0. (Of others the first frame tells the first position: the header
     * is written before anybody knows it.) */
    uint64_t rewrites;    /* how often */
    uint64_t first, end;  /* positions: what is not there any more was between them */
    uint64_t groups_from; /* records of groups were left out: from this segment on they are complete */
} sl_segment_header;

typedef struct sl_frame_header {
    uint32_t bytes; /* of the whole frame */
    uint32_t record_count;
    uint64_t first_position;
    uint64_t durable_below;
    uint64_t epoch;
    bool sparse; /* rewritten: positions of its records grow, but with gaps */
} sl_frame_header;

/* What a record is about. The numbers are part of the format: add at the end, never reuse. */
typedef enum sl_record_kind {
    SL_RECORD_OPEN = 1,  /* a process opened the journal; nothing in it */
    SL_RECORD_CLOSE = 2, /* and closed it in order */
    SL_RECORD_EVENT = 3, /* this and the following: records.h */
    SL_RECORD_GROUP_CREATE = 4,
    SL_RECORD_GROUP_DELETE = 5,
    SL_RECORD_GROUP = 6,
    SL_RECORD_GROUP_STATE = 7, /* a part of a snapshot of one group */
    SL_RECORD_GROUPS_FROM = 8, /* records of groups before this segment are not needed any more */
    SL_RECORD_GROUP_UPDATE = 9,
} sl_record_kind;

typedef struct sl_record_view {
    uint64_t position;
    uint8_t kind;
    const uint8_t *payload;
    uint32_t payload_bytes;
    uint32_t bytes; /* of the whole record */
} sl_record_view;

static inline size_t sl_align8(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static inline size_t sl_record_size(size_t payload_bytes)
{
    return SL_RECORD_HEADER_BYTES + sl_align8(payload_bytes);
}

/* Where all checksums of a segment begin. */
uint32_t sl_segment_seed(sl_uuid store, uint64_t number);

void sl_segment_header_put(const sl_segment_header *header, uint8_t block[SL_SEGMENT_HEADER_BYTES]);

/* SL_OK, SL_ERR_VERSION (another one, *ret_header has it), SL_ERR_CORRUPT. */
sl_err sl_segment_header_get(const uint8_t block[SL_SEGMENT_HEADER_BYTES], sl_segment_header *ret_header);

void sl_frame_header_put(const sl_frame_header *header, uint32_t seed, uint8_t *at);

/* SL_OK or SL_ERR_CORRUPT. Only the header is looked at. */
sl_err sl_frame_header_get(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_frame_header *ret_header);

/* Completes a record whose payload stands at `at + SL_RECORD_HEADER_BYTES` already: header, padding, checksum.
 * Returns its size. */
size_t sl_record_finish(uint8_t *at, uint64_t position, uint8_t kind, uint32_t payload_bytes, uint32_t seed);

/* SL_OK or SL_ERR_CORRUPT; the view points into the bytes. */
sl_err sl_record_get(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_record_view *ret_view);

/* The same for one whose checksum was looked at before. */
sl_record_view sl_record_peek(const uint8_t *at);

/* Header and every record of the frame are as they should be: checksums, positions in sequence, sizes that add up.
 * *ret_end is the position after its last record. */
sl_err sl_frame_check(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_frame_header *ret_header,
                      uint64_t *ret_end);

#endif
