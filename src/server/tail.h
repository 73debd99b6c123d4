/* server/tail.h — who goes on reading, and when: after a commit, after the disk has answered, or in the next turn.
 *
 * A reader never waits in a loop: it does a bounded piece of work, then says what it waits for. Readers of one stream are run
 * only when that stream was written to, so ten thousand quiet subscriptions cost a commit nothing.
 *
 * Readers are many and greedy, so two things are rationed. Time: after SL_TAIL_SHARE_NS of a turn the others of the turn come
 * first (bytes, writes, answers), and the readers that are left go on in the next one, in order. Memory: a reader that
 * keeps buffers of the store between two runs needs one of SL_TAIL_PLACES_MAX places, or gives the buffers back. */
#ifndef SL_SERVER_TAIL_H
#define SL_SERVER_TAIL_H

#include "server/host.h"

#define SL_TAIL_SHARE_NS (UINT64_C(2) * 1000 * 1000) /* by the stopwatch; each run may exceed it by itself */

enum {
    SL_TAIL_PLACES_MAX = 64, /* a reader of the journal keeps up to 1.5 MB */
};

typedef struct sl_reader_node {
    sl_map_node by_stream; /* of those that wait for a commit of one stream */
    sl_list queue;         /* of those that wait for anything else, or are to be run */
    sl_str stream;         /* the owner's memory */
    uint64_t key;          /* of stream; 0: not computed yet */
    void (*run)(void *ctx);
    void *ctx;
    uint8_t waits_for;
    bool has_place;
} sl_reader_node;

/* For host.c. SL_OK or SL_ERR_NOMEM. */
sl_err sl_tail_new(sl_host *host, sl_tail **ret_tail);
void sl_tail_free(sl_tail *tail); /* NULL is allowed */

/* Once; run(ctx) is then called from sl_host_turn(), never from inside of the functions below. An empty
 * stream means all of them. The texts stay the caller's. */
void sl_reader_init(sl_reader_node *reader, sl_str stream, void (*run)(void *ctx), void *ctx);

/* Run it once ...; a reader that waits for one thing forgets the others. */

/* ... when its stream, or the metadata of it, may have something new. To be called in the turn in which the reader has read up
 * to SL_ERR_EMPTY. */
void sl_tail_wait_commit(sl_tail *tail, sl_reader_node *reader);

/* ... after the next sl_store_poll(): SL_ERR_AGAIN. */
void sl_tail_wait_disk(sl_tail *tail, sl_reader_node *reader);

/* ... in the next turn, because it has more to do; the next turn comes at once. From inside of run(), never in the same turn, so
 * that everybody gets his share. */
void sl_tail_run_soon(sl_tail *tail, sl_reader_node *reader);

/* ... when a place is free, in the order of waiting; it has the place then. One that it has goes to the next. Only when
 * sl_tail_take_place() gave false, or sl_tail_place_wanted() true. */
void sl_tail_wait_place(sl_tail *tail, sl_reader_node *reader);

/* Waits for nothing any more; needed before its memory goes, and its place is left besides. Also right for one that waits
 * for nothing. */
void sl_tail_forget(sl_tail *tail, sl_reader_node *reader);

/* True: it has a place, now or since earlier. Others that wait for one come first. */
bool sl_tail_take_place(sl_tail *tail, sl_reader_node *reader);
/* Also right for one that has none. */
void sl_tail_leave_place(sl_tail *tail, sl_reader_node *reader);
bool sl_tail_place_wanted(const sl_tail *tail);

/* For door.c. A stream and its metadata ($$x) have the same key: a reader of x is run for both, since $maxCount, $tb or its rights
 * may have changed. */
uint64_t sl_tail_key(const sl_tail *tail, sl_str stream);

/* For door.c: a batch that wrote to this stream is durable, and so readable. */
void sl_tail_touch(sl_tail *tail, uint64_t key);

/* For host.c: there is a commit, of anything; sl_store_poll() was called. */
void sl_tail_committed(sl_tail *tail);
void sl_tail_polled(sl_tail *tail);

/* For host.c: runs those that can go on, each once at most and until their share of the turn is used; the second form only those
 * that a commit, the disk or a place has woken. True: somebody can still go on. */
bool sl_tail_run(sl_tail *tail);
bool sl_tail_run_woken(sl_tail *tail);

#endif
