/* tests/unit/server/test_groups_parked.c — ReplayParked and TruncateParked (kurrent-semantics 11.1 and 11.2). */
#include "manage_rig.h"

#include "read_rig.h"

#include <string.h>

#define PARKED_LINK(n) "<" MANAGE_PARKED_OF_G ":" n

/* A group with so many parked messages, and a consumer with nothing else to do. */
static server_call *start_with_parked(manage *m, size_t count)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;

    manage_start(m);
    reads_append(&m->g.rig, "orders", (unsigned)count);
    manage_make(m, &request);
    consumer = groups_join(&m->g, (groups_consumer){ 0 });
    groups_nack(consumer, 1, count, SL_WIRE_NACK_PARK, "no");
    EXPECT_EQ(manage_look(m, "orders", "g").parked_count, (int64_t)count);
    return consumer;
}

TEST(parked_messages_come_again_by_their_links_and_are_gone_when_acked)
{
    server_call *consumer;
    manage m;

    consumer = start_with_parked(&m, 2);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 3, "orders:0" PARKED_LINK("0") " orders:1" PARKED_LINK("1"));
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 2);
    groups_ack(consumer, 3, 2);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 0);
    EXPECT_STR(groups_stored(&m.g, MANAGE_PARKED_OF_G), "");
    manage_done(&m);
}

/* stop_at is a number of the parked stream and no count. */
TEST(a_replay_stops_before_the_number_that_is_given)
{
    const int64_t two = 2, hundred = 100;
    server_call *consumer;
    manage m;

    consumer = start_with_parked(&m, 3);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", &two), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 4, "orders:0" PARKED_LINK("0") " orders:1" PARKED_LINK("1"));
    groups_ack(consumer, 4, 2);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", &two), SL_STATUS_OK); /* nothing is left below */
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 6, "");
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", &hundred), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 6, "orders:2" PARKED_LINK("2"));
    manage_done(&m);
}

/* The real server can never replay again after this. */
TEST(a_replay_of_nothing_ends_at_once)
{
    const int64_t zero = 0;
    server_call *consumer;
    manage m;

    consumer = start_with_parked(&m, 1);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", &zero), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 2, "");
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 2, "orders:0" PARKED_LINK("0"));
    manage_done(&m);
}

TEST(a_replay_without_anything_parked_succeeds)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    EXPECT_CALL_STATUS(manage_truncate(&m, "orders", "g", NULL), SL_STATUS_OK);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    manage_done(&m);
}

TEST(a_message_that_fails_again_after_a_replay_is_parked_again)
{
    server_call *consumer;
    manage m;

    consumer = start_with_parked(&m, 1);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    groups_nack(consumer, 2, 1, SL_WIRE_NACK_PARK, "still no");
    EXPECT_STR(groups_stored(&m.g, MANAGE_PARKED_OF_G), "1:0@orders");
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    manage_done(&m);
}

TEST(parked_messages_of_a_group_of_all_are_replayed)
{
    const sl_wire_group_request request = manage_request("$all", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 1);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ .stream = "$all" });
    groups_nack(consumer, 1, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_CALL_STATUS(manage_replay(&m, "$all", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 2, "orders:0<$persistentsubscription-$all::g-parked:0");
    manage_done(&m);
}

TEST(parked_messages_can_be_given_up)
{
    const int64_t two = 2, one = 1;
    server_call *consumer;
    manage m;

    consumer = start_with_parked(&m, 3);
    EXPECT_CALL_STATUS(manage_truncate(&m, "orders", "g", &two), SL_STATUS_OK);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    EXPECT_STR(groups_stored(&m.g, MANAGE_PARKED_OF_G), "2:2@orders");
    EXPECT_CALL_STATUS(manage_truncate(&m, "orders", "g", &one), SL_STATUS_OK); /* never back */
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 4, "orders:2" PARKED_LINK("2"));
    groups_cut_power(&m.g);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    manage_done(&m);
}

TEST(a_truncation_is_answered_when_it_is_durable)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    const sl_parked_request asked = {
        .name = { SL_WIRE_SOURCE_STREAM, SL_STR_INIT("orders"), SL_STR_INIT("g") },
        .limit = SL_PARKED_LIMIT_NONE,
    };
    sl_store *const store = groups_held_store();
    server_call *consumer, *truncate;
    sl_str message;
    manage m;

    manage_start_on(&m, store);
    reads_append(&m.g.rig, "orders", 1);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_nack(consumer, 1, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_OK(sl_parked_request_encode(&asked, &m.arena, &message));
    groups_held_store_hold(store, true);
    truncate = server_rig_call(&m.g.rig, MANAGE_PATH("TruncateParked"));
    server_call_send(truncate, message);
    server_call_half_close(truncate);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    EXPECT(!truncate->ended);
    manage_expect_failed(manage_replay(&m, "orders", "g", NULL), "orders", "g",
                         "A replay or truncate is already in progress.");
    manage_expect_failed(manage_truncate(&m, "orders", "g", NULL), "orders", "g",
                         "A replay or truncate is already in progress.");
    groups_held_store_hold(store, false);
    server_rig_run_until_ended(&m.g.rig, truncate);
    EXPECT_CALL_STATUS(truncate, SL_STATUS_OK);
    manage_done(&m);
}

