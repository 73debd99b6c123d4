/* worker/crew_metrics.c — see crew_metrics.h. To add one: a field in `numbers`, where it is filled, a row here, a row in docs/METRICS.md. */
#include "worker/crew_metrics.h"

#include "base/cleanup.h"

#include <sluice.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    PART_COUNT = SL_DRAIN_STOPPED - SL_DRAIN_FENCING,
    OUTCOME_COUNT = 6,
    VALUE_BYTES = 48,
    LINE_BYTES = 512 /* a name, a worker's name with each byte escaped, a label and a value */
};

/* Every number that a row can show, of the process or of one member. */
typedef struct numbers {
    uint64_t one, is_ready, is_draining, uptime_ns, started_wall_ns, members, held, removal_cost;

    uint64_t is_up, restarts, drain_timeouts, slots;
    uint64_t waiting, running, delayed, settling, destinations_open;
    uint64_t offered, begun, finished;
    uint64_t settled[OUTCOME_COUNT];
    uint64_t timed_out, wedged, unsure, acks_replayed, acks_confirmed_late;
    uint64_t phases[SL_DRAIN_PHASE_COUNT_];
    uint64_t grace_ns, remaining_ns, drain_ns;
    uint64_t part_ns[PART_COUNT];
    uint64_t drained, handed_back, interrupted, abandoned, acks_unconfirmed;
} numbers;

static const char *outcome_name(unsigned index)
{
    static const char *const names[OUTCOME_COUNT] = { "acked",    "retried",     "parked",
                                                      "released", "interrupted", "lost" };

    assert(index < OUTCOME_COUNT);
    return names[index];
}

static const char *phase_name(unsigned index)
{
    return sl_drain_phase_name((sl_drain_phase)index);
}

static const char *part_name(unsigned index)
{
    return sl_drain_phase_name((sl_drain_phase)(SL_DRAIN_FENCING + index));
}

static const char *version_text(unsigned index)
{
    (void)index;
    return sl_version();
}

#define AT(field) offsetof(numbers, field)
#define ROW(metric_name, member, counter, ns, field, label_name, count, names, text)                         \
    {                                                                                                        \
        .name = (metric_name), .is_of_member = (member), .is_counter = (counter), .is_ns = (ns),             \
        .offset = AT(field), .label = (label_name), .value_count = (count), .label_value = (names),          \
        .help = (text)                                                                                       \
    }
#define PROCESS(name, field, text)         ROW(name, false, false, false, field, NULL, 1, NULL, text)
#define PROCESS_SECONDS(name, field, text) ROW(name, false, false, true, field, NULL, 1, NULL, text)
#define GAUGE(name, field, text)           ROW(name, true, false, false, field, NULL, 1, NULL, text)
#define COUNTER(name, field, text)         ROW(name, true, true, false, field, NULL, 1, NULL, text)
#define SECONDS(name, field, text)         ROW(name, true, false, true, field, NULL, 1, NULL, text)
#define GAUGES(name, field, label, count, of, text)                                                          \
    ROW(name, true, false, false, field, label, count, of, text)
#define COUNTERS(name, field, label, count, of, text)                                                        \
    ROW(name, true, true, false, field, label, count, of, text)

