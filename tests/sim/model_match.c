/* tests/sim/model_match.c — compares an effect with the one that the rules ask for, and names the broken rule. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>

/* Which rule is broken when this effect is wrong, missing or not asked for. */
static sim_rule rule_of(sl_effect_kind kind)
{
    static const sim_rule rules[SL_EFFECT_COUNT_] = {
        [SL_EFFECT_EPOCH] = SIM_RULE_RECORDS,
        [SL_EFFECT_SETTINGS] = SIM_RULE_RECORDS,
        [SL_EFFECT_RULE] = SIM_RULE_RECORDS,
        [SL_EFFECT_JOIN] = SIM_RULE_RECORDS,
        [SL_EFFECT_GONE] = SIM_RULE_STOP_ONCE,
        [SL_EFFECT_LEASE] = SIM_RULE_ONE_LEASE,
        [SL_EFFECT_STARTED] = SIM_RULE_FENCING,
        [SL_EFFECT_EXTEND] = SIM_RULE_FENCING,
        [SL_EFFECT_MOVE] = SIM_RULE_FENCING,
        [SL_EFFECT_BACK] = SIM_RULE_CHARGE,
        [SL_EFFECT_SETTLE] = SIM_RULE_FENCING,
        [SL_EFFECT_PARK] = SIM_RULE_CHARGE,
        [SL_EFFECT_CHECKPOINT] = SIM_RULE_CHECKPOINT,
        [SL_EFFECT_PASSED] = SIM_RULE_RECORDS,
        [SL_EFFECT_MESSAGE] = SIM_RULE_RECORDS,
        [SL_EFFECT_DELIVER] = SIM_RULE_ONE_LEASE,
        [SL_EFFECT_STOP_REQUESTED] = SIM_RULE_STOP_ONCE,
        [SL_EFFECT_STOPPED] = SIM_RULE_STOP_ONCE,
        [SL_EFFECT_SETTLED] = SIM_RULE_ANSWER,
        [SL_EFFECT_LOST] = SIM_RULE_FENCING,
        [SL_EFFECT_DRAINED] = SIM_RULE_ANSWER,
    };
    return rules[kind];
}

void model_unexpected(const sl_effect *want, const sl_effect *effect)
{
    const bool released = effect->kind == SL_EFFECT_BACK && effect->back.cause == SL_BACK_RELEASED;
    if (want == NULL)
        sim_fail(released ? SIM_RULE_ORDER : rule_of(effect->kind), "nothing asks for %s",
                 sim_effect_text(effect).chars);
    sim_fail(want->kind == SL_EFFECT_LOST ? SIM_RULE_FENCING : rule_of(effect->kind),
             "%s, where the rules ask for %s", sim_effect_text(effect).chars, sim_effect_text(want).chars);
}

static bool same_place(sl_place a, sl_place b)
{
    return a.lane == b.lane && a.position == b.position;
}

static bool same_counters(sl_counters a, sl_counters b)
{
    return a.deliveries == b.deliveries && a.attempts == b.attempts && a.interrupts == b.interrupts &&
           a.kills == b.kills;
}

static bool same_backoff(const sl_retry_policy *a, const sl_retry_policy *b)
{
    return a->kind == b->kind && a->factor_permille == b->factor_permille &&
           a->jitter_permille == b->jitter_permille && a->attempts_max == b->attempts_max &&
           a->delay_first_ns == b->delay_first_ns && a->delay_step_ns == b->delay_step_ns &&
           a->delay_max_ns == b->delay_max_ns && a->delay_total_max_ns == b->delay_total_max_ns &&
           a->retry_after_max_ns == b->retry_after_max_ns;
}

bool model_same_settings(const sl_settings *a, const sl_settings *b)
{
    return a->strategy == b->strategy && a->key_order == b->key_order && a->lease_ns == b->lease_ns &&
           a->retries_max == b->retries_max && a->kills_max == b->kills_max &&
           a->interrupts_max == b->interrupts_max && same_backoff(&a->backoff, &b->backoff) &&
           a->buffer_max == b->buffer_max && a->consumers_max == b->consumers_max &&
           a->checkpoint_after_ns == b->checkpoint_after_ns &&
           a->checkpoint_count_min == b->checkpoint_count_min &&
           a->checkpoint_count_max == b->checkpoint_count_max;
}

static bool same_back(const model_next *want, const sl_effect *b)
{
    const sl_effect *a = &want->effect;
    return same_place(a->back.place, b->back.place) && a->back.cause == b->back.cause &&
           a->back.charged == b->back.charged && same_counters(a->back.counters, b->back.counters) &&
           b->back.not_before_ns >= want->not_before_min_ns &&
           b->back.not_before_ns <= want->not_before_max_ns;
}

/* All fields, except ranges, which are judged against the streams (model_change.c). LEASE, JOIN and CHECKPOINT are
 * never expected as a whole: where they are taken they are judged field by field. */
