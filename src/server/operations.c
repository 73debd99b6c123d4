/* server/operations.c — event_store.client.operations.Operations: what an operator's script asks of a server.
 *
 * Scavenging is the store's work; here it gets a name. One runs at a time, and who asks for another is told the name of the one that
 * runs. The store also takes on a segment by itself now and then; a scavenge that is asked for meanwhile is started as
 * soon as that is over, and for the client it has been started.
 *
 * It cannot be stopped early other than by closing the store: each segment is replaced in one step, and the whole takes minutes at
 * most. Who asks to stop the running one gets the truth, "in progress", and no error: there is nothing that he would have to do.
 *
 * The rest is for clusters. A single node has nothing to merge, no role to resign from and nobody to compare priorities with;
 * KurrentDB accepts these calls on a single node, so scripts that make them must not fail here. */
#include "server/operations.h"

#include "server/groups/management.h"
#include "server/reply.h"
#include "server/services.h"
#include "server/streams/write.h"
#include "wire/server_control.h"

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    REQUEST_BYTES_MAX = 4 * 1024,
    RETRY_MS = 100, /* while the store works on a segment of its own choice */
    REASON_BYTES = 128,
};

/* Lives until the store has answered, which may be after the host is gone. */
typedef struct sl_scavenge_run {
    sl_host *host; /* NULL: gone */
    const sl_alloc *alloc;
    sl_uuid id;
    bool is_in_store; /* done() will come */
    sl_alarm retry;
} sl_scavenge_run;

static sl_str id_text(sl_uuid id, char text[SL_UUID_TEXT_BYTES + 1])
{
    sl_uuid_format(id, text);
    return (sl_str){ text, SL_UUID_TEXT_BYTES };
}

/* --- the life of a scavenge --- */

static void free_run(sl_scavenge_run *run)
{
    if (run->host != NULL) {
        sl_alarm_stop(run->host, &run->retry);
        run->host->scavenge = NULL;
    }
    sl_alloc_give(run->alloc, run, sizeof *run);
}

static void log_end(const sl_scavenge_run *run, const sl_scavenged *result)
{
    sl_log(run->host->log, result->err == SL_OK ? SL_LOG_INFO : SL_LOG_WARN, "scavenge ended",
           SL_LOG_UUID("id", run->id), SL_LOG_ERR("result", result->err),
           SL_LOG_U64("segments_rewritten", result->segments_rewritten),
           SL_LOG_U64("events_dropped", result->events_dropped),
           SL_LOG_U64("bytes_freed", result->bytes_freed));
}

static void on_scavenged(void *ctx, const sl_scavenged *result)
{
    sl_scavenge_run *const run = ctx;

    if (run->host != NULL)
        log_end(run, result);
    free_run(run);
}

static sl_err begin_run(sl_scavenge_run *run)
{
    sl_host *const host = run->host;
    const sl_scavenge how = { .now_ns = sl_clock_wall_ns(host->clock) };
    const sl_err err = sl_store_scavenge(host->store, &how, on_scavenged, run);

    run->is_in_store = err == SL_OK;
    if (err != SL_ERR_EXISTS)
        return err;
    sl_alarm_set(host, &run->retry, sl_clock_mono_ns(host->clock) + RETRY_MS * MILLISECOND_NS);
    return SL_OK;
}

static void retry_run(void *ctx)
{
    sl_scavenge_run *const run = ctx;
    const sl_err err = begin_run(run);

    if (err == SL_OK)
        return;
    log_end(run, &(sl_scavenged){ .err = err });
    free_run(run);
}

static sl_err new_run(sl_host *host)
{
    sl_scavenge_run *const run = sl_alloc_take(host->alloc, sizeof *run);
    sl_err err;

    if (run == NULL)
        return SL_ERR_NOMEM;
    *run = (sl_scavenge_run){ .host = host,
                              .alloc = host->alloc,
                              .id = sl_write_new_id(host),
                              .retry = { .fn = retry_run, .ctx = run } };
    host->scavenge = run;
    err = begin_run(run);
    if (err != SL_OK)
        free_run(run);
    return err;
}

void sl_operations_stop(sl_host *host)
{
    sl_scavenge_run *const run = host->scavenge;

    if (run == NULL || run->is_in_store)
        return;
    log_end(run, &(sl_scavenged){ .err = SL_ERR_DRAINING });
    free_run(run);
}

void sl_operations_forget(sl_host *host)
{
    sl_scavenge_run *const run = host->scavenge;

    if (run == NULL)
        return;
    if (!run->is_in_store) {
        free_run(run);
        return;
    }
    host->scavenge = NULL;
    run->host = NULL;
}

