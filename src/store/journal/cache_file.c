/* store/journal/cache_file.c — block 0, checksums, and the way from a passing name to a file that is whole. */
#include "store/journal/cache_file.h"

#include "base/crc32c.h"
#include "store/journal/format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* block 0 */
    HEADER_KIND = 0,
    HEADER_VERSION = 8, /* then four zeros */
    HEADER_STORE = 16,
    HEADER_ABOUT = 32, /* two numbers; then the owner's fields, zeros, and the checksum */
};
static_assert(HEADER_ABOUT + 16 == SL_CACHE_ID_BYTES, "the owner's fields follow");

enum {
    GATHERED_BYTES_MAX = 256 * 1024, /* larger writes gain nothing */
    NUMBER_DIGITS = 16,
};

/* --- names --- */

void sl_cache_name(uint64_t number, const char *suffix, char name[SL_CACHE_NAME_BYTES])
{
    const int bytes = snprintf(name, SL_CACHE_NAME_BYTES, "%016" PRIx64 ".%s", number, suffix);

    assert(bytes > 0 && bytes < SL_CACHE_NAME_BYTES);
}

bool sl_cache_number(const char *name, const char *suffix, uint64_t *ret_number)
{
    char same[SL_CACHE_NAME_BYTES];
    uint64_t number;

    if (strlen(name) != NUMBER_DIGITS + 1 + strlen(suffix))
        return false;
    number = strtoull(name, NULL, 16);
    sl_cache_name(number, suffix, same);
    if (strcmp(name, same) != 0)
        return false;
    *ret_number = number;
    return true;
}

sl_err sl_cache_remove(sl_disk *disk, uint64_t number, const char *suffix)
{
    char name[SL_CACHE_NAME_BYTES];
    sl_err err;

    sl_cache_name(number, suffix, name);
    err = disk->ops->remove(disk, name);
    return err == SL_ERR_NOT_FOUND ? SL_OK : err;
}

/* --- block 0 and checksums --- */

static void put_id(const sl_cache_id *id, uint8_t *at)
{
    memcpy(at + HEADER_KIND, id->kind, sizeof id->kind);
    sl_put_u32(at + HEADER_VERSION, id->version);
    sl_put_u32(at + HEADER_VERSION + 4, 0);
    memcpy(at + HEADER_STORE, id->store.bytes, sizeof id->store.bytes);
    sl_put_u64(at + HEADER_ABOUT, id->about[0]);
    sl_put_u64(at + HEADER_ABOUT + 8, id->about[1]);
}

void sl_cache_header_put(const sl_cache_id *id, uint8_t block[SL_CACHE_BLOCK_BYTES])
{
    put_id(id, block);
    sl_put_u32(block + SL_CACHE_CRC_AT, sl_crc32c(0, block, SL_CACHE_CRC_AT));
}

sl_err sl_cache_header_get(const uint8_t block[SL_CACHE_BLOCK_BYTES], const char kind[8], uint32_t version,
                           sl_cache_id *ret_id)
{
    sl_cache_id id = { .version = sl_get_u32(block + HEADER_VERSION),
                       .about = { sl_get_u64(block + HEADER_ABOUT), sl_get_u64(block + HEADER_ABOUT + 8) } };

    if (memcmp(block + HEADER_KIND, kind, sizeof id.kind) != 0)
        return SL_ERR_CORRUPT;
    if (sl_get_u32(block + SL_CACHE_CRC_AT) != sl_crc32c(0, block, SL_CACHE_CRC_AT))
        return SL_ERR_CORRUPT;
    if (id.version != version)
        return SL_ERR_VERSION;
    memcpy(id.kind, block + HEADER_KIND, sizeof id.kind);
    memcpy(id.store.bytes, block + HEADER_STORE, sizeof id.store.bytes);
    *ret_id = id;
    return SL_OK;
}

uint32_t sl_cache_seed(const sl_cache_id *id)
{
    uint8_t bytes[SL_CACHE_ID_BYTES];

    put_id(id, bytes);
    return sl_crc32c(0, bytes, sizeof bytes);
}

uint32_t sl_cache_crc(uint32_t seed, uint64_t part, const void *data, size_t bytes)
{
    uint8_t number[8];

    sl_put_u64(number, part);
    return sl_crc32c(sl_crc32c(seed, number, sizeof number), data, bytes);
}

/* --- writing --- */

/* What a crash may have left under the passing name is in the way. */
static sl_err create(sl_cache_writer *writer)
{
    const sl_disk_ops *const ops = writer->disk->ops;
    const sl_err err = ops->remove(writer->disk, writer->passing_name);

    if (err != SL_OK && err != SL_ERR_NOT_FOUND)
        return err;
    return ops->create(writer->disk, writer->passing_name, 0, NULL, &writer->file);
}

sl_err sl_cache_writer_open(sl_cache_writer *writer, sl_disk *disk, uint64_t number, const char *suffix)
{
    char passing_suffix[SL_CACHE_NAME_BYTES - NUMBER_DIGITS];

    *writer = (sl_cache_writer){ .disk = disk };
    snprintf(passing_suffix, sizeof passing_suffix, "%s.tmp", suffix);
    sl_cache_name(number, suffix, writer->name);
    sl_cache_name(number, passing_suffix, writer->passing_name);
    writer->gathered = malloc(GATHERED_BYTES_MAX);
    if (writer->gathered == NULL)
        return SL_ERR_NOMEM;
    memset(writer->gathered, 0, SL_CACHE_BLOCK_BYTES); /* block 0 has no meaning until the commit */
    writer->gathered_bytes = SL_CACHE_BLOCK_BYTES;
    return create(writer);
}

static sl_err flush(sl_cache_writer *writer)
{
    const sl_err err =
        writer->disk->ops->write(writer->file, writer->offset, writer->gathered, writer->gathered_bytes);

    writer->offset += writer->gathered_bytes;
    writer->gathered_bytes = 0;
    return err;
}

sl_err sl_cache_writer_add(sl_cache_writer *writer, const void *data, size_t bytes)
{
    assert(bytes <= GATHERED_BYTES_MAX);
    if (bytes > GATHERED_BYTES_MAX - writer->gathered_bytes) {
        const sl_err err = flush(writer);
        if (err != SL_OK)
            return err;
    }
    memcpy(writer->gathered + writer->gathered_bytes, data, bytes);
    writer->gathered_bytes += bytes;
    return SL_OK;
}

static void close_file(sl_cache_writer *writer)
{
    if (writer->file != NULL)
        writer->disk->ops->close(writer->file);
    writer->file = NULL;
}

sl_err sl_cache_writer_commit(sl_cache_writer *writer, const uint8_t header[SL_CACHE_BLOCK_BYTES])
{
    const sl_disk_ops *const ops = writer->disk->ops;
    sl_err err = flush(writer);

    if (err == SL_OK)
        err = ops->write(writer->file, 0, header, SL_CACHE_BLOCK_BYTES);
    if (err == SL_OK)
        err = ops->sync(writer->file);
    if (err == SL_OK)
        err = ops->rename(writer->disk, writer->passing_name, writer->name);
    if (err == SL_OK)
        close_file(writer);
    return err;
}

void sl_cache_writer_done(sl_cache_writer *writer)
{
    if (writer->file != NULL) {
        close_file(writer);
        (void)writer->disk->ops->remove(writer->disk, writer->passing_name); /* the next writer tries again */
    }
    free(writer->gathered);
    writer->gathered = NULL;
}
