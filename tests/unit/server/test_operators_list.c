/* tests/unit/server/test_operators_list.c — who consumes, and what became of those that stopped (B12). */
#include "operators_rig.h"
#include "read_rig.h"

#include <stdio.h>

static void begin(groups *g, unsigned events)
{
    groups_start(g);
    if (events > 0)
        reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static const sl_wire_label labels[] = { { SL_STR_INIT("version"), SL_STR_INIT("42") },
                                        { SL_STR_INIT("zone"), SL_STR_INIT("") } };

TEST(a_list_of_consumers_has_all_that_is_known_of_each)
{
    static const sl_wire_who everybody;
    groups g;
    server_call *call;
    server_peer *peer;
    sl_wire_consumers list;
    const sl_wire_consumer *row;
    sl_arena arena;

    begin(&g, 3);
    groups_as_user(&g, "ursula");
    peer = server_rig_connect(&g.rig, "10.1.2.3:40001");
    call = groups_join(
        &g,
        (groups_consumer){
            .name = "a", .window = 2, .extensions = true, .peer = peer, .labels = labels, .label_count = 2 });
    groups_started(call, 1, 1);
    server_rig_advance(&g.rig, 1500 * GROUPS_SECOND_NS / 1000);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 65536 });
    EXPECT_OK(sl_operators_list(g.rig.host, &everybody, false, &arena, &list));
    EXPECT_EQ(list.consumer_count, 1);
    row = &list.consumers[0];
    EXPECT(sl_str_equal(row->stream, SL_STR("orders")) && sl_str_equal(row->group, SL_STR("g")));
    EXPECT(sl_str_equal(row->name, SL_STR("a")) && sl_str_equal(row->user, SL_STR("ursula")));
    EXPECT(sl_str_equal(row->address, SL_STR("10.1.2.3:40001")));
    EXPECT_EQ(row->label_count, 2);
    EXPECT(sl_str_equal(row->labels[0].key, SL_STR("version")));
    EXPECT(sl_str_equal(row->labels[0].value, SL_STR("42")) && row->labels[1].value.bytes == 0);
    EXPECT(sl_str_equal(row->state, SL_STR("active")) && row->asked_by.bytes == 0);
    EXPECT(row->consumer > 0 && !row->safe_to_terminate);
    EXPECT_EQ(row->window, 2);
    EXPECT_EQ(row->in_flight, 2);
    EXPECT_EQ(row->started, 1);
    EXPECT_EQ(row->deliveries, 2);
    EXPECT_EQ(row->in_state_ms, 1500);
    sl_arena_done(&arena);
    groups_done(&g);
}

TEST(lists_of_consumers_are_narrowed_by_stream_group_name_and_label)
{
    const sl_group_definition second = groups_definition("orders", "h"), all = groups_definition("$all", "g");
    groups g;

    begin(&g, 0);
    groups_create(&g, &second);
    groups_create(&g, &all);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .labels = labels, .label_count = 2 });
    (void)groups_join(&g, (groups_consumer){ .name = "b", .group = "h" });
    (void)groups_join(&g, (groups_consumer){ .name = "a", .stream = "$all" });
    EXPECT_STR(operators_list(&g, WHO(0)), "a=active:0 a=active:0 b=active:0");
    EXPECT_STR(operators_list(&g, WHO(.stream = SL_STR("orders"))), "a=active:0 b=active:0");
    EXPECT_STR(operators_list(&g, WHO(.stream = SL_STR("$all"))), "a=active:0");
    EXPECT_STR(operators_list(&g, WHO(.stream = SL_STR("orders"), .group = SL_STR("h"))), "b=active:0");
    EXPECT_STR(operators_list(&g, WHO(.consumer_name = SL_STR("a"))), "a=active:0 a=active:0");
    EXPECT_STR(operators_list(&g, WHO(.label_key = SL_STR("version"), .label_value = SL_STR("42"))),
               "a=active:0");
    EXPECT_STR(operators_list(&g, WHO(.label_key = SL_STR("version"), .label_value = SL_STR("41"))), "");
    EXPECT_STR(operators_list(&g, WHO(.stream = SL_STR("unknown"))), "");
    groups_done(&g);
}

/* The table of details: away sessions are shown as away. */
TEST(consumers_that_are_away_are_listed_until_they_are_gone)
{
    groups g;
    server_call *call;
    server_peer *peer;

    begin(&g, 1);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true, .peer = peer });
    groups_started(call, 1, 1);
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_list(&g, WHO(0)), "a=away:1");
    server_rig_advance(&g.rig, 3 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_list(&g, WHO(0)), "");
    groups_done(&g);
}

TEST(a_consumer_of_an_earlier_process_is_listed_without_its_name_until_somebody_asks_for_it)
{
    groups g;

    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    groups_kill(&g);
    EXPECT_STR(operators_list(&g, WHO(0)), "=away:1");
    EXPECT_STR(operators_list(&g, WHO(.consumer_name = SL_STR("b"))), "");
    EXPECT_STR(operators_list(&g, WHO(.consumer_name = SL_STR("a"))), "a=away:1");
    groups_done(&g);
}

