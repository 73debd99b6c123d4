/* tests/fuzz/fuzz_http2.c — a hostile peer at the server side of the wire engine.
 *
 * The first byte chooses the mode and how the server's application behaves; the second how bytes are cut.
 *   raw         the rest is what comes from the socket, from the first byte on
 *   framed      the same behind a correct preface and SETTINGS, so that the fuzzer need not find them
 *   structured  the rest are instructions that become valid frames, actions of the application and time that passes
 * Whatever comes, every call that the application knows ends exactly once, memory stays bounded, and a connection
 * that is finished says nothing more. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/call.h"
#include "wire/connection.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    CALLS_MAX = 64,
    MEMORY_BYTES_MAX = 32 << 20,
    MODE_RAW = 0,
    MODE_FRAMED = 1, /* everything above is structured */
    STEPS_MAX = 4096
};

typedef struct peer {
    sl_connection *server;
    uint64_t now_ns;
    uint8_t behaviour;
    size_t cut_bytes;    /* bytes come in pieces of this size */
    size_t memory_bytes; /* taken by the server */
    sl_call *calls[CALLS_MAX];
    unsigned known, ended;
    uint32_t next_stream_id;
    sl_buf out;
} peer;

static void *resize(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    peer *p = ctx;

    p->memory_bytes += new_bytes - old_bytes;
    assert(p->memory_bytes <= MEMORY_BYTES_MAX);
    if (new_bytes > 0)
        return realloc(memory, new_bytes);
    free(memory);
    return NULL;
}

static void on_call(void *ctx, sl_call *call)
{
    peer *p = ctx;
    const sl_metadata trailers[] = { { SL_STR_INIT("path"), sl_call_path(call) } };

    p->known++;
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (p->calls[i] == NULL) {
            p->calls[i] = call;
            break;
        }
    if (p->behaviour == 1)
        sl_call_finish(call, SL_STATUS_NOT_FOUND, sl_call_path(call), trailers, 1);
    if (p->behaviour == 2)
        sl_call_pause(call);
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    const peer *p = ctx;
    const sl_str piece = { (const char *)message->data, message->bytes };
    volatile uint8_t touched = 0;

    for (size_t i = 0; i < message->bytes; i++)
        touched = (uint8_t)(touched ^ message->data[i]); /* a wrong pointer is found by the sanitizer */
    if (p->behaviour == 3)
        return; /* consumes nothing */
    sl_call_consume(call, message->window_bytes);
    if (p->behaviour == 4)
        sl_call_cancel(call);
    else
        sl_call_send(call, &piece, 1); /* may be refused: then the message is lost, which is all right here */
}

static void on_half_close(void *ctx, sl_call *call)
{
    const peer *p = ctx;

    if (p->behaviour != 5)
        sl_call_finish(call, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    peer *p = ctx;

    assert(info->kind == SL_CALL_FINISHED || info->status != SL_STATUS_OK);
    p->ended++;
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (p->calls[i] == call)
            p->calls[i] = NULL;
}

static void drain(peer *p)
{
    static uint8_t output[64 * 1024];

    for (int i = 0; i < 64 && sl_connection_has_output(p->server); i++)
        sl_connection_output(p->server, p->now_ns, output, sizeof output);
}

static void receive(peer *p, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        const size_t count = bytes < p->cut_bytes ? bytes : p->cut_bytes;
        uint8_t *exact = malloc(count);
        memcpy(exact, data, count);
        sl_connection_receive(p->server, p->now_ns, exact, count);
        free(exact);
        data += count;
        bytes -= count;
    }
    drain(p);
}

static void flush(peer *p)
{
    if (p->out.bytes > 0)
        receive(p, sl_buf_data(&p->out), p->out.bytes);
    sl_buf_clear(&p->out);
}

static void put_frame(peer *p, uint8_t type, uint8_t flags, uint32_t stream_id, const void *payload,
                      size_t bytes)
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

    sl_buf_append(&p->out, head, sizeof head);
    sl_buf_append(&p->out, payload, bytes);
}

