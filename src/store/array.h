/* store/array.h — one step that every growing array in this folder needs: room for more, or an error.
 *
 *     sl_undo *const bigger = sl_array_grow(alloc, undo, &capacity, sizeof *undo, count + 1);
 *     if (bigger == NULL)
 *         return SL_ERR_NOMEM;
 *     undo = bigger;                                                                                         */
#ifndef SL_STORE_ARRAY_H
#define SL_STORE_ARRAY_H

#include "base/alloc.h"

#include <stddef.h>

/* The array with room for `wanted` items: the same when there is room already, else moved to one that is at least
 * doubled. NULL when memory is out: the old array and *capacity are as they were. wanted must be above 0. */
void *sl_array_grow(const sl_alloc *alloc, void *items, size_t *capacity, size_t item_bytes, size_t wanted);

#endif
