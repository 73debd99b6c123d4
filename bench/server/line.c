/* bench/server/line.c — see line.h. */
#include "line.h"
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES_MAX = 64 * 1024 * 1024,
    RECEIVE_BYTES = 256 * 1024,
};

void line_open(line *l, int fd)
{
    l->fd = fd;
    sl_buf_init(&l->out, &sl_alloc_default, LINE_BYTES_MAX);
    sl_buf_init(&l->in, &sl_alloc_default, LINE_BYTES_MAX);
}

void line_close(line *l)
{
    close(l->fd);
    sl_buf_done(&l->out);
    sl_buf_done(&l->in);
}

void line_put(line *l, const void *data, size_t bytes)
{
    bench_must(sl_buf_append(&l->out, data, bytes), "sending");
}

void line_print(line *l, const char *format, ...)
{
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    const int bytes = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line_put(l, text, (size_t)bytes);
}

static void send_some(line *l)
{
    const ssize_t sent = send(l->fd, sl_buf_data(&l->out), l->out.bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        bench_fail("sending: %s", strerror(errno));
    if (sent > 0)
        sl_buf_consume(&l->out, (size_t)sent);
}

/* False when nothing was there. */
static bool receive_some(line *l)
{
    bench_must(sl_buf_reserve(&l->in, RECEIVE_BYTES), "receiving");
    const ssize_t got = recv(l->fd, sl_buf_tail(&l->in), RECEIVE_BYTES, MSG_DONTWAIT);

    if (got == 0)
        bench_fail("the server closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        bench_fail("receiving: %s", strerror(errno));
    if (got > 0)
        sl_buf_added(&l->in, (size_t)got);
    return got > 0;
}

bool line_wait(line *l, uint64_t timeout_ns)
{
    const double end_s = bench_now_s() + (double)timeout_ns * 1e-9;

    for (;;) {
        bench_check();
        if (l->out.bytes > 0)
            send_some(l);
        if (receive_some(l))
            return true;
        const double left_s = end_s - bench_now_s();
        if (left_s <= 0)
            return false;
        struct pollfd wanted = { .fd = l->fd, .events = (short)(POLLIN | (l->out.bytes > 0 ? POLLOUT : 0)) };
        const struct timespec left = { .tv_sec = (time_t)left_s,
                                       .tv_nsec = (long)((left_s - (double)(time_t)left_s) * 1e9) };
        ppoll(&wanted, 1, &left, NULL);
    }
}

bool line_next(line *l, const char **ret_text, size_t *ret_bytes)
{
    const char *const text = (const char *)sl_buf_data(&l->in);
    const char *const end = l->in.bytes == 0 ? NULL : memchr(text, '\n', l->in.bytes);

    if (end == NULL)
        return false;
    *ret_text = text;
    *ret_bytes = (size_t)(end - text) - (end > text && end[-1] == '\r' ? 1 : 0);
    sl_buf_consume(&l->in, (size_t)(end - text) + 1);
    return true;
}

bool line_skip(line *l, size_t bytes)
{
    if (l->in.bytes < bytes)
        return false;
    sl_buf_consume(&l->in, bytes);
    return true;
}
