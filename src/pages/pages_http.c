/* pages/pages_http.c — libmicrohttpd without a thread of its own.
 *
 * It brings an epoll descriptor, which the loop watches, and a time at which it wants to be called again. After each call the
 * time may be another, so it is asked for then. What a peer can make grow is bounded: connections, connections of one address,
 * memory and time of each. How many may wait for an answer is the owner's business. */
#include "pages/pages.h"

#include "base/list.h"
#include "net/listener.h"
#include "net/notify.h"

#include <microhttpd.h>

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum {
    TIMEOUT_SECONDS =
        5, /* of one that says nothing: whoever begins requests and does not end them is soon gone */
    LAST_RUNS_MAX = 16 /* an answer needs two or three */
};

#define MS_NS UINT64_C(1000000)

struct sl_pages {
    sl_loop *loop;
    sl_pages_options options;
    const sl_pages_owner *owner;
    void *ctx;
    struct MHD_Daemon *daemon;
    sl_watch *watch;
    sl_timer timer;
    sl_list suspended;
    bool is_ending;
    uint16_t port;
};

uint16_t sl_pages_port(const sl_pages *pages)
{
    return pages->port;
}

/* --- one request --- */

/* From its first line until it is over. */
typedef struct asking {
    sl_pages *pages;
    struct MHD_Connection *connection;
    char *uri; /* as it came, percent-encoded */
    size_t uri_bytes;
    bool is_seen, is_asked;
    sl_list node; /* of those that are suspended, while it is one */
    sl_pages_answer answer;
} asking;

/* The answer is there: the connection goes on, in a turn of its own since this may come from anywhere. */
static void on_ready(void *ctx)
{
    asking *const a = ctx;

    assert(!sl_list_empty(&a->node) && a->answer.job == NULL);
    sl_list_remove(&a->node);
    MHD_resume_connection(a->connection);
    sl_timer_set(&a->pages->timer, sl_loop_now_ns(a->pages->loop));
}

static asking *asking_new(sl_pages *pages, struct MHD_Connection *connection, const char *uri)
{
    const sl_alloc *const alloc = pages->options.alloc;
    const size_t bytes = strlen(uri) + 1;
    asking *const a = sl_alloc_take(alloc, sizeof *a);

    if (a == NULL)
        return NULL;
    *a = (asking){ .pages = pages, .connection = connection, .uri_bytes = bytes };
    a->uri = sl_alloc_take(alloc, bytes);
    if (a->uri == NULL) {
        sl_alloc_give(alloc, a, sizeof *a);
        return NULL;
    }
    memcpy(a->uri, uri, bytes);
    return a;
}

/* Called with the first line, before anything of it is decoded: what it returns is the `state` of the request. */
static void *on_first_line(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    sl_pages *const pages = ctx;
    asking *const a = asking_new(pages, connection, uri);

    if (a == NULL)
        return NULL;
    sl_list_init(&a->node);
    sl_buf_init(&a->answer.body, pages->options.alloc, pages->options.body_bytes_max);
    a->answer.ready = on_ready;
    a->answer.ready_ctx = a;
    return a;
}

static void give_up(asking *a)
{
    if (a->answer.job != NULL)
        a->pages->owner->give_up(a->pages->ctx, &a->answer);
    a->answer.job = NULL;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    sl_pages *const pages = ctx;
    asking *const a = *state;

    (void)connection;
    (void)code;
    *state = NULL;
    if (a == NULL)
        return;
    give_up(a);
    sl_list_remove(&a->node);
    sl_buf_done(&a->answer.body);
    sl_alloc_give(pages->options.alloc, a->uri, a->uri_bytes);
    sl_alloc_give(pages->options.alloc, a, sizeof *a);
}

static struct MHD_Response *make_response(const sl_pages_answer *answer)
{
    /* The library takes a pointer that is not const and copies from it. */
    struct MHD_Response *const response = MHD_create_response_from_buffer(
        answer->body.bytes, sl_buf_data(&answer->body), MHD_RESPMEM_MUST_COPY);

    if (response == NULL)
        return NULL;
    (void)MHD_add_response_header(response, "Content-Type", answer->content_type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    /* Who is refused for lack of room must not keep his connection: those are what there is too little of. */
    if (answer->status == 503)
        (void)MHD_add_response_header(response, "Connection", "close");
    if (answer->allow != NULL)
        (void)MHD_add_response_header(response, "Allow", answer->allow);
    if (answer->challenge != NULL)
        (void)MHD_add_response_header(response, "WWW-Authenticate", answer->challenge);
    return response;
}

static enum MHD_Result send_answer(asking *a)
{
    struct MHD_Response *const response = make_response(&a->answer);
    enum MHD_Result result = MHD_NO; /* closes the connection */

