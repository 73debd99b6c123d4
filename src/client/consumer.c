/* client/consumer.c — the public functions of a consumer: see include/sluice.h.
 *
 * All of them only note what is wanted; consumer_link.c carries it out at the end of the turn. */
#include "client/consumer_inside.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS UINT64_C(1000000)

/* --- options --- */

typedef struct text_rule {
    const char *text;
    size_t bytes_min, bytes_max;
    const char *missing, *too_long;
} text_rule;

static const char *wrong_text(const text_rule *rule)
{
    const sl_str text = sl_str_from(rule->text);

    if (text.bytes < rule->bytes_min)
        return rule->missing;
    if (text.bytes > rule->bytes_max)
        return rule->too_long;
    return sl_utf8_valid(text) ? NULL : "a name, a key or a value is not UTF-8";
}

static const char *wrong_names(const sl_consumer_options *options)
{
    const text_rule rules[] = {
        { options->stream, 1, SL_CONSUMER_STREAM_BYTES_MAX, "the name of the stream is missing",
          "the name of the stream is too long: at most 1,024 bytes" },
        { options->group, 1, SL_CONSUMER_GROUP_BYTES_MAX, "the name of the group is missing",
          "the name of the group is too long: at most 512 bytes" },
        { options->name, 0, SL_CONSUMER_NAME_BYTES_MAX, "",
          "the name of the consumer is too long: at most 256 bytes" },
    };
    const char *why = NULL;

    for (size_t i = 0; i < SL_COUNT_OF(rules) && why == NULL; i++)
        why = wrong_text(&rules[i]);
    return why;
}

static const char *wrong_labels(const sl_consumer_options *options)
{
    const char *const too_long = "a label is too long: key and value have at most 256 bytes each";
    const char *why = NULL;

    if (options->label_count > SL_CONSUMER_LABELS_MAX)
        return "a consumer has at most 8 labels";
    for (size_t i = 0; i < options->label_count && why == NULL; i++) {
        const text_rule key = { options->labels[i].key, 1, SL_CONSUMER_LABEL_BYTES_MAX,
                                "a label must have a key", too_long };
        const text_rule value = { options->labels[i].value, 0, SL_CONSUMER_LABEL_BYTES_MAX, "", too_long };

        why = wrong_text(&key);
        if (why == NULL)
            why = wrong_text(&value);
    }
    return why;
}

static const char *wrong_options(const sl_consumer_options *options)
{
    const char *why = wrong_names(options);

    if (why == NULL)
        why = wrong_labels(options);
    if (why != NULL)
        return why;
    if (options->handler == NULL || options->handler->event == NULL)
        return "the handler for events is missing";
    if (options->window > SL_CONSUMER_WINDOW_MAX)
        return "the window is too large: at most 4,000 messages";
    if (options->reconnect_ms > INT32_MAX)
        return "the reconnect time is too long";
    if (options->finished_count > SL_CONSUMER_FINISHED_MAX)
        return "too many finished messages of an earlier process: at most 8,192";
    return options->address == NULL ? "the address of the server is missing" : NULL;
}

/* --- life --- */

static void on_turn_end(void *ctx)
{
    consumer_turn_end(ctx);
}

static void on_wake(void *ctx)
{
    ((sl_consumer *)ctx)->is_woken = true;
}

static void on_late(void *ctx)
{
    ((sl_consumer *)ctx)->is_late = true;
}

static sl_err take_loop(sl_consumer *consumer, sl_loop *loop)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end, .on_wake = on_wake };

    consumer->loop = loop;
    consumer->loop_is_own = loop == NULL;
    return loop == NULL ? sl_loop_new(consumer->alloc, &handler, consumer, &consumer->loop) : SL_OK;
}

/* How servers without extensions list this consumer. HTTP/2 takes not every text. */
static void name_connection(sl_consumer *consumer)
{
    sl_client_address *const address = &consumer->address;
    const sl_str name = consumer->consuming.name;
    bool is_plain = true;

    for (size_t i = 0; i < name.bytes; i++)
        is_plain = is_plain && name.data[i] > ' ' && name.data[i] <= '~';
    if (address->connection_name[0] == '\0' && is_plain && name.bytes < sizeof address->connection_name) {
        memcpy(address->connection_name, name.data, name.bytes);
        address->connection_name[name.bytes] = '\0';
    }
}

typedef struct randomness {
    sl_hash_seed seed;
    uint8_t name[16];
    uint64_t jitter;
} randomness;

