/* tests/contract/test_random.c — random batches, reads and crashes; a naive model says what must come of them.
 *
 * One seed decides everything. The model is asked when a batch is submitted, because that is when the store decides. After
 * a crash the store must be where the model was after some batch: not before the last one that was answered, and, when only
 * the process died, not before the last one that was written. */
#include "model.h"
#include "rig.h"

#include "../unit/base/support.h"
#include "base/cleanup.h"

#include <stdio.h>

enum {
    SEEDS = 60,
    STEPS = 150,
    OPS_MAX = 3
};

typedef struct sent { /* a batch, and what the model says of it */
    answer answered;
    sl_err err;
    uint32_t op_count, failed_op;
    model_result results[OPS_MAX];
} sent;

typedef struct run {
    uint64_t seed, step;
    dice d;
    rig r;
    model now;
    model history[STEPS + 1]; /* after each batch */
    sent batches[STEPS];
    uint32_t batch_count;       /* since the last crash, as is: */
    uint32_t written_count;     /* batches before the last turn */
    uint64_t next_id, fresh_id; /* ids from fresh_id on were first used after the last crash */
} run;

#define AGREE(fact) EXPECT_RUN(fact, x->seed, x->step)

static const char *name_of(int stream)
{
    static char names[2 * MODEL_STREAMS][16];

    snprintf(names[stream], sizeof names[stream], stream < MODEL_STREAMS ? "stream-%d" : "$$stream-%d",
             stream % MODEL_STREAMS);
    return names[stream];
}

/* --- drawing --- */

static int64_t draw_expected(run *x, int stream)
{
    const int64_t last = x->now.streams[stream].last;

    switch (dice_pick(&x->d, 6)) {
    case 0: return MODEL_NO_STREAM;
    case 1: return MODEL_EXISTS;
    case 2: return last == INT64_MAX ? 3 : last;
    case 3: return (int64_t)dice_pick(&x->d, 6);
    default: return MODEL_ANY;
    }
}

/* The memory of recent ids may or may not survive a crash, so only an expectation that does not need it meets old ids. */
static uint64_t draw_id(run *x, int64_t expected)
{
    const uint64_t oldest = expected >= -1 ? 1 : x->fresh_id;

    if (x->next_id == oldest || dice_pick(&x->d, 3) > 0)
        return x->next_id++;
    return oldest + dice_pick(&x->d, (size_t)(x->next_id - oldest));
}

static void draw_ids(run *x, model_op *op)
{
    op->id_count = 1 + (int)dice_pick(&x->d, MODEL_IDS_MAX);
    op->ids[0] = draw_id(x, op->expected);
    for (int i = 1; i < op->id_count; i++) /* often a run of ids, as in an append that is sent again */
        op->ids[i] = op->ids[i - 1] + 1 < x->next_id ? op->ids[i - 1] + 1 : draw_id(x, op->expected);
}

static model_op draw_op(run *x)
{
    const size_t what = dice_pick(&x->d, 100);
    model_op op = { .stream = (int)dice_pick(&x->d, MODEL_STREAMS) };

    op.kind = what < 90 ? MODEL_APPEND : what < 99 ? MODEL_DELETE : MODEL_TOMBSTONE;
    if (what < 12)
        op.stream += MODEL_STREAMS;
    op.expected = draw_expected(x, op.stream);
    if (op.kind != MODEL_APPEND)
        return op;
    draw_ids(x, &op);
    if (what < 8)
        op.truncate_before = dice_pick(&x->d, 4) == 0 ? INT64_MAX : (int64_t)dice_pick(&x->d, 12);
    if (what < 4)
        op.max_count = (int64_t)dice_pick(&x->d, 5);
    return op;
}

/* --- the same for the store --- */

static sl_expected expected_of(int64_t expected)
{
    if (expected == MODEL_ANY)
        return ANY;
    if (expected == MODEL_EXISTS)
        return EXISTS;
    return expected == MODEL_NO_STREAM ? NO_STREAM : EXACT((uint64_t)expected);
}

typedef struct store_op {
    sl_event_in events[MODEL_IDS_MAX];
    char json[96];
} store_op;

static sl_op op_for(const model_op *op, store_op *memory)
{
    const char *const stream = name_of(op->stream);
    const sl_expected expected = expected_of(op->expected);

    if (op->kind == MODEL_DELETE)
        return delete_op(stream, expected);
    if (op->kind == MODEL_TOMBSTONE)
        return tombstone_op(stream, expected);
    snprintf(memory->json, sizeof memory->json, "{\"$maxCount\":%lld,\"$tb\":%lld}", (long long)op->max_count,
             (long long)op->truncate_before);
    for (int i = 0; i < op->id_count; i++) {
        memory->events[i] = event(op->ids[i]);
        if (op->stream >= MODEL_STREAMS) {
            memory->events[i].data = sl_str_from(memory->json);
            memory->events[i].type = SL_STR("$metadata");
        }
    }
    return append_op(stream, expected, memory->events, (uint32_t)op->id_count);
}

static void send_batch(run *x)
{
    sent *const s = &x->batches[x->batch_count++];
    const model before = x->now;
    store_op memory[OPS_MAX];
    sl_op ops[OPS_MAX];

    *s = (sent){ .op_count = 1 + (uint32_t)dice_pick(&x->d, OPS_MAX) };
    for (uint32_t i = 0; i < s->op_count; i++) {
        const model_op op = draw_op(x);

        ops[i] = op_for(&op, &memory[i]);
        if (s->err != SL_OK) /* the model has stopped at the op that failed, as the store will */
            continue;
        s->results[i] = model_do(&x->now, &op);
        s->err = s->results[i].err;
        s->failed_op = i;
    }
    if (s->err != SL_OK)
        x->now = before;
    x->history[x->batch_count] = x->now;
    EXPECT_OK(submit(&x->r, ops, s->op_count, SL_DURABLE_SYNC, &s->answered));
}

