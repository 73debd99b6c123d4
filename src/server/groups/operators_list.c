/* server/groups/operators_list.c — see operators.h: who is there, and what became of those that stopped.
 *
 * Reports (B12) are kept in memory, the last SL_REPORTS_MAX of them: they tell whoever has just deployed how it went, and the log of
 * the server has most of them for good. */
#include "server/groups/operators_private.h"

#include "base/cleanup.h"
#include "core/removal.h"

#include <assert.h>

#define MS_NS UINT64_C(1000000)

static_assert(sizeof((sl_server_counters){ 0 }.consumers_stopped) ==
                  SL_REPORT_OUTCOME_COUNT_ * sizeof(uint64_t),
              "counters.h has one for each outcome");

const char *sl_consumer_state_name(sl_consumer_state state)
{
    switch (state) {
    case SL_CONSUMER_ACTIVE: return "active";
    case SL_CONSUMER_STOPPING: return "stopping";
    case SL_CONSUMER_DRAINED: return "drained";
    case SL_CONSUMER_AWAY: return "away";
    case SL_CONSUMER_STATE_COUNT_: break;
    }
    return "";
}

static const char *asker_name(sl_asker asker)
{
    switch (asker) {
    case SL_ASKER_CONSUMER: return "consumer";
    case SL_ASKER_OPERATOR: return "operator";
    case SL_ASKER_SERVER: return "server";
    case SL_ASKER_COUNT_: break;
    }
    return "";
}

const char *sl_report_outcome_name(sl_report_outcome outcome)
{
    switch (outcome) {
    case SL_REPORT_DRAINED: return "drained";
    case SL_REPORT_LEFT: return "left";
    case SL_REPORT_AWAY: return "away";
    case SL_REPORT_DROPPED: return "dropped";
    case SL_REPORT_OUTCOME_COUNT_: break;
    }
    return "";
}

/* --- consumers --- */

typedef struct listing {
    const sl_wire_who *who;
    uint64_t tags[2];
    uint32_t tag_count;
    const sl_desk *desk;
    uint64_t cheapest; /* in it; 0: nobody could be removed */
    uint32_t cheapest_cost;
    sl_wire_consumer *rows;
    size_t count; /* in the first round only this is found out */
} listing;

static bool is_listed(const listing *l, const sl_desk_consumer *consumer)
{
    return consumer->card != NULL && !operators_is_ghost(consumer->card, &consumer->info) &&
           operators_fit(consumer->card, l->tags, l->tag_count);
}

/* Of one that never says what it begins everything may have begun. */
static uint32_t cost_of(const sl_desk_consumer *consumer)
{
    const uint32_t in_flight = consumer->info.in_flight;
    const uint32_t running = consumer->info.sends_started ? consumer->started : in_flight;

    return sl_removal_cost(running, in_flight - running);
}

/* Who stops is leaving already, and who is away may be gone. Of several that cost the same the last that came, as Kubernetes has it. */
static void take_cheapest(void *ctx, const sl_desk_consumer *consumer)
{
    listing *const l = ctx;
    const uint32_t cost = cost_of(consumer);

    if (consumer->info.state != SL_CONSUMER_ACTIVE || (l->cheapest != 0 && cost > l->cheapest_cost))
        return;
    l->cheapest = consumer->info.consumer;
    l->cheapest_cost = cost;
}

static sl_wire_consumer row_of(const listing *l, const sl_desk_consumer *consumer)
{
    const sl_group_definition *const definition = sl_desk_definition(l->desk);
    const sl_card *const card = consumer->card;
    sl_wire_consumer row = { .stream = definition->stream,
                             .group = definition->name,
                             .consumer = consumer->info.consumer,
                             .state = sl_str_from(sl_consumer_state_name(consumer->info.state)),
                             .window = consumer->info.window,
                             .in_flight = consumer->info.in_flight,
                             .started = consumer->started,
                             .deliveries = consumer->info.deliveries,
                             .in_state_ms = consumer->in_state_ns / MS_NS,
                             .removal_cost = cost_of(consumer),
                             .cheapest_to_remove = consumer->info.consumer == l->cheapest };

    row.name = card->name;
    row.labels = card->labels;
    row.label_count = card->label_count;
    row.asked_by = card->is_stopped ? sl_str_from(asker_name(card->asked_by)) : (sl_str){ 0 };
    row.safe_to_terminate = card->is_safe || operators_is_idle_away(&consumer->info);
    row.address = card->address;
    row.user = card->user;
    return row;
}

static void take_consumer(void *ctx, const sl_desk_consumer *consumer)
{
    listing *const l = ctx;

    if (!is_listed(l, consumer))
        return;
    if (l->rows != NULL)
        l->rows[l->count] = row_of(l, consumer);
    l->count++;
}

