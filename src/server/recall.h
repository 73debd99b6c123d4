/* server/recall.h — calls that are open when a user changes.
 *
 * A call learns who asks when it begins, and some live for weeks: subscriptions, BatchAppend. So whoever changes a user tells
 * the calls of that user, at the moment of the change and before anybody hears that it is done. That is rare, and a walk
 * over all open calls is cheap then; no append and no event has to look at anything but one flag. */
#ifndef SL_SERVER_RECALL_H
#define SL_SERVER_RECALL_H

#include "server/users.h"

/* The user is as it shall be from now on. With its credentials kept, its calls go on with the groups that it has now; else they
 * end with UNAUTHENTICATED. */
void sl_recall_user(sl_host *host, const sl_user *user, bool keeps_credentials);

/* The calls that were let in without being asked for a name end with UNAUTHENTICATED. */
void sl_recall_trusted(sl_host *host);

#endif
