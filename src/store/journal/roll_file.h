/* store/journal/roll_file.h — the bytes of a roll, written and read from its beginning to its end.
 *
 *      block 0   header: cache_file.h, number of entries, size of the file
 *      part      checksum 4 | size 4 | entry | entry | ...      65536 bytes at most; an entry is in one part
 *      entry     last revision 8 | size of the name 2 | flags 1 | of a $$ stream what it keeps 24 | name
 *
 * Both sides hold one part in memory, whatever the roll covers. */
#ifndef SL_STORE_JOURNAL_ROLL_FILE_H
#define SL_STORE_JOURNAL_ROLL_FILE_H

#include "store/journal/cache_file.h"
#include "store/journal/roll.h"

enum {
    SL_ROLL_VERSION = 1,
    SL_ROLL_PART_BYTES_MAX = 65536,
    SL_ROLL_PART_HEAD_BYTES = 8,
    SL_ROLL_ENTRY_HEAD_BYTES = 11,
    SL_ROLL_KEEP_BYTES = 24,
};

#define SL_ROLL_SUFFIX "roll"

typedef struct sl_roll_writer {
    sl_cache_writer out;
    sl_cache_id id;
    uint32_t seed;
    uint8_t *part;
    size_t part_bytes;
    uint64_t part_number, entry_count, bytes; /* bytes: of the file, so far */
} sl_roll_writer;

/* Codes and life as those of sl_cache_writer. Entries must come in the order of (hash, name). */
sl_err sl_roll_writer_open(sl_roll_writer *writer, sl_disk *disk, sl_uuid store, uint64_t from, uint64_t to);
sl_err sl_roll_writer_add(sl_roll_writer *writer, const sl_roll_entry *entry);
sl_err sl_roll_writer_commit(sl_roll_writer *writer);
void sl_roll_writer_done(sl_roll_writer *writer);

typedef struct sl_roll_reader {
    sl_file *file;
    sl_roll_info info;
    uint32_t seed;
    uint8_t *part; /* taken with the first part */
    size_t part_bytes, at;
    uint64_t offset, bytes; /* of the next part; of the file */
    uint64_t part_number, entries_left;
} sl_roll_reader;

/* Reads the header. SL_OK, SL_ERR_NOT_FOUND, SL_ERR_CORRUPT (also: of another store or segment), SL_ERR_VERSION, SL_ERR_IO.
 * After open, also one that failed, comes done. */
sl_err sl_roll_reader_open(sl_roll_reader *reader, sl_disk *disk, sl_uuid store, uint64_t number);

/* The next entry; its name is good until the next call.
 *   SL_OK
 *   SL_ERR_EMPTY    that was the last one, and everything added up
 *   SL_ERR_CORRUPT, SL_ERR_IO, SL_ERR_NOMEM */
sl_err sl_roll_reader_next(sl_roll_reader *reader, sl_roll_entry *ret_entry);
void sl_roll_reader_done(sl_roll_reader *reader);

#endif
