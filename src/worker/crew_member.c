/* worker/crew_member.c — one member: made, watched, retired, judged.
 *
 *      UNMADE --make--> WORKING --over, or its limit--> judged --> UNMADE (after a pause) or ENDED */
#include "worker/crew_private.h"

#include "base/cleanup.h"

/* --- a life --- */

void sl_crew_keep_problem(char kept[SL_CREW_PROBLEM_BYTES], const char *sentence)
{
    sl_text text;

    sl_text_init(&text, kept, SL_CREW_PROBLEM_BYTES);
    sl_text_add(&text, sentence);
}

static void on_up(void *ctx, sl_work *work)
{
    sl_member *const member = ctx;

    (void)work;
    member->was_up = true;
    member->was_ever_up = true;
    member->up_since_ns = sl_loop_now_ns(member->crew->loop);
}

static const sl_work_watcher watcher = { .up = on_up };

static void say_gave_up(const sl_member *member, sl_text *sentence)
{
    sl_text_add(sentence, "Worker ");
    sl_text_add(sentence, member->made_of->settings.name);
    sl_text_add(sentence, " failed ");
    sl_text_add_u64(sentence, member->failures);
    sl_text_add(sentence, member->failures == 1 ? " time" : " times in a row");
    if (member->problem[0] != '\0') {
        sl_text_add(sentence, ", at last: ");
        sl_text_add(sentence, member->problem);
    }
}

static void wait_for_next_life(sl_member *member, uint64_t pause_ns)
{
    member->state = SL_MEMBER_UNMADE;
    member->again_ns = sl_add_sat_u64(sl_loop_now_ns(member->crew->loop), pause_ns);
    sl_log(&member->crew->log, SL_LOG_WARN, "a worker will be started again",
           SL_LOG_STR("name", member->made_of->settings.name), SL_LOG_DURATION("after", pause_ns),
           SL_LOG_U64("failures", member->failures),
           SL_LOG_U64("failures_max", member->crew->rules.restarts_max));
}

/* What cannot be made has failed for a reason of this machine, such as an ack file that somebody else has locked; no source was asked. */
static sl_crew_failure failure_of(const sl_crew_life *life)
{
    if (!life->was_made)
        return (sl_crew_failure){ SL_CREW_NOT_STARTED, SL_DRAIN_REASON_START_FAILED, SL_CREW_CAUSE_OTHER };
    return (sl_crew_failure){ SL_CREW_LOST, life->reason,
                              life->end == SL_WORK_ENDED_REFUSED ? SL_CREW_CAUSE_REFUSED
                                                                 : SL_CREW_CAUSE_AWAY };
}

/* A life of it is over: what comes next. */
static void judge(sl_member *member, const sl_crew_life *life)
{
    sl_crew *const crew = member->crew;
    char sentence[SL_CREW_PROBLEM_BYTES];
    uint64_t pause_ns;
    sl_text text;

    member->state = SL_MEMBER_ENDED;
    if (crew->is_draining)
        return;
    switch (sl_crew_judge(&crew->rules, life, &member->failures, &pause_ns)) {
    case SL_CREW_STAYS_ENDED: break;
    case SL_CREW_MADE_AGAIN: wait_for_next_life(member, pause_ns); break;
    case SL_CREW_GIVES_UP:
        sl_text_init(&text, sentence, sizeof sentence);
        say_gave_up(member, &text);
        sl_crew_give_up(crew, failure_of(life), sentence);
        break;
    }
}

/* Nobody waits for a configuration that will never work, and nothing more is begun with it. */
static void refuse_member(sl_member *member)
{
    char sentence[SL_CREW_PROBLEM_BYTES];
    sl_text text;

    member->state = SL_MEMBER_ENDED;
    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, "Worker ");
    sl_text_add(&text, member->made_of->settings.name);
    sl_text_add(&text, " cannot be started: ");
    sl_text_add(&text, member->problem);
    sl_crew_give_up(
        member->crew,
        (sl_crew_failure){ SL_CREW_BAD_CONFIG, SL_DRAIN_REASON_START_FAILED, SL_CREW_CAUSE_OTHER }, sentence);
}

