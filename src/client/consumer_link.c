/* client/consumer_link.c — the connection of a consumer: made, used, lost, made again.
 *
 * On each new connection the server is asked first what it can do (S1.28): it may be another one than before, older or newer. Then
 * the call is begun, and client/consuming.h says what it is used for. Whatever ends the call, the connection is ended with it:
 * there is one way to begin, and so only one to test.
 *
 * Coming back: at once at first, so that started work is still kept for us, then more and more slowly up to a few seconds, with
 * some chance in it, because all consumers of a server that was restarted come back together.
 *
 * Leaving: acks that were sent must have arrived before the call goes down (S1.21). With extensions their answers say so. Without,
 * a question is sent behind them on the same connection: its answer comes from a server that has got everything before it. Only then
 * the user hears of their end: whoever stops waits for that, and knows what it could not wait for. */
#include "client/consumer_inside.h"

#include "base/cleanup.h"
#include "wire/server_control.h"

#include <assert.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

#define FEATURES_PATH "/event_store.client.server_features.ServerFeatures/GetSupportedMethods"
#define READ_PATH     "/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read"
#define READ_SERVICE  "event_store.client.persistent_subscriptions.persistentsubscriptions"

enum {
    GOING_RETRY_MS_MAX = 200,    /* the longest pause between two tries of a consumer that has stopped */
    STEADY_MS = 250,             /* a connection that held so long was a good one */
    CLOSING_MS_MAX = 1000,       /* for our last words to be read */
    FEATURES_MS_MAX = 10 * 1000, /* besides the time to connect */
    PROOF_MS_MAX = 5000,
    REJOIN_MS = 250, /* so long a server that has drained us may take to end the call */
    FEATURES_BYTES_MAX = 256 * 1024,
    FEATURES_MEMORY_MAX = 1024 * 1024
};

static uint64_t now_ns(const sl_consumer *consumer)
{
    return sl_loop_now_ns(consumer->loop);
}

static void set_sentence(sl_consumer *consumer, sl_str sentence)
{
    sl_text text;

    if (sentence.data == consumer->sentence)
        return; /* it is there already, and would be overwritten by its own beginning */
    sl_text_init(&text, consumer->sentence, sizeof consumer->sentence);
    sl_text_add_str(&text, sentence);
}

/* The first reason counts. */
static void set_final(sl_consumer *consumer, sl_consumer_status status, sl_str sentence)
{
    if (consumer->is_final)
        return;
    consumer->is_final = true;
    consumer->status = status;
    set_sentence(consumer, sentence);
}

/* --- the end --- */

static void end(sl_consumer *consumer)
{
    sl_consuming *const consuming = &consumer->consuming;

    if (consumer->state == CONSUMER_LINK_ENDED)
        return;
    consumer->state = CONSUMER_LINK_ENDED;
    sl_timer_stop(&consumer->retry);
    sl_timer_stop(&consumer->leave);
    sl_timer_stop(&consumer->recall);
    sl_timer_stop(&consumer->rejoin);
    sl_consuming_over(consuming);
    sl_consuming_abandon(consuming);
    if (consuming->handler.ended != NULL)
        consuming->handler.ended(consuming->ctx, consumer->status, consumer->sentence);
}

static void set_left(sl_consumer *consumer)
{
    const bool is_quiet = sl_consuming_is_quiet(&consumer->consuming);

    set_final(consumer, is_quiet ? SL_CONSUMER_OK : SL_CONSUMER_UNSETTLED,
              is_quiet ? SL_STR("left as it was asked to")
                       : SL_STR("left before everything that was said was answered"));
}

/* --- coming back --- */

/* Who is about to go has little time, and what is not told before is done again by somebody else. */
static bool is_going(const sl_consumer *consumer)
{
    return consumer->consuming.stop_wanted || consumer->is_leaving;
}

static uint32_t next_retry_ms(sl_consumer *consumer)
{
    const uint32_t shift = consumer->failures < 8 ? consumer->failures : 8;
    const uint64_t max_ms =
        is_going(consumer) ? sl_min_u64(GOING_RETRY_MS_MAX, consumer->retry_ms_max) : consumer->retry_ms_max;
    const uint64_t delay_ms = sl_min_u64((uint64_t)SL_CONSUMER_RETRY_MS_MIN << shift, max_ms);

    consumer->random ^= consumer->random << 13;
    consumer->random ^= consumer->random >> 7;
    consumer->random ^= consumer->random << 17;
    return (uint32_t)(delay_ms / 2 + consumer->random % (delay_ms / 2 + 1));
}

