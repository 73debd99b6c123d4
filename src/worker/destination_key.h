/* worker/destination_key.h — which destination a message belongs to, as text. For destination.c and its tests. */
#ifndef SL_WORKER_DESTINATION_KEY_H
#define SL_WORKER_DESTINATION_KEY_H

#include "worker/destination.h"

/* Where the text of a key is put that stands in JSON. */
typedef struct sl_key_room {
    char bytes[SL_DESTINATION_KEY_BYTES_MAX + 1];
} sl_key_room;

/* The key of a message, at most SL_DESTINATION_KEY_BYTES_MAX bytes of it: two keys that are alike for so long share a destination.
 * Good as long as room and message. Whatever is no text, number or truth value, or cannot be read as JSON, is the empty key. */
sl_str sl_destination_key_of(const sl_destination_rules *rules, const sl_job_message *message,
                             sl_key_room *room);

#endif
