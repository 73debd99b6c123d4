/* pages/pages.h — pages over HTTP/1.1 on our loop, for whoever has some to show: the admin pages of a server, the status pages of workers.
 *
 *      pages_http.c   the host: libmicrohttpd, connections and their limits, the life of a request
 *      pages.c        what all pages say in the same way: refusals, JSON, names of hosts
 *
 * The host knows no page. It brings each question to its owner, who fills an answer; at once, or later when it depends on something
 * that is still to happen. Pages take no body: who sends one is answered at once and loses his connection. */
#ifndef SL_PAGES_PAGES_H
#define SL_PAGES_PAGES_H

#include "base/buf.h"
#include "base/str.h"
#include "net/loop.h"

typedef struct sl_pages sl_pages; /* opaque: the host */

typedef struct sl_pages_question {
    const char *method, *path;                       /* percent-encoded, without what is behind "?" */
    const char *query;                               /* what is behind it; NULL: nothing */
    const char *host;                                /* the header; NULL: there is none, as in HTTP/1.0 */
    const char *origin, *fetch_site, *authorization; /* the same */
    bool is_local;                                   /* it comes from this machine */
} sl_pages_question;

typedef struct sl_pages_answer {
    unsigned status;
    const char *content_type;
    const char *allow;     /* with 405: the methods that there are; else NULL */
    const char *challenge; /* with 401: how to log in; else NULL */
    sl_buf body;           /* initialised by whoever asks */
    /* Not NULL: there is no answer yet, and this is what the owner knows it by. He keeps the pointer to the answer, fills it later, sets
     * job to NULL and calls ready(), once and never from inside of ask(); the answer is not his any more then. */
    void *job;
    void (*ready)(void *ctx);
    void *ready_ctx;
} sl_pages_answer;

typedef struct sl_pages_owner { /* both are there */
    /* The question is good until this returns. Never fails: without memory the answer is 500 without a body. */
    void (*ask)(void *ctx, const sl_pages_question *question, sl_pages_answer *answer);
    /* Nobody wants the answer any more. Only for one that has a job, and ready() must not come afterwards. */
    void (*give_up)(void *ctx, sl_pages_answer *answer);
} sl_pages_owner;

typedef struct sl_pages_options {
    const char *host; /* where it listens */
    uint16_t port;    /* 0: any that is free */
    const sl_alloc *alloc;
    unsigned connections_max, connections_per_ip_max;
    size_t connection_bytes; /* the request line and all headers fit in here or are refused */
    size_t body_bytes_max;   /* of an answer */
    uint32_t backlog;
} sl_pages_options;

/* Listens from now on. `problem`, which may be NULL, gets what net says. Codes as sl_listener_new(). Texts of the options need not stay; the allocator, the
 * owner and ctx must live as long as the host. */
sl_err sl_pages_new(sl_loop *loop, const sl_pages_options *options, const sl_pages_owner *owner, void *ctx,
                    sl_text *problem, sl_pages **ret_pages);
uint16_t sl_pages_port(const sl_pages *pages);

/* Sends the answers that have become ready just before; what still waits is given up, and told so with 503. Then everybody is cut. The
 * owner may be asked a last time meanwhile. NULL is allowed. */
void sl_pages_free(sl_pages *pages);

/* --- answers --- */

/* 200 and JSON, without a body: what each answer begins as. */
void sl_pages_begin(sl_pages_answer *answer);

/* {"error": "..."}; without memory only the status. */
void sl_pages_refuse(sl_pages_answer *answer, unsigned status, const char *sentence);

/* 405, for a page that can only be read. */
void sl_pages_refuse_change(sl_pages_answer *answer);

/* One line of what there is: method "" or "POST ", summary NULL for none. False: index is behind the last. */
typedef struct sl_pages_row {
    const char *method, *path, *summary;
} sl_pages_row;
typedef bool sl_pages_row_fn(size_t index, sl_pages_row *ret_row);

/* 404, with what there is instead. */
void sl_pages_refuse_path(sl_pages_answer *answer, const char *path, sl_pages_row_fn *row_at);

/* The object as a line of JSON, with the status that the answer has. Takes the object; NULL means that there was no memory for it. */
struct cJSON;
void sl_pages_show(sl_pages_answer *answer, struct cJSON *object);

/* 500 without a body. */
void sl_pages_out_of_memory(sl_pages_answer *answer);

/* --- questions --- */

/* GET or HEAD. */
bool sl_pages_is_reading(const char *method);

/* The name or number in a Host header: without blanks, port and brackets. */
sl_str sl_pages_host_name(sl_str header);

/* Digits, dots, colons and hexadecimal letters only: no name of DNS that a stranger could own has a last part of digits, so a page that
 * was asked for under a number was not asked for through a name that points here (DNS rebinding). */
bool sl_pages_is_number(sl_str host);

/* Without regard to capitals. Nothing is not the same as nothing, and NULL is allowed. */
bool sl_pages_same_name(sl_str a, const char *b);

#endif
