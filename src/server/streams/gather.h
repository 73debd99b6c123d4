/* server/streams/gather.h — events of one append that comes in parts, until it is complete and can be submitted.
 *
 *      message (a view) --> sl_gather_add() --> ... --> events, one array --> the store --> sl_gather_done()
 *
 * What is gathered is a copy, the only one before the journal's own. Its size has two limits. One append may not have more
 * than settings->append_bytes_max, counted as KurrentDB does. And all calls together may not hold more than
 * SL_GATHERED_BYTES_MAX, since a client can begin many appends and end none. Those that hold more than SL_GATHER_SMALL_BYTES
 * must leave the last SL_GATHER_RESERVE_BYTES of that alone, so that a few huge ones never keep out the small ones that are the
 * rule. */
#ifndef SL_SERVER_STREAMS_GATHER_H
#define SL_SERVER_STREAMS_GATHER_H

#include "base/arena.h"
#include "server/host.h"

enum {
    SL_GATHER_SMALL_BYTES = 64 * 1024,
    SL_GATHER_RESERVE_BYTES = 64 * 1024 * 1024, /* a thousand small ones */
    SL_GATHERED_BYTES_MAX =
        256 * 1024 * 1024 + SL_GATHER_RESERVE_BYTES, /* and eight of the largest appends */
};

/* Memory that a client can make the server keep, counted over all calls. */
typedef struct sl_gather_claim {
    sl_host *host;
    uint64_t bytes;
} sl_gather_claim;

/* SL_OK, or SL_ERR_FULL: nothing was added, and somebody else holds too much. */
sl_err sl_gather_claim_add(sl_gather_claim *claim, uint64_t bytes);
void sl_gather_claim_end(sl_gather_claim *claim); /* also right for one that is all zero */

typedef struct sl_gather {
    sl_gather_claim claim;
    sl_arena texts;
    sl_event_in *events;
    uint32_t event_count, event_capacity;
    uint64_t size;         /* of all events, as sl_event_size() counts */
    uint64_t stored_bytes; /* the same, as the store counts */
} sl_gather;

/* Takes no memory yet. */
void sl_gather_init(sl_gather *gather, sl_host *host);

/* Gives back everything. Also right for one that is all zero, and twice. */
void sl_gather_done(sl_gather *gather);

/* A copy that lives as long as what is gathered. SL_OK, SL_ERR_FULL, SL_ERR_NOMEM. */
sl_err sl_gather_text(sl_gather *gather, sl_str text, sl_str *ret_copy);

/* One more event.
 *   SL_OK
 *   SL_ERR_TOO_LARGE  the append would be larger than the settings or the store allow
 *   SL_ERR_FULL       too much is being gathered by all calls together
 *   SL_ERR_NOMEM */
sl_err sl_gather_add(sl_gather *gather, const sl_event_in *event);

#endif
