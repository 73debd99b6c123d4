/* server/groups/registry.c — which groups there are: found by name, loaded by number.
 *
 * A desk that cannot go on is made again from the store's records, which is always right (desk.c): nobody was told of what is not
 * in them. Loading again reads the log in this thread, as opening does. That is for operators and for failures. */
#include "server/groups/registry_private.h"

#include "base/cleanup.h"

#include <assert.h>

enum {
    TABLE_LENGTH_FIRST = 64,
    LIST_LENGTH_FIRST = 16,
};

/* --- finding --- */

static sl_str stream_of(const registry_entry *e)
{
    return sl_desk_definition(e->desk)->stream;
}

static int compare(const registry_entry *e, sl_str stream, sl_str group)
{
    const int by_stream = sl_str_compare(stream_of(e), stream);

    return by_stream != 0 ? by_stream : sl_str_compare(sl_desk_definition(e->desk)->name, group);
}

/* Index of the first that is not before this name. */
static size_t place_of(const sl_registry *registry, sl_str stream, sl_str group)
{
    size_t low = 0, high = registry->list.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare(registry->list.items[middle], stream, group) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

registry_entry *registry_find(const sl_registry *registry, sl_str stream, sl_str group)
{
    const size_t at = place_of(registry, stream, group);

    if (at == registry->list.count || compare(registry->list.items[at], stream, group) != 0)
        return NULL;
    return registry->list.items[at];
}

/* "a" with "b::c" and "a::b" with "c" have one key, and their parked messages would meet in one stream. */
bool registry_key_is_taken(const sl_registry *registry, const sl_group_definition *definition)
{
    char buffer[SL_GROUP_KEY_BYTES_MAX + 1];
    sl_text key;

    sl_text_init(&key, buffer, sizeof buffer);
    sl_group_definition_key(definition, &key);
    for (size_t i = 0; i + 2 <= key.bytes; i++)
        if (memcmp(buffer + i, "::", 2) == 0 &&
            registry_find(registry, (sl_str){ buffer, i }, (sl_str){ buffer + i + 2, key.bytes - i - 2 }) !=
                NULL)
            return true;
    return false;
}

sl_desk *sl_registry_find(const sl_registry *registry, sl_str stream, sl_str group)
{
    const registry_entry *const e = registry_find(registry, stream, group);

    return e == NULL || !e->is_there ? NULL : e->desk;
}

void sl_registry_each(const sl_registry *registry, sl_str stream, sl_desk_fn *fn, void *ctx)
{
    for (size_t i = stream.bytes == 0 ? 0 : place_of(registry, stream, SL_STR("")); i < registry->list.count;
         i++) {
        const registry_entry *const e = registry->list.items[i];

        if (stream.bytes > 0 && !sl_str_equal(stream_of(e), stream))
            return;
        if (e->is_there)
            fn(ctx, e->desk);
    }
}

static uint64_t hash_of(const sl_registry *registry, sl_str stream)
{
    return sl_hash(registry->host->seed, stream.data, stream.bytes);
}

bool sl_registry_knows_stream(const sl_registry *registry, sl_str stream)
{
    const size_t at = place_of(registry, stream, SL_STR(""));
    const uint64_t hash = hash_of(registry, stream);

    if (at < registry->list.count && sl_str_equal(stream_of(registry->list.items[at]), stream))
        return true;
    for (size_t i = 0; i < sl_min_u64(registry->past_stream_count, REGISTRY_PAST_STREAMS); i++)
        if (registry->past_streams[i] == hash)
            return true;
    return false;
}

static uint64_t number_hash(const sl_registry *registry, uint64_t number)
{
    return sl_hash(registry->host->seed, &number, sizeof number);
}

registry_entry *registry_find_number(const sl_registry *registry, uint64_t number)
{
    for (sl_map_node *node = sl_map_find(&registry->by_number, number_hash(registry, number)); node != NULL;
         node = sl_map_next(node)) {
        registry_entry *const e = SL_CONTAINER_OF(node, registry_entry, by_number);

        if (e->number == number)
            return e;
    }
    return NULL;
}

/* --- keeping --- */

static sl_err grow_list(sl_registry *registry)
{
    registry_list *const list = &registry->list;
    const size_t capacity = list->capacity == 0 ? LIST_LENGTH_FIRST : 2 * list->capacity;
    registry_entry **items;

    if (list->count < list->capacity)
        return SL_OK;
    items = sl_alloc_resize(registry->host->alloc, list->items, list->capacity * sizeof(registry_entry *),
                            capacity * sizeof(registry_entry *));
    if (items == NULL)
        return SL_ERR_NOMEM;
    list->items = items;
    list->capacity = capacity;
    return SL_OK;
}

/* Without memory it stays as it is: fuller, and slower. */
static void grow_table(sl_registry *registry)
{
    const size_t length = 2 * registry->table_length;
    sl_map_node **table, **old;

    if (registry->by_number.count < registry->table_length)
        return;
    table = sl_alloc_take(registry->host->alloc, length * sizeof(sl_map_node *));
    if (table == NULL)
        return;
    old = registry->by_number.table;
    sl_map_resize(&registry->by_number, table, length);
    sl_alloc_give(registry->host->alloc, old, registry->table_length * sizeof(sl_map_node *));
    registry->table_length = length;
}

/* Takes the desk, also when it fails. */
sl_err registry_add(sl_registry *registry, sl_desk *desk, registry_entry **ret_entry)
{
    const sl_group_definition *const definition = sl_desk_definition(desk);
    registry_list *const list = &registry->list;
    registry_entry *const e = sl_alloc_take(registry->host->alloc, sizeof *e);
    size_t at;

    if (e == NULL || grow_list(registry) != SL_OK) {
        sl_alloc_give(registry->host->alloc, e, e == NULL ? 0 : sizeof *e);
        sl_desk_free(desk);
        return SL_ERR_NOMEM;
    }
    *e = (registry_entry){ .number = sl_desk_number(desk), .desk = desk };
    at = place_of(registry, definition->stream, definition->name);
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof(registry_entry *));
    list->items[at] = e;
    list->count++;
    grow_table(registry);
    sl_map_insert(&registry->by_number, &e->by_number, number_hash(registry, e->number));
    registry->next_number = sl_max_u64(registry->next_number, e->number + 1);
    *ret_entry = e;
    return SL_OK;
}

