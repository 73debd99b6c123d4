/* store/journal/index.c — an open index: what of it is in memory, and how an entry is found.
 *
 * Fences, places and sieve stand at the end of the file, so one read brings them into memory, where they stay in their
 * blocks, as they were on the disk: nothing is decoded until it is asked for, and opening costs a read and a checksum.
 *
 *      fences   (a,0)   (b,7)   (b,9)   (c,2)          forwards from (b,9): entries that are equal may begin in the block
 *      blocks   [ 0 ]   [ 1 ]   [ 2 ]   [ 3 ]          before the first fence that is not below, so in [1]
 *                                                      backwards from (b,9): in the last that is not above, so in [2]
 *
 * The checksum of a block of entries is looked at each time it is used: whoever read it may have kept it for long. */
#include "store/journal/index.h"

#include "base/cleanup.h"
#include "store/journal/format.h"
#include "store/journal/index_format.h"

#include <assert.h>
#include <stdlib.h>

struct sl_index {
    sl_file *file;
    sl_index_header header;
    uint32_t seed;
    uint8_t *tail; /* all blocks behind the entries */
};

/* --- opening --- */

static uint32_t tail_block(const sl_index *index)
{
    return index->header.sections[SL_INDEX_FENCES].block;
}

static bool belongs_to(const sl_index_header *header, const sl_segment_ref *segment)
{
    return sl_uuid_equal(header->id.store, segment->store) && header->id.about[0] == segment->number &&
           header->id.about[1] == segment->rewrites && header->first == segment->first &&
           header->end == segment->end;
}

static sl_err read_header(sl_index *index, const sl_segment_ref *segment)
{
    const sl_disk_ops *const ops = index->file->disk->ops;
    const uint64_t file_bytes = ops->size(index->file);
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    sl_err err;

    if (file_bytes < sizeof block)
        return SL_ERR_CORRUPT;
    err = ops->read(index->file, 0, block, sizeof block);
    if (err == SL_OK)
        err = sl_index_header_get(block, file_bytes, &index->header);
    if (err == SL_OK && !belongs_to(&index->header, segment))
        err = SL_ERR_CORRUPT;
    return err;
}

/* The header was held against the size of the file, so this is less than the file has. */
static sl_err read_tail(sl_index *index)
{
    const uint32_t block = tail_block(index), block_count = index->header.block_count - block;
    const size_t bytes = (size_t)block_count * SL_INDEX_BLOCK_BYTES;
    sl_err err;

    if (bytes == 0)
        return SL_OK;
    index->tail = malloc(bytes);
    if (index->tail == NULL)
        return SL_ERR_NOMEM;
    err =
        index->file->disk->ops->read(index->file, (uint64_t)block * SL_INDEX_BLOCK_BYTES, index->tail, bytes);
    for (uint32_t i = 0; i < block_count && err == SL_OK; i++)
        if (!sl_index_block_is_right(index->tail + (size_t)i * SL_INDEX_BLOCK_BYTES, index->seed, block + i))
            err = SL_ERR_CORRUPT;
    return err;
}

static sl_err open_file(sl_disk *disk, uint64_t number, sl_file **ret_file)
{
    char name[SL_CACHE_NAME_BYTES];

    sl_cache_name(number, SL_INDEX_SUFFIX, name);
    return disk->ops->open(disk, name, ret_file);
}

sl_err sl_index_open(sl_disk *disk, const sl_segment_ref *segment, sl_index **ret_index)
{
    sl_index *index = calloc(1, sizeof *index);
    sl_err err;

    if (index == NULL)
        return SL_ERR_NOMEM;
    err = open_file(disk, segment->number, &index->file);
    if (err == SL_OK)
        err = read_header(index, segment);
    if (err == SL_OK) {
        index->seed = sl_cache_seed(&index->header.id);
        err = read_tail(index);
    }
    if (err == SL_OK)
        *ret_index = SL_TAKE_PTR(index);
    sl_index_close(index);
    return err;
}

void sl_index_close(sl_index *index)
{
    if (index == NULL)
        return;
    if (index->file != NULL)
        index->file->disk->ops->close(index->file);
    free(index->tail);
    free(index);
}

sl_file *sl_index_file(const sl_index *index)
{
    return index->file;
}

sl_err sl_index_remove(sl_disk *disk, uint64_t number)
{
    return sl_cache_remove(disk, number, SL_INDEX_SUFFIX);
}

/* --- what is in memory --- */

static const uint8_t *item_at(const sl_index *index, sl_index_section section, uint32_t item)
{
    const sl_index_extent *const extent = &index->header.sections[section];
    const uint32_t per_block = sl_index_block_items(section);
    const size_t block = extent->block - tail_block(index) + item / per_block;

    assert(section != SL_INDEX_ENTRIES && item < extent->count);
    return index->tail + block * SL_INDEX_BLOCK_BYTES + item % per_block * sl_index_item_bytes(section);
}

static sl_index_place place_at(const sl_index *index, uint32_t item)
{
    const uint8_t *const at = item_at(index, SL_INDEX_PLACES, item);

    return (sl_index_place){ .position = sl_get_u64(at),
                             .at = { .offset = sl_get_u32(at + 8), .frame_end = sl_get_u32(at + 12) } };
}

