/* store/store.h — the one door to what lasts: events, streams, groups.
 *
 *      submit(batch) --> written in order --> durable --> done()        what is written
 *      read(...)     --> cursor --> next() --> views of events          what is read
 *
 * One sequence of records, one position for each, whatever it is about (a store may have records of its own). A batch is one commit: all of it is there
 * or nothing. The caller is one thread with a loop of its own: it submits what a turn brings, ends the turn with
 * sl_store_turn(), waits for sl_store_wait_fd() beside its sockets, and lets sl_store_poll() call back. No function
 * here waits for a disk or a database, except open, load and close.
 *
 * Errors: a batch that breaks a rule (a wrong revision, a deleted stream) is answered and changes nothing. A store
 * that failed (a sync that did not succeed, a write error) answers everything with SL_ERR_STORE_FAILED from then on
 * and keeps its data; it is never tried again, because nobody knows what the disk has. */
#ifndef SL_STORE_STORE_H
#define SL_STORE_STORE_H

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "base/uuid.h"
#include "core/effect.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_store sl_store;   /* opaque; made by the _open functions of the backends, below */
typedef struct sl_cursor sl_cursor; /* opaque */

enum {
    SL_STREAM_NAME_BYTES_MAX = 1024, /* with the $$ of its metadata stream. Longer ones only fill memory */
    SL_EVENT_TYPE_BYTES_MAX = 1024,
    SL_EVENT_BYTES_MAX = 16 * 1024 * 1024, /* data + metadata, as KurrentDB's MaxAppendEventSize */
    SL_BATCH_BYTES_MAX = 32 * 1024 * 1024, /* all of one batch: half a segment, so that one always fits */
    SL_BATCH_OPS_MAX = 4096,
    SL_OP_RECORDS_MAX = 64, /* of a group; more of them cost hardly less for each */
    /* What each op counts for beside its texts and data. An append counts it for each of its events as well, one with records of a group
     * for each of these instead. */
    SL_RECORD_HEAD_BYTES = 128,
    SL_METADATA_BYTES_MAX = 64 * 1024, /* data of an event in a $$ stream: it is parsed as JSON, in memory */
    SL_GROUP_DEFINITION_BYTES_MAX = 64 * 1024,
    SL_LOOKUP_BYTES_MAX = 64 * 1024 * 1024,  /* of older events that are read to decide about one batch */
    SL_WAITING_BYTES_MAX = 64 * 1024 * 1024, /* of batches that are not done: two of the largest */
};

#define SL_POSITION_FIRST UINT64_C(1)               /* so that "after 0" is everything */
#define SL_REVISION_NONE  UINT64_MAX                /* the stream has no event */
#define SL_REVISION_MAX   ((UINT64_C(1) << 63) - 1) /* of a tombstone; also $tb of a soft-deleted stream */

/* --- what is written --- */

typedef enum sl_expect {
    SL_EXPECT_ANY,
    SL_EXPECT_NO_STREAM,
    SL_EXPECT_STREAM_EXISTS,
    SL_EXPECT_EXACT,
} sl_expect;

typedef struct sl_expected {
    sl_expect kind;
    uint64_t revision; /* EXACT: of the last event */
} sl_expected;

typedef struct sl_event_in {
    sl_uuid id;            /* not zero. Two events may have the same */
    sl_str type;           /* UTF-8 without a zero byte, as stream names are */
    sl_str data, metadata; /* any bytes */
    bool is_json;          /* the content type of data */
    uint64_t created_ns;   /* wall clock */
} sl_event_in;

typedef enum sl_op_kind {
    SL_OP_APPEND,
    SL_OP_DELETE,       /* soft: hides all events; the next append goes on with the next revision */
    SL_OP_TOMBSTONE,    /* for ever */
    SL_OP_GROUP_CREATE, /* a group exists, described by `definition` */
    SL_OP_GROUP_DELETE, /* and does not any more: its records are forgotten */
    SL_OP_GROUP_RECORD, /* what core/group.h emitted for it: all of it or nothing, and loaded in this order */
    SL_OP_GROUP_UPDATE, /* an existing group has another `definition` from now on; its records stay */
} sl_op_kind;

/* Memory stays the caller's; nothing is kept after sl_store_submit() has returned. */
typedef struct sl_op {
    sl_op_kind kind;
    union {
        struct {
            sl_str stream;
            sl_expected expected;
            const sl_event_in *events;
            uint32_t event_count;
        } append;
        struct {
            sl_str stream;
            sl_expected expected;
            uint64_t created_ns;
            sl_uuid id; /* of the event that says so: $metadata or $streamDeleted */
        } remove;       /* DELETE and TOMBSTONE */
        struct {
            uint64_t group;
            sl_str definition;
        } group_create;
        struct {
            uint64_t group;
        } group_delete;
        struct {
            uint64_t group;
            const sl_effect *records;
            uint32_t record_count; /* 1 to SL_OP_RECORDS_MAX */
        } group_record;
        struct {
            uint64_t group;
            sl_str definition;
        } group_update;
    };
} sl_op;

