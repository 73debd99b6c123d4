/* tests/contract/test_batch.c — a batch is one commit: its ops see each other, all of it is there or nothing, and its answer
 * comes when it is as durable as was asked for. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>

TEST(several_streams_are_written_in_one_batch)
{
    rig r = rig_open();
    const sl_event_in a[] = { event(1), event(2) }, b[] = { event(3) };
    const sl_op ops[] = { append_op("a", NO_STREAM, a, 2), append_op("b", NO_STREAM, b, 1) };
    const answer answered = commit(&r, ops, 2);

    EXPECT_OK(answered.err);
    EXPECT_EQ(answered.results[0].revision, 1);
    EXPECT_EQ(answered.results[1].revision, 0);
    EXPECT(answered.results[0].position < answered.results[1].position);
    expect_stream(&r, "a", 0, 1);
    expect_stream(&r, "b", 0, 0);
    rig_close(&r);
}

TEST(later_ops_of_a_batch_see_the_earlier_ones)
{
    rig r = rig_open();
    const sl_event_in e[] = { event(1), event(2), event(3), event(4) };
    const sl_op ops[] = {
        append_op("s", NO_STREAM, &e[0], 2), /* 0, 1 */
        append_op("s", NO_STREAM, &e[0], 2), /* the same again: repeated */
        append_op("s", ANY, &e[1], 1),       /* and a part of it */
        append_op("s", EXACT(1), &e[2], 1),  /* 2 */
        delete_op("s", EXACT(2)),
        append_op("s", EXACT(2), &e[3], 1), /* 3, and it lives again */
    };
    const answer a = commit(&r, ops, SL_COUNT_OF(ops));

    EXPECT_OK(a.err);
    EXPECT_EQ(a.results[0].revision, 1);
    EXPECT(a.results[1].repeated && a.results[1].revision == 1);
    EXPECT_EQ(a.results[1].position, a.results[0].position);
    EXPECT(a.results[2].repeated && a.results[2].revision == 1);
    EXPECT(!a.results[3].repeated && a.results[3].revision == 2);
    EXPECT_EQ(a.results[4].revision, 2);
    EXPECT_EQ(a.results[5].revision, 3);
    expect_stream(&r, "s", 3, 3);
    rig_close(&r);
}

/* Rolled back: as if the batch had never been. */
static void expect_untouched(rig *r)
{
    EXPECT_EQ(info_of(r, "old").revision, 1);
    EXPECT_EQ(info_of(r, "old").max_count, 0);
    EXPECT_EQ(info_of(r, "new").state, SL_STREAM_MISSING);
    EXPECT_EQ(info_of(r, "$$old").state, SL_STREAM_MISSING);
    expect_stream(r, "old", 0, 1);
    expect_unreadable(r, "new", SL_ERR_NOT_FOUND);
    EXPECT_EQ(count_all(r), 2);
}

TEST(when_one_op_fails_nothing_of_the_batch_is_there)
{
    rig r = rig_open();
    sl_event_in metadata = event(20);
    const sl_event_in fresh[] = { event(10), event(11) }, *const m = &metadata;
    const sl_op failing[] = { append_op("old", EXACT(7), fresh, 1), append_op("gone", ANY, fresh, 1),
                              drop_op(9) };
    const sl_err errors[] = { SL_ERR_WRONG_REVISION, SL_ERR_STREAM_DELETED, SL_ERR_NOT_FOUND };

    metadata.data = SL_STR("{\"$maxCount\":1}");
    append(&r, "old", NO_STREAM, 1, 2);
    for (size_t i = 0; i < SL_COUNT_OF(failing); i++) {
        const sl_op ops[] = {
            append_op("new", NO_STREAM, fresh, 2),
            append_op("old", ANY, fresh, 2),
            append_op("$$old", ANY, m, 1),
            create_op(5, "group"),
            delete_op("new", ANY),
            tombstone_op("gone", ANY),
            failing[i],
        };
        const answer a = commit(&r, ops, SL_COUNT_OF(ops));

        EXPECT_ERR(a.err, errors[i]);
        EXPECT_EQ(a.failed_op, 6);
        expect_untouched(&r);
    }
    rig_restart(&r, SL_RESTART_KILLED);
    expect_untouched(&r);
    expect_written(append(&r, "new", ANY, 10, 2), 1); /* its ids are not known either */
    rig_close(&r);
}

TEST(a_batch_that_was_refused_takes_no_position)
{
    rig r = rig_open();
    const answer first = append(&r, "s", ANY, 1, 1);

    for (int i = 0; i < 10; i++)
        EXPECT_ERR(append(&r, "s", EXACT(9), 5, 3).err, SL_ERR_WRONG_REVISION);
    EXPECT_EQ(append(&r, "s", ANY, 2, 1).results[0].position, first.results[0].position + 1);
    rig_close(&r);
}

