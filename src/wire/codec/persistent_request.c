/* wire/codec/persistent_request.c — what a consumer sends: options first, then acks, nacks and our extensions.
 *
 * Ids and labels are not stored but walked again in the message. The content is a oneof, so the walk must begin where the
 * member that counts begins: an ack that a nack follows is forgotten with its ids, while an ack in two parts is one. */
#include "wire/codec/common.h"
#include "wire/persistent_codec.h"

enum {
    OPTION_STREAM = 1,
    OPTION_GROUP = 2,
    OPTION_BUFFER_SIZE = 3,
    OPTION_ID = 4,
    OPTION_ALL = 5,
    OPTION_CONSUMER_NAME = 100,
    OPTION_LABELS = 101,
    OPTION_EXTENSIONS = 102,
    OPTION_RECONNECT_MS = 103,
    OPTION_RESUME = 104,
    IDS = 2, /* the same in every request that has ids */
    NACK_DELAY = 100,
};

/* --- options --- */

static void take_id_option(sl_proto_reader *reader, const sl_proto_field *field, sl_persistent_options *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    into->has_id_option = true;
    while (sl_proto_next(&inner, &part))
        if (part.number == 1 || part.number == 2) {
            sl_proto_take_empty(&inner, &part);
            into->id_form = part.number == 1 ? SL_WIRE_ID_STRUCTURED : SL_WIRE_ID_TEXT;
        }
    sl_proto_leave(reader, &inner);
}

static void take_source(sl_proto_reader *reader, const sl_proto_field *field, sl_persistent_options *into)
{
    const sl_wire_source source = field->number == OPTION_ALL ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM;

    if (into->source != source)
        into->stream = (sl_str){ 0 };
    into->source = source;
    if (source == SL_WIRE_SOURCE_ALL)
        sl_proto_take_empty(reader, field);
    else
        sl_wire_take_stream(reader, field, &into->stream);
}

static void take_option(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_options *into)
{
    switch (part->number) {
    case OPTION_STREAM:
    case OPTION_ALL: take_source(reader, part, into); break;
    case OPTION_GROUP: sl_proto_take_text(reader, part, &into->group); break;
    case OPTION_BUFFER_SIZE: sl_proto_take_i32(reader, part, &into->buffer_size); break;
    case OPTION_ID: take_id_option(reader, part, into); break;
    case OPTION_CONSUMER_NAME: sl_proto_take_text(reader, part, &into->consumer_name); break;
    case OPTION_LABELS: sl_wire_count_label(reader, part, &into->labels); break;
    case OPTION_EXTENSIONS: sl_proto_take_bool(reader, part, &into->extensions); break;
    case OPTION_RECONNECT_MS: sl_proto_take_i32(reader, part, &into->reconnect_ms); break;
    case OPTION_RESUME: sl_wire_count_id(reader, part, &into->resume); break;
    default: break;
    }
}

static void put_id_option(sl_proto_writer *writer, const sl_persistent_options *options)
{
    const size_t before = writer->used;

    if (!options->has_id_option)
        return;
    if (options->id_form == SL_WIRE_ID_STRUCTURED || options->id_form == SL_WIRE_ID_TEXT)
        sl_proto_put_empty(writer, options->id_form == SL_WIRE_ID_STRUCTURED ? 1 : 2);
    sl_proto_wrap(writer, OPTION_ID, before);
}

static void put_options(sl_proto_writer *writer, const sl_persistent_options *options)
{
    sl_wire_put_ids(writer, OPTION_RESUME, &options->resume);
    sl_proto_put_i64(writer, OPTION_RECONNECT_MS, options->reconnect_ms);
    sl_proto_put_u64(writer, OPTION_EXTENSIONS, options->extensions);
    sl_wire_put_labels(writer, OPTION_LABELS, &options->labels);
    sl_proto_put_bytes(writer, OPTION_CONSUMER_NAME, options->consumer_name);
    if (options->source == SL_WIRE_SOURCE_ALL)
        sl_proto_put_empty(writer, OPTION_ALL);
    put_id_option(writer, options);
    sl_proto_put_i64(writer, OPTION_BUFFER_SIZE, options->buffer_size);
    sl_proto_put_bytes(writer, OPTION_GROUP, options->group);
    if (options->source == SL_WIRE_SOURCE_STREAM)
        sl_wire_put_stream(writer, OPTION_STREAM, options->stream);
}

/* --- requests about messages --- */

