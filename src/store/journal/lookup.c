/* store/journal/lookup.c — the event of a stream at a revision, to decide about a batch.
 *
 * Asked only when an append may be a repetition or revives a stream. What was written recently is in memory or in the page
 * cache; older data is read from the disk while the caller waits (docs/decisions/0008). So the answer to the last question
 * is kept, and what one batch may make the store read is bounded: SL_LOOKUP_BYTES_MAX.
 *
 * A repeated append asks for one revision after the other. They stand side by side, so the blocks of the index that the last
 * question has read are kept for the next one, and its segment is looked at first: such an append costs little more than its
 * own records, and those are within the limit because they were once one batch. */
#include "base/cleanup.h"
#include "store/journal/journal_private.h"

enum {
    ENTRIES = 32
};

typedef struct wanted {
    journal_store *store;
    uint32_t stream;
    uint64_t revision;
    sl_str name;
    uint64_t hash;
} wanted;

/* Files may be closed between two batches, so nothing is kept for longer than one. */
void journal_lookup_begin(journal_store *store)
{
    store->lookups.bytes_left = SL_LOOKUP_BYTES_MAX;
    store->lookups.shelf_known = false;
    for (size_t i = 0; i < SL_COUNT_OF(store->lookups.blocks); i++)
        store->lookups.blocks[i].file = NULL;
}

static bool may_read(journal_store *store, size_t bytes)
{
    if (bytes > store->lookups.bytes_left)
        return false;
    store->lookups.bytes_left -= bytes;
    return true;
}

/* Over the older of the two: an answer at the border of two blocks needs both. */
static sl_err read_block(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block)
{
    journal_store *const store = ((wanted *)ctx)->store;
    journal_block *block = &store->lookups.blocks[store->lookups.newest];
    sl_err err;

    for (size_t i = 0; i < SL_COUNT_OF(store->lookups.blocks); i++) {
        if (block->file == file && block->offset == offset) {
            *ret_block = block->bytes;
            return SL_OK;
        }
        store->lookups.newest = 1 - store->lookups.newest;
        block = &store->lookups.blocks[store->lookups.newest];
    }
    if (!may_read(store, sizeof block->bytes))
        return SL_ERR_TOO_LARGE;
    store->lookups.newest = 1 - store->lookups.newest;
    block = &store->lookups.blocks[store->lookups.newest];
    err = file->disk->ops->read(file, offset, block->bytes, sizeof block->bytes);
    block->file = err == SL_OK ? file : NULL;
    block->offset = offset;
    *ret_block = block->bytes;
    return err;
}

/* Entries at or below the revision, the highest first. */
static sl_err find_entries(wanted *w, uint32_t shelf_number, uint64_t revision, sl_index_entry *entries,
                           uint32_t *ret_count)
{
    const journal_shelf *const shelf = w->store->shelves[shelf_number];
    const sl_block_reader reader = { w, read_block };
    uint64_t offset = 0;
    sl_err err;

    *ret_count = 0;
    if (shelf->index == NULL) {
        *ret_count = sl_recent_find(
            &shelf->recent, &(sl_recent_query){ w->stream, revision, true, UINT64_MAX }, entries, ENTRIES);
        return SL_OK;
    }
    if (!sl_index_may_have(shelf->index, w->hash))
        return SL_OK;
    err = sl_index_find(shelf->index, &(sl_index_query){ (uint32_t)w->hash, revision, true }, &reader,
                        entries, ENTRIES, ret_count, &offset);
    if (err == SL_ERR_CORRUPT)
        journal_complain(w->store, "Damage", shelf, true, offset);
    return err;
}

/* The record is in the frames that are not written yet, or in the file. */
static sl_err read_record(journal_store *store, uint32_t shelf_number, uint32_t offset,
                          const uint8_t **ret_bytes, size_t *ret_count)
{
    const journal_shelf *const shelf = store->shelves[shelf_number];
    sl_file *const file = shelf->segment.file;
    const bool is_last = shelf_number + 1 == store->shelf_count;
    const uint8_t *const gathered = is_last ? sl_log_peek(store->log, offset) : NULL;
    size_t bytes = SL_RECORD_HEADER_BYTES;
    sl_err err = SL_OK;

    store->looked_up.in_scratch = gathered == NULL;
    *ret_bytes = gathered;
    *ret_count = gathered == NULL ? 0 : sl_record_peek(gathered).bytes;
    for (int round = 0; round < 2 && gathered == NULL && err == SL_OK;
         round++) { /* its header, then all of it */
        if (bytes > journal_shelf_bytes(store, shelf_number) - offset)
            return SL_ERR_CORRUPT;
        if (!may_read(store, bytes))
            return SL_ERR_TOO_LARGE;
        sl_buf_clear(&store->scratch);
        err = sl_buf_reserve(&store->scratch, bytes);
        if (err == SL_OK)
            err = file->disk->ops->read(file, offset, sl_buf_tail(&store->scratch), bytes);
        *ret_bytes = sl_buf_tail(&store->scratch);
        *ret_count = bytes;
        bytes = err == SL_OK ? sl_record_peek(*ret_bytes).bytes : bytes;
    }
    return err;
}

