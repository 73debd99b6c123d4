/* worker/handler/http.c — see http_handler.h; how the files share the work is in http_inside.h.
 *
 *      idle --run--> running --answer, failure, kill--> idle
 *
 * There is a transfer for each job that runs. It is made when it is first needed and kept, with curl's handle: what is the same for all
 * requests is set once. Connections are curl's, and are kept for the next request. */
#include "base/cleanup.h"
#include "worker/handler/http_inside.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#define MS_NS UINT64_C(1000000)

enum {
    TEXTS_BYTES_MAX = 64 * 1024 /* above all headers of a message with everything encoded */
};

static sl_http *http_of(sl_handler *handler)
{
    return SL_CONTAINER_OF(handler, sl_http, handler);
}

/* --- what comes from the peer, inside of curl: only noted --- */

static void note_moved(sl_http_transfer *transfer)
{
    if (sl_list_empty(&transfer->mark))
        sl_list_push_back(&transfer->http->moved, &transfer->mark);
}

static void note_retry_after(sl_http_transfer *transfer, sl_str line)
{
    sl_str name, value;

    if (!sl_str_cut(line, ':', &name, &value) || name.bytes != 11 ||
        strncasecmp(name.data, "Retry-After", name.bytes) != 0)
        return;
    value = sl_str_trim(value);
    transfer->has_retry_after = true;
    transfer->retry_after_bytes = value.bytes > sizeof transfer->retry_after ? 0 : value.bytes;
    if (transfer->retry_after_bytes > 0)
        memcpy(transfer->retry_after, value.data, transfer->retry_after_bytes);
}

/* The empty line behind them; answers of 1xx are only the beginning. */
static void note_headers_end(sl_http_transfer *transfer)
{
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->headers_have_ended = status >= 200;
}

static size_t on_header(char *data, size_t one, size_t bytes, void *ctx)
{
    sl_http_transfer *const transfer = ctx;
    const sl_str line = { data, one * bytes };

    note_moved(transfer);
    transfer->header_bytes += line.bytes;
    if (transfer->header_bytes > SL_HTTP_ANSWER_HEADER_BYTES_MAX)
        return 0; /* ends the transfer */
    if (transfer->headers_have_ended)
        return line.bytes; /* behind the body */
    if (sl_str_trim(line).bytes == 0)
        note_headers_end(transfer);
    else
        note_retry_after(transfer, line);
    return line.bytes;
}

static size_t on_body(char *data, size_t one, size_t bytes, void *ctx)
{
    sl_http_transfer *const transfer = ctx;
    const size_t came = one * bytes;
    const size_t kept = sl_min_u64(came, SL_HTTP_BODY_KEPT_BYTES - transfer->body_kept_bytes);

    note_moved(transfer);
    memcpy(transfer->body + transfer->body_kept_bytes, data, kept);
    transfer->body_kept_bytes += kept;
    transfer->body_bytes += came;
    transfer->is_too_large = transfer->body_bytes > SL_HTTP_ANSWER_BYTES_MAX;
    return transfer->is_too_large ? 0 : came;
}

/* --- transfers --- */

static long to_ms(uint64_t duration_ns)
{
    const uint64_t duration_ms = (duration_ns + MS_NS - 1) / MS_NS;

    return duration_ms > LONG_MAX ? LONG_MAX : (long)duration_ms;
}

/* The environment may name a proxy; that is curl's own doing. No signal is used for time limits. A lookup that is under way when a
 * request ends is left behind (QUICK_EXIT): curl would otherwise stop the whole process until the name server answers. */
static void set_transport(sl_http *http, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, to_ms(http->connect_timeout_ns));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, to_ms(http->timeout_ns));
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (http->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* SL_OK or SL_ERR_NOMEM: these copy their texts. */
static sl_err set_texts(const sl_http *http, CURL *easy)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, http->url);

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice");
    if (code == CURLE_OK && strcmp(http->method, "POST") != 0)
        code = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, http->method);
    if (code == CURLE_OK && http->ca_file != NULL)
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca_file);
    if (code == CURLE_OK && http->ca_file != NULL)
        code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* these and no others */
    return code == CURLE_OK ? SL_OK : SL_ERR_NOMEM;
}

static void set_callbacks(sl_http_transfer *transfer)
{
    CURL *const easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
}

static void transfer_free(sl_http_transfer *transfer)
{
    sl_list_remove(&transfer->line);
    sl_list_remove(&transfer->mark);
    curl_easy_cleanup(transfer->easy); /* NULL is allowed */
    sl_buf_done(&transfer->texts);
    sl_alloc_give(&sl_alloc_default, transfer, sizeof *transfer);
}

