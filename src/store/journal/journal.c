/* store/journal/journal.c — the life of an embedded store: batches come in, are written, become durable, are answered.
 *
 * A batch is one frame of the log, built while the rules of store/writer.h are carried out: payloads are copied once, from
 * the caller into the frame. When a rule refuses the batch, the frame is forgotten. */
#include "store/journal/journal_private.h"

#include "base/uuid.h"
#include "core/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum {
    /* What an append to a soft-deleted stream adds: metadata that nobody sent. Announced when it turns out to be needed. */
    OWN_EVENT_BYTES_MAX = SL_METADATA_BYTES_MAX + 4096,
    OWN_EVENT_BYTES = 256, /* what a delete or a tombstone adds, beside the name */
};

/* --- sentences --- */

void journal_complain(journal_store *store, const char *what, const journal_shelf *shelf, bool in_index,
                      uint64_t offset)
{
    char name[SL_SEGMENT_NAME_BYTES];

    sl_segment_name(shelf->segment.number, in_index ? ".idx" : ".seg", name);
    sl_text_init(&store->problem, store->problem_text, sizeof store->problem_text);
    sl_text_add(&store->problem, what);
    sl_text_add(&store->problem, ": ");
    sl_text_add(&store->problem, name);
    sl_text_add(&store->problem, " at byte ");
    sl_text_add_u64(&store->problem, offset);
    sl_text_add(&store->problem,
                in_index ? ". Delete this file and restart: it is made anew"
                         : ". `sluice journal verify` lists all damage; restore the folder from a backup");
}

static void complain_failed(journal_store *store)
{
    const uint64_t offset = sl_log_written_bytes(store->log);

    journal_complain(store, "The disk refused a write or a sync, and the store accepts nothing more",
                     journal_last_shelf(store), false, offset);
}

static bool journal_is_full(const sl_store *base)
{
    const journal_store *const store = SL_CONTAINER_OF(base, const journal_store, base);

    return store->problem_text[0] == '\0' && store->is_full;
}

static const char *journal_problem(const sl_store *base)
{
    const journal_store *const store = SL_CONTAINER_OF(base, const journal_store, base);

    return journal_is_full(base) ? store->full_text : store->problem_text;
}

/* --- frames --- */

void journal_wake(void *store)
{
    sl_log_wake(((journal_store *)store)->log);
}

/* The log may have gone on to a new segment: the one before it is full. */
static void follow_segment(journal_store *store)
{
    if (store->shelf_count == sl_log_segment_count(store->log))
        return;
    journal_shelf_add(store);
    for (uint32_t i = store->shelf_count - 1; i > 0 && store->shelves[i - 1]->index == NULL; i--)
        journal_shelf_seal(store, store->shelves[i - 1]); /* also one that failed before */
}

sl_err journal_begin(journal_store *store, size_t record_bytes, bool urgent)
{
    sl_err err = journal_shelf_reserve(store);

    if (err == SL_OK)
        err = sl_log_begin(store->log, record_bytes, urgent);
    follow_segment(store); /* the log may have gone on and then found no memory */
    return err;
}

void journal_end(journal_store *store)
{
    sl_log_end(store->log);
    sl_recent_frame(&journal_last_shelf(store)->recent,
                    (uint32_t)(sl_log_written_bytes(store->log) + sl_log_gathered(store->log)));
}

void journal_abort(journal_store *store)
{
    sl_log_abort(store->log);
    sl_recent_cut(&journal_last_shelf(store)->recent, sl_log_next(store->log));
}

sl_err journal_record(journal_store *store, sl_record_kind kind, size_t payload_bytes, uint8_t **ret_payload,
                      sl_log_place *ret_place)
{
    uint8_t *const payload = sl_log_record(store->log, kind, (uint32_t)payload_bytes, ret_place);

    store->overflowed = payload == NULL;
    if (payload == NULL)
        return SL_ERR_AGAIN;
    *ret_payload = payload;
    return sl_recent_record(&journal_last_shelf(store)->recent, ret_place->position, ret_place->offset);
}

/* --- what the writer hands over --- */

