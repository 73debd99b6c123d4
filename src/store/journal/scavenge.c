/* store/journal/scavenge.c — see scavenge.h.
 *
 * Records are copied byte for byte, checksum included: it depends on store and segment number, and these stay. Frames are
 * made anew, larger and sparse: that a batch is all there or not was settled when the segment was sealed. */
#include "store/journal/scavenge.h"

#include "store/journal/groups.h"
#include "store/journal/index.h"
#include "store/journal/log.h"
#include "store/journal/records.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_BYTES_ABOUT = 256 * 1024
};

static const char passing_name[] = "rewrite.tmp";

/* --- what may go --- */

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = ((const sl_doomed *)a)->hash, y = ((const sl_doomed *)b)->hash;

    return (x > y) - (x < y);
}

void sl_doom_sort(sl_doomed *streams, size_t stream_count)
{
    if (stream_count > 0)
        qsort(streams, stream_count, sizeof *streams, by_hash);
}

static const sl_doomed *find(const sl_doom *doom, uint64_t hash, sl_str name)
{
    size_t low = 0, high = doom->stream_count;

    while (low < high) { /* the first one that is not below */
        const size_t middle = low + (high - low) / 2;
        if (doom->streams[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < doom->stream_count && doom->streams[low].hash == hash; low++)
        if (sl_str_equal(doom->streams[low].name, name))
            return &doom->streams[low];
    return NULL;
}

static bool is_expired(const sl_doom *doom, const sl_doomed *stream, uint64_t created_ns)
{
    const uint64_t age_ns = created_ns < doom->now_ns ? doom->now_ns - created_ns : 0;

    if (stream->max_age_s == 0 || stream->max_age_s > UINT64_MAX / UINT64_C(1000000000))
        return false;
    return age_ns > stream->max_age_s * UINT64_C(1000000000);
}

static bool is_dead_event(const sl_doom *doom, sl_uuid store, const sl_event *event)
{
    const sl_doomed *const stream =
        doom->stream_count == 0 ? NULL : find(doom, sl_stream_hash(store, event->stream), event->stream);

    if (stream == NULL || event->revision == stream->last || event->revision == SL_REVISION_MAX)
        return false;
    return event->revision < stream->first || is_expired(doom, stream, event->created_ns);
}

static bool is_of_groups(uint8_t kind)
{
    return journal_is_group_record(kind) || kind == SL_RECORD_GROUPS_FROM;
}

/* OPEN records stay: they tell the epoch. */
static sl_err judge(const sl_segment_ref *segment, const sl_doom *doom, const sl_record_view *record,
                    bool *ret_dead)
{
    sl_event event;

    *ret_dead = record->kind == SL_RECORD_CLOSE;
    if (is_of_groups(record->kind))
        *ret_dead = segment->number < doom->groups_from;
    if (record->kind != SL_RECORD_EVENT)
        return SL_OK;
    if (sl_event_get(record, &event) != SL_OK)
        return SL_ERR_CORRUPT;
    *ret_dead = is_dead_event(doom, segment->store, &event);
    return SL_OK;
}

/* --- counting --- */

typedef struct counting {
    const sl_segment_ref *segment;
    const sl_doom *doom;
    sl_dead dead;
} counting;

static sl_err count_record(void *ctx, const sl_record_view *record, sl_record_place place)
{
    counting *const c = ctx;
    bool is_dead = false;
    const sl_err err = judge(c->segment, c->doom, record, &is_dead);

    (void)place;
    if (!is_dead) {
        c->dead.live_bytes += record->bytes;
        return err;
    }
    c->dead.bytes += record->bytes;
    c->dead.records++;
    c->dead.events += record->kind == SL_RECORD_EVENT;
    c->dead.has_group_records = c->dead.has_group_records || is_of_groups(record->kind);
    return err;
}

sl_err sl_scavenge_count(const sl_segment_ref *segment, const sl_doom *doom, sl_dead *ret_dead,
                         uint64_t *ret_offset)
{
    counting c = { .segment = segment, .doom = doom };
    const sl_err err = sl_segment_each(segment, count_record, &c, ret_offset);

    if (err == SL_OK)
        *ret_dead = c.dead;
    return err;
}

/* --- rewriting --- */

typedef struct rewriting {
    const sl_segment_ref *segment;
    const sl_doom *doom;
    sl_file *file;
    uint64_t offset; /* in the new file */
    uint64_t epoch;  /* of the frame that is read */
    uint8_t *frame;
    size_t frame_bytes, frame_capacity;
    sl_frame_header header; /* of the frame in the making */
} rewriting;

static sl_err flush(rewriting *w)
{
    sl_err err;

    if (w->header.record_count == 0)
        return SL_OK;
    w->header.bytes = (uint32_t)w->frame_bytes;
    sl_frame_header_put(&w->header, w->segment->seed, w->frame);
    err = w->file->disk->ops->write(w->file, w->offset, w->frame, w->frame_bytes);
    w->offset += w->frame_bytes;
    w->frame_bytes = 0;
    w->header = (sl_frame_header){ 0 };
    return err;
}

static sl_err reserve(rewriting *w, size_t bytes)
{
    const size_t wanted = bytes > FRAME_BYTES_ABOUT ? bytes : FRAME_BYTES_ABOUT;
    uint8_t *more;

    if (bytes <= w->frame_capacity)
        return SL_OK;
    more = realloc(w->frame, wanted);
    if (more == NULL)
        return SL_ERR_NOMEM;
    w->frame = more;
    w->frame_capacity = wanted;
    return SL_OK;
}

static sl_err keep(rewriting *w, const sl_record_view *record)
{
    const uint8_t *const bytes = record->payload - SL_RECORD_HEADER_BYTES;
    sl_err err = SL_OK;

    if (w->frame_bytes + record->bytes > FRAME_BYTES_ABOUT || w->header.epoch != w->epoch)
        err = flush(w);
    if (err == SL_OK)
        err = reserve(w, SL_FRAME_HEADER_BYTES + w->frame_bytes + record->bytes);
    if (err != SL_OK)
        return err;
    if (w->header.record_count == 0) {
        w->header = (sl_frame_header){ .first_position = record->position,
                                       .durable_below = w->segment->end,
                                       .epoch = w->epoch,
                                       .sparse = true };
        w->frame_bytes = SL_FRAME_HEADER_BYTES;
    }
    memcpy(w->frame + w->frame_bytes, bytes, record->bytes);
    w->frame_bytes += record->bytes;
    w->header.record_count++;
    return SL_OK;
}

static sl_err rewrite_record(void *ctx, const sl_record_view *record, sl_record_place place)
{
    rewriting *const w = ctx;
    bool is_dead = false;
    const sl_err err = judge(w->segment, w->doom, record, &is_dead);

    (void)place;
    return err != SL_OK || is_dead ? err : keep(w, record);
}

static sl_err rewrite_frame(void *ctx, const sl_frame_view *frame)
{
    rewriting *const w = ctx;

    w->epoch = frame->header.epoch;
    return sl_frame_each(frame, rewrite_record, w);
}

static sl_segment_header new_header(const rewriting *w, const sl_dead *dead, uint64_t old_groups_from)
{
    const uint64_t groups_from = dead->has_group_records ? w->doom->groups_from : 0;

    return (sl_segment_header){ .version = SL_JOURNAL_VERSION,
                                .number = w->segment->number,
                                .segment_bytes = w->offset,
                                .store = w->segment->store,
                                .rewrites = w->segment->rewrites + 1,
                                .first = w->segment->first,
                                .end = w->segment->end,
                                .groups_from =
                                    groups_from > old_groups_from ? groups_from : old_groups_from };
}

/* The header is written last: only then is its size known. */
static sl_err write_all(rewriting *w, const sl_dead *dead, sl_segment_header *ret_header,
                        uint64_t *ret_offset)
{
    const sl_disk_ops *const ops = w->file->disk->ops;
    uint8_t block[SL_SEGMENT_HEADER_BYTES];
    sl_segment_header old = { 0 };
    sl_err err = ops->read(w->segment->file, 0, block, sizeof block);

    if (err == SL_OK)
        err = sl_segment_header_get(block, &old);
    memset(block, 0, sizeof block);
    if (err == SL_OK)
        err = ops->write(w->file, 0, block, sizeof block);
    if (err == SL_OK)
        err = sl_segment_each_frame(w->segment, rewrite_frame, w, ret_offset);
    if (err == SL_OK)
        err = flush(w);
    *ret_header = new_header(w, dead, old.groups_from);
    sl_segment_header_put(ret_header, block);
    if (err == SL_OK)
        err = ops->write(w->file, 0, block, sizeof block);
    return err == SL_OK ? ops->sync(w->file) : err;
}

static sl_err take_place(sl_disk *disk, uint64_t number)
{
    char name[SL_SEGMENT_NAME_BYTES];

    /* First, because an index of another rewriting could not be told from that of this one. */
    const sl_err err = sl_index_remove(disk, number);

    if (err != SL_OK && err != SL_ERR_NOT_FOUND)
        return err;
    sl_segment_name(number, ".seg", name);
    return disk->ops->rename(disk, passing_name, name);
}

sl_err sl_scavenge_rewrite(sl_disk *disk, const sl_segment_ref *segment, const sl_doom *doom,
                           const sl_dead *dead, sl_file **ret_file, sl_segment_header *ret_header,
                           uint64_t *ret_offset)
{
    rewriting w = { .segment = segment, .doom = doom, .offset = SL_SEGMENT_HEADER_BYTES };
    sl_err err;

    (void)disk->ops->remove(disk, passing_name); /* what a crash left, if anything */
    err = disk->ops->create(disk, passing_name, 0, NULL, &w.file);
    if (err != SL_OK)
        return err;
    err = write_all(&w, dead, ret_header, ret_offset);
    if (err == SL_OK)
        err = take_place(disk, segment->number);
    free(w.frame);
    if (err != SL_OK) {
        disk->ops->close(w.file);
        (void)disk->ops->remove(disk, passing_name);
        return err;
    }
    *ret_file = w.file;
    return SL_OK;
}
