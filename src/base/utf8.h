/* base/utf8.h — is this UTF-8? Asked for each name that a peer sends and for each character of a log line. */
#ifndef SL_BASE_UTF8_H
#define SL_BASE_UTF8_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length in bytes (1 to 4) of the character at the front of `text`, and its number. 0 when there is none: the
 * text is empty, or the bytes are no shortest form, a surrogate, above U+10FFFF, or broken off. Then
 * *ret_code is untouched. */
size_t sl_utf8_first(sl_str text, uint32_t *ret_code);

bool sl_utf8_valid(sl_str text);

#endif
