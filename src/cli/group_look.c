/* cli/group_look.c — `sluice group info` and `group list`. */
#include "cli/group_command.h"

#include <string.h>

#include "cli/group_call.h"
#include "cli/group_print.h"
#include "cli/print.h"
#include "cli/table.h"

static void print_object(FILE *out, const sl_wire_group_info *info)
{
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_group_print_json(&fields, info);
    fputs("}\n", out);
}

/* --- info --- */

static int run_info(const sl_invocation *invocation)
{
    const sl_wire_group_name name = sl_group_name_of(invocation);
    sl_wire_group_info info;
    sl_session session = { 0 };
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = sl_group_look(&session, &name, &info);
    if (code == SL_EXIT_OK)
        (invocation->json ? print_object : sl_group_print_lines)(invocation->out, &info);
    sl_session_close(&session);
    return code;
}

/* --- list --- */

typedef struct listing {
    sl_session *session;
    sl_wire_group_infos infos;
    sl_err err;
    const char *malformed;
} listing;

static void on_list(void *ctx, sl_str message)
{
    listing *l = ctx;

    l->err = sl_wire_group_list_decode(message, &l->session->arena, &l->infos, &l->malformed);
}

static void print_table(FILE *out, const sl_wire_group_infos *infos)
{
    sl_table table;

    sl_table_begin(&table, "STREAM|GROUP|STATUS|CONSUMERS|IN FLIGHT|RETRY|PARKED|CHECKPOINT|LAST SEEN");
    for (size_t i = 0; i < infos->count; i++) {
        const sl_wire_group_info *const info = &infos->list[i];
        sl_table_text(&table, info->event_source);
        sl_table_text(&table, info->group);
        sl_table_text(&table, info->status);
        sl_table_number(&table, (int64_t)info->connection_count);
        sl_table_number(&table, info->in_flight_count);
        sl_table_number(&table, info->retry_buffer_count);
        sl_table_number(&table, info->parked_count);
        sl_table_text(&table, info->last_checkpointed_position);
        sl_table_text(&table, info->last_known_position);
    }
    sl_table_end(&table, out);
}

static void print_list(const sl_invocation *invocation, const sl_wire_group_infos *infos)
{
    for (size_t i = 0; i < infos->count && invocation->json; i++)
        print_object(invocation->out, &infos->list[i]);
    if (invocation->json)
        return;
    if (infos->count > 0)
        print_table(invocation->out, infos);
    else
        fputs("there are no groups\n", invocation->out);
}

/* A stream without groups is an error for the server, and no surprise for whoever asks for a list. */
static bool is_empty(const sl_client_answer *answer)
{
    return answer->status == SL_STATUS_NOT_FOUND &&
           sl_str_equal(sl_client_answer_trailer(answer, SL_STR("exception")),
                        SL_STR("persistent-subscription-does-not-exist"));
}

static int list(sl_session *session, const sl_wire_group_list_request *request)
{
    listing l = { .session = session };
    sl_str message;
    const sl_session_call call = {
        .path = "/event_store.client.persistent_subscriptions.PersistentSubscriptions/List",
        .messages = &message,
        .message_count = 1,
        .on_message = on_list,
        .ctx = &l
    };
    sl_client_answer answer;
    int code;

    if (sl_wire_group_list_request_encode(request, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_session_try(session, &call, &answer);
    if (code != SL_EXIT_OK)
        return code;
    if (answer.status != SL_STATUS_OK && !is_empty(&answer))
        code = sl_session_fail_answer(session, &answer);
    sl_client_answer_done(&answer);
    if (code == SL_EXIT_OK)
        code = sl_group_fail_answer(session, l.err, l.malformed);
    if (code == SL_EXIT_OK)
        print_list(session->invocation, &l.infos);
    return code;
}

static int run_list(const sl_invocation *invocation)
{
    const char *const stream = invocation->word_count == 0 ? NULL : invocation->words[0];
    const bool is_all = stream != NULL && strcmp(stream, "$all") == 0;
    sl_wire_group_list_request request = { .kind = SL_WIRE_GROUP_LIST_EVERY };
    sl_session session = { 0 };
    int code = sl_session_open(&session, invocation);

    if (stream != NULL)
        request = (sl_wire_group_list_request){ .kind = SL_WIRE_GROUP_LIST_OF,
                                                .source = is_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                                                .stream = sl_str_from(stream) };
    if (code == SL_EXIT_OK)
        code = list(&session, &request);
    sl_session_close(&session);
    return code;
}

/* --- rows --- */

const sl_command sl_command_group_info = {
    .name = "group info",
    .bit = SL_COMMAND_GROUP_INFO,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_info,
    .summary = "show what is known about a group",
    .details = "Shows where the group is, how many messages are in flight, waiting and parked, its settings "
               "and its consumers. "
               "Behind means that it reads what was appended before; Live that it has seen everything.\n",
    .examples = "For a script:\n"
                "  sluice group info orders billing --json\n",
    .exits = "0 done\n"
             "1 it did not work, or there is no such group\n" SL_EXITS_USAGE,
};

const sl_command sl_command_group_list = {
    .name = "group list",
    .bit = SL_COMMAND_GROUP_LIST,
    .words = "[STREAM]",
    .words_min = 0,
    .words_max = 1,
    .run = run_list,
    .summary = "list groups, all or those of a stream",
    .details = "A line for each group; with --json an object on each line, as of group info. '$all' as "
               "STREAM lists the groups on "
               "all streams.\n",
};
