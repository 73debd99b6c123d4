/* tests/unit/server/test_groups_management.c — groups are made, changed and deleted by clients: what is refused, in which order, and when an
 * answer may come. */
#include "manage_rig.h"

#include "auth_rig.h"
#include "read_rig.h"
#include "server/door.h"

#include <stdio.h>
#include <string.h>

/* --- Create --- */

TEST(a_group_that_was_created_delivers)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 2);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:0 orders:1");
    EXPECT(server_rig_logged(&m.g.rig, "persistent subscription created"));
    manage_done(&m);
}

TEST(a_group_exists_when_its_maker_is_told_so_and_not_before)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_store *const store = groups_held_store();
    server_call *create;
    manage m;

    manage_start_on(&m, store);
    groups_held_store_hold(store, true);
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
    server_call_send(create, manage_create_bytes(&m, &request));
    server_call_half_close(create);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    EXPECT(!create->ended);
    groups_held_store_hold(store, false);
    server_rig_run_until_ended(&m.g.rig, create);
    EXPECT_CALL_STATUS(create, SL_STATUS_OK);
    manage_expect_exists(manage_create(&m, &request), "orders", "g");
    manage_done(&m);
}

/* Two writes: the group, and the beginning of its work. Held back for as long as the test wants, between any two turns. */
TEST(a_group_is_at_work_when_its_maker_is_told)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_store *const store = groups_held_store();
    server_call *create;
    manage m;

    manage_start_on(&m, store);
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
    server_call_send(create, manage_create_bytes(&m, &request));
    server_call_half_close(create);
    while (sl_registry_find(m.g.rig.host->registry, SL_STR("orders"), SL_STR("g")) == NULL)
        server_rig_turn(&m.g.rig);
    groups_held_store_hold(store, true);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    EXPECT(!create->ended);
    groups_held_store_hold(store, false);
    server_rig_run_until_ended(&m.g.rig, create);
    EXPECT_CALL_STATUS(create, SL_STATUS_OK);
    EXPECT_STR(manage_look(&m, "orders", "g").status.data, "Live");
    manage_done(&m);
}

TEST(a_group_is_made_even_if_its_maker_does_not_wait)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_store *const store = groups_held_store();
    server_call *create;
    manage m;

    manage_start_on(&m, store);
    groups_held_store_hold(store, true);
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
    server_call_send(create, manage_create_bytes(&m, &request));
    server_call_half_close(create);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    server_call_cancel(create);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    groups_held_store_hold(store, false);
    server_rig_run(&m.g.rig);
    EXPECT_STR(manage_look(&m, "orders", "g").group.data, "g");
    manage_done(&m);
}

TEST(of_two_who_make_the_same_group_at_once_one_is_told_that_it_exists)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *creates[2];
    manage m;

    manage_start(&m);
    for (int i = 0; i < 2; i++) {
        creates[i] = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
        server_call_send(creates[i], manage_create_bytes(&m, &request));
        server_call_half_close(creates[i]);
    }
    server_rig_run_until_ended(&m.g.rig, creates[0]);
    server_rig_run_until_ended(&m.g.rig, creates[1]);
    EXPECT_CALL_STATUS(creates[0], SL_STATUS_OK);
    manage_expect_exists(creates[1], "orders", "g");
    manage_done(&m);
}

TEST(whoever_waits_for_his_group_to_be_at_work_may_leave)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    sl_store *const store = groups_held_store();
    server_call *create;
    manage m;

    manage_start_on(&m, store);
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
    server_call_send(create, manage_create_bytes(&m, &request));
    server_call_half_close(create);
    while (sl_registry_find(m.g.rig.host->registry, SL_STR("orders"), SL_STR("g")) == NULL)
        server_rig_turn(&m.g.rig);
    groups_held_store_hold(store, true);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    server_call_cancel(create);
    for (int i = 0; i < 20; i++)
        server_rig_turn(&m.g.rig);
    EXPECT(server_rig_logged(&m.g.rig, "persistent subscription created"));
    groups_held_store_hold(store, false);
    server_rig_run(&m.g.rig);
    EXPECT_STR(manage_look(&m, "orders", "g").status.data, "Live");
    manage_done(&m);
}

/* --- Update --- */

static void far_revision(sl_wire_group_request *request)
{
    request->start = SL_WIRE_START_GIVEN;
    request->revision = UINT64_C(1) << 63;
}

static void large_batch(sl_wire_group_request *request)
{
    request->settings.read_batch_size = request->settings.history_buffer_size;
}

