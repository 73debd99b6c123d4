/* store/journal/fetch.c — see fetch.h. */
#include "store/journal/fetch.h"

#include <assert.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES_MIN = 4096,
    CHUNK_BYTES_MAX = 256 * 1024,
    CHUNKS_KEPT =
        4, /* over a page: what was fetched and not used yet, and blocks of an index on the way to it */
};

struct journal_chunk {
    journal_chunk *next;
    journal_shelf *shelf; /* held */
    bool of_index;
    uint64_t offset;
    size_t bytes, capacity;
    uint8_t data[];
};

struct fetch_task {
    sl_task task;
    journal_store *store;
    journal_fetch *fetch; /* NULL: nobody waits any more */
    journal_chunk *chunk;
    sl_file *file;
    sl_err err;
};

/* --- chunks --- */

static void chunk_free(journal_store *store, journal_chunk *chunk)
{
    journal_shelf_release(store, chunk->shelf);
    free(chunk);
}

/* The larger one of what is given up is kept for the next. */
static void chunk_recycle(journal_fetch *fetch, journal_chunk *chunk)
{
    if (fetch->spare != NULL && fetch->spare->capacity >= chunk->capacity) {
        chunk_free(fetch->store, chunk);
        return;
    }
    journal_shelf_release(fetch->store, chunk->shelf);
    free(fetch->spare);
    fetch->spare = chunk;
}

static journal_chunk *chunk_new(journal_fetch *fetch, const journal_span *span, size_t bytes)
{
    const bool use_spare = fetch->spare != NULL && fetch->spare->capacity >= bytes;
    const size_t capacity = use_spare ? fetch->spare->capacity : bytes;
    journal_chunk *const chunk = use_spare ? fetch->spare : malloc(sizeof *chunk + bytes);

    if (chunk == NULL)
        return NULL;
    if (use_spare)
        fetch->spare = NULL;
    *chunk = (journal_chunk){ .shelf = span->shelf,
                              .of_index = span->of_index,
                              .offset = span->offset,
                              .bytes = bytes,
                              .capacity = capacity };
    span->shelf->refs++;
    return chunk;
}

static void chunk_push(journal_fetch *fetch, journal_chunk *chunk)
{
    chunk->next = fetch->chunks;
    fetch->chunks = chunk;
    fetch->page_bytes += chunk->bytes;
}

static bool covers(const journal_chunk *chunk, const journal_span *span)
{
    return chunk->shelf == span->shelf && chunk->of_index == span->of_index &&
           span->offset >= chunk->offset && span->offset + span->bytes <= chunk->offset + chunk->bytes;
}

static void keep_chunks(journal_fetch *fetch, unsigned count)
{
    journal_chunk **link = &fetch->chunks;

    for (fetch->page_bytes = 0; *link != NULL && count > 0; count--) {
        fetch->page_bytes += (*link)->bytes;
        link = &(*link)->next;
    }
    while (*link != NULL) {
        journal_chunk *const chunk = *link;

        *link = chunk->next;
        chunk_recycle(fetch, chunk);
    }
}

void journal_fetch_page(journal_fetch *fetch)
{
    keep_chunks(fetch, CHUNKS_KEPT);
}

void journal_fetch_rest(journal_fetch *fetch)
{
    keep_chunks(fetch, 0);
    free(fetch->spare);
    fetch->spare = NULL;
    fetch->chunk_bytes = 0;
}

void journal_fetch_done(journal_fetch *fetch)
{
    journal_fetch_rest(fetch);
    if (fetch->pending != NULL)
        fetch->pending->fetch = NULL;
    fetch->pending = NULL;
}

/* --- the background --- */

static void task_run(sl_task *task)
{
    fetch_task *const t = SL_CONTAINER_OF(task, fetch_task, task);

    t->err = t->file->disk->ops->read(t->file, t->chunk->offset, t->chunk->data, t->chunk->bytes);
}

