/* tests/sim/judge.h — compares everything that a group shows of itself with the model. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "model.h"

/* After each call: room, where to read, the numbers of the group and of each consumer. opened: it was open(). */
void judge_group(model *m, const sl_group *group, bool opened);

/* Every live lease of every consumer; slower. */
void judge_leases(model *m, const sl_group *group);

/* Two snapshots of the same state: the second was taken from a group that was opened on the first. */
void judge_snapshots(const sl_effect *first, uint32_t first_count, const sl_effect *second,
                     uint32_t second_count);

#endif
