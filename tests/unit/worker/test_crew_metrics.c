/* tests/unit/worker/test_crew_metrics.c — the table of a crew's metrics, the text that Prometheus reads, and the document for people. */
#include "test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "view_rig.h"
#include "worker/crew_metrics.h"

enum {
    DOCUMENT_BYTES_MAX = 128 * 1024
};

static void expect_lines(const view_rig *rig, const char *const *lines, size_t count)
{
    const char *text;
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 1024 * 1024);
    EXPECT_OK(sl_crew_metrics_write(&rig->view, &buf));
    EXPECT_OK(sl_buf_append_u8(&buf, 0));
    text = (const char *)sl_buf_data(&buf);
    for (size_t i = 0; i < count; i++) {
        const char *const at = strstr(text, lines[i]);
        if (at == NULL || at[-1] != '\n')
            fail_msg("no line \"%s\" in\n%s", lines[i], text);
    }
    sl_buf_done(&buf);
}

TEST(metrics_of_workers_show_counts_phase_and_drain_S4_17_B17)
{
    static const char *const lines[] = {
        "sluice_worker_ready 0\n",
        "sluice_worker_draining 1\n",
        "sluice_worker_uptime_seconds 40.000000000\n",
        "sluice_worker_members 2\n",
        "sluice_worker_held_messages 3\n",
        "sluice_worker_removal_cost 2001\n",
        "sluice_worker_up{worker=\"billing\"} 1\n",
        "sluice_worker_up{worker=\"mail\"} 1\n",
        "sluice_worker_phase{worker=\"billing\",phase=\"settling\"} 1\n",
        "sluice_worker_phase{worker=\"billing\",phase=\"running\"} 0\n",
        "sluice_worker_restarts_total{worker=\"mail\"} 7\n",
        "sluice_worker_drain_timeouts_total{worker=\"mail\"} 8\n",
        "sluice_worker_running_messages{worker=\"billing\"} 2\n",
        "sluice_worker_settled_messages_total{worker=\"billing\",outcome=\"acked\"} 18446744073709551615\n",
        "sluice_worker_settled_messages_total{worker=\"billing\",outcome=\"lost\"} 9\n",
        "sluice_worker_open_destinations{worker=\"billing\"} 5\n",
        "sluice_worker_slots{worker=\"mail\"} 4\n",
        "sluice_worker_drain_remaining_seconds{worker=\"billing\"} 26.000000000\n",
        "sluice_worker_drain_part_seconds{worker=\"billing\",part=\"fencing\"} 1.500000000\n",
        "sluice_worker_drain_finished_messages{worker=\"billing\"} 5\n",
        "# TYPE sluice_worker_drain_timeouts_total counter\n",
        "# TYPE sluice_worker_up gauge\n",
    };
    view_rig rig;

    view_rig_init(&rig);
    view_rig_drain(&rig);
    rig.members[0].counts.acked = UINT64_MAX;
    rig.members[0].counts.lost = 9;
    rig.members[0].counts.destinations_open = 5;
    rig.members[1].restarts = 7;
    rig.members[1].drain_timeouts = 8;
    expect_lines(&rig, lines, SL_COUNT_OF(lines));
}

TEST(the_name_of_a_worker_cannot_break_the_text_of_metrics)
{
    static const char *const lines[] = { "sluice_worker_up{worker=\"a\\\"b\\\\c\\nd\"} 1\n" };
    char longest[SL_WORKER_NAME_BYTES_MAX + 1];
    view_rig rig;

    view_rig_init(&rig);
    rig.members[0].name = "a\"b\\c\nd";
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    rig.members[1].name = longest;
    expect_lines(&rig, lines, 1);
}

TEST(metrics_of_workers_fail_when_there_is_no_room)
{
    view_rig rig;
    sl_buf buf;

    view_rig_init(&rig);
    sl_buf_init(&buf, &sl_alloc_default, 100);
    EXPECT_ERR(sl_crew_metrics_write(&rig.view, &buf), SL_ERR_TOO_LARGE);
    sl_buf_done(&buf);
}

/* --- the document --- */

/* docs/METRICS.md, in the folder of this program or one above it. */
static char *read_metrics_document(void)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 32);
    char *const text = calloc(1, DOCUMENT_BYTES_MAX);
    FILE *file = NULL;

    while (bytes > 0 && file == NULL) {
        while (bytes > 0 && path[bytes - 1] != '/')
            bytes--;
        strcpy(path + bytes, "docs/METRICS.md");
        file = fopen(path, "r");
        bytes--;
    }
    if (file == NULL || text == NULL)
        fail_msg("docs/METRICS.md is not above this program");
    text[fread(text, 1, DOCUMENT_BYTES_MAX - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(the_document_has_a_row_for_each_metric_of_workers_and_no_other)
{
    char *const document = read_metrics_document();
    size_t rows = 0;

    for (size_t i = 0; i < sl_crew_metric_count; i++) {
        const sl_crew_metric *const metric = &sl_crew_metrics[i];
        const size_t bytes = strlen(metric->name);
        char row[512];
        snprintf(row, sizeof row, "\n| `%s` | %s | %s%s%s | %s |", metric->name,
                 metric->is_counter ? "counter" : "gauge", metric->is_of_member ? "worker" : "",
                 metric->is_of_member && metric->label != NULL ? ", " : "",
                 metric->label == NULL ? "" : metric->label, metric->help);
        if (strstr(document, row) == NULL)
            fail_msg("docs/METRICS.md has no row%s", row);
        EXPECT_EQ(strcmp(metric->name + bytes - 6, "_total") == 0, metric->is_counter);
    }
    for (const char *at = document; (at = strstr(at, "\n| `sluice_worker_")) != NULL; at++)
        rows++;
    EXPECT_EQ(rows, sl_crew_metric_count);
    free(document);
}
