/* worker/http_handler.h — a handler that makes an HTTP request of each message.
 *
 *      message --> POST URL, its data as the body --> the status says what becomes of it
 *
 *      2xx                  done
 *      408, 425, 429, 503   later, after Retry-After if there is one; 429 and 503 count for the breaker
 *      401, 403, 404,       failed, and counts for the breaker: the address or the credentials are wrong, not the message
 *      405, 407
 *      other 4xx            to the dead letters, with the status and the first line of the answer
 *      3xx                  failed: redirects are not followed
 *      anything else        failed, and counts for the breaker: 5xx, refused, reset, no such name, TLS, time over
 *
 * Headers of a request: Content-Type, Idempotency-Key (the id: the same for each delivery), Sluice-Id, Sluice-Token (fencing),
 * Sluice-Attempt, Sluice-Stream, Sluice-Group, Sluice-Type, Sluice-Revision, Sluice-Deadline-Ms (what is left), Sluice-Metadata. What
 * is not printable is written as %XX, so that nothing in a message can become a header of its own; what is empty or above its limit is
 * left out, and so is metadata that is not one printable line.
 *
 * A proxy is used when the environment names one, as curl does (http_proxy, https_proxy, no_proxy).
 *
 * A request cannot be asked to end: abort does nothing, and an answer that comes in time counts. kill closes its connection. */
#ifndef SL_WORKER_HTTP_HANDLER_H
#define SL_WORKER_HTTP_HANDLER_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/handler.h"

enum {
    SL_HTTP_VALUE_BYTES_MAX = 1024, /* of a name in a header, before %XX */
    SL_HTTP_METADATA_BYTES_MAX = 4096,
    SL_HTTP_ANSWER_BYTES_MAX = 8 * 1024 * 1024,  /* of a body; then it is cut off, and the status counts */
    SL_HTTP_ANSWER_HEADER_BYTES_MAX = 64 * 1024, /* of all headers of an answer; then it is no answer */
    SL_HTTP_EXTRA_HEADERS_MAX = 64
};

#define SL_HTTP_CONNECT_TIMEOUT_NS (UINT64_C(10) * 1000 * 1000 * 1000) /* where the options say nothing */
#define SL_HTTP_BAD_RETRY_AFTER_NS                                                                           \
    (UINT64_C(5) * 1000 * 1000 * 1000) /* for a Retry-After that cannot be read */

typedef struct sl_http_options { /* all texts are copied */
    const char *url;             /* http:// or https:// */
    const char *method;          /* POST, PUT or PATCH; NULL: POST */
    const char *const *headers;  /* "Name: value", sent with each request */
    size_t header_count;
    uint32_t slots;
    uint64_t connect_timeout_ns; /* lookup, connection and TLS together; 0: SL_HTTP_CONNECT_TIMEOUT_NS */
    uint64_t timeout_ns;         /* of a whole request; 0: only the job's own limit */
    const char *ca_file;         /* PEM: trust these and no others. NULL: what the system trusts */
    bool insecure;               /* trust anybody: for tests and for people who say so aloud */
    const sl_logger *log;        /* may be NULL */
} sl_http_options;

/* What is wrong is said in `problem`, as a sentence without a full stop.
 *   SL_OK
 *   SL_ERR_INVALID  the address, the method, a header or the file cannot be used
 *   SL_ERR_NOMEM */
sl_err sl_http_handler_new(sl_loop *loop, const sl_http_options *options, sl_text *problem,
                           sl_handler **ret_handler);

/* Would these do? Nothing is connected, and nothing is looked up. Codes and `problem` as sl_http_handler_new(). */
sl_err sl_http_options_check(const sl_http_options *options, sl_text *problem);

#endif
