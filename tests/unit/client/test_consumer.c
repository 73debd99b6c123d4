/* The public consumer over real sockets, with a scripted server in the same loop: old servers, refusals, lost connections, hostile ones. */
#include "test.h"

#include "client/consumer_inside.h"
#include "net/listener.h"
#include "wire/server_control.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_NS UINT64_C(30000000000)

enum {
    PEERS_MAX = 16
};

typedef struct side { /* one connection, seen by the server */
    struct stage *stage;
    sl_socket *socket; /* NULL: gone */
    sl_connection *connection;
    sl_call *read;
} side;

typedef struct stage {
    sl_loop *loop;
    sl_listener *listener;
    sl_timer guard;
    bool guard_rang;
    side sides[PEERS_MAX];
    uint32_t side_count;
    sl_consumer *consumer;

    /* What the server does. */
    bool has_stop, is_garbage, knows_features;
    sl_status refusal;         /* OK: none */
    uint32_t event_count;      /* sent after the confirmation of the first call */
    size_t event_bytes;        /* of each */
    bool answers_stop_wrongly; /* Stopped, and then an event */

    /* What it has got. */
    uint32_t feature_calls, read_calls, acked, resumed, acked_before_proof;
    bool had_extensions;

    /* What the user has got. */
    uint32_t connected, disconnected, events, settled[5], stopped, drained, ended;
    sl_consumer_status status;
    char sentence[SL_CONSUMER_PROBLEM_BYTES];
    bool acks_at_once;
    sl_consumer_id last;
} stage;

/* --- the server --- */

static void send_response(sl_call *call, const sl_persistent_response *response)
{
    const size_t bytes = sl_persistent_response_size(response);
    uint8_t *const message = malloc(bytes + 1);
    const sl_str piece = { (const char *)message, bytes };

    EXPECT(message != NULL);
    sl_persistent_response_encode(response, message, bytes);
    EXPECT_OK(sl_call_send(call, &piece, 1));
    free(message);
}

static void send_event(stage *s, sl_call *call, uint64_t revision)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_EVENT };
    char *const data = calloc(1, s->event_bytes + 1);

    EXPECT(data != NULL);
    response.event = (sl_wire_read_event){ .has_event = true, .position_kind = SL_WIRE_POSITION_NONE };
    response.event.event = (sl_wire_recorded){ .id = { { { 1, (uint8_t)revision } }, SL_WIRE_ID_STRUCTURED },
                                               .stream = SL_STR("s"),
                                               .revision = revision,
                                               .type = SL_STR("t"),
                                               .content_type = SL_STR("application/octet-stream"),
                                               .data = { data, s->event_bytes } };
    response.event.lease_ms = 30000;
    send_response(call, &response);
    free(data);
}

static void answer_features(stage *s, sl_call *call)
{
    static const sl_str features[] = { SL_STR_INIT("all"), SL_STR_INIT("stop") };
    const sl_supported_method method = {
        .service = SL_STR("event_store.client.persistent_subscriptions.persistentsubscriptions"),
        .method = SL_STR("read"),
        .features = features,
        .feature_count = s->has_stop ? 2 : 1
    };
    const sl_supported_methods methods = { .methods = &method,
                                           .method_count = 1,
                                           .version = SL_STR("1.2.3") };
    sl_arena arena;
    sl_str answer;

    if (!s->knows_features) {
        sl_call_finish(call, SL_STATUS_UNIMPLEMENTED, SL_STR("no such method"), NULL, 0);
        return;
    }
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 65536 });
    EXPECT_OK(sl_supported_methods_encode(&methods, &arena, &answer));
    EXPECT_OK(sl_call_send(call, &answer, 1));
    sl_call_finish(call, SL_STATUS_OK, (sl_str){ 0 }, NULL, 0);
    sl_arena_done(&arena);
}

static void answer_options(stage *s, sl_call *call, const sl_persistent_options *options)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };

    s->had_extensions = options->extensions || options->consumer_name.bytes > 0;
    s->resumed = (uint32_t)options->resume.count;
    if (s->refusal != SL_STATUS_OK) {
        sl_call_finish(call, s->refusal, SL_STR("not you"), NULL, 0);
        return;
    }
    response.subscription_id = SL_STR("s::g");
    send_response(call, &response);
    for (uint32_t i = 0; i < s->event_count && s->read_calls == 1; i++)
        send_event(s, call, i);
}

