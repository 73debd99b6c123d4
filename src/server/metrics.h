/* server/metrics.h — the counters in Prometheus' text format 0.0.4: one table, which docs/METRICS.md repeats for people.
 *
 * Names carry their unit; what ends in _total only ever grows. tests/unit/server/test_metrics.c holds the document against the table. */
#ifndef SL_SERVER_METRICS_H
#define SL_SERVER_METRICS_H

#include "base/buf.h"
#include "base/str.h"
#include "server/counters.h"

#include <stdbool.h>

/* Everything that a row can show, at one moment. */
typedef struct sl_metrics_view {
    sl_server_counters counters;
    uint64_t is_ready, is_shutting_down; /* 0 or 1 */
    uint64_t uptime_ns, started_wall_ns, processor_ns;
    uint64_t resident_peak_bytes;
    uint64_t connections_now, users, batches_inside, end_position, groups;
    uint64_t one; /* for what is told by labels alone */
} sl_metrics_view;

typedef enum sl_metric_kind {
    SL_METRIC_COUNTER,
    SL_METRIC_GAUGE,
} sl_metric_kind;

typedef struct sl_metric {
    const char *name;
    sl_metric_kind kind;
    bool is_ns;        /* the field counts nanoseconds, the metric seconds */
    size_t offset;     /* of a uint64_t in the view, or of the first of `value_count` */
    const char *label; /* NULL: one value without a label */
    unsigned value_count;
    const char *(*label_value)(unsigned index);
    const char *help; /* a phrase without a full stop, a backslash or a line break */
} sl_metric;

extern const sl_metric sl_metrics[];
extern const size_t sl_metric_count;

const char *sl_metric_kind_name(sl_metric_kind kind);

/* "name" or "name{label=\"value\"}", and its value: whole, or seconds with nine digits behind the point. */
void sl_metric_add_name(sl_text *text, const sl_metric *metric, unsigned index);
void sl_metric_add_value(sl_text *text, const sl_metrics_view *view, const sl_metric *metric, unsigned index);

/* Appends all of them. SL_OK, SL_ERR_NOMEM or SL_ERR_TOO_LARGE. */
sl_err sl_metrics_write(const sl_metrics_view *view, sl_buf *into);

#endif
