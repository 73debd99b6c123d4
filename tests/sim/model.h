/* tests/sim/model.h — a second group, written from docs/DELIVERY.md alone, that judges the first.
 *
 * It takes from core/ the types of inputs and effects and nothing else. It is slow and plain on purpose: arrays
 * that are searched from end to end, no queues, no indexes, nothing that could be wrong in the same way.
 *
 * For each call:   model_begin(call)  ->  model_effect(effect) for each effect  ->  model_end(result)
 *
 *      DUE     what is due by now, in order of its time
 *      OWN     what the call itself does: a plan of items, made when nothing is due any more
 *      GIVE    LEASE and DELIVER, until no message and no consumer fit together
 *      PASS    checkpoints
 *
 * Every effect must be one that the rules ask for at this moment, with exactly these numbers; what has only one
 * possible successor (the answer after its record, DRAINED after the last lease, DELIVER after LEASE) is put into
 * `next`, and nothing else may come before it. A rule that is broken ends the run: sim_fail(). */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "call.h"
#include "cover.h"
#include "stream.h"

enum {
    MODEL_MESSAGES_MAX = 512,
    MODEL_CONSUMERS_MAX = 40,
    MODEL_KEYS_MAX = 48,
    MODEL_LOOKS_MAX = 256,
    MODEL_PLAN_MAX = MODEL_MESSAGES_MAX + 4 * MODEL_CONSUMERS_MAX + SIM_RESUME_MAX,
    MODEL_NEXT_MAX = 8,
};

typedef struct model_message { /* known and not settled */
    sl_place place;
    sl_uuid id;
    uint64_t key;
    sl_counters counters;
    uint64_t not_before_ns;
    uint64_t token, holder, until_ns;
    bool current;   /* the lease was never given up, nobody took the message since */
    bool live;      /* and it has not ended */
    bool started;   /* marked so by its holder */
    bool charged;   /* for this delivery */
    bool passed_on; /* the lease was moved, or is of an earlier life: how new it is, is not remembered */
    bool read;      /* offered in this life of the group; otherwise known from records only */
    bool vanished;  /* the reader went past it and did not find it */
} model_message;

typedef struct model_consumer {
    uint64_t id;
    sl_uuid session;
    uint64_t tags[SL_TAGS_MAX];
    uint32_t tag_count, window, in_flight;
    bool extensions, cordoned, sends_started;
    uint64_t reconnect_ns;
    sl_consumer_state state;
    sl_asker asked_by;
    bool stopped_itself; /* as the first or a later stop: then nobody can undo it */
    bool stopped_alone;  /* an operator or the server stopped this very one: no rule that goes can undo it */
    uint64_t since_ns, deliveries;
    uint32_t settled, released, lost; /* leases that ended so since the stop */
    uint32_t interrupted;             /* of released: after they were started */
    uint64_t window_end_ns;           /* away: when what it holds goes back; SL_NEVER: never by itself */
    bool windowless;                  /* away since a restart: stays until it is holder of nothing */
    uint32_t slot;                    /* its bit in model_key.owners */
    uint32_t old_keys;                /* that it was seen to own since the last consumer came */
} model_consumer;

typedef struct model_key { /* who may own the bucket of a key, as far as can be seen from outside */
    uint64_t key;
    uint64_t owners; /* a bit for each consumer that may */
    bool anyone;     /* nobody has been seen to own it: the owner may be any active consumer, or nobody */
    bool fresh;      /* for certain nobody owned it when this call began to give out messages */
    bool old;        /* it was owned when the last consumer came, and was not seen since */
    uint64_t before; /* its only owner when the last consumer came; 0: not certain who */
    uint32_t flight; /* live leases of it at that moment */
    enum {
        FATE_UNKNOWN,
        FATE_KEPT,
        FATE_TAKEN
    } fate;      /* what the comer did with it */
    bool shared; /* several consumers held leases of it: it may wait until all of them have ended */
} model_key;

typedef struct model_lane {
    uint64_t start, read_from;
    sim_cover settled;
    uint64_t
        ghosts[MODEL_MESSAGES_MAX]; /* positions that records told of, settled before they were read again */
    uint32_t ghost_count;
    uint64_t checkpoint, checkpoint_ns; /* the last one, and when: `below` of the open counts as one */
    uint64_t count_from;                /* events from here on count for the next checkpoint */
    uint32_t folded_min, folded_max;    /* events below `below` that a filter looked at: bounds */
    struct model_look {                 /* advance() calls that are not wholly below `below` yet */
        uint64_t position;
        uint32_t considered;
        bool doubtful; /* a checkpoint was written inside: who can say how many of them it counted */
    } looks[MODEL_LOOKS_MAX];
    uint32_t look_count;
} model_lane;