    if (response != NULL) {
        result = MHD_queue_response(a->connection, a->answer.status, response);
        MHD_destroy_response(response);
    }
    return result;
}

static const char *header_of(const asking *a, const char *name)
{
    return MHD_lookup_connection_value(a->connection, MHD_HEADER_KIND, name);
}

static bool is_local(const asking *a)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(a->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info != NULL && sl_peer_is_local(info->client_addr);
}

/* The host goes: nobody can wait any more. */
static void end_wait(asking *a)
{
    give_up(a);
    sl_pages_refuse(&a->answer, 503, "This ends here, before there was an answer: ask again later.");
}

static void ask(asking *a, const char *method)
{
    char *const mark = strchr(a->uri, '?');
    const sl_pages_question question = { .method = method,
                                         .path = a->uri,
                                         .query = mark == NULL ? NULL : mark + 1,
                                         .host = header_of(a, "Host"),
                                         .origin = header_of(a, "Origin"),
                                         .fetch_site = header_of(a, "Sec-Fetch-Site"),
                                         .authorization = header_of(a, "Authorization"),
                                         .is_local = is_local(a) };

    if (mark != NULL)
        *mark = '\0';
    a->is_asked = true;
    a->pages->owner->ask(a->pages->ctx, &question, &a->answer);
    if (a->answer.job != NULL && a->pages->is_ending)
        end_wait(a);
}

static void suspend(asking *a)
{
    if (!sl_list_empty(&a->node))
        return;
    MHD_suspend_connection(a->connection);
    sl_list_push_back(&a->pages->suspended, &a->node);
}

static bool has_body(const asking *a)
{
    const char *const length = header_of(a, "Content-Length");

    return (length != NULL && strcmp(length, "0") != 0) || header_of(a, "Transfer-Encoding") != NULL;
}

/* Comes once when the headers are there, again when the request has ended, and again when an answer that had to be waited for is
 * ready. Who is answered the second time may keep his connection; who sends a body, which no page takes, is answered at
 * once and loses it. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **state)
{
    asking *const a = *state;

    (void)ctx;
    (void)connection;
    (void)path;
    (void)version;
    (void)upload;
    (void)upload_bytes;
    if (a == NULL)
        return MHD_NO; /* out of memory */
    if (!a->is_seen && !has_body(a)) {
        a->is_seen = true;
        return MHD_YES;
    }
    if (!a->is_asked)
        ask(a, method);
    if (a->answer.job == NULL)
        return send_answer(a);
    suspend(a);
    return MHD_YES;
}

/* --- on the loop --- */

static void arm(sl_pages *pages)
{
    unsigned MHD_LONG_LONG milliseconds;

    if (MHD_get_timeout(pages->daemon, &milliseconds) == MHD_YES)
        sl_timer_set(&pages->timer, sl_loop_now_ns(pages->loop) + (uint64_t)milliseconds * MS_NS);
    else
        sl_timer_stop(&pages->timer);
}

static void run(void *ctx)
{
    sl_pages *const pages = ctx;

    (void)MHD_run(pages->daemon);
    arm(pages);
}

static struct MHD_Daemon *start_daemon(sl_pages *pages, int fd)
{
    const sl_pages_options *const options = &pages->options;

    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, pages->port, NULL, NULL, on_request,
                            pages, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_first_line,
                            pages, MHD_OPTION_NOTIFY_COMPLETED, on_completed, pages,
                            MHD_OPTION_CONNECTION_LIMIT, options->connections_max,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->connections_per_ip_max,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->connection_bytes,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
}

static sl_err start(sl_pages *pages, int fd)
{
    const union MHD_DaemonInfo *info;

    pages->daemon = start_daemon(pages, fd);
    if (pages->daemon == NULL) {
        (void)close(fd);
        return SL_ERR_NOMEM;
    }
    info = MHD_get_daemon_info(pages->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? SL_ERR_IO : sl_watch_new(pages->loop, info->epoll_fd, run, pages, &pages->watch);
}

static sl_err listen_and_start(sl_pages *pages, sl_text *problem)
{
    sl_net_limits limits = sl_net_limits_default;
    const sl_listen_options options = { .host = sl_str_from(pages->options.host),
                                        .port = pages->options.port,
                                        .limits = &limits };
    sl_err err;
    int fd;

    limits.backlog = pages->options.backlog;
    err = sl_listen_open(&options, problem, &fd, &pages->port);
    if (err != SL_OK)
        return err;
    err = start(pages, fd);
    if (err != SL_OK && problem != NULL) { /* the library does not say which of the two it is */
        sl_text_add(problem, pages->options.host);
        sl_text_add(problem, ": too little memory, or too few open files are allowed (ulimit -n)");
    }
    return err;
}

sl_err sl_pages_new(sl_loop *loop, const sl_pages_options *options, const sl_pages_owner *owner, void *ctx,
                    sl_text *problem, sl_pages **ret_pages)
{
    sl_pages *const pages = sl_alloc_take(options->alloc, sizeof *pages);
    sl_err err;

    if (pages == NULL)
        return SL_ERR_NOMEM;
    *pages = (sl_pages){ .loop = loop, .options = *options, .owner = owner, .ctx = ctx };
    sl_list_init(&pages->suspended);
    sl_timer_init(&pages->timer, loop, run, pages);
    err = listen_and_start(pages, problem);
    pages->options.host = NULL; /* not ours */
    if (err == SL_OK)
        *ret_pages = pages;
    else
        sl_pages_free(pages);
    return err;
}

/* --- the end --- */

/* The library ends the whole process when it is stopped while somebody is suspended. */
static void end_waits(sl_pages *pages)
{
    while (!sl_list_empty(&pages->suspended)) {
        asking *const a = SL_CONTAINER_OF(sl_list_first(&pages->suspended), asking, node);
        end_wait(a);
        on_ready(a);
    }
}

/* Who waited for something that ends with the owner was answered a moment ago, perhaps in this very turn of the loop. */
static void send_last_answers(sl_pages *pages)
{
    unsigned MHD_LONG_LONG milliseconds = 0;

    for (int i = 0; i < LAST_RUNS_MAX && milliseconds == 0; i++) {
        (void)MHD_run(pages->daemon);
        if (MHD_get_timeout(pages->daemon, &milliseconds) != MHD_YES)
            return;
    }
}

void sl_pages_free(sl_pages *pages)
{
    if (pages == NULL)
        return;
    sl_watch_free(pages->watch);
    pages->is_ending = true;
    if (pages->daemon != NULL) {
        end_waits(pages);
        send_last_answers(pages);
        sl_timer_stop(&pages->timer);
        MHD_stop_daemon(pages->daemon); /* closes the descriptor that listens */
    }
    sl_alloc_give(pages->options.alloc, pages, sizeof *pages);
}