/* clang-format off */
const sl_crew_metric sl_crew_metrics[] = {
    ROW("sluice_worker_build_info", false, false, false, one, "version", 1, version_text, "always 1; the label is the version"),
    PROCESS("sluice_worker_ready", is_ready, "1 while every worker is up and none drains, as /readyz says"),
    PROCESS("sluice_worker_draining", is_draining, "1 from the begin of the shutdown of the process on"),
    PROCESS_SECONDS("sluice_worker_uptime_seconds", uptime_ns, "time since the start of the process"),
    PROCESS_SECONDS("sluice_worker_start_time_seconds", started_wall_ns, "when the process started, since 1970 in UTC"),
    PROCESS("sluice_worker_members", members, "workers of this process"),
    PROCESS("sluice_worker_held_messages", held, "messages of all workers that are not settled; 0 means safe to terminate"),
    PROCESS("sluice_worker_removal_cost", removal_cost, "what it costs to remove this replica now: 1000 for each message that runs, 1 for each other one; 0 means nothing"),

    GAUGE("sluice_worker_up", is_up, "1 while the source is connected"),
    GAUGES("sluice_worker_phase", phases, "phase", SL_DRAIN_PHASE_COUNT_, phase_name, "1 for the phase that the worker is in"),
    COUNTER("sluice_worker_restarts_total", restarts, "times that the worker was made again after its source was lost or refused"),
    GAUGE("sluice_worker_slots", slots, "messages that may be worked on at the same time"),
    GAUGE("sluice_worker_waiting_messages", waiting, "messages that are here and not begun"),
    GAUGE("sluice_worker_running_messages", running, "messages that a handler has"),
    GAUGE("sluice_worker_delayed_messages", delayed, "failed messages whose pause is kept here"),
    GAUGE("sluice_worker_settling_messages", settling, "messages whose end the source has not confirmed"),
    GAUGE("sluice_worker_open_destinations", destinations_open, "destinations whose breaker is open or half open"),
    COUNTER("sluice_worker_offered_messages_total", offered, "messages that came from the source"),
    COUNTER("sluice_worker_begun_messages_total", begun, "messages given to a handler"),
    COUNTER("sluice_worker_finished_messages_total", finished, "results of handlers, good or bad"),
    COUNTERS("sluice_worker_settled_messages_total", settled, "outcome", OUTCOME_COUNT, outcome_name, "what became of messages, as confirmed by the source"),
    COUNTER("sluice_worker_timed_out_messages_total", timed_out, "handlers that were aborted because their time was over"),
    COUNTER("sluice_worker_wedged_handlers_total", wedged, "handlers that gave no sign of life for too long"),
    COUNTER("sluice_worker_unsure_settles_total", unsure, "ends that the source neither confirmed nor refused"),
    COUNTER("sluice_worker_replayed_acks_total", acks_replayed, "ends that an earlier process left in the ack file and that were said again"),
    COUNTER("sluice_worker_late_acks_total", acks_confirmed_late, "acks that the source confirmed only while a drain waited for that"),

    COUNTER("sluice_worker_drain_timeouts_total", drain_timeouts, "drains in which a part took all of its time"),
    SECONDS("sluice_worker_drain_grace_seconds", grace_ns, "the whole budget of a drain"),
    SECONDS("sluice_worker_drain_remaining_seconds", remaining_ns, "what is left of it; 0 while nothing drains"),
    SECONDS("sluice_worker_drain_used_seconds", drain_ns, "how long the last drain took, or takes so far"),
    ROW("sluice_worker_drain_part_seconds", true, false, true, part_ns, "part", PART_COUNT, part_name, "the same by its parts"),
    GAUGE("sluice_worker_drain_finished_messages", drained, "messages that were finished in the last drain"),
    GAUGE("sluice_worker_drain_handed_back_messages", handed_back, "messages that went back in it unbegun"),
    GAUGE("sluice_worker_drain_interrupted_messages", interrupted, "messages whose handler was aborted in it"),
    GAUGE("sluice_worker_drain_abandoned_messages", abandoned, "messages that were still held at its end"),
    GAUGE("sluice_worker_drain_unconfirmed_acks", acks_unconfirmed, "ends that were not confirmed at its end"),
};
/* clang-format on */
const size_t sl_crew_metric_count = SL_COUNT_OF(sl_crew_metrics);

/* --- from the view to numbers --- */

static void fill_process(const sl_crew_view *view, numbers *n)
{
    *n = (numbers){ .one = 1,
                    .is_ready = sl_view_is_ready(view, NULL),
                    .is_draining = view->is_draining,
                    .uptime_ns = view->now_ns - view->started_ns,
                    .started_wall_ns = view->started_wall_ns,
                    .members = view->member_count,
                    .held = sl_view_held(view),
                    .removal_cost = sl_view_removal_cost(view) };
}

static void fill_counts(const sl_work_counts *counts, numbers *n)
{
    const uint64_t settled[OUTCOME_COUNT] = { counts->acked,    counts->retried,     counts->parked,
                                              counts->released, counts->interrupted, counts->lost };

    n->is_up = counts->is_up;
    n->waiting = counts->waiting;
    n->running = counts->running;
    n->delayed = counts->delayed;
    n->settling = counts->settling;
    n->destinations_open = counts->destinations_open;
    n->offered = counts->offered;
    n->begun = counts->begun;
    n->finished = counts->finished;
    memcpy(n->settled, settled, sizeof settled);
    n->timed_out = counts->timed_out;
    n->wedged = counts->wedged;
    n->unsure = counts->unsure;
    n->acks_replayed = counts->acks_replayed;
    n->acks_confirmed_late = counts->acks_confirmed_late;
}

