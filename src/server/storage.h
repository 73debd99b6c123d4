/* server/storage.h — the store's life around the server's: opened and closed in another thread, because either may take
 * minutes (files that are made anew, a slow disk) and the loop must go on hearing signals.
 *
 *      opening --> open --> closing --> closed
 *          \--> failed */
#ifndef SL_SERVER_STORAGE_H
#define SL_SERVER_STORAGE_H

#include "base/alloc.h"
#include "base/log.h"
#include "net/loop.h"
#include "server/settings.h"
#include "store/store.h"

typedef enum sl_storage_state {
    SL_STORAGE_OPENING,
    SL_STORAGE_OPEN,
    SL_STORAGE_FAILED,
    SL_STORAGE_CLOSING,
    SL_STORAGE_CLOSED,
} sl_storage_state;

typedef struct sl_storage sl_storage; /* opaque */

typedef struct sl_storage_setup {
    const sl_alloc *alloc;
    sl_loop *loop;
    const sl_logger *log;
    const sl_server_settings *settings;
    sl_hash_seed seed;
} sl_storage_setup;

/* Begins to open the store in settings->data_folder.
 *   SL_OK, SL_ERR_NOMEM
 *   SL_ERR_IO  the system gives no thread */
sl_err sl_storage_new(const sl_storage_setup *setup, sl_storage **ret_storage);

/* In each turn: logs progress, and takes what the other thread is done with. */
sl_storage_state sl_storage_turn(sl_storage *storage);

/* OPEN: the store. FAILED: why, as a code and as sentences. */
sl_store *sl_storage_store(const sl_storage *storage);
sl_err sl_storage_err(const sl_storage *storage);
const char *sl_storage_report(const sl_storage *storage);

/* OPENING: "index: 3 of 17", for whoever asks why it takes so long. */
void sl_storage_progress(sl_storage *storage, sl_text *text);

/* OPEN: begins to close it. Without a thread for that it is closed before this returns. */
void sl_storage_close(sl_storage *storage);

/* In OPENING and CLOSING the thread is left to itself, with all memory that it uses. NULL is allowed. */
void sl_storage_free(sl_storage *storage);

#endif
