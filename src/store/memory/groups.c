/* store/memory/groups.c — which groups there are, and the records of each.
 *
 * A group's records are a list with the position of each. A snapshot is written into the same list and, once it is synced,
 * what stands before it is forgotten:
 *
 *      record record record | snapshot snapshot | record record ...
 *      0                     snapshot_first
 *
 * A deletion takes effect at once but stays undoable until it is synced: a power cut brings the group back. The same for
 * definitions: older ones stay before the newest until that is synced. */
#include "store/memory/memory.h"

#include "core/record.h"
#include "store/array.h"

#include <assert.h>
#include <string.h>

enum {
    SNAPSHOT_AFTER = 1024, /* records since the last snapshot, beyond as many as that had */
    TABLE_LENGTH = 1024
};

#define NEVER UINT64_MAX

typedef struct memory_record {
    uint64_t position; /* all records of a snapshot have the same */
    uint8_t byte_count;
    uint8_t bytes[SL_RECORD_BYTES_MAX];
} memory_record;

typedef struct memory_definition {
    uint64_t position; /* of the creation or the update that brought it */
    char *text;        /* NULL when it is empty */
    size_t bytes;
} memory_definition;

typedef struct memory_group {
    sl_map_node node;
    sl_list in_all, in_due;
    uint64_t number, created_at, deleted_at;
    memory_definition *definitions; /* at least one; the last one holds */
    size_t definition_count, definition_capacity;
    memory_record *records;
    size_t record_count, record_capacity;
    uint64_t snapshot_at;  /* position of a snapshot that is not synced yet, or NEVER */
    size_t snapshot_first; /* its place in the list */
    size_t snapshot_count; /* records of the newest snapshot */
} memory_group;

static sl_map_node **table_new(const sl_alloc *alloc)
{
    return sl_alloc_take(alloc, TABLE_LENGTH * sizeof(sl_map_node *));
}

sl_err memory_groups_init(memory_store *store)
{
    sl_map_node **const table = table_new(store->alloc);

    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_init(&store->groups.by_number, table, TABLE_LENGTH);
    sl_list_init(&store->groups.all);
    sl_list_init(&store->groups.due);
    return SL_OK;
}

static uint64_t hash_of(const memory_store *store, uint64_t number)
{
    return sl_hash(store->seed, &number, sizeof number);
}

static memory_group *group_find(const memory_store *store, uint64_t number)
{
    sl_map_node *node = sl_map_find(&store->groups.by_number, hash_of(store, number));

    for (; node != NULL; node = sl_map_next(node)) {
        memory_group *const group = SL_CONTAINER_OF(node, memory_group, node);

        if (group->number == number && group->deleted_at == NEVER)
            return group;
    }
    return NULL;
}

/* Forgets definitions [from, to). */
static void drop_definitions(memory_store *store, memory_group *group, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        sl_alloc_give(store->alloc, group->definitions[i].text, group->definitions[i].bytes);
    memmove(group->definitions + from, group->definitions + to,
            (group->definition_count - to) * sizeof *group->definitions);
    group->definition_count -= to - from;
}

/* Only its memory: nobody may know of it any more. */
static void group_give(memory_store *store, memory_group *group)
{
    if (group->definition_count > 0)
        drop_definitions(store, group, 0, group->definition_count);
    sl_alloc_give(store->alloc, group->definitions, group->definition_capacity * sizeof *group->definitions);
    sl_alloc_give(store->alloc, group->records, group->record_capacity * sizeof *group->records);
    sl_alloc_give(store->alloc, group, sizeof *group);
}

static void group_free(memory_store *store, memory_group *group)
{
    store->groups.unsettled -= group->deleted_at != NEVER;
    store->groups.unsettled -= group->snapshot_at != NEVER;
    store->groups.unsettled -= group->definition_count - 1;
    sl_map_remove(&store->groups.by_number, &group->node);
    sl_list_remove(&group->in_all);
    sl_list_remove(&group->in_due);
    group_give(store, group);
}

void memory_groups_free(memory_store *store)
{
    memory_groups *const groups = &store->groups;

    if (groups->by_number.table == NULL)
        return;
    while (!sl_list_empty(&groups->all))
        group_free(store, SL_CONTAINER_OF(groups->all.next, memory_group, in_all));
    sl_alloc_give(store->alloc, groups->by_number.table, TABLE_LENGTH * sizeof(sl_map_node *));
}

/* --- ops --- */

