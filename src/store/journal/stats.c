/* store/journal/stats.c — what is in a journal, by one walk over it.
 *
 * Streams are counted with the directory that the store itself uses, so "hidden" means here what it means for a reader. How
 * many events of a stream are hidden follows from three numbers: how many there are, the last revision, and the first one
 * that is shown; their bytes are taken as the average of the stream. Exact numbers would need a second walk. */
#include "base/cleanup.h"
#include "store/array.h"
#include "store/directory.h"
#include "store/journal/cache_file.h"
#include "store/journal/groups.h"
#include "store/journal/index_format.h"
#include "store/journal/inspect_private.h"
#include "store/journal/roll_file.h"
#include "store/journal/walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct tally { /* of a stream */
    uint64_t events, bytes;
} tally;

typedef struct group_bytes { /* of a segment */
    uint64_t segment, bytes;
} group_bytes;

typedef struct counting {
    const sl_inspection *how;
    sl_disk *disk;
    sl_journal_stats sums;
    sl_directory directory;
    tally *tallies; /* by id of the stream */
    size_t tally_count, tally_capacity;
    uint64_t *groups; /* numbers of those that exist, ascending */
    size_t group_count, group_capacity;
    group_bytes *by_segment;
    size_t segment_count, segment_capacity;
    uint64_t groups_from;
} counting;

/* --- groups --- */

