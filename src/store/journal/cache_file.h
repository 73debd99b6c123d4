/* store/journal/cache_file.h — what index files and rolls have in common: files that are made from segments.
 *
 *      block 0   what it was made from, written last       the rest   parts, each with a checksum of its own
 *
 * A file of this kind is written once, under a passing name, synced, and only then given its own name: under that name it
 * is whole or not there. A power cut leaves at most a passing name, which the next writer of the same file removes.
 *
 * No byte is outside of a checksum. That of a part continues from the file's seed (kind, version, store, and the two
 * numbers that say what it is about) and from the number of the part, so that no part can be taken for another one, of
 * this file or of any other. */
#ifndef SL_STORE_JOURNAL_CACHE_FILE_H
#define SL_STORE_JOURNAL_CACHE_FILE_H

#include "base/uuid.h"
#include "store/journal/disk.h"

enum {
    SL_CACHE_BLOCK_BYTES = 4096, /* of block 0 */
    SL_CACHE_ID_BYTES = 48,      /* of it for the id; then the owner's own fields */
    SL_CACHE_CRC_AT = SL_CACHE_BLOCK_BYTES - 4,
    SL_CACHE_NAME_BYTES = 32,
};

typedef struct sl_cache_id {
    char kind[8];
    uint32_t version;
    sl_uuid store;
    uint64_t
        about[2]; /* of an index: segment and how often it was rewritten; of a roll: first and last segment */
} sl_cache_id;

/* "000000000000002a.idx" for 42 and "idx"; sl_cache_number() is the way back: false for any other name. */
void sl_cache_name(uint64_t number, const char *suffix, char name[SL_CACHE_NAME_BYTES]);
bool sl_cache_number(const char *name, const char *suffix, uint64_t *ret_number);

/* Puts the id into block 0, whose other fields are there already, and ends it with its checksum. */
void sl_cache_header_put(const sl_cache_id *id, uint8_t block[SL_CACHE_BLOCK_BYTES]);

/* SL_OK, SL_ERR_CORRUPT (also: of another kind), SL_ERR_VERSION (right, but of another version than `version`). */
sl_err sl_cache_header_get(const uint8_t block[SL_CACHE_BLOCK_BYTES], const char kind[8], uint32_t version,
                           sl_cache_id *ret_id);

uint32_t sl_cache_seed(const sl_cache_id *id);
uint32_t sl_cache_crc(uint32_t seed, uint64_t part, const void *data, size_t bytes);

/* Writes a file from its beginning to its end, then its block 0. */
typedef struct sl_cache_writer {
    sl_disk *disk;
    sl_file *file; /* NULL: there is nothing under the passing name */
    char name[SL_CACHE_NAME_BYTES], passing_name[SL_CACHE_NAME_BYTES];
    uint8_t *gathered;
    size_t gathered_bytes;
    uint64_t offset; /* where the gathered bytes belong */
} sl_cache_writer;

/* All give SL_OK, SL_ERR_IO, SL_ERR_NO_SPACE or SL_ERR_NOMEM. After open, also one that failed, comes done: unless the
 * commit succeeded it takes away what was written. A file of this name that was there before stays until the commit. */
sl_err sl_cache_writer_open(sl_cache_writer *writer, sl_disk *disk, uint64_t number, const char *suffix);
sl_err sl_cache_writer_add(sl_cache_writer *writer, const void *data, size_t bytes);
sl_err sl_cache_writer_commit(sl_cache_writer *writer, const uint8_t header[SL_CACHE_BLOCK_BYTES]);
void sl_cache_writer_done(sl_cache_writer *writer);

/* Removes a file, and does not mind if there is none. */
sl_err sl_cache_remove(sl_disk *disk, uint64_t number, const char *suffix);

#endif
