/* tests/fuzz/fuzz_server.c — hostile clients at a whole server: every service behind the wire, a store in memory, no socket.
 *
 * The input is a list of instructions: open a call of any method, send bytes or a well-made append with odd parts on it, half-close, cancel, stop
 * reading, let time pass, stop the server. Whatever comes, every call ends exactly once, an append is never answered twice, what
 * was accepted is answered or its client is gone, and nothing is left when the host is freed. */
#include "base/cleanup.h"
#include "server/door.h"
#include "server/host.h"
#include "server/link.h"
#include "server/method.h"
#include "server/request.h"
#include "wire/call.h"
#include "wire/streams_codec.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    CALLS_MAX = 16,
    INSTRUCTIONS_MAX = 256,
    EVENTS_MAX = 4,
    PIECE_BYTES = 64 * 1024,
    CORRELATIONS = 8,
    MEMORY_BYTES_MAX = 512 << 20,
};

typedef struct client_call {
    sl_call *call; /* NULL: over, or never begun */
    bool begun, half_closed, is_batch;
    unsigned owed[CORRELATIONS]; /* answers that may still come */
} client_call;

typedef struct world {
    const uint8_t *at, *end; /* instructions */
    sl_clock_manual time;
    sl_clock clock;
    sl_alloc alloc;
    size_t memory_bytes;
    sl_server_settings settings;
    sl_logger log;
    sl_store *store;
    sl_host *host;
    sl_link *link;
    sl_connection *client;
    bool stuck;
    client_call calls[CALLS_MAX];
} world;

/* --- instructions --- */

static uint8_t take_u8(world *w)
{
    return w->at == w->end ? 0 : *w->at++;
}

static sl_str take_bytes(world *w, size_t bytes)
{
    const size_t left = (size_t)(w->end - w->at);
    const sl_str taken = { (const char *)w->at, bytes < left ? bytes : left };

    w->at += taken.bytes;
    return taken;
}

/* --- the world --- */

static void *resize(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    world *const w = ctx;

    w->memory_bytes += new_bytes - old_bytes;
    assert(w->memory_bytes <= MEMORY_BYTES_MAX);
    if (new_bytes > 0)
        return realloc(memory, new_bytes);
    free(memory);
    return NULL;
}

static void no_sink(void *ctx, const char *line, size_t line_bytes)
{
    (void)ctx;
    assert(line[line_bytes] == 0);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    client_call *const known = sl_call_user(call);
    sl_batch_append_response answer;
    sl_wire_id id;

    (void)ctx;
    sl_call_consume(call, message->window_bytes);
    if (!known->is_batch)
        return;
    assert(sl_batch_append_response_decode((sl_str){ (const char *)message->data, message->bytes }, &answer,
                                           NULL) == SL_OK);
    assert(sl_wire_id_decode(answer.correlation, &id, NULL) == SL_OK);
    if (id.form == SL_WIRE_ID_STRUCTURED && id.uuid.bytes[0] == 0xcc) /* one of ours, not of raw bytes */
        assert(known->owed[id.uuid.bytes[15] % CORRELATIONS]-- > 0);
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    client_call *const known = sl_call_user(call);

    (void)ctx;
    (void)info;
    assert(known->call == call);
    known->call = NULL;
}

static const sl_connection_handler client_handler = { .on_message = on_message, .on_end = on_end };

static void begin(world *w)
{
    const sl_link_owner owner = { .touch = nothing, .peer = SL_STR_INIT("127.0.0.1:1") };
    const sl_connection_options options = { .role = SL_ROLE_CLIENT,
                                            .handler = &client_handler,
                                            .authority = SL_STR_INIT("localhost") };

    w->time = (sl_clock_manual){ 1000000000, 1700000000000000000 };
    w->clock = sl_clock_manual_clock(&w->time);
    w->alloc = (sl_alloc){ w, resize };
    w->settings = sl_server_settings_default;
    w->settings.append_bytes_max = 4096; /* so that limits are met */
    w->settings.event_bytes_max = 1024;
    w->log = (sl_logger){ SL_LOG_DEBUG, SL_LOG_FORMAT_JSON, &w->clock, no_sink, NULL };
    if (sl_store_open_memory(&(sl_store_setup){ &sl_alloc_default, { 3, 4 } }, &w->store) != SL_OK)
        abort();
    if (sl_host_new(&(sl_host_setup){ .alloc = &w->alloc,
                                      .clock = &w->clock,
                                      .log = &w->log,
                                      .settings = &w->settings,
                                      .store = w->store,
                                      .seed = { 1, 2 },
                                      .instance = { { 1 } },
                                      .wake = nothing },
                    &w->host) != SL_OK)
        abort();
    while (!sl_host_ready(w->host))
        (void)sl_host_turn(w->host);
    if (sl_link_new(w->host, &owner, &w->link) != SL_OK ||
        sl_connection_new(&options, w->time.mono_ns, &w->client) != SL_OK)
        abort();
}

