/* server/admin.h — the admin pages: HTTP/1.1 for people, orchestrators and Prometheus, on a port of its own.
 *
 *      admin_http.c   libmicrohttpd, which lives on our loop: its descriptor is watched, its timeouts are our timer
 *      admin.c        from a question to a page: one table of routes, methods, the check of the Host header
 *      admin_pages.c  the pages
 *
 * Everything here only reads, asks nobody for a password and answers at once. A web page that somebody opens in a browser on this
 * machine must not be able to read it through a name that resolves to 127.0.0.1 (DNS rebinding), so questions that were asked
 * under a foreign name are refused. */
#ifndef SL_SERVER_ADMIN_H
#define SL_SERVER_ADMIN_H

#include "base/buf.h"
#include "server/server_private.h"

enum {
    SL_ADMIN_BODY_BYTES_MAX = 1024 * 1024,
};

/* Listens from now on, at the address of the settings. `problem` gets what net says. Codes as sl_listener_new(). */
sl_err sl_admin_new(sl_server *server, sl_text *problem, sl_admin **ret_admin);
uint16_t sl_admin_port(const sl_admin *admin);

/* Cuts whoever is connected. NULL is allowed. */
void sl_admin_free(sl_admin *admin);

/* --- from a question to an answer, without HTTP --- */

typedef struct sl_admin_question {
    const char *method, *path;
    const char *host; /* the header; NULL: there is none, as in HTTP/1.0 */
} sl_admin_question;

typedef struct sl_admin_answer {
    unsigned status;
    const char *content_type;
    const char *allow; /* with 405: the methods that there are; else NULL */
    sl_buf body;
} sl_admin_answer;

/* answer->body must be initialised. Never fails: without memory the answer is 500 without a body. */
void sl_admin_ask(sl_server *server, const sl_admin_question *question, sl_admin_answer *answer);

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

/* {"error": "..."} */
void sl_admin_refuse(sl_admin_answer *answer, unsigned status, const char *sentence);

#endif
