/* base/pairing.c — the pairing heap of pairing.h.
 *
 * A tree in which no node comes before its parent. Its children are a list, newest on the left:
 *
 *      root                child: the leftmost child
 *       |                  next:  the sibling on the right, NULL for the last one
 *       a <-> b <-> c      prev:  the sibling on the left; the parent for a leftmost child
 *       |
 *       d
 *
 * All work is one operation, link(): of two trees, the one whose root comes later becomes the leftmost child
 * of the other. Insert links once. Taking a node away leaves its children as a list of trees, and how they
 * are joined decides the cost: one after another would be O(n), in pairs first it is O(log n) amortised. */
#include "base/pairing.h"

#include <assert.h>

/* Both are roots: neither has a sibling. Returns the root of the joined tree; its prev and next are not set. */
static sl_pairing_node *link(sl_pairing_before_fn *before, sl_pairing_node *a, sl_pairing_node *b)
{
    sl_pairing_node *const top = before(b, a) ? b : a;
    sl_pairing_node *const low = top == a ? b : a;

    low->prev = top;
    low->next = top->child;
    if (low->next != NULL)
        low->next->prev = low;
    top->child = low;
    return top;
}

/* First pass, left to right: links the trees in pairs and stacks the results on their `next`, last on top. */
static sl_pairing_node *link_in_pairs(sl_pairing_before_fn *before, sl_pairing_node *first)
{
    sl_pairing_node *stack = NULL;

    while (first != NULL) {
        sl_pairing_node *const second = first->next;
        sl_pairing_node *const rest = second == NULL ? NULL : second->next;
        sl_pairing_node *const pair = second == NULL ? first : link(before, first, second);
        pair->next = stack;
        stack = pair;
        first = rest;
    }
    return stack;
}

/* Second pass, right to left: links all of the stack into one tree. NULL when there is none. */
static sl_pairing_node *link_all(sl_pairing_before_fn *before, sl_pairing_node *stack)
{
    sl_pairing_node *top = stack;

    if (top == NULL)
        return NULL;
    for (sl_pairing_node *tree = top->next, *rest; tree != NULL; tree = rest) {
        rest = tree->next; /* read first: link() gives the loser new siblings */
        top = link(before, top, tree);
    }
    return top;
}

/* Takes a node that is not the root, with the tree below it, out of the list of its siblings. */
static void cut(sl_pairing_node *node)
{
    if (node->prev->child == node)
        node->prev->child = node->next;
    else
        node->prev->next = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
}

/* Joins a tree, which may be NULL, with what is left in the heap. */
static void add_tree(sl_pairing *heap, sl_pairing_node *tree)
{
    if (tree == NULL)
        return;
    heap->root = heap->root == NULL ? tree : link(heap->before, heap->root, tree);
    heap->root->prev = heap->root->next = NULL;
}

void sl_pairing_insert(sl_pairing *heap, sl_pairing_node *node)
{
    *node = (sl_pairing_node){ 0 };
    add_tree(heap, node);
}

void sl_pairing_remove(sl_pairing *heap, sl_pairing_node *node)
{
    assert(node == heap->root || node->prev != NULL); /* else it is in no heap, or the root of another one */
    if (node == heap->root)
        heap->root = NULL;
    else
        cut(node);
    add_tree(heap, link_all(heap->before, link_in_pairs(heap->before, node->child)));
    *node = (sl_pairing_node){ 0 };
}
