/* store/faulty/faulty.c — the journal behind a door of the simulated disk. */
#include "store/faulty/faulty.h"

#include "store/journal/journal.h"

sl_err sl_store_open_faulty(const sl_store_setup *setup, const sl_journal_options *options, sl_faulty *disk,
                            sl_text *report, sl_store **ret_store)
{
    /* Always the same one: a run from a seed must be the same run every time. */
    static const sl_uuid store = { { 0xfa, 0x01, 0x71, 0xd1, 0x5c } };

    return sl_store_open_journal_on(setup, options, sl_faulty_door(disk), store, report, ret_store);
}
