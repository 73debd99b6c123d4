/* worker/api_parts.c — what a worker of the public interface is made of: options checked and copied, source, handler, ack file. */
#include "worker/api_inside.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "worker/callback_handler.h"
#include "worker/consumer_source.h"
#include "worker/memory_source.h"
#include "worker/schedule_source.h"
#include "worker/source_address.h"

#include <string.h>

#define MS_NS UINT64_C(1000000)

static uint32_t or_default(uint32_t value, uint32_t usual)
{
    return value == 0 ? usual : value;
}

/* --- options --- */

static sl_err refuse(sl_text *problem, const char *why)
{
    sl_text_add(problem, why);
    return SL_ERR_INVALID;
}

/* NULL stays NULL. False: too long, or not UTF-8. */
static bool copy(char *to, size_t bytes_max, const char **text)
{
    const sl_str from = sl_str_from(*text);

    if (from.bytes > bytes_max || !sl_utf8_valid(from))
        return false;
    if (*text == NULL)
        return true;
    memcpy(to, from.data, from.bytes);
    to[from.bytes] = '\0';
    *text = to;
    return true;
}

static sl_err take_labels(sl_worker *worker, sl_text *problem)
{
    sl_worker_options *const options = &worker->options;

    if (options->label_count > SL_CONSUMER_LABELS_MAX)
        return refuse(problem, "a worker has at most 8 labels");
    for (size_t i = 0; i < options->label_count; i++) {
        worker_label *const label = &worker->texts.labels[i];
        sl_consumer_label *const view = &worker->texts.label_views[i];

        *view = options->labels[i];
        if (!copy(label->key, SL_CONSUMER_LABEL_BYTES_MAX, &view->key) ||
            !copy(label->value, SL_CONSUMER_LABEL_BYTES_MAX, &view->value))
            return refuse(problem,
                          "a label is not UTF-8 or too long: key and value have at most 256 bytes each");
    }
    options->labels = worker->texts.label_views;
    return SL_OK;
}

static sl_err take_texts(sl_worker *worker, sl_text *problem)
{
    sl_worker_options *const options = &worker->options;
    worker_texts *const texts = &worker->texts;

    if (options->from == NULL || options->from[0] == '\0')
        return refuse(
            problem,
            "the address of the source is missing: give .from, such as sluice://localhost:2113/STREAM/GROUP");
    if (!copy(texts->from, SL_WORKER_FROM_BYTES_MAX, &options->from))
        return refuse(problem, "the address of the source is not UTF-8 or longer than 4,096 bytes");
    if (!copy(texts->name, SL_WORKER_NAME_BYTES_MAX, &options->name))
        return refuse(problem, "the name is not UTF-8 or longer than 64 bytes");
    if (!copy(texts->ack_file, SL_WORKER_FROM_BYTES_MAX, &options->ack_file))
        return refuse(problem, "the name of the ack file is not UTF-8 or longer than 4,096 bytes");
    return take_labels(worker, problem);
}

static sl_err take_numbers(sl_worker_options *options, sl_text *problem)
{
    options->slots = or_default(options->slots, SL_WORKER_SLOTS_DEFAULT);
    if (options->slots > SL_WORKER_SLOTS_MAX)
        return refuse(problem, "there are too many slots: at most 4,000");
    if (options->threads > SL_CALLBACK_THREADS_MAX)
        return refuse(problem, "there are too many threads: at most 256");
    options->window =
        or_default(options->window, (uint32_t)sl_min_u64(2 * options->slots, SL_CONSUMER_WINDOW_MAX));
    if (options->window > SL_CONSUMER_WINDOW_MAX)
        return refuse(problem, "the window is too large: at most 4,000 messages");
    if (options->window < options->slots)
        return refuse(problem,
                      "the window is smaller than the number of slots, so some would never have work");
    options->grace_ms = or_default(options->grace_ms, SL_WORKER_GRACE_MS_DEFAULT);
    options->hold_max_ms = or_default(options->hold_max_ms, SL_WORKER_HOLD_MAX_MS_DEFAULT);
    if (options->timeout_ms > options->hold_max_ms)
        return refuse(
            problem,
            "timeout_ms is longer than hold_max_ms: a message would be given to somebody else while its "
            "work goes on here");
    return SL_OK;
}

