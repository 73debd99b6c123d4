/* server/metrics.c — see metrics.h. To add one: a field in the view or in counters.h, a row here, a row in docs/METRICS.md. */
#include "server/metrics.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "server/groups/operators.h"

#include <sluice.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    LINE_BYTES = 256
};

/* --- what labels can be --- */

static const char *status_name(unsigned index)
{
    return sl_status_name((sl_status)index);
}

static const char *net_end_name(unsigned index)
{
    return sl_net_end_name((sl_net_end)index);
}

static const char *wire_end_name(unsigned index)
{
    return sl_end_name((sl_end)index);
}

static const char *login_result(unsigned index)
{
    static const char *const names[] = { "ok", "refused", "throttled" };

    assert(index < SL_COUNT_OF(names));
    return names[index];
}

static const char *batch_result(unsigned index)
{
    static const char *const names[] = { "refused", "failed", "done" };

    assert(index < SL_COUNT_OF(names));
    return names[index];
}

static const char *outcome_name(unsigned index)
{
    return sl_report_outcome_name((sl_report_outcome)index);
}

static const char *version_text(unsigned index)
{
    (void)index;
    return sl_version();
}

#define AT(field)     offsetof(sl_metrics_view, field)
#define COUNTED(name) AT(counters.name)

/* Fields that one row shows together stand side by side. */
static_assert(COUNTED(logins_throttled) == COUNTED(logins_ok) + 2 * sizeof(uint64_t), "results of logins");
static_assert(COUNTED(batches_done) == COUNTED(batches_refused) + 2 * sizeof(uint64_t), "results of batches");

#define ONE(metric_name, metric_kind, field, text)                                                           \
    {                                                                                                        \
        .name = (metric_name), .kind = SL_METRIC_##metric_kind, .offset = (field), .value_count = 1,         \
        .help = (text)                                                                                       \
    }
#define SECONDS(metric_name, metric_kind, field, text)                                                       \
    {                                                                                                        \
        .name = (metric_name), .kind = SL_METRIC_##metric_kind, .is_ns = true, .offset = (field),            \
        .value_count = 1, .help = (text)                                                                     \
    }
#define SEVERAL(metric_name, metric_kind, field, label_name, count, names, text)                             \
    {                                                                                                        \
        .name = (metric_name), .kind = SL_METRIC_##metric_kind, .offset = (field), .label = (label_name),    \
        .value_count = (count), .label_value = (names), .help = (text)                                       \
    }

/* clang-format off */
const sl_metric sl_metrics[] = {
    SEVERAL("sluice_build_info", GAUGE, AT(one), "version", 1, version_text, "always 1; the label is the version"),
    ONE("sluice_ready", GAUGE, AT(is_ready), "1 while clients can be served, as /readyz says"),
    ONE("sluice_shutting_down", GAUGE, AT(is_shutting_down), "1 from the first signal on"),
    SECONDS("sluice_uptime_seconds", GAUGE, AT(uptime_ns), "time since the start"),
    SECONDS("process_start_time_seconds", GAUGE, AT(started_wall_ns), "when the process started, since 1970 in UTC"),
    SECONDS("process_cpu_seconds_total", COUNTER, AT(processor_ns), "processor time of all threads, user and system"),
    ONE("sluice_resident_memory_peak_bytes", GAUGE, AT(resident_peak_bytes), "most memory that was resident at one time"),

    ONE("sluice_open_connections", GAUGE, AT(connections_now), "connections of clients"),
    ONE("sluice_accepted_connections_total", COUNTER, COUNTED(net.accepted), "connections of clients, with TLS after the handshake"),
    SEVERAL("sluice_ended_connections_total", COUNTER, COUNTED(net.ended), "reason", SL_NET_END_COUNT_, net_end_name, "how sockets ended or were refused"),
    SEVERAL("sluice_ended_sessions_total", COUNTER, COUNTED(wire.connections_ended), "reason", SL_END_COUNT_, wire_end_name, "how HTTP/2 sessions ended"),
    ONE("sluice_received_bytes_total", COUNTER, COUNTED(net.bytes_received), "bytes from clients, with TLS encrypted"),
    ONE("sluice_sent_bytes_total", COUNTER, COUNTED(net.bytes_sent), "bytes to clients, with TLS encrypted"),
    ONE("sluice_receives_total", COUNTER, COUNTED(net.receives), "system calls that received bytes"),
    ONE("sluice_sends_total", COUNTER, COUNTED(net.sends), "system calls that sent bytes"),

    ONE("sluice_open_calls", GAUGE, COUNTED(calls_now), "gRPC calls that are being served"),
    ONE("sluice_started_calls_total", COUNTER, COUNTED(calls_begun), "gRPC calls"),
    SEVERAL("sluice_ended_calls_total", COUNTER, COUNTED(calls_ended), "status", SL_STATUS_COUNT_, status_name, "gRPC calls by their status; cut off ones are CANCELLED"),
    ONE("sluice_received_messages_total", COUNTER, COUNTED(wire.messages_received), "gRPC messages from clients"),
    ONE("sluice_sent_messages_total", COUNTER, COUNTED(wire.messages_sent), "gRPC messages to clients"),

    ONE("sluice_accepted_batches_total", COUNTER, COUNTED(batches_accepted), "writes that the store took on"),
    SEVERAL("sluice_ended_batches_total", COUNTER, COUNTED(batches_refused), "result", 3, batch_result, "writes: refused at the door, failed in the store, done"),
    ONE("sluice_open_batches", GAUGE, AT(batches_inside), "writes that are accepted and not answered yet"),
    ONE("sluice_appended_events_total", COUNTER, COUNTED(events_appended), "events that were made durable"),
    ONE("sluice_appended_bytes_total", COUNTER, COUNTED(bytes_appended), "their data and metadata"),
    ONE("sluice_read_events_total", COUNTER, COUNTED(events_read), "events handed to clients, by reads and subscriptions"),
    ONE("sluice_read_bytes_total", COUNTER, COUNTED(bytes_read), "their data and metadata"),
    ONE("sluice_open_subscriptions", GAUGE, COUNTED(subscriptions_now), "catch-up subscriptions"),
    ONE("sluice_held_pages", GAUGE, COUNTED(pages_held_now), "pages of events that readers keep while their clients take nothing"),
    ONE("sluice_subscription_fell_behind_total", COUNTER, COUNTED(fell_behind), "times that a live subscription went back to catching up"),
    ONE("sluice_store_end_position", GAUGE, AT(end_position), "position after the last durable record"),

    ONE("sluice_groups", GAUGE, AT(groups), "persistent subscriptions that exist"),
    ONE("sluice_open_consumers", GAUGE, COUNTED(consumers_now), "consumers of persistent subscriptions with an open call"),
    SEVERAL("sluice_stopped_consumers_total", COUNTER, COUNTED(consumers_stopped), "outcome", SL_REPORT_OUTCOME_COUNT_, outcome_name, "consumers that were stopped, by what became of them"),

    ONE("sluice_users", GAUGE, AT(users), "users that exist"),
    SEVERAL("sluice_logins_total", COUNTER, COUNTED(logins_ok), "result", 3, login_result, "checks of credentials: right, wrong, wrong too often"),
    ONE("sluice_access_denied_total", COUNTER, COUNTED(access_denied), "requests that an ACL or a role did not allow"),
};
/* clang-format on */
const size_t sl_metric_count = SL_COUNT_OF(sl_metrics);

