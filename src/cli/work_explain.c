/* cli/work_explain.c — see work_explain.h. Text and JSON have the same facts; the steps are in work_steps.c, the pieces
 * for orchestrators in work_deploy.c. */
#include "cli/work_explain.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/budget_command.h"
#include "cli/print.h"
#include "cli/work_deploy.h"
#include "cli/work_steps.h"
#include "core/retry.h"

enum {
    SENTENCE_BYTES = 640,
    DELAYS_SHOWN_MAX = 9, /* of a series that goes on like this */
    LABEL_WIDTH = 8
};

/* --- retries --- */

/* The first pauses, before they are spread by chance. Returns how many. */
static size_t first_delays(const sl_retry_policy *policy, uint64_t delays_ns[static DELAYS_SHOWN_MAX])
{
    sl_retry_policy plain = *policy;
    sl_retry_past past = { .attempts = 1 };
    size_t count = 0;

    plain.jitter_permille = 0;
    for (; count < DELAYS_SHOWN_MAX; count++, past.attempts++) {
        const sl_retry_verdict verdict = sl_retry_next(&plain, &past, 0);
        if (!verdict.again)
            break;
        delays_ns[count] = verdict.delay_ns;
        past.delay_total_ns += verdict.delay_ns;
    }
    return count;
}

/* A tick that is given up is kept by nobody, so it is a failure of the worker. */
static void add_failed_worker(sl_text *text, uint64_t restarts)
{
    if (restarts == 0) {
        sl_text_add(text, "the worker has failed, and the exit code is 6");
        return;
    }
    sl_text_add(text, "the worker has failed: it is started again up to ");
    sl_text_add_u64(text, restarts);
    sl_text_add(text, " times (--restarts); then the exit code is 6");
}

static void add_delays(sl_text *text, const sl_retry_policy *policy, const uint64_t *delays_ns, size_t count)
{
    const bool goes_on = policy->attempts_max == 0 || count + 1 < policy->attempts_max;

    sl_text_add(text, "after ");
    for (size_t i = 0; i < count; i++) {
        sl_text_add(text, i == 0 ? "" : ", ");
        sl_text_add_duration(text, delays_ns[i]);
    }
    sl_text_add(text, goes_on ? " and so on, each spread by " : ", each spread by ");
    sl_text_add_u64(text, policy->jitter_permille / 10);
    sl_text_add(text, "%; ");
}

static void add_end_for_tick(sl_text *text, const sl_work_member *member, size_t delay_count)
{
    const uint32_t attempts_max = member->plan.settings.retry.attempts_max;

    if (delay_count > 0 && attempts_max == 0) {
        sl_text_add(text, "until the next tick is due");
        return;
    }
    sl_text_add(text, delay_count == 0 ? "none: after a failure " : "after ");
    if (delay_count > 0) {
        sl_text_add_u64(text, attempts_max);
        sl_text_add(text, " attempts ");
    }
    add_failed_worker(text, member->values[SL_OPT_RESTARTS].number);
}

static void add_end_for_message(sl_text *text, const sl_work_member *member, size_t delay_count)
{
    const uint32_t attempts_max = member->plan.settings.retry.attempts_max;

    if (delay_count == 0) {
        sl_text_add(text, "none: what fails goes to the dead letters at once");
    } else if (attempts_max == 0) {
        sl_text_add(text, "the source decides when it is enough");
    } else {
        sl_text_add(text, "to the dead letters after ");
        sl_text_add_u64(text, attempts_max);
        sl_text_add(text, " attempts");
    }
}

static void add_retries(sl_text *text, const sl_work_member *member)
{
    uint64_t delays_ns[DELAYS_SHOWN_MAX];
    const size_t count = first_delays(&member->plan.settings.retry, delays_ns);

    if (count > 0)
        add_delays(text, &member->plan.settings.retry, delays_ns, count);
    if (sl_work_origin_of(&member->plan) == SL_WORK_FROM_SCHEDULE)
        add_end_for_tick(text, member, count);
    else
        add_end_for_message(text, member, count);
}

/* --- one worker, for people --- */

static void print_fact(FILE *out, const char *label, const char *text)
{
    sl_print_entry(out, label, LABEL_WIDTH, text);
}

static void print_places(FILE *out, const sl_work_plan *plan)
{
    char text[SENTENCE_BYTES + SL_CLIENT_ADDRESS_BYTES_MAX], quoted[SL_CLIENT_ADDRESS_BYTES_MAX];

    sl_quote_into(quoted, sizeof quoted, sl_address_without_password(plan->from).text);
    print_fact(out, "source", quoted);
    if (plan->handler == SL_WORK_BY_EXEC || plan->handler == SL_WORK_BY_LINES)
        sl_quote_into(quoted, sizeof quoted, plan->handler_text);
    else
        sl_quote_into(quoted, sizeof quoted, sl_address_without_password(plan->handler_text).text);
    snprintf(text, sizeof text, "%s%s%s: %s", sl_work_handler_name(plan->handler),
             plan->handler == SL_WORK_BY_HTTP ? " " : "",
             plan->handler == SL_WORK_BY_HTTP ? plan->method : "", quoted);
    print_fact(out, "handler", text);
    if (plan->ack_file != NULL) {
        sl_quote_into(quoted, sizeof quoted, plan->ack_file);
        print_fact(out, "acks", quoted);
    }
}

