/* tests/sim/rng.c — a counter that is stirred (the finalizer of a 64-bit hash): small, fast and good enough for
 * dice. The modulo bias of the draws below is far too small to hide a bug. */
#include "rng.h"

#include <assert.h>

void sim_rng_init(sim_rng *rng, uint64_t seed)
{
    rng->state = seed * UINT64_C(0x2545f4914f6cdd1d) + UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t sim_rng_next(sim_rng *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = rng->state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint32_t sim_pick(sim_rng *rng, uint32_t bound)
{
    assert(bound > 0);
    return (uint32_t)(sim_rng_next(rng) % bound);
}

uint64_t sim_between(sim_rng *rng, uint64_t low, uint64_t high)
{
    assert(low <= high);
    assert(high - low < UINT64_MAX);
    return low + sim_rng_next(rng) % (high - low + 1);
}

bool sim_chance(sim_rng *rng, uint32_t percent)
{
    return sim_pick(rng, 100) < percent;
}
