/* tests/unit/server/test_groups_info.c — GetInfo and List: every number with the meaning that KurrentDB gives it (kurrent-semantics 13). */
#include "manage_rig.h"

#include "read_rig.h"

#include <stdio.h>
#include <string.h>

TEST(an_info_tells_the_settings_as_they_were_given)
{
    sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    request.settings = (sl_wire_group_settings){ .resolve_links = true,
                                                 .extra_statistics = true,
                                                 .message_timeout = { true, false, 1001 },
                                                 .checkpoint_after = { true, true, 20020000 },
                                                 .max_retry_count = 3,
                                                 .min_checkpoint_count = 4,
                                                 .max_checkpoint_count = 5,
                                                 .max_subscriber_count = 6,
                                                 .live_buffer_size = 7,
                                                 .read_batch_size = 8,
                                                 .history_buffer_size = 9,
                                                 .strategy = SL_STR("PinnedByCorrelation") };
    manage_make(&m, &request);
    info = manage_look(&m, "orders", "g");
    EXPECT_STR(info.event_source.data, "orders");
    EXPECT_STR(info.group.data, "g");
    EXPECT_STR(info.status.data, "Live");
    EXPECT(info.resolve_links);
    EXPECT(info.extra_statistics);
    EXPECT_EQ(info.message_timeout_ms, 1001);
    EXPECT_EQ(info.checkpoint_after_ms, 2002);
    EXPECT_EQ(info.max_retry_count, 3);
    EXPECT_EQ(info.min_checkpoint_count, 4);
    EXPECT_EQ(info.max_checkpoint_count, 5);
    EXPECT_EQ(info.max_subscriber_count, 6);
    EXPECT_EQ(info.live_buffer_size, 7);
    EXPECT_EQ(info.read_batch_size, 8);
    EXPECT_EQ(info.buffer_size, 9);
    EXPECT_STR(info.strategy.data, "PinnedByCorrelation");
    EXPECT_EQ(info.connection_count, 0);
    manage_done(&m);
}

TEST(settings_are_the_same_after_a_restart)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_info before, after;
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    before = manage_look(&m, "orders", "g");
    groups_cut_power(&m.g);
    after = manage_look(&m, "orders", "g");
    EXPECT_EQ(after.message_timeout_ms, before.message_timeout_ms);
    EXPECT_EQ(after.checkpoint_after_ms, before.checkpoint_after_ms);
    EXPECT_EQ(after.buffer_size, before.buffer_size);
    EXPECT_STR(after.strategy.data, before.strategy.data);
    EXPECT_STR(after.start_from.data, before.start_from.data);
    manage_done(&m);
}

/* One client fails on a text that it cannot parse. */
TEST(the_start_is_a_number_for_a_stream_and_a_position_for_all)
{
    static const struct {
        const char *stream;
        sl_wire_start start;
        uint64_t at;
        const char *start_from;
    } rows[] = {
        { "orders", SL_WIRE_START_BEGIN, 0, "0" },
        { "orders", SL_WIRE_START_END, 0, "-1" },
        { "orders", SL_WIRE_START_GIVEN, 5, "5" },
        { "orders", SL_WIRE_START_GIVEN, UINT64_MAX, "-1" },
        { "$all", SL_WIRE_START_BEGIN, 0, "C:0/P:0" },
        { "$all", SL_WIRE_START_END, 0, "C:-1/P:-1" },
        { "$all", SL_WIRE_START_GIVEN, 2, "C:2/P:2" },
        { "$all", SL_WIRE_START_GIVEN, 0, "C:0/P:0" },
        { "$all", SL_WIRE_START_GIVEN, UINT64_MAX, "C:-1/P:-1" },
    };
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char group[16];
        sl_wire_group_request request;

        snprintf(group, sizeof group, "g%zu", i);
        request = manage_request(rows[i].stream, group);
        request.start = rows[i].start;
        request.revision = rows[i].at;
        request.position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, rows[i].at, rows[i].at };
        manage_make(&m, &request);
        EXPECT_STR(manage_look(&m, rows[i].stream, group).start_from.data, rows[i].start_from);
    }
    manage_done(&m);
}