typedef enum model_stage {
    MODEL_DUE,
    MODEL_OWN,
    MODEL_GIVE,
    MODEL_PASS
} model_stage;

typedef struct model_item { /* one thing that the call itself must do */
    enum {
        ITEM_EXACT,   /* this very effect */
        ITEM_JOIN,    /* JOIN with a new number */
        ITEM_BACK,    /* the message comes back for `cause` (BACK, PARK or SETTLE VANISHED) */
        ITEM_MOVE,    /* the lease goes to the consumer that joins */
        ITEM_GONE,    /* once it holds nothing */
        ITEM_STOPPED, /* the consumer stops, or had stopped before */
        ITEM_CLAIM,   /* claim number `claim` of the call */
        ITEM_VANISH,  /* SETTLE VANISHED of a message without live lease */
        ITEM_ENTER,   /* no effect: the consumer may get messages from now on */
    } kind;
    uint32_t group; /* items of the same group come in any order, groups one after the other */
    bool done;
    sl_effect effect;
    sl_place place;
    sl_back_cause cause;
    uint64_t consumer;
    uint32_t claim;
} model_item;

typedef struct model_next { /* the only effect that may come now */
    sl_effect effect;
    uint64_t not_before_min_ns, not_before_max_ns; /* of BACK */
} model_next;

typedef struct model {
    sl_group_limits limits;
    sl_settings settings;
    uint64_t now_ns, epoch, token_last, consumer_last;
    model_message messages[MODEL_MESSAGES_MAX];
    uint32_t message_count;
    model_consumer consumers[MODEL_CONSUMERS_MAX]; /* in the order in which they joined */
    uint32_t consumer_count;
    uint64_t slots_used;
    uint64_t rules[SL_RULES_MAX];
    uint32_t rule_count;
    uint64_t ring[MODEL_CONSUMERS_MAX]; /* active consumers with room, the front first; not for pinned */
    uint32_t ring_count;
    model_key keys[MODEL_KEYS_MAX];
    uint32_t key_count;
    bool keys_apart; /* the world promises: no two keys are in the same bucket */
    uint64_t comer;  /* who came last; 0: somebody went since, or nobody came */
    uint32_t keep_max,
        comer_old_max; /* how many old keys the others may have kept, and the comer have taken */
    model_lane lanes[SL_LANE_COUNT_];
    struct model_totals {
        uint64_t deliveries, settled, parked, lost, charged;
    } since_open;
    const sim_stream *streams; /* the truth about each lane, to judge ranges by */

    const sim_call *call;
    model_stage stage;
    bool opening; /* in open(): GONE of those that hold nothing may come among what is due */
    model_item plan[MODEL_PLAN_MAX];
    uint32_t plan_count, plan_group; /* plan_group: of the next item that is added */
    model_next next[MODEL_NEXT_MAX];
    uint32_t next_count;
    bool passed_now[SL_LANE_COUNT_]; /* a checkpoint of this lane was written in this call */
    sim_result want;                 /* what the call must return */
} model;

/* --- life ------------------------------------------------------------------------------------------------- */

/* streams: SL_LANE_COUNT_ of them, owned by the caller, alive as long as the model. */
void model_init(model *m, const sl_group_setup *setup, const sim_stream *streams);

/* What is left of a group when its process dies: exactly what its records say. */
void model_forget(model *m);
void model_replay(model *m, const sl_effect *record);

void model_begin(model *m, const sim_call *call);
void model_effect(model *m, const sl_effect *effect);
void model_end(model *m, const sim_result *result);

/* --- questions -------------------------------------------------------------------------------------------- */

model_message *model_find(model *m, sl_place place);
model_consumer *model_consumer_of(model *m, uint64_t id);
bool model_needs_keys(sl_strategy strategy);
bool model_is_pinned(const model *m);
bool model_available(const model *m, const model_message *message);
bool model_comes_before(const model_message *a, const model_message *b);
bool model_has_room(const model_consumer *consumer);
bool model_rule_names(const model *m, const model_consumer *consumer);
bool model_is_holder(const model *m, uint64_t consumer); /* of something, live or ended but current */
bool model_may_be_active(const model *m);                /* one more than now */
bool model_same_id(sl_uuid a, sl_uuid b);
void model_session_sends_started(model *m, sl_uuid session);
bool model_has_tag(const model_consumer *consumer, uint64_t tag);
bool model_is_rereading(const model *m, sl_lane lane);
uint32_t model_places_taken(const model *m);
uint32_t model_room(const model *m);
void model_read_to(model *m, sl_lane lane, uint64_t read_from);
uint32_t model_live_count(const model *m);
uint64_t model_below(const model *m, sl_lane lane);