bool sl_index_place_of(const sl_index *index, uint64_t position, sl_index_place *ret_place)
{
    uint32_t low = 0, high = index->header.sections[SL_INDEX_PLACES].count;

    if (high == 0)
        return false;
    while (high - low > 1) { /* low is at or before the position, or the first; high is after it */
        const uint32_t middle = low + (high - low) / 2;
        if (place_at(index, middle).position <= position)
            low = middle;
        else
            high = middle;
    }
    *ret_place = place_at(index, low);
    return true;
}

bool sl_index_may_have(const sl_index *index, uint64_t stream_hash)
{
    const uint32_t sieve_bytes = index->header.sections[SL_INDEX_SIEVE].count;
    uint32_t bits[2];

    if (sieve_bytes == 0)
        return false;
    sl_index_sieve_bits((uint32_t)stream_hash, sieve_bytes, bits);
    for (int i = 0; i < 2; i++)
        if ((*item_at(index, SL_INDEX_SIEVE, bits[i] / 8) >> bits[i] % 8 & 1) == 0)
            return false;
    return true;
}

/* --- finding entries --- */

/* Below, at or above 0. */
static int compare(uint32_t hash, uint64_t revision, const sl_index_query *query)
{
    if (hash != query->hash)
        return hash < query->hash ? -1 : 1;
    if (revision != query->revision)
        return revision < query->revision ? -1 : 1;
    return 0;
}

/* Whether an item lies in front of the border that the query looks for. That border is the same thing for fences and
 * entries, and for both directions: forwards it has what is below the query before it, backwards also what is equal. */
static bool before_border(const uint8_t *item, const sl_index_query *query)
{
    const int order = compare(sl_get_u32(item + 8), sl_get_u64(item), query);

    return query->backwards ? order <= 0 : order < 0;
}

/* How many fences are before the border. */
static uint32_t border_fence(const sl_index *index, const sl_index_query *query)
{
    uint32_t low = 0, high = index->header.sections[SL_INDEX_FENCES].count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (before_border(item_at(index, SL_INDEX_FENCES, middle), query))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many entries of a block are before the border. */
static uint32_t border_entry(const uint8_t *block, uint32_t count, const sl_index_query *query)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (before_border(block + (size_t)middle * sl_index_item_bytes(SL_INDEX_ENTRIES), query))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What one question has found so far. */
typedef struct search {
    const sl_index_query *query;
    sl_index_entry *entries;
    uint32_t max, count;
} search;

/* False: it is of another stream, or there is no room for it: the search is over. */
static bool take(search *s, const uint8_t *block, uint32_t item)
{
    const sl_index_entry entry =
        sl_index_entry_get(block + (size_t)item * sl_index_item_bytes(SL_INDEX_ENTRIES));

    if (s->count == s->max || entry.hash != s->query->hash)
        return false;
    s->entries[s->count++] = entry;
    return s->count < s->max;
}

/* Takes what a block has from the border on. True: what follows it may have more. */
static bool take_from_block(search *s, const uint8_t *block, uint32_t count)
{
    const uint32_t border = border_entry(block, count, s->query);

    if (s->query->backwards) {
        for (uint32_t i = border; i > 0; i--)
            if (!take(s, block, i - 1))
                return false;
    } else {
        for (uint32_t i = border; i < count; i++)
            if (!take(s, block, i))
                return false;
    }
    return true;
}

static uint32_t entries_in(const sl_index *index, uint32_t block)
{
    const uint32_t per_block = sl_index_block_items(SL_INDEX_ENTRIES);

    return (uint32_t)sl_min_u64(per_block,
                                index->header.sections[SL_INDEX_ENTRIES].count - block * per_block);
}

/* Block number `block` of the entries, read and right. */
static sl_err read_entries(const sl_index *index, uint32_t block, const sl_block_reader *reader,
                           const uint8_t **ret_bytes, uint64_t *ret_offset)
{
    const uint32_t number = index->header.sections[SL_INDEX_ENTRIES].block + block;
    const uint64_t offset = (uint64_t)number * SL_INDEX_BLOCK_BYTES;
    const sl_err err = reader->read(reader->ctx, index->file, offset, ret_bytes);

    if (err != SL_OK)
        return err;
    if (sl_index_block_is_right(*ret_bytes, index->seed, number))
        return SL_OK;
    *ret_offset = offset;
    return SL_ERR_CORRUPT;
}

/* Forwards: the fence tells without a read that the next block begins with another stream. */
static bool goes_on(const sl_index *index, const sl_index_query *query, uint32_t block)
{
    if (query->backwards)
        return block > 0;
    if (block + 1 == index->header.sections[SL_INDEX_FENCES].count)
        return false;
    return sl_get_u32(item_at(index, SL_INDEX_FENCES, block + 1) + 8) == query->hash;
}

sl_err sl_index_find(const sl_index *index, const sl_index_query *query, const sl_block_reader *reader,
                     sl_index_entry *entries, uint32_t max, uint32_t *ret_count, uint64_t *ret_offset)
{
    const uint32_t border = border_fence(index, query);
    search s = { .query = query, .entries = entries, .max = max };
    bool more =
        max > 0 && index->header.sections[SL_INDEX_FENCES].count > 0 && (border > 0 || !query->backwards);
    uint32_t block = border > 0 ? border - 1 : 0;

    while (more) {
        const uint8_t *bytes = NULL;
        const sl_err err = read_entries(index, block, reader, &bytes, ret_offset);

        if (err != SL_OK)
            return err;
        more = take_from_block(&s, bytes, entries_in(index, block)) && goes_on(index, query, block);
        block = query->backwards ? block - 1 : block + 1;
    }
    *ret_count = s.count;
    return SL_OK;
}
