/* server/access.h — may this identity do that to this stream: ACLs in stream metadata, and the defaults behind them.
 *
 * The rules are those of KurrentDB (shared kurrent-semantics, section 25): $admins always; a `$acl` in the metadata of the stream; else
 * the defaults from $settings; else everybody for ordinary streams and $admins for those that begin with $. `$$x` asks for $mr and
 * $mw of x. The last metadata of a stream is remembered until the stream $$x has another revision. */
#ifndef SL_SERVER_ACCESS_H
#define SL_SERVER_ACCESS_H

#include "server/host.h"
#include "server/identity.h"
#include "server/tail.h"

typedef enum sl_action {
    SL_ACTION_READ,
    SL_ACTION_WRITE,
    SL_ACTION_DELETE,
} sl_action;

typedef enum sl_access_verdict {
    SL_ACCESS_ALLOWED,
    SL_ACCESS_DENIED,
    SL_ACCESS_PENDING, /* metadata has to be read first: run sl_access_check() again when `reader` is run */
    SL_ACCESS_FAILED,  /* it cannot be read (the store failed, no memory): sl_reply_error(SL_ERR_IO) */
} sl_access_verdict;

/* For host.c. */
sl_err sl_access_new(sl_host *host, sl_access **ret_access);
void sl_access_free(sl_access *access);

/* stream "$all": reading everything. With PENDING, `reader` is queued by this call (sl_tail_wait_disk) and the caller asks
 * again from its run(); the caller forgets the reader (sl_tail_forget) if it goes away before. ALLOWED and DENIED are final
 * answers for this moment. */
sl_access_verdict sl_access_check(sl_access *access, const sl_identity *identity, sl_str stream,
                                  sl_action action, sl_reader_node *reader);

#endif
