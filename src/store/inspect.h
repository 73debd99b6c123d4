/* store/inspect.h — looking at a journal without opening it: verify, dump, stats, backup.
 *
 * Everything here reads and takes no lock, so it works beside a server that runs on the same folder: what the server
 * writes meanwhile is seen in part, and never taken for damage. Everything goes on behind damage and tells all of it,
 * where opening the store would stop at the first. All of it waits for the disk: for commands, not for loops. */
#ifndef SL_STORE_INSPECT_H
#define SL_STORE_INSPECT_H

#include "base/str.h"
#include "core/effect.h"
#include "store/store.h"

/* Something that was found: damage, or what is no damage but worth knowing (a torn end after a crash). Texts are whole
 * sentences, good during the call. */
typedef struct sl_finding {
    bool is_damage;
    const char *file; /* its name in the folder */
    uint64_t offset;  /* in the file */
    const char *what; /* what is there and what it means */
    const char *advice;
    uint64_t lost_from,
        lost_to;       /* positions that can not be read because of it, lost_to not included; the same: none.
                                  * From 0: nobody knows from where on */
    bool lost_in_part; /* at least one of them, perhaps not all */
} sl_finding;

typedef struct sl_inspection {
    const char *folder;
    void *ctx;                                             /* for both: */
    void (*finding)(void *ctx, const sl_finding *finding); /* NULL: only counted */
    sl_progress_fn *progress;                              /* in bytes; NULL: nobody looks */
} sl_inspection;

/* Does a process have the folder open to write, as a server does? *ret_pid: its number; 0: unknown. Looks for an instant like
 * somebody who wants to open it, so ask when there is reason to think so. */
bool sl_journal_is_held(const char *folder, uint64_t *ret_pid);

/* All of the following give
 *   SL_OK             it was looked at, whether or not damage was found: that is counted in the result
 *   SL_ERR_NOT_FOUND  there is no such folder, or no journal in it
 *   SL_ERR_IO, SL_ERR_NOMEM
 * and in `report` a sentence on what went wrong and what to do. */

/* --- verify --- */

typedef struct sl_verified {
    uint64_t segments, frames, records, bytes; /* bytes: of records and frames that are right */
    uint64_t indexes, rolls;                   /* that are right */
    uint64_t first, end;                       /* positions */
    uint64_t damages, notes;
    uint64_t positions_lost;
} sl_verified;

/* Reads everything: frames and records of all segments, indexes against their segments, rolls. */
sl_err sl_journal_verify(const sl_inspection *how, sl_text *report, sl_verified *ret_verified);

/* --- dump --- */

typedef enum sl_journal_kind { /* as docs/JOURNAL.md numbers them */
    SL_JOURNAL_OPEN = 1,
    SL_JOURNAL_CLOSE = 2,
    SL_JOURNAL_EVENT = 3,
    SL_JOURNAL_GROUP_CREATE = 4,
    SL_JOURNAL_GROUP_DELETE = 5,
    SL_JOURNAL_GROUP = 6,
    SL_JOURNAL_GROUP_STATE = 7,
    SL_JOURNAL_GROUPS_FROM = 8,
    SL_JOURNAL_GROUP_UPDATE = 9,
    SL_JOURNAL_KIND_COUNT_
} sl_journal_kind;

/* "event", "group state"; "unknown" for what a later version wrote. */
const char *sl_journal_kind_name(unsigned kind);

typedef struct sl_journal_record {
    uint64_t segment, offset; /* where it stands */
    uint64_t position;
    unsigned kind;          /* sl_journal_kind, or a number of a later version */
    uint32_t bytes;         /* with its header */
    bool malformed;         /* its checksum is right, but it does not add up: nothing below is set */
    sl_event event;         /* EVENT */
    uint64_t group;         /* the five kinds of one group */
    sl_str definition;      /* GROUP_CREATE, GROUP_UPDATE, the first part of a GROUP_STATE */
    sl_str records;         /* GROUP: one or more, see sl_journal_record_next() */
    bool is_first, is_last; /* parts of a GROUP_STATE */
    sl_str state;           /* GROUP_STATE: records, see sl_journal_state_next() */
    uint64_t groups_from;   /* GROUPS_FROM: a segment */
} sl_journal_record;

