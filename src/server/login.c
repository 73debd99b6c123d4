/* server/login.c — is this the right password?
 *
 *      this connection was let in with it lately?  -- yes --> OK
 *      the same question is being answered?        -- yes --> wait for that answer too
 *      too many failures?                          -- yes --> TOO_OFTEN, or the next question alone
 *      it was right lately, elsewhere?             -- yes --> OK
 *      the helper thread decides                          --> OK or REFUSED
 *
 * The order matters. The first question comes before the throttle, so that a stranger at the same address cannot
 * stop a client that is at work; the fourth comes behind it, or it would let a stranger guess at full speed. The throttle
 * counts it like a try, and allows a few also where it allows no try: others behind the same address are to blame. A
 * client that starts with a hundred calls asks the slow question once. All of this is the same for users that do
 * not exist. */
#include "server/auth_inside.h"

#include <assert.h>

enum {
    PEER_BYTES_MAX = 64
};

/* One question to the helper thread. */
typedef struct login {
    sl_list node; /* auth->logins */
    sl_auth *auth;
    sl_login_digest digest;
    sl_throttle_key key;
    sl_password_job *job;
    sl_list waiters;
    size_t name_bytes, peer_bytes;
    char name[SL_LOGIN_NAME_BYTES_MAX];
    char peer[PEER_BYTES_MAX];
} login;

typedef struct waiter {
    sl_list node; /* login->waiters */
    sl_auth_ticket *ticket;
    sl_auth_fn *fn;
    void *ctx;
    sl_login_digest connection;
} waiter;

/* Who asks, and with what. */
typedef struct question {
    sl_str name, password, peer;
    sl_login_digest digest, connection;
    sl_user *user; /* NULL: there is none, or none that can log in */
    sl_auth_ticket *ticket;
    sl_auth_fn *fn;
    void *ctx;
} question;

static uint64_t now_ns(const sl_auth *auth)
{
    return sl_clock_mono_ns(auth->host->clock);
}

/* --- answers --- */

static void answer_user(const sl_user *user, sl_auth_fn *fn, void *ctx)
{
    const sl_identity identity = sl_user_identity(user);

    fn(ctx, SL_AUTH_OK, &identity);
}

static void answer(const question *q, sl_auth_verdict verdict)
{
    const sl_identity nobody = { 0 };

    q->fn(q->ctx, verdict, &nobody);
}

static void answer_throttled(sl_auth *auth, const question *q, bool say_it)
{
    auth->host->counters.logins_throttled++;
    if (say_it)
        sl_log(auth->host->log, SL_LOG_WARN, "log-ins throttled after too many failures",
               SL_LOG_STR("user", q->name), SL_LOG_STR("peer", q->peer));
    answer(q, SL_AUTH_TOO_OFTEN);
}

static void note_refused(sl_auth *auth, sl_str name, sl_str peer)
{
    uint64_t unsaid;

    auth->host->counters.logins_refused++;
    if (sl_seldom_may(&auth->host->login_refused, now_ns(auth), &unsaid))
        sl_log(auth->host->log, SL_LOG_WARN, "log-in refused", SL_LOG_STR("user", name),
               SL_LOG_STR("peer", peer), SL_LOG_U64("others_before", unsaid));
}

/* --- those who wait --- */

static sl_err add_waiter(sl_auth *auth, login *l, const question *q)
{
    waiter *const w = sl_alloc_take(auth->host->alloc, sizeof *w);

    if (w == NULL)
        return SL_ERR_NOMEM;
    *w = (waiter){ .ticket = q->ticket, .fn = q->fn, .ctx = q->ctx, .connection = q->connection };
    sl_list_push_back(&l->waiters, &w->node);
    q->ticket->job = w;
    return SL_OK;
}

/* Takes a waiter out and frees it; what is needed of it is returned. */
static waiter end_waiter(sl_auth *auth, waiter *w)
{
    const waiter copy = *w;

    sl_list_remove(&w->node);
    w->ticket->job = NULL;
    sl_alloc_give(auth->host->alloc, w, sizeof *w);
    return copy;
}

void sl_auth_cancel(sl_auth *auth, sl_auth_ticket *ticket)
{
    if (ticket->job != NULL)
        (void)end_waiter(auth, ticket->job); /* the question stays: its answer counts for the throttle */
}

/* --- the slow answer --- */

static sl_user *user_who_can_log_in(const sl_auth *auth, sl_str name)
{
    sl_user *const user = sl_users_find(&auth->users, name);

    return user != NULL && user->state == SL_USER_THERE && !user->record.disabled ? user : NULL;
}

