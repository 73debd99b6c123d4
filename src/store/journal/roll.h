/* store/journal/roll.h — which streams there are, as files: NNNNNNNNNNNNNNNN.roll.
 *
 *      segment   1      2      3      4      5      6 (open)
 *      roll                   [1..3]  [4]    [5]
 *
 * The roll of a segment says for each stream with an event in it: its name, the revision of its last event there, and for a
 * $$ stream what its last event hides. A roll may cover several segments: the newest word on each stream counts. Opening a
 * store loads one that begins at the first segment and then the newer ones, oldest first, and knows every stream without
 * reading a segment.
 *
 * Rolls are merged in the background, from files alone, when the newer ones have together half as many entries as the
 * large one: so opening reads at most about one and a half times what it needs. A roll is a cache as an index is: missing
 * or damaged, it is made from segments. Only a merge removes one, and not before it is covered by another: that of a segment
 * which was dropped still counts. */
#ifndef SL_STORE_JOURNAL_ROLL_H
#define SL_STORE_JOURNAL_ROLL_H

#include "store/journal/scan.h"
#include "store/metadata.h"

typedef struct sl_roll_entry {
    sl_str name;
    uint64_t last;    /* SL_REVISION_MAX: tombstoned */
    bool is_metadata; /* a $$ stream: `keep` is what it says about its stream */
    sl_retention keep;
} sl_roll_entry;

typedef struct sl_roll_info {
    uint64_t from, to; /* segments that it covers */
    uint64_t entry_count;
} sl_roll_info;

/* The roll of one segment, written durably, in place of whatever roll has this number. Codes as sl_index_build(). */
sl_err sl_roll_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset);

/* SL_OK, SL_ERR_NOT_FOUND, SL_ERR_CORRUPT, SL_ERR_VERSION, SL_ERR_IO, SL_ERR_NOMEM. Only the header is read. */
sl_err sl_roll_look(sl_disk *disk, sl_uuid store, uint64_t number, sl_roll_info *ret_info);

/* All entries, in the order of (hash, name). What is given is good during the call. Codes as sl_roll_look(), and the first
 * error of visit. After SL_ERR_CORRUPT some entries may have been given: whoever builds from them begins anew. */
typedef sl_err sl_roll_fn(void *ctx, const sl_roll_entry *entry);
sl_err sl_roll_each(sl_disk *disk, sl_uuid store, uint64_t number, sl_roll_fn *visit, void *ctx);

/* The rolls that together know every stream of the segments from first_segment up to `number`, oldest first: load them in
 * this order, and what comes later counts. */
typedef struct sl_roll_chain {
    sl_roll_info *rolls;
    size_t count, capacity;
} sl_roll_chain;

/* SL_OK, SL_ERR_NOMEM, or why a roll of the chain can not be had, as sl_roll_look(): *ret_number says which one. Make it from
 * its segment (then it covers that one alone) and ask again. Only headers are read. */
sl_err sl_roll_chain_find(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number,
                          sl_roll_chain *ret_chain, uint64_t *ret_number);
void sl_roll_chain_done(sl_roll_chain *chain); /* also right for one that is all zero */

/* Makes the roll `number` cover what it and the rolls before it cover, back to first_segment, when all of them are there;
 * then removes all rolls before it. Streams through the files: memory does not grow with the number of streams. Durable
 * before anything is removed; wherever it is cut short, the chain is complete and right, and the next merge removes what
 * was left behind. Codes as sl_roll_look(), and SL_ERR_NO_SPACE. */
sl_err sl_roll_merge(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number);

/* True when the rolls up to `number` are worth merging: those behind the one that begins at first_segment have together at
 * least half as many entries as it. False also when one is missing. */
bool sl_roll_is_due(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number);

#endif
