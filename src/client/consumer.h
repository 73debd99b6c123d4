/* client/consumer.h — a consumer of include/sluice.h on a loop that others share: for the worker.
 *
 *      make --> recall --> begin --> turn_end at the end of each turn ... --> sl_consumer_close()
 *
 * Everything else is as with sl_consumer_open(), except that sl_consumer_run() and what belongs to it must not be called. */
#ifndef SL_CLIENT_CONSUMER_H
#define SL_CLIENT_CONSUMER_H

#include "base/err.h"
#include "client/address.h"
#include "client/client.h"
#include "net/loop.h"

#include <sluice.h>

#include <stdbool.h>

/* Only made, not connected. loop: NULL: one of its own. address: instead of the text in the options, which is used when this is NULL. */
sl_consumer_status sl_consumer_make(sl_loop *loop, const sl_consumer_options *options,
                                    const sl_client_address *address, char *problem, size_t problem_bytes,
                                    sl_consumer **ret_consumer);

/* More of sl_consumer_options.finished, before begin. SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE: too many; what was there before is gone
 * too after an error. */
sl_err sl_consumer_recall(sl_consumer *consumer, const sl_consumer_finished *finished, size_t count);

/* Connects in the next turn. */
void sl_consumer_begin(sl_consumer *consumer);

/* Both in one, with the address of the options. */
sl_consumer_status consumer_open_in(sl_loop *loop, const sl_consumer_options *options, char *problem,
                                    size_t problem_bytes, sl_consumer **ret_consumer);

/* At the end of each turn: what was said leaves. */
void consumer_turn_end(sl_consumer *consumer);

/* Behind the sentence of `disconnected`, or of `ended` unless the server has refused: what can be done about it, if that is known, as
 * sl_client_add_hint(). */
void sl_consumer_add_hint(const sl_consumer *consumer, const sl_client_place *place, sl_text *text);

/* True from just before the last outcomes are told, which come before `ended`. */
bool sl_consumer_has_ended(const sl_consumer *consumer);

#endif