static void fill_report(const sl_drain_report *report, numbers *n)
{
    n->drain_ns = report->used_ns;
    for (unsigned i = 0; i < PART_COUNT; i++)
        n->part_ns[i] = report->phases[SL_DRAIN_FENCING + i].used_ns;
    n->drained = report->finished;
    n->handed_back = report->handed_back;
    n->interrupted = report->interrupted;
    n->abandoned = report->abandoned;
    n->acks_unconfirmed = report->acks_unconfirmed;
}

static void fill_member(const sl_member_view *member, uint64_t now_ns, numbers *n)
{
    *n = (numbers){ .restarts = member->restarts,
                    .drain_timeouts = member->drain_timeouts,
                    .slots = member->slots,
                    .grace_ns = member->budget.grace_ns,
                    .remaining_ns = sl_member_remaining_ns(member, now_ns) };
    n->phases[member->phase] = 1;
    fill_counts(&member->counts, n);
    if (member->has_report)
        fill_report(&member->report, n);
}

/* --- writing --- */

/* Whatever a worker is called, the line stays one line. */
static void add_escaped(sl_text *line, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            sl_text_add(line, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            sl_text_add_char(line, '\\');
        sl_text_add_char(line, *value);
    }
}

static void add_label(sl_text *line, const char *before, const char *name, const char *value)
{
    sl_text_add(line, before);
    sl_text_add(line, name);
    sl_text_add(line, "=\"");
    add_escaped(line, value);
    sl_text_add(line, "\"");
}

static void add_value(sl_text *line, const numbers *n, const sl_crew_metric *metric, unsigned index)
{
    char number[VALUE_BYTES];
    uint64_t value;

    memcpy(&value, (const char *)n + metric->offset + index * sizeof value, sizeof value);
    if (metric->is_ns)
        snprintf(number, sizeof number, "%" PRIu64 ".%09" PRIu64, value / UINT64_C(1000000000),
                 value % UINT64_C(1000000000));
    else
        snprintf(number, sizeof number, "%" PRIu64, value);
    sl_text_add(line, number);
}

static sl_err write_values(const sl_crew_metric *metric, const numbers *n, const char *worker, sl_buf *into)
{
    sl_err err = SL_OK;

    for (unsigned index = 0; index < metric->value_count && err == SL_OK; index++) {
        char buffer[LINE_BYTES];
        sl_text line;
        sl_text_init(&line, buffer, sizeof buffer);
        sl_text_add(&line, metric->name);
        if (worker != NULL)
            add_label(&line, "{", "worker", worker);
        if (metric->label != NULL)
            add_label(&line, worker != NULL ? "," : "{", metric->label, metric->label_value(index));
        sl_text_add(&line, worker != NULL || metric->label != NULL ? "} " : " ");
        add_value(&line, n, metric, index);
        sl_text_add(&line, "\n");
        err = line.cut ? SL_ERR_TOO_LARGE : sl_buf_append(into, line.data, line.bytes);
    }
    return err;
}

static sl_err write_head(const sl_crew_metric *metric, sl_buf *into)
{
    char buffer[LINE_BYTES];
    const int bytes = snprintf(buffer, sizeof buffer, "# HELP %s %s\n# TYPE %s %s\n", metric->name,
                               metric->help, metric->name, metric->is_counter ? "counter" : "gauge");

    assert(bytes > 0 && (size_t)bytes < sizeof buffer);
    return sl_buf_append(into, buffer, (size_t)bytes);
}

static sl_err write_metric(const sl_crew_view *view, const sl_crew_metric *metric, sl_buf *into)
{
    numbers n;
    sl_err err = write_head(metric, into);

    if (err == SL_OK && !metric->is_of_member) {
        fill_process(view, &n);
        return write_values(metric, &n, NULL, into);
    }
    for (size_t i = 0; i < view->member_count && err == SL_OK; i++) {
        fill_member(&view->members[i], view->now_ns, &n);
        err = write_values(metric, &n, view->members[i].name, into);
    }
    return err;
}

/* The format wants all values of a metric together, so members are walked once for each. */
sl_err sl_crew_metrics_write(const sl_crew_view *view, sl_buf *into)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < sl_crew_metric_count && err == SL_OK; i++)
        err = write_metric(view, &sl_crew_metrics[i], into);
    return err;
}
