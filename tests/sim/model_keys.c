/* tests/sim/model_keys.c — pinned keys: what can be known from outside about who owns which bucket.
 *
 * Buckets are not visible. The model keeps for each key the set of consumers that may own it: a delivery makes it
 * one consumer; a join or resume adds the newcomer, who may have taken the bucket; the end of a possible owner
 * makes it everybody again. That is enough to see a key wander without a reason.
 *
 * When the world promises that no two keys share a bucket, buckets can be counted as keys, between bounds: those
 * that a consumer owns for certain, and those that it may own. Then three more rules can be judged: the fewest
 * buckets (and cordoned ones last, and the earliest to join) get an unowned one; after a consumer came nobody has
 * kept more than ceil(owned / active); and it has not taken more than was above that. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>

static model_key *key_of(model *m, uint64_t key)
{
    for (uint32_t i = 0; i < m->key_count; i++)
        if (m->keys[i].key == key)
            return &m->keys[i];
    assert(m->key_count < MODEL_KEYS_MAX);
    m->keys[m->key_count] = (model_key){ .key = key, .anyone = true, .fresh = true };
    return &m->keys[m->key_count++];
}

static bool is_held_by_two(const model *m, uint64_t key)
{
    uint64_t holder = 0;
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (!message->live || message->key != key)
            continue;
        if (holder != 0 && holder != message->holder)
            return true;
        holder = message->holder;
    }
    return false;
}

static uint32_t held_count(const model *m, uint64_t key)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        count += m->messages[i].live && m->messages[i].key == key;
    return count;
}

/* Another strategy, or another life. Leases of one key may then be with several consumers. */
void model_keys_clear(model *m)
{
    m->key_count = 0;
    m->comer = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (is_held_by_two(m, m->messages[i].key))
            key_of(m, m->messages[i].key)->shared = true;
}

bool model_key_is_shared(model *m, uint64_t key)
{
    return key_of(m, key)->shared;
}

static uint64_t bit_of(const model_consumer *consumer)
{
    return UINT64_C(1) << consumer->slot;
}

bool model_may_own(model *m, uint64_t key, const model_consumer *consumer)
{
    const model_key *known = key_of(m, key);
    return known->anyone || (known->owners & bit_of(consumer));
}

bool model_owns(model *m, uint64_t key, const model_consumer *consumer)
{
    const model_key *known = key_of(m, key);
    return !known->anyone && known->owners == bit_of(consumer);
}

/* --- counting --------------------------------------------------------------------------------------------- */

static bool has_work(const model *m, uint64_t key)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].key == key)
            return true;
    return false;
}

/* False only if nobody owns it for certain: unowned before this call, and nothing to give it away for. */
static bool may_be_owned(const model *m, const model_key *key)
{
    return !key->anyone || !key->fresh || has_work(m, key->key);
}

static uint32_t owned_min(const model *m, const model_consumer *consumer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->key_count; i++)
        count += !m->keys[i].anyone && m->keys[i].owners == bit_of(consumer);
    return count;
}

static uint32_t owned_max(const model *m, const model_consumer *consumer, const model_key *but)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->key_count; i++) {
        const model_key *key = &m->keys[i];
        const bool may = key->anyone ? may_be_owned(m, key) : (key->owners & bit_of(consumer)) != 0;
        count += key != but && may;
    }
    return count;
}

static uint32_t ceil_share(uint32_t owned, uint32_t active)
{
    return (owned + active - 1) / active;
}

/* --- consumers come and go -------------------------------------------------------------------------------- */

static void forget_comer(model *m)
{
    m->comer = 0;
    for (uint32_t i = 0; i < m->key_count; i++) {
        m->keys[i].old = false;
        m->keys[i].before = 0;
        m->keys[i].fate = FATE_UNKNOWN;
    }
    for (uint32_t i = 0; i < m->consumer_count; i++)
        m->consumers[i].old_keys = 0;
}

/* Bounds of what the newcomer may leave and take; it counts among the active ones. */
static void bound_share(model *m, const model_consumer *comer)
{
    assert(comer->state == SL_CONSUMER_ACTIVE);
    uint32_t active = 0, owned_least = 0, owned_most = 0;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        active += m->consumers[i].state == SL_CONSUMER_ACTIVE;
    for (uint32_t i = 0; i < m->key_count; i++) {
        owned_least += !m->keys[i].anyone;
        owned_most += may_be_owned(m, &m->keys[i]);
    }
    m->comer = comer->id;
    m->keep_max = ceil_share(owned_most, active);
    m->comer_old_max = 0;
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        const uint32_t most = owned_max(m, &m->consumers[i], NULL), share = ceil_share(owned_least, active);
        if (&m->consumers[i] != comer && m->consumers[i].state == SL_CONSUMER_ACTIVE && most > share)
            m->comer_old_max += most - share;
    }
}

static uint64_t only_owner(const model *m, const model_key *key)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (!key->anyone && key->owners == bit_of(&m->consumers[i]))
            return m->consumers[i].id;
    return 0;
}