const char *sl_metric_kind_name(sl_metric_kind kind)
{
    return kind == SL_METRIC_COUNTER ? "counter" : "gauge";
}

/* --- writing --- */

void sl_metric_add_name(sl_text *text, const sl_metric *metric, unsigned index)
{
    sl_text_add(text, metric->name);
    if (metric->label == NULL)
        return;
    sl_text_add(text, "{");
    sl_text_add(text, metric->label);
    sl_text_add(text, "=\"");
    sl_text_add(text, metric->label_value(index));
    sl_text_add(text, "\"}");
}

void sl_metric_add_value(sl_text *text, const sl_metrics_view *view, const sl_metric *metric, unsigned index)
{
    char number[48];
    uint64_t value;

    memcpy(&value, (const char *)view + metric->offset + index * sizeof value, sizeof value);
    if (metric->is_ns)
        snprintf(number, sizeof number, "%" PRIu64 ".%09" PRIu64, value / UINT64_C(1000000000),
                 value % UINT64_C(1000000000));
    else
        snprintf(number, sizeof number, "%" PRIu64, value);
    sl_text_add(text, number);
}

static sl_err write_value(const sl_metrics_view *view, const sl_metric *metric, unsigned index, sl_buf *into)
{
    char buffer[LINE_BYTES];
    sl_text line;

    sl_text_init(&line, buffer, sizeof buffer);
    sl_metric_add_name(&line, metric, index);
    sl_text_add(&line, " ");
    sl_metric_add_value(&line, view, metric, index);
    sl_text_add(&line, "\n");
    assert(!line.cut);
    return sl_buf_append(into, line.data, line.bytes);
}

static sl_err write_head(const sl_metric *metric, sl_buf *into)
{
    char buffer[2 * LINE_BYTES];
    const int bytes = snprintf(buffer, sizeof buffer, "# HELP %s %s\n# TYPE %s %s\n", metric->name,
                               metric->help, metric->name, sl_metric_kind_name(metric->kind));

    assert(bytes > 0 && (size_t)bytes < sizeof buffer);
    return sl_buf_append(into, buffer, (size_t)bytes);
}

sl_err sl_metrics_write(const sl_metrics_view *view, sl_buf *into)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < sl_metric_count && err == SL_OK; i++) {
        err = write_head(&sl_metrics[i], into);
        for (unsigned index = 0; index < sl_metrics[i].value_count && err == SL_OK; index++)
            err = write_value(view, &sl_metrics[i], index, into);
    }
    return err;
}
