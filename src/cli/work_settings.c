/* cli/work_settings.c — see work_settings.h. */
#include "cli/work_settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include <sluice.h>

#include "base/cleanup.h"
#include "cli/budget_command.h"
#include "cli/config.h"
#include "cli/print.h"
#include "cli/serve_command.h"
#include "worker/memory_source.h"
#include "worker/schedule_source.h"

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS    (24 * 3600 * SECOND_NS)

enum {
    PROBLEM_BYTES = 384,
    RATE_INTERVAL_LEAST_NS = 1000 /* a million in a second: more is no limit */
};

static_assert(SL_OPT_WORK_APPEND - SL_OPT_WORK_EXEC == SL_WORK_BY_APPEND - SL_WORK_BY_EXEC,
              "an option for each handler");

__attribute__((format(printf, 2, 3))) static sl_err complain(sl_complaint *complaint, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    return SL_ERR_INVALID;
}

/* Somebody has asked for it: a default is no wish. */
static bool is_given(const sl_option_value *value)
{
    return value->source > SL_OPTION_FROM_DEFAULT;
}

/* --- small texts --- */

/* s, m and h alone are one of them. */
static sl_err parse_time(sl_str text, uint64_t *ret_ns)
{
    static const sl_duration_bounds bounds = { .min_ns = 1, .max_ns = DAY_NS };
    char one[SL_DURATION_WORDS_BYTES];
    sl_text with_number;

    sl_text_init(&with_number, one, sizeof one);
    if (text.bytes > 0 && (text.data[0] < '0' || text.data[0] > '9'))
        sl_text_add_char(&with_number, '1');
    sl_text_add_str(&with_number, text);
    return with_number.cut ? SL_ERR_INVALID
                           : sl_str_parse_duration(sl_text_str(&with_number), bounds, ret_ns);
}

sl_err sl_work_rate_parse(sl_str text, uint64_t *ret_interval_ns)
{
    uint64_t count, time_ns;
    sl_str before, after;

    if (!sl_str_cut(text, '/', &before, &after) || sl_str_parse_u64(before, &count) != SL_OK || count == 0 ||
        parse_time(after, &time_ns) != SL_OK || time_ns / count < RATE_INTERVAL_LEAST_NS)
        return SL_ERR_INVALID;
    *ret_interval_ns = time_ns / count;
    return SL_OK;
}

sl_err sl_work_label_cut(sl_str text, sl_str *ret_key, sl_str *ret_value)
{
    if (!sl_str_cut(text, '=', ret_key, ret_value) || ret_key->bytes == 0 ||
        ret_key->bytes > SL_CONSUMER_LABEL_BYTES_MAX || ret_value->bytes > SL_CONSUMER_LABEL_BYTES_MAX)
        return SL_ERR_INVALID;
    return SL_OK;
}

