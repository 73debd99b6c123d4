/* store/journal/inspect_private.h — the functions of store/inspect.h on any disk, for those of a folder and for tests.
 *
 *      walk.c, walk_segment.c   reads everything, goes on behind damage
 *      verify.c  dump.c  stats.c  backup.c      one question each
 *      inspect.c                the way from a folder to a disk, and what its errors mean */
#ifndef SL_STORE_JOURNAL_INSPECT_PRIVATE_H
#define SL_STORE_JOURNAL_INSPECT_PRIVATE_H

#include "store/inspect.h"
#include "store/journal/disk.h"
#include "store/journal/format.h"

/* As the functions of the same names; the disk stays the caller's, how->folder is not looked at. */
sl_err sl_verify_disk(sl_disk *disk, const sl_inspection *how, sl_verified *ret_verified);
sl_err sl_dump_disk(sl_disk *disk, const sl_inspection *how, const sl_dump_range *range,
                    sl_journal_record_fn *visit, uint64_t *ret_damages);
sl_err sl_stats_disk(sl_disk *disk, const sl_inspection *how, sl_journal_stats *ret_stats);

/* Copies and verifies; the target must be empty and has the copy under its final names. After an error it may hold
 * anything. *ret_target_failed (also with an error): that is what the error is about. */
sl_err sl_backup_disk(sl_disk *source, sl_disk *target, const sl_inspection *how, sl_backed_up *ret_done,
                      bool *ret_target_failed);

/* What a record says; nothing of it is copied. */
void sl_journal_record_read(const sl_record_view *view, sl_journal_record *ret_record);

/* Opens the folder for reading. SL_ERR_NOT_FOUND, SL_ERR_IO, SL_ERR_NOMEM with a sentence. */
sl_err sl_inspect_open(const char *folder, sl_text *report, sl_disk **ret_disk);

/* A sentence for an error that an inspection ended with; SL_OK gives none. */
void sl_inspect_explain(sl_err err, const char *folder, sl_text *report);

#endif