void model_keys_enter(model *m, model_consumer *consumer)
{
    forget_comer(m);
    if (consumer->cordoned) /* it takes nothing from the others */
        return;
    bound_share(m, consumer);
    for (uint32_t i = 0; i < m->key_count; i++) {
        m->keys[i].old = !m->keys[i].anyone;
        m->keys[i].before = only_owner(m, &m->keys[i]);
        m->keys[i].flight = held_count(m, m->keys[i].key);
        m->keys[i].owners |= bit_of(consumer);
    }
}

/* What it owned alone is unowned; of what it may have owned nothing is known any more. */
void model_keys_drop(model *m, model_consumer *consumer)
{
    forget_comer(m);
    for (uint32_t i = 0; i < m->key_count; i++) {
        model_key *key = &m->keys[i];
        if (key->anyone || !(key->owners & bit_of(consumer)))
            continue;
        const bool alone = key->owners == bit_of(consumer);
        *key = (model_key){ .key = key->key, .anyone = true, .fresh = alone, .shared = key->shared };
    }
}

/* --- a delivery shows an owner ---------------------------------------------------------------------------- */

/* The bucket was given away in this call: to the one with the fewest, the earliest to join among equals. */
static void judge_fewest(const model *m, const model_key *key, const model_consumer *consumer)
{
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        const model_consumer *other = &m->consumers[i];
        const bool earlier = other < consumer;
        if (other == consumer || other->state != SL_CONSUMER_ACTIVE ||
            (other->cordoned && !consumer->cordoned))
            continue;
        if (consumer->cordoned && !other->cordoned)
            sim_fail(SIM_RULE_STRATEGY, "%s is cordoned and gets a new key, while %s is not",
                     sim_number_text('c', consumer->id).chars, sim_number_text('c', other->id).chars);
        const uint32_t most = owned_max(m, other, key), least = owned_min(m, consumer);
        if (least > most || (least == most && earlier))
            sim_fail(SIM_RULE_STRATEGY, "%s owns %" PRIu32 " keys and gets a new one, %s owns %" PRIu32,
                     sim_number_text('c', consumer->id).chars, least, sim_number_text('c', other->id).chars,
                     most);
    }
}

static void judge_share(const model *m, const model_consumer *consumer)
{
    if (consumer->id != m->comer && consumer->old_keys > m->keep_max)
        sim_fail(SIM_RULE_STRATEGY, "%s has kept more than %" PRIu32 " keys when %s came",
                 sim_number_text('c', consumer->id).chars, m->keep_max, sim_number_text('c', m->comer).chars);
    if (consumer->id == m->comer && consumer->old_keys > m->comer_old_max)
        sim_fail(SIM_RULE_STRATEGY, "%s has taken more than %" PRIu32 " keys when it came",
                 sim_number_text('c', consumer->id).chars, m->comer_old_max);
}

/* Of what one consumer had, the comer takes those with the least in flight first. */
static void judge_least(const model *m, const model_key *seen)
{
    for (uint32_t i = 0; i < m->key_count; i++) {
        const model_key *other = &m->keys[i];
        if (seen->before == 0 || other->before != seen->before || other->fate == FATE_UNKNOWN ||
            other->fate == seen->fate)
            continue;
        const model_key *taken = seen->fate == FATE_TAKEN ? seen : other;
        const model_key *kept = seen->fate == FATE_TAKEN ? other : seen;
        if (taken->flight > kept->flight)
            sim_fail(SIM_RULE_STRATEGY,
                     "%s took key %" PRIu64 " with %" PRIu32 " in flight and left %" PRIu64 " with %" PRIu32,
                     sim_number_text('c', m->comer).chars, taken->key, taken->flight, kept->key,
                     kept->flight);
    }
}

static void judge_old(model *m, model_key *key, model_consumer *consumer)
{
    consumer->old_keys++;
    key->fate = consumer->id == m->comer ? FATE_TAKEN : FATE_KEPT;
    if (!m->keys_apart)
        return;
    judge_share(m, consumer);
    judge_least(m, key);
}

void model_keys_seen(model *m, uint64_t key, model_consumer *consumer)
{
    model_key *known = key_of(m, key);
    for (uint32_t i = 0; i < m->message_count; i++)
        key_of(m, m->messages[i].key); /* keys that may have got an owner in this call count as well */
    if (m->keys_apart && known->anyone && known->fresh)
        judge_fewest(m, known, consumer);
    if (m->comer != 0 && known->old)
        judge_old(m, known, consumer);
    known->owners = bit_of(consumer);
    known->anyone = known->fresh = known->old = false;
}

/* A bucket with work has an owner from now on, although nobody saw whom, if anybody is there to be one. */
void model_keys_end_call(model *m)
{
    for (uint32_t i = 0; i < m->key_count; i++)
        m->keys[i].shared = m->keys[i].shared && held_count(m, m->keys[i].key) > 0;
    bool active = false;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        active = active || m->consumers[i].state == SL_CONSUMER_ACTIVE;
    if (!active || !model_is_pinned(m))
        return;
    for (uint32_t i = 0; i < m->message_count; i++)
        key_of(m, m->messages[i].key)->fresh = false;
}