/* SL_OK or SL_ERR_NOMEM. */
static sl_err add_definition(memory_store *store, memory_group *group, uint64_t position, sl_str text)
{
    memory_definition *const more =
        sl_array_grow(store->alloc, group->definitions, &group->definition_capacity, sizeof *more,
                      group->definition_count + 1);
    memory_definition definition = { .position = position, .bytes = text.bytes };

    if (more == NULL)
        return SL_ERR_NOMEM;
    group->definitions = more;
    if (text.bytes > 0) {
        definition.text = sl_alloc_take(store->alloc, text.bytes);
        if (definition.text == NULL)
            return SL_ERR_NOMEM;
        memcpy(definition.text, text.data, text.bytes);
    }
    more[group->definition_count++] = definition;
    return SL_OK;
}

static sl_err create(memory_store *store, uint64_t position, const sl_op *op)
{
    const uint64_t number = op->group_create.group;
    memory_group *group;

    if (group_find(store, number) != NULL)
        return SL_ERR_EXISTS;
    group = sl_alloc_take(store->alloc, sizeof *group);
    if (group == NULL)
        return SL_ERR_NOMEM;
    *group =
        (memory_group){ .number = number, .created_at = position, .deleted_at = NEVER, .snapshot_at = NEVER };
    if (add_definition(store, group, position, op->group_create.definition) != SL_OK) {
        group_give(store, group);
        return SL_ERR_NOMEM;
    }
    sl_map_insert(&store->groups.by_number, &group->node, hash_of(store, number));
    sl_list_push_back(&store->groups.all, &group->in_all);
    sl_list_init(&group->in_due);
    return SL_OK;
}

static sl_err remove_group(memory_store *store, uint64_t position, const sl_op *op)
{
    memory_group *const group = group_find(store, op->group_delete.group);

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    group->deleted_at = position;
    store->groups.unsettled++;
    return SL_OK;
}

static sl_err update(memory_store *store, uint64_t position, const sl_op *op)
{
    memory_group *const group = group_find(store, op->group_update.group);
    sl_err err;

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    err = add_definition(store, group, position, op->group_update.definition);
    store->groups.unsettled += err == SL_OK;
    return err;
}

static sl_err add_record(memory_store *store, memory_group *group, uint64_t position, const sl_effect *effect)
{
    memory_record *const records = sl_array_grow(store->alloc, group->records, &group->record_capacity,
                                                 sizeof *records, group->record_count + 1);
    memory_record *record;

    if (records == NULL)
        return SL_ERR_NOMEM;
    group->records = records;
    record = &records[group->record_count++];
    record->position = position;
    record->byte_count = (uint8_t)sl_record_encode(effect, record->bytes);
    return SL_OK;
}

/* Records since the newest snapshot, or since the beginning. */
static size_t records_since(const memory_group *group)
{
    const size_t before = group->snapshot_at == NEVER ? 0 : group->snapshot_first;

    return group->record_count - before - group->snapshot_count;
}

static sl_err record(memory_store *store, uint64_t position, const sl_op *op)
{
    memory_group *const group = group_find(store, op->group_record.group);
    sl_err err = SL_OK;

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    for (uint32_t i = 0; i < op->group_record.record_count && err == SL_OK; i++)
        err = add_record(store, group, position, &op->group_record.records[i]);
    if (err == SL_OK && sl_list_empty(&group->in_due) &&
        records_since(group) > SNAPSHOT_AFTER + group->snapshot_count)
        sl_list_push_back(&store->groups.due, &group->in_due);
    return err;
}

sl_err memory_groups_take(memory_store *store, uint64_t position, const sl_op *op)
{
    if (op->kind == SL_OP_GROUP_CREATE)
        return create(store, position, op);
    if (op->kind == SL_OP_GROUP_DELETE)
        return remove_group(store, position, op);
    if (op->kind == SL_OP_GROUP_UPDATE)
        return update(store, position, op);
    assert(op->kind == SL_OP_GROUP_RECORD);
    return record(store, position, op);
}

/* --- snapshots --- */

typedef struct snapshot { /* being written; failed: it did not fit into memory */
    memory_store *store;
    memory_group *group;
    uint64_t position;
    bool failed;
} snapshot;

static void collect(void *ctx, const sl_effect *effect)
{
    snapshot *const s = ctx;

    if (!s->failed)
        s->failed = add_record(s->store, s->group, s->position, effect) != SL_OK;
}

