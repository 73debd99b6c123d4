/* store/journal/roll_file.c — a roll as a sequence of entries. Offsets stand in one table for each. */
#include "store/journal/roll_file.h"

#include "base/cleanup.h"
#include "store/journal/format.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char roll_kind[8] = { 'S', 'l', 'u', 'i', 'c', 'e', 'R', '\n' };

enum { /* block 0, behind the id */
    ROLL_ENTRY_COUNT = SL_CACHE_ID_BYTES,
    ROLL_BYTES = ROLL_ENTRY_COUNT + 8,
};

enum {            /* a part */
    PART_CRC = 0, /* of everything behind it */
    PART_BYTES = 4,
};

enum { /* an entry */
    ENTRY_LAST = 0,
    ENTRY_NAME_BYTES = 8,
    ENTRY_FLAGS = 10,
    ENTRY_KEEP = 11, /* only of a metadata stream */
};
static_assert((int)ENTRY_KEEP == (int)SL_ROLL_ENTRY_HEAD_BYTES, "what it keeps, or the name, follows");

#define ENTRY_IS_METADATA 1u

/* --- writing --- */

static void begin_part(sl_roll_writer *writer)
{
    writer->part_bytes = SL_ROLL_PART_HEAD_BYTES;
}

sl_err sl_roll_writer_open(sl_roll_writer *writer, sl_disk *disk, sl_uuid store, uint64_t from, uint64_t to)
{
    *writer = (sl_roll_writer){ .bytes = SL_CACHE_BLOCK_BYTES };
    writer->id = (sl_cache_id){ .version = SL_ROLL_VERSION, .store = store, .about = { from, to } };
    memcpy(writer->id.kind, roll_kind, sizeof roll_kind);
    writer->seed = sl_cache_seed(&writer->id);
    writer->part = malloc(SL_ROLL_PART_BYTES_MAX);
    if (writer->part == NULL)
        return SL_ERR_NOMEM;
    begin_part(writer);
    return sl_cache_writer_open(&writer->out, disk, to, SL_ROLL_SUFFIX);
}

/* A part without entries is not written. */
static sl_err end_part(sl_roll_writer *writer)
{
    const size_t bytes = writer->part_bytes;

    if (bytes == SL_ROLL_PART_HEAD_BYTES)
        return SL_OK;
    sl_put_u32(writer->part + PART_BYTES, (uint32_t)bytes);
    sl_put_u32(writer->part + PART_CRC, sl_cache_crc(writer->seed, writer->part_number,
                                                     writer->part + PART_BYTES, bytes - PART_BYTES));
    writer->part_number++;
    writer->bytes += bytes;
    begin_part(writer);
    return sl_cache_writer_add(&writer->out, writer->part, bytes);
}

static size_t entry_bytes(const sl_roll_entry *entry)
{
    const size_t keep_bytes = entry->is_metadata ? SL_ROLL_KEEP_BYTES : 0;

    return SL_ROLL_ENTRY_HEAD_BYTES + keep_bytes + entry->name.bytes;
}

static void put_keep(const sl_retention *keep, uint8_t *at)
{
    sl_put_u64(at, keep->max_count);
    sl_put_u64(at + 8, keep->max_age_s);
    sl_put_u64(at + 16, keep->truncate_before);
}

static void put_entry(const sl_roll_entry *entry, uint8_t *at)
{
    sl_put_u64(at + ENTRY_LAST, entry->last);
    sl_put_u16(at + ENTRY_NAME_BYTES, (uint16_t)entry->name.bytes);
    at[ENTRY_FLAGS] = entry->is_metadata ? ENTRY_IS_METADATA : 0;
    at += SL_ROLL_ENTRY_HEAD_BYTES;
    if (entry->is_metadata) {
        put_keep(&entry->keep, at);
        at += SL_ROLL_KEEP_BYTES;
    }
    memcpy(at, entry->name.data, entry->name.bytes);
}

sl_err sl_roll_writer_add(sl_roll_writer *writer, const sl_roll_entry *entry)
{
    const size_t bytes = entry_bytes(entry);

    assert(entry->name.bytes > 0 && entry->name.bytes <= SL_STREAM_NAME_BYTES_MAX);
    if (bytes > SL_ROLL_PART_BYTES_MAX - writer->part_bytes) {
        const sl_err err = end_part(writer);
        if (err != SL_OK)
            return err;
    }
    put_entry(entry, writer->part + writer->part_bytes);
    writer->part_bytes += bytes;
    writer->entry_count++;
    return SL_OK;
}

sl_err sl_roll_writer_commit(sl_roll_writer *writer)
{
    uint8_t block[SL_CACHE_BLOCK_BYTES] = { 0 };
    const sl_err err = end_part(writer);

    if (err != SL_OK)
        return err;
    sl_put_u64(block + ROLL_ENTRY_COUNT, writer->entry_count);
    sl_put_u64(block + ROLL_BYTES, writer->bytes);
    sl_cache_header_put(&writer->id, block);
    return sl_cache_writer_commit(&writer->out, block);
}

void sl_roll_writer_done(sl_roll_writer *writer)
{
    sl_cache_writer_done(&writer->out);
    free(writer->part);
    writer->part = NULL;
}

/* --- reading --- */