TEST(an_info_counts_what_consumers_hold)
{
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 6);
    manage_make(&m, &request);
    EXPECT_EQ(manage_look(&m, "orders", "g").total_items, 0);
    consumer = groups_join(&m.g, (groups_consumer){ .name = "worker", .window = 4 });
    groups_ack(consumer, 1, 1);
    groups_nack(consumer, 2, 1, SL_WIRE_NACK_PARK, "no");
    info = manage_look(&m, "orders", "g");
    EXPECT_EQ(info.total_items, 6);
    EXPECT_EQ(info.count_since_last_measurement, 6);
    EXPECT_EQ(info.in_flight_count, 4);
    EXPECT_EQ(info.outstanding_count, 4);
    EXPECT_EQ(info.parked_count, 1);
    EXPECT_STR(info.last_known_position.data, "5");
    EXPECT_EQ(info.connection_count, 1);
    EXPECT_STR(info.connections[0].connection_name.data, "worker");
    EXPECT_STR(info.connections[0].username.data, "anonymous");
    EXPECT_STR(info.connections[0].from.data, "");
    EXPECT_EQ(info.connections[0].total_items, 6);
    EXPECT_EQ(info.connections[0].in_flight_messages, 4);
    EXPECT_EQ(info.connections[0].available_slots, 0);
    EXPECT_EQ(info.connections[0].measurement_count, 0);
    manage_done(&m);
}

TEST(a_consumer_without_a_name_is_unknown)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    groups_join(&m.g, (groups_consumer){ 0 });
    info = manage_look(&m, "orders", "g");
    EXPECT_EQ(info.connection_count, 1);
    EXPECT_STR(info.connections[0].connection_name.data, "<unknown>");
    EXPECT_EQ(info.connections[0].available_slots, 10);
    manage_done(&m);
}

TEST(the_checkpoint_is_told_once_it_was_written)
{
    sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_request of_all = manage_request("$all", "g");
    server_call *consumer;
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 3);
    request.settings.max_checkpoint_count = of_all.settings.max_checkpoint_count = 1;
    manage_make(&m, &request);
    manage_make(&m, &of_all);
    EXPECT_STR(manage_look(&m, "orders", "g").last_checkpointed_position.data, "");
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_ack(consumer, 1, 2);
    server_rig_advance(&m.g.rig, 5 * GROUPS_SECOND_NS);
    EXPECT_STR(manage_look(&m, "orders", "g").last_checkpointed_position.data, "1");
    consumer = groups_join(&m.g, (groups_consumer){ .stream = "$all" });
    groups_ack(consumer, 1, 1);
    server_rig_advance(&m.g.rig, 5 * GROUPS_SECOND_NS);
    info = manage_look(&m, "$all", "g");
    EXPECT(sl_str_starts_with(info.last_checkpointed_position, SL_STR("C:")));
    EXPECT(sl_str_starts_with(info.last_known_position, SL_STR("C:")));
    manage_done(&m);
}

/* The records of settles say more than the last one of a checkpoint, and a server that starts counts them. */
TEST(after_a_restart_the_checkpoint_is_where_the_settles_put_it)
{
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 4);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_ack(consumer, 1, 3);
    groups_kill(&m.g);
    EXPECT_STR(manage_look(&m, "orders", "g").last_checkpointed_position.data, "2");
    groups_kill(&m.g);
    EXPECT_STR(manage_look(&m, "orders", "g").last_checkpointed_position.data, "2");
    manage_done(&m);
}

