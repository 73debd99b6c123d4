/* tests/unit/wire/pair.c — see pair.h. */
#include "pair.h"

void pair_fill(uint8_t *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

uint64_t pair_hash(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3;
    return hash;
}

static seen *seen_new(side *s, sl_call *call)
{
    seen *found;

    assert_true(s->call_count < PAIR_CALLS_MAX);
    found = &s->calls[s->call_count++];
    *found = (seen){ .call = call, .consumes = true };
    sl_call_set_user(call, found);
    return found;
}

static bool is(const sl_call *call, const char *path)
{
    return sl_str_equal(sl_call_path(call), sl_str_from(path));
}

static size_t copy_metadata(const sl_metadata_list *list, sl_metadata *into, size_t max)
{
    const size_t count = sl_metadata_list_count(list);

    assert_true(count <= max);
    for (size_t i = 0; i < count; i++)
        into[i] = sl_metadata_list_at(list, i);
    return count;
}

static void on_call(void *ctx, sl_call *call)
{
    seen *s = seen_new(ctx, call);
    const sl_metadata trailers[] = { { SL_STR_INIT("exception"), SL_STR_INIT("stream-not-found") },
                                     { SL_STR_INIT("stream-name"), SL_STR_INIT("gr\xc3\xbc\xc3\x9f e") },
                                     { SL_STR_INIT("detail-bin"), SL_STR_INIT("\x00\xff\x01") } };
    sl_metadata rows[16];

    s->headers++;
    if (is(call, PATH_FAIL))
        sl_call_finish(call, SL_STATUS_NOT_FOUND, SL_STR("100% g\xc3\xbcltig\n"), trailers, 3);
    if (is(call, PATH_PAUSED))
        sl_call_pause(call);
    if (is(call, PATH_HEADER))
        sl_call_send_headers(call, rows, copy_metadata(sl_call_metadata(call), rows, 16));
}

static void on_headers(void *ctx, sl_call *call)
{
    seen *s = sl_call_user(call);

    (void)ctx;
    s->headers++;
}

/* Sends until it is done or there is no room. */
static void send_many(const pair *r, seen *s)
{
    uint8_t *data;

    while (s->to_send > 0) {
        const sl_err err = sl_call_reserve(s->call, r->many_bytes, &data);
        if (err == SL_ERR_NOMEM) {
            sl_call_cancel(s->call);
            return;
        }
        if (err != SL_OK)
            return;
        pair_fill(data, r->many_bytes, s->to_send);
        sl_call_commit(s->call, r->many_bytes);
        s->to_send--;
    }
    sl_call_finish(s->call, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void on_room(void *ctx, sl_call *call)
{
    const side *own = ctx;
    seen *s = sl_call_user(call);

    s->rooms++;
    if (s->to_send > 0)
        send_many(own->pair, s);
}

static void note_message(seen *s, const sl_message *message)
{
    const size_t shown = message->bytes < sizeof s->last - 1 ? message->bytes : sizeof s->last - 1;

    s->messages++;
    s->bytes += message->bytes;
    s->hash = pair_hash(s->hash, message->data, message->bytes);
    s->window_bytes += message->window_bytes;
    if (shown > 0)
        memcpy(s->last, message->data, shown);
    s->last[shown] = 0;
}

static void on_server_message(void *ctx, sl_call *call, const sl_message *message)
{
    const side *own = ctx;
    seen *s = sl_call_user(call);
    const sl_str piece = { (const char *)message->data, message->bytes };

    note_message(s, message);
    if (is(call, PATH_SILENT))
        return;
    s->window_bytes -= message->window_bytes;
    sl_call_consume(call, message->window_bytes);
    if (is(call, PATH_ECHO) && sl_call_send(call, &piece, 1) == SL_ERR_NOMEM)
        sl_call_cancel(call);
    if (is(call, PATH_MANY) && s->messages == 1) {
        s->to_send = own->pair->many;
        send_many(own->pair, s);
    }
}

static void on_half_close(void *ctx, sl_call *call)
{
    seen *s = sl_call_user(call);
    char text[32];
    const sl_str piece = { text, (size_t)snprintf(text, sizeof text, "%u messages", s->messages) };
    sl_metadata rows[16];

    (void)ctx;
    s->half_closes++;
    if (is(call, PATH_SILENT) || is(call, PATH_MANY))
        return;
    if (is(call, PATH_COUNT) && sl_call_send(call, &piece, 1) == SL_ERR_NOMEM) {
        sl_call_cancel(call);
        return;
    }
    sl_call_finish(call, SL_STATUS_OK, SL_STR(""), rows,
                   is(call, PATH_HEADER) ? copy_metadata(sl_call_metadata(call), rows, 16) : 0);
}

static void note_trailers(seen *s, const sl_metadata_list *list)
{
    sl_text text;

    sl_text_init(&text, s->trailers, sizeof s->trailers);
    for (size_t i = 0; i < sl_metadata_list_count(list); i++) {
        const sl_metadata row = sl_metadata_list_at(list, i);
        sl_text_add_str(&text, row.key);
        sl_text_add_char(&text, '=');
        sl_text_add_str(&text, row.value);
        sl_text_add_char(&text, ';');
    }
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    seen *s = sl_call_user(call);
    sl_text text;

    (void)ctx;
    s->ends++;
    s->info = *info;
    s->call = NULL;
    sl_text_init(&text, s->message, sizeof s->message);
    sl_text_add_str(&text, info->message);
    note_trailers(s, sl_call_trailers(call));
}

static void on_client_message(void *ctx, sl_call *call, const sl_message *message)
{
    seen *s = sl_call_user(call);

    (void)ctx;
    note_message(s, message);
    if (s->cancels) {
        sl_call_cancel(call);
        return;
    }
    if (s->consumes) {
        s->window_bytes -= message->window_bytes;
        sl_call_consume(call, message->window_bytes);
    }
}

static void on_goaway(void *ctx, sl_connection *connection)
{
    side *own = ctx;

    (void)connection;
    own->goaways++;
}

static const sl_connection_handler server_handler = {
    .on_call = on_call,
    .on_message = on_server_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_end = on_end,
    .on_goaway = on_goaway,
};

static const sl_connection_handler client_handler = {
    .on_headers = on_headers,
    .on_message = on_client_message,
    .on_room = on_room,
    .on_end = on_end,
    .on_goaway = on_goaway,
};

static bool side_open(pair *r, side *s, sl_role role, const sl_wire_limits *limits)
{
    const sl_connection_options options = {
        .role = role,
        .alloc = &s->alloc,
        .limits = limits,
        .handler = role == SL_ROLE_SERVER ? &server_handler : &client_handler,
        .ctx = s,
        .counters = &s->counters,
        .authority = SL_STR_INIT("localhost:2113"),
    };

    s->pair = r;
    s->alloc = test_alloc_use(&s->memory);
    return sl_connection_new(&options, r->now_ns, &s->connection) == SL_OK;
}

bool pair_open(pair *r, const sl_wire_limits *server, const sl_wire_limits *client)
{
    r->now_ns = r->now_ns == 0 ? 1000000000 : r->now_ns;
    return side_open(r, &r->server, SL_ROLE_SERVER, server) &&
           side_open(r, &r->client, SL_ROLE_CLIENT, client);
}

static void side_close(side *s)
{
    sl_connection_free(s->connection);
    for (unsigned i = 0; i < s->call_count; i++)
        assert_int_equal(s->calls[i].ends, 1); /* each call ends once, whatever happened */
    assert_int_equal(s->memory.block_count, 0);
    assert_int_equal(s->memory.byte_count, 0);
}

void pair_close(pair *r)
{
    side_close(&r->server);
    side_close(&r->client);
}

size_t pair_move(pair *r, side *from, side *to)
{
    static uint8_t output[64 * 1024];
    const size_t bytes = sl_connection_has_output(from->connection)
                             ? sl_connection_output(from->connection, r->now_ns, output, sizeof output)
                             : 0;

    for (size_t at = 0; at < bytes;) {
        const size_t left = bytes - at;
        size_t step = r->read_bytes == 0 ? left : r->read_bytes;
        step = r->chop == NULL ? step : 1 + dice_pick(r->chop, 3000);
        step = step < left ? step : left;
        sl_connection_receive(to->connection, r->now_ns, output + at, step);
        at += step;
    }
    from->moved_bytes += bytes;
    return bytes;
}

void pair_run(pair *r)
{
    while (pair_move(r, &r->client, &r->server) + pair_move(r, &r->server, &r->client) > 0)
        ;
}

void pair_wait(pair *r, uint64_t ns)
{
    r->now_ns += ns;
    sl_connection_tick(r->server.connection, r->now_ns);
    sl_connection_tick(r->client.connection, r->now_ns);
    pair_run(r);
}

bool pair_server_finishes(pair *r)
{
    const bool waits = !sl_connection_finished(r->server.connection);

    r->now_ns = sl_connection_due_ns(r->server.connection);
    sl_connection_tick(r->server.connection, r->now_ns);
    return waits && sl_connection_finished(r->server.connection);
}

seen *pair_call_with(pair *r, const sl_call_request *request)
{
    sl_call *call;

    return sl_call_start(r->client.connection, request, &call) == SL_OK ? seen_new(&r->client, call) : NULL;
}

seen *pair_call(pair *r, const char *path)
{
    return pair_call_with(r, &(sl_call_request){ .path = sl_str_from(path), .deadline_ns = UINT64_MAX });
}

sl_err pair_send(seen *s, const void *data, size_t bytes)
{
    const sl_str piece = { data, bytes };

    return sl_call_send(s->call, &piece, 1);
}

sl_err pair_say(seen *s, const char *text)
{
    return pair_send(s, text, strlen(text));
}

void pair_end(pair *r, seen *s)
{
    sl_call_half_close(s->call);
    pair_run(r);
}
