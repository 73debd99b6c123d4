/* tests/faults/dice.h — random numbers from a seed, the same on every machine. */
#ifndef SL_TESTS_FAULTS_DICE_H
#define SL_TESTS_FAULTS_DICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dice {
    uint64_t state;
} dice;

/* Different seeds, and different uses of one seed, give sequences that have nothing to do with each other. */
static inline uint64_t dice_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static inline dice dice_from(uint64_t seed, uint64_t use)
{
    return (dice){ dice_mix(dice_mix(seed + 1) + use) };
}

static inline uint64_t dice_draw(dice *d)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return dice_mix(d->state);
}

/* 0 to bound - 1. */
static inline uint64_t dice_pick(dice *d, uint64_t bound)
{
    return dice_draw(d) % bound;
}

static inline bool dice_one_in(dice *d, uint64_t bound)
{
    return dice_pick(d, bound) == 0;
}

#endif