/* --- who is cheapest to remove --- */

TEST(the_cheapest_consumer_to_remove_is_the_active_one_with_the_least_begun_work_B17)
{
    groups g;
    server_call *first, *last;

    begin(&g, 5);
    first = groups_join(&g, (groups_consumer){ .name = "first", .window = 3, .extensions = true });
    last = groups_join(&g, (groups_consumer){ .name = "last", .window = 2, .extensions = true });
    groups_started(first, 1, 2);
    groups_started(last, 1, 1);
    EXPECT_STR(operators_costs(&g, WHO(0)), "first=2001 last=1001*");
    groups_ack(first, 1, 2);
    EXPECT_STR(operators_costs(&g, WHO(0)), "first=1* last=1001");
    groups_stop(first, false); /* it leaves by itself */
    EXPECT_STR(operators_costs(&g, WHO(0)), "first=1 last=1001*");
    groups_stop(last, false);
    EXPECT_STR(operators_costs(&g, WHO(0)), "first=1 last=1001");
    groups_done(&g);
}

TEST(of_consumers_that_cost_the_same_the_last_is_the_cheapest_in_each_group_and_for_whoever_asks_B17)
{
    const sl_group_definition second = groups_definition("other", "g");
    groups g;

    begin(&g, 0);
    reads_append(&g.rig, "other", 1);
    groups_create(&g, &second);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .extensions = true });
    (void)groups_join(&g, (groups_consumer){ .name = "b", .extensions = true });
    (void)groups_join(&g, (groups_consumer){ .name = "a", .stream = "other", .extensions = true });
    EXPECT_STR(operators_costs(&g, WHO(0)), "a=0 b=0* a=1000*");
    EXPECT_STR(operators_costs(&g, WHO(.consumer_name = SL_STR("a"))), "a=0 a=1000*");
    groups_done(&g);
}

TEST(what_a_consumer_holds_that_never_says_what_it_begins_costs_as_if_it_ran_B17_B2)
{
    groups g;
    server_call *ours;

    begin(&g, 5);
    (void)groups_join(&g, (groups_consumer){ .name = "official", .window = 2 });
    ours = groups_join(&g, (groups_consumer){ .name = "ours", .window = 3, .extensions = true });
    EXPECT_STR(operators_costs(&g, WHO(0)), "official=2000* ours=3000");
    groups_started(ours, 1, 1);
    EXPECT_STR(operators_costs(&g, WHO(0)), "official=2000 ours=1002*");
    groups_done(&g);
}

TEST(who_is_away_is_not_the_cheapest_to_remove_B17)
{
    groups g;
    server_call *call;
    server_peer *peer;

    begin(&g, 1);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true, .peer = peer });
    groups_started(call, 1, 1);
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_costs(&g, WHO(0)), "a=1000");
    groups_done(&g);
}

/* --- reports --- */

/* B12: drained, left, away; asked by an operator, by itself, by the server. */
TEST(reports_tell_what_became_of_each_consumer_that_stopped)
{
    groups g;
    server_call *itself, *leaves, *breaks, *not_stopped;
    server_peer *peer;

    begin(&g, 4);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    itself = groups_join(&g, (groups_consumer){ .name = "itself", .window = 1, .extensions = true });
    leaves = groups_join(&g, (groups_consumer){ .name = "leaves", .window = 1, .extensions = true });
    breaks =
        groups_join(&g, (groups_consumer){ .name = "breaks", .window = 1, .extensions = true, .peer = peer });
    not_stopped = groups_join(&g, (groups_consumer){ .name = "none", .window = 1, .extensions = true });
    groups_stop(itself, false);
    server_rig_advance(&g.rig, GROUPS_SECOND_NS);
    groups_ack(itself, 1, 1);
    (void)operators_stop(&g, STOP(.who = { .consumer_name = SL_STR("leaves") }));
    server_call_cancel(leaves);
    server_call_cancel(not_stopped);
    server_rig_run(&g.rig);
    (void)operators_stop(&g, STOP(.who = { .consumer_name = SL_STR("breaks") }));
    groups_started(breaks, 1, 1);
    server_rig_break(peer);
    server_rig_advance(&g.rig, 3 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_reports(&g, WHO(0)),
               "breaks=away:0/0/1^operator leaves=left:0/0/1^operator itself=drained:1/0/0^consumer");
    EXPECT_STR(operators_reports(&g, WHO(.consumer_name = SL_STR("leaves"))), "leaves=left:0/0/1^operator");
    EXPECT_STR(operators_reports(&g, WHO(.stream = SL_STR("other"))), "");
    EXPECT_EQ(g.rig.host->counters.consumers_stopped[SL_REPORT_DRAINED], 1);
    EXPECT_EQ(g.rig.host->counters.consumers_stopped[SL_REPORT_LEFT], 1);
    EXPECT_EQ(g.rig.host->counters.consumers_stopped[SL_REPORT_AWAY], 1);
    EXPECT(server_rig_logged(&g.rig, "consumer stopped"));
    groups_done(&g);
}

