/* tests/sim/model_join.c — a consumer comes, or comes back: the section "Coming back" of the rules. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>

static bool is_away_of(const model_consumer *consumer, sl_uuid session)
{
    return consumer->state == SL_CONSUMER_AWAY && model_same_id(consumer->session, session);
}

/* A rule names it: it would be stopped at once. */
static bool would_be_stopped(const model *m, const sl_join *join)
{
    model_consumer consumer = { .tag_count = join->tag_count };
    for (uint32_t i = 0; i < join->tag_count; i++)
        consumer.tags[i] = join->tags[i];
    return model_rule_names(m, &consumer);
}

/* Who is forgotten when a join needs its place: of an earlier life, without a live lease, away longest. */
static const model_consumer *forgettable(const model *m)
{
    const model_consumer *longest = NULL;
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        const model_consumer *consumer = &m->consumers[i];
        if (consumer->state == SL_CONSUMER_AWAY && consumer->windowless && consumer->in_flight == 0 &&
            (longest == NULL || consumer->since_ns < longest->since_ns))
            longest = consumer;
    }
    return longest;
}

static bool is_listed(const sl_join *join, sl_uuid id)
{
    for (uint32_t i = 0; i < join->resume_count; i++)
        if (model_same_id(join->resume[i], id))
            return true;
    return false;
}

static bool holds_listed(const model *m, const model_consumer *consumer, const sl_join *join)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].current && m->messages[i].holder == consumer->id &&
            is_listed(join, m->messages[i].id))
            return true;
    return false;
}

/* It comes back to something that it holds: then it is let in although the group is full, to finish that. */
static bool comes_for_its_own(const model *m, const sl_join *join)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (join->extensions && is_away_of(&m->consumers[i], join->session) &&
            holds_listed(m, &m->consumers[i], join))
            return true;
    return false;
}

void model_plan_join(model *m)
{
    const bool full = m->consumer_count >= m->limits.consumers_max;
    const model_consumer *victim = full ? forgettable(m) : NULL;
    if (!would_be_stopped(m, &m->call->join) && !model_may_be_active(m) &&
        !comes_for_its_own(m, &m->call->join))
        m->want.err = SL_ERR_CONSUMERS_MAX;
    else if (full && victim == NULL)
        m->want.err = SL_ERR_FULL;
    if (m->want.err != SL_OK)
        return;
    if (victim != NULL)
        model_plan_add(m, (model_item){ .kind = ITEM_GONE, .consumer = victim->id });
    model_plan_next_group(m);
    model_plan_add(m, (model_item){ .kind = ITEM_JOIN });
}

/* --- after JOIN: its number is known ---------------------------------------------------------------------- */

static uint32_t free_slot(const model *m)
{
    uint32_t slot = 0;
    while (m->slots_used & UINT64_C(1) << slot)
        slot++;
    assert(slot < 64);
    return slot;
}

static model_consumer *add_consumer(model *m, uint64_t id, const sl_join *join, bool sends_started)
{
    model_consumer *consumer = &m->consumers[m->consumer_count++];
    *consumer = (model_consumer){ .id = id,
                                  .session = join->session,
                                  .tag_count = join->tag_count,
                                  .window = join->window,
                                  .extensions = join->extensions,
                                  .sends_started = sends_started,
                                  .reconnect_ns = join->reconnect_ns,
                                  .since_ns = m->now_ns,
                                  .slot = free_slot(m) };
    for (uint32_t i = 0; i < join->tag_count; i++)
        consumer->tags[i] = join->tags[i];
    m->slots_used |= UINT64_C(1) << consumer->slot;
    return consumer;
}

static bool is_held_by_dead_call(model *m, const model_message *message, sl_uuid session)
{
    const model_consumer *holder = message->current ? model_consumer_of(m, message->holder) : NULL;
    return holder != NULL && is_away_of(holder, session);
}

/* Adds the moves of one listed id unless the same id came earlier in the list. False: it was listed in vain. */
static bool add_moves(model *m, uint32_t index)
{
    const sl_join *join = &m->call->join;
    const sl_join earlier = { .resume = join->resume, .resume_count = index };
    const bool repeated = is_listed(&earlier, join->resume[index]);
    bool found = false;
    model_plan_next_group(m);
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (!model_same_id(message->id, join->resume[index]) ||
            !is_held_by_dead_call(m, message, join->session))
            continue;
        found = true;
        if (!repeated)
            model_plan_add(m, (model_item){ .kind = ITEM_MOVE, .place = message->place });
    }
    return found;
}

