/* base/alloc.c — the default allocator and the three ways to call any of them.
 *
 * The asserts stand here once, so that every allocator may rely on them: a block and its size come and go
 * together, and a size of 0 always means "give back". */
#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>

static void *resize_with_malloc(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    (void)ctx;
    (void)old_bytes;
    if (new_bytes > 0)
        return realloc(memory, new_bytes);
    free(memory); /* not left to realloc(), whose answer to a size of 0 differs between systems */
    return NULL;
}

const sl_alloc sl_alloc_default = { .resize = resize_with_malloc };

void *sl_alloc_take(const sl_alloc *alloc, size_t bytes)
{
    assert(bytes > 0);
    return alloc->resize(alloc->ctx, NULL, 0, bytes);
}

void *sl_alloc_resize(const sl_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes)
{
    assert((memory == NULL) == (old_bytes == 0));
    assert(new_bytes > 0);
    return alloc->resize(alloc->ctx, memory, old_bytes, new_bytes);
}

void sl_alloc_give(const sl_alloc *alloc, void *memory, size_t bytes)
{
    assert((memory == NULL) == (bytes == 0));
    if (memory != NULL)
        alloc->resize(alloc->ctx, memory, bytes, 0);
}