static sl_err out_event(void *ctx, uint32_t stream, const sl_event *event)
{
    journal_store *const store = ctx;
    sl_log_place place;
    uint8_t *payload;
    sl_err err = journal_record(store, SL_RECORD_EVENT, sl_event_payload_bytes(event), &payload, &place);

    if (err != SL_OK)
        return err;
    assert(place.position == event->position);
    sl_event_put(event, payload);
    return sl_recent_event(&journal_last_shelf(store)->recent, stream, event->revision, event->position,
                           place.offset);
}

static sl_err put_group(journal_store *store, sl_record_kind kind, uint64_t group, sl_str rest)
{
    sl_log_place place;
    uint8_t *payload;
    const sl_err err = journal_record(store, kind, SL_GROUP_HEAD_BYTES + rest.bytes, &payload, &place);

    if (err == SL_OK)
        sl_group_put(group, rest, payload);
    return err;
}

static sl_err put_records(journal_store *store, const sl_op *op)
{
    uint8_t bytes[SL_OP_RECORDS_MAX * SL_RECORD_BYTES_MAX];
    size_t used = 0;

    for (uint32_t i = 0; i < op->group_record.record_count; i++)
        used += sl_record_encode(&op->group_record.records[i], bytes + used);
    return put_group(store, SL_RECORD_GROUP, op->group_record.group, (sl_str){ (const char *)bytes, used });
}

static sl_err out_group(void *ctx, uint64_t position, const sl_op *op)
{
    journal_store *const store = ctx;
    const sl_err err =
        journal_groups_take(&store->groups, op, position, journal_last_shelf(store)->segment.number);

    if (err != SL_OK)
        return err;
    if (op->kind == SL_OP_GROUP_CREATE)
        return put_group(store, SL_RECORD_GROUP_CREATE, op->group_create.group, op->group_create.definition);
    if (op->kind == SL_OP_GROUP_DELETE)
        return put_group(store, SL_RECORD_GROUP_DELETE, op->group_delete.group, (sl_str){ 0 });
    if (op->kind == SL_OP_GROUP_UPDATE)
        return put_group(store, SL_RECORD_GROUP_UPDATE, op->group_update.group, op->group_update.definition);
    return put_records(store, op);
}

static sl_err out_at(void *ctx, uint32_t stream, uint64_t revision, sl_event *ret_event)
{
    return journal_lookup(ctx, stream, revision, ret_event);
}

/* --- submitting --- */

static size_t append_bytes(const sl_op *op)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < op->append.event_count; i++) {
        const sl_event_in *const event = &op->append.events[i];

        sum += sl_record_size(SL_EVENT_HEAD_BYTES + op->append.stream.bytes + event->type.bytes +
                              event->data.bytes + event->metadata.bytes);
    }
    return sum;
}

static size_t op_bytes(const sl_op *op)
{
    switch (op->kind) {
    case SL_OP_APPEND: return append_bytes(op);
    case SL_OP_DELETE:
    case SL_OP_TOMBSTONE:
        return sl_record_size(SL_EVENT_HEAD_BYTES + op->remove.stream.bytes + OWN_EVENT_BYTES);
    case SL_OP_GROUP_CREATE: return sl_record_size(SL_GROUP_HEAD_BYTES + op->group_create.definition.bytes);
    case SL_OP_GROUP_UPDATE: return sl_record_size(SL_GROUP_HEAD_BYTES + op->group_update.definition.bytes);
    case SL_OP_GROUP_DELETE: return sl_record_size(SL_GROUP_HEAD_BYTES);
    case SL_OP_GROUP_RECORD:
        return sl_record_size(SL_GROUP_HEAD_BYTES + op->group_record.record_count * SL_RECORD_BYTES_MAX);
    }
    return 0;
}

/* How many bytes the records of the batch need, when no append revives a stream. */
static size_t frame_bytes(const sl_batch *batch)
{
    size_t sum = SL_RECORD_HEADER_BYTES;

    for (uint32_t i = 0; i < batch->op_count; i++)
        sum += op_bytes(&batch->ops[i]);
    return sum;
}

