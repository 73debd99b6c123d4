/* tests/unit/client/consuming_rig.c — see consuming_rig.h. */
#include "client/consuming_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
    const size_t bytes = strlen(text);
    va_list words;

    va_start(words, format);
    (void)vsnprintf(text + bytes, CONSUMING_RIG_TEXT - bytes, format, words);
    va_end(words);
}

static void begin_word(char *text)
{
    if (text[0] != '\0')
        add(text, " ");
}

static int revision_of(const consuming_rig *rig, const void *id)
{
    for (int i = 0; i < CONSUMING_RIG_IDS; i++)
        if (memcmp(rig->ids[i].bytes, id, 16) == 0)
            return i;
    return -1;
}

static char looked_at[CONSUMING_RIG_TEXT];

static const char *look(char *text)
{
    memcpy(looked_at, text, CONSUMING_RIG_TEXT);
    text[0] = '\0';
    return looked_at;
}

const char *consuming_rig_heard(consuming_rig *rig)
{
    return look(rig->heard);
}

const char *consuming_rig_sent(consuming_rig *rig)
{
    rig->sent_count = 0;
    return look(rig->sent);
}

/* --- what the user hears --- */

static void on_event(void *ctx, const sl_consumer_event *event)
{
    consuming_rig *const rig = ctx;

    EXPECT(event->revision < CONSUMING_RIG_IDS);
    memcpy(rig->ids[event->revision].bytes, event->id.bytes, 16);
    begin_word(rig->heard);
    add(rig->heard, "%d", (int)event->revision);
    if (event->retry_count > 0)
        add(rig->heard, "#%u", event->retry_count);
    if (rig->on_event != NULL)
        rig->on_event(rig, event->revision);
}

static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    consuming_rig *const rig = ctx;

    begin_word(rig->heard);
    add(rig->heard, "%s:%d", sl_consumer_outcome_text(outcome), revision_of(rig, id.bytes));
}

static void on_stop_requested(void *ctx, sl_consumer_bytes reason, uint32_t deadline_ms)
{
    consuming_rig *const rig = ctx;

    (void)reason;
    (void)deadline_ms;
    begin_word(rig->heard);
    add(rig->heard, "stop-requested");
}

static void on_stopped(void *ctx, const sl_consumer_stopped *stopped)
{
    static const char *const askers[] = { "", "^operator", "^server" };
    consuming_rig *const rig = ctx;

    begin_word(rig->heard);
    add(rig->heard, "stopped:%u%s%s", stopped->in_flight, stopped->already_stopped ? "!" : "",
        askers[stopped->asked_by]);
}

static void on_resumed(void *ctx)
{
    begin_word(((consuming_rig *)ctx)->heard);
    add(((consuming_rig *)ctx)->heard, "resumed");
}

static void on_drained(void *ctx, const sl_consumer_drained *drained)
{
    consuming_rig *const rig = ctx;

    begin_word(rig->heard);
    add(rig->heard, "drained:%u/%u/%u", drained->settled, drained->released, drained->lost);
}

static void on_connected(void *ctx, const sl_consumer_connected *connected)
{
    consuming_rig *const rig = ctx;

    begin_word(rig->heard);
    add(rig->heard, "connected:%u%s", connected->nth, connected->extensions ? "" : "-");
    if (connected->resumed > 0)
        add(rig->heard, "+%u", connected->resumed);
}

consuming_rig *consuming_rig_new(const char *name, uint32_t window)
{
    static const sl_consumer_handler handler = { .event = on_event,
                                                 .settled = on_settled,
                                                 .stop_requested = on_stop_requested,
                                                 .stopped = on_stopped,
                                                 .resumed = on_resumed,
                                                 .drained = on_drained,
                                                 .connected = on_connected };
    consuming_rig *const rig = calloc(1, sizeof *rig);
    const sl_consumer_options options = {
        .stream = "orders", .group = "g", .name = name, .window = window, .handler = &handler, .ctx = rig
    };

    EXPECT(rig != NULL);
    EXPECT_OK(sl_consuming_init(&rig->c, &sl_alloc_default, &options, (sl_hash_seed){ 1, 2 }));
    return rig;
}

