/* The consumer's side of the call against the real server in one process: leases over broken connections and restarts, stops, and many
 * random histories in which no work may be done twice and none may be missing. */
#include "client/consuming_rig.h"
#include "server/groups_rig.h"
#include "server/operators_rig.h"

#include <stdlib.h>
#include <string.h>

typedef struct hosted {
    groups g;
    consuming_rig *rig;
    server_call *call; /* NULL: no connection */
    size_t seen;       /* messages that were passed on */
} hosted;

static void on_sent(void *ctx, sl_str message)
{
    server_call_send(((hosted *)ctx)->call, message);
}

static hosted *hosted_new(uint32_t events, uint32_t window)
{
    hosted *const h = calloc(1, sizeof *h);

    EXPECT(h != NULL);
    groups_start(&h->g);
    (void)groups_plain(&h->g);
    for (uint32_t i = 0; i < events; i++)
        (void)server_rig_append(&h->g.rig, "orders", "t", "{}");
    h->rig = consuming_rig_new("worker-1", window);
    h->rig->on_sent = on_sent;
    h->rig->ctx = h;
    return h;
}

static void hosted_free(hosted *h)
{
    consuming_rig_free(h->rig);
    groups_done(&h->g);
    free(h);
}

static bool pass_on(hosted *h)
{
    bool has_moved = false;

    while (h->call != NULL && h->seen < h->call->message_count) {
        EXPECT(sl_consuming_receive(&h->rig->c, h->call->messages[h->seen++], h->rig->now_ns));
        has_moved = true;
    }
    return has_moved;
}

/* Until nothing moves. */
static void pump(hosted *h)
{
    uint64_t sent_count;

    do {
        sent_count = h->rig->c.sent_count;
        EXPECT_OK(consuming_rig_turn(h->rig));
        server_rig_run(&h->g.rig);
    } while (pass_on(h) || h->rig->c.sent_count != sent_count);
}

static void join(hosted *h)
{
    const server_call_options options = { .peer = server_rig_connect(&h->g.rig, "127.0.0.1:1"),
                                          .path = GROUPS_PATH };

    h->call = server_rig_call_with(&h->g.rig, &options);
    h->seen = 0;
    sl_consuming_begin(&h->rig->c, true);
}

static void cut(hosted *h)
{
    server_rig_break(h->call->peer);
    server_rig_run(&h->g.rig);
    h->call = NULL;
    sl_consuming_over(&h->rig->c);
}

static void kill_server(hosted *h)
{
    h->call = NULL;
    groups_kill(&h->g);
    sl_consuming_over(&h->rig->c);
}

TEST(a_consumer_gets_events_of_the_real_server_and_its_acks_are_settled)
{
    hosted *const h = hosted_new(5, 3);

    join(h);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:1 0 1 2");
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 2), 2);
    pump(h);
    EXPECT_EQ(h->rig->c.holding.count, 3);
    EXPECT_EQ(h->rig->c.unexpected_count, 0);
    hosted_free(h);
}

TEST(started_work_is_kept_over_a_broken_connection_and_the_rest_comes_again)
{
    hosted *const h = hosted_new(4, 4);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_started(h->rig, 0, 2), 2);
    pump(h);
    (void)consuming_rig_heard(h->rig);
    cut(h);
    EXPECT_CONSUMER_HEARD(h->rig, "lost:2 lost:3");
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 1), 1); /* finished while it was alone */
    join(h);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:2+2 2 3 settled:0"); /* uncharged */
    EXPECT_EQ(consuming_rig_ack(h->rig, 1, 3), 3);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "settled:1 settled:2 settled:3");
    hosted_free(h);
}

/* Nothing of what was sent has arrived, again and again: that is nobody's fault, so nothing is counted, and nothing parked. */
TEST(events_on_their_way_when_the_connection_breaks_are_not_charged_to_one_that_marks_its_starts)
{
    hosted *const h = hosted_new(2, 2);

    h->rig->c.says_started = true;
    for (unsigned i = 0; i < 12; i++) {
        join(h);
        EXPECT_OK(consuming_rig_turn(h->rig));
        server_rig_run(&h->g.rig);
        EXPECT_EQ(h->call->message_count, 3);
        cut(h);
    }
    join(h);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:1 0 1");
    hosted_free(h);
}

TEST(a_killed_server_comes_back_and_takes_the_acks_of_what_was_held)
{
    hosted *const h = hosted_new(3, 3);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 1), 1);
    pump(h);
    (void)consuming_rig_heard(h->rig);
    kill_server(h);
    EXPECT_EQ(consuming_rig_ack(h->rig, 1, 1), 1);
    join(h);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:2+2 settled:1");
    EXPECT_EQ(consuming_rig_ack(h->rig, 2, 1), 1);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "settled:2");
    hosted_free(h);
}

