/* tests/unit/server/test_registry.c — groups that are made, changed and deleted, and are there again after a restart: on the store in
 * memory, on the journal, on a store that waits, is full, or fails. */
#include "changes_rig.h"
#include "read_rig.h"

#include "base/support.h"
#include "server/door.h"
#include "server/groups/registry_private.h"
#include "store/faulty/faulty.h"

/* --- by name --- */

TEST(groups_are_found_by_stream_and_name_and_listed_in_order)
{
    groups g;

    groups_start(&g);
    EXPECT_STR(changes_listed(&g, ""), "");
    EXPECT_OK(changes_create(&g, "orders", "b"));
    EXPECT_OK(changes_create(&g, "orders", "a"));
    EXPECT_OK(changes_create(&g, "$all", "z"));
    EXPECT_OK(changes_create(&g, "order", "c"));
    EXPECT_OK(changes_create(&g, "orders2", "a"));
    EXPECT_STR(changes_listed(&g, ""), "$all::z order::c orders::a orders::b orders2::a");
    EXPECT_STR(changes_listed(&g, "orders"), "orders::a orders::b");
    EXPECT_STR(changes_listed(&g, "$all"), "$all::z");
    EXPECT_STR(changes_listed(&g, "nothing"), "");
    EXPECT(changes_there(&g, "orders", "a") && !changes_there(&g, "orders", "c") &&
           !changes_there(&g, "orde", "a"));
    EXPECT(sl_registry_knows_stream(changes_registry(&g), SL_STR("orders")));
    EXPECT(!sl_registry_knows_stream(changes_registry(&g), SL_STR("nothing")));
    groups_done(&g);
}

TEST(a_group_that_exists_is_not_made_again_and_one_that_does_not_is_not_found)
{
    groups g;

    groups_start(&g);
    EXPECT_ERR(changes_set_retries(&g, "orders", "g", 1), SL_ERR_NOT_FOUND);
    EXPECT_ERR(changes_delete(&g, "orders", "g"), SL_ERR_NOT_FOUND);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    EXPECT_ERR(changes_create(&g, "orders", "g"), SL_ERR_EXISTS);
    EXPECT_OK(changes_delete(&g, "orders", "g"));
    EXPECT_ERR(changes_delete(&g, "orders", "g"), SL_ERR_NOT_FOUND);
    EXPECT(!changes_there(&g, "orders", "g"));
    EXPECT(sl_registry_knows_stream(changes_registry(&g), SL_STR("orders"))); /* it had one */
    EXPECT_OK(changes_create(&g, "orders", "g"));
    groups_done(&g);
}

/* Their parked messages would be in one stream. */
TEST(two_groups_never_have_one_key)
{
    groups g;

    groups_start(&g);
    EXPECT_OK(changes_create(&g, "a", "b::c"));
    EXPECT_ERR(changes_create(&g, "a::b", "c"), SL_ERR_EXISTS);
    EXPECT(!changes_there(&g, "a::b", "c"));
    EXPECT_OK(changes_create(&g, "a::b", "d"));
    EXPECT_ERR(changes_create(&g, "a", "b::d"), SL_ERR_EXISTS);
    EXPECT_OK(changes_delete(&g, "a", "b::c"));
    EXPECT_OK(changes_create(&g, "a::b", "c"));
    groups_kill(&g);
    EXPECT_STR(changes_listed(&g, ""), "a::b::c a::b::d");
    groups_done(&g);
}

TEST(what_is_wrong_with_a_definition_is_found_before_it_is_written)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;

    groups_start(&g);
    definition.settings.read_batch_size = definition.settings.history_buffer_size;
    EXPECT_ERR(sl_registry_create(changes_registry(&g), &definition, changes_note, NULL), SL_ERR_INVALID);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    EXPECT_ERR(sl_registry_update(changes_registry(&g), &definition, changes_note, NULL), SL_ERR_INVALID);
    EXPECT_EQ(changes_retries(&g, "orders", "g"), 10);
    groups_done(&g);
}

/* --- durable before done --- */

