/* cli/budget_command.c — options in, core/budget decides, a table or JSON out.
 *
 * JSON counts in nanoseconds as the core does; the table shows the same numbers with units. Neither rounds, so
 * that what is shown adds up. A refusal is an answer too: with --json it goes to the output as an object with
 * "fits": false, and the exit code says the same. */
#include "cli/budget_command.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/print.h"
#include "core/budget.h"

enum {
    TEXT_BYTES = 1024,
    LABEL_BYTES = 2 * SL_DURATION_WORDS_BYTES + 32,
    ROWS_MAX = SL_BUDGET_PART_COUNT_ + 1
};

sl_budget_wish sl_budget_wish_read(const sl_option_value *values)
{
    sl_budget_wish wish = { .grace_ns = values[SL_OPT_GRACE].number };

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        wish.part_ns[part] = values[SL_OPT_FENCE + part].number; /* unset is 0: derive it */
    return wish;
}

/* --- a table --- */

typedef struct row {
    const char *name, *what;
    sl_duration_words length, end;
} row;

static size_t make_rows(const sl_budget *budget, row rows[static ROWS_MAX])
{
    const uint64_t unused_ns = sl_budget_unused_ns(budget);
    size_t count = 0;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        rows[count++] = (row){ .name = sl_budget_part_name(part),
                               .what = sl_options[SL_OPT_FENCE + part].help,
                               .length = sl_duration_in_words(budget->part_ns[part]),
                               .end = sl_duration_in_words(sl_budget_until_end_ns(budget, part)) };
    if (unused_ns != 0)
        rows[count++] = (row){ .name = "unused",
                               .what = "nobody asked for it",
                               .length = sl_duration_in_words(unused_ns),
                               .end = sl_duration_in_words(budget->grace_ns) };
    return count;
}

static size_t wider(size_t width, const char *text)
{
    return strlen(text) > width ? strlen(text) : width;
}

void sl_budget_print_table(const sl_budget *budget, FILE *out)
{
    static const char time_head[] = "time", end_head[] = "ends after";
    row rows[ROWS_MAX];
    const size_t row_count = make_rows(budget, rows);
    size_t time_width = sizeof time_head - 1, end_width = sizeof end_head - 1;
    char label[LABEL_BYTES];

    for (size_t i = 0; i < row_count; i++) {
        time_width = wider(time_width, rows[i].length.text);
        end_width = wider(end_width, rows[i].end.text);
    }
    snprintf(label, sizeof label, "%-8s %*s  %*s", "part", (int)time_width, time_head, (int)end_width,
             end_head);
    sl_print_entry(out, label, strlen(label), "what happens");
    for (size_t i = 0; i < row_count; i++) {
        snprintf(label, sizeof label, "%-8s %*s  %*s", rows[i].name, (int)time_width, rows[i].length.text,
                 (int)end_width, rows[i].end.text);
        sl_print_entry(out, label, strlen(label), rows[i].what);
    }
}

static void print_nesting(const sl_budget *budget, FILE *out)
{
    const struct {
        const char *name, *what;
        sl_duration_words limit;
    } rows[] = {
        { "outer", "the whole grace", sl_duration_in_words(sl_budget_outer_ns(budget)) },
        { "consumer", "all parts but the reserve", sl_duration_in_words(sl_budget_consumer_ns(budget)) },
        { "workers", "settle + abort: the last handler is gone",
          sl_duration_in_words(sl_budget_workers_ns(budget)) },
        { "handler", "settle: what one message may still take",
          sl_duration_in_words(sl_budget_handler_ns(budget)) },
    };
    size_t width = 0;
    char label[LABEL_BYTES];

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        width = wider(width, rows[i].limit.text);
    fprintf(out, "\nlimits, each inside the one before:\n");
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        snprintf(label, sizeof label, "%-8s %*s", rows[i].name, (int)width, rows[i].limit.text);
        sl_print_entry(out, label, strlen(label), rows[i].what);
    }
}

/* --- JSON --- */

/* A grace that would be refused is no advice: then there is none, and null says so. */
static void print_json_grace(FILE *out, const char *name, uint64_t grace_ns)
{
    if (grace_ns <= SL_BUDGET_GRACE_MAX_NS)
        fprintf(out, ", \"%s\": %" PRIu64, name, grace_ns);
    else
        fprintf(out, ", \"%s\": null", name);
}

