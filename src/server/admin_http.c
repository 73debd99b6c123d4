/* server/admin_http.c — libmicrohttpd without a thread of its own.
 *
 * It brings an epoll descriptor, which the loop watches, and a time at which it wants to be called again. After each call the
 * time may be another, so it is asked for then. What a peer can make grow is bounded: connections, connections of one address,
 * memory and time of each. */
#include "server/admin.h"

#include <microhttpd.h>

#include <string.h>

enum {
    CONNECTIONS_MAX = 128,
    CONNECTIONS_PER_IP_MAX = 64,  /* behind a proxy, or on loopback, all come from one address */
    CONNECTION_BYTES = 32 * 1024, /* the request line and all headers fit in here or are refused */
    TIMEOUT_SECONDS = 15,
    BACKLOG = 128,
    LAST_RUNS_MAX = 16 /* an answer needs two or three */
};

struct sl_admin {
    sl_server *server;
    struct MHD_Daemon *daemon;
    sl_watch *watch;
    sl_timer timer;
    uint16_t port;
};

uint16_t sl_admin_port(const sl_admin *admin)
{
    return admin->port;
}

/* --- one request --- */

/* From its first line until it is over. */
typedef struct asking {
    sl_admin *admin;
    struct MHD_Connection *connection;
    char *uri; /* as it came, percent-encoded */
    size_t uri_bytes;
    bool is_seen, is_asked, is_suspended;
    sl_admin_answer answer;
} asking;

/* The answer is there: the connection goes on, in a turn of its own since this may come from anywhere. */
static void on_ready(void *ctx)
{
    asking *const a = ctx;

    a->is_suspended = false;
    MHD_resume_connection(a->connection);
    sl_timer_set(&a->admin->timer, sl_loop_now_ns(a->admin->server->loop));
}

/* Called with the first line, before anything of it is decoded: what it returns is the `state` of the request. */
static void *on_first_line(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    sl_admin *const admin = ctx;
    asking *const a = sl_alloc_take(admin->server->alloc, sizeof *a);
    const size_t bytes = strlen(uri) + 1;

    if (a == NULL)
        return NULL;
    *a = (asking){ .admin = admin, .connection = connection };
    a->answer.ready = on_ready;
    a->answer.ready_ctx = a;
    a->uri = sl_alloc_take(admin->server->alloc, bytes);
    if (a->uri == NULL) {
        sl_alloc_give(admin->server->alloc, a, sizeof *a);
        return NULL;
    }
    memcpy(a->uri, uri, bytes);
    a->uri_bytes = bytes;
    sl_buf_init(&a->answer.body, admin->server->alloc, SL_ADMIN_BODY_BYTES_MAX);
    return a;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    sl_admin *const admin = ctx;
    asking *const a = *state;

    (void)connection;
    (void)code;
    *state = NULL;
    if (a == NULL)
        return;
    sl_admin_give_up(&a->answer);
    sl_buf_done(&a->answer.body);
    sl_alloc_give(admin->server->alloc, a->uri, a->uri_bytes);
    sl_alloc_give(admin->server->alloc, a, sizeof *a);
}

static struct MHD_Response *make_response(const sl_admin_answer *answer)
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

static void ask(asking *a, const char *method)
{
    char *const mark = strchr(a->uri, '?');
    const sl_admin_question question = {
        .method = method,
        .path = a->uri,
        .query = mark == NULL ? NULL : mark + 1,
        .host = header_of(a, "Host"),
        .origin = header_of(a, "Origin"),
        .fetch_site = header_of(a, "Sec-Fetch-Site"),
        .authorization = header_of(a, "Authorization"),
        .peer = "admin", /* whoever fails to log in too often here makes all others here wait as well */
    };

    if (mark != NULL)
        *mark = '\0';
    a->is_asked = true;
    sl_admin_ask(a->admin->server, &question, &a->answer);
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
    if (!a->is_suspended)
        MHD_suspend_connection(a->connection);
    a->is_suspended = true;
    return MHD_YES;
}

/* --- on the loop --- */

static void arm(sl_admin *admin)
{
    unsigned MHD_LONG_LONG milliseconds;

    if (MHD_get_timeout(admin->daemon, &milliseconds) == MHD_YES)
        sl_timer_set(&admin->timer,
                     sl_loop_now_ns(admin->server->loop) + (uint64_t)milliseconds * UINT64_C(1000000));
    else
        sl_timer_stop(&admin->timer);
}

static void run(void *ctx)
{
    sl_admin *const admin = ctx;

    (void)MHD_run(admin->daemon);
    arm(admin);
}

static struct MHD_Daemon *start_daemon(sl_admin *admin, int fd)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, admin->port, NULL, NULL, on_request,
                            admin, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_first_line,
                            admin, MHD_OPTION_NOTIFY_COMPLETED, on_completed, admin,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CONNECTIONS_PER_IP_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
}

static sl_err start(sl_admin *admin, int fd)
{
    const union MHD_DaemonInfo *info;

    sl_timer_init(&admin->timer, admin->server->loop, run, admin);
    admin->daemon = start_daemon(admin, fd);
    if (admin->daemon == NULL)
        return SL_ERR_NOMEM;
    info = MHD_get_daemon_info(admin->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? SL_ERR_IO
                        : sl_watch_new(admin->server->loop, info->epoll_fd, run, admin, &admin->watch);
}

sl_err sl_admin_new(sl_server *server, sl_text *problem, sl_admin **ret_admin)
{
    sl_net_limits limits = sl_net_limits_default;
    const sl_listen_options options = { .host = sl_str_from(server->settings->admin_host),
                                        .port = server->settings->admin_port,
                                        .limits = &limits };
    sl_admin *const admin = sl_alloc_take(server->alloc, sizeof *admin);
    sl_err err;
    int fd;

    limits.backlog = BACKLOG;
    if (admin == NULL)
        return SL_ERR_NOMEM;
    *admin = (sl_admin){ .server = server };
    err = sl_listen_open(&options, problem, &fd, &admin->port);
    if (err == SL_OK) {
        err = start(admin, fd);
        sl_text_add(problem, err == SL_OK ? "" : sl_err_text(err));
    }
    if (err == SL_OK)
        *ret_admin = admin;
    else
        sl_admin_free(admin);
    return err;
}

/* Who waited for something that ends with the server was answered a moment ago, perhaps in this very turn of the loop. */
static void send_last_answers(sl_admin *admin)
{
    unsigned MHD_LONG_LONG milliseconds = 0;

    for (int i = 0; i < LAST_RUNS_MAX && milliseconds == 0; i++) {
        (void)MHD_run(admin->daemon);
        if (MHD_get_timeout(admin->daemon, &milliseconds) != MHD_YES)
            return;
    }
}

void sl_admin_free(sl_admin *admin)
{
    if (admin == NULL)
        return;
    sl_watch_free(admin->watch);
    if (admin->daemon != NULL) {
        send_last_answers(admin);
        sl_timer_stop(&admin->timer);
        MHD_stop_daemon(admin->daemon); /* closes the descriptor that listens */
    }
    sl_alloc_give(admin->server->alloc, admin, sizeof *admin);
}
