/* store/verdict.h — may this be written? The rules of expected revisions and of repeated appends, and nothing else.
 *
 * Pure: what is known of the stream comes in, with two ways to ask for earlier events; the verdict comes out. The first row
 * that fits decides; "current" is the revision of the last event, -1 without one.
 *
 *      stream, expectation                           append                    soft delete       tombstone
 *   1  tombstoned                                    deleted (*)               deleted           deleted
 *   2  soft-deleted, STREAM_EXISTS                   deleted                   deleted           deleted
 *   3  no events and no metadata, STREAM_EXISTS      wrong                     wrong             wrong
 *   3b the same, any other expectation               go on                     wrong             go on
 *   4  ANY, STREAM_EXISTS: ids among the recent ones of this stream
 *        all of them                                 repeated                  -                 -
 *        not the first                               write                     write             write
 *        the first, but not a later one              wrong                     -                 -
 *   5  EXACT, NO_STREAM: expected < current: ids that stand at expected + 1, + 2, ...
 *        all equal                                   repeated                  -                 -
 *        not the first, NO_STREAM, soft-deleted      write                     write             write
 *        else                                        wrong                     wrong             wrong
 *   6  expected > current                            wrong                     wrong             wrong
 *   7  expected = current                            write, no id is looked at write             write
 *
 * Where more would have to be read for row 5 than a batch may make the store read, the repetition is not proven: wrong.
 *
 * (*) an append of no events goes on to the other rows: it asks, and writes nothing. It never counts as repeated. Data is
 * not compared: an id is the same event, whatever it brings. */
#ifndef SL_STORE_VERDICT_H
#define SL_STORE_VERDICT_H

#include "store/store.h"

/* What has to be known of a stream. */
typedef struct sl_known {
    uint64_t last; /* SL_REVISION_NONE without events, SL_REVISION_MAX when tombstoned */
    bool tombstoned, soft_deleted, has_metadata;
} sl_known;

typedef struct sl_seen {
    sl_uuid id;
    uint64_t revision, position;
} sl_seen;

/* Both ask about the stream in question. */
typedef struct sl_lookup {
    void *ctx;
    /* The newest recently written event with this id. */
    bool (*recent)(void *ctx, sl_uuid id, sl_seen *ret_seen);
    /* The event at a revision, also one that the batch in the making has put there. SL_ERR_NOT_FOUND: there is none or it
     * was scavenged; SL_ERR_TOO_LARGE: that would be too much to read; any other error ends the batch. */
    sl_err (*at)(void *ctx, uint64_t revision, sl_seen *ret_seen);
} sl_lookup;

typedef enum sl_verdict_kind {
    SL_VERDICT_WRITE,
    SL_VERDICT_REPEATED,
    SL_VERDICT_REFUSED,
} sl_verdict_kind;

typedef struct sl_verdict {
    sl_verdict_kind kind;
    sl_err err; /* REFUSED: WRONG_REVISION, STREAM_DELETED, or what sl_lookup.at gave */
    uint64_t
        revision; /* WRITE: of the first new event. REPEATED: of its last event. REFUSED: the current one */
    uint64_t position; /* REPEATED: of its last event */
} sl_verdict;

sl_verdict sl_verdict_append(const sl_known *known, sl_expected expected, const sl_event_in *events,
                             uint32_t event_count, const sl_lookup *lookup);
sl_verdict sl_verdict_delete(const sl_known *known, sl_expected expected);
sl_verdict sl_verdict_tombstone(const sl_known *known, sl_expected expected);

#endif
