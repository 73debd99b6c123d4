/* tests/sim/draw.c — drawing a run. Small numbers on purpose: windows, limits and retries must be reached. */
#include "draw.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static const struct {
    uint32_t weight, rare;
} actions[] = {
#define XX(name, weight, rare) [SIM_ACTION_##name] = { weight, rare },
    SIM_ACTION_MAP(XX)
#undef XX
};

/* One of a few numbers; small ones first, because borders are near zero. */
static uint32_t draw_small(sim_rng *rng, uint32_t max)
{
    return sim_pick(rng, 1 + sim_pick(rng, max + 1));
}

/* Draws are statements of their own, never two in one expression: C leaves the order of those to the compiler. */
static sl_retry_policy draw_backoff(sim_rng *rng)
{
    static const sl_retry_kind kinds[] = { SL_RETRY_CONSTANT, SL_RETRY_CONSTANT, SL_RETRY_LINEAR,
                                           SL_RETRY_EXPONENTIAL };
    sl_retry_policy backoff = { .kind = kinds[sim_pick(rng, 4)] };
    const bool at_once =
        backoff.kind != SL_RETRY_EXPONENTIAL && sim_chance(rng, 50); /* nothing does not grow */
    backoff.factor_permille = 1500 + 500 * sim_pick(rng, 4);
    backoff.jitter_permille = sim_chance(rng, 70) ? 0 : 100 * sim_pick(rng, 6);
    backoff.delay_first_ns = at_once ? 0 : sim_between(rng, 1, 500) * MS;
    backoff.delay_step_ns = sim_between(rng, 0, 200) * MS;
    backoff.delay_max_ns = sim_between(rng, 500, 5000) * MS;
    if (sim_chance(rng, 30)) { /* caps of a policy, and wishes of destinations, mean nothing to a group */
        backoff.attempts_max = sim_pick(rng, 4);
        backoff.delay_total_max_ns = sim_between(rng, 0, 2000) * MS;
        backoff.retry_after_max_ns = sim_between(rng, 0, 2000) * MS;
    }
    return backoff;
}

/* Any that the group can have; a keyed one is mostly there for the pinned ones. */
static sl_strategy draw_strategy(sim_rng *rng, bool keyed)
{
    for (;;) {
        const sl_strategy strategy = (sl_strategy)sim_pick(rng, SL_STRATEGY_COUNT_);
        if (sl_strategy_is_pinned(strategy) ? keyed : !keyed || sim_chance(rng, 25))
            return strategy;
    }
}

sl_settings sim_draw_settings(sim_rng *rng, bool keyed)
{
    sl_settings settings = { .strategy = draw_strategy(rng, keyed) };
    settings.key_order = sl_strategy_is_pinned(settings.strategy) && sim_chance(rng, 50);
    settings.lease_ns = sim_chance(rng, 5) ? SL_LEASE_NS_MAX : sim_between(rng, 200, 5000) * MS;
    settings.retries_max = draw_small(rng, 6);
    settings.kills_max = draw_small(rng, 4);
    settings.interrupts_max = draw_small(rng, 4);
    settings.backoff = draw_backoff(rng);
    settings.buffer_max = sim_chance(rng, 30) ? 1 + sim_pick(rng, 8) : 20 + sim_pick(rng, 100);
    settings.consumers_max = sim_chance(rng, 70) ? 0 : 1 + sim_pick(rng, 4);
    settings.checkpoint_after_ns = sim_chance(rng, 25) ? 0 : sim_between(rng, 1, 3000) * MS;
    settings.checkpoint_count_min = 1 + sim_pick(rng, 8);
    settings.checkpoint_count_max = settings.checkpoint_count_min + sim_pick(rng, 30);
    return settings;
}

static void draw_weights(sim_rng *rng, sim_plan *plan)
{
    for (int i = 0; i < SIM_ACTION_COUNT_; i++) {
        const bool absent = actions[i].rare > 0 && sim_pick(rng, actions[i].rare) == 0;
        plan->weights[i] = absent ? 0 : actions[i].weight * (1 + sim_pick(rng, 3));
        plan->weight_sum += plan->weights[i];
    }
}

static void draw_sizes(sim_rng *rng, sim_plan *plan)
{
    const bool large = sim_pick(rng, 50) == 0;
    plan->step_count = large ? 2500 : 60 + sim_pick(rng, 440);
    plan->event_max = large ? 1000 : 20 + sim_pick(rng, 230);
    plan->client_count = large ? 10 + sim_pick(rng, 6) : 1 + sim_pick(rng, 7);
    plan->key_count = 1 + sim_pick(rng, large ? 40 : 10);
    plan->tag_count = sim_pick(rng, 20) == 0 ? SL_RULES_MAX + 6 : 1 + sim_pick(rng, 4);
    plan->limits.messages_max = sim_chance(rng, 30) ? 2 + sim_pick(rng, 10) : 100 + sim_pick(rng, 200);
    plan->limits.consumers_max = sim_chance(rng, 30) ? 1 + sim_pick(rng, 4) : 30;
}

sim_plan sim_draw_plan(sim_rng *rng)
{
    sim_plan plan = { .limits = { .keyed = sim_chance(rng, 60) } };
    draw_sizes(rng, &plan);
    draw_weights(rng, &plan);
    plan.settings = sim_draw_settings(rng, plan.limits.keyed);
    plan.start = sim_chance(rng, 50) ? 0 : sim_pick(rng, 1000);
    plan.filtered_percent = sim_chance(rng, 60) ? 0 : 10 * sim_pick(rng, 8);
    plan.repeated_percent = sim_chance(rng, 50) ? 0 : 1 + sim_pick(rng, 20);
    plan.gap_percent = sim_chance(rng, 40) ? 0 : 10 * sim_pick(rng, 6);
    plan.even_time = sim_chance(rng, 50);
    return plan;
}

sim_action sim_draw_action(sim_rng *rng, const sim_plan *plan)
{
    uint32_t drawn = sim_pick(rng, plan->weight_sum);
    int action = 0;
    while (drawn >= plan->weights[action])
        drawn -= plan->weights[action++];
    return (sim_action)action;
}
