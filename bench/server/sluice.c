/* bench/server/sluice.c — see sluice.h. */
#include "sluice.h"

#include "base/arena.h"
#include "wire/streams_control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    IO_BYTES = 256 * 1024
};

static uint64_t now_ns(void)
{
    return (uint64_t)(bench_now_s() * 1e9);
}

/* --- what comes back --- */

static void take_append_answer(sluice *s, const sl_message *message)
{
    const sl_str bytes = { (const char *)message->data, message->bytes };
    sl_batch_append_response answer;

    if (s->batch == NULL)
        return;
    if (sl_batch_append_response_decode(bytes, &answer, NULL) != SL_OK ||
        answer.kind != SL_BATCH_APPEND_RESPONSE_SUCCESS)
        bench_fail("sluice: an append was refused: %.*s", (int)answer.error.message.bytes,
                   answer.error.message.data);
    s->confirmed++;
}

/* The first tag says what it is; an event is not looked at closer, as a fast reader would only hand it on. */
static void take_read_answer(sluice *s, const sl_message *message)
{
    const uint8_t kind = message->bytes == 0 ? 0 : message->data[0] >> 3;

    if (kind == SL_READ_RESPONSE_CAUGHT_UP)
        s->caught_up = true;
    if (kind != SL_READ_RESPONSE_EVENT)
        return;
    if (s->sent_s != NULL && s->events_read < s->event_count_max)
        s->latency_s[s->events_read] = bench_now_s() - s->sent_s[s->events_read];
    s->events_read++;
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    sluice *const s = ctx;

    if (sl_call_user(call) == s)
        take_read_answer(s, message);
    else
        take_append_answer(s, message);
    sl_call_consume(call, message->window_bytes);
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    sluice *const s = ctx;

    if (info->kind == SL_CALL_FINISHED && info->status != SL_STATUS_OK)
        bench_fail("sluice: %s: %.*s", sl_status_name(info->status), (int)info->message.bytes,
                   info->message.data);
    if (sl_call_user(call) == s)
        s->ended = true;
    else if (call == s->batch)
        s->batch = NULL;
    else
        s->confirmed++;
}

/* --- the socket --- */

sluice *sluice_open(peer *p)
{
    static const sl_connection_handler handler = { .on_message = on_message, .on_end = on_end };
    sluice *const s = bench_allocate(sizeof *s);
    sl_wire_limits limits = sl_wire_limits_default;
    limits.calls_max = 4096;
    limits.call_output_bytes_max = limits.output_bytes_max = 64 * 1024 * 1024;
    *s = (sluice){ .fd = peer_connect(p) };
    const sl_connection_options options = { .role = SL_ROLE_CLIENT,
                                            .limits = &limits,
                                            .handler = &handler,
                                            .ctx = s,
                                            .authority = SL_STR("localhost") };

    bench_must(sl_connection_new(&options, now_ns(), &s->connection), "sluice");
    return s;
}

void sluice_close(sluice *s)
{
    sl_connection_free(s->connection);
    close(s->fd);
    free(s);
}

/* What did not fit into the socket waits here; the next piece is made when it is gone. */
static bool send_some(sluice *s)
{
    static uint8_t memory[IO_BYTES];
    static size_t bytes, done;
    static int owner = -1;

    if (owner != s->fd)
        owner = s->fd, bytes = done = 0;
    for (;;) {
        if (done == bytes) {
            done = 0;
            bytes = sl_connection_output(s->connection, now_ns(), memory, sizeof memory);
        }
        if (bytes == 0)
            return false;
        const ssize_t sent = send(s->fd, memory + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            bench_fail("sluice: %s", strerror(errno));
        if (sent < 0)
            return true;
        done += (size_t)sent;
    }
}

static bool receive_some(sluice *s)
{
    static uint8_t memory[IO_BYTES];
    const ssize_t got = recv(s->fd, memory, sizeof memory, MSG_DONTWAIT);

    if (got == 0)
        bench_fail("sluice: the server closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        bench_fail("sluice: %s", strerror(errno));
    if (got > 0)
        sl_connection_receive(s->connection, now_ns(), memory, (size_t)got);
    return got > 0;
}

bool sluice_run(sluice *s, sluice_wanted *wanted, uint64_t timeout_ns)
{
    const uint64_t end_ns = now_ns() + timeout_ns;

    for (;;) {
        bench_check();
        const bool unsent = send_some(s);
        const bool received = receive_some(s);

        if (wanted(s))
            return true;
        if (received)
            continue;
        const uint64_t now = now_ns();
        if (now >= end_ns)
            return false;
        sl_connection_tick(s->connection, now);
        struct pollfd ready = { .fd = s->fd, .events = (short)(POLLIN | (unsent ? POLLOUT : 0)) };
        const uint64_t left_ns = end_ns - now;
        const struct timespec left = { .tv_sec = (time_t)(left_ns / 1000000000),
                                       .tv_nsec = (long)(left_ns % 1000000000) };
        ppoll(&ready, 1, &left, NULL);
    }
}

void sluice_read_all(sluice *s, bool subscribe_at_end)
{
    const sl_call_request start = { .path = SL_STR("/event_store.client.streams.Streams/Read"),
                                    .deadline_ns = UINT64_MAX,
                                    .user = s };
    const sl_read_request request = { .source = SL_WIRE_SOURCE_ALL,
                                      .start = subscribe_at_end ? SL_WIRE_START_END : SL_WIRE_START_BEGIN,
                                      .extent = subscribe_at_end ? SL_READ_EXTENT_SUBSCRIPTION
                                                                 : SL_READ_EXTENT_COUNT,
                                      .count = INT64_MAX,
                                      .filter = { .kind = SL_WIRE_FILTER_NONE },
                                      .has_id_option = true,
                                      .id_form = SL_WIRE_ID_STRUCTURED };
    sl_call *call;
    sl_arena arena;
    sl_str message;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    bench_must(sl_read_request_encode(&request, &arena, &message), "sluice");
    bench_must(sl_call_start(s->connection, &start, &call), "sluice");
    bench_must(sl_call_send(call, &message, 1), "sluice");
    sl_call_half_close(call);
    sl_arena_done(&arena);
    s->events_read = 0;
    s->caught_up = s->ended = false;
}
