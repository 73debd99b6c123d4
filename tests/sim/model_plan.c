/* tests/sim/model_plan.c — what each call does by itself: a list of items, and the code that it returns.
 *
 * Changes that show in no effect are made here at once; all others when their effect comes (model_step.c). */
#include "model.h"

#include <assert.h>

void model_plan_add(model *m, model_item item)
{
    assert(m->plan_count < MODEL_PLAN_MAX);
    item.group = m->plan_group;
    m->plan[m->plan_count++] = item;
}

void model_plan_next_group(model *m)
{
    m->plan_group++;
}

static void add_alone(model *m, model_item item)
{
    model_plan_next_group(m);
    model_plan_add(m, item);
    model_plan_next_group(m);
}

static void add_exact(model *m, sl_effect effect)
{
    add_alone(m, (model_item){ .kind = ITEM_EXACT, .effect = effect });
}

/* The consumer of the call if it is there to speak; otherwise the call fails. */
static model_consumer *speaker(model *m)
{
    model_consumer *consumer = model_consumer_of(m, m->call->consumer);
    if (consumer != NULL && consumer->state != SL_CONSUMER_AWAY)
        return consumer;
    m->want.err = SL_ERR_NO_CONSUMER;
    return NULL;
}

/* --- stop and resume -------------------------------------------------------------------------------------- */

static void add_hand_back(model *m, const model_consumer *consumer)
{
    model_plan_next_group(m);
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (message->live && message->holder == consumer->id && !message->started)
            model_plan_add(
                m, (model_item){ .kind = ITEM_BACK, .place = message->place, .cause = SL_BACK_RELEASED });
    }
    model_plan_next_group(m);
}

static void add_stop_requested(model *m, const model_consumer *consumer, const sl_stop *stop, bool wish)
{
    add_exact(m, (sl_effect){ .kind = SL_EFFECT_STOP_REQUESTED,
                              .stop_requested = { .consumer = consumer->id,
                                                  .asked_by = stop->asked_by,
                                                  .deadline_ns = stop->deadline_ns,
                                                  .hand_back = wish } });
}

/* Releases; STOP_REQUESTED; STOPPED; DRAINED follows from it by itself. Nobody but the consumer releases what it holds, except the
 * server where the consumer could not be asked. */
void model_plan_stop(model *m, model_consumer *consumer, const sl_stop *stop)
{
    const bool first = consumer->state == SL_CONSUMER_ACTIVE, itself = stop->asked_by == SL_ASKER_CONSUMER;
    const bool releases = itself || (stop->asked_by == SL_ASKER_SERVER && !consumer->extensions);
    const bool wish = stop->hand_back_unstarted && !releases;
    if (stop->hand_back_unstarted && releases)
        add_hand_back(m, consumer);
    if (!itself && (first || (wish && consumer->state == SL_CONSUMER_STOPPING)))
        add_stop_requested(m, consumer, stop, wish);
    if (!first && !itself)
        return;
    add_alone(m,
              (model_item){ .kind = ITEM_STOPPED,
                            .consumer = consumer->id,
                            .effect = { .kind = SL_EFFECT_STOPPED,
                                        .stopped = { .consumer = consumer->id,
                                                     .asked_by = first ? stop->asked_by : consumer->asked_by,
                                                     .already_stopped = !first } } });
    if (first)
        model_stop(m, consumer, stop->asked_by);
}

static void plan_stop(model *m)
{
    model_consumer *consumer = speaker(m);
    if (consumer == NULL)
        return;
    m->want.err = consumer->state == SL_CONSUMER_ACTIVE ? SL_OK : SL_ERR_ALREADY_STOPPED;
    model_plan_stop(m, consumer, &m->call->stop);
    if (m->call->stop.asked_by == SL_ASKER_CONSUMER)
        consumer->stopped_itself = true;
    else
        consumer->stopped_alone = true;
}

static void undo_stop(model *m, model_consumer *consumer)
{
    consumer->state = SL_CONSUMER_ACTIVE;
    consumer->since_ns = m->now_ns;
    model_enter(m, consumer);
}

static void plan_resume(model *m)
{
    model_consumer *consumer = speaker(m);
    if (consumer == NULL || consumer->state == SL_CONSUMER_ACTIVE)
        return;
    if (consumer->state == SL_CONSUMER_DRAINED || consumer->stopped_itself)
        m->want.err = SL_ERR_DRAINED;
    else if (model_rule_names(m, consumer))
        m->want.err = SL_ERR_ALREADY_STOPPED;
    else if (!model_may_be_active(m))
        m->want.err = SL_ERR_CONSUMERS_MAX;
    else
        undo_stop(m, consumer);
    if (m->want.err == SL_ERR_ALREADY_STOPPED)
        consumer->stopped_alone = false; /* the rule alone holds it now */
}

/* --- rules ------------------------------------------------------------------------------------------------ */

static uint32_t rule_index(const model *m, uint64_t tag)
{
    uint32_t index = 0;
    while (index < m->rule_count && m->rules[index] != tag)
        index++;
    return index;
}

static void plan_stop_tag(model *m)
{
    const uint64_t tag = m->call->tag;
    if (rule_index(m, tag) < m->rule_count)
        return;
    if (m->rule_count == SL_RULES_MAX) {
        m->want.err = SL_ERR_FULL;
        return;
    }
    m->rules[m->rule_count++] = tag;
    add_exact(m, (sl_effect){ .kind = SL_EFFECT_RULE, .rule = { .tag = tag, .stop = true } });
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].state == SL_CONSUMER_ACTIVE && model_has_tag(&m->consumers[i], tag))
            model_plan_stop(m, &m->consumers[i], &m->call->stop);
}