void consuming_rig_free(consuming_rig *rig)
{
    sl_consuming_done(&rig->c);
    free(rig);
}

/* --- what it sends --- */

static void add_ids(consuming_rig *rig, const sl_wire_ids *ids)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    const char *before = "";
    sl_wire_id id;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id)) {
        add(rig->sent, "%s%d", before, revision_of(rig, id.uuid.bytes));
        before = ",";
    }
}

static void show_options(consuming_rig *rig, const sl_persistent_options *options)
{
    add(rig->sent, "options%s:%d", options->extensions ? "" : "-", options->buffer_size);
    if (options->resume.count == 0)
        return;
    add(rig->sent, "+");
    add_ids(rig, &options->resume);
}

static void show_request(consuming_rig *rig, const sl_persistent_request *request)
{
    static const char *const actions[] = { "unknown", "park", "retry", "skip", "stop" };

    begin_word(rig->sent);
    switch (request->kind) {
    case SL_PERSISTENT_REQUEST_UNSET: add(rig->sent, "unset"); return;
    case SL_PERSISTENT_REQUEST_OPTIONS: show_options(rig, &request->options); return;
    case SL_PERSISTENT_REQUEST_STOP:
        add(rig->sent, request->hand_back_unstarted ? "stop+back" : "stop");
        return;
    case SL_PERSISTENT_REQUEST_ACK: add(rig->sent, "ack:"); break;
    case SL_PERSISTENT_REQUEST_NACK: add(rig->sent, "nack:"); break;
    case SL_PERSISTENT_REQUEST_RELEASE: add(rig->sent, "release:"); break;
    case SL_PERSISTENT_REQUEST_EXTEND: add(rig->sent, "extend:"); break;
    case SL_PERSISTENT_REQUEST_STARTED: add(rig->sent, "started:"); break;
    }
    add_ids(rig, &request->ids);
    if (request->kind == SL_PERSISTENT_REQUEST_EXTEND)
        add(rig->sent, "=%d", request->lease_ms);
    if (request->kind == SL_PERSISTENT_REQUEST_NACK)
        add(rig->sent, "=%s/%.*s", actions[request->action], (int)request->reason.bytes,
            request->reason.data);
    if (request->kind == SL_PERSISTENT_REQUEST_NACK && request->delay_ms != 0)
        add(rig->sent, "~%d", request->delay_ms);
}

static sl_err reserve(void *ctx, size_t bytes, uint8_t **ret_data)
{
    consuming_rig *const rig = ctx;

    if (rig->no_room)
        return SL_ERR_FULL;
    EXPECT(bytes <= sizeof rig->message);
    *ret_data = rig->message;
    return SL_OK;
}

static void commit(void *ctx, size_t bytes)
{
    consuming_rig *const rig = ctx;
    const sl_str message = { (const char *)rig->message, bytes };
    sl_persistent_request request;
    const char *reason;

    EXPECT_OK(sl_persistent_request_decode(message, &request, &reason));
    show_request(rig, &request);
    rig->sent_count++;
    if (rig->on_sent != NULL)
        rig->on_sent(rig->ctx, message);
}

sl_err consuming_rig_turn(consuming_rig *rig)
{
    const sl_consuming_output output = { .reserve = reserve, .commit = commit, .ctx = rig };

    sl_consuming_step(&rig->c);
    return sl_consuming_flush(&rig->c, &output);
}

/* --- the user --- */

static const sl_consumer_id *ids_of(const consuming_rig *rig, uint64_t first, size_t count)
{
    static sl_consumer_id ids[CONSUMING_RIG_IDS];

    EXPECT(first + count <= CONSUMING_RIG_IDS);
    for (size_t i = 0; i < count; i++)
        memcpy(ids[i].bytes, rig->ids[first + i].bytes, sizeof ids[i].bytes);
    return ids;
}

size_t consuming_rig_ack(consuming_rig *rig, uint64_t first, size_t count)
{
    return sl_consuming_settle(&rig->c, ids_of(rig, first, count), count, SL_HOLDING_ACK, NULL);
}

size_t consuming_rig_nack(consuming_rig *rig, uint64_t first, size_t count, int32_t action, const char *why)
{
    return sl_consuming_nack(&rig->c, ids_of(rig, first, count), count, action, why);
}

