/* tests/sim/world.c — one run from the first draw to the last check. */
#include "world.h"

#include "fail.h"
#include "judge.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_world_note(const sim_world *world, const char *format, ...)
{
    if (!world->trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

/* --- a call ----------------------------------------------------------------------------------------------- */

static void emit(void *ctx, const sl_effect *effect)
{
    sim_world *world = ctx;
    if (world->trace)
        printf("            %s\n", sim_effect_text(effect).chars);
    model_effect(world->model, effect);
    if (sl_effect_is_record(effect->kind))
        sim_records_add(&world->log.tail, effect);
    if (effect->kind == SL_EFFECT_LEASE)
        sim_judge_delivery(world, effect);
    else if (effect->kind == SL_EFFECT_PARK)
        sim_park_event(world, effect);
    else
        sim_client_saw(world, effect);
}

static void note_call(const sim_world *world, const sim_call *call)
{
    if (world->trace)
        printf("[%4" PRIu32 "] %12" PRIu64 "  %s\n", world->step, call->now_ns, sim_call_text(call).chars);
    fflush(world->trace ? stdout : NULL);
}

static void note_result(const sim_world *world, const sim_call *call, const sim_result *result)
{
    if (!world->trace)
        return;
    if (result->err != SL_OK)
        printf("            -> %s\n", sl_err_name(result->err));
    if (call->kind == SIM_CALL_TICK && result->wake_ns == SL_NEVER)
        printf("            -> never\n");
    else if (call->kind == SIM_CALL_TICK)
        printf("            -> wake at %" PRIu64 "\n", result->wake_ns);
}

static void judge(sim_world *world, bool opened)
{
    const bool small = world->model->message_count < 50;
    judge_group(world->model, world->group, opened);
    if (small || world->step % 8 == 0) {
        judge_leases(world->model, world->group);
        sl_group_check(world->group);
    }
}

/* Started and Extend may be about any of several deliveries with the same id, and then even silently: a client that
 * cares names the token, and so does the simulator. */
static void name_tokens(sim_world *world, sim_call *call)
{
    uint64_t token;
    if (call->kind != SIM_CALL_STARTED && call->kind != SIM_CALL_EXTEND)
        return;
    for (uint32_t i = 0; i < call->claim_count; i++)
        if (model_claim_is_open(world->model, call->consumer, &call->claims[i], &token))
            call->claims[i].token = token;
}

sim_result sim_world_call(sim_world *world, sim_call *call)
{
    world->step++;
    sim_fail_at(world->step);
    call->join.tags = call->tags;
    call->join.resume = call->resume;
    name_tokens(world, call);
    note_call(world, call);
    model_begin(world->model, call);
    const sim_result result = sim_call_run(call, world->group);
    note_result(world, call, &result);
    model_end(world->model, &result);
    judge(world, call->kind == SIM_CALL_OPEN);
    return result;
}

void sim_world_tick(sim_world *world)
{
    sim_world_call(world, &(sim_call){ .kind = SIM_CALL_TICK, .now_ns = world->clock_ns });
}

/* --- life ------------------------------------------------------------------------------------------------- */

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    assert(memory != NULL);
    return memory;
}

static void init_setup(sim_world *world)
{
    world->setup = (sl_group_setup){ .limits = world->plan.limits,
                                     .settings = world->plan.settings,
                                     .start = world->plan.start,
                                     .sink = { emit, world } };
    world->setup.seed.k0 = sim_rng_next(&world->rng);
    world->setup.seed.k1 = sim_rng_next(&world->rng);
    const size_t bytes = sl_group_bytes(&world->plan.limits);
    world->memory = allocate(bytes);
    world->copy_memory = allocate(bytes);
    memset(world->memory, 0xa5, bytes); /* init must not count on zeroes */
}

static uint64_t bucket_of(const sim_world *world, uint64_t key)
{
    return sl_hash(world->setup.seed, &key, sizeof key) % 1024;
}

static bool is_apart(const sim_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bucket_of(world, world->keys[i]) == bucket_of(world, world->keys[count]))
            return false;
    return true;
}

static uint64_t draw_key(sim_rng *rng)
{
    const uint32_t shift = sim_pick(rng, 40); /* small keys too */
    return sim_rng_next(rng) >> shift;
}

/* In most runs no two keys share a bucket: then the model can count buckets. */
static void init_keys(sim_world *world)
{
    world->keys_apart = sim_chance(&world->rng, 80);
    for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++)
        do
            world->keys[i] = draw_key(&world->rng);
        while (world->keys_apart && !is_apart(world, i));
}

void sim_world_init(sim_world *world, uint64_t seed, uint32_t steps, bool trace)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    world->trace = trace;
    sim_rng_init(&world->rng, seed);
    world->plan = sim_draw_plan(&world->rng);
    if (steps > 0)
        world->plan.step_count = steps;
    world->clock_ns = 20 * SL_LEASE_NS_MAX + sim_between(&world->rng, 1, UINT64_C(1000000000000));
    world->position_next = world->plan.start;
    sim_log_init(&world->log);
    init_setup(world);
    init_keys(world);
    sim_clients_init(world);
    world->model = allocate(sizeof *world->model);
    world->model_at_snapshot = allocate(sizeof *world->model);
}

void sim_world_done(sim_world *world)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        sim_stream_done(&world->streams[lane]);
    sim_log_done(&world->log);
    free(world->parked_by);
    free(world->memory);
    free(world->copy_memory);
    free(world->model);
    free(world->model_at_snapshot);
}

static void first_open(sim_world *world)
{
    model_init(world->model, &world->setup, world->streams);
    world->model->keys_apart = world->keys_apart;
    *world->model_at_snapshot = *world->model;
    world->group = sl_group_init(world->memory, &world->setup);
    sim_world_call(world, &(sim_call){ .kind = SIM_CALL_OPEN, .now_ns = world->clock_ns });
    world->log.synced_count = world->log.tail.count;
}

void sim_world_run(void *ctx)
{
    sim_world *world = ctx;
    sim_world_note(world,
                   "seed %" PRIu64 ": %" PRIu32 " steps, messages_max %" PRIu32 ", consumers_max %" PRIu32
                   "%s, %s",
                   world->seed, world->plan.step_count, world->plan.limits.messages_max,
                   world->plan.limits.consumers_max, world->plan.limits.keyed ? ", keyed" : "",
                   sim_settings_text(&world->plan.settings).chars);
    first_open(world);
    while (world->step < world->plan.step_count)
        sim_act(world, sim_draw_action(&world->rng, &world->plan));
    sim_end(world);
}
