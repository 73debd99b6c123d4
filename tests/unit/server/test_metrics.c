/* tests/unit/server/test_metrics.c — the table of metrics, the text that Prometheus reads, and the document for people. */
#include "test.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/groups/group_metrics.h"
#include "server/groups/operators.h"
#include "server/metrics.h"

enum {
    DOCUMENT_BYTES_MAX = 128 * 1024
};

/* --- the text --- */

static char *written(const sl_metrics_view *view, sl_buf *buf)
{
    sl_buf_init(buf, &sl_alloc_default, 1024 * 1024);
    EXPECT_OK(sl_metrics_write(view, buf));
    EXPECT_OK(sl_buf_append_u8(buf, 0));
    return (char *)sl_buf_data(buf);
}

static void expect_line(const char *text, const char *line)
{
    const char *const at = strstr(text, line);

    if (at == NULL || (at != text && at[-1] != '\n'))
        fail_msg("no line \"%s\" in\n%s", line, text);
}

TEST(metrics_show_what_is_counted)
{
    sl_metrics_view view = { .one = 1, .uptime_ns = 1500000000, .is_ready = 1, .connections_now = 7 };
    sl_buf buf;
    const char *text;

    view.counters.events_appended = UINT64_MAX;
    view.counters.calls_ended[SL_STATUS_NOT_FOUND] = 12;
    view.counters.logins_ok = 1;
    view.counters.logins_refused = 2;
    view.counters.logins_throttled = 3;
    view.counters.batches_refused = 4;
    view.counters.batches_failed = 5;
    view.counters.batches_done = 6;
    view.counters.wire.connections_ended[SL_END_PING_FLOOD] = 8;
    view.counters.net.ended[SL_NET_END_CONNECTIONS_FULL] = 9;
    view.counters.consumers_stopped[SL_REPORT_DRAINED] = 10;
    view.counters.consumers_stopped[SL_REPORT_DROPPED] = 11;
    text = written(&view, &buf);
    expect_line(text, "sluice_appended_events_total 18446744073709551615\n");
    expect_line(text, "sluice_ended_calls_total{status=\"NOT_FOUND\"} 12\n");
    expect_line(text, "sluice_ended_calls_total{status=\"OK\"} 0\n");
    expect_line(text, "sluice_logins_total{result=\"ok\"} 1\n");
    expect_line(text, "sluice_logins_total{result=\"refused\"} 2\n");
    expect_line(text, "sluice_logins_total{result=\"throttled\"} 3\n");
    expect_line(text, "sluice_ended_batches_total{result=\"refused\"} 4\n");
    expect_line(text, "sluice_ended_batches_total{result=\"failed\"} 5\n");
    expect_line(text, "sluice_ended_batches_total{result=\"done\"} 6\n");
    expect_line(text, "sluice_ended_sessions_total{reason=\"PING_FLOOD\"} 8\n");
    expect_line(text, "sluice_ended_connections_total{reason=\"CONNECTIONS_FULL\"} 9\n");
    expect_line(text, "sluice_stopped_consumers_total{outcome=\"drained\"} 10\n");
    expect_line(text, "sluice_stopped_consumers_total{outcome=\"dropped\"} 11\n");
    expect_line(text, "sluice_uptime_seconds 1.500000000\n");
    expect_line(text, "sluice_ready 1\n");
    expect_line(text, "sluice_open_connections 7\n");
    expect_line(text, "# TYPE sluice_appended_events_total counter\n");
    expect_line(text, "# TYPE sluice_open_connections gauge\n");
    sl_buf_done(&buf);
}

TEST(metrics_fail_when_there_is_no_room)
{
    const sl_metrics_view view = { .one = 1 };
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 100);
    EXPECT_ERR(sl_metrics_write(&view, &buf), SL_ERR_TOO_LARGE);
    sl_buf_done(&buf);
}

/* --- the rules of names --- */

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

TEST(names_of_metrics_keep_the_rules)
{
    for (size_t i = 0; i < sl_metric_count; i++) {
        const sl_metric *const metric = &sl_metrics[i];

        for (const char *at = metric->name; *at != '\0'; at++)
            EXPECT(islower((unsigned char)*at) || *at == '_');
        EXPECT(strncmp(metric->name, "sluice_", 7) == 0 || strncmp(metric->name, "process_", 8) == 0);
        EXPECT_EQ(ends_with(metric->name, "_total"), metric->kind == SL_METRIC_COUNTER);
        EXPECT_EQ(metric->is_ns, strstr(metric->name, "_seconds") != NULL);
        EXPECT_EQ(metric->label == NULL, metric->label_value == NULL);
        EXPECT(metric->value_count >= 1 && strpbrk(metric->help, "\\\n|") == NULL);
        for (size_t other = 0; other < i; other++)
            EXPECT(strcmp(metric->name, sl_metrics[other].name) != 0);
    }
}

/* --- the document --- */

/* docs/METRICS.md, in the folder of this program or one above it. */
static FILE *open_document(void)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 32);
    FILE *file = NULL;

    while (bytes > 0 && file == NULL) {
        while (bytes > 0 && path[bytes - 1] != '/')
            bytes--;
        strcpy(path + bytes, "docs/METRICS.md");
        file = fopen(path, "r");
        bytes--;
    }
    return file == NULL ? fopen("docs/METRICS.md", "r") : file;
}

static char *read_document(void)
{
    FILE *const file = open_document();
    char *const text = malloc(DOCUMENT_BYTES_MAX);

    if (file == NULL || text == NULL)
        fail_msg("docs/METRICS.md is neither above this program nor here");
    text[fread(text, 1, DOCUMENT_BYTES_MAX - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(the_document_has_a_row_for_each_metric_and_no_other)
{
    char *const document = read_document();
    size_t rows = 0;

    for (size_t i = 0; i < sl_metric_count; i++) {
        const sl_metric *const metric = &sl_metrics[i];
        char row[512];
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | %s |", metric->name,
                 sl_metric_kind_name(metric->kind), metric->label == NULL ? "" : metric->label, metric->help);
        if (strstr(document, row) == NULL)
            fail_msg("docs/METRICS.md has no row%s", row);
    }
    for (const char *at = document; (at = strstr(at, "\n| `")) != NULL; at++)
        rows += strncmp(at, "\n| `sluice_worker_", 18) !=
                0; /* tests/unit/worker/test_crew_metrics.c holds those */
    for (size_t i = 0; i < sl_group_metric_count; i++) {
        const sl_group_metric *const metric = &sl_group_metrics[i];
        char row[512];
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | %s |", metric->name,
                 sl_metric_kind_name(metric->kind), metric->by_state ? "state" : "", metric->help);
        if (strstr(document, row) == NULL)
            fail_msg("docs/METRICS.md has no row%s", row);
        EXPECT_EQ(ends_with(metric->name, "_total"), metric->kind == SL_METRIC_COUNTER);
    }
    EXPECT_EQ(rows, sl_metric_count + sl_group_metric_count);
    free(document);
}
