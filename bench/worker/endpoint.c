/* bench/worker/endpoint.c — see endpoint.h. It reads just enough of HTTP/1.1 to know where a request ends. */
#include "endpoint.h"

#include "parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 1024, /* descriptors are the index */
    REQUEST_BYTES_MAX = 64 * 1024,
    EVENTS_MAX = 64,
};

typedef struct connection {
    size_t bytes;
    char memory[REQUEST_BYTES_MAX + 1];
} connection;

static connection *connections[CONNECTIONS_MAX];

static void drop(int fd)
{
    close(fd);
    free(connections[fd]);
    connections[fd] = NULL;
}

static void add_to(int poll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        _exit(1);
}

static void accept_one(int poll_fd, int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int yes = 1;

    if (fd < 0)
        return;
    if (fd >= CONNECTIONS_MAX || (connections[fd] = calloc(1, sizeof(connection))) == NULL)
        _exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    add_to(poll_fd, fd);
}

/* Bytes of the whole request at the beginning of the text, 0 when it is not whole. */
static size_t request_bytes(const char *text, size_t bytes)
{
    static const char name[] = "\r\nContent-Length:";
    const char *const end = memmem(text, bytes, "\r\n\r\n", 4);
    const char *length;

    if (end == NULL)
        return 0;
    length = memmem(text, (size_t)(end - text), name, sizeof name - 1);
    const size_t all =
        (size_t)(end + 4 - text) + (length == NULL ? 0 : (size_t)atol(length + sizeof name - 1));
    return all <= bytes ? all : 0;
}

static void answer(int fd)
{
    static const char text[] = "HTTP/1.1 204 No Content\r\n\r\n";
    connection *const c = connections[fd];
    size_t bytes;

    while ((bytes = request_bytes(c->memory, c->bytes)) > 0) {
        c->bytes -= bytes;
        memmove(c->memory, c->memory + bytes, c->bytes);
        if (send(fd, text, sizeof text - 1, MSG_NOSIGNAL) != (ssize_t)sizeof text - 1) {
            drop(fd);
            return;
        }
    }
}

static void receive(int fd)
{
    connection *const c = connections[fd];
    const ssize_t got = recv(fd, c->memory + c->bytes, REQUEST_BYTES_MAX - c->bytes, 0);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        drop(fd);
        return;
    }
    c->bytes += (size_t)got;
    answer(fd);
}

static void serve(void *ctx)
{
    const int listener = *(const int *)ctx, poll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS_MAX];

    add_to(poll_fd, listener);
    for (;;) {
        const int count = epoll_wait(poll_fd, events, EVENTS_MAX, -1);

        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                accept_one(poll_fd, listener);
            else
                receive(events[i].data.fd);
    }
}

void endpoint_start(endpoint *e)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(listener, CONNECTIONS_MAX) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) < 0)
        bench_fail("no port for the web service: %s", strerror(errno));
    e->port = ntohs(address.sin_port);
    snprintf(e->url, sizeof e->url, "http://127.0.0.1:%u/work", e->port);
    e->process = child_fork(serve, &listener);
    close(listener);
}

void endpoint_stop(endpoint *e)
{
    child_end(e->process);
}
