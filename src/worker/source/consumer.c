/* worker/source/consumer.c — the source sluice://, kurrentdb:// and esdb://: what the worker says goes to the consumer engine. */
#include "worker/source/consumer_inside.h"

#include "base/cleanup.h"

#include <cjson/cJSON.h>

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS UINT64_C(1000000)

static consumer_source *consumer_of(sl_source *source)
{
    return SL_CONTAINER_OF(source, consumer_source, base);
}

static consumer_seat *seat_of(const sl_job *job)
{
    return job->source_data;
}

/* What was said leaves at the end of the turn; should that be over, there is another one. */
static void kick(consumer_source *c)
{
    if (!c->kick.is_set)
        sl_timer_set(&c->kick, sl_loop_now_ns(c->loop));
}

static void on_kick(void *ctx)
{
    (void)ctx; /* that there is a turn is all */
}

/* --- what an earlier process was done with --- */

static bool has_room(consumer_source *c)
{
    const size_t capacity = c->finished_capacity == 0 ? 16 : 2 * c->finished_capacity;
    sl_consumer_finished *larger;

    if (c->finished_count < c->finished_capacity)
        return true;
    if (c->finished_count == SL_CONSUMER_FINISHED_MAX)
        return false;
    larger = sl_alloc_take(&sl_alloc_default, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    if (c->finished_count > 0)
        memcpy(larger, c->finished, c->finished_count * sizeof *larger);
    sl_alloc_give(&sl_alloc_default, c->finished, c->finished_capacity * sizeof *larger);
    c->finished = larger;
    c->finished_capacity = capacity;
    return true;
}

/* With a closing zero, and none inside. */
static void copy_reason(sl_str reason, char *into, size_t capacity)
{
    sl_text text;

    sl_text_init(&text, into, capacity);
    sl_text_add_str(&text, reason);
    for (size_t i = 0; i < text.bytes; i++)
        if (into[i] == '\0')
            into[i] = ' ';
}

/* Until start(). NULL: there is none, or no memory for it; then it is not known. */
static const char *keep_reason(consumer_source *c, sl_str reason)
{
    const size_t bytes = sizeof(consumer_reason) + reason.bytes + 1;
    consumer_reason *const kept = reason.bytes == 0 ? NULL : sl_alloc_take(&sl_alloc_default, bytes);

    if (kept == NULL)
        return NULL;
    kept->memory_bytes = bytes;
    copy_reason(reason, kept->text, reason.bytes + 1);
    sl_list_push_back(&c->finished_reasons, &kept->node);
    return kept->text;
}

/* Without memory it is not said: it stays in the ack file, as that of a process that never connected. */
static void consumer_recall(sl_source *source, sl_job *job, const sl_settle *settle)
{
    consumer_source *const c = consumer_of(source);
    const bool is_known = settle->kind == SL_SETTLE_ACK || settle->kind == SL_SETTLE_PARK;
    consumer_seat *const seat =
        is_known && !c->is_started && has_room(c) ? consumer_source_seat(c, job) : NULL;

    if (seat == NULL)
        return;
    seat->said_number = ++c->said_number;
    seat->said = settle->kind;
    c->finished[c->finished_count++] = (sl_consumer_finished){ .id = consumer_source_id(job),
                                                               .revision = job->message.revision,
                                                               .lease_token = job->message.token,
                                                               .is_park = settle->kind == SL_SETTLE_PARK,
                                                               .reason = keep_reason(c, settle->reason) };
}

static void forget_finished(consumer_source *c)
{
    SL_LIST_EACH_SAFE (node, &c->finished_reasons) {
        consumer_reason *const kept = SL_CONTAINER_OF(node, consumer_reason, node);
        sl_list_remove(&kept->node);
        sl_alloc_give(&sl_alloc_default, kept, kept->memory_bytes);
    }
    sl_alloc_give(&sl_alloc_default, c->finished, c->finished_capacity * sizeof *c->finished);
    c->finished = NULL;
    c->finished_count = c->finished_capacity = 0;
}

static void consumer_start(sl_source *source)
{
    consumer_source *const c = consumer_of(source);
    sl_err err;

    if (c->is_started)
        return;
    c->is_started = true;
    err = sl_consumer_recall(c->consumer, c->finished, c->finished_count);
    if (err != SL_OK && c->log != NULL)
        sl_log(c->log, SL_LOG_WARN,
               "what an earlier process had finished cannot be said again now; the next start tries",
               SL_LOG_U64("messages", c->finished_count), SL_LOG_ERR("error", err));
    forget_finished(c);
    sl_consumer_begin(c->consumer);
}

/* --- about jobs --- */

static bool consumer_begin(sl_source *source, sl_job *job)
{
    consumer_source *const c = consumer_of(source);
    consumer_seat *const seat = seat_of(job);
    const sl_consumer_id id = consumer_source_id(job);

    if (seat->is_over || seat->said_number != 0 || c->has_ended)
        return false;
    if (!seat->is_begun && sl_consumer_started(c->consumer, &id, 1) == 1)
        seat->is_begun = true;
    kick(c);
    return seat->is_begun;
}

static size_t nack(consumer_source *c, const sl_consumer_id *id, const sl_settle *settle)
{
    const uint64_t delay_ms = sl_min_u64(sl_add_sat_u64(settle->delay_ns, MS_NS - 1) / MS_NS, INT32_MAX);
    char reason[SL_CONSUMER_REASON_BYTES_MAX + 1];

    copy_reason(settle->reason, reason, sizeof reason);
    if (settle->kind == SL_SETTLE_PARK)
        return sl_consumer_nack(c->consumer, id, 1, SL_CONSUMER_NACK_PARK, reason);
    return sl_consumer_nack_later(c->consumer, id, 1, reason, (uint32_t)delay_ms);
}

/* The Stop that closed the gate takes back what was not begun, in one word for all of them. */
static bool is_said_by_stop(const consumer_source *c, const consumer_seat *seat, const sl_settle *settle)
{
    return settle->kind == SL_SETTLE_RELEASE && c->hands_back && !seat->is_begun;
}

static void say(consumer_source *c, const consumer_seat *seat, const sl_settle *settle)
{
    const sl_consumer_id id = consumer_source_id(seat->job);
    size_t taken = 0;

    if (is_said_by_stop(c, seat, settle))
        return;
    if (settle->kind == SL_SETTLE_ACK)
        taken = sl_consumer_ack(c->consumer, &id, 1);
    else if (settle->kind != SL_SETTLE_RELEASE)
        taken = nack(c, &id, settle);
    if (taken == 0)
        (void)sl_consumer_release(c->consumer, &id, 1); /* also what found no memory for its reason */
}

static void consumer_settle(sl_source *source, sl_job *job, const sl_settle *settle)
{
    consumer_source *const c = consumer_of(source);
    consumer_seat *const seat = seat_of(job);

    assert(seat != NULL && seat->said_number == 0);
    seat->said_number = ++c->said_number;
    seat->said = settle->kind;
    if (consumer_source_is_for_next_process(seat))
        return;
    if (seat->is_over || c->has_ended) {
        consumer_source_settled(c, seat, seat->is_over ? seat->how : SL_SETTLED_LOST);
        return;
    }
    say(c, seat, settle);
    kick(c);
}

/* For as long as the group gives, which is at least what was left of the lease when the message came. */
static void consumer_extend(sl_source *source, sl_job *job)
{
    consumer_source *const c = consumer_of(source);
    const consumer_seat *const seat = seat_of(job);
    const sl_consumer_id id = consumer_source_id(job);

    if (seat->is_over || seat->said_number != 0 || c->has_ended)
        return;
    if (sl_consumer_extend(c->consumer, &id, 1, 0) == 1 && c->is_up)
        job->lease_until_ns = sl_loop_now_ns(c->loop) + job->lease_ns;
    kick(c);
}

/* --- the end --- */

static void consumer_close_gate(sl_source *source, bool hand_back)
{
    consumer_source *const c = consumer_of(source);

    c->gate_is_closed = true;
    c->hands_back = c->hands_back || hand_back;
    if (!c->has_ended)
        sl_consumer_stop(c->consumer, hand_back);
    if (!c->hands_back)
        consumer_source_lose_handed_back(c);
    if (!c->is_up)
        consumer_source_fence(c);
    kick(c);
}

static void consumer_close(sl_source *source)
{
    consumer_source *const c = consumer_of(source);

    c->is_closing = true;
    if (!c->has_ended)
        sl_consumer_leave(c->consumer);
    consumer_source_close(c);
    kick(c);
}

static void consumer_turn(sl_source *source)
{
    consumer_source *const c = consumer_of(source);

    sl_timer_stop(&c->kick);
    consumer_turn_end(c->consumer);
}

static void consumer_describe(const sl_source *source, struct cJSON *object)
{
    const consumer_source *const c =
        (const consumer_source *)((const char *)source - offsetof(consumer_source, base));

    (void)cJSON_AddStringToObject(object, "address", c->shown);
    (void)cJSON_AddStringToObject(object, "stream", c->stream);
    (void)cJSON_AddStringToObject(object, "group", c->group);
    (void)cJSON_AddBoolToObject(object, "connected", c->is_up);
    (void)cJSON_AddBoolToObject(object, "extensions", c->base.confirms);
    (void)cJSON_AddBoolToObject(object, "keeps_delays", c->base.keeps_delays);
    (void)cJSON_AddNumberToObject(object, "out", c->out_count);
    if (c->problem[0] != '\0')
        (void)cJSON_AddStringToObject(object, "problem", c->problem);
}

/* Jobs are not touched: the worker may have freed them. */
static void consumer_free(sl_source *source)
{
    consumer_source *const c = consumer_of(source);

    sl_timer_stop(&c->kick);
    sl_consumer_close(c->consumer);
    sl_list_splice(&c->seats, &c->spare_seats);
    SL_LIST_EACH_SAFE (node, &c->seats)
        sl_alloc_give(&sl_alloc_default, SL_CONTAINER_OF(node, consumer_seat, node), sizeof(consumer_seat));
    forget_finished(c);
    if (c->table != NULL)
        sl_alloc_give(&sl_alloc_default, c->table, c->table_length * sizeof *c->table);
    sl_alloc_give(&sl_alloc_default, c, sizeof *c);
}

/* --- making one --- */

static const sl_source_class consumer_class = { .name = "sluice",
                                                .recall = consumer_recall,
                                                .start = consumer_start,
                                                .begin = consumer_begin,
                                                .settle = consumer_settle,
                                                .extend = consumer_extend,
                                                .close_gate = consumer_close_gate,
                                                .close = consumer_close,
                                                .turn_end = consumer_turn,
                                                .describe = consumer_describe,
                                                .free = consumer_free };

static bool copy_text(const char *from, char *into, size_t capacity)
{
    sl_text text;

    sl_text_init(&text, into, capacity);
    sl_text_add(&text, from == NULL ? "" : from);
    return !text.cut;
}

static sl_err take_address(const sl_consumer_source_options *options, sl_text *problem,
                           sl_client_address *address)
{
    const sl_err err = sl_client_address_parse(sl_str_from(options->address), problem, address);
    bool is_fine = true;

    if (err != SL_OK)
        return SL_ERR_INVALID;
    if (address->user[0] == '\0' && options->user != NULL) {
        is_fine = copy_text(options->user, address->user, sizeof address->user) &&
                  copy_text(options->password, address->password, sizeof address->password);
        address->has_password = options->password != NULL;
    }
    if (options->ca_file != NULL) /* who names authorities wants TLS */
        address->tls = true;
    if (address->ca_file[0] == '\0' && options->ca_file != NULL)
        is_fine = copy_text(options->ca_file, address->ca_file, sizeof address->ca_file) && is_fine;
    if (!is_fine)
        sl_text_add(problem, "the user, the password or the name of the file of certificates is too long");
    return is_fine ? SL_OK : SL_ERR_INVALID;
}

static sl_err make_table(consumer_source *c, uint32_t window)
{
    c->table_length = sl_map_table_length(2 * (size_t)window + SL_CONSUMER_WINDOW_DEFAULT);
    c->table = sl_alloc_take(&sl_alloc_default, c->table_length * sizeof *c->table);
    if (c->table == NULL)
        return SL_ERR_NOMEM;
    sl_map_init(&c->jobs, c->table, c->table_length);
    return getrandom(&c->seed, sizeof c->seed, 0) == (ssize_t)sizeof c->seed ? SL_OK : SL_ERR_IO;
}

static sl_err make_consumer(consumer_source *c, const sl_consumer_source_options *options,
                            const sl_client_address *address, sl_text *problem)
{
    const sl_consumer_options wanted = { .address = options->address,
                                         .stream = options->stream,
                                         .group = options->group,
                                         .name = options->name,
                                         .labels = options->labels,
                                         .label_count = options->label_count,
                                         .window = options->window,
                                         .reconnect_ms = options->reconnect_ms,
                                         .says_started = 1,
                                         .give_up_ms = options->give_up_ms,
                                         .leave_ms = options->leave_ms,
                                         .handler = &consumer_source_handler,
                                         .ctx = c };
    char sentence[SL_CONSUMER_PROBLEM_BYTES];
    const sl_consumer_status status =
        sl_consumer_make(c->loop, &wanted, address, sentence, sizeof sentence, &c->consumer);

    if (status == SL_CONSUMER_OK)
        return SL_OK;
    sl_text_add(problem, sentence);
    if (status == SL_CONSUMER_NOMEM)
        return SL_ERR_NOMEM;
    return status == SL_CONSUMER_INVALID ? SL_ERR_INVALID : SL_ERR_IO;
}

static sl_err fill(consumer_source *c, const sl_consumer_source_options *options, sl_text *problem)
{
    sl_client_address address;
    sl_text shown;
    sl_err err = take_address(options, problem, &address);

    if (err != SL_OK)
        return err;
    sl_text_init(&shown, c->shown, sizeof c->shown);
    sl_client_address_show(&address, &shown);
    if (address.is_kurrentdb)
        c->class.name = "kurrentdb";
    (void)copy_text(options->stream, c->stream,
                    sizeof c->stream); /* too long ones are refused by the engine */
    (void)copy_text(options->group, c->group, sizeof c->group);
    err = make_consumer(c, options, &address, problem);
    explicit_bzero(&address, sizeof address);
    return err == SL_OK ? make_table(c, options->window) : err;
}

sl_err sl_consumer_source_new(sl_loop *loop, const sl_consumer_source_options *options, sl_text *problem,
                              sl_source **ret_source)
{
    consumer_source *const c = sl_alloc_take(&sl_alloc_default, sizeof *c);
    sl_err err;

    if (c == NULL)
        return SL_ERR_NOMEM;
    *c = (consumer_source){
        .base = { .class = &c->class }, .class = consumer_class, .loop = loop, .log = options->log
    };
    sl_list_init(&c->seats);
    sl_list_init(&c->spare_seats);
    sl_list_init(&c->finished_reasons);
    sl_timer_init(&c->kick, loop, on_kick, c);
    err = fill(c, options, problem);
    if (err == SL_OK)
        *ret_source = &c->base;
    else
        consumer_free(&c->base);
    return err;
}
