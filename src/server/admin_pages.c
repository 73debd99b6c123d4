/* server/admin_pages.c — what the pages say. Each builds its answer from what the server is at this moment. */
#include "server/admin.h"

#include "base/cleanup.h"
#include "server/auth.h"
#include "server/door.h"
#include "server/groups/group_metrics.h"
#include "server/metrics.h"

#include <cjson/cJSON.h>
#include <sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#define SECOND_NS UINT64_C(1000000000)

/* --- JSON: a failed addition is noticed once, at the end --- */

typedef struct page {
    cJSON *top;
    bool failed;
} page;

static cJSON *add_object(page *p, cJSON *to, const char *name)
{
    cJSON *const object = cJSON_AddObjectToObject(to, name);

    p->failed = p->failed || object == NULL;
    return object;
}

static void add_text(page *p, cJSON *to, const char *name, const char *text)
{
    cJSON *const item =
        text == NULL ? cJSON_AddNullToObject(to, name) : cJSON_AddStringToObject(to, name, text);

    p->failed = p->failed || item == NULL;
}

static void add_flag(page *p, cJSON *to, const char *name, bool flag)
{
    p->failed = cJSON_AddBoolToObject(to, name, flag) == NULL || p->failed;
}

/* As text, because a double rounds large numbers. */
static void add_u64(page *p, cJSON *to, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    p->failed = cJSON_AddRawToObject(to, name, text) == NULL || p->failed;
}

static void add_seconds(page *p, cJSON *to, const char *name, uint64_t ns)
{
    char text[40];

    snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64, ns / SECOND_NS, ns % SECOND_NS / 1000000);
    p->failed = cJSON_AddRawToObject(to, name, text) == NULL || p->failed;
}

static page begin_page(void)
{
    page p = { .top = cJSON_CreateObject() };

    p.failed = p.top == NULL;
    return p;
}

static void end_page(page *p, sl_pages_answer *answer)
{
    sl_pages_show(answer, p->failed ? NULL : p->top);
    if (p->failed)
        cJSON_Delete(p->top);
}

/* --- health --- */

/* Whoever gets this answer has proof that the loop turns. */
static void show_livez(sl_server *server, sl_pages_answer *answer)
{
    page p = begin_page();

    (void)server;
    add_flag(&p, p.top, "alive", true);
    end_page(&p, answer);
}

static void show_readyz(sl_server *server, sl_pages_answer *answer)
{
    char why[SL_SENTENCES_BYTES];
    page p = begin_page();
    sl_text text;

    sl_text_init(&text, why, sizeof why);
    const bool is_ready = sl_server_is_ready(server, &text);
    add_flag(&p, p.top, "ready", is_ready);
    if (!is_ready)
        add_text(&p, p.top, "why", why);
    answer->status = is_ready ? 200 : 503;
    end_page(&p, answer);
}

/* --- metrics --- */

static uint64_t time_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_usec * 1000;
}

static void look_at_process(sl_metrics_view *view)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    view->processor_ns = time_ns(usage.ru_utime) + time_ns(usage.ru_stime);
    view->resident_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static void look_at_host(const sl_server *server, sl_metrics_view *view)
{
    const sl_host *const host = server->host;

    if (host == NULL)
        return;
    view->connections_now = server->peers.count;
    view->users = sl_auth_user_count(host->auth);
    view->batches_inside = sl_door_inside(host->door);
    view->end_position = sl_store_end(host->store);
    view->groups = sl_group_metrics_count(host);
}

