/* store/journal/caches.h — both files that a segment gets when it is sealed, index and roll, from reading it once. */
#ifndef SL_STORE_JOURNAL_CACHES_H
#define SL_STORE_JOURNAL_CACHES_H

#include "store/journal/scan.h"

/* The same as sl_index_build() and sl_roll_build(); codes as theirs. After an error either file may be there, and is right. */
sl_err sl_index_and_roll_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset);

#endif