/* Settling goes on when the disk is full, and so does leaving; nothing else. */
static bool is_urgent(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind != SL_OP_GROUP_RECORD && batch->ops[i].kind != SL_OP_GROUP_DELETE)
            return false;
    return true;
}

/* Their order is what a group is loaded from, so none may be refused when later ones are inside already. */
static bool is_all_records(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind != SL_OP_GROUP_RECORD)
            return false;
    return true;
}

static sl_err carry_out(journal_store *store, const sl_batch *batch, sl_answer *answer)
{
    const sl_writer_out out = { store, out_event, out_group, out_at };
    const sl_err err = sl_writer_take(&store->writer, batch, &out, answer->results, &answer->failed_op);
    const bool wrote = store->writer.next_position > sl_log_next(store->log);

    if (err == SL_OK && wrote)
        journal_end(store);
    else
        journal_abort(store);
    if (err == SL_OK)
        journal_groups_keep(&store->groups);
    else
        journal_groups_rollback(&store->groups);
    sl_writer_keep(&store->writer);
    assert(store->writer.next_position == sl_log_next(store->log));
    return err;
}

static sl_err try(journal_store *store, const sl_batch *batch, size_t bytes, sl_answer *answer)
{
    sl_err err;

    store->overflowed = false;
    journal_lookup_begin(store);
    err = journal_begin(store, bytes, is_urgent(batch));
    return err == SL_OK ? carry_out(store, batch, answer) : err;
}

/* A frame that turns out too small is forgotten, and a larger one is begun. Not at once for the worst case: a batch with many
 * appends would then need a segment of its own. */
static sl_err take(journal_store *store, const sl_batch *batch, sl_answer *answer)
{
    const size_t most = sl_log_frame_max(store->log), bytes = frame_bytes(batch);
    size_t more = OWN_EVENT_BYTES_MAX;
    sl_err err = try(store, batch, bytes, answer);

    for (; store->overflowed && bytes < most; more *= 4) {
        err = try(store, batch, bytes + more < most ? bytes + more : most, answer);
        if (bytes + more >= most)
            break;
    }
    store->looked_up.valid = false;
    return store->overflowed ? SL_ERR_TOO_LARGE : err;
}

static bool is_answer(sl_err err)
{
    return sl_writer_answers(err) || err == SL_ERR_NO_SPACE;
}

static void complain_full(journal_store *store)
{
    const sl_err err = sl_log_spare_err(store->log);
    sl_text text;

    sl_text_init(&text, store->full_text, sizeof store->full_text);
    sl_text_add(&text, "There is no next segment, so appends are refused, and what is left of this one is "
                       "for delivering and settling: ");
    sl_text_add(&text, err == SL_ERR_NO_SPACE ? "the disk is full" : sl_err_text(err));
    sl_text_add(&text, ". It goes on by itself when one can be made");
    store->is_full = true;
}

/* What sl_store_problem() says about room, and that it says nothing any more. A small append may fit where the next large one does not:
 * that is no sign of room. */
static void note_room(journal_store *store, const sl_batch *batch, sl_err err)
{
    if (err == SL_ERR_NO_SPACE && !store->is_full) {
        complain_full(store);
    } else if (err == SL_OK && store->is_full && !is_urgent(batch) &&
               sl_log_room(store->log) == SL_ROOM_ENOUGH) {
        store->is_full = false;
    }
}

static sl_err journal_submit(sl_store *base, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    journal_store *const store = journal_of(base);
    sl_answer *answer;
    sl_err err = store->closing ? SL_ERR_STORE_FAILED : sl_log_err(store->log);

    if (err != SL_OK && !store->closing)
        complain_failed(store);
    if (err == SL_OK)
        err = sl_answers_new(&store->answers, batch, done, ctx, &answer);
    if (err != SL_OK)
        return err;
    err = answer->err = take(store, batch, answer);
    note_room(store, batch, err);
    if (!is_answer(err) || (err == SL_ERR_NO_SPACE && is_all_records(batch))) {
        sl_answers_forget(&store->answers, answer);
        return err;
    }
    sl_answers_push(&store->answers, batch, answer, store->writer.next_position);
    return SL_OK;
}

/* --- turning and polling --- */

