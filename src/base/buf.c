/* base/buf.c — how the buffer of buf.h finds room.
 *
 * In this order: the room behind the content; the room in front, by moving the content there; more memory,
 * twice as much each time. Moving comes second only when it pays: at least as many bytes were consumed as
 * have to be moved. When memory cannot grow any more, because of the limit or because there is none, moving
 * is the last way out. */
#include "base/buf.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    CAPACITY_MIN = 64
};

void sl_buf_init(sl_buf *buf, const sl_alloc *alloc, size_t limit_bytes)
{
    *buf = (sl_buf){ .alloc = alloc, .limit_bytes = limit_bytes };
}

void sl_buf_done(sl_buf *buf)
{
    if (buf->memory != NULL)
        sl_alloc_give(buf->alloc, buf->memory, buf->capacity);
    *buf = (sl_buf){ .alloc = buf->alloc, .limit_bytes = buf->limit_bytes };
}

static void move_to_front(sl_buf *buf)
{
    if (buf->start > 0)
        memmove(buf->memory, buf->memory + buf->start, buf->bytes);
    buf->start = 0;
}

/* The smallest doubling that holds `needed` bytes, which are within the limit; the last step is the limit. */
static size_t next_capacity(const sl_buf *buf, size_t needed)
{
    size_t capacity = buf->capacity < CAPACITY_MIN ? CAPACITY_MIN : buf->capacity;

    while (capacity < needed && capacity <= buf->limit_bytes / 2)
        capacity *= 2;
    return capacity < needed || capacity > buf->limit_bytes ? buf->limit_bytes : capacity;
}

static sl_err grow(sl_buf *buf, size_t needed)
{
    const size_t capacity = next_capacity(buf, needed);
    uint8_t *memory;

    move_to_front(buf); /* what was consumed need not be copied into the new memory */
    memory = sl_alloc_resize(buf->alloc, buf->memory, buf->capacity, capacity);
    if (memory == NULL)
        return SL_ERR_NOMEM;
    buf->memory = memory;
    buf->capacity = capacity;
    return SL_OK;
}

/* There is room in front for it, but not behind. Moving little is cheap; moving much again and again is not,
 * so then the memory grows if it can. */
static void use_room_in_front(sl_buf *buf)
{
    const bool may_grow = buf->start < buf->bytes && buf->capacity < buf->limit_bytes;

    if (!may_grow || grow(buf, buf->capacity + 1) != SL_OK)
        move_to_front(buf);
}

sl_err sl_buf_reserve(sl_buf *buf, size_t bytes)
{
    if (bytes > buf->limit_bytes - buf->bytes)
        return SL_ERR_TOO_LARGE;
    if (bytes <= buf->capacity - buf->start - buf->bytes)
        return SL_OK;
    if (bytes > buf->capacity - buf->bytes)
        return grow(buf, buf->bytes + bytes);
    use_room_in_front(buf);
    return SL_OK;
}

sl_err sl_buf_append(sl_buf *buf, const void *data, size_t bytes)
{
    const sl_err err = sl_buf_reserve(buf, bytes);

    if (err != SL_OK || bytes == 0) /* data of no bytes may be NULL, which memcpy() does not take */
        return err;
    memcpy(sl_buf_tail(buf), data, bytes);
    buf->bytes += bytes;
    return SL_OK;
}

sl_err sl_buf_append_u8(sl_buf *buf, uint8_t value)
{
    return sl_buf_append(buf, &value, 1);
}

void sl_buf_consume(sl_buf *buf, size_t bytes)
{
    assert(bytes <= buf->bytes);
    buf->start += bytes;
    buf->bytes -= bytes;
    if (buf->bytes == 0)
        buf->start = 0; /* nothing to move: all of the memory is room again */
}

void sl_buf_clear(sl_buf *buf)
{
    buf->start = buf->bytes = 0;
}

sl_buf sl_buf_take(sl_buf *buf)
{
    const sl_buf taken = *buf;

    sl_buf_init(buf, taken.alloc, taken.limit_bytes);
    return taken;
}
