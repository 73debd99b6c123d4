/* core/ranges.h — a set of positions, kept as disjoint half-open ranges in ascending order.
 *
 * What a group has settled is all of its stream but a few messages, so the set is told by its ranges:
 * settling between two unsettled messages is one range, and ranges that touch become one. Only loading needs
 * the set; a running group sees what is settled from the gaps between the messages it knows. */
#ifndef SL_CORE_RANGES_H
#define SL_CORE_RANGES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_range {
    uint64_t from, to; /* from <= position < to */
} sl_range;

typedef struct sl_ranges {
    sl_range *memory; /* the caller's */
    sl_range *items;  /* the first one: dropping from the front moves this, not the others */
    uint32_t count, capacity;
} sl_ranges;

static inline void sl_ranges_init(sl_ranges *ranges, sl_range *items, uint32_t capacity)
{
    *ranges = (sl_ranges){ .memory = items, .items = items, .capacity = capacity };
}

/* Adds [from, to); an empty range is no change. SL_OK, or SL_ERR_FULL with the set unchanged.
 * O(log n) to find the place, and a move of what stands behind it: records come mostly in ascending order. */
sl_err sl_ranges_add(sl_ranges *ranges, uint64_t from, uint64_t to);

bool sl_ranges_has(const sl_ranges *ranges, uint64_t position);

/* First position at or after `position` that is not in the set. */
uint64_t sl_ranges_skip(const sl_ranges *ranges, uint64_t position);

/* Forgets every position below `position`. O(log n). */
void sl_ranges_drop_below(sl_ranges *ranges, uint64_t position);

void sl_ranges_check(const sl_ranges *ranges);

#endif
