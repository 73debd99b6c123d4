/* server/groups/desk_room.c — memory for what comes and goes in order: events that wait to be sent, and answers on their way out.
 *
 *      open chunk   | used | used | used |      free      |
 *
 * A group reads ahead by thousands of events, sends them, and needs their memory no more while the messages stay outstanding. Blocks
 * of their own would leave holes between the entries that stay, which no allocator can give back. So they lie side by side in
 * chunks, and a chunk goes as soon as nothing in it is needed; first in, first out, that is soon. An empty chunk that is open is
 * used again from its front, so a group at work takes no memory at all.
 *
 * Events and answers have chunks of their own, since answers leave sooner: an event that is kept would keep theirs.
 *
 * Each block has its chunk written in front of it. Under AddressSanitizer a block that was given back cannot be touched. */
#include "server/groups/desk_private.h"

#include <assert.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define ALLOW(memory, bytes)  ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define FORBID(memory, bytes) ((void)(memory), (void)(bytes))
#define ALLOW(memory, bytes)  ((void)(memory), (void)(bytes))
#endif

enum {
    CHUNK_BYTES = 128 * 1024, /* from here on malloc() gives memory back to the system at once: server.c */
    ALONE_BYTES = CHUNK_BYTES /
                  8 /* a larger block is a chunk of its own, so that little is left over at the end of one */
};

struct desk_chunk {
    size_t bytes, used; /* of memory */
    uint32_t live;      /* blocks */
    _Alignas(16) uint8_t memory[];
};

typedef struct block {
    desk_chunk *chunk;
    uint64_t memory[];
} block;

static size_t block_bytes(size_t bytes)
{
    return sizeof(block) + (bytes + 7) / 8 * 8;
}

static desk_chunk *chunk_new(const sl_alloc *alloc, size_t bytes)
{
    desk_chunk *const chunk = sl_alloc_take(alloc, sizeof *chunk + bytes);

    if (chunk != NULL)
        *chunk = (desk_chunk){ .bytes = bytes };
    return chunk;
}

static void chunk_free(const sl_alloc *alloc, desk_chunk *chunk)
{
    ALLOW(chunk->memory, chunk->bytes);
    sl_alloc_give(alloc, chunk, sizeof *chunk + chunk->bytes);
}

static void *take_from(desk_chunk *chunk, size_t bytes)
{
    block *const taken = (block *)(void *)(chunk->memory + chunk->used);

    ALLOW(taken, bytes);
    taken->chunk = chunk;
    chunk->used += bytes;
    chunk->live++;
    return taken->memory;
}

void *desk_room_take(sl_desk *desk, desk_chunk **open, size_t bytes)
{
    const size_t whole = block_bytes(bytes);
    desk_chunk *chunk = *open;

    if (whole <= ALONE_BYTES && chunk != NULL && whole <= chunk->bytes - chunk->used)
        return take_from(chunk, whole);
    chunk = chunk_new(desk->host->alloc, whole <= ALONE_BYTES ? CHUNK_BYTES : whole);
    if (chunk == NULL)
        return NULL;
    if (whole <= ALONE_BYTES)
        *open = chunk; /* the last one is full, and goes with the last of its blocks */
    return take_from(chunk, whole);
}

void desk_room_give(sl_desk *desk, desk_chunk **open, void *memory, size_t bytes)
{
    block *const given = (block *)(void *)((uint64_t *)memory - sizeof(block) / sizeof(uint64_t));
    desk_chunk *const chunk = given->chunk;

    assert(chunk->live > 0);
    FORBID(given, block_bytes(bytes));
    if (--chunk->live > 0)
        return;
    if (chunk == *open)
        chunk->used = 0;
    else
        chunk_free(desk->host->alloc, chunk);
}

void desk_room_close(sl_desk *desk, desk_chunk **open)
{
    desk_chunk *const chunk = *open;

    *open = NULL;
    if (chunk != NULL && chunk->live == 0)
        chunk_free(desk->host->alloc, chunk);
}
