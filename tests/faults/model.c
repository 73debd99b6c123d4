/* tests/faults/model.c — see model.h. */
#include "model.h"

#include "core/record.h"
#include "dice.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static model_event *events;

void model_begin(bool shared)
{
    const size_t bytes = MODEL_EVENTS_MAX * sizeof *events;
    const int sharing = shared ? MAP_SHARED : MAP_PRIVATE;

    if (events != NULL)
        munmap(events, bytes);
    events = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (events == MAP_FAILED)
        abort();
}

model_event *model_event_at(uint32_t index)
{
    if (index >= MODEL_EVENTS_MAX)
        abort(); /* the run is longer than the model was made for */
    return &events[index];
}

model model_new(void)
{
    model m;

    memset(&m, 0, sizeof m); /* models are compared as bytes */
    for (int i = 0; i < 2 * MODEL_STREAMS; i++)
        m.streams[i].last = -1;
    return m;
}

bool model_is_metadata(int stream)
{
    return stream >= MODEL_STREAMS;
}

bool model_tombstoned(const model *m, int stream)
{
    return m->streams[stream % MODEL_STREAMS].last == INT64_MAX;
}

bool model_soft_deleted(const model *m, int stream)
{
    return !model_is_metadata(stream) && m->streams[stream].truncate_before == INT64_MAX;
}

int64_t model_first(const model *m, int stream)
{
    const model_stream *const s = &m->streams[stream];
    const int64_t max_count = model_is_metadata(stream) ? 1 : s->max_count;
    const int64_t by_count = max_count == 0 || s->last < max_count ? 0 : s->last - max_count + 1;

    return by_count > s->truncate_before ? by_count : s->truncate_before;
}

uint32_t model_find(const model *m, int stream, int64_t revision)
{
    uint32_t at = m->streams[stream].newest;

    while (at != 0 && events[at - 1].revision > revision)
        at = events[at - 1].before;
    return at != 0 && events[at - 1].revision == revision ? at : 0;
}

bool model_may_be_gone(const model *m, uint32_t index)
{
    const model_event *const event = model_event_at(index);

    return event->revision < m->streams[event->stream].doomed_below;
}

int model_stream_named(sl_str name)
{
    for (int i = 0; i < 2 * MODEL_STREAMS; i++)
        if (sl_str_equal(name, text_stream(i % MODEL_STREAMS, model_is_metadata(i))))
            return i;
    return -1;
}

/* What is hidden is doomed, but for the last event of a stream. */
static void doom(model *m, int stream)
{
    model_stream *const s = &m->streams[stream];
    const int64_t first = model_tombstoned(m, stream) ? INT64_MAX : model_first(m, stream);
    const int64_t below = first < s->last ? first : s->last;

    if (below > s->doomed_below)
        s->doomed_below = below;
}

/* The newest event of a stream with this number; 0: none. */
static uint32_t newest(const model *m, int stream, uint64_t number)
{
    uint32_t at = m->streams[stream].newest;

    while (at != 0 && !(events[at - 1].number == number && events[at - 1].sort <= MODEL_DELETED))
        at = events[at - 1].before;
    return at;
}

static void put(model *m, const model_event *event)
{
    model_stream *const stream = &m->streams[event->stream];
    model_event *const at = model_event_at(m->event_count);

    *at = *event;
    at->before = stream->newest;
    stream->newest = ++m->event_count;
    stream->last = event->revision;
}

static model_result refuse(const model *m, int stream, sl_err err)
{
    return (model_result){ .err = err, .revision = m->streams[stream].last };
}

static bool never_existed(const model *m, int stream)
{
    return m->streams[stream].last < 0 &&
           (model_is_metadata(stream) || m->streams[stream + MODEL_STREAMS].last < 0);
}

/* How many of the ids are there, from the first on; *ret_last is the last of them. */
static int ids_found(const model *m, const model_op *op, uint32_t *ret_last)
{
    const bool open = op->expected == MODEL_ANY || op->expected == MODEL_EXISTS;

    for (int i = 0; i < op->id_count; i++) {
        const uint32_t at =
            open ? newest(m, op->stream, op->ids[i]) : model_find(m, op->stream, op->expected + 1 + i);

        if (at == 0 || events[at - 1].number != op->ids[i] || events[at - 1].sort > MODEL_DELETED)
            return i;
        *ret_last = at;
    }
    return op->id_count;
}

static void revive(model *m, int owner, int64_t first, uint64_t number, int64_t max_count)
{
    const int metadata = owner + MODEL_STREAMS;
    const model_event event = { .sort = MODEL_REVIVED,
                                .stream = metadata,
                                .revision = m->streams[metadata].last + 1,
                                .number = number,
                                .truncate_before = first,
                                .max_count = max_count };

    m->streams[owner].truncate_before = first;
    put(m, &event);
}

