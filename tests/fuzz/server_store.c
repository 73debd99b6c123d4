/* tests/fuzz/server_store.c — see server_store.h. */
#include "server_store.h"

#include "base/cleanup.h"

#include <assert.h>
#include <poll.h>

static slow_store *slow_of(const sl_store *store)
{
    return SL_CONTAINER_OF(store, slow_store, base);
}

/* --- writing --- */

typedef struct entry {
    sl_list node; /* store->own */
    slow_store *store;
    sl_done_fn *done;
    void *ctx;
} entry;

static void entry_end(entry *e, const sl_commit *commit)
{
    const entry copy = *e;

    sl_list_remove(&e->node);
    sl_alloc_give(copy.store->alloc, e, sizeof *e);
    copy.store->inside_count--;
    copy.done(copy.ctx, commit);
}

/* What a disk that failed had taken before may be there or not: this one has it, and says that it does not know. */
static void on_done(void *ctx, const sl_commit *commit)
{
    entry *const e = ctx;
    sl_commit told = *commit;

    if (e->store->failed)
        told.err = SL_ERR_STORE_FAILED;
    entry_end(e, &told);
}

static bool has_append(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_APPEND)
            return true;
    return false;
}

/* Answers come in the order of submission: one of our own is right only while the inner store owes none. */
static bool refuses(const slow_store *store, const sl_batch *batch)
{
    return store->no_space && store->inside_count == store->own_count && has_append(batch);
}

static bool has_record(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_GROUP_RECORD)
            return true;
    return false;
}

static sl_err slow_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    slow_store *const store = slow_of(base);
    entry *e;
    sl_err err = SL_OK;

    if (store->failed)
        return SL_ERR_STORE_FAILED;
    if (store->full && store->inside_count > 0)
        return SL_ERR_FULL;
    e = sl_alloc_take(store->alloc, sizeof *e);
    if (e == NULL)
        return SL_ERR_NOMEM;
    *e = (entry){ .store = store, .done = done, .ctx = ctx };
    sl_list_init(&e->node);
    if (refuses(store, batch)) {
        sl_list_push_back(&store->own, &e->node);
        store->own_count++;
    } else {
        err = sl_store_submit(store->inner, batch, on_done, e);
    }
    if (err != SL_OK) {
        sl_alloc_give(store->alloc, e, sizeof *e);
        return err;
    }
    store->inside_count++;
    store->others_count += !has_record(batch);
    return SL_OK;
}

static void answer_own(slow_store *store)
{
    static const sl_op_result nothing_known[SL_BATCH_OPS_MAX];
    const sl_commit commit = { .err = store->failed ? SL_ERR_STORE_FAILED : SL_ERR_NO_SPACE,
                               .results = nothing_known };

    for (uint64_t left = store->own_count; left > 0; left--) {
        store->own_count--;
        entry_end(SL_CONTAINER_OF(sl_list_first(&store->own), entry, node), &commit);
    }
}

static void slow_turn(sl_store *base)
{
    slow_store *const store = slow_of(base);

    if (!store->stuck)
        sl_store_turn(store->inner);
}

static sl_err slow_scavenge(sl_store *base, const sl_scavenge *how, sl_scavenged_fn *done, void *ctx)
{
    slow_store *const store = slow_of(base);

    (void)how;
    if (store->failed)
        return SL_ERR_STORE_FAILED;
    if (store->scavenged != NULL)
        return SL_ERR_EXISTS;
    store->scavenged = done;
    store->scavenged_ctx = ctx;
    return SL_OK;
}

static void end_scavenge(slow_store *store, sl_err err)
{
    sl_scavenged_fn *const done = store->scavenged;

    store->scavenged = NULL;
    if (done != NULL)
        done(store->scavenged_ctx, &(sl_scavenged){ .err = err });
}

static void slow_poll(sl_store *base)
{
    slow_store *const store = slow_of(base);

    if (store->stuck)
        return;
    store->due = false;
    end_scavenge(store, SL_OK);
    answer_own(store);
    sl_store_poll(store->inner);
}

static void on_commit(void *ctx, uint64_t end)
{
    slow_store *const store = ctx;

    if (store->base.on_commit != NULL)
        store->base.on_commit(store->base.on_commit_ctx, end);
}

/* --- reading --- */

typedef struct slow_cursor {
    sl_cursor base;
    slow_store *store;
    sl_cursor *inner;
} slow_cursor;

