/* core/removal.h — what it costs to remove a replica now, as one number: the server and the worker both show it (B17).
 *
 * Work that runs counts a thousand for each message: it has to be waited for, and is interrupted when the grace is too short. What is
 * only held counts one: it goes back at once. So work that runs always decides, however much waits. 0: nothing would be missed.
 *
 * It fits into 31 bits, because Kubernetes takes it as the annotation controller.kubernetes.io/pod-deletion-cost; it removes the
 * pod with the lowest one first. */
#ifndef SL_CORE_REMOVAL_H
#define SL_CORE_REMOVAL_H

#include <stdint.h>

enum {
    SL_REMOVAL_COST_RUNNING = 1000,
    SL_REMOVAL_COST_MAX = INT32_MAX
};

static inline uint32_t sl_removal_cost(uint64_t running, uint64_t waiting)
{
    const uint64_t of_waiting = waiting < SL_REMOVAL_COST_RUNNING ? waiting : SL_REMOVAL_COST_RUNNING - 1;

    if (running >= SL_REMOVAL_COST_MAX / SL_REMOVAL_COST_RUNNING)
        return SL_REMOVAL_COST_MAX;
    return (uint32_t)(running * SL_REMOVAL_COST_RUNNING + of_waiting);
}

#endif