static void print_limits(FILE *out, const sl_work_plan *plan)
{
    const sl_work_settings *const s = &plan->settings;
    char text[SENTENCE_BYTES];

    if (sl_work_origin_of(plan) == SL_WORK_FROM_SCHEDULE)
        snprintf(text, sizeof text, "1: there is one tick at a time");
    else
        snprintf(text, sizeof text, "%u at the same time; %u messages are held, those that wait included",
                 s->slots, plan->window);
    print_fact(out, "slots", text);
    if (s->timeout_ns == 0)
        snprintf(
            text, sizeof text,
            "none for one message, but its work is ended after %s; where it has a lease it waits no longer",
            sl_duration_in_words(s->hold_max_ns).text);
    else
        snprintf(text, sizeof text,
                 "%s for one message; where it has a lease it waits for at most %s before that",
                 sl_duration_in_words(s->timeout_ns).text, sl_duration_in_words(s->hold_max_ns).text);
    print_fact(out, "timeout", text);
}

static void print_destination(FILE *out, const sl_destination_rules *rules, const char *key)
{
    char text[SENTENCE_BYTES];

    if (rules->has_breaker)
        snprintf(text, sizeof text, "after %u failures in a row nothing is sent for %s, then one is tried",
                 rules->breaker.failures_max, sl_duration_in_words(rules->breaker.cool_down_ns).text);
    print_fact(out, "breaker", rules->has_breaker ? text : "none");
    if (key != NULL)
        print_fact(out, "key", sl_quote(key).text);
    if (rules->interval_ns > 0) {
        snprintf(text, sizeof text, "one is begun each %s at most%s",
                 sl_duration_in_words(rules->interval_ns).text, key == NULL ? "" : ", for each key");
        print_fact(out, "rate", text);
    }
    if (rules->concurrent_max > 0) {
        snprintf(text, sizeof text, "%u at the same time for each key", rules->concurrent_max);
        print_fact(out, "per key", text);
    }
}

static void print_worker(FILE *out, const sl_work_member *member)
{
    const sl_work_plan *const plan = &member->plan;
    char buffer[SENTENCE_BYTES];
    sl_text text;

    fprintf(out, "worker %s\n", sl_quote(plan->name).text);
    print_places(out, plan);
    print_limits(out, plan);
    sl_text_init(&text, buffer, sizeof buffer);
    add_retries(&text, member);
    print_fact(out, "retries", buffer);
    print_destination(out, &plan->settings.destination, member->values[SL_OPT_KEY].text);
    fputc('\n', out);
}

/* --- SIGTERM --- */

static void print_steps(FILE *out, const sl_work_members *members)
{
    sl_work_step steps[SL_BUDGET_PART_COUNT_];
    char label[SL_DURATION_WORDS_BYTES + 8];
    size_t width = 0;

    sl_work_steps_make(members, steps);
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        const size_t bytes = strlen(sl_duration_in_words(steps[i].until_ns).text);
        width = bytes > width ? bytes : width;
    }
    fprintf(out, "\non SIGTERM, each step at the latest until\n");
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        snprintf(label, sizeof label, "%*s", (int)width, sl_duration_in_words(steps[i].until_ns).text);
        sl_print_entry(out, label, width, steps[i].what);
    }
    sl_print_wrapped(
        out, (sl_print_place){ 0, 0 },
        "A step that is done earlier makes the next one begin earlier. A second signal goes on with "
        "ending the handlers at once.");
}

/* --- for people, all of it --- */

static void print_grace_advice(FILE *out, const sl_budget_wish *wish)
{
    const uint64_t comfortable_s = sl_budget_comfortable_grace_seconds(wish);
    char text[SENTENCE_BYTES];

    if (sl_budget_comfortable_grace(wish) <= wish->grace_ns ||
        comfortable_s > SL_BUDGET_GRACE_MAX_NS / 1000000000)
        return;
    snprintf(text, sizeof text,
             "Some parts are shorter than usual. With --grace %" PRIu64 "s each would have its usual length.",
             comfortable_s);
    sl_print_wrapped(out, (sl_print_place){ 0, 0 }, text);
}

