/* tests/sim/model_step.c — one call from begin to end: which effect may come now, and is it all there at the end? */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>

/* --- DUE -------------------------------------------------------------------------------------------------- */

static uint64_t lease_due_ns(const model *m)
{
    uint64_t due_ns = SL_NEVER;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].live && m->messages[i].until_ns < due_ns)
            due_ns = m->messages[i].until_ns;
    return due_ns <= m->now_ns ? due_ns : SL_NEVER;
}

static uint64_t window_due_ns(const model *m)
{
    uint64_t due_ns = SL_NEVER;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].state == SL_CONSUMER_AWAY && m->consumers[i].window_end_ns < due_ns)
            due_ns = m->consumers[i].window_end_ns;
    return due_ns <= m->now_ns ? due_ns : SL_NEVER;
}

/* Of an earlier life, holder of nothing: GONE at open. */
static const model_consumer *leftover(const model *m)
{
    for (uint32_t i = 0; m->opening && i < m->consumer_count; i++)
        if (!model_is_holder(m, m->consumers[i].id))
            return &m->consumers[i];
    return NULL;
}

static bool is_anything_due(const model *m)
{
    return lease_due_ns(m) != SL_NEVER || window_due_ns(m) != SL_NEVER || leftover(m) != NULL;
}

static bool take_leftover(model *m, const sl_effect *effect)
{
    const bool is_gone = m->opening && effect->kind == SL_EFFECT_GONE;
    const model_consumer *consumer = is_gone ? model_consumer_of(m, effect->gone.consumer) : NULL;
    if (consumer == NULL || model_is_holder(m, consumer->id))
        return false;
    model_consumer_gone(m, effect->gone.consumer);
    return true;
}

/* In order of the due times; at the same time leases before windows. */
static void take_due(model *m, const sl_effect *effect)
{
    const uint64_t lease_ns = lease_due_ns(m), window_ns = window_due_ns(m);
    const bool is_lease = lease_ns <= window_ns;
    sl_place place;
    if (take_leftover(m, effect))
        return;
    model_message *message = model_is_return(effect, &place) ? model_find(m, place) : NULL;
    if (message == NULL || !message->live)
        sim_fail(SIM_RULE_TIME, "%s, while a lease or window of %" PRIu64 " is due",
                 sim_effect_text(effect).chars, is_lease ? lease_ns : window_ns);
    const uint64_t due_ns =
        is_lease ? message->until_ns : model_consumer_of(m, message->holder)->window_end_ns;
    if (due_ns != (is_lease ? lease_ns : window_ns))
        sim_fail(SIM_RULE_TIME, "%s, but what was due at %" PRIu64 " comes first",
                 sim_effect_text(effect).chars, is_lease ? lease_ns : window_ns);
    model_take_return(m, message, is_lease ? SL_BACK_EXPIRED : SL_BACK_DIED, effect, NULL);
}

/* --- OWN -------------------------------------------------------------------------------------------------- */

/* The first item that is not done; its group is the one that may go on now. */
static model_item *first_item(model *m)
{
    for (uint32_t i = 0; i < m->plan_count; i++)
        if (!m->plan[i].done)
            return &m->plan[i];
    return NULL;
}

static bool wants(const model_item *item, const sl_effect *effect)
{
    sl_place place;
    switch (item->kind) {
    case ITEM_GONE: return effect->kind == SL_EFFECT_GONE && effect->gone.consumer == item->consumer;
    case ITEM_MOVE:
        return effect->kind == SL_EFFECT_MOVE && effect->move.place.position == item->place.position &&
               effect->move.place.lane == item->place.lane;
    case ITEM_BACK:
    case ITEM_VANISH:
        return model_is_return(effect, &place) && place.position == item->place.position &&
               place.lane == item->place.lane;
    case ITEM_EXACT:
    case ITEM_JOIN:
    case ITEM_STOPPED:
    case ITEM_CLAIM:
    case ITEM_ENTER: break;
    }
    return true;
}

static void take_stopped(model *m, const model_item *item, const sl_effect *effect)
{
    model_next want = { .effect = item->effect };
    want.effect.stopped.in_flight = model_consumer_of(m, item->consumer)->in_flight;
    model_same(&want, effect);
    model_after_lease(m, item->consumer);
}

