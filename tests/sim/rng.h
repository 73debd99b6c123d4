/* tests/sim/rng.h — the one source of chance in a run: the same seed draws the same numbers on every machine. */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_rng {
    uint64_t state;
} sim_rng;

void sim_rng_init(sim_rng *rng, uint64_t seed);
uint64_t sim_rng_next(sim_rng *rng);

/* 0 .. bound - 1; bound > 0. */
uint32_t sim_pick(sim_rng *rng, uint32_t bound);

/* low .. high, both included. */
uint64_t sim_between(sim_rng *rng, uint64_t low, uint64_t high);

/* True in `percent` of a hundred draws. */
bool sim_chance(sim_rng *rng, uint32_t percent);

#endif
