/* base/arena.c — cutting pieces from chunks.
 *
 * A piece is cut from the end of the used part of `current`. When it does not fit there, one of two things
 * happens:
 *   - it is larger than a quarter of a chunk: it gets a chunk of exactly its size, and `current` stays,
 * because its free part is still worth having;
 *   - it is smaller: a new chunk becomes `current`, and what is left of the old one, less than a quarter, is
 * lost. So the memory held is never more than about 4/3 of what was given out, plus one chunk. */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>

enum {
    ALIGNMENT = _Alignof(max_align_t),
    CHUNK_BYTES_MIN = 256
};

struct sl_arena_chunk {
    sl_arena_chunk *next;
    size_t capacity, used; /* bytes of data[] */
    max_align_t data[];
};

void sl_arena_init(sl_arena *arena, const sl_alloc *alloc, sl_arena_sizes sizes)
{
    assert(sizes.chunk_bytes >= CHUNK_BYTES_MIN); /* smaller ones would be mostly chunk head */
    *arena = (sl_arena){ .alloc = alloc, .sizes = sizes };
}

/* What a piece takes away from its chunk, 0 when the limit does not allow it. Empty pieces count too, else a
 * peer could ask for any number of them. */
static size_t rounded(const sl_arena *arena, size_t bytes)
{
    const size_t asked_bytes = bytes == 0 ? 1 : bytes;
    const size_t mask = ALIGNMENT - 1;
    const size_t piece_bytes = (asked_bytes + mask) & ~mask; /* a sum that wraps gives 0, which refuses it */

    return piece_bytes > arena->sizes.limit_bytes - arena->given_bytes ? 0 : piece_bytes;
}

static sl_arena_chunk *chunk_new(sl_arena *arena, size_t capacity)
{
    sl_arena_chunk *chunk;

    if (capacity > SIZE_MAX - sizeof *chunk)
        return NULL;
    chunk = sl_alloc_take(arena->alloc, sizeof *chunk + capacity);
    if (chunk != NULL)
        *chunk = (sl_arena_chunk){ .capacity = capacity };
    return chunk;
}

static void chunk_free(sl_arena *arena, sl_arena_chunk *chunk)
{
    if (chunk != NULL)
        sl_alloc_give(arena->alloc, chunk, sizeof *chunk + chunk->capacity);
}

static void keep_as_other(sl_arena *arena, sl_arena_chunk *chunk)
{
    chunk->next = arena->others;
    arena->others = chunk;
}

/* A chunk with room for the piece, `current` or a new one; NULL when memory is out. */
static sl_arena_chunk *chunk_for(sl_arena *arena, size_t bytes)
{
    const size_t shared_capacity =
        (arena->sizes.chunk_bytes - sizeof(sl_arena_chunk)) & ~(size_t)(ALIGNMENT - 1);
    const bool alone = bytes > shared_capacity / 4;
    sl_arena_chunk *chunk = arena->current;

    if (chunk != NULL && bytes <= chunk->capacity - chunk->used)
        return chunk;
    chunk = chunk_new(arena, alone ? bytes : shared_capacity);
    if (chunk == NULL)
        return NULL;
    if (!alone)
        arena->current = chunk;
    if (!alone && arena->first == NULL)
        arena->first = chunk;
    else
        keep_as_other(arena, chunk);
    return chunk;
}

void *sl_arena_alloc(sl_arena *arena, size_t bytes)
{
    const size_t piece_bytes = rounded(arena, bytes);
    sl_arena_chunk *const chunk = piece_bytes == 0 ? NULL : chunk_for(arena, piece_bytes);
    void *piece;

    if (chunk == NULL)
        return NULL;
    piece = (char *)chunk->data + chunk->used;
    chunk->used += piece_bytes;
    arena->given_bytes += piece_bytes;
    return piece;
}

void *sl_arena_alloc_zero(sl_arena *arena, size_t bytes)
{
    void *piece = sl_arena_alloc(arena, bytes);

    if (piece != NULL)
        memset(piece, 0, bytes);
    return piece;
}

void *sl_arena_copy(sl_arena *arena, const void *data, size_t bytes)
{
    void *piece = sl_arena_alloc(arena, bytes);

    if (piece != NULL && bytes > 0) /* data of no bytes may be NULL, which memcpy() does not take */
        memcpy(piece, data, bytes);
    return piece;
}

char *sl_arena_copy_str(sl_arena *arena, sl_str text)
{
    char *piece = text.bytes == SIZE_MAX ? NULL : sl_arena_alloc(arena, text.bytes + 1);

    if (piece == NULL)
        return NULL;
    if (text.bytes > 0)
        memcpy(piece, text.data, text.bytes);
    piece[text.bytes] = '\0';
    return piece;
}

void sl_arena_reset(sl_arena *arena)
{
    for (sl_arena_chunk *chunk = arena->others, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        chunk_free(arena, chunk);
    }
    arena->others = NULL;
    arena->given_bytes = 0;
    arena->current = arena->first;
    if (arena->first != NULL)
        arena->first->used = 0;
}

void sl_arena_done(sl_arena *arena)
{
    sl_arena_reset(arena);
    chunk_free(arena, arena->first);
    arena->first = arena->current = NULL;
}
