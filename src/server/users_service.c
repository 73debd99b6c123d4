/* server/users_service.c — event_store.client.users.Users, the calls that change a user.
 *
 *      decode --> (current password right?) --> allowed? --> (hash the new password) --> allowed still? --> door --> answer
 *
 * What is in brackets is the work of the helper thread and happens only where there is a password. If the client
 * goes away before the door has taken the change, nothing happens; afterwards it lasts, and is seen by everybody,
 * whether or not somebody is there to hear so.
 *
 * Passwords are wiped from the request as soon as they are used; the bytes that they came in belong to the engine. */
#include "server/auth_inside.h"
#include "server/door.h"
#include "server/reply.h"
#include "server/services.h"
#include "server/user_change.h"
#include "wire/server_control.h"

#include <assert.h>

enum {
    REQUEST_BYTES_MAX =
        64 * 1024, /* larger than any that is allowed, so that the answer can say what is too large */
    PROBLEM_BYTES = 256,
};

typedef struct change_call {
    sl_user_change change;
    sl_str current_password; /* ChangePassword */
    sl_str new_password;     /* empty: the change has none */
    bool has_password;
    sl_auth_ticket ticket; /* the current one is being checked */
    sl_password_job *job;  /* the new one is being hashed */
    sl_door_waiter waiter;
    bool waits; /* at the door */
    sl_user_plan plan;
} change_call;

static void wipe(change_call *call)
{
    sl_password_wipe(call->current_password);
    sl_password_wipe(call->new_password);
    call->current_password = call->new_password = SL_STR("");
}

/* --- answers --- */

static void refuse(sl_request *request, sl_user_verdict verdict, const sl_text *problem)
{
    const change_call *const call = request->state;

    switch (verdict) {
    case SL_USER_CHANGE_ALLOWED: assert(false); break;
    case SL_USER_CHANGE_INVALID: sl_reply_invalid(request, problem->data); break;
    case SL_USER_CHANGE_NOT_FOUND: sl_reply_user_not_found(request, call->change.login_name); break;
    case SL_USER_CHANGE_EXISTS: sl_reply_user_conflict(request, call->change.login_name); break;
    case SL_USER_CHANGE_BUSY: sl_reply_user_busy(request, call->change.login_name); break;
    case SL_USER_CHANGE_FULL:
        sl_request_finish(request, SL_STATUS_RESOURCE_EXHAUSTED, sl_text_str(problem), NULL, 0);
        break;
    case SL_USER_CHANGE_NO_ADMIN:
    case SL_USER_CHANGE_IS_DAMAGED:
        sl_request_finish(request, SL_STATUS_FAILED_PRECONDITION, sl_text_str(problem), NULL, 0);
        break;
    }
}

/* False: it was refused, and the call is over. A server that is insecure admits calls before it has read its users. */
static bool check(sl_request *request)
{
    const change_call *const call = request->state;
    char memory[PROBLEM_BYTES];
    sl_text problem;
    sl_user_verdict verdict;

    if (request->identity.is_revoked) {
        sl_reply_unauthenticated(request);
        return false;
    }
    if (!sl_auth_ready(request->host->auth)) {
        sl_reply_not_ready(request);
        return false;
    }
    sl_text_init(&problem, memory, sizeof memory);
    verdict = sl_user_change_check(&request->host->auth->users, &call->change, &problem);
    if (verdict == SL_USER_CHANGE_ALLOWED)
        return true;
    refuse(request, verdict, &problem);
    return false;
}

static bool check_password(sl_request *request)
{
    const change_call *const call = request->state;
    char memory[PROBLEM_BYTES];
    sl_text problem;

    sl_text_init(&problem, memory, sizeof memory);
    if (!call->has_password || sl_user_check_password(call->new_password, &problem) == SL_OK)
        return true;
    sl_reply_invalid(request, memory);
    return false;
}

/* --- writing --- */

static void log_change(const sl_request *request)
{
    static const char *const words[] = {
        [SL_USER_CREATE] = "user created", [SL_USER_UPDATE] = "user updated",
        [SL_USER_DELETE] = "user deleted", [SL_USER_DISABLE] = "user disabled",
        [SL_USER_ENABLE] = "user enabled", [SL_USER_SET_PASSWORD] = "password changed",
    };
    const change_call *const call = request->state;

    sl_log(request->host->log, SL_LOG_INFO, words[call->change.kind],
           SL_LOG_STR("user", call->change.login_name), SL_LOG_STR("by", request->identity.name));
}

