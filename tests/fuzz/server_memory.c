/* tests/fuzz/server_memory.c — see server_memory.h. */
#include "server_memory.h"

#include <assert.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

enum {
    KEPT_MAX = 8,
    KEPT_BYTES_MIN = 64 * 1024
};

/* --- large blocks --- */

/* A host and its store have tables of megabytes, and getting them from the system page by page takes ten times as long as
 * everything else. So what is taken at the beginning is kept for the next input, which takes the same; meanwhile it is poisoned. */
static struct {
    void *block;  /* NULL: it is in use */
    size_t bytes; /* 0: nothing has this place */
} kept[KEPT_MAX];

static void *take_kept(size_t bytes)
{
    for (size_t i = 0; bytes >= KEPT_BYTES_MIN && i < KEPT_MAX; i++) {
        void *const block = kept[i].block;

        if (kept[i].bytes == 0) { /* the first input: who gives the block back finds its place */
            kept[i].bytes = bytes;
            return NULL;
        }
        if (block == NULL || kept[i].bytes != bytes)
            continue;
        kept[i].block = NULL;
        ASAN_UNPOISON_MEMORY_REGION(block, bytes);
        return block;
    }
    return NULL;
}

static void give_or_keep(void *block, size_t bytes)
{
    for (size_t i = 0; bytes >= KEPT_BYTES_MIN && i < KEPT_MAX; i++)
        if (kept[i].block == NULL && kept[i].bytes == bytes) {
            kept[i].block = block;
            ASAN_POISON_MEMORY_REGION(block, bytes);
            return;
        }
    free(block);
}

/* --- the allocator --- */

static bool is_failing(tight_memory *memory)
{
    if (memory->allocs_left == UINT32_MAX)
        return false;
    if (memory->allocs_left > 0) {
        memory->allocs_left--;
        return false;
    }
    if (memory->fails_left == 0) {
        memory->allocs_left = UINT32_MAX;
        return false;
    }
    memory->fails_left--;
    return true;
}

static void *resize(void *ctx, void *block, size_t old_bytes, size_t new_bytes)
{
    tight_memory *const memory = ctx;
    void *resized = NULL;

    if (new_bytes > old_bytes && is_failing(memory))
        return NULL;
    memory->bytes += new_bytes - old_bytes;
    assert(memory->bytes <= TIGHT_MEMORY_BYTES_MAX);
    if (new_bytes == 0) {
        give_or_keep(block, old_bytes);
        return NULL;
    }
    if (block == NULL && memory->is_opening)
        resized = take_kept(new_bytes);
    if (resized == NULL)
        resized = realloc(block, new_bytes);
    assert(resized != NULL);
    return resized;
}

void tight_memory_init(tight_memory *memory)
{
    *memory = (tight_memory){ .alloc = { memory, resize }, .allocs_left = UINT32_MAX, .is_opening = true };
}

void tight_memory_fail(tight_memory *memory, uint32_t allocs, uint32_t fails)
{
    memory->allocs_left = allocs;
    memory->fails_left = fails;
}

void tight_memory_calm(tight_memory *memory)
{
    memory->allocs_left = UINT32_MAX;
}