TEST(an_update_of_a_group_that_is_not_there_says_so_before_all_else)
{
    sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    far_revision(&request);
    large_batch(&request);
    manage_expect_missing(manage_update(&m, &request), "orders", "g");
    request = manage_request("$all", "g");
    manage_expect_missing(manage_update(&m, &request), "$all", "g");
    manage_done(&m);
}

TEST(an_update_is_checked_like_a_create)
{
    sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    large_batch(&request);
    manage_expect_failed(manage_update(&m, &request), "orders", "g",
                         "The read batch size must be smaller than the history buffer size.");
    far_revision(&request);
    manage_expect_failed(manage_update(&m, &request), "orders", "g",
                         "Invalid Start From position: the revision must not be below -1.");
    manage_done(&m);
}

static void expect_limits(manage *m, int32_t interrupts, int32_t kills)
{
    const sl_wire_group_info info = manage_look(m, "orders", "g");

    EXPECT_EQ(info.max_interrupts, interrupts);
    EXPECT_EQ(info.max_kills, kills);
}

/* Official clients do not know of these limits: what they change is the rest. */
TEST(an_update_that_does_not_name_the_limits_of_sluice_keeps_them_B6)
{
    sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    expect_limits(&m, 20, 5);
    request.settings.max_interrupts = (sl_wire_group_limit){ true, 1 };
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    expect_limits(&m, 1, 5);
    request.settings.max_interrupts.given = false;
    request.settings.max_kills = (sl_wire_group_limit){ true, 0 };
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    expect_limits(&m, 1, 0);
    request.settings.max_kills.given = false;
    request.settings.max_retry_count = 4;
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    groups_kill(&m.g);
    expect_limits(&m, 1, 0);
    request.settings.max_kills = (sl_wire_group_limit){ true, -1 };
    manage_expect_failed(manage_update(&m, &request), "orders", "g",
                         "The limits of interruptions and kills must not be negative; 0 is none.");
    manage_done(&m);
}

TEST(an_update_changes_settings_and_drops_the_consumers)
{
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    sl_wire_group_info info;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 3);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_ack(consumer, 1, 1);
    request.settings.max_retry_count = 4;
    request.settings.strategy = SL_STR("Pinned");
    request.settings.message_timeout = (sl_wire_group_time){ true, true, 70000 };
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    manage_expect_dropped(consumer, "orders", "g");
    info = manage_look(&m, "orders", "g");
    EXPECT_EQ(info.max_retry_count, 4);
    EXPECT_EQ(info.message_timeout_ms, 7);
    EXPECT_STR(info.strategy.data, "Pinned");
    EXPECT_EQ(info.connection_count, 0);
    consumer = groups_join(&m.g, (groups_consumer){ 0 }); /* what was acked stays acked, unlike there */
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:1 orders:2");
    groups_kill(&m.g);
    EXPECT_EQ(manage_look(&m, "orders", "g").max_retry_count, 4);
    manage_done(&m);
}

/* What the one gives back must not go to the other, who is dropped in the same moment. */
TEST(an_update_gives_out_again_what_plain_consumers_held_and_keeps_what_others_may_come_back_for)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *plain, *able, *next;
    sl_uuid ids[2];
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    plain = groups_join(&m.g, (groups_consumer){ .name = "plain" });
    able = groups_join(&m.g, (groups_consumer){ .name = "able", .extensions = true });
    reads_append(&m.g.rig, "orders", 4);
    EXPECT_HEARD_FROM(plain, 1, "orders:0 orders:2");
    EXPECT_HEARD_FROM(able, 1, "orders:1 orders:3");
    ids[0] = groups_id(able, 1);
    ids[1] = groups_id(able, 2);
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    next = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(next, "confirmed:orders::g orders:0 orders:2"); /* uncharged: nobody has failed */
    able = groups_join(
        &m.g, (groups_consumer){ .name = "able", .extensions = true, .resume = ids, .resume_count = 2 });
    groups_send_ids(able, SL_PERSISTENT_REQUEST_ACK, ids, 2);
    server_rig_run(&m.g.rig);
    EXPECT_HEARD(able, "confirmed:orders::g settled:2");
    manage_done(&m);
}

