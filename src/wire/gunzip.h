/* wire/gunzip.h — a compressed message becomes a plain one, and never a bomb.
 *
 * One for each connection: zlib's state and the result are kept from message to message. */
#ifndef SL_WIRE_GUNZIP_H
#define SL_WIRE_GUNZIP_H

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>

typedef struct sl_gunzip sl_gunzip; /* in wire/gunzip.c */

/* Takes no memory for zlib yet. NULL when there is no memory. alloc must live as long. */
sl_gunzip *sl_gunzip_new(const sl_alloc *alloc);
void sl_gunzip_free(sl_gunzip *gunzip);

/* One whole gzip member and nothing behind it. *ret_plain is good until the next call.
 *   SL_OK
 *   SL_ERR_INVALID    damaged, cut off, or followed by something
 *   SL_ERR_TOO_LARGE  more than plain_bytes_max; at most one byte more was produced
 *   SL_ERR_NOMEM */
sl_err sl_gunzip_message(sl_gunzip *gunzip, sl_str compressed, size_t plain_bytes_max, sl_str *ret_plain);

#endif