static void take_vanish(model *m, model_message *message, const sl_effect *effect)
{
    const model_next want = {
        .effect = { .kind = SL_EFFECT_SETTLE,
                    .settle = { .place = message->place, .id = message->id, .cause = SL_SETTLE_VANISHED } }
    };
    model_same(&want, effect);
    model_settle(m, message, effect);
}

static void take_item(model *m, model_item *item, const sl_effect *effect)
{
    const model_next exact = { .effect = item->effect };
    item->done = true;
    switch (item->kind) {
    case ITEM_EXACT:
        model_same(&exact, effect);
        m->since_open.lost += effect->kind == SL_EFFECT_LOST;
        break;
    case ITEM_JOIN: model_take_join(m, effect); break;
    case ITEM_BACK: model_take_return(m, model_find(m, item->place), item->cause, effect, NULL); break;
    case ITEM_MOVE: model_take_move(m, item, effect); break;
    case ITEM_GONE: model_consumer_gone(m, item->consumer); break;
    case ITEM_STOPPED: take_stopped(m, item, effect); break;
    case ITEM_CLAIM: model_take_claim(m, item, effect); break;
    case ITEM_VANISH: take_vanish(m, model_find(m, item->place), effect); break;
    case ITEM_ENTER: assert(false); /* never waits for an effect */
    }
}

static void take_own(model *m, const sl_effect *effect)
{
    model_item *first = first_item(m);
    for (model_item *item = first; item < &m->plan[m->plan_count] && item->group == first->group; item++)
        if (!item->done && wants(item, effect)) {
            take_item(m, item, effect);
            return;
        }
    model_unexpected(NULL, effect);
}

/* --- what did not happen ---------------------------------------------------------------------------------- */

static sim_rule rule_of_missing(model *m, const model_item *item)
{
    if (item->kind == ITEM_GONE || item->kind == ITEM_STOPPED)
        return SIM_RULE_STOP_ONCE;
    if (item->kind == ITEM_CLAIM)
        return model_claim_is_lost(m, item) ? SIM_RULE_FENCING : SIM_RULE_ANSWER;
    if (item->kind == ITEM_JOIN)
        return SIM_RULE_CODE;
    return item->kind == ITEM_VANISH ? SIM_RULE_RECORDS : SIM_RULE_STALL;
}

static void judge_missing(model *m)
{
    if (m->next_count > 0)
        sim_fail(SIM_RULE_ANSWER, "missing: %s", sim_effect_text(&m->next[0].effect).chars);
    if (m->stage == MODEL_DUE)
        sim_fail(SIM_RULE_TIME,
                 "something is due and did not happen (leases %" PRIu64 ", windows %" PRIu64 ")",
                 lease_due_ns(m), window_due_ns(m));
    const model_item *item = first_item(m);
    if (item == NULL)
        return;
    const bool of_message = item->kind == ITEM_BACK || item->kind == ITEM_MOVE || item->kind == ITEM_VANISH;
    if (item->kind == ITEM_EXACT)
        sim_fail(item->effect.kind == SL_EFFECT_LOST ? SIM_RULE_FENCING : SIM_RULE_ANSWER, "missing: %s",
                 sim_effect_text(&item->effect).chars);
    sim_fail(rule_of_missing(m, item), "item %d of the call did not happen: %s", (int)item->kind,
             of_message ? sim_place_text(item->place).chars : sim_number_text('c', item->consumer).chars);
}

/* --- stages ----------------------------------------------------------------------------------------------- */

/* Does what shows in no effect, up to the first item that waits for one. */
static bool own_is_done(model *m)
{
    for (model_item *item = first_item(m); item != NULL; item = first_item(m)) {
        if (item->kind == ITEM_ENTER)
            model_enter(m, model_consumer_of(m, item->consumer));
        else if (!model_claim_is_silent(m, item))
            return false;
        item->done = true;
    }
    return true;
}

/* Goes to the stage to which the next effect belongs. */
static void move_on(model *m)
{
    if (m->next_count > 0)
        return;
    if (m->stage == MODEL_DUE && !is_anything_due(m)) {
        m->opening = false;
        m->stage = MODEL_OWN;
        model_plan_own(m);
    }
    if (m->stage == MODEL_OWN && own_is_done(m))
        m->stage = MODEL_GIVE;
}

static bool has_tag_zero(const sl_join *join)
{
    for (uint32_t i = 0; i < join->tag_count; i++)
        if (join->tags[i] == 0)
            return true;
    return false;
}