/* Takes the next record from the front of `records` or `state`. SL_OK, SL_ERR_EMPTY, SL_ERR_CORRUPT. */
sl_err sl_journal_record_next(sl_str *records, sl_effect *ret_effect);
sl_err sl_journal_state_next(sl_str *state, sl_effect *ret_effect);

typedef struct sl_dump_range {
    uint64_t segment; /* 0: all */
    uint64_t from;    /* position */
    uint64_t count;   /* at most so many records; 0: all */
    sl_str stream;    /* not empty: only events of this stream */
} sl_dump_range;

typedef void sl_journal_record_fn(void *ctx, const sl_journal_record *record);

/* Records in the order of their positions, with findings between them where they are. `visit` gets the ctx of `how`.
 * *ret_damages counts what was found on the way: only what is read is looked at. */
sl_err sl_journal_dump(const sl_inspection *how, const sl_dump_range *range, sl_journal_record_fn *visit,
                       sl_text *report, uint64_t *ret_damages);

/* --- stats --- */

enum {
    SL_STATS_STREAMS_MAX = 10
};

typedef struct sl_stream_stats {
    char name[SL_STREAM_NAME_BYTES_MAX + 1];
    size_t name_bytes;
    uint64_t events, bytes; /* that are there, hidden ones as well; bytes of their records */
} sl_stream_stats;

typedef struct sl_journal_stats {
    sl_uuid store;
    uint64_t segments, rewritten_segments;
    uint64_t segment_bytes, used_bytes; /* of all files, and what frames take of it */
    uint64_t indexes, index_bytes, rolls, roll_bytes;
    uint64_t first, end;                      /* positions */
    uint64_t epoch, opened, closed;           /* the newest; how many records of each */
    uint64_t records[SL_JOURNAL_KIND_COUNT_]; /* by kind; 0: unknown kinds */
    uint64_t record_bytes[SL_JOURNAL_KIND_COUNT_];
    uint64_t event_data_bytes;                  /* data and metadata of events */
    uint64_t streams, tombstoned, soft_deleted; /* that have an event in the journal */
    uint64_t groups;                            /* that exist */
    uint64_t hidden_events, hidden_bytes;       /* by $maxCount, $tb, deletion: about, and without $maxAge */
    uint64_t old_group_bytes;                   /* records of groups that newer states have replaced */
    uint32_t largest_count;
    sl_stream_stats largest[SL_STATS_STREAMS_MAX]; /* by bytes */
    uint64_t damages;                              /* what is damaged is not counted above */
} sl_journal_stats;

sl_err sl_journal_stats_read(const sl_inspection *how, sl_text *report, sl_journal_stats *ret_stats);

/* --- backup --- */

typedef struct sl_backed_up {
    uint64_t segments, bytes, caches; /* bytes: copied; caches: index files and rolls that came along */
    uint64_t first, end;              /* positions */
    uint64_t rounds;                  /* more than one: the server went on to new segments meanwhile */
} sl_backed_up;

/* Copies the journal into `target`, a folder that does not exist or is empty. Everything that was durable when this was
 * called is in the copy; it is a prefix of what the server writes. The copy is made beside the target, verified, and
 * gets its name at the end: under that name it is complete or not there. Besides the codes above
 *   SL_ERR_EXISTS     there is something in the target, or an unfinished copy beside it
 *   SL_ERR_INVALID    the target can not be made: a mount point, no parent
 *   SL_ERR_NO_SPACE   nothing is left of the copy
 *   SL_ERR_CORRUPT    the journal is damaged: the findings say where; nothing is left of the copy */
sl_err sl_journal_backup(const sl_inspection *how, const char *target, sl_text *report,
                         sl_backed_up *ret_done);

/* --- is there one --- */

/* For commands that open the store, which would make a folder that is not there, and segments of another size than those
 * that are: *ret_segment_bytes is the size of the newest. SL_OK, SL_ERR_NOT_FOUND, SL_ERR_IO, SL_ERR_NOMEM. */
sl_err sl_journal_look(const char *folder, sl_text *report, uint64_t *ret_segment_bytes);

#endif