static void answer_stop(stage *s, sl_call *call)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_STOPPED };

    send_response(call, &response);
    if (s->answers_stop_wrongly)
        send_event(s, call, 77);
}

static void on_server_message(void *ctx, sl_call *call, const sl_message *message)
{
    side *const at = ctx;
    stage *const s = at->stage;
    const sl_str text = { (const char *)message->data, message->bytes };
    sl_persistent_request request;
    const char *reason;

    sl_call_consume(call, message->window_bytes);
    if (call != at->read) {
        s->feature_calls++;
        s->acked_before_proof = s->acked;
        answer_features(s, call);
        return;
    }
    EXPECT_OK(sl_persistent_request_decode(text, &request, &reason));
    if (request.kind == SL_PERSISTENT_REQUEST_OPTIONS)
        answer_options(s, call, &request.options);
    if (request.kind == SL_PERSISTENT_REQUEST_ACK)
        s->acked += (uint32_t)request.ids.count;
    if (request.kind == SL_PERSISTENT_REQUEST_STOP)
        answer_stop(s, call);
}

static void on_call(void *ctx, sl_call *call)
{
    side *const at = ctx;
    const sl_str path = sl_call_path(call);

    if (path.bytes < 5 || memcmp(path.data + path.bytes - 5, "/Read", 5) != 0)
        return;
    at->read = call;
    at->stage->read_calls++;
}

static void on_server_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    side *const at = ctx;

    (void)info;
    if (call == at->read)
        at->read = NULL;
}

static void on_side_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    side *const at = ctx;

    if (!at->stage->is_garbage)
        sl_connection_receive(at->connection, sl_loop_now_ns(at->stage->loop), data, bytes);
    sl_socket_wake(at->socket);
}

static size_t side_fill(void *ctx, uint8_t *into, size_t capacity)
{
    side *const at = ctx;

    if (!at->stage->is_garbage)
        return sl_connection_output(at->connection, sl_loop_now_ns(at->stage->loop), into, capacity);
    if (at->read != NULL)
        return 0;
    at->read = (sl_call *)(uintptr_t)at; /* said once */
    memset(into, 'x', 100);
    return 100;
}

static void on_side_end(void *ctx, sl_net_end end, const char *problem)
{
    side *const at = ctx;

    (void)end;
    (void)problem;
    at->socket = NULL;
    sl_connection_free(at->connection);
    at->connection = NULL;
}

static void on_accept(void *ctx, sl_socket *socket)
{
    static const sl_connection_handler engine = { .on_call = on_call,
                                                  .on_message = on_server_message,
                                                  .on_end = on_server_end };
    static const sl_socket_handler handler = { .on_receive = on_side_receive,
                                               .fill = side_fill,
                                               .on_end = on_side_end };
    stage *const s = ctx;
    side *const at = &s->sides[s->side_count++];
    sl_wire_limits limits = sl_wire_limits_default;
    const sl_connection_options options = {
        .role = SL_ROLE_SERVER, .handler = &engine, .ctx = at, .limits = &limits
    };

    EXPECT(s->side_count < PEERS_MAX);
    limits.sent_message_bytes_max = 64u << 20;
    *at = (side){ .stage = s, .socket = socket };
    EXPECT_OK(sl_connection_new(&options, sl_loop_now_ns(s->loop), &at->connection));
    sl_socket_set_handler(socket, &handler, at);
}

static void cut(stage *s)
{
    side *const at = &s->sides[s->side_count - 1];

    sl_socket_reset(at->socket);
    on_side_end(at, SL_NET_END_CLOSED, "");
}

/* --- the user --- */

static void on_connected(void *ctx, const sl_consumer_connected *connected)
{
    (void)connected;
    ((stage *)ctx)->connected++;
}

static void on_disconnected(void *ctx, const char *sentence, uint32_t retry_ms)
{
    stage *const s = ctx;

    EXPECT(retry_ms <= SL_CONSUMER_RETRY_MS_MAX_DEFAULT);
    s->disconnected++;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
}

static void on_event(void *ctx, const sl_consumer_event *event)
{
    stage *const s = ctx;

    s->events++;
    s->last = event->id;
    if (s->acks_at_once)
        EXPECT_EQ(sl_consumer_ack(s->consumer, &event->id, 1), 1);
}

