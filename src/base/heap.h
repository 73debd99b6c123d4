/* base/heap.h — a binary min-heap of 64-bit keys that can also remove and re-key what is in the middle.
 *
 * The caller brings the array, so a heap never allocates and never fails: inserting into a full heap is a
 * programmer's error. Equal keys come out in no particular order. Used for what is due at a time. */
#ifndef SL_BASE_HEAP_H
#define SL_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Lives inside the thing that is in the heap. place is 0 outside of any heap, else index + 1. */
typedef struct sl_heap_node {
    uint32_t place;
} sl_heap_node;

typedef struct sl_heap_slot {
    uint64_t key; /* beside the pointer, so that sifting does not touch the nodes it compares */
    sl_heap_node *node;
} sl_heap_slot;

typedef struct sl_heap {
    sl_heap_slot *slots;
    uint32_t count, capacity;
} sl_heap;

/* slots: room for `capacity` entries, owned by the caller, needs no initialisation. */
void sl_heap_init(sl_heap *heap, sl_heap_slot *slots, uint32_t capacity);

static inline bool sl_heap_has(const sl_heap_node *node)
{
    return node->place != 0;
}

/* node must be in no heap, the heap must not be full. O(log n). */
void sl_heap_insert(sl_heap *heap, sl_heap_node *node, uint64_t key);

/* node must be in this heap. O(log n). */
void sl_heap_remove(sl_heap *heap, sl_heap_node *node);
void sl_heap_rekey(sl_heap *heap, sl_heap_node *node, uint64_t key);
uint64_t sl_heap_key(const sl_heap *heap, const sl_heap_node *node);

/* Smallest key and its node; UINT64_MAX and NULL when empty. O(1). */
uint64_t sl_heap_min_key(const sl_heap *heap);
sl_heap_node *sl_heap_min(const sl_heap *heap);

/* Asserts the heap order and every back reference. O(n), for tests and checkers. */
void sl_heap_check(const sl_heap *heap);

#endif