static sl_err make_work(sl_member *member, sl_text *problem)
{
    sl_crew *const crew = member->crew;
    sl_work_settings settings = member->made_of->settings;
    sl_crew_parts parts = { 0 };
    sl_err err = member->made_of->make(member->made_of->ctx, crew->loop, &crew->log, problem, &parts);

    if (err != SL_OK)
        return err;
    settings.log = &crew->log;
    err = sl_work_new(crew->loop, &settings, parts.source, parts.handler, parts.acks, &watcher, member,
                      &member->work);
    if (err != SL_OK)
        sl_text_add(problem, sl_err_text(err));
    return err;
}

void sl_crew_make(sl_member *member)
{
    sl_crew *const crew = member->crew;
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, member->problem, sizeof member->problem);
    err = make_work(member, &problem);
    if (err != SL_OK) {
        sl_crew_tell_unmade(crew, member, err);
        if (err == SL_ERR_INVALID && crew->is_starting)
            refuse_member(member);
        else
            judge(member, &(sl_crew_life){ 0 });
        return;
    }
    member->state = SL_MEMBER_WORKING;
    member->was_up = false;
    member->is_left_behind = false;
    member->deadline_ns = UINT64_MAX;
    sl_work_start(member->work);
    sl_loop_wake(crew->loop); /* what the start has begun goes on in a turn of its own */
}

/* Its report, totals and last words stay; the rest goes. */
static void retire(sl_member *member)
{
    sl_work *const work = SL_TAKE_PTR(member->work);
    const sl_work_counts counts = sl_work_get_counts(work);
    const sl_crew_life life = {
        .was_made = true,
        .end = sl_work_get_end(work),
        .reason = sl_work_report(work).reason,
        .was_of_use = sl_work_was_of_use(work),
        .up_ns = sl_loop_now_ns(member->crew->loop) - member->up_since_ns,
    };

    member->has_report = true;
    member->report = sl_work_report(work);
    member->report.clean = member->report.clean && !member->is_left_behind;
    member->end = life.end;
    member->drain_timeouts += member->is_left_behind || sl_report_timed_out(&member->report);
    sl_crew_add_counts(&member->past, &counts);
    if (sl_work_problem(work)[0] != '\0')
        sl_crew_keep_problem(member->problem, sl_work_problem(work));
    sl_work_free(work);
    sl_loop_wake(member->crew->loop); /* whatever that freed may be what another member waits for */
    sl_crew_tell_retired(member->crew, member, &counts);
    judge(member, &life);
    if (member->state == SL_MEMBER_ENDED && !member->crew->is_draining)
        member->crew->last_reason = life.reason;
}

/* --- what a turn does for it --- */

/* The worker ends by itself when its budget without the reserve is used up. If it does not, half of the reserve is given to it and
 * the other half to the rest of the way out. */
static void note_drain(sl_member *member, uint64_t now_ns)
{
    const sl_budget *const budget = &member->made_of->settings.budget;

    member->drain_began_ns = now_ns;
    member->deadline_ns = sl_add_sat_u64(now_ns, budget->grace_ns - budget->part_ns[SL_BUDGET_RESERVE] / 2);
}

static void look_after_work(sl_member *member, uint64_t now_ns)
{
    if (sl_work_phase(member->work) != SL_DRAIN_RUNNING && member->deadline_ns == UINT64_MAX)
        note_drain(member, now_ns);
    if (!sl_work_is_over(member->work) && now_ns >= member->deadline_ns) {
        sl_crew_tell_left_behind(member->crew, member);
        member->is_left_behind = true;
    }
    if (sl_work_is_over(member->work) || member->is_left_behind)
        retire(member);
}

uint64_t sl_crew_look_after(sl_member *member, uint64_t now_ns)
{
    if (member->state == SL_MEMBER_UNMADE && now_ns >= member->again_ns) {
        member->restarts++;
        sl_crew_make(member);
    }
    if (member->state == SL_MEMBER_WORKING)
        look_after_work(member, now_ns);
    switch (member->state) {
    case SL_MEMBER_UNMADE: return member->again_ns;
    case SL_MEMBER_WORKING: return member->deadline_ns;
    case SL_MEMBER_ENDED:
    case SL_MEMBER_STATE_COUNT_: break;
    }
    return UINT64_MAX;
}