static sl_http_transfer *transfer_new(sl_http *http)
{
    sl_http_transfer *const transfer = sl_alloc_take(&sl_alloc_default, sizeof *transfer);

    if (transfer == NULL)
        return NULL;
    memset(transfer, 0, sizeof *transfer);
    transfer->http = http;
    sl_list_init(&transfer->line);
    sl_list_init(&transfer->mark);
    sl_buf_init(&transfer->texts, &sl_alloc_default, TEXTS_BYTES_MAX);
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL || set_texts(http, transfer->easy) != SL_OK) {
        transfer_free(transfer);
        return NULL;
    }
    set_transport(http, transfer->easy);
    set_callbacks(transfer);
    sl_http_sockets_prepare(http, transfer->easy);
    return transfer;
}

/* The one that was used last: its memory is warm. */
static sl_http_transfer *take_idle(sl_http *http)
{
    sl_list *const first = sl_list_first(&http->idle);

    if (first == NULL)
        return transfer_new(http);
    sl_list_remove(first);
    return SL_CONTAINER_OF(first, sl_http_transfer, line);
}

static void put_idle(sl_http_transfer *transfer)
{
    sl_list_remove(&transfer->mark);
    sl_list_remove(&transfer->line);
    sl_list_push_front(&transfer->http->idle, &transfer->line);
    transfer->job = NULL;
}

/* --- results --- */

static void tell(sl_http *http, sl_job *job, const sl_result *result)
{
    job->handler_data = NULL;
    http->handler.owner->finished(http->handler.owner_ctx, job, result);
}

/* The transfer is free for the next job before the owner hears of this one. */
static sl_job *detach(sl_http_transfer *transfer)
{
    sl_http *const http = transfer->http;
    sl_job *const job = transfer->job;

    curl_multi_remove_handle(http->multi,
                             transfer->easy); /* closes a connection that is in the middle of something */
    put_idle(transfer);
    http->running_count--;
    return job;
}

static sl_str failure_of(const sl_http_transfer *transfer, CURLcode code)
{
    if (code == CURLE_OK || transfer->is_too_large)
        return (sl_str){ 0 };
    if (transfer->header_bytes > SL_HTTP_ANSWER_HEADER_BYTES_MAX)
        return SL_STR("the headers of the answer are larger than 64 KiB");
    return sl_str_from(transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code));
}

static void end_transfer(sl_http_transfer *transfer, CURLcode code)
{
    sl_http *const http = transfer->http;
    sl_http_answer answer = { .target = sl_str_from(http->target),
                              .failure = failure_of(transfer, code),
                              .has_retry_after = transfer->has_retry_after,
                              .retry_after = { transfer->retry_after, transfer->retry_after_bytes },
                              .body = { transfer->body, transfer->body_kept_bytes },
                              .wall_ns = sl_loop_wall_ns(http->loop) };
    char buffer[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text reason;

    if (transfer->headers_have_ended)
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &answer.status);
    sl_text_init(&reason, buffer, sizeof buffer);
    const sl_result result = sl_http_judge(&answer, &reason);
    tell(http, detach(transfer), &result);
}

static void tell_unbegun(sl_http *http, sl_job *job)
{
    const sl_result result = { .kind = SL_RESULT_UNBEGUN,
                               .reason = SL_STR("there is not enough memory for a request") };

    tell(http, job, &result);
}

void sl_http_ruin(sl_http *http, CURL *easy)
{
    sl_http_transfer *transfer = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    if (transfer == NULL || transfer->job == NULL)
        return;
    sl_list_remove(&transfer->mark);
    sl_list_push_back(&http->ruined, &transfer->mark);
    sl_timer_set(&http->timer, sl_loop_now_ns(http->loop)); /* it is collected soon, whoever called curl */
}

static void collect_ruined(sl_http *http)
{
    static const sl_result result = { .kind = SL_RESULT_FAILED,
                                      .reason = SL_STR_INIT("there was not enough memory for the request") };
    sl_list *node;

    while ((node = sl_list_first(&http->ruined)) != NULL)
        tell(http, detach(SL_CONTAINER_OF(node, sl_http_transfer, mark)), &result);
}

static void collect_moved(sl_http *http)
{
    sl_list *node;

    while ((node = sl_list_first(&http->moved)) != NULL) {
        sl_list_remove(node);
        http->handler.owner->progress(http->handler.owner_ctx,
                                      SL_CONTAINER_OF(node, sl_http_transfer, mark)->job);
    }
}

/* Whoever is told may run, kill and close: nothing is kept over a call. */
void sl_http_collect(sl_http *http)
{
    const CURLMsg *message;
    int left;

    while (http->multi != NULL && (message = curl_multi_info_read(http->multi, &left)) != NULL) {
        sl_http_transfer *transfer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        end_transfer(transfer, message->data.result);
    }
    collect_ruined(http);
    collect_moved(http);
}

/* --- the door of handlers --- */

static sl_err prepare(sl_http_transfer *transfer, sl_job *job)
{
    const sl_str data = job->message.data;
    CURL *const easy = transfer->easy;

    transfer->job = job;
    transfer->header_bytes = transfer->body_bytes = transfer->body_kept_bytes = 0;
    transfer->headers_have_ended = transfer->is_too_large = transfer->has_retry_after = false;
    transfer->retry_after_bytes = 0;
    transfer->error[0] = '\0';
    if (sl_http_write_headers(transfer, sl_loop_now_ns(transfer->http->loop)) != SL_OK)
        return SL_ERR_NOMEM;
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                     data.bytes == 0 ? "" : data.data); /* not copied: the job stays */
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)data.bytes);
    return SL_OK;
}

