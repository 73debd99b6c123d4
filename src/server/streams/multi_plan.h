/* server/streams/multi_plan.h — one append to several streams: what it wants, and the batch that does it.
 *
 *      records, in the order in which they shall stand in $all --> rows of events, each with its stream
 *                                                              --> runs of one stream, each an op
 *
 * One op for each run keeps that order; the store lets an op see what those before it did. A stream with several runs says what
 * it expects with the first; the later ones expect what the first will have made of it, so that a repeated append is still
 * recognised. An append with more runs than a batch can have is sorted by stream instead: each stream keeps its order.
 *
 * Names are compared exactly when something is written, and without the case of A to Z when something may be there only once. */
#ifndef SL_SERVER_STREAMS_MULTI_PLAN_H
#define SL_SERVER_STREAMS_MULTI_PLAN_H

#include "server/request.h"
#include "server/streams/gather.h"
#include "wire/multi_append.h"

enum {
    SL_MULTI_MESSAGE_BYTES_MAX = SL_BATCH_BYTES_MAX + SL_BATCH_BYTES_MAX / 2, /* as KurrentDB has it */
};

typedef struct sl_plan_stream {
    sl_map_node node;
    sl_str name;      /* in the arena of the request */
    uint32_t index;   /* of plan->streams */
    int64_t expected; /* a revision or SL_STATE_ */
    bool has_check;   /* AppendRecords: it came from check `check_index` */
    uint32_t check_index;
    uint32_t event_count; /* 0: it is only looked at */
    uint32_t written;     /* by the ops that were made so far */
    uint32_t last_op;     /* with events */
} sl_plan_stream;

typedef struct sl_plan {
    sl_request *request;
    sl_gather_claim claim;
    sl_arena scratch; /* of one record */
    sl_buf json;      /* the same */
    sl_map by_name;   /* sl_plan_stream.node; the table is in the arena of the request */
    size_t table_length;
    sl_plan_stream **streams; /* in the order in which they came */
    uint32_t stream_count, stream_capacity;
    sl_event_in *events;
    uint32_t *owners; /* of each event: the index of its stream */
    uint32_t event_count, event_capacity;
    uint64_t size, stored_bytes; /* of all events, as KurrentDB counts and as the store does */
    sl_op *ops;
    uint32_t *op_owners;
    uint32_t op_count, op_capacity;
} sl_plan;

void sl_plan_init(sl_plan *plan, sl_request *request);

/* Also right for one that is all zero, and twice. */
void sl_plan_done(sl_plan *plan);

/* The store has the batch: only what the answer needs is kept. */
void sl_plan_accepted(sl_plan *plan);

/* Functions that give false have ended the call. */

/* Everything that the call holds now is counted in SL_GATHERED_BYTES_MAX, and so much more, which it is about to take. */
bool sl_plan_claim(sl_plan *plan, uint64_t more_bytes);

/* NULL when there is none. A stream with a check is never the same as another one that differs in case only. */
sl_plan_stream *sl_plan_find(const sl_plan *plan, sl_str name);
sl_plan_stream *sl_plan_find_folded(const sl_plan *plan, sl_str name, bool with_check);

/* A new one that expects nothing; `name` must be in the arena of the request. */
bool sl_plan_add_stream(sl_plan *plan, sl_str name, sl_plan_stream **ret_stream);

/* Room for so many more events. */
bool sl_plan_reserve(sl_plan *plan, size_t record_count);

/* One of those, for that stream. */
bool sl_plan_add_record(sl_plan *plan, sl_plan_stream *stream, const sl_multi_record *record);

/* The batch, as it has to be now: what streams are at decides about later runs. */
bool sl_plan_batch(sl_plan *plan, sl_batch *ret_batch);

/* After the commit. */
int64_t sl_plan_revision(const sl_plan *plan, const sl_commit *commit, const sl_plan_stream *stream);
int64_t sl_plan_position(const sl_plan *plan, const sl_commit *commit);

/* What the store says about a stream now: a revision, or SL_STATE_NO_STREAM, _DELETED or _TOMBSTONED; and whether that is
 * what `expected` asks for, as the store would decide. */
int64_t sl_plan_actual(const sl_plan *plan, sl_str name);
bool sl_plan_holds(const sl_plan *plan, sl_str name, int64_t expected);

#endif
