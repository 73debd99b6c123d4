/* worker/status_pages.c — what the pages say. Each is made from one view, which is this moment. */
#include "worker/status.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "worker/crew_json.h"
#include "worker/crew_metrics.h"
#include "worker/report.h"

#include <sluice.h>

enum {
    WHY_BYTES = 1024
};

/* Sentences come from servers and handlers, which may say anything; what is no UTF-8 would make the whole page no JSON. */
static void mend(sl_buf *body)
{
    char *const text = (char *)sl_buf_data(body);
    uint32_t code;

    for (size_t at = 0; at < body->bytes;) {
        const size_t bytes = sl_utf8_first((sl_str){ text + at, body->bytes - at }, &code);
        if (bytes == 0)
            text[at] = '?';
        at += bytes == 0 ? 1 : bytes;
    }
}

/* Takes the object. */
static void show(sl_pages_answer *answer, const sl_jot *jot, cJSON *top)
{
    sl_pages_show(answer, jot->failed ? NULL : top);
    if (jot->failed)
        cJSON_Delete(top);
    mend(&answer->body);
}

/* --- alive, ready, numbers --- */

void sl_status_show_live(const sl_crew_view *view, sl_pages_answer *answer)
{
    sl_jot jot = { 0 };
    cJSON *const top = cJSON_CreateObject();

    sl_jot_text(&jot, top, "status", view->is_draining ? "draining" : "alive");
    show(answer, &jot, top);
}

void sl_status_show_ready(const sl_crew_view *view, sl_pages_answer *answer)
{
    char buffer[WHY_BYTES];
    sl_jot jot = { 0 };
    cJSON *const top = cJSON_CreateObject();
    sl_text why;
    bool is_ready;

    sl_text_init(&why, buffer, sizeof buffer);
    is_ready = sl_view_is_ready(view, &why);
    answer->status = is_ready ? 200 : 503;
    sl_jot_flag(&jot, top, "ready", is_ready);
    sl_jot_flag(&jot, top, "draining", view->is_draining);
    if (!is_ready)
        sl_jot_text(&jot, top, "why", buffer);
    show(answer, &jot, top);
}

void sl_status_show_metrics(const sl_crew_view *view, sl_pages_answer *answer)
{
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (sl_crew_metrics_write(view, &answer->body) != SL_OK)
        sl_pages_out_of_memory(answer);
}

/* --- the drain --- */

static uint64_t remaining_ns(const sl_crew_view *view)
{
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < view->member_count; i++)
        longest_ns = sl_max_u64(longest_ns, sl_member_remaining_ns(&view->members[i], view->now_ns));
    return longest_ns;
}

/* Before its fence a source may still send: that nothing is held then does not mean that nothing will be. */
static bool is_behind_fence(const sl_member_view *member)
{
    return member->state != SL_MEMBER_WORKING || member->phase > SL_DRAIN_FENCING;
}

static bool is_drained(const sl_crew_view *view)
{
    for (size_t i = 0; i < view->member_count; i++)
        if (!is_behind_fence(&view->members[i]))
            return false;
    return view->is_draining && sl_view_held(view) == 0;
}

static void add_drain(sl_jot *jot, cJSON *to, const sl_crew_view *view)
{
    const uint64_t held = sl_view_held(view);

    sl_jot_flag(jot, to, "draining", view->is_draining);
    sl_jot_text(jot, to, "reason", sl_drain_reason_name(view->reason));
    sl_jot_flag(jot, to, "escalated", view->is_escalated);
    sl_jot_u64(jot, to, "held", held);
    sl_jot_flag(jot, to, "safe_to_terminate", held == 0);
    sl_jot_seconds(jot, to, "remaining_seconds", remaining_ns(view));
}

/* 200: nothing is held any more. 202: it is on. 409: it is not. 504: somebody waited in vain, so that `curl --fail` in a hook
 * fails. Who waits for a drain that has not begun waits for its begin, too. */
static unsigned drain_status(const sl_crew_view *view, bool is_done, sl_status_patience patience)
{
    if (is_done)
        return 200;
    if (patience == SL_STATUS_IN_VAIN)
        return 504;
    return view->is_draining ? 202 : 409;
}

bool sl_status_show_drain(const sl_crew_view *view, sl_status_patience patience, sl_pages_answer *answer)
{
    const bool is_done = is_drained(view);
    sl_jot jot = { 0 };
    cJSON *const top = cJSON_CreateObject();

    answer->status = drain_status(view, is_done, patience);
    add_drain(&jot, top, view);
    sl_jot_flag(&jot, top, "done", is_done);
    show(answer, &jot, top);
    return is_done || patience != SL_STATUS_WAITS;
}

/* --- everything --- */

static void add_held(sl_jot *jot, cJSON *to, const sl_work_counts *counts)
{
    sl_jot_u64(jot, to, "waiting", counts->waiting);
    sl_jot_u64(jot, to, "running", counts->running);
    sl_jot_u64(jot, to, "delayed", counts->delayed);
    sl_jot_u64(jot, to, "settling", counts->settling);
}