static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    (void)id;
    ((stage *)ctx)->settled[outcome]++;
}

static void on_stopped(void *ctx, const sl_consumer_stopped *stopped)
{
    (void)stopped;
    ((stage *)ctx)->stopped++;
}

static void on_drained(void *ctx, const sl_consumer_drained *drained)
{
    (void)drained;
    ((stage *)ctx)->drained++;
}

static void on_ended(void *ctx, sl_consumer_status status, const char *sentence)
{
    stage *const s = ctx;

    s->ended++;
    s->status = status;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
}

static const sl_consumer_handler user = { .event = on_event,
                                          .settled = on_settled,
                                          .stopped = on_stopped,
                                          .drained = on_drained,
                                          .connected = on_connected,
                                          .disconnected = on_disconnected,
                                          .ended = on_ended };

/* --- both --- */

static void on_turn_end(void *ctx)
{
    stage *const s = ctx;

    if (s->consumer != NULL)
        consumer_turn_end(s->consumer);
}

static void on_guard(void *ctx)
{
    ((stage *)ctx)->guard_rang = true;
}

static stage *stage_new(void)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };
    stage *const s = calloc(1, sizeof *s);
    const sl_listen_options options = { .host = SL_STR("127.0.0.1"), .on_accept = on_accept, .ctx = s };

    EXPECT(s != NULL);
    s->knows_features = true;
    s->event_bytes = 10;
    EXPECT_OK(sl_loop_new(NULL, &handler, s, &s->loop));
    sl_timer_init(&s->guard, s->loop, on_guard, s);
    sl_timer_set(&s->guard, sl_loop_now_ns(s->loop) + GUARD_NS);
    EXPECT_OK(sl_listener_new(s->loop, &options, NULL, &s->listener));
    return s;
}

static void stage_open(stage *s, uint32_t give_up_ms)
{
    char address[64], problem[SL_CONSUMER_PROBLEM_BYTES];
    const sl_consumer_options options = { .address = address,
                                          .stream = "s",
                                          .group = "g",
                                          .name = "c",
                                          .give_up_ms = give_up_ms,
                                          .handler = &user,
                                          .ctx = s };

    snprintf(address, sizeof address, "sluice://127.0.0.1:%u", sl_listener_port(s->listener));
    EXPECT_EQ(consumer_open_in(s->loop, &options, problem, sizeof problem, &s->consumer), SL_CONSUMER_OK);
}

static void stage_free(stage *s)
{
    sl_consumer *const consumer = s->consumer;

    s->consumer = NULL;
    sl_consumer_close(consumer);
    for (uint32_t i = 0; i < s->side_count; i++) {
        if (s->sides[i].socket != NULL) {
            sl_socket_reset(s->sides[i].socket);
            on_side_end(&s->sides[i], SL_NET_END_CLOSED, "");
        }
    }
    sl_listener_free(s->listener);
    sl_timer_stop(&s->guard);
    sl_loop_free(s->loop);
    free(s);
}

#define STAGE_UNTIL(s, fact)                                                                                 \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((s)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            sl_loop_turn((s)->loop, true);                                                                   \
        }                                                                                                    \
    } while (0)

static void wake_up(stage *s)
{
    sl_loop_wake(s->loop); /* what was said outside of a turn leaves at the end of the next */
}

/* --- tests --- */

TEST(an_old_server_gets_no_extensions_and_every_ack_before_the_call_goes_down)
{
    stage *const s = stage_new(); /* S1.20, S1.21, S1.28 */

    s->event_count = 5;
    s->acks_at_once = true;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->settled[SL_CONSUMER_SENT] == 5);
    EXPECT(!s->had_extensions);
    sl_consumer_stop(s->consumer, 0);
    wake_up(s);
    STAGE_UNTIL(s, s->drained == 1);
    EXPECT_EQ(s->stopped, 1);
    EXPECT_EQ(s->feature_calls, 2); /* the second one came behind the acks */
    EXPECT_EQ(s->acked_before_proof, 5);
    sl_consumer_leave(s->consumer);
    wake_up(s);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_OK);
    stage_free(s);
}

