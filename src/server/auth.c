/* server/auth.c — who is asking: reads the users, keeps them current, and looks at the header of each call.
 *
 *      turn --> worker: a step of the loader --> ready
 *                 ^          ^
 *      $users was written    $user-x was written    (by the service, by an administrator, by anybody who may)
 *
 * What the users service writes is in memory as soon as it is durable; the watchers then find nothing new. What
 * comes by another way is found by them: an append to $user-x of a user who is there, or a name in $users whose
 * stream is there.
 *
 * Before all users are read nobody is let in: whether anybody has to be asked is not known yet. */
#include "server/auth.h"

#include "server/auth_inside.h"
#include "server/basic.h"
#include "server/recall.h"

#include "base/cleanup.h"

enum {
    LOADER_STEPS = 256, /* events in one turn: some hundred microseconds */
};

#define RETRY_NS (UINT64_C(1000) * 1000 * 1000)
#define HEADER_TOLD_NS                                                                                       \
    (UINT64_C(1000) * 1000 * 1000) /* between two lines in the log: strangers send headers */

/* --- reading users --- */

static void note_damaged(const sl_auth *auth)
{
    if (auth->loader.name_err == SL_ERR_FULL)
        sl_log(auth->host->log, SL_LOG_ERROR,
               "more users are stored than can be held; the others cannot log in",
               SL_LOG_U64("users", auth->users.count));
    else if (auth->loader.name_err != SL_OK)
        sl_log(auth->host->log, SL_LOG_ERROR,
               "a user cannot be read and so cannot log in; delete it and create it anew",
               SL_LOG_STR("user", auth->loader.damaged_name), SL_LOG_ERR("error", auth->loader.name_err));
}

static void become_ready(sl_auth *auth)
{
    if (!auth->ready)
        sl_log(auth->host->log, SL_LOG_INFO, "users read", SL_LOG_U64("users", auth->users.count));
    auth->ready = true;
}

static void note_trouble(sl_auth *auth, sl_err err)
{
    sl_log(auth->host->log, SL_LOG_ERROR, "users cannot be read now; trying again", SL_LOG_ERR("error", err),
           SL_LOG_STR("problem", sl_store_problem(auth->host->store)));
    sl_alarm_set(auth->host, &auth->retry, sl_add_sat_u64(sl_clock_mono_ns(auth->host->clock), RETRY_NS));
}

static void work(void *ctx)
{
    sl_auth *const auth = ctx;
    const sl_err err = sl_user_loader_step(&auth->loader, LOADER_STEPS, sl_clock_wall_ns(auth->host->clock));

    note_damaged(auth);
    if (err == SL_OK)
        become_ready(auth);
    else if (err == SL_ERR_FULL)
        sl_tail_run_soon(auth->host->tail, &auth->worker);
    else if (err == SL_ERR_AGAIN)
        sl_tail_wait_disk(auth->host->tail, &auth->worker);
    else
        note_trouble(auth, err);
}

static void work_soon(void *ctx)
{
    sl_auth *const auth = ctx;

    sl_tail_run_soon(auth->host->tail, &auth->worker);
}

static void names_written(void *ctx)
{
    sl_auth *const auth = ctx;

    sl_tail_wait_commit(auth->host->tail, &auth->names_watch);
    work_soon(auth);
}

static void user_written(void *ctx)
{
    sl_user *const user = ctx;
    sl_auth *const auth = user->watcher;

    sl_tail_wait_commit(auth->host->tail, &user->watch);
    sl_user_loader_touch(&auth->loader, user);
    work_soon(auth);
}

/* The first user shuts a server that was open: who was let in without a name must say who he is from now on. */
static void watch(void *ctx, sl_user *user)
{
    sl_auth *const auth = ctx;

    if (auth->ready && auth->users.count == 1 && !auth->host->settings->insecure)
        sl_recall_trusted(auth->host);
    if (user->watcher == NULL)
        sl_reader_init(&user->watch, user->stream, user_written, user);
    user->watcher = auth;
    sl_tail_wait_commit(auth->host->tail, &user->watch);
}

static void user_changed(void *ctx, const sl_user *user, bool keeps_credentials)
{
    sl_auth *const auth = ctx;

    sl_recall_user(auth->host, user, keeps_credentials);
}

static void unwatch(void *ctx, sl_user *user)
{
    sl_auth *const auth = ctx;

    if (user->watcher != NULL)
        sl_tail_forget(auth->host->tail, &user->watch);
}

/* --- beginning and end --- */

static sl_err start(sl_auth *auth)
{
    sl_host *const host = auth->host;
    sl_err err = sl_users_init(&auth->users, host->alloc, host->seed);

    if (err == SL_OK)
        err = sl_passwords_new(host->alloc, host->wake, host->wake_ctx, &auth->passwords);
    if (err != SL_OK)
        return err;
    auth->users.on_there = watch;
    auth->users.on_change = user_changed;
    auth->users.on_drop = unwatch;
    auth->users.ctx = auth;
    sl_user_loader_init(&auth->loader, host->store, &auth->users);
    sl_throttle_init(&auth->throttle, host->seed);
    sl_remembered_init(&auth->remembered);
    sl_reader_init(&auth->worker, SL_STR(""), work, auth);
    sl_reader_init(&auth->names_watch, SL_STR(SL_USERS_STREAM), names_written, auth);
    auth->retry = (sl_alarm){ .fn = work_soon, .ctx = auth };
    sl_tail_wait_commit(host->tail, &auth->names_watch);
    work_soon(auth);
    return SL_OK;
}

