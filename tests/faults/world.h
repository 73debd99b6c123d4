/* tests/faults/world.h — a store, the model of what it was told, and the crashes between its lives.
 *
 *      world_open --> world_send, world_turn, world_poll, world_settle ... --> a crash --> world_open ...
 *
 * The model decides what must come of a batch when the batch is sent, because that is when the store decides. After a crash
 * the store must be where the model was after some batch: not before the last one whose answer promised that, and, when
 * only the process died, not before the last one that was written. Opening finds out which one it was, compares everything,
 * and goes on from there. */
#ifndef SL_TESTS_FAULTS_WORLD_H
#define SL_TESTS_FAULTS_WORLD_H

#include "draw.h"
#include "store/faulty/faulty.h"

enum {
    WORLD_BATCHES_MAX = 1024 /* in one life */
};

typedef enum world_end {
    WORLD_CLOSED, /* in order: everything is there */
    WORLD_KILLED, /* what was written is there */
    WORLD_CUT,    /* the power is gone: what was synced is there */
} world_end;

/* How far the answers have come; in memory that a parent process can read when this one is dead. */
typedef struct world_progress {
    _Atomic uint32_t sent;     /* batches; counted before they are submitted */
    _Atomic uint32_t turned;   /* of these, before the last turn ended */
    _Atomic uint32_t synced;   /* up to the last one that was answered and survives a power cut */
    _Atomic uint32_t answered; /* up to the last one that was answered at all */
    _Atomic uint64_t end;      /* the largest sl_store_end() that was seen */
} world_progress;

struct world;

typedef struct world_batch { /* one that was sent, and what must come of it */
    struct world *world;
    uint32_t index;
    sl_durability durability;
    sl_err err;
    uint32_t op_count, failed_op;
    model_result results[DRAW_OPS_MAX];
    bool has_events[DRAW_OPS_MAX]; /* is no op of a group */
    bool answered;
} world_batch;

typedef struct world {
    uint64_t seed;
    dice timing; /* for everything but the batches */
    draw from;
    sl_faulty *disk;    /* or */
    const char *folder; /* or neither: in memory */
    sl_journal_options options;
    sl_store *store; /* NULL: closed */
    char words[2048];
    sl_text report; /* of the last opening */

    model now;
    model history[WORLD_BATCHES_MAX + 1]; /* after each batch of this life */
    world_batch batches[WORLD_BATCHES_MAX];
    uint32_t batch_count;
    world_progress own_progress, *progress;
    uint32_t last_answered[2]; /* index + 1, by durability: answers come in order */
    world_end ended;           /* the last life */

    sl_cursor *follower; /* reads all events while others work; NULL: none does */
    uint32_t followed;   /* index + 1 of the last event that it has given */

    bool faults;        /* a call to the disk may fail: errors that say so are allowed */
    bool failed;        /* the store has said that it failed */
    bool closing;       /* it is about to be gone, and can not be asked any more */
    uint32_t refused;   /* batches for which there was no room */
    uint32_t snapshots; /* that the store asked for */
    uint64_t rewritten; /* segments, because somebody asked for space */
    drawn batch;
} world;

void world_init(world *w, uint64_t seed);

/* Frees what the last life has left. */
void world_done(world *w);

/* Opens, loads, compares with the model. Any error is a failure of the case, unless w->faults: then it is returned, and
 * the store is not open. */
sl_err world_open(world *w);

/* The same for a disk on which something was changed: what is read must be right, or be called damaged.
 *   SL_OK            everything is there and right
 *   SL_ERR_CORRUPT   something was called damaged, in a sentence that names the file; w->words has it
 * The store is closed again in both cases. */
sl_err world_open_damaged(world *w);

/* The life ends. Answers that did not come do not come any more. */
void world_crash(world *w, world_end how, uint64_t seed);

/* Draws a batch and submits it. False: the life is over, because there is no place for more, or the store failed. */
bool world_send(world *w);
void world_turn(world *w);
void world_poll(world *w);

/* Waits until every batch is answered. With w->faults it gives up when the store has failed. */
void world_settle(world *w);

/* Waits for the descriptor, up to ten seconds, and polls. */
void world_wait(world *w);

/* One step of a cursor over everything, which lives on while others write. */
void world_follow(world *w);

/* `steps` of all that, at random. */
void world_work(world *w, uint64_t steps);

/* The next batches count as sent, as another process has sent them: only the model moves. */
void world_replay(world *w, uint32_t batch_count);

#endif
