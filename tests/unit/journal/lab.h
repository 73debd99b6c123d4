/* tests/unit/journal/lab.h — a store on a simulated disk, and short words for what its tests do with it. */
#ifndef SL_TESTS_UNIT_JOURNAL_LAB_H
#define SL_TESTS_UNIT_JOURNAL_LAB_H

#include "../test.h"
#include "store/faulty/faulty.h"

typedef struct lab {
    sl_faulty *disk;
    sl_store *store;
    sl_journal_options options;
    char words[1024]; /* what opening had to say */
    sl_text report;
    sl_err err; /* of opening */
    uint64_t next_id;
} lab;

/* A new disk; 0: segments of 64 KB. */
lab lab_open(uint64_t segment_bytes);
void lab_open_again(lab *w); /* w->err and w->words say how it went */
void lab_reopen(lab *w);     /* closed in order, and it must open */
void lab_close(lab *w);

extern const sl_store_setup lab_setup;

typedef struct answer {
    bool is_there;
    sl_err err;
} answer;

void lab_note_answer(void *answer, const sl_commit *commit);

/* Waits for the descriptor and polls; or does not wait for long, after ending a turn. */
void lab_wait_once(lab *w);
void lab_turn_once(lab *w);

/* Submits, ends the turn, waits for the answer. */
sl_err lab_commit(lab *w, const sl_op *op);
sl_err lab_append(lab *w, const char *stream, size_t data_bytes); /* one event of zeros, at most 8 MB */
void lab_append_many(lab *w, unsigned count); /* 500 bytes each, to the streams s0 to s9 */

/* Reads to the end; AGAIN is waited for and counted. */
uint32_t lab_count(lab *w, const sl_read *how, sl_err *ret_ended, uint32_t *ret_again);
uint32_t lab_count_all(lab *w);

typedef struct scavenged {
    bool is_there;
    sl_scavenged result;
} scavenged;

void lab_note_scavenged(void *scavenged, const sl_scavenged *result);

typedef struct files {
    unsigned segments, indexes, rolls;
    char index[64], segment[64]; /* the first of each */
} files;

files lab_files_of(lab *w);

#endif
