/* store/journal/lookup.c — the event of a stream at a revision, to decide about a batch.
 *
 * Asked only when an append may be a repetition or revives a stream. What was written recently is in memory or in the page
 * cache; older data is read from the disk while the caller waits (docs/decisions/0008). So the answer to the last question
 * is kept, and what one batch may make the store read is bounded: SL_LOOKUP_BYTES_MAX. */
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
    uint8_t block[SL_INDEX_BLOCK_BYTES];
} wanted;

static sl_err read_block(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block)
{
    wanted *const w = ctx;

    if (sizeof w->block > w->store->lookup_left)
        return SL_ERR_TOO_LARGE;
    w->store->lookup_left -= sizeof w->block;
    *ret_block = w->block;
    return file->disk->ops->read(file, offset, w->block, sizeof w->block);
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
        if (bytes > store->lookup_left)
            return SL_ERR_TOO_LARGE;
        store->lookup_left -= bytes;
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

sl_err journal_lookup(journal_store *store, uint32_t stream, uint64_t revision, sl_event *ret_event)
{
    wanted w = { .store = store,
                 .stream = stream,
                 .revision = revision,
                 .name = sl_stream_name(sl_directory_at(&store->writer.directory, stream)) };
    sl_err err = SL_ERR_EMPTY;

    if (is_known(store, stream, revision)) {
        *ret_event = store->looked_up.event;
        return SL_OK;
    }
    store->looked_up.valid = false;
    w.hash = sl_stream_hash(sl_log_store(store->log), w.name);
    for (uint32_t i = store->shelf_count; i > 0 && err == SL_ERR_EMPTY; i--)
        err = look_in(&w, i - 1, ret_event);
    if (err != SL_OK)
        return err == SL_ERR_EMPTY ? SL_ERR_NOT_FOUND : err;
    store->looked_up.valid = store->looked_up.in_scratch;
    store->looked_up.stream = stream;
    store->looked_up.event = *ret_event;
    return SL_OK;
}