/* The instructions that are left. Reading beyond the end gives zeros. */
typedef struct script {
    const uint8_t *data;
    size_t bytes;
} script;

static uint8_t next(script *s)
{
    if (s->bytes == 0)
        return 0;
    s->bytes--;
    return *s->data++;
}

static uint32_t next_u16(script *s)
{
    const uint32_t high = next(s);

    return high << 8 | next(s);
}

static void put_row(sl_buf *block, sl_str key, sl_str value)
{
    sl_buf_append_u8(block, 0);
    sl_buf_append_u8(block, (uint8_t)(key.bytes & 0x7f));
    sl_buf_append(block, key.data, key.bytes & 0x7f);
    sl_buf_append_u8(block, (uint8_t)(value.bytes & 0x7f));
    sl_buf_append(block, value.data, value.bytes & 0x7f);
}

static const sl_metadata rows[] = {
    { SL_STR_INIT("content-type"), SL_STR_INIT("application/grpc") },
    { SL_STR_INIT("content-type"), SL_STR_INIT("text/plain") },
    { SL_STR_INIT("grpc-timeout"), SL_STR_INIT("1S") },
    { SL_STR_INIT("grpc-timeout"), SL_STR_INIT("99999999H") },
    { SL_STR_INIT("grpc-timeout"), SL_STR_INIT("x") },
    { SL_STR_INIT("grpc-encoding"), SL_STR_INIT("gzip") },
    { SL_STR_INIT("grpc-encoding"), SL_STR_INIT("zstd") },
    { SL_STR_INIT("x-bin"), SL_STR_INIT("AAEC,/w==") },
    { SL_STR_INIT("x-bin"), SL_STR_INIT("*") },
    { SL_STR_INIT("authorization"), SL_STR_INIT("Basic YWRtaW46Y2hhbmdlaXQ=") },
    { SL_STR_INIT("te"), SL_STR_INIT("trailers") },
    { SL_STR_INIT("priority"), SL_STR_INIT("u=0") },
};

static void put_request(peer *p, script *s)
{
    const uint8_t flags = next(s), row_count = next(s) % 8;
    sl_buf block;

    sl_buf_init(&block, &sl_alloc_default, 1 << 16);
    put_row(&block, SL_STR(":method"), (flags & 0x10) != 0 ? SL_STR("GET") : SL_STR("POST"));
    put_row(&block, SL_STR(":scheme"), SL_STR("http"));
    put_row(&block, SL_STR(":path"), SL_STR("/a.B/C"));
    put_row(&block, SL_STR(":authority"), SL_STR("h"));
    put_row(&block, rows[0].key, rows[0].value);
    for (uint8_t i = 0; i < row_count; i++) {
        const sl_metadata *row = &rows[next(s) % SL_COUNT_OF(rows)];
        put_row(&block, row->key, row->value);
    }
    put_frame(p, 1, (uint8_t)((flags & 1) | ((flags & 2) != 0 ? 0 : 4)), p->next_stream_id,
              sl_buf_data(&block), block.bytes);
    p->next_stream_id += 2;
    sl_buf_done(&block);
}

static uint32_t some_stream(const peer *p, script *s)
{
    return 1 + 2u * (next(s) % ((p->next_stream_id + 1) / 2));
}

/* A message, or the beginning of one, or one that says a wrong length. */
static void put_message(peer *p, script *s)
{
    const uint32_t stream_id = some_stream(p, s), bytes = next_u16(s) % 20000;
    const uint8_t flags = next(s);
    const uint32_t said = (flags & 0x40) != 0 ? bytes * 3 : bytes;
    uint8_t *payload = calloc(1, 5 + (size_t)bytes);

    payload[0] = (flags & 0x20) != 0;
    payload[3] = (uint8_t)(said >> 8);
    payload[4] = (uint8_t)said;
    for (uint32_t i = 0; i < bytes && i < 16; i++)
        payload[5 + i] = next(s);
    for (size_t at = 0; at < 5 + (size_t)bytes; at += 16384) {
        const size_t left = 5 + (size_t)bytes - at, count = left < 16384 ? left : 16384;
        put_frame(p, 0, count == left ? flags & 1 : 0, stream_id, payload + at, count);
    }
    free(payload);
}