TEST(an_ack_that_never_arrived_is_said_again_also_after_the_reconnect_window)
{
    hosted *const h = hosted_new(2, 2);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 1), 1);
    cut(h); /* before it was sent */
    server_rig_advance(&h->g.rig, 5 * GROUPS_SECOND_NS);
    (void)consuming_rig_heard(h->rig);
    join(h);
    pump(h);
    server_rig_advance(&h->g.rig, 5 * GROUPS_SECOND_NS); /* a pause of the retry, if there is one */
    pump(h);
    EXPECT(strstr(h->rig->heard, " 0") == NULL); /* was done once: never given out again */
    EXPECT_EQ(consuming_rig_ack(h->rig, 1, 1), 1);
    pump(h);
    EXPECT_EQ(h->rig->c.holding.held_count, 0);
    hosted_free(h);
}

/* --- a process that is killed, and the next one of its name --- */

/* Messages 0 and 1 are begun, 0 is finished, and nothing of that was said when the process dies. */
static hosted *hosted_with_a_dead_process(void)
{
    hosted *const h = hosted_new(3, 2);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_started(h->rig, 0, 2), 2);
    pump(h);
    cut(h);
    return h;
}

static void begin_next_process(hosted *h)
{
    consuming_rig *const next = consuming_rig_new("worker-1", 2);
    sl_consumer_finished left = { .revision = 0 };

    next->on_sent = on_sent;
    next->ctx = h;
    next->ids[0] = h->rig->ids[0];
    memcpy(left.id.bytes, h->rig->ids[0].bytes, sizeof left.id.bytes);
    consuming_rig_free(h->rig);
    h->rig = next;
    EXPECT_OK(sl_consuming_recall(&next->c, &left, 1));
    join(h);
    pump(h);
}

TEST(a_process_that_comes_back_within_the_window_acks_what_the_one_before_had_finished_B3)
{
    hosted *const h = hosted_with_a_dead_process();

    begin_next_process(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:1+1 1#1 2 settled:0");
    hosted_free(h);
}

TEST(a_process_that_comes_back_after_the_window_does_not_get_finished_work_again_B3)
{
    hosted *const h = hosted_with_a_dead_process();

    server_rig_advance(&h->g.rig, 5 * GROUPS_SECOND_NS);
    begin_next_process(h);
    EXPECT(strstr(h->rig->heard, "settled:0") != NULL || strstr(h->rig->heard, "unsure:0") != NULL);
    EXPECT(strstr(h->rig->heard, " 0") == NULL);
    EXPECT_EQ(consuming_rig_ack(h->rig, 1, 2), 2);
    pump(h);
    EXPECT_EQ(h->rig->c.holding.held_count, 0);
    server_rig_advance(&h->g.rig, 60 * GROUPS_SECOND_NS); /* it is settled at the server too */
    pump(h);
    EXPECT(strstr(h->rig->heard, " 0") == NULL);
    hosted_free(h);
}

TEST(finished_work_is_not_done_again_when_process_and_server_were_killed_B3)
{
    hosted *const h = hosted_with_a_dead_process();

    groups_kill(&h->g);
    begin_next_process(h);
    EXPECT(strstr(h->rig->heard, "settled:0") != NULL);
    EXPECT(strstr(h->rig->heard, " 0") == NULL);
    hosted_free(h);
}

TEST(stop_on_the_real_server_hands_back_and_drains_in_order)
{
    hosted *const h = hosted_new(6, 4);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_started(h->rig, 0, 1), 1);
    (void)consuming_rig_heard(h->rig);
    sl_consuming_stop(&h->rig->c, true);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "released:1 released:2 released:3 stopped:1");
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 1), 1);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "settled:0 drained:1/3/0");
    hosted_free(h);
}

/* The server decides while the start of 1 has not even left: nobody else may get it. */
TEST(an_operators_hand_back_that_crosses_with_a_start_repeats_nothing)
{
    hosted *const h = hosted_new(4, 4);
    server_call *other;

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_started(h->rig, 0, 1), 1);
    pump(h);
    other = groups_join(&h->g, (groups_consumer){ .name = "other", .window = 9, .extensions = true });
    (void)consuming_rig_heard(h->rig);
    EXPECT_EQ(consuming_rig_started(h->rig, 1, 1), 1);
    (void)operators_stop(
        &h->g, STOP(.who = { .consumer_name = SL_STR_INIT("worker-1") }, .hand_back_unstarted = true));
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "stop-requested stopped:4^operator released:2 released:3");
    EXPECT_HEARD(other, "confirmed:orders::g orders:2 orders:3");
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 2), 2);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "settled:0 settled:1 drained:2/2/0");
    EXPECT_EQ(h->rig->c.holding.count, 0);
    hosted_free(h);
}

