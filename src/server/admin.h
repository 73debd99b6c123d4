/* server/admin.h — the admin pages: HTTP/1.1 for people, orchestrators and Prometheus, on a port of its own.
 *
 *      admin.c        from a question to a page: one table of routes, methods, the check of the Host header
 *      admin_pages.c  pages about the server
 *      admin_groups.c, admin_stop.c   pages about groups and consumers; stopping them and going on
 *      admin_query.c  percent-encoding, parameters, patterns of paths
 *
 * src/pages has the connections and the life of a request.
 *
 * Who only reads is asked for no password. Who stops consumers must be an operator, where the server has users, and may have to
 * wait for his answer. A web page that somebody opens in a browser on this machine must be able to do neither: through a name that
 * resolves to 127.0.0.1 (DNS rebinding), so questions that were asked under a foreign name are refused; or by sending a form
 * here from another page, so what changes something is refused when a browser says that it comes from there. */
#ifndef SL_SERVER_ADMIN_H
#define SL_SERVER_ADMIN_H

#include "pages/pages.h"
#include "server/server_private.h"

enum {
    SL_ADMIN_BODY_BYTES_MAX = 32 * 1024 * 1024, /* a list of SL_CONSUMERS_LISTED_MAX */
    SL_ADMIN_JOBS_MAX = 32, /* who waits for his answer at a time: the others find connections left */
};

/* Listens from now on, at the address of the settings. `problem` gets what net says. Codes as sl_listener_new(). */
sl_err sl_admin_new(sl_server *server, sl_text *problem, sl_pages **ret_pages);

/* --- from a question to an answer, without HTTP --- */

/* answer->body must be initialised, and ready be set. As sl_pages_owner has it. */
void sl_admin_ask(sl_server *server, const sl_pages_question *question, sl_pages_answer *answer);

/* The host goes: who waits is told so. */
void sl_admin_end_jobs(sl_server *server);

/* Nobody wants the answer any more. Also right without a job. What was stopped stays so. */
void sl_admin_give_up(sl_pages_answer *answer);

/* May a page be shown under this name? */
bool sl_admin_host_allowed(const sl_server_settings *settings, sl_str host_header);

/* --- for admin_pages.c --- */

typedef struct sl_admin_route {
    const char *path;
    void (*page)(sl_server *server, sl_pages_answer *answer);
    const char *summary;
} sl_admin_route;

extern const sl_admin_route sl_admin_routes[];
extern const size_t sl_admin_route_count;

/* --- for admin_groups.c and admin_stop.c --- */

/* A page whose path has parts in capitals that stand for anything; `parts` are those, still encoded. */
typedef struct sl_admin_group_route {
    const char *path;
    bool is_post; /* it changes something: POST; else GET and HEAD */
    void (*page)(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                 sl_pages_answer *answer);
} sl_admin_group_route;

extern const sl_admin_group_route sl_admin_group_routes[];
extern const size_t sl_admin_group_route_count;

void sl_admin_show_stop(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                        sl_pages_answer *answer);

/* Who a page is about, from its path and its parameters (stream, group, name, label=key=value). NULL, or a sentence. */
struct sl_admin_parameter;
const char *sl_admin_who(const char *path, const sl_str parts[2], const struct sl_admin_parameter *parameters,
                         sl_arena *arena, sl_wire_who *ret_who);

/* {"consumers": [...], ...}; NULL: out of memory. */
struct cJSON;
struct cJSON *sl_admin_consumers(sl_host *host, const sl_wire_who *who, bool with_reports, sl_err *ret_err);

#endif
