/* worker/report.h — what the shutdown was like: a file for programs, a line of the log for people, a sentence for the exit (B12, S3.27).
 *
 *      {"reason":"SIGTERM","end":"clean","clean":true,"used_seconds":0.412,"finished":3,"handed_back":12, ...
 *       "workers":[{"name":"billing","end":"as asked","drain":{"phases":{"fencing":{"used_seconds":..,"end":"done"},..},..}}, ..]}
 *
 * All of it is made from a view, so what is shown while the drain goes on has the same form. */
#ifndef SL_WORKER_REPORT_H
#define SL_WORKER_REPORT_H

#include "worker/crew_json.h"
#include "worker/view.h"

/* One drain: reason, escalated, clean, times with their parts, counts. */
void sl_report_add_drain(sl_jot *jot, cJSON *to, const sl_drain_report *report);

/* The whole report, to be freed with cJSON_free(). NULL: no memory. */
char *sl_report_text(const sl_crew_view *view);

/* Writes it beside `path` and renames it, so that nobody ever reads half of one. On failure `problem` says what to do, and the
 * file is as it was. SL_OK, SL_ERR_NOMEM, SL_ERR_NO_SPACE, SL_ERR_IO. */
sl_err sl_report_write(const sl_crew_view *view, const char *path, sl_text *problem);

/* The last line of the process. */
void sl_report_log(const sl_crew_view *view, const sl_logger *log);

/* For an end that is UNCLEAN: which workers left what. */
void sl_report_explain(const sl_crew_view *view, sl_text *problem);

#endif