/* Without memory to apply the change it lasts all the same, and those who watch the stream will read it. */
static void on_done(void *ctx, const sl_commit *commit)
{
    sl_request *const request = ctx;
    change_call *const call = request->state;

    (void)sl_user_plan_end(&call->plan, commit);
    if (commit->err == SL_OK) {
        log_change(request);
        sl_request_answer(request, SL_STR(""));
    } else if (commit->err == SL_ERR_WRONG_REVISION) {
        sl_reply_user_conflict(request, call->change.login_name);
    } else if (commit->err == SL_ERR_STREAM_DELETED) {
        sl_request_finish(
            request, SL_STATUS_FAILED_PRECONDITION,
            SL_STR("The stream of this user, or $users, was deleted for ever: such a user cannot be "
                   "stored any more."),
            NULL, 0);
    } else {
        sl_reply_error(request, commit->err);
    }
    sl_request_release(request);
}

static void try_write(void *ctx)
{
    sl_request *const request = ctx;
    change_call *const call = request->state;
    sl_host *const host = request->host;
    sl_err err;

    call->waits = false;
    if (!check(request))
        return;
    err = sl_user_plan_make(&call->plan, &host->auth->users, host->store, &call->change, &request->arena,
                            sl_clock_wall_ns(host->clock));
    if (err != SL_OK) {
        sl_reply_error(request, err);
        return;
    }
    err = sl_door_submit(host->door, &call->plan.batch, on_done, sl_request_hold(request));
    if (err == SL_OK)
        return;
    (void)sl_user_plan_end(&call->plan, NULL);
    call->waits = err == SL_ERR_FULL;
    if (call->waits)
        sl_door_wait(host->door, &call->waiter);
    else
        sl_reply_error(request, err);
    sl_request_release(request);
}

/* --- passwords --- */

static void reply_busy(sl_request *request)
{
    sl_request_finish(
        request, SL_STATUS_RESOURCE_EXHAUSTED,
        SL_STR("Too many passwords are being checked at the moment. Try again in some seconds."), NULL, 0);
}

static void on_hashed(void *ctx, sl_password_outcome outcome, sl_str hash)
{
    sl_request *const request = ctx;
    change_call *const call = request->state;
    const char *const copy = sl_arena_copy_str(&request->arena, hash);

    call->job = NULL;
    if (outcome != SL_PASSWORD_RIGHT || copy == NULL) {
        sl_reply_error(request, SL_ERR_NOMEM);
        return;
    }
    call->change.hash = (sl_str){ copy, hash.bytes };
    try_write(request);
}

static void hash_or_write(sl_request *request)
{
    change_call *const call = request->state;
    sl_err err;

    if (!call->has_password) {
        try_write(request);
        return;
    }
    err =
        sl_passwords_hash(request->host->auth->passwords, call->new_password, on_hashed, request, &call->job);
    wipe(call);
    if (err == SL_ERR_FULL)
        reply_busy(request);
    else if (err != SL_OK)
        sl_reply_error(request, err);
}

static void on_current_checked(void *ctx, sl_auth_verdict verdict, const sl_identity *identity)
{
    sl_request *const request = ctx;

    (void)identity;
    switch (verdict) {
    case SL_AUTH_OK: hash_or_write(request); break;
    case SL_AUTH_REFUSED: sl_reply_access_denied(request); break;
    case SL_AUTH_TOO_OFTEN: sl_reply_too_often(request); break;
    case SL_AUTH_NOT_READY: sl_reply_not_ready(request); break;
    }
}

/* --- requests --- */

