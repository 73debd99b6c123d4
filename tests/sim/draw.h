/* tests/sim/draw.h — what the seed decides before the first step: rules, sizes, and how often each thing happens. */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include "core/group.h"
#include "rng.h"

#define SIM_ACTION_MAP(XX) /* name, usual weight, one of `rare` runs goes without it */                      \
    XX(READ, 60, 0)                                                                                          \
    XX(APPEND, 30, 0)                                                                                        \
    XX(PASS_TIME, 25, 0)                                                                                     \
    XX(WORK, 130, 0)                                                                                         \
    XX(LETTER, 40, 3)                                                                                        \
    XX(STALL, 4, 3)                                                                                          \
    XX(JUMP, 1, 3)                                                                                           \
    XX(BACKWARD, 3, 3)                                                                                       \
    XX(CONNECT, 20, 0)                                                                                       \
    XX(LEAVE, 5, 3)                                                                                          \
    XX(AWAY, 6, 2)                                                                                           \
    XX(STOP, 8, 2)                                                                                           \
    XX(RESUME, 6, 3)                                                                                         \
    XX(STOP_TAG, 4, 3)                                                                                       \
    XX(RESUME_TAG, 6, 0)                                                                                     \
    XX(CORDON, 4, 3)                                                                                         \
    XX(UPDATE, 3, 2)                                                                                         \
    XX(SYNC, 20, 0)                                                                                          \
    XX(RESTART, 4, 2)                                                                                        \
    XX(SNAPSHOT, 3, 2)                                                                                       \
    XX(REPLAY_PARKED, 4, 3)                                                                                  \
    XX(NONSENSE, 2, 2)

typedef enum sim_action {
#define XX(name, weight, rare) SIM_ACTION_##name,
    SIM_ACTION_MAP(XX)
#undef XX
    SIM_ACTION_COUNT_
} sim_action;

typedef struct sim_plan {
    sl_group_limits limits;
    sl_settings settings;
    uint64_t start;
    uint32_t step_count, event_max, client_count, key_count, tag_count;
    uint32_t weights[SIM_ACTION_COUNT_], weight_sum;
    bool even_time; /* time goes by in eighths of a lease: things fall due at exactly the same moment */
    uint32_t filtered_percent, repeated_percent, gap_percent; /* of events */
} sim_plan;

sim_plan sim_draw_plan(sim_rng *rng);

/* Settings for a group that is keyed or not; always valid. */
sl_settings sim_draw_settings(sim_rng *rng, bool keyed);

sim_action sim_draw_action(sim_rng *rng, const sim_plan *plan);

#endif
