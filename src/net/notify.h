/* net/notify.h — short words to the program that started this one, as systemd wants them: one datagram for each.
 *
 *      "READY=1\nSTATUS=3 workers are up\n"  -->  the socket that $NOTIFY_SOCKET names
 *
 * Nobody answers, and nothing here waits: a word that cannot be sent now is lost, and the caller may say it again. */
#ifndef SL_NET_NOTIFY_H
#define SL_NET_NOTIFY_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct sockaddr;

typedef struct sl_notify sl_notify; /* opaque */

/* address: a path, or "@name" for a socket that is no file.
 *   SL_OK
 *   SL_ERR_INVALID  neither of them, or too long for a socket
 *   SL_ERR_NOMEM, SL_ERR_OPEN_FILES, SL_ERR_IO */
sl_err sl_notify_new(const char *address, sl_notify **ret_notify);
void sl_notify_free(sl_notify *notify); /* NULL is allowed */

/* SL_OK or SL_ERR_IO: nobody is there, or nobody takes it. */
sl_err sl_notify_send(sl_notify *notify, sl_str words);

/* Whether a peer that some library accepted is this machine, over a loopback address or a Unix socket. NULL: no. */
bool sl_peer_is_local(const struct sockaddr *address);

#endif