static void show_metrics(sl_server *server, sl_pages_answer *answer)
{
    sl_metrics_view view = { .counters = *sl_server_counters_of(server), .one = 1 };

    view.counters.net = server->net;
    view.uptime_ns = sl_loop_now_ns(server->loop) - server->started_ns;
    view.started_wall_ns = sl_loop_wall_ns(server->loop) - view.uptime_ns;
    view.is_ready = sl_server_is_ready(server, NULL);
    view.is_shutting_down = sl_shutdown_is_on(&server->shutdown);
    look_at_process(&view);
    look_at_host(server, &view);
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (sl_metrics_write(&view, &answer->body) != SL_OK ||
        (server->host != NULL && sl_group_metrics_write(server->host, &answer->body) != SL_OK))
        sl_pages_out_of_memory(answer);
}

/* --- information --- */

/* No secret is among them: of the key only the name of its file is known here, and that is left out too. */
static void add_settings(page *p, const sl_server_settings *settings)
{
    cJSON *const to = add_object(p, p->top, "settings");

    add_text(p, to, "host", settings->host);
    add_text(p, to, "admin_host", settings->admin_host);
    add_text(p, to, "advertise_host", settings->advertise_host);
    add_text(p, to, "data", settings->data_folder);
    add_text(p, to, "durability", settings->sync_by_os ? "os" : "sync");
    add_flag(p, to, "insecure", settings->insecure);
    add_flag(p, to, "anonymous", settings->anonymous);
    add_text(p, to, "tls_certificate", settings->tls_certificate);
    add_seconds(p, to, "grace_seconds", settings->grace_ns);
    add_u64(p, to, "connections_max", settings->connections_max);
    add_u64(p, to, "append_bytes_max", settings->append_bytes_max);
    add_u64(p, to, "event_bytes_max", settings->event_bytes_max);
    add_seconds(p, to, "write_timeout_seconds", settings->write_timeout_ns);
    add_seconds(p, to, "idle_timeout_seconds", settings->idle_timeout_ns);
}

static void add_state(page *p, sl_server *server)
{
    const sl_host *const host = server->host;
    cJSON *const to = add_object(p, p->top, "store");

    add_u64(p, to, "end_position", host == NULL ? 0 : sl_store_end(host->store));
    add_text(p, to, "problem", host == NULL ? "" : sl_store_problem(host->store));
    add_u64(p, p->top, "users", host == NULL ? 0 : sl_auth_user_count(host->auth));
    add_u64(p, p->top, "open_connections", host == NULL ? 0 : server->peers.count);
    add_u64(p, p->top, "open_calls", sl_server_counters_of(server)->calls_now);
    add_u64(p, p->top, "open_subscriptions", sl_server_counters_of(server)->subscriptions_now);
}

static void show_info(sl_server *server, sl_pages_answer *answer)
{
    char instance[SL_UUID_TEXT_BYTES + 1];
    page p = begin_page();
    cJSON *const addresses = add_object(&p, p.top, "addresses");

    sl_uuid_format(server->instance, instance);
    add_text(&p, p.top, "version", sl_version());
    add_text(&p, p.top, "instance", instance);
    add_seconds(&p, p.top, "uptime_seconds", sl_loop_now_ns(server->loop) - server->started_ns);
    add_flag(&p, p.top, "ready", sl_server_is_ready(server, NULL));
    add_text(&p, p.top, "shutting_down",
             sl_shutdown_is_on(&server->shutdown) ? sl_shutdown_reason(&server->shutdown) : NULL);
    add_text(&p, addresses, "grpc", server->stage == SL_STAGE_SERVING ? server->address : NULL);
    add_text(&p, addresses, "admin", server->admin_address);
    add_flag(&p, p.top, "tls", server->tls != NULL);
    add_state(&p, server);
    add_settings(&p, server->settings);
    end_page(&p, answer);
}

const sl_admin_route sl_admin_routes[] = {
    { "/livez", show_livez, "200 as long as the server is alive" },
    { "/readyz", show_readyz, "200 while clients can be served, else 503 and why" },
    { "/metrics", show_metrics, "counters for Prometheus" },
    { "/v1/info", show_info, "version, addresses, settings" },
};
const size_t sl_admin_route_count = SL_COUNT_OF(sl_admin_routes);