static void move(world *w, sl_connection *from, sl_connection *to)
{
    static uint8_t piece[PIECE_BYTES];
    size_t bytes;

    while ((bytes = sl_connection_output(from, w->time.mono_ns, piece, sizeof piece)) > 0)
        sl_connection_receive(to, w->time.mono_ns, piece, bytes);
}

static void turn(world *w)
{
    if (sl_connection_due_ns(w->link->connection) <= w->time.mono_ns)
        sl_connection_tick(w->link->connection, w->time.mono_ns);
    if (sl_host_due_ns(w->host) <= w->time.mono_ns)
        sl_host_tick(w->host, w->time.mono_ns);
    (void)sl_host_turn(w->host);
    sl_host_poll(w->host);
    if (!w->stuck)
        move(w, w->link->connection, w->client);
}

/* --- what a client does --- */

static client_call *any_call(world *w)
{
    return &w->calls[take_u8(w) % CALLS_MAX];
}

static void open_call(world *w)
{
    client_call *const known = any_call(w);
    const sl_method *const method = sl_methods[take_u8(w) % sl_method_count];
    char buffer[256];
    sl_text path;

    if (known->call != NULL)
        return;
    sl_text_init(&path, buffer, sizeof buffer);
    sl_text_add(&path, "/");
    sl_text_add_str(&path, method->service);
    sl_text_add(&path, "/");
    sl_text_add_str(&path, method->name);
    *known = (client_call){ .begun = true, .is_batch = sl_str_equal(method->name, SL_STR("BatchAppend")) };
    if (sl_call_start(
            w->client,
            &(sl_call_request){ .path = sl_text_str(&path), .deadline_ns = UINT64_MAX, .user = known },
            &known->call) != SL_OK)
        known->call = NULL;
}

static bool can_send(const client_call *known)
{
    return known->call != NULL && !known->half_closed && sl_call_room(known->call) > 0;
}

static void send_raw(world *w)
{
    client_call *const known = any_call(w);
    const size_t bytes = take_u8(w) * (size_t)(1 + take_u8(w) % 8);
    const sl_str message = take_bytes(w, bytes);

    if (can_send(known))
        (void)sl_call_send(known->call, &message, 1);
}

static sl_str odd_stream(world *w)
{
    static const sl_str names[] = { SL_STR_INIT("a"),    SL_STR_INIT("b"),   SL_STR_INIT(""),
                                    SL_STR_INIT("$all"), SL_STR_INIT("$$a"), SL_STR_INIT("$sys"),
                                    SL_STR_INIT("$$"),   SL_STR_INIT("\xff") };

    return names[take_u8(w) % SL_COUNT_OF(names)];
}

static sl_wire_proposed odd_event(world *w)
{
    const uint8_t how = take_u8(w);
    sl_wire_proposed event = { .id = { sl_uuid_from_halves(7, take_u8(w)), SL_WIRE_ID_STRUCTURED },
                               .type = take_bytes(w, 1 + how % 4),
                               .content_type = SL_STR("application/json"),
                               .data = take_bytes(w, how) };

    if (how % 16 == 0)
        event.content_type = (sl_str){ NULL, 0 };
    if (how % 16 == 1)
        event.id = (sl_wire_id){ .form = SL_WIRE_ID_ABSENT };
    for (size_t i = 0; i < event.type.bytes; i++)
        if ((uint8_t)event.type.data[i] >= 0x80) /* text that is no UTF-8 would not be encoded as such */
            event.type = SL_STR("t");
    return event;
}