size_t consuming_rig_nack_later(consuming_rig *rig, uint64_t first, size_t count, uint32_t delay_ms)
{
    return sl_consuming_nack_later(&rig->c, ids_of(rig, first, count), count, SL_WIRE_NACK_RETRY, "busy",
                                   delay_ms);
}

size_t consuming_rig_release(consuming_rig *rig, uint64_t first, size_t count)
{
    return sl_consuming_settle(&rig->c, ids_of(rig, first, count), count, SL_HOLDING_RELEASE, NULL);
}

size_t consuming_rig_started(consuming_rig *rig, uint64_t first, size_t count)
{
    return sl_consuming_started(&rig->c, ids_of(rig, first, count), count);
}

size_t consuming_rig_extend(consuming_rig *rig, uint64_t first, size_t count, uint32_t lease_ms)
{
    return sl_consuming_extend(&rig->c, ids_of(rig, first, count), count, lease_ms, rig->now_ns);
}

/* --- the scripted peer --- */

sl_uuid consuming_rig_id(uint64_t revision)
{
    sl_uuid id = { { 0xaa } };

    id.bytes[14] = (uint8_t)(revision >> 8);
    id.bytes[15] = (uint8_t)revision;
    return id;
}

bool consuming_rig_say(consuming_rig *rig, const sl_persistent_response *response)
{
    const size_t bytes = sl_persistent_response_size(response);
    uint8_t *const message = malloc(bytes + 1);
    bool is_fine;

    EXPECT(message != NULL);
    sl_persistent_response_encode(response, message, bytes);
    is_fine = sl_consuming_receive(&rig->c, (sl_str){ (const char *)message, bytes }, rig->now_ns);
    free(message);
    return is_fine;
}

void consuming_rig_join(consuming_rig *rig)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };

    response.subscription_id = SL_STR("orders::g");
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_say(rig, &response));
    (void)consuming_rig_heard(rig);
    (void)consuming_rig_sent(rig);
}

bool consuming_rig_event(consuming_rig *rig, uint64_t revision, uint64_t token)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_EVENT };

    response.event = (sl_wire_read_event){
        .has_event = true,
        .event = { .id = { consuming_rig_id(revision), SL_WIRE_ID_STRUCTURED },
                   .stream = SL_STR("s"),
                   .revision = revision,
                   .type = SL_STR("t"),
                   .content_type = SL_STR("application/json"),
                   .data = SL_STR("{}") },
        .position_kind = SL_WIRE_POSITION_NONE,
        .retry_kind = SL_WIRE_RETRY_COUNT,
        .lease_token = token,
        .lease_ms = 30000,
    };
    rig->ids[revision] = consuming_rig_id(revision);
    return consuming_rig_say(rig, &response);
}

static sl_wire_ids range(uint64_t first, size_t count)
{
    static sl_uuid ids[CONSUMING_RIG_IDS];

    for (size_t i = 0; i < count; i++)
        ids[i] = consuming_rig_id(first + i);
    return (sl_wire_ids){ .count = count, .list = ids, .form = SL_WIRE_ID_STRUCTURED };
}

bool consuming_rig_settled(consuming_rig *rig, uint64_t first, size_t count)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_SETTLED };

    response.settled.ids = range(first, count);
    return consuming_rig_say(rig, &response);
}

bool consuming_rig_lost(consuming_rig *rig, uint64_t first, size_t count)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_SETTLED };

    response.settled.lost = range(first, count);
    return consuming_rig_say(rig, &response);
}

bool consuming_rig_stopped(consuming_rig *rig, sl_wire_asked_by asked_by, bool already, uint64_t first,
                           size_t count)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_STOPPED };

    response.stopped.in_flight = (uint32_t)count;
    response.stopped.already_stopped = already;
    response.stopped.asked_by = (int32_t)asked_by;
    response.stopped.outstanding = range(first, count);
    return consuming_rig_say(rig, &response);
}

bool consuming_rig_drained(consuming_rig *rig)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_DRAINED };

    response.drained.settled = 1;
    return consuming_rig_say(rig, &response);
}
