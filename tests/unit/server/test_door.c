/* tests/unit/server/test_door.c — what gets in is answered, what comes too late is refused, and who waits is not forgotten. */
#include "../base/support.h"
#include "rig.h"

#include "server/door.h"
#include "store/backend.h"

enum {
    LARGE_BYTES = 15 * 1024 * 1024 /* two of them in one batch: only two such batches can be inside */
};

/* One batch of a test, and what became of it. */
typedef struct parcel {
    server_rig *rig;
    const char *stream;
    sl_expected expected;
    uint64_t id;
    bool large;
    sl_err submitted;
    unsigned done_count;
    sl_err err;
    uint64_t revision;
    sl_door_waiter waiter;
    unsigned tries;
    char *diary;         /* its stream is added when it gets in */
    struct parcel *next; /* submitted when this one is done */
} parcel;

static char large_data[LARGE_BYTES];

static void try_again(void *ctx);

static void on_done(void *ctx, const sl_commit *commit)
{
    parcel *const p = ctx;

    p->done_count++;
    p->err = commit->err;
    p->revision = commit->results[0].revision;
    if (p->next != NULL) {
        sl_door_waiter_init(&p->next->waiter, try_again, p->next);
        try_again(p->next);
    }
}

static sl_event_in make_event(uint64_t number, bool large)
{
    sl_event_in event = { .type = SL_STR_INIT("t"),
                          .data = SL_STR_INIT("data"),
                          .metadata = SL_STR_INIT("meta"),
                          .created_ns = 1 };

    memcpy(event.id.bytes, &number, sizeof number);
    event.id.bytes[15] = 1;
    if (large)
        event.data = (sl_str){ large_data, sizeof large_data };
    return event;
}

static sl_err submit(parcel *p)
{
    const sl_event_in events[] = { make_event(p->id, p->large), make_event(p->id + 1000000, p->large) };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = sl_str_from(p->stream),
                                   .expected = p->expected,
                                   .events = events,
                                   .event_count = p->large ? 2 : 1 } };

    return p->submitted =
               sl_door_submit(p->rig->host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, on_done, p);
}

static void try_again(void *ctx)
{
    parcel *const p = ctx;

    p->tries++;
    if (submit(p) == SL_ERR_FULL)
        sl_door_wait(p->rig->host->door, &p->waiter);
    else if (p->diary != NULL)
        strcat(p->diary, p->stream);
}

static parcel parcel_of(server_rig *rig, const char *stream)
{
    static uint64_t id;

    return (parcel){ .rig = rig, .stream = stream, .id = ++id };
}

static void wait_for(parcel *p)
{
    sl_door_waiter_init(&p->waiter, try_again, p);
    sl_door_wait(p->rig->host->door, &p->waiter);
}

static void start(server_rig *rig)
{
    server_rig_init(rig);
    server_rig_start(rig);
}

/* Two large batches: nothing else fits until one of them is done. */
static void fill(server_rig *rig, parcel *large)
{
    for (int i = 0; i < 2; i++) {
        large[i] = parcel_of(rig, "large");
        large[i].large = true;
        EXPECT_OK(submit(&large[i]));
    }
}

TEST(what_got_in_is_answered_once_and_counted)
{
    server_rig rig;
    parcel p;

    start(&rig);
    p = parcel_of(&rig, "a");
    EXPECT_OK(submit(&p));
    EXPECT_EQ(p.done_count, 0); /* never from inside */
    EXPECT_EQ(sl_door_inside(rig.host->door), 1);
    server_rig_run(&rig);
    EXPECT_EQ(p.done_count, 1);
    EXPECT_OK(p.err);
    EXPECT_EQ(sl_door_inside(rig.host->door), 0);
    EXPECT_EQ(rig.host->counters.batches_accepted, 1);
    EXPECT_EQ(rig.host->counters.batches_done, 1);
    EXPECT_EQ(rig.host->counters.events_appended, 1);
    EXPECT_EQ(rig.host->counters.bytes_appended, 8);
    server_rig_done(&rig);
}

TEST(what_was_there_before_or_breaks_a_rule_is_not_counted_as_appended)
{
    server_rig rig;
    parcel first, wrong;

    start(&rig);
    first = parcel_of(&rig, "a");
    EXPECT_OK(submit(&first));
    server_rig_run(&rig);
    EXPECT_OK(submit(&first)); /* the same event id: it is there already */
    wrong = parcel_of(&rig, "a");
    wrong.expected = (sl_expected){ SL_EXPECT_EXACT, 7 };
    EXPECT_OK(submit(&wrong));
    server_rig_run(&rig);
    EXPECT_EQ(first.done_count, 2);
    EXPECT_OK(first.err);
    EXPECT_ERR(wrong.err, SL_ERR_WRONG_REVISION);
    EXPECT_EQ(rig.host->counters.batches_accepted, 3);
    EXPECT_EQ(rig.host->counters.batches_done, 2);
    EXPECT_EQ(rig.host->counters.batches_failed, 1);
    EXPECT_EQ(rig.host->counters.events_appended, 1);
    server_rig_done(&rig);
}

