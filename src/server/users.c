/* server/users.c — entries by name, and what news do to them. */
#include "server/users.h"

#include "server/auth.h"

#include <assert.h>
#include <stdlib.h>

enum {
    TABLE_LENGTH_MIN = 16, /* most servers have a handful of users */
    USER_CHUNK_BYTES = 512,
};

static const sl_arena_sizes user_arena_sizes = { .chunk_bytes = USER_CHUNK_BYTES,
                                                 .limit_bytes = SL_USER_RECORD_BYTES_MAX };

sl_err sl_users_init(sl_users *users, const sl_alloc *alloc, sl_hash_seed seed)
{
    sl_map_node **const table = sl_alloc_take(alloc, TABLE_LENGTH_MIN * sizeof *table);

    if (table == NULL)
        return SL_ERR_NOMEM;
    *users = (sl_users){ .alloc = alloc, .seed = seed, .table_length = TABLE_LENGTH_MIN };
    sl_map_init(&users->map, table, TABLE_LENGTH_MIN);
    sl_list_init(&users->all);
    return SL_OK;
}

static size_t bytes_of(const sl_user *user)
{
    return sizeof *user + user->stream.bytes;
}

static void drop(sl_users *users, sl_user *user)
{
    assert(user->pins == 0);
    if (users->on_drop != NULL)
        users->on_drop(users->ctx, user);
    sl_map_remove(&users->map, &user->by_name);
    sl_list_remove(&user->all);
    sl_arena_done(&user->arena);
    sl_alloc_give(users->alloc, user, bytes_of(user));
}

void sl_users_done(sl_users *users)
{
    if (users->alloc == NULL)
        return;
    while (!sl_list_empty(&users->all))
        drop(users, SL_CONTAINER_OF(sl_list_first(&users->all), sl_user, all));
    sl_alloc_give(users->alloc, users->map.table, users->table_length * sizeof *users->map.table);
    *users = (sl_users){ 0 };
}

/* --- entries --- */

sl_user *sl_users_find(const sl_users *users, sl_str name)
{
    sl_map_node *node = sl_map_find(&users->map, sl_hash(users->seed, name.data, name.bytes));

    for (; node != NULL; node = sl_map_next(node)) {
        sl_user *const user = SL_CONTAINER_OF(node, sl_user, by_name);

        if (sl_str_equal(user->name, name))
            return user;
    }
    return NULL;
}

sl_user *sl_users_find_there(const sl_users *users, sl_str name)
{
    sl_user *const user = sl_users_find(users, name);

    return user != NULL && (user->state == SL_USER_THERE || user->state == SL_USER_DAMAGED) ? user : NULL;
}

/* Without memory the chains get longer, and nothing else happens. */
static void grow(sl_users *users)
{
    const size_t bytes = users->table_length * sizeof *users->map.table;
    sl_map_node **const old = users->map.table;
    sl_map_node **const table =
        users->map.count < users->table_length ? NULL : sl_alloc_take(users->alloc, 2 * bytes);

    if (table == NULL)
        return;
    users->table_length *= 2;
    sl_map_resize(&users->map, table, users->table_length);
    sl_alloc_give(users->alloc, old, bytes);
}

static sl_user *make(sl_users *users, sl_str name)
{
    static const sl_str prefix = SL_STR_INIT(SL_USER_STREAM_PREFIX);
    sl_user *const user = sl_alloc_take(users->alloc, sizeof *user + prefix.bytes + name.bytes);
    char *stream;

    if (user == NULL)
        return NULL;
    stream = (char *)(user + 1);
    memcpy(stream, prefix.data, prefix.bytes);
    memcpy(stream + prefix.bytes, name.data, name.bytes);
    *user = (sl_user){ .stream = { stream, prefix.bytes + name.bytes },
                       .name = { stream + prefix.bytes, name.bytes },
                       .revision = SL_REVISION_NONE };
    sl_arena_init(&user->arena, users->alloc, user_arena_sizes);
    sl_list_init(&user->stale);
    return user;
}

