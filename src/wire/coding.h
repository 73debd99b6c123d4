/* wire/coding.h — how bytes travel in header values: base64, percent signs, and gRPC's way to write a time span.
 *
 * A header value is printable ASCII. Keys that end in "-bin" carry any bytes, as base64. Other values and the
 * status message carry what is not printable as %XX. */
#ifndef SL_WIRE_CODING_H
#define SL_WIRE_CODING_H

#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* Appends base64 without padding, as gRPC recommends. Codes as sl_buf_append(). */
sl_err sl_base64_append(sl_buf *buf, sl_str bytes);

/* Appends the bytes that the text stands for; padding may be there or not.
 *   SL_OK, SL_ERR_INVALID (nothing was appended), SL_ERR_NOMEM, SL_ERR_TOO_LARGE */
sl_err sl_base64_append_decoded(sl_buf *buf, sl_str text);

/* Appends the text with everything below 0x20, '%' and everything from 0x7f up as %XX. A blank at either end is
 * written so too, because HTTP/2 forbids it there. Codes as sl_buf_append(). */
sl_err sl_percent_append(sl_buf *buf, sl_str text);

/* The other way. What is no %XX stays as it is: a message is for people and never worth an error. */
sl_err sl_percent_append_decoded(sl_buf *buf, sl_str text);

/* "10S" and the like: 1 to 8 digits and one of H M S m u n. Never wraps: too much is UINT64_MAX.
 *   SL_OK, SL_ERR_INVALID */
sl_err sl_timeout_parse(sl_str text, uint64_t *ret_ns);

enum {
    SL_TIMEOUT_CHARS_MAX = 10 /* 8 digits, the unit and the closing zero */
};

/* The finest unit in which it fits, rounded up: a deadline must not become earlier on its way. */
void sl_timeout_format(uint64_t timeout_ns, char *ret_text);

#endif
