/* wire/codec/persistent_client.c — requests about consumer groups, as a client writes them.
 *
 * As in persistent_control.c one descriptor serves two messages where the second is the first with fields left out: those fields are
 * not filled in. */
#include "wire/persistent_client.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/unpack.h"

typedef EventStore__Client__PersistentSubscriptions__CreateReq create_req;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Options create_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__StreamOptions stream_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions all_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions__FilterOptions filter_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions__FilterOptions__Expression
    expression;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Position all_position;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Settings settings;
typedef EventStore__Client__StreamIdentifier stream_identifier;
typedef EventStore__Client__Empty empty;

#define CREATE(name) EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__##name
#define STREAM_OPTION(name)                                                                                  \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__OPTIONS__STREAM_OPTION_##name
#define REVISION_OPTION(name)                                                                                \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__STREAM_OPTIONS__REVISION_OPTION_##name
#define ALL_OPTION(name)                                                                                     \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__ALL_OPTIONS__ALL_OPTION_##name
#define FILTER_ON(name)                                                                                      \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__ALL_OPTIONS__FILTER_OPTIONS__FILTER_##name
#define FILTER_WINDOW(name)                                                                                  \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__ALL_OPTIONS__FILTER_OPTIONS__WINDOW_##name
#define DELETE_OF(name)                                                                                      \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__DELETE_REQ__OPTIONS__STREAM_OPTION_##name
#define INFO_OF(name)                                                                                        \
    EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_REQ__OPTIONS__STREAM_OPTION_##name
#define REPLAY(name) EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__REPLAY_PARKED_REQ__OPTIONS__##name
#define LIST(name)   EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_REQ__##name

/* --- Create and Update --- */

/* The messages that a request is made of; they point to each other. */
typedef struct create_parts {
    create_req request;
    create_options options;
    stream_options stream;
    stream_identifier identifier;
    all_options all;
    all_position position;
    filter_options filter;
    expression expression;
    settings settings;
    empty marker; /* wherever presence is all */
} create_parts;

static void init_parts(create_parts *parts)
{
    event_store__client__persistent_subscriptions__create_req__init(&parts->request);
    event_store__client__persistent_subscriptions__create_req__options__init(&parts->options);
    event_store__client__persistent_subscriptions__create_req__stream_options__init(&parts->stream);
    event_store__client__stream_identifier__init(&parts->identifier);
    event_store__client__persistent_subscriptions__create_req__all_options__init(&parts->all);
    event_store__client__persistent_subscriptions__create_req__position__init(&parts->position);
    event_store__client__persistent_subscriptions__create_req__all_options__filter_options__init(
        &parts->filter);
    event_store__client__persistent_subscriptions__create_req__all_options__filter_options__expression__init(
        &parts->expression);
    event_store__client__persistent_subscriptions__create_req__settings__init(&parts->settings);
    event_store__client__empty__init(&parts->marker);
    parts->request.options = &parts->options;
    parts->options.settings = &parts->settings;
}

typedef sl_wire_group_request source_request;
typedef create_parts source_parts;

#include "wire/codec/source.inc"

static void to_filter(sl_packer *packer, const sl_wire_filter *filter, create_parts *parts)
{
    if (filter->kind == SL_WIRE_FILTER_NONE) {
        parts->all.filter_option_case = CREATE(ALL_OPTIONS__FILTER_OPTION_NO_FILTER);
        parts->all.no_filter = &parts->marker;
    }
    if (filter->kind != SL_WIRE_FILTER_GIVEN)
        return;
    parts->all.filter_option_case = CREATE(ALL_OPTIONS__FILTER_OPTION_FILTER);
    parts->all.filter = &parts->filter;
    to_expression(packer, filter, parts);
}

