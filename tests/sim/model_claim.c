/* tests/sim/model_claim.c — the section "Who may say something about a message" of the rules. */
#include "model.h"

#include <string.h>

static bool is_of(model *m, const model_message *message, uint64_t consumer, bool live_only)
{
    if (message->holder == consumer)
        return true;
    const model_consumer *holder = model_consumer_of(m, message->holder);
    return !live_only && holder != NULL && holder->state == SL_CONSUMER_AWAY && holder->heir == consumer;
}

static bool is_meant(model *m, const model_message *message, const sl_claim *claim, bool live_only)
{
    return message->current && (message->live || !live_only) &&
           memcmp(message->id.bytes, claim->id.bytes, sizeof claim->id.bytes) == 0 &&
           (claim->token == 0 || claim->token == message->token) &&
           is_of(m, message, m->call->consumer, live_only);
}

static bool is_better(const model_message *a, const model_message *b)
{
    return a->live != b->live ? a->live : a->token < b->token;
}

static model_message *claimed(model *m, uint32_t claim, bool live_only)
{
    model_message *best = NULL;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (is_meant(m, &m->messages[i], &m->call->claims[claim], live_only) &&
            (best == NULL || is_better(&m->messages[i], best)))
            best = &m->messages[i];
    return best;
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
    const model_message *message = claimed(m, item->claim, true);
    return message != NULL && message->started;
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
    const bool was_live = message->live;
    model_same(want, effect);
    model_lease_ends(m, message, LEASE_SETTLED);
    model_settle(m, message, effect);
    model_push(m, answer);
    if (was_live)
        model_after_lease(m, holder);
}

static void take_started(model_consumer *consumer, model_message *message, const sl_effect *effect)
{
    const model_next want = { .effect = { .kind = SL_EFFECT_STARTED,
                                          .started = { .place = message->place, .token = message->token } } };
    model_same(&want, effect);
    message->started = true;
    consumer->sends_started = true;
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
    model_message *message = claimed(m, item->claim, needs_live(kind));
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
        take_started(model_consumer_of(m, m->call->consumer), message, effect);
    } else {
        take_extend(m, message, effect);
    }
}
