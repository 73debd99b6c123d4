/* net/outlet.c — see outlet.h. */
#include "net/outlet.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(SL_OUTLET_BYTES_MAX <= PIPE_BUF, "a pipe takes it whole or not at all");

/* Files keep the place where the next byte goes in the description: theirs must stay the common one. They never wait for a reader. */
static bool may_be_opened_again(int fd)
{
    struct stat seen;

    return (fstat(fd, &seen) == 0 && S_ISFIFO(seen.st_mode)) || isatty(fd) == 1;
}

sl_outlet sl_outlet_open(int fd)
{
    char path[sizeof "/proc/self/fd/" + 3 * sizeof fd];
    int own = -1;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (may_be_opened_again(fd))
        own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own >= 0 ? (sl_outlet){ .fd = own, .is_own = true } : (sl_outlet){ .fd = fd };
}

void sl_outlet_close(sl_outlet *outlet)
{
    if (outlet->is_own)
        (void)close(outlet->fd);
    *outlet = (sl_outlet){ .fd = -1 };
}

sl_err sl_outlet_write(const sl_outlet *outlet, sl_str *rest)
{
    const size_t wanted = rest->bytes < SL_OUTLET_BYTES_MAX ? rest->bytes : SL_OUTLET_BYTES_MAX;
    ssize_t taken;

    assert(wanted > 0);
    if (!outlet->is_own && !sl_outlet_wait(outlet, 0))
        return SL_ERR_AGAIN;
    do
        taken = write(outlet->fd, rest->data, wanted);
    while (taken < 0 && errno == EINTR);
    if (taken <= 0)
        return taken < 0 && errno == EAGAIN ? SL_ERR_AGAIN : SL_ERR_IO;
    *rest = (sl_str){ rest->data + taken, rest->bytes - (size_t)taken };
    return SL_OK;
}

bool sl_outlet_wait(const sl_outlet *outlet, uint32_t patience_ms)
{
    struct pollfd asked = { .fd = outlet->fd, .events = POLLOUT };

    return poll(&asked, 1, (int)patience_ms) > 0;
}