static void take_desk(void *ctx, sl_desk *desk)
{
    listing *const l = ctx;

    l->desk = desk;
    l->cheapest = 0;
    if (l->rows != NULL) /* of all of the group, whoever is asked for */
        sl_desk_consumers(desk, take_cheapest, l);
    sl_desk_consumers(desk, take_consumer, l);
}

/* Once to count, once to fill. */
static sl_err list_consumers(sl_host *host, listing *l, sl_arena *arena, sl_wire_consumers *into)
{
    sl_err err = operators_each_desk(host, l->who, take_desk, l);

    if (err != SL_OK)
        return err;
    if (l->count > SL_CONSUMERS_LISTED_MAX)
        return SL_ERR_FULL;
    l->rows = sl_arena_alloc(arena, l->count * sizeof *l->rows);
    if (l->rows == NULL)
        return SL_ERR_NOMEM;
    into->consumers = l->rows;
    into->consumer_count = l->count;
    l->count = 0;
    return operators_each_desk(host, l->who, take_desk, l);
}

/* --- reports --- */

static size_t kept_count(const sl_operators *operators)
{
    return (size_t)sl_min_u64(operators->report_count, SL_REPORTS_MAX);
}

void operators_reports_free(sl_operators *operators)
{
    for (size_t i = 0; i < kept_count(operators); i++)
        if (operators->reports[i] != NULL)
            sl_alloc_give(operators->host->alloc, operators->reports[i], operators->reports[i]->bytes);
}

static sl_str put_text(char **at, sl_str text)
{
    const sl_str copy = { *at, text.bytes };

    if (text.bytes > 0)
        memcpy(*at, text.data, text.bytes);
    *at += text.bytes;
    return copy;
}

static operators_report *report_new(const sl_host *host, const sl_card *card, sl_report_outcome outcome)
{
    const sl_group_definition *const definition = sl_desk_definition(card->desk);
    const size_t bytes =
        sizeof(operators_report) + definition->stream.bytes + definition->name.bytes + card->name.bytes;
    operators_report *const report = sl_alloc_take(host->alloc, bytes);
    char *at;

    if (report == NULL)
        return NULL;
    *report = (operators_report){ .consumer = card->consumer,
                                  .stopped_ns = card->stopped_ns,
                                  .ended_ns = card->ended_ns,
                                  .tag_count = card->tag_count,
                                  .asked_by = card->asked_by,
                                  .settled = card->settled,
                                  .released = card->released,
                                  .lost = card->lost,
                                  .interrupted = card->interrupted,
                                  .outcome = outcome,
                                  .bytes = bytes };
    memcpy(report->tags, card->tags, sizeof report->tags);
    at = report->texts;
    report->stream = put_text(&at, definition->stream);
    report->group = put_text(&at, definition->name);
    report->name = put_text(&at, card->name);
    return report;
}

static uint64_t took_ns(const operators_report *report)
{
    return report->ended_ns > report->stopped_ns ? report->ended_ns - report->stopped_ns : 0;
}

static void log_report(sl_host *host, const operators_report *report)
{
    uint64_t unsaid;

    if (!sl_seldom_may(&host->operators->lines, sl_clock_mono_ns(host->clock), &unsaid))
        return;
    sl_log(host->log, SL_LOG_INFO, "consumer stopped", SL_LOG_STR("stream", report->stream),
           SL_LOG_STR("group", report->group), SL_LOG_STR("name", report->name),
           SL_LOG_U64("consumer", report->consumer),
           SL_LOG_STR("outcome", sl_report_outcome_name(report->outcome)),
           SL_LOG_STR("asked_by", asker_name(report->asked_by)), SL_LOG_DURATION("took", took_ns(report)),
           SL_LOG_U64("settled", report->settled), SL_LOG_U64("released", report->released),
           SL_LOG_U64("interrupted", report->interrupted), SL_LOG_U64("lost", report->lost),
           SL_LOG_U64("unsaid", unsaid));
}

void sl_operators_report(sl_host *host, const sl_card *card, sl_report_outcome outcome)
{
    sl_operators *const operators = host->operators;
    operators_report *report;
    operators_report **place;

    host->counters.consumers_stopped[outcome]++;
    if (operators == NULL)
        return;
    operators->drained_while_stopping += host->stopping && outcome == SL_REPORT_DRAINED;
    report = report_new(host, card, outcome);
    if (report == NULL)
        return; /* it is counted, and nothing depends on it */
    place = &operators->reports[operators->report_count++ % SL_REPORTS_MAX];
    if (*place != NULL)
        sl_alloc_give(host->alloc, *place, (*place)->bytes);
    *place = report;
    log_report(host, report);
}

