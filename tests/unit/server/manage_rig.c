/* tests/unit/server/manage_rig.c — see manage_rig.h. */
#include "manage_rig.h"

#include <stdio.h>
#include <string.h>

static void init_arena(manage *m)
{
    sl_arena_init(&m->arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 16 << 20 });
}

void manage_start(manage *m)
{
    init_arena(m);
    groups_start(&m->g);
}

void manage_start_on(manage *m, sl_store *store)
{
    init_arena(m);
    groups_start_on(&m->g, store);
}

void manage_done(manage *m)
{
    groups_done(&m->g);
    sl_arena_done(&m->arena);
}

/* --- requests --- */

static bool is_all(const char *stream)
{
    return strcmp(stream, "$all") == 0;
}

static sl_wire_group_name name_of(const char *stream, const char *group)
{
    return (sl_wire_group_name){ .source = is_all(stream) ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                                 .stream = sl_str_from(is_all(stream) ? NULL : stream),
                                 .group = sl_str_from(group) };
}

sl_wire_group_request manage_request(const char *stream, const char *group)
{
    const sl_wire_group_name name = name_of(stream, group);

    return (sl_wire_group_request){
        .source = name.source,
        .stream = name.stream,
        .group = name.group,
        .start = SL_WIRE_START_BEGIN,
        .filter = { .kind = is_all(stream) ? SL_WIRE_FILTER_NONE : SL_WIRE_FILTER_UNSET },
        .has_settings = true,
        .settings = groups_definition(stream, group).settings,
    };
}

static server_call *call(manage *m, const char *path, sl_err encoded, sl_str message)
{
    EXPECT_OK(encoded);
    return server_rig_unary(&m->g.rig, path, message);
}

sl_str manage_create_bytes(manage *m, const sl_wire_group_request *request)
{
    sl_str message = SL_STR("");

    EXPECT_OK(sl_wire_group_create_encode(request, &m->arena, &message));
    return message;
}

server_call *manage_create(manage *m, const sl_wire_group_request *request)
{
    return call(m, MANAGE_PATH("Create"), SL_OK, manage_create_bytes(m, request));
}

server_call *manage_update(manage *m, const sl_wire_group_request *request)
{
    sl_str message = SL_STR("");
    const sl_err err = sl_wire_group_update_encode(request, &m->arena, &message);

    return call(m, MANAGE_PATH("Update"), err, message);
}

server_call *manage_delete(manage *m, const char *stream, const char *group)
{
    const sl_wire_group_name name = name_of(stream, group);
    sl_str message = SL_STR("");
    const sl_err err = sl_wire_group_delete_encode(&name, &m->arena, &message);

    return call(m, MANAGE_PATH("Delete"), err, message);
}

server_call *manage_info(manage *m, const char *stream, const char *group, sl_wire_group_info *ret_info)
{
    const sl_wire_group_name name = name_of(stream, group);
    const char *reason = "";
    sl_str message = SL_STR("");
    const sl_err err = sl_wire_group_info_request_encode(&name, &m->arena, &message);
    server_call *const seen = call(m, MANAGE_PATH("GetInfo"), err, message);

    if (seen->status == SL_STATUS_OK && ret_info != NULL)
        EXPECT_OK(sl_wire_group_info_decode(seen->messages[0], &m->arena, ret_info, &reason));
    return seen;
}

server_call *manage_list(manage *m, const char *stream, sl_wire_group_infos *ret_infos)
{
    const sl_wire_group_name name = name_of(stream == NULL ? "" : stream, "");
    const sl_wire_group_list_request request = { .kind = stream == NULL ? SL_WIRE_GROUP_LIST_EVERY
                                                                        : SL_WIRE_GROUP_LIST_OF,
                                                 .source = name.source,
                                                 .stream = name.stream };
    const char *reason = "";
    sl_str message = SL_STR("");
    const sl_err err = sl_wire_group_list_request_encode(&request, &m->arena, &message);
    server_call *const seen = call(m, MANAGE_PATH("List"), err, message);

    if (seen->status == SL_STATUS_OK && ret_infos != NULL)
        EXPECT_OK(sl_wire_group_list_decode(seen->messages[0], &m->arena, ret_infos, &reason));
    return seen;
}