/* Whoever gives up waiting must not be answered, nor must the group wait for him. */
TEST(a_truncation_goes_on_without_its_client)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    const sl_parked_request asked = {
        .name = { SL_WIRE_SOURCE_STREAM, SL_STR_INIT("orders"), SL_STR_INIT("g") },
        .limit = SL_PARKED_LIMIT_NONE,
    };
    sl_store *const store = groups_held_store();
    server_call *consumer, *truncate;
    sl_str message;
    manage m;

    manage_start_on(&m, store);
    reads_append(&m.g.rig, "orders", 1);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_nack(consumer, 1, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_OK(sl_parked_request_encode(&asked, &m.arena, &message));
    groups_held_store_hold(store, true);
    truncate = server_rig_call(&m.g.rig, MANAGE_PATH("TruncateParked"));
    server_call_send(truncate, message);
    server_call_half_close(truncate);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    server_call_cancel(truncate);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    groups_held_store_hold(store, false);
    server_rig_run(&m.g.rig);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 0);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    manage_done(&m);
}

TEST(a_negative_limit_and_a_group_that_is_not_there_are_refused)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    const int64_t negative = -1;
    manage m;

    manage_start(&m);
    manage_expect_missing(manage_replay(&m, "orders", "g", &negative), "orders", "g");
    manage_expect_missing(manage_truncate(&m, "$all", "g", NULL), "$all", "g");
    manage_make(&m, &request);
    manage_expect_failed(manage_replay(&m, "orders", "g", &negative), "orders", "g",
                         "Cannot stop replaying parked message at a negative version.");
    manage_expect_failed(manage_truncate(&m, "orders", "g", &negative), "orders", "g",
                         "Cannot truncate parked messages at a negative version.");
    manage_done(&m);
}

TEST(a_limit_must_be_there_or_said_to_be_none)
{
    /* group_name = "g", stream_identifier = { "orders" } */
    static const sl_str request = SL_STR_INIT("\x0a\x0d\x0a\x01g\x12\x08\x1a\x06orders");
    const sl_wire_group_request create = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &create);
    EXPECT_CALL_STATUS(server_rig_unary(&m.g.rig, MANAGE_PATH("ReplayParked"), request),
                       SL_STATUS_INVALID_ARGUMENT);
    EXPECT_CALL_STATUS(server_rig_unary(&m.g.rig, MANAGE_PATH("TruncateParked"), request),
                       SL_STATUS_INVALID_ARGUMENT);
    manage_done(&m);
}

/* It is not open before its epoch is durable; clients do not know of that and must not have to. */
TEST(a_group_that_is_just_being_opened_is_waited_for)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    const sl_parked_request asked = {
        .name = { SL_WIRE_SOURCE_STREAM, SL_STR_INIT("orders"), SL_STR_INIT("g") },
        .limit = SL_PARKED_LIMIT_NONE,
    };
    sl_store *const store = groups_held_store();
    server_call *replay;
    sl_str message;
    manage m;

    manage_start_on(&m, store);
    manage_make(&m, &request);
    groups_held_store_hold(store, true);
    EXPECT_CALL_STATUS(manage_restart(&m), SL_STATUS_OK);
    EXPECT_STR(manage_look(&m, "orders", "g").status.data, "NotReady");
    EXPECT_OK(sl_parked_request_encode(&asked, &m.arena, &message));
    replay = server_rig_call(&m.g.rig, MANAGE_PATH("ReplayParked"));
    server_call_send(replay, message);
    server_call_half_close(replay);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    EXPECT(!replay->ended);
    groups_held_store_hold(store, false);
    server_rig_run_until_ended(&m.g.rig, replay);
    EXPECT_CALL_STATUS(replay, SL_STATUS_OK);
    manage_done(&m);
}

/* The one who waits goes; and the group goes under one who waits. */
TEST(whoever_waits_for_a_group_that_opens_may_leave_and_so_may_the_group)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    const sl_parked_request asked = {
        .name = { SL_WIRE_SOURCE_STREAM, SL_STR_INIT("orders"), SL_STR_INIT("g") },
        .limit = SL_PARKED_LIMIT_NONE,
    };
    sl_store *const store = groups_held_store();
    server_call *left, *stays, *deletes;
    sl_str message, gone;
    manage m;

    manage_start_on(&m, store);
    manage_make(&m, &request);
    groups_held_store_hold(store, true);
    EXPECT_CALL_STATUS(manage_restart(&m), SL_STATUS_OK);
    EXPECT_OK(sl_parked_request_encode(&asked, &m.arena, &message));
    left = server_rig_call(&m.g.rig, MANAGE_PATH("ReplayParked"));
    stays = server_rig_call(&m.g.rig, MANAGE_PATH("TruncateParked"));
    server_call_send(left, message);
    server_call_half_close(left);
    server_call_send(stays, message);
    server_call_half_close(stays);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    server_call_cancel(left);
    EXPECT_OK(sl_wire_group_delete_encode(&asked.name, &m.arena, &gone));
    deletes = server_rig_call(&m.g.rig, MANAGE_PATH("Delete"));
    server_call_send(deletes, gone);
    server_call_half_close(deletes);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    groups_held_store_hold(store, false);
    server_rig_run_until_ended(&m.g.rig, deletes);
    server_rig_run(&m.g.rig);
    EXPECT_CALL_STATUS(deletes, SL_STATUS_OK);
    EXPECT(stays->ended);
    EXPECT(stays->status == SL_STATUS_NOT_FOUND || stays->status == SL_STATUS_INTERNAL);
    manage_done(&m);
}

/* Its parked stream goes on with the next revision. */
TEST(a_group_that_is_made_again_counts_only_what_it_has_parked_itself)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    start_with_parked(&m, 2);
    EXPECT_CALL_STATUS(manage_delete(&m, "orders", "g"), SL_STATUS_OK);
    manage_make(&m, &request);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 0);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_nack(consumer, 1, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 1);
    EXPECT_CALL_STATUS(manage_replay(&m, "orders", "g", NULL), SL_STATUS_OK);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD_FROM(consumer, 3, "orders:0" PARKED_LINK("2"));
    groups_ack(consumer, 3, 1);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 0);
    manage_done(&m);
}
