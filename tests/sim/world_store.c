/* tests/sim/world_store.c — sync, crash, restart, snapshot. */
#include "world.h"

#include "core/record.h"
#include "fail.h"
#include "judge.h"
#include "trace.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* --- durable ---------------------------------------------------------------------------------------------- */

static void mark_durable(sim_world *world, const sl_effect *record)
{
    const bool is_settle = record->kind == SL_EFFECT_SETTLE, is_park = record->kind == SL_EFFECT_PARK;
    if (!is_settle && !is_park)
        return;
    const sl_place place = is_settle ? record->settle.place : record->park.place;
    sim_event *event = sim_stream_at(&world->streams[place.lane], place.position);
    if (event != NULL)
        event->durable = true;
}

void sim_sync(sim_world *world)
{
    for (uint32_t i = world->log.synced_count; i < world->log.tail.count; i++)
        mark_durable(world, &world->log.tail.records[i]);
    world->log.synced_count = world->log.tail.count;
}

/* The one promise that a user counts on, judged without any model: a synced settle is for ever. */
void sim_judge_delivery(const sim_world *world, const sl_effect *lease)
{
    const sl_place place = lease->lease.place;
    const sim_event *event = sim_stream_at(&world->streams[place.lane], place.position);
    if (event == NULL || event->durable)
        sim_fail(SIM_RULE_RECORDS, "%s: %s", sim_effect_text(lease).chars,
                 event == NULL ? "there is no such event" : "its settle was durable before");
}

/* --- restart ---------------------------------------------------------------------------------------------- */

/* Through bytes and back, as a store would do it. */
static sl_effect reread(const sl_effect *record)
{
    uint8_t bytes[SL_RECORD_BYTES_MAX];
    const size_t written = sl_record_encode(record, bytes);
    sl_effect copy;
    size_t used = 0;
    memset(&copy, 0x5a, sizeof copy);
    if (sl_record_decode(bytes, written, &copy, &used) != SL_OK || used != written)
        sim_fail(SIM_RULE_RECORDS, "%s cannot be read again", sim_effect_text(record).chars);
    return copy;
}

static void load(sl_group *group, const sim_records *records)
{
    for (uint32_t i = 0; i < records->count; i++) {
        const sl_effect record = reread(&records->records[i]);
        const sl_err err = sl_group_replay(group, &record);
        if (err != SL_OK)
            sim_fail(SIM_RULE_RECORDS, "replay of %s gives code %d", sim_effect_text(&record).chars,
                     (int)err);
    }
}

/* What was parked by a record that did not survive is not parked. */
static void cut_parked(sim_world *world)
{
    sim_stream *parked = &world->streams[SL_LANE_PARKED];
    uint32_t count = parked->event_count;
    while (count > 0 && world->parked_by[count - 1] >= sim_log_next(&world->log))
        count--;
    sim_stream_cut(parked, count);
    if (world->parked_shown > count)
        world->parked_shown = count;
}

static void cut_calls(sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.client_count; i++) {
        world->clients[i].consumer = 0;
        world->clients[i].drained = false;
    }
}

/* Numbers that were given out are never given out again, also those whose records are lost. */
static void reopen_model(sim_world *world)
{
    const uint64_t token_last = world->model->token_last, consumer_last = world->model->consumer_last;
    *world->model = *world->model_at_snapshot;
    world->model->token_last = token_last;
    world->model->consumer_last = consumer_last;
    model_forget(world->model);
    for (uint32_t i = 0; i < world->log.tail.count; i++)
        model_replay(world->model, &world->log.tail.records[i]);
}

/* The next life may run on another machine, with another idea of the time. */
static void change_clock(sim_world *world)
{
    const uint64_t back_ns = sim_between(&world->rng, 0, 3 * SL_LEASE_NS_MAX);
    if (sim_chance(&world->rng, 10))
        world->clock_ns -= back_ns < world->clock_ns ? back_ns : 0;
}

/* The process dies; everything that was synced is there, and some of what was only written. */
void sim_restart(sim_world *world)
{
    const uint32_t at_risk = world->log.tail.count - world->log.synced_count;
    const uint32_t survived = sim_chance(&world->rng, 50) ? at_risk : sim_pick(&world->rng, at_risk + 1);
    sim_log_cut(&world->log, world->log.synced_count + survived);
    sim_world_note(world, "*** restart: %" PRIu32 " of %" PRIu32 " records that were not synced survive",
                   survived, at_risk);
    cut_parked(world);
    cut_calls(world);
    change_clock(world);
    if (sim_chance(&world->rng, 30))
        sim_lose_events(world);
    reopen_model(world);
    memset(world->memory, 0xa5, sl_group_bytes(&world->setup.limits));
    world->group = sl_group_init(world->memory, &world->setup);
    load(world->group, &world->log.snapshot);
    load(world->group, &world->log.tail);
    sim_world_call(world, &(sim_call){ .kind = SIM_CALL_OPEN, .now_ns = world->clock_ns });
    sim_sync(world); /* the caller makes EPOCH durable before it goes on */
}

/* --- snapshot --------------------------------------------------------------------------------------------- */

static void collect(void *ctx, const sl_effect *effect)
{
    sim_records_add(ctx, effect);
}

static void ignore(void *ctx, const sl_effect *effect)
{
    (void)ctx;
    (void)effect;
}

/* A group that is opened on a snapshot gives the same snapshot. */
static void judge_copy(sim_world *world, const sim_records *snapshot, sim_records *again)
{
    sl_group_setup setup = world->setup;
    setup.sink = (sl_sink){ ignore, NULL };
    sl_group *copy = sl_group_init(world->copy_memory, &setup);
    load(copy, snapshot);
    if (sl_group_open(copy, world->model->now_ns) != SL_OK)
        sim_fail(SIM_RULE_RECORDS, "a group cannot be opened on a snapshot");
    sl_group_check(copy);
    sl_group_snapshot(copy, (sl_sink){ collect, again });
    judge_snapshots(snapshot->records, snapshot->count, again->records, again->count);
}

/* The model believes its own copy of the state; of the snapshot it takes only the ranges that it can judge by the
 * streams (a snapshot may know of more filtered events than the records do). */
static void rebase_model(sim_world *world, const sim_records *snapshot)
{
    *world->model_at_snapshot = *world->model;
    for (uint32_t i = 0; i < snapshot->count; i++) {
        const sl_effect *e = &snapshot->records[i];
        if (e->kind == SL_EFFECT_PASSED)
            model_judge_cover(world->model_at_snapshot, e->passed.lane, e->passed.from, e->passed.to);
        if (e->kind == SL_EFFECT_CHECKPOINT)
            model_judge_cover(world->model_at_snapshot, e->checkpoint.lane,
                              world->model->lanes[e->checkpoint.lane].start, e->checkpoint.below);
    }
}

void sim_snapshot(sim_world *world)
{
    sim_records snapshot = { .records = NULL }, again = { .records = NULL };
    sim_sync(world);
    sl_group_snapshot(world->group, (sl_sink){ collect, &snapshot });
    sim_world_note(world, "*** snapshot of %" PRIu32 " records", snapshot.count);
    for (uint32_t i = 0; i < snapshot.count; i++)
        sim_world_note(world, "            %s", sim_effect_text(&snapshot.records[i]).chars);
    rebase_model(world, &snapshot);
    judge_copy(world, &snapshot, &again);
    sim_log_rebase(&world->log, &snapshot);
    sim_records_done(&snapshot);
    sim_records_done(&again);
}
