/* bench/server/peer_rabbitmq.c — RabbitMQ with publisher confirms: a durable classic queue, or a quorum queue. */
#include "peer.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct broker {
    amqp_connection_state_t connection;
    uint32_t queued;
    uint64_t confirmed; /* delivery tags up to here */
} broker;

static void check(amqp_connection_state_t connection, const char *what)
{
    const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection);

    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        bench_fail("rabbitmq: %s failed", what);
}

static bool try_login(peer *p, broker *b)
{
    b->connection = amqp_new_connection();
    amqp_socket_t *const socket = amqp_tcp_socket_new(b->connection);

    if (amqp_socket_open(socket, "127.0.0.1", p->port) == AMQP_STATUS_OK &&
        amqp_login(b->connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type ==
            AMQP_RESPONSE_NORMAL)
        return true;
    amqp_destroy_connection(b->connection);
    return false;
}

static void open_channel(peer *p, broker *b)
{
    amqp_table_entry_t entry = { .key = amqp_cstring_bytes("x-queue-type"),
                                 .value = { .kind = AMQP_FIELD_KIND_UTF8,
                                            .value.bytes = amqp_cstring_bytes(p->kind->variant) } };
    const amqp_table_t table = { .num_entries = 1, .entries = &entry };

    while (!try_login(p, b)) {
        bench_check();
        usleep(100 * 1000);
    }
    amqp_channel_open(b->connection, 1);
    check(b->connection, "opening a channel");
    amqp_queue_declare(b->connection, 1, amqp_cstring_bytes("bench"), 0, 1, 0, 0, table);
    check(b->connection, "making the queue");
    amqp_confirm_select(b->connection, 1);
    check(b->connection, "asking for confirms");
}

/* Its helper programs and its cookie stay in the folder; the port for clusters is any that is free. */
static void start(peer *p)
{
    char port[8], distribution[8], node[32];
    broker *const b = bench_allocate(sizeof *b);
    const char *const words[] = { peer_program("rabbitmq-server"), NULL };

    snprintf(port, sizeof port, "%u", p->port);
    snprintf(distribution, sizeof distribution, "%u", peer_free_port());
    snprintf(node, sizeof node, "bench%u@localhost", p->port);
    const char *const environment[] = { "RABBITMQ_NODE_PORT",
                                        port,
                                        "RABBITMQ_DIST_PORT",
                                        distribution,
                                        "RABBITMQ_NODENAME",
                                        node,
                                        "RABBITMQ_NODE_IP_ADDRESS",
                                        "127.0.0.1",
                                        "RABBITMQ_MNESIA_BASE",
                                        p->folder,
                                        "RABBITMQ_LOG_BASE",
                                        p->folder,
                                        "RABBITMQ_PID_FILE",
                                        "pid",
                                        "RABBITMQ_CONF_ENV_FILE",
                                        "/dev/null",
                                        "RABBITMQ_ENABLED_PLUGINS_FILE",
                                        "plugins",
                                        "HOME",
                                        p->folder,
                                        NULL };
    peer_spawn(p, words, environment);
    close(peer_connect(p));
    *b = (broker){ 0 };
    open_channel(p, b);
    p->state = b;
}

static void put(peer *p, uint32_t count)
{
    ((broker *)p->state)->queued += count;
}

static void publish(broker *b)
{
    const amqp_basic_properties_t persistent = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
                                                 .delivery_mode = 2 };
    const amqp_bytes_t body = { .len = PAYLOAD_BYTES, .bytes = (void *)(uintptr_t)peer_payload() };

    for (; b->queued > 0; b->queued--)
        if (amqp_basic_publish(b->connection, 1, amqp_empty_bytes, amqp_cstring_bytes("bench"), 0, 0,
                               &persistent, body) != AMQP_STATUS_OK)
            bench_fail("rabbitmq: cannot publish");
}

/* How many messages this frame confirms. */
static uint32_t take_frame(broker *b, const amqp_frame_t *frame)
{
    if (frame->frame_type != AMQP_FRAME_METHOD || frame->payload.method.id != AMQP_BASIC_ACK_METHOD)
        bench_fail("rabbitmq: something else than a confirm came");
    const amqp_basic_ack_t *const ack = frame->payload.method.decoded;
    const uint32_t count = ack->multiple ? (uint32_t)(ack->delivery_tag - b->confirmed) : 1;

    b->confirmed += count;
    return count;
}

static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    broker *const b = p->state;
    uint32_t count = 0;
    amqp_frame_t frame;

    bench_check();
    publish(b);
    for (;;) {
        const uint64_t wait_ns = count > 0 ? 0 : timeout_ns;
        struct timeval wait = { .tv_sec = (time_t)(wait_ns / 1000000000),
                                .tv_usec = (suseconds_t)(wait_ns % 1000000000 / 1000) };
        const int status = amqp_simple_wait_frame_noblock(b->connection, &frame, &wait);

        if (status == AMQP_STATUS_TIMEOUT)
            return count;
        if (status != AMQP_STATUS_OK)
            bench_fail("rabbitmq: %s", amqp_error_string2(status));
        count += take_frame(b, &frame);
        amqp_maybe_release_buffers(b->connection);
    }
}

static void stop(peer *p)
{
    broker *const b = p->state;

    amqp_destroy_connection(b->connection);
    free(b);
}

const peer_kind peer_rabbitmq_classic = { .name = "rabbitmq-classic",
                                          .program = "rabbitmq-server",
                                          .flushes = true,
                                          .start = start,
                                          .put = put,
                                          .wait = await_answers,
                                          .stop = stop,
                                          .variant = "classic" };
const peer_kind peer_rabbitmq_quorum = { .name = "rabbitmq-quorum",
                                         .program = "rabbitmq-server",
                                         .flushes = true,
                                         .start = start,
                                         .put = put,
                                         .wait = await_answers,
                                         .stop = stop,
                                         .variant = "quorum" };
