/* tests/fuzz/server_group_words.c — see server_group_words.h.
 *
 * Few names and few ids, so that consumers meet in a group, and what one settles was given to another. The ids are those of
 * server_words.c. */
#include "server_group_words.h"

#include "base/cleanup.h"
#include "server/services.h"
#include "wire/operators_control.h"
#include "wire/persistent_client.h"
#include "wire/persistent_codec.h"

#include <assert.h>

enum {
    IDS_MAX = 8,
    IDS_KNOWN = 16, /* of events that an append is likely to have made */
    IDS_OF_EVENTS = 5,
};

#define PICK(s, table) ((table)[script_next(s) % SL_COUNT_OF(table)])

static const sl_str sources[] = { SL_STR_INIT("a"), SL_STR_INIT("a"), SL_STR_INIT("b"),  SL_STR_INIT("$all"),
                                  SL_STR_INIT(""),  SL_STR_INIT("a"), SL_STR_INIT("$$a") };
static const sl_str names[] = { SL_STR_INIT("g"), SL_STR_INIT("g"), SL_STR_INIT("g"),
                                SL_STR_INIT("h"), SL_STR_INIT(""),  SL_STR_INIT("\xff") };
static const sl_str consumers[] = { SL_STR_INIT("one"), SL_STR_INIT("one"), SL_STR_INIT("two"),
                                    SL_STR_INIT("") };
static const sl_str strategies[] = { SL_STR_INIT("RoundRobin"), SL_STR_INIT("DispatchToSingle"),
                                     SL_STR_INIT("Pinned"), SL_STR_INIT("PinnedByCorrelation"),
                                     SL_STR_INIT("Chance") };
static const int32_t numbers[] = { 0, 1, 2, 10, 500, -1, INT32_MAX };
static const sl_wire_label labels[] = { { SL_STR_INIT("version"), SL_STR_INIT("1") },
                                        { SL_STR_INIT("version"), SL_STR_INIT("2") },
                                        { SL_STR_INIT(""), SL_STR_INIT("\xfe") } };

static sl_wire_source source_of(sl_str stream)
{
    return sl_str_equal(stream, SL_STR("$all")) ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM;
}

/* --- managing --- */

/* Most groups should come to be: then the values are those that a client sends of itself. */
static sl_wire_group_settings settings(script *s)
{
    const uint8_t flags = script_next(s);
    sl_wire_group_settings made = { .resolve_links = (flags & 1) != 0,
                                    .extra_statistics = (flags & 2) != 0,
                                    .message_timeout = { .given = true, .value = 1 << (flags >> 4) },
                                    .checkpoint_after = { .given = true, .value = 1000 },
                                    .max_retry_count = (flags >> 2) & 3,
                                    .min_checkpoint_count = 1,
                                    .max_checkpoint_count = 10,
                                    .live_buffer_size = 20,
                                    .read_batch_size = 10,
                                    .history_buffer_size = 20 };

    made.strategy = PICK(s, strategies);
    if (flags < 0xf0)
        return made;
    made.message_timeout.in_ticks = (flags & 1) != 0;
    made.message_timeout.value = PICK(s, numbers);
    made.max_retry_count = PICK(s, numbers);
    made.min_checkpoint_count = PICK(s, numbers);
    made.max_checkpoint_count = PICK(s, numbers);
    made.max_subscriber_count = PICK(s, numbers);
    made.live_buffer_size = PICK(s, numbers);
    made.read_batch_size = PICK(s, numbers);
    made.history_buffer_size = PICK(s, numbers);
    made.max_interrupts = (sl_wire_group_limit){ (flags & 2) != 0, made.max_retry_count };
    made.max_kills = (sl_wire_group_limit){ (flags & 1) != 0, made.max_subscriber_count };
    return made;
}

static sl_wire_group_request definition(script *s, const sl_wire_filter *filter)
{
    static const sl_wire_start starts[] = { SL_WIRE_START_BEGIN, SL_WIRE_START_BEGIN, SL_WIRE_START_END,
                                            SL_WIRE_START_GIVEN };
    const uint8_t choice = script_next(s);
    sl_wire_group_request request = { .start = starts[choice & 3],
                                      .revision = choice >> 2,
                                      .position = { .commit = choice >> 2, .prepare = choice >> 2 },
                                      .filter = *filter,
                                      .has_settings = true };

    request.stream = PICK(s, sources);
    request.source = source_of(request.stream);
    request.group = PICK(s, names);
    request.settings = settings(s);
    return request;
}

