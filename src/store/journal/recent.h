/* store/journal/recent.h — where the events of a segment are that has no index file yet: the last one, and one that is
 * being sealed.
 *
 * Events of one stream are chained from the newest to the oldest. Every 64th revision is a milestone, and milestones are
 * chained as well, so that a revision is found by a few long steps and some short ones:
 *
 *      prev       0 <- 1 <- 2 <- ... <- 63 <- 64 <- 65 <- ... <- 127 <- 128 <- 129
 *      mile       0 <------------------------ 64 <----------------------128           and the newest one from each
 *
 * Adding touches one number of the stream and nothing of its older events: those are not in the cache any more.
 *
 * Cost: 32 bytes for each event and 8 for each stream of the store (pages that are not touched cost nothing). One thread. */
#ifndef SL_STORE_JOURNAL_RECENT_H
#define SL_STORE_JOURNAL_RECENT_H

#include "store/journal/index.h"

typedef struct sl_recent_node {
    uint64_t revision, position;
    uint32_t stream;     /* its id in the directory */
    uint32_t offset;     /* of the record */
    uint32_t prev, mile; /* numbers of nodes, from 1 on; 0: none. mile: the newest milestone before it */
} sl_recent_node;

typedef struct sl_recent_head {
    uint32_t newest, mile; /* numbers of nodes */
} sl_recent_head;

typedef struct sl_recent {
    sl_recent_node *nodes; /* in the order of positions; the first one is not used */
    size_t node_count, node_capacity;
    sl_recent_head *heads; /* by stream */
    size_t head_capacity;
    sl_index_place *places;
    size_t place_count, place_capacity;
    size_t placed_count; /* places whose frame has ended */
    uint32_t since_place;
} sl_recent;

/* All functions that add give SL_OK or SL_ERR_NOMEM, and then nothing has changed. A recent that is all zero is empty. */
void sl_recent_done(sl_recent *recent);

/* The next record, of any kind. */
sl_err sl_recent_record(sl_recent *recent, uint64_t position, uint32_t offset);

/* And it is this event. */
sl_err sl_recent_event(sl_recent *recent, uint32_t stream, uint64_t revision, uint64_t position,
                       uint32_t offset);

/* The frame of the records since the last call ends here. */
void sl_recent_frame(sl_recent *recent, uint32_t frame_end);

/* The frame that was being built is not: everything from this position on is forgotten. */
void sl_recent_cut(sl_recent *recent, uint64_t position);

typedef struct sl_recent_query {
    uint32_t stream;
    uint64_t revision;
    bool backwards;
    uint64_t below; /* positions from here on are not shown */
} sl_recent_query;

/* As sl_index_find(), with the hash left 0. Returns how many. */
uint32_t sl_recent_find(const sl_recent *recent, const sl_recent_query *query, sl_index_entry *entries,
                        uint32_t max);

/* As sl_index_place_of(); only frames that have ended. */
bool sl_recent_place_of(const sl_recent *recent, uint64_t position, sl_index_place *ret_place);

#endif