static void print_drain_note(FILE *out, const sl_budget_wish *wish, const sl_work_members *members)
{
    char buffer[SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_work_drain_note(wish, members, &text);
    if (buffer[0] != '\0')
        sl_print_wrapped(out, (sl_print_place){ 0, 0 }, buffer);
}

static void explain_to_people(const sl_invocation *invocation, const sl_work_members *members)
{
    const sl_budget_wish wish = sl_budget_wish_read(invocation->values);
    FILE *const out = invocation->out;

    for (size_t i = 0; i < members->count; i++)
        print_worker(out, &members->all[i]);
    fprintf(out, "budget of --grace %s\n", sl_duration_in_words(members->budget.grace_ns).text);
    sl_budget_print_table(&members->budget, out);
    print_grace_advice(out, &wish);
    print_steps(out, members);
    print_drain_note(out, &wish, members);
    sl_work_deploy_print(invocation, members);
}

/* --- JSON --- */

static void print_json_retry(FILE *out, const sl_option_value *values, const sl_retry_policy *policy)
{
    uint64_t delays_ns[DELAYS_SHOWN_MAX];
    const size_t count = first_delays(policy, delays_ns);

    fprintf(out, "\"retry\": {\"kind\": \"%s\", \"attempts\": %u, \"jitter_permille\": %u, \"delays_ns\": [",
            values[SL_OPT_RETRY].text, policy->attempts_max, policy->jitter_permille);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%" PRIu64, i == 0 ? "" : ", ", delays_ns[i]);
    fputs("]}", out);
}

static void print_json_destination(FILE *out, const sl_option_value *values,
                                   const sl_destination_rules *rules)
{
    if (rules->has_breaker)
        fprintf(out, ", \"breaker\": {\"failures\": %u, \"cool_down_ns\": %" PRIu64 "}",
                rules->breaker.failures_max, rules->breaker.cool_down_ns);
    else
        fputs(", \"breaker\": null", out);
    fputs(", \"key\": ", out);
    if (values[SL_OPT_KEY].text == NULL)
        fputs("null", out);
    else
        sl_print_json_text(out, values[SL_OPT_KEY].text);
    fprintf(out, ", \"interval_ns\": %" PRIu64 ", \"concurrent_per_key\": %u", rules->interval_ns,
            rules->concurrent_max);
}

static void print_json_worker(FILE *out, const sl_work_member *member)
{
    const sl_work_plan *const plan = &member->plan;
    const sl_work_settings *const s = &plan->settings;
    const bool is_command = plan->handler == SL_WORK_BY_EXEC || plan->handler == SL_WORK_BY_LINES;

    fputs("{\"name\": ", out);
    sl_print_json_text(out, plan->name);
    fputs(", \"source\": ", out);
    sl_print_json_text(out, sl_address_without_password(plan->from).text);
    fprintf(out, ", \"handler\": {\"kind\": \"%s\", \"%s\": ", sl_work_handler_name(plan->handler),
            is_command ? "command" : "address");
    sl_print_json_text(out, is_command ? plan->handler_text
                                       : sl_address_without_password(plan->handler_text).text);
    fprintf(out,
            "}, \"slots\": %u, \"window\": %u, \"timeout_ns\": %" PRIu64 ", \"hold_max_ns\": %" PRIu64
            ", \"heartbeat_ns\": %" PRIu64 ", \"finish_unstarted\": %s, ",
            s->slots, plan->window, s->timeout_ns, s->hold_max_ns, s->heartbeat_ns,
            s->finish_unstarted ? "true" : "false");
    print_json_retry(out, member->values, &s->retry);
    print_json_destination(out, member->values, &s->destination);
    fputc('}', out);
}

static void print_json_steps(FILE *out, const sl_work_members *members)
{
    sl_work_step steps[SL_BUDGET_PART_COUNT_];

    sl_work_steps_make(members, steps);
    fputs(", \"sigterm\": [", out);
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        fprintf(out, "%s{\"part\": \"%s\", \"until_ns\": %" PRIu64 ", \"what\": ", i == 0 ? "" : ", ",
                sl_budget_part_name((sl_budget_part)i), steps[i].until_ns);
        sl_print_json_text(out, steps[i].what);
        fputc('}', out);
    }
    fputc(']', out);
}

static void print_json_note(FILE *out, const sl_budget_wish *wish, const sl_work_members *members)
{
    char buffer[SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_work_drain_note(wish, members, &text);
    fputs(", \"note\": ", out);
    if (buffer[0] == '\0')
        fputs("null", out);
    else
        sl_print_json_text(out, buffer);
}

static void explain_to_programs(const sl_invocation *invocation, const sl_work_members *members)
{
    const sl_budget_wish wish = sl_budget_wish_read(invocation->values);
    FILE *const out = invocation->out;

    fputs("{\"workers\": [", out);
    for (size_t i = 0; i < members->count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        print_json_worker(out, &members->all[i]);
    }
    fprintf(out, "], \"budget\": {\"grace_ns\": %" PRIu64 ", ", members->budget.grace_ns);
    sl_budget_print_json_parts(&members->budget, out);
    fputc('}', out);
    print_json_steps(out, members);
    print_json_note(out, &wish, members);
    sl_work_deploy_print_json(invocation, members);
    fputs("}\n", out);
}

void sl_work_explain(const sl_invocation *invocation, const sl_work_members *members)
{
    if (invocation->json)
        explain_to_programs(invocation, members);
    else
        explain_to_people(invocation, members);
}
