/* wire/ledger.c — see ledger.h. */
#include "wire/ledger.h"

#include <assert.h>

void sl_ledger_check(const sl_ledger *ledger)
{
    assert(ledger->ahead >= ledger->partial);
    assert(ledger->ahead <= ledger->held + ledger->partial);
}

void sl_ledger_hold(sl_ledger *ledger, size_t bytes)
{
    ledger->held += bytes;
    sl_ledger_check(ledger);
}

size_t sl_ledger_partial(sl_ledger *ledger, size_t bytes)
{
    size_t credit;

    ledger->partial += bytes;
    credit = ledger->partial > ledger->ahead ? ledger->partial - ledger->ahead : 0;
    ledger->ahead += credit;
    sl_ledger_check(ledger);
    return credit;
}

void sl_ledger_complete(sl_ledger *ledger, size_t bytes)
{
    assert(bytes <= ledger->partial);
    ledger->partial -= bytes;
    ledger->held += bytes;
    sl_ledger_check(ledger);
}

size_t sl_ledger_reopen(sl_ledger *ledger, size_t bytes)
{
    assert(bytes <= ledger->held);
    ledger->held -= bytes;
    return sl_ledger_partial(ledger, bytes);
}

size_t sl_ledger_consume(sl_ledger *ledger, size_t bytes)
{
    const size_t debt = ledger->ahead - ledger->partial;
    const size_t paid = bytes < debt ? bytes : debt;

    assert(bytes <= ledger->held);
    ledger->held -= bytes;
    ledger->ahead -= paid;
    sl_ledger_check(ledger);
    return bytes - paid;
}
