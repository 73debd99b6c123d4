/* tests/fuzz/fuzz_roll.c — hostile bytes as a roll.
 *
 * Tried as they are, and as the work of somebody who knows the format: then the input says what the header claims, the rest
 * of it stands behind the header, and checksums are put right. What can be read is visited, and merged with a good roll;
 * a merge either fails, and then the good roll is still there, or gives one that can be read.
 *
 *      input   number of entries 4, first segment 1 | parts */
#include "base/crc32c.h"
#include "store/faulty/faulty.h"
#include "store/journal/format.h"
#include "store/journal/roll_file.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    INPUT_ENTRIES = 0,
    INPUT_FROM = 4,
    INPUT_BODY = 5,
    HEADER_ENTRIES = SL_CACHE_ID_BYTES,
    HEADER_BYTES = HEADER_ENTRIES + 8,
    NUMBER = 7, /* of the hostile roll; the one before it is good */
};

static const sl_uuid store = { { 1, 2, 3 } };

static sl_err touch(void *ctx, const sl_roll_entry *entry)
{
    assert(entry->name.bytes > 0 && entry->name.bytes <= 1024);
    *(uint32_t *)ctx = sl_crc32c(*(uint32_t *)ctx, entry->name.data, entry->name.bytes);
    return SL_OK;
}

static void write_good(sl_disk *disk)
{
    const sl_roll_entry entry = { .name = SL_STR("a"), .last = 3 };
    sl_roll_writer writer;
    sl_err err = sl_roll_writer_open(&writer, disk, store, NUMBER - 1, NUMBER - 1);

    if (err == SL_OK)
        err = sl_roll_writer_add(&writer, &entry);
    if (err == SL_OK)
        err = sl_roll_writer_commit(&writer);
    sl_roll_writer_done(&writer);
    assert(err == SL_OK);
}

static void try_roll(sl_disk *disk)
{
    uint32_t crc = 0;
    sl_roll_info info;
    const bool is_right = sl_roll_each(disk, store, NUMBER, touch, &crc) == SL_OK;
    sl_err err;

    (void)sl_roll_is_due(disk, store, NUMBER - 1, NUMBER);
    if (sl_roll_merge(disk, store, NUMBER - 1, NUMBER) == SL_OK) {
        err = sl_roll_look(disk, store, NUMBER, &info);
        assert(err == SL_OK && info.to == NUMBER && info.from <= NUMBER - 1);
        err = sl_roll_each(disk, store, NUMBER, touch, &crc);
        assert(err == SL_OK || !is_right); /* one that covers all alone is not read by a merge */
    } else {
        err = sl_roll_each(disk, store, NUMBER - 1, touch, &crc);
        assert(err == SL_OK);
    }
}

static void try_file(const uint8_t *bytes, size_t byte_count)
{
    sl_faulty *const faulty = sl_faulty_new();
    sl_disk *const disk = sl_faulty_door(faulty);
    char name[SL_CACHE_NAME_BYTES];
    sl_file *file = NULL;
    sl_err err;

    write_good(disk);
    sl_cache_name(NUMBER, SL_ROLL_SUFFIX, name);
    err = disk->ops->create(disk, name, 0, NULL, &file);
    assert(err == SL_OK);
    err = disk->ops->write(file, 0, bytes, byte_count);
    assert(err == SL_OK);
    disk->ops->close(file);
    try_roll(disk);
    disk->ops->free(disk);
    sl_faulty_free(faulty);
}

/* Every part whose size can be one gets the checksum that belongs to it. */
static void repair_parts(uint8_t *file, size_t file_bytes, uint32_t seed)
{
    uint64_t part = 0;

    for (size_t at = SL_CACHE_BLOCK_BYTES; file_bytes - at >= SL_ROLL_PART_HEAD_BYTES; part++) {
        const uint32_t bytes = sl_get_u32(file + at + 4);
        if (bytes <= SL_ROLL_PART_HEAD_BYTES || bytes > file_bytes - at)
            return;
        sl_put_u32(file + at, sl_cache_crc(seed, part, file + at + 4, bytes - 4));
        at += bytes;
    }
}

static void try_repaired(const uint8_t *data, size_t data_bytes)
{
    const size_t file_bytes = SL_CACHE_BLOCK_BYTES + data_bytes - INPUT_BODY;
    uint8_t *const file = calloc(1, file_bytes);
    sl_cache_id id = { .version = SL_ROLL_VERSION, .store = store, .about = { data[INPUT_FROM], NUMBER } };

    memcpy(id.kind, "SluiceR\n", sizeof id.kind);
    memcpy(file + SL_CACHE_BLOCK_BYTES, data + INPUT_BODY, data_bytes - INPUT_BODY);
    repair_parts(file, file_bytes, sl_cache_seed(&id));
    sl_put_u64(file + HEADER_ENTRIES, sl_get_u32(data + INPUT_ENTRIES));
    sl_put_u64(file + HEADER_BYTES, file_bytes);
    sl_cache_header_put(&id, file);
    try_file(file, file_bytes);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    try_file(data, data_bytes);
    if (data_bytes >= INPUT_BODY)
        try_repaired(data, data_bytes);
    return 0;
}
