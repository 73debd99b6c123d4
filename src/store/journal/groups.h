/* store/journal/groups.h — which groups there are, and from which position on their records count.
 *
 * Records of groups stand in the log and nowhere else. A snapshot (STATE records, all that a group would emit to be loaded
 * again) makes everything before it superfluous; it is written when many records have gathered, and for every group when a
 * new segment was begun. Then a GROUPS_FROM record says in which segment the oldest start of a group is: opening reads
 * from there, which is normally the last segment.
 *
 *      group 1    create r r r r r | state state r r r r         the state is its start
 *      group 2       create r r    |   state r update r          |: a new segment
 *
 * An update changes the definition and nothing else: a start before it stays one, and who loads the group gets the newest
 * definition there. A state brings along the definition that holds when it is written, so updates before it are as
 * superfluous as records.
 *
 * One thread. */
#ifndef SL_STORE_JOURNAL_GROUPS_H
#define SL_STORE_JOURNAL_GROUPS_H

#include "base/list.h"
#include "base/map.h"
#include "store/journal/format.h"
#include "store/store.h"

typedef struct journal_group {
    sl_map_node node;
    sl_list in_all, in_due;
    uint64_t number;
    char *definition;
    size_t definition_bytes;
    uint64_t start; /* position of its creation, or of the first part of its newest state */
    uint64_t
        state_end; /* position after the last part of that; start + 1 when it is the creation. 0: replay has
                              * only seen a beginning yet */
    uint64_t unfinished; /* replay: position of the first part of a state that is not complete; 0: none */
    uint64_t unfinished_number, unfinished_bytes; /* the segment that this is in, and what was seen of it */
    uint64_t record_count;                        /* since start */
    uint64_t state_bytes;                         /* of its newest state */
    uint64_t started_number;                      /* number of the segment that `start` is in */
} journal_group;

typedef enum journal_deed {
    JOURNAL_CREATED,
    JOURNAL_DELETED,
    JOURNAL_UPDATED,
} journal_deed;

typedef struct journal_undo { /* what the batch in the making has done */
    journal_deed deed;
    journal_group *group;
    char *definition; /* UPDATED: the one before */
    size_t definition_bytes;
} journal_undo;

typedef struct journal_groups {
    const sl_alloc *alloc;
    sl_hash_seed seed;
    sl_map map;
    journal_group *newest_found; /* the next record is usually of the same; NULL: none */
    sl_list all;                 /* in the order of creation */
    sl_list due;                 /* have gathered so many records that a state is wanted */
    journal_undo *undo;
    size_t undo_count, undo_capacity;
} journal_groups;

/* SL_OK or SL_ERR_NOMEM. */
sl_err journal_groups_init(journal_groups *groups, const sl_alloc *alloc, sl_hash_seed seed);
void journal_groups_done(journal_groups *groups); /* also right for one that is all zero */

/* An op of a batch. SL_OK, SL_ERR_EXISTS, SL_ERR_NOT_FOUND or SL_ERR_NOMEM, then nothing has changed. */
sl_err journal_groups_take(journal_groups *groups, const sl_op *op, uint64_t position, uint64_t segment);
void journal_groups_keep(journal_groups *groups); /* the batch is written */
void journal_groups_rollback(
    journal_groups *groups); /* it is not; counts may stay too high, which does no harm */

/* A record is read again after a restart, in the order of positions. SL_OK, SL_ERR_NOMEM, SL_ERR_CORRUPT. */
sl_err journal_groups_replay(journal_groups *groups, const sl_record_view *record, uint64_t segment);

/* A state of the group was written: at [start, end), begun in this segment. */
void journal_groups_stated(journal_group *group, uint64_t start, uint64_t end, uint64_t segment);

/* The segment from which on records of groups are needed: that of the oldest start, or `segment` without groups. */
uint64_t journal_groups_from(const journal_groups *groups, uint64_t segment);

/* A record that is needed to load its group goes to the loader; any other is passed over. The first error of the loader, or
 * SL_ERR_CORRUPT. */
sl_err journal_groups_load(const journal_groups *groups, const sl_record_view *record,
                           const sl_loader *loader);

static inline bool journal_is_group_record(uint8_t kind)
{
    return (kind >= SL_RECORD_GROUP_CREATE && kind <= SL_RECORD_GROUP_STATE) ||
           kind == SL_RECORD_GROUP_UPDATE;
}

#endif
