/* net/notify.c — see notify.h. */
#include "net/notify.h"

#include "base/alloc.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct sl_notify {
    int fd;
    struct sockaddr_un address;
    socklen_t address_bytes;
};

/* An abstract name starts with a zero byte and ends with its length; a path ends with a zero. */
static sl_err read_address(const char *text, sl_notify *notify)
{
    const size_t bytes = strlen(text);
    const bool is_abstract = text[0] == '@';

    if ((!is_abstract && text[0] != '/') || bytes < 2 || bytes >= sizeof notify->address.sun_path)
        return SL_ERR_INVALID;
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, bytes);
    if (is_abstract)
        notify->address.sun_path[0] = '\0';
    notify->address_bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + (is_abstract ? 0 : 1));
    return SL_OK;
}

static sl_err open_socket(sl_notify *notify)
{
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (notify->fd >= 0)
        return SL_OK;
    return errno == EMFILE || errno == ENFILE ? SL_ERR_OPEN_FILES : SL_ERR_IO;
}

sl_err sl_notify_new(const char *address, sl_notify **ret_notify)
{
    sl_notify *const notify = sl_alloc_take(&sl_alloc_default, sizeof *notify);
    sl_err err;

    if (notify == NULL)
        return SL_ERR_NOMEM;
    *notify = (sl_notify){ .fd = -1 };
    err = read_address(address, notify);
    if (err == SL_OK)
        err = open_socket(notify);
    if (err == SL_OK)
        *ret_notify = notify;
    else
        sl_notify_free(notify);
    return err;
}

void sl_notify_free(sl_notify *notify)
{
    if (notify == NULL)
        return;
    if (notify->fd >= 0)
        close(notify->fd);
    sl_alloc_give(&sl_alloc_default, notify, sizeof *notify);
}

/* The address goes with each word, because whoever listens may have started anew since the last one. */
sl_err sl_notify_send(sl_notify *notify, sl_str words)
{
    ssize_t sent;

    do {
        sent = sendto(notify->fd, words.data, words.bytes, MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->address, notify->address_bytes);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)words.bytes ? SL_OK : SL_ERR_IO;
}

static bool is_loopback_four(const uint8_t bytes[4])
{
    return bytes[0] == 127;
}

bool sl_peer_is_local(const struct sockaddr *address)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (address == NULL)
        return false;
    switch (address->sa_family) {
    case AF_UNIX: return true;
    case AF_INET:
        memcpy(&four, address, sizeof four); /* it may be aligned for less */
        return is_loopback_four((const uint8_t *)&four.sin_addr.s_addr);
    case AF_INET6:
        memcpy(&six, address, sizeof six);
        return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr) && is_loopback_four(six.sin6_addr.s6_addr + 12));
    default: return false;
    }
}