static void put_small(peer *p, script *s)
{
    static const uint8_t sizes[16] = { 0, 0, 5, 4, 6, 4, 8, 8, 4, 0, 0, 0, 0, 0, 0, 0 };
    const uint8_t type = next(s) % 16, flags = next(s);
    uint8_t payload[8];

    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = next(s);
    put_frame(p, type, flags, type == 4 || type == 6 || type == 7 ? 0 : some_stream(p, s), payload,
              sizes[type]);
}

static void act(peer *p, script *s)
{
    const size_t index = next(s) % CALLS_MAX;
    sl_call *call;

    flush(p);
    call = p->calls[index]; /* not before: the flush may have ended it */
    if (call == NULL || sl_connection_finished(p->server))
        return;
    switch (next(s) % 5) {
    case 0: sl_call_pause(call); break;
    case 1: sl_call_resume(call); break;
    case 2: sl_call_cancel(call); break;
    case 3: sl_connection_shutdown(p->server); break;
    default: sl_call_room(call); break;
    }
    drain(p);
}

static void pass_time(peer *p, script *s)
{
    flush(p);
    p->now_ns += (uint64_t)next_u16(s) * 10000000;
    sl_connection_tick(p->server, p->now_ns);
    drain(p);
}

static void run_script(peer *p, script *s)
{
    for (int step = 0; step < STEPS_MAX && s->bytes > 0; step++) {
        switch (next(s) % 8) {
        case 0: put_request(p, s); break;
        case 1:
        case 2: put_message(p, s); break;
        case 3:
        case 4: put_small(p, s); break;
        case 5: act(p, s); break;
        case 6: pass_time(p, s); break;
        default: flush(p); break;
        }
    }
    flush(p);
}

static sl_wire_limits small_limits(void)
{
    sl_wire_limits limits = sl_wire_limits_default;

    limits.message_bytes_max = 100000;
    limits.stream_window_bytes = 70000;
    limits.window_bytes = 200000;
    limits.unfinished_bytes_max = 300000;
    limits.calls_max = CALLS_MAX;
    limits.call_output_bytes_max = 50000;
    limits.output_bytes_max = 200000;
    limits.pings = limits.settings = limits.resets = limits.empty_frames = (sl_rate){ 50, 10 };
    return limits;
}

static void open_server(peer *p, const sl_alloc *alloc)
{
    static const sl_connection_handler handler = {
        .on_call = on_call, .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end
    };
    const sl_wire_limits limits = small_limits();
    const sl_connection_options options = {
        .role = SL_ROLE_SERVER, .alloc = alloc, .limits = &limits, .handler = &handler, .ctx = p
    };
    const sl_err err = sl_connection_new(&options, p->now_ns, &p->server);

    assert(err == SL_OK);
    sl_buf_init(&p->out, &sl_alloc_default, 64 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    peer p = { .now_ns = 1, .next_stream_id = 1 };
    const sl_alloc alloc = { .ctx = &p, .resize = resize };
    script s = { data, data_bytes };
    const uint8_t mode = next(&s), cut = next(&s);

    p.behaviour = mode >> 4;
    p.cut_bytes = cut == 0 ? SIZE_MAX : cut;
    open_server(&p, &alloc);
    if (mode % 4 != MODE_RAW) {
        sl_buf_append(&p.out, preface, sizeof preface - 1);
        put_frame(&p, 4, 0, 0, NULL, 0);
        flush(&p);
    }
    if (mode % 4 <= MODE_FRAMED)
        receive(&p, s.data, s.bytes);
    else
        run_script(&p, &s);
    sl_connection_free(p.server);
    assert(p.known == p.ended);
    assert(p.memory_bytes == 0);
    sl_buf_done(&p.out);
    return 0;
}
