/* core/budget.c — see core/budget.h for the model.
 *
 * How a grace is shared. Set parts are taken off first. Each open part (derived or unlimited) gets its lower
 * bound. What is left then is the spare time, and each open part weighs as much as its usual length exceeds
 * its lower bound. With less spare time than weight everybody gets a share in proportion, so that a short
 * grace shortens all parts alike; with more, everybody gets the usual length and the takers divide the
 * surplus. So the result moves without jumps when the grace does, and a wish with
 * sl_budget_comfortable_grace() gives exactly the usual lengths.
 *
 * Shares in proportion are whole milliseconds, because people read them and expect them to add up. They are
 * cut from one line at rounded places instead of being rounded one by one: so they never sum to more than
 * there is, and none exceeds its weight. */
#include "core/budget.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS      UINT64_C(1000000000)

static const struct part_row {
    const char *name;
    uint64_t least_ms, usual_ms;
} rows[] = {
#define XX(name, text, least, usual) [SL_BUDGET_##name] = { text, least, usual },
    SL_BUDGET_PART_MAP(XX)
#undef XX
};
static_assert(SL_COUNT_OF(rows) == SL_BUDGET_PART_COUNT_, "one row for each part");

/* Everything that splitting and explaining need to know about a wish. */
typedef struct tally {
    uint64_t least_ns;    /* set parts + lower bounds of the open ones: the least grace that is accepted */
    uint64_t weight_ms;   /* of the open parts */
    uint64_t taker_count; /* open parts that take what is left */
} tally;

const char *sl_budget_part_name(sl_budget_part part)
{
    assert((unsigned)part < SL_BUDGET_PART_COUNT_);
    return rows[part].name;
}

uint64_t sl_budget_least_ns(sl_budget_part part)
{
    assert((unsigned)part < SL_BUDGET_PART_COUNT_);
    return rows[part].least_ms * MILLISECOND_NS;
}

uint64_t sl_budget_usual_ns(sl_budget_part part)
{
    assert((unsigned)part < SL_BUDGET_PART_COUNT_);
    return rows[part].usual_ms * MILLISECOND_NS;
}

static uint64_t weight_ms(sl_budget_part part)
{
    return rows[part].usual_ms - rows[part].least_ms;
}

static bool is_set(const sl_budget_wish *wish, sl_budget_part part)
{
    return wish->part_ns[part] != 0 && wish->part_ns[part] != SL_BUDGET_UNLIMITED;
}

static bool is_taker(const sl_budget_wish *wish, sl_budget_part part)
{
    const bool derived_settle = part == SL_BUDGET_SETTLE && wish->part_ns[part] == 0;

    return derived_settle || wish->part_ns[part] == SL_BUDGET_UNLIMITED;
}

/* What the part takes at least: a set one is what it is. */
static uint64_t least_of(const sl_budget_wish *wish, sl_budget_part part)
{
    return is_set(wish, part) ? wish->part_ns[part] : sl_budget_least_ns(part);
}

/* For wishes whose parts are in bounds: six times 30 days is no sum to worry about. */
static tally sum_up(const sl_budget_wish *wish)
{
    tally sums = { 0 };

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        sums.least_ns += least_of(wish, part);
        sums.weight_ms += is_set(wish, part) ? 0 : weight_ms(part);
        sums.taker_count += is_taker(wish, part);
    }
    return sums;
}

/* Open parts are always in bounds: theirs are made here. */
static bool is_in_bounds(const sl_budget_wish *wish, sl_budget_part part)
{
    const uint64_t part_ns = least_of(wish, part);

    return part_ns >= sl_budget_least_ns(part) && part_ns <= SL_BUDGET_GRACE_MAX_NS;
}

static sl_err judge(const sl_budget_wish *wish)
{
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        if (!is_in_bounds(wish, part))
            return SL_ERR_INVALID;
    if (wish->grace_ns > SL_BUDGET_GRACE_MAX_NS)
        return SL_ERR_INVALID;
    return sum_up(wish).least_ns > wish->grace_ns ? SL_ERR_BUDGET : SL_OK;
}

/* Where the shares of the first open parts, weight_ms of them together, end on the line of spare time. In the
 * second branch spare_ns is below the 30 s of all weights, so the product is far from 64 bits. */
static uint64_t cut_at(uint64_t weight, const tally *sums, uint64_t spare_ns)
{
    if (spare_ns >= sums->weight_ms * MILLISECOND_NS)
        return weight * MILLISECOND_NS;
    const uint64_t end_ns = spare_ns * weight / sums->weight_ms;
    return end_ns - end_ns % MILLISECOND_NS;
}

