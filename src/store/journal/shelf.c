/* store/journal/shelf.c — what is known of each segment: while it is written, while it is sealed, and then by its index. */
#include "store/journal/journal_private.h"

#include "store/array.h"
#include "store/journal/caches.h"
#include "store/journal/roll.h"

#include <stdlib.h>

sl_err journal_shelf_reserve(journal_store *store)
{
    journal_shelf **const shelves = sl_array_grow(store->alloc, store->shelves, &store->shelf_capacity,
                                                  sizeof *shelves, (size_t)store->shelf_count + 1);

    if (shelves == NULL)
        return SL_ERR_NOMEM;
    store->shelves = shelves;
    if (store->next_shelf == NULL)
        store->next_shelf = sl_alloc_take(store->alloc, sizeof *store->next_shelf);
    return store->next_shelf == NULL ? SL_ERR_NOMEM : SL_OK;
}

void journal_shelf_add(journal_store *store)
{
    journal_shelf *const shelf = store->next_shelf;

    store->next_shelf = NULL;
    *shelf = (journal_shelf){ .refs = 1 };
    sl_log_segment(store->log, store->shelf_count, &shelf->segment);
    store->shelves[store->shelf_count++] = shelf;
}

void journal_shelf_release(journal_store *store, journal_shelf *shelf)
{
    if (--shelf->refs > 0)
        return;
    if (shelf->index != NULL)
        sl_index_close(shelf->index);
    if (shelf->owns_file)
        store->disk->ops->close(shelf->segment.file);
    sl_recent_done(&shelf->recent);
    sl_alloc_give(store->alloc, shelf, sizeof *shelf);
}

void journal_shelves_done(journal_store *store)
{
    for (uint32_t i = 0; i < store->shelf_count; i++)
        journal_shelf_release(store, store->shelves[i]);
    if (store->next_shelf != NULL)
        sl_alloc_give(store->alloc, store->next_shelf, sizeof *store->next_shelf);
    sl_alloc_give(store->alloc, store->shelves, store->shelf_capacity * sizeof(journal_shelf *));
    store->shelves = NULL;
    store->shelf_count = 0;
}

uint32_t journal_shelf_of(const journal_store *store, uint64_t position)
{
    uint32_t low = 0, high = store->shelf_count;

    while (low < high) { /* the first one that ends above the position */
        const uint32_t middle = low + (high - low) / 2;
        if (journal_shelf_end(store, middle) <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t journal_shelf_end(const journal_store *store, uint32_t index)
{
    return index + 1 == store->shelf_count ? sl_log_written(store->log)
                                           : store->shelves[index + 1]->segment.first;
}

uint64_t journal_shelf_bytes(const journal_store *store, uint32_t index)
{
    return index + 1 == store->shelf_count ? sl_log_written_bytes(store->log)
                                           : store->shelves[index]->segment.size_bytes;
}

/* --- sealing --- */

typedef struct seal_task {
    sl_task task;
    journal_store *store;
    journal_shelf *shelf;
    sl_disk *disk;
    sl_segment_ref segment;
    uint64_t first_number; /* of the first segment there is */
    sl_index *index;       /* the result */
    sl_err err;
    uint64_t offset; /* where the segment is damaged */
} seal_task;

static void seal_run(sl_task *task)
{
    seal_task *const t = SL_CONTAINER_OF(task, seal_task, task);

    t->err = sl_index_and_roll_build(t->disk, &t->segment, &t->offset);
    if (t->err == SL_OK)
        t->err = sl_index_open(t->disk, &t->segment, &t->index);
    if (t->err == SL_OK && sl_roll_is_due(t->disk, t->segment.store, t->first_number, t->segment.number))
        (void)sl_roll_merge(t->disk, t->segment.store, t->first_number,
                            t->segment.number); /* else next time */
}

/* Without an index what is in memory is used on, and the next start makes it: nothing depends on it. */
static void seal_finish(sl_task *task)
{
    seal_task *const t = SL_CONTAINER_OF(task, seal_task, task);

    t->shelf->sealing = false;
    if (t->index != NULL) {
        t->shelf->index = t->index;
        sl_recent_done(&t->shelf->recent);
    } else if (t->err == SL_ERR_CORRUPT) {
        journal_complain(t->store, "Damage was found while sealing", t->shelf, false, t->offset);
    }
    journal_shelf_release(t->store, t->shelf);
    if (t->index != NULL)
        journal_space_sealed(t->store);
    free(t);
}

void journal_shelf_seal(journal_store *store, journal_shelf *shelf)
{
    seal_task *const t = malloc(sizeof *t);
    const uint64_t number = shelf->segment.number;

    if (t == NULL || shelf->sealing || shelf->index != NULL) {
        free(t);
        return;
    }
    for (uint32_t i = 0; i < store->shelf_count; i++)
        if (store->shelves[i]->segment.number == number)
            sl_log_segment(store->log, i, &shelf->segment); /* its end is known now */
    *t = (seal_task){ .task = { .run = seal_run, .finish = seal_finish },
                      .store = store,
                      .shelf = shelf,
                      .disk = store->disk,
                      .segment = shelf->segment,
                      .first_number = store->shelves[0]->segment.number };
    shelf->sealing = true;
    shelf->refs++;
    sl_background_push(&store->sealer, &t->task);
}
