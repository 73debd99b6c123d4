/* base/json_text.h — is this JSON? Asked of what comes from outside and goes on as it is: nothing is turned into numbers or trees, so
 * nothing is rounded or put into another order. */
#ifndef SL_BASE_JSON_TEXT_H
#define SL_BASE_JSON_TEXT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SL_JSON_TEXT_DEPTH_MAX = 512 /* of arrays and objects in each other, for any caller */
};

/* Exactly one value as RFC 8259 has it, in UTF-8, with nothing but blanks around it, and nested at most depth_max deep (at most
 * SL_JSON_TEXT_DEPTH_MAX). Line ends then stand between its parts only: those inside of its texts are escaped. */
bool sl_json_text_is_value(sl_str text, size_t depth_max);

/* How many bytes at the front stand for themselves inside of the quotation marks of a JSON text: ASCII without control characters,
 * quotation mark and backslash. DEL is one of them. */
size_t sl_json_text_plain_bytes(sl_str text);

#endif
