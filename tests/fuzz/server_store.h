/* tests/fuzz/server_store.h — a store in memory that can be as slow, full and broken as a disk, when the input says so.
 *
 * The memory store answers at once and never refuses, so that nothing would ever wait for metadata, for room or for a sync. This
 * one stands before it and keeps to the contract of store/store.h whatever is switched: it says FULL only while something is
 * inside, and after AGAIN there is something to poll for. */
#ifndef SL_TESTS_FUZZ_SERVER_STORE_H
#define SL_TESTS_FUZZ_SERVER_STORE_H

#include "base/list.h"
#include "store/backend.h"

typedef struct slow_store {
    sl_store base; /* what the host gets */
    const sl_alloc *alloc;
    sl_store *inner;
    uint64_t inside_count; /* batches that were not answered */
    uint64_t others_count; /* batches that were taken and have no record of a group */
    sl_list own;           /* those of them that the inner store never saw */
    uint64_t own_count;
    bool due;                   /* a reader was told AGAIN */
    sl_scavenged_fn *scavenged; /* of the scavenge that runs; NULL: none */
    void *scavenged_ctx;

    /* Switches. */
    bool stuck;      /* the disk takes nothing and answers nothing */
    bool full;       /* nothing more is taken while something is inside */
    bool no_space;   /* appends are answered with NO_SPACE */
    bool failed;     /* for good: it may be switched on only */
    uint8_t agains;  /* so many of the next pages are not there yet */
    sl_err read_err; /* of the next page, once; SL_OK: none */
    bool one_by_one; /* pages have one event */
} slow_store;

/* NULL: no descriptor or no memory. */
slow_store *slow_store_open(const sl_alloc *alloc);

/* What epoll would say about the descriptor. */
bool slow_store_readable(slow_store *store);

/* Everything as fast and as empty as it can be again; a failed one stays failed. */
void slow_store_calm(slow_store *store);

#endif