typedef enum sl_durability {
    SL_DURABLE_SYNC,    /* done() when it survives a power cut */
    SL_DURABLE_WRITTEN, /* done() when it survives the death of this process: leases. Only GROUP ops, because
                         * an event may not be seen and then be gone */
} sl_durability;

typedef struct sl_batch {
    const sl_op *ops;
    uint32_t op_count;
    sl_durability durability;
    bool
        patient; /* SYNC: it goes along with the next sync that somebody else wants, or with sl_store_hurry() */
} sl_batch;

/* What became of an APPEND, DELETE or TOMBSTONE.
 *
 *                     revision                                          position
 *   APPEND            of its last event                                 of its last event
 *   ... repeated      the same, as they were when it was written first
 *   ... of 0 events   of the last event, SL_REVISION_NONE without any   the newest position there is
 *   DELETE            the same                                          of the $metadata event
 *   TOMBSTONE         SL_REVISION_MAX                                   of the $streamDeleted event
 *   refused           what would have been right: the same as with 0 events */
typedef struct sl_op_result {
    uint64_t revision, position;
    bool repeated; /* idempotent: it was there before */
} sl_op_result;

typedef struct sl_commit {
    /*   SL_OK
     *   SL_ERR_WRONG_REVISION   op `failed_op`; nothing of the batch was written
     *   SL_ERR_STREAM_DELETED   op `failed_op`; the same
     *   SL_ERR_EXISTS, SL_ERR_NOT_FOUND   a group that is there already, or is not; the same
     *   SL_ERR_NO_SPACE         the disk is full: appends are refused, settling goes on
     *   SL_ERR_STORE_FAILED     it may or may not be there after a restart */
    sl_err err;
    uint32_t failed_op;
    const sl_op_result *results; /* one for each op; valid during the call */
} sl_commit;

typedef void sl_done_fn(void *ctx, const sl_commit *commit);

/* Takes a batch. done() is called once, from sl_store_poll() or sl_store_close(), in the order of submission among
 * batches of the same durability. It may submit and read, but not poll, turn or close; what it
 * submits is answered by a later poll. On any error nothing was taken and done() is not called.
 *   SL_OK
 *   SL_ERR_INVALID     no ops; an empty or reserved stream name ($all, $$, and $$$$..., the metadata of metadata); a
 *                      name or type that is no UTF-8 or has a zero byte; no event type; an event id of zeros; delete or
 *                      tombstone of a $$ stream; a group number 0; an answer as record; an event in a WRITTEN batch
 *   SL_ERR_TOO_LARGE   one of the limits above. Of SL_LOOKUP_BYTES_MAX only for metadata of soft-deleted streams: a
 *                      repetition that cannot be proven within it is a wrong revision
 *   SL_ERR_FULL        too much waits already: stop reading from clients until done() was called
 *   SL_ERR_NO_SPACE    only records of groups, and not even for those is there room. It is said here and not by done(), so that
 *                      no later batch of a group gets in before this one: keep the batch and try again
 *   SL_ERR_NOMEM, SL_ERR_IO, SL_ERR_CORRUPT   what had to be read to decide could not be
 *   SL_ERR_STORE_FAILED */
sl_err sl_store_submit(sl_store *store, const sl_batch *batch, sl_done_fn *done, void *ctx);

/* The caller's turn ends: everything submitted is written, and a sync begins if somebody impatient waits for one. */
void sl_store_turn(sl_store *store);

/* Only the writing of a turn: what was submitted with WRITTEN is answered by the next poll, which the caller has to do without
 * waiting for the descriptor. For what came out of a poll and would else wait for the next turn, and for its sync. */
void sl_store_write(sl_store *store);

/* Patient batches have waited long enough: the next sl_store_turn() begins a sync for what was submitted until now. */
void sl_store_hurry(sl_store *store);

/* Readable when sl_store_poll() has something to do. */
int sl_store_wait_fd(const sl_store *store);
void sl_store_poll(sl_store *store);

/* --- what is read --- */

typedef struct sl_event {
    uint64_t position, revision;
    sl_uuid id;
    sl_str stream, type, data, metadata;
    bool is_json;
    uint64_t created_ns;
} sl_event;

typedef struct sl_filter sl_filter; /* see store/filter.h; NULL: everything */