TEST(extra_statistics_measure_how_long_consumers_take)
{
    static const char *const keys[] = { "Mean",       "Median",     "Fastest",    "Quintile 1", "Quintile 2",
                                        "Quintile 3", "Quintile 4", "Quintile 5", "90%",        "95%",
                                        "99%",        "99.5%",      "99.9%",      "Highest" };
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    request.settings.extra_statistics = true;
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    reads_append(&m.g.rig, "orders", 2);
    server_rig_advance(&m.g.rig, 100 * 1000 * 1000);
    groups_ack(consumer, 1, 1);
    server_rig_advance(&m.g.rig, 200 * 1000 * 1000);
    groups_ack(consumer, 2, 1);
    info = manage_look(&m, "orders", "g");
    EXPECT_EQ(info.connection_count, 1);
    EXPECT_EQ(info.connections[0].measurement_count, sizeof keys / sizeof keys[0]);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        EXPECT_STR(info.connections[0].measurements[i].key.data, keys[i]);
    EXPECT_EQ(info.connections[0].measurements[0].value, 200);
    EXPECT_EQ(info.connections[0].measurements[2].value, 100);
    EXPECT_EQ(info.connections[0].measurements[13].value, 300);
    manage_done(&m);
}

TEST(an_info_of_a_group_that_is_not_there_says_so)
{
    manage m;

    manage_start(&m);
    manage_expect_missing(manage_info(&m, "orders", "g", NULL), "orders", "g");
    manage_expect_missing(manage_info(&m, "$all", "g", NULL), "$all", "g");
    manage_done(&m);
}

/* --- List --- */

static const char *names(const sl_wire_group_infos *infos)
{
    static char buffer[1024];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < infos->count; i++) {
        sl_text_add(&text, i == 0 ? "" : " ");
        sl_text_add_str(&text, infos->list[i].event_source);
        sl_text_add(&text, "::");
        sl_text_add_str(&text, infos->list[i].group);
    }
    return buffer;
}

TEST(all_groups_are_listed_by_stream)
{
    static const char *const made[][2] = {
        { "people", "a" }, { "orders", "z" }, { "$all", "g" }, { "orders", "b" }
    };
    sl_wire_group_infos infos = { 0 };
    manage m;

    manage_start(&m);
    EXPECT_CALL_STATUS(manage_list(&m, NULL, &infos), SL_STATUS_OK);
    EXPECT_EQ(infos.count, 0);
    for (size_t i = 0; i < 4; i++) {
        const sl_wire_group_request request = manage_request(made[i][0], made[i][1]);
        manage_make(&m, &request);
    }
    EXPECT_CALL_STATUS(manage_list(&m, NULL, &infos), SL_STATUS_OK);
    EXPECT_STR(names(&infos), "$all::g orders::b orders::z people::a");
    EXPECT_CALL_STATUS(manage_list(&m, "orders", &infos), SL_STATUS_OK);
    EXPECT_STR(names(&infos), "orders::b orders::z");
    EXPECT_CALL_STATUS(manage_list(&m, "$all", &infos), SL_STATUS_OK);
    EXPECT_STR(names(&infos), "$all::g");
    EXPECT_EQ(infos.list[0].buffer_size, 500);
    manage_done(&m);
}

TEST(a_stream_that_never_had_a_group_is_not_known_and_one_whose_groups_are_deleted_has_none)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_infos infos = { .count = 7 };
    manage m;

    manage_start(&m);
    manage_expect_missing(manage_list(&m, "orders", NULL), "orders", "");
    manage_expect_missing(manage_list(&m, "$all", NULL), "$all", "");
    manage_expect_missing(manage_list(&m, "", NULL), "", "");
    manage_make(&m, &request);
    EXPECT_CALL_STATUS(manage_delete(&m, "orders", "g"), SL_STATUS_OK);
    EXPECT_CALL_STATUS(manage_list(&m, "orders", &infos), SL_STATUS_OK);
    EXPECT_EQ(infos.count, 0);
    manage_done(&m);
}
