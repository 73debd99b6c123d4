/* server/dispatch.h — from the calls of a connection to the methods; for link.c and host.c. */
#ifndef SL_SERVER_DISPATCH_H
#define SL_SERVER_DISPATCH_H

#include "server/request.h"
#include "wire/connection.h"

/* Its ctx is the sl_link. */
extern const sl_connection_handler sl_dispatch_handler;

/* The server is stopping: an open request is told so, as method.h says. */
void sl_dispatch_stop(sl_request *request);

#endif