/* One position for all of it: it counts only as a whole. */
static void take_snapshot(memory_store *store, memory_group *group)
{
    const size_t first = group->record_count;
    snapshot s = { store, group, store->writer.next_position, false };

    store->base.on_snapshot(store->base.on_snapshot_ctx, group->number, (sl_sink){ collect, &s });
    if (s.failed || group->record_count == first) { /* nothing is lost: the records are all there */
        group->record_count = first;
        return;
    }
    group->snapshot_at = s.position;
    group->snapshot_first = first;
    group->snapshot_count = group->record_count - first;
    store->writer.next_position++;
    store->groups.unsettled++;
}

void memory_groups_snapshot(memory_store *store)
{
    while (!sl_list_empty(&store->groups.due)) {
        memory_group *const group = SL_CONTAINER_OF(store->groups.due.next, memory_group, in_due);

        sl_list_remove(&group->in_due); /* the next record brings it back when nothing comes of this */
        if (store->base.on_snapshot != NULL && group->deleted_at == NEVER && group->snapshot_at == NEVER)
            take_snapshot(store, group);
    }
}

/* --- what becomes final, and what is undone --- */

static void forget_before_snapshot(memory_store *store, memory_group *group)
{
    group->record_count -= group->snapshot_first;
    memmove(group->records, group->records + group->snapshot_first,
            group->record_count * sizeof *group->records);
    group->snapshot_at = NEVER;
    group->snapshot_first = 0;
    store->groups.unsettled--;
}

/* No power cut brings back what stands before a definition that is synced. */
static void forget_old_definitions(memory_store *store, memory_group *group)
{
    size_t old = group->definition_count - 1;

    while (old > 0 && group->definitions[old].position >= store->synced_end)
        old--;
    store->groups.unsettled -= old;
    drop_definitions(store, group, 0, old);
}

static void forget_replaced(memory_store *store, memory_group *group)
{
    if (group->snapshot_at < store->synced_end)
        forget_before_snapshot(store, group);
    forget_old_definitions(store, group);
}

void memory_groups_synced(memory_store *store)
{
    if (store->groups.unsettled == 0)
        return;
    SL_LIST_EACH_SAFE (node, &store->groups.all) {
        memory_group *const group = SL_CONTAINER_OF(node, memory_group, in_all);

        if (group->deleted_at < store->synced_end)
            group_free(store, group);
        else
            forget_replaced(store, group);
    }
}

/* The first one stays: a group that was created behind the cut is gone as a whole. */
static void cut_definitions(memory_store *store, memory_group *group, uint64_t position)
{
    size_t kept = group->definition_count;

    while (kept > 1 && group->definitions[kept - 1].position >= position)
        kept--;
    store->groups.unsettled -= group->definition_count - kept;
    drop_definitions(store, group, kept, group->definition_count);
}

static void cut_group(memory_store *store, memory_group *group, uint64_t position)
{
    while (group->record_count > 0 && group->records[group->record_count - 1].position >= position)
        group->record_count--;
    if (group->snapshot_at != NEVER && group->snapshot_at >= position) {
        group->snapshot_at = NEVER;
        group->snapshot_first = group->snapshot_count = 0;
        store->groups.unsettled--;
    }
    if (group->deleted_at != NEVER && group->deleted_at >= position) {
        group->deleted_at = NEVER;
        store->groups.unsettled--;
    }
    cut_definitions(store, group, position);
}

void memory_groups_cut(memory_store *store, uint64_t position)
{
    SL_LIST_EACH_SAFE (node, &store->groups.all) {
        memory_group *const group = SL_CONTAINER_OF(node, memory_group, in_all);

        if (group->created_at >= position)
            group_free(store, group);
        else
            cut_group(store, group, position);
    }
}

/* --- loading --- */

static sl_err load_group(const memory_group *group, const sl_loader *loader)
{
    const memory_definition *const newest = &group->definitions[group->definition_count - 1];
    sl_err err = loader->group(loader->ctx, group->number, (sl_str){ newest->text, newest->bytes });

    for (size_t i = 0; i < group->record_count && err == SL_OK; i++) {
        const memory_record *const kept = &group->records[i];
        sl_effect effect;
        size_t used;

        err = sl_record_decode(kept->bytes, kept->byte_count, &effect, &used);
        if (err == SL_OK)
            err = loader->record(loader->ctx, group->number, &effect);
    }
    return err;
}

sl_err memory_groups_load(sl_store *base, const sl_loader *loader)
{
    memory_store *const store = memory_of(base);
    sl_err err = SL_OK;

    SL_LIST_EACH (node, &store->groups.all) {
        const memory_group *const group = SL_CONTAINER_OF(node, const memory_group, in_all);

        if (group->deleted_at == NEVER && err == SL_OK)
            err = load_group(group, loader);
    }
    return err;
}
