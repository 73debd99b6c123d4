/* server/admin.c — which page answers which question, and who may ask. */
#include "server/admin.h"

#include "server/admin_query.h"

#include <string.h>

enum {
    CONNECTIONS_MAX = 128,
    CONNECTIONS_PER_IP_MAX = 64, /* behind a proxy, or on loopback, all come from one address */
    CONNECTION_BYTES = 32 * 1024,
    BACKLOG = 128
};

/* --- the name under which it was asked for --- */

bool sl_admin_host_allowed(const sl_server_settings *settings, sl_str host_header)
{
    const sl_str host = sl_pages_host_name(host_header);

    if (sl_pages_same_name(host, "localhost") || sl_address_is_loopback(host) ||
        sl_pages_same_name(host, settings->admin_host))
        return true;
    return sl_address_is_everywhere(sl_str_from(settings->admin_host)) &&
           (sl_pages_is_number(host) || sl_pages_same_name(host, settings->advertise_host));
}

/* --- routes --- */

static const sl_admin_route *find_route(const char *path)
{
    for (size_t i = 0; i < sl_admin_route_count; i++) {
        if (strcmp(sl_admin_routes[i].path, path) == 0)
            return &sl_admin_routes[i];
    }
    return NULL;
}

static bool row_at(size_t index, sl_pages_row *ret_row)
{
    const size_t group_index = index - sl_admin_route_count;

    if (index < sl_admin_route_count) {
        const sl_admin_route *const route = &sl_admin_routes[index];
        *ret_row = (sl_pages_row){ "", route->path, route->summary };
        return true;
    }
    if (group_index >= sl_admin_group_route_count)
        return false;
    *ret_row = (sl_pages_row){ sl_admin_group_routes[group_index].is_post ? "POST " : "",
                               sl_admin_group_routes[group_index].path, NULL };
    return true;
}

static const sl_admin_group_route *find_group_route(const sl_pages_question *question, sl_str parts[2])
{
    for (size_t i = 0; i < sl_admin_group_route_count; i++)
        if (sl_admin_path_fits(sl_admin_group_routes[i].path, sl_str_from(question->path), parts))
            return &sl_admin_group_routes[i];
    return NULL;
}

/* "http://127.0.0.1:2114" for a page of our own. */
static bool is_own_origin(const char *origin, const char *host)
{
    const sl_str text = sl_str_from(origin);
    const sl_str scheme = SL_STR("http://");

    return host != NULL && sl_str_starts_with(text, scheme) &&
           sl_pages_same_name((sl_str){ text.data + scheme.bytes, text.bytes - scheme.bytes }, host);
}

/* Browsers say where the page is from that sends a form or calls fetch(); other programs say nothing of the kind. */
static bool is_from_elsewhere(const sl_pages_question *question)
{
    const char *const site = question->fetch_site;

    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return true;
    return question->origin != NULL && !is_own_origin(question->origin, question->host);
}

static void ask_about_groups(sl_server *server, const sl_pages_question *question,
                             const sl_admin_group_route *route, const sl_str parts[2],
                             sl_pages_answer *answer)
{
    const bool is_right =
        route->is_post ? strcmp(question->method, "POST") == 0 : sl_pages_is_reading(question->method);

    if (!is_right && !route->is_post) {
        sl_pages_refuse_change(answer);
    } else if (!is_right) {
        sl_pages_refuse(answer, 405, "This page changes something: use POST.");
        answer->allow = "POST";
    } else if (route->is_post && is_from_elsewhere(question)) {
        sl_pages_refuse(answer, 403, "A web page of another origin may not do this.");
    } else if (server->host == NULL || server->stage != SL_STAGE_SERVING) {
        sl_pages_refuse(answer, 503, "The server does not serve clients yet, or not any more.");
    } else {
        route->page(server, question, parts, answer);
    }
}

void sl_admin_ask(sl_server *server, const sl_pages_question *question, sl_pages_answer *answer)
{
    const sl_admin_route *const route = find_route(question->path);
    sl_str parts[2] = { { 0 } };
    const sl_admin_group_route *const group_route = find_group_route(question, parts);

    sl_pages_begin(answer);
    if (question->host != NULL && !sl_admin_host_allowed(server->settings, sl_str_from(question->host))) {
        sl_pages_refuse(answer, 421,
                        "These pages are shown under the names of this machine only: ask for "
                        "http://127.0.0.1 with the port, or for the name given with --admin-host.");
    } else if (group_route != NULL) {
        ask_about_groups(server, question, group_route, parts, answer);
    } else if (route == NULL) {
        sl_pages_refuse_path(answer, question->path, row_at);
    } else if (!sl_pages_is_reading(question->method)) {
        sl_pages_refuse_change(answer);
    } else {
        route->page(server, answer);
    }
}

/* --- where they are shown --- */

static void on_ask(void *ctx, const sl_pages_question *question, sl_pages_answer *answer)
{
    sl_admin_ask(ctx, question, answer);
}

static void on_give_up(void *ctx, sl_pages_answer *answer)
{
    (void)ctx;
    sl_admin_give_up(answer);
}

sl_err sl_admin_new(sl_server *server, sl_text *problem, sl_pages **ret_pages)
{
    static const sl_pages_owner owner = { .ask = on_ask, .give_up = on_give_up };
    const sl_pages_options options = { .host = server->settings->admin_host,
                                       .port = server->settings->admin_port,
                                       .alloc = server->alloc,
                                       .connections_max = CONNECTIONS_MAX,
                                       .connections_per_ip_max = CONNECTIONS_PER_IP_MAX,
                                       .connection_bytes = CONNECTION_BYTES,
                                       .body_bytes_max = SL_ADMIN_BODY_BYTES_MAX,
                                       .backlog = BACKLOG };

    return sl_pages_new(server->loop, &options, &owner, server, problem, ret_pages);
}
