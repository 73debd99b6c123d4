/* wire/codec/persistent_control.c — requests about consumer groups, through protobuf-c.
 *
 * UpdateReq is CreateReq with some fields left out, TruncateParkedReq is the same as ReplayParkedReq, all with the same
 * numbers. Each pair is read with one descriptor; what an Update may not say is dropped afterwards. */
#include "wire/persistent_control.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/unpack.h"

typedef EventStore__Client__PersistentSubscriptions__CreateReq create_req;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Options create_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__StreamOptions stream_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions all_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions__FilterOptions filter_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions__FilterOptions__Expression
    expression;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Settings settings;
typedef EventStore__Client__PersistentSubscriptions__DeleteReq delete_req;
typedef EventStore__Client__PersistentSubscriptions__GetInfoReq info_req;
typedef EventStore__Client__PersistentSubscriptions__ReplayParkedReq replay_req;
typedef EventStore__Client__PersistentSubscriptions__ReplayParkedReq__Options replay_options;
typedef EventStore__Client__PersistentSubscriptions__ListReq list_req;
typedef EventStore__Client__PersistentSubscriptions__ListReq__Options list_options;

#define CREATE(name) EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__##name
#define DELETE_OF(name)                                                                                      \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__DELETE_REQ__OPTIONS__STREAM_OPTION_##name
#define INFO_OF(name)                                                                                        \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_REQ__OPTIONS__STREAM_OPTION_##name
#define REPLAY(name) EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__REPLAY_PARKED_REQ__OPTIONS__##name
#define LIST(name)   EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_REQ__##name

#define OLD_FORM_END UINT64_MAX

static sl_str name_of(const EventStore__Client__StreamIdentifier *identifier)
{
    return identifier == NULL ? (sl_str){ 0 } : sl_unpacked_bytes(identifier->stream_name);
}

/* --- where a group begins --- */

static void from_stream(const stream_options *options, sl_wire_group_request *into)
{
    into->source = SL_WIRE_SOURCE_STREAM;
    into->stream = name_of(options->stream_identifier);
    switch ((int)options->revision_option_case) {
    case CREATE(STREAM_OPTIONS__REVISION_OPTION_REVISION):
        into->start = SL_WIRE_START_GIVEN;
        into->revision = options->revision;
        break;
    case CREATE(STREAM_OPTIONS__REVISION_OPTION_START): into->start = SL_WIRE_START_BEGIN; break;
    case CREATE(STREAM_OPTIONS__REVISION_OPTION_END): into->start = SL_WIRE_START_END; break;
    default: break;
    }
}

static bool from_expression(const expression *given, sl_arena *arena, sl_wire_filter *into)
{
    into->regex = sl_unpacked_text(given->regex);
    into->prefix_count = given->n_prefix;
    return sl_unpacked_texts(arena, given->prefix, given->n_prefix, &into->prefixes);
}

static bool from_filter(const filter_options *options, sl_arena *arena, sl_wire_filter *into)
{
    into->kind = SL_WIRE_FILTER_GIVEN;
    into->checkpoint_multiplier = options->checkpointintervalmultiplier;
    if (options->window_case == CREATE(ALL_OPTIONS__FILTER_OPTIONS__WINDOW_MAX)) {
        into->window = SL_WIRE_WINDOW_MAX;
        into->window_max = options->max;
    } else if (options->window_case == CREATE(ALL_OPTIONS__FILTER_OPTIONS__WINDOW_COUNT)) {
        into->window = SL_WIRE_WINDOW_COUNT;
    }
    switch ((int)options->filter_case) {
    case CREATE(ALL_OPTIONS__FILTER_OPTIONS__FILTER_STREAM_IDENTIFIER):
        into->on = SL_WIRE_FILTER_ON_STREAM;
        return from_expression(options->stream_identifier, arena, into);
    case CREATE(ALL_OPTIONS__FILTER_OPTIONS__FILTER_EVENT_TYPE):
        into->on = SL_WIRE_FILTER_ON_TYPE;
        return from_expression(options->event_type, arena, into);
    default: return true;
    }
}