/* --- StartScavenge, StopScavenge --- */

static void answer_scavenge(sl_request *request, sl_scavenge_result result)
{
    char id[SL_UUID_TEXT_BYTES + 1];
    sl_str answer;
    const sl_err err = sl_scavenge_response_encode(id_text(request->host->scavenge->id, id), result,
                                                   &request->arena, &answer);

    if (err == SL_OK)
        sl_request_answer(request, answer);
    else
        sl_reply_error(request, err);
}

/* Numbers of threads and chunks are KurrentDB's: the store has one thread for this and looks at all segments. */
static void start_scavenge(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    sl_scavenge_start start;
    sl_err err = sl_scavenge_start_decode(message, &request->arena, &start, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    if (request->host->stopping) { /* it would rewrite files in the time that the last writes need */
        sl_reply_stopping(request);
        return;
    }
    if (request->host->scavenge != NULL) {
        answer_scavenge(request, SL_SCAVENGE_RESULT_IN_PROGRESS);
        return;
    }
    err = new_run(request->host);
    if (err == SL_OK) {
        sl_log(request->host->log, SL_LOG_INFO, "scavenge started",
               SL_LOG_UUID("id", request->host->scavenge->id), SL_LOG_STR("by", request->identity.name));
        answer_scavenge(request, SL_SCAVENGE_RESULT_STARTED);
    } else if (err == SL_ERR_NOT_FOUND) {
        sl_request_finish(request, SL_STATUS_FAILED_PRECONDITION,
                          SL_STR("This server keeps everything in memory: there is nothing to scavenge."),
                          NULL, 0);
    } else {
        sl_reply_error(request, err);
    }
}

static void stop_scavenge(sl_request *request, sl_str message)
{
    const sl_scavenge_run *const run = request->host->scavenge;
    char running[SL_UUID_TEXT_BYTES + 1];
    const char *reason = NULL;
    sl_str id;
    const sl_err err = sl_scavenge_stop_decode(message, &request->arena, &id, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else if (run != NULL && sl_str_equal(id_text(run->id, running), id))
        answer_scavenge(request, SL_SCAVENGE_RESULT_IN_PROGRESS);
    else
        sl_reply_scavenge_not_found(request, id);
}

/* --- the others --- */

static void answer_empty(sl_request *request, sl_str message)
{
    (void)message;
    sl_request_answer(request, SL_STR(""));
}

/* The answer first: the end that begins then lets what was answered out. */
static void shut_down(sl_request *request, sl_str message)
{
    sl_host *const host = request->host;
    char buffer[REASON_BYTES];
    sl_text reason;

    (void)message;
    if (host->shutdown == NULL) {
        sl_request_finish(request, SL_STATUS_FAILED_PRECONDITION,
                          SL_STR("This server cannot end itself: end the program that it runs in."), NULL, 0);
        return;
    }
    sl_text_init(&reason, buffer, sizeof buffer);
    sl_text_add(&reason, "asked for by ");
    sl_text_add_str(&reason, request->identity.name.bytes > 0 ? request->identity.name : SL_STR("a client"));
    sl_request_answer(request, SL_STR(""));
    host->shutdown(host->shutdown_ctx, buffer);
}

static void set_node_priority(sl_request *request, sl_str message)
{
    const char *reason = NULL;
    int32_t priority;
    const sl_err err = sl_node_priority_decode(message, &request->arena, &priority, &reason);

    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else
        sl_request_answer(request, SL_STR(""));
}

/* The old name of PersistentSubscriptions/RestartSubsystem. */
static void restart_groups(sl_request *request, sl_str message)
{
    (void)message;
    sl_management_restart(request);
}

#define OPERATION(variable, method_name, function)                                                           \
    const sl_method sl_method_operations_##variable = {                                                      \
        .service = SL_STR_INIT("event_store.client.operations.Operations"),                                  \
        .name = SL_STR_INIT(method_name),                                                                    \
        .kind = SL_METHOD_UNARY,                                                                             \
        .who = SL_FOR_OPERATORS,                                                                             \
        .message_bytes_max = REQUEST_BYTES_MAX,                                                              \
        .message = function,                                                                                 \
    }

OPERATION(start_scavenge, "StartScavenge", start_scavenge);
OPERATION(stop_scavenge, "StopScavenge", stop_scavenge);
OPERATION(shutdown, "Shutdown", shut_down);
OPERATION(merge_indexes, "MergeIndexes", answer_empty);
OPERATION(resign_node, "ResignNode", answer_empty);
OPERATION(set_node_priority, "SetNodePriority", set_node_priority);
OPERATION(restart_persistent_subscriptions, "RestartPersistentSubscriptions", restart_groups);
