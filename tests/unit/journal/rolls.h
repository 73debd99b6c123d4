/* tests/unit/journal/rolls.h — a disk with rolls on it, and a model of what they have to say.
 *
 * The model is a table of streams, changed by each event that is put into a segment. What the chain of rolls says is loaded
 * into a second table, as a store does when it opens, and the two are compared. */
#ifndef SL_TESTS_UNIT_JOURNAL_ROLLS_H
#define SL_TESTS_UNIT_JOURNAL_ROLLS_H

#include "base/support.h"
#include "made_segment.h"
#include "store/faulty/faulty.h"
#include "store/journal/roll.h"

enum {
    STREAMS_MAX = 600, /* each with its metadata stream */
    SEGMENTS_MAX = 40,
};

typedef struct word {
    bool is_there;
    uint64_t last;
    sl_retention keep;
} word;

typedef struct rolls {
    sl_faulty *faulty;
    sl_disk *disk;
    uint64_t segment_count, next_position;
    word model[2 * STREAMS_MAX]; /* a stream, then its metadata stream */
    word loaded[2 * STREAMS_MAX];
} rolls;

void rolls_begin(rolls *r);
void rolls_end(rolls *r);

/* Some names are long, so that parts get full. */
sl_str rolls_name(size_t word_number, char memory[SL_STREAM_NAME_BYTES_MAX]);

/* The next segment, with its roll; or only the roll, which is much faster. */
void rolls_add_segment(rolls *r, dice *d, size_t stream_count, size_t event_count);
void rolls_add_roll(rolls *r, dice *d, size_t stream_count, size_t event_count);

/* Reads the chain from segment `first` on. */
sl_err rolls_load(rolls *r, uint64_t first);
bool rolls_like_model(const rolls *r);

/* Files on the disk that are rolls, whole or not. */
unsigned rolls_count(rolls *r);

#endif
