/* tests/fuzz/fuzz_index.c — hostile bytes as an index file.
 *
 * Tried as they are, and as the work of somebody who knows the format: then the input says what the header claims and how
 * the blocks begin, and checksums and identity are put right. Whatever opens can be asked anything: answers have the hash
 * that was asked for, and nothing outside of the file is read.
 *
 *      input   flags 1 | for each section count 4, block 4 | hash 4, revision 8 | 128 bytes for each block */
#include "store/faulty/faulty.h"
#include "store/journal/format.h"
#include "store/journal/index_format.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    INPUT_SECTIONS = 1,
    INPUT_HASH = INPUT_SECTIONS + 8 * SL_INDEX_SECTION_COUNT_,
    INPUT_REVISION = INPUT_HASH + 4,
    INPUT_BLOCKS = INPUT_REVISION + 8,
    BLOCK_BYTES = 128, /* of the input; the rest of the block is zero */
    BLOCKS_MAX = 64,
    FLAG_ARRANGED = 1, /* sections begin where they should, with as many fences as they should have */
};

static const sl_segment_ref segment = { .store = { { 1, 2, 3 } }, .number = 7, .first = 100, .end = 200 };

static sl_err read_block(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block)
{
    *ret_block = ctx;
    return file->disk->ops->read(file, offset, ctx, SL_INDEX_BLOCK_BYTES);
}

static void ask(const sl_index *index, sl_index_query query)
{
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    const sl_block_reader reader = { .ctx = block, .read = read_block };
    sl_index_entry entries[300];
    sl_index_place place;
    uint32_t count = 0;
    uint64_t offset;

    (void)sl_index_place_of(index, query.revision, &place);
    (void)sl_index_may_have(index, query.hash);
    for (int backwards = 0; backwards < 2; backwards++) {
        query.backwards = backwards;
        if (sl_index_find(index, &query, &reader, entries, 300, &count, &offset) != SL_OK)
            continue;
        assert(count <= 300);
        for (uint32_t i = 0; i < count; i++)
            assert(entries[i].hash == query.hash);
    }
}

static void try_file(const uint8_t *bytes, size_t byte_count, sl_index_query query)
{
    sl_faulty *const faulty = sl_faulty_new();
    sl_disk *const disk = sl_faulty_door(faulty);
    char name[SL_CACHE_NAME_BYTES];
    sl_file *file = NULL;
    sl_index *index = NULL;
    sl_err err;

    sl_cache_name(segment.number, SL_INDEX_SUFFIX, name);
    err = disk->ops->create(disk, name, 0, NULL, &file);
    assert(err == SL_OK);
    err = disk->ops->write(file, 0, bytes, byte_count);
    assert(err == SL_OK);
    disk->ops->close(file);
    if (sl_index_open(disk, &segment, &index) == SL_OK)
        ask(index, query);
    sl_index_close(index);
    disk->ops->free(disk);
    sl_faulty_free(faulty);
}

static sl_index_header header_from(const uint8_t *data)
{
    const uint32_t per_block = sl_index_block_items(SL_INDEX_ENTRIES);
    sl_index_header header = { .id = sl_index_id(&segment), .first = segment.first, .end = segment.end };
    const uint8_t *at = data + INPUT_SECTIONS;

    for (unsigned i = 0; i < SL_INDEX_SECTION_COUNT_; i++, at += 8)
        header.sections[i] = (sl_index_extent){ .count = sl_get_u32(at), .block = sl_get_u32(at + 4) };
    if ((data[0] & FLAG_ARRANGED) != 0) {
        header.sections[SL_INDEX_FENCES].count =
            (uint32_t)(((uint64_t)header.sections[SL_INDEX_ENTRIES].count + per_block - 1) / per_block);
        (void)sl_index_arrange(&header);
    }
    return header;
}

/* As many blocks as the header needs if that is not too much, else as the input has. */
static size_t block_count_of(const sl_index_header *header, size_t data_bytes)
{
    const size_t given = 1 + (data_bytes - INPUT_BLOCKS + BLOCK_BYTES - 1) / BLOCK_BYTES;

    if (header->block_count > 0 && header->block_count <= BLOCKS_MAX)
        return header->block_count;
    return given < BLOCKS_MAX ? given : BLOCKS_MAX;
}

static void try_repaired(const uint8_t *data, size_t data_bytes, sl_index_query query)
{
    const sl_index_header header = header_from(data);
    const size_t block_count = block_count_of(&header, data_bytes);
    const uint32_t seed = sl_cache_seed(&header.id);
    uint8_t *const file = calloc(block_count, SL_INDEX_BLOCK_BYTES);

    sl_index_header_put(&header, file);
    for (size_t i = 1, at = INPUT_BLOCKS; i < block_count; i++, at += BLOCK_BYTES) {
        uint8_t *const block = file + i * SL_INDEX_BLOCK_BYTES;
        const size_t left = at < data_bytes ? data_bytes - at : 0;
        if (left > 0)
            memcpy(block, data + at, left < BLOCK_BYTES ? left : BLOCK_BYTES);
        sl_index_block_seal(block, seed, i);
    }
    try_file(file, block_count * SL_INDEX_BLOCK_BYTES, query);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    sl_index_query query = { .hash = 0 };

    try_file(data, data_bytes, query);
    if (data_bytes < INPUT_BLOCKS)
        return 0;
    query.hash = sl_get_u32(data + INPUT_HASH);
    query.revision = sl_get_u64(data + INPUT_REVISION);
    try_repaired(data, data_bytes, query);
    return 0;
}
