/* cli/group_command.c — makes, changes and deletes groups. What looks at them is in group_look.c and group_watch.c. */
#include "cli/group_command.h"

#include <inttypes.h>
#include <string.h>

#include "cli/group_call.h"
#include "cli/group_settings.h"
#include "cli/print.h"

/* {"stream": ..., "group": ..., "created": true}, or `created group "billing" on stream "orders"` without the end of the line. */
static void print_done(const sl_invocation *invocation, const sl_wire_group_name *name, const char *done)
{
    sl_fields fields = { .out = invocation->out, .json = true };

    if (invocation->json) {
        fputc('{', invocation->out);
        sl_group_field_name(&fields, name);
        sl_field_bool(&fields, done, true);
        fputs("}\n", invocation->out);
        return;
    }
    fprintf(invocation->out, "%s ", done);
    sl_group_print_name(invocation->out, name);
}

/* --- create --- */

/* The default is what clients of KurrentDB have, and surprises whoever expects the events that are there. */
static void print_start(const sl_invocation *invocation, const sl_wire_group_request *request)
{
    if (request->start == SL_WIRE_START_END)
        fputs(": it begins with events that are appended from now on\n", invocation->out);
    else if (request->start == SL_WIRE_START_BEGIN)
        fputs(": it begins with the first event\n", invocation->out);
    else
        fprintf(invocation->out, ": it begins with %s %" PRIu64 "\n",
                request->source == SL_WIRE_SOURCE_ALL ? "position" : "revision", request->revision);
}

static int create(sl_session *session, const sl_wire_group_request *request)
{
    const sl_invocation *const invocation = session->invocation;
    const sl_wire_group_name name = sl_group_name_of(invocation);
    sl_str message;
    int code;

    if (sl_wire_group_create_encode(request, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_group_ask(session, "Create", message);
    if (code != SL_EXIT_OK)
        return code;
    print_done(invocation, &name, "created");
    if (!invocation->json)
        print_start(invocation, request);
    return SL_EXIT_OK;
}

static int run_create(const sl_invocation *invocation)
{
    static sl_group_plan plan; /* large, and there is one in a process */
    sl_session session = { 0 };
    int code = sl_group_plan_create(&plan, invocation);

    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = create(&session, &plan.request);
    sl_session_close(&session);
    return code;
}

/* --- update --- */

static int fail_strategy(const sl_session *session, sl_str strategy)
{
    return sl_session_failf(session,
                            "an update cannot say the strategy %.*s, because the protocol has no number for "
                            "it. Name another one with --strategy, or delete the group and create it anew",
                            (int)strategy.bytes, strategy.data);
}

/* info: as it was before. */
static void print_updated(const sl_invocation *invocation, const sl_wire_group_info *info)
{
    FILE *const out = invocation->out;

    if (info->connection_count > 0)
        fprintf(out, ": %zu consumer%s to connect again", info->connection_count,
                info->connection_count == 1 ? " has" : "s have");
    fputc('\n', out);
    if (invocation->values[SL_OPT_UPDATE_START].text != NULL && info->last_checkpointed_position.bytes > 0)
        fputs(
            "--start has no effect: the group has begun, and goes on where it is. To move it, delete it and "
            "create it anew\n",
            out);
}

static int update(sl_session *session, sl_group_plan *plan)
{
    const sl_invocation *const invocation = session->invocation;
    const sl_wire_group_name name = sl_group_name_of(invocation);
    sl_wire_group_info info;
    sl_str message;
    sl_err err;
    int code = sl_group_look(session, &name, &info);

    if (code != SL_EXIT_OK)
        return code;
    if (!sl_group_plan_update(plan, invocation, &info))
        return sl_session_failf(session,
                                "the server tells no start of this group that could be kept; name one with "
                                "--start");
    err = sl_wire_group_update_encode(&plan->request, &session->arena, &message);
    if (err == SL_ERR_INVALID)
        return fail_strategy(session, plan->request.settings.strategy);
    if (err != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_group_ask(session, "Update", message);
    if (code != SL_EXIT_OK)
        return code;
    print_done(invocation, &name, "updated");
    if (!invocation->json)
        print_updated(invocation, &info);
    return SL_EXIT_OK;
}

static int run_update(const sl_invocation *invocation)
{
    static sl_group_plan plan; /* as above */
    sl_session session = { 0 };
    int code = sl_group_plan_check_update(invocation);

    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = update(&session, &plan);
    sl_session_close(&session);
    return code;
}

/* --- delete --- */

static int delete_group(sl_session *session)
{
    const sl_wire_group_name name = sl_group_name_of(session->invocation);
    sl_str message;
    int code;

    if (sl_wire_group_delete_encode(&name, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_group_ask(session, "Delete", message);
    if (code != SL_EXIT_OK)
        return code;
    print_done(session->invocation, &name, "deleted");
    fputs(session->invocation->json ? "" : ", with its parked messages\n", session->invocation->out);
    return SL_EXIT_OK;
}

static int run_delete(const sl_invocation *invocation)
{
    sl_session session = { 0 };
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = delete_group(&session);
    sl_session_close(&session);
    return code;
}

/* --- rows --- */

const sl_command sl_command_group_create = {
    .name = "group create",
    .bit = SL_COMMAND_GROUP_CREATE,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_create,
    .summary = "make a group of consumers on a stream",
    .details = "The events of STREAM become messages for GROUP: each is given to one of its consumers, and "
               "again to one until it is "
               "settled or parked. STREAM is the name of a stream, which need not exist yet, or '$all' for "
               "all streams; then --filter-stream "
               "or --filter-type can choose among events. A filter cannot be changed later.\n\n"
               "The settings are those of persistent subscriptions of KurrentDB, with the defaults of its "
               "clients.\n",
    .examples = "With everything that is in the stream already, and for orders of all streams:\n"
                "  sluice group create orders billing --start start\n"
                "  sluice group create '$all' audit --filter-stream order-\n",
    .exits = "0 done\n"
             "1 it did not work, or the group is there already; nothing was changed\n" SL_EXITS_USAGE,
};

const sl_command sl_command_group_update = {
    .name = "group update",
    .bit = SL_COMMAND_GROUP_UPDATE,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_update,
    .summary = "change settings of a group",
    .details =
        "Changes the settings that are named; the others stay. Consumers are disconnected and connect "
        "again. What clients with extensions hold stays theirs under their names; what the others hold is "
        "given out again at once, and is not charged. A group that has a checkpoint goes on there, whatever "
        "--start "
        "says: to move it, delete it and "
        "create it anew. The strategy PinnedByCorrelation can be given to a new group only.\n",
    .examples = "More tries, and no links:\n"
                "  sluice group update orders billing --max-retry-count 20\n"
                "  sluice group update orders billing --resolve-links no\n",
    .exits = "0 done\n"
             "1 it did not work, or there is no such group\n" SL_EXITS_USAGE,
};

const sl_command sl_command_group_delete = {
    .name = "group delete",
    .bit = SL_COMMAND_GROUP_DELETE,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_delete,
    .summary = "delete a group",
    .details = "Disconnects its consumers and forgets the group: where it was, what is in flight, and the "
               "links to its parked messages. The "
               "events themselves stay in their streams.\n",
    .exits = "0 done\n"
             "1 it did not work, or there is no such group\n" SL_EXITS_USAGE,
};
