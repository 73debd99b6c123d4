/* worker/crew_metrics.h — the counters of a crew in Prometheus' text format 0.0.4: one table, which docs/METRICS.md repeats for people.
 *
 * Names carry their unit; what ends in _total only ever grows, also when a worker is made anew. tests/unit/worker/test_crew_metrics.c
 * holds the document against the table. */
#ifndef SL_WORKER_CREW_METRICS_H
#define SL_WORKER_CREW_METRICS_H

#include "base/buf.h"
#include "worker/view.h"

typedef struct sl_crew_metric {
    const char *name;
    bool is_counter;   /* otherwise a gauge */
    bool is_ns;        /* the field counts nanoseconds, the metric seconds */
    bool is_of_member; /* one for each worker, with the label "worker"; otherwise one of the process */
    size_t offset;     /* of a uint64_t in crew_metrics.c's own structure, or of the first of `value_count` */
    const char *label; /* besides "worker"; NULL: none */
    unsigned value_count;
    const char *(*label_value)(unsigned index);
    const char *help; /* a phrase without a full stop, a backslash or a line break */
} sl_crew_metric;

extern const sl_crew_metric sl_crew_metrics[];
extern const size_t sl_crew_metric_count;

/* Appends all of them. SL_OK, SL_ERR_NOMEM or SL_ERR_TOO_LARGE. */
sl_err sl_crew_metrics_write(const sl_crew_view *view, sl_buf *into);

#endif
