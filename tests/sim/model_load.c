/* tests/sim/model_load.c — a life ends, and the next one begins with what the records say: "Restart" of the rules. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>
#include <string.h>

/* Of a consumer the records keep who it is; that it had a window or tags is forgotten. */
static model_consumer recorded(const model_consumer *consumer)
{
    return (model_consumer){ .id = consumer->id,
                             .session = consumer->session,
                             .sends_started = consumer->sends_started,
                             .state = SL_CONSUMER_AWAY,
                             .window_end_ns = SL_NEVER,
                             .windowless = true,
                             .slot = consumer->slot };
}

/* Keeps what records hold; a message that was never delivered is in none. */
void model_forget(model *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].counters.deliveries > 0) {
            m->messages[kept] = m->messages[i];
            m->messages[kept].read = m->messages[kept].vanished = false;
            kept++;
        }
    m->message_count = kept;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        m->consumers[i] = recorded(&m->consumers[i]);
    m->ring_count = 0;
}

static void replay_join(model *m, const sl_effect *e)
{
    if (model_consumer_of(m, e->join.consumer) != NULL) { /* the promise to say what it starts */
        model_session_sends_started(m, e->join.session);
        return;
    }
    assert(m->consumer_count < MODEL_CONSUMERS_MAX);
    const model_consumer consumer = { .id = e->join.consumer,
                                      .session = e->join.session,
                                      .sends_started = e->join.sends_started,
                                      .slot = m->consumer_count };
    m->consumers[m->consumer_count++] = recorded(&consumer);
    if (consumer.sends_started)
        model_session_sends_started(m, consumer.session);
}

static void replay_lease(model *m, const sl_effect *e)
{
    model_message *message = model_find(m, e->lease.place);
    if (message == NULL) {
        assert(m->message_count < MODEL_MESSAGES_MAX);
        message = &m->messages[m->message_count++];
        *message = (model_message){ .place = e->lease.place, .id = e->lease.id, .key = e->lease.key };
    }
    message->counters.deliveries = e->lease.deliveries;
    message->token = e->lease.token;
    message->holder = e->lease.consumer;
    message->until_ns = e->lease.until_ns;
    message->current = message->live = true;
    message->started = message->charged = false;
}

static void replay_started(model *m, const sl_effect *e)
{
    model_message *message = model_find(m, e->started.place);
    message->started = true;
    model_session_sends_started(m, model_consumer_of(m, message->holder)->session);
}

static void replay_back(model *m, const sl_effect *e)
{
    model_message *message = model_find(m, e->back.place);
    message->counters = e->back.counters;
    message->not_before_ns = e->back.not_before_ns;
    message->charged = message->charged || e->back.charged;
    message->live = false;
    message->current = e->back.cause == SL_BACK_EXPIRED;
}

static void replay_settle(model *m, sl_place place, uint64_t from, uint64_t to)
{
    model_message *message = model_find(m, place);
    if (message != NULL)
        *message = m->messages[--m->message_count];
    sim_cover_add(&m->lanes[place.lane].settled, from, to);
}

static void replay_rule(model *m, const sl_effect *e)
{
    uint32_t index = 0;
    while (index < m->rule_count && m->rules[index] != e->rule.tag)
        index++;
    if (e->rule.stop && index == m->rule_count)
        m->rules[m->rule_count++] = e->rule.tag;
    else if (!e->rule.stop && index < m->rule_count)
        m->rules[index] = m->rules[--m->rule_count];
}

static void replay_checkpoint(model *m, const sl_effect *e)
{
    model_lane *lane = &m->lanes[e->checkpoint.lane];
    sim_cover_add(&lane->settled, lane->start, e->checkpoint.below);
    lane->checkpoint = e->checkpoint.below;
}

/* The records were judged when they were emitted; here they are believed. */
void model_replay(model *m, const sl_effect *e)
{
    switch (e->kind) {
    case SL_EFFECT_EPOCH: m->epoch = e->epoch.epoch; break;
    case SL_EFFECT_SETTINGS: m->settings = e->settings; break;
    case SL_EFFECT_RULE: replay_rule(m, e); break;
    case SL_EFFECT_JOIN: replay_join(m, e); break;
    case SL_EFFECT_GONE: model_consumer_gone(m, e->gone.consumer); break;
    case SL_EFFECT_LEASE: replay_lease(m, e); break;
    case SL_EFFECT_STARTED: replay_started(m, e); break;
    case SL_EFFECT_EXTEND: model_find(m, e->extend.place)->until_ns = e->extend.until_ns; break;
    case SL_EFFECT_MOVE: model_find(m, e->move.place)->holder = e->move.consumer; break;
    case SL_EFFECT_BACK: replay_back(m, e); break;
    case SL_EFFECT_SETTLE: replay_settle(m, e->settle.place, e->settle.from, e->settle.to); break;
    case SL_EFFECT_PARK: replay_settle(m, e->park.place, e->park.from, e->park.to); break;
    case SL_EFFECT_CHECKPOINT: replay_checkpoint(m, e); break;
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: sim_fail(SIM_RULE_RECORDS, "%s is no record of a life", sim_effect_text(e).chars);
    }
}

/* --- open ------------------------------------------------------------------------------------------------- */

static void open_lanes(model *m)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        model_lane *l = &m->lanes[lane];
        l->read_from = l->count_from = sim_cover_next_free(&l->settled, l->start);
        l->checkpoint = model_below(m, (sl_lane)lane);
        l->checkpoint_ns = m->now_ns;
        l->folded_min = l->folded_max = l->look_count = l->ghost_count = 0;
    }
}

/* A clock that was wrong must not hold a message for ever. */
static void open_leases(model *m)
{
    for (uint32_t i = 0; i < m->message_count; i++) {
        model_message *message = &m->messages[i];
        const uint64_t latest_ns = m->now_ns + SL_LEASE_NS_MAX;
        message->passed_on = true;
        if (message->not_before_ns > latest_ns)
            message->not_before_ns = latest_ns;
        if (!message->live)
            continue;
        if (message->until_ns > latest_ns)
            message->until_ns = latest_ns;
        model_consumer_of(m, message->holder)->in_flight++;
    }
}

static void open_consumers(model *m)
{
    m->slots_used = 0;
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        m->consumers[i].in_flight = 0;
        m->consumers[i].since_ns = m->now_ns;
        m->consumers[i].slot = i;
        m->slots_used |= UINT64_C(1) << i;
    }
}

void model_load_open(model *m, uint64_t now_ns)
{
    m->now_ns = now_ns;
    m->since_open = (struct model_totals){ 0 };
    open_consumers(m);
    open_leases(m);
    open_lanes(m);
    model_keys_clear(m);
    model_push(m, &(sl_effect){ .kind = SL_EFFECT_EPOCH,
                                .epoch = { .epoch = m->epoch + 1, .messages_max = m->limits.messages_max } });
}
