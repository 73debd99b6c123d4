/* store/journal/index.h — where the events of one sealed segment are: NNNNNNNNNNNNNNNN.idx.
 *
 *      by stream and revision   entries sorted by (hash, revision), in blocks of 4096 bytes that are read when needed
 *      by position              one place for every 64 records, all in memory
 *      is it here at all        a sieve over the streams of the segment, in memory: most segments are passed over
 *
 * An index is a cache: made from its segment, bound to that version of it (store, number, rewrites, positions), made anew
 * when it is missing or damaged. It never lies: every block has a checksum, and whoever follows an entry looks at the
 * record, because 32 bits of a hash are shared by several streams.
 *
 * In memory are, for each segment, the first key of each block, places and sieve: about 80 KB for 200,000 events in
 * 10,000 streams, 330 KB where each event is of another stream. Read-only once it is open: any thread. */
#ifndef SL_STORE_JOURNAL_INDEX_H
#define SL_STORE_JOURNAL_INDEX_H

#include "store/journal/scan.h"

typedef struct sl_index sl_index;

enum {
    SL_INDEX_BLOCK_BYTES = 4096,
    SL_INDEX_PLACE_EVERY = 64,
};

typedef struct sl_index_entry {
    uint64_t revision;
    uint32_t hash;   /* the low half of sl_stream_hash() */
    uint32_t offset; /* of the record */
} sl_index_entry;

typedef struct sl_index_place {
    uint64_t position;
    sl_record_place at;
} sl_index_place;

/* Reads the segment, writes the file under a passing name, syncs it, gives it its own name. Gives no index: open it.
 * SL_OK, SL_ERR_CORRUPT (the segment is; *ret_offset is where), SL_ERR_IO, SL_ERR_NO_SPACE, SL_ERR_NOMEM. */
sl_err sl_index_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset);

/* SL_OK, SL_ERR_NOT_FOUND, SL_ERR_CORRUPT (also: of another version of the segment), SL_ERR_VERSION, SL_ERR_IO, SL_ERR_NOMEM.
 * All but the last two: build it. */
sl_err sl_index_open(sl_disk *disk, const sl_segment_ref *segment, sl_index **ret_index);
void sl_index_close(sl_index *index);

sl_file *sl_index_file(const sl_index *index);

/* Removes the file of a segment's index, if there is one. Who has it open may go on reading. */
sl_err sl_index_remove(sl_disk *disk, uint64_t number);

/* The last place at or before a position; of the first record when the position is before that. False: no records. */
bool sl_index_place_of(const sl_index *index, uint64_t position, sl_index_place *ret_place);

/* False: the stream has no event in this segment. True: it may have one. */
bool sl_index_may_have(const sl_index *index, uint64_t stream_hash);

/* How the blocks of sl_index_find() are read: SL_INDEX_BLOCK_BYTES at an offset of sl_index_file(), good until the next
 * call. Whoever must not wait gives SL_ERR_AGAIN, and asks the same question again when the block is there: all blocks of
 * the answer are asked for again then, so those that were there should still be. */
typedef struct sl_block_reader {
    void *ctx;
    sl_err (*read)(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block);
} sl_block_reader;

/* Up to `max` entries with this hash, from one block or more, ascending from `revision` up, or with `backwards`
 * descending from `revision` down. Fewer than max: there are no more in this segment.
 * SL_OK (*ret_count may be 0), SL_ERR_CORRUPT (*ret_offset of the block in the file), and what read() gives. */
typedef struct sl_index_query {
    uint32_t hash;
    uint64_t revision;
    bool backwards;
} sl_index_query;
sl_err sl_index_find(const sl_index *index, const sl_index_query *query, const sl_block_reader *reader,
                     sl_index_entry *entries, uint32_t max, uint32_t *ret_count, uint64_t *ret_offset);

/* For `sluice journal verify`: reads the whole file and compares it with the segment, byte by byte. SL_OK, SL_ERR_NOT_FOUND,
 * SL_ERR_CORRUPT, SL_ERR_IO, SL_ERR_NOMEM; *ret_offset in the index file. That the segment itself is right must be known: if
 * it is not, this says SL_ERR_CORRUPT at 0. */
sl_err sl_index_verify(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset);

#endif