static sl_err slow_next(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    slow_cursor *const cursor = SL_CONTAINER_OF(base, slow_cursor, base);
    slow_store *const store = cursor->store;
    sl_err err = store->read_err;

    store->read_err = SL_OK;
    if (err != SL_OK)
        return err;
    if (store->agains > 0) {
        store->agains--;
        store->due = true;
        return SL_ERR_AGAIN;
    }
    err = sl_cursor_next(cursor->inner, events, store->one_by_one ? 1 : max, ret_count);
    base->position = sl_cursor_position(cursor->inner);
    base->considered = sl_cursor_considered(cursor->inner);
    return err;
}

static void slow_cursor_close(sl_cursor *base)
{
    slow_cursor *const cursor = SL_CONTAINER_OF(base, slow_cursor, base);

    sl_cursor_close(cursor->inner);
    sl_alloc_give(cursor->store->alloc, cursor, sizeof *cursor);
}

static sl_err slow_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    static const sl_cursor_ops ops = { .next = slow_next, .close = slow_cursor_close };
    slow_store *const store = slow_of(base);
    slow_cursor *const cursor = sl_alloc_take(store->alloc, sizeof *cursor);
    sl_err err;

    if (cursor == NULL)
        return SL_ERR_NOMEM;
    *cursor = (slow_cursor){ .base.ops = &ops, .store = store };
    err = sl_store_read(store->inner, read, &cursor->inner);
    if (err != SL_OK) {
        sl_alloc_give(store->alloc, cursor, sizeof *cursor);
        return err;
    }
    cursor->base.position = sl_cursor_position(cursor->inner);
    *ret_cursor = &cursor->base;
    return SL_OK;
}

/* --- the rest --- */

static int slow_wait_fd(const sl_store *base)
{
    return sl_store_wait_fd(slow_of(base)->inner);
}

static void slow_stream(const sl_store *base, sl_str stream, sl_stream_info *ret_info)
{
    sl_store_stream(slow_of(base)->inner, stream, ret_info);
}

static void slow_write(sl_store *base)
{
    slow_store *const store = slow_of(base);

    if (!store->stuck)
        sl_store_write(store->inner);
}

static void slow_hurry(sl_store *base)
{
    sl_store_hurry(slow_of(base)->inner);
}

static uint64_t slow_end(const sl_store *base)
{
    return sl_store_end(slow_of(base)->inner);
}

static sl_err slow_load(sl_store *base, const sl_loader *loader)
{
    return sl_store_load(slow_of(base)->inner, loader);
}

static const char *slow_problem(const sl_store *base)
{
    return slow_of(base)->failed ? "the disk is gone" : sl_store_problem(slow_of(base)->inner);
}

static void slow_close(sl_store *base)
{
    slow_store *const store = slow_of(base);

    end_scavenge(store, SL_ERR_AGAIN);
    answer_own(store);
    sl_store_close(store->inner);
    assert(store->inside_count == 0);
    sl_alloc_give(store->alloc, store, sizeof *store);
}

slow_store *slow_store_open(const sl_alloc *alloc)
{
    static const sl_store_ops ops = { .name = "slow",
                                      .submit = slow_submit,
                                      .turn = slow_turn,
                                      .write = slow_write,
                                      .hurry = slow_hurry,
                                      .wait_fd = slow_wait_fd,
                                      .poll = slow_poll,
                                      .read = slow_read,
                                      .stream = slow_stream,
                                      .end = slow_end,
                                      .load = slow_load,
                                      .scavenge = slow_scavenge,
                                      .problem = slow_problem,
                                      .close = slow_close };
    const sl_store_setup setup = { .alloc = alloc, .seed = { 3, 4 } };
    slow_store *const store = sl_alloc_take(alloc, sizeof *store);

    if (store == NULL)
        return NULL;
    *store = (slow_store){ .base.ops = &ops, .alloc = alloc };
    sl_list_init(&store->own);
    if (sl_store_open_memory(&setup, &store->inner) != SL_OK) {
        sl_alloc_give(alloc, store, sizeof *store);
        return NULL;
    }
    sl_store_on_commit(store->inner, on_commit, store);
    return store;
}

bool slow_store_readable(slow_store *store)
{
    struct pollfd entry_of_inner = { .fd = sl_store_wait_fd(store->inner), .events = POLLIN };

    if (store->stuck)
        return false;
    return store->due || store->scavenged != NULL || store->own_count > 0 || poll(&entry_of_inner, 1, 0) == 1;
}

void slow_store_calm(slow_store *store)
{
    store->stuck = store->full = store->no_space = store->one_by_one = false;
    store->agains = 0;
    store->read_err = SL_OK;
}
