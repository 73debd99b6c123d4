/* tests/sim/model.c — the state of the model and the questions that the rules ask of it. */
#include "model.h"

#include "fail.h"

#include <assert.h>
#include <string.h>

static void init_lanes(model *m, uint64_t start)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        m->lanes[lane].start = lane == SL_LANE_MAIN ? start : 0;
        m->lanes[lane].read_from = m->lanes[lane].start;
        m->lanes[lane].checkpoint = m->lanes[lane].start;
        m->lanes[lane].count_from = m->lanes[lane].start;
    }
}

void model_init(model *m, const sl_group_setup *setup, const sim_stream *streams)
{
    memset(m, 0, sizeof *m);
    m->limits = setup->limits;
    m->settings = setup->settings;
    m->streams = streams;
    assert(m->limits.messages_max <= MODEL_MESSAGES_MAX);
    assert(m->limits.consumers_max <= MODEL_CONSUMERS_MAX);
    init_lanes(m, setup->start);
}

model_message *model_find(model *m, sl_place place)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].place.position == place.position && m->messages[i].place.lane == place.lane)
            return &m->messages[i];
    return NULL;
}

model_consumer *model_consumer_of(model *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].id == id)
            return &m->consumers[i];
    return NULL;
}

bool model_needs_keys(sl_strategy strategy)
{
    switch (strategy) {
    case SL_STRATEGY_ROUND_ROBIN:
    case SL_STRATEGY_DISPATCH_TO_SINGLE: return false;
    case SL_STRATEGY_PINNED:
    case SL_STRATEGY_PINNED_BY_CORRELATION: return true;
    case SL_STRATEGY_COUNT_: break;
    }
    return false;
}

bool model_is_pinned(const model *m)
{
    return model_needs_keys(m->settings.strategy);
}

/* The one formula of the rules; a message that is only known from records has no content yet to send. */
bool model_available(const model *m, const model_message *message)
{
    return message->read && !message->live && message->not_before_ns <= m->now_ns;
}

static int order_class(const model_message *message)
{
    if (message->place.lane == SL_LANE_PARKED)
        return 1;
    return message->counters.deliveries > 0 ? 0 : 2;
}

bool model_comes_before(const model_message *a, const model_message *b)
{
    const int class_a = order_class(a), class_b = order_class(b);
    return class_a != class_b ? class_a < class_b : a->place.position < b->place.position;
}

bool model_has_room(const model_consumer *consumer)
{
    return consumer->state == SL_CONSUMER_ACTIVE && consumer->in_flight < consumer->window;
}

bool model_has_tag(const model_consumer *consumer, uint64_t tag)
{
    if (tag == SL_TAG_EVERYONE)
        return true;
    for (uint32_t i = 0; i < consumer->tag_count; i++)
        if (consumer->tags[i] == tag)
            return true;
    return false;
}

bool model_rule_names(const model *m, const model_consumer *consumer)
{
    for (uint32_t i = 0; i < m->rule_count; i++)
        if (model_has_tag(consumer, m->rules[i]))
            return true;
    return false;
}

uint32_t model_live_count(const model *m)
{
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        live_count += m->messages[i].live;
    return live_count;
}

bool model_same_id(sl_uuid a, sl_uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

bool model_is_holder(const model *m, uint64_t consumer)
{
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].current && m->messages[i].holder == consumer)
            return true;
    return false;
}

bool model_may_be_active(const model *m)
{
    uint32_t active = 0;
    for (uint32_t i = 0; i < m->consumer_count; i++)
        active += m->consumers[i].state == SL_CONSUMER_ACTIVE;
    return m->settings.consumers_max == 0 || active < m->settings.consumers_max;
}

/* All calls of a session have sent Started as soon as one has. */
void model_session_sends_started(model *m, sl_uuid session)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (model_same_id(m->consumers[i].session, session))
            m->consumers[i].sends_started = true;
}

/* Something that the records told of a lane was not read again yet. */
bool model_is_rereading(const model *m, sl_lane lane)
{
    if (m->lanes[lane].ghost_count > 0)
        return true;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].place.lane == lane && !m->messages[i].read && !m->messages[i].vanished)
            return true;
    return false;
}

/* What is known, and what keeps its place until the reader has passed it. */
uint32_t model_places_taken(const model *m)
{
    return m->message_count + m->lanes[SL_LANE_MAIN].ghost_count + m->lanes[SL_LANE_PARKED].ghost_count;
}

uint32_t model_room(const model *m)
{
    const uint32_t waiting = m->message_count - model_live_count(m), taken = model_places_taken(m);
    const uint32_t buffer = m->settings.buffer_max > waiting ? m->settings.buffer_max - waiting : 0;
    const uint32_t places = m->limits.messages_max > taken ? m->limits.messages_max - taken : 0;
    if (model_is_rereading(m, SL_LANE_MAIN) || model_is_rereading(m, SL_LANE_PARKED))
        return places > 1 ? places : 1;
    return buffer < places ? buffer : places;
}

void model_read_to(model *m, sl_lane lane, uint64_t read_from)
{
    model_lane *l = &m->lanes[lane];
    uint32_t kept = 0;
    l->read_from = read_from;
    for (uint32_t i = 0; i < l->ghost_count; i++)
        if (l->ghosts[i] >= read_from)
            l->ghosts[kept++] = l->ghosts[i];
    l->ghost_count = kept;
}

uint64_t model_below(const model *m, sl_lane lane)
{
    uint64_t below = m->lanes[lane].read_from;
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].place.lane == lane && m->messages[i].place.position < below)
            below = m->messages[i].place.position;
    return below;
}