static void to_times(const sl_wire_group_settings *from, settings *into)
{
    if (from->message_timeout.given && from->message_timeout.in_ticks) {
        into->message_timeout_case = CREATE(SETTINGS__MESSAGE_TIMEOUT_MESSAGE_TIMEOUT_TICKS);
        into->message_timeout_ticks = from->message_timeout.value;
    } else if (from->message_timeout.given) {
        into->message_timeout_case = CREATE(SETTINGS__MESSAGE_TIMEOUT_MESSAGE_TIMEOUT_MS);
        into->message_timeout_ms = (int32_t)from->message_timeout.value;
    }
    if (from->checkpoint_after.given && from->checkpoint_after.in_ticks) {
        into->checkpoint_after_case = CREATE(SETTINGS__CHECKPOINT_AFTER_CHECKPOINT_AFTER_TICKS);
        into->checkpoint_after_ticks = from->checkpoint_after.value;
    } else if (from->checkpoint_after.given) {
        into->checkpoint_after_case = CREATE(SETTINGS__CHECKPOINT_AFTER_CHECKPOINT_AFTER_MS);
        into->checkpoint_after_ms = (int32_t)from->checkpoint_after.value;
    }
}

static void to_limits(const sl_wire_group_settings *from, settings *into)
{
    if (from->max_interrupts.given) {
        into->interrupts_limit_case = CREATE(SETTINGS__INTERRUPTS_LIMIT_MAX_INTERRUPTS);
        into->max_interrupts = from->max_interrupts.value;
    }
    if (from->max_kills.given) {
        into->kills_limit_case = CREATE(SETTINGS__KILLS_LIMIT_MAX_KILLS);
        into->max_kills = from->max_kills.value;
    }
}

static void to_settings(const sl_wire_group_settings *from, settings *into)
{
    into->resolve_links = from->resolve_links;
    into->extra_statistics = from->extra_statistics;
    to_times(from, into);
    into->max_retry_count = from->max_retry_count;
    into->min_checkpoint_count = from->min_checkpoint_count;
    into->max_checkpoint_count = from->max_checkpoint_count;
    into->max_subscriber_count = from->max_subscriber_count;
    into->live_buffer_size = from->live_buffer_size;
    into->read_batch_size = from->read_batch_size;
    into->history_buffer_size = from->history_buffer_size;
    to_limits(from, into);
}

static void to_request(sl_packer *packer, const sl_wire_group_request *request, create_parts *parts)
{
    init_parts(parts);
    parts->options.group_name = sl_packer_text(packer, request->group);
    to_settings(&request->settings, &parts->settings);
    if (request->source == SL_WIRE_SOURCE_ALL)
        to_all(request, parts);
    else
        to_stream(request, parts);
}

sl_err sl_wire_group_create_encode(const sl_wire_group_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    create_parts parts;

    to_request(&packer, request, &parts);
    if (request->source == SL_WIRE_SOURCE_ALL)
        to_filter(&packer, &request->filter, &parts);
    parts.settings.consumer_strategy = sl_packer_text(&packer, request->settings.strategy);
    return sl_pack(&packer, &parts.request.base, ret_message);
}

static bool number_of_strategy(sl_str name, settings *into)
{
    if (sl_str_equal(name, SL_STR("RoundRobin")))
        into->named_consumer_strategy = CREATE(CONSUMER_STRATEGY__RoundRobin);
    else if (sl_str_equal(name, SL_STR("Pinned")))
        into->named_consumer_strategy = CREATE(CONSUMER_STRATEGY__Pinned);
    else if (sl_str_equal(name, SL_STR("DispatchToSingle")))
        into->named_consumer_strategy = CREATE(CONSUMER_STRATEGY__DispatchToSingle);
    else
        return false;
    return true;
}

sl_err sl_wire_group_update_encode(const sl_wire_group_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    create_parts parts;

    to_request(&packer, request, &parts);
    if (!number_of_strategy(request->settings.strategy, &parts.settings))
        return SL_ERR_INVALID;
    return sl_pack(&packer, &parts.request.base, ret_message);
}

/* --- the others --- */