TEST(every_strategy_can_be_changed_to_every_other_and_the_server_starts_with_it)
{
    static const char *const strategies[] = { "Pinned", "RoundRobin",       "Pinned",    "DispatchToSingle",
                                              "Pinned", "DispatchToSingle", "RoundRobin" };
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 20);
    request.settings.strategy = SL_STR("PinnedByCorrelation");
    manage_make(&m, &request);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        consumer = groups_join(&m.g, (groups_consumer){ .window = 2 });
        groups_ack(consumer, 1, 1);
        request.settings.strategy = sl_str_from(strategies[i]);
        EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
        EXPECT(!server_rig_logged(&m.g.rig, "cannot go on"));
        if (i % 2 == 0)
            groups_kill(&m.g);
        EXPECT_STR(manage_look(&m, "orders", "g").strategy.data, strategies[i]);
    }
    consumer = groups_join(&m.g, (groups_consumer){ .window = 20 });
    EXPECT_HEARD_FROM(consumer, 1,
                      "orders:7 orders:8 orders:9 orders:10 orders:11 orders:12 orders:13 orders:14 "
                      "orders:15 orders:16 orders:17 orders:18 orders:19");
    manage_done(&m);
}

/* kurrent-semantics 2.3: without a checkpoint the new start counts, with one it does not. */
TEST(an_update_moves_the_start_of_a_group_that_has_not_begun)
{
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 4);
    request.start = SL_WIRE_START_END;
    manage_make(&m, &request);
    request.start = SL_WIRE_START_GIVEN;
    request.revision = 2;
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    EXPECT_STR(manage_look(&m, "orders", "g").last_checkpointed_position.data, "");
    groups_kill(&m.g);
    consumer = groups_join(&m.g, (groups_consumer){ .window = 1 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:2");
    groups_ack(consumer, 1, 1);
    request.start = SL_WIRE_START_BEGIN;
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:3");
    EXPECT_STR(manage_look(&m, "orders", "g").start_from.data, "0");
    manage_done(&m);
}

/* --- Delete --- */

TEST(a_group_that_is_deleted_drops_its_consumers_and_is_gone_for_good)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 2);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_nack(consumer, 1, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_CALL_STATUS(manage_delete(&m, "orders", "g"), SL_STATUS_OK);
    manage_expect_dropped(consumer, "orders", "g");
    manage_expect_missing(manage_delete(&m, "orders", "g"), "orders", "g");
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "NOT_FOUND");
    groups_cut_power(&m.g);
    manage_expect_missing(manage_info(&m, "orders", "g", NULL), "orders", "g");
    EXPECT_STR(groups_stored(&m.g, MANAGE_PARKED_OF_G), "");
    manage_done(&m);
}

TEST(a_group_with_the_name_of_a_deleted_one_begins_anew)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 2);
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    groups_ack(consumer, 1, 1);
    groups_nack(consumer, 2, 1, SL_WIRE_NACK_PARK, "no");
    EXPECT_CALL_STATUS(manage_delete(&m, "orders", "g"), SL_STATUS_OK);
    manage_make(&m, &request);
    EXPECT_EQ(manage_look(&m, "orders", "g").parked_count, 0);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:0 orders:1");
    manage_done(&m);
}

TEST(a_group_of_all_and_one_of_a_stream_are_two)
{
    const sl_wire_group_request of_stream = manage_request("orders", "g");
    const sl_wire_group_request of_all = manage_request("$all", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &of_stream);
    manage_expect_missing(manage_delete(&m, "$all", "g"), "$all", "g");
    manage_make(&m, &of_all);
    EXPECT_CALL_STATUS(manage_delete(&m, "$all", "g"), SL_STATUS_OK);
    EXPECT_CALL_STATUS(manage_info(&m, "orders", "g", NULL), SL_STATUS_OK);
    manage_done(&m);
}

/* --- RestartSubsystem --- */

TEST(a_restart_drops_all_consumers_and_loses_nothing)
{
    static const char *const paths[] = { MANAGE_PATH("RestartSubsystem"),
                                         "/event_store.client.operations.Operations/"
                                         "RestartPersistentSubscriptions" };
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer, *restart;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 4);
    manage_make(&m, &request);
    for (size_t i = 0; i < 2; i++) {
        consumer = groups_join(&m.g, (groups_consumer){ .name = "w", .window = 2 });
        EXPECT_HEARD(consumer, i == 0 ? "confirmed:orders::g orders:0 orders:1"
                                      : "confirmed:orders::g orders:1 orders:2");
        groups_ack(consumer, 1, 1);
        restart = server_rig_unary(&m.g.rig, paths[i], SL_STR(""));
        EXPECT_CALL_STATUS(restart, SL_STATUS_OK);
        EXPECT_EQ(restart->message_count, 1);
        EXPECT_EQ(restart->messages[0].bytes, 0);
        server_rig_run(&m.g.rig);
        manage_expect_dropped(consumer, "orders", "g");
    }
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:2 orders:3");
    manage_done(&m);
}

