/* cli/work_steps.c — see work_steps.h. */
#include "cli/work_steps.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"

sl_work_origin sl_work_origin_of(const sl_work_plan *plan)
{
    char sentence[SL_WORK_STEP_BYTES];
    sl_client_address address = { .is_kurrentdb = false };
    bool is_kurrentdb;
    sl_text problem;

    if (plan->source.kind != SL_SOURCE_KIND_CONSUMER)
        return plan->source.kind == SL_SOURCE_KIND_SCHEDULE ? SL_WORK_FROM_SCHEDULE : SL_WORK_FROM_MEMORY;
    sl_text_init(&problem, sentence, sizeof sentence);
    is_kurrentdb = sl_client_address_parse(sl_str_from(plan->source.server), &problem, &address) == SL_OK &&
                   address.is_kurrentdb;
    explicit_bzero(&address, sizeof address); /* it may have a password */
    return is_kurrentdb ? SL_WORK_FROM_KURRENTDB : SL_WORK_FROM_SLUICE;
}

/* --- the steps --- */

/* Several workers share what is the same for them. */
static void add_once(sl_text *text, const char *words)
{
    if (strstr(text->data, words) != NULL)
        return;
    sl_text_add(text, text->data[0] == '\0' ? "" : "; ");
    sl_text_add(text, words);
}

static void add_fence_of_tick(sl_text *text, const sl_budget *budget)
{
    char words[SL_WORK_STEP_BYTES];

    snprintf(words, sizeof words,
             "a tick that runs is cancelled at once, with SIGTERM, and %s (abort) later with SIGKILL",
             sl_duration_in_words(budget->part_ns[SL_BUDGET_ABORT]).text);
    add_once(text, words);
}

static void add_fence(sl_text *text, sl_work_origin origin, const sl_work_plan *plan, const sl_budget *budget)
{
    const bool confirms = origin != SL_WORK_FROM_KURRENTDB;

    add_once(text, "not ready any more");
    if (origin == SL_WORK_FROM_SCHEDULE) {
        add_fence_of_tick(text, budget);
        return;
    }
    add_once(text, confirms ? "the source confirms that nothing new comes"
                            : "KurrentDB cannot confirm that nothing new comes, and nothing new is begun");
    if (plan->settings.finish_unstarted)
        add_once(text, "with --finish-unstarted what waits is kept and worked on");
    else
        add_once(text, confirms ? "what was not begun is handed back, uncharged"
                                : "what was not begun goes to others when the call ends");
}

static void add_flush(sl_text *text, sl_work_origin origin)
{
    if (origin == SL_WORK_FROM_SCHEDULE)
        add_once(text, "a tick needs no confirmation");
    else if (origin == SL_WORK_FROM_KURRENTDB)
        add_once(text, "KurrentDB reads the acknowledgements, and cannot confirm them");
    else
        add_once(text, "acknowledgements are confirmed by the source");
}

static void add_part(sl_text *text, sl_budget_part part, const sl_work_plan *plan, const sl_budget *budget)
{
    const sl_work_origin origin = sl_work_origin_of(plan);
    const bool is_tick = origin == SL_WORK_FROM_SCHEDULE;

    switch (part) {
    case SL_BUDGET_FENCE: add_fence(text, origin, plan, budget); break;
    case SL_BUDGET_SETTLE:
        add_once(text, is_tick ? "the tick that was cancelled ends" : "work that was begun may finish");
        break;
    case SL_BUDGET_ABORT:
        add_once(text, is_tick ? "a tick that has not ended by SIGKILL is given up"
                               : "handlers that are left get SIGTERM, at half of this time SIGKILL; their "
                                 "messages are released");
        break;
    case SL_BUDGET_FLUSH: add_flush(text, origin); break;
    case SL_BUDGET_CLOSE: add_once(text, "connections are closed"); break;
    case SL_BUDGET_RESERVE: add_once(text, "report and exit: 0, or 5 if something was left behind"); break;
    case SL_BUDGET_PART_COUNT_: break;
    }
}

void sl_work_steps_make(const sl_work_members *members, sl_work_step ret_steps[static SL_BUDGET_PART_COUNT_])
{
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        sl_text text;

        ret_steps[part].until_ns = sl_budget_until_end_ns(&members->budget, part);
        sl_text_init(&text, ret_steps[part].what, sizeof ret_steps[part].what);
        for (size_t i = 0; i < members->count; i++)
            add_part(&text, part, &members->all[i].plan, &members->budget);
    }
}

/* --- what does not finish --- */

/* The longest of all workers; UINT64_MAX: one has no limit. A tick is cancelled and not waited for. */
static uint64_t longest_work_ns(const sl_work_members *members)
{
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < members->count; i++) {
        const sl_work_plan *const plan = &members->all[i].plan;
        const uint64_t timeout_ns = plan->settings.timeout_ns == 0 ? UINT64_MAX : plan->settings.timeout_ns;
        if (sl_work_origin_of(plan) != SL_WORK_FROM_SCHEDULE)
            longest_ns = sl_max_u64(longest_ns, timeout_ns);
    }
    return longest_ns;
}

/* The same wish with time for all work: a longer grace, and settle too where that is not derived or has to share. False: none is long enough. */
static bool wish_for(const sl_budget_wish *wish, uint64_t work_ns, sl_budget_wish *ret_longer)
{
    sl_budget_wish set = *wish, derived = *wish;
    sl_budget budget;

    set.part_ns[SL_BUDGET_SETTLE] = work_ns;
    set.grace_ns =
        sl_max_u64(wish->grace_ns, sl_budget_comfortable_grace_seconds(&set) * UINT64_C(1000000000));
    derived.grace_ns = set.grace_ns;
    *ret_longer = sl_budget_make(&derived, &budget) == SL_OK && budget.part_ns[SL_BUDGET_SETTLE] >= work_ns
                      ? derived
                      : set;
    return sl_budget_make(ret_longer, &budget) == SL_OK;
}

static void add_option(sl_text *text, const char *name, uint64_t before_ns, uint64_t now_ns)
{
    if (now_ns == before_ns)
        return;
    sl_text_add(text, name);
    sl_text_add_duration(text, now_ns);
}

void sl_work_drain_note(const sl_budget_wish *wish, const sl_work_members *members, sl_text *text)
{
    const uint64_t settle_ns = members->budget.part_ns[SL_BUDGET_SETTLE];
    const uint64_t work_ns = longest_work_ns(members);
    sl_budget_wish longer;

    if (work_ns <= settle_ns)
        return;
    sl_text_add(text, work_ns == UINT64_MAX ? "Note: work has no time limit" : "Note: work may take ");
    if (work_ns != UINT64_MAX)
        sl_text_add_duration(text, work_ns);
    sl_text_add(text, " (--timeout) but has only ");
    sl_text_add_duration(text, settle_ns);
    sl_text_add(text, " (settle) in a drain: what takes longer is ended, and run again by the next worker.");
    if (work_ns == UINT64_MAX || !wish_for(wish, work_ns, &longer))
        return;
    add_option(text, " --grace ", wish->grace_ns, longer.grace_ns);
    add_option(text, " --settle ", wish->part_ns[SL_BUDGET_SETTLE], longer.part_ns[SL_BUDGET_SETTLE]);
    sl_text_add(text, " finishes everything that was begun.");
}