static void print_json_head(const sl_budget_wish *wish, bool fits, FILE *out)
{
    fprintf(out, "{\"fits\": %s, \"grace_ns\": %" PRIu64, fits ? "true" : "false", wish->grace_ns);
    print_json_grace(out, "minimum_grace_ns", sl_budget_least_grace(wish));
    print_json_grace(out, "comfortable_grace_ns", sl_budget_comfortable_grace(wish));
}

void sl_budget_print_json_parts(const sl_budget *budget, FILE *out)
{
    fprintf(out, "\"parts\": {");
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        fprintf(out, "%s\"%s_ns\": %" PRIu64, part == 0 ? "" : ", ", sl_budget_part_name(part),
                budget->part_ns[part]);
    fprintf(out,
            "}, \"unused_ns\": %" PRIu64 ", \"outer_ns\": %" PRIu64 ", \"consumer_ns\": %" PRIu64
            ", \"workers_ns\": %" PRIu64 ", \"handler_ns\": %" PRIu64,
            sl_budget_unused_ns(budget), sl_budget_outer_ns(budget), sl_budget_consumer_ns(budget),
            sl_budget_workers_ns(budget), sl_budget_handler_ns(budget));
}

static void print_json(const sl_budget_wish *wish, const sl_budget *budget, FILE *out)
{
    print_json_head(wish, true, out);
    fprintf(out, ", ");
    sl_budget_print_json_parts(budget, out);
    fprintf(out, "}\n");
}

static void print_json_refusal(const sl_budget_wish *wish, const char *reason, FILE *out)
{
    print_json_head(wish, false, out);
    fprintf(out, ", \"reason\": ");
    sl_print_json_text(out, reason);
    fprintf(out, "}\n");
}

/* A number that is out of bounds is a mistake of the command line, whoever notices it. */
static int refuse(const sl_budget_wish *wish, sl_err err, const sl_invocation *invocation)
{
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_budget_explain(wish, &text);
    if (err != SL_ERR_INVALID && invocation->json) {
        print_json_refusal(wish, buffer, invocation->out);
        return SL_EXIT_FAILED;
    }
    sl_text_add_char(&text, '.');
    if (err == SL_ERR_INVALID)
        return sl_cli_complain(invocation, buffer);
    sl_print_complaint(invocation->err, buffer);
    return SL_EXIT_FAILED;
}

static int run_budget(const sl_invocation *invocation)
{
    const sl_budget_wish wish = sl_budget_wish_read(invocation->values);
    sl_budget budget;
    const sl_err err = sl_budget_make(&wish, &budget);

    if (err != SL_OK)
        return refuse(&wish, err, invocation);
    if (invocation->json) {
        print_json(&wish, &budget, invocation->out);
        return SL_EXIT_OK;
    }
    sl_budget_print_table(&budget, invocation->out);
    print_nesting(&budget, invocation->out);
    return SL_EXIT_OK;
}

static const char budget_details[] =
    "Shows how a worker will spend its grace: the time that the orchestrator leaves it between SIGTERM "
    "and SIGKILL. The parts follow each other in the order of the options below.\n\n"
    "TIME is a number with its unit: h, m, s, ms, us or ns. Units may be joined, from large to small, "
    "and the last number may have a fraction: 30s, 250ms, 1.5m, 2m30s.\n\n"
    "A part that is not set is derived. Each gets its lower bound; what is left of the grace is shared "
    "in proportion, up to the usual lengths (fence 2s, settle 20s, abort 3s, flush 2s, close 2s, reserve "
    "1s: 30s together); and what is left then goes to settle. With settle set it stays unused.\n\n"
    "A budget that does not fit is refused with the arithmetic, and the exit code is 1: run it in a "
    "deploy pipeline with the numbers of the deployment. The refusal names the least grace that would be "
    "accepted, where derived parts are at their lower bounds, and the comfortable one, where they have "
    "their usual lengths.\n\n"
    "The answer ends with four limits, each inside the one before: outer is the grace; consumer is all "
    "but the reserve; workers is settle and abort, until the last handler is gone; handler is settle, "
    "what a single message may still take. Timeouts that you set elsewhere should be in the same order.\n";

const sl_command sl_command_budget = {
    .name = "budget",
    .bit = SL_COMMAND_BUDGET,
    .words = "",
    .words_min = 0,
    .words_max = 0,
    .run = run_budget,
    .summary = "split a shutdown grace into its parts",
    .details = budget_details,
    .examples = "Check the numbers of a deployment before it is deployed:\n"
                "  sluice budget --grace 45s --settle 30s\n",
};
