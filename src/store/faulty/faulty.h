/* store/faulty/faulty.h — the journal on a disk in memory that can lose power, fill up, and fail at any call.
 *
 * A file has two contents: what a reader sees, and what is on the platter. A sync copies one to the other. A power cut
 * leaves, for each 512-byte sector that was written and not synced, the old or the new content, as the seed decides: so
 * any subset of unsynced sectors may be lost, and a write may be torn anywhere. A file that grew and was not synced may keep
 * any length between the old and the new one. Names are durable at once, as the contract of rename says.
 *
 * Without faults it is a backend as any other, and passes tests/contract. For tests and simulations. */
#ifndef SL_STORE_FAULTY_FAULTY_H
#define SL_STORE_FAULTY_FAULTY_H

#include "base/str.h"
#include "store/journal/disk.h"
#include "store/store.h"

typedef struct sl_faulty sl_faulty;

sl_faulty *sl_faulty_new(void);
void sl_faulty_free(sl_faulty *disk);

/* A door to it for one opening of a store or a log; closing that gives it back. */
sl_disk *sl_faulty_door(sl_faulty *disk);

/* The journal on this disk. options->folder is not looked at. */
sl_err sl_store_open_faulty(const sl_store_setup *setup, const sl_journal_options *options, sl_faulty *disk,
                            sl_text *report, sl_store **ret_store);

/* The process is killed now: whoever has a door open can change nothing any more, all calls give SL_ERR_IO; what was written
 * is there. The next door is a living one again. */
void sl_faulty_kill(sl_faulty *disk);

/* The machine loses power now: as killed, and unsynced sectors are decided; with seed 0 all of them are lost. Then, when the last one that had a door is gone,
 * sl_faulty_settle(): what a reader sees now is what the platter has. */
void sl_faulty_power_cut(sl_faulty *disk, uint64_t seed);

/* The same in the middle of somebody's work: so many calls (as below) succeed, then the power is cut. UINT64_MAX: it is
 * not. */
void sl_faulty_cut_after(sl_faulty *disk, uint64_t calls, uint64_t seed);

/* Killed or cut, and no new door since. */
bool sl_faulty_is_dead(sl_faulty *disk);
void sl_faulty_settle(sl_faulty *disk);

/* Changes one bit of what is on the platter, and of what a reader sees. False: no such file, or it is shorter. */
bool sl_faulty_flip(sl_faulty *disk, const char *name, uint64_t offset, unsigned bit);

/* From now on so many calls of open, create, write, read, read_now, sync, rename, remove and list succeed, then one fails
 * with err; UINT64_MAX: none does. A write that fails has written a part. */
void sl_faulty_fail_after(sl_faulty *disk, uint64_t calls, sl_err err);
uint64_t sl_faulty_calls(sl_faulty *disk);      /* made so far */
uint64_t sl_faulty_bytes_read(sl_faulty *disk); /* so far */
bool sl_faulty_failed(sl_faulty *disk);         /* the one that was to fail has */

/* Every n-th read_now says SL_ERR_AGAIN; 0: none does. */
void sl_faulty_slow_reads(sl_faulty *disk, uint64_t every);

/* Every sync takes so long, at least; what is written meanwhile is not covered by it. At most 999,999. */
void sl_faulty_slow_syncs(sl_faulty *disk, uint64_t microseconds);

/* The next sync of this file fails, whoever else uses the disk meanwhile; and how often it was asked for one. */
void sl_faulty_fail_sync(sl_faulty *disk, const char *name);
uint64_t sl_faulty_syncs(sl_faulty *disk, const char *name);

/* No room for new files, and for files that grow, while `full`. */
void sl_faulty_set_full(sl_faulty *disk, bool full);

/* The files that are there, and what is in one of them as a reader sees it (NULL: no such file; good until it changes). */
void sl_faulty_each(sl_faulty *disk, sl_name_fn *fn, void *ctx);
const uint8_t *sl_faulty_content(sl_faulty *disk, const char *name, uint64_t *ret_bytes);

#endif
