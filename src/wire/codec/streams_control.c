/* wire/codec/streams_control.c — ReadReq, DeleteReq and TombstoneReq, through protobuf-c.
 *
 * Tombstone has messages of its own that are the same as Delete's down to the last number, so both are read as Delete. */
#include "wire/streams_control.h"

#include "wire/codec/streams.pb-c.h"
#include "wire/codec/unpack.h"

typedef EventStore__Client__Streams__ReadReq read_req;
typedef EventStore__Client__Streams__ReadReq__Options read_options;
typedef EventStore__Client__Streams__ReadReq__Options__StreamOptions stream_options;
typedef EventStore__Client__Streams__ReadReq__Options__AllOptions all_options;
typedef EventStore__Client__Streams__ReadReq__Options__Position all_position;
typedef EventStore__Client__Streams__ReadReq__Options__FilterOptions filter_options;
typedef EventStore__Client__Streams__ReadReq__Options__FilterOptions__Expression expression;
typedef EventStore__Client__Streams__ReadReq__Options__UUIDOption id_option;
typedef EventStore__Client__Streams__ReadReq__Options__ControlOption control_option;
typedef EventStore__Client__Streams__DeleteReq delete_req;
typedef EventStore__Client__Streams__DeleteReq__Options delete_options;
typedef EventStore__Client__Streams__DeleteResp delete_resp;
typedef EventStore__Client__StreamIdentifier stream_identifier;
typedef EventStore__Client__Empty empty;

#define STREAM_OPTION(name) EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__STREAM_OPTION_##name
#define COUNT_OPTION(name)  EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__COUNT_OPTION_##name
#define FILTER_OPTION(name) EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__FILTER_OPTION_##name
#define ID_OPTION(name)     EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__UUIDOPTION__CONTENT_##name
#define REVISION_OPTION(name)                                                                                \
    EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__STREAM_OPTIONS__REVISION_OPTION_##name
#define ALL_OPTION(name)    EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__ALL_OPTIONS__ALL_OPTION_##name
#define FILTER_ON(name)     EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__FILTER_OPTIONS__FILTER_##name
#define FILTER_WINDOW(name) EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__FILTER_OPTIONS__WINDOW_##name
#define DELETE_EXPECTED(name)                                                                                \
    EVENT_STORE__CLIENT__STREAMS__DELETE_REQ__OPTIONS__EXPECTED_STREAM_REVISION_##name
#define DELETE_POSITION(name) EVENT_STORE__CLIENT__STREAMS__DELETE_RESP__POSITION_OPTION_##name
#define BACKWARDS             EVENT_STORE__CLIENT__STREAMS__READ_REQ__OPTIONS__READ_DIRECTION__Backwards

static sl_str name_of(const stream_identifier *identifier)
{
    return identifier == NULL ? (sl_str){ 0 } : sl_unpacked_bytes(identifier->stream_name);
}

/* --- ReadReq: in --- */

static void from_stream(const stream_options *options, sl_read_request *into)
{
    into->source = SL_WIRE_SOURCE_STREAM;
    into->stream = name_of(options->stream_identifier);
    switch ((int)options->revision_option_case) {
    case REVISION_OPTION(REVISION):
        into->start = SL_WIRE_START_GIVEN;
        into->revision = options->revision;
        break;
    case REVISION_OPTION(START): into->start = SL_WIRE_START_BEGIN; break;
    case REVISION_OPTION(END): into->start = SL_WIRE_START_END; break;
    default: break;
    }
}

static void from_all(const all_options *options, sl_read_request *into)
{
    into->source = SL_WIRE_SOURCE_ALL;
    switch ((int)options->all_option_case) {
    case ALL_OPTION(POSITION):
        into->start = SL_WIRE_START_GIVEN;
        into->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, options->position->commit_position,
                                             options->position->prepare_position };
        break;
    case ALL_OPTION(START): into->start = SL_WIRE_START_BEGIN; break;
    case ALL_OPTION(END): into->start = SL_WIRE_START_END; break;
    default: break;
    }
}