static bool from_all(const all_options *options, sl_arena *arena, sl_wire_group_request *into)
{
    into->source = SL_WIRE_SOURCE_ALL;
    switch ((int)options->all_option_case) {
    case CREATE(ALL_OPTIONS__ALL_OPTION_POSITION):
        into->start = SL_WIRE_START_GIVEN;
        into->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, options->position->commit_position,
                                             options->position->prepare_position };
        break;
    case CREATE(ALL_OPTIONS__ALL_OPTION_START): into->start = SL_WIRE_START_BEGIN; break;
    case CREATE(ALL_OPTIONS__ALL_OPTION_END): into->start = SL_WIRE_START_END; break;
    default: break;
    }
    if (options->filter_option_case == CREATE(ALL_OPTIONS__FILTER_OPTION_NO_FILTER))
        into->filter.kind = SL_WIRE_FILTER_NONE;
    return options->filter_option_case != CREATE(ALL_OPTIONS__FILTER_OPTION_FILTER) ||
           from_filter(options->filter, arena, &into->filter);
}

/* Both Node clients still write only this: the name beside the options, the start among the settings. */
static void from_old_form(const create_options *options, sl_wire_group_request *into)
{
    into->source = SL_WIRE_SOURCE_STREAM;
    into->stream = name_of(options->stream_identifier);
    into->start = SL_WIRE_START_GIVEN;
    into->revision = options->settings == NULL ? 0 : options->settings->revision;
    if (into->revision == OLD_FORM_END) {
        into->start = SL_WIRE_START_END;
        into->revision = 0;
    }
}

/* --- settings --- */

static sl_str strategy_of(const settings *from)
{
    const sl_str text = sl_unpacked_text(from->consumer_strategy);

    if (text.bytes > 0)
        return text;
    switch ((int)from->named_consumer_strategy) {
    case CREATE(CONSUMER_STRATEGY__DispatchToSingle): return SL_STR("DispatchToSingle");
    case CREATE(CONSUMER_STRATEGY__RoundRobin): return SL_STR("RoundRobin");
    case CREATE(CONSUMER_STRATEGY__Pinned): return SL_STR("Pinned");
    default: return SL_STR("");
    }
}

static sl_wire_group_time message_timeout_of(const settings *from)
{
    switch ((int)from->message_timeout_case) {
    case CREATE(SETTINGS__MESSAGE_TIMEOUT_MESSAGE_TIMEOUT_TICKS):
        return (sl_wire_group_time){ .given = true, .in_ticks = true, .value = from->message_timeout_ticks };
    case CREATE(SETTINGS__MESSAGE_TIMEOUT_MESSAGE_TIMEOUT_MS):
        return (sl_wire_group_time){ .given = true, .value = from->message_timeout_ms };
    default: return (sl_wire_group_time){ 0 };
    }
}

static sl_wire_group_time checkpoint_after_of(const settings *from)
{
    switch ((int)from->checkpoint_after_case) {
    case CREATE(SETTINGS__CHECKPOINT_AFTER_CHECKPOINT_AFTER_TICKS):
        return (sl_wire_group_time){ .given = true, .in_ticks = true, .value = from->checkpoint_after_ticks };
    case CREATE(SETTINGS__CHECKPOINT_AFTER_CHECKPOINT_AFTER_MS):
        return (sl_wire_group_time){ .given = true, .value = from->checkpoint_after_ms };
    default: return (sl_wire_group_time){ 0 };
    }
}

static sl_wire_group_limit max_interrupts_of(const settings *from)
{
    if (from->interrupts_limit_case != CREATE(SETTINGS__INTERRUPTS_LIMIT_MAX_INTERRUPTS))
        return (sl_wire_group_limit){ 0 };
    return (sl_wire_group_limit){ .given = true, .value = from->max_interrupts };
}

