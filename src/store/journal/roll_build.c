/* store/journal/roll_build.c — collecting the streams of a segment. */
#include "store/journal/roll_build.h"

#include "base/list.h"
#include "store/journal/roll_file.h"

#include <stdlib.h>

enum {
    TABLE_LENGTH_FIRST = 1024,
    CHUNK_BYTES = 256 * 1024,
};

typedef struct stream {
    sl_map_node node; /* with the hash */
    sl_roll_entry entry;
} stream;

static stream *stream_of(sl_map_node *node)
{
    return SL_CONTAINER_OF(node, stream, node);
}

sl_err sl_roll_builder_init(sl_roll_builder *builder, const sl_segment_ref *segment)
{
    sl_map_node **const table = malloc(TABLE_LENGTH_FIRST * sizeof *table);

    *builder = (sl_roll_builder){ .segment = segment };
    sl_arena_init(&builder->arena, &sl_alloc_default,
                  (sl_arena_sizes){ .chunk_bytes = CHUNK_BYTES, .limit_bytes = SIZE_MAX });
    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_init(&builder->map, table, TABLE_LENGTH_FIRST);
    return SL_OK;
}

void sl_roll_builder_done(sl_roll_builder *builder)
{
    free(builder->map.table);
    sl_arena_done(&builder->arena);
    *builder = (sl_roll_builder){ 0 };
}

/* --- collecting --- */

static stream *find(const sl_roll_builder *builder, uint64_t hash, sl_str name)
{
    sl_map_node *node = sl_map_find(&builder->map, hash);

    while (node != NULL && !sl_str_equal(stream_of(node)->entry.name, name))
        node = sl_map_next(node);
    return node == NULL ? NULL : stream_of(node);
}

static sl_err grow_table(sl_map *map)
{
    const size_t length = 2 * (map->table_mask + 1);
    sl_map_node **const old = map->table, **const table = malloc(length * sizeof *table);

    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_resize(map, table, length);
    free(old);
    return SL_OK;
}

static stream *add(sl_roll_builder *builder, uint64_t hash, sl_str name)
{
    stream *const s = sl_arena_alloc_zero(&builder->arena, sizeof *s);
    const char *const copy = sl_arena_copy(&builder->arena, name.data, name.bytes);
    sl_str owner;

    if (s == NULL || copy == NULL)
        return NULL;
    if (builder->map.count > builder->map.table_mask && grow_table(&builder->map) != SL_OK)
        return NULL;
    s->entry.name = (sl_str){ copy, name.bytes };
    s->entry.is_metadata = sl_metadata_owner(name, &owner);
    sl_map_insert(&builder->map, &s->node, hash);
    return s;
}

sl_err sl_roll_builder_event(sl_roll_builder *builder, uint64_t stream_hash, const sl_event *event)
{
    stream *s = find(builder, stream_hash, event->stream);

    if (s == NULL)
        s = add(builder, stream_hash, event->stream);
    if (s == NULL)
        return SL_ERR_NOMEM;
    s->entry.last = event->revision;
    if (s->entry.is_metadata)
        s->entry.keep = sl_metadata_parse(event->data);
    return SL_OK;
}

/* --- writing --- */

typedef struct ranked {
    uint64_t hash; /* beside the pointer, so that sorting rarely looks at streams */
    const stream *stream;
} ranked;

static int compare(const void *a, const void *b)
{
    const ranked *const left = a, *const right = b;

    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return sl_str_compare(left->stream->entry.name, right->stream->entry.name);
}

/* All streams in the order of the file; to be freed. NULL: out of memory. */
static ranked *sorted_streams(const sl_map *map)
{
    ranked *const streams = malloc((map->count + 1) * sizeof *streams);
    size_t count = 0;

    if (streams == NULL)
        return NULL;
    for (size_t i = 0; i <= map->table_mask; i++)
        for (sl_map_node *node = map->table[i]; node != NULL; node = node->next)
            streams[count++] = (ranked){ .hash = node->hash, .stream = stream_of(node) };
    qsort(streams, count, sizeof *streams, compare);
    return streams;
}

static sl_err write_streams(sl_roll_writer *writer, const ranked *streams, size_t count)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < count && err == SL_OK; i++)
        err = sl_roll_writer_add(writer, &streams[i].stream->entry);
    return err == SL_OK ? sl_roll_writer_commit(writer) : err;
}

sl_err sl_roll_builder_write(const sl_roll_builder *builder, sl_disk *disk)
{
    const sl_segment_ref *const segment = builder->segment;
    ranked *const streams = sorted_streams(&builder->map);
    sl_roll_writer writer;
    sl_err err;

    if (streams == NULL)
        return SL_ERR_NOMEM;
    err = sl_roll_writer_open(&writer, disk, segment->store, segment->number, segment->number);
    if (err == SL_OK)
        err = write_streams(&writer, streams, builder->map.count);
    sl_roll_writer_done(&writer);
    free(streams);
    return err;
}