static bool something_is_due(const journal_store *store)
{
    return sl_answers_due(&store->answers, SL_DURABLE_SYNC, sl_log_durable(store->log)) ||
           sl_answers_due(&store->answers, SL_DURABLE_WRITTEN, sl_log_written(store->log));
}

static void journal_write(sl_store *base)
{
    sl_log_turn(journal_of(base)->log);
}

static void journal_hurry(sl_store *base)
{
    sl_answers_hurry(&journal_of(base)->answers);
}

static void journal_turn(sl_store *base)
{
    journal_store *const store = journal_of(base);

    journal_states_write(store);
    sl_log_turn(store->log);
    sl_log_sync(store->log, journal_space_waits(store) ? UINT64_MAX : sl_answers_sync_end(&store->answers));
    if (something_is_due(store) || sl_log_err(store->log) != SL_OK)
        sl_log_wake(store->log);
}

static void answer_all(journal_store *store, uint64_t number_end, sl_err failed)
{
    sl_answers_give(&store->answers, SL_DURABLE_WRITTEN, UINT64_MAX, number_end, failed);
    sl_answers_give(&store->answers, SL_DURABLE_SYNC, UINT64_MAX, number_end, failed);
}

static void answer_due(journal_store *store, uint64_t number_end)
{
    sl_answers_give(&store->answers, SL_DURABLE_WRITTEN, sl_log_written(store->log), number_end, SL_OK);
    sl_answers_give(&store->answers, SL_DURABLE_SYNC, sl_log_durable(store->log), number_end, SL_OK);
}

static void tell_end(journal_store *store)
{
    const uint64_t end = sl_log_durable(store->log);

    if (end == store->told_end)
        return;
    store->told_end = end;
    if (store->base.on_commit != NULL)
        store->base.on_commit(store->base.on_commit_ctx, end);
}

static void journal_poll(sl_store *base)
{
    journal_store *const store = journal_of(base);
    const uint64_t number_end = store->answers.number;

    sl_log_poll(store->log);
    sl_background_collect(&store->fetcher);
    sl_background_collect(&store->sealer);
    journal_space_poll(store);
    answer_due(store, number_end);
    if (sl_log_err(store->log) != SL_OK) {
        complain_failed(store);
        answer_all(store, number_end, SL_ERR_STORE_FAILED);
    }
    tell_end(store);
}

/* --- the rest of the door --- */

static int journal_wait_fd(const sl_store *base)
{
    return sl_log_wait_fd(SL_CONTAINER_OF(base, const journal_store, base)->log);
}

static void journal_stream(const sl_store *base, sl_str name, sl_stream_info *ret_info)
{
    sl_directory_info(&SL_CONTAINER_OF(base, const journal_store, base)->writer.directory, name, ret_info);
}

static uint64_t journal_durable_end(const sl_store *base)
{
    return sl_log_durable(SL_CONTAINER_OF(base, const journal_store, base)->log);
}

static void store_free(journal_store *store)
{
    sl_background_stop(&store->sealer);
    sl_background_stop(&store->fetcher);
    journal_space_done(store);
    sl_answers_drop(&store->answers);
    journal_shelves_done(store);
    if (store->log != NULL)
        sl_log_close(store->log);
    journal_groups_done(&store->groups);
    sl_writer_done(&store->writer);
    sl_buf_done(&store->state);
    sl_buf_done(&store->scratch);
    sl_alloc_give(store->alloc, store, sizeof *store);
}

static void journal_close(sl_store *base)
{
    journal_store *const store = journal_of(base);
    sl_err err;

    store->closing = true;
    sl_log_turn(store->log);
    err = sl_log_flush(store->log);
    answer_due(store, UINT64_MAX);
    answer_all(store, UINT64_MAX, err);
    store_free(store);
}

static sl_room journal_room(sl_store *base)
{
    journal_store *const store = journal_of(base);
    const sl_room room = sl_log_room(store->log);

    if (room != SL_ROOM_ENOUGH && !store->is_full)
        complain_full(store);
    return room;
}

