/* server/groups/names.h — what consumers are called, outside and inside: numbers made of names; and streams of parked messages.
 *
 * Leases and rules outlive a process, and the numbers of who holds them or is named by them are in the records. So the same
 * name gives the same number in every process and on every machine: the seed is no secret and never changes. */
#ifndef SL_SERVER_GROUPS_NAMES_H
#define SL_SERVER_GROUPS_NAMES_H

#include "base/str.h"
#include "base/uuid.h"

enum {
    SL_CONSUMER_NAME_BYTES_MAX = 256,
};

/* As much of a name as counts, in lists as in the numbers below: the name of a connection may be longer. Cut between characters. */
sl_str sl_consumer_name_of(sl_str given);

/* The session of a consumer. The user belongs to it, so that nobody takes over what another user's consumer holds by
 * taking its name (S1.34). */
sl_uuid sl_session_of(sl_str user, sl_str consumer_name);

/* What operators stop consumers by (sl_join.tags); never 0. */
uint64_t sl_tag_of_name(sl_str consumer_name);
uint64_t sl_tag_of_label(sl_str key, sl_str value);

/* The stream of a group's parked messages, PREFIX STREAM::GROUP SUFFIX, as KurrentDB calls it. A name that does not fit is cut. */
#define SL_PARKED_PREFIX "$persistentsubscription-"
#define SL_PARKED_SUFFIX "-parked"
void sl_parked_stream_of(const char *group_key, char *name, size_t name_bytes);

/* What a pinned strategy keeps together: the name of a stream, or a correlation id. */
uint64_t sl_key_of(sl_str text);

#endif
