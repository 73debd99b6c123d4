/* store/journal/journal_private.h — what the files of the embedded store share.
 *
 *      journal.c    batches come in, are written, become durable, are answered
 *      shelf.c      what is known of each segment; sealing
 *      states.c     snapshots of groups, loading them
 *      fetch.c      bytes of segments and index files, at once or when they have come
 *      lookup.c     which record holds an event
 *      cursor*.c    reading
 *      space.c      getting space back
 *      reopen.c     everything that has to be known again after a restart
 *
 * Everything here is the loop's thread, but for the tasks of sl_background. */
#ifndef SL_STORE_JOURNAL_JOURNAL_PRIVATE_H
#define SL_STORE_JOURNAL_JOURNAL_PRIVATE_H

#include "store/answers.h"
#include "store/backend.h"
#include "store/journal/background.h"
#include "store/journal/groups.h"
#include "store/journal/journal.h"
#include "store/journal/log.h"
#include "store/journal/recent.h"
#include "store/journal/records.h"
#include "store/writer.h"

/* What is known of one segment. It lives as long as somebody reads from its files. */
typedef struct journal_shelf {
    uint32_t refs;
    sl_segment_ref segment; /* `end` of the last one is not kept up to date: ask the log */
    bool owns_file;         /* the log has another file for it now */
    bool sealing;           /* a task makes its index */
    sl_index *index;        /* NULL: */
    sl_recent recent;
} journal_shelf;

typedef struct journal_space journal_space; /* space.c */

/* A block of an index that a question of lookup.c has read. */
typedef struct journal_block {
    sl_file *file; /* NULL: none was read */
    uint64_t offset;
    uint8_t bytes[SL_INDEX_BLOCK_BYTES];
} journal_block;

typedef struct journal_store {
    sl_store base;
    const sl_alloc *alloc;
    sl_disk *disk; /* the log's */
    sl_log *log;
    sl_writer writer;
    journal_groups groups;
    sl_answers answers;
    journal_shelf **shelves; /* one for each segment of the log, in the same order */
    uint32_t shelf_count;
    journal_shelf *next_shelf; /* reserved */
    size_t shelf_capacity;
    sl_background sealer, fetcher;
    uint64_t told_end;      /* what the listener knows */
    uint64_t states_number; /* the last segment that has a GROUPS_FROM record */
    uint64_t states_from;   /* and what it says */
    journal_space *space;   /* a scavenge; NULL: none */
    uint32_t space_next;    /* the shelf that is looked at when the next segment is sealed */
    sl_buf state;           /* of a group, in the making */
    sl_buf scratch;         /* a record that was read to decide about a batch */
    struct {
        bool valid, in_scratch;
        uint32_t stream;
        sl_event event; /* its texts stand in scratch */
    } looked_up;        /* lookup.c: the last one */
    struct {
        size_t bytes_left;       /* that it may still read */
        journal_block blocks[2]; /* of the last questions */
        uint32_t newest;         /* of the two */
        uint32_t stream, shelf;  /* where the last answer stood */
        bool shelf_known;
    } lookups;       /* lookup.c: of the batch in the making */
    bool overflowed; /* the frame in the making was announced too small */
    bool sync_by_os;
    bool closing;
    bool is_full; /* no room: passes by itself, and is told as long as there is nothing worse */
    char full_text[256];
    char problem_text[512]; /* damage, or a disk that failed: stays */
    sl_text problem;
} journal_store;

static inline journal_store *journal_of(sl_store *store)
{
    return SL_CONTAINER_OF(store, journal_store, base);
}

static inline journal_shelf *journal_last_shelf(const journal_store *store)
{
    return store->shelves[store->shelf_count - 1];
}

/* journal.c: frames. Begins one, also in a new segment; the same codes as sl_log_begin(). */
sl_err journal_begin(journal_store *store, size_t record_bytes, bool urgent);
void journal_end(journal_store *store);
void journal_abort(journal_store *store);
void journal_wake(void *store);

/* The next record of the frame, known to the shelf. SL_OK, SL_ERR_NOMEM, or SL_ERR_AGAIN: the frame is too small. */
sl_err journal_record(journal_store *store, sl_record_kind kind, size_t payload_bytes, uint8_t **ret_payload,
                      sl_log_place *ret_place);

/* A sentence for sl_store_problem(): what, in which file, where. It stays whatever becomes of the room on the disk. */
void journal_complain(journal_store *store, const char *what, const journal_shelf *shelf, bool in_index,
                      uint64_t offset);

/* shelf.c */
sl_err
journal_shelf_reserve(journal_store *store);  /* memory for the next one, before there is a segment for it */
void journal_shelf_add(journal_store *store); /* for the next segment of the log; not sealed */
void journal_shelf_release(journal_store *store, journal_shelf *shelf);
void journal_shelf_seal(journal_store *store, journal_shelf *shelf); /* in the background */
void journal_shelves_done(journal_store *store);

/* The shelf with the record of a position, or with the first one above it; shelf_count: none. */
uint32_t journal_shelf_of(const journal_store *store, uint64_t position);

/* Where a segment ends: positions, and bytes that may be read. */
uint64_t journal_shelf_end(const journal_store *store, uint32_t index);
uint64_t journal_shelf_bytes(const journal_store *store, uint32_t index);

/* states.c */
void journal_states_write(journal_store *store); /* those that are due */
sl_err journal_states_load(sl_store *store, const sl_loader *loader);

/* lookup.c: the event of a stream at a revision, durable or not; may wait for the disk. Views are good until the next call.
 * SL_OK, SL_ERR_NOT_FOUND, SL_ERR_CORRUPT, SL_ERR_IO, SL_ERR_NOMEM, SL_ERR_TOO_LARGE: the batch has made us read enough. */
void journal_lookup_begin(journal_store *store); /* the questions of the next batch */
sl_err journal_lookup(journal_store *store, uint32_t stream, uint64_t revision, sl_event *ret_event);

/* cursor.c */
sl_err journal_read(sl_store *store, const sl_read *read, sl_cursor **ret_cursor);

/* space.c */
sl_err journal_scavenge(sl_store *store, const sl_scavenge *how, sl_scavenged_fn *done, void *ctx);
void journal_space_sealed(journal_store *store);      /* a segment was: time to look at another */
bool journal_space_waits(const journal_store *store); /* for a sync */
void journal_space_poll(journal_store *store);
void journal_space_done(journal_store *store);

/* reopen.c */
sl_err journal_reopen(journal_store *store, const sl_journal_options *options, sl_text *report);

#endif