static const sl_store_ops journal_ops = {
    .name = "journal",
    .submit = journal_submit,
    .turn = journal_turn,
    .write = journal_write,
    .hurry = journal_hurry,
    .wait_fd = journal_wait_fd,
    .poll = journal_poll,
    .read = journal_read,
    .stream = journal_stream,
    .end = journal_durable_end,
    .load = journal_states_load,
    .scavenge = journal_scavenge,
    .room = journal_room,
    .problem = journal_problem,
    .is_full = journal_is_full,
    .close = journal_close,
};

/* --- opening --- */

static sl_err open_log(journal_store *store, const sl_journal_options *options, sl_disk *disk, sl_uuid uuid,
                       sl_text *report)
{
    const sl_log_setup setup = { .disk = disk,
                                 .segment_bytes =
                                     options->segment_bytes == 0 ? SL_SEGMENT_BYTES : options->segment_bytes,
                                 .store = uuid,
                                 .sync_by_os = options->sync_by_os,
                                 .inline_max =
                                     options->inline_max == 0 ? SL_INLINE_MAX : options->inline_max };

    return sl_log_open(&setup, report, &store->log);
}

/* The log is open: everything else. */
static sl_err open_rest(journal_store *store, const sl_store_setup *setup, const sl_journal_options *options,
                        sl_text *report)
{
    sl_err err = sl_writer_init(&store->writer, setup->alloc, setup->seed);

    if (err == SL_OK)
        err = journal_groups_init(&store->groups, setup->alloc, setup->seed);
    if (err == SL_OK)
        err = sl_background_start(&store->sealer, journal_wake, store);
    if (err == SL_OK)
        err = sl_background_start(&store->fetcher, journal_wake, store);
    if (err == SL_OK)
        err = journal_reopen(store, options, report);
    store->told_end = sl_log_durable(store->log);
    return err;
}

sl_err sl_store_open_journal_on(const sl_store_setup *setup, const sl_journal_options *options, sl_disk *disk,
                                sl_uuid uuid, sl_text *report, sl_store **ret_store)
{
    journal_store *const store = sl_alloc_take(setup->alloc, sizeof *store);
    sl_err err;

    if (store == NULL) {
        disk->ops->free(disk);
        return SL_ERR_NOMEM;
    }
    *store = (journal_store){
        .base.ops = &journal_ops, .alloc = setup->alloc, .disk = disk, .answers = { .alloc = setup->alloc }
    };
    sl_buf_init(&store->state, setup->alloc, SIZE_MAX / 2);
    sl_buf_init(&store->scratch, setup->alloc, SIZE_MAX / 2);
    store->sync_by_os = options->sync_by_os;
    err = open_log(store, options, disk, uuid, report);
    if (err == SL_OK)
        err = open_rest(store, setup, options, report);
    if (err != SL_OK) {
        if (report->bytes == 0)
            sl_text_add(report, sl_err_text(err));
        store_free(store);
        return err;
    }
    *ret_store = &store->base;
    return SL_OK;
}

static void explain_folder(int number, const char *folder, sl_text *report)
{
    sl_text_add(report, "The folder ");
    sl_text_add(report, folder);
    sl_text_add(report, " can not be opened or made: ");
    sl_text_add(report, strerror(number));
    if (number == ENOENT)
        sl_text_add(report,
                    ". The folder above it does not exist: make that first (mkdir -p), or name another");
    else if (number == EACCES || number == EPERM)
        sl_text_add(report,
                    ". This user may not do that: change the owner of the folder above it, or name another");
    else if (number == ENOTDIR)
        sl_text_add(report, ". Something on this path is a file: name another");
}

sl_err sl_store_open_journal(const sl_store_setup *setup, const sl_journal_options *options, sl_text *report,
                             sl_store **ret_store)
{
    uint8_t random[16];
    sl_disk *disk = NULL;
    sl_err err = getrandom(random, sizeof random, 0) == (ssize_t)sizeof random ? SL_OK : SL_ERR_IO;

    if (err == SL_OK)
        err = sl_disk_open_folder(options->folder, &disk);
    if (err != SL_OK) {
        explain_folder(errno, options->folder, report);
        return err;
    }
    return sl_store_open_journal_on(setup, options, disk, sl_uuid_v4(random), report, ret_store);
}