static void task_finish(sl_task *task)
{
    fetch_task *const t = SL_CONTAINER_OF(task, fetch_task, task);

    if (t->fetch == NULL || t->err != SL_OK) {
        chunk_free(t->store, t->chunk);
    } else {
        chunk_push(t->fetch, t->chunk);
    }
    if (t->fetch != NULL) {
        t->fetch->err = t->err;
        t->fetch->pending = NULL;
    }
    free(t);
}

static sl_err send(journal_fetch *fetch, journal_chunk *chunk, sl_file *file)
{
    fetch_task *const t = malloc(sizeof *t);

    if (t == NULL) {
        chunk_free(fetch->store, chunk);
        return SL_ERR_NOMEM;
    }
    *t = (fetch_task){ .task = { .run = task_run, .finish = task_finish },
                       .store = fetch->store,
                       .fetch = fetch,
                       .chunk = chunk,
                       .file = file,
                       .err = SL_ERR_IO };
    fetch->pending = t;
    sl_background_push(&fetch->store->fetcher, &t->task);
    return SL_ERR_AGAIN;
}

/* --- fetching --- */

/* Straight on from the newest chunk: larger steps. Somewhere else: small ones. */
static void choose_chunk_bytes(journal_fetch *fetch, const journal_span *span)
{
    const journal_chunk *const newest = fetch->chunks;
    const bool straight_on = newest != NULL && newest->shelf == span->shelf &&
                             newest->of_index == span->of_index && span->offset >= newest->offset &&
                             span->offset <= newest->offset + 2 * newest->bytes;

    if (!straight_on || fetch->chunk_bytes == 0)
        fetch->chunk_bytes = CHUNK_BYTES_MIN;
    else if (fetch->chunk_bytes < CHUNK_BYTES_MAX)
        fetch->chunk_bytes *= 2;
}

static sl_err fetch_new(journal_fetch *fetch, const journal_span *span)
{
    sl_file *const file = span->of_index ? sl_index_file(span->shelf->index) : span->shelf->segment.file;
    uint64_t bytes = span->bytes;
    journal_chunk *chunk;

    if (span->offset > span->end || span->end - span->offset < span->bytes)
        return SL_ERR_CORRUPT;
    if (!span->of_index) {
        choose_chunk_bytes(fetch, span);
        bytes = bytes > fetch->chunk_bytes ? bytes : fetch->chunk_bytes;
    }
    if (bytes > span->end - span->offset)
        bytes = span->end - span->offset;
    chunk = chunk_new(fetch, span, (size_t)bytes);
    if (chunk == NULL)
        return SL_ERR_NOMEM;
    if (file->disk->ops->read_now(file, span->offset, chunk->data, chunk->bytes) != SL_OK)
        return send(fetch, chunk, file); /* whatever is wrong, the one that may wait finds out */
    chunk_push(fetch, chunk);
    return SL_OK;
}

static const journal_chunk *find_chunk(const journal_fetch *fetch, const journal_span *span)
{
    for (const journal_chunk *chunk = fetch->chunks; chunk != NULL; chunk = chunk->next)
        if (covers(chunk, span))
            return chunk;
    return NULL;
}

sl_err journal_fetch_bytes(journal_fetch *fetch, const journal_span *span, const uint8_t **ret_bytes,
                           size_t *ret_count)
{
    const journal_chunk *chunk = find_chunk(fetch, span);
    sl_err err = chunk == NULL ? fetch->err : SL_OK;

    if (chunk == NULL)
        fetch->err = SL_OK;
    if (chunk == NULL && err == SL_OK)
        err = fetch->pending != NULL ? SL_ERR_AGAIN : fetch_new(fetch, span);
    if (err != SL_OK)
        return err;
    if (chunk == NULL)
        chunk = fetch->chunks;
    *ret_bytes = chunk->data + (span->offset - chunk->offset);
    *ret_count = (size_t)(chunk->offset + chunk->bytes - span->offset);
    return SL_OK;
}