static void free_login(sl_auth *auth, login *l)
{
    assert(sl_list_empty(&l->waiters));
    sl_list_remove(&l->node);
    sl_password_wipe((sl_str){ (const char *)l, sizeof *l });
    sl_alloc_give(auth->host->alloc, l, sizeof *l);
}

/* The callbacks are strangers' code: the user may change in one of them, so each gets what is true at its moment. */
static void tell_right(sl_auth *auth, sl_list *waiters, sl_user *user, uint64_t ends_ns)
{
    sl_user_pin(user);
    while (!sl_list_empty(waiters)) {
        const waiter w = end_waiter(auth, SL_CONTAINER_OF(sl_list_first(waiters), waiter, node));

        sl_remembered_add(&auth->remembered, &w.connection, user->generation, ends_ns);
        answer_user(user, w.fn, w.ctx);
    }
    sl_users_unpin(&auth->users, user);
}

static void tell_all(sl_auth *auth, sl_list *waiters, sl_auth_verdict verdict)
{
    const sl_identity nobody = { 0 };

    while (!sl_list_empty(waiters)) {
        const waiter w = end_waiter(auth, SL_CONTAINER_OF(sl_list_first(waiters), waiter, node));

        w.fn(w.ctx, verdict, &nobody);
    }
}

static void note_wrong(sl_auth *auth, const login *l)
{
    note_refused(auth, (sl_str){ l->name, l->name_bytes }, (sl_str){ l->peer, l->peer_bytes });
}

static void note_failed(sl_auth *auth, const login *l)
{
    uint64_t unsaid;

    sl_throttle_undone(&auth->throttle, l->key);
    if (sl_seldom_may(&auth->host->login_failed, now_ns(auth), &unsaid))
        sl_log(auth->host->log, SL_LOG_ERROR, "no memory to check a password: it takes 64 MiB",
               SL_LOG_U64("others_before", unsaid));
}

/* The user may have got another password while this one was being checked: then it is not the right one any more. */
static void on_outcome(void *ctx, sl_password_outcome outcome, sl_str hash)
{
    login *const l = ctx;
    sl_auth *const auth = l->auth;
    const uint64_t ends_ns = now_ns(auth) + SL_REMEMBERED_NS;
    sl_user *user = user_who_can_log_in(auth, (sl_str){ l->name, l->name_bytes });
    sl_list waiters;

    if (outcome != SL_PASSWORD_RIGHT || user == NULL || !sl_str_equal(hash, user->record.hash))
        user = NULL;
    sl_list_init(&waiters);
    sl_list_splice(&waiters, &l->waiters);
    if (user != NULL) {
        auth->host->counters.logins_ok++;
        sl_throttle_right(&auth->throttle, l->key);
        sl_remembered_add(&auth->remembered, &l->digest, user->generation, ends_ns);
    } else if (outcome == SL_PASSWORD_FAILED) {
        note_failed(auth, l);
    } else {
        note_wrong(auth, l);
    }
    free_login(auth, l);
    if (user != NULL)
        tell_right(auth, &waiters, user, ends_ns);
    else
        tell_all(auth, &waiters, outcome == SL_PASSWORD_FAILED ? SL_AUTH_NOT_READY : SL_AUTH_REFUSED);
}

static login *new_login(sl_auth *auth, const question *q, sl_throttle_key key)
{
    login *const l = sl_alloc_take(auth->host->alloc, sizeof *l);

    if (l == NULL)
        return NULL;
    *l = (login){ .auth = auth, .digest = q->digest, .key = key, .name_bytes = q->name.bytes };
    l->peer_bytes = q->peer.bytes < PEER_BYTES_MAX ? q->peer.bytes : PEER_BYTES_MAX;
    memcpy(l->name, q->name.data, q->name.bytes);
    if (l->peer_bytes > 0)
        memcpy(l->peer, q->peer.data, l->peer_bytes);
    sl_list_init(&l->waiters);
    sl_list_push_back(&auth->logins, &l->node);
    return l;
}

/* A user that may not log in is compared with its own hash all the same, and one that does not exist with nobody's. */
static sl_err ask_helper(sl_auth *auth, const question *q, sl_throttle_key key)
{
    const sl_user *const user = sl_users_find(&auth->users, q->name);
    const sl_str hash = user != NULL && user->state == SL_USER_THERE ? user->record.hash : SL_STR("");
    login *const l = new_login(auth, q, key);
    sl_err err = l == NULL ? SL_ERR_NOMEM : add_waiter(auth, l, q);

    if (err == SL_OK)
        err = sl_passwords_verify(auth->passwords, q->password, hash, on_outcome, l, &l->job);
    if (err != SL_OK && l != NULL) {
        while (!sl_list_empty(&l->waiters))
            (void)end_waiter(auth, SL_CONTAINER_OF(sl_list_first(&l->waiters), waiter, node));
        free_login(auth, l);
    }
    return err;
}

