/* worker/handler/http_sockets.c — curl's sockets and its one timer, on our loop.
 *
 * curl says which socket it waits for, lets go of it after each request, and asks for the same one at the next. Doing as it says would
 * cost four calls to the system for each message. So the watch of a connection stays when curl lets go, and only an event that then
 * comes stops it. That is right as long as we know when the descriptor is closed: curl tells about its connections. Of what it does not
 * tell (the pipe of a name lookup) the watch goes at once. */
#include "base/cleanup.h"
#include "worker/handler/http_inside.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

enum {
    PLACES_MIN = 64
};

/* --- descriptors --- */

static sl_http_socket *find(const sl_http *http, int fd)
{
    return (size_t)fd < http->socket_places ? http->sockets[fd] : NULL;
}

static void drop(sl_http *http, int fd)
{
    sl_http_socket *const socket = find(http, fd);

    if (socket == NULL)
        return;
    http->sockets[fd] = NULL;
    sl_watch_free(socket->watch);
    sl_alloc_give(&sl_alloc_default, socket, sizeof *socket);
}

/* The system gives the lowest free number, so the table is as long as the number of open files. */
static bool make_place(sl_http *http, int fd)
{
    size_t places = http->socket_places == 0 ? PLACES_MIN : http->socket_places;
    sl_http_socket **table;

    while (places <= (size_t)fd)
        places *= 2;
    if (places == http->socket_places)
        return true;
    table = sl_alloc_resize(&sl_alloc_default, http->sockets, http->socket_places * sizeof *table,
                            places * sizeof *table);
    if (table == NULL)
        return false;
    memset(table + http->socket_places, 0, (places - http->socket_places) * sizeof *table);
    http->sockets = table;
    http->socket_places = places;
    return true;
}

static sl_http_socket *find_or_make(sl_http *http, int fd)
{
    sl_http_socket *socket = find(http, fd);

    if (socket != NULL)
        return socket;
    socket = make_place(http, fd) ? sl_alloc_take(&sl_alloc_default, sizeof *socket) : NULL;
    if (socket == NULL)
        return NULL;
    *socket = (sl_http_socket){ .http = http, .fd = fd };
    http->sockets[fd] = socket;
    return socket;
}

/* --- events --- */

static void on_events(void *ctx, unsigned events)
{
    sl_http_socket *const socket = ctx;
    sl_http *const http = socket->http;
    int running, mask = 0;

    if (!socket
             ->is_wanted) { /* most likely the peer has closed it; curl finds out when it wants to use it again */
        sl_watch_change(socket->watch, 0);
        return;
    }
    mask |= (events & SL_WATCH_READ) != 0 ? CURL_CSELECT_IN : 0;
    mask |= (events & SL_WATCH_WRITE) != 0 ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(http->multi, socket->fd, mask, &running);
    sl_http_collect(http); /* the socket may be gone */
}

static bool watch(sl_http *http, int fd, unsigned events)
{
    sl_http_socket *const socket = find_or_make(http, fd);

    if (socket == NULL)
        return false;
    socket->is_wanted = true;
    if (socket->watch == NULL)
        return sl_watch_new_for(http->loop, fd, events, on_events, socket, &socket->watch) == SL_OK;
    sl_watch_change(socket->watch, events);
    return true;
}

static void let_go(sl_http *http, int fd)
{
    sl_http_socket *const socket = find(http, fd);

    if (socket == NULL)
        return;
    socket->is_wanted = false;
    if (!socket->is_told)
        drop(http, fd);
}

/* An answer that is not 0 would end all transfers. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *unused)
{
    sl_http *const http = ctx;
    unsigned events = 0;

    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        let_go(http, fd);
        return 0;
    }
    events |= what == CURL_POLL_IN || what == CURL_POLL_INOUT ? SL_WATCH_READ : 0;
    events |= what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? SL_WATCH_WRITE : 0;
    if (!watch(http, fd, events))
        sl_http_ruin(http, easy);
    return 0;
}

/* Processes that other handlers start must not inherit it. */
static int on_open(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    sl_http *const http = ctx;
    sl_http_socket *socket;

    (void)purpose;
    drop(http, fd); /* should curl have closed it without a word */
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    socket = find_or_make(http, fd);
    if (socket != NULL)
        socket->is_told = true;
    return CURL_SOCKOPT_OK;
}

static int on_close(void *ctx, curl_socket_t fd)
{
    drop(ctx, fd);
    return close(fd);
}

/* --- time --- */

/* By a clock that goes on during a turn, as curl's does: with an older one the timer would ring too early. */
static int on_curl_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    sl_http *const http = ctx;

    (void)multi;
    if (timeout_ms < 0)
        sl_timer_stop(&http->timer);
    else if (timeout_ms == 0)
        sl_timer_set(&http->timer, sl_loop_now_ns(http->loop));
    else
        sl_timer_set(&http->timer, sl_clock_mono_ns(sl_loop_stopwatch()) + (uint64_t)timeout_ms * MS_NS);
    return 0;
}

static void on_timer(void *ctx)
{
    sl_http *const http = ctx;
    int running;

    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    sl_http_collect(http);
}

/* --- for http.c --- */

void sl_http_sockets_use(sl_http *http)
{
    sl_timer_init(&http->timer, http->loop, on_timer, http);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
}

void sl_http_sockets_prepare(sl_http *http, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, http);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http);
}

void sl_http_sockets_done(sl_http *http)
{
    sl_timer_stop(&http->timer);
    for (size_t fd = 0; fd < http->socket_places; fd++)
        drop(http, (int)fd);
    sl_alloc_give(&sl_alloc_default, http->sockets, http->socket_places * sizeof *http->sockets);
    http->sockets = NULL;
    http->socket_places = 0;
}