typedef struct sl_read {
    sl_str stream; /* empty: all events, by position */
    bool backwards;
    uint64_t from; /* revision or position. Forwards: inclusive, below the first: from the first. Backwards: a
                    * revision inclusive, a position exclusive, above the last: from the last */
    uint64_t now_ns;         /* for $maxAge */
    const sl_filter *filter; /* only without a stream; must live as long as the cursor */
    bool shows_end;          /* forwards in a stream: one that is tombstoned can be opened too, and shows its
                              * $streamDeleted event. For who has begun before and lost the cursor meanwhile */
} sl_read;

/* Whether a stream is there, deleted or shortened counts from submission on, its events are shown when they are
 * durable. A stream that has all its events hidden or not yet durable is there, and empty.
   SL_OK
 *   SL_ERR_NOT_FOUND        no such stream, or it is soft-deleted
 *   SL_ERR_STREAM_DELETED   tombstoned; of a $$ stream: its stream is
 *   SL_ERR_INVALID          a filter and a stream
 *   SL_ERR_NOMEM */
sl_err sl_store_read(sl_store *store, const sl_read *read, sl_cursor **ret_cursor);

/* Up to `max` events. Views stay valid until the next call on this cursor. Only what is durable is shown.
 *   SL_OK            *ret_count >= 1
 *   SL_ERR_EMPTY     nothing more for now; a forward cursor may be asked again after the next commit
 *   SL_ERR_AGAIN     on its way, or a filter has looked at many events in vain: ask again after sl_store_poll(), for
 *                    which sl_store_wait_fd() becomes readable
 *   SL_ERR_STREAM_DELETED   instead of EMPTY: the stream was tombstoned since; a forward cursor has given the
 *                    $streamDeleted event before, and nothing of what it had not read yet
 *   SL_ERR_TOO_LARGE the filter gives up at the next event (store/filter.h): the cursor does not pass it, and asking
 *                    again gives the same
 *   SL_ERR_CORRUPT   damaged on disk; sl_store_problem() says where
 *   SL_ERR_IO */
sl_err sl_cursor_next(sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count);

/* Where a cursor over all events has looked up to, whether or not something matched: forwards everything at or below
 * this position, backwards everything at or above it; and how many events it has looked at since it was opened. */
uint64_t sl_cursor_position(const sl_cursor *cursor);
uint64_t sl_cursor_considered(const sl_cursor *cursor);
void sl_cursor_close(sl_cursor *cursor);

typedef enum sl_stream_state {
    SL_STREAM_MISSING, /* no events; it may have metadata */
    SL_STREAM_LIVE,
    SL_STREAM_SOFT_DELETED,
    SL_STREAM_TOMBSTONED,
} sl_stream_state;

typedef struct sl_stream_info {
    sl_stream_state state;
    uint64_t revision;  /* of the last event, durable or not; SL_REVISION_NONE without any */
    uint64_t first;     /* lowest revision that $maxCount and $tb leave */
    uint64_t max_count; /* 0: none; as in the metadata */
    uint64_t max_age_s;
    uint64_t truncate_before;
} sl_stream_info;

void sl_store_stream(const sl_store *store, sl_str stream, sl_stream_info *ret_info);

/* Position after the last durable record: what a reader of everything has not seen is below it. */
uint64_t sl_store_end(const sl_store *store);

/* Called from sl_store_poll() when sl_store_end() has moved. One listener. */
typedef void sl_committed_fn(void *ctx, uint64_t end);
void sl_store_on_commit(sl_store *store, sl_committed_fn *fn, void *ctx);

/* --- groups over a restart --- */

typedef struct sl_loader {
    void *ctx;
    sl_err (*group)(void *ctx, uint64_t group, sl_str definition);
    sl_err (*record)(void *ctx, uint64_t group, const sl_effect *record); /* in order, after its group */
} sl_loader;

/* Once, after open: every group that exists, with its newest definition and all that is needed to load it; groups may come
 * mixed. Gives the first error of a callback, or SL_ERR_CORRUPT, SL_ERR_IO. */
sl_err sl_store_load(sl_store *store, const sl_loader *loader);

/* Lets the store ask a group for its state (sl_group_snapshot), so that older records can be forgotten. Called from
 * sl_store_turn(), so whatever the group has emitted must have been submitted before. */
typedef void sl_snapshot_fn(void *ctx, uint64_t group, sl_sink sink);
void sl_store_on_snapshot(sl_store *store, sl_snapshot_fn *fn, void *ctx);

/* --- backends --- */

typedef struct sl_store_setup {
    const sl_alloc *alloc; /* must live as long as the store */
    sl_hash_seed seed;     /* secret: peers choose the names of streams and the ids of events */
} sl_store_setup;

