/* cli/work_make.c — see work_make.h. A line for each kind of source and handler. */
#include "cli/work_make.h"

#include <string.h>

#include <sluice.h>

#include "base/cleanup.h"
#include "cli/password.h"
#include "worker/append_handler.h"
#include "worker/consumer_source.h"
#include "worker/exec_handler.h"
#include "worker/http_handler.h"
#include "worker/lines_handler.h"
#include "worker/memory_source.h"
#include "worker/schedule_source.h"

#define MILLISECOND_NS            UINT64_C(1000000)
#define APPEND_CONNECT_TIMEOUT_NS (UINT64_C(10) * 1000 * MILLISECOND_NS)

/* Times of options are below 50 days, so they fit. Less than a millisecond is one: none has a meaning of its own. */
static uint32_t in_ms(uint64_t time_ns)
{
    return (uint32_t)((time_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
}

/* --- who --- */

sl_err sl_work_find_password(const sl_work_maker *maker, sl_text *problem, sl_password *ret_password)
{
    const char *const text = maker->environment("SLUICE_PASSWORD");

    if (maker->plan->password_file != NULL)
        return sl_password_from_file(maker->plan->password_file, problem, ret_password);
    if (text == NULL || text[0] == '\0') {
        sl_text_add(problem,
                    "--user needs a password: put it into the environment as SLUICE_PASSWORD, or into a "
                    "file for --password-file");
        return SL_ERR_INVALID;
    }
    if (strlen(text) > SL_CLIENT_PASSWORD_BYTES_MAX) {
        sl_text_add(problem, "SLUICE_PASSWORD is too long");
        return SL_ERR_INVALID;
    }
    strcpy(ret_password->text, text);
    return SL_OK;
}

/* --- sources --- */

typedef struct labels {
    char keys[SL_CONSUMER_LABELS_MAX][SL_CONSUMER_LABEL_BYTES_MAX + 1];
    sl_consumer_label all[SL_CONSUMER_LABELS_MAX];
    size_t count;
} labels;

/* They were checked when the plan was made. */
static void cut_labels(const sl_work_plan *plan, labels *ret_labels)
{
    ret_labels->count = 0;
    for (const sl_option_repeat *each = plan->labels; each != NULL; each = each->next) {
        const size_t i = ret_labels->count++;
        sl_str key = { 0 }, value = { 0 };

        (void)sl_work_label_cut(sl_str_from(each->text), &key, &value);
        memcpy(ret_labels->keys[i], key.data, key.bytes);
        ret_labels->keys[i][key.bytes] = '\0';
        ret_labels->all[i] = (sl_consumer_label){ ret_labels->keys[i], value.data };
    }
}

/* With --http the authorities are most likely those of the destination: they do not make a source speak TLS that did not. */
static const char *authorities_of_source(const sl_work_plan *plan)
{
    sl_client_address address;
    char unused[8];
    sl_text problem;
    bool tls;

    sl_text_init(&problem, unused, sizeof unused);
    tls =
        sl_client_address_parse(sl_str_from(plan->source.server), &problem, &address) == SL_OK && address.tls;
    explicit_bzero(&address, sizeof address);
    return tls || plan->handler != SL_WORK_BY_HTTP ? plan->ca_file : NULL;
}

static sl_err make_consumer(const sl_work_maker *maker, sl_loop *loop, const sl_logger *log, sl_text *problem,
                            sl_crew_parts *parts)
{
    const sl_work_plan *const plan = maker->plan;
    const uint64_t flush_ns = plan->settings.budget.part_ns[SL_BUDGET_FLUSH];
    sl_password password = { "" };
    char name[SL_ACK_FILE_NAME_BYTES_MAX + 1];
    labels cut;
    sl_err err = SL_OK;

    cut_labels(plan, &cut);
    if (plan->user != NULL)
        err = sl_work_find_password(maker, problem, &password);
    if (parts->acks != NULL)
        snprintf(name, sizeof name, "%.*s", (int)sl_ack_file_name(parts->acks).bytes,
                 sl_ack_file_name(parts->acks).data);
    if (err == SL_OK)
        err = sl_consumer_source_new(loop,
                                     &(sl_consumer_source_options){
                                         .address = plan->source.server,
                                         .stream = plan->source.stream,
                                         .group = plan->source.group,
                                         .name = parts->acks != NULL ? name : plan->consumer_name,
                                         .labels = cut.all,
                                         .label_count = cut.count,
                                         .window = plan->window,
                                         .reconnect_ms = in_ms(plan->reconnect_ns),
                                         .give_up_ms = in_ms(plan->give_up_ns),
                                         .leave_ms = in_ms(flush_ns),
                                         .user = plan->user,
                                         .password = plan->user == NULL ? NULL : password.text,
                                         .ca_file = authorities_of_source(plan),
                                         .log = log,
                                     },
                                     problem, &parts->source);
    explicit_bzero(&password, sizeof password);
    return err;
}

static sl_err make_source(const sl_work_maker *maker, sl_loop *loop, const sl_logger *log, sl_text *problem,
                          sl_crew_parts *parts)
{
    const sl_source_address *const source = &maker->plan->source;

    switch (source->kind) {
    case SL_SOURCE_KIND_CONSUMER: return make_consumer(maker, loop, log, problem, parts);
    case SL_SOURCE_KIND_SCHEDULE:
        return sl_schedule_source_open(loop, log, source->rest, problem, &parts->source);
    case SL_SOURCE_KIND_MEMORY: return sl_memory_source_open(loop, source->rest, problem, &parts->source);
    case SL_SOURCE_KIND_COUNT_: break;
    }
    return SL_ERR_INVALID;
}

/* --- the ack file --- */

/* No number of tries turns a file of another version into one of ours, so that is a matter of the configuration. */
static sl_err make_acks(const sl_work_plan *plan, sl_text *problem, sl_ack_file **ret_acks)
{
    char buffer[SL_SOURCE_SHOWN_BYTES_MAX + 1];
    sl_text source;
    sl_err err;

    if (plan->ack_file == NULL)
        return SL_OK;
    sl_text_init(&source, buffer, sizeof buffer);
    err = sl_source_address_show(&plan->source, problem, &source);
    if (err == SL_OK)
        err = sl_ack_file_open(plan->ack_file, sl_text_str(&source), sl_str_from(plan->consumer_name),
                               problem, ret_acks);
    return err == SL_ERR_VERSION ? SL_ERR_INVALID : err;
}

/* --- handlers --- */

static sl_err make_exec(const sl_work_plan *plan, sl_loop *loop, const sl_logger *log, sl_text *problem,
                        sl_handler **ret_handler)
{
    const sl_exec_options options = { .command = plan->handler_text,
                                      .slots = plan->settings.slots,
                                      .log = log };

    return sl_exec_handler_new(loop, &options, problem, ret_handler);
}

static sl_err make_lines(const sl_work_plan *plan, sl_loop *loop, const sl_logger *log, sl_text *problem,
                         sl_handler **ret_handler)
{
    const sl_lines_options options = { .command = plan->handler_text,
                                       .slots = plan->settings.slots,
                                       .close_ns = plan->settings.budget.part_ns[SL_BUDGET_CLOSE],
                                       .log = log };

    return sl_lines_handler_new(loop, &options, problem, ret_handler);
}

static sl_err make_http(const sl_work_plan *plan, sl_loop *loop, const sl_logger *log, sl_text *problem,
                        sl_handler **ret_handler)
{
    const char *headers[SL_HTTP_EXTRA_HEADERS_MAX];
    sl_http_options options;
    const sl_err err = sl_work_http_options(plan, headers, problem, &options);

    if (err != SL_OK)
        return err;
    options.slots = plan->settings.slots;
    options.ca_file = plan->ca_file;
    options.log = log;
    return sl_http_handler_new(loop, &options, problem, ret_handler);
}

/* Whom the address does not name is --user; --ca means that TLS is wanted, as for other commands. */
static sl_err complete_address(const sl_work_maker *maker, sl_text *problem, sl_client_address *address)
{
    const sl_work_plan *const plan = maker->plan;
    sl_password password;
    sl_err err = SL_OK;

    if (plan->ca_file != NULL) {
        snprintf(address->ca_file, sizeof address->ca_file, "%s",
                 plan->ca_file); /* the option has the same limit */
        address->tls = true;
    }
    if (plan->user == NULL || address->user[0] != '\0' || !sl_work_user_is_for(plan, address))
        return SL_OK;
    err = sl_work_find_password(maker, problem, &password);
    if (err == SL_OK) {
        snprintf(address->user, sizeof address->user, "%s", plan->user);
        strcpy(address->password, password.text);
        address->has_password = true;
    }
    explicit_bzero(&password, sizeof password);
    return err;
}

/* --user is a user of the source's server, and its password is for nobody else. A source without a server has none of its own. */
bool sl_work_user_is_for(const sl_work_plan *plan, const sl_client_address *address)
{
    return plan->source.kind != SL_SOURCE_KIND_CONSUMER || sl_work_source_is_at(plan, address);
}

static sl_err make_append(const sl_work_maker *maker, sl_loop *loop, sl_text *problem,
                          sl_handler **ret_handler)
{
    const sl_work_plan *const plan = maker->plan;
    sl_client_address address;
    sl_append_handler_options options = { .address = &address,
                                          .stream = sl_str_from(plan->target.stream),
                                          .slots = plan->settings.slots,
                                          .connect_timeout_ns = APPEND_CONNECT_TIMEOUT_NS };
    sl_err err = sl_client_address_parse(sl_str_from(plan->target.server), problem, &address);

    if (err == SL_OK)
        err = complete_address(maker, problem, &address);
    if (err == SL_OK)
        err = sl_append_handler_new(loop, &options, problem, ret_handler);
    explicit_bzero(&address, sizeof address);
    return err;
}

static sl_err make_handler(const sl_work_maker *maker, sl_loop *loop, const sl_logger *log, sl_text *problem,
                           sl_handler **ret_handler)
{
    const sl_work_plan *const plan = maker->plan;

    switch (plan->handler) {
    case SL_WORK_BY_EXEC: return make_exec(plan, loop, log, problem, ret_handler);
    case SL_WORK_BY_LINES: return make_lines(plan, loop, log, problem, ret_handler);
    case SL_WORK_BY_HTTP: return make_http(plan, loop, log, problem, ret_handler);
    case SL_WORK_BY_APPEND: return make_append(maker, loop, problem, ret_handler);
    case SL_WORK_HANDLER_KIND_COUNT_: break;
    }
    return SL_ERR_INVALID;
}

/* --- all of it --- */

sl_err sl_work_make(void *ctx, sl_loop *loop, const sl_logger *log, sl_text *problem,
                    sl_crew_parts *ret_parts)
{
    const sl_work_maker *const maker = ctx;
    sl_crew_parts parts = { 0 };
    sl_err err = make_acks(maker->plan, problem, &parts.acks);

    if (err == SL_OK)
        err = make_source(maker, loop, log, problem, &parts);
    if (err == SL_OK)
        err = make_handler(maker, loop, log, problem, &parts.handler);
    if (err == SL_OK) {
        *ret_parts = parts;
        return SL_OK;
    }
    if (parts.source != NULL)
        parts.source->class->free(parts.source);
    sl_ack_file_close(parts.acks);
    if (problem->bytes == 0) /* of memory that is short not every part speaks */
        sl_text_add(problem, sl_err_text(err));
    return err;
}