TEST(a_group_is_there_when_it_is_durable_and_not_before)
{
    const sl_group_definition definition = groups_definition("orders", "g");
    sl_store *const store = groups_held_store();
    changes_outcome made = { 0 }, again = { 0 }, gone = { 0 };
    groups g;

    groups_start_on(&g, store);
    groups_held_store_hold(store, true);
    EXPECT_OK(sl_registry_create(changes_registry(&g), &definition, changes_note, &made));
    server_rig_turn(&g.rig);
    server_rig_turn(&g.rig);
    EXPECT(!made.is_done && !changes_there(&g, "orders", "g"));
    EXPECT_STR(changes_listed(&g, ""), "");
    EXPECT_ERR(sl_registry_create(changes_registry(&g), &definition, changes_note, &again), SL_ERR_EXISTS);
    EXPECT_ERR(
        sl_registry_delete(changes_registry(&g), definition.stream, definition.name, changes_note, &gone),
        SL_ERR_NOT_FOUND);
    groups_held_store_hold(store, false);
    EXPECT_OK(changes_wait(&g, SL_OK, &made));
    EXPECT(changes_there(&g, "orders", "g"));
    groups_held_store_hold(store, true);
    EXPECT_OK(
        sl_registry_delete(changes_registry(&g), definition.stream, definition.name, changes_note, &gone));
    server_rig_turn(&g.rig);
    server_rig_turn(&g.rig);
    EXPECT(!gone.is_done && !changes_there(&g, "orders", "g"));
    EXPECT_ERR(sl_registry_create(changes_registry(&g), &definition, changes_note, &again), SL_ERR_EXISTS);
    groups_held_store_hold(store, false);
    EXPECT_OK(changes_wait(&g, SL_OK, &gone));
    EXPECT_OK(changes_create(&g, "orders", "g"));
    groups_done(&g);
}

/* Whoever asked is told that nobody knows. */
TEST(changes_that_are_on_their_way_when_the_server_ends_are_answered_once)
{
    const sl_group_definition definition = groups_definition("orders", "g");
    sl_store *const store = groups_held_store();
    changes_outcome made = { 0 };
    groups g;

    groups_start_on(&g, store);
    groups_held_store_hold(store, true);
    EXPECT_OK(sl_registry_create(changes_registry(&g), &definition, changes_note, &made));
    server_rig_turn(&g.rig);
    groups_held_store_hold(store, false);
    g.rig.host->stopping = true;
    server_rig_done(&g.rig);
    EXPECT_EQ(made.times, 1);
    EXPECT_ERR(made.err, SL_ERR_STORE_FAILED);
    sl_store_close(store);
}

TEST(a_shut_door_refuses_changes_and_leaves_everything_as_it_was)
{
    const sl_group_definition definition = groups_definition("orders", "h");
    groups g;

    groups_start(&g);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    sl_door_shut(g.rig.host->door, "SIGTERM");
    for (int i = 0; i < 2; i++) /* its name stays free */
        EXPECT_ERR(sl_registry_create(changes_registry(&g), &definition, changes_note, NULL),
                   SL_ERR_DRAINING);
    EXPECT_ERR(changes_set_retries(&g, "orders", "g", 3), SL_ERR_DRAINING);
    EXPECT_ERR(changes_delete(&g, "orders", "g"), SL_ERR_DRAINING);
    EXPECT_STR(changes_listed(&g, ""), "orders::g");
    EXPECT_EQ(changes_retries(&g, "orders", "g"), 10);
    groups_done(&g);
}

TEST(a_deletion_that_the_disk_has_no_room_for_leaves_the_group_at_work)
{
    sl_store *const store = groups_held_store();
    server_call *call;
    groups g;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .name = "w" });
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "bad"); /* so that there is a stream to be deleted */
    groups_held_store_refuse(store, true);
    EXPECT_ERR(changes_delete(&g, "orders", "g"), SL_ERR_NO_SPACE);
    groups_held_store_refuse(store, false);
    EXPECT(changes_there(&g, "orders", "g"));
    EXPECT(call->ended);
    call = groups_join(&g, (groups_consumer){ .name = "w" });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD(call, "confirmed:orders::g orders:1#1"); /* 0 is parked, 1 was given out */
    EXPECT_OK(changes_delete(&g, "orders", "g"));
    groups_done(&g);
}