TEST(batches_are_answered_in_the_order_of_submission)
{
    rig r = rig_open();
    answer answers[20];

    for (uint64_t i = 0; i < SL_COUNT_OF(answers); i++) {
        const sl_event_in e = event(i + 1);
        const sl_op op = append_op("s", i % 3 == 2 ? EXACT(1000) : ANY, &e, 1); /* every third is refused */

        EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_SYNC, &answers[i]));
        if (i % 4 == 0)
            sl_store_turn(r.store);
        if (i % 7 == 0)
            sl_store_poll(r.store);
    }
    sl_store_turn(r.store);
    wait_for(&r, SL_COUNT_OF(answers));
    for (uint64_t i = 0; i < SL_COUNT_OF(answers); i++) {
        EXPECT_EQ(answers[i].order, i + 1);
        EXPECT_EQ(answers[i].calls, 1);
        EXPECT_ERR(answers[i].err, i % 3 == 2 ? SL_ERR_WRONG_REVISION : SL_OK);
    }
    rig_close(&r);
}

static const sl_effect epoch = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 4 } };

TEST(what_needs_no_sync_is_answered_without_one)
{
    rig r = rig_open();
    const sl_op create = create_op(1, "g"), record = record_op(1, &epoch);
    answer a;

    EXPECT_OK(commit(&r, &create, 1).err);
    EXPECT_OK(submit(&r, &record, 1, SL_DURABLE_WRITTEN, &a));
    sl_store_turn(r.store);
    wait_for(&r, 2);
    EXPECT_EQ(a.calls, 1);
    EXPECT_OK(a.err);
    rig_close(&r);
}

TEST(events_are_shown_when_they_are_durable_and_not_before)
{
    rig r = rig_open();
    const sl_event_in e = event(1);
    const sl_op op = append_op("s", ANY, &e, 1);
    const uint64_t end = sl_store_end(r.store);
    answer a;

    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_SYNC, &a));
    EXPECT_EQ(info_of(&r, "s").revision, 0); /* the next append has to know it */
    EXPECT_EQ(count_all(&r), 0);
    expect_stream(&r, "s", 1, 0);
    EXPECT_EQ(sl_store_end(r.store), end);
    sl_store_turn(r.store);
    wait_for(&r, 1);
    EXPECT_EQ(count_all(&r), 1);
    expect_stream(&r, "s", 0, 0);
    EXPECT(sl_store_end(r.store) > a.results[0].position);
    rig_close(&r);
}

typedef struct chain {
    rig *r;
    uint64_t count;
} chain;

/* Submits the next one from inside the answer, and looks at what is there. */
static void append_again(void *ctx, const sl_commit *commit)
{
    chain *const c = ctx;
    const sl_event_in e = event(c->count + 1);
    const sl_op op = append_op("s", ANY, &e, 1);
    const sl_batch batch = { .ops = &op, .op_count = 1, .durability = SL_DURABLE_SYNC };

    EXPECT_OK(commit->err);
    EXPECT_EQ(commit->results[0].revision, c->count - 1);
    EXPECT_EQ(count_all(c->r), c->count); /* what is answered can be read */
    c->r->done_count++;
    if (c->count++ < 5)
        EXPECT_OK(sl_store_submit(c->r->store, &batch, append_again, c));
}

TEST(an_answer_may_submit_and_read)
{
    rig r = rig_open();
    chain c = { &r, 1 };
    const sl_event_in e = event(1);
    const sl_op op = append_op("s", ANY, &e, 1);
    const sl_batch batch = { .ops = &op, .op_count = 1, .durability = SL_DURABLE_SYNC };

    EXPECT_OK(sl_store_submit(r.store, &batch, append_again, &c));
    for (uint64_t i = 1; i <= 5; i++) {
        sl_store_turn(r.store);
        wait_for(&r, i);
    }
    EXPECT_EQ(count_all(&r), 5);
    rig_close(&r);
}

static void fail_again(void *ctx, const sl_commit *commit)
{
    rig *const r = ctx;
    const sl_event_in e = event(1);
    const sl_op op = append_op("s", EXACT(7), &e, 1);
    const sl_batch batch = { .ops = &op, .op_count = 1, .durability = SL_DURABLE_SYNC };

    EXPECT_ERR(commit->err, SL_ERR_WRONG_REVISION);
    if (++r->done_count < 100)
        EXPECT_OK(sl_store_submit(r->store, &batch, fail_again, r));
}

/* A client that sends what was refused again and again must not keep the others waiting. */
TEST(what_an_answer_submits_is_answered_by_a_later_poll)
{
    rig r = rig_open();
    const sl_event_in e = event(1);
    const sl_op op = append_op("s", EXACT(7), &e, 1);
    const sl_batch batch = { .ops = &op, .op_count = 1, .durability = SL_DURABLE_SYNC };

    EXPECT_OK(sl_store_submit(r.store, &batch, fail_again, &r));
    for (uint64_t i = 1; i <= 100; i++) {
        sl_store_turn(r.store);
        wait_for(&r, i);
        EXPECT_EQ(r.done_count, i);
    }
    rig_close(&r);
}

