/* tests/faults/model.h — what a store must hold after a sequence of batches, written without a look at src/store.
 *
 * The same rules as in tests/contract/model.h, for more streams, and with groups. A model is small and copied before every
 * batch: so there is one for each moment to which a crash may lead back. The events of all models stand in one array, of
 * which each model counts the first so many; a model that goes on from an older one writes over what was lost. */
#ifndef SL_TESTS_FAULTS_MODEL_H
#define SL_TESTS_FAULTS_MODEL_H

#include "store/store.h"

enum {
    MODEL_STREAMS = 20, /* and as many metadata streams: the one of stream i is stream i + MODEL_STREAMS */
    MODEL_GROUPS = 4,   /* numbers 1 to 4 */
    MODEL_IDS_MAX = 4,
    MODEL_EVENTS_MAX = 64 * 1024,
};

/* An expectation is one number, as in the protocol. */
#define MODEL_ANY       INT64_C(-2)
#define MODEL_NO_STREAM INT64_C(-1)
#define MODEL_EXISTS    INT64_C(-4)

typedef enum model_sort {
    MODEL_SENT,      /* text_event() of its number */
    MODEL_METADATA,  /* text_metadata() of its number */
    MODEL_DELETED,   /* made by the store for a soft delete, with the id of the op */
    MODEL_REVIVED,   /* made by the store for its end */
    MODEL_TOMBSTONE, /* made by the store */
} model_sort;

typedef struct model_event {
    model_sort sort;
    int stream;
    int64_t revision;
    uint64_t number;                    /* for made ones: of the event or op that caused it */
    int64_t truncate_before, max_count; /* METADATA, REVIVED: what it says */
    uint32_t before;                    /* index + 1 of the event before it in its stream; 0: none */
    uint64_t position;                  /* where it was seen; 0: nowhere yet */
} model_event;

typedef struct model_stream {
    int64_t last;
    int64_t truncate_before, max_count;
    int64_t
        doomed_below; /* events that were hidden once: a scavenge may have dropped them, whatever is hidden now */
    uint32_t newest; /* index + 1 of its last event */
} model_stream;

/* A group is the sequence of its records, as a count and a hash over them. */
typedef struct model_group {
    bool exists;
    uint64_t definition; /* number of the text */
    uint64_t count, hash;
} model_group;

typedef struct model {
    uint32_t event_count;
    model_stream streams[2 * MODEL_STREAMS];
    model_group groups[MODEL_GROUPS];
} model;

typedef struct model_op {
    sl_op_kind kind;
    int stream; /* or group, from 0 on */
    int64_t expected;
    int id_count;
    uint64_t ids[MODEL_IDS_MAX]; /* the first one is the number of an op that appends nothing */
    int64_t truncate_before, max_count;
} model_op;

typedef struct model_result {
    sl_err err;
    int64_t revision; /* not looked at when err is STREAM_DELETED, and for groups */
    bool repeated;
    uint32_t last_event; /* index + 1 of the last event of the op itself; 0: none */
} model_result;

/* The events of all models. shared: children of this process see and change the same ones. */
void model_begin(bool shared);
model_event *model_event_at(uint32_t index);

model model_new(void);
model_result model_do(model *m, const model_op *op);

bool model_is_metadata(int stream);
bool model_tombstoned(const model *m, int stream);
bool model_soft_deleted(const model *m, int stream);

/* The lowest revision that is shown. */
int64_t model_first(const model *m, int stream);

/* Index + 1 of the event of a stream at a revision, 0: none. */
uint32_t model_find(const model *m, int stream, int64_t revision);

/* An event that need not be there any more. */
bool model_may_be_gone(const model *m, uint32_t index);

/* The stream with this name; -1: none of ours. */
int model_stream_named(sl_str name);

/* A group with one more record. */
void model_group_add(model_group *group, const sl_effect *record);

#endif
