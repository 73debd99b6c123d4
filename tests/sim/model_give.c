/* tests/sim/model_give.c — a message is given to a consumer: may it, must it be this one, is nobody left waiting?
 *
 * In a ring everything is decided by the rules: the first available message goes to the front consumer. With pinned
 * keys the model knows the owner of a key only if it has seen a delivery (model_keys.c), so it asks less there. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>

/* --- keys ------------------------------------------------------------------------------------------------- */

typedef struct key_state {
    uint64_t holder; /* of the live leases of the key; 0: there is none */
    bool shared;     /* more than one consumer holds live leases: moved or recovered ones */
} key_state;

static key_state state_of_key(const model *m, uint64_t key)
{
    key_state state = { .holder = 0 };
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (!message->live || message->key != key)
            continue;
        state.shared = state.shared || (state.holder != 0 && state.holder != message->holder);
        state.holder = message->holder;
    }
    return state;
}

static bool delivered_before(const model *m, const model_message *message)
{
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *other = &m->messages[i];
        if (other != message && other->key == message->key && other->counters.deliveries > 0)
            return true;
    }
    return false;
}

/* Does the key of an available message let it go at all, and to this consumer? */
static bool key_allows(const model *m, const model_message *message, uint64_t consumer)
{
    const key_state state = state_of_key(m, message->key);
    if (state.shared || (state.holder != 0 && state.holder != consumer))
        return false;
    if (!m->settings.key_order)
        return true;
    return state.holder == 0 && (message->counters.deliveries > 0 || !delivered_before(m, message));
}

/* --- one LEASE -------------------------------------------------------------------------------------------- */

static void judge_message(const model *m, const sl_effect *effect, const model_message *message)
{
    const sl_place place = effect->lease.place;
    if (message == NULL && sim_cover_has(&m->lanes[place.lane].settled, place.position))
        sim_fail(SIM_RULE_RECORDS, "%s: it is settled", sim_effect_text(effect).chars);
    if (message == NULL)
        sim_fail(SIM_RULE_RECORDS, "%s: there is no such message", sim_effect_text(effect).chars);
    if (message->live)
        sim_fail(SIM_RULE_ONE_LEASE, "%s: %s holds it", sim_effect_text(effect).chars,
                 sim_number_text('c', message->holder).chars);
    if (!message->read)
        sim_fail(SIM_RULE_RECORDS, "%s: it was not read again yet", sim_effect_text(effect).chars);
    if (message->not_before_ns > m->now_ns)
        sim_fail(SIM_RULE_TIME, "%s: not before %" PRIu64, sim_effect_text(effect).chars,
                 message->not_before_ns);
}

static void judge_consumer(const sl_effect *effect, const model_consumer *consumer)
{
    if (consumer == NULL)
        sim_fail(SIM_RULE_STOP_ONCE, "%s: there is no such consumer", sim_effect_text(effect).chars);
    if (consumer->state != SL_CONSUMER_ACTIVE)
        sim_fail(SIM_RULE_GATE, "%s: the consumer is not active", sim_effect_text(effect).chars);
    if (consumer->in_flight >= consumer->window)
        sim_fail(SIM_RULE_ROOM, "%s: it holds %" PRIu32 " of %" PRIu32, sim_effect_text(effect).chars,
                 consumer->in_flight, consumer->window);
}

static void judge_ring(const model *m, const sl_effect *effect, const model_message *message)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (model_available(m, &m->messages[i]) && model_comes_before(&m->messages[i], message))
            sim_fail(SIM_RULE_ORDER, "%s: %s comes before it", sim_effect_text(effect).chars,
                     sim_place_text(m->messages[i].place).chars);
    if (effect->lease.consumer != model_front(m))
        sim_fail(SIM_RULE_STRATEGY, "%s: it is the turn of %s", sim_effect_text(effect).chars,
                 sim_number_text('c', model_front(m)).chars);
}

/* Order holds for the messages of one key, and for the keys that this consumer owns for certain. */
static void judge_pinned(model *m, const sl_effect *effect, const model_message *message,
                         const model_consumer *consumer)
{
    if (!key_allows(m, message, consumer->id))
        sim_fail(SIM_RULE_PINNED, "%s: its key has to wait", sim_effect_text(effect).chars);
    if (!model_may_own(m, message->key, consumer))
        sim_fail(SIM_RULE_STRATEGY, "%s: another consumer owns this key", sim_effect_text(effect).chars);
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *other = &m->messages[i];
        if (model_available(m, other) && model_comes_before(other, message) &&
            (other->key == message->key || model_owns(m, other->key, consumer)) &&
            key_allows(m, other, consumer->id))
            sim_fail(SIM_RULE_ORDER, "%s: %s comes before it", sim_effect_text(effect).chars,
                     sim_place_text(other->place).chars);
    }
}