static bool from_filter(const filter_options *options, sl_arena *arena, sl_wire_filter *into)
{
    const expression *given = NULL;

    into->kind = SL_WIRE_FILTER_GIVEN;
    into->checkpoint_multiplier = options->checkpointintervalmultiplier;
    if (options->window_case == FILTER_WINDOW(MAX)) {
        into->window = SL_WIRE_WINDOW_MAX;
        into->window_max = options->max;
    } else if (options->window_case == FILTER_WINDOW(COUNT)) {
        into->window = SL_WIRE_WINDOW_COUNT;
    }
    if (options->filter_case == FILTER_ON(STREAM_IDENTIFIER)) {
        into->on = SL_WIRE_FILTER_ON_STREAM;
        given = options->stream_identifier;
    } else if (options->filter_case == FILTER_ON(EVENT_TYPE)) {
        into->on = SL_WIRE_FILTER_ON_TYPE;
        given = options->event_type;
    }
    if (given == NULL)
        return true;
    into->regex = sl_unpacked_text(given->regex);
    into->prefix_count = given->n_prefix;
    return sl_unpacked_texts(arena, given->prefix, given->n_prefix, &into->prefixes);
}

static void from_ids(const id_option *option, sl_read_request *into)
{
    into->has_id_option = option != NULL;
    if (option != NULL && option->content_case == ID_OPTION(STRUCTURED))
        into->id_form = SL_WIRE_ID_STRUCTURED;
    else if (option != NULL && option->content_case == ID_OPTION(STRING))
        into->id_form = SL_WIRE_ID_TEXT;
}

static void from_extent(const read_options *options, sl_read_request *into)
{
    if (options->count_option_case == COUNT_OPTION(COUNT)) {
        into->extent = SL_READ_EXTENT_COUNT;
        into->count = options->count;
    } else if (options->count_option_case == COUNT_OPTION(SUBSCRIPTION)) {
        into->extent = SL_READ_EXTENT_SUBSCRIPTION;
    }
}

static bool from_options(const read_options *options, sl_arena *arena, sl_read_request *into)
{
    into->backwards = options->read_direction == BACKWARDS;
    into->resolve_links = options->resolve_links;
    into->compatibility = options->control_option == NULL ? 0 : options->control_option->compatibility;
    from_extent(options, into);
    from_ids(options->uuid_option, into);
    if (options->stream_option_case == STREAM_OPTION(STREAM))
        from_stream(options->stream, into);
    else if (options->stream_option_case == STREAM_OPTION(ALL))
        from_all(options->all, into);
    if (options->filter_option_case == FILTER_OPTION(NO_FILTER))
        into->filter.kind = SL_WIRE_FILTER_NONE;
    return options->filter_option_case != FILTER_OPTION(FILTER) ||
           from_filter(options->filter, arena, &into->filter);
}

