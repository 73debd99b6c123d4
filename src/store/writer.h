/* store/writer.h — a batch becomes records: the same for every backend.
 *
 *      batch --> op by op: verdict (store/verdict.h) --> events, in order, each with stream, revision and position
 *                                                    --> directory and ids know of them
 *
 * The backend brings a place to put the records, and an answer to "what stands in this stream at that revision". An op sees
 * what the ops before it did. When one fails, directory, ids and positions are as they were before the batch, and the
 * backend drops what it was given since.
 *
 * Some ops write an event that nobody sent:
 *   - DELETE writes {"$tb": 2^63 - 1} to the $$ stream. Other metadata is lost by that, as with KurrentDB.
 *   - an APPEND to a soft-deleted stream is followed by its metadata with "$tb" set to the first new revision: what was
 *     deleted stays hidden.
 *   - an APPEND to the $$ stream of a soft-deleted stream is followed by the same metadata with "$tb" set likewise.
 *   - TOMBSTONE writes a $streamDeleted event with revision SL_REVISION_MAX to the stream. */
#ifndef SL_STORE_WRITER_H
#define SL_STORE_WRITER_H

#include "base/buf.h"
#include "store/directory.h"
#include "store/ids.h"
#include "store/store.h"

typedef struct sl_writer {
    sl_directory directory;
    sl_ids ids;
    uint64_t next_position;
    sl_hash_seed seed; /* for the ids of events that nobody sent */
    sl_buf scratch;    /* metadata in the making */
} sl_writer;

/* Where records go. What is pointed to is gone after the call. */
typedef struct sl_writer_out {
    void *ctx;
    /* The next record is this event, with all its fields; `stream` is its id in the directory.
     * SL_OK, or an error that ends the batch. */
    sl_err (*event)(void *ctx, uint32_t stream, const sl_event *event);
    /* The next record is this GROUP op. SL_OK, SL_ERR_EXISTS, SL_ERR_NOT_FOUND, or an error that ends the batch. */
    sl_err (*group)(void *ctx, uint64_t position, const sl_op *op);
    /* The event of a stream at a revision, also of this batch; views are good until the next call.
     * SL_OK, SL_ERR_NOT_FOUND, or an error that ends the batch. */
    sl_err (*at)(void *ctx, uint32_t stream, uint64_t revision, sl_event *ret_event);
} sl_writer_out;

/* SL_OK or SL_ERR_NOMEM. alloc must live as long as the writer. */
sl_err sl_writer_init(sl_writer *writer, const sl_alloc *alloc, sl_hash_seed seed);

/* Also right for one that is all zero. */
void sl_writer_done(sl_writer *writer);

/* The batch must have passed sl_batch_check(). results: one for each op.
 *   SL_OK
 *   SL_ERR_WRONG_REVISION, STREAM_DELETED, EXISTS, NOT_FOUND   results[*ret_failed_op] says what is right: an answer
 *   SL_ERR_TOO_LARGE   with the events that nobody sent it would pass SL_BATCH_BYTES_MAX
 *   SL_ERR_NOMEM, and what the functions of `out` give         no answer: the batch was not taken */
sl_err sl_writer_take(sl_writer *writer, const sl_batch *batch, const sl_writer_out *out,
                      sl_op_result *results, uint32_t *ret_failed_op);

/* Undoes the newest batches, back to the mark that was taken before the oldest of them: for a backend that learns later
 * that it cannot write them. sl_writer_keep() makes everything final, ends all marks, and has to be called now and then,
 * because the list of what could be undone grows until it is. */
typedef struct sl_writer_mark {
    size_t directory;
    uint64_t ids, position;
} sl_writer_mark;

sl_writer_mark sl_writer_marked(const sl_writer *writer);
void sl_writer_rollback(sl_writer *writer, sl_writer_mark mark);
void sl_writer_keep(sl_writer *writer);

/* True for the errors that are answers to the batch. */
bool sl_writer_answers(sl_err err);

/* An event is read again after a restart, in the order of positions. SL_OK or SL_ERR_NOMEM. */
sl_err sl_writer_replay(sl_writer *writer, const sl_event *event, uint32_t *ret_stream);

#endif
