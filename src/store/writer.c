/* store/writer.c — carrying out the ops of one batch.
 *
 * `job` is one batch on its way. put_event() is the only place that gives out positions for events, and tell() the only one
 * that changes the directory, so that a replay, which knows nothing but the events, comes to the same state. */
#include "store/writer.h"

#include "store/backend.h"

#include <assert.h>
#include <string.h>

enum {
    AHEAD = 8,  /* ops whose hashes are kept; a power of two */
    FAR = 6,    /* so many ops before it is due, where a stream is found is fetched */
    MIDDLE = 3, /* then the stream */
    NEAR = 1,   /* then where its ids are */
};

static_assert(FAR < AHEAD, "a hash is kept until it is used");

typedef struct job {
    sl_writer *writer;
    const sl_writer_out *out;
    uint64_t bytes;         /* of the batch, with what nobody sent */
    uint64_t hashes[AHEAD]; /* of the streams of the appends that come next, by their number */
} job;

sl_err sl_writer_init(sl_writer *writer, const sl_alloc *alloc, sl_hash_seed seed)
{
    sl_err err;

    *writer = (sl_writer){ .next_position = SL_POSITION_FIRST, .seed = seed };
    sl_buf_init(&writer->scratch, alloc, 2 * SL_METADATA_BYTES_MAX);
    err = sl_directory_init(&writer->directory, alloc, seed);
    if (err == SL_OK)
        err = sl_ids_init(&writer->ids, alloc, seed, SL_IDS_MAX);
    if (err != SL_OK)
        sl_writer_done(writer);
    return err;
}

void sl_writer_done(sl_writer *writer)
{
    sl_directory_done(&writer->directory);
    sl_ids_done(&writer->ids);
    sl_buf_done(&writer->scratch);
}

/* --- events --- */

static const sl_stream *stream_at(const job *j, uint32_t id)
{
    return sl_directory_at(&j->writer->directory, id);
}

/* A tombstone repeats nothing: whatever comes after it is refused before ids are looked at. */
static void remember(sl_writer *writer, uint32_t stream, const sl_event *event)
{
    if (event->revision != SL_REVISION_MAX)
        sl_ids_add(&writer->ids, stream, event->id, (sl_ids_place){ event->revision, event->position });
    writer->next_position = event->position + 1;
}

/* Hands one event to the backend. Does not tell the directory. */
static sl_err put_event(job *j, uint32_t stream, uint64_t revision, const sl_event_in *in)
{
    const sl_event event = { .position = j->writer->next_position,
                             .revision = revision,
                             .id = in->id,
                             .stream = sl_stream_name(stream_at(j, stream)),
                             .type = in->type,
                             .data = in->data,
                             .metadata = in->metadata,
                             .is_json = in->is_json,
                             .created_ns = in->created_ns };
    const sl_err err = j->out->event(j->out->ctx, stream, &event);

    if (err != SL_OK)
        return err;
    remember(j->writer, stream, &event);
    return SL_OK;
}

/* The directory learns of the newest event of a stream. */
static sl_err tell(job *j, uint32_t stream, uint64_t revision, sl_str data)
{
    return sl_directory_event(&j->writer->directory, stream, revision, data);
}

/* Only what nobody sent is counted here: the rest was counted before the batch was let in. */
static sl_err count_bytes(job *j, const sl_event_in *in, sl_str stream)
{
    j->bytes += SL_RECORD_HEAD_BYTES + stream.bytes + in->type.bytes + in->data.bytes;
    return j->bytes > SL_BATCH_BYTES_MAX ? SL_ERR_TOO_LARGE : SL_OK;
}

/* An event that nobody sent. Its place is that of the last position given. */
static sl_err put_own(job *j, uint32_t stream, uint64_t revision, const sl_event_in *in)
{
    sl_err err = count_bytes(j, in, sl_stream_name(stream_at(j, stream)));

    if (err == SL_OK)
        err = put_event(j, stream, revision, in);
    if (err == SL_OK)
        err = tell(j, stream, revision, in->data);
    return err;
}

/* An id that comes out the same when the same batch meets the same store, and that nobody can foresee. */
static sl_uuid own_id(const job *j, sl_uuid cause)
{
    const sl_hash_seed other = { ~j->writer->seed.k0, j->writer->seed.k1 };
    uint8_t key[sizeof cause.bytes + sizeof(uint64_t)], random[16];
    uint64_t halves[2];

    memcpy(key, cause.bytes, sizeof cause.bytes);
    memcpy(key + sizeof cause.bytes, &j->writer->next_position, sizeof(uint64_t));
    halves[0] = sl_hash(j->writer->seed, key, sizeof key);
    halves[1] = sl_hash(other, key, sizeof key);
    memcpy(random, halves, sizeof random);
    return sl_uuid_v4(random);
}

