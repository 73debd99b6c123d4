/* wire/memory.h — memory for libraries that do not remember how large a block was when they give it back.
 *
 * nghttp2 and zlib want malloc() and free(); our allocators want sizes. Each block gets a head that holds its
 * size. All blocks of one owner are in a ring, because nghttp2 1.52 is not consistent any more after some failed
 * allocations (a stream keeps a frame that was freed), and deleting its session would free it again: then the ring
 * is emptied instead. The spares are memory that one call no longer needs and the next one does: a connection that streams
 * allocates nothing, and a call that is silent holds nothing. */
#ifndef SL_WIRE_MEMORY_H
#define SL_WIRE_MEMORY_H

#include "base/alloc.h"
#include "base/buf.h"
#include "base/list.h"

#include <stddef.h>

typedef struct sl_sized {
    const sl_alloc *alloc;
    sl_list blocks;
} sl_sized;

void sl_sized_init(sl_sized *sized, const sl_alloc *alloc);
void *sl_sized_take(sl_sized *sized, size_t bytes);
void *sl_sized_take_zero(sl_sized *sized, size_t count, size_t bytes);
void *sl_sized_resize(sl_sized *sized, void *memory, size_t bytes);
void sl_sized_give(sl_sized *sized, void *memory);

/* Gives all blocks back that are still out. */
void sl_sized_clear(sl_sized *sized);

enum {
    SL_SPARE_COUNT_MAX = 16,
    SL_SPARE_BYTES_MAX = 4 << 20, /* of one connection, until it is idle */
    SL_SPARE_BYTES_QUIET =
        64 * 1024 /* the same, of one that has sent nothing for a second: more is given back */
};

typedef struct sl_spares {
    const sl_alloc *alloc;
    struct {
        uint8_t *memory;
        size_t bytes;
    } blocks[SL_SPARE_COUNT_MAX];
    size_t count, bytes;
} sl_spares;

void sl_spares_init(sl_spares *spares, const sl_alloc *alloc);

/* Gives a spare block to a buffer that has no memory. Does nothing when there is none or the buffer has some. */
void sl_spares_lend(sl_spares *spares, sl_buf *buf);

/* Takes the memory of a buffer, and its content with it. */
void sl_spares_collect(sl_spares *spares, sl_buf *buf);

/* Gives all spare memory back. */
void sl_spares_clear(sl_spares *spares);

#endif
