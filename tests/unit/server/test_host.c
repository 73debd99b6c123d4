/* tests/unit/server/test_host.c — turns, alarms, and the beginning of the end. */
#include "../base/support.h"
#include "made.h"

#include "server/door.h"
#include "server/tail.h"

static void start(server_rig *rig)
{
    server_rig_init(rig);
    made_start(rig);
}

/* --- turns --- */

typedef struct chain {
    server_rig *rig;
    unsigned left, done_count;
} chain;

static void submit_next(chain *c);

/* What a done() submits comes after the write of its turn. */
static void on_link_done(void *ctx, const sl_commit *commit)
{
    chain *const c = ctx;

    EXPECT_OK(commit->err);
    c->done_count++;
    if (c->left-- > 0)
        submit_next(c);
}

static void submit_next(chain *c)
{
    const sl_event_in event = { .id = { { (uint8_t)(c->left + 1) } },
                                .type = SL_STR_INIT("t"),
                                .created_ns = 1 };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = SL_STR_INIT("a"), .events = &event, .event_count = 1 } };

    EXPECT_OK(sl_door_submit(c->rig->host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, on_link_done, c));
}

TEST(what_is_durable_at_once_is_answered_in_the_same_turn)
{
    server_rig rig;
    chain c;

    start(&rig);
    c = (chain){ .rig = &rig };
    submit_next(&c);
    EXPECT(!sl_host_turn(rig.host));
    EXPECT_EQ(c.done_count, 1);
    server_rig_done(&rig);
}

TEST(a_turn_asks_for_another_one_when_an_answer_has_submitted_something)
{
    server_rig rig;
    chain c;

    start(&rig);
    c = (chain){ .rig = &rig, .left = 3 };
    submit_next(&c);
    EXPECT(sl_host_turn(rig.host));
    EXPECT(sl_host_turn(rig.host));
    EXPECT(sl_host_turn(rig.host));
    EXPECT(!sl_host_turn(rig.host));
    EXPECT_EQ(c.done_count, 4);
    server_rig_done(&rig);
}

typedef struct reading_writer {
    sl_reader_node reader;
    chain chain;
} reading_writer;

static void write_when_woken(void *ctx)
{
    submit_next(&((reading_writer *)ctx)->chain);
}

TEST(a_reader_that_writes_after_the_write_of_its_turn_is_not_left_alone)
{
    server_rig rig;
    reading_writer w;

    start(&rig);
    w.chain = (chain){ .rig = &rig };
    sl_reader_init(&w.reader, SL_STR("b"), write_when_woken, &w);
    sl_tail_wait_commit(rig.host->tail, &w.reader);
    server_rig_append(&rig, "b", "t", "{}"); /* wakes the reader in the second half of the turn */
    while (sl_host_turn(rig.host))
        ;
    EXPECT_EQ(w.chain.done_count, 1);
    server_rig_done(&rig);
}

/* --- alarms --- */

typedef struct bell {
    server_rig *rig;
    sl_alarm alarm;
    unsigned rings;
    uint64_t again_at_ns; /* 0: not again */
    struct bell *stops;
    char name, *diary;
} bell;

static void on_ring(void *ctx)
{
    bell *const b = ctx;
    const char text[] = { b->name, 0 };

    b->rings++;
    strcat(b->diary, text);
    if (b->again_at_ns != 0)
        sl_alarm_set(b->rig->host, &b->alarm, b->again_at_ns);
    if (b->stops != NULL)
        sl_alarm_stop(b->rig->host, &b->stops->alarm);
}

static void make_bell(bell *b, server_rig *rig, char name, char *diary)
{
    *b = (bell){ .rig = rig, .name = name, .diary = diary };
    b->alarm.fn = on_ring;
    b->alarm.ctx = b;
}

