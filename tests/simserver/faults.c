/* tests/simserver/faults.c — what happens to a server besides its consumers: appends, operators, changes, crashes, clocks, disks. */
#include "world.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static bool once_in(world *w, uint32_t turns)
{
    return sim_pick(&w->rng, turns) == 0;
}

/* --- operators --- */

static void draw_who(world *w, world_stop *stop)
{
    const uint32_t dice = sim_pick(&w->rng, 3);
    world_group *const g = &w->groups[stop->group];
    client *const c = &w->clients[sim_pick(&w->rng, w->client_count)];

    snprintf(stop->name, sizeof stop->name, "%s", dice == 1 ? c->name : c->label);
    stop->who = (sl_wire_who){ .stream = g->of_all ? SL_STR("$all") : sl_str_from(g->stream),
                               .group = sl_str_from(g->name) };
    if (dice == 1)
        stop->who.consumer_name = sl_str_from(stop->name);
    if (dice == 2) {
        stop->who.label_key = SL_STR("version");
        stop->who.label_value = sl_str_from(stop->name);
    }
}

static void operator_acts(world *w)
{
    world_stop *const stop = &w->stops[w->stop_count];
    const uint32_t old = sim_pick(&w->rng, w->stop_count + 1);

    if (old < w->stop_count && !w->stops[old].taken_back && sim_chance(&w->rng, 60)) {
        if (clerk_ask(&w->manager, (errand){ .kind = ERRAND_RESUME, .stop = old }))
            report_count(&w->report, SITUATION_OPERATOR_RESUME);
        return;
    }
    if (w->stop_count == WORLD_STOPS_MAX || w->manager.now.kind != ERRAND_NONE)
        return;
    stop->group = sim_pick(&w->rng, w->group_count);
    stop->hand_back = sim_chance(&w->rng, 25);
    draw_who(w, stop);
    (void)clerk_ask(&w->manager, (errand){ .kind = ERRAND_STOP, .stop = w->stop_count++ });
    report_count(&w->report, SITUATION_OPERATOR_STOP);
}

/* --- changes --- */

static void draw_update(world *w, world_group *g)
{
    static const char *const strategies[] = { "RoundRobin", "DispatchToSingle", "Pinned" };

    g->next_lease_ms = (uint32_t)sim_between(&w->rng, 200, 3000);
    g->next_retries_max = (uint32_t)sim_between(&w->rng, 0, 10);
    snprintf(g->next_strategy, sizeof g->next_strategy, "%s", strategies[sim_pick(&w->rng, 3)]);
}

/* Everybody leaves first, so that nothing of the old group is mistaken for something of the new one. */
static void recreate(world *w, uint32_t group)
{
    if (!clerk_ask(&w->manager, (errand){ .kind = ERRAND_DELETE, .group = group }))
        return;
    w->groups[group].closed = true;
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].group == group) {
            client_cut(&w->clients[i]);
            w->clients[i].held_count = 0;
        }
    report_count(&w->report, SITUATION_RECREATED);
}

static void change(world *w)
{
    const uint32_t group = sim_pick(&w->rng, w->group_count), dice = sim_pick(&w->rng, 100);

    if (w->manager.now.kind != ERRAND_NONE)
        return;
    if (dice < 50) {
        (void)clerk_ask(&w->manager, (errand){ .kind = ERRAND_REPLAY, .group = group });
        report_count(&w->report, SITUATION_REPLAYED);
    } else if (dice < 85) {
        draw_update(w, &w->groups[group]);
        (void)clerk_ask(&w->manager, (errand){ .kind = ERRAND_UPDATE, .group = group });
        report_count(&w->report, SITUATION_UPDATED);
    } else {
        recreate(w, group);
    }
}

/* --- crashes, disks, clocks --- */

static void crash(world *w)
{
    const uint32_t dice = sim_pick(&w->rng, 100);

    if (dice < 35) {
        world_shutdown_begin(w);
        report_count(&w->report, SITUATION_SHUTDOWN);
    } else if (dice < 75 || !w->power) {
        report_count(&w->report, SITUATION_KILLED);
        world_server_end(w, SIM_STORE_KILLED);
    } else {
        report_count(&w->report, SITUATION_POWER_CUT);
        world_server_end(w, SIM_STORE_CUT);
    }
}

static void disk_acts(world *w)
{
    const uint32_t dice = sim_pick(&w->rng, 100);

    if (w->store.is_journal) {
        if (w->power && dice < 5)
            sl_faulty_fail_after(w->store.disk, sim_between(&w->rng, 0, 40), SL_ERR_IO);
        return;
    }
    if (dice < 70) {
        w->store.ready_ns = w->time.mono_ns + sim_between(&w->rng, 1, 150) * WORLD_MS_NS;
        report_count(&w->report, SITUATION_STORE_SLOW);
    } else if (dice < 85) {
        w->store.full = !w->store.full;
        report_count(&w->report, SITUATION_STORE_FULL);
    } else {
        w->store.no_space = !w->store.no_space;
    }
}

static void clock_jumps(world *w)
{
    const uint64_t jump_ns = sim_between(&w->rng, 1, 1500) * WORLD_MS_NS;
    const bool forward = sim_chance(&w->rng, 50);

    report_say(&w->report, "the wall clock jumps %s by %ju ms", forward ? "forward" : "back",
               (uintmax_t)(jump_ns / WORLD_MS_NS));
    report_count(&w->report, SITUATION_WALL_JUMP);
    sl_clock_manual_set_wall(&w->time, forward ? w->time.wall_ns + jump_ns : w->time.wall_ns - jump_ns);
    if (forward)
        w->judge.forward_ns += jump_ns;
    else
        w->judge.backward_ns += jump_ns;
}

static void wait_long(world *w)
{
    w->wait_ns = sim_between(&w->rng, 50, 1200) * WORLD_MS_NS;
    report_count(&w->report, SITUATION_TIME_JUMP);
}

void world_act(world *w)
{
    if (w->event_count < w->event_count_max && once_in(w, 12))
        (void)clerk_ask(&w->writer, (errand){ .kind = ERRAND_APPEND });
    if (w->operators && once_in(w, 60))
        operator_acts(w);
    if (w->changes && once_in(w, 90))
        change(w);
    if (w->slow_disk && once_in(w, 15))
        disk_acts(w);
    if (w->jumps && once_in(w, 60))
        clock_jumps(w);
    if (once_in(w, 80))
        wait_long(w);
    if (w->crashes && once_in(w, 110))
        crash(w);
}