TEST(what_the_store_does_not_take_is_refused_and_never_answered)
{
    server_rig rig;
    parcel p;

    start(&rig);
    p = parcel_of(&rig, "$all");
    EXPECT_ERR(submit(&p), SL_ERR_INVALID);
    p.stream = NULL;
    EXPECT_ERR(submit(&p), SL_ERR_INVALID);
    EXPECT_ERR(sl_door_submit(rig.host->door, &(sl_batch){ .op_count = SL_BATCH_OPS_MAX + 1 }, on_done, &p),
               SL_ERR_TOO_LARGE);
    EXPECT_ERR(sl_door_submit(rig.host->door, &(sl_batch){ .op_count = 0 }, on_done, &p), SL_ERR_INVALID);
    server_rig_run(&rig);
    EXPECT_EQ(p.done_count, 0);
    EXPECT_EQ(sl_door_inside(rig.host->door), 0);
    EXPECT_EQ(rig.host->counters.batches_refused, 4);
    server_rig_done(&rig);
}

/* S3.13, S3.14, S3.15: who came before the door was shut is answered, who comes after changes nothing. */
TEST(S3_14_a_shut_door_answers_what_is_inside_and_refuses_the_rest)
{
    server_rig rig;
    parcel before, after;
    sl_stream_info info;

    start(&rig);
    before = parcel_of(&rig, "before");
    after = parcel_of(&rig, "after");
    EXPECT_OK(submit(&before));
    EXPECT(!sl_door_is_shut(rig.host->door));
    sl_door_shut(rig.host->door, "SIGTERM");
    sl_door_shut(rig.host->door, "a second reason");
    EXPECT(sl_door_is_shut(rig.host->door));
    EXPECT_STR(sl_door_reason(rig.host->door), "SIGTERM");
    EXPECT_ERR(submit(&after), SL_ERR_DRAINING);
    server_rig_run(&rig);
    EXPECT_ERR(submit(&after), SL_ERR_DRAINING);
    EXPECT_EQ(before.done_count, 1);
    EXPECT_OK(before.err);
    EXPECT_EQ(after.done_count, 0);
    sl_store_stream(rig.store, SL_STR("after"), &info);
    EXPECT_EQ(info.state, SL_STREAM_MISSING);
    EXPECT_EQ(rig.host->counters.batches_refused, 2);
    server_rig_done(&rig);
}

/* S3.27: what is counted at the end begins with the moment in which the door was shut, and a batch that failed is not finished. */
TEST(S3_27_a_shut_door_knows_what_became_of_those_inside)
{
    server_rig rig;
    parcel before, good[3], wrong, late;
    sl_door_tally tally;

    start(&rig);
    before = parcel_of(&rig, "a");
    EXPECT_OK(submit(&before));
    server_rig_run(&rig);
    EXPECT_EQ(sl_door_since_shut(rig.host->door).finished, 0);
    for (int i = 0; i < 3; i++) {
        good[i] = parcel_of(&rig, "a");
        EXPECT_OK(submit(&good[i]));
    }
    wrong = parcel_of(&rig, "a");
    wrong.expected = (sl_expected){ SL_EXPECT_EXACT, 77 };
    EXPECT_OK(submit(&wrong));
    sl_door_shut(rig.host->door, "SIGTERM");
    late = parcel_of(&rig, "a");
    EXPECT_ERR(submit(&late), SL_ERR_DRAINING);
    tally = sl_door_since_shut(rig.host->door);
    EXPECT(tally.inside == 4 && tally.finished == 0 && tally.failed == 0 && tally.refused == 1);
    server_rig_run(&rig);
    tally = sl_door_since_shut(rig.host->door);
    EXPECT(tally.inside == 4 && tally.finished == 3 && tally.failed == 1 && tally.refused == 1);
    server_rig_done(&rig);
}

static sl_err have_no_room(sl_store *store, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    (void)store;
    (void)batch;
    (void)done;
    (void)ctx;
    return SL_ERR_FULL;
}

/* A store that is full although nothing is on its way has too many streams: who waited would wait for ever. */
TEST(who_can_never_get_in_is_not_told_to_wait)
{
    server_rig rig;
    sl_store_ops ops;
    const sl_store_ops *its_own;
    parcel p;

    start(&rig);
    ops = *(its_own = rig.store->ops);
    ops.submit = have_no_room;
    rig.store->ops = &ops;
    p = parcel_of(&rig, "a");
    EXPECT_ERR(submit(&p), SL_ERR_STREAMS_MAX);
    EXPECT_EQ(rig.host->counters.batches_refused, 1);
    rig.store->ops = its_own;
    server_rig_done(&rig);
}

