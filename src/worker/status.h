/* worker/status.h — the status pages of a crew: HTTP/1.1 for orchestrators, Prometheus, autoscalers and pre-stop hooks.
 *
 *      status.c        from a question to a page: one table of routes, methods, who may ask
 *      status_pages.c  what the pages say, all of it from a view (view.h)
 *      status_wait.c   who waits for a drain, on top of src/pages, which has the connections and the life of a request
 *
 * Everybody who reaches the port may read. Only this machine may begin a drain, and no web page that somebody opens in a browser on
 * it: neither through a name that resolves to 127.0.0.1 (DNS rebinding; such questions are refused), nor by sending a form here
 * from another page (browsers say where that is from). */
#ifndef SL_WORKER_STATUS_H
#define SL_WORKER_STATUS_H

#include "pages/pages.h"
#include "worker/view.h"

typedef struct sl_status_pages sl_status_pages; /* opaque */

enum {
    SL_STATUS_BODY_BYTES_MAX = 8 * 1024 * 1024,
    SL_STATUS_WAITERS_MAX = 16 /* who waits for a drain at a time: the others find connections left */
};

/* The longest wait for a drain; a client that wants more asks again. */
#define SL_STATUS_WAIT_MAX_NS (UINT64_C(24) * 3600 * 1000000000)

typedef struct sl_status_owner {            /* all of them are there */
    const sl_crew_view *(*look)(void *ctx); /* good until the next call */
    void (*drain)(void *ctx);               /* an operator wants all of it to drain */
    /* A host name besides those of this machine under which pages may be shown: where they listen. */
    const char *host;
} sl_status_owner;

/* Listens from now on. `problem` gets what net says. Codes as sl_listener_new(). owner must live as long as the pages. */
sl_err sl_status_pages_new(sl_loop *loop, const sl_status_owner *owner, void *ctx, uint16_t port,
                           sl_text *problem, sl_status_pages **ret_pages);
uint16_t sl_status_pages_port(const sl_status_pages *pages);

/* Who waits for the drain is answered, everybody else is cut. NULL is allowed. */
void sl_status_pages_free(sl_status_pages *pages);

/* --- from a question to an answer, without HTTP --- */

/* Never fails: without memory the answer is 500 without a body. *ret_wait_ns is not 0 when there is no answer yet: it is
 * sl_status_show_drain(), when that says so or after this time. */
void sl_status_ask(const sl_status_owner *owner, void *ctx, const sl_pages_question *question,
                   sl_pages_answer *answer, uint64_t *ret_wait_ns);

typedef enum sl_status_patience {
    SL_STATUS_AT_ONCE, /* he wants to know how it is now */
    SL_STATUS_WAITS,   /* he wants to hear when it is over */
    SL_STATUS_IN_VAIN  /* he wanted that, but his time is up or the pages go */
} sl_status_patience;

/* What /v1/drain says. False: who waits should go on waiting. */
bool sl_status_show_drain(const sl_crew_view *view, sl_status_patience patience, sl_pages_answer *answer);

/* May a page be shown under this name? */
bool sl_status_host_allowed(const char *own_host, sl_str host_header);

/* --- for status_pages.c --- */

void sl_status_show_live(const sl_crew_view *view, sl_pages_answer *answer);
void sl_status_show_ready(const sl_crew_view *view, sl_pages_answer *answer);
void sl_status_show_metrics(const sl_crew_view *view, sl_pages_answer *answer);
void sl_status_show_state(const sl_crew_view *view, sl_pages_answer *answer);

#endif
