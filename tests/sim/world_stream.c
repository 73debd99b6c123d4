/* tests/sim/world_stream.c — events are appended, parked, read, filtered and deleted. */
#include "world.h"

#include "trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static sl_uuid draw_event_id(sim_world *world)
{
    const bool repeat = world->event_serial > 0 && sim_chance(&world->rng, world->plan.repeated_percent);
    return sim_event_id(repeat ? 1 + sim_rng_next(&world->rng) % world->event_serial : ++world->event_serial);
}

static uint64_t gap(sim_world *world)
{
    return sim_chance(&world->rng, world->plan.gap_percent) ? 1 + sim_pick(&world->rng, 5) : 0;
}

static void append_event(sim_world *world)
{
    sim_event event = { .position = world->position_next + gap(world) };
    event.id = draw_event_id(world);
    event.key = world->keys[sim_pick(&world->rng, world->plan.key_count)];
    event.concerns = !sim_chance(&world->rng, world->plan.filtered_percent);
    sim_stream_append(&world->streams[SL_LANE_MAIN], &event);
    world->position_next = event.position + 1;
}

void sim_append_events(sim_world *world)
{
    uint32_t count = 1 + sim_pick(&world->rng, 10);
    for (; count > 0 && world->streams[SL_LANE_MAIN].event_count < world->plan.event_max; count--)
        append_event(world);
}

/* PARK and the event in the parked lane are one step: the event is there if the record is. */
void sim_park_event(sim_world *world, const sl_effect *park)
{
    sim_stream *parked = &world->streams[SL_LANE_PARKED];
    const sim_event *event = sim_stream_at(&world->streams[park->park.place.lane], park->park.place.position);
    const uint64_t after =
        parked->event_count == 0 ? 0 : parked->events[parked->event_count - 1].position + 1;
    assert(event != NULL);
    if (parked->event_count == world->parked_by_room) {
        world->parked_by_room = world->parked_by_room == 0 ? 64 : 2 * world->parked_by_room;
        world->parked_by = realloc(world->parked_by, world->parked_by_room * sizeof world->parked_by[0]);
        assert(world->parked_by != NULL);
    }
    world->parked_by[parked->event_count] = sim_log_next(&world->log) - 1;
    sim_stream_append(parked, &(sim_event){ .position = after + gap(world),
                                            .id = sim_event_id(++world->event_serial),
                                            .key = event->key,
                                            .concerns = true });
}

/* Somebody deletes a few events. Only between two lives: what a group has in memory stays deliverable. */
void sim_lose_events(sim_world *world)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        sim_stream *stream = &world->streams[lane];
        for (uint32_t i = 0; i < stream->event_count; i++)
            if (sim_chance(&world->rng, 5))
                stream->events[i].gone = true;
    }
}

/* --- the reader ------------------------------------------------------------------------------------------- */

typedef struct batch {
    sim_call offer;
    uint32_t filtered;
    uint64_t last; /* position of the last event that was looked at */
    bool any;
} batch;

static uint32_t lane_end(const sim_world *world, sl_lane lane)
{
    const uint32_t count = world->streams[lane].event_count;
    return lane == SL_LANE_MAIN || world->parked_shown > count ? count : world->parked_shown;
}

/* Looks at events from `index` on until `offers_max` of them concern the group. */
static batch gather(const sim_world *world, sl_lane lane, uint32_t index, uint32_t offers_max)
{
    batch b = { .offer = { .kind = SIM_CALL_OFFER, .now_ns = world->clock_ns } };
    const uint32_t end = lane_end(world, lane);
    for (; index < end && b.offer.offer_count < offers_max; index++) {
        const sim_event *event = &world->streams[lane].events[index];
        b.last = event->position;
        b.any = true;
        if (event->gone)
            continue;
        b.filtered += !event->concerns;
        if (event->concerns)
            b.offer.offers[b.offer.offer_count++] = (sl_offer){
                .place = { .lane = lane, .position = event->position }, .id = event->id, .key = event->key
            };
    }
    return b;
}

static bool offer_all(sim_world *world, batch *b)
{
    if (b->offer.offer_count == 0)
        return true;
    const sim_result result = sim_world_call(world, &b->offer);
    return result.err == SL_OK;
}

/* Reads one batch; eager: as a reader does that only follows the contract (nothing without room, nothing skipped,
 * nothing read twice). Returns false when there was nothing to read. */
bool sim_read(sim_world *world, sl_lane lane, bool eager)
{
    const uint64_t from = sl_group_read_from(world->group, lane);
    const uint32_t room = sl_group_room(world->group);
    uint32_t index = sim_stream_find(&world->streams[lane], from);
    uint32_t offers_max = eager ? room : 1 + sim_pick(&world->rng, 12);
    if (!eager && offers_max > room && sim_chance(&world->rng, 80))
        offers_max = room;
    if (offers_max > SIM_OFFERS_MAX)
        offers_max = SIM_OFFERS_MAX;
    if (!eager && index > 0 && sim_chance(&world->rng, 5))
        index--; /* read twice: passed over */
    batch b = gather(world, lane, index, offers_max);
    if (!b.any || !offer_all(world, &b))
        return false;
    if (b.last + 1 > sl_group_read_from(world->group, lane) || b.filtered > 0 ||
        (!eager && sim_chance(&world->rng, 10)))
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_ADVANCE,
                                           .now_ns = world->clock_ns,
                                           .place = { .lane = lane, .position = b.last },
                                           .considered = b.filtered });
    return true;
}
