/* core/ranges.c — the set of ranges of ranges.h, a sorted array.
 *
 * Invariant, held by sl_ranges_check(): from < to for each, and to < from of the next: ranges that touch are
 * one. */
#include "core/ranges.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Index of the first range that ends at or after `position`: the first that could hold or touch it. */
static uint32_t first_reaching(const sl_ranges *ranges, uint64_t position)
{
    uint32_t low = 0, high = ranges->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ranges->items[middle].to < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What was dropped from the front is used again when the end is reached. */
static void make_place_at_end(sl_ranges *ranges)
{
    const uint32_t dropped = (uint32_t)(ranges->items - ranges->memory);

    if (dropped == 0 || dropped + ranges->count < ranges->capacity)
        return;
    memmove(ranges->memory, ranges->items, ranges->count * sizeof *ranges->items);
    ranges->items = ranges->memory;
}

/* Replaces `old_count` ranges at `index` by one. */
static void splice(sl_ranges *ranges, uint32_t index, uint32_t old_count, sl_range range)
{
    sl_range *const at = ranges->items + index;

    memmove(at + 1, at + old_count, (ranges->count - index - old_count) * sizeof *at);
    *at = range;
    ranges->count += 1 - old_count;
}

sl_err sl_ranges_add(sl_ranges *ranges, uint64_t from, uint64_t to)
{
    const uint32_t index = first_reaching(ranges, from);
    sl_range sum = { from, to };
    uint32_t touched = 0;

    if (from >= to)
        return SL_OK;
    while (index + touched < ranges->count && ranges->items[index + touched].from <= sum.to) {
        sum.from = sl_min_u64(sum.from, ranges->items[index + touched].from);
        sum.to = sl_max_u64(sum.to, ranges->items[index + touched].to);
        touched++;
    }
    if (touched == 0 && ranges->count == ranges->capacity)
        return SL_ERR_FULL;
    make_place_at_end(ranges);
    splice(ranges, index, touched, sum);
    return SL_OK;
}

bool sl_ranges_has(const sl_ranges *ranges, uint64_t position)
{
    return sl_ranges_skip(ranges, position) != position;
}

uint64_t sl_ranges_skip(const sl_ranges *ranges, uint64_t position)
{
    uint32_t index = first_reaching(ranges, position);

    if (index < ranges->count && ranges->items[index].to == position)
        index++; /* it only touches from below */
    if (index == ranges->count || position < ranges->items[index].from)
        return position;
    return ranges->items[index].to;
}

void sl_ranges_drop_below(sl_ranges *ranges, uint64_t position)
{
    uint32_t gone = first_reaching(ranges, position);

    if (gone < ranges->count && ranges->items[gone].to == position)
        gone++;
    ranges->items += gone;
    ranges->count -= gone;
    if (ranges->count > 0)
        ranges->items[0].from = sl_max_u64(ranges->items[0].from, position);
}

void sl_ranges_check(const sl_ranges *ranges)
{
    assert(ranges->items >= ranges->memory);
    assert((uint32_t)(ranges->items - ranges->memory) + ranges->count <= ranges->capacity);
    for (uint32_t i = 0; i < ranges->count; i++) {
        assert(ranges->items[i].from < ranges->items[i].to);
        assert(i == 0 || ranges->items[i - 1].to < ranges->items[i].from);
    }
}
