/* base/alloc.h — where memory comes from, as a value that is passed in.
 *
 * One function does all: it takes, grows, shrinks and gives back. The caller always says how large a block
 * was, so that an allocator can count, limit or fail on purpose without a table of its own. Tests pass one
 * that fails at the n-th call and count what is still out at the end. */
#ifndef SL_BASE_ALLOC_H
#define SL_BASE_ALLOC_H

#include <stddef.h>

typedef struct sl_alloc {
    void *ctx;
    /* memory NULL (then old_bytes is 0): take. new_bytes 0: give back, returns NULL. Else like realloc().
     * NULL for a new_bytes above 0 means failure, and the old block is as it was. Aligned for any type. */
    void *(*resize)(void *ctx, void *memory, size_t old_bytes, size_t new_bytes);
} sl_alloc;

/* malloc, realloc and free. Any thread. */
extern const sl_alloc sl_alloc_default;

/* NULL on failure. bytes must be above 0, since "nothing" could not be told from a failure. */
void *sl_alloc_take(const sl_alloc *alloc, size_t bytes);

/* On failure NULL, and the old block is as it was. new_bytes must be above 0. */
void *sl_alloc_resize(const sl_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes);

/* bytes: the size it was taken or last resized with. NULL is allowed. */
void sl_alloc_give(const sl_alloc *alloc, void *memory, size_t bytes);

#endif
