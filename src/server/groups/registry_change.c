/* server/groups/registry_change.c — groups that are made, changed and deleted: through the door, and done when it is durable.
 *
 *      create --> desk made, its name is taken --> door --> durable --> desk opened, found from now on --> done
 *      update -----------------------------------> door --> durable --> desk told ----------------------> done
 *      delete -----------------------------------> door, desk closed --> durable --> desk freed --------> done
 *
 * The store decides: it takes changes in order, and refuses what does not fit to those before. So several changes of one group may be
 * on their way, and what is kept here follows what the store has said. A name is taken from the submission of its creation
 * until its deletion is durable: whatever is refused, no two groups ever have one name. */
#include "server/groups/registry_private.h"

#include "base/cleanup.h"
#include "server/groups/names.h"
#include "server/streams/write.h"

enum {
    PARKED_NAME_BYTES = SL_STREAM_NAME_BYTES_MAX + 64,
    OPS_MAX = 2,
};

typedef struct change {
    sl_list node;          /* registry->changes */
    sl_registry *registry; /* NULL: it was freed meanwhile */
    const sl_alloc *alloc;
    sl_op_kind kind;
    uint64_t number;
    sl_door_waiter waiter;
    bool is_inside; /* of the door: it will be answered */
    sl_registry_done_fn *done;
    void *ctx;
    size_t text_bytes;
    char text[]; /* the definition; nothing to delete by */
} change;

static void finish(change *c, sl_err err)
{
    sl_registry_done_fn *const done = c->done;
    void *const ctx = c->ctx;

    sl_door_forget(&c->waiter);
    sl_list_remove(&c->node);
    sl_alloc_give(c->alloc, c, sizeof *c + c->text_bytes);
    done(ctx, err);
}

/* --- when it is durable, or not --- */

static sl_err created(sl_registry *registry, registry_entry *e, sl_err err)
{
    if (err != SL_OK) {
        registry_forget(registry, e);
        return err;
    }
    e->is_there = true;
    err = sl_desk_open(e->desk);
    if (err != SL_OK)
        sl_desk_close(e->desk);
    return err == SL_ERR_DRAINING ? SL_OK : err; /* it is there, and opened by the next server */
}

static sl_err tell_desk(const sl_registry *registry, registry_entry *e, sl_str text)
{
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    sl_group_definition definition;
    sl_err err;

    sl_arena_init(&arena, registry->host->alloc, registry_arena_sizes);
    err = sl_group_definition_decode(text, &arena, &definition);
    return err == SL_OK ? sl_desk_update(e->desk, &definition) : err;
}

/* A desk that has failed before, or does so now, is made anew: the store has the new definition. */
static sl_err updated(sl_registry *registry, registry_entry *e, const change *c)
{
    const sl_err err = tell_desk(registry, e, (sl_str){ c->text, c->text_bytes });

    return err == SL_OK || err == SL_ERR_DRAINING ? SL_OK : registry_reload(registry, e);
}

/* Not deleted after all: it goes on from its records. */
static sl_err deleted(sl_registry *registry, registry_entry *e, sl_err err)
{
    if (err == SL_OK) {
        registry_forget(registry, e);
        return SL_OK;
    }
    e->is_there = true;
    (void)registry_reload(registry, e);
    return err;
}

static sl_err settle(change *c, sl_err err)
{
    sl_registry *const registry = c->registry;
    registry_entry *const e = registry_find_number(registry, c->number);

    if (e == NULL)
        return err == SL_OK ? SL_ERR_NOT_FOUND : err;
    if (c->kind == SL_OP_GROUP_CREATE)
        return created(registry, e, err);
    if (c->kind == SL_OP_GROUP_DELETE)
        return deleted(registry, e, err);
    return err == SL_OK ? updated(registry, e, c) : err;
}

static void on_done(void *ctx, const sl_commit *commit)
{
    change *const c = ctx;

    finish(c, c->registry == NULL ? commit->err : settle(c, commit->err));
}

/* --- submitting --- */

static sl_op op_of(const change *c)
{
    const sl_str text = { c->text, c->text_bytes };

    if (c->kind == SL_OP_GROUP_CREATE)
        return (sl_op){ .kind = SL_OP_GROUP_CREATE, .group_create = { c->number, text } };
    if (c->kind == SL_OP_GROUP_UPDATE)
        return (sl_op){ .kind = SL_OP_GROUP_UPDATE, .group_update = { c->number, text } };
    return (sl_op){ .kind = SL_OP_GROUP_DELETE, .group_delete = { c->number } };
}

/* Parked messages go with their group; nobody could tell later whose they were. */
static bool delete_parked(const sl_registry *registry, const registry_entry *e, char *name, sl_op *op)
{
    sl_host *const host = registry->host;
    sl_stream_info info;

    sl_parked_stream_of(sl_desk_key(e->desk), name, PARKED_NAME_BYTES);
    sl_store_stream(host->store, sl_str_from(name), &info);
    *op = (sl_op){ .kind = SL_OP_DELETE,
                   .remove = { .stream = sl_str_from(name),
                               .created_ns = sl_clock_wall_ns(host->clock),
                               .id = sl_write_new_id(host) } };
    return info.state == SL_STREAM_LIVE;
}