/* Gives every part its lower bound and its share. Returns what is left of the spare time. */
static uint64_t share_out(const sl_budget_wish *wish, const tally *sums, sl_budget *budget)
{
    const uint64_t spare_ns = wish->grace_ns - sums->least_ns;
    uint64_t weight = 0, shared_ns = 0;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        weight += is_set(wish, part) ? 0 : weight_ms(part);
        const uint64_t end_ns = weight == 0 ? 0 : cut_at(weight, sums, spare_ns);

        budget->part_ns[part] = least_of(wish, part) + end_ns - shared_ns;
        shared_ns = end_ns;
    }
    return spare_ns - shared_ns;
}

/* The surplus, in equal shares; the last takers get the few nanoseconds that the divisions leave. */
static void feed_takers(const sl_budget_wish *wish, const tally *sums, uint64_t left_ns, sl_budget *budget)
{
    uint64_t hungry = sums->taker_count;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        if (!is_taker(wish, part))
            continue;
        const uint64_t portion_ns = left_ns / hungry;

        budget->part_ns[part] += portion_ns;
        left_ns -= portion_ns;
        hungry--;
    }
}

sl_err sl_budget_make(const sl_budget_wish *wish, sl_budget *ret_budget)
{
    const sl_err err = judge(wish);
    if (err != SL_OK)
        return err;

    const tally sums = sum_up(wish);
    sl_budget budget = { .grace_ns = wish->grace_ns };
    const uint64_t left_ns = share_out(wish, &sums, &budget);

    feed_takers(wish, &sums, left_ns, &budget);
    sl_budget_check(&budget);
    *ret_budget = budget;
    return SL_OK;
}

uint64_t sl_budget_until_end_ns(const sl_budget *budget, sl_budget_part part)
{
    uint64_t sum_ns = 0;

    assert((unsigned)part < SL_BUDGET_PART_COUNT_);
    for (sl_budget_part each = 0; each <= part; each++)
        sum_ns += budget->part_ns[each];
    return sum_ns;
}

uint64_t sl_budget_outer_ns(const sl_budget *budget)
{
    return budget->grace_ns;
}

uint64_t sl_budget_consumer_ns(const sl_budget *budget)
{
    return sl_budget_until_end_ns(budget, SL_BUDGET_CLOSE);
}

uint64_t sl_budget_workers_ns(const sl_budget *budget)
{
    return budget->part_ns[SL_BUDGET_SETTLE] + budget->part_ns[SL_BUDGET_ABORT];
}

uint64_t sl_budget_handler_ns(const sl_budget *budget)
{
    return budget->part_ns[SL_BUDGET_SETTLE];
}

void sl_budget_check(const sl_budget *budget)
{
    assert(budget->grace_ns <= SL_BUDGET_GRACE_MAX_NS);
    assert(sl_budget_until_end_ns(budget, SL_BUDGET_RESERVE) <= budget->grace_ns);
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        assert(budget->part_ns[part] >= sl_budget_least_ns(part));
    assert(sl_budget_outer_ns(budget) > sl_budget_consumer_ns(budget));
    assert(sl_budget_consumer_ns(budget) > sl_budget_workers_ns(budget));
    assert(sl_budget_workers_ns(budget) > sl_budget_handler_ns(budget));
}

uint64_t sl_budget_unused_ns(const sl_budget *budget)
{
    return budget->grace_ns - sl_budget_until_end_ns(budget, SL_BUDGET_RESERVE);
}

uint64_t sl_budget_least_grace(const sl_budget_wish *wish)
{
    uint64_t sum_ns = 0;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        sum_ns = sl_add_sat_u64(sum_ns, least_of(wish, part));
    return sum_ns;
}

uint64_t sl_budget_comfortable_grace(const sl_budget_wish *wish)
{
    uint64_t sum_ns = 0;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++)
        sum_ns = sl_add_sat_u64(sum_ns, is_set(wish, part) ? wish->part_ns[part] : sl_budget_usual_ns(part));
    return sum_ns;
}

uint64_t sl_budget_comfortable_grace_seconds(const sl_budget_wish *wish)
{
    const uint64_t grace_ns = sl_budget_comfortable_grace(wish);

    return grace_ns / SECOND_NS + (grace_ns % SECOND_NS != 0);
}

static void add(sl_text *text, const char *words, uint64_t duration_ns)
{
    sl_text_add(text, words);
    sl_text_add_duration(text, duration_ns);
}

