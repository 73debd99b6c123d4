/* tests/faults/draw.h — what the next batch is, from dice and the model alone: whoever has both knows what another process
 * has sent. */
#ifndef SL_TESTS_FAULTS_DRAW_H
#define SL_TESTS_FAULTS_DRAW_H

#include "dice.h"
#include "model.h"
#include "text.h"

enum {
    DRAW_OPS_MAX = 5
};

typedef enum draw_what {
    DRAW_ANYTHING,
    DRAW_APPENDS, /* one event that nothing speaks against */
    DRAW_RECORDS, /* one record of a group; the first time its creation */
} draw_what;

typedef struct draw {
    dice d;
    draw_what what;
    uint64_t next_number;  /* of events, ops and records: each is used once, or again on purpose */
    uint64_t fresh_number; /* from here on they were first used in this life of the store */
    uint32_t bytes_max;    /* of the data of one batch */
} draw;

typedef struct drawn { /* a batch, and the memory of its texts */
    sl_durability durability;
    uint32_t op_count;
    model_op ops[DRAW_OPS_MAX];
    sl_op store_ops[DRAW_OPS_MAX];
    sl_effect records[DRAW_OPS_MAX][MODEL_IDS_MAX];
    sl_event_in events[DRAW_OPS_MAX][MODEL_IDS_MAX];
    char definitions[DRAW_OPS_MAX][TEXT_DEFINITION_BYTES_MAX];
    char texts[DRAW_OPS_MAX][MODEL_IDS_MAX][TEXT_EVENT_BYTES_MAX];
} drawn;

/* Does not change the model. */
void draw_batch(draw *from, const model *m, drawn *ret_batch);

#endif
