/* tests/faults/judge.h — compares a store with a model: every byte, every stream, every group. */
#ifndef SL_TESTS_FAULTS_JUDGE_H
#define SL_TESTS_FAULTS_JUDGE_H

#include "world.h"

typedef enum judge_mood {
    JUDGE_STRICT,
    JUDGE_DAMAGED, /* something on the disk was changed: SL_ERR_CORRUPT is a right answer, wrong data is not */
    JUDGE_FAULTS,  /* a read may fail: so is SL_ERR_IO */
} judge_mood;

typedef struct judge_groups { /* what sl_store_load() gave */
    model_group groups[MODEL_GROUPS];
    uint32_t snapshot_left[MODEL_GROUPS]; /* records of a snapshot that are still to come */
} judge_groups;

/* SL_OK, or what the mood allows. */
sl_err judge_load(world *w, judge_groups *ret_groups, judge_mood mood);
bool judge_same_groups(const judge_groups *loaded, const model *m);

/* What the store asks a group for: its state, as records that judge_load() understands. */
void judge_snapshot(const model_group *group, sl_sink sink);

/* Which event of the model this is, as an index. Every byte of it is right, and it stands where it was before. */
uint32_t judge_event(const model *m, const sl_event *event);

/* Events between two that were read are missing: only those that a scavenge may have dropped. */
void judge_gap(const model *m, uint32_t from, uint32_t to);

/* Reads everything and notes which events of the model are there: present[index]. SL_OK, or what the mood allows. */
sl_err judge_present(world *w, const model *m, bool *present, judge_mood mood);

/* All events by position in both directions; w->now says which. True: every one was read. False: something is damaged. */
bool judge_everything(world *w, judge_mood mood);

/* One stream in both directions, and what is known of it. */
bool judge_stream(world *w, int stream, judge_mood mood);

/* All of it. */
bool judge_all(world *w, judge_mood mood);

/* The next event of a cursor, however long that takes. */
sl_err judge_next(world *w, sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count);

#endif