TEST(a_reason_that_is_too_long_is_cut)
{
    char reason[1000];
    server_rig rig;

    start(&rig);
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    sl_door_shut(rig.host->door, reason);
    EXPECT_EQ(strlen(sl_door_reason(rig.host->door)), SL_DOOR_REASON_BYTES - 1);
    server_rig_done(&rig);
}

TEST(those_that_wait_get_in_in_their_order_and_nobody_overtakes_them)
{
    server_rig rig;
    parcel large[2], waiting[4], late;
    const char *const names[] = { "a", "b", "c", "d" };
    char diary[16] = "";

    start(&rig);
    fill(&rig, large);
    for (int i = 0; i < 4; i++) {
        waiting[i] = parcel_of(&rig, names[i]);
        waiting[i].large = i == 0; /* the first needs more room than the others */
        waiting[i].diary = diary;
        EXPECT_ERR(submit(&waiting[i]), SL_ERR_FULL);
        wait_for(&waiting[i]);
    }
    late = parcel_of(&rig, "late");
    EXPECT_ERR(submit(&late), SL_ERR_FULL); /* it would fit, but others were first */
    server_rig_run(&rig);
    EXPECT_STR(diary, "abcd");
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(waiting[i].done_count, 1);
    EXPECT_EQ(rig.host->counters.batches_refused, 0); /* FULL is no refusal */
    EXPECT_OK(submit(&late));
    server_rig_done(&rig);
}

TEST(who_has_to_wait_again_keeps_his_place_and_the_rest_is_not_tried)
{
    server_rig rig;
    parcel large[2], waiting[6];
    const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    char diary[16] = "";
    unsigned tries = 0;

    start(&rig);
    fill(&rig, large);
    for (int i = 0; i < 6; i++) {
        waiting[i] = parcel_of(&rig, names[i]);
        waiting[i].large = true;
        waiting[i].diary = diary;
        EXPECT_ERR(submit(&waiting[i]), SL_ERR_FULL);
        wait_for(&waiting[i]);
    }
    server_rig_run(&rig);
    EXPECT_STR(diary, "abcdef");
    for (int i = 0; i < 6; i++) {
        EXPECT_EQ(waiting[i].done_count, 1);
        tries += waiting[i].tries;
    }
    EXPECT(tries <= 6 + 8); /* at most one in vain for each batch that was done */
    server_rig_done(&rig);
}

/* One who waits with several batches, and submits them one after the other whenever he is called. */
typedef struct backlog {
    parcel *parcels;
    unsigned count, at, calls;
    sl_door_waiter waiter;
} backlog;

static void submit_all(void *ctx)
{
    backlog *const b = ctx;

    b->calls++;
    for (; b->at < b->count; b->at++) {
        parcel *const p = &b->parcels[b->at];

        if (submit(p) == SL_ERR_FULL) {
            sl_door_wait(p->rig->host->door, &b->waiter);
            return;
        }
        strcat(p->diary, p->stream);
    }
}

static void begin_backlog(backlog *b, server_rig *rig, const char *stream, char *diary)
{
    for (unsigned i = 0; i < b->count; i++) {
        b->parcels[i] = parcel_of(rig, stream);
        b->parcels[i].large = true;
        b->parcels[i].diary = diary;
    }
    sl_door_waiter_init(&b->waiter, submit_all, b);
    submit_all(b);
}

TEST(who_waits_with_many_batches_gets_one_in_at_a_time_while_others_wait)
{
    parcel large[2], of_a[6], of_b[3], of_c[1];
    backlog a = { .parcels = of_a, .count = 6 }, b = { .parcels = of_b, .count = 3 };
    backlog c = { .parcels = of_c, .count = 1 };
    char diary[16] = "";
    server_rig rig;

    start(&rig);
    fill(&rig, large);
    begin_backlog(&a, &rig, "a", diary);
    begin_backlog(&b, &rig, "b", diary);
    begin_backlog(&c, &rig, "c", diary);
    server_rig_run(&rig);
    EXPECT_STR(diary, "abcababaaa");
    for (int i = 0; i < 6; i++)
        EXPECT_EQ(of_a[i].done_count, 1);
    server_rig_done(&rig);
}

TEST(who_waits_alone_is_called_once_for_each_batch_that_is_done)
{
    parcel large[2], of_a[6];
    backlog a = { .parcels = of_a, .count = 6 };
    char diary[16] = "";
    server_rig rig;

    start(&rig);
    fill(&rig, large);
    begin_backlog(&a, &rig, "a", diary);
    server_rig_run(&rig);
    EXPECT_STR(diary, "aaaaaa");
    EXPECT(a.calls <= 1 + 2 + 6); /* the first one is his own */
    server_rig_done(&rig);
}