/* --- consumers --- */

TEST(deleting_a_group_drops_its_consumers_and_its_parked_messages)
{
    const char *const parked = "$persistentsubscription-orders::g-parked";
    server_call *call;
    groups g;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "bad");
    EXPECT(strcmp(groups_stored(&g, parked), "") != 0);
    EXPECT_OK(changes_delete(&g, "orders", "g"));
    EXPECT_CALL_STATUS(call, SL_STATUS_CANCELLED);
    EXPECT_STR(server_call_trailer(call, "exception"), "persistent-subscription-dropped");
    EXPECT_STR(groups_stored(&g, parked), "");
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_CALL_STATUS(call, SL_STATUS_NOT_FOUND);
    EXPECT_STR(server_call_trailer(call, "exception"), "persistent-subscription-does-not-exist");
    groups_plain(&g); /* another one: from the start */
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "confirmed:orders::g orders:0 orders:1");
    groups_done(&g);
}

TEST(what_consumers_say_while_their_group_is_deleted_is_no_error)
{
    sl_store *const store = groups_held_store();
    changes_outcome outcome = { 0 };
    server_call *call;
    groups g;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_held_store_hold(store, true);
    EXPECT_OK(
        sl_registry_delete(changes_registry(&g), SL_STR("orders"), SL_STR("g"), changes_note, &outcome));
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 1) }, 1);
    for (int i = 0; i < 4; i++)
        server_rig_turn(&g.rig);
    EXPECT(!outcome.is_done && call->ended);
    groups_held_store_hold(store, false);
    EXPECT_OK(changes_wait(&g, SL_OK, &outcome));
    EXPECT(!server_rig_logged(&g.rig, "cannot go on"));
    groups_done(&g);
}

TEST(an_update_is_durable_and_keeps_the_filter)
{
    static const sl_str prefixes[] = { SL_STR_INIT("order") };
    sl_group_definition definition = groups_definition("$all", "g");
    changes_outcome outcome = { 0 };
    groups g;

    groups_start(&g);
    definition.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_STREAM, .prefixes = prefixes, .prefix_count = 1
    };
    EXPECT_OK(changes_wait(&g, sl_registry_create(changes_registry(&g), &definition, changes_note, &outcome),
                           &outcome));
    EXPECT_OK(changes_set_retries(&g, "$all", "g", 3)); /* says "no filter" */
    EXPECT_EQ(changes_retries(&g, "$all", "g"), 3);
    groups_cut_power(&g);
    EXPECT_EQ(changes_retries(&g, "$all", "g"), 3);
    reads_append(&g.rig, "orders", 1);
    reads_append(&g.rig, "other", 1);
    EXPECT_HEARD(groups_join(&g, (groups_consumer){ .stream = "$all" }), "confirmed:$all::g orders:0");
    groups_done(&g);
}

/* A group that has failed is made again from its records by an Update, and so is every one by a restart. */
TEST(a_group_that_failed_works_again_after_an_update_or_a_restart)
{
    server_call *call;
    groups g;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 1 });
    groups_ack(call, 1, 1);
    for (int round = 0; round < 2; round++) {
        sl_desk_close(groups_find(&g, "orders", "g"));
        server_rig_run(&g.rig);
        EXPECT(call->ended);
        EXPECT_HEARD(groups_join(&g, (groups_consumer){ 0 }), "confirmed:orders::g CANCELLED");
        if (round == 0)
            EXPECT_OK(changes_set_retries(&g, "orders", "g", 4));
        else
            EXPECT_OK(sl_registry_restart(changes_registry(&g)));
        server_rig_run(&g.rig);
        call = groups_join(&g, (groups_consumer){ 0 });
        server_rig_advance(&g.rig, 61 * GROUPS_SECOND_NS);
        EXPECT(strstr(groups_heard(call), "orders:1") != NULL &&
               strstr(groups_heard(call), "orders:0") == NULL);
        EXPECT_EQ(changes_retries(&g, "orders", "g"), 4);
    }
    groups_done(&g);
}

