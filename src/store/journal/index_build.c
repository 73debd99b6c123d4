/* store/journal/index_build.c — collecting, sorting and writing the entries of an index.
 *
 * Entries come in the order of positions, in which the revisions of one stream ascend. So a stable sort by hash alone brings
 * them into the order of the file, except where several streams share a hash; such runs, which are rare and short, are
 * sorted a second time. The first sort is by radix, three times eleven bits: a tenth of the time that comparing takes.
 *
 * The same segment gives the same file, byte by byte, because nothing but the segment goes into it: that is how a file is
 * verified. */
#include "store/journal/index_build.h"

#include "store/array.h"
#include "store/journal/format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS,
    RADIX_PASSES = 3, /* 33 bits for a hash of 32 */
    SIEVE_BYTES_MIN = 8,
};

void sl_index_builder_init(sl_index_builder *builder, const sl_segment_ref *segment)
{
    *builder = (sl_index_builder){ .segment = segment };
}

void sl_index_builder_done(sl_index_builder *builder)
{
    sl_alloc_give(&sl_alloc_default, builder->entries, builder->entry_capacity * sizeof *builder->entries);
    sl_alloc_give(&sl_alloc_default, builder->places, builder->place_capacity * sizeof *builder->places);
    free(builder->sieve);
    *builder = (sl_index_builder){ 0 };
}

/* --- collecting --- */

sl_err sl_index_builder_record(sl_index_builder *builder, uint64_t position, sl_record_place place)
{
    sl_index_place *larger;

    if (builder->record_count++ % SL_INDEX_PLACE_EVERY != 0)
        return SL_OK;
    larger = sl_array_grow(&sl_alloc_default, builder->places, &builder->place_capacity, sizeof *larger,
                           builder->place_count + 1);
    if (larger == NULL)
        return SL_ERR_NOMEM;
    builder->places = larger;
    larger[builder->place_count++] = (sl_index_place){ .position = position, .at = place };
    return SL_OK;
}

sl_err sl_index_builder_event(sl_index_builder *builder, uint64_t stream_hash, uint64_t revision,
                              uint32_t offset)
{
    sl_index_entry *const larger =
        sl_array_grow(&sl_alloc_default, builder->entries, &builder->entry_capacity, sizeof *larger,
                      builder->entry_count + 1);

    if (larger == NULL)
        return SL_ERR_NOMEM;
    builder->entries = larger;
    larger[builder->entry_count++] =
        (sl_index_entry){ .revision = revision, .hash = (uint32_t)stream_hash, .offset = offset };
    return SL_OK;
}

/* --- sorting --- */

static void radix_pass(const sl_index_entry *from, sl_index_entry *to, size_t count, unsigned shift)
{
    size_t next[RADIX] = { 0 }; /* where the next entry with this digit goes */
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        next[from[i].hash >> shift & (RADIX - 1)]++;
    for (size_t digit = 0; digit < RADIX; digit++) {
        const size_t with_digit = next[digit];
        next[digit] = sum;
        sum += with_digit;
    }
    for (size_t i = 0; i < count; i++)
        to[next[from[i].hash >> shift & (RADIX - 1)]++] = from[i];
}

static sl_err sort_by_hash(sl_index_entry *entries, size_t count)
{
    sl_index_entry *const other = malloc((count + 1) * sizeof *other);
    sl_index_entry *from = entries, *to = other;

    if (other == NULL)
        return SL_ERR_NOMEM;
    for (unsigned pass = 0; pass < RADIX_PASSES; pass++) {
        sl_index_entry *const sorted = to;
        radix_pass(from, to, count, pass * RADIX_BITS);
        to = from;
        from = sorted;
    }
    if (count > 0)
        memcpy(entries, other, count * sizeof *entries); /* after three passes it is there */
    free(other);
    return SL_OK;
}