void registry_forget(sl_registry *registry, registry_entry *e)
{
    registry_list *const list = &registry->list;
    const sl_group_definition *const definition = sl_desk_definition(e->desk);
    const size_t at = place_of(registry, definition->stream, definition->name);

    assert(list->items[at] == e);
    registry->past_streams[registry->past_stream_count++ % REGISTRY_PAST_STREAMS] =
        hash_of(registry, definition->stream);
    list->count--;
    memmove(list->items + at, list->items + at + 1, (list->count - at) * sizeof(registry_entry *));
    sl_map_remove(&registry->by_number, &e->by_number);
    sl_desk_free(e->desk); /* not found any more: who has waited for it looks again */
    sl_alloc_give(registry->host->alloc, e, sizeof *e);
}

/* --- loading --- */

typedef struct loading {
    sl_registry *registry;
    sl_text *problem;
    uint64_t only; /* the number of a group; 0: all of them */
    bool is_again; /* they are there, and get new desks */
} loading;

static void explain(const loading *l, uint64_t number, const char *key, sl_err err)
{
    if (l->problem == NULL || l->problem->bytes > 0)
        return;
    sl_text_add(l->problem, "The persistent subscription ");
    if (key != NULL)
        sl_text_add(l->problem, key);
    else
        sl_text_add(l->problem, "with the number ");
    if (key == NULL)
        sl_text_add_u64(l->problem, number);
    sl_text_add(l->problem, " cannot be loaded: ");
    sl_text_add(l->problem, sl_err_text(err));
    sl_text_add(l->problem, ".");
}