/* --- parts, each in its own file -------------------------------------------------------------------------- */

/* model_ring.c: the ring of consumers with room. */
void model_enter(model *m, model_consumer *consumer);
void model_stand_back(model *m, model_consumer *consumer);
void model_drop(model *m, model_consumer *consumer);
void model_slot_freed(model *m, model_consumer *consumer);
void model_took(model *m, model_consumer *consumer);
void model_rebuild(model *m);
uint64_t model_front(const model *m);

/* model_keys.c: who may own which key. */
void model_keys_clear(model *m);
bool model_key_is_shared(model *m, uint64_t key);
void model_keys_enter(model *m, model_consumer *consumer);
void model_keys_drop(model *m, model_consumer *consumer);
void model_keys_seen(model *m, uint64_t key, model_consumer *consumer);
void model_keys_end_call(model *m);
bool model_may_own(model *m, uint64_t key, const model_consumer *consumer);
bool model_owns(model *m, uint64_t key, const model_consumer *consumer);

/* model_charge.c: what happens to a message that comes back, as one expected effect. */
model_next model_return(const model *m, const model_message *message, sl_back_cause cause,
                        const sl_nack *nack);
bool model_counts_as_started(const model *m, const model_message *message);

/* model_change.c: changes of the state, each with what must follow at once. */
typedef enum model_end_of_lease {
    LEASE_SETTLED,
    LEASE_RELEASED,
    LEASE_LOST,
    LEASE_UNCOUNTED,
} model_end_of_lease;

void model_push(model *m, const sl_effect *effect);
void model_lease_ends(model *m, model_message *message, model_end_of_lease how);
void model_after_lease(model *m, uint64_t holder);
void model_settle(model *m, model_message *message, const sl_effect *effect);
void model_stop(model *m, model_consumer *consumer, sl_asker asked_by);
void model_consumer_gone(model *m, uint64_t id);
void model_judge_cover(model *m, sl_lane lane, uint64_t from, uint64_t to);

/* model_match.c: is this the effect that was expected? */
_Noreturn void model_unexpected(const sl_effect *want, const sl_effect *effect);
void model_same(const model_next *want, const sl_effect *effect);
bool model_same_settings(const sl_settings *a, const sl_settings *b);
bool model_is_return(const sl_effect *effect, sl_place *ret_place);

/* model_back.c: a message comes back, or is parked or vanishes instead. Pushes `answer` (if not NULL) and what
 * follows from the end of the lease. */
void model_take_return(model *m, model_message *message, sl_back_cause cause, const sl_effect *effect,
                       const sl_effect *answer);

/* model_plan.c, model_join.c: what the call itself does, as items; `want` becomes what it must return. */
void model_plan_own(model *m);
void model_plan_add(model *m, model_item item);
void model_plan_next_group(model *m);
void model_plan_stop(model *m, model_consumer *consumer, const sl_stop *stop);
void model_plan_join(model *m);
void model_take_join(model *m, const sl_effect *effect);
void model_take_move(model *m, const model_item *item, const sl_effect *effect);

/* model_read.c: messages that come in, and those that are not found again. */
void model_plan_offer(model *m);
void model_plan_advance(model *m);

/* model_claim.c: what a consumer says of its messages. */
bool model_claim_is_silent(model *m, const model_item *item);
bool model_claim_is_lost(model *m, const model_item *item);
bool model_claim_is_open(model *m, uint64_t consumer, const sl_claim *claim, uint64_t *ret_token);
void model_take_claim(model *m, const model_item *item, const sl_effect *effect);

/* model_give.c: LEASE, and that nothing waits in vain. */
void model_take_lease(model *m, const sl_effect *effect);
void model_judge_stall(model *m);
bool model_pinned_must_go(model *m, const model_message *message);

/* model_load.c: the first moment of a life. */
void model_load_open(model *m, uint64_t now_ns);

/* model_pass.c: checkpoints, and when tick must come again. */
void model_looked(model *m, sl_lane lane, uint64_t position, uint32_t considered, bool doubtful);
void model_take_checkpoint(model *m, const sl_effect *effect);
void model_judge_checkpoints(model *m);
void model_judge_wake(model *m, uint64_t wake_ns);

#endif