static void add_part(sl_text *text, sl_budget_part part, const char *words, uint64_t duration_ns)
{
    sl_text_add(text, rows[part].name);
    add(text, words, duration_ns);
}

static void explain_split(const sl_budget *budget, sl_text *text)
{
    add(text, "grace ", budget->grace_ns);
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        sl_text_add(text, part == 0 ? " = " : " + ");
        add_part(text, part, " ", budget->part_ns[part]);
    }
    if (sl_budget_unused_ns(budget) != 0)
        add(text, " + unused ", sl_budget_unused_ns(budget));
    add(text, "; outer ", sl_budget_outer_ns(budget));
    add(text, " > consumer ", sl_budget_consumer_ns(budget));
    add(text, " > workers ", sl_budget_workers_ns(budget));
    add(text, " > handler ", sl_budget_handler_ns(budget));
}

static void explain_out_of_bounds(const sl_budget_wish *wish, sl_text *text)
{
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        if (is_in_bounds(wish, part))
            continue;
        add_part(text, part, " ", wish->part_ns[part]);
        add(text, " is out of bounds: set it between ", sl_budget_least_ns(part));
        add(text, " and ", SL_BUDGET_GRACE_MAX_NS);
        return;
    }
    add(text, "grace ", wish->grace_ns);
    add(text, " is out of bounds: set it to at most ", SL_BUDGET_GRACE_MAX_NS);
}

/* The set part from which most can be taken; SL_BUDGET_PART_COUNT_ when no single part has enough. */
static sl_budget_part part_to_lower(const sl_budget_wish *wish, uint64_t excess_ns)
{
    sl_budget_part found = SL_BUDGET_PART_COUNT_;
    uint64_t room_max_ns = 0;

    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        const uint64_t room_ns = least_of(wish, part) - sl_budget_least_ns(part);

        if (room_ns >= excess_ns && room_ns > room_max_ns) {
            found = part;
            room_max_ns = room_ns;
        }
    }
    return found;
}

static void explain_sum(const sl_budget_wish *wish, sl_text *text)
{
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        sl_text_add(text, part == 0 ? "" : " + ");
        add_part(text, part, is_set(wish, part) ? " " : " at least ", least_of(wish, part));
    }
    add(text, " = ", sum_up(wish).least_ns);
    add(text, " does not fit into grace ", wish->grace_ns);
}

/* The least grace is a way out, but a tight one: where parts would be at their lower bounds, the comfortable
 * one is named as well. Nothing is advised that would be refused. */
static void advise_to_raise(const sl_budget_wish *wish, uint64_t least_ns, sl_text *text)
{
    const uint64_t comfortable_ns = sl_budget_comfortable_grace(wish);

    add(text, ": raise grace to at least ", least_ns);
    if (comfortable_ns > least_ns && comfortable_ns <= SL_BUDGET_GRACE_MAX_NS) {
        add(text, " (", comfortable_ns);
        sl_text_add(text, " is comfortable)");
    }
}

static void advise_to_lower(const sl_budget_wish *wish, uint64_t excess_ns, const char *words, sl_text *text)
{
    const sl_budget_part part = part_to_lower(wish, excess_ns);
    if (part == SL_BUDGET_PART_COUNT_)
        return;

    const uint64_t lower_ns = wish->part_ns[part] - excess_ns;

    sl_text_add(text, words);
    add_part(text, part, " to ", lower_ns);
    if (lower_ns > sl_budget_least_ns(part))
        sl_text_add(text, " or less");
}

static void explain_excess(const sl_budget_wish *wish, sl_text *text)
{
    const uint64_t least_ns = sl_budget_least_grace(wish);

    explain_sum(wish, text);
    if (least_ns <= SL_BUDGET_GRACE_MAX_NS) {
        advise_to_raise(wish, least_ns, text);
        advise_to_lower(wish, least_ns - wish->grace_ns, ", or lower ", text);
        return;
    }
    add(text, ", and no grace may be longer than ", SL_BUDGET_GRACE_MAX_NS);
    advise_to_lower(wish, least_ns - wish->grace_ns, ": lower ", text);
}

void sl_budget_explain(const sl_budget_wish *wish, sl_text *text)
{
    sl_budget budget;
    const sl_err err = sl_budget_make(wish, &budget);

    if (err == SL_OK)
        explain_split(&budget, text);
    else if (err == SL_ERR_INVALID)
        explain_out_of_bounds(wish, text);
    else
        explain_excess(wish, text);
}