static void note_commit(void *ctx, uint64_t end)
{
    rig *const r = ctx;

    EXPECT(end > r->committed_end);
    EXPECT_EQ(end, sl_store_end(r->store));
    r->committed_end = end;
    r->commit_count++;
}

TEST(the_listener_hears_of_every_move_of_the_end)
{
    rig r = rig_open();

    sl_store_on_commit(r.store, note_commit, &r);
    for (uint64_t i = 1; i <= 3; i++) {
        append(&r, "s", ANY, i, 1);
        EXPECT_EQ(r.committed_end, sl_store_end(r.store));
    }
    EXPECT(r.commit_count >= 3);
    rig_close(&r);
}

TEST(closing_answers_everything)
{
    rig r = rig_open();
    const sl_event_in e[] = { event(1), event(2) };
    const sl_op one = append_op("s", ANY, &e[0], 1), two = append_op("s", EXACT(9), &e[1], 1),
                create = create_op(1, "");
    answer a, b, c;

    EXPECT_OK(submit(&r, &one, 1, SL_DURABLE_SYNC, &a));
    sl_store_turn(r.store);
    EXPECT_OK(submit(&r, &two, 1, SL_DURABLE_SYNC, &b)); /* its turn never ends otherwise */
    EXPECT_OK(submit(&r, &create, 1, SL_DURABLE_WRITTEN, &c));
    rig_close(&r);
    EXPECT_OK(a.err);
    EXPECT_ERR(b.err, SL_ERR_WRONG_REVISION);
    EXPECT_OK(c.err);
    EXPECT_EQ(a.calls + b.calls + c.calls, 3);
}

/* --- crashes --- */

TEST(what_was_answered_survives_a_power_cut_and_what_was_only_submitted_does_not)
{
    rig r = rig_open();
    const sl_event_in e[] = { event(10), event(11) };
    const sl_op ops[] = { append_op("s", ANY, &e[0], 1), append_op("t", ANY, &e[1], 1) };
    answer a, b;
    uint64_t last;

    append(&r, "s", ANY, 1, 2);
    EXPECT_OK(submit(&r, &ops[0], 1, SL_DURABLE_SYNC, &a));
    sl_store_turn(r.store); /* written, the sync has begun, and may be over already */
    EXPECT_OK(submit(&r, &ops[1], 1, SL_DURABLE_SYNC, &b));
    if (!rig_restart(&r, SL_RESTART_POWER_CUT)) {
        rig_close(&r);
        skip();
    }
    last = info_of(&r, "s").revision;
    EXPECT(last == 1 || last == 2);
    expect_stream(&r, "s", 0, last);
    EXPECT_EQ(info_of(&r, "t").state, SL_STREAM_MISSING);
    expect_written(append(&r, "s", EXACT(last), 12, 1), last + 1);
    rig_close(&r);
}

TEST(what_was_written_survives_the_death_of_the_process)
{
    rig r = rig_open();
    const sl_event_in e[] = { event(10), event(11) };
    const sl_op ops[] = { append_op("s", ANY, e, 2), append_op("t", ANY, e, 2) };
    answer a;

    EXPECT_OK(submit(&r, ops, 2, SL_DURABLE_SYNC, &a));
    sl_store_turn(r.store);
    rig_restart(&r, SL_RESTART_KILLED);
    expect_stream(&r, "s", 0, 1);
    expect_stream(&r, "t", 0, 1);
    EXPECT_EQ(count_all(&r), 4);
    rig_close(&r);
}

TEST(too_much_that_waits_is_refused_until_answers_came)
{
    static char data[4 * 1024 * 1024];
    answer answers[32];
    rig r = rig_open_large();
    size_t taken = 0;
    sl_err err = SL_OK;

    for (; taken < SL_COUNT_OF(answers) && err == SL_OK; taken += err == SL_OK) {
        sl_event_in e = event(taken + 1);
        const sl_op op = append_op("s", ANY, &e, 1);

        e.type = SL_STR("large");
        e.data = (sl_str){ data, sizeof data };
        err = submit(&r, &op, 1, SL_DURABLE_SYNC, &answers[taken]);
    }
    EXPECT_ERR(err, SL_ERR_FULL);
    EXPECT(taken >= SL_BATCH_BYTES_MAX / sizeof data); /* at least one of the largest */
    sl_store_turn(r.store);
    wait_for(&r, taken);
    expect_stream(&r, "s", 0, taken - 1); /* the one that was refused left nothing */
    expect_written(append(&r, "s", ANY, 1000, 1), taken);
    rig_close(&r);
}
