/* tests/sim/model_claim.c — the section "Who may say something about a message" of the rules. */
#include "model.h"

/* An heir: without extensions, of the same session as a call that is dead. It may settle, no more. */
static bool inherits(model *m, const model_message *message, const model_consumer *consumer)
{
    const model_consumer *holder = model_consumer_of(m, message->holder);
    return holder != NULL && holder->state == SL_CONSUMER_AWAY && !consumer->extensions &&
           model_same_id(holder->session, consumer->session);
}

static bool is_named(const model_message *message, const sl_claim *claim)
{
    return message->current && model_same_id(message->id, claim->id) &&
           (claim->token == 0 || claim->token == message->token);
}

/* Started: the newest that is not marked, or else the newest. Extend: the one that ends first, of equals the newest. */
static bool is_rather(sim_call_kind kind, const model_message *message, const model_message *than)
{
    if (kind == SIM_CALL_STARTED && message->started != than->started)
        return than->started;
    if (kind == SIM_CALL_EXTEND && message->until_ns != than->until_ns)
        return message->until_ns < than->until_ns;
    return message->token > than->token;
}

/* Which of its own live deliveries of the id is meant by who does not end it. */
static model_message *live_own(model *m, const sl_claim *claim)
{
    model_message *found = NULL;
    for (uint32_t i = 0; i < m->message_count; i++) {
        model_message *message = &m->messages[i];
        if (!is_named(message, claim) || message->holder != m->call->consumer || !message->live)
            continue;
        if (found == NULL || is_rather(m->call->kind, message, found))
            found = message;
    }
    return found;
}

/* The newest own delivery of the id. *ret_any: one of them was passed on, so it may be any of them. */
static model_message *newest_own(model *m, const sl_claim *claim, uint64_t consumer, bool *ret_any)
{
    model_message *newest = NULL;
    *ret_any = false;
    for (uint32_t i = 0; i < m->message_count; i++) {
        model_message *message = &m->messages[i];
        if (!is_named(message, claim) || message->holder != consumer)
            continue;
        *ret_any = *ret_any || message->passed_on;
        if (newest == NULL || message->token > newest->token)
            newest = message;
    }
    return newest;
}

/* Of several inherited ones any may be meant: the one that the core took, if it is among them. */
static model_message *inherited(model *m, const sl_claim *claim, const model_message *taken)
{
    model_message *found = NULL;
    for (uint32_t i = 0; i < m->message_count; i++) {
        model_message *message = &m->messages[i];
        if (is_named(message, claim) && inherits(m, message, model_consumer_of(m, m->call->consumer)) &&
            (found == NULL || message == taken))
            found = message;
    }
    return found;
}

/* Which message a claim is about; taken: the one that the core's effect is about, NULL if it is about none. */
static model_message *claimed(model *m, uint32_t index, bool live_only, const model_message *taken)
{
    const sl_claim *claim = &m->call->claims[index];
    bool any;
    model_message *message = newest_own(m, claim, m->call->consumer, &any);
    if (live_only)
        return live_own(m, claim);
    if (any && taken != NULL && is_named(taken, claim) && taken->holder == m->call->consumer)
        message = &m->messages[taken - m->messages];
    return message != NULL ? message : inherited(m, claim, taken);
}

/* True when the rules leave open which of several deliveries a claim without token is about. */
bool model_claim_is_open(model *m, uint64_t consumer, const sl_claim *claim, uint64_t *ret_token)
{
    bool any;
    const model_message *newest = newest_own(m, claim, consumer, &any);
    *ret_token = newest == NULL ? 0 : newest->token;
    return any && claim->token == 0;
}

static bool needs_live(sim_call_kind kind)
{
    return kind == SIM_CALL_STARTED || kind == SIM_CALL_EXTEND;
}

/* A lease that is marked already needs no second mark, and a success of Started has no answer. */
bool model_claim_is_silent(model *m, const model_item *item)
{
    if (item->kind != ITEM_CLAIM || m->call->kind != SIM_CALL_STARTED)
        return false;
    const model_message *message = claimed(m, item->claim, true, NULL);
    return message != NULL && message->started;
}

/* Nothing is claimed: the answer must be LOST. */
bool model_claim_is_lost(model *m, const model_item *item)
{
    return claimed(m, item->claim, needs_live(m->call->kind), NULL) == NULL;
}

