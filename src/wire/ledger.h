/* wire/ledger.h — how much of a flow-control window may be opened again, and when.
 *
 * The window is what bounds the memory of a slow application: a peer may send so much and no more until we
 * give credit. Two wishes collide. Credit should come only when the application has consumed a message; but a
 * message larger than the window never becomes complete without credit before. So:
 *
 *   held     bytes of complete messages that the application has and did not consume yet
 *   partial  bytes of messages that are not complete
 *   ahead    credit that was given before anything was consumed
 *
 * Partial bytes get their credit at once (ahead grows to partial). When their message becomes complete they
 * are held, and the credit ahead is a debt: consuming pays it back first, before it opens the window again.
 * So at any time held + partial <= window + the largest unfinished message, and a message of any size flows.
 *
 * One ledger for each call and one for the connection. The functions that return a number return the credit to
 * give now.
 *
 * Invariants, by sl_ledger_check(): (1) ahead >= partial, (2) ahead <= held + partial. */
#ifndef SL_WIRE_LEDGER_H
#define SL_WIRE_LEDGER_H

#include <stddef.h>

typedef struct sl_ledger {
    size_t held, partial, ahead;
} sl_ledger;

/* Bytes came that wait for the application: complete, or of a call that it has paused. */
void sl_ledger_hold(sl_ledger *ledger, size_t bytes);

/* Bytes came that are part of an unfinished message. */
size_t sl_ledger_partial(sl_ledger *ledger, size_t bytes);

/* Partial bytes became part of a complete message. */
void sl_ledger_complete(sl_ledger *ledger, size_t bytes);

/* Held bytes turned out to be the beginning of an unfinished message: a paused call goes on. */
size_t sl_ledger_reopen(sl_ledger *ledger, size_t bytes);

/* The application is done with held bytes. */
size_t sl_ledger_consume(sl_ledger *ledger, size_t bytes);

void sl_ledger_check(const sl_ledger *ledger);

#endif