static server_call *parked(manage *m, const char *path, sl_wire_group_name name, const int64_t *stop_at)
{
    const sl_parked_request request = { .name = name,
                                        .limit =
                                            stop_at == NULL ? SL_PARKED_LIMIT_NONE : SL_PARKED_LIMIT_STOP_AT,
                                        .stop_at = stop_at == NULL ? 0 : *stop_at };
    sl_str message = SL_STR("");
    const sl_err err = sl_parked_request_encode(&request, &m->arena, &message);

    return call(m, path, err, message);
}

server_call *manage_replay(manage *m, const char *stream, const char *group, const int64_t *stop_at)
{
    return parked(m, MANAGE_PATH("ReplayParked"), name_of(stream, group), stop_at);
}

server_call *manage_truncate(manage *m, const char *stream, const char *group, const int64_t *stop_at)
{
    return parked(m, MANAGE_PATH("TruncateParked"), name_of(stream, group), stop_at);
}

server_call *manage_restart(manage *m)
{
    return server_rig_unary(&m->g.rig, MANAGE_PATH("RestartSubsystem"), SL_STR(""));
}

/* --- what must succeed --- */

void manage_make(manage *m, const sl_wire_group_request *request)
{
    const server_call *const seen = manage_create(m, request);

    EXPECT_CALL_STATUS(seen, SL_STATUS_OK);
    EXPECT_EQ(seen->message_count, 1);
    EXPECT_EQ(seen->messages[0].bytes, 0);
    server_rig_run(&m->g.rig);
}

sl_wire_group_info manage_look(manage *m, const char *stream, const char *group)
{
    sl_wire_group_info info = { 0 };

    EXPECT_CALL_STATUS(manage_info(m, stream, group, &info), SL_STATUS_OK);
    return info;
}

/* --- errors --- */

typedef struct error_row {
    sl_status status;
    const char *exception, *format; /* group, then stream */
} error_row;

static void expect(const server_call *seen, const error_row *row, const char *stream, const char *group)
{
    char message[1024];

    snprintf(message, sizeof message, row->format, group, stream);
    EXPECT_CALL_STATUS(seen, row->status);
    EXPECT_STR(server_call_trailer(seen, "exception"), row->exception);
    EXPECT_STR(server_call_trailer(seen, "stream-name"), stream);
    EXPECT_STR(server_call_trailer(seen, "group-name"), group);
    EXPECT_STR(seen->message, message);
}

void manage_expect_missing(const server_call *seen, const char *stream, const char *group)
{
    static const error_row row = { SL_STATUS_NOT_FOUND, "persistent-subscription-does-not-exist",
                                   "Subscription group %s on stream %s does not exist." };

    expect(seen, &row, stream, group);
}

void manage_expect_exists(const server_call *seen, const char *stream, const char *group)
{
    static const error_row row = { SL_STATUS_ALREADY_EXISTS, "persistent-subscription-exists",
                                   "Subscription group %s on stream %s exists." };

    expect(seen, &row, stream, group);
}

void manage_expect_dropped(const server_call *seen, const char *stream, const char *group)
{
    static const error_row row = { SL_STATUS_CANCELLED, "persistent-subscription-dropped",
                                   "Subscription group %s on stream %s was dropped." };

    expect(seen, &row, stream, group);
}

void manage_expect_failed(const server_call *seen, const char *stream, const char *group, const char *reason)
{
    char format[1024];
    const error_row row = { SL_STATUS_INTERNAL, "persistent-subscription-failed", format };

    snprintf(format, sizeof format, "Subscription group %%s on stream %%s failed: '%s'", reason);
    expect(seen, &row, stream, group);
    EXPECT_STR(server_call_trailer(seen, "reason"), reason);
}