static sl_err make_desk(sl_registry *registry, uint64_t number, sl_str text, sl_desk **ret_desk)
{
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    sl_group_definition definition;
    sl_err err;

    sl_arena_init(&arena, registry->host->alloc, registry_arena_sizes);
    err = sl_group_definition_decode(text, &arena, &definition);
    return err == SL_OK ? sl_desk_new(registry->host, number, &definition, ret_desk) : err;
}

static sl_err take_desk(const loading *l, uint64_t number, sl_desk *desk)
{
    const sl_group_definition *const definition = sl_desk_definition(desk);
    registry_entry *e = registry_find_number(l->registry, number);
    const bool fits = l->is_again ? e != NULL && e->renewed == NULL
                                  : e == NULL && !registry_key_is_taken(l->registry, definition);
    sl_err err = SL_OK;

    if (!fits) {
        sl_desk_free(desk);
        return SL_ERR_CORRUPT; /* the store has one number, or one name, twice */
    }
    if (!l->is_again)
        err = registry_add(l->registry, desk, &e);
    else
        e->renewed = desk;
    if (err == SL_OK && !l->is_again)
        e->is_there = true;
    return err;
}

static bool is_wanted(const loading *l, uint64_t number)
{
    const registry_entry *const e = l->is_again ? registry_find_number(l->registry, number) : NULL;

    if (l->is_again && (e == NULL || !e->is_there))
        return false; /* its creation, or deletion, is on its way */
    return l->only == 0 || l->only == number;
}

static sl_err load_group(void *ctx, uint64_t number, sl_str text)
{
    const loading *const l = ctx;
    sl_desk *desk;
    sl_err err;

    if (!is_wanted(l, number))
        return SL_OK;
    err = make_desk(l->registry, number, text, &desk);
    if (err == SL_OK)
        err = take_desk(l, number, desk);
    if (err != SL_OK)
        explain(l, number, NULL, err);
    return err;
}

static sl_err load_record(void *ctx, uint64_t number, const sl_effect *record)
{
    const loading *const l = ctx;
    const registry_entry *const e = registry_find_number(l->registry, number);
    sl_desk *const desk = e == NULL ? NULL : l->is_again ? e->renewed : e->desk;
    sl_err err;

    if (!is_wanted(l, number))
        return SL_OK;
    err = desk == NULL ? SL_ERR_CORRUPT : sl_desk_load(desk, record);
    if (err != SL_OK)
        explain(l, number, desk == NULL ? NULL : sl_desk_key(desk), err);
    return err;
}

static sl_err load(loading *l)
{
    const sl_loader loader = { .ctx = l, .group = load_group, .record = load_record };
    const sl_err err = sl_store_load(l->registry->host->store, &loader);

    if (err != SL_OK && l->problem != NULL && l->problem->bytes == 0) {
        sl_text_add(l->problem, "The persistent subscriptions cannot be loaded: ");
        sl_text_add(l->problem, sl_err_text(err));
        sl_text_add(l->problem, ". ");
        sl_text_add(l->problem, sl_store_problem(l->registry->host->store));
    }
    return err;
}

static sl_err open_all(sl_registry *registry, sl_text *problem)
{
    const loading l = { .registry = registry, .problem = problem };
    sl_err err = SL_OK;

    for (size_t i = 0; err == SL_OK && i < registry->list.count; i++) {
        const registry_entry *const e = registry->list.items[i];

        err = sl_desk_open(e->desk);
        if (err != SL_OK)
            explain(&l, e->number, sl_desk_key(e->desk), err);
    }
    return err;
}

/* --- loading again --- */

/* Desks are opened in their places, and only then the old ones go: who has waited for an old one finds the new one. */
static void renew(sl_registry *registry, registry_entry *e)
{
    sl_desk *const old = e->desk;
    sl_err err;

    e->desk = SL_TAKE_PTR(e->renewed);
    err = sl_desk_open(e->desk);
    if (err != SL_OK) {
        sl_log(registry->host->log, err == SL_ERR_DRAINING ? SL_LOG_INFO : SL_LOG_ERROR,
               "a persistent subscription was loaded again but cannot be opened",
               SL_LOG_STR("group", sl_desk_key(e->desk)), SL_LOG_ERR("error", err));
        sl_desk_close(e->desk);
    }
    sl_desk_free(old);
}

