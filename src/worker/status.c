/* worker/status.c — which page answers which question, and who may ask. */
#include "worker/status.h"

#include "base/cleanup.h"

#include <string.h>

/* --- the name under which it was asked for --- */

/* A number cannot be rebound, whatever it is, so kubelets and scrapers that ask by address need no list of names. */
bool sl_status_host_allowed(const char *own_host, sl_str host_header)
{
    const sl_str host = sl_pages_host_name(host_header);

    return sl_pages_same_name(host, "localhost") || sl_pages_same_name(host, own_host) ||
           sl_pages_is_number(host);
}

/* Browsers say where the page is from that sends a form or calls fetch(); other programs say nothing of the kind. There is no
 * page of ours that could ask, so whatever says that it is a page is not ours. */
static bool is_from_a_page(const sl_pages_question *question)
{
    const char *const site = question->fetch_site;

    return question->origin != NULL || (site != NULL && strcmp(site, "none") != 0);
}

/* --- /v1/drain --- */

/* "wait=25s", or a plain number of seconds as hooks like to write it. Anything else there is a mistake that a hook must hear of. */
static bool read_wait(const char *query, uint64_t *ret_ns)
{
    const sl_duration_bounds bounds = { 0, SL_STATUS_WAIT_MAX_NS };
    const sl_str text = sl_str_from(query);
    const sl_str name = SL_STR("wait=");
    uint64_t seconds;
    sl_str value;

    *ret_ns = 0;
    if (text.bytes == 0)
        return true;
    if (!sl_str_starts_with(text, name))
        return false;
    value = (sl_str){ text.data + name.bytes, text.bytes - name.bytes };
    if (sl_str_parse_u64(value, &seconds) != SL_OK)
        return sl_str_parse_duration(value, bounds, ret_ns) == SL_OK;
    *ret_ns = seconds * UINT64_C(1000000000);
    return seconds <= SL_STATUS_WAIT_MAX_NS / UINT64_C(1000000000);
}

static bool may_drain(const sl_pages_question *question, sl_pages_answer *answer)
{
    if (is_from_a_page(question)) {
        sl_pages_refuse(answer, 403, "A web page may not do this.");
        return false;
    }
    if (!question->is_local) {
        sl_pages_refuse(answer, 403,
                        "Only this machine may begin a drain: ask from inside of the container or host, as a "
                        "pre-stop command does, or send SIGTERM.");
        return false;
    }
    return true;
}

static void ask_drain(const sl_status_owner *owner, void *ctx, const sl_pages_question *question,
                      sl_pages_answer *answer, uint64_t *ret_wait_ns)
{
    const bool begins = strcmp(question->method, "POST") == 0;
    uint64_t wait_ns;

    if (!read_wait(question->query, &wait_ns)) {
        sl_pages_refuse(answer, 400, "The only parameter is wait, a time like 25s, and at most 24h.");
        return;
    }
    if (begins && !may_drain(question, answer))
        return;
    if (begins)
        owner->drain(ctx);
    if (!sl_status_show_drain(owner->look(ctx), wait_ns == 0 ? SL_STATUS_AT_ONCE : SL_STATUS_WAITS, answer))
        *ret_wait_ns = wait_ns;
}

/* --- routes --- */

typedef struct route {
    const char *path, *summary;
    void (*page)(const sl_crew_view *view, sl_pages_answer *answer); /* NULL: /v1/drain */
} route;

static const route routes[] = {
    { "/livez", "the process turns", sl_status_show_live },
    { "/readyz", "every worker is up and none drains", sl_status_show_ready },
    { "/metrics", "numbers for Prometheus", sl_status_show_metrics },
    { "/v1/state", "everything, as JSON", sl_status_show_state },
    { "/v1/drain", "how the drain goes on, POST begins it, ?wait=25s waits for it", NULL },
};

static const route *find_route(const char *path)
{
    for (size_t i = 0; i < SL_COUNT_OF(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

static bool row_at(size_t index, sl_pages_row *ret_row)
{
    if (index >= SL_COUNT_OF(routes))
        return false;
    *ret_row = (sl_pages_row){ "", routes[index].path, routes[index].summary };
    return true;
}

static bool method_fits(const route *found, const sl_pages_question *question, sl_pages_answer *answer)
{
    const bool may_post = found->page == NULL;

    if (sl_pages_is_reading(question->method) || (may_post && strcmp(question->method, "POST") == 0))
        return true;
    if (may_post) {
        sl_pages_refuse(answer, 405, "Use POST to begin a drain, GET or HEAD to look at it.");
        answer->allow = "GET, HEAD, POST";
    } else {
        sl_pages_refuse_change(answer);
    }
    return false;
}

void sl_status_ask(const sl_status_owner *owner, void *ctx, const sl_pages_question *question,
                   sl_pages_answer *answer, uint64_t *ret_wait_ns)
{
    const route *const found = find_route(question->path);

    sl_pages_begin(answer);
    *ret_wait_ns = 0;
    if (question->host != NULL && !sl_status_host_allowed(owner->host, sl_str_from(question->host)))
        sl_pages_refuse(answer, 421,
                        "These pages are shown under the addresses of this machine only: ask for its number, "
                        "for localhost, or for the name that they listen at.");
    else if (found == NULL)
        sl_pages_refuse_path(answer, question->path, row_at);
    else if (!method_fits(found, question, answer))
        return;
    else if (found->page == NULL)
        ask_drain(owner, ctx, question, answer, ret_wait_ns);
    else
        found->page(owner->look(ctx), answer);
}
