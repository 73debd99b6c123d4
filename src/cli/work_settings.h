/* cli/work_settings.h — one worker of `sluice work`: from the values of options to what the runtime wants.
 *
 * Pure: nothing is opened, connected or printed. Whatever cannot work is refused here, before anything starts, with a sentence that
 * says what to do. What will work but probably not as it was meant is a warning. */
#ifndef SL_CLI_WORK_SETTINGS_H
#define SL_CLI_WORK_SETTINGS_H

#include "cli/options.h"
#include "core/budget.h"
#include "worker/crew.h"
#include "worker/http_handler.h"
#include "worker/source_address.h"

typedef enum sl_work_handler_kind { /* in the order of their options, from SL_OPT_WORK_EXEC on */
    SL_WORK_BY_EXEC,
    SL_WORK_BY_LINES,
    SL_WORK_BY_HTTP,
    SL_WORK_BY_APPEND,
    SL_WORK_HANDLER_KIND_COUNT_
} sl_work_handler_kind;

/* One worker as it was asked for. Texts are borrowed from the values. */
typedef struct sl_work_plan {
    char name[SL_WORKER_NAME_BYTES_MAX + 1];
    const char *consumer_name; /* NULL: the source or the ack file has one */
    const char *from;          /* as it was given */
    sl_source_address source;  /* what it means; may have a password, as the next one */
    sl_source_address target;  /* APPEND: server and stream */
    sl_work_handler_kind handler;
    const char *handler_text; /* a command, URL or address */
    uint32_t window;
    const sl_option_repeat *labels, *headers; /* the first of each, or NULL */
    const char *method;
    const char *ca_file, *user, *password_file, *ack_file; /* NULL: not given */
    uint64_t reconnect_ns, give_up_ns;
    sl_work_settings settings; /* without a log; its name is set where the plan has come to rest */
} sl_work_plan;

/* name: of the worker; NULL: --name, or "worker".
 *   SL_OK
 *   SL_ERR_INVALID  the complaint says what is wrong and what to do */
sl_err sl_work_plan_read(const sl_option_value *values, const char *name, const sl_budget *budget,
                         sl_work_plan *ret_plan, sl_complaint *ret_complaint);

/* "sluice://HOST:PORT/STREAM", "HOST:PORT/STREAM", to server and stream. Codes and `problem` as sl_source_address_parse(). */
sl_err sl_work_target_parse(const char *text, sl_text *problem, sl_source_address *ret_target);

/* Do messages come from this server, or from the one that --append writes to? Hosts are compared as they are written. */
bool sl_work_source_is_at(const sl_work_plan *plan, const sl_client_address *address);
bool sl_work_appends_at_source(const sl_work_plan *plan);
/* Do both take messages from one group of one server, in whatever way the addresses are written? */
bool sl_work_is_same_group(const sl_work_plan *a, const sl_work_plan *b);

/* HTTP: without slots, authorities and log. headers: their place. SL_OK, or SL_ERR_INVALID: there are too many. */
sl_err sl_work_http_options(const sl_work_plan *plan, const char *headers[static SL_HTTP_EXTRA_HEADERS_MAX],
                            sl_text *problem, sl_http_options *ret_options);

/* What is worth a word. Each sentence has its full stop and no name of the worker. */
typedef void sl_work_warn_fn(void *ctx, const char *sentence);
void sl_work_plan_warn(const sl_option_value *values, const sl_work_plan *plan, sl_work_warn_fn *warn,
                       void *ctx);

/* "exec", "lines", "http", "append". */
const char *sl_work_handler_name(sl_work_handler_kind handler);

/* "1/s", "10/m", "1/30s": the time from one begin to the next. SL_OK, or SL_ERR_INVALID. */
sl_err sl_work_rate_parse(sl_str text, uint64_t *ret_interval_ns);

/* A label: "version=42" into "version" and "42"; a header: "Name: value". SL_OK, or SL_ERR_INVALID. */
sl_err sl_work_label_cut(sl_str text, sl_str *ret_key, sl_str *ret_value);
sl_err sl_work_header_cut(sl_str text, sl_str *ret_name, sl_str *ret_value);

/* --grace and the parts; SL_ERR_INVALID: they do not fit, and the complaint has the arithmetic (S3.32). */
sl_err sl_work_budget_read(const sl_option_value *values, sl_budget *ret_budget, sl_complaint *ret_complaint);

/* What is about the whole process. */
sl_crew_settings sl_work_crew_settings(const sl_option_value *values, bool is_terminal);

#endif
