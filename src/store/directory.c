/* store/directory.c — streams in blocks, names in chunks, and the list of changes that can be undone.
 *
 * Streams stand in blocks that never move, because the map links them. Names stand one behind the other in chunks. Both
 * only grow at their end, and the undo list is worked off from its end, so undoing a new stream is taking back the last
 * place of each. */
#include "store/directory.h"

#include "base/list.h"
#include "store/array.h"

#include <assert.h>
#include <string.h>

enum {
    NAMES_CHUNK_BYTES = 16 * 1024,
    TABLE_LENGTH_FIRST = 1024
};

static_assert(sizeof(sl_stream) <= 80, "the cost of a stream is stated in directory.h");
static_assert(SL_STREAM_NAME_BYTES_MAX <= UINT16_MAX, "sl_stream.name_bytes");

struct sl_directory_names {
    sl_directory_names *next; /* the one that was filled before */
    size_t used;
    char bytes[NAMES_CHUNK_BYTES];
};

static_assert(SL_STREAM_NAME_BYTES_MAX <= NAMES_CHUNK_BYTES / 8, "little is lost at the end of a chunk");

struct sl_directory_undo {
    uint32_t id;
    bool created; /* it was not there before; else these are its old numbers: */
    uint64_t last;
    sl_retention keep;
};

/* --- names --- */

static sl_err names_reserve(sl_directory *directory, size_t bytes)
{
    sl_directory_names *chunk = directory->names;

    if (chunk != NULL && NAMES_CHUNK_BYTES - chunk->used >= bytes)
        return SL_OK;
    chunk = sl_alloc_take(directory->alloc, sizeof *chunk);
    if (chunk == NULL)
        return SL_ERR_NOMEM;
    chunk->next = directory->names;
    chunk->used = 0;
    directory->names = chunk;
    return SL_OK;
}

/* There must be room. */
static const char *names_push(sl_directory *directory, sl_str name)
{
    sl_directory_names *const chunk = directory->names;
    char *const copy = chunk->bytes + chunk->used;

    memcpy(copy, name.data, name.bytes);
    chunk->used += name.bytes;
    return copy;
}

/* Gives back the newest name. A chunk that becomes empty stays in use, the end of the one before it is lost. */
static void names_pop(sl_directory *directory, size_t bytes)
{
    sl_directory_names *chunk = directory->names;

    if (chunk->used == 0) { /* emptied by an earlier pop: the name is in the one before */
        directory->names = chunk->next;
        sl_alloc_give(directory->alloc, chunk, sizeof *chunk);
        chunk = directory->names;
    }
    assert(chunk->used >= bytes);
    chunk->used -= bytes;
}

static void names_free(sl_directory *directory)
{
    for (sl_directory_names *chunk = directory->names, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        sl_alloc_give(directory->alloc, chunk, sizeof *chunk);
    }
}

/* --- life --- */

sl_err sl_directory_init(sl_directory *directory, const sl_alloc *alloc, sl_hash_seed seed)
{
    sl_map_node **const table = sl_alloc_take(alloc, TABLE_LENGTH_FIRST * sizeof *table);

    if (table == NULL)
        return SL_ERR_NOMEM;
    *directory = (sl_directory){ .alloc = alloc, .seed = seed };
    sl_map_init(&directory->map, table, TABLE_LENGTH_FIRST);
    return SL_OK;
}

void sl_directory_done(sl_directory *directory)
{
    const sl_alloc *const alloc = directory->alloc;

    if (alloc == NULL)
        return;
    names_free(directory);
    for (size_t i = 0; i < directory->block_count; i++)
        sl_alloc_give(alloc, directory->blocks[i], SL_DIRECTORY_BLOCK * sizeof(sl_stream));
    sl_alloc_give(alloc, directory->blocks, directory->block_capacity * sizeof *directory->blocks);
    sl_alloc_give(alloc, directory->undo, directory->undo_capacity * sizeof *directory->undo);
    sl_alloc_give(alloc, directory->map.table, (directory->map.table_mask + 1) * sizeof(sl_map_node *));
    *directory = (sl_directory){ 0 };
}

/* --- asking --- */

static sl_stream *stream_at(const sl_directory *directory, uint32_t id)
{
    assert(id < directory->count);
    return &directory->blocks[id / SL_DIRECTORY_BLOCK][id % SL_DIRECTORY_BLOCK];
}

const sl_stream *sl_directory_at(const sl_directory *directory, uint32_t id)
{
    return stream_at(directory, id);
}

uint64_t sl_directory_hash(const sl_directory *directory, sl_str name)
{
    return sl_hash(directory->seed, name.data, name.bytes);
}

void sl_directory_fetch(const sl_directory *directory, uint64_t hash)
{
    __builtin_prefetch(&directory->map.table[hash & directory->map.table_mask]);
}

const sl_stream *sl_directory_guess(const sl_directory *directory, uint64_t hash)
{
    const sl_map_node *const node = directory->map.table[hash & directory->map.table_mask];

    return node == NULL ? NULL : SL_CONTAINER_OF(node, const sl_stream, node);
}