/* --- judging --- */

static void check_answer(const run *x, const sent *s)
{
    const uint32_t last = s->err == SL_OK ? s->op_count - 1 : s->failed_op;

    AGREE(s->answered.calls == 1);
    AGREE(s->answered.err == s->err);
    AGREE(s->err == SL_OK || s->answered.failed_op == s->failed_op);
    for (uint32_t i = s->err == SL_OK ? 0 : last; i <= last; i++) {
        AGREE(s->err == SL_ERR_STREAM_DELETED ||
              (int64_t)s->answered.results[i].revision == s->results[i].revision);
        AGREE(s->answered.results[i].repeated == s->results[i].repeated);
    }
}

static void check_everything(run *x)
{
    const sl_read how = { .from = 0 };
    SL_CLEANUP(page_free) page p = read_by(&x->r, &how, 7);

    AGREE(p.opened == SL_OK && p.count == x->now.event_count);
    for (uint32_t i = 0; i < p.count; i++) {
        AGREE(p.seen[i].number == model_events[i].number);
        AGREE((int64_t)p.seen[i].revision == model_events[i].revision);
        AGREE(i == 0 || p.seen[i].position > p.seen[i - 1].position);
    }
}

static void check_shown(run *x, int stream, bool backwards, int64_t from)
{
    const sl_read how = { .stream = sl_str_from(name_of(stream)),
                          .backwards = backwards,
                          .from = (uint64_t)from };
    const int64_t last = x->now.streams[stream].last, first = model_first(&x->now, stream);
    SL_CLEANUP(page_free) page p = read_by(&x->r, &how, 1 + (uint32_t)dice_pick(&x->d, 5));
    int64_t at = backwards ? (from > last ? last : from) : (from < first ? first : from);

    AGREE(p.opened == SL_OK && p.ended == SL_ERR_EMPTY);
    for (uint32_t i = 0; i < p.count; i++, at += backwards ? -1 : 1) {
        AGREE(at >= first && at <= last && (int64_t)p.seen[i].revision == at);
        AGREE(p.seen[i].number == model_at(&x->now, stream, at));
    }
    AGREE(backwards ? at < first || from < first : at > last);
}

static void check_stream(run *x, int stream)
{
    const sl_err err = model_tombstoned(&x->now, stream) ? SL_ERR_STREAM_DELETED
                       : model_soft_deleted(&x->now, stream) || x->now.streams[stream].last < 0
                           ? SL_ERR_NOT_FOUND
                           : SL_OK;
    const int64_t from = (int64_t)dice_pick(&x->d, 20);

    if (err != SL_OK) {
        expect_unreadable(&x->r, name_of(stream), err);
        return;
    }
    check_shown(x, stream, false, from);
    check_shown(x, stream, true, from);
    check_shown(x, stream, true, INT64_MAX);
}

/* Everything that was sent is answered, and what can be read is what the model has. */
static void settle(run *x)
{
    sl_store_turn(x->r.store);
    wait_for(&x->r, x->batch_count);
    for (uint32_t i = 0; i < x->batch_count; i++)
        check_answer(x, &x->batches[i]);
    check_everything(x);
    for (int stream = 0; stream < 2 * MODEL_STREAMS; stream++)
        check_stream(x, stream);
}

/* --- crashing --- */

static void begin_again(run *x)
{
    x->r.done_count = 0;
    x->batch_count = x->written_count = 0;
    x->history[0] = x->now;
    x->fresh_id = x->next_id;
}

static void crash(run *x, sl_restart kind)
{
    uint32_t survived = 0, least = 0, found;

    while (least < x->batch_count && x->batches[least].answered.calls > 0)
        least++;
    if (kind == SL_RESTART_KILLED && x->written_count > least)
        least = x->written_count;
    if (!rig_restart(&x->r, kind))
        return;
    found = count_all(&x->r);
    for (survived = x->batch_count; survived > least && x->history[survived].event_count != found;)
        survived--;
    AGREE(x->history[survived].event_count ==
          found); /* all of a batch or nothing, and nothing that was promised is lost */
    x->now = x->history[survived];
    begin_again(x);
    settle(x);
}

static void step(run *x)
{
    const size_t what = dice_pick(&x->d, 100);

    if (what < 70) {
        send_batch(x);
    } else if (what < 80) {
        sl_store_turn(x->r.store);
        x->written_count = x->batch_count;
    } else if (what < 90) {
        sl_store_poll(x->r.store);
    } else if (what < 96) {
        settle(x);
    } else {
        crash(x, what < 98 ? SL_RESTART_KILLED : SL_RESTART_POWER_CUT);
    }
}

TEST(random_batches_reads_and_crashes_end_as_the_model_says)
{
    static run whole; /* too large for a stack */
    run *const x = &whole;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        *x = (run){ .seed = seed,
                    .d = dice_from(seed),
                    .r = rig_open(),
                    .now = model_new(),
                    .next_id = 1,
                    .fresh_id = 1 };
        begin_again(x);
        for (x->step = 0; x->step < STEPS; x->step++)
            step(x);
        settle(x);
        rig_close(&x->r);
    }
}
