/* server/groups/management_info.c — PersistentSubscriptions/GetInfo and List: groups for people, for every user.
 *
 * What the numbers mean is said by the desk; here is only who is asked for. A list is one message, however long: clients know no
 * pages. It is made in the memory of the request, and one that does not fit there is refused. */
#include "server/groups/management.h"

#include "server/reply.h"
#include "server/services.h"

static void answer(sl_request *request, sl_err err, sl_str message)
{
    if (err == SL_OK)
        sl_request_answer(request, message);
    else
        sl_reply_error(request, err);
}

/* --- GetInfo --- */

static void get_info(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_wire_group_name name;
    sl_wire_group_info info;
    const sl_desk *desk;
    sl_str text = SL_STR("");
    sl_err err = sl_wire_group_info_request_decode(message, &request->arena, &name, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    if (name.source == SL_WIRE_SOURCE_UNSET) {
        sl_reply_invalid(request, "The request names neither a stream nor all.");
        return;
    }
    desk = management_find(request, management_stream(name.source, name.stream), name.group);
    if (desk == NULL)
        return;
    err = sl_desk_info(desk, &request->arena, &info);
    if (err == SL_OK)
        err = sl_wire_group_info_encode(&info, &request->arena, &text);
    answer(request, err, text);
}

/* --- List --- */

typedef struct listing {
    sl_arena *arena;
    sl_wire_group_info *rows;
    size_t count, capacity;
    sl_err err;
} listing;

static void count_desk(void *ctx, sl_desk *desk)
{
    listing *const l = ctx;

    (void)desk;
    l->capacity++;
}

static void add_desk(void *ctx, sl_desk *desk)
{
    listing *const l = ctx;

    if (l->err == SL_OK && l->count < l->capacity)
        l->err = sl_desk_info(desk, l->arena, &l->rows[l->count++]);
}

/* stream empty: all groups there are. */
static sl_err list(sl_request *request, sl_str stream, sl_str *ret_message)
{
    const sl_registry *const registry = request->host->registry;
    listing l = { .arena = &request->arena };

    sl_registry_each(registry, stream, count_desk, &l);
    l.rows = sl_arena_alloc(l.arena, (l.capacity + 1) * sizeof *l.rows);
    if (l.rows == NULL)
        return SL_ERR_NOMEM;
    sl_registry_each(registry, stream, add_desk, &l);
    return l.err == SL_OK ? sl_wire_group_list_encode(l.rows, l.count, l.arena, ret_message) : l.err;
}

/* A stream whose groups are all deleted has an empty list; one that never had any is not known. */
static void answer_list(sl_request *request, const sl_wire_group_list_request *asked)
{
    const bool of_one = asked->kind == SL_WIRE_GROUP_LIST_OF;
    const sl_str stream = of_one ? management_stream(asked->source, asked->stream) : SL_STR("");
    sl_str message = SL_STR("");
    sl_err err;

    if (of_one && (stream.bytes == 0 || !sl_registry_knows_stream(request->host->registry, stream))) {
        sl_reply_group_not_found(request, stream, SL_STR(""));
        return;
    }
    err = list(request, stream, &message);
    answer(request, err, message);
}

static void list_groups(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_wire_group_list_request asked;
    const sl_err err = sl_wire_group_list_request_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else if (asked.kind == SL_WIRE_GROUP_LIST_UNSET ||
             (asked.kind == SL_WIRE_GROUP_LIST_OF && asked.source == SL_WIRE_SOURCE_UNSET))
        sl_reply_invalid(request, "The request does not say which groups: all there are, those of a stream, "
                                  "or those of all.");
    else
        answer_list(request, &asked);
}

#define MANAGEMENT(variable, method_name, function)                                                          \
    const sl_method sl_method_persistent_##variable = {                                                      \
        .service = SL_STR_INIT(MANAGEMENT_SERVICE),                                                          \
        .name = SL_STR_INIT(method_name),                                                                    \
        .kind = SL_METHOD_UNARY,                                                                             \
        .who = SL_FOR_READERS,                                                                               \
        .message_bytes_max = MANAGEMENT_NAME_BYTES_MAX,                                                      \
        .features = management_features,                                                                     \
        .feature_count = MANAGEMENT_FEATURE_COUNT,                                                           \
        .message = function,                                                                                 \
    }

MANAGEMENT(get_info, "GetInfo", get_info);
MANAGEMENT(list, "List", list_groups);
