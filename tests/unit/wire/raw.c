/* tests/unit/wire/raw.c — see raw.h. */
#include "raw.h"

static void on_call(void *ctx, sl_call *call)
{
    raw *w = ctx;

    w->calls++;
    w->call = call;
    if (w->message_bytes_max > 0)
        sl_call_set_message_bytes_max(call, w->message_bytes_max);
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    raw *w = ctx;
    const size_t shown = message->bytes < sizeof w->last - 1 ? message->bytes : sizeof w->last - 1;

    w->messages++;
    w->last_messages += message->is_last;
    w->message_bytes += message->bytes;
    if (shown > 0)
        memcpy(w->last, message->data, shown);
    w->last[shown] = 0;
    sl_call_consume(call, message->window_bytes);
}

static void on_half_close(void *ctx, sl_call *call)
{
    raw *w = ctx;

    w->half_closes++;
    if (w->finishes)
        sl_call_finish(call, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    raw *w = ctx;

    w->ends++;
    w->info = *info;
    if (w->call == call)
        w->call = NULL;
}

void raw_open(raw *w, const sl_wire_limits *limits, bool with_preface)
{
    static const sl_connection_handler handler = {
        .on_call = on_call, .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end
    };
    const sl_connection_options options = { .role = SL_ROLE_SERVER,
                                            .alloc = &w->alloc,
                                            .limits = limits,
                                            .handler = &handler,
                                            .ctx = w,
                                            .counters = &w->counters,
                                            .input = w->input };

    w->alloc = test_alloc_use(&w->memory);
    w->now_ns = 1000000000;
    sl_buf_init(&w->out, &sl_alloc_default, SIZE_MAX / 2);
    assert_int_equal(nghttp2_hd_inflate_new(&w->inflater), 0);
    assert_int_equal(sl_connection_new(&options, w->now_ns, &w->server), SL_OK);
    if (with_preface) {
        raw_bytes(w, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
        raw_frame(w, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        raw_go(w);
    }
}

void raw_close(raw *w)
{
    sl_connection_free(w->server);
    assert_int_equal(w->ends, w->calls);
    assert_int_equal(w->memory.block_count, 0);
    nghttp2_hd_inflate_del(w->inflater);
    sl_buf_done(&w->out);
}

void raw_bytes(raw *w, const void *data, size_t bytes)
{
    assert_int_equal(sl_buf_append(&w->out, data, bytes), SL_OK);
}

void raw_head(raw *w, uint8_t type, uint8_t flags, uint32_t stream_id, size_t bytes)
{
    const uint8_t head[9] = {
        (uint8_t)(bytes >> 16),
        (uint8_t)(bytes >> 8),
        (uint8_t)bytes,
        type,
        flags,
        (uint8_t)(stream_id >> 24),
        (uint8_t)(stream_id >> 16),
        (uint8_t)(stream_id >> 8),
        (uint8_t)stream_id,
    };

    raw_bytes(w, head, sizeof head);
}

void raw_frame(raw *w, uint8_t type, uint8_t flags, uint32_t stream_id, const void *payload, size_t bytes)
{
    raw_head(w, type, flags, stream_id, bytes);
    raw_bytes(w, payload, bytes);
}

static void append_text(sl_buf *block, const char *text, size_t bytes)
{
    assert_true(bytes < 127 + 128 * 128);
    if (bytes < 127) { /* a number with a prefix of seven bits */
        sl_buf_append_u8(block, (uint8_t)bytes);
    } else {
        sl_buf_append_u8(block, 127);
        if (bytes - 127 >= 128)
            sl_buf_append_u8(block, (uint8_t)(128 | ((bytes - 127) & 127)));
        sl_buf_append_u8(block, (uint8_t)(bytes - 127 >= 128 ? (bytes - 127) >> 7 : bytes - 127));
    }
    assert_int_equal(sl_buf_append(block, text, bytes), SL_OK);
}

/* A literal that is not put into the table. */
void raw_row(sl_buf *block, const char *name, const char *value)
{
    sl_buf_append_u8(block, 0);
    append_text(block, name, strlen(name));
    append_text(block, value, strlen(value));
}

static bool has_row(const char *rows, const char *name)
{
    const char *found = strstr(rows, name);

    return found != NULL && (found == rows || found[-1] == '\n') && found[strlen(name)] == ':';
}

static void add_rows(sl_buf *block, const char *rows)
{
    char line[20000];

    while (*rows != 0) {
        const char *end = strchr(rows, '\n');
        char *value;
        assert_non_null(end);
        snprintf(line, sizeof line, "%.*s", (int)(end - rows), rows);
        value = strstr(line + 1, ": ");
        assert_non_null(value);
        *value = 0;
        raw_row(block, line, value + 2);
        rows = end + 1;
    }
}

void raw_request(raw *w, uint32_t stream_id, uint8_t flags, const char *rows)
{
    static const char *const usual[][2] = {
        { ":method", "POST" }, { ":scheme", "http" }, { ":path", "/t.Test/Raw" },
        { ":authority", "x" }, { "te", "trailers" },  { "content-type", "application/grpc" }
    };
    sl_buf block;

    sl_buf_init(&block, &sl_alloc_default, SIZE_MAX / 2);
    for (size_t i = 0; i < 4; i++)
        if (!has_row(rows, usual[i][0]))
            raw_row(&block, usual[i][0], usual[i][1]);
    if (rows[0] == ':') { /* pseudo-headers come first */
        add_rows(&block, rows);
        rows = "";
    }
    for (size_t i = 4; i < 6; i++)
        if (!has_row(rows, usual[i][0]))
            raw_row(&block, usual[i][0], usual[i][1]);
    add_rows(&block, rows);
    raw_frame(w, NGHTTP2_HEADERS, (uint8_t)(flags | NGHTTP2_FLAG_END_HEADERS), stream_id, sl_buf_data(&block),
              block.bytes);
    sl_buf_done(&block);
}

void raw_message(raw *w, uint32_t stream_id, uint8_t flags, uint8_t compressed, const void *data,
                 size_t bytes)
{
    const uint8_t prefix[5] = { compressed, (uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16),
                                (uint8_t)(bytes >> 8), (uint8_t)bytes };

    raw_head(w, NGHTTP2_DATA, flags, stream_id, 5 + bytes);
    raw_bytes(w, prefix, sizeof prefix);
    raw_bytes(w, data, bytes);
}

static uint32_t u32_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void read_block(raw *w, const uint8_t *block, size_t bytes)
{
    size_t used = strlen(w->headers);

    for (;;) {
        nghttp2_nv row;
        int flags = 0;
        const ssize_t taken = nghttp2_hd_inflate_hd2(w->inflater, &row, &flags, block, bytes, 1);
        assert_true(taken >= 0);
        block += taken;
        bytes -= (size_t)taken;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && used < sizeof w->headers - 1)
            used += (size_t)snprintf(w->headers + used, sizeof w->headers - used, "%s: %s\n", row.name,
                                     row.value);
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
            break;
    }
    nghttp2_hd_inflate_end_headers(w->inflater);
}

static void read_window_update(raw *w, uint32_t stream_id, const uint8_t *payload)
{
    if (stream_id == 0)
        w->window_bytes += u32_at(payload);
    else
        w->stream_window_opens++;
}

static void read_frame(raw *w, uint8_t type, uint32_t stream_id, const uint8_t *payload, size_t bytes)
{
    assert_true(type < 16);
    w->frames[type]++;
    if (type == NGHTTP2_HEADERS)
        read_block(w, payload, bytes);
    if (type == NGHTTP2_WINDOW_UPDATE)
        read_window_update(w, stream_id, payload);
    if (type == NGHTTP2_RST_STREAM) {
        w->reset_error = u32_at(payload);
        w->reset_stream_id = stream_id;
    }
    if (type == NGHTTP2_GOAWAY) {
        w->goaway_error = u32_at(payload + 4);
        snprintf(w->goaway_text, sizeof w->goaway_text, "%.*s", (int)(bytes - 8), (const char *)payload + 8);
    }
}

/* What the server says comes in whole frames here, because the output is larger than it ever is in these tests. */
static void read_output(raw *w)
{
    static uint8_t output[1 << 20];
    const size_t bytes = sl_connection_output(w->server, w->now_ns, output, sizeof output);

    if (bytes >= 4 && memcmp(output, "HTTP", 4) == 0) {
        assert_true(bytes < sizeof w->text);
        memcpy(w->text, output, bytes);
        w->text_bytes = bytes;
        return;
    }
    for (size_t at = 0; at < bytes;) {
        const size_t payload_bytes = u32_at(output + at) >> 8;
        assert_true(at + 9 + payload_bytes <= bytes);
        read_frame(w, output[at + 3], u32_at(output + at + 5), output + at + 9, payload_bytes);
        at += 9 + payload_bytes;
    }
}

void raw_go_in_steps(raw *w, size_t step_bytes)
{
    for (size_t at = 0; at < w->out.bytes; at += step_bytes) {
        const size_t left = w->out.bytes - at;
        sl_connection_receive(w->server, w->now_ns, sl_buf_data(&w->out) + at,
                              step_bytes < left ? step_bytes : left);
    }
    sl_buf_clear(&w->out);
    raw_go(w);
}

void raw_go(raw *w)
{
    uint8_t *copy = malloc(w->out.bytes + 1); /* exactly as large, so that reading beyond is seen */
    uint8_t *exact = copy == NULL ? NULL : copy + 1;

    assert_non_null(exact);
    if (w->out.bytes > 0)
        memcpy(exact, sl_buf_data(&w->out), w->out.bytes);
    sl_connection_receive(w->server, w->now_ns, exact, w->out.bytes);
    free(copy);
    sl_buf_clear(&w->out);
    while (sl_connection_has_output(w->server))
        read_output(w);
}

bool raw_finishes(raw *w)
{
    const bool waits = !sl_connection_finished(w->server) && sl_connection_wants_input(w->server);

    w->now_ns = sl_connection_due_ns(w->server);
    sl_connection_tick(w->server, w->now_ns);
    return waits && sl_connection_finished(w->server) && !sl_connection_wants_input(w->server);
}