void sl_logins_free(sl_auth *auth)
{
    while (!sl_list_empty(&auth->logins)) {
        login *const l = SL_CONTAINER_OF(sl_list_first(&auth->logins), login, node);

        sl_passwords_cancel(auth->passwords, l->job);
        while (!sl_list_empty(&l->waiters))
            (void)end_waiter(auth, SL_CONTAINER_OF(sl_list_first(&l->waiters), waiter, node));
        free_login(auth, l);
    }
}

/* --- the question --- */

static login *find_login(const sl_auth *auth, const sl_login_digest *digest)
{
    SL_LIST_EACH (node, &auth->logins) {
        login *const l = SL_CONTAINER_OF(node, login, node);

        if (sl_login_digest_equal(&l->digest, digest))
            return l;
    }
    return NULL;
}

static bool was_right_here(const sl_auth *auth, const question *q)
{
    return q->user != NULL &&
           sl_remembered_ends_ns(&auth->remembered, &q->connection, q->user->generation, now_ns(auth)) > 0;
}

/* Remembered from another connection: then it is remembered for this one too. */
static bool was_right_elsewhere(sl_auth *auth, const question *q)
{
    const uint64_t ends_ns = q->user == NULL ? 0
                                             : sl_remembered_ends_ns(&auth->remembered, &q->digest,
                                                                     q->user->generation, now_ns(auth));

    if (ends_ns > 0)
        sl_remembered_add(&auth->remembered, &q->connection, q->user->generation, ends_ns);
    return ends_ns > 0;
}

/* The throttle lets it through: it is remembered, or a matter for the helper thread. */
static void ask_further(sl_auth *auth, const question *q, sl_throttle_key key)
{
    sl_err err;

    if (was_right_elsewhere(auth, q)) {
        sl_throttle_right(&auth->throttle, key);
        answer_user(q->user, q->fn, q->ctx);
        return;
    }
    err = ask_helper(auth, q, key);
    if (err == SL_OK)
        return;
    sl_throttle_undone(&auth->throttle, key);
    if (err == SL_ERR_FULL)
        answer_throttled(auth, q, false);
    else
        answer(q, SL_AUTH_NOT_READY);
}

/* The throttle does not: only what is remembered can help. */
static void ask_memory(sl_auth *auth, const question *q, sl_throttle_key key, bool say_it)
{
    if (!sl_throttle_look(&auth->throttle, key, now_ns(auth)) || !was_right_elsewhere(auth, q)) {
        answer_throttled(auth, q, say_it);
        return;
    }
    sl_throttle_known(&auth->throttle, key);
    answer_user(q->user, q->fn, q->ctx);
}

static void ask(sl_auth *auth, const question *q)
{
    const sl_throttle_key key = sl_throttle_key_of(&auth->throttle, q->name, q->peer);
    login *const pending = find_login(auth, &q->digest);

    if (pending != NULL) {
        if (add_waiter(auth, pending, q) != SL_OK)
            answer(q, SL_AUTH_NOT_READY);
        return;
    }
    switch (sl_throttle_try(&auth->throttle, key, now_ns(auth))) {
    case SL_THROTTLE_GO: ask_further(auth, q, key); break;
    case SL_THROTTLE_WAIT: ask_memory(auth, q, key, true); break;
    case SL_THROTTLE_AGAIN: ask_memory(auth, q, key, false); break;
    }
}

void sl_login_check(sl_auth *auth, sl_str name, sl_str password, sl_str peer, sl_auth_ticket *ticket,
                    sl_auth_fn *fn, void *ctx)
{
    question q = { .name = name, .password = password, .peer = peer, .ticket = ticket, .fn = fn, .ctx = ctx };

    ticket->job = NULL;
    if (name.bytes == 0 || name.bytes > SL_LOGIN_NAME_BYTES_MAX || password.bytes > SL_PASSWORD_BYTES_MAX) {
        note_refused(auth, name.bytes > SL_LOGIN_NAME_BYTES_MAX ? SL_STR("") : name, peer);
        answer(&q, SL_AUTH_REFUSED);
        return;
    }
    q.user = user_who_can_log_in(auth, name);
    q.connection = sl_remembered_digest(&auth->remembered, name, password, peer);
    if (was_right_here(auth, &q)) {
        answer_user(q.user, fn, ctx);
    } else {
        q.digest = sl_remembered_digest(&auth->remembered, name, password, SL_STR(""));
        ask(auth, &q);
    }
    sl_password_wipe((sl_str){ (const char *)&q, sizeof q });
}