const sl_stream *sl_directory_find_hashed(const sl_directory *directory, sl_str name, uint64_t hash)
{
    for (const sl_map_node *node = sl_map_find(&directory->map, hash); node != NULL;
         node = sl_map_next(node)) {
        const sl_stream *const stream = SL_CONTAINER_OF(node, const sl_stream, node);

        if (sl_str_equal(sl_stream_name(stream), name))
            return stream;
    }
    return NULL;
}

const sl_stream *sl_directory_find(const sl_directory *directory, sl_str name)
{
    return sl_directory_find_hashed(directory, name, sl_directory_hash(directory, name));
}

static bool is_tombstoned(const sl_stream *stream)
{
    return stream != NULL && stream->last == SL_REVISION_MAX;
}

static bool is_soft_deleted(const sl_stream *stream)
{
    return stream->keep.truncate_before == SL_REVISION_MAX;
}

static const sl_stream *partner_of(const sl_directory *directory, const sl_stream *stream)
{
    return stream->partner == SL_STREAM_NO_ID ? NULL : stream_at(directory, stream->partner);
}

/* The stream that `name` is the metadata of, NULL when it is none or that is not there. */
static const sl_stream *owner_of(const sl_directory *directory, sl_str name)
{
    sl_str owner;

    return sl_metadata_owner(name, &owner) ? sl_directory_find(directory, owner) : NULL;
}

sl_known sl_directory_known(const sl_directory *directory, sl_str name, const sl_stream *stream)
{
    sl_known known = { .last = SL_REVISION_NONE };

    if (stream != NULL) {
        const sl_stream *const partner = partner_of(directory, stream);

        known.last = stream->last;
        known.soft_deleted = is_soft_deleted(stream);
        known.has_metadata = !stream->is_metadata && partner != NULL && partner->last != SL_REVISION_NONE;
    }
    known.tombstoned = is_tombstoned(stream) || is_tombstoned(owner_of(directory, name));
    return known;
}

sl_stream_state sl_directory_state(const sl_directory *directory, const sl_stream *stream)
{
    if (is_tombstoned(stream) || (stream->is_metadata && is_tombstoned(partner_of(directory, stream))))
        return SL_STREAM_TOMBSTONED;
    if (is_soft_deleted(stream))
        return SL_STREAM_SOFT_DELETED;
    return stream->last == SL_REVISION_NONE ? SL_STREAM_MISSING : SL_STREAM_LIVE;
}

uint64_t sl_directory_first(const sl_stream *stream)
{
    const uint64_t max_count = stream->is_metadata ? 1 : stream->keep.max_count;
    const uint64_t event_count = stream->last + 1; /* 0 without events */
    const uint64_t counted = max_count == 0 || event_count <= max_count ? 0 : event_count - max_count;

    if (is_tombstoned(stream))
        return SL_REVISION_MAX;
    return counted > stream->keep.truncate_before ? counted : stream->keep.truncate_before;
}

bool sl_directory_expired(const sl_stream *stream, uint64_t created_ns, uint64_t now_ns)
{
    const uint64_t age_ns = created_ns < now_ns ? now_ns - created_ns : 0;
    const uint64_t max_age_s = stream->keep.max_age_s;

    if (max_age_s == 0 || max_age_s > UINT64_MAX / UINT64_C(1000000000))
        return false;
    return age_ns > max_age_s * UINT64_C(1000000000);
}

void sl_directory_info(const sl_directory *directory, sl_str name, sl_stream_info *ret_info)
{
    const sl_stream *const stream = sl_directory_find(directory, name);

    *ret_info = (sl_stream_info){ .state = SL_STREAM_MISSING, .revision = SL_REVISION_NONE };
    if (is_tombstoned(owner_of(directory, name)))
        ret_info->state = SL_STREAM_TOMBSTONED;
    if (stream == NULL)
        return;
    *ret_info = (sl_stream_info){ .state = sl_directory_state(directory, stream),
                                  .revision = stream->last,
                                  .first = sl_directory_first(stream),
                                  .max_count = stream->is_metadata ? 1 : stream->keep.max_count,
                                  .max_age_s = stream->keep.max_age_s,
                                  .truncate_before = stream->keep.truncate_before };
}

/* --- changing --- */

static sl_err undo_reserve(sl_directory *directory)
{
    sl_directory_undo *const undo =
        sl_array_grow(directory->alloc, directory->undo, &directory->undo_capacity, sizeof *undo,
                      directory->undo_count + 1);

    if (undo == NULL)
        return SL_ERR_NOMEM;
    directory->undo = undo;
    return SL_OK;
}

static sl_err block_reserve(sl_directory *directory)
{
    sl_stream **blocks, *block;

    if (directory->count < directory->block_count * SL_DIRECTORY_BLOCK)
        return SL_OK;
    blocks = sl_array_grow(directory->alloc, directory->blocks, &directory->block_capacity, sizeof *blocks,
                           directory->block_count + 1);
    if (blocks == NULL)
        return SL_ERR_NOMEM;
    directory->blocks = blocks;
    block = sl_alloc_take(directory->alloc, SL_DIRECTORY_BLOCK * sizeof *block);
    if (block == NULL)
        return SL_ERR_NOMEM;
    directory->blocks[directory->block_count++] = block;
    return SL_OK;
}

