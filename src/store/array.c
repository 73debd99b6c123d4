/* store/array.c — growing by doubling, with the sizes checked. */
#include "store/array.h"

#include <assert.h>
#include <stdint.h>

enum {
    CAPACITY_FIRST = 8
};

void *sl_array_grow(const sl_alloc *alloc, void *items, size_t *capacity, size_t item_bytes, size_t wanted)
{
    size_t room = *capacity == 0 ? CAPACITY_FIRST : *capacity;
    void *bigger;

    assert(wanted > 0 && item_bytes > 0);
    if (wanted <= *capacity)
        return items;
    while (room < wanted && room <= SIZE_MAX / 2)
        room *= 2;
    if (room < wanted || room > SIZE_MAX / item_bytes)
        return NULL;
    bigger = sl_alloc_resize(alloc, items, *capacity * item_bytes, room * item_bytes);
    if (bigger != NULL)
        *capacity = room;
    return bigger;
}
