/* server/groups/consumer_request.c — what a consumer sends. Everything is looked at before anything has an effect. */
#include "server/groups/consumer.h"

#include "base/cleanup.h"
#include "server/groups/names.h"
#include "server/reply.h"
#include "server/streams/write.h"

#include <assert.h>

#define MS_NS UINT64_C(1000000)

/* --- options --- */

static const char *wrong_source(const sl_persistent_options *options)
{
    if (options->source == SL_WIRE_SOURCE_UNSET)
        return "The options must name a stream, or all of them.";
    if (options->source == SL_WIRE_SOURCE_STREAM && options->stream.bytes == 0)
        return "The name of the stream must not be empty.";
    if (options->stream.bytes > SL_STREAM_NAME_BYTES_MAX)
        return "The name of the stream is too long: at most 1,024 bytes.";
    if (options->group.bytes == 0)
        return "The name of the group must not be empty.";
    return options->group.bytes > SL_GROUP_NAME_BYTES_MAX
               ? "The name of the group is too long: at most 512 bytes."
               : NULL;
}

static const char *wrong_labels(const sl_persistent_options *options)
{
    sl_wire_walk walk = sl_wire_items_walk(&options->labels.items);
    sl_wire_label label;

    if (options->labels.count > CONSUMER_LABELS_MAX)
        return "A consumer has at most 8 labels.";
    while (options->labels.count > 0 && sl_wire_labels_next(&walk, &label)) {
        if (label.key.bytes == 0)
            return "A label must have a key.";
        if (label.key.bytes > CONSUMER_LABEL_BYTES_MAX || label.value.bytes > CONSUMER_LABEL_BYTES_MAX)
            return "A label is too long: key and value have at most 256 bytes each.";
    }
    return NULL;
}

static const char *wrong_ids(const sl_wire_ids *ids)
{
    if (ids->wrong_count == 0)
        return NULL;
    return "An id is not a UUID. Send the id of the link if there is one, else that of the event.";
}

static const char *wrong_options(const sl_persistent_options *options)
{
    const char *why = wrong_source(options);

    if (why == NULL)
        why = wrong_labels(options);
    if (why == NULL)
        why = wrong_ids(&options->resume);
    if (why != NULL)
        return why;
    if (options->buffer_size < 1)
        return "buffer_size must be at least 1.";
    if (!options->has_id_option)
        return "uuid_option is missing: say how ids shall be sent, structured or as text.";
    if (options->consumer_name.bytes > SL_CONSUMER_NAME_BYTES_MAX)
        return "consumer_name is too long: at most 256 bytes.";
    if (options->reconnect_ms < 0)
        return "reconnect_ms must not be negative.";
    return options->resume.count > SL_SEAT_WINDOW_MAX ? "At most 10,000 messages can be resumed." : NULL;
}

/* What a consumer is called: its own name, or that of the connection, which official clients can set and which may be too long. It is cut
 * once, so that operators can use what a list shows. */
static void name_it(consumer *c, const sl_persistent_options *options)
{
    sl_request *const request = c->request;
    const sl_str header = sl_request_header(request, SL_STR("connection-name"));
    const sl_str name =
        sl_consumer_name_of(options->consumer_name.bytes > 0 ? options->consumer_name : header);
    sl_join *const join = &c->setup.join;

    join->session =
        name.bytes > 0 ? sl_session_of(request->identity.name, name) : sl_write_new_id(request->host);
    if (name.bytes > 0)
        c->tags[join->tag_count++] = sl_tag_of_name(name);
    c->setup.user = request->identity.name;
    c->setup.connection_name = name;
}

static bool copy_text(consumer *c, sl_str text, sl_str *ret_copy)
{
    const char *const copy = sl_arena_copy_str(&c->request->arena, text);

    *ret_copy = (sl_str){ copy, text.bytes };
    return copy != NULL;
}

static bool label_it(consumer *c, const sl_persistent_options *options)
{
    sl_wire_walk walk = sl_wire_items_walk(&options->labels.items);
    sl_seat_setup *const setup = &c->setup;
    sl_wire_label label;

    setup->labels = c->labels;
    while (options->labels.count > 0 && sl_wire_labels_next(&walk, &label)) {
        sl_wire_label *const copy = &c->labels[setup->label_count++];

        c->tags[setup->join.tag_count++] = sl_tag_of_label(label.key, label.value);
        if (!copy_text(c, label.key, &copy->key) || !copy_text(c, label.value, &copy->value))
            return false;
    }
    return true;
}

/* Only who understands the answers can know what it held. */
static bool copy_resume(consumer *c, const sl_persistent_options *options)
{
    sl_wire_walk walk = sl_wire_items_walk(&options->resume.items);
    sl_uuid *const list = sl_arena_alloc(&c->request->arena, options->resume.count * sizeof *list);
    sl_wire_id id;
    uint32_t count = 0;

    if (list == NULL)
        return false;
    while (options->extensions && count < options->resume.count && sl_wire_ids_next(&walk, &id))
        list[count++] = id.uuid;
    c->setup.join.resume = list;
    c->setup.join.resume_count = count;
    return true;
}