TEST(alarms_ring_once_in_the_order_of_their_times_and_not_before)
{
    server_rig rig;
    bell bells[4];
    char diary[32] = "";

    start(&rig);
    EXPECT_EQ(sl_host_due_ns(rig.host), UINT64_MAX);
    for (int i = 0; i < 4; i++)
        make_bell(&bells[i], &rig, (char)('a' + i), diary);
    sl_alarm_set(rig.host, &bells[0].alarm, 300);
    sl_alarm_set(rig.host, &bells[1].alarm, 100);
    sl_alarm_set(rig.host, &bells[2].alarm, 200);
    sl_alarm_set(rig.host, &bells[3].alarm, 150);
    sl_alarm_set(rig.host, &bells[3].alarm, 400); /* replaces the earlier time */
    EXPECT_EQ(sl_host_due_ns(rig.host), 100);
    sl_host_tick(rig.host, 99);
    EXPECT_STR(diary, "");
    sl_host_tick(rig.host, 300);
    EXPECT_STR(diary, "bca");
    EXPECT_EQ(sl_host_due_ns(rig.host), 400);
    sl_alarm_set(rig.host, &bells[3].alarm, UINT64_MAX); /* never */
    sl_host_tick(rig.host, 1000);
    EXPECT_STR(diary, "bca");
    EXPECT_EQ(sl_host_due_ns(rig.host), UINT64_MAX);
    server_rig_done(&rig);
}

TEST(an_alarm_that_sets_itself_for_the_past_waits_for_the_next_tick)
{
    server_rig rig;
    bell b;
    char diary[32] = "";

    start(&rig);
    make_bell(&b, &rig, 'x', diary);
    b.again_at_ns = 1;
    sl_alarm_set(rig.host, &b.alarm, 50);
    sl_host_tick(rig.host, 100);
    EXPECT_EQ(b.rings, 1);
    EXPECT(sl_host_due_ns(rig.host) <= 101);
    b.again_at_ns = 0;
    sl_host_tick(rig.host, 101);
    EXPECT_EQ(b.rings, 2);
    sl_host_tick(rig.host, 102);
    EXPECT_EQ(b.rings, 2);
    server_rig_done(&rig);
}

TEST(an_alarm_may_stop_another_that_is_due_as_well)
{
    server_rig rig;
    bell first, second;
    char diary[32] = "";

    start(&rig);
    make_bell(&first, &rig, 'a', diary);
    make_bell(&second, &rig, 'b', diary);
    first.stops = &second;
    sl_alarm_set(rig.host, &first.alarm, 10);
    sl_alarm_set(rig.host, &second.alarm, 20);
    sl_host_tick(rig.host, 30);
    EXPECT_STR(diary, "a");
    sl_alarm_stop(rig.host, &second.alarm); /* it is not set: harmless */
    server_rig_done(&rig);
}

/* --- the beginning of the end --- */

/* S3.13, S3.15: whatever the method, a new call is refused and told why. */
TEST(S3_13_new_calls_are_refused_with_the_first_reason)
{
    server_rig rig;
    server_call *call;

    start(&rig);
    sl_host_stop(rig.host, "SIGTERM");
    sl_host_stop(rig.host, "another");
    call = server_rig_unary(&rig, MADE_ECHO, SL_STR("x"));
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT(strstr(call->message, "The server is shutting down: SIGTERM") == call->message);
    EXPECT_STR(made_story, "");
    server_rig_done(&rig);
}

TEST(open_calls_end_as_their_methods_want_it_when_the_server_stops)
{
    server_rig rig;
    server_call *unary, *talk, *stops, *done;

    start(&rig);
    talk = server_rig_call(&rig, MADE_TALK);
    stops = server_rig_call(&rig, MADE_STOPS);
    done = server_rig_call(&rig, MADE_HELD);
    server_rig_run(&rig);
    server_call_cancel(done);
    server_rig_run(&rig);
    sl_request_release(made_last); /* over before the end: nobody stops it */
    unary = server_rig_call(&rig, MADE_LATER);
    server_call_send(unary, SL_STR("x"));
    server_rig_run(&rig);
    made_forget();
    sl_host_stop(rig.host, "SIGTERM");
    EXPECT_STR(made_story, "stop;");
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(talk, SL_STATUS_UNAVAILABLE);
    EXPECT_CALL_STATUS(stops, SL_STATUS_OK);
    EXPECT(!unary->ended);
    sl_request_answer(made_last, SL_STR("what was accepted is finished"));
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(unary, SL_STATUS_OK);
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    server_rig_done(&rig);
}