/* Even the last one that is answered, when nothing else is inside. */
TEST(what_an_answer_submits_goes_behind_those_that_wait)
{
    server_rig rig;
    parcel large[2], first, second;
    char diary[16] = "";

    start(&rig);
    fill(&rig, large);
    first = parcel_of(&rig, "a");
    first.large = true;
    second = parcel_of(&rig, "b");
    first.diary = second.diary = diary;
    large[1].next = &second;
    wait_for(&first);
    server_rig_run(&rig);
    EXPECT_STR(diary, "ab");
    EXPECT_EQ(first.done_count, 1);
    EXPECT_EQ(second.done_count, 1);
    EXPECT_EQ(second.tries, 2);
    server_rig_done(&rig);
}

TEST(who_waits_hears_that_the_door_was_shut_and_who_has_gone_hears_nothing)
{
    server_rig rig;
    parcel large[2], waiting, gone;

    start(&rig);
    fill(&rig, large);
    waiting = parcel_of(&rig, "a");
    gone = parcel_of(&rig, "b");
    wait_for(&gone);
    wait_for(&waiting);
    sl_door_forget(&gone.waiter);
    sl_door_forget(&gone.waiter); /* twice is harmless */
    sl_door_shut(rig.host->door, "enough");
    EXPECT_EQ(waiting.tries, 1);
    EXPECT_ERR(waiting.submitted, SL_ERR_DRAINING);
    server_rig_run(&rig);
    EXPECT_EQ(waiting.tries, 1);
    EXPECT_EQ(gone.tries, 0);
    EXPECT_OK(large[1].err);
    server_rig_done(&rig);
}

/* The host goes while the disk is still busy: services are told, the store keeps what it has, and nothing is freed twice. */
TEST(an_abandoned_batch_is_answered_with_doubt_and_still_written)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default };
    server_rig rig;
    parcel many[20];
    sl_store *store;
    sl_stream_info info;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    server_rig_init(&rig);
    rig.store = store;
    server_rig_start(&rig);
    for (int i = 0; i < 20; i++) {
        many[i] = parcel_of(&rig, "a");
        EXPECT_OK(submit(&many[i]));
    }
    server_rig_done(&rig);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(many[i].done_count, 1);
        EXPECT_ERR(many[i].err, SL_ERR_STORE_FAILED);
    }
    sl_store_stream(store, SL_STR("a"), &info);
    EXPECT_EQ(info.revision, 19);
    sl_store_close(store);
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(many[i].done_count, 1);
}

TEST(a_batch_of_many_streams_is_one_commit)
{
    enum {
        STREAMS = 3000
    };
    static sl_op ops[STREAMS];
    static char names[STREAMS][24];
    const sl_event_in event = make_event(77, false);
    server_rig rig;
    parcel p;

    start(&rig);
    p = parcel_of(&rig, "");
    for (int i = 0; i < STREAMS; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        ops[i] = (sl_op){ .kind = SL_OP_APPEND,
                          .append = { .stream = sl_str_from(names[i]), .events = &event, .event_count = 1 } };
    }
    EXPECT_OK(sl_door_submit(rig.host->door, &(sl_batch){ .ops = ops, .op_count = STREAMS }, on_done, &p));
    server_rig_run(&rig);
    EXPECT_OK(p.err);
    EXPECT_EQ(rig.host->counters.events_appended, STREAMS);
    EXPECT_EQ(rig.host->counters.batches_done, 1);
    server_rig_done(&rig);
}

TEST(without_memory_nothing_gets_in_and_nothing_is_lost)
{
    for (size_t fail_at = 1; fail_at < 4; fail_at++) {
        test_alloc memory = { 0 };
        const sl_alloc alloc = test_alloc_use(&memory);
        const sl_store_setup setup = { .alloc = &alloc };
        server_rig rig;
        parcel p;

        server_rig_init(&rig);
        EXPECT_OK(sl_store_open_memory(&setup, &rig.store));
        server_rig_start(&rig);
        p = parcel_of(&rig, "a");
        memory.call_count = 0;
        memory.fail_at = fail_at;
        EXPECT_ERR(submit(&p), SL_ERR_NOMEM);
        memory.fail_at = 0;
        EXPECT_EQ(sl_door_inside(rig.host->door), 0);
        EXPECT_OK(submit(&p));
        server_rig_run(&rig);
        EXPECT_EQ(p.done_count, 1);
        EXPECT_OK(p.err);
        EXPECT_EQ(p.revision, 0);
        server_rig_done(&rig);
        sl_store_close(rig.store);
        EXPECT_EQ(memory.block_count, 0);
    }
}
