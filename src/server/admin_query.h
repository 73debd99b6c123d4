/* server/admin_query.h — the text of a question to the admin pages: percent-encoding, and parameters behind the "?". */
#ifndef SL_SERVER_ADMIN_QUERY_H
#define SL_SERVER_ADMIN_QUERY_H

#include "base/arena.h"
#include "base/str.h"

/* "%2F" and friends, and in parameters "+" for a blank. What comes out is UTF-8 without a zero byte, in the arena.
 *   SL_OK, SL_ERR_INVALID, SL_ERR_NOMEM */
sl_err sl_admin_decode(sl_str text, bool plus_is_blank, sl_arena *arena, sl_str *ret_text);

typedef struct sl_admin_parameter {
    const char *name;
    sl_str value;
    bool is_given;
} sl_admin_parameter;

/* Fills those of `parameters` that the query has, "name=value&name=value". NULL, or the sentence for one that is unknown, malformed
 * or there twice. */
const char *sl_admin_parameters(sl_str query, sl_arena *arena, sl_admin_parameter *parameters, size_t count);

/* Does the path fit the pattern? Its parts in capitals, as GROUP in "/v1/groups/STREAM/GROUP", fit anything but nothing, and are
 * given back as they are in the path. */
bool sl_admin_path_fits(const char *pattern, sl_str path, sl_str parts[2]);

#endif