TEST(a_restart_of_all_groups_drops_consumers_and_loses_nothing)
{
    server_call *calls[2];
    groups g;

    groups_start(&g);
    reads_append(&g.rig, "orders", 4);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    EXPECT_OK(changes_create(&g, "orders", "h"));
    calls[0] = groups_join(&g, (groups_consumer){ .window = 2 });
    calls[1] = groups_join(&g, (groups_consumer){ .group = "h" });
    groups_ack(calls[0], 2, 1);
    groups_ack(calls[1], 1, 4);
    EXPECT_OK(sl_registry_restart(changes_registry(&g)));
    server_rig_run(&g.rig);
    for (int i = 0; i < 2; i++)
        EXPECT_STR(server_call_trailer(calls[i], "exception"), "persistent-subscription-dropped");
    calls[0] = groups_join(&g, (groups_consumer){ 0 });
    calls[1] = groups_join(&g, (groups_consumer){ .group = "h" });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT(strstr(groups_heard(calls[0]), "orders:0") != NULL);
    EXPECT(strstr(groups_heard(calls[0]), "orders:1") == NULL);
    EXPECT(strstr(groups_heard(calls[0]), "orders:3") != NULL);
    EXPECT_HEARD(calls[1], "confirmed:orders::h");
    groups_done(&g);
}

/* --- over a restart --- */

TEST(everything_is_there_after_a_restart_of_the_store_in_memory)
{
    groups g;

    groups_start(&g);
    changes_fill(&g);
    groups_cut_power(&g);
    changes_expect_filled(&g);
    groups_done(&g);
}

static sl_store *journal_on(sl_faulty *disk)
{
    const sl_journal_options options = { .segment_bytes = 256 * 1024 };
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 1, 2 } };
    char words[512];
    sl_store *store = NULL;
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    EXPECT_OK(sl_store_open_faulty(&setup, &options, disk, &report, &store));
    return store;
}

TEST(everything_is_there_after_a_restart_of_the_journal)
{
    sl_faulty *const disk = sl_faulty_new();
    groups g;

    groups_start_on(&g, journal_on(disk));
    changes_fill(&g);
    for (int round = 0; round < 2; round++) {
        g.rig.host->stopping = true;
        groups_done(&g);
        groups_start_on(&g, journal_on(disk));
    }
    changes_expect_filled(&g);
    groups_done(&g);
    sl_faulty_free(disk);
}

static sl_err count_group(void *ctx, uint64_t number, sl_str definition)
{
    (void)ctx, (void)number, (void)definition;
    return SL_OK;
}

static sl_err count_record(void *ctx, uint64_t number, const sl_effect *record)
{
    (void)number, (void)record;
    ++*(size_t *)ctx;
    return SL_OK;
}

static size_t records_kept(sl_store *store)
{
    size_t count = 0;

    EXPECT_OK(
        sl_store_load(store, &(sl_loader){ .ctx = &count, .group = count_group, .record = count_record }));
    return count;
}

/* The journal asks for states when many records have gathered, and after each new segment: a long life is loaded quickly, and right. */
TEST(a_group_with_a_long_life_is_loaded_from_its_state)
{
    sl_faulty *const disk = sl_faulty_new();
    server_call *call;
    size_t heard = 1;
    sl_store *store;
    groups g;

    groups_start_on(&g, journal_on(disk));
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 64 });
    for (int round = 0; round < 60; round++) {
        reads_append(&g.rig, "orders", 50);
        server_rig_run_until_messages(&g.rig, call, heard + 50);
        groups_ack(call, heard, 50);
        heard += 50;
    }
    reads_append(&g.rig, "orders", 2);
    server_rig_run_until_messages(&g.rig, call, heard + 2);
    groups_ack(call, heard + 1, 1);
    server_call_cancel(call);
    server_rig_run(&g.rig);
    g.rig.host->stopping = true;
    groups_done(&g);
    store = journal_on(disk);
    EXPECT(records_kept(store) < 2000); /* of more than 6,000 */
    groups_start_on(&g, store);
    EXPECT_HEARD(groups_join(&g, (groups_consumer){ 0 }), "confirmed:orders::g orders:3000#1");
    groups_done(&g);
    sl_faulty_free(disk);
}

