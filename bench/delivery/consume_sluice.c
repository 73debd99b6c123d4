/* bench/delivery/consume_sluice.c — our server: the Read call of a persistent subscription, acks confirmed by Settled. */
#include "consumer.h"
#include "sluice_groups.h"

#include "base/arena.h"
#include "wire/call.h"
#include "wire/persistent_client.h"
#include "wire/persistent_codec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IO_BYTES = 256 * 1024,
    IDS_MAX = 16 * 1024, /* acknowledged in one message */
    LEASE_MS = 60 * 1000,
    GROUPS_AT_ONCE = 50,
};

typedef struct channel {
    consumer *owner; /* NULL: of calls that are no consumer's */
    int fd;
    sl_connection *connection;
    sl_call *call;
    uint8_t *out;
    size_t out_bytes, out_done;
    sl_uuid ids[IDS_MAX]; /* of the next ack */
    uint32_t id_count;
    uint32_t over_count; /* calls */
} channel;

static uint64_t now_ns(void)
{
    return (uint64_t)(bench_now_s() * 1e9);
}

static void send_message(sl_call *call, const sl_persistent_request *request)
{
    const size_t bytes = sl_persistent_request_size(request);
    uint8_t *message;

    bench_must(sl_call_reserve(call, bytes, &message), "sluice");
    sl_persistent_request_encode(request, message, bytes);
    sl_call_commit(call, bytes);
}

/* --- what comes back --- */

static void take_answer(channel *l, const sl_message *message)
{
    const sl_str bytes = { (const char *)message->data, message->bytes };
    sl_persistent_response response;

    bench_must(sl_persistent_response_decode(bytes, &response, NULL), "sluice: an answer");
    if (response.kind == SL_PERSISTENT_RESPONSE_EVENT) {
        consumer_take(l->owner, response.event.event.data.data);
        if (l->id_count == IDS_MAX)
            bench_fail("sluice: more messages than the window allows");
        l->ids[l->id_count++] = response.event.event.id.uuid;
    } else if (response.kind == SL_PERSISTENT_RESPONSE_SETTLED) {
        l->owner->acked += response.settled.ids.count;
        if (response.settled.lost.count > 0)
            bench_fail("sluice: %zu acks were lost", response.settled.lost.count);
    }
}

static void on_message(void *ctx, sl_call *call, const sl_message *message)
{
    channel *const l = ctx;

    if (l->owner != NULL)
        take_answer(l, message);
    sl_call_consume(call, message->window_bytes);
}

static void on_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    channel *const l = ctx;

    (void)call;
    if (info->kind == SL_CALL_CONNECTION_LOST) /* by channel_close() */
        return;
    if (l->owner != NULL || info->status != SL_STATUS_OK)
        bench_fail("sluice: %s: %.*s", sl_status_name(info->status), (int)info->message.bytes,
                   info->message.data);
    l->over_count++;
}

/* --- the socket --- */

static channel *channel_open(peer *p, consumer *owner)
{
    static const sl_connection_handler handler = { .on_message = on_message, .on_end = on_end };
    channel *const l = bench_allocate(sizeof *l);
    sl_wire_limits limits = sl_wire_limits_default;

    limits.call_output_bytes_max = limits.output_bytes_max = 64 * 1024 * 1024;
    *l = (channel){ .owner = owner, .fd = peer_connect(p), .out = bench_allocate(IO_BYTES) };
    bench_must(sl_connection_new(&(sl_connection_options){ .role = SL_ROLE_CLIENT,
                                                           .limits = &limits,
                                                           .handler = &handler,
                                                           .ctx = l,
                                                           .authority = SL_STR("localhost") },
                                 now_ns(), &l->connection),
               "sluice");
    return l;
}

static void channel_close(channel *l)
{
    sl_connection_free(l->connection);
    close(l->fd);
    free(l->out);
    free(l);
}

