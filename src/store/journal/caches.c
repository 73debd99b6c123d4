/* store/journal/caches.c — the one walk over a segment from which its index and its roll are made, or an index verified. */
#include "store/journal/caches.h"

#include "store/journal/index_build.h"
#include "store/journal/records.h"
#include "store/journal/roll_build.h"

typedef struct walk {
    const sl_segment_ref *segment;
    bool wants_index, wants_roll;
    sl_index_builder index;
    sl_roll_builder roll;
} walk;

static sl_err visit_event(walk *w, const sl_record_view *record, uint32_t offset)
{
    sl_event event;
    uint64_t hash;
    sl_err err = sl_event_get(record, &event);

    if (err != SL_OK)
        return err;
    hash = sl_stream_hash(w->segment->store, event.stream);
    if (w->wants_index)
        err = sl_index_builder_event(&w->index, hash, event.revision, offset);
    if (err == SL_OK && w->wants_roll)
        err = sl_roll_builder_event(&w->roll, hash, &event);
    return err;
}

static sl_err visit_record(void *ctx, const sl_record_view *record, sl_record_place place)
{
    walk *const w = ctx;
    sl_err err = SL_OK;

    if (w->wants_index)
        err = sl_index_builder_record(&w->index, record->position, place);
    if (err == SL_OK && record->kind == SL_RECORD_EVENT)
        err = visit_event(w, record, place.offset);
    return err;
}

/* Reads the segment; walk_done() in any case. */
static sl_err walk_segment(walk *w, uint64_t *ret_offset)
{
    sl_err err = SL_OK;

    if (w->wants_index)
        sl_index_builder_init(&w->index, w->segment);
    if (w->wants_roll)
        err = sl_roll_builder_init(&w->roll, w->segment);
    if (err == SL_OK)
        err = sl_segment_each(w->segment, visit_record, w, ret_offset);
    if (err == SL_OK && w->wants_index)
        err = sl_index_builder_finish(&w->index);
    return err;
}

static void walk_done(walk *w)
{
    sl_index_builder_done(&w->index);
    sl_roll_builder_done(&w->roll);
}

static sl_err build(sl_disk *disk, walk *w, uint64_t *ret_offset)
{
    sl_err err = walk_segment(w, ret_offset);

    if (err == SL_OK && w->wants_index)
        err = sl_index_builder_write(&w->index, disk);
    if (err == SL_OK && w->wants_roll)
        err = sl_roll_builder_write(&w->roll, disk);
    walk_done(w);
    return err;
}

sl_err sl_index_and_roll_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset)
{
    walk w = { .segment = segment, .wants_index = true, .wants_roll = true };

    return build(disk, &w, ret_offset);
}

sl_err sl_index_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset)
{
    walk w = { .segment = segment, .wants_index = true };

    return build(disk, &w, ret_offset);
}

sl_err sl_roll_build(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset)
{
    walk w = { .segment = segment, .wants_roll = true };

    return build(disk, &w, ret_offset);
}

sl_err sl_index_verify(sl_disk *disk, const sl_segment_ref *segment, uint64_t *ret_offset)
{
    walk w = { .segment = segment, .wants_index = true };
    char name[SL_CACHE_NAME_BYTES];
    uint64_t segment_offset = 0;
    sl_file *file;
    sl_err err;

    sl_cache_name(segment->number, SL_INDEX_SUFFIX, name);
    err = disk->ops->open(disk, name, &file);
    if (err != SL_OK)
        return err;
    *ret_offset = 0;
    err = walk_segment(&w, &segment_offset);
    if (err == SL_OK)
        err = sl_index_builder_compare(&w.index, file, ret_offset);
    walk_done(&w);
    disk->ops->close(file);
    return err;
}