/* False: the call is over. */
static bool decode(sl_request *request, sl_user_call kind, sl_str message, sl_user_request *ret_request)
{
    const char *reason = NULL;
    const sl_err err = sl_user_request_decode(kind, message, &request->arena, ret_request, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    return err == SL_OK;
}

static void fill(change_call *call, sl_user_change_kind kind, const sl_user_request *asked)
{
    call->change = (sl_user_change){ .kind = kind,
                                     .login_name = asked->login_name,
                                     .full_name = asked->full_name,
                                     .groups = asked->groups,
                                     .group_count = asked->group_count };
    call->new_password = kind == SL_USER_SET_PASSWORD ? asked->new_password : asked->password;
    call->current_password = kind == SL_USER_SET_PASSWORD ? asked->password : SL_STR("");
    call->has_password = kind == SL_USER_CREATE || kind == SL_USER_SET_PASSWORD ||
                         (kind == SL_USER_UPDATE && asked->password.bytes > 0);
}

static void change(sl_request *request, sl_user_call wire_kind, sl_user_change_kind kind, sl_str message)
{
    sl_user_request asked = { 0 };

    if (!decode(request, wire_kind, message, &asked))
        return;
    fill(request->state, kind, &asked);
    if (check(request) && check_password(request))
        hash_or_write(request);
}

static void on_create(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_CREATE, SL_USER_CREATE, message);
}

/* A password in Update is optional; without one the old stays. */
static void on_update(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_UPDATE, SL_USER_UPDATE, message);
}

static void on_delete(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_NAME_ONLY, SL_USER_DELETE, message);
}

static void on_disable(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_NAME_ONLY, SL_USER_DISABLE, message);
}

static void on_enable(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_NAME_ONLY, SL_USER_ENABLE, message);
}

static void on_reset_password(sl_request *request, sl_str message)
{
    change(request, SL_USER_CALL_RESET_PASSWORD, SL_USER_SET_PASSWORD, message);
}

/* One's own, or anybody's for an administrator; with the current password for both, since this is the call for
 * those who know it. An administrator who does not has ResetPassword. */
static void on_change_password(sl_request *request, sl_str message)
{
    const sl_identity *const identity = &request->identity;
    change_call *const call = request->state;
    sl_user_request asked = { 0 };

    if (!decode(request, SL_USER_CALL_CHANGE_PASSWORD, message, &asked))
        return;
    fill(call, SL_USER_SET_PASSWORD, &asked);
    if (!identity->is_trusted && !identity->is_admin &&
        (identity->name.bytes == 0 || !sl_str_equal(identity->name, asked.login_name))) {
        sl_reply_access_denied(request);
        return;
    }
    if (!check(request) || !check_password(request))
        return;
    sl_login_check(request->host->auth, asked.login_name, call->current_password, sl_request_peer(request),
                   &call->ticket, on_current_checked, request);
}

static void on_begin(sl_request *request)
{
    change_call *const call = request->state;

    sl_door_waiter_init(&call->waiter, try_write, request);
}

static void on_end(sl_request *request)
{
    change_call *const call = request->state;

    sl_auth_cancel(request->host->auth, &call->ticket);
    if (call->job != NULL)
        sl_passwords_cancel(request->host->auth->passwords, call->job);
    call->job = NULL;
    if (call->waits)
        sl_door_forget(&call->waiter);
    wipe(call);
}

/* --- the rows --- */

#define SERVICE SL_STR_INIT("event_store.client.users.Users")
#define CHANGE(name_, who_, message_)                                                                        \
    {                                                                                                        \
        .service = SERVICE, .name = SL_STR_INIT(name_), .kind = SL_METHOD_UNARY, .who = (who_),              \
        .message_bytes_max = REQUEST_BYTES_MAX, .state_bytes = sizeof(change_call), .begin = on_begin,       \
        .message = (message_), .end = on_end                                                                 \
    }

const sl_method sl_method_users_create = CHANGE("Create", SL_FOR_ADMINS, on_create);
const sl_method sl_method_users_update = CHANGE("Update", SL_FOR_ADMINS, on_update);
const sl_method sl_method_users_delete = CHANGE("Delete", SL_FOR_ADMINS, on_delete);
const sl_method sl_method_users_disable = CHANGE("Disable", SL_FOR_ADMINS, on_disable);
const sl_method sl_method_users_enable = CHANGE("Enable", SL_FOR_ADMINS, on_enable);
const sl_method sl_method_users_change_password =
    CHANGE("ChangePassword", SL_FOR_READERS, on_change_password);
const sl_method sl_method_users_reset_password = CHANGE("ResetPassword", SL_FOR_ADMINS, on_reset_password);
