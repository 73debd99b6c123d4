/* tests/unit/server/groups_store.c — stores for tests of groups, and one that holds back what the test wants: see groups_rig.h. */
#include "groups_rig.h"

#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

sl_store *groups_memory_store(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    sl_store *store;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    return store;
}

typedef struct held_store {
    sl_store base;
    sl_store *inner;
    bool holds, holds_all, refuses, blocks;
    sl_room room;
    unsigned questions_left; /* until it is full */
    sl_list waiting;
    bool reads_slowly, reads_stick, loses;
    uint64_t lost; /* revision, in every stream */
} held_store;

typedef struct held_note {
    held_store *store;
    sl_list node;
    sl_done_fn *done;
    void *ctx;
    bool sync;
    sl_commit commit;
    uint32_t count;
    sl_op_result results[SL_BATCH_OPS_MAX];
} held_note;

static held_store *held_of(const sl_store *store)
{
    return SL_CONTAINER_OF(store, held_store, base);
}

static void held_give(held_note *note)
{
    note->commit.results = note->results;
    note->done(note->ctx, &note->commit);
    free(note);
}

static void held_done(void *ctx, const sl_commit *commit)
{
    held_note *const note = ctx;

    note->commit = *commit;
    memcpy(note->results, commit->results, note->count * sizeof *note->results);
    if (note->store->holds_all ||
        (note->sync && (note->store->holds || !sl_list_empty(&note->store->waiting))))
        sl_list_push_back(&note->store->waiting, &note->node);
    else
        held_give(note);
}

static bool has_append(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_APPEND || batch->ops[i].kind == SL_OP_DELETE)
            return true;
    return false;
}

static sl_err held_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    held_store *const store = held_of(base);
    held_note *const note = malloc(sizeof *note);
    sl_err err;

    assert_non_null(note);
    if (store->blocks && !has_append(batch)) {
        free(note);
        return SL_ERR_NO_SPACE;
    }
    *note = (held_note){ .store = store,
                         .done = done,
                         .ctx = ctx,
                         .sync = batch->durability == SL_DURABLE_SYNC,
                         .count = batch->op_count };
    sl_list_init(&note->node);
    if (store->refuses && has_append(batch)) {
        note->commit.err = SL_ERR_NO_SPACE;
        sl_list_push_back(&store->waiting, &note->node);
        return SL_OK;
    }
    err = sl_store_submit(store->inner, batch, held_done, note);
    if (err != SL_OK)
        free(note);
    return err;
}

static void held_turn(sl_store *base)
{
    sl_store_turn(held_of(base)->inner);
}

static void held_write(sl_store *base)
{
    sl_store_write(held_of(base)->inner);
}

static void held_hurry(sl_store *base)
{
    sl_store_hurry(held_of(base)->inner);
}

static int held_wait_fd(const sl_store *base)
{
    return sl_store_wait_fd(held_of(base)->inner);
}

static void held_poll(sl_store *base)
{
    held_store *const store = held_of(base);

    sl_store_poll(store->inner);
    while (!store->holds && !store->holds_all && !sl_list_empty(&store->waiting)) {
        held_note *const note = SL_CONTAINER_OF(sl_list_first(&store->waiting), held_note, node);

        sl_list_remove(&note->node);
        held_give(note);
    }
    if (base->on_commit != NULL)
        base->on_commit(base->on_commit_ctx, sl_store_end(store->inner));
}

/* A cursor that gives one event after the other, each as late as the test wants. */
typedef struct held_cursor {
    sl_cursor base;
    held_store *store;
    sl_cursor *inner;
    bool asked; /* the disk */
} held_cursor;

static sl_err held_cursor_next(sl_cursor *base, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    held_cursor *const cursor = (held_cursor *)base;
    sl_err err;

    if (cursor->store->reads_stick || (cursor->store->reads_slowly && !cursor->asked)) {
        cursor->asked = true;
        return SL_ERR_AGAIN;
    }
    cursor->asked = false;
    do
        err = sl_cursor_next(cursor->inner, events, cursor->store->loses ? 1 : max, ret_count);
    while (err == SL_OK && cursor->store->loses && events[0].revision == cursor->store->lost);
    base->position = sl_cursor_position(cursor->inner);
    base->considered = sl_cursor_considered(cursor->inner);
    return err;
}

