/* bench/delivery/consume_rabbitmq.c — RabbitMQ: basic.consume with a prefetch, acknowledged up to the last one that came. */
#include "consumer.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <string.h>
#include <sys/time.h>

static void check(amqp_connection_state_t connection, const char *what)
{
    if (amqp_get_rpc_reply(connection).reply_type != AMQP_RESPONSE_NORMAL)
        bench_fail("rabbitmq: %s failed", what);
}

static void open_consumer(consumer *c)
{
    const amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t *const socket = amqp_tcp_socket_new(connection);

    if (amqp_socket_open(socket, "127.0.0.1", c->server->port) != AMQP_STATUS_OK ||
        amqp_login(connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type !=
            AMQP_RESPONSE_NORMAL)
        bench_fail("rabbitmq: no connection");
    amqp_channel_open(connection, 1);
    check(connection, "opening a channel");
    amqp_basic_qos(connection, 1, 0, (uint16_t)c->window, 0);
    check(connection, "the prefetch");
    amqp_basic_consume(connection, 1, amqp_cstring_bytes("bench"), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    check(connection, "consuming");
    c->state = connection;
    c->fd = amqp_get_sockfd(connection);
}

/* Everything that is there; one ack for all of it. */
static bool turn(consumer *c)
{
    struct timeval now = { 0 };
    amqp_envelope_t envelope;
    uint64_t last = 0, count = 0;

    amqp_maybe_release_buffers(c->state);
    while (amqp_consume_message(c->state, &envelope, &now, 0).reply_type == AMQP_RESPONSE_NORMAL) {
        consumer_take(c, envelope.message.body.bytes);
        last = envelope.delivery_tag;
        amqp_destroy_envelope(&envelope);
        if (++count == c->window)
            break;
    }
    if (count > 0 && amqp_basic_ack(c->state, 1, last, 1) != AMQP_STATUS_OK)
        bench_fail("rabbitmq: no ack");
    c->acked += count;
    return count > 0; /* what came with it may be in its buffer, where no poll sees it */
}

static void close_consumer(consumer *c)
{
    amqp_destroy_connection(c->state);
}

const consumer_kind consumer_rabbitmq_classic = {
    .peer = &peer_rabbitmq_classic, .open = open_consumer, .turn = turn, .close = close_consumer
};
const consumer_kind consumer_rabbitmq_quorum = {
    .peer = &peer_rabbitmq_quorum, .open = open_consumer, .turn = turn, .close = close_consumer
};