static bool may_go_on(const model *m, const model_consumer *consumer, uint64_t tag)
{
    return consumer->state == SL_CONSUMER_STOPPING && !consumer->stopped_alone && !consumer->stopped_itself &&
           model_has_tag(consumer, tag) && !model_rule_names(m, consumer) && model_may_be_active(m);
}

static void plan_resume_tag(model *m)
{
    const uint64_t tag = m->call->tag;
    const uint32_t index = rule_index(m, tag);
    if (index == m->rule_count) {
        m->want.err = SL_ERR_NOT_FOUND;
        return;
    }
    m->rules[index] = m->rules[--m->rule_count];
    add_exact(m, (sl_effect){ .kind = SL_EFFECT_RULE, .rule = { .tag = tag, .stop = false } });
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (may_go_on(m, &m->consumers[i], tag))
            undo_stop(m, &m->consumers[i]);
}

/* --- the end of a call ------------------------------------------------------------------------------------ */

/* What a consumer that goes cannot keep: everything, or what does not count as started. */
static void add_returns(model *m, const model_consumer *consumer, bool everything)
{
    model_plan_next_group(m);
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (message->live && message->holder == consumer->id &&
            (everything || !model_counts_as_started(m, message)))
            model_plan_add(m,
                           (model_item){ .kind = ITEM_BACK, .place = message->place, .cause = SL_BACK_LEFT });
    }
    model_plan_next_group(m);
}

static void go_away(model *m, model_consumer *consumer, uint64_t window_end_ns)
{
    model_drop(m, consumer);
    consumer->state = SL_CONSUMER_AWAY;
    consumer->since_ns = m->now_ns;
    consumer->window_end_ns = window_end_ns;
    consumer->windowless = false;
}

static void plan_leave(model *m)
{
    model_consumer *consumer = speaker(m);
    if (consumer == NULL)
        return;
    add_returns(m, consumer, true);
    add_alone(m, (model_item){ .kind = ITEM_GONE, .consumer = consumer->id });
    go_away(m, consumer, SL_NEVER);
}

static void plan_away(model *m)
{
    model_consumer *consumer = speaker(m);
    if (consumer == NULL)
        return;
    if (!consumer->extensions) {
        plan_leave(m);
        return;
    }
    const uint64_t reconnect_ns = consumer->reconnect_ns;
    add_returns(m, consumer, false);
    if (consumer->in_flight == 0)
        add_alone(m, (model_item){ .kind = ITEM_GONE, .consumer = consumer->id });
    go_away(m, consumer, m->now_ns > SL_NEVER - reconnect_ns ? SL_NEVER : m->now_ns + reconnect_ns);
}

/* --- the rest --------------------------------------------------------------------------------------------- */

static void plan_cordon(model *m)
{
    model_consumer *consumer = speaker(m);
    if (consumer == NULL || consumer->cordoned == m->call->cordoned)
        return;
    consumer->cordoned = m->call->cordoned;
    if (consumer->state == SL_CONSUMER_ACTIVE)
        model_stand_back(m, consumer);
}

static void plan_update(model *m)
{
    const sl_settings before = m->settings, *after = &m->call->settings;
    const bool was_ring = !model_is_pinned(m);
    m->settings = *after;
    add_exact(m, (sl_effect){ .kind = SL_EFFECT_SETTINGS, .settings = *after });
    const bool same_ring = was_ring && !model_is_pinned(m) && before.key_order == after->key_order;
    const bool same = before.strategy == after->strategy && before.key_order == after->key_order;
    if (!same && !same_ring)
        model_rebuild(m);
}

/* Started without a claim: only the session is marked, and a second JOIN is the record of that. */
static void plan_promise(model *m, const model_consumer *consumer)
{
    if (consumer->sends_started)
        return;
    add_exact(
        m, (sl_effect){
               .kind = SL_EFFECT_JOIN,
               .join = { .consumer = consumer->id, .session = consumer->session, .sends_started = true } });
    model_session_sends_started(m, consumer->session);
}

static void plan_claims(model *m)
{
    const model_consumer *consumer = speaker(m);
    if (consumer == NULL)
        return;
    if (m->call->kind == SIM_CALL_STARTED && m->call->claim_count == 0)
        plan_promise(m, consumer);
    for (uint32_t i = 0; i < m->call->claim_count; i++)
        add_alone(m, (model_item){ .kind = ITEM_CLAIM, .claim = i });
}

void model_plan_own(model *m)
{
    switch (m->call->kind) {
    case SIM_CALL_OPEN:
    case SIM_CALL_TICK: break;
    case SIM_CALL_OFFER: model_plan_offer(m); break;
    case SIM_CALL_ADVANCE: model_plan_advance(m); break;
    case SIM_CALL_JOIN: model_plan_join(m); break;
    case SIM_CALL_LEAVE: plan_leave(m); break;
    case SIM_CALL_AWAY: plan_away(m); break;
    case SIM_CALL_STOP: plan_stop(m); break;
    case SIM_CALL_RESUME: plan_resume(m); break;
    case SIM_CALL_STOP_TAG: plan_stop_tag(m); break;
    case SIM_CALL_RESUME_TAG: plan_resume_tag(m); break;
    case SIM_CALL_CORDON: plan_cordon(m); break;
    case SIM_CALL_UPDATE: plan_update(m); break;
    case SIM_CALL_ACK:
    case SIM_CALL_NACK:
    case SIM_CALL_RELEASE:
    case SIM_CALL_STARTED:
    case SIM_CALL_EXTEND: plan_claims(m); break;
    case SIM_CALL_COUNT_: assert(false);
    }
}