static bool has_given_up(const sl_consumer *consumer)
{
    return consumer->give_up_ms != 0 &&
           now_ns(consumer) - consumer->alone_since_ns >= consumer->give_up_ms * MS_NS;
}

/* There is no connection any more, or there never was one. */
static void alone(sl_consumer *consumer)
{
    const sl_consuming *const consuming = &consumer->consuming;
    uint32_t retry_ms;

    if (consumer->state == CONSUMER_LINK_ENDED)
        return;
    consumer->state = CONSUMER_LINK_IDLE;
    sl_timer_stop(&consumer->hurry);
    if (consumer->confirmed_at_ns != 0) {
        if (now_ns(consumer) - consumer->confirmed_at_ns >= STEADY_MS * MS_NS)
            consumer->failures = 0;
        consumer->confirmed_at_ns = 0;
        consumer->alone_since_ns = now_ns(consumer);
    }
    if (!consumer->is_final && has_given_up(consumer))
        set_final(consumer, SL_CONSUMER_UNREACHABLE, sl_str_from(consumer->sentence));
    if (consumer->is_final) {
        end(consumer);
        return;
    }
    retry_ms = next_retry_ms(consumer);
    consumer->failures++;
    sl_timer_set(&consumer->retry, now_ns(consumer) + retry_ms * MS_NS);
    if (consuming->handler.disconnected != NULL)
        consuming->handler.disconnected(consuming->ctx, consumer->sentence, retry_ms);
}

static void on_client_end(void *ctx, const sl_client_end *end_of_client)
{
    sl_consumer *const consumer = ctx;

    if (!consumer->is_final && consumer->state != CONSUMER_LINK_CLOSING) {
        set_sentence(consumer, sl_str_from(end_of_client->problem));
        if (consumer->confirmed_at_ns == 0) /* else it was the right server, and its address is right */
            consumer->last_end = *end_of_client;
    }
    alone(consumer);
}

/* No call is left; the connection goes. */
static void close_connection(sl_consumer *consumer)
{
    if (consumer->state == CONSUMER_LINK_ENDED || consumer->state == CONSUMER_LINK_CLOSING)
        return;
    consumer->state = CONSUMER_LINK_CLOSING;
    sl_timer_set(&consumer->hurry, now_ns(consumer) + CLOSING_MS_MAX * MS_NS);
    sl_client_shutdown(consumer->client);
}

/* The server does not read our goodbye. */
static void on_hurry(void *ctx)
{
    sl_consumer *const consumer = ctx;

    sl_client_free(SL_TAKE_PTR(consumer->client));
    alone(consumer);
}

/* --- the call --- */

/* What no second try will change. */
static bool is_refusal(sl_status status)
{
    return status == SL_STATUS_NOT_FOUND || status == SL_STATUS_PERMISSION_DENIED ||
           status == SL_STATUS_UNAUTHENTICATED || status == SL_STATUS_INVALID_ARGUMENT ||
           status == SL_STATUS_UNIMPLEMENTED;
}

static void judge_end(sl_consumer *consumer, const sl_client_result *result)
{
    const sl_str message =
        result->message.bytes > 0 ? result->message : sl_str_from(sl_status_text(result->status));

    if (result->kind == SL_CALL_FINISHED && is_refusal(result->status))
        set_final(consumer, SL_CONSUMER_REFUSED, message);
    else if (result->kind == SL_CALL_REFUSED)
        set_final(consumer, SL_CONSUMER_BROKEN, message);
    else if (!consumer->is_final)
        set_sentence(consumer, message);
}

static void on_recall_over(void *ctx)
{
    sl_consuming_forget_recalled(&((sl_consumer *)ctx)->consuming);
}

static void confirmed(sl_consumer *consumer)
{
    const sl_consuming *const consuming = &consumer->consuming;

    consumer->confirmed_at_ns = now_ns(consumer);
    if (consuming->nth == 1 && consuming->holding.recalled_count > 0)
        sl_timer_set(&consumer->recall, now_ns(consumer) + SL_CONSUMER_FINISHED_MS_MAX * MS_NS);
}

