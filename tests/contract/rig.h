/* tests/contract/rig.h — a store of the backend under test, and short words for what the tests do with it.
 *
 * Every test runs once for each row of `backends` in rig.c. A helper that meets something unexpected fails the test. */
#ifndef SL_TESTS_CONTRACT_RIG_H
#define SL_TESTS_CONTRACT_RIG_H

#include "test.h"

#include "store/store.h"

#include <stdbool.h>

typedef struct rig {
    sl_store *store;
    void *own;              /* of the backend: a folder, a disk */
    bool is_large;          /* as rig_open_large() made it */
    uint64_t done_count;    /* answers so far */
    uint64_t commit_count;  /* calls of the commit listener */
    uint64_t committed_end; /* what it was told last */
} rig;

typedef struct backend {
    const char *name;
    bool cuts_power; /* can do SL_RESTART_POWER_CUT */
    sl_err (*open)(rig *r);
    sl_err (*restart)(rig *r, sl_restart kind); /* r->store may be another one afterwards */
    void (*close)(rig *r);                      /* the store, and whatever it leaves behind */
} backend;

extern const backend backends[];
extern const size_t backend_count;
extern const backend *backend_now; /* set by main.c before each test */

/* Where something has a size, it is small, so that borders are met; a batch of some 100 KB fits. Large: every batch that
 * the contract allows fits. */
rig rig_open(void);
rig rig_open_large(void);
void rig_close(rig *r);

/* False when the backend cannot do it: nothing happened. */
bool rig_restart(rig *r, sl_restart kind);

/* --- writing --- */

enum {
    RESULTS_KEPT = 64
};

typedef struct answer {
    rig *r;
    uint32_t calls, op_count, failed_op;
    uint64_t order; /* the how-manieth answer of the rig, from 1 on */
    sl_err err;
    sl_op_result results[RESULTS_KEPT];
} answer;

#define ANY       ((sl_expected){ .kind = SL_EXPECT_ANY })
#define NO_STREAM ((sl_expected){ .kind = SL_EXPECT_NO_STREAM })
#define EXISTS    ((sl_expected){ .kind = SL_EXPECT_STREAM_EXISTS })
#define EXACT(n)  ((sl_expected){ .kind = SL_EXPECT_EXACT, .revision = (n) })
#define NONE      SL_REVISION_NONE

#define NOW_NS    UINT64_C(1800000000000000000) /* when the tests happen, unless they say otherwise */
#define SECOND_NS UINT64_C(1000000000)

sl_uuid id_of(uint64_t number);
uint64_t number_of(sl_uuid id);

/* Data and type say the number as well. The texts stay valid for the next 1024 calls. */
sl_event_in event(uint64_t number);

sl_op append_op(const char *stream, sl_expected expected, const sl_event_in *events, uint32_t event_count);
sl_op delete_op(const char *stream, sl_expected expected);
sl_op tombstone_op(const char *stream, sl_expected expected);
sl_op create_op(uint64_t group, const char *definition);
sl_op update_op(uint64_t group, const char *definition);
sl_op drop_op(uint64_t group);
sl_op record_op(uint64_t group, const sl_effect *record);

/* Only submits; `a` must live until the answer came. */
sl_err submit(rig *r, const sl_op *ops, uint32_t op_count, sl_durability durability, answer *a);
sl_err submit_patient(rig *r, const sl_op *op, answer *a); /* SYNC, but not at once */

/* Waits until the rig has so many answers, as a loop would: for the descriptor, then polling. */
void wait_for(rig *r, uint64_t done_count);

/* A turn of a loop with nothing to do: waits for the descriptor, then polls. */
void pass_time(rig *r);

/* Appends to the stream "filling" until whatever was written before stands in a segment that is full. */
void fill_segment(rig *r);

/* Submits, ends the turn, waits for the answer. */
answer commit(rig *r, const sl_op *ops, uint32_t op_count);

/* The same for one append of events with the numbers first_id, first_id + 1, ... */
answer append(rig *r, const char *stream, sl_expected expected, uint64_t first_id, uint32_t event_count);

/* Appends one event with this JSON to "$$stream". */
answer set_metadata(rig *r, const char *stream, const char *json);

void expect_written(answer a, uint64_t revision);
void expect_repeated(answer a, uint64_t revision, uint64_t position);
void expect_refused(answer a, sl_err err, uint64_t revision);

/* --- reading --- */

enum {
    PAGE_EVENTS_MAX = 32 * 1024
};

typedef struct page { /* what a read gave, up to its end */
    sl_err opened, ended;
    uint32_t count;
    uint64_t position, considered; /* of the cursor at its end */
    struct seen {
        uint64_t position, revision, number;
    } * seen;
} page;

/* Reads in steps of `step` events. Free it with page_free(). */
page read_by(rig *r, const sl_read *how, uint32_t step);
void page_free(page *p);

/* Reads a stream from one end to the other and compares the revisions with those from first to last. first above last:
 * there must be none. */
void expect_stream(rig *r, const char *stream, uint64_t first, uint64_t last);

/* Opening the stream must give this error, from both ends. */
void expect_unreadable(rig *r, const char *stream, sl_err err);

/* How many events a read of everything shows. */
uint32_t count_all(rig *r);

sl_stream_info info_of(rig *r, const char *stream);

/* The next event of a cursor; asks again after SL_ERR_AGAIN. */
sl_err next_one(rig *r, sl_cursor *cursor, sl_event *ret_event);

#endif