static void add_death(model *m, const model_consumer *dead)
{
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (message->live && message->holder == dead->id && !is_listed(&m->call->join, message->id))
            model_plan_add(m,
                           (model_item){ .kind = ITEM_BACK, .place = message->place, .cause = SL_BACK_DIED });
    }
    model_plan_add(m, (model_item){ .kind = ITEM_GONE, .consumer = dead->id });
}

static const model_consumer *away_longest(const model *m, sl_uuid session)
{
    const model_consumer *longest = NULL;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (is_away_of(&m->consumers[i], session) &&
            (longest == NULL || m->consumers[i].since_ns < longest->since_ns))
            longest = &m->consumers[i];
    return longest;
}

/* It comes back to those that hold something of its list; if there are none, to the one that is away longest. */
static void add_deaths(model *m)
{
    const sl_join *join = &m->call->join;
    bool any = false;
    model_plan_next_group(m);
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (is_away_of(&m->consumers[i], join->session) && holds_listed(m, &m->consumers[i], join)) {
            add_death(m, &m->consumers[i]);
            any = true;
        }
    const model_consumer *longest = any ? NULL : away_longest(m, join->session);
    if (longest != NULL)
        add_death(m, longest);
    model_plan_next_group(m);
}

static void take_over(model *m, uint64_t newcomer)
{
    const sl_join *join = &m->call->join;
    bool in_vain[SIM_RESUME_MAX];
    for (uint32_t i = 0; i < join->resume_count; i++)
        in_vain[i] = !add_moves(m, i);
    add_deaths(m);
    for (uint32_t i = 0; i < join->resume_count; i++) {
        const sl_effect lost = { .kind = SL_EFFECT_LOST,
                                 .lost = { .consumer = newcomer, .id = join->resume[i] } };
        model_plan_next_group(m);
        if (in_vain[i])
            model_plan_add(m, (model_item){ .kind = ITEM_EXACT, .effect = lost });
    }
}

static bool session_sends_started(const model *m, sl_uuid session)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (model_same_id(m->consumers[i].session, session) && m->consumers[i].sends_started)
            return true;
    return false;
}

static void judge_join(const model *m, const sl_effect *effect, bool sends_started)
{
    const sl_effect want = { .kind = SL_EFFECT_JOIN,
                             .join = { .consumer = m->consumer_last + 1,
                                       .session = m->call->join.session,
                                       .sends_started = sends_started } };
    if (effect->kind != SL_EFFECT_JOIN || !model_same_id(effect->join.session, m->call->join.session) ||
        effect->join.sends_started != sends_started)
        model_unexpected(&want, effect);
    if (effect->join.consumer <= m->consumer_last || effect->join.consumer >> 40 != m->epoch)
        sim_fail(SIM_RULE_RECORDS, "the number of a consumer does not grow: %s after %s",
                 sim_number_text('c', effect->join.consumer).chars,
                 sim_number_text('c', m->consumer_last).chars);
}

void model_take_join(model *m, const sl_effect *effect)
{
    static const sl_stop by_rule = { .asked_by = SL_ASKER_OPERATOR },
                         as_full = { .asked_by = SL_ASKER_SERVER };
    const sl_join *join = &m->call->join;
    const bool sends_started = join->sends_started || session_sends_started(m, join->session);
    judge_join(m, effect, sends_started);
    const uint64_t id = effect->join.consumer;
    const bool is_full = !model_may_be_active(m);
    if (sends_started)
        model_session_sends_started(m, join->session);
    if (join->extensions)
        take_over(m, id);
    m->consumer_last = m->want.consumer = id;
    model_consumer *consumer = add_consumer(m, id, join, sends_started);
    model_plan_next_group(m);
    if (model_rule_names(m, consumer))
        model_plan_stop(m, consumer, &by_rule);
    else if (is_full)
        model_plan_stop(m, consumer, &as_full);
    else
        model_plan_add(m, (model_item){ .kind = ITEM_ENTER, .consumer = id }); /* after what it took over */
}

/* The lease goes on under another holder. It may fill the newcomer beyond its window. */
void model_take_move(model *m, const model_item *item, const sl_effect *effect)
{
    model_message *message = model_find(m, item->place);
    model_consumer *from = model_consumer_of(m, message->holder);
    model_consumer *to = model_consumer_of(m, m->consumer_last);
    const model_next want = {
        .effect = { .kind = SL_EFFECT_MOVE,
                    .move = { .place = message->place, .token = message->token, .consumer = to->id } }
    };
    model_same(&want, effect);
    from->in_flight -= message->live;
    to->in_flight += message->live;
    message->holder = to->id;
    message->passed_on = true;
}