TEST(a_server_that_knows_no_features_is_an_old_one)
{
    stage *const s = stage_new();

    s->knows_features = false;
    s->event_count = 1;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->events == 1);
    EXPECT(!s->had_extensions);
    sl_consumer_leave(s->consumer); /* with one held: the server gives it to others */
    wake_up(s);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->settled[SL_CONSUMER_LOST], 1);
    stage_free(s);
}

TEST(a_refusal_ends_a_consumer_with_the_servers_words)
{
    stage *const s = stage_new();

    s->refusal = SL_STATUS_NOT_FOUND;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_REFUSED);
    EXPECT_STR(s->sentence, "not you");
    EXPECT_EQ(s->disconnected, 0);
    stage_free(s);
}

TEST(a_full_group_is_tried_again)
{
    stage *const s = stage_new();

    s->refusal = SL_STATUS_FAILED_PRECONDITION;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->disconnected == 2);
    s->refusal = SL_STATUS_OK;
    STAGE_UNTIL(s, s->connected == 1);
    stage_free(s);
}

TEST(a_consumer_comes_back_by_itself_and_lists_what_it_holds)
{
    stage *const s = stage_new();

    s->has_stop = true;
    s->event_count = 3;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->events == 3);
    EXPECT(s->had_extensions);
    cut(s);
    STAGE_UNTIL(s, s->connected == 2);
    EXPECT_EQ(s->resumed, 3);
    EXPECT_EQ(s->disconnected, 1);
    EXPECT(sl_consumer_held_count(s->consumer) == 3);
    EXPECT_EQ(sl_consumer_ack(s->consumer, &s->last, 1), 1);
    wake_up(s);
    STAGE_UNTIL(s, s->acked == 1);
    EXPECT(sl_consumer_held_count(s->consumer) == 2 && sl_consumer_unanswered_count(s->consumer) == 1);
    cut(s); /* before the answer */
    STAGE_UNTIL(s, s->acked == 2);
    EXPECT_EQ(s->resumed, 3);
    stage_free(s);
}

static void pause_for_an_hour(stage *s)
{
    EXPECT(s->consumer->retry.is_set);
    sl_timer_set(&s->consumer->retry, sl_loop_now_ns(s->consumer->loop) + UINT64_C(3600000000000));
}

/* What was finished while there was no connection would else be done again by somebody else. */
TEST(a_consumer_that_stops_in_a_pause_between_two_tries_comes_back_at_once_to_say_what_it_has_S1_4)
{
    stage *const s = stage_new();

    s->has_stop = true;
    s->event_count = 1;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->events == 1);
    cut(s);
    STAGE_UNTIL(s, s->disconnected == 1);
    pause_for_an_hour(s);
    EXPECT_EQ(sl_consumer_ack(s->consumer, &s->last, 1), 1);
    sl_consumer_stop(s->consumer, 1);
    STAGE_UNTIL(s, s->acked == 1);
    s->consumer->failures = 100; /* the server is away for long */
    s->consumer->confirmed_at_ns = sl_loop_now_ns(s->consumer->loop);
    cut(s);
    STAGE_UNTIL(s, s->disconnected == 2);
    EXPECT(s->consumer->retry.at_ns <= sl_loop_now_ns(s->consumer->loop) + UINT64_C(200000000));
    pause_for_an_hour(s);
    sl_consumer_leave(s->consumer);
    STAGE_UNTIL(s, s->acked == 2);
    stage_free(s);
}

/* A visit would only be given messages that nobody works on; a server without extensions charges them for it. */
TEST(a_consumer_that_holds_nothing_does_not_come_back_to_stop)
{
    stage *const s = stage_new();

    s->has_stop = true;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->connected == 1);
    cut(s);
    STAGE_UNTIL(s, s->disconnected == 1);
    pause_for_an_hour(s);
    sl_consumer_stop(s->consumer, 1);
    EXPECT(s->consumer->retry.at_ns > sl_loop_now_ns(s->consumer->loop) + UINT64_C(1800000000000));
    wake_up(s);
    sl_consumer_leave(s->consumer);
    wake_up(s);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->connected, 1);
    stage_free(s);
}

TEST(leaving_waits_for_answers_only_as_long_as_it_may)
{
    stage *const s = stage_new();

    s->has_stop = true;
    s->event_count = 1;
    s->acks_at_once = true; /* and the server never answers */
    stage_open(s, 0);
    STAGE_UNTIL(s, s->acked == 1);
    s->consumer->leave_ms = 50;
    sl_consumer_leave(s->consumer);
    wake_up(s);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_UNSETTLED);
    stage_free(s);
}

