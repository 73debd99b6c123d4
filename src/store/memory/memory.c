/* store/memory/memory.c — the life of a store in memory: batches come in, are written, become durable, are answered.
 *
 * Nothing here waits, so "a sync runs" only means that it ends at the next poll and not before: callers cannot come to rely
 * on more than a disk would give them. */
#include "store/memory/memory.h"

#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- submitting --- */

static sl_err out_event(void *ctx, uint32_t stream, const sl_event *event)
{
    return memory_events_add(ctx, stream, event);
}

static sl_err out_group(void *ctx, uint64_t position, const sl_op *op)
{
    return memory_groups_take(ctx, position, op);
}

static sl_err out_at(void *ctx, uint32_t stream, uint64_t revision, sl_event *ret_event)
{
    const memory_event *const kept = memory_events_at(ctx, stream, revision);

    if (kept == NULL)
        return SL_ERR_NOT_FOUND;
    *ret_event = kept->event;
    return SL_OK;
}

static bool has_group_ops(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind >= SL_OP_GROUP_CREATE)
            return true;
    return false;
}

static sl_err take(memory_store *store, const sl_batch *batch, sl_answer *answer)
{
    const sl_writer_out out = { store, out_event, out_group, out_at };
    const sl_err err = sl_writer_take(&store->writer, batch, &out, answer->results, &answer->failed_op);

    if (err != SL_OK)
        memory_events_cut(store, store->writer.next_position);
    if (err != SL_OK && has_group_ops(batch)) /* it looks at every group */
        memory_groups_cut(store, store->writer.next_position);
    sl_writer_keep(&store->writer);
    return err;
}

static sl_err memory_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    memory_store *const store = memory_of(base);
    sl_answer *answer;
    sl_err err =
        store->closing ? SL_ERR_STORE_FAILED : sl_answers_new(&store->answers, batch, done, ctx, &answer);

    if (err != SL_OK)
        return err;
    err = answer->err = take(store, batch, answer);
    if (!sl_writer_answers(err)) {
        sl_answers_forget(&store->answers, answer);
        return err;
    }
    sl_answers_push(&store->answers, batch, answer, store->writer.next_position);
    return SL_OK;
}

/* --- turning and polling --- */

void memory_wake(const memory_store *store)
{
    const uint64_t one = 1;

    /* Only a counter at its maximum could refuse, and then the descriptor is readable. */
    if (write(store->wait_fd, &one, sizeof one) < 0)
        assert(errno == EAGAIN);
}

/* A sync is wanted when somebody waits for what is written but not synced. What is not written yet waits for its turn. */
static void begin_sync(memory_store *store)
{
    const uint64_t wanted_end = sl_min_u64(sl_answers_sync_end(&store->answers), store->written_end);

    if (store->syncing_end != 0 || store->synced_end >= wanted_end)
        return;
    store->syncing_end = store->written_end;
    memory_wake(store);
}

static bool something_is_due(const memory_store *store)
{
    return sl_answers_due(&store->answers, SL_DURABLE_SYNC, store->synced_end) ||
           sl_answers_due(&store->answers, SL_DURABLE_WRITTEN, store->written_end);
}

static void memory_turn(sl_store *base)
{
    memory_store *const store = memory_of(base);

    memory_groups_snapshot(store);
    store->written_end = store->writer.next_position;
    begin_sync(store);
    if (something_is_due(store))
        memory_wake(store);
}

static void memory_write(sl_store *base)
{
    memory_store *const store = memory_of(base);

    store->written_end = store->writer.next_position;
}

static void memory_hurry(sl_store *base)
{
    sl_answers_hurry(&memory_of(base)->answers);
}

static bool end_sync(memory_store *store)
{
    if (store->syncing_end == 0)
        return false;
    store->synced_end = store->syncing_end;
    store->syncing_end = 0;
    memory_groups_synced(store);
    return true;
}