TEST(a_store_that_fails_makes_a_change_fail_and_not_hang)
{
    sl_faulty *const disk = sl_faulty_new();
    const sl_group_definition definition = groups_definition("orders", "h");
    changes_outcome outcome = { 0 };
    groups g;

    groups_start_on(&g, journal_on(disk));
    EXPECT_OK(changes_create(&g, "orders", "g"));
    sl_faulty_kill(disk);
    EXPECT_ERR(changes_wait(&g, sl_registry_create(changes_registry(&g), &definition, changes_note, &outcome),
                            &outcome),
               SL_ERR_STORE_FAILED);
    EXPECT(!changes_there(&g, "orders", "h"));
    EXPECT_ERR(changes_create(&g, "orders", "h"), SL_ERR_STORE_FAILED); /* its name is free again */
    EXPECT_ERR(changes_delete(&g, "orders", "g"), SL_ERR_STORE_FAILED);
    g.rig.host->stopping = true;
    groups_done(&g);
    groups_start_on(&g, journal_on(disk));
    EXPECT_STR(changes_listed(&g, ""), "orders::g");
    groups_done(&g);
    sl_faulty_free(disk);
}

/* --- many --- */

TEST(there_are_so_many_groups_and_not_more)
{
    groups g;

    groups_start(&g);
    changes_registry(&g)->groups_max = 90;
    for (int i = 0; i < 90; i++) {
        char name[32];

        snprintf(name, sizeof name, "%02d", i * 7 % 90); /* in no order */
        EXPECT_OK(changes_create(&g, "orders", name));
    }
    EXPECT_ERR(changes_create(&g, "orders", "one more"), SL_ERR_FULL);
    EXPECT_ERR(changes_create(&g, "orders", "07"), SL_ERR_EXISTS);
    EXPECT_OK(changes_delete(&g, "orders", "17"));
    EXPECT(changes_there(&g, "orders", "16") && !changes_there(&g, "orders", "17") &&
           changes_there(&g, "orders", "18"));
    EXPECT_OK(changes_create(&g, "orders", "one more"));
    EXPECT_OK(changes_set_retries(&g, "orders", "00", 3)); /* the first of them, found by its number */
    EXPECT_EQ(changes_retries(&g, "orders", "00"), 3);
    groups_kill(&g);
    EXPECT(changes_there(&g, "orders", "00") && !changes_there(&g, "orders", "17") &&
           changes_there(&g, "orders", "one more"));
    groups_done(&g);
}

/* Changes in a row, nobody waiting for the one before: the store decides. */
TEST(changes_of_one_group_may_follow_each_other_at_once)
{
    sl_group_definition definition = groups_definition("orders", "g");
    changes_outcome outcomes[4] = { 0 };
    groups g;

    groups_start(&g);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    definition.settings.max_retry_count = 1;
    EXPECT_OK(sl_registry_update(changes_registry(&g), &definition, changes_note, &outcomes[0]));
    definition.settings.max_retry_count = 2;
    EXPECT_OK(sl_registry_update(changes_registry(&g), &definition, changes_note, &outcomes[1]));
    EXPECT_OK(sl_registry_delete(changes_registry(&g), definition.stream, definition.name, changes_note,
                                 &outcomes[2]));
    EXPECT_ERR(sl_registry_update(changes_registry(&g), &definition, changes_note, &outcomes[3]),
               SL_ERR_NOT_FOUND);
    server_rig_run(&g.rig);
    for (int i = 0; i < 3; i++)
        EXPECT_ROW(outcomes[i].times == 1 && outcomes[i].err == SL_OK, i);
    EXPECT_EQ(outcomes[3].times, 0);
    EXPECT_STR(changes_listed(&g, ""), "");
    groups_kill(&g);
    EXPECT_STR(changes_listed(&g, ""), "");
    groups_done(&g);
}
