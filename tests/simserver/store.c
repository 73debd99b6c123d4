/* tests/simserver/store.c — see store.h. */
#include "store.h"

#include "base/cleanup.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So small that filling it is quick, and so large that no run comes to its end: sealing works in a thread, and what threads do is
 * not the same each time. */
#define SEGMENT_BYTES (512 * 1024)

enum {
    WAIT_MS_MAX = 5 /* a disk in memory is faster, or has failed and says nothing any more */
};

typedef struct entry {
    sl_list node;
    sim_store *store;
    sl_done_fn *done;
    void *ctx;
    bool refused; /* the inner store never saw it */
} entry;

static sim_store *store_of(const sl_store *base)
{
    return SL_CONTAINER_OF(base, sim_store, base);
}

static void entry_end(entry *e, const sl_commit *commit)
{
    const entry copy = *e;

    sl_list_remove(&e->node);
    free(e);
    copy.store->inside--;
    copy.done(copy.ctx, commit);
}

static void on_done(void *ctx, const sl_commit *commit)
{
    entry_end(ctx, commit);
}

static bool has_append(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_APPEND)
            return true;
    return false;
}

static sl_err slow_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    sim_store *const store = store_of(base);
    entry *e;
    sl_err err = SL_OK;

    if (store->full && store->inside > 0)
        return SL_ERR_FULL;
    e = malloc(sizeof *e);
    assert(e != NULL);
    *e = (entry){ .store = store, .done = done, .ctx = ctx };
    e->refused = store->no_space && has_append(batch) && store->inside == 0;
    sl_list_push_back(&store->waiting, &e->node);
    store->inside++;
    if (!e->refused)
        err = sl_store_submit(store->inner, batch, on_done, e);
    if (err == SL_OK)
        return SL_OK;
    sl_list_remove(&e->node);
    store->inside--;
    free(e);
    return err;
}

static void slow_turn(sl_store *base)
{
    sl_store_turn(store_of(base)->inner);
}

static int slow_wait_fd(const sl_store *base)
{
    return sl_store_wait_fd(store_of(base)->inner);
}

static void give_refused(sim_store *store)
{
    static const sl_op_result nothing[SL_BATCH_OPS_MAX];

    SL_LIST_EACH_SAFE (node, &store->waiting) {
        entry *const e = SL_CONTAINER_OF(node, entry, node);

        if (e->refused)
            entry_end(e, &(sl_commit){ .err = SL_ERR_NO_SPACE, .results = nothing });
    }
}

static void slow_poll(sl_store *base)
{
    sim_store *const store = store_of(base);

    if (store->now_ns < store->ready_ns)
        return;
    give_refused(store);
    sl_store_poll(store->inner);
}

static sl_err slow_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    return sl_store_read(store_of(base)->inner, read, ret_cursor);
}

static void slow_stream(const sl_store *base, sl_str stream, sl_stream_info *ret_info)
{
    sl_store_stream(store_of(base)->inner, stream, ret_info);
}

static void slow_write(sl_store *base)
{
    sl_store_write(store_of(base)->inner);
}

static void slow_hurry(sl_store *base)
{
    sl_store_hurry(store_of(base)->inner);
}

static uint64_t slow_end(const sl_store *base)
{
    return sl_store_end(store_of(base)->inner);
}

static sl_err slow_load(sl_store *base, const sl_loader *loader)
{
    return sl_store_load(store_of(base)->inner, loader);
}

static const char *slow_problem(const sl_store *base)
{
    return sl_store_problem(store_of(base)->inner);
}

static const sl_store_ops slow_ops = {
    .name = "slow",
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
    .problem = slow_problem,
};

static void forward_commit(void *ctx, uint64_t end)
{
    const sim_store *const store = ctx;

    if (store->base.on_commit != NULL)
        store->base.on_commit(store->base.on_commit_ctx, end);
}

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };

static bool open_journal(sim_store *store)
{
    const sl_journal_options options = { .segment_bytes = SEGMENT_BYTES, .inline_max = 1000 * 1000 };
    sl_text text;

    sl_text_init(&text, store->words, sizeof store->words);
    return sl_store_open_faulty(&setup, &options, store->disk, &text, &store->inner) == SL_OK;
}

void sim_store_open(sim_store *store, bool is_journal)
{
    bool opened;

    *store = (sim_store){ .base = { .ops = &slow_ops }, .is_journal = is_journal };
    sl_list_init(&store->waiting);
    if (is_journal)
        store->disk = sl_faulty_new();
    opened = is_journal ? open_journal(store) : sl_store_open_memory(&setup, &store->inner) == SL_OK;
    assert(opened);
    (void)opened;
    if (!is_journal)
        sl_store_on_commit(store->inner, forward_commit, store);
}

sl_store *sim_store_door(sim_store *store)
{
    return store->is_journal ? store->inner : &store->base;
}

/* The inner store forgets what was lost, but whoever waits has memory to free. */
static void forget_entries(sim_store *store)
{
    static const sl_op_result nothing[SL_BATCH_OPS_MAX];

    SL_LIST_EACH_SAFE (node, &store->waiting)
        entry_end(SL_CONTAINER_OF(node, entry, node),
                  &(sl_commit){ .err = SL_ERR_STORE_FAILED, .results = nothing });
}

void sim_store_close(sim_store *store)
{
    if (store->inner != NULL)
        sl_store_close(store->inner);
    if (store->disk != NULL)
        sl_faulty_free(store->disk);
    forget_entries(store);
}

void sim_store_dies(sim_store *store, sim_store_end how, uint64_t seed)
{
    if (store->is_journal && how == SIM_STORE_CUT)
        sl_faulty_power_cut(store->disk, seed);
    else if (store->is_journal && how == SIM_STORE_KILLED)
        sl_faulty_kill(store->disk);
}

static bool restart_journal(sim_store *store, sim_store_end how)
{
    sl_store_close(store->inner);
    store->inner = NULL;
    if (how == SIM_STORE_CUT)
        sl_faulty_settle(store->disk);
    sl_faulty_fail_after(store->disk, UINT64_MAX, SL_OK);
    return open_journal(store);
}

bool sim_store_restart(sim_store *store, sim_store_end how)
{
    sl_err err;

    store->ready_ns = 0;
    store->full = store->no_space = false;
    if (store->is_journal)
        return restart_journal(store, how);
    err = sl_store_memory_restart(store->inner,
                                  how == SIM_STORE_CUT ? SL_RESTART_POWER_CUT : SL_RESTART_KILLED);
    assert(err == SL_OK);
    (void)err;
    forget_entries(store);
    store->base.on_commit = NULL;
    store->base.on_snapshot = NULL;
    sl_store_on_commit(store->inner, forward_commit, store);
    return true;
}

bool sim_store_readable(const sim_store *store)
{
    struct pollfd look = { .fd = sl_store_wait_fd(store->inner), .events = POLLIN };
    bool has_refused = false;

    if (!store->is_journal && store->now_ns < store->ready_ns)
        return false;
    SL_LIST_EACH (node, &store->waiting)
        has_refused |= SL_CONTAINER_OF(node, struct entry, node)->refused;
    return has_refused || poll(&look, 1, 0) == 1;
}

void sim_store_wait(const sim_store *store)
{
    struct pollfd look = { .fd = sl_store_wait_fd(store->inner), .events = POLLIN };

    (void)poll(&look, 1, WAIT_MS_MAX);
}