static sl_wire_group_limit max_kills_of(const settings *from)
{
    if (from->kills_limit_case != CREATE(SETTINGS__KILLS_LIMIT_MAX_KILLS))
        return (sl_wire_group_limit){ 0 };
    return (sl_wire_group_limit){ .given = true, .value = from->max_kills };
}

static sl_wire_group_settings settings_from(const settings *from)
{
    return (sl_wire_group_settings){
        .resolve_links = from->resolve_links,
        .extra_statistics = from->extra_statistics,
        .message_timeout = message_timeout_of(from),
        .checkpoint_after = checkpoint_after_of(from),
        .max_retry_count = from->max_retry_count,
        .min_checkpoint_count = from->min_checkpoint_count,
        .max_checkpoint_count = from->max_checkpoint_count,
        .max_subscriber_count = from->max_subscriber_count,
        .live_buffer_size = from->live_buffer_size,
        .read_batch_size = from->read_batch_size,
        .history_buffer_size = from->history_buffer_size,
        .strategy = strategy_of(from),
        .max_interrupts = max_interrupts_of(from),
        .max_kills = max_kills_of(from),
    };
}

/* --- Create and Update --- */

static bool from_options(const create_options *options, sl_arena *arena, sl_wire_group_request *into)
{
    into->group = sl_unpacked_text(options->group_name);
    into->has_settings = options->settings != NULL;
    if (into->has_settings)
        into->settings = settings_from(options->settings);
    switch ((int)options->stream_option_case) {
    case CREATE(OPTIONS__STREAM_OPTION_STREAM): from_stream(options->stream, into); return true;
    case CREATE(OPTIONS__STREAM_OPTION_ALL): return from_all(options->all, arena, into);
    default: from_old_form(options, into); return true;
    }
}

static sl_err unpack_create(sl_str message, sl_arena *arena, create_req **ret_unpacked,
                            const char **ret_reason)
{
    return sl_unpack(&event_store__client__persistent_subscriptions__create_req__descriptor, message, arena,
                     ret_unpacked, ret_reason);
}

