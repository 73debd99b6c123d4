/* tests/sim/model_ring.c — who is next with RoundRobin and DispatchToSingle. The ring is in the rules to the last
 * detail, so the model has it too. */
#include "model.h"

#include "fail.h"

#include <assert.h>

static uint32_t ring_index(const model *m, uint64_t id)
{
    uint32_t index = 0;
    while (index < m->ring_count && m->ring[index] != id)
        index++;
    return index;
}

static void ring_leave(model *m, uint64_t id)
{
    const uint32_t index = ring_index(m, id);
    if (index == m->ring_count)
        return;
    m->ring_count--;
    for (uint32_t i = index; i < m->ring_count; i++)
        m->ring[i] = m->ring[i + 1];
}

static void ring_enter(model *m, const model_consumer *consumer)
{
    if (!model_has_room(consumer) || ring_index(m, consumer->id) < m->ring_count)
        return;
    assert(m->ring_count < MODEL_CONSUMERS_MAX);
    m->ring[m->ring_count++] = consumer->id;
}

void model_stand_back(model *m, model_consumer *consumer)
{
    ring_leave(m, consumer->id);
    ring_enter(m, consumer);
}

/* A consumer becomes active. */
void model_enter(model *m, model_consumer *consumer)
{
    model_stand_back(m, consumer);
    model_keys_enter(m, consumer);
}

/* It gets nothing any more, and owns nothing. */
void model_drop(model *m, model_consumer *consumer)
{
    ring_leave(m, consumer->id);
    model_keys_drop(m, consumer);
}

void model_slot_freed(model *m, model_consumer *consumer)
{
    ring_enter(m, consumer);
}

/* It got a message: the front goes to the back, except where one is filled before the next. */
void model_took(model *m, model_consumer *consumer)
{
    const bool stays = m->settings.strategy == SL_STRATEGY_DISPATCH_TO_SINGLE && model_has_room(consumer);
    if (!stays)
        model_stand_back(m, consumer);
}

/* Another strategy: everyone stands anew in the order of joining, and nobody owns a key. */
void model_rebuild(model *m)
{
    m->ring_count = 0;
    model_keys_clear(m);
    for (uint32_t i = 0; i < m->consumer_count; i++)
        ring_enter(m, &m->consumers[i]);
}

static bool is_cordoned(const model *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].id == id)
            return m->consumers[i].cordoned;
    return false;
}

/* Who takes the next message in a ring; 0: nobody has room. */
uint64_t model_front(const model *m)
{
    for (uint32_t i = 0; i < m->ring_count; i++)
        if (!is_cordoned(m, m->ring[i]))
            return m->ring[i];
    return m->ring_count == 0 ? 0 : m->ring[0];
}
