/* store/metadata.h — what the JSON in a $$ stream means for reading its stream.
 *
 *      {"$maxCount": 100, "$maxAge": 3600, "$tb": 42, "$acl": {...}, "anything": "else"}
 *
 * The last event of the $$ stream counts, whatever its type. What is no JSON object means the same as {}. A value that
 * is no whole number or out of its bounds counts as not there; of two members with one name the last counts. Peers
 * write this text: it is bounded by SL_METADATA_BYTES_MAX, and its depth by the parser (1,000 levels).
 *
 * Any thread. (cJSON keeps the place of its last error in a global, so texts are parsed one after the other.) */
#ifndef SL_STORE_METADATA_H
#define SL_STORE_METADATA_H

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

typedef struct sl_retention {
    uint64_t max_count;       /* the last so many events are shown; 0: all */
    uint64_t max_age_s;       /* events that are not older are shown; 0: all */
    uint64_t truncate_before; /* events from this revision on are shown. SL_REVISION_MAX: soft-deleted */
} sl_retention;

sl_retention sl_metadata_parse(sl_str json);

/* The object that `json` is, to be freed with cJSON_Delete(); NULL when it is none, or longer than metadata may be. Also for
 * others that read JSON while a store is open: they must parse behind the same lock. */
struct cJSON *sl_metadata_object(sl_str json);

/* What the soft delete of a stream writes. */
#define SL_METADATA_DELETED "{\"$tb\":9223372036854775807}"

/* Appends `json` with "$tb" set to truncate_before; every other member stays as it was written, byte by byte, because
 * numbers would not survive a round trip through the parser. What is no JSON object counts as {}.
 * SL_OK or what sl_buf_append() can give. */
sl_err sl_metadata_undelete(sl_str json, uint64_t truncate_before, sl_buf *out);

/* "$$x" is the metadata stream of "x". False when `stream` is no metadata stream: *ret_owner is untouched. */
bool sl_metadata_owner(sl_str stream, sl_str *ret_owner);

#endif
