/* cli/json_value.h — JSON that comes from outside: is it any, and how is it shown on one line.
 *
 * Nothing is turned into numbers or trees, so nothing is rounded or put into another order: what goes out is what came
 * in, without the blanks between its parts. */
#ifndef SL_CLI_JSON_VALUE_H
#define SL_CLI_JSON_VALUE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

enum {
    SL_JSON_DEPTH_MAX = 256 /* of arrays and objects in each other; deeper is not taken for JSON */
};

/* Exactly one value as RFC 8259 has it, in UTF-8, with nothing but blanks around it. */
bool sl_json_is_value(sl_str text);

/* The same, and it is an object. */
bool sl_json_is_object(sl_str text);

/* Adds the value, which must be one, without blanks and line ends. Characters that a terminal would obey are written as
 * \u00XX, which is the same value. SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE. */
sl_err sl_json_compact(sl_str text, sl_buf *into);

#endif
