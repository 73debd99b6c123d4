/* wire/memory.c — see memory.h. */
#include "wire/memory.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

typedef struct head {
    _Alignas(max_align_t) sl_list node; /* so what follows the head is aligned for any type as well */
    size_t bytes;                       /* with the head */
} head;

static head *head_of(void *memory)
{
    return (head *)memory - 1;
}

void sl_sized_init(sl_sized *sized, const sl_alloc *alloc)
{
    sized->alloc = alloc;
    sl_list_init(&sized->blocks);
}

/* NULL stays NULL. */
static void *put_into_ring(sl_sized *sized, head *block, size_t bytes)
{
    if (block == NULL)
        return NULL;
    block->bytes = bytes;
    sl_list_push_back(&sized->blocks, &block->node);
    return block + 1;
}

void *sl_sized_take(sl_sized *sized, size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(head))
        return NULL;
    return put_into_ring(sized, sl_alloc_take(sized->alloc, sizeof(head) + bytes), sizeof(head) + bytes);
}

void *sl_sized_take_zero(sl_sized *sized, size_t count, size_t bytes)
{
    void *memory;

    if (bytes != 0 && count > SIZE_MAX / bytes)
        return NULL;
    memory = sl_sized_take(sized, count * bytes);
    return memory == NULL ? NULL : memset(memory, 0, count * bytes);
}

void *sl_sized_resize(sl_sized *sized, void *memory, size_t bytes)
{
    head *block = memory == NULL ? NULL : head_of(memory), *moved;

    if (block == NULL)
        return sl_sized_take(sized, bytes);
    if (bytes > SIZE_MAX - sizeof *block)
        return NULL;
    sl_list_remove(&block->node);
    moved = sl_alloc_resize(sized->alloc, block, block->bytes, sizeof *block + bytes);
    if (moved == NULL) {
        sl_list_push_back(&sized->blocks, &block->node); /* as it was */
        return NULL;
    }
    return put_into_ring(sized, moved, sizeof *block + bytes);
}

static void give(sl_sized *sized, head *block)
{
    sl_list_remove(&block->node);
    sl_alloc_give(sized->alloc, block, block->bytes);
}

void sl_sized_give(sl_sized *sized, void *memory)
{
    if (memory != NULL)
        give(sized, head_of(memory));
}

void sl_sized_clear(sl_sized *sized)
{
    SL_LIST_EACH_SAFE (node, &sized->blocks) {
        give(sized, SL_CONTAINER_OF(node, head, node));
    }
}

void sl_spares_init(sl_spares *spares, const sl_alloc *alloc)
{
    *spares = (sl_spares){ .alloc = alloc };
}

void sl_spares_lend(sl_spares *spares, sl_buf *buf)
{
    if (buf->memory != NULL || spares->count == 0)
        return;
    spares->count--;
    buf->memory = spares->blocks[spares->count].memory; /* the newest: most likely still in the cache */
    buf->capacity = spares->blocks[spares->count].bytes;
    spares->bytes -= buf->capacity;
}

void sl_spares_collect(sl_spares *spares, sl_buf *buf)
{
    sl_buf_clear(buf);
    if (spares->count == SL_SPARE_COUNT_MAX || buf->capacity > SL_SPARE_BYTES_MAX - spares->bytes) {
        sl_buf_done(buf);
        return;
    }
    if (buf->memory == NULL)
        return;
    spares->blocks[spares->count].memory = buf->memory;
    spares->blocks[spares->count++].bytes = buf->capacity;
    spares->bytes += buf->capacity;
    buf->memory = NULL; /* the block has moved */
    buf->capacity = 0;
}

void sl_spares_clear(sl_spares *spares)
{
    while (spares->count > 0) {
        spares->count--;
        sl_alloc_give(spares->alloc, spares->blocks[spares->count].memory,
                      spares->blocks[spares->count].bytes);
    }
    spares->bytes = 0;
}