static void on_read_message(void *ctx, sl_str message)
{
    sl_consumer *const consumer = ctx;
    sl_consuming *const consuming = &consumer->consuming;
    const uint32_t nth = consuming->nth;

    if (consumer->is_final)
        return;
    if (!sl_consuming_receive(consuming, message, now_ns(consumer))) {
        set_final(consumer, SL_CONSUMER_BROKEN, sl_str_from(consuming->problem));
        sl_client_call_cancel(&consumer->read);
        return;
    }
    if (consuming->nth != nth)
        confirmed(consumer);
}

static void on_read_end(void *ctx, const sl_client_result *result)
{
    sl_consumer *const consumer = ctx;

    judge_end(consumer, result);
    sl_consuming_over(&consumer->consuming);
    if (result->kind != SL_CALL_CONNECTION_LOST)
        close_connection(consumer);
}

static void begin_read(sl_consumer *consumer)
{
    static const sl_client_call_handler handler = { .on_message = on_read_message, .on_end = on_read_end };
    const sl_client_request request = { .path = SL_STR(READ_PATH),
                                        .message_bytes_max = SL_CONSUMER_EVENT_BYTES_MAX,
                                        .handler = &handler,
                                        .ctx = consumer };
    const sl_err err = sl_client_call_start(consumer->client, &consumer->read, &request);

    if (err != SL_OK) {
        set_sentence(consumer, sl_str_from(sl_err_text(err)));
        close_connection(consumer);
        return;
    }
    consumer->state = CONSUMER_LINK_READING;
    consumer->is_proved = false;
    sl_consuming_begin(&consumer->consuming, consumer->has_stop);
    consumer->consuming.keeps_delays = consumer->has_stop && consumer->has_delays;
}

/* --- what can the server do? --- */

static bool names(const sl_supported_methods *methods, sl_str feature)
{
    for (size_t i = 0; i < methods->method_count; i++) {
        const sl_supported_method *const method = &methods->methods[i];
        if (!sl_str_equal(method->service, SL_STR(READ_SERVICE)) ||
            !sl_str_equal(method->method, SL_STR("read")))
            continue;
        for (size_t k = 0; k < method->feature_count; k++)
            if (sl_str_equal(method->features[k], feature))
                return true;
    }
    return false;
}

static void on_features(void *ctx, sl_str message)
{
    sl_consumer *const consumer = ctx;
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    sl_supported_methods methods;
    const char *reason;

    sl_arena_init(&arena, consumer->alloc, (sl_arena_sizes){ 4096, FEATURES_MEMORY_MAX });
    if (sl_supported_methods_decode(message, &arena, &methods, &reason) != SL_OK)
        return;
    consumer->has_stop = consumer->has_stop || names(&methods, SL_STR("stop"));
    consumer->has_delays = consumer->has_delays || names(&methods, SL_STR("nack_delay"));
}

/* A server that does not know the question is an old one, and can be used as such. */
static void on_features_end(void *ctx, const sl_client_result *result)
{
    sl_consumer *const consumer = ctx;
    const bool is_answer = result->kind == SL_CALL_FINISHED &&
                           (result->status == SL_STATUS_OK || result->status == SL_STATUS_UNIMPLEMENTED);

    if (is_answer && !consumer->is_final) {
        begin_read(consumer);
        return;
    }
    judge_end(consumer, result);
    if (result->kind != SL_CALL_CONNECTION_LOST)
        close_connection(consumer);
}

static sl_err ask_features(sl_consumer *consumer, sl_client_call *call, const sl_client_call_handler *handler,
                           uint64_t timeout_ms)
{
    const sl_client_request request = { .path = SL_STR(FEATURES_PATH),
                                        .timeout_ns = timeout_ms * MS_NS,
                                        .message_bytes_max = FEATURES_BYTES_MAX,
                                        .handler = handler,
                                        .ctx = consumer };
    const sl_str nothing = { 0 };
    sl_err err = sl_client_call_start(consumer->client, call, &request);

    if (err != SL_OK)
        return err;
    (void)sl_client_call_send(call, &nothing,
                              1); /* fails only for want of memory; then the call runs into its time limit */
    sl_client_call_half_close(call);
    return SL_OK;
}

/* --- connecting --- */