static sl_wire_group_name group_name(script *s)
{
    sl_wire_group_name name = { 0 };

    name.stream = PICK(s, sources);
    name.source = source_of(name.stream);
    name.group = PICK(s, names);
    return name;
}

static sl_err parked(script *s, sl_arena *arena, sl_str *ret_message)
{
    const uint8_t choice = script_next(s);
    const sl_parked_request request = {
        .name = group_name(s),
        .limit = (choice & 1) != 0 ? SL_PARKED_LIMIT_STOP_AT : SL_PARKED_LIMIT_NONE,
        .stop_at = choice == 255 ? INT64_MIN : choice >> 1,
    };

    return sl_parked_request_encode(&request, arena, ret_message);
}

static sl_err listing(script *s, sl_arena *arena, sl_str *ret_message)
{
    const uint8_t choice = script_next(s);
    const sl_wire_group_name of = group_name(s);
    const sl_wire_group_list_request request = {
        .kind = (choice & 1) != 0 ? SL_WIRE_GROUP_LIST_OF : SL_WIRE_GROUP_LIST_EVERY,
        .source = of.source,
        .stream = of.stream,
    };

    return sl_wire_group_list_request_encode(&request, arena, ret_message);
}

static sl_err named(script *s, sl_arena *arena, const sl_method *method, sl_str *ret_message)
{
    const sl_wire_group_name name = group_name(s);

    return method == &sl_method_persistent_delete
               ? sl_wire_group_delete_encode(&name, arena, ret_message)
               : sl_wire_group_info_request_encode(&name, arena, ret_message);
}

/* An Update cannot name every strategy: then it says nothing at all. */
static sl_err defined(script *s, sl_arena *arena, const sl_method *method, const sl_wire_filter *filter,
                      sl_str *ret_message)
{
    const sl_wire_group_request request = definition(s, filter);
    sl_err err;

    if (method == &sl_method_persistent_create)
        return sl_wire_group_create_encode(&request, arena, ret_message);
    err = sl_wire_group_update_encode(&request, arena, ret_message);
    if (err == SL_ERR_INVALID)
        *ret_message = SL_STR("");
    return err == SL_ERR_INVALID ? SL_OK : err;
}

/* --- consuming --- */

static sl_wire_ids ids(script *s, sl_uuid list[IDS_MAX])
{
    const uint8_t choice = script_next(s);
    const size_t count = choice >> 4 & 7;

    for (size_t i = 0; i < count; i++) {
        const uint8_t which = script_next(s);

        list[i] = sl_uuid_from_halves(IDS_OF_EVENTS, which < 0xf0 ? which % IDS_KNOWN : which);
    }
    return (sl_wire_ids){ .count = count,
                          .list = list,
                          .form = (choice & 1) != 0 ? SL_WIRE_ID_TEXT : SL_WIRE_ID_STRUCTURED };
}

static sl_persistent_request options(script *s, sl_uuid list[IDS_MAX])
{
    const uint8_t flags = script_next(s);
    sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_OPTIONS };
    sl_persistent_options *const wanted = &request.options;

    *wanted = (sl_persistent_options){ .buffer_size = 1 + (flags >> 5),
                                       .has_id_option = true,
                                       .id_form = (flags & 1) != 0 ? SL_WIRE_ID_TEXT : SL_WIRE_ID_STRUCTURED,
                                       .extensions = (flags & 2) != 0,
                                       .labels = { .count = flags >> 3 & 3, .list = labels } };
    wanted->stream = PICK(s, sources);
    wanted->source = source_of(wanted->stream);
    wanted->group = PICK(s, names);
    wanted->consumer_name = PICK(s, consumers);
    wanted->reconnect_ms = PICK(s, numbers);
    if (flags == 255)
        wanted->buffer_size = PICK(s, numbers);
    if ((flags & 4) != 0)
        wanted->resume = ids(s, list);
    return request;
}