static void take_lost(model *m, const model_item *item, const sl_effect *effect)
{
    const model_next want = { .effect = { .kind = SL_EFFECT_LOST,
                                          .lost = { .consumer = m->call->consumer,
                                                    .id = m->call->claims[item->claim].id } } };
    model_same(&want, effect);
    m->since_open.lost++;
}

/* ack, nack skip, nack park: never again, then the answer. */
static void take_settle(model *m, model_message *message, const model_next *want, const sl_effect *effect,
                        const sl_effect *answer)
{
    const uint64_t holder = message->holder;
    model_same(want, effect);
    model_lease_ends(m, message, LEASE_SETTLED);
    model_settle(m, message, effect);
    model_push(m, answer);
    model_after_lease(m, holder);
}

static void take_started(model *m, model_message *message, const sl_effect *effect)
{
    const model_next want = { .effect = { .kind = SL_EFFECT_STARTED,
                                          .started = { .place = message->place, .token = message->token } } };
    model_same(&want, effect);
    message->started = true;
    model_session_sends_started(m, model_consumer_of(m, message->holder)->session);
}

static void take_extend(model *m, model_message *message, const sl_effect *effect)
{
    const uint64_t asked_ns = m->call->lease_ns == 0 ? m->settings.lease_ns : m->call->lease_ns;
    const uint64_t lease_ns = asked_ns > SL_LEASE_NS_MAX ? SL_LEASE_NS_MAX : asked_ns;
    const model_next want = { .effect = { .kind = SL_EFFECT_EXTEND,
                                          .extend = { .place = message->place,
                                                      .token = message->token,
                                                      .until_ns = m->now_ns + lease_ns } } };
    model_same(&want, effect);
    message->until_ns = want.effect.extend.until_ns;
}

static model_next settle_of(const model_message *message, sl_settle_cause cause)
{
    return (
        model_next){ .effect = { .kind = SL_EFFECT_SETTLE,
                                 .settle = { .place = message->place, .id = message->id, .cause = cause } } };
}

static model_next park_of(const model_message *message)
{
    return (model_next){ .effect = { .kind = SL_EFFECT_PARK,
                                     .park = { .place = message->place,
                                               .id = message->id,
                                               .cause = SL_PARK_ASKED,
                                               .last = SL_BACK_NACKED,
                                               .counters = message->counters } } };
}

static void take_nack(model *m, model_message *message, const sl_effect *effect, const sl_effect *answer)
{
    if (m->call->nack.action == SL_NACK_RETRY) {
        model_take_return(m, message, SL_BACK_NACKED, effect, answer);
        return;
    }
    const model_next want =
        m->call->nack.action == SL_NACK_PARK ? park_of(message) : settle_of(message, SL_SETTLE_SKIPPED);
    take_settle(m, message, &want, effect, answer);
}

static void take_release(model *m, model_message *message, const sl_effect *effect, const sl_effect *answer)
{
    const bool interrupted = message->live && message->started;
    model_take_return(m, message, interrupted ? SL_BACK_INTERRUPTED : SL_BACK_RELEASED, effect, answer);
}

void model_take_claim(model *m, const model_item *item, const sl_effect *effect)
{
    const sim_call_kind kind = m->call->kind;
    sl_place place;
    const model_message *taken = model_is_return(effect, &place) ? model_find(m, place) : NULL;
    model_message *message = claimed(m, item->claim, needs_live(kind), taken);
    const sl_effect answer = { .kind = SL_EFFECT_SETTLED,
                               .settled = { .consumer = m->call->consumer,
                                            .id = m->call->claims[item->claim].id } };
    if (message == NULL) {
        take_lost(m, item, effect);
    } else if (kind == SIM_CALL_ACK) {
        const model_next want = settle_of(message, SL_SETTLE_ACKED);
        take_settle(m, message, &want, effect, &answer);
    } else if (kind == SIM_CALL_NACK) {
        take_nack(m, message, effect, &answer);
    } else if (kind == SIM_CALL_RELEASE) {
        take_release(m, message, effect, &answer);
    } else if (kind == SIM_CALL_STARTED) {
        take_started(m, message, effect);
    } else {
        take_extend(m, message, effect);
    }
}
