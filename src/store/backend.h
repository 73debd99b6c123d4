/* store/backend.h — what a backend has to bring so that store.h can be its door. Private to src/store.
 *
 * A backend's own struct begins with an sl_store, its cursors begin with an sl_cursor. store.c checks what callers bring
 * before it comes here, so a backend sees only batches that are valid and within the limits. */
#ifndef SL_STORE_BACKEND_H
#define SL_STORE_BACKEND_H

#include "store/store.h"

typedef struct sl_store_ops { /* each as its namesake in store.h */
    const char *name;
    sl_err (*submit)(sl_store *store, const sl_batch *batch, sl_done_fn *done, void *ctx);
    void (*turn)(sl_store *store);
    void (*write)(sl_store *store);
    void (*hurry)(sl_store *store);
    int (*wait_fd)(const sl_store *store);
    void (*poll)(sl_store *store);
    sl_err (*read)(sl_store *store, const sl_read *read, sl_cursor **ret_cursor);
    void (*stream)(const sl_store *store, sl_str stream, sl_stream_info *ret_info);
    uint64_t (*end)(const sl_store *store);
    sl_err (*load)(sl_store *store, const sl_loader *loader);
    sl_err (*scavenge)(sl_store *store, const sl_scavenge *how, sl_scavenged_fn *done,
                       void *ctx);    /* NULL: NOT_FOUND */
    sl_room (*room)(sl_store *store); /* NULL: always enough */
    const char *(*problem)(const sl_store *store);
    bool (*is_full)(const sl_store *store); /* NULL: never */
    void (*close)(sl_store *store);
} sl_store_ops;

struct sl_store {
    const sl_store_ops *ops;
    sl_committed_fn *on_commit; /* NULL: nobody listens */
    void *on_commit_ctx;
    sl_snapshot_fn *on_snapshot; /* NULL: no group can be asked */
    void *on_snapshot_ctx;
};

typedef struct sl_cursor_ops {
    sl_err (*next)(sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count);
    void (*close)(sl_cursor *cursor);
} sl_cursor_ops;

struct sl_cursor {
    const sl_cursor_ops *ops;
    uint64_t position, considered; /* see sl_cursor_position() */
};

/* SL_OK, SL_ERR_INVALID or SL_ERR_TOO_LARGE, as sl_store_submit() says. */
sl_err sl_batch_check(const sl_batch *batch);

/* What the batch counts for in SL_BATCH_BYTES_MAX and SL_WAITING_BYTES_MAX. */
uint64_t sl_batch_bytes(const sl_batch *batch);

#endif
