/* server/monitoring.c — event_store.client.monitoring.Monitoring: the numbers of /metrics, pushed to a client now and then.
 *
 * Names and values are those of the table in metrics.c, so that there is one vocabulary. Left out is what the host does not know:
 * processor, memory, connections, positions of the store, the version. The uptime is that of the host, which begins when the
 * store is open. A client that does not read is left out of a round, and gets the next one as it is then: a statistic that
 * waited would be old. */
#include "server/auth.h"
#include "server/door.h"
#include "server/metrics.h"
#include "server/reply.h"
#include "server/services.h"
#include "wire/server_control.h"

#include "base/cleanup.h"

#include <assert.h>

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    REQUEST_BYTES_MAX = 4 * 1024,
    PERIOD_MS_MIN = 100, /* ten times in a second is as fast as anybody can look */
    PERIOD_MS_MAX = 3600 * 1000,
    PERIOD_MS_USUAL = 30 * 1000, /* when none is asked for: KurrentDB's own */
    ARENA_CHUNK_BYTES = 16 * 1024,
    ARENA_BYTES_MAX = 256 * 1024, /* of one round: some hundred short texts, twice */
    KEY_BYTES = 128,
    NUMBER_BYTES = 32,
};

typedef struct watching {
    sl_request *request;
    sl_alarm alarm;
    uint64_t period_ns;
} watching;

/* --- one round --- */

static sl_metrics_view look(const sl_host *host)
{
    return (sl_metrics_view){ .counters = host->counters,
                              .is_ready = sl_host_ready(host),
                              .is_shutting_down = host->stopping,
                              .uptime_ns = sl_clock_mono_ns(host->clock) - host->started_ns,
                              .users = sl_auth_user_count(host->auth),
                              .batches_inside = sl_door_inside(host->door) };
}

/* Is it a field that look() fills? */
static bool is_known(const sl_metric *metric)
{
    static const size_t others[] = { offsetof(sl_metrics_view, is_ready),
                                     offsetof(sl_metrics_view, is_shutting_down),
                                     offsetof(sl_metrics_view, uptime_ns), offsetof(sl_metrics_view, users),
                                     offsetof(sl_metrics_view, batches_inside) };

    for (size_t i = 0; i < SL_COUNT_OF(others); i++) {
        if (metric->offset == others[i])
            return true;
    }
    return metric->offset < offsetof(sl_metrics_view, counters) + sizeof(sl_server_counters);
}

static char *key_of(sl_arena *arena, const sl_metric *metric, unsigned index)
{
    char buffer[KEY_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_metric_add_name(&text, metric, index);
    return sl_arena_copy_str(arena, sl_text_str(&text));
}

static char *value_of(sl_arena *arena, const sl_metrics_view *view, const sl_metric *metric, unsigned index)
{
    char buffer[NUMBER_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_metric_add_value(&text, view, metric, index);
    return sl_arena_copy_str(arena, sl_text_str(&text));
}

static size_t count_values(void)
{
    size_t count = 0;

    for (size_t i = 0; i < sl_metric_count; i++)
        count += is_known(&sl_metrics[i]) ? sl_metrics[i].value_count : 0;
    return count;
}

static sl_err encode(const sl_host *host, sl_arena *arena, sl_str *ret_message)
{
    const sl_metrics_view view = look(host);
    sl_wire_label *const labels = sl_arena_alloc(arena, count_values() * sizeof *labels);
    size_t count = 0;

    if (labels == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < sl_metric_count; i++) {
        const sl_metric *const metric = &sl_metrics[i];
        for (unsigned index = 0; is_known(metric) && index < metric->value_count; index++) {
            const char *const key = key_of(arena, metric, index);
            const char *const value = value_of(arena, &view, metric, index);
            if (key == NULL || value == NULL)
                return SL_ERR_NOMEM;
            labels[count++] = (sl_wire_label){ sl_str_from(key), sl_str_from(value) };
        }
    }
    return sl_stats_encode(labels, count, arena, ret_message);
}

/* Memory of its own for each round: the call may last for months. */
static void send_round(sl_request *request)
{
    sl_host *const host = request->host;
    sl_arena arena;
    sl_str message;
    sl_err err;

    sl_arena_init(&arena, host->alloc, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    err = encode(host, &arena, &message);
    if (err == SL_OK)
        sl_request_send(request, message);
    else
        sl_reply_error(request, err);
    sl_arena_done(&arena);
}

/* --- the call --- */

static void on_alarm(void *ctx)
{
    watching *const watch = ctx;
    sl_request *const request = sl_request_hold(watch->request);
    sl_host *const host = request->host;

    if (sl_request_room(request) > 0)
        send_round(request);
    if (sl_request_open(request))
        sl_alarm_set(host, &watch->alarm, sl_clock_mono_ns(host->clock) + watch->period_ns);
    sl_request_release(request);
}

static uint64_t period_ns(uint64_t asked_ms)
{
    const uint64_t wanted_ms = asked_ms == 0 ? PERIOD_MS_USUAL : asked_ms;

    return sl_max_u64(PERIOD_MS_MIN, sl_min_u64(PERIOD_MS_MAX, wanted_ms)) * MILLISECOND_NS;
}

static void begin_watching(sl_request *request, sl_str message)
{
    watching *const watch = request->state;
    const char *reason = NULL;
    sl_stats_request asked;
    const sl_err err = sl_stats_request_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    *watch = (watching){ .request = request,
                         .alarm = { .fn = on_alarm, .ctx = watch },
                         .period_ns = period_ns(asked.refresh_ms) };
    on_alarm(watch);
}

static void end_watching(sl_request *request)
{
    watching *const watch = request->state;

    sl_alarm_stop(request->host, &watch->alarm);
}

static_assert(offsetof(sl_metrics_view, counters) == 0, "is_known() takes what comes first for counters");

const sl_method sl_method_monitoring_stats = {
    .service = SL_STR_INIT("event_store.client.monitoring.Monitoring"),
    .name = SL_STR_INIT("Stats"),
    .kind = SL_METHOD_SERVER_STREAM,
    .who = SL_FOR_READERS,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .state_bytes = sizeof(watching),
    .message = begin_watching,
    .end = end_watching,
};