sl_err sl_read_request_decode(sl_str message, sl_arena *arena, sl_read_request *ret_request,
                              const char **ret_reason)
{
    read_req *unpacked;
    sl_read_request request = { 0 };
    const sl_err err =
        sl_unpack(&event_store__client__streams__read_req__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    if (unpacked->options != NULL && !from_options(unpacked->options, arena, &request))
        return SL_ERR_NOMEM;
    *ret_request = request;
    return SL_OK;
}

/* --- ReadReq: out --- */

/* The messages that an encoded request is made of; they point to each other. */
typedef struct read_parts {
    read_req request;
    read_options options;
    stream_options stream;
    stream_identifier identifier;
    all_options all;
    all_position position;
    filter_options filter;
    expression expression;
    id_option ids;
    control_option control;
    EventStore__Client__Streams__ReadReq__Options__SubscriptionOptions subscription;
    empty marker; /* wherever presence is all */
} read_parts;

static void init_parts(read_parts *parts)
{
    event_store__client__streams__read_req__init(&parts->request);
    event_store__client__streams__read_req__options__init(&parts->options);
    event_store__client__streams__read_req__options__stream_options__init(&parts->stream);
    event_store__client__stream_identifier__init(&parts->identifier);
    event_store__client__streams__read_req__options__all_options__init(&parts->all);
    event_store__client__streams__read_req__options__position__init(&parts->position);
    event_store__client__streams__read_req__options__filter_options__init(&parts->filter);
    event_store__client__streams__read_req__options__filter_options__expression__init(&parts->expression);
    event_store__client__streams__read_req__options__uuidoption__init(&parts->ids);
    event_store__client__streams__read_req__options__control_option__init(&parts->control);
    event_store__client__streams__read_req__options__subscription_options__init(&parts->subscription);
    event_store__client__empty__init(&parts->marker);
    parts->request.options = &parts->options;
}

typedef sl_read_request source_request;
typedef read_parts source_parts;

#include "wire/codec/source.inc"

static void to_filter(sl_packer *packer, const sl_wire_filter *filter, read_parts *parts)
{
    parts->options.filter_option_case = FILTER_OPTION(FILTER);
    parts->options.filter = &parts->filter;
    to_expression(packer, filter, parts);
}

static void to_ids(const sl_read_request *request, read_parts *parts)
{
    if (!request->has_id_option)
        return;
    parts->options.uuid_option = &parts->ids;
    if (request->id_form != SL_WIRE_ID_STRUCTURED && request->id_form != SL_WIRE_ID_TEXT)
        return;
    parts->ids.content_case =
        request->id_form == SL_WIRE_ID_STRUCTURED ? ID_OPTION(STRUCTURED) : ID_OPTION(STRING);
    parts->ids.structured = &parts->marker; /* as above */
}

static void to_extent(const sl_read_request *request, read_parts *parts)
{
    switch (request->extent) {
    case SL_READ_EXTENT_UNSET: break;
    case SL_READ_EXTENT_COUNT:
        parts->options.count_option_case = COUNT_OPTION(COUNT);
        parts->options.count = request->count;
        break;
    case SL_READ_EXTENT_SUBSCRIPTION:
        parts->options.count_option_case = COUNT_OPTION(SUBSCRIPTION);
        parts->options.subscription = &parts->subscription;
        break;
    }
}

static void to_options(sl_packer *packer, const sl_read_request *request, read_parts *parts)
{
    if (request->backwards)
        parts->options.read_direction = BACKWARDS;
    parts->options.resolve_links = request->resolve_links;
    to_extent(request, parts);
    to_ids(request, parts);
    if (request->compatibility != 0) {
        parts->options.control_option = &parts->control;
        parts->control.compatibility = request->compatibility;
    }
    if (request->source == SL_WIRE_SOURCE_STREAM)
        to_stream(request, parts);
    else if (request->source == SL_WIRE_SOURCE_ALL)
        to_all(request, parts);
    if (request->filter.kind == SL_WIRE_FILTER_GIVEN) {
        to_filter(packer, &request->filter, parts);
    } else if (request->filter.kind == SL_WIRE_FILTER_NONE) {
        parts->options.filter_option_case = FILTER_OPTION(NO_FILTER);
        parts->options.no_filter = &parts->marker;
    }
}

sl_err sl_read_request_encode(const sl_read_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    read_parts parts;

    init_parts(&parts);
    to_options(&packer, request, &parts);
    return sl_pack(&packer, &parts.request.base, ret_message);
}

/* --- DeleteReq and TombstoneReq --- */

static sl_wire_revision expected_of(const delete_options *options)
{
    switch ((int)options->expected_stream_revision_case) {
    case DELETE_EXPECTED(REVISION): return (sl_wire_revision){ SL_WIRE_REVISION_NUMBER, options->revision };
    case DELETE_EXPECTED(NO_STREAM): return (sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM };
    case DELETE_EXPECTED(ANY): return (sl_wire_revision){ .kind = SL_WIRE_REVISION_ANY };
    case DELETE_EXPECTED(STREAM_EXISTS): return (sl_wire_revision){ .kind = SL_WIRE_REVISION_STREAM_EXISTS };
    default: return (sl_wire_revision){ 0 };
    }
}

sl_err sl_delete_request_decode(sl_str message, sl_arena *arena, sl_delete_request *ret_request,
                                const char **ret_reason)
{
    delete_req *unpacked;
    const sl_err err = sl_unpack(&event_store__client__streams__delete_req__descriptor, message, arena,
                                 &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request = (sl_delete_request){ 0 };
    if (unpacked->options != NULL) {
        ret_request->stream = name_of(unpacked->options->stream_identifier);
        ret_request->expected = expected_of(unpacked->options);
    }
    return SL_OK;
}

static void to_expected(sl_wire_revision expected, delete_options *options, empty *marker)
{
    switch (expected.kind) {
    case SL_WIRE_REVISION_UNSET: return;
    case SL_WIRE_REVISION_NUMBER:
        options->expected_stream_revision_case = DELETE_EXPECTED(REVISION);
        options->revision = expected.number;
        return;
    case SL_WIRE_REVISION_NO_STREAM:
        options->expected_stream_revision_case = DELETE_EXPECTED(NO_STREAM);
        break;
    case SL_WIRE_REVISION_ANY: options->expected_stream_revision_case = DELETE_EXPECTED(ANY); break;
    case SL_WIRE_REVISION_STREAM_EXISTS:
        options->expected_stream_revision_case = DELETE_EXPECTED(STREAM_EXISTS);
        break;
    }
    options->any = marker; /* the three markers share the place */
}

sl_err sl_delete_request_encode(const sl_delete_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    delete_req packed = EVENT_STORE__CLIENT__STREAMS__DELETE_REQ__INIT;
    delete_options options = EVENT_STORE__CLIENT__STREAMS__DELETE_REQ__OPTIONS__INIT;
    stream_identifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    packed.options = &options;
    options.stream_identifier = &identifier;
    identifier.stream_name = sl_packer_bytes(request->stream);
    to_expected(request->expected, &options, &marker);
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_delete_response_decode(sl_str message, sl_arena *arena, sl_wire_position *ret_position,
                                 const char **ret_reason)
{
    delete_resp *unpacked;
    const sl_err err = sl_unpack(&event_store__client__streams__delete_resp__descriptor, message, arena,
                                 &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_position = (sl_wire_position){ 0 };
    if (unpacked->position_option_case == DELETE_POSITION(POSITION))
        *ret_position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, unpacked->position->commit_position,
                                            unpacked->position->prepare_position };
    else if (unpacked->position_option_case == DELETE_POSITION(NO_POSITION))
        ret_position->kind = SL_WIRE_POSITION_NONE;
    return SL_OK;
}

sl_err sl_delete_response_encode(const sl_wire_position *position, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    delete_resp packed = EVENT_STORE__CLIENT__STREAMS__DELETE_RESP__INIT;
    EventStore__Client__Streams__DeleteResp__Position given =
        EVENT_STORE__CLIENT__STREAMS__DELETE_RESP__POSITION__INIT;
    empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;

    given.commit_position = position->commit;
    given.prepare_position = position->prepare;
    switch (position->kind) {
    case SL_WIRE_POSITION_UNSET: break;
    case SL_WIRE_POSITION_NONE:
        packed.position_option_case = DELETE_POSITION(NO_POSITION);
        packed.no_position = &marker;
        break;
    case SL_WIRE_POSITION_GIVEN:
        packed.position_option_case = DELETE_POSITION(POSITION);
        packed.position = &given;
        break;
    }
    return sl_pack(&packer, &packed.base, ret_message);
}
