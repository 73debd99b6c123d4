/* tests/unit/journal/made_segment.h — a segment made record by record, and a list of the events in it to hold against what
 * is read from files that are made from it. */
#ifndef SL_TESTS_UNIT_JOURNAL_MADE_SEGMENT_H
#define SL_TESTS_UNIT_JOURNAL_MADE_SEGMENT_H

#include "store/journal/records.h"
#include "store/journal/scan.h"

typedef struct made_record {
    uint64_t position;
    sl_record_place place;
    bool is_event;
    uint64_t hash, revision; /* of an event */
    size_t stream;           /* the caller's number for it */
} made_record;

typedef struct made_segment {
    sl_segment_ref ref;
    uint8_t *bytes;
    size_t used, capacity;
    size_t frame_at; /* 0: no frame is open */
    uint64_t frame_first;
    made_record *records;
    size_t record_count, record_capacity;
} made_segment;

sl_uuid made_store(void); /* the store of all of them */

/* `rewrites` above 0 makes its frames sparse, so that positions may be skipped by moving ref.end. */
void made_init(made_segment *made, uint64_t number, uint64_t first, uint64_t rewrites);
void made_done(made_segment *made); /* also closes the file */

void made_event(made_segment *made, size_t stream, sl_str name, uint64_t revision, sl_str data);
void made_other(made_segment *made); /* a record that is no event */
void made_end_frame(made_segment *made);

/* Writes it to the disk and opens the file; ref is complete then. */
void made_write(made_segment *made, sl_disk *disk);

#endif
