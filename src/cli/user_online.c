/* cli/user_online.c — users by way of a running server: the service Users of KurrentDB. */
#include "cli/user_draft.h"

#include <assert.h>
#include <string.h>

#include "wire/server_control.h"

enum {
    ARENA_CHUNK_BYTES = 4 * 1024,
    ARENA_BYTES_MAX = 1024 * 1024 /* of one request, all its texts at their limits */
};

typedef struct listing {
    sl_session *session;
    sl_user_list *list;
    sl_err err; /* of the first answer that is none */
    const char *malformed;
} listing;

static void on_details(void *ctx, sl_str message)
{
    listing *l = ctx;
    sl_user_details details;

    if (l->err == SL_OK)
        l->err = l->list->count == SL_USERS_MAX
                     ? SL_ERR_FULL
                     : sl_user_details_decode(message, &l->session->arena, &details, &l->malformed);
    if (l->err != SL_OK)
        return;
    const sl_user_shown user = { .name = details.login_name,
                                 .full_name = details.full_name,
                                 .groups = details.groups,
                                 .group_count = details.group_count,
                                 .updated_ns = details.updated_ticks * SL_WIRE_TICK_NS,
                                 .disabled = details.disabled };
    sl_user_show(l->list, &user);
}

static int list_all(sl_session *session, sl_user_list *list)
{
    listing l = { .session = session, .list = list };
    const sl_user_request request = { 0 };
    sl_str message;
    const sl_session_call call = { .path = "/event_store.client.users.Users/Details",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_details,
                                   .ctx = &l };
    int code;

    if (sl_user_request_encode(SL_USER_CALL_NAME_ONLY, &request, &session->arena, &message) != SL_OK)
        return sl_session_failf(session, "there is not enough memory");
    code = sl_session_ask(session, &call);
    if (code == SL_EXIT_OK && l.err != SL_OK)
        return sl_session_failf(session, "the server's answer cannot be understood: %s",
                                l.malformed != NULL ? l.malformed : sl_err_text(l.err));
    return code;
}

/* --- changes --- */

/* Arenas only take and give. */
static void *resize_wiping(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    assert(memory == NULL || new_bytes == 0);
    if (memory != NULL)
        explicit_bzero(memory, old_bytes);
    return sl_alloc_default.resize(ctx, memory, old_bytes, new_bytes);
}

/* For what a password is copied into on its way to the wire: it is overwritten when it is given back. */
static const sl_alloc wiping = { .resize = resize_wiping };

/* One's own password is changed with the old one; that of others is set, which an administrator may do. */
static const char *choose(const sl_session *session, const sl_user_draft *draft, sl_user_call *ret_call)
{
    const sl_str self = sl_str_from(sl_client_get_address(session->client)->user);

    switch (draft->verb) {
    case SL_USER_VERB_ADD: *ret_call = SL_USER_CALL_CREATE; return "/event_store.client.users.Users/Create";
    case SL_USER_VERB_REMOVE:
        *ret_call = SL_USER_CALL_NAME_ONLY;
        return "/event_store.client.users.Users/Delete";
    case SL_USER_VERB_PASSWD:
    case SL_USER_VERB_LIST: break;
    }
    if (sl_str_equal(self, draft->name)) {
        *ret_call = SL_USER_CALL_CHANGE_PASSWORD;
        return "/event_store.client.users.Users/ChangePassword";
    }
    *ret_call = SL_USER_CALL_RESET_PASSWORD;
    return "/event_store.client.users.Users/ResetPassword";
}

static int change(sl_session *session, const sl_user_draft *draft)
{
    const sl_str password = sl_str_from(draft->password.text);
    sl_user_call kind;
    const char *const path = choose(session, draft, &kind);
    const sl_user_request request = {
        .login_name = draft->name,
        .password = kind == SL_USER_CALL_CHANGE_PASSWORD
                        ? sl_str_from(sl_client_get_address(session->client)->password)
                        : password,
        .new_password = password,
        .full_name = draft->full_name.bytes > 0 ? draft->full_name : draft->name, /* servers want one */
        .groups = draft->groups,
        .group_count = draft->group_count,
    };
    sl_str message;
    const sl_session_call call = { .path = path, .messages = &message, .message_count = 1 };
    sl_arena arena;
    int code;

    sl_arena_init(&arena, &wiping, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    if (sl_user_request_encode(kind, &request, &arena, &message) == SL_OK)
        code = sl_session_ask(session, &call);
    else
        code = sl_session_failf(session, "there is not enough memory");
    sl_arena_done(&arena);
    return code;
}

int sl_user_online(const sl_invocation *invocation, sl_user_draft *draft, sl_user_list *list)
{
    sl_session session;
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = sl_user_ask_password(invocation, draft);
    if (code == SL_EXIT_OK && draft->verb == SL_USER_VERB_LIST)
        code = list_all(&session, list);
    else if (code == SL_EXIT_OK)
        code = change(&session, draft);
    sl_session_close(&session);
    return code;
}
