/* tests/unit/journal/sim_disk.h — a disk in memory that can lose power, fill up, and fail at any call.
 *
 * A file has two contents: what a reader sees, and what is on the platter. A sync copies one to the other. A power cut
 * leaves, for each 512-byte sector that was written and not synced, the old or the new content, as the seed decides: so
 * any subset of unsynced sectors may be lost, and a write may be torn anywhere. Names are durable at once, as the
 * contract of rename says. */
#ifndef SL_TESTS_UNIT_JOURNAL_SIM_DISK_H
#define SL_TESTS_UNIT_JOURNAL_SIM_DISK_H

#include "store/journal/disk.h"

#include <stdbool.h>

typedef struct sim_disk sim_disk;

sim_disk *sim_disk_new(void);
void sim_disk_free(sim_disk *disk);

/* A door to it for one opening of the log; closing the log gives it back. */
sl_disk *sim_disk_door(sim_disk *disk);

/* The machine loses power now: whoever had the door open must not use it any more. */
void sim_disk_power_cut(sim_disk *disk, uint64_t seed);

/* After a power cut, when the last one that had the door is gone: what a reader sees now is what the platter has. */
void sim_disk_settle(sim_disk *disk);

/* Changes one bit of what is on the platter, and of what a reader sees. */
void sim_disk_flip(sim_disk *disk, const char *name, uint64_t offset, unsigned bit);

/* From now on so many calls of write, sync, create, rename, remove and map succeed, then one fails with err; UINT64_MAX:
 * none does. A write that fails has written a part. */
void sim_disk_fail_after(sim_disk *disk, uint64_t calls, sl_err err);
uint64_t sim_disk_calls(sim_disk *disk); /* made so far */

/* The next sync of this file fails, whoever else uses the disk meanwhile; and how often it was asked for one. */
void sim_disk_fail_sync(sim_disk *disk, const char *name);
uint64_t sim_disk_syncs(sim_disk *disk, const char *name);

/* No room for new files while `full`. */
void sim_disk_set_full(sim_disk *disk, bool full);

#endif