static sl_err set_retry(const sl_worker_options *options, sl_retry_policy *policy, sl_text *problem)
{
    *policy = sl_retry_default();
    policy->attempts_max = or_default(options->attempts_max, policy->attempts_max);
    if (options->retry_first_ms != 0)
        policy->delay_first_ns = options->retry_first_ms * MS_NS;
    if (options->retry_max_ms != 0)
        policy->delay_max_ns = options->retry_max_ms * MS_NS;
    else if (policy->delay_max_ns < policy->delay_first_ns)
        policy->delay_max_ns = policy->delay_first_ns;
    return sl_retry_validate(policy) == SL_OK ? SL_OK
                                              : refuse(problem, "retry_first_ms is longer than retry_max_ms");
}

static sl_err set_destination(const sl_worker_options *options, sl_destination_rules *rules, sl_text *problem)
{
    rules->has_breaker = options->breaker_failures > 0;
    rules->breaker = sl_breaker_rules_default();
    if (rules->has_breaker)
        rules->breaker.failures_max = options->breaker_failures;
    if (options->breaker_rest_ms != 0)
        rules->breaker.cool_down_ns = options->breaker_rest_ms * MS_NS;
    rules->breaker.cool_down_max_ns =
        sl_max_u64(rules->breaker.cool_down_max_ns, rules->breaker.cool_down_ns);
    rules->breaker.probe_max_ns = sl_max_u64(rules->breaker.probe_max_ns, options->timeout_ms * MS_NS);
    rules->interval_ns = options->interval_ms * MS_NS;
    rules->concurrent_max = options->concurrent_max;
    if (options->key != NULL && sl_key_parse(sl_str_from(options->key), rules) != SL_OK)
        return refuse(problem, "a key is stream, type, data.NAME or metadata.NAME");
    return SL_OK;
}

static sl_err set_budget(sl_worker *worker, sl_text *problem)
{
    const sl_budget_wish wish = { .grace_ns = worker->options.grace_ms * MS_NS };
    const sl_err err = sl_budget_make(&wish, &worker->settings.budget);

    if (err != SL_OK)
        sl_budget_explain(&wish, problem);
    return err;
}

static void on_log(void *ctx, const char *line, size_t line_bytes)
{
    const sl_worker *const worker = ctx;

    (void)line_bytes;
    worker->options.log(worker->options.user, line);
}

static void on_no_log(void *ctx, const char *line, size_t line_bytes)
{
    (void)ctx, (void)line, (void)line_bytes;
}

static sl_err set_all(sl_worker *worker, sl_text *problem)
{
    const sl_worker_options *const options = &worker->options;
    sl_work_settings *const settings = &worker->settings;
    sl_err err = set_budget(worker, problem);

    worker->log = (sl_logger){ .level_min = options->log == NULL ? SL_LOG_LEVEL_COUNT_ : SL_LOG_INFO,
                               .sink = options->log == NULL ? on_no_log : on_log,
                               .sink_ctx = worker };
    settings->name = options->name == NULL ? "worker" : options->name;
    settings->slots = options->slots;
    settings->finish_unstarted = options->finish_unstarted != 0;
    settings->timeout_ns = options->timeout_ms * MS_NS;
    settings->hold_max_ns = options->hold_max_ms * MS_NS;
    settings->heartbeat_ns = options->heartbeat_ms * MS_NS;
    settings->log = &worker->log;
    if (err == SL_OK)
        err = set_retry(options, &settings->retry, problem);
    if (err == SL_OK)
        err = set_destination(options, &settings->destination, problem);
    worker->options.key = NULL; /* it was read, and is the caller's */
    return err;
}

sl_err worker_options_take(sl_worker *worker, const sl_worker_options *options, sl_text *problem)
{
    sl_err err;

    worker->options = *options;
    if (options->work == NULL)
        return refuse(problem, "the function that does the work is missing");
    err = take_texts(worker, problem);
    if (err == SL_OK)
        err = take_numbers(&worker->options, problem);
    return err == SL_OK ? set_all(worker, problem) : err;
}

/* --- parts --- */

