/* store/journal/index_format.c — header and blocks of an index file. Offsets stand in one table for each. */
#include "store/journal/index_format.h"

#include "store/journal/format.h"

#include <assert.h>
#include <string.h>

static const char index_kind[8] = { 'S', 'l', 'u', 'i', 'c', 'e', 'I', '\n' };

enum { /* block 0, behind the id */
    INDEX_FIRST = SL_CACHE_ID_BYTES,
    INDEX_END = INDEX_FIRST + 8,
    INDEX_SECTIONS = INDEX_END + 8, /* for each: count 4, block 4 */
};

enum { /* an entry; a fence is its first twelve bytes */
    ENTRY_REVISION = 0,
    ENTRY_HASH = 8,
    ENTRY_OFFSET = 12,
};

static const uint32_t item_bytes[] = {
    [SL_INDEX_ENTRIES] = 16,
    [SL_INDEX_FENCES] = 12,
    [SL_INDEX_PLACES] = 16,
    [SL_INDEX_SIEVE] = 1,
};
static_assert(sizeof item_bytes / sizeof item_bytes[0] == SL_INDEX_SECTION_COUNT_, "a size for each section");
static_assert((int)SL_INDEX_BLOCK_BYTES == (int)SL_CACHE_BLOCK_BYTES, "block 0 is a block");

uint32_t sl_index_item_bytes(sl_index_section section)
{
    return item_bytes[section];
}

uint32_t sl_index_block_items(sl_index_section section)
{
    return SL_INDEX_ITEMS_BYTES / item_bytes[section];
}

sl_cache_id sl_index_id(const sl_segment_ref *segment)
{
    sl_cache_id id = { .version = SL_INDEX_VERSION,
                       .store = segment->store,
                       .about = { segment->number, segment->rewrites } };

    memcpy(id.kind, index_kind, sizeof id.kind);
    return id;
}

static uint32_t blocks_of(sl_index_section section, uint32_t count)
{
    const uint32_t per_block = sl_index_block_items(section);

    return count / per_block + (count % per_block != 0);
}

bool sl_index_arrange(sl_index_header *header)
{
    uint64_t next = 1;

    for (sl_index_section section = 0; section < SL_INDEX_SECTION_COUNT_; section++) {
        header->sections[section].block = (uint32_t)next;
        next += blocks_of(section, header->sections[section].count);
        if (next > UINT32_MAX)
            return false;
    }
    header->block_count = (uint32_t)next;
    return true;
}

void sl_index_header_put(const sl_index_header *header, uint8_t block[SL_INDEX_BLOCK_BYTES])
{
    memset(block, 0, SL_INDEX_BLOCK_BYTES);
    sl_put_u64(block + INDEX_FIRST, header->first);
    sl_put_u64(block + INDEX_END, header->end);
    for (unsigned i = 0; i < SL_INDEX_SECTION_COUNT_; i++) {
        sl_put_u32(block + INDEX_SECTIONS + 8 * i, header->sections[i].count);
        sl_put_u32(block + INDEX_SECTIONS + 8 * i + 4, header->sections[i].block);
    }
    sl_cache_header_put(&header->id, block);
}

/* Each section where the one before it ends, a fence for each block of entries, and the file ends with the last one. */
static bool adds_up(const sl_index_header *said, uint64_t file_bytes)
{
    const uint32_t sieve_bytes = said->sections[SL_INDEX_SIEVE].count;
    sl_index_header right = *said;

    if (!sl_index_arrange(&right) || memcmp(right.sections, said->sections, sizeof right.sections) != 0)
        return false;
    if (said->sections[SL_INDEX_FENCES].count !=
        blocks_of(SL_INDEX_ENTRIES, said->sections[SL_INDEX_ENTRIES].count))
        return false;
    if ((sieve_bytes & (sieve_bytes - 1)) != 0)
        return false;
    return (uint64_t)right.block_count * SL_INDEX_BLOCK_BYTES == file_bytes;
}

sl_err sl_index_header_get(const uint8_t block[SL_INDEX_BLOCK_BYTES], uint64_t file_bytes,
                           sl_index_header *ret_header)
{
    sl_index_header header = { .first = sl_get_u64(block + INDEX_FIRST),
                               .end = sl_get_u64(block + INDEX_END) };
    const sl_err err = sl_cache_header_get(block, index_kind, SL_INDEX_VERSION, &header.id);

    if (err != SL_OK)
        return err;
    for (unsigned i = 0; i < SL_INDEX_SECTION_COUNT_; i++)
        header.sections[i] = (sl_index_extent){ .count = sl_get_u32(block + INDEX_SECTIONS + 8 * i),
                                                .block = sl_get_u32(block + INDEX_SECTIONS + 8 * i + 4) };
    if (!adds_up(&header, file_bytes))
        return SL_ERR_CORRUPT;
    (void)sl_index_arrange(&header); /* the block count */
    *ret_header = header;
    return SL_OK;
}

void sl_index_block_seal(uint8_t block[SL_INDEX_BLOCK_BYTES], uint32_t seed, uint64_t number)
{
    sl_put_u32(block + SL_INDEX_ITEMS_BYTES, sl_cache_crc(seed, number, block, SL_INDEX_ITEMS_BYTES));
}

bool sl_index_block_is_right(const uint8_t block[SL_INDEX_BLOCK_BYTES], uint32_t seed, uint64_t number)
{
    return sl_get_u32(block + SL_INDEX_ITEMS_BYTES) ==
           sl_cache_crc(seed, number, block, SL_INDEX_ITEMS_BYTES);
}

void sl_index_entry_put(const sl_index_entry *entry, uint8_t *at)
{
    sl_put_u64(at + ENTRY_REVISION, entry->revision);
    sl_put_u32(at + ENTRY_HASH, entry->hash);
    sl_put_u32(at + ENTRY_OFFSET, entry->offset);
}

sl_index_entry sl_index_entry_get(const uint8_t *at)
{
    return (sl_index_entry){ .revision = sl_get_u64(at + ENTRY_REVISION),
                             .hash = sl_get_u32(at + ENTRY_HASH),
                             .offset = sl_get_u32(at + ENTRY_OFFSET) };
}

/* The key itself and a multiplied one, so that the sieve can be made from the entries alone: the other half of the hash
 * would have to be kept for every event while an index is built, and would sieve no better. */
void sl_index_sieve_bits(uint32_t hash, uint32_t sieve_bytes, uint32_t ret_bits[2])
{
    const uint64_t mask = (uint64_t)sieve_bytes * 8 - 1;

    ret_bits[0] = (uint32_t)(hash & mask);
    ret_bits[1] = (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask);
}