static void write_events(model *m, const model_op *op, uint32_t *ret_last)
{
    const int owner = op->stream % MODEL_STREAMS;
    const int64_t owner_next = m->streams[owner].last + 1;
    const bool revived = m->streams[owner].truncate_before == INT64_MAX;
    const bool is_metadata = model_is_metadata(op->stream);

    for (int i = 0; i < op->id_count; i++)
        put(m, &(model_event){ .sort = is_metadata ? MODEL_METADATA : MODEL_SENT,
                               .stream = op->stream,
                               .revision = m->streams[op->stream].last + 1,
                               .number = op->ids[i],
                               .truncate_before = op->truncate_before,
                               .max_count = op->max_count });
    *ret_last = m->event_count;
    if (is_metadata) {
        m->streams[owner].truncate_before = op->truncate_before;
        m->streams[owner].max_count = op->max_count;
    }
    if (revived)
        revive(m, owner, owner_next, op->ids[op->id_count - 1], m->streams[owner].max_count);
}

static model_result do_append(model *m, const model_op *op)
{
    const int64_t current = m->streams[op->stream].last;
    const bool soft = model_soft_deleted(m, op->stream);
    model_result result = { .err = SL_OK };
    uint32_t last = 0;
    int found = 0;

    if (model_tombstoned(m, op->stream) || (op->expected == MODEL_EXISTS && soft))
        return refuse(m, op->stream, SL_ERR_STREAM_DELETED);
    if (op->expected == MODEL_EXISTS && never_existed(m, op->stream))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    if (op->expected > current)
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    if (op->expected < current)
        found = ids_found(m, op, &last);
    if (found == op->id_count)
        return (model_result){ .revision = events[last - 1].revision, .repeated = true, .last_event = last };
    if (found > 0 || (op->expected >= -1 && op->expected < current && !(op->expected == -1 && soft)))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    write_events(m, op, &result.last_event);
    result.revision = events[result.last_event - 1].revision;
    return result;
}

static model_result do_remove(model *m, const model_op *op)
{
    const int64_t current = m->streams[op->stream].last;
    const bool soft = model_soft_deleted(m, op->stream), never = never_existed(m, op->stream);
    const bool right = op->expected < -1 || op->expected == current || (op->expected == -1 && soft);
    const bool for_ever = op->kind == SL_OP_TOMBSTONE;
    const int into = for_ever ? op->stream : op->stream + MODEL_STREAMS;

    if (model_tombstoned(m, op->stream) || (op->expected == MODEL_EXISTS && soft))
        return refuse(m, op->stream, SL_ERR_STREAM_DELETED);
    if (!right || (never && (!for_ever || op->expected == MODEL_EXISTS)))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    put(m, &(model_event){ .sort = for_ever ? MODEL_TOMBSTONE : MODEL_DELETED,
                           .stream = into,
                           .revision = for_ever ? INT64_MAX : m->streams[into].last + 1,
                           .number = op->ids[0] });
    if (!for_ever) {
        m->streams[op->stream].truncate_before = INT64_MAX;
        m->streams[op->stream].max_count = 0;
    }
    return (model_result){ .revision = for_ever ? INT64_MAX : current, .last_event = m->event_count };
}

void model_group_add(model_group *group, const sl_effect *record)
{
    uint8_t bytes[SL_RECORD_BYTES_MAX];
    const size_t count = sl_record_encode(record, bytes);

    for (size_t i = 0; i < count; i++)
        group->hash = dice_mix(group->hash ^ bytes[i]);
    group->count++;
}

static model_result do_group(model *m, const model_op *op)
{
    model_group *const group = &m->groups[op->stream];
    sl_effect record;

    if (group->exists == (op->kind == SL_OP_GROUP_CREATE))
        return (model_result){ .err = group->exists ? SL_ERR_EXISTS : SL_ERR_NOT_FOUND };
    if (op->kind == SL_OP_GROUP_RECORD) {
        for (int i = 0; i < op->id_count; i++) {
            record = text_record(op->ids[i]);
            model_group_add(group, &record);
        }
        return (model_result){ .err = SL_OK };
    }
    if (op->kind == SL_OP_GROUP_UPDATE) {
        group->definition = op->ids[0];
        return (model_result){ .err = SL_OK };
    }
    memset(group, 0, sizeof *group);
    group->exists = op->kind == SL_OP_GROUP_CREATE;
    group->definition = group->exists ? op->ids[0] : 0;
    return (model_result){ .err = SL_OK };
}

static model_result do_events(model *m, const model_op *op)
{
    const model_result result = op->kind == SL_OP_APPEND ? do_append(m, op) : do_remove(m, op);

    doom(m, op->stream % MODEL_STREAMS);
    doom(m, op->stream % MODEL_STREAMS + MODEL_STREAMS);
    return result;
}

model_result model_do(model *m, const model_op *op)
{
    switch (op->kind) {
    case SL_OP_APPEND:
    case SL_OP_DELETE:
    case SL_OP_TOMBSTONE: return do_events(m, op);
    case SL_OP_GROUP_CREATE:
    case SL_OP_GROUP_DELETE:
    case SL_OP_GROUP_RECORD:
    case SL_OP_GROUP_UPDATE: return do_group(m, op);
    }
    abort();
}