static sl_err make(sl_consumer *consumer, sl_loop *loop, const sl_consumer_options *options)
{
    char random_name[SL_UUID_TEXT_BYTES + 1];
    sl_consumer_options named = *options;
    randomness random;
    sl_err err;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return SL_ERR_IO;
    sl_uuid_format(sl_uuid_v4(random.name), random_name);
    if (options->name == NULL || options->name[0] == '\0')
        named.name = random_name;
    consumer->random = random.jitter | 1;
    consumer->connect_timeout_ms =
        options->connect_timeout_ms == 0 ? SL_CONSUMER_CONNECT_MS_DEFAULT : options->connect_timeout_ms;
    consumer->retry_ms_max =
        options->retry_ms_max == 0 ? SL_CONSUMER_RETRY_MS_MAX_DEFAULT : options->retry_ms_max;
    consumer->give_up_ms = options->give_up_ms;
    consumer->leave_ms = options->leave_ms == 0 ? SL_CONSUMER_LEAVE_MS_DEFAULT : options->leave_ms;
    err = sl_consuming_init(&consumer->consuming, consumer->alloc, &named, random.seed);
    if (err == SL_OK)
        err = take_loop(consumer, loop);
    if (err != SL_OK)
        return err;
    name_connection(consumer);
    consumer_link_init(consumer);
    sl_timer_init(&consumer->run, consumer->loop, on_late, consumer);
    return SL_OK;
}

static void destroy(sl_consumer *consumer)
{
    if (consumer->loop != NULL) {
        consumer_link_done(consumer);
        sl_timer_stop(&consumer->run);
    }
    if (consumer->loop_is_own)
        sl_loop_free(consumer->loop);
    sl_consuming_done(&consumer->consuming);
    explicit_bzero(&consumer->address, sizeof consumer->address);
    sl_alloc_give(consumer->alloc, consumer, sizeof *consumer);
}

static sl_consumer_status say(sl_text *problem, sl_consumer_status status, const char *sentence)
{
    sl_text_add(problem, sentence);
    return status;
}

static sl_err take_address(sl_consumer *consumer, const sl_consumer_options *options,
                           const sl_client_address *address, sl_text *problem)
{
    if (address == NULL)
        return sl_client_address_parse(sl_str_from(options->address), problem, &consumer->address);
    consumer->address = *address;
    return SL_OK;
}

sl_consumer_status sl_consumer_make(sl_loop *loop, const sl_consumer_options *options,
                                    const sl_client_address *address, char *problem, size_t problem_bytes,
                                    sl_consumer **ret_consumer)
{
    const char *const why = wrong_options(options);
    sl_consumer *consumer;
    sl_text text;
    sl_err err;

    sl_text_init(&text, problem, problem_bytes);
    if (why != NULL)
        return say(&text, SL_CONSUMER_INVALID, why);
    consumer = sl_alloc_take(&sl_alloc_default, sizeof *consumer);
    if (consumer == NULL)
        return say(&text, SL_CONSUMER_NOMEM, "out of memory");
    memset(consumer, 0, sizeof *consumer);
    consumer->alloc = &sl_alloc_default;
    err = take_address(consumer, options, address, &text);
    if (err == SL_OK)
        err = make(consumer, loop, options);
    if (err == SL_OK) {
        *ret_consumer = consumer;
        return SL_CONSUMER_OK;
    }
    destroy(consumer);
    if (err == SL_ERR_INVALID || err == SL_ERR_TOO_LARGE)
        return SL_CONSUMER_INVALID; /* the address, and what is wrong with it was said */
    return say(&text, err == SL_ERR_NOMEM ? SL_CONSUMER_NOMEM : SL_CONSUMER_SYSTEM, sl_err_text(err));
}

sl_err sl_consumer_recall(sl_consumer *consumer, const sl_consumer_finished *finished, size_t count)
{
    return sl_consuming_recall(&consumer->consuming, finished, count);
}

void sl_consumer_begin(sl_consumer *consumer)
{
    consumer_link_start(consumer);
}

sl_consumer_status consumer_open_in(sl_loop *loop, const sl_consumer_options *options, char *problem,
                                    size_t problem_bytes, sl_consumer **ret_consumer)
{
    const sl_consumer_status status =
        sl_consumer_make(loop, options, NULL, problem, problem_bytes, ret_consumer);

    if (status == SL_CONSUMER_OK)
        sl_consumer_begin(*ret_consumer);
    return status;
}

sl_consumer_status sl_consumer_open(const sl_consumer_options *options, char *problem, size_t problem_bytes,
                                    sl_consumer **ret_consumer)
{
    return consumer_open_in(NULL, options, problem, problem_bytes, ret_consumer);
}

void sl_consumer_close(sl_consumer *consumer)
{
    if (consumer != NULL)
        destroy(consumer);
}

/* --- turns --- */

void consumer_turn_end(sl_consumer *consumer)
{
    consumer->is_dirty = false;
    consumer_link_turn_end(consumer);
}

int sl_consumer_run(sl_consumer *consumer, int timeout_ms)
{
    assert(consumer->loop_is_own);
    if (consumer->state == CONSUMER_LINK_ENDED)
        return 0;
    consumer->is_late = timeout_ms == 0;
    if (timeout_ms > 0)
        sl_timer_set(&consumer->run,
                     sl_add_sat_u64(sl_loop_now_ns(consumer->loop), (uint64_t)timeout_ms * MS_NS));
    /* What was said since the last turn must not wait for something to happen. */
    consumer_turn_end(consumer);
    do {
        sl_loop_turn(consumer->loop,
                     !consumer->is_late && !consumer->is_woken && consumer->state != CONSUMER_LINK_ENDED);
    } while (!consumer->is_late && !consumer->is_woken && consumer->state != CONSUMER_LINK_ENDED);
    sl_timer_stop(&consumer->run);
    consumer->is_woken = false;
    return consumer->state != CONSUMER_LINK_ENDED;
}

