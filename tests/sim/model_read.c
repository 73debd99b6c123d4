/* tests/sim/model_read.c — messages come in, and known ones turn out to be gone from their stream. */
#include "model.h"

#include <assert.h>

static bool exists(sl_place place)
{
    return (int)place.lane >= 0 && place.lane < SL_LANE_COUNT_ && place.position < UINT64_MAX;
}

/* Everything that is known from records, was not read again and lies in [read_from, position) has vanished. */
static void vanish(model *m, sl_lane lane, uint64_t position)
{
    for (uint32_t i = 0; i < m->message_count; i++) {
        model_message *message = &m->messages[i];
        if (message->place.lane != lane || message->read || message->vanished ||
            message->place.position >= position)
            continue;
        message->vanished = true;
        if (!message->live)
            model_plan_add(m, (model_item){ .kind = ITEM_VANISH, .place = message->place });
    }
    model_plan_next_group(m);
}

static uint32_t vanishing(const model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        count += m->messages[i].vanished && !m->messages[i].live;
    return count;
}

/* As model_room(), but what vanishes in this call takes no room any more. While records are read again, their own
 * lane has room up to the limits, and the other one waits. */
static bool is_full(const model *m, sl_lane lane)
{
    const sl_lane other = lane == SL_LANE_MAIN ? SL_LANE_PARKED : SL_LANE_MAIN;
    const uint32_t known = m->message_count - vanishing(m);
    if (model_places_taken(m) - vanishing(m) >= m->limits.messages_max)
        return true;
    if (model_is_rereading(m, lane))
        return false;
    return model_is_rereading(m, other) || known - model_live_count(m) >= m->settings.buffer_max;
}

static void add_message(model *m, const sl_offer *offer)
{
    assert(m->message_count < MODEL_MESSAGES_MAX);
    m->messages[m->message_count++] =
        (model_message){ .place = offer->place, .id = offer->id, .key = offer->key, .read = true };
}

static sl_err take_offer(model *m, const sl_offer *offer)
{
    if (!exists(offer->place))
        return SL_ERR_INVALID;
    const model_lane *lane = &m->lanes[offer->place.lane];
    const uint64_t position = offer->place.position;
    if (position < lane->read_from)
        return SL_OK;
    model_message *known = model_find(m, offer->place);
    const bool is_new = known == NULL && !sim_cover_has(&lane->settled, position);
    vanish(m, offer->place.lane, position); /* also if it is refused: the reader has seen what is below it */
    model_read_to(m, offer->place.lane, position);
    if (is_new && is_full(m, offer->place.lane))
        return SL_ERR_FULL;
    if (known != NULL)
        known->read = true;
    if (is_new)
        add_message(m, offer);
    model_read_to(m, offer->place.lane, position + 1);
    return SL_OK;
}

void model_plan_offer(model *m)
{
    for (uint32_t i = 0; i < m->call->offer_count && m->want.err == SL_OK; i++) {
        m->want.err = take_offer(m, &m->call->offers[i]);
        m->want.taken += m->want.err == SL_OK;
    }
}

void model_plan_advance(model *m)
{
    const sl_place place = m->call->place;
    const model_lane *lane = &m->lanes[place.lane];
    model_looked(m, place.lane, place.position, m->call->considered, place.position + 1 < lane->read_from);
    if (place.position < lane->read_from)
        return;
    vanish(m, place.lane, place.position + 1);
    model_read_to(m, place.lane, place.position + 1);
}
