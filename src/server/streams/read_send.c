/* server/streams/read_send.c — events and the other messages of a read, written where they wait for the socket.
 *
 * Every event of every reader passes here, so nothing is allocated and the payload is copied once: from where the store has
 * it into the output of the call. Positions on the wire are those of the store, commit and prepare alike. */
#include "server/streams/read_private.h"

#include "server/reply.h"

static const sl_str json = SL_STR_INIT("application/json");
static const sl_str octets = SL_STR_INIT("application/octet-stream");

/* SL_OK never comes here. */
static reading_step could_not_send(reading *r, sl_err err)
{
    if (err == SL_ERR_FULL)
        return READING_HAS_NO_ROOM;
    if (err == SL_ERR_TOO_LARGE)
        sl_request_finish(r->request, SL_STATUS_RESOURCE_EXHAUSTED,
                          SL_STR("The next event is larger than a message may be. Read on behind it."), NULL,
                          0);
    else if (err != SL_ERR_EMPTY)
        sl_reply_error(r->request, err);
    return READING_IS_OVER;
}

static void fill(sl_wire_recorded *recorded, const sl_event *event, sl_wire_id_form id_form)
{
    recorded->id.uuid = event->id;
    recorded->id.form = id_form;
    recorded->stream = event->stream;
    recorded->revision = event->revision;
    recorded->commit_position = event->position;
    recorded->prepare_position = event->position;
    recorded->type = event->type;
    recorded->content_type = event->is_json ? json : octets;
    recorded->created_ticks = event->created_ns / SL_WIRE_TICK_NS;
    recorded->custom_metadata = event->metadata;
    recorded->data = event->data;
}

/* A link becomes two: what it points to, if that can be read, and itself. */
static sl_err fill_link(reading *r, const sl_event *link)
{
    const uint64_t now_ns = sl_clock_wall_ns(reading_host(r)->clock);
    sl_event target;
    const sl_err err = sl_resolver_find(r->resolver, link, now_ns, &target);

    r->out.has_event = err == SL_OK || err == SL_ERR_INVALID;
    r->out.has_link = err == SL_OK || err == SL_ERR_NOT_FOUND;
    if (r->out.has_event)
        fill(&r->out.event, err == SL_OK ? &target : link, r->plan.id_form);
    if (r->out.has_link)
        fill(&r->out.link, link, r->plan.id_form);
    return r->out.has_event || r->out.has_link ? SL_OK : err;
}

static sl_err fill_out(reading *r, const sl_event *event)
{
    r->out.position_kind = SL_WIRE_POSITION_GIVEN;
    r->out.commit_position = event->position;
    if (r->resolver != NULL && sl_event_is_link(event))
        return fill_link(r, event);
    r->out.has_event = true;
    r->out.has_link = false;
    fill(&r->out.event, event, r->plan.id_form);
    return SL_OK;
}

static void count(reading *r, size_t bytes)
{
    sl_server_counters *const counters = &reading_host(r)->counters;

    counters->events_read++;
    if (r->out.has_event)
        counters->bytes_read += r->out.event.data.bytes + r->out.event.custom_metadata.bytes;
    r->bytes_left = r->bytes_left > bytes ? r->bytes_left - bytes : 0;
}

reading_step reading_send_event(reading *r, const sl_event *event)
{
    const sl_err filled = fill_out(r, event);
    uint8_t *message;
    size_t bytes;
    sl_err err;

    if (filled == SL_ERR_AGAIN)
        return READING_NEEDS_DISK;
    if (filled != SL_OK)
        return reading_fail(r, filled);
    bytes = sl_read_event_size(&r->out);
    err = sl_request_reserve(r->request, bytes, &message);
    if (err != SL_OK)
        return could_not_send(r, err);
    sl_read_event_encode(&r->out, message, bytes);
    sl_request_commit(r->request, bytes);
    count(r, bytes);
    return READING_GOES_ON;
}

reading_step reading_send(reading *r, const sl_read_response *response)
{
    const size_t bytes = sl_read_response_size(response);
    uint8_t *message;
    const sl_err err = sl_request_reserve(r->request, bytes, &message);

    if (err != SL_OK)
        return could_not_send(r, err);
    sl_read_response_encode(response, message, bytes);
    sl_request_commit(r->request, bytes);
    return READING_GOES_ON;
}