static bool report_fits(const listing *l, const operators_report *report)
{
    const sl_wire_who *const who = l->who;
    sl_card card = { .tag_count = report->tag_count };

    memcpy(card.tags, report->tags, sizeof card.tags);
    return (who->stream.bytes == 0 || sl_str_equal(who->stream, report->stream)) &&
           (who->group.bytes == 0 || sl_str_equal(who->group, report->group)) &&
           operators_fit(&card, l->tags, l->tag_count);
}

static sl_wire_drain_report report_row(const operators_report *report)
{
    return (sl_wire_drain_report){ .stream = report->stream,
                                   .group = report->group,
                                   .consumer = report->consumer,
                                   .name = report->name,
                                   .asked_by = sl_str_from(asker_name(report->asked_by)),
                                   .stopped_at_ms = report->stopped_ns / MS_NS,
                                   .took_ms = took_ns(report) / MS_NS,
                                   .settled = report->settled,
                                   .released = report->released,
                                   .lost = report->lost,
                                   .interrupted = report->interrupted,
                                   .outcome = sl_str_from(sl_report_outcome_name(report->outcome)) };
}

static sl_err list_reports(const sl_operators *operators, const listing *l, sl_arena *arena,
                           sl_wire_consumers *into)
{
    const size_t kept = kept_count(operators);
    sl_wire_drain_report *const rows = sl_arena_alloc(arena, kept * sizeof *rows);

    if (rows == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 1; i <= kept; i++) {
        const operators_report *const report =
            operators->reports[(operators->report_count - i) % SL_REPORTS_MAX];

        if (report_fits(l, report))
            rows[into->report_count++] = report_row(report);
    }
    into->reports = rows;
    return SL_OK;
}

sl_err sl_operators_list(sl_host *host, const sl_wire_who *who, bool with_reports, sl_arena *arena,
                         sl_wire_consumers *ret_consumers)
{
    listing l = { .who = who };
    sl_err err;

    *ret_consumers = (sl_wire_consumers){ 0 };
    l.tag_count = operators_tags_of(who, l.tags);
    err = operators_recognise(host, who->consumer_name);
    if (err == SL_OK)
        err = list_consumers(host, &l, arena, ret_consumers);
    if (err == SL_OK && with_reports)
        err = list_reports(host->operators, &l, arena, ret_consumers);
    return err;
}

/* --- what operators ask for --- */

/* Without it nobody finds out why a group stands still, or who wanted that. */
static void log_asked(const sl_stop_wait *wait, const char *message, const sl_operators_stop *how)
{
    sl_host *const host = wait->host;
    const sl_wire_who *const who = &wait->who;
    uint64_t unsaid;

    if (!sl_seldom_may(&host->operators->asks, sl_clock_mono_ns(host->clock), &unsaid))
        return;
    sl_log(host->log, SL_LOG_INFO, message, SL_LOG_STR("user", wait->user), SL_LOG_STR("stream", who->stream),
           SL_LOG_STR("group", who->group), SL_LOG_STR("name", who->consumer_name),
           SL_LOG_STR("label_key", who->label_key), SL_LOG_STR("label_value", who->label_value),
           SL_LOG_STR("reason", how == NULL ? (sl_str){ 0 } : how->reason),
           SL_LOG_U64("consumers", how == NULL ? wait->resumed.resumed : wait->progress.meant),
           SL_LOG_U64("rules", how == NULL ? wait->resumed.rules : wait->progress.rules),
           SL_LOG_U64("unsaid", unsaid));
}

void operators_log_stop(const sl_stop_wait *wait, const sl_operators_stop *how)
{
    log_asked(wait, "operator stops consumers", how);
}

void operators_log_resume(const sl_stop_wait *wait)
{
    log_asked(wait, "operator resumes consumers", NULL);
}

/* --- the end of the server --- */

static void count_left(void *ctx, const sl_desk_consumer *consumer)
{
    sl_operators_tally *const tally = ctx;

    tally->left_consumers += consumer->info.in_flight > 0;
    tally->left_leased += consumer->info.in_flight;
}

static void count_desk(void *ctx, sl_desk *desk)
{
    sl_desk_consumers(desk, count_left, ctx);
}

sl_operators_tally sl_operators_tally_of(const sl_host *host)
{
    sl_operators_tally tally = { 0 };

    if (host->operators == NULL || host->registry == NULL)
        return tally;
    tally.drained = host->operators->drained_while_stopping;
    sl_registry_each(host->registry, SL_STR(""), count_desk, &tally);
    return tally;
}