/* What a reader has of the tail and the store goes back with it: the end of the rig looks. */
TEST(a_group_may_be_restarted_in_the_middle_of_reading)
{
    static const sl_str prefix = SL_STR_INIT("nothing");
    sl_wire_group_request request = manage_request("$all", "g");
    const sl_desk *desk = NULL;
    server_call *create;
    manage m;

    manage_start(&m);
    for (int i = 0; i < 5; i++)
        reads_append_burst(&m.g.rig, "orders", 1000, 10);
    request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                       .on = SL_WIRE_FILTER_ON_STREAM,
                                       .prefixes = &prefix,
                                       .prefix_count = 1,
                                       .window = SL_WIRE_WINDOW_COUNT };
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Create"));
    server_call_send(create, manage_create_bytes(&m, &request));
    server_call_half_close(create);
    while (desk == NULL || sl_desk_is_opening(desk)) {
        server_rig_turn(&m.g.rig);
        desk = sl_registry_find(m.g.rig.host->registry, SL_STR("$all"), SL_STR("g"));
    }
    server_rig_turn(&m.g.rig);
    EXPECT_OK(sl_registry_restart(m.g.rig.host->registry));
    server_rig_run(&m.g.rig);
    EXPECT_CALL_STATUS(create, SL_STATUS_OK);
    EXPECT_STR(manage_look(&m, "$all", "g").status.data, "Live");
    manage_done(&m);
}

/* --- who may --- */

typedef struct permission {
    const char *name;
    bool for_users; /* else for $admins and $ops only */
} permission;

static const permission permissions[] = {
    { MANAGE_PATH("Create"), false },         { MANAGE_PATH("Update"), false },
    { MANAGE_PATH("Delete"), false },         { MANAGE_PATH("ReplayParked"), false },
    { MANAGE_PATH("TruncateParked"), false }, { MANAGE_PATH("RestartSubsystem"), false },
    { MANAGE_PATH("GetInfo"), true },         { MANAGE_PATH("List"), true },
};

/* What was let in is told what is wrong with an empty request, or succeeds; only what was not is denied. */
TEST(groups_are_managed_by_admins_and_operators_and_seen_by_every_user)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 5, 6 } };
    const char *const users[] = { "root", "olga", "una" };
    server_rig rig;

    server_rig_init(&rig);
    EXPECT_OK(sl_store_open_memory(&setup, &rig.store));
    auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
    auth_rig_user(rig.store, "olga", "olga-secret", "\"$ops\"");
    auth_rig_user(rig.store, "una", "una-secret", "");
    server_rig_start(&rig);
    for (size_t u = 0; u < 3; u++)
        for (size_t i = 0; i < sizeof permissions / sizeof permissions[0]; i++) {
            const bool may = u < 2 || permissions[i].for_users;
            char password[32];
            const server_call *call;

            snprintf(password, sizeof password, "%s-secret", users[u]);
            rig.authorization = auth_rig_basic(users[u], password);
            call = server_rig_unary(&rig, permissions[i].name, SL_STR(""));
            EXPECT_EQ(call->status == SL_STATUS_PERMISSION_DENIED, !may);
            EXPECT_EQ(call->status == SL_STATUS_UNAUTHENTICATED, false);
            if (!may)
                EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
        }
    rig.authorization = NULL;
    for (size_t i = 0; i < sizeof permissions / sizeof permissions[0]; i++)
        EXPECT_CALL_STATUS(server_rig_unary(&rig, permissions[i].name, SL_STR("")),
                           SL_STATUS_PERMISSION_DENIED);
    auth_rig_done(&rig);
}

/* --- the end of the server --- */

TEST(a_server_that_stops_makes_no_more_groups_and_says_why)
{
    const sl_wire_group_request request = manage_request("orders", "g");
    server_call *create;
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    create = server_rig_call(&m.g.rig, MANAGE_PATH("Delete")); /* comes in before the end begins */
    server_rig_run(&m.g.rig);
    sl_host_stop(m.g.rig.host, "a new version");
    sl_door_shut(m.g.rig.host->door, "a new version");
    server_call_send(create, SL_STR("\x0a\x0d\x0a\x08\x1a\x06orders\x12\x01g"));
    server_call_half_close(create);
    server_rig_run_until_ended(&m.g.rig, create);
    EXPECT_CALL_STATUS(create, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(create->message, "The server is shutting down: a new version");
    EXPECT_CALL_STATUS(manage_restart(&m), SL_STATUS_UNAVAILABLE);
    manage_done(&m);
}