/* Ack, Nack, Release, Extend and Started have their ids in the same field; what else they have differs. */
static void take_about_ids(sl_proto_reader *reader, const sl_proto_field *part, sl_persistent_request *into)
{
    const bool settles = into->kind == SL_PERSISTENT_REQUEST_ACK || into->kind == SL_PERSISTENT_REQUEST_NACK;

    if (part->number == IDS)
        sl_wire_count_id(reader, part, &into->ids);
    else if (part->number == 1 && settles)
        sl_proto_take_bytes(reader, part, &into->subscription);
    else if (part->number == 3 && into->kind == SL_PERSISTENT_REQUEST_NACK)
        sl_proto_take_i32(reader, part, &into->action);
    else if (part->number == 4 && into->kind == SL_PERSISTENT_REQUEST_NACK)
        sl_proto_take_text(reader, part, &into->reason);
    else if (part->number == NACK_DELAY && into->kind == SL_PERSISTENT_REQUEST_NACK)
        sl_proto_take_i32(reader, part, &into->delay_ms);
    else if (part->number == 3 && into->kind == SL_PERSISTENT_REQUEST_EXTEND)
        sl_proto_take_i32(reader, part, &into->lease_ms);
}

static void put_about_ids(sl_proto_writer *writer, const sl_persistent_request *request)
{
    if (request->kind == SL_PERSISTENT_REQUEST_NACK) {
        sl_proto_put_i64(writer, NACK_DELAY, request->delay_ms);
        sl_proto_put_bytes(writer, 4, request->reason);
        sl_proto_put_i64(writer, 3, request->action);
    }
    if (request->kind == SL_PERSISTENT_REQUEST_EXTEND)
        sl_proto_put_i64(writer, 3, request->lease_ms);
    sl_wire_put_ids(writer, IDS, &request->ids);
    if (request->kind == SL_PERSISTENT_REQUEST_ACK || request->kind == SL_PERSISTENT_REQUEST_NACK)
        sl_proto_put_bytes(writer, 1, request->subscription);
}

/* --- the message --- */

static bool is_kind(uint32_t number)
{
    return (number >= SL_PERSISTENT_REQUEST_OPTIONS && number <= SL_PERSISTENT_REQUEST_STOP) ||
           (number >= SL_PERSISTENT_REQUEST_RELEASE && number <= SL_PERSISTENT_REQUEST_STARTED);
}

static void take_content(sl_proto_reader *reader, const sl_proto_field *field, sl_persistent_request *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part)) {
        if (into->kind == SL_PERSISTENT_REQUEST_OPTIONS)
            take_option(&inner, &part, &into->options);
        else if (into->kind != SL_PERSISTENT_REQUEST_STOP)
            take_about_ids(&inner, &part, into);
        else if (part.number == 1)
            sl_proto_take_bool(&inner, &part, &into->hand_back_unstarted);
    }
    sl_proto_leave(reader, &inner);
}

/* Another member begins: what came before is forgotten, and its lists are found from here on. */
static void begin(sl_persistent_request *request, sl_persistent_request_kind kind, sl_str part)
{
    const sl_wire_items items = { .part = part, .arm = kind, .number = IDS };

    *request = (sl_persistent_request){ .kind = kind };
    if (kind == SL_PERSISTENT_REQUEST_OPTIONS) {
        request->options.labels.items = (sl_wire_items){ part, kind, OPTION_LABELS };
        request->options.resume.items = (sl_wire_items){ part, kind, OPTION_RESUME };
    } else if (kind != SL_PERSISTENT_REQUEST_STOP) {
        request->ids.items = items;
    }
}

sl_err sl_persistent_request_decode(sl_str message, sl_persistent_request *ret_request,
                                    const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    ret_request->kind = SL_PERSISTENT_REQUEST_UNSET;
    for (const uint8_t *at = reader.at; sl_proto_next(&reader, &field); at = reader.at) {
        if (!is_kind(field.number))
            continue;
        if (field.number != (uint32_t)ret_request->kind)
            begin(ret_request, (sl_persistent_request_kind)field.number,
                  (sl_str){ (const char *)at, (size_t)(reader.end - at) });
        take_content(&reader, &field, ret_request);
    }
    return sl_proto_result(&reader, ret_reason);
}

static void put_request(sl_proto_writer *writer, const sl_persistent_request *request)
{
    const size_t before = writer->used;

    if (request->kind == SL_PERSISTENT_REQUEST_UNSET)
        return;
    if (request->kind == SL_PERSISTENT_REQUEST_OPTIONS)
        put_options(writer, &request->options);
    else if (request->kind == SL_PERSISTENT_REQUEST_STOP)
        sl_proto_put_u64(writer, 1, request->hand_back_unstarted);
    else
        put_about_ids(writer, request);
    sl_proto_wrap(writer, request->kind, before);
}

size_t sl_persistent_request_size(const sl_persistent_request *request)
{
    sl_proto_writer measure = { 0 };

    put_request(&measure, request);
    return measure.used;
}

void sl_persistent_request_encode(const sl_persistent_request *request, uint8_t *message,
                                  size_t message_bytes)
{
    sl_proto_writer writer = sl_wire_writer(message, message_bytes);

    put_request(&writer, request);
    sl_wire_writer_end(&writer);
}
