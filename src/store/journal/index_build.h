/* store/journal/index_build.h — an index in the making: fed with every record of a segment, then written.
 *
 *      init --> record ... --> finish --> write or compare --> done
 *
 * Memory: 16 bytes for each event and again as much while they are sorted, 16 for every 64th record, the sieve. */
#ifndef SL_STORE_JOURNAL_INDEX_BUILD_H
#define SL_STORE_JOURNAL_INDEX_BUILD_H

#include "store/journal/index_format.h"

typedef struct sl_index_builder {
    const sl_segment_ref *segment;
    uint64_t record_count;
    sl_index_entry *entries; /* in the order of the segment, from finish on in that of the file */
    size_t entry_count, entry_capacity;
    sl_index_place *places;
    size_t place_count, place_capacity;
    uint8_t *sieve;
    uint32_t sieve_bytes;
} sl_index_builder;

/* The segment must live as long as the builder. */
void sl_index_builder_init(sl_index_builder *builder, const sl_segment_ref *segment);
void sl_index_builder_done(sl_index_builder *builder);

/* Every record of the segment, in order; and then, if it is an event, what it says. SL_OK or SL_ERR_NOMEM. */
sl_err sl_index_builder_record(sl_index_builder *builder, uint64_t position, sl_record_place place);
sl_err sl_index_builder_event(sl_index_builder *builder, uint64_t stream_hash, uint64_t revision,
                              uint32_t offset);

/* Sorts, and makes the sieve. SL_OK or SL_ERR_NOMEM. */
sl_err sl_index_builder_finish(sl_index_builder *builder);

/* Writes the file. SL_OK, SL_ERR_IO, SL_ERR_NO_SPACE, SL_ERR_NOMEM. */
sl_err sl_index_builder_write(const sl_index_builder *builder, sl_disk *disk);

/* Holds a file against what would be written. SL_OK, SL_ERR_CORRUPT (*ret_offset: the block that differs), SL_ERR_IO. */
sl_err sl_index_builder_compare(const sl_index_builder *builder, sl_file *file, uint64_t *ret_offset);

#endif
