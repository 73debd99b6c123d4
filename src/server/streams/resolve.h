/* server/streams/resolve.h — from a link to the event that it points to.
 *
 * A link is an event of type `$>` whose data is `<revision>@<stream>`. Readers that want links resolved get the target beside
 * the link. One level only: a target that is a link itself is shown as it is. What a reader of the target's stream would not
 * see (deleted, truncated, expired) does not resolve, and neither does what this reader may not read: anybody can write a
 * link to anything, so a link gives no rights (docs/decisions/0013).
 *
 * A resolver keeps the cursor of the last target: links mostly point to one event after the other. */
#ifndef SL_SERVER_STREAMS_RESOLVE_H
#define SL_SERVER_STREAMS_RESOLVE_H

#include "server/access.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_resolver {
    sl_host *host;
    const sl_identity *identity; /* who reads */
    sl_reader_node *reader;      /* and what is run again when rights have come from the disk */
    sl_cursor *cursor;           /* of the stream below; NULL: none is open */
    uint64_t next;               /* the lowest revision that the cursor can still give */
    uint64_t link;               /* position of the link that was asked for last; 0: none */
    sl_event target;             /* the last event that the cursor gave, if has_target */
    bool has_target;
    size_t stream_bytes;
    char stream[SL_STREAM_NAME_BYTES_MAX];
} sl_resolver;

/* Takes no memory; identity and reader stay the caller's. */
void sl_resolver_init(sl_resolver *resolver, sl_host *host, const sl_identity *identity,
                      sl_reader_node *reader);

/* Closes the cursor. Also right for a resolver that is all zero. */
void sl_resolver_done(sl_resolver *resolver);

bool sl_event_is_link(const sl_event *event);

/* The target of a link. It is good until the next call with another link, so that asking twice costs nothing but a look at
 * rights.
 *   SL_OK
 *   SL_ERR_NOT_FOUND  it points to nothing that can be read, or that this reader may read
 *   SL_ERR_INVALID    its data does not begin with a revision: to be shown as an event like any other
 *   SL_ERR_AGAIN      the target or the rights of its stream are on their way: ask again after sl_store_poll()
 *   SL_ERR_NOMEM, SL_ERR_IO, SL_ERR_CORRUPT */
sl_err sl_resolver_find(sl_resolver *resolver, const sl_event *link, uint64_t now_ns, sl_event *ret_target);

#endif
