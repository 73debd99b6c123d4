/* tests/sim/world_end.c — the faults stop, one consumer stays: within a bound nothing may be left (invariant 10).
 *
 * From here on the clock moves only to the time that tick asks for, so a wake that comes too late stalls the run. */
#include "world.h"

#include "fail.h"
#include "trace.h"

#include <inttypes.h>

static void end_calls(sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.client_count; i++) {
        sim_client *client = &world->clients[i];
        if (client->consumer != 0)
            sim_client_end(world, client, sim_chance(&world->rng, 50) ? SIM_CALL_LEAVE : SIM_CALL_AWAY);
    }
    world->letter_count = 0;
}

static void end_rules(sim_world *world)
{
    while (world->model->rule_count > 0)
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_RESUME_TAG,
                                           .now_ns = world->clock_ns,
                                           .tag = world->model->rules[0] });
}

/* Checkpoints by time, so that the last one reaches the top. */
static void end_settings(sim_world *world)
{
    sim_call call = { .kind = SIM_CALL_UPDATE,
                      .now_ns = world->clock_ns,
                      .settings = world->model->settings,
                      .settings_valid = true };
    call.settings.checkpoint_after_ns = UINT64_C(1000000000);
    sim_world_call(world, &call);
}

static uint64_t wake(sim_world *world)
{
    sim_call call = { .kind = SIM_CALL_TICK, .now_ns = world->clock_ns };
    return sim_world_call(world, &call).wake_ns;
}

/* Sleeps until tick has asked to be called. False: it has nothing to wait for. */
static bool sleep_until_due(sim_world *world)
{
    const uint64_t wake_ns = wake(world);
    if (wake_ns == SL_NEVER)
        return false;
    world->clock_ns = wake_ns;
    return true;
}

/* Limits may be taken by consumers that are away; they go when their time is over. */
static sim_client *join_last(sim_world *world, uint32_t bound)
{
    sim_client *client = &world->clients[0];
    client->session = sim_session_id(1000);
    client->extensions = client->sends_started = false;
    client->tag_count = client->held_count = 0;
    for (uint32_t i = 0; i < bound && client->consumer == 0; i++) {
        sim_client_connect(world, client);
        if (client->consumer == 0 && !sleep_until_due(world))
            break;
    }
    if (client->consumer == 0)
        sim_fail(SIM_RULE_LIVENESS, "the last consumer cannot join");
    return client;
}

static bool read_all(sim_world *world)
{
    const bool main_read = sim_read(world, SL_LANE_MAIN, true);
    const bool parked_read = sim_read(world, SL_LANE_PARKED, true);
    return main_read || parked_read;
}

static void judge_lane(const sim_world *world, sl_lane lane)
{
    const model_lane *l = &world->model->lanes[lane];
    const sim_stream *stream = &world->streams[lane];
    const uint32_t end = lane == SL_LANE_MAIN ? stream->event_count : world->parked_shown;
    for (uint32_t i = 0; i < end; i++) {
        const sim_event *event = &stream->events[i];
        if (event->position >= l->read_from)
            sim_fail(SIM_RULE_LIVENESS, "lane %d: %" PRIu64 " was never read", (int)lane, event->position);
        if (event->position >= l->count_from && event->concerns && !event->gone)
            sim_fail(SIM_RULE_LIVENESS, "lane %d: the last checkpoint is %" PRIu64 ", below %" PRIu64,
                     (int)lane, l->checkpoint, event->position);
    }
}

static void judge_end(const sim_world *world)
{
    if (world->model->message_count > 0)
        sim_fail(SIM_RULE_LIVENESS, "%" PRIu32 " messages are left, %s among them",
                 world->model->message_count, sim_place_text(world->model->messages[0].place).chars);
    judge_lane(world, SL_LANE_MAIN);
    judge_lane(world, SL_LANE_PARKED);
}

void sim_end(sim_world *world)
{
    const uint32_t bound = 200 + 8 * (world->streams[0].event_count + world->streams[1].event_count);
    sim_world_note(world, "*** the faults end, one consumer stays");
    if (world->clock_ns < world->model->now_ns)
        world->clock_ns = world->model->now_ns;
    end_calls(world);
    end_rules(world);
    end_settings(world);
    sim_client *last = join_last(world, bound);
    uint32_t idle_rounds = 0;
    for (uint32_t i = 0; i < bound && idle_rounds < 2; i++) {
        const bool busy = read_all(world) || last->held_count > 0;
        sim_client_ack_all(world, last);
        idle_rounds = busy || sleep_until_due(world) ? 0 : idle_rounds + 1;
    }
    if (idle_rounds == 2) {
        judge_end(world);
        return;
    }
    sim_fail(SIM_RULE_LIVENESS, "%" PRIu32 " rounds, and no end", bound);
}
