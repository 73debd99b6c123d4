/* net/outlet.h — writing to what others read, such as the error output, without ever waiting for the reader.
 *
 * A pipe or a terminal that nobody reads takes nothing more after a while, and write() sleeps until it does. O_NONBLOCK on the descriptor
 * is no way out: it would be set for every process that inherited the same one. So a pipe and a terminal are opened a second time,
 * which gives a description of our own. Where that is not possible (a socket, a pipe of another user, no /proc) the descriptor is asked
 * before each write: what can be written takes SL_OUTLET_BYTES_MAX at once, unless another process fills it in between. */
#ifndef SL_NET_OUTLET_H
#define SL_NET_OUTLET_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* PIPE_BUF of Linux: what a pipe takes whole or not at all. */
enum {
    SL_OUTLET_BYTES_MAX = 4096
};

typedef struct sl_outlet {
    int fd;
    bool is_own; /* its writes never wait, and it is closed in the end */
} sl_outlet;

/* fd stays the caller's, and must stay open. */
sl_outlet sl_outlet_open(int fd);
void sl_outlet_close(sl_outlet *outlet);

/* Takes at most SL_OUTLET_BYTES_MAX bytes away from the beginning of `rest`; a terminal and a socket may take a part of them.
 *   SL_OK         at least one byte
 *   SL_ERR_AGAIN  none: it would have to wait
 *   SL_ERR_IO     none: the reader is gone, the disk is full ... */
sl_err sl_outlet_write(const sl_outlet *outlet, sl_str *rest);

/* Waits until it takes something; not for ever, and not for long when a signal comes. Only for the end of a process: nothing else
 * happens meanwhile. False: it takes nothing. True also when its reader is gone: then nothing that is written waits. */
bool sl_outlet_wait(const sl_outlet *outlet, uint32_t patience_ms);

#endif
