/* tests/contract/model.c — see model.h. Slow on purpose: every question is answered by looking at all events. */
#include "model.h"

#include <stdlib.h>

model_event model_events[MODEL_EVENTS_MAX];

model model_new(void)
{
    model m = { 0 };

    for (int i = 0; i < 2 * MODEL_STREAMS; i++)
        m.streams[i].last = -1;
    return m;
}

static void put(model *m, int stream, int64_t revision, uint64_t number)
{
    if (m->event_count == MODEL_EVENTS_MAX)
        abort(); /* the run is longer than the model was made for */
    model_events[m->event_count++] = (model_event){ stream, revision, number };
    m->streams[stream].last = revision;
}

static bool is_metadata(int stream)
{
    return stream >= MODEL_STREAMS;
}

bool model_tombstoned(const model *m, int stream)
{
    return m->streams[stream % MODEL_STREAMS].last == INT64_MAX;
}

bool model_soft_deleted(const model *m, int stream)
{
    return !is_metadata(stream) && m->streams[stream].truncate_before == INT64_MAX;
}

int64_t model_first(const model *m, int stream)
{
    const model_stream *const s = &m->streams[stream];
    const int64_t max_count = is_metadata(stream) ? 1 : s->max_count;
    const int64_t by_count = max_count == 0 ? 0 : s->last - max_count + 1;

    return by_count > s->truncate_before ? by_count : s->truncate_before;
}

uint64_t model_at(const model *m, int stream, int64_t revision)
{
    for (uint32_t i = 0; i < m->event_count; i++)
        if (model_events[i].stream == stream && model_events[i].revision == revision)
            return model_events[i].number;
    return 0;
}

/* Revision of the newest event with this number, -1: none. */
static int64_t newest(const model *m, int stream, uint64_t number)
{
    for (uint32_t i = m->event_count; i-- > 0;)
        if (model_events[i].stream == stream && model_events[i].number == number)
            return model_events[i].revision;
    return -1;
}

static model_result refuse(const model *m, int stream, sl_err err)
{
    return (model_result){ .err = err, .revision = m->streams[stream].last };
}

static bool never_existed(const model *m, int stream)
{
    return m->streams[stream].last < 0 &&
           (is_metadata(stream) || m->streams[stream + MODEL_STREAMS].last < 0);
}

/* How many of the ids are there, from the first on; *ret_revision is that of the last of them. */
static int ids_found(const model *m, const model_op *op, int64_t *ret_revision)
{
    for (int i = 0; i < op->id_count; i++) {
        const bool open = op->expected == MODEL_ANY || op->expected == MODEL_EXISTS;
        const int64_t revision = open ? newest(m, op->stream, op->ids[i]) : op->expected + 1 + i;

        if (revision < 0 || model_at(m, op->stream, revision) != op->ids[i])
            return i;
        *ret_revision = revision;
    }
    return op->id_count;
}

static void write_events(model *m, const model_op *op)
{
    const int owner = op->stream % MODEL_STREAMS, metadata = owner + MODEL_STREAMS;
    const int64_t owner_next = m->streams[owner].last + 1;
    const bool revived = m->streams[owner].truncate_before == INT64_MAX;

    for (int i = 0; i < op->id_count; i++)
        put(m, op->stream, m->streams[op->stream].last + 1, op->ids[i]);
    if (is_metadata(op->stream)) {
        m->streams[owner].truncate_before = op->truncate_before;
        m->streams[owner].max_count = op->max_count;
    }
    if (revived) {
        m->streams[owner].truncate_before = owner_next;
        put(m, metadata, m->streams[metadata].last + 1, MODEL_OWN);
    }
}

static model_result do_append(model *m, const model_op *op)
{
    const int64_t current = m->streams[op->stream].last;
    const bool soft = model_soft_deleted(m, op->stream);
    int64_t revision = -1;
    int found = 0;

    if (model_tombstoned(m, op->stream) || (op->expected == MODEL_EXISTS && soft))
        return refuse(m, op->stream, SL_ERR_STREAM_DELETED);
    if (op->expected == MODEL_EXISTS && never_existed(m, op->stream))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    if (op->expected > current)
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    if (op->expected < current || op->expected < -1)
        found = ids_found(m, op, &revision);
    if (found == op->id_count)
        return (model_result){ .revision = revision, .repeated = true };
    if (found > 0 || (op->expected >= -1 && op->expected < current && !(op->expected == -1 && soft)))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    write_events(m, op);
    return (model_result){ .revision = current + op->id_count };
}

static model_result do_remove(model *m, const model_op *op)
{
    const int64_t current = m->streams[op->stream].last;
    const bool soft = model_soft_deleted(m, op->stream), never = never_existed(m, op->stream);
    const bool right = op->expected < -1 || op->expected == current || (op->expected == -1 && soft);

    if (model_tombstoned(m, op->stream) || (op->expected == MODEL_EXISTS && soft))
        return refuse(m, op->stream, SL_ERR_STREAM_DELETED);
    if (!right || (never && (op->kind == MODEL_DELETE || op->expected == MODEL_EXISTS)))
        return refuse(m, op->stream, SL_ERR_WRONG_REVISION);
    if (op->kind == MODEL_TOMBSTONE) {
        put(m, op->stream, INT64_MAX, MODEL_OWN);
        return (model_result){ .revision = INT64_MAX };
    }
    put(m, op->stream + MODEL_STREAMS, m->streams[op->stream + MODEL_STREAMS].last + 1, MODEL_OWN);
    m->streams[op->stream].truncate_before = INT64_MAX;
    m->streams[op->stream].max_count = 0;
    return (model_result){ .revision = current };
}

model_result model_do(model *m, const model_op *op)
{
    return op->kind == MODEL_APPEND ? do_append(m, op) : do_remove(m, op);
}
