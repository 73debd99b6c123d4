/* worker/source/schedule_plan.c — the words and the arithmetic of a schedule; see schedule_source.h. Nothing here knows a clock. */
#include "base/cleanup.h"
#include "worker/schedule_source.h"
#include "worker/source/words.h"

#include <assert.h>

#define MS_NS   UINT64_C(1000000)
#define HOUR_NS UINT64_C(3600000000000)

static const sl_duration_bounds every_bounds = { 10 * MS_NS, 8784 * HOUR_NS };
static const sl_duration_bounds cooldown_bounds = { 0, 8784 * HOUR_NS };

/* --- words --- */

/* What was read; the percentage is of an interval that may be named later. */
typedef struct words_read {
    sl_schedule_rules rules;
    uint64_t jitter_percent;
} words_read;

static sl_err set_every(void *into, sl_str value)
{
    words_read *const read = into;

    return sl_str_parse_duration(value, every_bounds, &read->rules.every_ns);
}

static sl_err set_jitter(void *into, sl_str value)
{
    words_read *const read = into;
    sl_str number, rest;
    uint64_t percent;

    if (!sl_str_cut(value, '%', &number, &rest) || rest.bytes > 0)
        return SL_ERR_INVALID;
    if (sl_str_parse_u64(number, &percent) != SL_OK || percent > 100)
        return SL_ERR_INVALID;
    read->jitter_percent = percent;
    return SL_OK;
}

static sl_err set_cooldown(void *into, sl_str value)
{
    words_read *const read = into;

    return sl_str_parse_duration(value, cooldown_bounds, &read->rules.cooldown_ns);
}

static sl_err set_at_start(void *into, sl_str value)
{
    words_read *const read = into;

    read->rules.at_start = sl_str_equal(value, SL_STR("yes"));
    return read->rules.at_start || sl_str_equal(value, SL_STR("no")) ? SL_OK : SL_ERR_INVALID;
}

static const sl_word all[] = {
    { SL_STR_INIT("every"), set_every,
      "the time from one tick to the next, like 30m or 500ms, from 10ms to 8784h" },
    { SL_STR_INIT("jitter"), set_jitter,
      "how much later a tick may come, in percent of every=, from 0% to 100%" },
    { SL_STR_INIT("cooldown"), set_cooldown,
      "the rest after work that took too long, like 5m, from 0 to 8784h" },
    { SL_STR_INIT("at-start"), set_at_start, "whether the first tick comes at once, yes or no" },
};

static const sl_words words = {
    .who = "The schedule",
    .scheme = SL_STR_INIT("schedule:"),
    .all = all,
    .count = SL_COUNT_OF(all),
    .known = "it knows every=, jitter=, cooldown= and at-start=, with commas between them",
};

/* Without a rounding error and without passing 64 bits. */
static uint64_t percent_of(uint64_t whole, uint64_t percent)
{
    return whole / 100 * percent + whole % 100 * percent / 100;
}

sl_err sl_schedule_parse(sl_str text, sl_text *problem, sl_schedule_rules *ret_rules)
{
    words_read read = { .rules.at_start = true };
    sl_text copy;

    sl_text_init(&copy, read.rules.text, sizeof read.rules.text);
    sl_text_add_str(&copy, sl_words_text(&words, text));
    if (copy.cut)
        return sl_words_refuse(&words, sl_text_str(&copy), NULL, "it is longer than 200 bytes", problem);
    if (sl_words_read(&words, text, &read, problem) != SL_OK)
        return SL_ERR_INVALID;
    if (read.rules.every_ns == 0)
        return sl_words_refuse(&words, sl_text_str(&copy), NULL,
                               "it must say every=, the time from one tick to the next", problem);
    read.rules.jitter_ns = percent_of(read.rules.every_ns, read.jitter_percent);
    *ret_rules = read.rules;
    return SL_OK;
}

/* --- arithmetic --- */

static sl_schedule_tick tick_at(const sl_schedule_rules *rules, uint64_t nominal_ns, uint64_t random)
{
    const uint64_t jitter_ns = random % (rules->jitter_ns + 1);

    return (sl_schedule_tick){ .nominal_ns = nominal_ns, .due_ns = sl_add_sat_u64(nominal_ns, jitter_ns) };
}

sl_schedule_tick sl_schedule_first(const sl_schedule_rules *rules, uint64_t start_ns, uint64_t random)
{
    if (rules->at_start)
        return (sl_schedule_tick){ .nominal_ns = start_ns, .due_ns = start_ns };
    return tick_at(rules, sl_add_sat_u64(start_ns, rules->every_ns), random);
}

sl_schedule_tick sl_schedule_next(const sl_schedule_rules *rules, uint64_t last_nominal_ns, uint64_t ended_ns,
                                  uint64_t random)
{
    const uint64_t next_ns = sl_add_sat_u64(last_nominal_ns, rules->every_ns);
    sl_schedule_tick tick;
    uint64_t allowed_ns, skipped;

    assert(rules->every_ns > 0);
    if (ended_ns <= next_ns)
        return tick_at(rules, next_ns, random);
    allowed_ns = sl_add_sat_u64(ended_ns, rules->cooldown_ns);
    skipped = (allowed_ns - next_ns - 1) / rules->every_ns + 1; /* rounded up: allowed_ns is behind next_ns */
    tick = tick_at(rules, sl_add_sat_u64(next_ns, skipped * rules->every_ns), random);
    tick.missed = skipped;
    return tick;
}

sl_schedule_tick sl_schedule_due(const sl_schedule_rules *rules, sl_schedule_tick planned, uint64_t now_ns)
{
    const uint64_t behind_ns = now_ns > planned.due_ns ? now_ns - planned.nominal_ns : 0;
    const uint64_t skipped = behind_ns / rules->every_ns;

    if (skipped == 0)
        return planned;
    planned.nominal_ns += skipped * rules->every_ns;
    planned.due_ns = planned.nominal_ns;
    planned.missed += skipped;
    return planned;
}

uint64_t sl_schedule_overdue_ns(const sl_schedule_rules *rules, uint64_t since_ns)
{
    return sl_add_sat_u64(since_ns, sl_add_sat_u64(rules->every_ns, rules->every_ns));
}