/* A line end in a header would begin another one. */
static bool is_header_text(sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_header_name(sl_str name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.data[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return name.bytes > 0;
}

sl_err sl_work_header_cut(sl_str text, sl_str *ret_name, sl_str *ret_value)
{
    if (!sl_str_cut(text, ':', ret_name, ret_value) || !is_header_name(*ret_name) ||
        !is_header_text(*ret_value))
        return SL_ERR_INVALID;
    *ret_value = sl_str_trim(*ret_value);
    return SL_OK;
}

/* --- source and handler --- */

const char *sl_work_handler_name(sl_work_handler_kind handler)
{
    return sl_options[SL_OPT_WORK_EXEC + handler].name;
}

/* What stands behind schedule: and memory:. */
static sl_err check_rest(const sl_source_address *source, sl_text *problem)
{
    sl_schedule_rules rules;
    sl_memory_settings memory;

    switch (source->kind) {
    case SL_SOURCE_KIND_SCHEDULE: return sl_schedule_parse(source->rest, problem, &rules);
    case SL_SOURCE_KIND_MEMORY: return sl_memory_settings_parse(source->rest, problem, &memory);
    case SL_SOURCE_KIND_CONSUMER:
    case SL_SOURCE_KIND_COUNT_: break;
    }
    return SL_OK;
}

/* It may have words of the user in it. */
static sl_err complain_source(sl_text *problem, sl_complaint *complaint)
{
    char quoted[SL_COMPLAINT_BYTES];

    sl_quote_into(quoted, sizeof quoted, sl_print_stopped(problem));
    return complain(complaint, "--from: %s", quoted);
}

static sl_err read_source(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    char buffer[PROBLEM_BYTES];
    sl_text problem;

    plan->from = values[SL_OPT_WORK_FROM].text;
    if (plan->from == NULL)
        return complain(complaint,
                        "--from is missing: say where messages come from, for example "
                        "--from sluice://localhost:2113/STREAM/GROUP or --from schedule:every=30m.");
    sl_text_init(&problem, buffer, sizeof buffer);
    if (sl_source_address_parse(sl_str_from(plan->from), &problem, &plan->source) != SL_OK ||
        check_rest(&plan->source, &problem) != SL_OK)
        return complain_source(&problem, complaint);
    return SL_OK;
}

/* An address of a source without a group: it is given one, so that the rules for everything else are the same. */
sl_err sl_work_target_parse(const char *text, sl_text *problem, sl_source_address *ret_target)
{
    static const sl_str scheme = SL_STR_INIT("sluice://");
    char buffer[SL_CLIENT_ADDRESS_BYTES_MAX + 32];
    sl_str before = sl_str_from(text), options = { 0 };
    const bool has_options = sl_str_cut(before, '?', &before, &options);
    sl_text whole;

    sl_text_init(&whole, buffer, sizeof buffer);
    if (strstr(text, "://") == NULL)
        sl_text_add_str(&whole, scheme);
    sl_text_add_str(&whole, before);
    sl_text_add(&whole, has_options ? "/-?" : "/-");
    sl_text_add_str(&whole, options);
    return sl_source_address_parse(sl_text_str(&whole), problem, ret_target);
}

static bool parse_server(const char *server, sl_client_address *ret_address)
{
    char unused[8];
    sl_text problem;

    sl_text_init(&problem, unused, sizeof unused);
    return sl_client_address_parse(sl_str_from(server), &problem, ret_address) == SL_OK;
}

bool sl_work_source_is_at(const sl_work_plan *plan, const sl_client_address *address)
{
    sl_client_address source;
    const bool is_same = plan->source.kind == SL_SOURCE_KIND_CONSUMER &&
                         parse_server(plan->source.server, &source) &&
                         strcasecmp(source.host, address->host) == 0 && source.port == address->port;

    explicit_bzero(&source, sizeof source);
    return is_same;
}

bool sl_work_is_same_group(const sl_work_plan *a, const sl_work_plan *b)
{
    sl_client_address server;
    const bool is_same = b->source.kind == SL_SOURCE_KIND_CONSUMER &&
                         strcmp(a->source.stream, b->source.stream) == 0 &&
                         strcmp(a->source.group, b->source.group) == 0 &&
                         parse_server(b->source.server, &server) && sl_work_source_is_at(a, &server);

    explicit_bzero(&server, sizeof server);
    return is_same;
}

bool sl_work_appends_at_source(const sl_work_plan *plan)
{
    sl_client_address target;
    const bool is_same = plan->handler == SL_WORK_BY_APPEND && parse_server(plan->target.server, &target) &&
                         sl_work_source_is_at(plan, &target);

    explicit_bzero(&target, sizeof target);
    return is_same;
}

static sl_err check_target(const sl_work_plan *plan, sl_complaint *complaint)
{
    if (strcmp(plan->target.stream, "$all") == 0)
        return complain(complaint,
                        "--append: $all is all streams together, and nothing can be written to it. "
                        "Name one stream.");
    if (strcmp(plan->target.stream, plan->source.stream) == 0 && sl_work_appends_at_source(plan))
        return complain(complaint, "--append writes to the stream that --from reads: each message would make "
                                   "another one, for ever. Name another stream.");
    return SL_OK;
}

static sl_err read_target(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    char buffer[PROBLEM_BYTES];
    sl_text problem;

    (void)values;
    if (plan->handler != SL_WORK_BY_APPEND)
        return SL_OK;
    sl_text_init(&problem, buffer, sizeof buffer);
    if (sl_work_target_parse(plan->handler_text, &problem, &plan->target) != SL_OK ||
        plan->target.kind != SL_SOURCE_KIND_CONSUMER)
        return complain(complaint, "--append needs an address with a stream behind it, such as "
                                   "sluice://localhost:2113/STREAM; a / in its name is written %%2F.");
    return check_target(plan, complaint);
}

static sl_err read_handler(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    for (sl_work_handler_kind i = 0; i < SL_WORK_HANDLER_KIND_COUNT_; i++) {
        const char *const text = values[SL_OPT_WORK_EXEC + i].text;

        if (text == NULL)
            continue;
        if (plan->handler_text != NULL)
            return complain(complaint, "--%s and --%s are two handlers: give only one of them.",
                            sl_work_handler_name(plan->handler), sl_work_handler_name(i));
        plan->handler = i;
        plan->handler_text = text;
    }
    if (plan->handler_text == NULL)
        return complain(complaint, "there is no handler: say what is done with a message, by one of --exec, "
                                   "--lines, --http and --append.");
    return SL_OK;
}

/* What people get wrong most. */
static bool is_web_address(const char *url)
{
    const char *const host = strncasecmp(url, "http://", 7) == 0    ? url + 7
                             : strncasecmp(url, "https://", 8) == 0 ? url + 8
                                                                    : "";

    return host[0] != '\0' && strchr("/:?#", host[0]) == NULL;
}

static sl_err read_url(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    (void)values;
    if (plan->handler != SL_WORK_BY_HTTP || is_web_address(plan->handler_text))
        return SL_OK;
    return complain(
        complaint,
        "--http needs an address such as http://localhost:8080/charge or https://HOST/PATH, not '%s'.",
        sl_quote(sl_address_without_password(plan->handler_text).text).text);
}

sl_err sl_work_http_options(const sl_work_plan *plan, const char *headers[static SL_HTTP_EXTRA_HEADERS_MAX],
                            sl_text *problem, sl_http_options *ret_options)
{
    sl_http_options options = { .url = plan->handler_text, .method = plan->method, .headers = headers };

    for (const sl_option_repeat *each = plan->headers; each != NULL; each = each->next) {
        if (options.header_count == SL_HTTP_EXTRA_HEADERS_MAX) {
            sl_text_add(problem, "there are too many headers: leave some out");
            return SL_ERR_INVALID;
        }
        headers[options.header_count++] = each->text;
    }
    *ret_options = options;
    return SL_OK;
}

/* The rest that can be known without asking anybody, such as the port. It may have words of the user in it. */
static sl_err check_http(const sl_work_plan *plan, sl_complaint *complaint)
{
    const char *headers[SL_HTTP_EXTRA_HEADERS_MAX];
    char buffer[PROBLEM_BYTES], quoted[SL_COMPLAINT_BYTES];
    sl_http_options options;
    sl_text problem;

    sl_text_init(&problem, buffer, sizeof buffer);
    if (plan->handler != SL_WORK_BY_HTTP ||
        (sl_work_http_options(plan, headers, &problem, &options) == SL_OK &&
         sl_http_options_check(&options, &problem) == SL_OK))
        return SL_OK;
    sl_quote_into(quoted, sizeof quoted, sl_print_stopped(&problem));
    return complain(complaint, "--http: %s", quoted);
}

static sl_err read_http(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    sl_str name, value;

    plan->headers = values[SL_OPT_HEADER].all;
    plan->method = values[SL_OPT_METHOD].text;
    if (plan->handler != SL_WORK_BY_HTTP && (plan->headers != NULL || values[SL_OPT_METHOD].number != 0))
        return complain(complaint, "--%s is for --http, and the handler is --%s.",
                        plan->headers != NULL ? "header" : "method", sl_work_handler_name(plan->handler));
    for (const sl_option_repeat *each = plan->headers; each != NULL; each = each->next) {
        if (sl_work_header_cut(sl_str_from(each->text), &name, &value) != SL_OK)
            return complain(complaint, "--header needs 'Name: value' without control characters, not '%s'.",
                            sl_quote(each->text).text);
    }
    return check_http(plan, complaint);
}

/* Only a server can be told again what was finished. */
static sl_err read_acks(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    plan->ack_file = values[SL_OPT_ACK_FILE].text;
    if (plan->ack_file != NULL && plan->source.kind != SL_SOURCE_KIND_CONSUMER)
        return complain(complaint,
                        "--ack-file is for messages of a server, and --from is none: leave it out.");
    return SL_OK;
}

/* All of these were cut before. */
static bool has_label_before(const sl_work_plan *plan, const sl_option_repeat *end, sl_str key)
{
    sl_str other, value;

    for (const sl_option_repeat *each = plan->labels; each != end; each = each->next)
        if (sl_work_label_cut(sl_str_from(each->text), &other, &value) == SL_OK && sl_str_equal(other, key))
            return true;
    return false;
}

static sl_err read_labels(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    size_t count = 0;
    sl_str key, value;

    plan->labels = values[SL_OPT_WORK_LABEL].all;
    for (const sl_option_repeat *each = plan->labels; each != NULL; each = each->next) {
        if (sl_work_label_cut(sl_str_from(each->text), &key, &value) != SL_OK)
            return complain(complaint, "--label needs KEY=VALUE, each of at most %d bytes, not '%s'.",
                            SL_CONSUMER_LABEL_BYTES_MAX, sl_quote(each->text).text);
        if (has_label_before(plan, each, key))
            return complain(complaint, "--label %s: its key is given twice, and can have only one value.",
                            sl_quote(each->text).text);
        if (++count > SL_CONSUMER_LABELS_MAX)
            return complain(complaint, "more than %d labels are too many: leave some out.",
                            SL_CONSUMER_LABELS_MAX);
    }
    return SL_OK;
}

/* --- numbers --- */

/* Twice the slots: the next message is here when one is finished, and few wait for a worker that is slow. */
static sl_err read_window(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    const uint64_t slots = values[SL_OPT_SLOTS].number;
    const uint64_t twice = 2 * slots < SL_CONSUMER_WINDOW_MAX ? 2 * slots : SL_CONSUMER_WINDOW_MAX;
    const sl_option_value *const given = &values[SL_OPT_WINDOW];

    plan->settings.slots = (uint32_t)slots;
    plan->window = (uint32_t)(is_given(given) ? given->number : twice);
    if (plan->window < slots)
        return complain(
            complaint,
            "--window %u is less than --slots %u, so some slots would never have work: give at least "
            "--window %u, or leave it out for %u.",
            plan->window, plan->settings.slots, plan->settings.slots, (unsigned)twice);
    return SL_OK;
}

static sl_err read_times(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    sl_work_settings *const settings = &plan->settings;

    settings->timeout_ns = values[SL_OPT_WORK_TIMEOUT].number;
    settings->hold_max_ns = values[SL_OPT_HOLD_MAX].number;
    settings->heartbeat_ns = values[SL_OPT_HEARTBEAT].number;
    plan->reconnect_ns = values[SL_OPT_RECONNECT].number;
    plan->give_up_ns = values[SL_OPT_GIVE_UP].number;
    if (settings->timeout_ns > settings->hold_max_ns)
        return complain(
            complaint,
            "--timeout %s is longer than --hold-max %s: a message would be given to somebody else "
            "while its work goes on here. Give at least --hold-max %s, or a shorter --timeout.",
            sl_duration_in_words(settings->timeout_ns).text, sl_duration_in_words(settings->hold_max_ns).text,
            sl_duration_in_words(settings->timeout_ns).text);
    return SL_OK;
}

static sl_err read_retry(const sl_option_value *values, sl_retry_policy *policy, sl_complaint *complaint)
{
    *policy = sl_retry_default();
    policy->kind = (sl_retry_kind)values[SL_OPT_RETRY].number; /* the choices are in the order of the kinds */
    policy->delay_first_ns = values[SL_OPT_RETRY_FIRST].number;
    policy->delay_step_ns = policy->kind == SL_RETRY_LINEAR ? values[SL_OPT_RETRY_STEP].number : 0;
    policy->delay_max_ns = values[SL_OPT_RETRY_MAX].number;
    policy->attempts_max = (uint32_t)values[SL_OPT_ATTEMPTS].number;
    if (sl_retry_validate(policy) == SL_OK)
        return SL_OK;
    if (policy->delay_first_ns > policy->delay_max_ns)
        return complain(complaint,
                        "--retry-first %s is longer than --retry-max %s: give at least --retry-max %s.",
                        sl_duration_in_words(policy->delay_first_ns).text,
                        sl_duration_in_words(policy->delay_max_ns).text,
                        sl_duration_in_words(policy->delay_first_ns).text);
    return complain(complaint, "--retry-first 0 cannot grow with --retry exponential: give a pause above 0, "
                               "or --retry constant for retries without a pause.");
}

static void read_breaker(const sl_option_value *values, uint64_t timeout_ns, sl_destination_rules *rules)
{
    const uint64_t cool_down_ns = values[SL_OPT_COOL_DOWN].number;

    rules->has_breaker = values[SL_OPT_BREAKER_FAILURES].number > 0;
    rules->breaker = sl_breaker_rules_default();
    if (rules->has_breaker)
        rules->breaker.failures_max = (uint32_t)values[SL_OPT_BREAKER_FAILURES].number;
    rules->breaker.cool_down_ns = cool_down_ns;
    if (rules->breaker.cool_down_max_ns < cool_down_ns)
        rules->breaker.cool_down_max_ns = cool_down_ns;
    if (timeout_ns > rules->breaker.probe_max_ns) /* a probe may take as long as any other message */
        rules->breaker.probe_max_ns = timeout_ns;
}

static sl_err read_destination(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint)
{
    sl_destination_rules *const rules = &plan->settings.destination;
    const char *const key = values[SL_OPT_KEY].text, *const rate = values[SL_OPT_RATE].text;

    read_breaker(values, plan->settings.timeout_ns, rules);
    rules->concurrent_max = (uint32_t)values[SL_OPT_CONCURRENT_PER_KEY].number;
    if (key != NULL && sl_key_parse(sl_str_from(key), rules) != SL_OK)
        return complain(complaint, "--key needs stream, type, data.NAME or metadata.NAME, not '%s'.",
                        sl_quote(key).text);
    if (rate != NULL && sl_work_rate_parse(sl_str_from(rate), &rules->interval_ns) != SL_OK)
        return complain(complaint,
                        "--rate needs COUNT/TIME such as 1/s, 10/m or 1/30s, at most 1000000/s, not '%s'.",
                        sl_quote(rate).text);
    if (rules->concurrent_max > 0 && key == NULL)
        return complain(complaint, "--concurrent-per-key needs --key; without one --slots is the limit.");
    return SL_OK;
}

/* --- all of it --- */

static void read_names(const sl_option_value *values, const char *name, sl_work_plan *plan)
{
    const char *const given = values[SL_OPT_WORK_NAME].text;

    plan->consumer_name = given;
    if (name == NULL)
        name = given == NULL ? "worker" : given;
    snprintf(plan->name, sizeof plan->name, "%s", name); /* the option and the file have the same limit */
    plan->ca_file = values[SL_OPT_CA].text;
    plan->user = values[SL_OPT_USER].text;
    plan->password_file = values[SL_OPT_PASSWORD_FILE].text;
}

typedef sl_err read_fn(const sl_option_value *values, sl_work_plan *plan, sl_complaint *complaint);

sl_err sl_work_plan_read(const sl_option_value *values, const char *name, const sl_budget *budget,
                         sl_work_plan *ret_plan, sl_complaint *ret_complaint)
{
    static read_fn *const steps[] = { read_source, read_handler, read_target, read_url,   read_http,
                                      read_acks,   read_labels,  read_window, read_times, read_destination };
    sl_work_plan *const plan = ret_plan;
    sl_err err = SL_OK;

    *plan = (sl_work_plan){ .settings = { .budget = *budget } };
    read_names(values, name, plan);
    plan->settings.finish_unstarted = values[SL_OPT_FINISH_UNSTARTED].number != 0;
    for (size_t i = 0; err == SL_OK && i < SL_COUNT_OF(steps); i++)
        err = steps[i](values, plan, ret_complaint);
    return err == SL_OK ? read_retry(values, &plan->settings.retry, ret_complaint) : err;
}

/* --- the process --- */

sl_err sl_work_budget_read(const sl_option_value *values, sl_budget *ret_budget, sl_complaint *ret_complaint)
{
    const sl_budget_wish wish = sl_budget_wish_read(values);
    sl_text text;

    if (sl_budget_make(&wish, ret_budget) == SL_OK)
        return SL_OK;
    sl_text_init(&text, ret_complaint->text, sizeof ret_complaint->text);
    sl_budget_explain(&wish, &text);
    sl_text_add_char(&text, '.');
    return SL_ERR_INVALID;
}

sl_crew_settings sl_work_crew_settings(const sl_option_value *values, bool is_terminal)
{
    return (sl_crew_settings){
        .status_host = values[SL_OPT_STATUS_HOST].text,
        .status_port = values[SL_OPT_NO_STATUS].number != 0 ? -1 : (int32_t)values[SL_OPT_STATUS_PORT].number,
        .report_file = values[SL_OPT_REPORT].text,
        .restarts_max = (uint32_t)values[SL_OPT_RESTARTS].number,
        .notify_systemd = values[SL_OPT_NOTIFY].number != 0,
        .log_level = (sl_log_level)values[SL_OPT_LOG_LEVEL].number,
        .log_format = sl_log_format_option(values[SL_OPT_LOG_FORMAT].number, is_terminal),
    };
}