/* --- metadata that nobody sent --- */

static sl_err put_metadata(job *j, sl_str stream, sl_str json, sl_uuid id, uint64_t created_ns)
{
    const sl_event_in in = {
        .id = id, .type = SL_STR("$metadata"), .data = json, .is_json = true, .created_ns = created_ns
    };
    char name[SL_STREAM_NAME_BYTES_MAX + 2];
    uint32_t metadata_stream;
    sl_text text;
    sl_err err;

    sl_text_init(&text, name, sizeof name);
    sl_text_add(&text, "$$");
    sl_text_add_str(&text, stream);
    assert(!text.cut && text.bytes <= SL_STREAM_NAME_BYTES_MAX); /* sl_batch_check() leaves room for it */
    err = sl_directory_add(&j->writer->directory, sl_text_str(&text), &metadata_stream);
    if (err != SL_OK)
        return err;
    return put_own(j, metadata_stream, stream_at(j, metadata_stream)->last + 1, &in);
}

/* The stream lives again, from `first` on; `json` is its metadata otherwise. */
static sl_err undelete(job *j, uint32_t stream, uint64_t first, sl_str json, const sl_event_in *cause)
{
    sl_buf *const scratch = &j->writer->scratch;
    const sl_uuid id = own_id(j, cause->id);
    sl_err err;

    sl_buf_clear(scratch);
    err = sl_metadata_undelete(json, first, scratch);
    if (err != SL_OK)
        return err;
    json = (sl_str){ (const char *)sl_buf_data(scratch), scratch->bytes };
    return put_metadata(j, sl_stream_name(stream_at(j, stream)), json, id, cause->created_ns);
}

/* An append went to a soft-deleted stream. */
static sl_err undelete_stream(job *j, uint32_t stream, uint64_t first, const sl_event_in *cause)
{
    const uint32_t metadata_stream = stream_at(j, stream)->partner;
    const uint64_t revision = stream_at(j, metadata_stream)->last;
    sl_event metadata;
    sl_err err;

    assert(metadata_stream != SL_STREAM_NO_ID); /* where else was it said that the stream is deleted? */
    err = j->out->at(j->out->ctx, metadata_stream, revision, &metadata);
    if (err == SL_ERR_NOT_FOUND)
        metadata.data = (sl_str){ 0 };
    else if (err != SL_OK)
        return err;
    return undelete(j, stream, first, metadata.data, cause);
}

/* --- ops --- */

typedef struct asked { /* who asks sl_lookup's questions */
    job *j;
    uint32_t stream; /* SL_STREAM_NO_ID: not there, so nothing is found */
} asked;

static bool recent(void *ctx, sl_uuid id, sl_seen *ret_seen)
{
    const asked *const about = ctx;
    sl_ids_place place;

    if (about->stream == SL_STREAM_NO_ID || !sl_ids_find(&about->j->writer->ids, about->stream, id, &place))
        return false;
    *ret_seen = (sl_seen){ id, place.revision, place.position };
    return true;
}

static sl_err at(void *ctx, uint64_t revision, sl_seen *ret_seen)
{
    const asked *const about = ctx;
    const sl_writer_out *const out = about->j->out;
    sl_event event;
    sl_err err;

    assert(about->stream != SL_STREAM_NO_ID); /* a stream that is not there has nothing behind its end */
    err = out->at(out->ctx, about->stream, revision, &event);
    if (err == SL_OK)
        *ret_seen = (sl_seen){ event.id, event.revision, event.position };
    return err;
}

/* stream: NULL when it is not there yet. */
static sl_verdict judge_append(job *j, const sl_op *op, const sl_stream *stream)
{
    const sl_known known = sl_directory_known(&j->writer->directory, op->append.stream, stream);
    asked about = { j, stream == NULL ? SL_STREAM_NO_ID : stream->id };
    const sl_lookup lookup = { &about, recent, at };

    return sl_verdict_append(&known, op->append.expected, op->append.events, op->append.event_count, &lookup);
}

static sl_err put_events(job *j, uint32_t stream, uint64_t first, const sl_op *op)
{
    sl_err err = SL_OK;

    for (uint32_t i = 0; i < op->append.event_count && err == SL_OK; i++)
        err = put_event(j, stream, first + i, &op->append.events[i]);
    return err;
}

