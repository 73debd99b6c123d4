/* server/users_details.c — Users/Details: one user, or all of them, a message for each.
 *
 * The names are copied when the call comes; each user is then looked up when it is its turn, because the client
 * may take its time and users may go meanwhile. */
#include "server/auth_inside.h"
#include "server/reply.h"
#include "server/services.h"
#include "wire/server_control.h"

enum {
    REQUEST_BYTES_MAX = 4 * 1024,
    SCRATCH_CHUNK_BYTES = 4 * 1024,
    SCRATCH_BYTES_MAX = 256 * 1024, /* one encoded user */
};

typedef struct details_call {
    const sl_str *names; /* in the arena of the request; NULL: not asked yet */
    size_t name_count, next;
    sl_arena scratch;
} details_call;

static sl_err encode(const sl_user *user, sl_arena *scratch, sl_str *ret_message)
{
    const sl_user_record *const record = &user->record;
    const sl_user_details details = { .login_name = user->name,
                                      .full_name = record->full_name,
                                      .groups = record->groups,
                                      .group_count = record->group_count,
                                      .updated_ticks = user->updated_ns / SL_WIRE_TICK_NS,
                                      .disabled = record->disabled || user->state == SL_USER_DAMAGED };

    return sl_user_details_encode(&details, scratch, ret_message);
}

static sl_err send_one(sl_request *request, const sl_user *user)
{
    details_call *const call = request->state;
    uint8_t *data;
    sl_str message;
    sl_err err;

    sl_arena_reset(&call->scratch);
    err = encode(user, &call->scratch, &message);
    if (err == SL_OK)
        err = sl_request_reserve(request, message.bytes, &data);
    if (err != SL_OK)
        return err;
    if (message.bytes > 0)
        memcpy(data, message.data, message.bytes);
    sl_request_commit(request, message.bytes);
    return SL_OK;
}

/* SL_ERR_FULL: goes on when there is room again. */
static void send_rest(sl_request *request)
{
    details_call *const call = request->state;
    sl_err err = SL_OK;

    if (call->names == NULL)
        return;
    while (err == SL_OK && call->next < call->name_count) {
        const sl_user *const user = sl_users_find_there(&request->host->auth->users, call->names[call->next]);

        if (user != NULL)
            err = send_one(request, user);
        call->next += err == SL_OK;
    }
    if (err == SL_OK)
        sl_request_finish(request, SL_STATUS_OK, SL_STR(""), NULL, 0);
    else if (err != SL_ERR_FULL)
        sl_reply_error(request, err);
}

/* Names in the arena; the entries themselves may go. */
static sl_err copy_names(sl_request *request)
{
    details_call *const call = request->state;
    const sl_users *const users = &request->host->auth->users;
    const sl_user **const sorted = sl_arena_alloc(&request->arena, users->count * sizeof(const sl_user *));
    sl_str *const names = sl_arena_alloc(&request->arena, users->count * sizeof *names);

    if (sorted == NULL || names == NULL)
        return SL_ERR_NOMEM;
    sl_users_sorted(users, sorted);
    for (size_t i = 0; i < users->count; i++) {
        names[i] = (sl_str){ sl_arena_copy_str(&request->arena, sorted[i]->name), sorted[i]->name.bytes };
        if (names[i].data == NULL)
            return SL_ERR_NOMEM;
    }
    call->names = names;
    call->name_count = users->count;
    return SL_OK;
}

static void tell_all(sl_request *request)
{
    const sl_err err = copy_names(request);

    if (err != SL_OK)
        sl_reply_error(request, err);
    else
        send_rest(request);
}

static void tell_one(sl_request *request, sl_str name)
{
    details_call *const call = request->state;
    sl_str *const names = sl_arena_alloc(&request->arena, sizeof *names);

    if (names == NULL) {
        sl_reply_error(request, SL_ERR_NOMEM);
    } else if (sl_users_find_there(&request->host->auth->users, name) == NULL) {
        sl_reply_user_not_found(request, name);
    } else {
        names[0] = name;
        call->names = names;
        call->name_count = 1;
        send_rest(request);
    }
}

/* Administrators see everybody, others themselves. */
static bool may_see(const sl_identity *identity, sl_str name)
{
    if (identity->is_trusted || identity->is_admin)
        return true;
    return name.bytes > 0 && sl_str_equal(identity->name, name);
}

static void on_message(sl_request *request, sl_str message)
{
    sl_user_request asked = { 0 };
    const char *reason = NULL;
    const sl_err err =
        sl_user_request_decode(SL_USER_CALL_NAME_ONLY, message, &request->arena, &asked, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else if (!may_see(&request->identity, asked.login_name))
        sl_reply_access_denied(request);
    else if (asked.login_name.bytes == 0)
        tell_all(request);
    else
        tell_one(request, asked.login_name);
}

static void on_begin(sl_request *request)
{
    details_call *const call = request->state;

    sl_arena_init(&call->scratch, request->host->alloc,
                  (sl_arena_sizes){ .chunk_bytes = SCRATCH_CHUNK_BYTES, .limit_bytes = SCRATCH_BYTES_MAX });
}

static void on_end(sl_request *request)
{
    details_call *const call = request->state;

    sl_arena_done(&call->scratch);
}

const sl_method sl_method_users_details = {
    .service = SL_STR_INIT("event_store.client.users.Users"),
    .name = SL_STR_INIT("Details"),
    .kind = SL_METHOD_SERVER_STREAM,
    .who = SL_FOR_READERS,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .state_bytes = sizeof(details_call),
    .begin = on_begin,
    .message = on_message,
    .room = send_rest,
    .end = on_end,
};
