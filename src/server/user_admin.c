/* server/user_admin.c — the rules of user_change.h, step by step and waiting for each.
 *
 * There is no loop here to wait in: the store is asked now and then, as other commands do. */
#include "server/user_admin.h"

#include "server/passwords.h"
#include "server/user_change.h"
#include "server/user_loader.h"

#include <sodium.h>
#include <time.h>

enum {
    LOADER_STEPS = 1024,
    ASK_EVERY_NS = 1000 * 1000,
    ARENA_CHUNK_BYTES = 4 * 1024,
    ARENA_BYTES_MAX = 4 * 1024 * 1024,
};

typedef struct admin {
    sl_store *store;
    sl_users users;
    sl_user_loader loader;
    sl_arena arena;
    bool is_done;
    sl_err result; /* of the commit */
    sl_user_plan plan;
} admin;

static void wait_a_little(sl_store *store)
{
    const struct timespec pause = { .tv_nsec = ASK_EVERY_NS };

    (void)nanosleep(&pause, NULL);
    sl_store_turn(store);
    sl_store_poll(store);
}

/* --- reading all users --- */

static sl_err load(admin *a, uint64_t now_ns)
{
    sl_err err;

    while ((err = sl_user_loader_step(&a->loader, LOADER_STEPS, now_ns)) != SL_OK) {
        if (err == SL_ERR_AGAIN)
            wait_a_little(a->store);
        else if (err != SL_ERR_FULL)
            return err;
    }
    return SL_OK;
}

static void close_admin(admin *a)
{
    sl_user_loader_done(&a->loader);
    sl_users_done(&a->users);
    sl_arena_done(&a->arena);
}

static void add_problem(sl_text *problem, const admin *a, sl_err err)
{
    sl_text_add(problem, sl_err_text(err));
    sl_text_add(problem, sl_store_problem(a->store)[0] == '\0' ? "" : ". ");
    sl_text_add(problem, sl_store_problem(a->store));
}

/* On failure nothing stays open. */
static sl_err open_admin(admin *a, sl_store *store, uint64_t now_ns, sl_text *problem)
{
    sl_hash_seed seed;
    sl_err err = sodium_init() < 0 ? SL_ERR_IO : SL_OK;

    *a = (admin){ .store = store };
    sl_arena_init(&a->arena, &sl_alloc_default,
                  (sl_arena_sizes){ .chunk_bytes = ARENA_CHUNK_BYTES, .limit_bytes = ARENA_BYTES_MAX });
    if (err == SL_OK) {
        randombytes_buf(&seed, sizeof seed);
        err = sl_users_init(&a->users, &sl_alloc_default, seed);
    }
    if (err == SL_OK) {
        sl_user_loader_init(&a->loader, store, &a->users);
        err = load(a, now_ns);
    }
    if (err == SL_OK)
        return SL_OK;
    add_problem(problem, a, err);
    close_admin(a);
    return err;
}

/* --- changing one --- */

static void on_done(void *ctx, const sl_commit *commit)
{
    admin *const a = ctx;

    a->result = sl_user_plan_end(&a->plan, commit);
    if (commit->err == SL_OK)
        a->result = SL_OK; /* written; that this process has no memory to know it matters no more */
    a->is_done = true;
}

static sl_err write(admin *a, const sl_user_change *change, uint64_t now_ns)
{
    sl_err err = sl_user_plan_make(&a->plan, &a->users, a->store, change, &a->arena, now_ns);

    if (err != SL_OK)
        return err;
    err = sl_store_submit(a->store, &a->plan.batch, on_done, a);
    if (err != SL_OK) {
        (void)sl_user_plan_end(&a->plan, NULL);
        return err;
    }
    sl_store_turn(a->store);
    sl_store_poll(a->store);
    while (!a->is_done)
        wait_a_little(a->store);
    return a->result;
}