/* Nothing is believed that the file is too short for. */
static sl_err get_header(sl_roll_reader *reader, const uint8_t *block, sl_uuid store, uint64_t number)
{
    sl_cache_id id;
    const sl_err err = sl_cache_header_get(block, roll_kind, SL_ROLL_VERSION, &id);

    if (err != SL_OK)
        return err;
    reader->info = (sl_roll_info){ .from = id.about[0],
                                   .to = id.about[1],
                                   .entry_count = sl_get_u64(block + ROLL_ENTRY_COUNT) };
    reader->seed = sl_cache_seed(&id);
    reader->entries_left = reader->info.entry_count;
    if (!sl_uuid_equal(id.store, store) || id.about[1] != number || id.about[0] > number)
        return SL_ERR_CORRUPT;
    if (sl_get_u64(block + ROLL_BYTES) != reader->bytes)
        return SL_ERR_CORRUPT;
    return reader->info.entry_count <= reader->bytes / SL_ROLL_ENTRY_HEAD_BYTES ? SL_OK : SL_ERR_CORRUPT;
}

sl_err sl_roll_reader_open(sl_roll_reader *reader, sl_disk *disk, sl_uuid store, uint64_t number)
{
    uint8_t block[SL_CACHE_BLOCK_BYTES];
    char name[SL_CACHE_NAME_BYTES];
    sl_err err;

    *reader = (sl_roll_reader){ .offset = SL_CACHE_BLOCK_BYTES };
    sl_cache_name(number, SL_ROLL_SUFFIX, name);
    err = disk->ops->open(disk, name, &reader->file);
    if (err != SL_OK)
        return err;
    reader->bytes = disk->ops->size(reader->file);
    if (reader->bytes < sizeof block)
        return SL_ERR_CORRUPT;
    err = disk->ops->read(reader->file, 0, block, sizeof block);
    return err == SL_OK ? get_header(reader, block, store, number) : err;
}

void sl_roll_reader_done(sl_roll_reader *reader)
{
    if (reader->file != NULL)
        reader->file->disk->ops->close(reader->file);
    free(reader->part);
    *reader = (sl_roll_reader){ 0 };
}

/* How large a part is stands in the part, so what may be one is read, and what belongs to the next is read twice: the
 * two of them fill the space of the largest entry at most. */
static sl_err check_part(const sl_roll_reader *reader, size_t read_bytes, size_t *ret_bytes)
{
    uint32_t bytes;

    if (read_bytes < SL_ROLL_PART_HEAD_BYTES)
        return SL_ERR_CORRUPT;
    bytes = sl_get_u32(reader->part + PART_BYTES);
    if (bytes <= SL_ROLL_PART_HEAD_BYTES || bytes > read_bytes)
        return SL_ERR_CORRUPT;
    if (sl_get_u32(reader->part + PART_CRC) !=
        sl_cache_crc(reader->seed, reader->part_number, reader->part + PART_BYTES, bytes - PART_BYTES))
        return SL_ERR_CORRUPT;
    *ret_bytes = bytes;
    return SL_OK;
}

static sl_err read_part(sl_roll_reader *reader)
{
    const size_t wanted = (size_t)sl_min_u64(reader->bytes - reader->offset, SL_ROLL_PART_BYTES_MAX);
    sl_err err;

    if (reader->part == NULL)
        reader->part = malloc(SL_ROLL_PART_BYTES_MAX);
    if (reader->part == NULL)
        return SL_ERR_NOMEM;
    err = reader->file->disk->ops->read(reader->file, reader->offset, reader->part, wanted);
    if (err == SL_OK)
        err = check_part(reader, wanted, &reader->part_bytes);
    if (err != SL_OK)
        return err;
    reader->offset += reader->part_bytes;
    reader->part_number++;
    reader->at = SL_ROLL_PART_HEAD_BYTES;
    return SL_OK;
}

static sl_retention get_keep(const uint8_t *at)
{
    return (sl_retention){ .max_count = sl_get_u64(at),
                           .max_age_s = sl_get_u64(at + 8),
                           .truncate_before = sl_get_u64(at + 16) };
}

/* The flag repeats what the name says. */
static bool name_fits(const sl_roll_entry *entry)
{
    sl_str owner;

    return entry->name.bytes > 0 && entry->name.bytes <= SL_STREAM_NAME_BYTES_MAX &&
           sl_metadata_owner(entry->name, &owner) == entry->is_metadata;
}

static sl_err get_entry(sl_roll_reader *reader, sl_roll_entry *ret_entry)
{
    const uint8_t *const at = reader->part + reader->at;
    const size_t left = reader->part_bytes - reader->at;
    sl_roll_entry entry = { 0 };
    size_t bytes;

    if (left < SL_ROLL_ENTRY_HEAD_BYTES || at[ENTRY_FLAGS] > ENTRY_IS_METADATA)
        return SL_ERR_CORRUPT;
    entry.last = sl_get_u64(at + ENTRY_LAST);
    entry.is_metadata = at[ENTRY_FLAGS] == ENTRY_IS_METADATA;
    entry.name.bytes = sl_get_u16(at + ENTRY_NAME_BYTES);
    bytes = entry_bytes(&entry);
    if (bytes > left)
        return SL_ERR_CORRUPT;
    entry.name.data = (const char *)at + bytes - entry.name.bytes;
    if (entry.is_metadata)
        entry.keep = get_keep(at + ENTRY_KEEP);
    if (!name_fits(&entry))
        return SL_ERR_CORRUPT;
    reader->at += bytes;
    *ret_entry = entry;
    return SL_OK;
}

static sl_err at_end(const sl_roll_reader *reader)
{
    const bool adds_up = reader->at == reader->part_bytes && reader->offset == reader->bytes;

    return adds_up ? SL_ERR_EMPTY : SL_ERR_CORRUPT;
}

sl_err sl_roll_reader_next(sl_roll_reader *reader, sl_roll_entry *ret_entry)
{
    if (reader->entries_left == 0)
        return at_end(reader);
    if (reader->at == reader->part_bytes) {
        const sl_err err = read_part(reader);
        if (err != SL_OK)
            return err;
    }
    reader->entries_left--;
    return get_entry(reader, ret_entry);
}