static void held_cursor_close(sl_cursor *base)
{
    sl_cursor_close(((held_cursor *)base)->inner);
    free(base);
}

static const sl_cursor_ops held_cursor_ops = { held_cursor_next, held_cursor_close };

static sl_err held_read(sl_store *base, const sl_read *read, sl_cursor **ret_cursor)
{
    sl_cursor *inner;
    const sl_err err = sl_store_read(held_of(base)->inner, read, &inner);
    held_cursor *cursor;

    if (err != SL_OK)
        return err;
    cursor = malloc(sizeof *cursor);
    assert_non_null(cursor);
    *cursor = (held_cursor){ .base = { .ops = &held_cursor_ops }, .store = held_of(base), .inner = inner };
    *ret_cursor = &cursor->base;
    return SL_OK;
}

static void held_stream(const sl_store *base, sl_str stream, sl_stream_info *ret_info)
{
    sl_store_stream(held_of(base)->inner, stream, ret_info);
}

static uint64_t held_end(const sl_store *base)
{
    return sl_store_end(held_of(base)->inner);
}

static sl_err held_load(sl_store *base, const sl_loader *loader)
{
    return sl_store_load(held_of(base)->inner, loader);
}

static sl_room held_room(sl_store *base)
{
    held_store *const store = held_of(base);

    if (store->questions_left > 0 && --store->questions_left == 0)
        groups_held_store_fill(base, true);
    return store->room;
}

static const char *held_problem(const sl_store *base)
{
    (void)base;
    return "";
}

static void held_close(sl_store *base)
{
    held_store *const store = held_of(base);

    store->holds = store->holds_all = false;
    sl_store_close(store->inner);
    while (!sl_list_empty(&store->waiting)) {
        held_note *const note = SL_CONTAINER_OF(sl_list_first(&store->waiting), held_note, node);

        sl_list_remove(&note->node);
        held_give(note);
    }
    free(store);
}

static const sl_store_ops held_ops = {
    .name = "held",
    .submit = held_submit,
    .turn = held_turn,
    .write = held_write,
    .hurry = held_hurry,
    .wait_fd = held_wait_fd,
    .poll = held_poll,
    .read = held_read,
    .stream = held_stream,
    .end = held_end,
    .load = held_load,
    .room = held_room,
    .problem = held_problem,
    .close = held_close,
};

sl_store *groups_inner_store(sl_store *store)
{
    return store->ops == &held_ops ? held_of(store)->inner : store;
}

sl_store *groups_held_store(void)
{
    held_store *const store = malloc(sizeof *store);

    assert_non_null(store);
    *store = (held_store){ .base = { .ops = &held_ops } };
    sl_list_init(&store->waiting);
    store->inner = groups_memory_store();
    return &store->base;
}

void groups_held_store_hold(sl_store *store, bool hold)
{
    held_of(store)->holds = hold;
}

void groups_held_store_hold_all(sl_store *store, bool hold)
{
    held_of(store)->holds_all = hold;
}

void groups_held_store_refuse(sl_store *store, bool refuse)
{
    held_of(store)->refuses = refuse;
}

void groups_held_store_fill(sl_store *store, bool full)
{
    held_of(store)->refuses = full;
    held_of(store)->room = full ? SL_ROOM_LAST : SL_ROOM_ENOUGH;
}

void groups_held_store_reserve(sl_store *store)
{
    held_of(store)->refuses = true;
    held_of(store)->room = SL_ROOM_SETTLING;
}

void groups_held_store_fill_after(sl_store *store, unsigned questions)
{
    groups_held_store_fill(store, false);
    held_of(store)->questions_left = questions + 1;
}

void groups_held_store_block(sl_store *store, bool block)
{
    held_of(store)->blocks = block;
}

void groups_held_store_slow(sl_store *store, bool slow)
{
    held_of(store)->reads_slowly = slow;
}

void groups_held_store_stick(sl_store *store, bool stick)
{
    held_of(store)->reads_stick = stick;
}

void groups_held_store_lose(sl_store *store, uint64_t revision)
{
    held_of(store)->loses = true;
    held_of(store)->lost = revision;
}
