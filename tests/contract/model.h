/* tests/contract/model.h — what a store must do, written as simply as possible: arrays that are searched from end to end.
 *
 * Shares no code with src/store. Numbers are those of the protocol: an expectation is one signed number (ANY -2,
 * NO_STREAM -1, STREAM_EXISTS -4, else the revision), and -1 is the revision of a stream without events. */
#ifndef SL_TESTS_CONTRACT_MODEL_H
#define SL_TESTS_CONTRACT_MODEL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MODEL_STREAMS = 5, /* and as many metadata streams: the one of stream i is stream i + MODEL_STREAMS */
    MODEL_EVENTS_MAX = 8 * 1024,
    MODEL_IDS_MAX = 3
};

#define MODEL_ANY       INT64_C(-2)
#define MODEL_NO_STREAM INT64_C(-1)
#define MODEL_EXISTS    INT64_C(-4)
#define MODEL_OWN       UINT64_MAX /* number of an event that nobody sent */

typedef struct model_stream {
    int64_t last;
    int64_t truncate_before, max_count; /* of what its metadata says; 0: nothing */
} model_stream;

typedef struct model { /* small enough to be copied before each batch */
    uint32_t event_count;
    model_stream streams[2 * MODEL_STREAMS];
} model;

typedef enum model_kind {
    MODEL_APPEND,
    MODEL_DELETE,
    MODEL_TOMBSTONE
} model_kind;

typedef struct model_op {
    model_kind kind;
    int stream;
    int64_t expected;
    int id_count;
    uint64_t ids[MODEL_IDS_MAX];
    int64_t truncate_before, max_count; /* what an append to a metadata stream says; 0: nothing */
} model_op;

typedef struct model_result {
    sl_err err;
    int64_t revision; /* not looked at when err is STREAM_DELETED */
    bool repeated;
} model_result;

typedef struct model_event {
    int stream;
    int64_t revision;
    uint64_t number;
} model_event;

/* All events of the run; only the first event_count of a model count. */
extern model_event model_events[MODEL_EVENTS_MAX];

model model_new(void);
model_result model_do(model *m, const model_op *op);

bool model_tombstoned(const model *m, int stream);
bool model_soft_deleted(const model *m, int stream);

/* The lowest revision that is shown. */
int64_t model_first(const model *m, int stream);

/* The number of the event at a revision, 0: none. */
uint64_t model_at(const model *m, int stream, int64_t revision);

#endif
