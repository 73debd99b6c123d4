/* core/group_private.h — the fields of a group, for the files of src/core that make it up, and for nobody
 * else.
 *
 *      group.c     memory, messages in, time; what every call begins and ends with
 *      message.c   one message: where it stands in the indexes, lease given, given back, settled
 *      claim.c     ack, nack, release, started, extend
 *      session.c   join, leave, away, stop, resume, rules, cordon
 *      line.c      a lane: position order, what was read, checkpoint
 *      lineup.c    which message is next; strategy.c, pinned.c: who gets it
 *      load.c      replay, open, snapshot
 *      inspect.c   information and sl_group_check()
 *
 * A message stands in exactly one of these indexes, according to what sl_lease_live() and its not_before say;
 * the index is never asked what state a message is in, it only makes the answer quick:
 *
 *      HELD     in its holder's list and in `dues` until the lease ends
 *      PAUSED   in `dues` until its not_before
 *      FRESH    in a queue, never delivered
 *      AGAIN    in a queue, delivered before (or a replayed parked message)
 *      NOWHERE  known from records only, not yet read again */
#ifndef SL_CORE_GROUP_PRIVATE_H
#define SL_CORE_GROUP_PRIVATE_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pairing.h"
#include "core/group.h"
#include "core/lease.h"
#include "core/pool.h"
#include "core/ranges.h"

enum {
    BUCKETS = 1024,      /* of keys; as many as KurrentDB has */
    ID_EPOCH_SHIFT = 40, /* tokens and consumer ids: epoch << 40 | n */
};

#define EPOCH_MAX ((UINT64_C(1) << (64 - ID_EPOCH_SHIFT)) - 1)

typedef enum sl_index {
    SL_INDEX_NOWHERE,
    SL_INDEX_HELD,
    SL_INDEX_PAUSED,
    SL_INDEX_FRESH,
    SL_INDEX_AGAIN,
} sl_index;

typedef struct sl_key sl_key;
typedef struct sl_consumer sl_consumer;

typedef struct sl_message {
    sl_list line; /* all unsettled messages of the lane, by position; or the free ones */
    union {       /* by `index` */
        sl_list held;
        sl_list fresh;
        sl_pairing_node again;
    };
    sl_map_node by_claim; /* by id and holder, while it has one; while records are loaded: by place */
    sl_uuid id;
    uint64_t position;
    uint64_t sequence; /* how many messages of the lane were read before it; set when it is read */
    uint64_t key_hash;
    sl_key *key; /* only with a pinned strategy */
    sl_lease lease;
    uint64_t not_before_ns;
    sl_counters counters;
    sl_heap_node due;
    uint8_t lane;
    uint8_t index;
    bool started : 1;   /* its holder said so */
    bool charged : 1;   /* for the delivery that the lease is about */
    bool read : 1;      /* was offered in this life of the group, so it can be delivered */
    bool vanished : 1;  /* is not in its stream any more, so it can not */
    bool owes_park : 1; /* it came back while the group was held, and had no try left */
    bool settled : 1;   /* before it was read again: only its place is kept, so that it is passed over then */
} sl_message;

/* Available messages in delivery order: those that were delivered before, replayed ones, new ones. */
typedef struct sl_lineup {
    sl_pairing again;
    sl_list fresh; /* ascending, because messages are read in that order */
} sl_lineup;

typedef struct sl_bucket {
    sl_pairing keys;       /* those that could give out a message, by their first one */
    sl_pairing_node ready; /* in its owner's heap, by the first message of its first key; when not empty */
    sl_list unowned;       /* or in the group's list */
    sl_list owned;         /* in its owner's list */
    sl_list waiting;       /* keys that have messages and may not give them out now */
    sl_consumer *owner;
    uint32_t in_flight;
    bool linked; /* is in one of the first two */
} sl_bucket;

struct sl_key {
    sl_map_node by_hash;
    sl_list waiting; /* in its bucket's list; or the free ones */
    sl_lineup queue;
    sl_pairing_node in_bucket;
    sl_bucket *bucket;
    uint64_t hash;
    uint64_t
        holder; /* of its live leases; 0 when there are none, or several holders after a change of strategy */
    uint32_t in_flight;
    uint32_t counted;   /* see sl_pinned_leases_moved() */
    uint32_t delivered; /* messages that were delivered and are not settled */
    uint32_t messages;  /* a key without messages is forgotten */
    bool linked;        /* is in its bucket's heap */
};

