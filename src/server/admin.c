/* server/admin.c — which page answers which question, and who may ask. */
#include "server/admin.h"

#include "base/cleanup.h"
#include "server/admin_query.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <strings.h>

enum {
    SENTENCE_BYTES = 2048,
    PATH_SHOWN_BYTES = 128
};

void sl_admin_refuse(sl_admin_answer *answer, unsigned status, const char *sentence)
{
    cJSON *const object = cJSON_CreateObject();
    char *text = NULL;

    if (object != NULL && cJSON_AddStringToObject(object, "error", sentence) != NULL)
        text = cJSON_PrintUnformatted(object);
    sl_buf_clear(&answer->body);
    answer->status = status;
    answer->content_type = "application/json";
    if (text == NULL || sl_buf_append(&answer->body, text, strlen(text)) != SL_OK ||
        sl_buf_append(&answer->body, "\n", 1) != SL_OK)
        sl_buf_clear(&answer->body);
    cJSON_free(text);
    cJSON_Delete(object);
}

/* --- the name under which it was asked for --- */

/* "name:port", "[::1]:port" and both without a port. */
static sl_str without_port(sl_str header)
{
    const sl_str inside = { header.data + 1, header.bytes - 1 };
    sl_str before, after;

    if (header.bytes > 0 && header.data[0] == '[')
        return sl_str_cut(inside, ']', &before, &after) ? before : header;
    return sl_str_cut(header, ':', &before, &after) ? before : header;
}

static bool same_name(sl_str a, const char *b)
{
    return b != NULL && strlen(b) == a.bytes && strncasecmp(a.data, b, a.bytes) == 0;
}

/* Digits, dots, colons and hexadecimal letters only: no name of DNS that a stranger could own has a last part of digits. */
static bool is_number(sl_str host)
{
    const bool has_colon = sl_str_find(host, ':') < host.bytes;

    for (size_t i = 0; i < host.bytes; i++) {
        const char c = host.data[i];
        const bool digit = c >= '0' && c <= '9';
        const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!digit && c != '.' && c != ':' && !(letter && has_colon))
            return false;
    }
    return host.bytes > 0 && host.data[host.bytes - 1] != '.';
}

bool sl_admin_host_allowed(const sl_server_settings *settings, sl_str host_header)
{
    const sl_str host = without_port(host_header);

    if (same_name(host, "localhost") || sl_address_is_loopback(host) || same_name(host, settings->admin_host))
        return true;
    return sl_address_is_everywhere(sl_str_from(settings->admin_host)) &&
           (is_number(host) || same_name(host, settings->advertise_host));
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

static void refuse_path(sl_admin_answer *answer, const char *path)
{
    char sentence[SENTENCE_BYTES];
    sl_str shown = sl_str_from(path);
    sl_text text;

    shown.bytes = shown.bytes > PATH_SHOWN_BYTES ? PATH_SHOWN_BYTES : shown.bytes;
    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, "There is no page ");
    sl_text_add_str(&text, shown);
    sl_text_add(&text, " here. These exist:");
    for (size_t i = 0; i < sl_admin_route_count; i++) {
        sl_text_add(&text, i == 0 ? " " : "; ");
        sl_text_add(&text, sl_admin_routes[i].path);
        sl_text_add(&text, " (");
        sl_text_add(&text, sl_admin_routes[i].summary);
        sl_text_add(&text, ")");
    }
    for (size_t i = 0; i < sl_admin_group_route_count; i++) {
        sl_text_add(&text, "; ");
        sl_text_add(&text, sl_admin_group_routes[i].is_post ? "POST " : "");
        sl_text_add(&text, sl_admin_group_routes[i].path);
    }
    sl_admin_refuse(answer, 404, sentence);
}

static const sl_admin_group_route *find_group_route(const sl_admin_question *question, sl_str parts[2])
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
           same_name((sl_str){ text.data + scheme.bytes, text.bytes - scheme.bytes }, host);
}

/* Browsers say where the page is from that sends a form or calls fetch(); other programs say nothing of the kind. */
static bool is_from_elsewhere(const sl_admin_question *question)
{
    const char *const site = question->fetch_site;

    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return true;
    return question->origin != NULL && !is_own_origin(question->origin, question->host);
}

static bool is_reading(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static void ask_about_groups(sl_server *server, const sl_admin_question *question,
                             const sl_admin_group_route *route, const sl_str parts[2],
                             sl_admin_answer *answer)
{
    const bool is_right =
        route->is_post ? strcmp(question->method, "POST") == 0 : is_reading(question->method);

    if (!is_right) {
        answer->allow = route->is_post ? "POST" : "GET, HEAD";
        sl_admin_refuse(answer, 405,
                        route->is_post ? "This page changes something: use POST."
                                       : "This page can only be read: use GET or HEAD.");
    } else if (route->is_post && is_from_elsewhere(question)) {
        sl_admin_refuse(answer, 403, "A web page of another origin may not do this.");
    } else if (server->host == NULL || server->stage != SL_STAGE_SERVING) {
        sl_admin_refuse(answer, 503, "The server does not serve clients yet, or not any more.");
    } else {
        route->page(server, question, parts, answer);
    }
}

void sl_admin_ask(sl_server *server, const sl_admin_question *question, sl_admin_answer *answer)
{
    const sl_admin_route *const route = find_route(question->path);
    sl_str parts[2] = { { 0 } };
    const sl_admin_group_route *const group_route = find_group_route(question, parts);

    answer->status = 200;
    answer->content_type = "application/json";
    answer->allow = answer->challenge = NULL;
    if (question->host != NULL &&
        !sl_admin_host_allowed(server->settings, sl_str_trim(sl_str_from(question->host)))) {
        sl_admin_refuse(answer, 421,
                        "These pages are shown under the names of this machine only: ask for "
                        "http://127.0.0.1 with the port, or for the name given with --admin-host.");
    } else if (group_route != NULL) {
        ask_about_groups(server, question, group_route, parts, answer);
    } else if (route == NULL) {
        refuse_path(answer, question->path);
    } else if (!is_reading(question->method)) {
        sl_admin_refuse(answer, 405, "This page can only be read: use GET or HEAD.");
        answer->allow = "GET, HEAD";
    } else {
        route->page(server, answer);
    }
}