static sl_err submit(change *c, registry_entry *e)
{
    sl_registry *const registry = c->registry;
    char name[PARKED_NAME_BYTES];
    sl_op ops[OPS_MAX] = { op_of(c) };
    sl_batch batch = { .ops = ops, .op_count = 1, .durability = SL_DURABLE_SYNC };
    sl_err err;

    if (c->kind == SL_OP_GROUP_DELETE && delete_parked(registry, e, name, &ops[1]))
        batch.op_count++;
    err = sl_door_submit(registry->host->door, &batch, on_done, c);
    if (err != SL_OK)
        return err;
    c->is_inside = true;
    if (c->kind != SL_OP_GROUP_DELETE)
        return SL_OK;
    e->is_there = false;
    sl_desk_close(e->desk); /* what it would still write is about nothing */
    return SL_OK;
}

/* The door had no room, and may have some now. */
static void on_door(void *ctx)
{
    change *const c = ctx;
    sl_registry *const registry = c->registry;
    registry_entry *const e = registry_find_number(registry, c->number);
    const sl_err err = e == NULL ? SL_ERR_NOT_FOUND : submit(c, e);

    if (err == SL_ERR_FULL)
        sl_door_wait(registry->host->door, &c->waiter);
    else if (err != SL_OK)
        finish(c, c->kind == SL_OP_GROUP_CREATE ? settle(c, err) : err);
}

typedef struct asked {
    sl_op_kind kind;
    sl_str text;
    sl_registry_done_fn *done;
    void *ctx;
} asked;

static sl_err begin(sl_registry *registry, registry_entry *e, const asked *a)
{
    change *const c = sl_alloc_take(registry->host->alloc, sizeof *c + a->text.bytes);
    sl_err err;

    if (c == NULL)
        return SL_ERR_NOMEM;
    *c = (change){ .registry = registry,
                   .alloc = registry->host->alloc,
                   .kind = a->kind,
                   .number = e->number,
                   .done = a->done,
                   .ctx = a->ctx,
                   .text_bytes = a->text.bytes };
    if (a->text.bytes > 0)
        memcpy(c->text, a->text.data, a->text.bytes);
    sl_door_waiter_init(&c->waiter, on_door, c);
    err = submit(c, e);
    if (err != SL_OK && err != SL_ERR_FULL) {
        sl_alloc_give(c->alloc, c, sizeof *c + c->text_bytes);
        return err;
    }
    sl_list_push_back(&registry->changes, &c->node);
    if (err == SL_ERR_FULL)
        sl_door_wait(registry->host->door, &c->waiter);
    return SL_OK;
}

void registry_changes_orphan(sl_registry *registry)
{
    while (!sl_list_empty(&registry->changes)) {
        change *const c = SL_CONTAINER_OF(sl_list_first(&registry->changes), change, node);

        sl_list_remove(&c->node);
        c->registry = NULL;
        if (!c->is_inside)
            finish(c, SL_ERR_STORE_FAILED);
    }
}

/* --- what is asked for --- */

static sl_err encode(const sl_group_definition *definition, sl_arena *arena, sl_str *ret_text)
{
    const char *reason;
    const sl_err err = sl_group_definition_check(definition, &reason);

    return err == SL_OK ? sl_group_definition_encode(definition, arena, ret_text) : err;
}

static sl_err make_entry(sl_registry *registry, const sl_group_definition *definition,
                         registry_entry **ret_entry)
{
    sl_desk *desk;
    const sl_err err = sl_desk_new(registry->host, registry->next_number, definition, &desk);

    return err == SL_OK ? registry_add(registry, desk, ret_entry) : err;
}

sl_err sl_registry_create(sl_registry *registry, const sl_group_definition *definition,
                          sl_registry_done_fn *done, void *ctx)
{
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    asked a = { .kind = SL_OP_GROUP_CREATE, .done = done, .ctx = ctx };
    registry_entry *e = NULL;
    sl_err err;

    sl_arena_init(&arena, registry->host->alloc, registry_arena_sizes);
    if (registry_key_is_taken(registry, definition))
        return SL_ERR_EXISTS;
    if (registry->list.count >= registry->groups_max)
        return SL_ERR_FULL;
    err = encode(definition, &arena, &a.text);
    if (err == SL_OK)
        err = make_entry(registry, definition, &e);
    if (err == SL_OK)
        err = begin(registry, e, &a);
    if (err != SL_OK && e != NULL)
        registry_forget(registry, e);
    return err;
}

/* What a filter has let pass or not is settled and done with, so it stays as it was. */
sl_err sl_registry_update(sl_registry *registry, const sl_group_definition *definition,
                          sl_registry_done_fn *done, void *ctx)
{
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    registry_entry *const e = registry_find(registry, definition->stream, definition->name);
    asked a = { .kind = SL_OP_GROUP_UPDATE, .done = done, .ctx = ctx };
    sl_group_definition kept = *definition;
    sl_err err;

    sl_arena_init(&arena, registry->host->alloc, registry_arena_sizes);
    if (e == NULL || !e->is_there)
        return SL_ERR_NOT_FOUND;
    kept.filter = sl_desk_definition(e->desk)->filter;
    kept.of_all = sl_desk_definition(e->desk)->of_all;
    err = encode(&kept, &arena, &a.text);
    return err == SL_OK ? begin(registry, e, &a) : err;
}

sl_err sl_registry_delete(sl_registry *registry, sl_str stream, sl_str group, sl_registry_done_fn *done,
                          void *ctx)
{
    registry_entry *const e = registry_find(registry, stream, group);

    if (e == NULL || !e->is_there)
        return SL_ERR_NOT_FOUND;
    return begin(registry, e, &(asked){ .kind = SL_OP_GROUP_DELETE, .done = done, .ctx = ctx });
}