static void memory_poll(sl_store *base)
{
    memory_store *const store = memory_of(base);
    const uint64_t number_end = store->answers.number;
    uint64_t count;
    bool moved;

    if (read(store->wait_fd, &count, sizeof count) < 0)
        assert(errno == EAGAIN); /* polling without need is allowed */
    moved = end_sync(store);
    sl_answers_give(&store->answers, SL_DURABLE_WRITTEN, store->written_end, number_end, SL_OK);
    sl_answers_give(&store->answers, SL_DURABLE_SYNC, store->synced_end, number_end, SL_OK);
    if (moved && base->on_commit != NULL)
        base->on_commit(base->on_commit_ctx, store->synced_end);
    begin_sync(store);
}

/* --- the rest of the door --- */

static int memory_wait_fd(const sl_store *base)
{
    return SL_CONTAINER_OF(base, const memory_store, base)->wait_fd;
}

static void memory_stream_info(const sl_store *base, sl_str name, sl_stream_info *ret_info)
{
    sl_directory_info(&SL_CONTAINER_OF(base, const memory_store, base)->writer.directory, name, ret_info);
}

static uint64_t memory_end(const sl_store *base)
{
    return SL_CONTAINER_OF(base, const memory_store, base)->synced_end;
}

static const char *memory_problem(const sl_store *base)
{
    (void)base;
    return "";
}

static void store_free(memory_store *store)
{
    sl_answers_drop(&store->answers);
    memory_events_free(store);
    memory_groups_free(store);
    sl_writer_done(&store->writer);
    if (store->wait_fd >= 0)
        close(store->wait_fd);
    sl_alloc_give(store->alloc, store, sizeof *store);
}

static void memory_close(sl_store *base)
{
    memory_store *const store = memory_of(base);

    store->closing = true;
    memory_hurry(base);
    memory_turn(base);
    while (sl_answers_wait(&store->answers, SL_DURABLE_SYNC) ||
           sl_answers_wait(&store->answers, SL_DURABLE_WRITTEN))
        memory_poll(base);
    store_free(store);
}

static const sl_store_ops memory_ops = {
    .name = "memory",
    .submit = memory_submit,
    .turn = memory_turn,
    .write = memory_write,
    .hurry = memory_hurry,
    .wait_fd = memory_wait_fd,
    .poll = memory_poll,
    .read = memory_read,
    .stream = memory_stream_info,
    .end = memory_end,
    .load = memory_groups_load,
    .problem = memory_problem,
    .close = memory_close,
};

sl_err sl_store_open_memory(const sl_store_setup *setup, sl_store **ret_store)
{
    memory_store *const store = sl_alloc_take(setup->alloc, sizeof *store);
    sl_err err;

    if (store == NULL)
        return SL_ERR_NOMEM;
    *store = (memory_store){ .base.ops = &memory_ops,
                             .alloc = setup->alloc,
                             .seed = setup->seed,
                             .answers = { .alloc = setup->alloc },
                             .written_end = SL_POSITION_FIRST,
                             .synced_end = SL_POSITION_FIRST,
                             .wait_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    err = store->wait_fd < 0 ? SL_ERR_IO : sl_writer_init(&store->writer, setup->alloc, setup->seed);
    if (err == SL_OK)
        err = memory_groups_init(store);
    if (err != SL_OK) {
        store_free(store);
        return err;
    }
    *ret_store = &store->base;
    return SL_OK;
}

sl_err sl_store_memory_restart(sl_store *base, sl_restart kind)
{
    memory_store *const store = memory_of(base);
    const uint64_t end = kind == SL_RESTART_KILLED ? store->written_end : store->synced_end;
    sl_err err;

    assert(base->ops == &memory_ops);
    sl_answers_drop(&store->answers);
    memory_events_cut(store, end);
    memory_groups_cut(store, end);
    store->written_end = store->synced_end = end; /* opening a store makes sure of what it finds */
    store->syncing_end = 0;
    memory_groups_synced(store);
    base->on_commit = NULL;
    base->on_snapshot = NULL;
    sl_writer_done(&store->writer);
    err = sl_writer_init(&store->writer, store->alloc, store->seed);
    if (err == SL_OK)
        err = memory_events_replay(store);
    store->writer.next_position = end;
    return err;
}