static void cancel_all_others(sl_request *request)
{
    sl_host *const host = request->host;

    while (!sl_list_empty(&host->requests)) /* those before it have had their turn, those after it not yet */
        sl_call_cancel(SL_CONTAINER_OF(sl_list_first(&host->requests), sl_request, node)->call);
}

static const sl_method *find_deadly(sl_str path, const char **ret_why)
{
    static sl_method deadly;

    deadly = *made_find(path, ret_why);
    deadly.stop = cancel_all_others;
    return &deadly;
}

TEST(a_stop_that_ends_every_call_is_survived)
{
    server_rig rig;
    server_call *calls[5];

    start(&rig);
    rig.host->find_method = find_deadly;
    for (int i = 0; i < 5; i++)
        calls[i] = server_rig_call(&rig, MADE_TALK);
    server_rig_run(&rig);
    sl_host_stop(rig.host, "SIGTERM");
    server_rig_run(&rig);
    for (int i = 0; i < 5; i++)
        EXPECT_CALL_STATUS(calls[i], SL_STATUS_CANCELLED);
    server_rig_done(&rig);
}

/* --- memory --- */

static sl_err make_host(const sl_alloc *alloc, server_rig *rig)
{
    return sl_host_new(&(sl_host_setup){ .alloc = alloc,
                                         .clock = &rig->clock,
                                         .log = &rig->log,
                                         .settings = &rig->settings,
                                         .store = rig->store,
                                         .wake = rig->host->wake,
                                         .wake_ctx = rig },
                       &rig->host);
}

TEST(a_host_that_gets_no_memory_leaves_nothing_behind)
{
    server_rig rig;
    sl_host *first;
    sl_err err = SL_ERR_NOMEM;

    start(&rig);
    first = rig.host;
    for (size_t fail_at = 1; err != SL_OK; fail_at++) {
        test_alloc memory = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&memory);

        rig.host = first;
        err = make_host(&alloc, &rig);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, fail_at);
        if (err == SL_OK)
            sl_host_free(rig.host);
        EXPECT_ROW(memory.block_count == 0, fail_at);
    }
    rig.host = first;
    server_rig_done(&rig);
}

/* Whatever allocation fails: the call ends with a status, and what it had is given back. */
TEST(a_call_that_gets_no_memory_ends_and_leaves_nothing_behind)
{
    bool has_failed = true;

    for (size_t fail_at = 1; has_failed; fail_at++) {
        test_alloc memory = { 0 };
        const sl_alloc alloc = test_alloc_use(&memory);
        server_rig rig;
        server_call *call;

        server_rig_init(&rig);
        rig.alloc = &alloc;
        made_start(&rig);
        server_rig_unary(&rig, MADE_ECHO, SL_STR("the connection is there"));
        memory.call_count = 0;
        memory.fail_at = fail_at;
        call = server_rig_call(&rig, MADE_ECHO);
        server_call_send(call, SL_STR("x"));
        server_rig_run(&rig); /* so that the message comes before the half-close, and must be kept */
        if (call->call != NULL)
            server_call_half_close(call);
        server_rig_run(&rig);
        has_failed = memory.call_count >= fail_at;
        memory.fail_at = 0;
        if (!call->ended) /* the connection has no memory: it is closed after a moment, and the client sees that */
            server_rig_advance(&rig, 2000000000);
        EXPECT_ROW(call->ended, fail_at);
        EXPECT_ROW(has_failed || call->status == SL_STATUS_OK, fail_at);
        EXPECT_CALL_STATUS(server_rig_unary(&rig, MADE_ECHO, SL_STR("x")), SL_STATUS_OK);
        server_rig_done(&rig);
        EXPECT_ROW(memory.block_count == 0, fail_at);
    }
}