struct sl_consumer {
    sl_list all; /* in the order of joining; or the free ones */
    sl_map_node by_id, by_session;
    sl_list held;            /* its live leases */
    sl_list ring;            /* in a ring of those with room, or in `hungry` */
    sl_pairing ready;        /* pinned: its buckets that have work */
    sl_list owned;           /* pinned: all its buckets */
    sl_heap_node fewest;     /* pinned: by number of buckets */
    sl_heap_node window_end; /* away: when it is too late to come back */
    uint64_t id;
    sl_uuid session;
    uint64_t reconnect_ns, since_ns, deliveries;
    uint64_t tags[SL_TAGS_MAX];
    uint32_t tag_count, window, in_flight, owned_count;
    uint32_t current; /* messages that it is the holder of, by a lease that lives or has ended */
    uint32_t settled, released, lost; /* leases that ended so since the stop */
    uint32_t interrupted;             /* of released: after they were started */
    sl_consumer_state state;
    sl_asker asked_by;
    bool extensions : 1;
    bool sends_started : 1; /* its session has done so at least once */
    bool stopped_itself : 1;
    bool stopped_singly : 1; /* by an operator or the server, by name and not by a rule */
    bool comes_back : 1;     /* inside a join: the newcomer comes back to this one */
    bool cordoned : 1;
    bool in_strategy : 1;
};

typedef struct sl_line {
    sl_list messages;   /* unsettled, by position */
    sl_list *unread;    /* first of those that records told of and that were not read again; or the head */
    sl_ranges settled;  /* from records, at and above read_from; empty once all that was read again */
    uint64_t read_from; /* everything below was read */
    uint64_t sequence;  /* messages read so far */
    uint64_t checkpoint, checkpoint_sequence, checkpoint_at_ns; /* the last one */
} sl_line;

struct sl_group {
    sl_group_limits limits;
    sl_settings settings;
    sl_hash_seed seed;
    sl_sink sink;
    uint64_t now_ns;
    uint64_t epoch;          /* of the tokens and ids that are given */
    uint64_t epoch_reserved; /* the records tell of it, no later life will use it; >= epoch */
    uint64_t token_next, consumer_next;
    bool open, busy; /* busy: inside a call, to catch a sink that calls back */
    sl_hold hold;
    bool owes_parks; /* messages came back meanwhile that have to be parked */

    sl_line lines[SL_LANE_COUNT_];
    sl_pool_map claims, consumers_by_id, sessions;
    sl_heap dues;    /* messages: end of lease or of pause */
    sl_heap windows; /* away consumers: end of the reconnect window */
    sl_pool free_messages, free_consumers;
    sl_list consumers;
    uint32_t message_count, in_flight, available;
    uint32_t place_count; /* messages, and those settled before they were read again */
    uint32_t state_counts[SL_CONSUMER_STATE_COUNT_];

    sl_lineup queue;             /* ring strategies: everything available */
    sl_list ring, ring_cordoned; /* ring strategies: active consumers with room */
    sl_list hungry;              /* pinned: consumers with room whose buckets have work */
    sl_list unowned;             /* pinned: buckets with work and without an owner */
    sl_heap fewest;              /* pinned: active consumers */
    sl_bucket *buckets;          /* pinned: BUCKETS of them */
    uint32_t buckets_owned;
    sl_pool_map keys;
    sl_pool free_keys;

    uint64_t rules[SL_RULES_MAX];
    uint32_t rule_count;
    uint64_t deliveries, settled, parked, lost, charged;
};

/* group.c */
void sl_group_emit(sl_group *group, const sl_effect *effect);
void sl_group_enter(sl_group *group, uint64_t now_ns);
void sl_group_exit(sl_group *group);
void sl_group_begin_epoch(sl_group *group);
uint64_t sl_group_number(sl_group *group, uint64_t *next); /* the next token or consumer id */
bool sl_group_reads_again(const sl_group *group); /* records told of messages that were not read yet */

/* message.c */
sl_message *sl_message_new(sl_group *group, const sl_offer *offer);
void sl_message_free(sl_group *group, sl_message *message);
uint64_t sl_claim_hash(const sl_group *group, sl_uuid id, uint64_t holder);
sl_message *sl_claim_find(const sl_group *group, sl_uuid id, uint64_t holder,
                          uint64_t token); /* newest first */
sl_message *sl_claim_next(const sl_message *message, uint64_t holder,
                          uint64_t token); /* another one of the same id */
void sl_message_claimable(sl_group *group, sl_message *message);
void sl_message_unclaimable(sl_group *group, sl_message *message);
sl_place sl_message_place(const sl_message *message);
void sl_message_put(sl_group *group, sl_message *message);    /* into the index where it belongs now */
void sl_message_remove(sl_group *group, sl_message *message); /* out of it */
void sl_message_deliver(sl_group *group, sl_message *message, sl_consumer *consumer);
void sl_message_back(sl_group *group, sl_message *message, sl_back_cause cause);
void sl_message_nack(sl_group *group, sl_message *message, const sl_nack *nack);
void sl_message_release(sl_group *group, sl_message *message);
void sl_message_start(sl_group *group, sl_message *message);
void sl_message_settle(sl_group *group, sl_message *message, sl_settle_cause cause);
void sl_message_park(sl_group *group, sl_message *message, sl_park_cause cause);
void sl_message_due(sl_group *group, sl_message *message);
void sl_message_extend(sl_group *group, sl_message *message, uint64_t until_ns);
void sl_messages_park_owed(sl_group *group); /* the hold is over */