/* Everything in memory. SL_OK, SL_ERR_NOMEM, or SL_ERR_IO when the system gives no descriptor. */
sl_err sl_store_open_memory(const sl_store_setup *setup, sl_store **ret_store);

typedef enum sl_restart {
    SL_RESTART_KILLED,    /* what was written is there: all batches before the last sl_store_turn() */
    SL_RESTART_POWER_CUT, /* only what was synced */
} sl_restart;

/* What a restart after a crash would leave of a memory store, in the same object: for tests and simulations. The done()
 * of what was lost is never called, hooks are forgotten, sl_store_load() is due again. Cursors must be closed before.
 *   SL_OK
 *   SL_ERR_NOMEM   it can only be closed now */
sl_err sl_store_memory_restart(sl_store *store, sl_restart kind);

/* Which part of a long opening is done: "index" while files that can be made anew are made anew. */
typedef void sl_progress_fn(void *ctx, const char *what, uint64_t done, uint64_t total);

typedef struct sl_journal_options {
    const char *folder; /* made if it is not there */
    bool sync_by_os;    /* durability "os": done() when the operating system has it */
    uint64_t
        segment_bytes; /* 0: SL_SEGMENT_BYTES; a multiple of 4096. SL_BATCH_BYTES_MAX must fit: tests only */
    uint32_t inline_max; /* so many batches of a turn are synced in the caller's thread; 0: SL_INLINE_MAX */
    sl_progress_fn *progress; /* NULL: nobody looks */
    void *progress_ctx;
} sl_journal_options;

enum {
    SL_SEGMENT_BYTES = 64 * 1024 * 1024,
    SL_INLINE_MAX = 16, /* shared measurements, 1f: below this a second thread costs more than it gives */
};

/* The embedded store: docs/JOURNAL.md. `report` gets sentences on what was found (a torn end that was cut, files that were
 * made anew), and with an error on what is wrong and what to do.
 *   SL_OK
 *   SL_ERR_LOCKED, SL_ERR_CORRUPT, SL_ERR_VERSION, SL_ERR_NO_SPACE, SL_ERR_IO, SL_ERR_NOMEM */
sl_err sl_store_open_journal(const sl_store_setup *setup, const sl_journal_options *options, sl_text *report,
                             sl_store **ret_store);

/* --- space that comes back --- */

/* What is hidden for good (by $maxCount, $maxAge, $tb, deletion) and old records of groups take room until they are
 * scavenged. Positions never change, the last event of every stream stays, reads and writes go on meanwhile. */
typedef struct sl_scavenge {
    uint64_t now_ns; /* for $maxAge */
    /* In percent: segments of which so much is dead or was never used are rewritten. 0: all that have something dead, and
     * those of which a quarter was never used. */
    uint32_t dead_share;
} sl_scavenge;

typedef struct sl_scavenged {
    sl_err
        err; /* SL_OK; SL_ERR_AGAIN: closing ended it early; else what it ended with. Segments that were rewritten
                 * before are good */
    uint64_t segments_seen, segments_rewritten;
    uint64_t events_dropped, records_dropped; /* records: of any kind */
    uint64_t bytes_freed;
} sl_scavenged;

typedef void sl_scavenged_fn(void *ctx, const sl_scavenged *result);

/* Begins in the background; done() comes from sl_store_poll(), or from sl_store_close(), which ends it early.
 *   SL_OK
 *   SL_ERR_EXISTS       one is running
 *   SL_ERR_NOT_FOUND    this store has nothing that could be scavenged (memory)
 *   SL_ERR_NOMEM, SL_ERR_STORE_FAILED */
sl_err sl_store_scavenge(sl_store *store, const sl_scavenge *how, sl_scavenged_fn *done, void *ctx);

/* --- the rest --- */

typedef enum sl_room {
    SL_ROOM_ENOUGH,
    SL_ROOM_SETTLING, /* appends are refused, or are about to be: what is left is for groups */
    SL_ROOM_LAST, /* half of that is used: what is left is for settling what was given out, and for nothing else */
} sl_room;

/* Asking makes it look for room once more, so ask seldom while it says so; and from then on sl_store_problem() tells it too. */
sl_room sl_store_room(sl_store *store);

/* A sentence on what is wrong with the store: which file, which offset, what to do. "" when nothing is. */
const char *sl_store_problem(const sl_store *store);
/* What it says is that there is no room, and nothing worse: what is written can be read, settling goes on, and appends will, too. */
bool sl_store_is_full(const sl_store *store);

/* Writes and syncs what was submitted, calls every done(), frees. Cursors must be closed before. */
void sl_store_close(sl_store *store);

#endif