/* Some calls with nonsense in them are no calls at all: not even time goes by. */
static bool is_refused(const model *m, const sim_call *call)
{
    if (call->kind == SIM_CALL_JOIN)
        return call->join.window == 0 || call->join.tag_count > SL_TAGS_MAX || has_tag_zero(&call->join);
    if (call->kind == SIM_CALL_NACK)
        return call->nack.action >= SL_NACK_COUNT_;
    if (call->kind == SIM_CALL_ADVANCE)
        return (int)call->place.lane < 0 || call->place.lane >= SL_LANE_COUNT_ ||
               call->place.position == UINT64_MAX;
    if (call->kind == SIM_CALL_UPDATE)
        return !call->settings_valid || (model_needs_keys(call->settings.strategy) && !m->limits.keyed);
    return false;
}

void model_begin(model *m, const sim_call *call)
{
    m->call = call;
    m->stage = MODEL_DUE;
    m->plan_count = m->plan_group = m->next_count = 0;
    m->passed_now[SL_LANE_MAIN] = m->passed_now[SL_LANE_PARKED] = false;
    m->want = (sim_result){ .err = SL_OK };
    m->opening = call->kind == SIM_CALL_OPEN;
    if (is_refused(m, call)) {
        m->want.err = SL_ERR_INVALID;
        m->stage = MODEL_GIVE;
        return;
    }
    if (m->opening)
        model_load_open(m, call->now_ns);
    else if (call->now_ns > m->now_ns)
        m->now_ns = call->now_ns;
    move_on(m);
}

static void drained(model *m, uint64_t id)
{
    model_consumer *consumer = model_consumer_of(m, id);
    consumer->state = SL_CONSUMER_DRAINED;
    consumer->since_ns = m->now_ns;
}

static void take_next(model *m, const sl_effect *effect)
{
    model_same(&m->next[0], effect);
    m->next_count--;
    for (uint32_t i = 0; i < m->next_count; i++)
        m->next[i] = m->next[i + 1];
    if (effect->kind == SL_EFFECT_EPOCH)
        m->epoch = effect->epoch.epoch;
    if (effect->kind == SL_EFFECT_GONE)
        model_consumer_gone(m, effect->gone.consumer);
    if (effect->kind == SL_EFFECT_DRAINED)
        drained(m, effect->drained.consumer);
}

static void take_given(model *m, const sl_effect *effect)
{
    if (effect->kind == SL_EFFECT_LEASE && m->stage == MODEL_GIVE) {
        model_take_lease(m, effect);
        return;
    }
    if (effect->kind != SL_EFFECT_CHECKPOINT)
        model_unexpected(NULL, effect);
    if (m->stage == MODEL_GIVE)
        model_judge_stall(m);
    m->stage = MODEL_PASS;
    model_take_checkpoint(m, effect);
}

void model_effect(model *m, const sl_effect *effect)
{
    const bool comes_last = effect->kind == SL_EFFECT_LEASE || effect->kind == SL_EFFECT_CHECKPOINT;
    if (comes_last && m->stage <= MODEL_OWN)
        judge_missing(m);
    if (m->next_count > 0)
        take_next(m, effect);
    else if (m->stage == MODEL_DUE)
        take_due(m, effect);
    else if (m->stage == MODEL_OWN)
        take_own(m, effect);
    else
        take_given(m, effect);
    move_on(m);
}

/* --- the end of a call ------------------------------------------------------------------------------------ */

static void judge_result(const model *m, const sim_result *result)
{
    if (result->err != m->want.err)
        sim_fail(SIM_RULE_CODE, "%s returned code %d instead of %d", sim_call_name(m->call->kind),
                 (int)result->err, (int)m->want.err);
    if (result->taken != m->want.taken)
        sim_fail(SIM_RULE_ROOM, "%" PRIu32 " messages taken instead of %" PRIu32, result->taken,
                 m->want.taken);
    if (result->consumer != m->want.consumer)
        sim_fail(SIM_RULE_CODE, "join returned %s instead of %s",
                 sim_number_text('c', result->consumer).chars, sim_number_text('c', m->want.consumer).chars);
}

void model_end(model *m, const sim_result *result)
{
    judge_missing(m);
    if (m->stage == MODEL_GIVE)
        model_judge_stall(m);
    model_keys_end_call(m);
    model_judge_checkpoints(m);
    judge_result(m, result);
    if (m->call->kind == SIM_CALL_TICK)
        model_judge_wake(m, result->wake_ns);
    m->call = NULL;
}