sl_err sl_wire_group_create_decode(sl_str message, sl_arena *arena, sl_wire_group_request *ret_request,
                                   const char **ret_reason)
{
    create_req *unpacked;
    sl_wire_group_request request = { .source = SL_WIRE_SOURCE_STREAM };
    const sl_err err = unpack_create(message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    if (unpacked->options != NULL && !from_options(unpacked->options, arena, &request))
        return SL_ERR_NOMEM;
    *ret_request = request;
    return SL_OK;
}

/* An unknown field in an Update, a known one in a Create: as if they had not been there. */
static void drop_what_only_create_has(create_options *options)
{
    if (options->stream_option_case == CREATE(OPTIONS__STREAM_OPTION_ALL))
        options->all->filter_option_case = CREATE(ALL_OPTIONS__FILTER_OPTION__NOT_SET);
    if (options->settings != NULL)
        options->settings->consumer_strategy = NULL;
}

sl_err sl_wire_group_update_decode(sl_str message, sl_arena *arena, sl_wire_group_request *ret_request,
                                   const char **ret_reason)
{
    create_req *unpacked;
    sl_wire_group_request request = { .source = SL_WIRE_SOURCE_STREAM };
    const sl_err err = unpack_create(message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    if (unpacked->options != NULL) {
        drop_what_only_create_has(unpacked->options);
        if (!from_options(unpacked->options, arena, &request))
            return SL_ERR_NOMEM;
    }
    *ret_request = request;
    return SL_OK;
}

/* --- the others --- */

sl_err sl_wire_group_delete_decode(sl_str message, sl_arena *arena, sl_wire_group_name *ret_name,
                                   const char **ret_reason)
{
    delete_req *unpacked;
    const sl_err err = sl_unpack(&event_store__client__persistent_subscriptions__delete_req__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_name = (sl_wire_group_name){ 0 };
    if (unpacked->options == NULL)
        return SL_OK;
    ret_name->group = sl_unpacked_text(unpacked->options->group_name);
    if (unpacked->options->stream_option_case == DELETE_OF(STREAM_IDENTIFIER)) {
        ret_name->source = SL_WIRE_SOURCE_STREAM;
        ret_name->stream = name_of(unpacked->options->stream_identifier);
    } else if (unpacked->options->stream_option_case == DELETE_OF(ALL)) {
        ret_name->source = SL_WIRE_SOURCE_ALL;
    }
    return SL_OK;
}

sl_err sl_wire_group_info_request_decode(sl_str message, sl_arena *arena, sl_wire_group_name *ret_name,
                                         const char **ret_reason)
{
    info_req *unpacked;
    const sl_err err = sl_unpack(&event_store__client__persistent_subscriptions__get_info_req__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_name = (sl_wire_group_name){ 0 };
    if (unpacked->options == NULL)
        return SL_OK;
    ret_name->group = sl_unpacked_text(unpacked->options->group_name);
    if (unpacked->options->stream_option_case == INFO_OF(STREAM_IDENTIFIER)) {
        ret_name->source = SL_WIRE_SOURCE_STREAM;
        ret_name->stream = name_of(unpacked->options->stream_identifier);
    } else if (unpacked->options->stream_option_case == INFO_OF(ALL)) {
        ret_name->source = SL_WIRE_SOURCE_ALL;
    }
    return SL_OK;
}

static void from_replay(const replay_options *options, sl_parked_request *into)
{
    into->name.group = sl_unpacked_text(options->group_name);
    if (options->stream_option_case == REPLAY(STREAM_OPTION_STREAM_IDENTIFIER)) {
        into->name.source = SL_WIRE_SOURCE_STREAM;
        into->name.stream = name_of(options->stream_identifier);
    } else if (options->stream_option_case == REPLAY(STREAM_OPTION_ALL)) {
        into->name.source = SL_WIRE_SOURCE_ALL;
    }
    if (options->stop_at_option_case == REPLAY(STOP_AT_OPTION_STOP_AT)) {
        into->limit = SL_PARKED_LIMIT_STOP_AT;
        into->stop_at = options->stop_at;
    } else if (options->stop_at_option_case == REPLAY(STOP_AT_OPTION_NO_LIMIT)) {
        into->limit = SL_PARKED_LIMIT_NONE;
    }
}

sl_err sl_parked_request_decode(sl_str message, sl_arena *arena, sl_parked_request *ret_request,
                                const char **ret_reason)
{
    replay_req *unpacked;
    const sl_err err =
        sl_unpack(&event_store__client__persistent_subscriptions__replay_parked_req__descriptor, message,
                  arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request = (sl_parked_request){ 0 };
    if (unpacked->options != NULL)
        from_replay(unpacked->options, ret_request);
    return SL_OK;
}

static void from_list(const list_options *options, sl_wire_group_list_request *into)
{
    if (options->list_option_case == LIST(OPTIONS__LIST_OPTION_LIST_ALL_SUBSCRIPTIONS))
        into->kind = SL_WIRE_GROUP_LIST_EVERY;
    if (options->list_option_case != LIST(OPTIONS__LIST_OPTION_LIST_FOR_STREAM))
        return;
    into->kind = SL_WIRE_GROUP_LIST_OF;
    if (options->list_for_stream->stream_option_case == LIST(STREAM_OPTION__STREAM_OPTION_STREAM)) {
        into->source = SL_WIRE_SOURCE_STREAM;
        into->stream = name_of(options->list_for_stream->stream);
    } else if (options->list_for_stream->stream_option_case == LIST(STREAM_OPTION__STREAM_OPTION_ALL)) {
        into->source = SL_WIRE_SOURCE_ALL;
    }
}

sl_err sl_wire_group_list_request_decode(sl_str message, sl_arena *arena,
                                         sl_wire_group_list_request *ret_request, const char **ret_reason)
{
    list_req *unpacked;
    const sl_err err = sl_unpack(&event_store__client__persistent_subscriptions__list_req__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request = (sl_wire_group_list_request){ 0 };
    if (unpacked->options != NULL)
        from_list(unpacked->options, ret_request);
    return SL_OK;
}
