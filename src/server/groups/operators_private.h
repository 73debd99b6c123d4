/* server/groups/operators_private.h — operators, as their files share it: operators.c (stop, resume, wait), operators_list.c
 * (lists, reports) and operators_names.c (who was there before a restart). */
#ifndef SL_SERVER_GROUPS_OPERATORS_PRIVATE_H
#define SL_SERVER_GROUPS_OPERATORS_PRIVATE_H

#include "server/groups/operators.h"
#include "server/groups/registry.h"

/* What became of a consumer that stopped; one block with its texts. */
typedef struct operators_report {
    uint64_t consumer, stopped_ns, ended_ns;
    sl_str stream, group, name;
    uint64_t tags[SL_TAGS_MAX];
    uint32_t tag_count;
    sl_asker asked_by;
    uint32_t settled, released, lost;
    uint32_t interrupted; /* of released: after they were started */
    sl_report_outcome outcome;
    size_t bytes;
    char texts[];
} operators_report;

struct sl_operators {
    sl_host *host;
    sl_list waits; /* sl_stop_wait.node */
    uint32_t wait_count;
    sl_turn_end turn_end;
    operators_report *reports[SL_REPORTS_MAX]; /* a ring */
    uint64_t report_count;                     /* ever */
    uint64_t drained_while_stopping;
    sl_seldom lines; /* of the log: what became of consumers, */
    sl_seldom asks;  /* and what operators asked for */
};

/* Tags that all must fit, that of a name before that of a label; none: everybody fits. */
uint32_t operators_tags_of(const sl_wire_who *who, uint64_t tags[2]);
bool operators_fit(const sl_card *card, const uint64_t *tags, uint32_t tag_count);

/* SL_OK, or SL_ERR_NOT_FOUND when a group was named. */
sl_err operators_each_desk(sl_host *host, const sl_wire_who *who, sl_desk_fn *fn, void *ctx);

/* operators_names.c: those of that name who are away since before this process get it, so that the tag finds them. An empty name:
 * nothing to do.
 *   SL_OK, SL_ERR_NOMEM
 *   SL_ERR_AGAIN   the users are not read yet */
sl_err operators_recognise(sl_host *host, sl_str name);

/* It holds nothing and has no call: whatever it had was settled, taken by others, or has run out. */
bool operators_is_idle_away(const sl_consumer_info *info);

/* The same, since before this process: the core remembers it for a while, and nobody wants to know. */
bool operators_is_ghost(const sl_card *card, const sl_consumer_info *info);

/* A line of the log for what somebody asked for. */
void operators_log_stop(const sl_stop_wait *wait, const sl_operators_stop *how);
void operators_log_resume(const sl_stop_wait *wait);

void operators_reports_free(sl_operators *operators);

#endif