static sl_err read_event(journal_store *store, uint32_t shelf_number, uint32_t offset, sl_event *ret_event)
{
    const journal_shelf *const shelf = store->shelves[shelf_number];
    sl_record_view record;
    const uint8_t *bytes;
    size_t count;
    sl_err err = read_record(store, shelf_number, offset, &bytes, &count);

    if (err == SL_OK)
        err = sl_record_get(bytes, count, shelf->segment.seed, &record);
    if (err == SL_OK)
        err = record.kind == SL_RECORD_EVENT ? sl_event_get(&record, ret_event) : SL_ERR_CORRUPT;
    if (err == SL_ERR_CORRUPT)
        journal_complain(store, "Damage", shelf, false, offset);
    return err;
}

/* SL_OK, SL_ERR_NOT_FOUND: it is nowhere; SL_ERR_EMPTY: not in this segment. Entries of the revision itself come first, and
 * more of those with one hash than fit would need a million streams of the same name but for chance. */
static sl_err look_in(wanted *w, uint32_t shelf_number, sl_event *ret_event)
{
    sl_index_entry entries[ENTRIES];
    uint32_t count = 0;
    sl_err err = find_entries(w, shelf_number, w->revision, entries, &count);

    for (uint32_t i = 0; i < count && err == SL_OK; i++) {
        err = read_event(w->store, shelf_number, entries[i].offset, ret_event);
        if (err == SL_OK && sl_str_equal(ret_event->stream, w->name))
            return ret_event->revision == w->revision ? SL_OK : SL_ERR_NOT_FOUND;
    }
    return err == SL_OK ? SL_ERR_EMPTY : err;
}

/* The same question as the last one: a batch may ask it a thousand times. */
static bool is_known(const journal_store *store, uint32_t stream, uint64_t revision)
{
    return store->looked_up.valid && store->looked_up.stream == stream &&
           store->looked_up.event.revision == revision;
}

/* The segment of the last answer first. That it is not there says nothing: it may stand in a newer one. */
static sl_err look_everywhere(wanted *w, sl_event *ret_event)
{
    journal_store *const store = w->store;
    sl_err err = SL_ERR_EMPTY;

    if (store->lookups.shelf_known && store->lookups.stream == w->stream) {
        err = look_in(w, store->lookups.shelf, ret_event);
        if (err != SL_ERR_EMPTY && err != SL_ERR_NOT_FOUND)
            return err;
        err = SL_ERR_EMPTY;
    }
    for (uint32_t i = store->shelf_count; i > 0 && err == SL_ERR_EMPTY; i--) {
        err = look_in(w, i - 1, ret_event);
        store->lookups.shelf = i - 1;
    }
    store->lookups.shelf_known = err == SL_OK;
    store->lookups.stream = w->stream;
    return err;
}

sl_err journal_lookup(journal_store *store, uint32_t stream, uint64_t revision, sl_event *ret_event)
{
    wanted w = { .store = store,
                 .stream = stream,
                 .revision = revision,
                 .name = sl_stream_name(sl_directory_at(&store->writer.directory, stream)) };
    sl_err err;

    if (is_known(store, stream, revision)) {
        *ret_event = store->looked_up.event;
        return SL_OK;
    }
    store->looked_up.valid = false;
    w.hash = sl_stream_hash(sl_log_store(store->log), w.name);
    err = look_everywhere(&w, ret_event);
    if (err != SL_OK)
        return err == SL_ERR_EMPTY ? SL_ERR_NOT_FOUND : err;
    store->looked_up.valid = store->looked_up.in_scratch;
    store->looked_up.stream = stream;
    store->looked_up.event = *ret_event;
    return SL_OK;
}