static sl_err make_client(sl_consumer *consumer)
{
    static const sl_client_handler handler = { .on_end = on_client_end };
    const sl_client_options options = { .alloc = consumer->alloc,
                                        .address = &consumer->address,
                                        .connect_timeout_ns = consumer->connect_timeout_ms * MS_NS,
                                        .handler = &handler,
                                        .ctx = consumer };
    sl_text problem;

    if (consumer->client != NULL)
        return SL_OK;
    sl_text_init(&problem, consumer->sentence, sizeof consumer->sentence);
    return sl_client_new(consumer->loop, &options, &problem, &consumer->client);
}

static sl_err connect_and_ask(sl_consumer *consumer)
{
    static const sl_client_call_handler handler = { .on_message = on_features, .on_end = on_features_end };
    sl_err err = sl_client_connect(consumer->client);

    if (err != SL_OK)
        return err;
    consumer->state = CONSUMER_LINK_ASKING;
    consumer->has_stop = consumer->has_delays = false;
    err = ask_features(consumer, &consumer->features, &handler,
                       (uint64_t)consumer->connect_timeout_ms + FEATURES_MS_MAX);
    if (err != SL_OK)
        close_connection(consumer);
    return SL_OK;
}

/* A file of certificates that cannot be read, or a host that cannot be one, will not become right by waiting. */
static void on_retry(void *ctx)
{
    sl_consumer *const consumer = ctx;
    sl_err err = make_client(consumer);

    consumer->last_end.problem = NULL;
    if (err == SL_OK) {
        err = connect_and_ask(consumer);
        if (err != SL_OK)
            set_sentence(consumer, sl_str_from("the address of the server cannot be used"));
    }
    if (err == SL_OK)
        return;
    if (err == SL_ERR_INVALID)
        set_final(consumer, SL_CONSUMER_INVALID, sl_str_from(consumer->sentence));
    alone(consumer);
}

/* --- leaving --- */

static void on_leave_over(void *ctx)
{
    ((sl_consumer *)ctx)->leave_is_over = true;
}

/* Whoever has nothing to tell, and will have nothing, need not come back for that. */
void consumer_link_cut_pause(sl_consumer *consumer)
{
    const sl_consuming *const consuming = &consumer->consuming;
    const bool is_needed = consuming->holding.held_count > 0 || !sl_consuming_is_quiet(consuming);

    if (consumer->state == CONSUMER_LINK_IDLE && consumer->retry.is_set && is_needed)
        sl_timer_set(&consumer->retry, now_ns(consumer));
}

void consumer_link_leave(sl_consumer *consumer)
{
    if (consumer->is_leaving || consumer->state == CONSUMER_LINK_ENDED)
        return;
    consumer->is_leaving = true;
    sl_timer_set(&consumer->leave, now_ns(consumer) + consumer->leave_ms * MS_NS);
}

static bool has_arrived(const sl_consumer *consumer)
{
    const sl_consuming *const consuming = &consumer->consuming;

    if (!sl_consuming_is_quiet(consuming))
        return false;
    if (consumer->state != CONSUMER_LINK_READING || consuming->extensions || consuming->sent_count == 0)
        return true;
    return consumer->is_proved && consumer->proof_sent_count == consuming->sent_count;
}

static void leave_now(sl_consumer *consumer)
{
    set_left(consumer);
    switch (consumer->state) {
    case CONSUMER_LINK_IDLE: end(consumer); break;
    case CONSUMER_LINK_ASKING: sl_client_call_cancel(&consumer->features); break;
    case CONSUMER_LINK_READING: sl_client_call_cancel(&consumer->read); break;
    case CONSUMER_LINK_CLOSING:
    case CONSUMER_LINK_ENDED: break;
    }
}

/* --- proof without extensions --- */

static void on_proof_end(void *ctx, const sl_client_result *result)
{
    sl_consumer *const consumer = ctx;
    const bool is_same = consumer->proof_sent_count == consumer->consuming.sent_count;

    consumer->proof_is_out = false;
    consumer->is_proved = result->kind == SL_CALL_FINISHED && is_same;
    if (consumer->is_proved)
        sl_consuming_proved(&consumer->consuming);
}

static void look_for_proof(sl_consumer *consumer)
{
    static const sl_client_call_handler handler = { .on_end = on_proof_end };
    const sl_consuming *const consuming = &consumer->consuming;
    const bool is_wanted =
        consumer->state == CONSUMER_LINK_READING && !consuming->extensions &&
        (sl_consuming_wants_proof(consuming) || (consumer->is_leaving && sl_consuming_is_quiet(consuming)));

    if (!is_wanted || consumer->proof_is_out)
        return;
    if (consumer->is_proved && consumer->proof_sent_count == consuming->sent_count) {
        sl_consuming_proved(&consumer->consuming);
        return;
    }
    consumer->proof_sent_count = consuming->sent_count;
    consumer->proof_is_out = ask_features(consumer, &consumer->proof, &handler, PROOF_MS_MAX) == SL_OK;
}

