/* store/store.c — the door itself: checks what callers bring, hands it to the backend. */
#include "store/store.h"

#include "base/utf8.h"
#include "store/backend.h"
#include "store/metadata.h"

#include <assert.h>

/* --- what a batch may be --- */

static sl_err check_text(sl_str text, size_t bytes_max)
{
    if (text.bytes == 0)
        return SL_ERR_INVALID;
    if (text.bytes > bytes_max)
        return SL_ERR_TOO_LARGE;
    if (sl_str_find(text, '\0') < text.bytes) /* databases cannot keep it in a text */
        return SL_ERR_INVALID;
    return sl_utf8_valid(text) ? SL_OK : SL_ERR_INVALID;
}

static sl_err check_stream(sl_str name)
{
    sl_str owner;

    if (!sl_metadata_owner(name, &owner)) /* room for its metadata stream */
        return sl_str_equal(name, SL_STR("$all")) ? SL_ERR_INVALID
                                                  : check_text(name, SL_STREAM_NAME_BYTES_MAX - 2);
    if (owner.bytes == 0 || sl_str_starts_with(owner, SL_STR("$$")))
        return SL_ERR_INVALID;
    return check_text(name, SL_STREAM_NAME_BYTES_MAX);
}

static bool expected_is_valid(sl_expected expected)
{
    switch (expected.kind) {
    case SL_EXPECT_ANY:
    case SL_EXPECT_NO_STREAM:
    case SL_EXPECT_STREAM_EXISTS: return true;
    case SL_EXPECT_EXACT: return expected.revision <= SL_REVISION_MAX;
    }
    return false;
}

static sl_err check_event(const sl_event_in *event, bool is_metadata)
{
    const size_t data_max = is_metadata ? SL_METADATA_BYTES_MAX : SL_EVENT_BYTES_MAX;

    if (sl_uuid_is_zero(event->id))
        return SL_ERR_INVALID;
    if (event->data.bytes > data_max || event->metadata.bytes > SL_EVENT_BYTES_MAX ||
        event->data.bytes + event->metadata.bytes > SL_EVENT_BYTES_MAX)
        return SL_ERR_TOO_LARGE;
    return check_text(event->type, SL_EVENT_TYPE_BYTES_MAX);
}

static sl_err check_append(const sl_op *op)
{
    const bool is_metadata = sl_str_starts_with(op->append.stream, SL_STR("$$"));
    sl_err err = expected_is_valid(op->append.expected) ? check_stream(op->append.stream) : SL_ERR_INVALID;

    if (op->append.event_count > SL_BATCH_BYTES_MAX / SL_RECORD_HEAD_BYTES)
        return SL_ERR_TOO_LARGE;
    for (uint32_t i = 0; i < op->append.event_count && err == SL_OK; i++)
        err = check_event(&op->append.events[i], is_metadata);
    return err;
}

static sl_err check_remove(const sl_op *op)
{
    if (!expected_is_valid(op->remove.expected) || sl_uuid_is_zero(op->remove.id) ||
        sl_str_starts_with(op->remove.stream, SL_STR("$$")))
        return SL_ERR_INVALID;
    return check_stream(op->remove.stream);
}

static sl_err check_definition(uint64_t group, sl_str definition)
{
    if (group == 0)
        return SL_ERR_INVALID;
    return definition.bytes > SL_GROUP_DEFINITION_BYTES_MAX ? SL_ERR_TOO_LARGE : SL_OK;
}

static sl_err check_records(const sl_op *op)
{
    const uint32_t count = op->group_record.record_count;
    bool are_records = op->group_record.group != 0 && count > 0;

    for (uint32_t i = 0; i < count && i < SL_OP_RECORDS_MAX && are_records; i++)
        are_records = sl_effect_is_record(op->group_record.records[i].kind);
    if (!are_records)
        return SL_ERR_INVALID;
    return count > SL_OP_RECORDS_MAX ? SL_ERR_TOO_LARGE : SL_OK;
}

static sl_err check_op(const sl_op *op)
{
    switch (op->kind) {
    case SL_OP_APPEND: return check_append(op);
    case SL_OP_DELETE:
    case SL_OP_TOMBSTONE: return check_remove(op);
    case SL_OP_GROUP_CREATE: return check_definition(op->group_create.group, op->group_create.definition);
    case SL_OP_GROUP_UPDATE: return check_definition(op->group_update.group, op->group_update.definition);
    case SL_OP_GROUP_DELETE: return op->group_delete.group == 0 ? SL_ERR_INVALID : SL_OK;
    case SL_OP_GROUP_RECORD: return check_records(op);
    }
    return SL_ERR_INVALID;
}

static bool is_group_op(const sl_op *op)
{
    return op->kind == SL_OP_GROUP_CREATE || op->kind == SL_OP_GROUP_DELETE ||
           op->kind == SL_OP_GROUP_RECORD || op->kind == SL_OP_GROUP_UPDATE;
}