TEST(an_event_after_stopped_ends_a_consumer_with_a_sentence)
{
    stage *const s = stage_new();

    s->has_stop = s->answers_stop_wrongly = true;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->connected == 1);
    sl_consumer_stop(s->consumer, 0);
    wake_up(s);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_BROKEN);
    EXPECT(strstr(s->sentence, "after it had said that this consumer is stopped") != NULL);
    EXPECT_EQ(s->events, 0);
    stage_free(s);
}

TEST(an_event_larger_than_the_limit_ends_a_consumer_with_a_sentence)
{
    stage *const s = stage_new();

    s->event_count = 1;
    s->event_bytes = SL_CONSUMER_EVENT_BYTES_MAX + 1;
    stage_open(s, 0);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_BROKEN);
    EXPECT_EQ(s->events, 0);
    stage_free(s);
}

TEST(a_peer_that_is_no_server_is_given_up_in_time)
{
    stage *const s = stage_new();

    s->is_garbage = true;
    stage_open(s, 100);
    STAGE_UNTIL(s, s->ended == 1);
    EXPECT_EQ(s->status, SL_CONSUMER_UNREACHABLE);
    EXPECT(s->sentence[0] != 0); /* why the last try failed */
    EXPECT(s->disconnected > 0);
    stage_free(s);
}

TEST(options_of_a_consumer_that_are_wrong_are_refused_with_a_sentence)
{
    static const sl_consumer_handler no_event = { .ended = on_ended };
    static char long_name[300];
    static const sl_consumer_label label = { "", "v" };
    const sl_consumer_options fine = { .address = "h", .stream = "s", .group = "g", .handler = &user };
    sl_consumer_options rows[10];
    char problem[SL_CONSUMER_PROBLEM_BYTES];
    sl_consumer *consumer;

    memset(long_name, 'n', sizeof long_name - 1);
    for (size_t i = 0; i < 10; i++)
        rows[i] = fine;
    rows[0].address = NULL;
    rows[1].address = "what://";
    rows[2].stream = "";
    rows[3].group = NULL;
    rows[4].name = long_name;
    rows[5].name = "\xff";
    rows[6].labels = &label;
    rows[6].label_count = 1;
    rows[7].label_count = 9;
    rows[8].window = SL_CONSUMER_WINDOW_MAX + 1;
    rows[9].handler = &no_event;
    for (size_t i = 0; i < 10; i++) {
        problem[0] = '\0';
        EXPECT_EQ(sl_consumer_open(&rows[i], problem, sizeof problem, &consumer), SL_CONSUMER_INVALID);
        EXPECT(problem[0] != '\0');
    }
}

static void *wake_it(void *consumer)
{
    sl_consumer_wake(consumer);
    return NULL;
}

TEST(running_ends_by_time_and_by_a_call_from_another_thread)
{
    const sl_consumer_options options = { .address = "127.0.0.1:1",
                                          .stream = "s",
                                          .group = "g",
                                          .handler = &user,
                                          .ctx = calloc(1, sizeof(stage)) };
    char problem[SL_CONSUMER_PROBLEM_BYTES];
    sl_consumer *consumer;
    pthread_t thread;

    EXPECT_EQ(sl_consumer_open(&options, problem, sizeof problem, &consumer), SL_CONSUMER_OK);
    EXPECT(sl_consumer_fd(consumer) >= 0);
    EXPECT_EQ(sl_consumer_run(consumer, 0), 1);
    EXPECT(sl_consumer_wait_ms(consumer) >= 0); /* it is connecting, or waits to */
    EXPECT_EQ(sl_consumer_run(consumer, 1), 1);
    EXPECT_EQ(pthread_create(&thread, NULL, wake_it, consumer), 0);
    EXPECT_EQ(sl_consumer_run(consumer, -1), 1);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    sl_consumer_leave(consumer);
    EXPECT_EQ(sl_consumer_run(consumer, -1), 0);
    EXPECT_EQ(((stage *)options.ctx)->ended, 1);
    sl_consumer_close(consumer);
    free(options.ctx);
}