sl_user *sl_users_enter(sl_users *users, sl_str name)
{
    sl_user *user = sl_users_find(users, name);

    if (user == NULL) {
        user = make(users, name);
        if (user == NULL)
            return NULL;
        grow(users);
        sl_map_insert(&users->map, &user->by_name, sl_hash(users->seed, name.data, name.bytes));
        sl_list_push_back(&users->all, &user->all);
    }
    sl_user_pin(user);
    return user;
}

void sl_user_pin(sl_user *user)
{
    user->pins++;
}

static bool counts(const sl_user *user)
{
    return user->state == SL_USER_THERE || user->state == SL_USER_DAMAGED;
}

void sl_users_unpin(sl_users *users, sl_user *user)
{
    assert(user->pins > 0);
    user->pins--;
    if (user->pins == 0 && !counts(user))
        drop(users, user);
}

/* --- news --- */

/* A stream that was deleted whole has no newer event, it has none at all: then the last revision is said again. */
static bool is_newer(const sl_user *user, const sl_user_news *news)
{
    if (user->revision == SL_REVISION_NONE || news->revision > user->revision)
        return true;
    return news->state == SL_USER_GONE && news->revision == user->revision;
}

static void set_state(sl_users *users, sl_user *user, sl_user_state state)
{
    const bool counted = counts(user);

    user->state = state;
    users->count += counts(user);
    users->count -= counted;
    if (counts(user) && !counted && users->on_there != NULL)
        users->on_there(users->ctx, user);
}

static bool can_log_in(sl_user_state state, const sl_user_record *record)
{
    return state == SL_USER_THERE && !record->disabled;
}

sl_err sl_users_apply(sl_users *users, sl_user *user, const sl_user_news *news)
{
    const bool was_able = can_log_in(user->state, &user->record);
    sl_user_record record = { 0 };
    sl_arena arena;
    sl_err err = SL_OK;
    bool keeps;

    assert(user->pins > 0);
    if (!is_newer(user, news))
        return SL_OK;
    sl_arena_init(&arena, users->alloc, user_arena_sizes);
    if (news->state == SL_USER_THERE)
        err = sl_user_record_copy(news->record, &arena, &record);
    if (err != SL_OK) {
        sl_arena_done(&arena);
        return err;
    }
    keeps = can_log_in(news->state, &record) && sl_str_equal(record.hash, user->record.hash);
    sl_arena_done(&user->arena);
    user->arena = arena;
    user->record = record;
    user->revision = news->revision;
    user->updated_ns = news->created_ns;
    user->generation = ++users->generation;
    set_state(users, user, news->state);
    if (was_able && users->on_change != NULL)
        users->on_change(users->ctx, user, keeps);
    return SL_OK;
}

sl_identity sl_user_identity(const sl_user *user)
{
    const sl_user_record *const record = &user->record;
    const bool is_admin = sl_user_record_has_group(record, SL_STR(SL_GROUP_ADMINS));

    return (sl_identity){ .name = record->login_name,
                          .groups = record->groups,
                          .group_count = record->group_count,
                          .is_admin = is_admin,
                          .is_operator =
                              is_admin || sl_user_record_has_group(record, SL_STR(SL_GROUP_OPERATORS)) };
}

/* --- all of them --- */

static bool will_be_admin(const sl_user *user)
{
    if (user->changing && !user->stays_admin)
        return false;
    return user->state == SL_USER_THERE && sl_user_record_is_admin(&user->record);
}

size_t sl_users_admin_count(const sl_users *users, const sl_user *without)
{
    size_t count = 0;

    SL_LIST_EACH (node, &users->all) {
        const sl_user *const user = SL_CONTAINER_OF(node, const sl_user, all);

        count += user != without && will_be_admin(user);
    }
    return count;
}

static int by_name(const void *a, const void *b)
{
    const sl_user *const *const left = a, *const *const right = b;

    return sl_str_compare((*left)->name, (*right)->name);
}

void sl_users_sorted(const sl_users *users, const sl_user **sorted)
{
    size_t count = 0;

    SL_LIST_EACH (node, &users->all) {
        const sl_user *const user = SL_CONTAINER_OF(node, const sl_user, all);

        if (counts(user))
            sorted[count++] = user;
    }
    assert(count == users->count);
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, by_name);
}