/* True when appending here brings a soft-deleted stream back to life; *ret_id is that stream. */
static bool revives(const job *j, uint32_t stream, uint32_t *ret_id)
{
    const sl_stream *const target = stream_at(j, stream);
    const sl_stream *const owner = target->is_metadata ? stream_at(j, target->partner) : target;

    *ret_id = owner->id;
    return owner->keep.truncate_before == SL_REVISION_MAX;
}

/* found: NULL when it is not there yet. */
static sl_err write_append(job *j, const sl_op *op, const sl_stream *found, uint64_t first,
                           sl_op_result *result)
{
    const sl_event_in *const last = &op->append.events[op->append.event_count - 1];
    const uint64_t last_revision = first + op->append.event_count - 1;
    uint32_t stream = found == NULL ? SL_STREAM_NO_ID : found->id;
    uint32_t revived;
    bool revive;
    sl_err err = found != NULL ? SL_OK : sl_directory_add(&j->writer->directory, op->append.stream, &stream);

    if (err != SL_OK)
        return err;
    revive = revives(j, stream, &revived);
    err = put_events(j, stream, first, op);
    if (err == SL_OK)
        err = tell(j, stream, last_revision, last->data);
    *result = (sl_op_result){ .revision = last_revision, .position = j->writer->next_position - 1 };
    if (err != SL_OK || !revive)
        return err;
    return stream == revived ? undelete_stream(j, stream, first, last)
                             : undelete(j, revived, stream_at(j, revived)->last + 1, last->data, last);
}

static sl_err refuse(const sl_verdict *verdict, sl_op_result *result)
{
    *result = (sl_op_result){ .revision = verdict->revision };
    return verdict->err;
}

static sl_err append(job *j, const sl_op *op, uint64_t hash, sl_op_result *result)
{
    const sl_stream *const stream = sl_directory_find_hashed(&j->writer->directory, op->append.stream, hash);
    const sl_verdict verdict = judge_append(j, op, stream);

    if (verdict.kind == SL_VERDICT_REFUSED)
        return refuse(&verdict, result);
    if (verdict.kind == SL_VERDICT_REPEATED) {
        *result =
            (sl_op_result){ .revision = verdict.revision, .position = verdict.position, .repeated = true };
        return SL_OK;
    }
    if (op->append.event_count > 0)
        return write_append(j, op, stream, verdict.revision, result);
    *result = (sl_op_result){ .revision = verdict.revision - 1, .position = j->writer->next_position - 1 };
    return SL_OK;
}

static sl_known known_of(const job *j, sl_str name)
{
    const sl_directory *const directory = &j->writer->directory;

    return sl_directory_known(directory, name, sl_directory_find(directory, name));
}

static sl_err soft_delete(job *j, const sl_op *op, sl_op_result *result)
{
    const sl_known known = known_of(j, op->remove.stream);
    const sl_verdict verdict = sl_verdict_delete(&known, op->remove.expected);
    sl_err err;

    if (verdict.kind == SL_VERDICT_REFUSED)
        return refuse(&verdict, result);
    err =
        put_metadata(j, op->remove.stream, SL_STR(SL_METADATA_DELETED), op->remove.id, op->remove.created_ns);
    *result = (sl_op_result){ .revision = known.last, .position = j->writer->next_position - 1 };
    return err;
}

static sl_err tombstone(job *j, const sl_op *op, sl_op_result *result)
{
    const sl_known known = known_of(j, op->remove.stream);
    const sl_verdict verdict = sl_verdict_tombstone(&known, op->remove.expected);
    const sl_event_in in = { .id = op->remove.id,
                             .type = SL_STR("$streamDeleted"),
                             .created_ns = op->remove.created_ns };
    uint32_t stream;
    sl_err err;

    if (verdict.kind == SL_VERDICT_REFUSED)
        return refuse(&verdict, result);
    err = sl_directory_add(&j->writer->directory, op->remove.stream, &stream);
    if (err == SL_OK)
        err = put_own(j, stream, SL_REVISION_MAX, &in);
    *result = (sl_op_result){ .revision = SL_REVISION_MAX, .position = j->writer->next_position - 1 };
    return err;
}

static sl_err group(job *j, const sl_op *op, sl_op_result *result)
{
    const sl_err err = j->out->group(j->out->ctx, j->writer->next_position, op);

    *result = (sl_op_result){ .revision = SL_REVISION_NONE, .position = j->writer->next_position };
    j->writer->next_position += err == SL_OK;
    return err;
}