static sl_persistent_request word(script *s, sl_uuid list[IDS_MAX])
{
    static const sl_persistent_request_kind kinds[] = {
        SL_PERSISTENT_REQUEST_ACK,     SL_PERSISTENT_REQUEST_ACK,     SL_PERSISTENT_REQUEST_NACK,
        SL_PERSISTENT_REQUEST_NACK,    SL_PERSISTENT_REQUEST_STOP,    SL_PERSISTENT_REQUEST_RELEASE,
        SL_PERSISTENT_REQUEST_EXTEND,  SL_PERSISTENT_REQUEST_STARTED, SL_PERSISTENT_REQUEST_UNSET,
        SL_PERSISTENT_REQUEST_OPTIONS,
    };
    const uint8_t more = script_next(s);
    sl_persistent_request request = { .kind = PICK(s, kinds) };

    if (request.kind == SL_PERSISTENT_REQUEST_OPTIONS)
        return options(s, list);
    if (request.kind == SL_PERSISTENT_REQUEST_UNSET)
        return request;
    if (request.kind == SL_PERSISTENT_REQUEST_STOP) {
        request.hand_back_unstarted = (more & 1) != 0;
        return request;
    }
    request.ids = ids(s, list);
    if (request.kind == SL_PERSISTENT_REQUEST_NACK) {
        request.action = more % 6;
        request.reason = (more & 8) != 0 ? SL_STR("bad \xff item") : SL_STR("");
        request.delay_ms = (more & 16) != 0 ? PICK(s, numbers) : 0;
    }
    if (request.kind == SL_PERSISTENT_REQUEST_EXTEND)
        request.lease_ms = PICK(s, numbers);
    return request;
}

static sl_str consume_message(script *s, sl_arena *arena, uint32_t message_index)
{
    sl_uuid list[IDS_MAX];
    const sl_persistent_request request = message_index == 0 ? options(s, list) : word(s, list);
    const size_t bytes = sl_persistent_request_size(&request);
    uint8_t *const message = sl_arena_alloc_zero(arena, bytes + 1);

    assert(message != NULL);
    sl_persistent_request_encode(&request, message, bytes);
    return (sl_str){ (const char *)message, bytes };
}

/* --- operators --- */

static sl_wire_who who(script *s)
{
    const uint8_t flags = script_next(s);
    sl_wire_who meant = { 0 };

    if ((flags & 1) != 0)
        meant.stream = PICK(s, sources);
    if ((flags & 2) != 0)
        meant.group = PICK(s, names);
    if ((flags & 4) != 0)
        meant.consumer_name = PICK(s, consumers);
    if ((flags & 8) != 0) {
        const sl_wire_label label = PICK(s, labels);

        meant.label_key = label.key;
        meant.label_value = label.value;
    }
    return meant;
}

static sl_err stop(script *s, sl_arena *arena, sl_str *ret_message)
{
    const uint8_t flags = script_next(s);
    const sl_wire_stop_request request = { .who = who(s),
                                           .reason = (flags & 1) != 0 ? SL_STR("deploy") : SL_STR(""),
                                           .deadline_ms = (flags & 2) != 0 ? 1000 : 0,
                                           .wait_ms = (flags & 4) != 0 ? UINT32_C(1) << (flags >> 4) : 0,
                                           .hand_back_unstarted = (flags & 8) != 0,
                                           .once = (flags & 16) != 0 };

    return sl_wire_stop_request_encode(&request, arena, ret_message);
}

static sl_err operate(script *s, sl_arena *arena, const sl_method *method, sl_str *ret_message)
{
    if (method == &sl_method_operators_stop)
        return stop(s, arena, ret_message);
    const sl_wire_consumers_request request = { .who = who(s), .with_reports = true };

    return method == &sl_method_operators_resume
               ? sl_wire_resume_request_encode(&request.who, arena, ret_message)
               : sl_wire_consumers_request_encode(&request, arena, ret_message);
}

/* --- all of them --- */

static bool is_operators(const sl_method *method)
{
    return method == &sl_method_operators_consumers || method == &sl_method_operators_stop ||
           method == &sl_method_operators_resume;
}

static bool is_parked(const sl_method *method)
{
    return method == &sl_method_persistent_replay_parked || method == &sl_method_persistent_truncate_parked;
}

bool group_words_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index,
                         const sl_wire_filter *filter, sl_str *ret_message)
{
    sl_err err = SL_OK;

    if (method == &sl_method_persistent_read)
        *ret_message = consume_message(s, arena, message_index);
    else if (method == &sl_method_persistent_create || method == &sl_method_persistent_update)
        err = defined(s, arena, method, filter, ret_message);
    else if (method == &sl_method_persistent_delete || method == &sl_method_persistent_get_info)
        err = named(s, arena, method, ret_message);
    else if (method == &sl_method_persistent_list)
        err = listing(s, arena, ret_message);
    else if (is_parked(method))
        err = parked(s, arena, ret_message);
    else if (is_operators(method))
        err = operate(s, arena, method, ret_message);
    else
        return false;
    assert(err == SL_OK);
    return true;
}