/* Nobody asks the worker: the server was told what was started. */
TEST(reports_tell_how_much_of_what_was_handed_back_was_interrupted_B12_B2)
{
    groups g;
    server_call *drains, *leaves;

    begin(&g, 6);
    drains = groups_join(&g, (groups_consumer){ .name = "drains", .window = 3, .extensions = true });
    leaves = groups_join(&g, (groups_consumer){ .name = "leaves", .window = 3, .extensions = true });
    groups_started(drains, 1, 2);
    groups_started(leaves, 1, 1);
    groups_stop(drains, false);
    groups_ack(drains, 1, 1);
    groups_release(drains, 2, 2);
    groups_stop(leaves, false);
    groups_release(leaves, 1, 2);
    server_call_cancel(leaves);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_reports(&g, WHO(0)),
               "leaves=left:0/2(1)/1^consumer drains=drained:1/2(1)/0^consumer");
    EXPECT(server_rig_logged(&g.rig, "interrupted=1"));
    groups_done(&g);
}

static void ignore_outcome(void *ctx, sl_err err)
{
    (void)ctx;
    EXPECT_OK(err);
}

/* Nobody asked it to stop and it did not drain: its call was ended because the group was changed. */
TEST(a_report_says_that_an_update_has_dropped_a_consumer)
{
    const sl_group_definition definition = groups_definition("orders", "g");
    groups g;

    begin(&g, 3);
    (void)groups_join(&g, (groups_consumer){ .name = "plain" });
    EXPECT_OK(sl_registry_update(g.rig.host->registry, &definition, ignore_outcome, NULL));
    server_rig_run(&g.rig);
    EXPECT_STR(operators_reports(&g, WHO(0)), "plain=dropped:0/3/0^server");
    EXPECT_EQ(g.rig.host->counters.consumers_stopped[SL_REPORT_DROPPED], 1);
    groups_done(&g);
}

TEST(a_report_has_the_times_of_the_stop)
{
    static const sl_wire_who everybody;
    groups g;
    server_call *call;
    sl_wire_consumers list;
    sl_arena arena;
    uint64_t stopped_ms;

    begin(&g, 1);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    groups_stop(call, false);
    stopped_ms = g.rig.time.wall_ns / 1000000;
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    groups_ack(call, 1, 1);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 65536 });
    EXPECT_OK(sl_operators_list(g.rig.host, &everybody, true, &arena, &list));
    EXPECT_EQ(list.report_count, 1);
    EXPECT_EQ(list.reports[0].stopped_at_ms, stopped_ms);
    EXPECT_EQ(list.reports[0].took_ms, 2000);
    sl_arena_done(&arena);
    groups_done(&g);
}

TEST(reports_are_bounded_and_the_newest_stay)
{
    static const sl_wire_who everybody;
    groups g;
    sl_wire_consumers list;
    sl_arena arena;

    begin(&g, 0);
    for (unsigned i = 0; i < SL_REPORTS_MAX + 3; i++) {
        char name[16];
        server_call *call;

        snprintf(name, sizeof name, "c%u", i);
        call = groups_join(&g, (groups_consumer){ .name = name, .extensions = true });
        groups_stop(call, false);
        server_call_cancel(call);
        server_rig_run(&g.rig);
    }
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 16 * 1024 * 1024 });
    EXPECT_OK(sl_operators_list(g.rig.host, &everybody, true, &arena, &list));
    EXPECT_EQ(list.report_count, SL_REPORTS_MAX);
    EXPECT(sl_str_equal(list.reports[0].name, SL_STR("c1002")));
    EXPECT(sl_str_equal(list.reports[SL_REPORTS_MAX - 1].name, SL_STR("c3")));
    sl_arena_done(&arena);
    groups_done(&g);
}

/* Else a program that connects again and again under a stop would push out what people want to read. */
TEST(who_is_turned_away_at_the_door_makes_no_report)
{
    groups g;
    server_call *call;

    begin(&g, 0);
    (void)operators_stop(&g, STOP(.who = { .stream = SL_STR("orders"), .group = SL_STR("g") }));
    call = groups_join(&g, (groups_consumer){ .name = "again", .extensions = true });
    server_call_cancel(call);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_reports(&g, WHO(0)), "");
    groups_done(&g);
}

/* S3.27, B14: the last line of a server says what was drained and what is left. */
TEST(the_tally_of_a_stopping_server_counts_who_drained_and_what_is_left)
{
    groups g;
    server_call *one;
    sl_operators_tally tally;

    begin(&g, 3);
    one = groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    (void)groups_join(&g, (groups_consumer){ .name = "b", .window = 2, .extensions = true });
    (void)groups_join(&g, (groups_consumer){ .name = "idle", .extensions = true });
    sl_host_stop(g.rig.host, "maintenance");
    server_rig_run(&g.rig);
    groups_ack(one, 1, 1);
    tally = sl_operators_tally_of(g.rig.host);
    EXPECT_EQ(tally.drained, 2);
    EXPECT_EQ(tally.left_consumers, 1);
    EXPECT_EQ(tally.left_leased, 2);
    groups_done(&g);
}
