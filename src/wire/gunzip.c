/* wire/gunzip.c — zlib behind one function, with our allocator. */
#include "wire/gunzip.h"

#include "base/cleanup.h"
#include "wire/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <zlib.h>

struct sl_gunzip {
    sl_sized memory; /* of zlib */
    z_stream stream;
    bool ready; /* zlib's state was taken */
    sl_buf plain;
};

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* the largest window; 16 more asks zlib for gzip's head and checksum */
    STEP_BYTES_MIN = 1024,
    KEPT_BYTES_MAX = 256 * 1024 /* one huge message must not cost its memory for the rest of the connection */
};

static void *take(void *ctx, uInt count, uInt bytes)
{
    return sl_sized_take_zero(ctx, count, bytes);
}

static void give(void *ctx, void *memory)
{
    sl_sized_give(ctx, memory);
}

sl_gunzip *sl_gunzip_new(const sl_alloc *alloc)
{
    sl_gunzip *gunzip = sl_alloc_take(alloc, sizeof *gunzip);

    if (gunzip == NULL)
        return NULL;
    *gunzip = (sl_gunzip){ .ready = false };
    sl_sized_init(&gunzip->memory, alloc);
    sl_buf_init(&gunzip->plain, alloc, SIZE_MAX / 4);
    return gunzip;
}

void sl_gunzip_free(sl_gunzip *gunzip)
{
    if (gunzip == NULL)
        return;
    if (gunzip->ready)
        inflateEnd(&gunzip->stream);
    sl_buf_done(&gunzip->plain);
    sl_alloc_give(gunzip->memory.alloc, gunzip, sizeof *gunzip);
}

static bool prepare(sl_gunzip *gunzip)
{
    if (gunzip->plain.capacity > KEPT_BYTES_MAX)
        sl_buf_done(&gunzip->plain);
    sl_buf_clear(&gunzip->plain);
    if (gunzip->ready)
        return inflateReset(&gunzip->stream) == Z_OK;
    gunzip->stream = (z_stream){ .zalloc = take, .zfree = give, .opaque = &gunzip->memory };
    gunzip->ready = inflateInit2(&gunzip->stream, GZIP_WINDOW_BITS) == Z_OK;
    return gunzip->ready;
}

/* How much room to make for the next step: as much as there is already, one byte beyond the limit at most. */
static size_t step_bytes(const sl_gunzip *gunzip, size_t plain_bytes_max)
{
    const size_t wish = sl_max_u64(gunzip->plain.bytes, STEP_BYTES_MIN);
    const size_t left = plain_bytes_max - gunzip->plain.bytes;

    return wish < left ? wish : left + 1;
}

static sl_err inflate_step(sl_gunzip *gunzip, size_t plain_bytes_max, bool *ret_ended)
{
    const size_t step = step_bytes(gunzip, plain_bytes_max);
    int result;

    if (sl_buf_reserve(&gunzip->plain, step) != SL_OK)
        return SL_ERR_NOMEM;
    gunzip->stream.next_out = sl_buf_tail(&gunzip->plain);
    gunzip->stream.avail_out = (uInt)step;
    result = inflate(&gunzip->stream, Z_NO_FLUSH);
    sl_buf_added(&gunzip->plain, step - gunzip->stream.avail_out);
    if (gunzip->plain.bytes > plain_bytes_max)
        return SL_ERR_TOO_LARGE;
    if (result == Z_STREAM_END) {
        *ret_ended = true;
        return gunzip->stream.avail_in == 0 ? SL_OK : SL_ERR_INVALID;
    }
    if (result == Z_MEM_ERROR)
        return SL_ERR_NOMEM;
    /* With all input used and room left over, the end is missing. */
    return result == Z_OK && (gunzip->stream.avail_in > 0 || gunzip->stream.avail_out == 0) ? SL_OK
                                                                                            : SL_ERR_INVALID;
}

sl_err sl_gunzip_message(sl_gunzip *gunzip, sl_str compressed, size_t plain_bytes_max, sl_str *ret_plain)
{
    bool ended = false;
    sl_err err = prepare(gunzip) ? SL_OK : SL_ERR_NOMEM;

    assert(compressed.bytes <= UINT32_MAX && plain_bytes_max < UINT32_MAX);
    gunzip->stream.next_in = (Bytef *)(uintptr_t)compressed.data; /* zlib only reads it */
    gunzip->stream.avail_in = (uInt)compressed.bytes;
    while (err == SL_OK && !ended)
        err = inflate_step(gunzip, plain_bytes_max, &ended);
    if (err == SL_OK)
        *ret_plain = (sl_str){ (const char *)sl_buf_data(&gunzip->plain), gunzip->plain.bytes };
    return err;
}
