/* wire/metadata.h — keys and values that come with a call: what both sides call headers and trailers.
 *
 * Keys are lower case. The value of a key that ends in "-bin" is any bytes (base64 on the wire, decoded here);
 * every other value is text. A key may come more than once. */
#ifndef SL_WIRE_METADATA_H
#define SL_WIRE_METADATA_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sl_metadata {
    sl_str key, value;
} sl_metadata;

/* A growing list that owns its text. The memory is kept when it is cleared, for the next call. */
typedef struct sl_metadata_list {
    sl_buf text; /* all keys and values, one behind the other */
    sl_buf rows; /* where each of them stands; offsets, because the text moves when it grows */
} sl_metadata_list;

void sl_metadata_list_init(sl_metadata_list *list, const sl_alloc *alloc);
void sl_metadata_list_done(sl_metadata_list *list);

/* Forgets the content; memory beyond what a usual call needs is given back. */
void sl_metadata_list_clear(sl_metadata_list *list);

size_t sl_metadata_list_count(const sl_metadata_list *list);

/* Good until the list changes. */
sl_metadata sl_metadata_list_at(const sl_metadata_list *list, size_t index);

/* The first value of that key. False when there is none: *ret_value is untouched. */
bool sl_metadata_list_find(const sl_metadata_list *list, sl_str key, sl_str *ret_value);

/* As it is. SL_OK or SL_ERR_NOMEM, and then the list is as it was. */
sl_err sl_metadata_list_add(sl_metadata_list *list, sl_str key, sl_str value);

/* From the wire: "-bin" values are decoded; several in one, with commas between them, become several rows.
 *   SL_OK, SL_ERR_NOMEM, SL_ERR_INVALID (not base64) */
sl_err sl_metadata_list_add_received(sl_metadata_list *list, sl_str key, sl_str value);

/* For the wire: "-bin" values as base64, in others what HTTP/2 does not allow as %XX. SL_OK or SL_ERR_NOMEM. */
sl_err sl_metadata_list_add_sent(sl_metadata_list *list, sl_metadata metadata);

/* May an application send it? Lower-case letters, digits, '_', '-' and '.'; not the names that belong to gRPC
 * and HTTP themselves. */
bool sl_metadata_key_allowed(sl_str key);

#endif
