/* base/buf.h — bytes on their way: appended at the back, consumed at the front, and limited in between.
 *
 *      memory
 *      |  consumed  |  content (bytes)  |  room  |
 *      0          start                      capacity
 *
 * The room that consuming leaves in front is used again when the back is full. Content moves there only when
 * at least as much was consumed, so a byte is moved about once, however small the steps.
 *
 * limit_bytes is a limit on the content and on the memory. Every function that can fail leaves the content as
 * it was. All pointers into the content are good until the next call that may add. */
#ifndef SL_BASE_BUF_H
#define SL_BASE_BUF_H

#include "base/alloc.h"
#include "base/err.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_buf {
    const sl_alloc *alloc;
    uint8_t *memory;
    size_t capacity, start, bytes;
    size_t limit_bytes;
} sl_buf;

/* Takes no memory yet. alloc must live as long as the buffer. */
void sl_buf_init(sl_buf *buf, const sl_alloc *alloc, size_t limit_bytes);

/* Frees the memory. Also right for a buffer that is all zero. */
void sl_buf_done(sl_buf *buf);

/* The content: buf->bytes bytes. NULL only while no memory was taken. */
static inline uint8_t *sl_buf_data(const sl_buf *buf)
{
    return buf->memory == NULL ? NULL : buf->memory + buf->start;
}

/* Makes room for `bytes` more, so that appending them cannot fail.
 *   SL_OK
 *   SL_ERR_TOO_LARGE  the content would pass limit_bytes
 *   SL_ERR_NOMEM */
sl_err sl_buf_reserve(sl_buf *buf, size_t bytes);

/* All of it or nothing. Codes as sl_buf_reserve(). data must not be in the buffer. */
sl_err sl_buf_append(sl_buf *buf, const void *data, size_t bytes);
sl_err sl_buf_append_u8(sl_buf *buf, uint8_t value);

/* For writing in place: reserve, write behind the content at sl_buf_tail(), then say how many bytes were
 * written, at most as many as were reserved. */
static inline uint8_t *sl_buf_tail(sl_buf *buf)
{
    assert(buf->memory != NULL); /* else nothing was reserved */
    return buf->memory + buf->start + buf->bytes;
}

static inline void sl_buf_added(sl_buf *buf, size_t bytes)
{
    assert(bytes <= buf->capacity - buf->start - buf->bytes);
    assert(bytes <= buf->limit_bytes - buf->bytes);
    buf->bytes += bytes;
}

/* Drops bytes at the front, at most buf->bytes. O(1), fails never. */
void sl_buf_consume(sl_buf *buf, size_t bytes);

/* Drops the content, keeps the memory. */
void sl_buf_clear(sl_buf *buf);

/* Moves content and memory out: the result is the caller's, to be ended with sl_buf_done(). buf is empty
 * afterwards and goes on with the same allocator and limit. */
sl_buf sl_buf_take(sl_buf *buf);

#endif