static sl_err open_acks(const sl_worker *worker, const sl_source_address *address, sl_text *problem,
                        sl_ack_file **ret_acks)
{
    char buffer[SL_SOURCE_SHOWN_BYTES_MAX + 1];
    sl_text source;
    sl_err err;

    if (worker->options.ack_file == NULL)
        return SL_OK;
    sl_text_init(&source, buffer, sizeof buffer);
    err = sl_source_address_show(address, problem, &source);
    if (err != SL_OK)
        return err;
    return sl_ack_file_open(worker->options.ack_file, sl_text_str(&source), sl_str_from(worker->options.name),
                            problem, ret_acks);
}

static sl_err open_consumer(const sl_worker *worker, const sl_source_address *address, sl_text *problem,
                            sl_source **ret_source, sl_ack_file **ret_acks)
{
    const sl_worker_options *const options = &worker->options;
    char name[SL_ACK_FILE_NAME_BYTES_MAX + 1];
    sl_consumer_source_options consumer = {
        .address = address->server,
        .stream = address->stream,
        .group = address->group,
        .name = options->name,
        .labels = options->labels,
        .label_count = options->label_count,
        .window = options->window,
        .log = &worker->log,
    };
    sl_err err = open_acks(worker, address, problem, ret_acks);

    if (err != SL_OK)
        return err;
    if (*ret_acks != NULL) {
        sl_text text;

        sl_text_init(&text, name, sizeof name);
        sl_text_add_str(&text, sl_ack_file_name(*ret_acks));
        consumer.name = name;
    }
    return sl_consumer_source_new(worker->loop, &consumer, problem, ret_source);
}

static sl_err open_source(const sl_worker *worker, sl_text *problem, sl_source **ret_source,
                          sl_ack_file **ret_acks)
{
    const sl_str from = sl_str_from(worker->options.from);
    sl_source_address address;
    sl_err err = sl_source_address_parse(from, problem, &address);

    if (err != SL_OK)
        return err;
    if (address.kind != SL_SOURCE_KIND_CONSUMER && worker->options.ack_file != NULL)
        err = refuse(problem,
                     "an ack file is for sources that give messages out again: sluice:// and kurrentdb://");
    else if (address.kind == SL_SOURCE_KIND_MEMORY)
        err = sl_memory_source_open(worker->loop, address.rest, problem, ret_source);
    else if (address.kind == SL_SOURCE_KIND_CONSUMER)
        err = open_consumer(worker, &address, problem, ret_source, ret_acks);
    else
        err = sl_schedule_source_open(worker->loop, &worker->log, address.rest, problem, ret_source);
    explicit_bzero(&address, sizeof address); /* it may hold a password */
    return err;
}

/* Whose function this thread is in. Functions may run other workers inside of them, so it is put back. */
static _Thread_local const sl_worker *worked_for;

bool worker_is_inside(const sl_worker *worker)
{
    return worked_for == worker;
}

/* When a thread comes back after it was left behind, the worker may be gone. */
static sl_worker_result work_as_told(void *user, sl_ctx *ctx)
{
    const sl_worker *const worker = user, *const before = worked_for;
    sl_worker_result result;

    worked_for = worker;
    result = worker->options.work(worker->options.user, ctx);
    worked_for = before;
    return result;
}

/* In the loop's thread many messages can be worked on in one turn: whether somebody wants it to end is asked after each. */
static sl_worker_result work_and_heed(void *user, sl_ctx *ctx)
{
    const sl_worker_result result = work_as_told(user, ctx);

    worker_heed(user);
    return result;
}

static sl_err open_handler(sl_worker *worker, sl_handler **ret_handler)
{
    const bool has_threads = worker->options.threads > 0;
    const sl_callback_settings settings = { .work = has_threads ? work_as_told : work_and_heed,
                                            .user = worker,
                                            .slots = worker->options.slots,
                                            .threads = worker->options.threads,
                                            .name = worker->settings.name,
                                            .log = &worker->log };

    return sl_callback_new(worker->loop, &settings, ret_handler);
}

sl_err worker_make(sl_worker *worker, const sl_work_watcher *watcher, sl_text *problem)
{
    sl_handler *handler = NULL;
    sl_ack_file *acks = NULL;
    sl_source *source = NULL;
    sl_err err = open_source(worker, problem, &source, &acks);

    if (err == SL_OK)
        err = open_handler(worker, &handler);
    if (err == SL_OK)
        return sl_work_new(worker->loop, &worker->settings, source, handler, acks, watcher, worker,
                           &worker->work);
    if (source != NULL)
        source->class->free(source);
    sl_ack_file_close(acks);
    return err;
}