static size_t group_place(const counting *c, uint64_t group)
{
    size_t low = 0, high = c->group_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->groups[middle] < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sl_err add_group(counting *c, uint64_t group)
{
    const size_t at = group_place(c, group);
    uint64_t *larger;

    if (at < c->group_count && c->groups[at] == group)
        return SL_OK;
    larger =
        sl_array_grow(&sl_alloc_default, c->groups, &c->group_capacity, sizeof *larger, c->group_count + 1);
    if (larger == NULL)
        return SL_ERR_NOMEM;
    c->groups = larger;
    memmove(larger + at + 1, larger + at, (c->group_count - at) * sizeof *larger);
    larger[at] = group;
    c->group_count++;
    return SL_OK;
}

static void remove_group(counting *c, uint64_t group)
{
    const size_t at = group_place(c, group);

    if (at == c->group_count || c->groups[at] != group)
        return;
    c->group_count--;
    memmove(c->groups + at, c->groups + at + 1, (c->group_count - at) * sizeof *c->groups);
}

static sl_err count_group(counting *c, const sl_journal_record *record)
{
    c->by_segment[c->segment_count - 1].bytes += record->bytes;
    if (record->kind == SL_JOURNAL_GROUP_DELETE)
        remove_group(c, record->group);
    else if (record->kind == SL_JOURNAL_GROUP_CREATE || record->kind == SL_JOURNAL_GROUP_STATE)
        return add_group(c, record->group);
    return SL_OK;
}

/* --- events --- */

static sl_err tallies_reserve(counting *c)
{
    tally *larger;

    if (c->directory.count <= c->tally_count)
        return SL_OK;
    larger =
        sl_array_grow(&sl_alloc_default, c->tallies, &c->tally_capacity, sizeof *larger, c->directory.count);
    if (larger == NULL)
        return SL_ERR_NOMEM;
    c->tallies = larger;
    for (; c->tally_count < c->directory.count; c->tally_count++)
        larger[c->tally_count] = (tally){ 0 };
    return SL_OK;
}

static sl_err count_event(counting *c, const sl_journal_record *record)
{
    const sl_event *const event = &record->event;
    uint32_t id;
    sl_err err = sl_directory_add(&c->directory, event->stream, &id);

    if (err == SL_OK)
        err = sl_directory_event(&c->directory, id, event->revision, event->data);
    sl_directory_forget(&c->directory);
    if (err == SL_OK)
        err = tallies_reserve(c);
    if (err != SL_OK)
        return err;
    c->tallies[id].events++;
    c->tallies[id].bytes += record->bytes;
    c->sums.event_data_bytes += event->data.bytes + event->metadata.bytes;
    return SL_OK;
}

/* --- the walk --- */

static sl_err count_record(void *ctx, const sl_record_view *view, sl_record_place place)
{
    counting *const c = ctx;
    const unsigned kind = view->kind < SL_JOURNAL_KIND_COUNT_ ? view->kind : 0;
    sl_journal_record record;

    (void)place;
    sl_journal_record_read(view, &record);
    c->sums.records[kind]++;
    c->sums.record_bytes[kind] += record.bytes;
    c->sums.damages += record.malformed;
    if (record.malformed)
        return SL_OK;
    if (kind == SL_JOURNAL_EVENT)
        return count_event(c, &record);
    if (kind == SL_JOURNAL_GROUPS_FROM)
        c->groups_from = record.groups_from;
    return journal_is_group_record(view->kind) ? count_group(c, &record) : SL_OK;
}

static sl_err count_frame(void *ctx, const sl_segment_ref *segment, const sl_frame_view *frame)
{
    counting *const c = ctx;

    (void)segment;
    c->sums.used_bytes += frame->header.bytes;
    c->sums.epoch = sl_max_u64(c->sums.epoch, frame->header.epoch);
    return sl_frame_each(frame, count_record, c);
}

static sl_err begin_segment(void *ctx, const sl_segment_ref *segment)
{
    counting *const c = ctx;
    group_bytes *const larger = sl_array_grow(&sl_alloc_default, c->by_segment, &c->segment_capacity,
                                              sizeof *larger, c->segment_count + 1);

    if (larger == NULL)
        return SL_ERR_NOMEM;
    c->by_segment = larger;
    larger[c->segment_count++] = (group_bytes){ .segment = segment->number };
    return SL_OK;
}

static sl_err end_segment(void *ctx, const sl_walked *walked)
{
    counting *const c = ctx;

    c->sums.segments++;
    c->sums.rewritten_segments += walked->segment.rewrites > 0;
    c->sums.segment_bytes += walked->segment.size_bytes;
    c->sums.used_bytes += SL_SEGMENT_HEADER_BYTES;
    c->sums.first = c->sums.first == 0 ? walked->segment.first : c->sums.first;
    c->sums.end = walked->segment.end;
    return SL_OK;
}

static void count_finding(void *ctx, const sl_finding *finding)
{
    counting *const c = ctx;

    c->sums.damages += finding->is_damage;
    if (c->how->finding != NULL)
        c->how->finding(c->how->ctx, finding);
}

/* --- what follows from it --- */

static void count_cache(void *ctx, const char *name)
{
    counting *const c = ctx;
    uint64_t number;
    const bool is_index = sl_cache_number(name, SL_INDEX_SUFFIX, &number);
    sl_file *file;

    if (!is_index && !sl_cache_number(name, SL_ROLL_SUFFIX, &number))
        return;
    if (c->disk->ops->open(c->disk, name, &file) != SL_OK)
        return; /* merged or rewritten meanwhile */
    *(is_index ? &c->sums.indexes : &c->sums.rolls) += 1;
    *(is_index ? &c->sums.index_bytes : &c->sums.roll_bytes) += c->disk->ops->size(file);
    c->disk->ops->close(file);
}

static void count_hidden(counting *c, const sl_stream *stream, const tally *t)
{
    const sl_stream_state state = sl_directory_state(&c->directory, stream);
    const uint64_t first = sl_directory_first(stream);
    uint64_t shown = stream->last != SL_REVISION_NONE && stream->last >= first ? stream->last - first + 1 : 0;

    if (state == SL_STREAM_TOMBSTONED)
        shown = stream->is_metadata ? 0 : 1; /* the event that says so */
    if (shown >= t->events)
        return;
    c->sums.hidden_events += t->events - shown;
    c->sums.hidden_bytes += t->bytes / t->events * (t->events - shown);
}

static void keep_if_large(sl_journal_stats *sums, const sl_stream *stream, const tally *t)
{
    uint32_t at = sums->largest_count;
    sl_stream_stats *const largest = sums->largest;

    if (at == SL_STATS_STREAMS_MAX && t->bytes <= largest[at - 1].bytes)
        return;
    at -= at == SL_STATS_STREAMS_MAX;
    sums->largest_count = at + 1;
    for (; at > 0 && largest[at - 1].bytes < t->bytes; at--)
        largest[at] = largest[at - 1];
    largest[at] =
        (sl_stream_stats){ .name_bytes = stream->name_bytes, .events = t->events, .bytes = t->bytes };
    memcpy(largest[at].name, stream->name, stream->name_bytes);
}

static void count_streams(counting *c)
{
    for (uint32_t id = 0; id < c->tally_count; id++) {
        const sl_stream *const stream = sl_directory_at(&c->directory, id);
        const sl_stream_state state = sl_directory_state(&c->directory, stream);

        if (c->tallies[id].events == 0) /* only its metadata has events */
            continue;
        c->sums.streams++;
        c->sums.tombstoned += state == SL_STREAM_TOMBSTONED && !stream->is_metadata;
        c->sums.soft_deleted += state == SL_STREAM_SOFT_DELETED && !stream->is_metadata;
        count_hidden(c, stream, &c->tallies[id]);
        keep_if_large(&c->sums, stream, &c->tallies[id]);
    }
    c->sums.groups = c->group_count;
    for (size_t i = 0; i < c->segment_count; i++)
        if (c->by_segment[i].segment < c->groups_from)
            c->sums.old_group_bytes += c->by_segment[i].bytes;
    c->sums.opened = c->sums.records[SL_JOURNAL_OPEN];
    c->sums.closed = c->sums.records[SL_JOURNAL_CLOSE];
}

static sl_err count_all(counting *c, sl_walk *walk)
{
    sl_err err = sl_walk_run(walk);

    if (err == SL_OK)
        err = c->disk->ops->list(c->disk, count_cache, c);
    if (err != SL_OK)
        return err;
    c->sums.store = walk->store;
    count_streams(c);
    return SL_OK;
}

static void counting_done(counting *c)
{
    sl_directory_done(&c->directory);
    sl_alloc_give(&sl_alloc_default, c->tallies, c->tally_capacity * sizeof *c->tallies);
    sl_alloc_give(&sl_alloc_default, c->groups, c->group_capacity * sizeof *c->groups);
    sl_alloc_give(&sl_alloc_default, c->by_segment, c->segment_capacity * sizeof *c->by_segment);
}

sl_err sl_stats_disk(sl_disk *disk, const sl_inspection *how, sl_journal_stats *ret_stats)
{
    counting c = { .how = how, .disk = disk };
    const sl_walk_visitor visitor = { .ctx = &c,
                                      .begin = begin_segment,
                                      .frame = count_frame,
                                      .end = end_segment,
                                      .finding = count_finding,
                                      .progress = how->progress,
                                      .progress_ctx = how->ctx };
    sl_walk walk;
    sl_err err = sl_walk_init(&walk, disk, &visitor);

    if (err ==
        SL_OK) /* the seed keeps peers from choosing slow names; whoever can write this folder has no need to */
        err = sl_directory_init(
            &c.directory, &sl_alloc_default,
            (sl_hash_seed){ sl_get_u64(walk.store.bytes), sl_get_u64(walk.store.bytes + 8) });
    if (err == SL_OK)
        err = count_all(&c, &walk);
    if (err == SL_OK)
        *ret_stats = c.sums;
    sl_walk_done(&walk);
    counting_done(&c);
    return err;
}
