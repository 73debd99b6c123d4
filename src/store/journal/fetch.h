/* store/journal/fetch.h — bytes of segments and index files for one reader: at once, or when they have come.
 *
 * What is in the page cache is read at once. What is not is read by the background thread: the answer is SL_ERR_AGAIN until
 * the chunk has come, and the caller asks for the same again. All chunks of a page stay until the next page begins, because
 * events point into them. */
#ifndef SL_STORE_JOURNAL_FETCH_H
#define SL_STORE_JOURNAL_FETCH_H

#include "store/journal/journal_private.h"

typedef struct journal_chunk journal_chunk;
typedef struct fetch_task fetch_task;

typedef struct journal_fetch {
    journal_store *store;
    journal_chunk *chunks; /* the newest first */
    journal_chunk *spare;  /* its memory is used again */
    fetch_task *pending;
    sl_err err;         /* of the last one that came */
    size_t page_bytes;  /* of all chunks */
    size_t chunk_bytes; /* of the next one: grows while reading goes straight on */
} journal_fetch;

typedef struct journal_span {
    journal_shelf *shelf;
    bool of_index;
    uint64_t offset;
    size_t bytes; /* that are needed; more may be read */
    uint64_t end; /* nothing is read behind this offset */
} journal_span;

/* *ret_bytes: at least span->bytes, *ret_count of them.
 * SL_OK, SL_ERR_AGAIN, SL_ERR_IO, SL_ERR_NOMEM; SL_ERR_CORRUPT: so much is not there. */
sl_err journal_fetch_bytes(journal_fetch *fetch, const journal_span *span, const uint8_t **ret_bytes,
                           size_t *ret_count);

/* A new page begins: what older views point to may go. */
void journal_fetch_page(journal_fetch *fetch);

/* Nothing more for now: no memory is kept. */
void journal_fetch_rest(journal_fetch *fetch);
void journal_fetch_done(journal_fetch *fetch);

#endif
