/* tests/sim/world_action.c — what may happen at a step. A new kind of fault is a row in draw.h and a case here. */
#include "world.h"

#include "trace.h"

#include <assert.h>
#include <inttypes.h>

#define MS   UINT64_C(1000000)
#define HOUR (UINT64_C(3600) * 1000 * MS)

/* --- time ------------------------------------------------------------------------------------------------- */

static void pass_time(sim_world *world)
{
    const uint64_t lease_ns = world->model->settings.lease_ns;
    const uint64_t usual_ns = lease_ns < 10000 * MS ? lease_ns : 10000 * MS;
    if (world->plan.even_time)
        world->clock_ns += usual_ns / 8 * sim_pick(&world->rng, 3);
    else
        world->clock_ns += sim_between(&world->rng, 0, usual_ns / 4);
    if (sim_chance(&world->rng, 70))
        sim_world_tick(world);
}

static void stall(sim_world *world)
{
    const uint64_t lease_ns = world->model->settings.lease_ns;
    world->clock_ns += lease_ns + sim_between(&world->rng, 0, 2 * lease_ns);
    if (sim_chance(&world->rng, 50))
        sim_world_tick(world);
}

static void jump(sim_world *world)
{
    world->clock_ns += sim_between(&world->rng, 1, 60) * HOUR;
}

/* For one call, or for a while: the clock was set. */
static void backward(sim_world *world)
{
    const uint64_t back_ns = sim_between(&world->rng, 0, 2000) * MS;
    const uint64_t clock_ns = world->clock_ns;
    world->clock_ns = clock_ns > back_ns ? clock_ns - back_ns : 0;
    sim_world_tick(world);
    if (sim_chance(&world->rng, 50))
        world->clock_ns = clock_ns;
}

/* --- operators -------------------------------------------------------------------------------------------- */

static uint64_t draw_consumer(sim_world *world)
{
    const sim_client *client = sim_client_pick(world, true);
    if (client != NULL && !sim_chance(&world->rng, 4))
        return client->consumer;
    const model *m = world->model; /* one that is away, perhaps, or nobody */
    return m->consumer_count > 0 ? m->consumers[sim_pick(&world->rng, m->consumer_count)].id : 12345;
}

static sl_stop draw_stop(sim_world *world, sl_asker asked_by)
{
    sl_stop stop = { .asked_by = asked_by, .hand_back_unstarted = sim_chance(&world->rng, 40) };
    stop.deadline_ns = sim_chance(&world->rng, 50) ? 0 : world->clock_ns + 1000 * MS;
    return stop;
}

static void stop(sim_world *world)
{
    sim_call call = { .kind = SIM_CALL_STOP, .now_ns = world->clock_ns, .consumer = draw_consumer(world) };
    call.stop = draw_stop(world, (sl_asker)sim_pick(&world->rng, SL_ASKER_COUNT_));
    sim_world_call(world, &call);
    if (sim_chance(&world->rng, 25)) {
        call.stop = draw_stop(world, (sl_asker)sim_pick(&world->rng, SL_ASKER_COUNT_));
        sim_world_call(world, &call);
    }
}

static uint64_t draw_tag(sim_world *world)
{
    return sim_chance(&world->rng, 10) ? SL_TAG_EVERYONE : 1 + sim_pick(&world->rng, world->plan.tag_count);
}

static void stop_tag(sim_world *world)
{
    const uint32_t count = world->plan.tag_count > 10 ? 20 : 1;
    for (uint32_t i = 0; i < count; i++) {
        sim_call call = { .kind = SIM_CALL_STOP_TAG, .now_ns = world->clock_ns, .tag = draw_tag(world) };
        call.stop = draw_stop(world, SL_ASKER_OPERATOR);
        sim_world_call(world, &call);
    }
}

static void resume_tag(sim_world *world)
{
    const model *m = world->model;
    const bool known = m->rule_count > 0 && sim_chance(&world->rng, 90);
    if (!known && sim_chance(&world->rng, 80))
        return;
    sim_world_call(world, &(sim_call){ .kind = SIM_CALL_RESUME_TAG,
                                       .now_ns = world->clock_ns,
                                       .tag = known ? m->rules[sim_pick(&world->rng, m->rule_count)]
                                                    : draw_tag(world) });
}

static void of_consumer(sim_world *world, sim_call_kind kind)
{
    sim_call call = { .kind = kind, .now_ns = world->clock_ns, .consumer = draw_consumer(world) };
    call.cordoned = sim_chance(&world->rng, 60);
    sim_world_call(world, &call);
}

/* Some settings change, others stay; now and then the new ones are not valid. */
static void update(sim_world *world)
{
    const sl_settings drawn = sim_draw_settings(&world->rng, world->plan.limits.keyed);
    sim_call call = { .kind = SIM_CALL_UPDATE,
                      .now_ns = world->clock_ns,
                      .settings = world->model->settings };
    if (sim_chance(&world->rng, 60)) {
        call.settings.strategy = drawn.strategy;
        call.settings.key_order = drawn.key_order;
    }
    if (sim_chance(&world->rng, 50)) {
        call.settings.retries_max = drawn.retries_max;
        call.settings.kills_max = drawn.kills_max;
        call.settings.interrupts_max = drawn.interrupts_max;
        call.settings.backoff = drawn.backoff;
    }
    if (sim_chance(&world->rng, 50)) {
        call.settings.lease_ns = sim_chance(&world->rng, 10) ? 0 : drawn.lease_ns;
        call.settings.buffer_max = drawn.buffer_max;
        call.settings.consumers_max = drawn.consumers_max;
        call.settings.checkpoint_after_ns = drawn.checkpoint_after_ns;
    }
    if (sim_chance(&world->rng, 5))
        call.settings.strategy = SL_STRATEGY_PINNED;
    const char *field;
    call.settings_valid = sl_settings_validate(&call.settings, &field) == SL_OK;
    sim_world_call(world, &call);
}

