/* worker/handler/http_inside.h — what the files of the HTTP handler share; nobody else includes it.
 *
 *      http.c           making and ending, transfers and their jobs
 *      http_options.c   what people wrote: checked once, so that nothing can be wrong later
 *      http_sockets.c   curl's sockets and timer on our loop
 *      http_request.c   headers from a message
 *      http_answer.c    what an answer means; pure
 *
 * curl must not be called from inside of its own callbacks, and whoever hears finished() or progress() may call anything of the handler.
 * So callbacks of curl only note, and after each call into curl sl_http_collect() tells. */
#ifndef SL_WORKER_HANDLER_HTTP_INSIDE_H
#define SL_WORKER_HANDLER_HTTP_INSIDE_H

#include "base/buf.h"
#include "worker/http_handler.h"

#include <curl/curl.h>

enum {
    SL_HTTP_OWN_HEADERS = 12,
    SL_HTTP_BODY_KEPT_BYTES = 1000, /* for the reason */
    SL_HTTP_RETRY_AFTER_BYTES = 64, /* longer ones are no time */
    SL_HTTP_TARGET_BYTES = 512
};

typedef struct sl_http sl_http;

/* One request at a time, again and again. */
typedef struct sl_http_transfer {
    sl_http *http;
    CURL *easy;
    sl_job *job;  /* NULL: idle */
    sl_list line; /* in http->idle or ->running */
    sl_list mark; /* in http->moved or ->ruined, or in neither */
    sl_buf texts; /* of the headers */
    struct curl_slist headers[SL_HTTP_OWN_HEADERS];

    /* The answer so far. */
    size_t header_bytes, body_bytes, body_kept_bytes;
    bool headers_have_ended, is_too_large, has_retry_after;
    size_t retry_after_bytes;
    char retry_after[SL_HTTP_RETRY_AFTER_BYTES];
    char body[SL_HTTP_BODY_KEPT_BYTES];
    char error[CURL_ERROR_SIZE];
} sl_http_transfer;

/* A descriptor of curl. */
typedef struct sl_http_socket {
    sl_http *http;
    int fd;
    sl_watch *watch; /* NULL: none yet */
    bool is_told;    /* curl tells when it closes it; otherwise it may be gone as soon as curl lets go */
    bool is_wanted;
} sl_http_socket;

struct sl_http {
    sl_handler handler; /* first */
    sl_loop *loop;
    CURLM *multi; /* NULL: closed */
    sl_timer timer;
    sl_http_socket **sockets; /* by descriptor */
    size_t socket_places;
    sl_list idle, running; /* transfers */
    sl_list moved;         /* a byte came since progress() was told */
    sl_list ruined;        /* there is no memory to wait for their sockets */
    uint32_t running_count, slots;
    uint64_t connect_timeout_ns, timeout_ns;
    char *url, *ca_file; /* ca_file may be NULL */
    const char *method;
    struct curl_slist *constant_headers;
    bool has_content_type; /* among them */
    bool insecure;
    char target[SL_HTTP_TARGET_BYTES]; /* "POST https://host/path": without what may be a secret */
};

/* http.c */
void sl_http_collect(sl_http *http);
void sl_http_ruin(sl_http *http, CURL *easy);

/* http_options.c: fills in what the options say. Codes as sl_http_handler_new(). */
sl_err sl_http_read_options(sl_http *http, const sl_http_options *options, sl_text *problem);
void sl_http_forget_options(sl_http *http); /* whether they could be read or not */

/* http_sockets.c */
void sl_http_sockets_use(sl_http *http);                 /* before the first transfer */
void sl_http_sockets_prepare(sl_http *http, CURL *easy); /* each easy handle, once */
void sl_http_sockets_done(sl_http *http);                /* after the multi handle is gone */

/* http_request.c: SL_OK or SL_ERR_NOMEM. */
sl_err sl_http_write_headers(sl_http_transfer *transfer, uint64_t now_ns);

/* http_answer.c */
typedef struct sl_http_answer {
    sl_str target; /* "POST https://host/path" */
    long status;   /* 0: none came */
    sl_str
        failure; /* the words of curl; empty: the exchange came to its end, or to SL_HTTP_ANSWER_BYTES_MAX */
    bool has_retry_after;
    sl_str retry_after, body; /* body: its beginning */
    uint64_t wall_ns;
} sl_http_answer;

/* The result points into `reason`. */
sl_result sl_http_judge(const sl_http_answer *answer, sl_text *reason);

#endif