/* True: the socket takes no more for now. */
static bool send_some(channel *l)
{
    for (;;) {
        if (l->out_done == l->out_bytes) {
            l->out_done = 0;
            l->out_bytes = sl_connection_output(l->connection, now_ns(), l->out, IO_BYTES);
        }
        if (l->out_bytes == 0)
            return false;
        const ssize_t sent =
            send(l->fd, l->out + l->out_done, l->out_bytes - l->out_done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            bench_fail("sluice: %s", strerror(errno));
        if (sent < 0)
            return true;
        l->out_done += (size_t)sent;
    }
}

static void receive_some(channel *l)
{
    static uint8_t memory[IO_BYTES];
    const ssize_t got = recv(l->fd, memory, sizeof memory, MSG_DONTWAIT);

    if (got == 0)
        bench_fail("sluice: the server closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        bench_fail("sluice: %s", strerror(errno));
    if (got > 0)
        sl_connection_receive(l->connection, now_ns(), memory, (size_t)got);
}

/* --- groups --- */

static void ask_for_group(channel *l, const char *name, bool from_end)
{
    const sl_call_request start = {
        .path = SL_STR("/event_store.client.persistent_subscriptions.PersistentSubscriptions/Create"),
        .deadline_ns = UINT64_MAX
    };
    const sl_wire_group_request request = {
        .source = SL_WIRE_SOURCE_STREAM,
        .stream = SL_STR("bench"),
        .group = sl_str_from(name),
        .start = from_end ? SL_WIRE_START_END : SL_WIRE_START_BEGIN,
        .has_settings = true,
        .settings = { .message_timeout = { .given = true, .value = LEASE_MS },
                      .checkpoint_after = { .given = true, .value = 2000 },
                      .max_retry_count = 10,
                      .min_checkpoint_count = 10,
                      .max_checkpoint_count = 1000,
                      .live_buffer_size = 5000,
                      .read_batch_size = 500,
                      .history_buffer_size = 5000,
                      .strategy = SL_STR("RoundRobin") },
    };
    sl_arena arena;
    sl_str message;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    bench_must(sl_wire_group_create_encode(&request, &arena, &message), "sluice");
    bench_must(sl_call_start(l->connection, &start, &l->call), "sluice");
    bench_must(sl_call_send(l->call, &message, 1), "sluice");
    sl_call_half_close(l->call);
    sl_arena_done(&arena);
}

void sluice_groups_make(peer *p, const char *first, uint32_t count, bool from_end)
{
    channel *const l = channel_open(p, NULL);
    uint32_t asked = 0;
    char name[64];

    while (l->over_count < count) {
        bench_check();
        for (; asked < count && asked - l->over_count < GROUPS_AT_ONCE; asked++) {
            snprintf(name, sizeof name, count == 1 ? "%s" : "%s%u", first, asked);
            ask_for_group(l, name, from_end);
        }
        send_some(l);
        poll(&(struct pollfd){ .fd = l->fd, .events = POLLIN }, 1, 10);
        receive_some(l);
    }
    channel_close(l);
}

static void prepare(peer *p)
{
    sluice_groups_make(p, "workers", 1, false);
}

/* --- consumers --- */

static void open_consumer(consumer *c)
{
    const sl_call_request start = {
        .path = SL_STR("/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read"),
        .deadline_ns = UINT64_MAX
    };
    char name[32];
    channel *const l = channel_open(c->server, c);

    snprintf(name, sizeof name, "bench-%u", c->index);
    bench_must(sl_call_start(l->connection, &start, &l->call), "sluice");
    send_message(l->call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_OPTIONS,
                                                    .options = { .source = SL_WIRE_SOURCE_STREAM,
                                                                 .stream = SL_STR("bench"),
                                                                 .group = sl_str_from(c->group),
                                                                 .buffer_size = (int32_t)c->window,
                                                                 .has_id_option = true,
                                                                 .id_form = SL_WIRE_ID_STRUCTURED,
                                                                 .consumer_name = sl_str_from(name),
                                                                 .extensions = true } });
    c->state = l;
    c->fd = l->fd;
    send_some(l);
}

static bool turn(consumer *c)
{
    channel *const l = c->state;

    receive_some(l);
    if (c->holds)
        l->id_count = 0;
    if (l->id_count > 0) {
        const sl_wire_ids ids = { .count = l->id_count, .list = l->ids, .form = SL_WIRE_ID_STRUCTURED };

        send_message(l->call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_ACK, .ids = ids });
        l->id_count = 0;
    }
    sl_connection_tick(l->connection, now_ns());
    return send_some(l);
}

static void close_consumer(consumer *c)
{
    channel_close(c->state);
}

const consumer_kind consumer_sluice = {
    .peer = &peer_sluice, .prepare = prepare, .open = open_consumer, .turn = turn, .close = close_consumer
};
