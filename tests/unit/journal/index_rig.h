/* tests/unit/journal/index_rig.h — a disk, a segment on it, its index: what the tests of index files share. */
#ifndef SL_TESTS_UNIT_JOURNAL_INDEX_RIG_H
#define SL_TESTS_UNIT_JOURNAL_INDEX_RIG_H

#include "base/support.h"
#include "made_segment.h"
#include "store/faulty/faulty.h"
#include "store/journal/index.h"

enum {
    FOUND_MAX = 8192
};

#define RIG_NUMBER  UINT64_C(0x2a)
#define RIG_INDEX   "000000000000002a.idx"
#define RIG_SEGMENT "000000000000002a.seg"

typedef struct rig {
    sl_faulty *faulty;
    sl_disk *disk;
    made_segment made;
    sl_index *index;
} rig;

void rig_begin(rig *r, uint64_t rewrites);
void rig_build(rig *r); /* the segment is written, its index made and opened */
void rig_end(rig *r);

sl_str rig_name(size_t stream, char memory[24]);

/* So many events of so many streams in a random order, with records of other kinds between them. */
void rig_fill(rig *r, dice *d, size_t stream_count, size_t event_count);

/* Reads a block from the disk each time. */
typedef struct plain_reader {
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    uint64_t reads;
    bool must_not_wait;
} plain_reader;

sl_err rig_read(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block);
sl_err rig_find(const sl_index *index, const sl_index_query *query, sl_index_entry *entries, uint32_t max,
                uint32_t *ret_count);

/* Opens the index and looks for everything: the first error. */
sl_err rig_look_at_everything(rig *r);

#endif
