/* store/journal/log.h — one endless sequence of frames, in segments, with group commit.
 *
 *      begin, record ..., end     a frame is built in memory: one batch
 *      turn                       everything built is written: it survives the death of this process
 *      sync                       and then made durable: it survives a power cut
 *      poll                       learns what has become durable
 *
 * While one sync runs, the next frames gather. Few that wait: the sync runs in the caller's thread; many: in a thread
 * of its own, so that the caller goes on (shared measurements, 1f). Segments are made ahead in a third thread, so
 * that going on to the next is no work.
 *
 * A sync that fails, or a write that fails, is the end: sl_log_err() says so from then on, and nothing is tried
 * again. A disk without room for the next segment is not: sl_log_begin() refuses what is not urgent until one could be
 * made. */
#ifndef SL_STORE_JOURNAL_LOG_H
#define SL_STORE_JOURNAL_LOG_H

#include "base/str.h"
#include "store/journal/disk.h"
#include "store/journal/format.h"
#include "store/journal/scan.h"
#include "store/store.h"

typedef struct sl_log sl_log;

typedef struct sl_log_setup {
    sl_disk *disk;          /* the log's from now on, also when opening fails */
    uint64_t segment_bytes; /* of new segments; a multiple of 4096 */
    sl_uuid store;          /* used when the folder is empty */
    bool sync_by_os;        /* durability "os": a sync is what the operating system does when it likes */
    uint32_t inline_max;    /* up to so many frames wait: sync in the caller's thread */
} sl_log_setup;

/* Finds the end of the log, cuts what a crash left behind it, and begins a new epoch (durable when this returns).
 *   SL_OK
 *   SL_ERR_LOCKED, SL_ERR_CORRUPT, SL_ERR_VERSION, SL_ERR_NO_SPACE, SL_ERR_IO, SL_ERR_NOMEM
 * In each case `report` gets a sentence: what was found, and what to do. */
sl_err sl_log_open(const sl_log_setup *setup, sl_text *report, sl_log **ret_log);

/* Writes and syncs what is built, marks the end as clean, frees. */
void sl_log_close(sl_log *log);

/* --- writing --- */

typedef struct sl_log_place {
    uint64_t position;
    uint32_t offset; /* of the record in the last segment */
} sl_log_place;

/* Opens a frame for records whose sizes (sl_record_size) sum up to `record_bytes` at most.
 *   SL_OK
 *   SL_ERR_TOO_LARGE      more than a segment holds
 *   SL_ERR_NO_SPACE       no next segment: the disk is full. With `urgent` the reserve is used before that is said
 *   SL_ERR_NOMEM, SL_ERR_STORE_FAILED */
sl_err sl_log_begin(sl_log *log, size_t record_bytes, bool urgent);

/* The next record: where its payload of exactly payload_bytes is to be written before the next call. NULL: that would be
 * more than was announced; the frame is as it was. */
uint8_t *sl_log_record(sl_log *log, sl_record_kind kind, uint32_t payload_bytes, sl_log_place *ret_place);

/* Ends the frame, which may not be empty. Returns the position after it: it is durable when sl_log_durable() is not below
 * that. */
uint64_t sl_log_end(sl_log *log);

/* Forgets the frame. */
void sl_log_abort(sl_log *log);

/* A record of the last segment that is not written yet, also one of the open frame; NULL: it is written, read it there.
 * Good until the next call that writes. */
const uint8_t *sl_log_peek(sl_log *log, uint32_t offset);

/* The largest sum of record sizes that sl_log_begin() can take. */
size_t sl_log_frame_max(const sl_log *log);

void sl_log_turn(sl_log *log);
void sl_log_sync(sl_log *log, uint64_t end); /* if something below `end` is written and not durable */
void sl_log_poll(sl_log *log);
int sl_log_wait_fd(const sl_log *log);
void sl_log_wake(sl_log *log);    /* makes it readable; from any thread */
sl_err sl_log_flush(sl_log *log); /* syncs what is written and waits for it: SL_OK or SL_ERR_STORE_FAILED */

uint64_t sl_log_next(const sl_log *log);    /* the position that the next record gets */
uint64_t sl_log_written(const sl_log *log); /* everything below was written */
uint64_t sl_log_durable(const sl_log *log); /* everything below is as durable as the setup wants */
uint64_t
sl_log_synced(const sl_log *log); /* everything below survives a power cut, whatever the setup wants */

/* Why there is no next segment: SL_OK when there is one, or nobody has needed it yet. */
sl_err sl_log_spare_err(sl_log *log);

/* Not ENOUGH: there is no next segment, and this one is at its reserve or nearly so. Asks for one again, and does not wait for it. */
sl_room sl_log_room(sl_log *log);

/* Bytes that gather in memory and are not written: the caller's back-pressure. */
size_t sl_log_gathered(const sl_log *log);
sl_err sl_log_err(const sl_log *log); /* SL_OK or SL_ERR_STORE_FAILED */

/* --- reading --- */

uint32_t sl_log_segment_count(const sl_log *log);

/* The segment as far as it is written. The file is the log's. */
void sl_log_segment(const sl_log *log, uint32_t index, sl_segment_ref *ret_segment);

/* How many bytes of the last segment are written. */
uint64_t sl_log_written_bytes(const sl_log *log);

sl_uuid sl_log_store(const sl_log *log);

/* A segment other than the last was rewritten: this is its file now. Returns the old one, to be closed when nobody reads
 * from it any more. */
sl_file *sl_log_replace(sl_log *log, uint32_t index, sl_file *file, const sl_segment_header *header);

/* "Damage in 0000000000000001.seg at byte 4096: ...", with what to do. */
void sl_log_say_damage(sl_text *report, uint64_t number, uint64_t offset);

/* "0000000000000001.seg", for sentences and for whoever writes files beside it. */
enum {
    SL_SEGMENT_NAME_BYTES = 32
};
void sl_segment_name(uint64_t number, const char *suffix, char name[SL_SEGMENT_NAME_BYTES]);

#endif
