/* server/door.h — the only way to write, and so the only place that can refuse (S3.13 - S3.15).
 *
 * Whether something is still accepted is decided here and nowhere else, at the moment of submission: what got in will be
 * answered, what comes after the door was shut changes nothing. Nobody else in a running server calls sl_store_submit();
 * user_admin.c does, where there is none. A scavenge is started past the door, and not any more when the server stops. */
#ifndef SL_SERVER_DOOR_H
#define SL_SERVER_DOOR_H

#include "server/host.h"

enum {
    SL_DOOR_REASON_BYTES = 128, /* with its closing zero; longer ones are cut */
};

/* For host.c. SL_OK or SL_ERR_NOMEM. */
sl_err sl_door_new(sl_host *host, sl_door **ret_door);

/* Shuts it and answers what is still inside with SL_ERR_STORE_FAILED, since nobody will hear how it ended. The store
 * may be closed later. NULL is allowed, for this and the next one. */
void sl_door_abandon(sl_door *door);
void sl_door_free(sl_door *door); /* after sl_door_abandon() */

/* As sl_store_submit(), and besides:
 *   SL_ERR_DRAINING  the door is shut: UNAVAILABLE with sl_door_reason()
 *   SL_ERR_FULL      the store has enough to do, or others wait already: keep the batch and wait with sl_door_wait()
 *   SL_ERR_STREAMS_MAX  it has no room for another stream, and never will
 * done() is called once if and only if SL_OK was returned, never from inside of this. */
sl_err sl_door_submit(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx);

/* The same for what consumers of groups have done: it is accepted until sl_door_close(), also while the door is shut, so that
 * work that was begun can be settled while the server stops. Only batches with records of a group; an append beside them is
 * of the group itself. Anything else is treated as by sl_door_submit(). */
sl_err sl_door_submit_settle(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx);

/* Somebody who got SL_ERR_FULL: fn is called once when it is worth trying again, in the order of waiting, also when the door
 * was shut meanwhile. Who gets SL_ERR_FULL again from within fn and waits again keeps his place, as long as he has not got
 * anything in: a turn is one batch. */
typedef struct sl_door_waiter {
    sl_list node;
    void (*fn)(void *ctx);
    void *ctx;
} sl_door_waiter;

void sl_door_waiter_init(sl_door_waiter *waiter, void (*fn)(void *ctx), void *ctx);
void sl_door_wait(sl_door *door, sl_door_waiter *waiter);
void sl_door_forget(sl_door_waiter *waiter);

/* Nothing more is accepted, and who waits is told so before this returns. The reason is copied. A second call changes
 * nothing. */
void sl_door_shut(sl_door *door, const char *reason);
bool sl_door_is_shut(const sl_door *door);

/* Nothing at all is accepted any more: the end of all settling. The reason counts if the door was not shut before. */
void sl_door_close(sl_door *door, const char *reason);
const char *sl_door_reason(const sl_door *door);

/* Batches that were accepted and are not answered yet. */
uint64_t sl_door_inside(const sl_door *door);

/* What became of the end: of those that were inside when the door was shut, how many were written and how many were answered
 * with an error since; and how many came too late. All 0 before. inside = finished + failed + sl_door_inside(), and
 * what settled after the shutting is counted among the finished and failed besides. */
typedef struct sl_door_tally {
    uint64_t inside, finished, failed, refused;
} sl_door_tally;

sl_door_tally sl_door_since_shut(const sl_door *door);

/* The store has answered a batch with SL_ERR_STORE_FAILED: it accepts nothing more, the server has to end. */
bool sl_door_store_failed(const sl_door *door);

#endif