/* --- clients ---------------------------------------------------------------------------------------------- */

static void connect(sim_world *world)
{
    sim_client *client = sim_client_pick(world, false);
    if (client != NULL)
        sim_client_connect(world, client);
}

static void end_call(sim_world *world, sim_call_kind how)
{
    sim_client *client = sim_client_pick(world, true);
    if (client != NULL)
        sim_client_end(world, client, how);
}

static void work(sim_world *world)
{
    sim_client *client = sim_client_pick(world, true);
    if (client == NULL)
        return;
    if (client->drained && sim_chance(&world->rng, 60))
        sim_client_end(world, client, sim_chance(&world->rng, 70) ? SIM_CALL_LEAVE : SIM_CALL_AWAY);
    else if (client->held_count > 0 || sim_chance(&world->rng, 5))
        sim_client_work(world, client);
}

/* --- the rest --------------------------------------------------------------------------------------------- */

static void replay_parked(sim_world *world)
{
    sim_sync(world);
    world->parked_shown = world->streams[SL_LANE_PARKED].event_count;
    sim_world_note(world, "*** replay of parked messages: %" PRIu32 " so far", world->parked_shown);
}

/* Inputs that a caller must not make, and that must do no harm. */
static void nonsense(sim_world *world)
{
    const uint64_t now_ns = world->clock_ns;
    const bool no_lane = sim_chance(&world->rng, 50);
    const sl_place nowhere = { .lane = no_lane ? SL_LANE_COUNT_ : SL_LANE_MAIN,
                               .position = no_lane ? 1 : UINT64_MAX };
    const bool no_window = sim_chance(&world->rng, 50);
    const uint32_t tag_count = sim_chance(&world->rng, 50) ? SL_TAGS_MAX + 1 : 1; /* that one is zero */
    switch (sim_pick(&world->rng, 5)) {
    case 0:
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_OFFER,
                                           .now_ns = now_ns,
                                           .offers = { { .place = nowhere } },
                                           .offer_count = 1 });
        break;
    case 1:
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_ADVANCE, .now_ns = now_ns, .place = nowhere });
        break;
    case 2:
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_JOIN,
                                           .now_ns = now_ns,
                                           .join = { .session = sim_session_id(99),
                                                     .window = no_window ? 0 : 1,
                                                     .tag_count = no_window ? 0 : tag_count } });
        break;
    case 3:
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_NACK,
                                           .now_ns = now_ns,
                                           .consumer = draw_consumer(world),
                                           .nack = { .action = SL_NACK_COUNT_ } });
        break;
    default:
        sim_world_call(world, &(sim_call){ .kind = SIM_CALL_ACK,
                                           .now_ns = now_ns,
                                           .consumer = sim_pick(&world->rng, 3),
                                           .claims = { { .id = sim_event_id(1) } },
                                           .claim_count = 1 });
    }
}

static void of_store(sim_world *world, sim_action action)
{
    if (action == SIM_ACTION_SYNC)
        sim_sync(world);
    else if (action == SIM_ACTION_SNAPSHOT)
        sim_snapshot(world);
    else
        sim_restart(world);
}

void sim_act(sim_world *world, sim_action action)
{
    switch (action) {
    case SIM_ACTION_READ:
        sim_read(world, sim_chance(&world->rng, 25) ? SL_LANE_PARKED : SL_LANE_MAIN, false);
        break;
    case SIM_ACTION_APPEND: sim_append_events(world); break;
    case SIM_ACTION_PASS_TIME: pass_time(world); break;
    case SIM_ACTION_WORK: work(world); break;
    case SIM_ACTION_LETTER: sim_letter_deliver(world); break;
    case SIM_ACTION_STALL: stall(world); break;
    case SIM_ACTION_JUMP: jump(world); break;
    case SIM_ACTION_BACKWARD: backward(world); break;
    case SIM_ACTION_CONNECT: connect(world); break;
    case SIM_ACTION_LEAVE: end_call(world, SIM_CALL_LEAVE); break;
    case SIM_ACTION_AWAY: end_call(world, SIM_CALL_AWAY); break;
    case SIM_ACTION_STOP: stop(world); break;
    case SIM_ACTION_RESUME: of_consumer(world, SIM_CALL_RESUME); break;
    case SIM_ACTION_STOP_TAG: stop_tag(world); break;
    case SIM_ACTION_RESUME_TAG: resume_tag(world); break;
    case SIM_ACTION_CORDON: of_consumer(world, SIM_CALL_CORDON); break;
    case SIM_ACTION_UPDATE: update(world); break;
    case SIM_ACTION_SYNC:
    case SIM_ACTION_RESTART:
    case SIM_ACTION_SNAPSHOT: of_store(world, action); break;
    case SIM_ACTION_REPLAY_PARKED: replay_parked(world); break;
    case SIM_ACTION_NONSENSE: nonsense(world); break;
    case SIM_ACTION_COUNT_: assert(false);
    }
}
