/* tests/simserver/report.c — see report.h. */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void report_begin(report *r, uint64_t seed, bool shows_all)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->shows_all = shows_all;
}

void report_say(report *r, const char *format, ...)
{
    char *const line = r->lines[r->line_count++ % REPORT_LINES];
    const int head =
        snprintf(line, REPORT_LINE_BYTES, "[%5" PRIu64 " %9.3f] ", r->turn, (double)r->mono_ns / 1e9);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line + head, (size_t)(REPORT_LINE_BYTES - head), format, arguments);
    va_end(arguments);
    if (r->shows_all)
        puts(line);
}

void report_fail(report *r, report_rule rule, const char *format, ...)
{
    va_list arguments;

    if (r->failed)
        return;
    r->failed = true;
    r->rule = rule;
    r->failed_turn = r->turn;
    va_start(arguments, format);
    vsnprintf(r->text, sizeof r->text, format, arguments);
    va_end(arguments);
    report_say(r, "*** rule %d: %s", (int)rule, r->text);
}

void report_count(report *r, report_situation situation)
{
    r->situations[situation]++;
}

typedef struct rule_row {
    int number;
    const char *requirements, *text;
} rule_row;

static const rule_row rules[] = {
#define XX(name, number, requirements, text) { number, requirements, text },
    REPORT_RULE_MAP(XX)
#undef XX
};

static const rule_row *rule_find(int number)
{
    size_t i = 0;

    while (rules[i].number != number)
        i++;
    return &rules[i];
}

static void print_lines(const report *r)
{
    const uint32_t first = r->line_count > REPORT_LINES ? r->line_count - REPORT_LINES : 0;

    for (uint32_t i = first; i < r->line_count; i++)
        printf("    %s\n", r->lines[i % REPORT_LINES]);
}

void report_print_failure(const report *r)
{
    const rule_row *const rule = rule_find((int)r->rule);

    printf("seed %" PRIu64 " turn %" PRIu64 ": rule %d (%s), %s: %s   [replay: simserver %" PRIu64 "]\n",
           r->seed, r->failed_turn, rule->number, rule->requirements, rule->text, r->text, r->seed);
    if (!r->shows_all)
        print_lines(r);
}

void report_print_situations(const uint64_t totals[SITUATION_COUNT_])
{
    static const char *const texts[] = {
#define XX(name, text) text,
        REPORT_SITUATION_MAP(XX)
#undef XX
    };

    for (int i = 0; i < SITUATION_COUNT_; i++)
        printf("%10" PRIu64 "  %s\n", totals[i], texts[i]);
}
