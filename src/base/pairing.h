/* base/pairing.h — a heap without an array: thousands of them may share no memory but their nodes.
 *
 * A pairing heap. Insert and merge are O(1), pop and remove O(log n) amortised; nothing recurses, so the
 * depth of a bad sequence costs no stack. Used where many small priority queues exist at once (a queue for
 * each key), which array heaps could not do without an allocation for each. */
#ifndef SL_BASE_PAIRING_H
#define SL_BASE_PAIRING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sl_pairing_node {
    struct sl_pairing_node *child; /* leftmost of those that are not before this one */
    struct sl_pairing_node *next;  /* right sibling */
    struct sl_pairing_node *prev;  /* left sibling, or the parent of a leftmost child; NULL for the root */
} sl_pairing_node;

/* True when a must come out before b. A strict order; equal ones may come out either way. */
typedef bool sl_pairing_before_fn(const sl_pairing_node *a, const sl_pairing_node *b);

typedef struct sl_pairing {
    sl_pairing_node *root;
    sl_pairing_before_fn *before;
} sl_pairing;

static inline void sl_pairing_init(sl_pairing *heap, sl_pairing_before_fn *before)
{
    *heap = (sl_pairing){ .before = before };
}

/* The first one, NULL when empty. */
static inline sl_pairing_node *sl_pairing_min(const sl_pairing *heap)
{
    return heap->root;
}

/* node needs no initialisation and must be in no heap; while it is in one, what it is ordered by must not
 * change. */
void sl_pairing_insert(sl_pairing *heap, sl_pairing_node *node);

/* node must be in this heap. */
void sl_pairing_remove(sl_pairing *heap, sl_pairing_node *node);

#endif
