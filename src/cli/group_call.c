/* cli/group_call.c — see cli/group_call.h. */
#include "cli/group_call.h"

#include "cli/print.h"

#define SERVICE "/event_store.client.persistent_subscriptions.PersistentSubscriptions/"

enum {
    PATH_BYTES = 128
};

sl_wire_group_name sl_group_name_of(const sl_invocation *invocation)
{
    const sl_str stream = sl_str_from(invocation->words[0]);
    const bool is_all = sl_str_equal(stream, SL_STR("$all"));

    return (sl_wire_group_name){ .source = is_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                                 .stream = is_all ? SL_STR("") : stream,
                                 .group = sl_str_from(invocation->words[1]) };
}

void sl_group_print_name(FILE *out, const sl_wire_group_name *name)
{
    fputs("group ", out);
    sl_print_quoted(out, name->group);
    if (name->source == SL_WIRE_SOURCE_ALL) {
        fputs(" on all streams", out);
        return;
    }
    fputs(" on stream ", out);
    sl_print_quoted(out, name->stream);
}

void sl_group_field_name(sl_fields *fields, const sl_wire_group_name *name)
{
    sl_field_text(fields, "stream", name->source == SL_WIRE_SOURCE_ALL ? SL_STR("$all") : name->stream);
    sl_field_text(fields, "group", name->group);
}

int sl_group_fail_encode(const sl_session *session)
{
    return sl_session_failf(session, "there is not enough memory");
}

int sl_group_fail_answer(const sl_session *session, sl_err err, const char *malformed)
{
    if (err == SL_OK)
        return SL_EXIT_OK;
    return sl_session_failf(session, "the server's answer cannot be understood: %s",
                            malformed != NULL ? malformed : sl_err_text(err));
}

int sl_group_ask(sl_session *session, const char *method, sl_str message)
{
    char path[PATH_BYTES];
    const sl_session_call call = { .path = path, .messages = &message, .message_count = 1 };

    snprintf(path, sizeof path, SERVICE "%s", method);
    return sl_session_ask(session, &call);
}

/* --- GetInfo --- */

typedef struct getting {
    sl_session *session;
    sl_wire_group_info *info;
    sl_err err;
    const char *malformed;
} getting;

static void on_info(void *ctx, sl_str message)
{
    getting *g = ctx;

    g->err = sl_wire_group_info_decode(message, &g->session->arena, g->info, &g->malformed);
}

int sl_group_try_look(sl_session *session, const sl_wire_group_name *name, sl_client_answer *ret_answer,
                      sl_wire_group_info *ret_info)
{
    getting g = { .session = session, .info = ret_info };
    sl_str message;
    const sl_session_call call = {
        .path = SERVICE "GetInfo", .messages = &message, .message_count = 1, .on_message = on_info, .ctx = &g
    };
    int code;

    *ret_info = (sl_wire_group_info){ 0 };
    if (sl_wire_group_info_request_encode(name, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_session_try(session, &call, ret_answer);
    if (code == SL_EXIT_OK && g.err != SL_OK) {
        sl_client_answer_done(ret_answer);
        return sl_group_fail_answer(session, g.err, g.malformed);
    }
    return code;
}

int sl_group_look(sl_session *session, const sl_wire_group_name *name, sl_wire_group_info *ret_info)
{
    sl_client_answer answer;
    int code = sl_group_try_look(session, name, &answer, ret_info);

    if (code != SL_EXIT_OK)
        return code;
    if (answer.status != SL_STATUS_OK)
        code = sl_session_fail_answer(session, &answer);
    sl_client_answer_done(&answer);
    return code;
}