static int compare_in_run(const void *a, const void *b)
{
    const sl_index_entry *const left = a, *const right = b;

    if (left->revision != right->revision)
        return left->revision < right->revision ? -1 : 1;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Returns how many different hashes there are. */
static size_t sort_runs(sl_index_entry *entries, size_t count)
{
    size_t run_count = 0;

    for (size_t begin = 0, end; begin < count; begin = end, run_count++) {
        bool is_sorted = true;
        for (end = begin + 1; end < count && entries[end].hash == entries[begin].hash; end++)
            is_sorted &= compare_in_run(&entries[end - 1], &entries[end]) <= 0;
        if (!is_sorted)
            qsort(entries + begin, end - begin, sizeof *entries, compare_in_run);
    }
    return run_count;
}

/* Eight bits for a stream, and up to sixteen: of a hundred streams that are not here one to five are let through. */
static sl_err make_sieve(sl_index_builder *builder, size_t stream_count)
{
    uint32_t bits[2];

    if (stream_count == 0)
        return SL_OK;
    for (builder->sieve_bytes = SIEVE_BYTES_MIN; builder->sieve_bytes < stream_count;)
        builder->sieve_bytes *= 2;
    builder->sieve = calloc(builder->sieve_bytes, 1);
    if (builder->sieve == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < builder->entry_count; i++) {
        sl_index_sieve_bits(builder->entries[i].hash, builder->sieve_bytes, bits);
        builder->sieve[bits[0] / 8] |= (uint8_t)(1u << bits[0] % 8);
        builder->sieve[bits[1] / 8] |= (uint8_t)(1u << bits[1] % 8);
    }
    return SL_OK;
}

sl_err sl_index_builder_finish(sl_index_builder *builder)
{
    const sl_err err = sort_by_hash(builder->entries, builder->entry_count);

    if (err != SL_OK)
        return err;
    return make_sieve(builder, sort_runs(builder->entries, builder->entry_count));
}

/* --- the file, block by block --- */

typedef sl_err block_fn(void *ctx, uint32_t number, const uint8_t block[SL_INDEX_BLOCK_BYTES]);

static void put_item(const sl_index_builder *builder, sl_index_section section, uint32_t item, uint8_t *at)
{
    uint8_t entry[16];

    switch (section) {
    case SL_INDEX_ENTRIES: sl_index_entry_put(&builder->entries[item], at); break;
    case SL_INDEX_FENCES:
        sl_index_entry_put(&builder->entries[item * sl_index_block_items(SL_INDEX_ENTRIES)], entry);
        memcpy(at, entry, sl_index_item_bytes(SL_INDEX_FENCES));
        break;
    case SL_INDEX_PLACES:
        sl_put_u64(at, builder->places[item].position);
        sl_put_u32(at + 8, builder->places[item].at.offset);
        sl_put_u32(at + 12, builder->places[item].at.frame_end);
        break;
    case SL_INDEX_SIEVE: *at = builder->sieve[item]; break;
    case SL_INDEX_SECTION_COUNT_: assert(false);
    }
}

/* Offsets have 32 bits and a record 24 bytes or more, so there are not too many of anything. */
static sl_index_header header_of(const sl_index_builder *builder)
{
    const uint32_t per_block = sl_index_block_items(SL_INDEX_ENTRIES);
    sl_index_header header = { .id = sl_index_id(builder->segment),
                               .first = builder->segment->first,
                               .end = builder->segment->end };
    bool fits;

    header.sections[SL_INDEX_ENTRIES].count = (uint32_t)builder->entry_count;
    header.sections[SL_INDEX_FENCES].count = (uint32_t)((builder->entry_count + per_block - 1) / per_block);
    header.sections[SL_INDEX_PLACES].count = (uint32_t)builder->place_count;
    header.sections[SL_INDEX_SIEVE].count = builder->sieve_bytes;
    fits = sl_index_arrange(&header);
    assert(fits);
    return header;
}

static sl_err each_block_of(const sl_index_builder *builder, const sl_index_header *header,
                            sl_index_section section, block_fn *fn, void *ctx)
{
    const sl_index_extent *const extent = &header->sections[section];
    const uint32_t per_block = sl_index_block_items(section), item_bytes = sl_index_item_bytes(section);
    const uint32_t seed = sl_cache_seed(&header->id);
    sl_err err = SL_OK;

    for (uint32_t item = 0, number = extent->block; item < extent->count && err == SL_OK; number++) {
        uint8_t block[SL_INDEX_BLOCK_BYTES] = { 0 };
        for (uint32_t i = 0; i < per_block && item < extent->count; i++, item++)
            put_item(builder, section, item, block + (size_t)i * item_bytes);
        sl_index_block_seal(block, seed, number);
        err = fn(ctx, number, block);
    }
    return err;
}

/* Every block but the header. */
static sl_err each_block(const sl_index_builder *builder, const sl_index_header *header, block_fn *fn,
                         void *ctx)
{
    sl_err err = SL_OK;

    for (sl_index_section section = 0; section < SL_INDEX_SECTION_COUNT_ && err == SL_OK; section++)
        err = each_block_of(builder, header, section, fn, ctx);
    return err;
}

static sl_err write_block(void *ctx, uint32_t number, const uint8_t block[SL_INDEX_BLOCK_BYTES])
{
    (void)number; /* they come in order */
    return sl_cache_writer_add(ctx, block, SL_INDEX_BLOCK_BYTES);
}

sl_err sl_index_builder_write(const sl_index_builder *builder, sl_disk *disk)
{
    const sl_index_header header = header_of(builder);
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    sl_cache_writer writer;
    sl_err err = sl_cache_writer_open(&writer, disk, builder->segment->number, SL_INDEX_SUFFIX);

    if (err == SL_OK)
        err = each_block(builder, &header, write_block, &writer);
    sl_index_header_put(&header, block);
    if (err == SL_OK)
        err = sl_cache_writer_commit(&writer, block);
    sl_cache_writer_done(&writer);
    return err;
}

typedef struct comparison {
    sl_file *file;
    uint64_t *ret_offset;
} comparison;

static sl_err compare_block(void *ctx, uint32_t number, const uint8_t block[SL_INDEX_BLOCK_BYTES])
{
    const comparison *const c = ctx;
    uint8_t found[SL_INDEX_BLOCK_BYTES];
    sl_err err;

    *c->ret_offset = (uint64_t)number * SL_INDEX_BLOCK_BYTES;
    err = c->file->disk->ops->read(c->file, *c->ret_offset, found, sizeof found);
    if (err == SL_OK && memcmp(found, block, sizeof found) != 0)
        err = SL_ERR_CORRUPT;
    return err;
}

sl_err sl_index_builder_compare(const sl_index_builder *builder, sl_file *file, uint64_t *ret_offset)
{
    const sl_index_header header = header_of(builder);
    const uint64_t file_bytes = file->disk->ops->size(file);
    comparison c = { .file = file, .ret_offset = ret_offset };
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    sl_err err;

    *ret_offset = 0;
    if (file_bytes != (uint64_t)header.block_count * SL_INDEX_BLOCK_BYTES)
        return SL_ERR_CORRUPT;
    sl_index_header_put(&header, block);
    err = compare_block(&c, 0, block);
    return err == SL_OK ? each_block(builder, &header, compare_block, &c) : err;
}