sl_err sl_wire_group_delete_encode(const sl_wire_group_name *name, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__DeleteReq packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__DELETE_REQ__INIT;
    EventStore__Client__PersistentSubscriptions__DeleteReq__Options options =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__DELETE_REQ__OPTIONS__INIT;
    stream_identifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    packed.options = &options;
    options.group_name = sl_packer_text(&packer, name->group);
    if (name->source == SL_WIRE_SOURCE_STREAM) {
        options.stream_option_case = DELETE_OF(STREAM_IDENTIFIER);
        options.stream_identifier = &identifier;
        identifier.stream_name = sl_packer_bytes(name->stream);
    } else if (name->source == SL_WIRE_SOURCE_ALL) {
        options.stream_option_case = DELETE_OF(ALL);
        options.all = &marker;
    }
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_wire_group_info_request_encode(const sl_wire_group_name *name, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__GetInfoReq packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_REQ__INIT;
    EventStore__Client__PersistentSubscriptions__GetInfoReq__Options options =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_REQ__OPTIONS__INIT;
    stream_identifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    packed.options = &options;
    options.group_name = sl_packer_text(&packer, name->group);
    if (name->source == SL_WIRE_SOURCE_STREAM) {
        options.stream_option_case = INFO_OF(STREAM_IDENTIFIER);
        options.stream_identifier = &identifier;
        identifier.stream_name = sl_packer_bytes(name->stream);
    } else if (name->source == SL_WIRE_SOURCE_ALL) {
        options.stream_option_case = INFO_OF(ALL);
        options.all = &marker;
    }
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_parked_request_encode(const sl_parked_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__ReplayParkedReq packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__REPLAY_PARKED_REQ__INIT;
    EventStore__Client__PersistentSubscriptions__ReplayParkedReq__Options options =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__REPLAY_PARKED_REQ__OPTIONS__INIT;
    stream_identifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    packed.options = &options;
    options.group_name = sl_packer_text(&packer, request->name.group);
    if (request->name.source == SL_WIRE_SOURCE_STREAM) {
        options.stream_option_case = REPLAY(STREAM_OPTION_STREAM_IDENTIFIER);
        options.stream_identifier = &identifier;
        identifier.stream_name = sl_packer_bytes(request->name.stream);
    } else if (request->name.source == SL_WIRE_SOURCE_ALL) {
        options.stream_option_case = REPLAY(STREAM_OPTION_ALL);
        options.all = &marker;
    }
    if (request->limit == SL_PARKED_LIMIT_STOP_AT) {
        options.stop_at_option_case = REPLAY(STOP_AT_OPTION_STOP_AT);
        options.stop_at = request->stop_at;
    } else if (request->limit == SL_PARKED_LIMIT_NONE) {
        options.stop_at_option_case = REPLAY(STOP_AT_OPTION_NO_LIMIT);
        options.no_limit = &marker;
    }
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_wire_group_list_request_encode(const sl_wire_group_list_request *request, sl_arena *arena,
                                         sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__ListReq packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_REQ__INIT;
    EventStore__Client__PersistentSubscriptions__ListReq__Options options =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_REQ__OPTIONS__INIT;
    EventStore__Client__PersistentSubscriptions__ListReq__StreamOption of =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_REQ__STREAM_OPTION__INIT;
    stream_identifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    packed.options = &options;
    if (request->kind == SL_WIRE_GROUP_LIST_EVERY) {
        options.list_option_case = LIST(OPTIONS__LIST_OPTION_LIST_ALL_SUBSCRIPTIONS);
        options.list_all_subscriptions = &marker;
    } else if (request->kind == SL_WIRE_GROUP_LIST_OF) {
        options.list_option_case = LIST(OPTIONS__LIST_OPTION_LIST_FOR_STREAM);
        options.list_for_stream = &of;
    }
    if (request->source == SL_WIRE_SOURCE_STREAM) {
        of.stream_option_case = LIST(STREAM_OPTION__STREAM_OPTION_STREAM);
        of.stream = &identifier;
        identifier.stream_name = sl_packer_bytes(request->stream);
    } else if (request->source == SL_WIRE_SOURCE_ALL) {
        of.stream_option_case = LIST(STREAM_OPTION__STREAM_OPTION_ALL);
        of.all = &marker;
    }
    return sl_pack(&packer, &packed.base, ret_message);
}
