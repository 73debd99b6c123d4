/* store/journal/scavenge.h — rewriting one sealed segment without what is not needed any more.
 *
 * Pure work on files, for the background thread: what may go was decided before and stands in a table. The new file takes
 * the place of the old one by a rename, so that a crash leaves the one or the other. */
#ifndef SL_STORE_JOURNAL_SCAVENGE_H
#define SL_STORE_JOURNAL_SCAVENGE_H

#include "store/journal/scan.h"
#include "store/store.h"

/* Of one stream: what may go. Streams that are not in the table keep everything. */
typedef struct sl_doomed {
    uint64_t hash; /* sl_stream_hash() */
    sl_str name;
    uint64_t first;     /* revisions below this */
    uint64_t last;      /* never this one */
    uint64_t max_age_s; /* 0: whatever its age */
} sl_doomed;

typedef struct sl_doom {
    const sl_doomed *streams; /* sorted by hash */
    size_t stream_count;
    uint64_t now_ns;
    uint64_t groups_from; /* records of groups in segments before this one */
} sl_doom;

void sl_doom_sort(sl_doomed *streams, size_t stream_count);

/* What a segment has of each: dead is what may go. */
typedef struct sl_dead {
    uint64_t bytes, live_bytes;
    uint64_t events, records;
    bool has_group_records; /* among the dead */
} sl_dead;

/* SL_OK, SL_ERR_CORRUPT (*ret_offset is where), SL_ERR_IO, SL_ERR_NOMEM. */
sl_err sl_scavenge_count(const sl_segment_ref *segment, const sl_doom *doom, sl_dead *ret_dead,
                         uint64_t *ret_offset);

/* Writes the segment anew and gives it its name. *ret_file is the new one, *ret_header what it says. Codes as above, and
 * SL_ERR_NO_SPACE: the old one is as it was. */
sl_err sl_scavenge_rewrite(sl_disk *disk, const sl_segment_ref *segment, const sl_doom *doom,
                           const sl_dead *dead, sl_file **ret_file, sl_segment_header *ret_header,
                           uint64_t *ret_offset);

#endif