static sl_err map_reserve(sl_directory *directory)
{
    const size_t old_length = directory->map.table_mask + 1;
    sl_map_node **const old_table = directory->map.table;
    sl_map_node **table;

    if (directory->map.count < old_length)
        return SL_OK;
    table = sl_alloc_take(directory->alloc, 2 * old_length * sizeof *table);
    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_resize(&directory->map, table, 2 * old_length);
    sl_alloc_give(directory->alloc, old_table, old_length * sizeof(sl_map_node *));
    return SL_OK;
}

/* Everything that can fail comes first, so that a stream is made completely or not at all. */
static sl_err create(sl_directory *directory, sl_str name, uint32_t partner, sl_stream **ret_stream)
{
    sl_stream *stream;

    assert(name.bytes > 0 && name.bytes <= SL_STREAM_NAME_BYTES_MAX);
    if (directory->count == SL_STREAM_NO_ID)
        return SL_ERR_FULL;
    if (names_reserve(directory, name.bytes) != SL_OK || block_reserve(directory) != SL_OK ||
        map_reserve(directory) != SL_OK || undo_reserve(directory) != SL_OK)
        return SL_ERR_NOMEM;
    directory->undo[directory->undo_count++] = (sl_directory_undo){ .id = directory->count, .created = true };
    directory->count++;
    stream = stream_at(directory, directory->count - 1);
    *stream = (sl_stream){ .name = names_push(directory, name),
                           .name_bytes = (uint16_t)name.bytes,
                           .last = SL_REVISION_NONE,
                           .id = directory->count - 1,
                           .partner = partner,
                           .is_metadata = partner != SL_STREAM_NO_ID };
    sl_map_insert(&directory->map, &stream->node, sl_hash(directory->seed, name.data, name.bytes));
    *ret_stream = stream;
    return SL_OK;
}

sl_err sl_directory_add(sl_directory *directory, sl_str name, uint32_t *ret_id)
{
    const sl_stream *const found = sl_directory_find(directory, name);
    uint32_t partner = SL_STREAM_NO_ID;
    sl_stream *made = NULL;
    sl_str owner;
    sl_err err = SL_OK;

    if (found == NULL && sl_metadata_owner(name, &owner))
        err = sl_directory_add(directory, owner, &partner); /* one level: store.c lets no deeper name in */
    if (found == NULL && err == SL_OK)
        err = create(directory, name, partner, &made);
    if (err != SL_OK)
        return err;
    if (partner != SL_STREAM_NO_ID)
        stream_at(directory, partner)->partner = made->id;
    *ret_id = found != NULL ? found->id : made->id;
    return SL_OK;
}

sl_err sl_directory_set(sl_directory *directory, uint32_t id, uint64_t last, const sl_retention *keep)
{
    sl_stream *const stream = stream_at(directory, id);

    if (undo_reserve(directory) != SL_OK)
        return SL_ERR_NOMEM;
    directory->undo[directory->undo_count++] =
        (sl_directory_undo){ .id = id, .last = stream->last, .keep = stream->keep };
    stream->last = last;
    stream->keep = *keep;
    return SL_OK;
}

sl_err sl_directory_event(sl_directory *directory, uint32_t id, uint64_t revision, sl_str data)
{
    const sl_stream *const stream = stream_at(directory, id);
    const sl_retention unchanged = stream->keep;
    sl_err err = sl_directory_set(directory, id, revision, &unchanged);

    if (err == SL_OK && stream->is_metadata) {
        const sl_retention keep = sl_metadata_parse(data);

        err =
            sl_directory_set(directory, stream->partner, stream_at(directory, stream->partner)->last, &keep);
    }
    return err;
}

/* --- undoing --- */

size_t sl_directory_mark(const sl_directory *directory)
{
    return directory->undo_count;
}

static void uncreate(sl_directory *directory, uint32_t id)
{
    sl_stream *const stream = stream_at(directory, id);

    assert(id == directory->count - 1);
    if (stream->is_metadata)
        stream_at(directory, stream->partner)->partner = SL_STREAM_NO_ID;
    sl_map_remove(&directory->map, &stream->node);
    names_pop(directory, stream->name_bytes);
    directory->count--;
}

void sl_directory_rollback(sl_directory *directory, size_t mark)
{
    assert(mark <= directory->undo_count);
    while (directory->undo_count > mark) {
        const sl_directory_undo *const undo = &directory->undo[--directory->undo_count];
        sl_stream *const stream = stream_at(directory, undo->id);

        if (undo->created) {
            uncreate(directory, undo->id);
            continue;
        }
        stream->last = undo->last;
        stream->keep = undo->keep;
    }
}

void sl_directory_forget(sl_directory *directory)
{
    directory->undo_count = 0;
}