/* line.c */
void sl_line_init(sl_line *line, uint64_t start, sl_range *ranges, uint32_t ranges_max);
uint64_t sl_line_below(const sl_line *line);
sl_range sl_line_settled_around(const sl_line *line, const sl_message *message);
void sl_line_remove(sl_line *line, sl_message *message);
void sl_line_sort(sl_line *line);
sl_err sl_line_offer(sl_group *group, const sl_offer *offer);
bool sl_line_wants(const sl_line *line, uint64_t position);
void sl_line_advance(sl_group *group, sl_place place, uint32_t considered);
void sl_line_checkpoint(sl_group *group, sl_lane lane);
uint64_t sl_line_wake(const sl_group *group, sl_lane lane);

/* session.c */
sl_consumer *sl_consumer_find(const sl_group *group, uint64_t id);
sl_consumer *sl_consumer_new(sl_group *group, uint64_t id, sl_uuid session);
void sl_consumer_forget(sl_group *group, sl_consumer *consumer);          /* it holds nothing */
void sl_consumer_gone(sl_group *group, sl_consumer *consumer);            /* and say so */
void sl_session_starts(sl_group *group, const sl_consumer *consumer);     /* it has sent Started */
void sl_session_will_start(sl_group *group, const sl_consumer *consumer); /* the same, with a record of it */
sl_consumer *sl_consumer_away_first(const sl_group *group, sl_uuid session);
sl_consumer *sl_consumer_away_next(const sl_consumer *consumer);
void sl_consumer_lease_over(sl_group *group, sl_consumer *consumer); /* after the answer to what ended it */
void sl_consumer_window_over(sl_group *group, sl_consumer *consumer);
void sl_consumer_set_state(sl_group *group, sl_consumer *consumer, sl_consumer_state state);

/* lineup.c: the order of delivery */
void sl_lineup_init(sl_lineup *queue);
void sl_lineup_insert(sl_lineup *queue, sl_message *message); /* by its index: FRESH or AGAIN */
void sl_lineup_remove(sl_lineup *queue, sl_message *message);
sl_message *sl_lineup_first(const sl_lineup *queue);
bool sl_message_before(const sl_message *a, const sl_message *b);

/* strategy.c: the four strategies behind one set of verbs */
void sl_strategy_init(sl_group *group);
void sl_strategy_message_known(sl_group *group, sl_message *message);   /* its key exists from now on */
void sl_strategy_message_settled(sl_group *group, sl_message *message); /* and now it need not */
void sl_strategy_first_delivery(sl_group *group, sl_message *message);  /* before its lease begins */
void sl_strategy_message_ready(sl_group *group, sl_message *message);
void sl_strategy_message_unready(sl_group *group, sl_message *message);
void sl_strategy_lease_begun(sl_group *group, sl_message *message, sl_consumer *holder);
void sl_strategy_lease_over(sl_group *group, sl_message *message, sl_consumer *holder);
void sl_strategy_leases_moved(sl_group *group, sl_consumer *to);      /* from dead calls of its session */
void sl_strategy_consumer_in(sl_group *group, sl_consumer *consumer); /* it may get messages */
void sl_strategy_consumer_out(sl_group *group,
                              sl_consumer *consumer); /* and now it may not; harmless twice */
void sl_strategy_cordon(sl_group *group, sl_consumer *consumer, bool cordoned);
bool sl_strategy_next(sl_group *group, sl_message **ret_message, sl_consumer **ret_consumer);
void sl_strategy_change(sl_group *group, const sl_settings *settings);

/* pinned.c */
void sl_pinned_init(sl_group *group);
void sl_pinned_message_known(sl_group *group, sl_message *message);
void sl_pinned_message_settled(sl_group *group, sl_message *message);
void sl_pinned_first_delivery(sl_message *message);
void sl_pinned_message_ready(sl_group *group, sl_message *message);
void sl_pinned_message_unready(sl_group *group, sl_message *message);
void sl_pinned_lease_begun(sl_group *group, sl_message *message, sl_consumer *holder);
void sl_pinned_lease_over(sl_group *group, sl_message *message, sl_consumer *holder);
void sl_pinned_leases_moved(sl_group *group, sl_consumer *to);
void sl_pinned_consumer_in(sl_group *group, sl_consumer *consumer);
void sl_pinned_consumer_out(sl_group *group, sl_consumer *consumer);
void sl_pinned_cordon(sl_group *group, sl_consumer *consumer);
bool sl_pinned_next(sl_group *group, sl_message **ret_message, sl_consumer **ret_consumer);
void sl_pinned_check(const sl_group *group);

static inline bool place_is_valid(sl_place place)
{
    return (unsigned)place.lane < SL_LANE_COUNT_ && place.position < UINT64_MAX;
}

static inline bool sl_consumer_has_room(const sl_consumer *consumer)
{
    return consumer->in_flight < consumer->window;
}

#endif