/* Parts of an append, in any order; `owed` counts what may be answered at most. */
static void send_batch(world *w)
{
    client_call *const known = any_call(w);
    const uint8_t how = take_u8(w), number = take_u8(w) % CORRELATIONS;
    const sl_batch_options options = { .stream = odd_stream(w),
                                       .expected = { (sl_wire_revision_kind)(take_u8(w) % 5), take_u8(w) },
                                       .deadline_kind = (sl_batch_deadline_kind)(take_u8(w) % 3),
                                       .deadline = sl_wire_time_from_ns(take_u8(w) * UINT64_C(100000000)) };
    sl_wire_proposed events[EVENTS_MAX];
    const sl_batch_append_draft draft = {
        .correlation = { sl_uuid_from_halves((int64_t)0xcc00000000000000, number), SL_WIRE_ID_STRUCTURED },
        .options = (how & 1) != 0 ? &options : NULL,
        .events = events,
        .event_count = (how >> 2) % (EVENTS_MAX + 1),
        .is_final = (how & 2) != 0
    };
    const size_t bytes = (events[0] = odd_event(w), events[1] = odd_event(w),
                          events[2] = events[3] = odd_event(w), sl_batch_append_request_size(&draft));
    uint8_t *message;

    if (!can_send(known) || sl_call_reserve(known->call, bytes, &message) != SL_OK)
        return;
    sl_batch_append_request_encode(&draft, message, bytes);
    sl_call_commit(known->call, bytes);
    known->owed[number] += (how & 1) != 0; /* without options it is nobody, or a part of one that counted */
}

static void send_append(world *w)
{
    client_call *const known = any_call(w);
    const bool options = take_u8(w) % 2 == 0;
    sl_append_request request = { .kind = options ? SL_APPEND_REQUEST_OPTIONS : SL_APPEND_REQUEST_EVENT };
    uint8_t *message;
    size_t bytes;

    if (options)
        request.options =
            (sl_append_options){ odd_stream(w), { (sl_wire_revision_kind)(take_u8(w) % 5), 0 } };
    else
        request.event = odd_event(w);
    bytes = sl_append_request_size(&request);
    if (!can_send(known) || sl_call_reserve(known->call, bytes, &message) != SL_OK)
        return;
    sl_append_request_encode(&request, message, bytes);
    sl_call_commit(known->call, bytes);
}

static void half_close(world *w)
{
    client_call *const known = any_call(w);

    if (known->call == NULL || known->half_closed)
        return;
    known->half_closed = true;
    sl_call_half_close(known->call);
}

static void cancel(world *w)
{
    client_call *const known = any_call(w);

    if (known->call != NULL)
        sl_call_cancel(known->call);
}

/* All calls that are open are of somebody whose rights are looked at. */
static void distrust(world *w)
{
    SL_LIST_EACH (node, &w->host->requests)
        SL_CONTAINER_OF(node, sl_request, node)->identity = (sl_identity){ .name = SL_STR("somebody") };
}

static void pass_time(world *w)
{
    sl_clock_manual_advance(&w->time, take_u8(w) * UINT64_C(10000000));
}

static void instruct(world *w)
{
    switch (take_u8(w) % 16) {
    case 0:
    case 1: open_call(w); break;
    case 2: send_raw(w); break;
    case 3:
    case 4:
    case 5:
    case 6: send_batch(w); break;
    case 7:
    case 8: send_append(w); break;
    case 9: half_close(w); break;
    case 10: cancel(w); break;
    case 11: turn(w); break;
    case 12: pass_time(w); break;
    case 13: w->stuck = !w->stuck; break;
    case 14: distrust(w); break;
    default:
        if (take_u8(w) % 8 == 0)
            sl_host_stop(w->host, "the fuzzer");
        else if (take_u8(w) % 8 == 0)
            sl_door_shut(w->host->door, "the fuzzer");
        break;
    }
    move(w, w->client, w->link->connection);
}

/* Everybody stops, everything is answered: after some turns no call is left that has not ended, except those that wait for more. */
static void finish(world *w)
{
    w->stuck = false;
    sl_host_stop(w->host, "the end");
    for (unsigned i = 0; i < 64; i++) {
        move(w, w->client, w->link->connection);
        turn(w);
    }
    assert(sl_door_inside(w->host->door) == 0);
    sl_connection_free(w->client);
    sl_link_free(w->link);
    assert(w->host->gathered_bytes == 0);
    sl_host_free(w->host);
    sl_store_close(w->store);
    assert(w->memory_bytes == 0);
    for (size_t i = 0; i < CALLS_MAX; i++)
        assert(w->calls[i].call == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static world w; /* too large for the stack of a sanitizer */

    w = (world){ .at = data, .end = data + data_bytes };
    begin(&w);
    for (unsigned i = 0; i < INSTRUCTIONS_MAX && w.at < w.end; i++)
        instruct(&w);
    finish(&w);
    return 0;
}