void sl_consumer_wake(sl_consumer *consumer)
{
    sl_loop_wake(consumer->loop);
}

int sl_consumer_fd(const sl_consumer *consumer)
{
    return sl_loop_fd(consumer->loop);
}

int sl_consumer_wait_ms(sl_consumer *consumer)
{
    return consumer->is_dirty ? 0 : sl_loop_wait_ms(consumer->loop);
}

/* --- about messages --- */

size_t sl_consumer_ack(sl_consumer *consumer, const sl_consumer_id *ids, size_t count)
{
    consumer->is_dirty = true;
    return sl_consuming_settle(&consumer->consuming, ids, count, SL_HOLDING_ACK, NULL);
}

size_t sl_consumer_nack(sl_consumer *consumer, const sl_consumer_id *ids, size_t count,
                        sl_consumer_nack_action action, const char *reason)
{
    if (action != SL_CONSUMER_NACK_PARK && action != SL_CONSUMER_NACK_RETRY &&
        action != SL_CONSUMER_NACK_SKIP)
        return 0;
    consumer->is_dirty = true;
    return sl_consuming_nack(&consumer->consuming, ids, count, (int32_t)action, reason);
}

size_t sl_consumer_nack_later(sl_consumer *consumer, const sl_consumer_id *ids, size_t count,
                              const char *reason, uint32_t delay_ms)
{
    consumer->is_dirty = true;
    return sl_consuming_nack_later(&consumer->consuming, ids, count, SL_WIRE_NACK_RETRY, reason, delay_ms);
}

size_t sl_consumer_release(sl_consumer *consumer, const sl_consumer_id *ids, size_t count)
{
    consumer->is_dirty = true;
    return sl_consuming_settle(&consumer->consuming, ids, count, SL_HOLDING_RELEASE, NULL);
}

size_t sl_consumer_extend(sl_consumer *consumer, const sl_consumer_id *ids, size_t count, uint32_t lease_ms)
{
    consumer->is_dirty = true;
    return sl_consuming_extend(&consumer->consuming, ids, count, lease_ms, sl_loop_now_ns(consumer->loop));
}

size_t sl_consumer_started(sl_consumer *consumer, const sl_consumer_id *ids, size_t count)
{
    consumer->is_dirty = true;
    return sl_consuming_started(&consumer->consuming, ids, count);
}

void sl_consumer_stop(sl_consumer *consumer, int hand_back_unstarted)
{
    consumer->is_dirty = true;
    sl_consuming_stop(&consumer->consuming, hand_back_unstarted != 0);
    consumer_link_cut_pause(consumer);
}

void sl_consumer_leave(sl_consumer *consumer)
{
    consumer->is_dirty = true;
    consumer_link_leave(consumer);
    consumer_link_cut_pause(consumer);
}

void sl_consumer_add_hint(const sl_consumer *consumer, const sl_client_place *place, sl_text *text)
{
    if (consumer->last_end.problem != NULL)
        sl_client_add_hint(&consumer->last_end, place, consumer->address.tls, text);
}

bool sl_consumer_has_ended(const sl_consumer *consumer)
{
    return consumer->is_final;
}

size_t sl_consumer_held_count(const sl_consumer *consumer)
{
    return consumer->consuming.holding.held_count;
}

size_t sl_consumer_unanswered_count(const sl_consumer *consumer)
{
    return consumer->consuming.holding.user_count;
}

/* --- words --- */

const char *sl_consumer_status_text(sl_consumer_status status)
{
    switch (status) {
    case SL_CONSUMER_OK: return "left";
    case SL_CONSUMER_INVALID: return "not valid";
    case SL_CONSUMER_NOMEM: return "out of memory";
    case SL_CONSUMER_SYSTEM: return "refused by the system";
    case SL_CONSUMER_REFUSED: return "refused by the server";
    case SL_CONSUMER_BROKEN: return "the server broke the contract";
    case SL_CONSUMER_UNREACHABLE: return "unreachable";
    case SL_CONSUMER_UNSETTLED: return "left without all answers";
    }
    return "unknown";
}

const char *sl_consumer_outcome_text(sl_consumer_outcome outcome)
{
    switch (outcome) {
    case SL_CONSUMER_SETTLED: return "settled";
    case SL_CONSUMER_RELEASED: return "released";
    case SL_CONSUMER_LOST: return "lost";
    case SL_CONSUMER_UNSURE: return "unsure";
    case SL_CONSUMER_SENT: return "sent";
    }
    return "unknown";
}
