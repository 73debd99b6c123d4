/* tests/sim/cover.c — ranges that touch become one, so the array stays as short as the gaps allow. */
#include "cover.h"

#include <assert.h>
#include <string.h>

void sim_cover_clear(sim_cover *cover)
{
    cover->range_count = 0;
}

/* Index of the first range that ends at or above the position: the one that touches it, if any does. */
static uint32_t first_reaching(const sim_cover *cover, uint64_t position)
{
    uint32_t low = 0, high = cover->range_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cover->ranges[middle].to < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sim_cover_add(sim_cover *cover, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    const uint32_t first = first_reaching(cover, from);
    uint32_t end = first;
    while (end < cover->range_count && cover->ranges[end].from <= to) {
        from = cover->ranges[end].from < from ? cover->ranges[end].from : from;
        to = cover->ranges[end].to > to ? cover->ranges[end].to : to;
        end++;
    }
    assert(cover->range_count + 1 - (end - first) <= SIM_COVER_MAX);
    memmove(&cover->ranges[first + 1], &cover->ranges[end],
            (cover->range_count - end) * sizeof cover->ranges[0]);
    cover->ranges[first].from = from;
    cover->ranges[first].to = to;
    cover->range_count = cover->range_count + 1 - (end - first);
}

uint64_t sim_cover_next_free(const sim_cover *cover, uint64_t position)
{
    const uint32_t index = first_reaching(cover, position + 1);
    if (index < cover->range_count && cover->ranges[index].from <= position)
        return cover->ranges[index].to;
    return position;
}

bool sim_cover_has(const sim_cover *cover, uint64_t position)
{
    return sim_cover_next_free(cover, position) != position;
}

uint64_t sim_cover_top(const sim_cover *cover)
{
    return cover->range_count == 0 ? 0 : cover->ranges[cover->range_count - 1].to;
}
