/* store/journal/index_format.h — the bytes of an index file, for those who read it and those who write it.
 *
 *      block 0   header: cache_file.h, positions, and for each section how many items it has and where it begins
 *      then      entries | fences | places | sieve      in blocks of 4092 bytes of items and 4 of checksum
 *
 * An item never crosses the end of a block, the blocks of a section follow each other, the sections as well: so counts
 * decide everything, and what the header says can be held against the size of the file before any of it is believed. */
#ifndef SL_STORE_JOURNAL_INDEX_FORMAT_H
#define SL_STORE_JOURNAL_INDEX_FORMAT_H

#include "store/journal/cache_file.h"
#include "store/journal/index.h"

enum {
    SL_INDEX_VERSION = 1,
    SL_INDEX_ITEMS_BYTES = SL_INDEX_BLOCK_BYTES - 4, /* of a block, then its checksum */
};

#define SL_INDEX_SUFFIX "idx"

typedef enum sl_index_section {
    SL_INDEX_ENTRIES, /* revision 8, hash 4, offset 4 */
    SL_INDEX_FENCES,  /* revision 8, hash 4: of the first entry of each block of entries */
    SL_INDEX_PLACES,  /* position 8, offset 4, end of the frame 4 */
    SL_INDEX_SIEVE,   /* bytes: a power of two of them, or none at all */
    SL_INDEX_SECTION_COUNT_
} sl_index_section;

typedef struct sl_index_extent {
    uint32_t count; /* items */
    uint32_t block; /* number of the first block */
} sl_index_extent;

typedef struct sl_index_header {
    sl_cache_id id;
    uint64_t first, end; /* positions of the segment */
    sl_index_extent sections[SL_INDEX_SECTION_COUNT_];
    uint32_t block_count; /* of the file; not stored: it follows from the sections */
} sl_index_header;

/* How large an item is, and how many of them a block holds. */
uint32_t sl_index_item_bytes(sl_index_section section);
uint32_t sl_index_block_items(sl_index_section section);

/* The id of the index that belongs to this version of the segment. */
sl_cache_id sl_index_id(const sl_segment_ref *segment);

/* Sets where each section begins, and the number of blocks, from the counts. False: more than a file can have. */
bool sl_index_arrange(sl_index_header *header);

void sl_index_header_put(const sl_index_header *header, uint8_t block[SL_INDEX_BLOCK_BYTES]);

/* SL_OK, SL_ERR_VERSION, SL_ERR_CORRUPT: damaged, or not what a file of so many bytes can hold. */
sl_err sl_index_header_get(const uint8_t block[SL_INDEX_BLOCK_BYTES], uint64_t file_bytes,
                           sl_index_header *ret_header);

void sl_index_block_seal(uint8_t block[SL_INDEX_BLOCK_BYTES], uint32_t seed, uint64_t number);
bool sl_index_block_is_right(const uint8_t block[SL_INDEX_BLOCK_BYTES], uint32_t seed, uint64_t number);

void sl_index_entry_put(const sl_index_entry *entry, uint8_t *at);
sl_index_entry sl_index_entry_get(const uint8_t *at);

/* The two bits of a sieve of so many bytes that stand for a stream. */
void sl_index_sieve_bits(uint32_t hash, uint32_t sieve_bytes, uint32_t ret_bits[2]);

#endif