bool consumer_take_options(consumer *c, const sl_persistent_options *options)
{
    const char *const why = wrong_options(options);
    const bool all = options->source == SL_WIRE_SOURCE_ALL;
    const uint64_t reconnect_ms =
        options->reconnect_ms > 0 ? (uint64_t)options->reconnect_ms : CONSUMER_RECONNECT_MS_DEFAULT;

    if (why != NULL) {
        consumer_refuse(c, why);
        return false;
    }
    c->setup.id_form = options->id_form == SL_WIRE_ID_TEXT ? SL_WIRE_ID_TEXT : SL_WIRE_ID_STRUCTURED;
    c->setup.join =
        (sl_join){ .tags = c->tags,
                   .window = (uint32_t)sl_min_u64((uint64_t)options->buffer_size, SL_SEAT_WINDOW_MAX),
                   .extensions = options->extensions,
                   .reconnect_ns = sl_min_u64(reconnect_ms * MS_NS, SL_LEASE_NS_MAX) };
    name_it(c, options);
    c->setup.address = sl_request_peer(c->request);
    if (label_it(c, options) && copy_text(c, all ? SL_STR("$all") : options->stream, &c->stream) &&
        copy_text(c, options->group, &c->group) &&
        copy_text(c, c->setup.connection_name, &c->setup.connection_name) && copy_resume(c, options))
        return true;
    sl_reply_error(c->request, SL_ERR_NOMEM);
    return false;
}

/* --- about messages --- */

/* Who does not speak the extensions cannot have meant the field; the core cuts what is too long. */
static void take_nack(consumer *c, const sl_persistent_request *asked, const sl_claim *claims, uint32_t count)
{
    const bool has_delay = c->setup.join.extensions && asked->delay_ms > 0;
    sl_nack nack = { .action = SL_NACK_RETRY,
                     .has_delay = has_delay,
                     .delay_ns = has_delay ? (uint64_t)asked->delay_ms * MS_NS : 0 };

    if (asked->action == SL_WIRE_NACK_PARK)
        nack.action = SL_NACK_PARK;
    else if (asked->action == SL_WIRE_NACK_SKIP || asked->action == SL_WIRE_NACK_STOP)
        nack.action = SL_NACK_SKIP;
    sl_seat_nack(c->seat, claims, count, &nack, asked->reason);
}

static void take_claims(consumer *c, const sl_persistent_request *asked, const sl_claim *claims,
                        uint32_t count)
{
    switch (asked->kind) {
    case SL_PERSISTENT_REQUEST_ACK: sl_seat_ack(c->seat, claims, count); break;
    case SL_PERSISTENT_REQUEST_NACK: take_nack(c, asked, claims, count); break;
    case SL_PERSISTENT_REQUEST_RELEASE: sl_seat_release(c->seat, claims, count); break;
    case SL_PERSISTENT_REQUEST_STARTED: sl_seat_started(c->seat, claims, count); break;
    case SL_PERSISTENT_REQUEST_EXTEND:
        sl_seat_extend(c->seat, claims, count, (uint64_t)asked->lease_ms * MS_NS);
        break;
    case SL_PERSISTENT_REQUEST_UNSET:
    case SL_PERSISTENT_REQUEST_OPTIONS:
    case SL_PERSISTENT_REQUEST_STOP: assert(false);
    }
}

static void take_about_ids(consumer *c, const sl_persistent_request *asked)
{
    const sl_alloc *const alloc = c->request->host->alloc;
    const size_t bytes = asked->ids.count * sizeof(sl_claim);
    sl_wire_walk walk = sl_wire_items_walk(&asked->ids.items);
    sl_claim *claims;
    sl_wire_id id;
    uint32_t count = 0;

    if (asked->ids.count == 0) {
        if (asked->kind == SL_PERSISTENT_REQUEST_STARTED)
            sl_seat_started(c->seat, NULL, 0); /* it will say what it starts */
        return;
    }
    claims = sl_alloc_take(alloc, bytes);
    if (claims == NULL) {
        sl_reply_error(c->request, SL_ERR_NOMEM);
        return;
    }
    while (count < asked->ids.count && sl_wire_ids_next(&walk, &id))
        claims[count++] = (sl_claim){ .id = id.uuid };
    take_claims(c, asked, claims, count);
    sl_alloc_give(alloc, claims, bytes);
}

static const char *wrong_request(const consumer *c, const sl_persistent_request *asked)
{
    if (asked->kind == SL_PERSISTENT_REQUEST_UNSET)
        return "The request says nothing that is known here: ack, nack, stop, release, extend or started.";
    if (asked->kind == SL_PERSISTENT_REQUEST_OPTIONS)
        return "Options are sent once, as the first request.";
    if (asked->kind == SL_PERSISTENT_REQUEST_STOP)
        return NULL;
    if (asked->kind == SL_PERSISTENT_REQUEST_NACK &&
        (asked->action < SL_WIRE_NACK_UNKNOWN || asked->action > SL_WIRE_NACK_STOP))
        return "The action of the nack does not exist: 0 to 4 are unknown, park, retry, skip and stop.";
    if (asked->kind == SL_PERSISTENT_REQUEST_NACK && c->setup.join.extensions && asked->delay_ms < 0)
        return "delay_ms of the nack must not be negative.";
    if (asked->kind == SL_PERSISTENT_REQUEST_EXTEND && asked->lease_ms < 0)
        return "lease_ms must not be negative.";
    return wrong_ids(&asked->ids);
}

void consumer_take_request(consumer *c, const sl_persistent_request *asked)
{
    const char *const why = wrong_request(c, asked);
    const sl_stop stop = { .asked_by = SL_ASKER_CONSUMER,
                           .hand_back_unstarted =
                               asked->kind == SL_PERSISTENT_REQUEST_STOP && asked->hand_back_unstarted };

    if (why != NULL) {
        consumer_refuse(c, why);
        return;
    }
    if (asked->kind != SL_PERSISTENT_REQUEST_STOP) {
        take_about_ids(c, asked);
        return;
    }
    c->stopped = true;
    sl_seat_stop(c->seat, &stop);
}
