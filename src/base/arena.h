/* base/arena.h — memory with one lifetime: taken piece by piece, given back all at once.
 *
 * For everything that lives as long as one request: nothing is freed on its own, so no error path can forget
 * it. Memory comes in chunks; a piece too large to share a chunk gets one of its own. limit_bytes is what one
 * peer can make an arena hand out. */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/alloc.h"
#include "base/str.h"

#include <stddef.h>

typedef struct sl_arena_sizes {
    size_t chunk_bytes; /* what is taken from the allocator at a time */
    size_t limit_bytes; /* sum of all pieces, each rounded up to the alignment of max_align_t */
} sl_arena_sizes;

typedef struct sl_arena_chunk sl_arena_chunk; /* in base/arena.c */

typedef struct sl_arena {
    const sl_alloc *alloc;
    sl_arena_sizes sizes;
    sl_arena_chunk *current; /* pieces are cut from this one */
    sl_arena_chunk *first;   /* of chunk_bytes; a reset keeps it, so that small requests allocate nothing */
    sl_arena_chunk *others;  /* all but `first`, newest first */
    size_t given_bytes;      /* never above sizes.limit_bytes */
} sl_arena;

/* Takes no memory yet. alloc must live as long as the arena. chunk_bytes must be at least 256. */
void sl_arena_init(sl_arena *arena, const sl_alloc *alloc, sl_arena_sizes sizes);

/* `bytes` bytes aligned for any type, valid until reset or done. NULL when the limit would be passed or
 * memory is out; the arena stays usable and a smaller piece may still fit. A size of 0 gives a pointer that
 * is not NULL. */
void *sl_arena_alloc(sl_arena *arena, size_t bytes);
void *sl_arena_alloc_zero(sl_arena *arena, size_t bytes);

/* A copy of the bytes, or NULL as above. */
void *sl_arena_copy(sl_arena *arena, const void *data, size_t bytes);

/* A copy of the text with a closing zero, or NULL as above. */
char *sl_arena_copy_str(sl_arena *arena, sl_str text);

/* Forgets all pieces, gives back all chunks but the first. */
void sl_arena_reset(sl_arena *arena);

/* Gives back everything. Also right for an arena that was only initialised, and for one that is all zero. */
void sl_arena_done(sl_arena *arena);

#endif