static bool same_effect(const model_next *want, const sl_effect *b)
{
    const sl_effect *a = &want->effect;
    switch (a->kind) {
    case SL_EFFECT_EPOCH:
        return a->epoch.epoch == b->epoch.epoch && a->epoch.messages_max == b->epoch.messages_max;
    case SL_EFFECT_SETTINGS: return model_same_settings(&a->settings, &b->settings);
    case SL_EFFECT_RULE: return a->rule.tag == b->rule.tag && a->rule.stop == b->rule.stop;
    case SL_EFFECT_GONE: return a->gone.consumer == b->gone.consumer;
    case SL_EFFECT_STARTED:
        return same_place(a->started.place, b->started.place) && a->started.token == b->started.token;
    case SL_EFFECT_EXTEND:
        return same_place(a->extend.place, b->extend.place) && a->extend.token == b->extend.token &&
               a->extend.until_ns == b->extend.until_ns;
    case SL_EFFECT_MOVE:
        return same_place(a->move.place, b->move.place) && a->move.token == b->move.token &&
               a->move.consumer == b->move.consumer;
    case SL_EFFECT_BACK: return same_back(want, b);
    case SL_EFFECT_SETTLE:
        return same_place(a->settle.place, b->settle.place) && model_same_id(a->settle.id, b->settle.id) &&
               a->settle.cause == b->settle.cause;
    case SL_EFFECT_PARK:
        return same_place(a->park.place, b->park.place) && model_same_id(a->park.id, b->park.id) &&
               a->park.cause == b->park.cause && a->park.last == b->park.last &&
               same_counters(a->park.counters, b->park.counters);
    case SL_EFFECT_DELIVER:
        return same_place(a->deliver.place, b->deliver.place) &&
               model_same_id(a->deliver.id, b->deliver.id) && a->deliver.consumer == b->deliver.consumer &&
               a->deliver.token == b->deliver.token && a->deliver.lease_ns == b->deliver.lease_ns &&
               same_counters(a->deliver.counters, b->deliver.counters);
    case SL_EFFECT_STOP_REQUESTED:
        return a->stop_requested.consumer == b->stop_requested.consumer &&
               a->stop_requested.asked_by == b->stop_requested.asked_by &&
               a->stop_requested.deadline_ns == b->stop_requested.deadline_ns &&
               a->stop_requested.hand_back == b->stop_requested.hand_back;
    case SL_EFFECT_STOPPED:
        return a->stopped.consumer == b->stopped.consumer && a->stopped.asked_by == b->stopped.asked_by &&
               a->stopped.already_stopped == b->stopped.already_stopped &&
               a->stopped.in_flight == b->stopped.in_flight;
    case SL_EFFECT_SETTLED:
        return a->settled.consumer == b->settled.consumer && model_same_id(a->settled.id, b->settled.id);
    case SL_EFFECT_LOST: return a->lost.consumer == b->lost.consumer && model_same_id(a->lost.id, b->lost.id);
    case SL_EFFECT_DRAINED:
        return a->drained.consumer == b->drained.consumer && a->drained.settled == b->drained.settled &&
               a->drained.released == b->drained.released && a->drained.lost == b->drained.lost &&
               a->drained.interrupted == b->drained.interrupted;
    case SL_EFFECT_JOIN:
        return a->join.consumer == b->join.consumer && model_same_id(a->join.session, b->join.session) &&
               a->join.sends_started == b->join.sends_started;
    case SL_EFFECT_LEASE:
    case SL_EFFECT_CHECKPOINT:
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_COUNT_: break;
    }
    assert(false);
    return false;
}

/* A hand-back that is charged breaks a rule of its own (S1.25). */
static sim_rule rule_of_pair(const sl_effect *want, const sl_effect *effect)
{
    const bool released = want->kind == SL_EFFECT_BACK && want->back.cause == SL_BACK_RELEASED;
    if (want->kind == SL_EFFECT_LOST || effect->kind == SL_EFFECT_LOST)
        return SIM_RULE_FENCING;
    if (want->kind == SL_EFFECT_DELIVER && effect->kind == SL_EFFECT_DELIVER &&
        same_place(want->deliver.place, effect->deliver.place) &&
        want->deliver.token == effect->deliver.token)
        return SIM_RULE_CHARGE; /* the counters are wrong */
    if (want->kind == SL_EFFECT_SETTLE && want->settle.cause == SL_SETTLE_VANISHED)
        return SIM_RULE_RECORDS;
    if (released && (effect->kind == SL_EFFECT_PARK || effect->kind == SL_EFFECT_BACK))
        return SIM_RULE_ORDER;
    return rule_of(want->kind);
}

void model_same(const model_next *want, const sl_effect *effect)
{
    if (want->effect.kind == effect->kind && same_effect(want, effect))
        return;
    sim_text wanted = sim_effect_text(&want->effect);
    sim_fail(rule_of_pair(&want->effect, effect), "%s, where the rules ask for %s (not before: %llu to %llu)",
             sim_effect_text(effect).chars, wanted.chars, (unsigned long long)want->not_before_min_ns,
             (unsigned long long)want->not_before_max_ns);
}

/* True for the effects by which a held message stops being held. */
bool model_is_return(const sl_effect *effect, sl_place *ret_place)
{
    if (effect->kind == SL_EFFECT_BACK)
        *ret_place = effect->back.place;
    else if (effect->kind == SL_EFFECT_PARK)
        *ret_place = effect->park.place;
    else if (effect->kind == SL_EFFECT_SETTLE)
        *ret_place = effect->settle.place;
    else
        return false;
    return true;
}