static void run(sl_handler *handler, sl_job *job)
{
    sl_http *const http = http_of(handler);
    sl_http_transfer *const transfer = take_idle(http);

    assert(http->running_count < http->slots);
    if (transfer == NULL) {
        tell_unbegun(http, job);
        return;
    }
    if (prepare(transfer, job) != SL_OK || curl_multi_add_handle(http->multi, transfer->easy) != CURLM_OK) {
        put_idle(transfer);
        tell_unbegun(http, job);
        return;
    }
    sl_list_push_back(&http->running, &transfer->line);
    http->running_count++;
    job->handler_data = transfer;
}

/* The peer cannot be asked to end. What it answers in time counts. */
static void abort_job(sl_handler *handler, sl_job *job)
{
    (void)handler;
    (void)job;
}

static void kill_job(sl_handler *handler, sl_job *job)
{
    static const sl_result stopped = { .kind = SL_RESULT_STOPPED };

    assert(job->handler_data != NULL);
    (void)detach(job->handler_data);
    tell(http_of(handler), job, &stopped);
}

static bool is_alive(sl_handler *handler, sl_job *job)
{
    (void)handler;
    return job->handler_data != NULL;
}

static void free_all(sl_list *transfers)
{
    sl_list *node;

    while ((node = sl_list_first(transfers)) != NULL)
        transfer_free(SL_CONTAINER_OF(node, sl_http_transfer, line));
}

/* Transfers that still run are cut. */
static void shut(sl_http *http)
{
    if (http->multi == NULL)
        return;
    SL_LIST_EACH (node, &http->running)
        curl_multi_remove_handle(http->multi, SL_CONTAINER_OF(node, sl_http_transfer, line)->easy);
    free_all(&http->running);
    free_all(&http->idle);
    curl_multi_cleanup(http->multi);
    http->multi = NULL;
    sl_http_sockets_done(http);
}

static void close_handler(sl_handler *handler)
{
    sl_http *const http = http_of(handler);

    assert(http->running_count == 0);
    shut(http);
    handler->owner->closed(handler->owner_ctx);
}

static void describe(const sl_handler *handler, struct cJSON *object)
{
    const sl_http *const http = SL_CONTAINER_OF(handler, const sl_http, handler);

    cJSON_AddStringToObject(object, "target", http->target);
    cJSON_AddNumberToObject(object, "requests", http->running_count);
}

static void free_handler(sl_handler *handler, uint64_t until_ns)
{
    sl_http *const http = http_of(handler);

    (void)until_ns; /* nothing takes time */
    shut(http);
    sl_http_forget_options(http);
    sl_alloc_give(&sl_alloc_default, http, sizeof *http);
}

static const sl_handler_class http_class = { .name = "http",
                                             .run = run,
                                             .abort = abort_job,
                                             .kill = kill_job,
                                             .is_alive = is_alive,
                                             .close = close_handler,
                                             .describe = describe,
                                             .free = free_handler };

/* --- making --- */

static sl_err make_multi(sl_http *http, sl_text *problem)
{
    http->multi = curl_multi_init();
    if (http->multi == NULL) {
        sl_text_add(problem, "there is not enough memory for the requests");
        return SL_ERR_NOMEM;
    }
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)http->slots);
    sl_http_sockets_use(http);
    return SL_OK;
}

static sl_http *http_new(sl_loop *loop)
{
    sl_http *const http = sl_alloc_take(&sl_alloc_default, sizeof *http);

    if (http == NULL)
        return NULL;
    *http = (sl_http){ .handler = { .class = &http_class }, .loop = loop };
    sl_list_init(&http->idle);
    sl_list_init(&http->running);
    sl_list_init(&http->moved);
    sl_list_init(&http->ruined);
    return http;
}

/* curl counts how often it is set up, and is never torn down: others in the process may use it too. */
sl_err sl_http_handler_new(sl_loop *loop, const sl_http_options *options, sl_text *problem,
                           sl_handler **ret_handler)
{
    sl_http *const http = http_new(loop);
    sl_err err;

    assert(options->slots > 0);
    if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        sl_alloc_give(&sl_alloc_default, http, http == NULL ? 0 : sizeof *http);
        sl_text_add(problem, "there is not enough memory for the requests");
        return SL_ERR_NOMEM;
    }
    err = sl_http_read_options(http, options, problem);
    if (err == SL_OK)
        err = make_multi(http, problem);
    if (err != SL_OK) {
        free_handler(&http->handler, 0);
        return err;
    }
    if (http->insecure && options->log != NULL)
        sl_log(options->log, SL_LOG_WARN, "certificates of the web service are not checked",
               SL_LOG_STR("target", http->target));
    *ret_handler = &http->handler;
    return SL_OK;
}
