/* server/operations.h — for host.c: what the service keeps in the host. */
#ifndef SL_SERVER_OPERATIONS_H
#define SL_SERVER_OPERATIONS_H

#include "server/host.h"

/* The server is stopping: a scavenge that waits for its turn is given up, and none is started any more. One that the store has
 * goes on until the store is closed, which ends it early. */
void sl_operations_stop(sl_host *host);

/* The host is about to be freed. A scavenge that still runs ends when the store is closed, which is later. */
void sl_operations_forget(sl_host *host);

#endif
