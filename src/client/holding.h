/* client/holding.h — what this process holds of a group: one entry for each message that it was given and has not heard the end of.
 *
 *      event --add--> held --ack, nack, release--> queued --sent--> said --answer--> gone
 *                                                     ^              |
 *                                                     +--connection--+
 *                                                         broken
 *
 * Entries come from chunks that are taken when they are needed first and never given back, so that the path of an event takes no
 * memory. Ids may repeat: an entry is found by its id, and then by what is looked for. What waits to be sent stands in
 * one queue for each kind of message, so a turn sends one message of each, however many ids there are. */
#ifndef SL_CLIENT_HOLDING_H
#define SL_CLIENT_HOLDING_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sl_holding_verb {
    SL_HOLDING_NONE, /* held */
    SL_HOLDING_ACK,
    SL_HOLDING_NACK,
    SL_HOLDING_RELEASE,
    SL_HOLDING_VERB_COUNT_
} sl_holding_verb;

/* Why a nack; shared by those that were given it in one call. */
typedef struct sl_holding_words {
    uint32_t users;
    int32_t action;
    uint32_t delay_ms; /* of a retry; 0: as the group says */
    size_t bytes;
    char text[];
} sl_holding_words;

typedef struct sl_holding_entry {
    sl_map_node by_id;
    sl_list all;   /* in the order in which they came; of a free one: the list of those */
    sl_list queue; /* of its verb; in none: held, or said */
    sl_list start, extend;
    sl_uuid id;
    uint64_t place; /* what stands where: tells two events with one id apart */
    uint64_t token;
    uint64_t lease_until_ns;
    uint32_t lease_ms;    /* as it came: what the group gives */
    uint64_t said_number; /* answers come in the order of these */
    sl_holding_verb verb;
    uint32_t extend_ms;
    sl_holding_words *words; /* NACK */
    bool started;            /* by the user */
    bool is_said;            /* on this call */
    bool was_said;           /* on one that broke before the answer */
    bool is_own;     /* the user does not know of it: it was never given out, or he has heard of its end */
    bool is_resumed; /* listed as still held on this call, and nothing was heard of that */
    bool is_renewed; /* then it came again: a `lost` is the answer to the list */
    bool
        is_ghost; /* acked, and told that the lease was gone; kept to know the message again if it comes at once */
    bool
        is_recalled; /* an earlier process was done with it: `place` is its revision, until it has come again */
    bool is_placed; /* it has: `place` is what it is for all others */
    bool is_mark;   /* for walks over all of them */
} sl_holding_entry;

typedef struct sl_holding_chunk sl_holding_chunk;

typedef struct sl_holding {
    const sl_alloc *alloc;
    sl_hash_seed seed;
    uint32_t capacity;
    uint32_t count, held_count, said_count,
        user_count; /* all; without a verb; said; with a verb and not is_own */
    uint32_t ghost_count, recalled_count;
    sl_map map;
    sl_map_node **table;
    size_t table_length;
    sl_holding_chunk *chunks;
    sl_list free, all;
    sl_list queues[SL_HOLDING_VERB_COUNT_]; /* NONE is not used */
    sl_list starts, extends;
    uint64_t said_number;
} sl_holding;

/* SL_OK, SL_ERR_NOMEM. */
sl_err sl_holding_init(sl_holding *holding, const sl_alloc *alloc, sl_hash_seed seed, uint32_t capacity);
/* Also right for one that is all zero. */
void sl_holding_done(sl_holding *holding);

/* NULL: as many as the capacity are there, or no memory. */
sl_holding_entry *sl_holding_add(sl_holding *holding, sl_uuid id, uint64_t place);
void sl_holding_remove(sl_holding *holding, sl_holding_entry *held);

/* The newest that the user knows of and has said nothing of; the one that was said first and waits for its answer; the newest at this
 * place. NULL: none. */
sl_holding_entry *sl_holding_find_held(const sl_holding *holding, sl_uuid id);
/* The next older one with the id of `held` that the user knows of and has said nothing of. NULL: none. */
sl_holding_entry *sl_holding_next_held(const sl_holding_entry *held);
sl_holding_entry *sl_holding_find_said(const sl_holding *holding, sl_uuid id);
sl_holding_entry *sl_holding_find_place(const sl_holding *holding, sl_uuid id, uint64_t place);

/* One that an earlier process was done with: that has come again at this place, or may be what comes there now. NULL: none. */
sl_holding_entry *sl_holding_find_recalled(const sl_holding *holding, sl_uuid id, uint64_t revision,
                                           uint64_t place);

/* Of those with a mark the newest that the user knows of, else the newest; begun_first: one that he has begun before all others. */
sl_holding_entry *sl_holding_find_marked(const sl_holding *holding, sl_uuid id, bool begun_first);

/* Any ghost, or NULL. */
sl_holding_entry *sl_holding_find_ghost(const sl_holding *holding);

/* The oldest held one whose lease has ended, or NULL. */
sl_holding_entry *sl_holding_find_ended(const sl_holding *holding, uint64_t now_ns);

/* It shall be sent; words are counted. */
void sl_holding_say(sl_holding *holding, sl_holding_entry *held, sl_holding_verb verb,
                    sl_holding_words *words);
/* It waits outside of its queue, or is put back into it; of one that was not said yet. */
void sl_holding_hold_back(sl_holding_entry *held);
void sl_holding_say_again(sl_holding *holding, sl_holding_entry *held);
/* It was sent. */
void sl_holding_said(sl_holding *holding, sl_holding_entry *held);
/* The connection broke: what was said is to be said again, in the order in which they came. */
void sl_holding_unsay_all(sl_holding *holding);

/* It was answered; only what it is known by and what is to be said if it comes again are kept, and it is the user's no more. */
void sl_holding_bury(sl_holding *holding, sl_holding_entry *held);

void sl_holding_start(sl_holding *holding, sl_holding_entry *held);
void sl_holding_extend(sl_holding *holding, sl_holding_entry *held, uint32_t lease_ms);

/* One user: the caller; to be given back with sl_holding_words_drop(). NULL: no memory. */
sl_holding_words *sl_holding_words_new(sl_holding *holding, int32_t action, const char *text, size_t bytes);
void sl_holding_words_drop(sl_holding *holding, sl_holding_words *words);

#endif