sl_err sl_batch_check(const sl_batch *batch)
{
    sl_err err = batch->op_count == 0 ? SL_ERR_INVALID : SL_OK;

    if (batch->op_count > SL_BATCH_OPS_MAX)
        return SL_ERR_TOO_LARGE;
    for (uint32_t i = 0; i < batch->op_count && err == SL_OK; i++) {
        err = check_op(&batch->ops[i]);
        if (err == SL_OK && batch->durability != SL_DURABLE_SYNC && !is_group_op(&batch->ops[i]))
            err = SL_ERR_INVALID;
    }
    if (err != SL_OK)
        return err;
    return sl_batch_bytes(batch) > SL_BATCH_BYTES_MAX ? SL_ERR_TOO_LARGE : SL_OK;
}

static uint64_t append_bytes(const sl_op *op)
{
    uint64_t bytes = op->append.stream.bytes;

    for (uint32_t i = 0; i < op->append.event_count; i++) {
        const sl_event_in *const event = &op->append.events[i];

        bytes += SL_RECORD_HEAD_BYTES + event->type.bytes + event->data.bytes + event->metadata.bytes;
    }
    return bytes;
}

static uint64_t op_bytes(const sl_op *op)
{
    switch (op->kind) {
    case SL_OP_APPEND: return append_bytes(op);
    case SL_OP_DELETE:
    case SL_OP_TOMBSTONE: return op->remove.stream.bytes;
    case SL_OP_GROUP_CREATE: return op->group_create.definition.bytes;
    case SL_OP_GROUP_UPDATE: return op->group_update.definition.bytes;
    case SL_OP_GROUP_DELETE: return 0;
    case SL_OP_GROUP_RECORD: return (op->group_record.record_count - 1) * SL_RECORD_HEAD_BYTES;
    }
    return 0;
}

uint64_t sl_batch_bytes(const sl_batch *batch)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < batch->op_count; i++)
        bytes += SL_RECORD_HEAD_BYTES + op_bytes(&batch->ops[i]);
    return bytes;
}

/* --- the door --- */

sl_err sl_store_submit(sl_store *store, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    const sl_err err = sl_batch_check(batch);

    assert(done != NULL);
    return err != SL_OK ? err : store->ops->submit(store, batch, done, ctx);
}

void sl_store_turn(sl_store *store)
{
    store->ops->turn(store);
}

int sl_store_wait_fd(const sl_store *store)
{
    return store->ops->wait_fd(store);
}

void sl_store_poll(sl_store *store)
{
    store->ops->poll(store);
}

sl_err sl_store_read(sl_store *store, const sl_read *read, sl_cursor **ret_cursor)
{
    if (read->stream.bytes > 0 && read->filter != NULL)
        return SL_ERR_INVALID;
    return store->ops->read(store, read, ret_cursor);
}

sl_err sl_cursor_next(sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    assert(max > 0);
    return cursor->ops->next(cursor, events, max, ret_count);
}

uint64_t sl_cursor_position(const sl_cursor *cursor)
{
    return cursor->position;
}

uint64_t sl_cursor_considered(const sl_cursor *cursor)
{
    return cursor->considered;
}

void sl_cursor_close(sl_cursor *cursor)
{
    if (cursor != NULL)
        cursor->ops->close(cursor);
}

void sl_store_stream(const sl_store *store, sl_str stream, sl_stream_info *ret_info)
{
    store->ops->stream(store, stream, ret_info);
}

uint64_t sl_store_end(const sl_store *store)
{
    return store->ops->end(store);
}

void sl_store_on_commit(sl_store *store, sl_committed_fn *fn, void *ctx)
{
    store->on_commit = fn;
    store->on_commit_ctx = ctx;
}

void sl_store_on_snapshot(sl_store *store, sl_snapshot_fn *fn, void *ctx)
{
    store->on_snapshot = fn;
    store->on_snapshot_ctx = ctx;
}

sl_err sl_store_load(sl_store *store, const sl_loader *loader)
{
    return store->ops->load(store, loader);
}

sl_err sl_store_scavenge(sl_store *store, const sl_scavenge *how, sl_scavenged_fn *done, void *ctx)
{
    return store->ops->scavenge == NULL ? SL_ERR_NOT_FOUND : store->ops->scavenge(store, how, done, ctx);
}

void sl_store_write(sl_store *store)
{
    store->ops->write(store);
}

void sl_store_hurry(sl_store *store)
{
    store->ops->hurry(store);
}

sl_room sl_store_room(sl_store *store)
{
    return store->ops->room == NULL ? SL_ROOM_ENOUGH : store->ops->room(store);
}

const char *sl_store_problem(const sl_store *store)
{
    return store->ops->problem(store);
}

bool sl_store_is_full(const sl_store *store)
{
    return store->ops->is_full != NULL && store->ops->is_full(store);
}

void sl_store_close(sl_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}
