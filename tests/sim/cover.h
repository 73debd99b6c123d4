/* tests/sim/cover.h — a set of positions as sorted, separate ranges: what the records say is settled. */
#ifndef SIM_COVER_H
#define SIM_COVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_COVER_MAX = 2048
};

typedef struct sim_cover {
    struct {
        uint64_t from, to; /* [from, to), never empty */
    } ranges[SIM_COVER_MAX];
    uint32_t range_count;
} sim_cover;

void sim_cover_clear(sim_cover *cover);
void sim_cover_add(sim_cover *cover, uint64_t from, uint64_t to);
bool sim_cover_has(const sim_cover *cover, uint64_t position);

/* The first position at or above this one that is not in the set. */
uint64_t sim_cover_next_free(const sim_cover *cover, uint64_t position);

/* One above the highest position in the set; 0 when it is empty. */
uint64_t sim_cover_top(const sim_cover *cover);

#endif
