/* base/heap.c — the binary heap of heap.h.
 *
 * Both sifts carry the moving entry in their hand and move a hole instead of swapping: each step is one slot
 * copy and one back reference. Keys stand in the slots, so comparing never follows a pointer.
 *
 * Invariants, held by sl_heap_check():
 *   (1) no key is smaller than its parent's key.
 *   (2) slots[i].node->place == i + 1 for every i < count. */
#include "base/heap.h"

#include <assert.h>
#include <stddef.h>

static uint32_t parent_of(uint32_t index)
{
    return (index - 1) / 2;
}

static void put(sl_heap *heap, uint32_t index, sl_heap_slot slot)
{
    heap->slots[index] = slot;
    slot.node->place = index + 1;
}

static void sift_up(sl_heap *heap, uint32_t hole, sl_heap_slot slot)
{
    while (hole > 0 && slot.key < heap->slots[parent_of(hole)].key) {
        put(heap, hole, heap->slots[parent_of(hole)]);
        hole = parent_of(hole);
    }
    put(heap, hole, slot);
}

static void sift_down(sl_heap *heap, uint32_t hole, sl_heap_slot slot)
{
    const sl_heap_slot *slots = heap->slots;
    uint32_t child;

    while ((child = 2 * hole + 1) < heap->count) {
        /* Added, not branched on: which child is smaller is random, and a wrong guess would cost more. */
        child += child + 1 < heap->count && slots[child + 1].key < slots[child].key;
        if (slot.key <= slots[child].key)
            break;
        put(heap, hole, slots[child]);
        hole = child;
    }
    put(heap, hole, slot);
}

/* For an entry that comes into the middle: it may belong in either direction. */
static void sift(sl_heap *heap, uint32_t hole, sl_heap_slot slot)
{
    if (hole > 0 && slot.key < heap->slots[parent_of(hole)].key)
        sift_up(heap, hole, slot);
    else
        sift_down(heap, hole, slot);
}

static uint32_t index_of(const sl_heap *heap, const sl_heap_node *node)
{
    assert(node->place != 0 && node->place <= heap->count);
    assert(heap->slots[node->place - 1].node == node); /* else it is in another heap */
    return node->place - 1;
}

void sl_heap_init(sl_heap *heap, sl_heap_slot *slots, uint32_t capacity)
{
    assert(slots != NULL || capacity == 0);
    assert(capacity <= UINT32_MAX / 2); /* so that the index of a child never wraps */
    *heap = (sl_heap){ .slots = slots, .capacity = capacity };
}

void sl_heap_insert(sl_heap *heap, sl_heap_node *node, uint64_t key)
{
    assert(node->place == 0);
    assert(heap->count < heap->capacity);
    sift_up(heap, heap->count++, (sl_heap_slot){ .key = key, .node = node });
}

void sl_heap_remove(sl_heap *heap, sl_heap_node *node)
{
    const uint32_t index = index_of(heap, node);

    node->place = 0;
    heap->count--;
    if (index != heap->count) /* the last entry fills the hole, unless it is the one that goes */
        sift(heap, index, heap->slots[heap->count]);
}

void sl_heap_rekey(sl_heap *heap, sl_heap_node *node, uint64_t key)
{
    sift(heap, index_of(heap, node), (sl_heap_slot){ .key = key, .node = node });
}

uint64_t sl_heap_key(const sl_heap *heap, const sl_heap_node *node)
{
    return heap->slots[index_of(heap, node)].key;
}

uint64_t sl_heap_min_key(const sl_heap *heap)
{
    return heap->count == 0 ? UINT64_MAX : heap->slots[0].key;
}

sl_heap_node *sl_heap_min(const sl_heap *heap)
{
    return heap->count == 0 ? NULL : heap->slots[0].node;
}

void sl_heap_check(const sl_heap *heap)
{
    assert(heap->count <= heap->capacity);
    for (uint32_t i = 0; i < heap->count; i++) {
        assert(i == 0 || heap->slots[parent_of(i)].key <= heap->slots[i].key);
        assert(heap->slots[i].node->place == i + 1);
    }
}