static void add_counts(sl_jot *jot, cJSON *to, const sl_work_counts *counts)
{
    sl_jot_u64(jot, to, "offered", counts->offered);
    sl_jot_u64(jot, to, "begun", counts->begun);
    sl_jot_u64(jot, to, "finished", counts->finished);
    sl_jot_u64(jot, to, "acked", counts->acked);
    sl_jot_u64(jot, to, "retried", counts->retried);
    sl_jot_u64(jot, to, "parked", counts->parked);
    sl_jot_u64(jot, to, "released", counts->released);
    sl_jot_u64(jot, to, "interrupted", counts->interrupted);
    sl_jot_u64(jot, to, "lost", counts->lost);
    sl_jot_u64(jot, to, "timed_out", counts->timed_out);
    sl_jot_u64(jot, to, "wedged", counts->wedged);
    sl_jot_u64(jot, to, "unsure", counts->unsure);
    sl_jot_u64(jot, to, "acks_replayed", counts->acks_replayed);
    sl_jot_u64(jot, to, "acks_confirmed_late", counts->acks_confirmed_late);
}

static void add_budget(sl_jot *jot, cJSON *to, const sl_budget *budget)
{
    cJSON *const parts = sl_jot_object(jot, to, "parts");

    sl_jot_seconds(jot, to, "grace_seconds", budget->grace_ns);
    for (unsigned i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        sl_jot_seconds(jot, parts, sl_budget_part_name((sl_budget_part)i), budget->part_ns[i]);
    sl_jot_seconds(jot, to, "unused_seconds", sl_budget_unused_ns(budget));
}

/* What a source or handler tells about itself is an extra: what it could not tell is left out, and the page is still shown. */
static void describe_parts(sl_jot *jot, cJSON *to, const sl_member_view *member)
{
    sl_jot extra = { 0 };
    cJSON *object;

    if (member->source == NULL || member->handler == NULL)
        return;
    object = sl_jot_object(&extra, to, "source");
    sl_jot_text(&extra, object, "kind", member->source->class->name);
    if (object != NULL && member->source->class->describe != NULL)
        member->source->class->describe(member->source, object);
    object = sl_jot_object(&extra, to, "handler");
    sl_jot_text(&extra, object, "kind", member->handler->class->name);
    if (object != NULL && member->handler->class->describe != NULL)
        member->handler->class->describe(member->handler, object);
    if (extra.failed)
        sl_jot_flag(jot, to, "cut", true);
}

static void describe_destinations(cJSON *to, const sl_member_view *member, uint64_t now_ns)
{
    sl_jot extra = { 0 };
    cJSON *array;

    if (member->destinations == NULL)
        return;
    sl_jot_u64(&extra, to, "destination_count", sl_destinations_count(member->destinations));
    array = sl_jot_array(&extra, to, "destinations");
    if (array != NULL)
        sl_destinations_describe(member->destinations, now_ns, array);
}

static const char *phase_of(const sl_member_view *member)
{
    return member->state == SL_MEMBER_UNMADE ? "paused" : sl_drain_phase_name(member->phase);
}

static void add_member(sl_jot *jot, cJSON *to, const sl_member_view *member, uint64_t now_ns)
{
    sl_jot_text(jot, to, "name", member->name);
    sl_jot_text(jot, to, "state", sl_member_state_name(member->state));
    sl_jot_text(jot, to, "phase", phase_of(member));
    sl_jot_flag(jot, to, "up", member->counts.is_up);
    sl_jot_text(jot, to, "problem", member->problem);
    sl_jot_u64(jot, to, "slots", member->slots);
    sl_jot_u64(jot, to, "restarts", member->restarts);
    if (member->state == SL_MEMBER_UNMADE)
        sl_jot_seconds(jot, to, "again_seconds", member->again_ns - sl_min_u64(member->again_ns, now_ns));
    add_held(jot, sl_jot_object(jot, to, "held"), &member->counts);
    sl_jot_flag(jot, to, "safe_to_terminate", sl_member_held(member) == 0);
    add_counts(jot, sl_jot_object(jot, to, "counts"), &member->counts);
    add_budget(jot, sl_jot_object(jot, to, "budget"), &member->budget);
    sl_jot_seconds(jot, to, "remaining_seconds", sl_member_remaining_ns(member, now_ns));
    sl_jot_u64(jot, to, "destinations_open", member->counts.destinations_open);
    if (member->has_report)
        sl_report_add_drain(jot, sl_jot_object(jot, to, "drain"), &member->report);
    describe_parts(jot, to, member);
    describe_destinations(to, member, now_ns);
}

void sl_status_show_state(const sl_crew_view *view, sl_pages_answer *answer)
{
    sl_jot jot = { 0 };
    cJSON *const top = cJSON_CreateObject();
    cJSON *workers;

    sl_jot_text(&jot, top, "version", sl_version());
    sl_jot_flag(&jot, top, "ready", sl_view_is_ready(view, NULL));
    sl_jot_seconds(&jot, top, "uptime_seconds", view->now_ns - view->started_ns);
    add_drain(&jot, top, view);
    sl_jot_u64(&jot, top, "removal_cost", sl_view_removal_cost(view));
    sl_jot_text(&jot, top, "problem", view->problem);
    workers = sl_jot_array(&jot, top, "workers");
    for (size_t i = 0; i < view->member_count; i++)
        add_member(&jot, sl_jot_item(&jot, workers), &view->members[i], view->now_ns);
    show(answer, &jot, top);
}
