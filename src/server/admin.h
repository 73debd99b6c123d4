/* server/admin.h — the admin pages: HTTP/1.1 for people, orchestrators and Prometheus, on a port of its own.
 *
 *      admin_http.c   libmicrohttpd, which lives on our loop: its descriptor is watched, its timeouts are our timer
 *      admin.c        from a question to a page: one table of routes, methods, the check of the Host header
 *      admin_pages.c  pages about the server
 *      admin_groups.c, admin_stop.c   pages about groups and consumers; stopping them and going on
 *      admin_query.c  percent-encoding, parameters, patterns of paths
 *
 * Who only reads is asked for no password. Who stops consumers must be an operator, where the server has users, and may have to
 * wait for his answer. A web page that somebody opens in a browser on this machine must be able to do neither: through a name that
 * resolves to 127.0.0.1 (DNS rebinding), so questions that were asked under a foreign name are refused; or by sending a form
 * here from another page, so what changes something is refused when a browser says that it comes from there. */
#ifndef SL_SERVER_ADMIN_H
#define SL_SERVER_ADMIN_H

#include "base/buf.h"
#include "server/server_private.h"

enum {
    SL_ADMIN_BODY_BYTES_MAX = 32 * 1024 * 1024, /* a list of SL_CONSUMERS_LISTED_MAX */
    SL_ADMIN_JOBS_MAX = 32, /* who waits for his answer at a time: the others find connections left */
};

/* Listens from now on, at the address of the settings. `problem` gets what net says. Codes as sl_listener_new(). */
sl_err sl_admin_new(sl_server *server, sl_text *problem, sl_admin **ret_admin);
uint16_t sl_admin_port(const sl_admin *admin);

/* Cuts whoever is connected. NULL is allowed. */
void sl_admin_free(sl_admin *admin);

/* --- from a question to an answer, without HTTP --- */

typedef struct sl_admin_question {
    const char *method, *path;                       /* percent-encoded, without what is behind "?" */
    const char *query;                               /* what is behind it; NULL: nothing */
    const char *host;                                /* the header; NULL: there is none, as in HTTP/1.0 */
    const char *origin, *fetch_site, *authorization; /* the same */
    const char *peer;                                /* the address that it comes from; NULL: not known */
} sl_admin_question;

typedef struct sl_admin_answer {
    unsigned status;
    const char *content_type;
    const char *allow;     /* with 405: the methods that there are; else NULL */
    const char *challenge; /* with 401: how to log in; else NULL */
    sl_buf body;
    /* A page that cannot answer yet has a job. ready() comes once, later, never from inside of sl_admin_ask(); the answer must
     * stay until then, or until sl_admin_give_up(). */
    struct sl_admin_job *job;
    void (*ready)(void *ctx);
    void *ready_ctx;
} sl_admin_answer;

/* answer->body must be initialised, and ready be set. Never fails: without memory the answer is 500 without a body. */
void sl_admin_ask(sl_server *server, const sl_admin_question *question, sl_admin_answer *answer);

/* The host goes: who waits is told so. */
void sl_admin_end_jobs(sl_server *server);

/* Nobody wants the answer any more. Also right without a job. What was stopped stays so. */
void sl_admin_give_up(sl_admin_answer *answer);

/* May a page be shown under this name? */
bool sl_admin_host_allowed(const sl_server_settings *settings, sl_str host_header);

/* --- for admin_pages.c --- */

typedef struct sl_admin_route {
    const char *path;
    void (*page)(sl_server *server, sl_admin_answer *answer);
    const char *summary;
} sl_admin_route;

extern const sl_admin_route sl_admin_routes[];
extern const size_t sl_admin_route_count;

/* --- for admin_groups.c and admin_stop.c --- */

/* A page whose path has parts in capitals that stand for anything; `parts` are those, still encoded. */
typedef struct sl_admin_group_route {
    const char *path;
    bool is_post; /* it changes something: POST; else GET and HEAD */
    void (*page)(sl_server *server, const sl_admin_question *question, const sl_str parts[2],
                 sl_admin_answer *answer);
} sl_admin_group_route;

extern const sl_admin_group_route sl_admin_group_routes[];
extern const size_t sl_admin_group_route_count;

void sl_admin_show_stop(sl_server *server, const sl_admin_question *question, const sl_str parts[2],
                        sl_admin_answer *answer);

/* Who a page is about, from its path and its parameters (stream, group, name, label=key=value). NULL, or a sentence. */
struct sl_admin_parameter;
const char *sl_admin_who(const char *path, const sl_str parts[2], const struct sl_admin_parameter *parameters,
                         sl_arena *arena, sl_wire_who *ret_who);

/* {"consumers": [...], ...}; NULL: out of memory. */
struct cJSON;
struct cJSON *sl_admin_consumers(sl_host *host, const sl_wire_who *who, bool with_reports, sl_err *ret_err);
void sl_admin_show(sl_admin_answer *answer, struct cJSON *object);

/* {"error": "..."} */
void sl_admin_refuse(sl_admin_answer *answer, unsigned status, const char *sentence);

#endif
