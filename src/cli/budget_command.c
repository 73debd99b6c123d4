/* cli/budget_command.c — options in, core/budget decides, a table or JSON out.
 *
 * JSON counts in nanoseconds as the core does, so that nothing is rounded on the way. A refusal is an answer
 * too: with --json it goes to the output as an object with "fits": false, and the exit code says the same. */
#include "cli/budget_command.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/str.h"
#include "core/budget.h"

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    TEXT_BYTES = 1024,
    DURATION_BYTES = 40
};

static sl_budget_wish read_wish(const sl_option_value *values)
{
    sl_budget_wish wish = { .grace_ns = values[SL_OPT_GRACE].number };

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        wish.part_ns[part] = values[SL_OPT_FENCE + part].number; /* unset is 0: derive it */
    return wish;
}

/* For people: a derived part may end in nanoseconds, which nobody wants to read. JSON has the exact number. */
static const char *duration_text(uint64_t duration_ns, char buffer[static DURATION_BYTES])
{
    sl_text text;

    sl_text_init(&text, buffer, DURATION_BYTES);
    sl_text_add_duration(&text, duration_ns - duration_ns % MILLISECOND_NS);
    return buffer;
}

/* --- a table --- */

static void print_row(FILE *out, const char *name, uint64_t length_ns, uint64_t end_ns, const char *what)
{
    char length[DURATION_BYTES], end[DURATION_BYTES];

    fprintf(out, "%-9s %10s %10s   %s\n", name, duration_text(length_ns, length), duration_text(end_ns, end),
            what);
}

static void print_nesting(const sl_budget *budget, FILE *out)
{
    char outer[DURATION_BYTES], consumer[DURATION_BYTES], workers[DURATION_BYTES], handler[DURATION_BYTES];

    fprintf(out, "\nouter %s > consumer %s > workers %s > handler %s\n",
            duration_text(sl_budget_outer_ns(budget), outer),
            duration_text(sl_budget_consumer_ns(budget), consumer),
            duration_text(sl_budget_workers_ns(budget), workers),
            duration_text(sl_budget_handler_ns(budget), handler));
}

static void print_table(const sl_budget *budget, FILE *out)
{
    const uint64_t used_ns = sl_budget_until_end_ns(budget, SL_BUDGET_RESERVE);

    fprintf(out, "%-9s %10s %10s   %s\n", "part", "time", "ends after", "what happens");
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        print_row(out, sl_budget_part_name(part), budget->part_ns[part], sl_budget_until_end_ns(budget, part),
                  sl_options[SL_OPT_FENCE + part].help);
    if (budget->grace_ns - used_ns >= MILLISECOND_NS)
        print_row(out, "unused", budget->grace_ns - used_ns, budget->grace_ns, "nobody asked for it");
    print_nesting(budget, out);
}

/* --- JSON --- */

static void print_json(const sl_budget *budget, FILE *out)
{
    fprintf(out, "{\"fits\": true, \"grace_ns\": %" PRIu64 ", \"parts\": {", budget->grace_ns);
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        fprintf(out, "%s\"%s_ns\": %" PRIu64, part == 0 ? "" : ", ", sl_budget_part_name(part),
                budget->part_ns[part]);
    fprintf(out,
            "}, \"outer_ns\": %" PRIu64 ", \"consumer_ns\": %" PRIu64 ", \"workers_ns\": %" PRIu64
            ", \"handler_ns\": %" PRIu64 "}\n",
            sl_budget_outer_ns(budget), sl_budget_consumer_ns(budget), sl_budget_workers_ns(budget),
            sl_budget_handler_ns(budget));
}

/* The reason is made of part names, numbers and plain words of the core: nothing in it needs an escape. */
static void print_json_refusal(const sl_budget_wish *wish, const char *reason, FILE *out)
{
    fprintf(out,
            "{\"fits\": false, \"grace_ns\": %" PRIu64 ", \"required_grace_ns\": %" PRIu64
            ", \"reason\": \"%s\"}\n",
            wish->grace_ns, sl_budget_required_grace(wish), reason);
}

static int refuse(const sl_budget_wish *wish, bool json, const sl_invocation *invocation)
{
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_budget_explain(wish, &text);
    if (json)
        print_json_refusal(wish, buffer, invocation->out);
    else
        fprintf(invocation->err, "sluice: %s.\n", buffer);
    return SL_EXIT_FAILED;
}

int sl_budget_command(const sl_invocation *invocation)
{
    const bool json = invocation->values[SL_OPT_JSON].number != 0;
    const sl_budget_wish wish = read_wish(invocation->values);
    sl_budget budget;

    if (sl_budget_make(&wish, &budget) != SL_OK)
        return refuse(&wish, json, invocation);
    if (json)
        print_json(&budget, invocation->out);
    else
        print_table(&budget, invocation->out);
    return SL_EXIT_OK;
}
