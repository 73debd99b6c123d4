/* tests/sim/model_change.c — changes of the model's state, each with what the rules say must follow at once. */
#include "model.h"

#include "fail.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>

void model_push(model *m, const sl_effect *effect)
{
    assert(m->next_count < MODEL_NEXT_MAX);
    m->next[m->next_count++] = (model_next){ .effect = *effect };
}

static void count_end(model_consumer *holder, model_end_of_lease how, bool started)
{
    if (holder->state != SL_CONSUMER_STOPPING)
        return;
    holder->settled += how == LEASE_SETTLED;
    holder->released += how == LEASE_RELEASED;
    holder->interrupted += how == LEASE_RELEASED && started;
    holder->lost += how == LEASE_LOST;
}

/* The lease is not live any more; whether it stays current is for the caller to say. No-op for one that ended. */
void model_lease_ends(model *m, model_message *message, model_end_of_lease how)
{
    model_consumer *holder = model_consumer_of(m, message->holder);
    if (!message->live)
        return;
    assert(holder != NULL && holder->in_flight > 0);
    message->live = false;
    holder->in_flight--;
    count_end(holder, how, message->started);
    model_slot_freed(m, holder);
}

static bool is_planned(const model *m, int kind, uint64_t consumer)
{
    for (uint32_t i = 0; i < m->plan_count; i++)
        if ((int)m->plan[i].kind == kind && m->plan[i].consumer == consumer && !m->plan[i].done)
            return true;
    return false;
}

/* One with a window waits for its live leases; one from an earlier life as long as it could still settle. */
static bool is_done_waiting(const model *m, const model_consumer *consumer)
{
    return consumer->windowless ? !model_is_holder(m, consumer->id) : consumer->in_flight == 0;
}

/* Something ended for this consumer. If it was the last thing: DRAINED, or GONE for one that is away, unless the
 * call has planned a later place for it: DRAINED comes after STOPPED. */
void model_after_lease(model *m, uint64_t holder)
{
    const model_consumer *consumer = model_consumer_of(m, holder);
    if (consumer == NULL)
        return;
    if (consumer->state == SL_CONSUMER_STOPPING && consumer->in_flight == 0 &&
        !is_planned(m, ITEM_STOPPED, holder))
        model_push(m, &(sl_effect){ .kind = SL_EFFECT_DRAINED,
                                    .drained = { .consumer = holder,
                                                 .settled = consumer->settled,
                                                 .released = consumer->released,
                                                 .lost = consumer->lost,
                                                 .interrupted = consumer->interrupted } });
    if (consumer->state == SL_CONSUMER_AWAY && is_done_waiting(m, consumer) &&
        !is_planned(m, ITEM_GONE, holder))
        model_push(m, &(sl_effect){ .kind = SL_EFFECT_GONE, .gone = { .consumer = holder } });
}

void model_stop(model *m, model_consumer *consumer, sl_asker asked_by)
{
    model_drop(m, consumer);
    consumer->state = SL_CONSUMER_STOPPING;
    consumer->asked_by = asked_by;
    consumer->stopped_itself = consumer->stopped_alone = false;
    consumer->since_ns = m->now_ns;
    consumer->settled = consumer->released = consumer->lost = consumer->interrupted = 0;
}

/* Leases of it that ended are nobody's now. */
void model_consumer_gone(model *m, uint64_t id)
{
    model_consumer *consumer = model_consumer_of(m, id);
    if (consumer == NULL)
        sim_fail(SIM_RULE_STOP_ONCE, "GONE of %s, which does not exist", sim_number_text('c', id).chars);
    if (consumer->in_flight > 0)
        sim_fail(SIM_RULE_STOP_ONCE, "GONE of %s, which holds %" PRIu32, sim_number_text('c', id).chars,
                 consumer->in_flight);
    model_drop(m, consumer);
    m->slots_used &= ~(UINT64_C(1) << consumer->slot);
    for (uint32_t i = 0; i < m->message_count; i++)
        if (m->messages[i].holder == id)
            m->messages[i].current = false;
    m->consumer_count--;
    for (; consumer < &m->consumers[m->consumer_count]; consumer++)
        *consumer = consumer[1];
}

/* --- settling --------------------------------------------------------------------------------------------- */

static void judge_event(const model *m, sl_lane lane, const sim_event *event, uint64_t from, uint64_t to)
{
    const model_lane *l = &m->lanes[lane];
    const bool read = event->position < l->read_from;
    if (sim_cover_has(&l->settled, event->position) || (read && (!event->concerns || event->gone)))
        return;
    sim_fail(SIM_RULE_RECORDS,
             "lane %d: the record says that [%" PRIu64 ", %" PRIu64 ") is settled, but %" PRIu64 " is not",
             (int)lane, from, to, event->position);
}

/* A record says that everything in [from, to) is settled: true only if the stream agrees, event by event. */
void model_judge_cover(model *m, sl_lane lane, uint64_t from, uint64_t to)
{
    model_lane *l = &m->lanes[lane];
    const sim_stream *stream = &m->streams[lane];
    const uint64_t top = sim_cover_top(&l->settled);
    for (uint32_t i = sim_stream_find(stream, from);
         i < stream->event_count && stream->events[i].position < to; i++)
        judge_event(m, lane, &stream->events[i], from, to);
    for (uint32_t i = 0; i < m->message_count; i++) {
        const sl_place place = m->messages[i].place;
        if (place.lane == lane && place.position >= from && place.position < to)
            sim_fail(SIM_RULE_RECORDS, "%s is in a range that is said to be settled",
                     sim_place_text(place).chars);
    }
    if (to > l->read_from && to > top)
        sim_fail(SIM_RULE_RECORDS, "lane %d: %" PRIu64 " is said to be settled and was never read", (int)lane,
                 to - 1);
    sim_cover_add(&l->settled, from, to);
}

/* Takes the message out; `effect` is its SETTLE or PARK, whose place, id and cause were compared before. */
void model_settle(model *m, model_message *message, const sl_effect *effect)
{
    const bool is_park = effect->kind == SL_EFFECT_PARK;
    const sl_place place = message->place;
    const uint64_t from = is_park ? effect->park.from : effect->settle.from;
    const uint64_t to = is_park ? effect->park.to : effect->settle.to;
    if (!message->read && !message->vanished)
        m->lanes[place.lane].ghosts[m->lanes[place.lane].ghost_count++] = place.position;
    *message = m->messages[--m->message_count];
    sim_cover_add(&m->lanes[place.lane].settled, place.position, place.position + 1);
    if (from > place.position || to <= place.position)
        sim_fail(SIM_RULE_RECORDS, "%s is not in its own range", sim_place_text(place).chars);
    model_judge_cover(m, place.lane, from, to);
    m->since_open.settled += !is_park;
    m->since_open.parked += is_park;
}
