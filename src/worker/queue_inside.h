/* worker/queue_inside.h — the parts of a queue, for queue.c (the public functions), queue_lanes.c (which item is next) and
 * queue_threads.c (the senders).
 *
 *      waiting ----> lane "A"  busy     one of its items is being sent
 *      (all, by      lane "B"  ready    heap, by the age of its oldest item
 *       sequence)    lane "C"  timed    heap, by the end of its pause
 *                    lane ""   items without a key: never busy
 *
 * Everything here is for holders of the lock, except what says otherwise. */
#ifndef SL_WORKER_QUEUE_INSIDE_H
#define SL_WORKER_QUEUE_INSIDE_H

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pairing.h"
#include "base/str.h"
#include "core/breaker.h"

#include <sluice.h>

#include <pthread.h>
#include <stdbool.h>

typedef enum lane_place {
    LANE_NOWHERE, /* busy, or without items */
    LANE_READY,
    LANE_TIMED
} lane_place;

typedef struct queue_lane {
    sl_queue *queue;
    sl_map_node by_key;
    sl_pairing_node node; /* READY, TIMED */
    sl_list items;        /* waiting, oldest first */
    sl_list idle;         /* of those without items whose interval is not over */
    uint64_t next_ns;     /* nothing is sent before */
    uint32_t busy;        /* items that a sender has, or that are left: nothing of it is next */
    uint32_t told;        /* items that dropped() is told of: it stays, and holds nothing up */
    lane_place place;
    size_t memory_bytes;
    size_t key_bytes;
    char key[]; /* with a closing zero */
} queue_lane;

typedef struct queue_item {
    sl_list all;  /* of the queue: waiting or left */
    sl_list line; /* of its lane */
    queue_lane *lane;
    uint64_t sequence;
    uint32_t attempts;
    size_t memory_bytes;
    size_t bytes;
    unsigned char data[];
} queue_item;

typedef struct queue_sender {
    pthread_t thread;
    sl_queue *queue;
    unsigned number;
    bool is_on; /* made and not joined */
    bool has_ended;
} queue_sender;

struct sl_queue {
    sl_queue_options options; /* with the defaults filled in; name points to the copy below */
    char name[SL_QUEUE_NAME_BYTES_MAX + 1];

    pthread_mutex_t lock;
    pthread_cond_t work;    /* for senders: something to do, or the end */
    pthread_cond_t changed; /* for those who wait for senders */

    sl_list waiting, left; /* by sequence */
    size_t waiting_count, left_count, sending_count;
    size_t senders_idle; /* wait for work */
    uint64_t sequence;

    sl_map lanes;
    sl_map_node **lane_table;
    size_t lane_table_length;
    sl_hash_seed seed;
    sl_pairing ready, timed;
    sl_list idle;
    size_t idle_count;
    queue_lane *keyless;

    sl_breaker breaker;
    bool has_breaker;
    bool is_stopping;
    bool is_orphan; /* its owner has freed it; the last sender does the rest */
    bool is_high;   /* the high-water warning was given */
    bool
        gives_up; /* what waits now or comes back from a sender is left: the time is over, or the destination is dead */
    uint64_t deadline_ns; /* of the drain; UINT64_MAX: none */
    uint64_t
        start_count; /* so that whoever waits for an end knows that it was, when somebody else has started it again */
    uint64_t sent, dead, dropped, refused;

    size_t senders_alive;
    queue_sender senders[SL_QUEUE_THREADS_MAX];
};

uint64_t queue_now_ns(void); /* without the lock, too */
sl_queue_item queue_view(const queue_item *item);

/* --- queue_lanes.c --- */

bool queue_lanes_init(sl_queue *queue); /* false: no memory */
void queue_lanes_done(sl_queue *queue); /* after the items */
/* The lane of this key, made if need be. NULL: no memory. */
queue_lane *queue_lane_get(sl_queue *queue, const char *key);

queue_item *queue_item_new(const void *data, size_t bytes); /* without the lock, too. NULL: no memory */
void queue_item_free(queue_item *item);                     /* without the lock, too */

/* Into the waiting ones, at the place of its sequence; it has its lane. */
void queue_add(sl_queue *queue, queue_item *item, uint64_t now_ns);
/* All that wait become left. */
void queue_leave_all(sl_queue *queue);
/* All that were left wait again. */
void queue_take_back(sl_queue *queue, uint64_t now_ns);

/* The oldest item that may go by its key, not taken out; NULL: none, then *ret_wake_ns is when one will; UINT64_MAX: nothing waits
 * for time. */
queue_item *queue_peek(sl_queue *queue, uint64_t now_ns, uint64_t *ret_wake_ns);
/* Out of the waiting ones. Its lane, and with it the key, stays until queue_lane_ended(). */
void queue_hold(sl_queue *queue, queue_item *item, uint64_t now_ns);
/* The same to be sent: the interval of its key begins. */
void queue_begin(sl_queue *queue, queue_item *item, uint64_t now_ns);
/* Out of the waiting ones to be dropped. Its lane, and with it the key, stays until queue_lane_told(). */
void queue_evict(sl_queue *queue, queue_item *item, uint64_t now_ns);
void queue_lane_told(sl_queue *queue, queue_lane *lane, uint64_t now_ns);
/* pause_ns: nothing of this key is sent for so long, besides the interval. */
void queue_lane_ended(sl_queue *queue, queue_lane *lane, uint64_t now_ns, uint64_t pause_ns);

/* --- queue_threads.c --- */

/* Gives how many were made. */
unsigned queue_senders_start(sl_queue *queue);
/* Joins those that have ended, which takes no time; with others_too the others are left to themselves. */
void queue_senders_join(sl_queue *queue, bool others_too);
bool queue_is_sender(const sl_queue *queue); /* is this thread one of them? */
/* Waits on `changed`; false: the time was over. */
bool queue_wait_changed(sl_queue *queue, uint64_t until_ns);
void queue_destroy(sl_queue *queue); /* without the lock: nobody else is there */
/* Without the lock. */
void queue_warn(const sl_queue *queue, sl_queue_warning warning, const char *sentence, uint64_t number);

#endif