/* --- the end of a turn --- */

static sl_err reserve(void *ctx, size_t bytes, uint8_t **ret_data)
{
    return sl_client_call_reserve(&((sl_consumer *)ctx)->read, bytes, ret_data);
}

static void commit(void *ctx, size_t bytes)
{
    sl_client_call_commit(&((sl_consumer *)ctx)->read, bytes);
}

static void flush(sl_consumer *consumer)
{
    const sl_consuming_output output = { .reserve = reserve, .commit = commit, .ctx = consumer };
    sl_err err;

    if (consumer->state != CONSUMER_LINK_READING || consumer->is_final)
        return;
    err = sl_consuming_flush(&consumer->consuming, &output);
    if (err == SL_OK || err == SL_ERR_FULL) /* on_room comes in a turn, and each turn has an end */
        return;
    set_final(consumer, SL_CONSUMER_NOMEM, sl_str_from(sl_err_text(err)));
    sl_client_call_cancel(&consumer->read);
}

/* The server has stopped and drained us, not because it goes down, or it would have ended the call: somebody else has our place in the
 * group. A new call gets the next one that is free. */
static bool is_set_aside(const sl_consumer *consumer)
{
    const sl_consuming *const consuming = &consumer->consuming;

    return consumer->state == CONSUMER_LINK_READING && consuming->is_drained && !consuming->stop_wanted &&
           consuming->stopped_by == SL_CONSUMER_BY_SERVER && !consumer->is_final;
}

static void on_rejoin(void *ctx)
{
    sl_consumer *const consumer = ctx;

    if (is_set_aside(consumer))
        sl_client_call_cancel(&consumer->read);
}

static void look_at_rejoin(sl_consumer *consumer)
{
    if (!is_set_aside(consumer))
        sl_timer_stop(&consumer->rejoin);
    else if (!consumer->rejoin.is_set)
        sl_timer_set(&consumer->rejoin, now_ns(consumer) + REJOIN_MS * MS_NS);
}

/* Drained without a connection: nothing is worth connecting for. */
static void look_at_retry(sl_consumer *consumer)
{
    if (consumer->state == CONSUMER_LINK_IDLE && consumer->consuming.drained_told)
        sl_timer_stop(&consumer->retry);
}

void consumer_link_turn_end(sl_consumer *consumer)
{
    if (consumer->state == CONSUMER_LINK_ENDED)
        return;
    sl_consuming_step(&consumer->consuming);
    flush(consumer);
    look_for_proof(consumer);
    look_at_retry(consumer);
    look_at_rejoin(consumer);
    if (consumer->is_leaving && !consumer->is_final && (has_arrived(consumer) || consumer->leave_is_over))
        leave_now(consumer);
}

/* --- life --- */

void consumer_link_init(sl_consumer *consumer)
{
    sl_timer_init(&consumer->retry, consumer->loop, on_retry, consumer);
    sl_timer_init(&consumer->leave, consumer->loop, on_leave_over, consumer);
    sl_timer_init(&consumer->hurry, consumer->loop, on_hurry, consumer);
    sl_timer_init(&consumer->rejoin, consumer->loop, on_rejoin, consumer);
    sl_timer_init(&consumer->recall, consumer->loop, on_recall_over, consumer);
    consumer->alone_since_ns = now_ns(consumer);
}

void consumer_link_done(sl_consumer *consumer)
{
    consumer->state = CONSUMER_LINK_ENDED; /* calls that end now call nobody back */
    consumer->consuming.handler = (sl_consumer_handler){ 0 };
    consumer->is_final = true;
    sl_client_free(SL_TAKE_PTR(consumer->client));
    sl_timer_stop(&consumer->retry);
    sl_timer_stop(&consumer->leave);
    sl_timer_stop(&consumer->hurry);
    sl_timer_stop(&consumer->recall);
    sl_timer_stop(&consumer->rejoin);
}

void consumer_link_start(sl_consumer *consumer)
{
    sl_timer_set(&consumer->retry, now_ns(consumer));
}