sl_err sl_auth_new(sl_host *host, sl_auth **ret_auth)
{
    sl_auth *const auth = sl_alloc_take(host->alloc, sizeof *auth);
    sl_err err;

    if (auth == NULL)
        return SL_ERR_NOMEM;
    auth->host = host;
    auth->users = (sl_users){ 0 };
    auth->passwords = NULL;
    auth->ready = false;
    auth->is_local = sl_address_is_loopback(sl_str_from(host->settings->host));
    auth->header_told_ns = 0;
    sl_list_init(&auth->logins);
    err = start(auth);
    if (err != SL_OK) {
        sl_users_done(&auth->users);
        sl_alloc_give(host->alloc, auth, sizeof *auth);
        return err;
    }
    *ret_auth = auth;
    return SL_OK;
}

void sl_auth_free(sl_auth *auth)
{
    if (auth == NULL)
        return;
    sl_logins_free(auth);
    sl_passwords_free(auth->passwords);
    sl_alarm_stop(auth->host, &auth->retry);
    sl_tail_forget(auth->host->tail, &auth->worker);
    sl_tail_forget(auth->host->tail, &auth->names_watch);
    sl_user_loader_done(&auth->loader);
    sl_users_done(&auth->users);
    sl_remembered_done(&auth->remembered);
    sl_alloc_give(auth->host->alloc, auth, sizeof *auth);
}

void sl_auth_stop(sl_auth *auth)
{
    sl_passwords_stop(auth->passwords);
}

bool sl_auth_is_busy(const sl_auth *auth)
{
    return sl_passwords_busy(auth->passwords);
}

void sl_auth_leave_helper(sl_auth *auth)
{
    sl_logins_free(auth);
    sl_passwords_leave(auth->passwords);
    auth->passwords = NULL;
}

void sl_auth_turn(sl_auth *auth)
{
    sl_passwords_turn(auth->passwords);
}

bool sl_auth_ready(const sl_auth *auth)
{
    return auth->ready;
}

size_t sl_auth_user_count(const sl_auth *auth)
{
    return auth->users.count;
}

void sl_auth_each_name(const sl_auth *auth, void (*fn)(void *ctx, sl_str name), void *ctx)
{
    SL_LIST_EACH (node, &auth->users.all)
        fn(ctx, SL_CONTAINER_OF(node, const sl_user, all)->name);
}

/* --- who asks --- */

/* Nobody is asked for anything as long as there are no users and only this machine can ask: whoever could delete the last
 * user of a server on a network would otherwise open it to everybody. And when the list of them was deleted, who knows. */
static bool is_open(const sl_auth *auth)
{
    return auth->is_local && auth->users.count == 0 && !auth->loader.names_lost;
}

bool sl_auth_trusts_everybody(const sl_auth *auth)
{
    return auth->host->settings->insecure || (auth->ready && is_open(auth));
}

static void refuse_header(sl_auth *auth, sl_str peer, sl_auth_fn *fn, void *ctx)
{
    const sl_identity nobody = { 0 };
    const uint64_t now_ns = sl_clock_mono_ns(auth->host->clock);

    auth->host->counters.logins_refused++;
    if (auth->header_told_ns == 0 || now_ns - auth->header_told_ns >= HEADER_TOLD_NS) {
        sl_log(auth->host->log, SL_LOG_WARN,
               "log-in refused: only \"authorization: Basic\" with name and password is understood",
               SL_LOG_STR("peer", peer));
        auth->header_told_ns = now_ns;
    }
    fn(ctx, SL_AUTH_REFUSED, &nobody);
}

static void check_header(sl_auth *auth, sl_str header, sl_str peer, sl_auth_ticket *ticket, sl_auth_fn *fn,
                         void *ctx)
{
    sl_credentials credentials;

    if (!sl_basic_parse(header, &credentials)) {
        refuse_header(auth, peer, fn, ctx);
        return;
    }
    sl_login_check(auth, credentials.name, credentials.password, peer, ticket, fn, ctx);
    sl_credentials_wipe(&credentials);
}

void sl_auth_check(sl_auth *auth, sl_str header, sl_str peer, sl_auth_ticket *ticket, sl_auth_fn *fn,
                   void *ctx)
{
    const sl_identity trusted = { .is_admin = true, .is_operator = true, .is_trusted = true }, nobody = { 0 };

    ticket->job = NULL;
    if (auth->host->settings->insecure)
        fn(ctx, SL_AUTH_OK, &trusted);
    else if (!auth->ready)
        fn(ctx, SL_AUTH_NOT_READY, &nobody);
    else if (is_open(auth))
        fn(ctx, SL_AUTH_OK, &trusted);
    else if (header.bytes == 0)
        fn(ctx, SL_AUTH_OK, &nobody);
    else
        check_header(auth, header, peer, ticket, fn, ctx);
}

static sl_err copy_text(sl_str from, sl_arena *arena, sl_str *ret_copy)
{
    const char *const data = sl_arena_copy_str(arena, from);

    if (data == NULL)
        return SL_ERR_NOMEM;
    *ret_copy = (sl_str){ data, from.bytes };
    return SL_OK;
}

sl_err sl_identity_copy(const sl_identity *from, sl_arena *arena, sl_identity *ret_copy)
{
    sl_identity copy = *from;
    sl_str *groups = NULL;
    sl_err err = from->name.bytes == 0 ? SL_OK : copy_text(from->name, arena, &copy.name);

    if (from->group_count > 0)
        groups = sl_arena_alloc(arena, from->group_count * sizeof *groups);
    if (from->group_count > 0 && groups == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; err == SL_OK && i < from->group_count; i++)
        err = copy_text(from->groups[i], arena, &groups[i]);
    copy.groups = groups;
    if (err == SL_OK)
        *ret_copy = copy;
    return err;
}
