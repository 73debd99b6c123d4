/* base/list.h — a doubly linked ring whose nodes live inside the things they link.
 *
 * A ring is a bare sl_list as its head. A node that is in no ring points to itself, so that removing twice is
 * harmless and "is it linked?" is a question with an answer. */
#ifndef SL_BASE_LIST_H
#define SL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_list {
    struct sl_list *prev, *next;
} sl_list;

/* The struct of type `type` that holds `node` as its member `member`. Through an integer, so that a const
 * node gives what its user asks for: `const type`, or `type` where the struct itself is not const. */
#define SL_CONTAINER_OF(node, type, member) ((type *)((uintptr_t)(node)-offsetof(type, member)))

static inline void sl_list_init(sl_list *list)
{
    list->prev = list->next = list;
}

/* For a head: nothing is in the ring. For a node: it is in no ring. */
static inline bool sl_list_empty(const sl_list *list)
{
    return list->next == list;
}

static inline void sl_list_insert_before(sl_list *at, sl_list *node)
{
    node->prev = at->prev;
    node->next = at;
    at->prev->next = node;
    at->prev = node;
}

static inline void sl_list_push_back(sl_list *head, sl_list *node)
{
    sl_list_insert_before(head, node);
}

static inline void sl_list_push_front(sl_list *head, sl_list *node)
{
    sl_list_insert_before(head->next, node);
}

static inline void sl_list_remove(sl_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    sl_list_init(node);
}

/* Moves everything that is in the ring `from` to the end of the ring `head`. */
static inline void sl_list_splice(sl_list *head, sl_list *from)
{
    if (sl_list_empty(from))
        return;
    from->next->prev = head->prev;
    from->prev->next = head;
    head->prev->next = from->next;
    head->prev = from->prev;
    sl_list_init(from);
}

/* First or last node, NULL when the ring is empty. */
static inline sl_list *sl_list_first(const sl_list *head)
{
    return sl_list_empty(head) ? NULL : head->next;
}

static inline sl_list *sl_list_last(const sl_list *head)
{
    return sl_list_empty(head) ? NULL : head->prev;
}

#define SL_LIST_EACH(node, head) for (sl_list *node = (head)->next; node != (head); node = node->next)

/* The loop body may remove `node`, but no other. */
#define SL_LIST_EACH_SAFE(node, head)                                                                        \
    for (sl_list *node = (head)->next, *node##_next_ = node->next; node != (head);                           \
         node = node##_next_, node##_next_ = node->next)

#endif
