/* worker/ack_file.h — finished work, kept where a killed process cannot lose it until the source has confirmed it (B3).
 *
 * A file of fixed size, mapped into memory: one place for each message that is finished and unconfirmed. Noting one is a few stores
 * and no system call; the pages belong to the system, so kill -9 at any moment loses nothing that was noted (a power cut may: the
 * file is not synced, because the source confirms within milliseconds). Each place carries a checksum, so that one that was being
 * written when the process died is empty and not wrong.
 *
 * The next process that opens the file takes the same consumer name, if it was given none, and says again what is in the file: the
 * source then takes it by its lease, or gives the message out again, to whom it will; if it comes here, it is acked and not worked
 * on a second time. One process at a time: the file is locked. */
#ifndef SL_WORKER_ACK_FILE_H
#define SL_WORKER_ACK_FILE_H

#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_ack_file sl_ack_file; /* opaque */

enum {
    SL_ACK_FILE_PLACES = 8192, /* above what a consumer can hold and have unanswered together */
    SL_ACK_FILE_NAME_BYTES_MAX = 256,
    SL_ACK_FILE_REASON_BYTES_MAX = 135, /* of a park: its first sentence; the rest is in the log */
    SL_ACK_FILE_UNSURE_S = 600 /* so long an entry is kept about which the source could say nothing */
};

typedef struct sl_ack_entry {
    sl_uuid id;
    uint64_t token;
    uint64_t revision;
    bool is_park; /* what is to be said: park, or else ack */
    sl_str
        reason; /* of a park; more than SL_ACK_FILE_REASON_BYTES_MAX is cut at a whole character. Empty: none */
} sl_ack_entry;

/* Opens, or makes it. source: what the entries are about (address, stream and group as one text); a file about another source that
 * still has entries is refused, an empty one is taken over. name: the consumer's name, or empty: then the file's own is used, or a new random
 * one that it keeps from then on.
 *   SL_OK
 *   SL_ERR_LOCKED   another process has it open
 *   SL_ERR_INVALID  it is no ack file, or is about another source; `problem` says so
 *   SL_ERR_VERSION, SL_ERR_NO_SPACE, SL_ERR_IO, SL_ERR_NOMEM   (problem says which call failed and why) */
sl_err sl_ack_file_open(const char *path, sl_str source, sl_str name, sl_text *problem,
                        sl_ack_file **ret_file);
void sl_ack_file_close(sl_ack_file *file); /* NULL is allowed */

/* The name that this consumer must have. Good as long as the file is open. */
sl_str sl_ack_file_name(const sl_ack_file *file);

/* What an earlier process left; at most `entries_max`, returns how many. The places are held by the caller until he drops or keeps them,
 * and so long the reasons are good. */
size_t sl_ack_file_left(sl_ack_file *file, sl_ack_entry *entries, uint32_t *places, size_t entries_max);

/* Notes it. SL_OK and its place, which is the caller's until he drops or keeps it; or SL_ERR_FULL. */
sl_err sl_ack_file_put(sl_ack_file *file, const sl_ack_entry *entry, uint32_t *ret_place);
/* It is confirmed, or nobody wants to know any more. */
void sl_ack_file_drop(sl_ack_file *file, uint32_t place);
/* It was said, or could not be, and nobody knows whether it counted: the message may come again. It stays, is found by the next processes
 * that open the file within SL_ACK_FILE_UNSURE_S since the first time that this was said of it, and makes room when that is needed and
 * nobody holds it again. */
void sl_ack_file_keep(sl_ack_file *file, uint32_t place, uint64_t now_s);
/* Frees what nobody holds and was kept longer ago than that. Opening does so, too. */
void sl_ack_file_forget(sl_ack_file *file, uint64_t now_s);
uint64_t sl_ack_file_clock_s(void); /* seconds since 1970 */

size_t sl_ack_file_count(const sl_ack_file *file);

#endif
