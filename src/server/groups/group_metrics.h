/* server/groups/group_metrics.h — what /metrics says of each group: a table like that of metrics.h, with names as labels.
 *
 * Every series costs whoever collects them, so their number is bounded here: the first groups by name, and none whose names are
 * so long that nobody would read them. docs/METRICS.md repeats the table for people. */
#ifndef SL_SERVER_GROUPS_GROUP_METRICS_H
#define SL_SERVER_GROUPS_GROUP_METRICS_H

#include "core/group.h"
#include "server/host.h"
#include "server/metrics.h"

enum {
    SL_GROUP_METRICS_GROUPS_MAX = 100,
    SL_GROUP_METRICS_NAME_BYTES_MAX = 256, /* of stream and group together */
};

/* What the core says of a group, and what its desk knows besides. */
typedef struct sl_group_figures {
    sl_group_info core;
    uint64_t parked_now, read_up_to;
} sl_group_figures;

typedef struct sl_group_metric {
    const char *name;
    sl_metric_kind kind;
    size_t offset; /* in sl_group_figures */
    bool is_wide;  /* a uint64_t; else uint32_t */
    bool by_state; /* one for each sl_consumer_state, with the label `state` */
    const char *help;
} sl_group_metric;

extern const sl_group_metric sl_group_metrics[];
extern const size_t sl_group_metric_count;

/* How many groups there are. */
uint64_t sl_group_metrics_count(const sl_host *host);

/* SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE. */
sl_err sl_group_metrics_write(const sl_host *host, sl_buf *into);

#endif