TEST(a_stop_goes_on_after_the_connection_broke)
{
    hosted *const h = hosted_new(6, 2);

    join(h);
    pump(h);
    EXPECT_EQ(consuming_rig_started(h->rig, 0, 2), 2);
    sl_consuming_stop(&h->rig->c, false);
    pump(h);
    cut(h);
    (void)consuming_rig_heard(h->rig);
    join(h);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "connected:2+2"); /* what it was sent before its Stop went back unseen */
    EXPECT_EQ(consuming_rig_ack(h->rig, 0, 2), 2);
    pump(h);
    EXPECT_CONSUMER_HEARD(h->rig, "settled:0 settled:1 drained:2/0/0");
    hosted_free(h);
}

/* --- random histories --- */

enum {
    EVENTS = 60,
    STEPS = 400
};

typedef struct history {
    hosted *h;
    uint64_t random;
    uint32_t begun[EVENTS], acked[EVENTS];
    bool held[EVENTS], running[EVENTS];
} history;

static uint64_t draw(history *y, uint64_t below)
{
    y->random ^= y->random << 13;
    y->random ^= y->random >> 7;
    y->random ^= y->random << 17;
    return y->random % below;
}

static history *current;

static void given(consuming_rig *rig, uint64_t revision)
{
    (void)rig;
    EXPECT(!current->held[revision] || current->running[revision]);
    EXPECT_EQ(current->acked[revision], 0); /* processed twice */
    current->held[revision] = true;
}

/* Words "lost:7" are read from what was heard: it is held no more. */
static void read_losses(history *y)
{
    for (const char *at = strstr(y->h->rig->heard, "lost:"); at != NULL; at = strstr(at + 1, "lost:")) {
        const int revision = atoi(at + 5);
        EXPECT(!y->running[revision]); /* started, and taken away: would be done twice */
        y->held[revision] = false;
    }
    (void)consuming_rig_heard(y->h->rig);
}

static void begin_or_finish(history *y)
{
    consuming_rig *const rig = y->h->rig;
    const uint64_t revision = draw(y, EVENTS);

    if (!y->held[revision])
        return;
    if (y->running[revision]) {
        EXPECT_EQ(consuming_rig_ack(rig, revision, 1), 1);
        y->acked[revision]++;
        y->held[revision] = y->running[revision] = false;
    } else if (consuming_rig_started(rig, revision, 1) == 1) {
        y->running[revision] = true;
        y->begun[revision]++;
        pump(y->h); /* a start that never arrives cannot be kept by anybody */
    }
}

static void step(history *y)
{
    hosted *const h = y->h;
    const uint64_t dice = draw(y, 100);

    if (h->call == NULL && dice < 30)
        join(h);
    else if (h->call != NULL && dice < 5)
        cut(h);
    else if (dice < 8)
        kill_server(h);
    else if (dice < 12)
        server_rig_advance(&h->g.rig, GROUPS_SECOND_NS / 20);
    else if (dice < 30)
        pump(h);
    else
        begin_or_finish(y);
    read_losses(y);
}

static void finish_all(history *y)
{
    hosted *const h = y->h;

    if (h->call == NULL)
        join(h);
    for (uint32_t round = 0; round < 100 * EVENTS; round++) {
        pump(h);
        read_losses(y);
        begin_or_finish(y);
    }
    pump(h);
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (y->begun[i] != 1 || y->acked[i] != 1)
            fail_msg("message %u was begun %u times and acked %u times", i, y->begun[i], y->acked[i]);
    }
    EXPECT(sl_consuming_is_quiet(&h->rig->c));
}

static void live(uint64_t seed)
{
    history y = { .random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1, .h = hosted_new(EVENTS, 7) };

    current = &y;
    y.h->rig->on_event = given;
    for (uint32_t i = 0; i < STEPS; i++)
        step(&y);
    finish_all(&y);
    hosted_free(y.h);
}

TEST(random_breaks_and_restarts_lose_nothing_and_repeat_nothing)
{
    for (uint64_t seed = 1; seed <= 30; seed += SWEEP_STEP)
        live(seed);
}