static sl_err code_of(sl_user_verdict verdict)
{
    switch (verdict) {
    case SL_USER_CHANGE_ALLOWED: return SL_OK;
    case SL_USER_CHANGE_NOT_FOUND: return SL_ERR_NOT_FOUND;
    case SL_USER_CHANGE_EXISTS:
    case SL_USER_CHANGE_BUSY: return SL_ERR_EXISTS;
    case SL_USER_CHANGE_FULL: return SL_ERR_FULL;
    case SL_USER_CHANGE_INVALID:
    case SL_USER_CHANGE_NO_ADMIN:
    case SL_USER_CHANGE_IS_DAMAGED: break;
    }
    return SL_ERR_INVALID;
}

static sl_err check_and_write(admin *a, sl_user_change *change, const sl_str *password, uint64_t now_ns,
                              sl_text *problem)
{
    char hash[SL_PASSWORD_HASH_BYTES];
    sl_err err = code_of(sl_user_change_check(&a->users, change, problem));

    if (err == SL_OK && password != NULL)
        err = sl_user_check_password(*password, problem);
    if (err != SL_OK)
        return err;
    if (password != NULL) {
        err = sl_password_hash_now(*password, hash);
        change->hash = sl_str_from(err == SL_OK ? hash : NULL);
    }
    if (err == SL_OK)
        err = write(a, change, now_ns);
    if (err != SL_OK)
        add_problem(problem, a, err);
    return err;
}

/* password: NULL where the change has none. */
static sl_err apply(sl_store *store, sl_user_change *change, const sl_str *password, uint64_t now_ns,
                    sl_text *problem)
{
    admin a;
    sl_err err = open_admin(&a, store, now_ns, problem);

    if (err != SL_OK)
        return err;
    err = check_and_write(&a, change, password, now_ns, problem);
    close_admin(&a);
    return err;
}

sl_err sl_user_admin_add(sl_store *store, sl_str name, sl_str full_name, const sl_str *groups,
                         size_t group_count, sl_str password, uint64_t now_ns, sl_text *problem)
{
    sl_user_change change = { .kind = SL_USER_CREATE,
                              .login_name = name,
                              .full_name = full_name,
                              .groups = groups,
                              .group_count = group_count };

    return apply(store, &change, &password, now_ns, problem);
}

sl_err sl_user_admin_set_password(sl_store *store, sl_str name, sl_str password, uint64_t now_ns,
                                  sl_text *problem)
{
    sl_user_change change = { .kind = SL_USER_SET_PASSWORD, .login_name = name };

    return apply(store, &change, &password, now_ns, problem);
}

sl_err sl_user_admin_remove(sl_store *store, sl_str name, uint64_t now_ns, sl_text *problem)
{
    sl_user_change change = { .kind = SL_USER_DELETE, .login_name = name };

    return apply(store, &change, NULL, now_ns, problem);
}

/* --- all of them --- */

static void tell(const sl_user *user, sl_user_admin_fn *fn, void *ctx)
{
    const sl_user_admin_entry entry = { .name = user->name,
                                        .full_name = user->record.full_name,
                                        .groups = user->record.groups,
                                        .group_count = user->record.group_count,
                                        .updated_ns = user->updated_ns,
                                        .disabled = user->record.disabled,
                                        .damaged = user->state == SL_USER_DAMAGED };

    fn(ctx, &entry);
}

sl_err sl_user_admin_list(sl_store *store, sl_user_admin_fn *fn, void *ctx, sl_text *problem)
{
    const sl_user **sorted;
    admin a;
    sl_err err = open_admin(&a, store, 0, problem);

    if (err != SL_OK)
        return err;
    sorted = sl_arena_alloc(&a.arena, a.users.count * sizeof(const sl_user *));
    if (sorted != NULL) {
        sl_users_sorted(&a.users, sorted);
        for (size_t i = 0; i < a.users.count; i++)
            tell(sorted[i], fn, ctx);
    } else {
        add_problem(problem, &a, SL_ERR_NOMEM);
    }
    close_admin(&a);
    return sorted == NULL ? SL_ERR_NOMEM : SL_OK;
}
