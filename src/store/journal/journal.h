/* store/journal/journal.h — the embedded store on any disk; store.h has the door for a folder. */
#ifndef SL_STORE_JOURNAL_JOURNAL_H
#define SL_STORE_JOURNAL_JOURNAL_H

#include "store/journal/disk.h"
#include "store/store.h"

/* The disk belongs to the store from now on, also when opening fails. `store` is used when the disk is empty. */
sl_err sl_store_open_journal_on(const sl_store_setup *setup, const sl_journal_options *options, sl_disk *disk,
                                sl_uuid store, sl_text *report, sl_store **ret_store);

#endif