/* All or none: without memory the old ones go on. Consumers that are dropped may look here meanwhile, but change nothing. */
static sl_err load_again(sl_registry *registry, uint64_t only)
{
    loading l = { .registry = registry, .only = only, .is_again = true };
    const sl_err err = load(&l);

    for (size_t i = 0; i < registry->list.count; i++) {
        registry_entry *const e = registry->list.items[i];

        if (e->renewed != NULL && err == SL_OK)
            renew(registry, e);
        sl_desk_free(SL_TAKE_PTR(e->renewed));
    }
    return err;
}

sl_err registry_reload(sl_registry *registry, registry_entry *e)
{
    return load_again(registry, e->number);
}

/* A desk that works rebuilds itself, as for an Update that changes nothing, so that what is on its way to the disk stays on its way. Only
 * one that does not is loaded from the store. */
static sl_err restart(sl_registry *registry, registry_entry *e)
{
    const sl_err err = sl_desk_update(e->desk, sl_desk_definition(e->desk));

    return err == SL_OK || err == SL_ERR_DRAINING ? err : registry_reload(registry, e);
}

sl_err sl_registry_restart(sl_registry *registry)
{
    sl_err result = SL_OK;

    for (size_t i = 0; i < registry->list.count; i++) {
        registry_entry *const e = registry->list.items[i];
        const sl_err err = e->is_there ? restart(registry, e) : SL_OK;

        result = result == SL_OK ? err : result;
    }
    return result;
}

/* --- made and gone --- */

static void on_snapshot(void *ctx, uint64_t number, sl_sink sink)
{
    const registry_entry *const e = registry_find_number(ctx, number);

    if (e != NULL)
        sl_desk_snapshot(e->desk, sink);
}

static sl_err init(sl_registry *registry, sl_host *host)
{
    sl_map_node **table;

    *registry = (sl_registry){
        .host = host, .groups_max = SL_GROUPS_MAX, .next_number = 1, .table_length = TABLE_LENGTH_FIRST
    };
    sl_list_init(&registry->changes);
    table = sl_alloc_take(host->alloc, TABLE_LENGTH_FIRST * sizeof(sl_map_node *));
    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_init(&registry->by_number, table, TABLE_LENGTH_FIRST);
    return SL_OK;
}

sl_err sl_registry_new(sl_host *host, sl_text *problem, sl_registry **ret_registry)
{
    sl_registry *const registry = sl_alloc_take(host->alloc, sizeof *registry);
    loading l = { .registry = registry, .problem = problem };
    sl_err err;

    if (registry == NULL)
        return SL_ERR_NOMEM;
    err = init(registry, host);
    if (err != SL_OK) {
        sl_alloc_give(host->alloc, registry, sizeof *registry);
        return err;
    }
    err = load(&l);
    if (err == SL_OK)
        err = open_all(registry, problem);
    if (err != SL_OK) {
        sl_registry_free(registry);
        return err;
    }
    sl_store_on_snapshot(host->store, on_snapshot, registry);
    *ret_registry = registry;
    return SL_OK;
}

void sl_registry_free(sl_registry *registry)
{
    const sl_alloc *alloc;

    if (registry == NULL)
        return;
    alloc = registry->host->alloc;
    sl_store_on_snapshot(registry->host->store, NULL, NULL);
    registry_changes_orphan(registry);
    while (registry->list.count > 0)
        registry_forget(registry, registry->list.items[registry->list.count - 1]);
    sl_alloc_give(alloc, registry->by_number.table, registry->table_length * sizeof(sl_map_node *));
    sl_alloc_give(alloc, registry->list.items, registry->list.capacity * sizeof(registry_entry *));
    sl_alloc_give(alloc, registry, sizeof *registry);
}