static uint64_t until_of_new(const model *m)
{
    const uint64_t lease_ns = m->settings.lease_ns;
    return m->now_ns + (lease_ns > SL_LEASE_NS_MAX ? SL_LEASE_NS_MAX : lease_ns);
}

static void judge_fields(const model *m, const sl_effect *e, const model_message *message)
{
    if (e->lease.token <= m->token_last || e->lease.token >> 40 != m->epoch)
        sim_fail(SIM_RULE_FENCING, "%s: tokens must grow, the last was %s", sim_effect_text(e).chars,
                 sim_number_text('t', m->token_last).chars);
    if (!model_same_id(e->lease.id, message->id) || e->lease.key != message->key)
        sim_fail(SIM_RULE_RECORDS, "%s: another id or key than was offered", sim_effect_text(e).chars);
    if (e->lease.deliveries != message->counters.deliveries + 1)
        sim_fail(SIM_RULE_CHARGE, "%s: this is delivery %" PRIu32, sim_effect_text(e).chars,
                 message->counters.deliveries + 1);
    if (e->lease.until_ns != until_of_new(m))
        sim_fail(SIM_RULE_TIME, "%s: it ends at %" PRIu64, sim_effect_text(e).chars, until_of_new(m));
}

static void give(model *m, model_message *message, model_consumer *consumer, const sl_effect *effect)
{
    message->counters.deliveries++;
    message->token = m->token_last = effect->lease.token;
    message->holder = consumer->id;
    message->until_ns = effect->lease.until_ns;
    message->current = message->live = true;
    message->started = message->charged = message->passed_on = false;
    consumer->in_flight++;
    consumer->deliveries++;
    m->since_open.deliveries++;
    model_took(m, consumer);
    if (model_is_pinned(m))
        model_keys_seen(m, message->key, consumer);
}

void model_take_lease(model *m, const sl_effect *effect)
{
    model_message *message = model_find(m, effect->lease.place);
    model_consumer *consumer = model_consumer_of(m, effect->lease.consumer);
    judge_message(m, effect, message);
    judge_consumer(effect, consumer);
    judge_fields(m, effect, message);
    if (model_is_pinned(m))
        judge_pinned(m, effect, message, consumer);
    else
        judge_ring(m, effect, message);
    const uint64_t before = message->current ? message->holder : 0;
    give(m, message, consumer, effect);
    model_push(m, &(sl_effect){ .kind = SL_EFFECT_DELIVER,
                                .deliver = { .place = message->place,
                                             .id = message->id,
                                             .consumer = consumer->id,
                                             .token = message->token,
                                             .lease_ns = message->until_ns - m->now_ns,
                                             .counters = message->counters } });
    if (before != consumer->id)
        model_after_lease(m, before); /* it may have been the last one that somebody away could settle */
}

/* --- nothing waits in vain -------------------------------------------------------------------------------- */

/* True when whoever may own the key could take the message now: then somebody must have. */
bool model_pinned_must_go(model *m, const model_message *message)
{
    const key_state state = state_of_key(m, message->key);
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        const model_consumer *consumer = &m->consumers[i];
        if (consumer->state != SL_CONSUMER_ACTIVE || !model_may_own(m, message->key, consumer))
            continue;
        candidates++;
        if (!model_has_room(consumer) || !key_allows(m, message, consumer->id))
            return false;
    }
    if (state.holder != 0 && (state.shared || candidates > 1 || model_key_is_shared(m, message->key)))
        return false;
    return candidates > 0;
}

static void judge_pinned_stall(model *m)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (model_available(m, &m->messages[i]) && model_pinned_must_go(m, &m->messages[i]))
            sim_fail(SIM_RULE_STALL, "%s waits although every consumer that may own its key has room",
                     sim_place_text(m->messages[i].place).chars);
}

void model_judge_stall(model *m)
{
    if (model_is_pinned(m)) {
        judge_pinned_stall(m);
        return;
    }
    for (uint32_t i = 0; model_front(m) != 0 && i < m->message_count; i++)
        if (model_available(m, &m->messages[i]))
            sim_fail(SIM_RULE_STALL, "%s waits although %s has room",
                     sim_place_text(m->messages[i].place).chars, sim_number_text('c', model_front(m)).chars);
}