/* --- a batch --- */

/* A large batch touches many streams, which are in memory but not in the cache. What the next ops will need is fetched while
 * the ones before them are carried out: first where the stream is found, then the stream, then where its ids are. */
static void look_ahead(job *j, const sl_batch *batch, uint32_t i)
{
    const sl_directory *const directory = &j->writer->directory;
    const sl_op *const far = i + FAR < batch->op_count ? &batch->ops[i + FAR] : NULL;
    const sl_op *const near = i + NEAR < batch->op_count ? &batch->ops[i + NEAR] : NULL;

    if (far != NULL && far->kind == SL_OP_APPEND) {
        j->hashes[(i + FAR) % AHEAD] = sl_directory_hash(directory, far->append.stream);
        sl_directory_fetch(directory, j->hashes[(i + FAR) % AHEAD]);
    }
    if (i + MIDDLE < batch->op_count && batch->ops[i + MIDDLE].kind == SL_OP_APPEND)
        __builtin_prefetch(sl_directory_guess(directory, j->hashes[(i + MIDDLE) % AHEAD]));
    if (near != NULL && near->kind == SL_OP_APPEND && near->append.event_count > 0) {
        const sl_stream *const stream = sl_directory_guess(directory, j->hashes[(i + NEAR) % AHEAD]);

        if (stream == NULL)
            return;
        __builtin_prefetch(stream->name);
        sl_ids_fetch(&j->writer->ids, stream->id, near->append.events[0].id);
    }
}

static void look_at_first(job *j, const sl_batch *batch)
{
    for (uint32_t i = 0; i < FAR && i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_APPEND)
            j->hashes[i] = sl_directory_hash(&j->writer->directory, batch->ops[i].append.stream);
}

static sl_err carry_out(job *j, const sl_op *op, uint64_t hash, sl_op_result *result)
{
    switch (op->kind) {
    case SL_OP_APPEND: return append(j, op, hash, result);
    case SL_OP_DELETE: return soft_delete(j, op, result);
    case SL_OP_TOMBSTONE: return tombstone(j, op, result);
    case SL_OP_GROUP_CREATE:
    case SL_OP_GROUP_DELETE:
    case SL_OP_GROUP_RECORD:
    case SL_OP_GROUP_UPDATE: return group(j, op, result);
    }
    return SL_ERR_INVALID;
}

sl_writer_mark sl_writer_marked(const sl_writer *writer)
{
    return (sl_writer_mark){ sl_directory_mark(&writer->directory), sl_ids_mark(&writer->ids),
                             writer->next_position };
}

void sl_writer_rollback(sl_writer *writer, sl_writer_mark mark)
{
    sl_directory_rollback(&writer->directory, mark.directory);
    sl_ids_rollback(&writer->ids, mark.ids);
    writer->next_position = mark.position;
}

void sl_writer_keep(sl_writer *writer)
{
    sl_directory_forget(&writer->directory);
}

sl_err sl_writer_take(sl_writer *writer, const sl_batch *batch, const sl_writer_out *out,
                      sl_op_result *results, uint32_t *ret_failed_op)
{
    const sl_writer_mark mark = sl_writer_marked(writer);
    job j = { .writer = writer, .out = out, .bytes = sl_batch_bytes(batch) };
    sl_err err = SL_OK;

    memset(results, 0, batch->op_count * sizeof *results);
    look_at_first(&j, batch);
    for (uint32_t i = 0; i < batch->op_count && err == SL_OK; i++) {
        look_ahead(&j, batch, i);
        err = carry_out(&j, &batch->ops[i], j.hashes[i % AHEAD], &results[i]);
        if (err != SL_OK)
            *ret_failed_op = i;
    }
    if (err != SL_OK)
        sl_writer_rollback(writer, mark);
    return err;
}

bool sl_writer_answers(sl_err err)
{
    return err == SL_OK || err == SL_ERR_WRONG_REVISION || err == SL_ERR_STREAM_DELETED ||
           err == SL_ERR_EXISTS || err == SL_ERR_NOT_FOUND;
}

sl_err sl_writer_replay(sl_writer *writer, const sl_event *event, uint32_t *ret_stream)
{
    sl_err err = sl_directory_add(&writer->directory, event->stream, ret_stream);

    if (err == SL_OK)
        err = sl_directory_event(&writer->directory, *ret_stream, event->revision, event->data);
    if (err != SL_OK)
        return err;
    sl_directory_forget(&writer->directory);
    remember(writer, *ret_stream, event);
    return SL_OK;
}
