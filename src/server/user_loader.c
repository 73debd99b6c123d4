/* server/user_loader.c — reading $users and the streams that it names. */
#include "server/user_loader.h"

#include "server/auth.h"

#include <assert.h>

void sl_user_loader_init(sl_user_loader *loader, sl_store *store, sl_users *users)
{
    *loader = (sl_user_loader){ .store = store, .users = users };
    sl_list_init(&loader->stale);
}

static sl_user *first_stale(const sl_user_loader *loader)
{
    return SL_CONTAINER_OF(sl_list_first(&loader->stale), sl_user, stale);
}

static void close_last(sl_user_loader *loader)
{
    if (loader->last != NULL)
        sl_cursor_close(loader->last);
    loader->last = NULL;
}

static void close_names(sl_user_loader *loader)
{
    if (loader->names != NULL)
        sl_cursor_close(loader->names);
    loader->names = NULL;
}

/* The first stale user is settled. */
static void settle(sl_user_loader *loader)
{
    sl_user *const user = first_stale(loader);

    close_last(loader);
    sl_list_remove(&user->stale);
    sl_users_unpin(loader->users, user);
}

void sl_user_loader_done(sl_user_loader *loader)
{
    if (loader->store == NULL)
        return;
    while (!sl_list_empty(&loader->stale))
        settle(loader);
    close_names(loader);
}

void sl_user_loader_touch(sl_user_loader *loader, sl_user *user)
{
    const bool is_being_read = loader->last != NULL && first_stale(loader) == user;

    if (is_being_read)
        close_last(loader); /* what it will show may be old by now */
    if (!sl_list_empty(&user->stale))
        return;
    sl_user_pin(user);
    sl_list_push_back(&loader->stale, &user->stale);
}

/* --- one user --- */

/* The name in the event must be that of the stream: nobody becomes somebody else by a copy. */
static sl_err apply_event(sl_user_loader *loader, sl_user *user, const sl_event *event)
{
    sl_user_news news = { .state = SL_USER_GONE,
                          .revision = event->revision,
                          .created_ns = event->created_ns };
    sl_user_record record;
    sl_arena arena;
    sl_err err = SL_OK;

    sl_arena_init(&arena, loader->users->alloc,
                  (sl_arena_sizes){ .chunk_bytes = 1024, .limit_bytes = SL_USER_RECORD_BYTES_MAX });
    if (!sl_str_equal(event->type, SL_STR(SL_USER_EVENT_DELETED))) {
        err = sl_user_record_decode(event->data, &arena, &record);
        news.record = &record;
        news.state =
            err == SL_OK && sl_str_equal(record.login_name, user->name) ? SL_USER_THERE : SL_USER_DAMAGED;
    }
    if (news.state == SL_USER_DAMAGED && err != SL_ERR_NOMEM) {
        loader->name_err = SL_ERR_INVALID;
        loader->damaged_name = user->name;
    }
    if (err != SL_ERR_NOMEM)
        err = sl_users_apply(loader->users, user, &news);
    sl_arena_done(&arena);
    return err;
}

static sl_err apply_without_event(sl_user_loader *loader, sl_user *user, sl_user_state state)
{
    sl_stream_info info;
    sl_user_news news = { .state = state };

    sl_store_stream(loader->store, user->stream, &info);
    news.revision = info.revision == SL_REVISION_NONE ? 0 : info.revision;
    return sl_users_apply(loader->users, user, &news);
}

/* Damage on the disk ends one user, not the start of the server; what may pass is tried again. */
static sl_err take_error(sl_user_loader *loader, sl_user *user, sl_err err)
{
    if (err == SL_ERR_NOT_FOUND || err == SL_ERR_STREAM_DELETED || err == SL_ERR_EMPTY)
        return apply_without_event(loader, user, SL_USER_GONE);
    if (err != SL_ERR_CORRUPT)
        return err;
    loader->name_err = err;
    loader->damaged_name = user->name;
    return apply_without_event(loader, user, SL_USER_DAMAGED);
}

static sl_err read_user(sl_user_loader *loader, uint64_t now_ns)
{
    sl_user *const user = first_stale(loader);
    const sl_read how = {
        .stream = user->stream, .backwards = true, .from = SL_REVISION_MAX, .now_ns = now_ns
    };
    sl_event event;
    uint32_t count;
    sl_err err = loader->last != NULL ? SL_OK : sl_store_read(loader->store, &how, &loader->last);

    if (err == SL_OK)
        err = sl_cursor_next(loader->last, &event, 1, &count);
    if (err == SL_ERR_AGAIN)
        return err;
    err = err == SL_OK ? apply_event(loader, user, &event) : take_error(loader, user, err);
    if (err == SL_OK)
        settle(loader);
    else
        close_last(loader);
    return err;
}

/* --- names --- */

/* Names that are not allowed cannot be of users. Above the limit nobody is let in: better than no server. */
static sl_err take_name(sl_user_loader *loader, sl_str name)
{
    sl_user *user;

    if (sl_user_check_name(name, NULL) != SL_OK)
        return SL_OK;
    if (sl_users_find(loader->users, name) == NULL && loader->users->count >= SL_USERS_MAX) {
        loader->name_err = SL_ERR_FULL;
        loader->damaged_name = SL_STR("");
        return SL_OK;
    }
    user = sl_users_enter(loader->users, name);
    if (user == NULL)
        return SL_ERR_NOMEM;
    sl_user_loader_touch(loader, user);
    sl_users_unpin(loader->users, user);
    return SL_OK;
}

static sl_err open_names(sl_user_loader *loader, uint64_t now_ns)
{
    const sl_read how = { .stream = SL_STR(SL_USERS_STREAM), .from = loader->names_next, .now_ns = now_ns };
    sl_stream_info info;
    sl_err err;

    sl_store_stream(loader->store, how.stream, &info);
    loader->names_lost = info.state == SL_STREAM_SOFT_DELETED || info.state == SL_STREAM_TOMBSTONED;
    if (loader->names != NULL)
        return SL_OK;
    err = sl_store_read(loader->store, &how, &loader->names);
    return err == SL_ERR_NOT_FOUND || err == SL_ERR_STREAM_DELETED ? SL_ERR_EMPTY : err;
}

/* Takes a page of names. SL_ERR_EMPTY: there are no more. */
static sl_err read_names(sl_user_loader *loader, uint64_t now_ns)
{
    sl_event events[SL_USER_LOADER_PAGE];
    uint32_t count = 0;
    sl_err err = open_names(loader, now_ns);

    if (err == SL_OK)
        err = sl_cursor_next(loader->names, events, SL_USER_LOADER_PAGE, &count);
    for (uint32_t i = 0; err == SL_OK && i < count; i++) {
        err = take_name(loader, events[i].data);
        if (err == SL_OK)
            loader->names_next = events[i].revision + 1;
    }
    if (err != SL_OK && err != SL_ERR_AGAIN)
        close_names(loader); /* the next look begins behind the last name that was taken */
    return err == SL_ERR_STREAM_DELETED ? SL_ERR_EMPTY : err;
}

sl_err sl_user_loader_step(sl_user_loader *loader, uint32_t work_max, uint64_t now_ns)
{
    loader->name_err = SL_OK;
    for (uint32_t work = 0; work < work_max && loader->name_err == SL_OK; work++) {
        const bool is_page = sl_list_empty(&loader->stale);
        const sl_err err = is_page ? read_names(loader, now_ns) : read_user(loader, now_ns);

        if (is_page && err == SL_ERR_EMPTY)
            return SL_OK;
        if (err != SL_OK)
            return err;
    }
    return SL_ERR_FULL;
}
