/* server/groups/group_metrics.c — see group_metrics.h. To add one: a row here, and one in docs/METRICS.md. */
#include "server/groups/group_metrics.h"

#include "base/cleanup.h"
#include "server/groups/operators.h"
#include "server/groups/registry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    LINE_BYTES = 1024, /* both names with every byte escaped, and the rest */
};

#define NARROW(metric_name, metric_kind, field, text)                                                        \
    {                                                                                                        \
        .name = (metric_name), .kind = SL_METRIC_##metric_kind, .offset = offsetof(sl_group_figures, field), \
        .help = (text)                                                                                       \
    }
#define WIDE(metric_name, metric_kind, field, text)                                                          \
    {                                                                                                        \
        .name = (metric_name), .kind = SL_METRIC_##metric_kind, .offset = offsetof(sl_group_figures, field), \
        .is_wide = true, .help = (text)                                                                      \
    }

/* clang-format off */
const sl_group_metric sl_group_metrics[] = {
    { .name = "sluice_group_consumers", .kind = SL_METRIC_GAUGE, .offset = offsetof(sl_group_figures, core.consumers), .by_state = true, .help = "consumers: active, stopping, drained, away" },
    NARROW("sluice_group_in_flight_messages", GAUGE, core.in_flight, "messages that a consumer holds"),
    NARROW("sluice_group_available_messages", GAUGE, core.available, "messages that could be given out now"),
    NARROW("sluice_group_waiting_messages", GAUGE, core.waiting, "messages that wait for their next try, or to be read again after a start"),
    WIDE("sluice_group_checkpoint_position", GAUGE, core.checkpoint, "everything below is settled: a revision, or a position for $all"),
    WIDE("sluice_group_last_known_position", GAUGE, read_up_to, "everything below was read; what is between the two is not settled"),
    WIDE("sluice_group_parked_messages", GAUGE, parked_now, "messages that are parked and wait for somebody to decide"),
    NARROW("sluice_group_stop_rules", GAUGE, core.rules, "stops of operators that are in force for whoever joins later"),
    WIDE("sluice_group_delivered_messages_total", COUNTER, core.deliveries, "deliveries since the group was opened or changed"),
    WIDE("sluice_group_settled_messages_total", COUNTER, core.settled, "messages acked or skipped since then"),
    WIDE("sluice_group_parked_messages_total", COUNTER, core.parked, "messages parked since then"),
    WIDE("sluice_group_lost_settles_total", COUNTER, core.lost, "acks and others that came too late and changed nothing"),
    WIDE("sluice_group_charged_attempts_total", COUNTER, core.charged, "started work that failed or died"),
};
/* clang-format on */
const size_t sl_group_metric_count = SL_COUNT_OF(sl_group_metrics);

/* --- one line --- */

static uint64_t value_of(const sl_group_metric *metric, const sl_group_figures *figures, unsigned index)
{
    const char *const at = (const char *)figures + metric->offset;
    uint64_t wide;
    uint32_t narrow;

    if (metric->is_wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at + index * sizeof narrow, sizeof narrow);
    return narrow;
}

/* As Prometheus wants it: backslash, quote and line break with a backslash. */
static void add_label(sl_text *line, sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] == '\n') {
            sl_text_add(line, "\\n");
            continue;
        }
        if (text.data[i] == '\\' || text.data[i] == '"')
            sl_text_add_char(line, '\\');
        sl_text_add_char(line, text.data[i]);
    }
}

static sl_group_figures figures_of(const sl_desk *desk)
{
    sl_group_figures figures = { .read_up_to = sl_desk_read_up_to(desk) };

    sl_desk_counts(desk, &figures.core);
    figures.parked_now = sl_desk_parked(desk, &figures.core);
    figures.core.parked -= sl_min_u64(figures.core.parked, sl_desk_skipped(desk)); /* they are in no stream */
    return figures;
}

static sl_err write_line(const sl_group_metric *metric, const sl_desk *desk, unsigned index, sl_buf *into)
{
    const sl_group_definition *const definition = sl_desk_definition(desk);
    char buffer[LINE_BYTES];
    const sl_group_figures figures = figures_of(desk);
    sl_text line;

    sl_text_init(&line, buffer, sizeof buffer);
    sl_text_add(&line, metric->name);
    sl_text_add(&line, "{stream=\"");
    add_label(&line, definition->stream);
    sl_text_add(&line, "\",group=\"");
    add_label(&line, definition->name);
    if (metric->by_state) {
        sl_text_add(&line, "\",state=\"");
        sl_text_add(&line, sl_consumer_state_name((sl_consumer_state)index));
    }
    sl_text_add(&line, "\"} ");
    sl_text_add_u64(&line, value_of(metric, &figures, index));
    sl_text_add(&line, "\n");
    assert(!line.cut);
    return sl_buf_append(into, line.data, line.bytes);
}

/* --- all of them --- */

typedef struct choosing {
    const sl_desk *chosen[SL_GROUP_METRICS_GROUPS_MAX];
    size_t count;
} choosing;

static void choose(void *ctx, sl_desk *desk)
{
    choosing *const c = ctx;
    const sl_group_definition *const definition = sl_desk_definition(desk);

    if (c->count < SL_GROUP_METRICS_GROUPS_MAX &&
        definition->stream.bytes + definition->name.bytes <= SL_GROUP_METRICS_NAME_BYTES_MAX)
        c->chosen[c->count++] = desk;
}

static sl_err write_metric(const sl_group_metric *metric, const choosing *c, sl_buf *into)
{
    char buffer[LINE_BYTES];
    const int bytes = snprintf(buffer, sizeof buffer, "# HELP %s %s\n# TYPE %s %s\n", metric->name,
                               metric->help, metric->name, sl_metric_kind_name(metric->kind));
    sl_err err = sl_buf_append(into, buffer, (size_t)bytes);

    for (size_t i = 0; i < c->count; i++)
        for (unsigned index = 0; index < (metric->by_state ? SL_CONSUMER_STATE_COUNT_ : 1); index++)
            if (err == SL_OK)
                err = write_line(metric, c->chosen[i], index, into);
    return err;
}

sl_err sl_group_metrics_write(const sl_host *host, sl_buf *into)
{
    choosing c = { .count = 0 };
    sl_err err = SL_OK;

    sl_registry_each(host->registry, SL_STR(""), choose, &c);
    for (size_t i = 0; i < sl_group_metric_count && err == SL_OK; i++)
        err = write_metric(&sl_group_metrics[i], &c, into);
    return err;
}

static void count_one(void *ctx, sl_desk *desk)
{
    (void)desk;
    *(uint64_t *)ctx += 1;
}

uint64_t sl_group_metrics_count(const sl_host *host)
{
    uint64_t count = 0;

    sl_registry_each(host->registry, SL_STR(""), count_one, &count);
    return count;
}
