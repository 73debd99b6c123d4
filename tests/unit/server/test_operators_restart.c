/* tests/unit/server/test_operators_restart.c — operators stop consumers that are away since before the server was started (B17). */
#include "operators_rig.h"
#include "read_rig.h"

#include "server/auth_inside.h"

#include <string.h>

static const sl_wire_label version_41[] = { { SL_STR_INIT("version"), SL_STR_INIT("41") } };

#define NAMED(text)   .consumer_name = SL_STR_INIT(text)
#define OF_GROUP      .stream = SL_STR_INIT("orders"), .group = SL_STR_INIT("g")
#define LABELLED(v)   .label_key = SL_STR_INIT("version"), .label_value = SL_STR_INIT(v)
#define WAIT_A_MINUTE .wait_ms = 60 * 1000

static void begin(groups *g, unsigned events)
{
    groups_start(g);
    reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static server_call *join_named(groups *g, const char *name)
{
    return groups_join(g, (groups_consumer){ .name = name, .window = 1, .extensions = true });
}

/* B17: names are not in the records, leases are. Who asks for the name before its consumer came back must not hear "nobody". */
TEST(after_a_restart_a_stop_by_name_waits_for_who_has_not_come_back)
{
    groups g;
    server_call *stop;

    begin(&g, 2);
    (void)join_named(&g, "a");
    (void)join_named(&g, "b");
    groups_kill(&g);
    EXPECT_STR(operators_list(&g, WHO(0)), "=away:1 =away:1");
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=away:1");
    EXPECT_STR(operators_list(&g, WHO(NAMED("c"))), "");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=away:1 =away:1"); /* known from now on */
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "1/0:1");
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/1:0-1/1! OK");
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), ""); /* its lease is over */
    groups_done(&g);
}

/* The core remembers it for a while, in case it comes back and settles late. Nobody else has anything of that. */
TEST(after_a_restart_who_holds_nothing_any_more_is_neither_listed_nor_meant)
{
    groups g;
    server_call *stop;

    begin(&g, 2);
    (void)join_named(&g, "a");
    (void)join_named(&g, "b");
    groups_kill(&g);
    EXPECT_STR(operators_list(&g, WHO(OF_GROUP)), "=away:1 =away:1");
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_list(&g, WHO(OF_GROUP)), "");
    stop = operators_stop(&g, STOP(.who = { LABELLED("42") }, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "0/0:0! OK");
    (void)join_named(&g, "c");
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }));
    EXPECT_STR(operators_heard(stop), "1/0:1 OK");
    groups_done(&g);
}

TEST(after_a_restart_who_comes_back_is_stopped_and_waited_for_in_its_place)
{
    for (int once = 0; once <= 1; once++) {
        groups g;
        server_call *call, *stop;
        sl_uuid id;

        begin(&g, 1);
        call = join_named(&g, "a");
        id = groups_id(call, 1);
        groups_kill(&g);
        stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = once == 1, WAIT_A_MINUTE));
        EXPECT_STR(operators_heard(stop), "1/0:1");
        call = groups_join(
            &g, (groups_consumer){ .name = "a", .extensions = true, .resume = &id, .resume_count = 1 });
        EXPECT_HEARD_FROM(call, 1, "stop-requested stopped:1^operator");
        EXPECT_STR(operators_heard(stop), "1/0:1 2/1:1");
        groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
        server_rig_run(&g.rig);
        EXPECT_STR(operators_heard(stop), "1/0:1 2/1:1 2/1:0 2/2:0! OK");
        EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=drained:0+^operator");
        groups_done(&g);
    }
}

/* A plain client lists nothing when it comes back: it is stopped before it is given anything new, and waited for with what it held. */
TEST(after_a_restart_a_plain_client_that_comes_back_is_stopped_before_it_gets_more)
{
    groups g;
    server_call *call, *stop;
    sl_uuid id;

    begin(&g, 3);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1 });
    id = groups_id(call, 1);
    groups_kill(&g);
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "1/0:1");
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1 });
    EXPECT_HEARD(call, "confirmed:orders::g");
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=away:1 a=drained:0+^operator");
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD(call, "confirmed:orders::g");
    EXPECT(strstr(operators_heard(stop), "2/2:0! OK") != NULL);
    groups_done(&g);
}

TEST(who_comes_after_one_that_was_drained_is_not_stopped)
{
    groups g;
    server_call *a, *b, *stop, *next;

    begin(&g, 3);
    a = groups_join(&g,
                    (groups_consumer){ .name = "a", .window = 1, .labels = version_41, .label_count = 1 });
    b = groups_join(&g,
                    (groups_consumer){ .name = "b", .window = 1, .labels = version_41, .label_count = 1 });
    stop = operators_stop(&g, STOP(.who = { LABELLED("41") }, .once = true, WAIT_A_MINUTE));
    groups_ack(a, 1, 1);
    server_call_cancel(a);
    server_rig_run(&g.rig);
    next = groups_join(&g,
                       (groups_consumer){ .name = "a", .window = 1, .labels = version_41, .label_count = 1 });
    EXPECT_HEARD(next, "confirmed:orders::g orders:2");
    groups_ack(b, 1, 1);
    EXPECT_STR(operators_heard(stop), "2/0:2 2/0:1 2/1:1 2/1:0 2/2:0! OK");
    groups_done(&g);
}

/* The user belongs to the session: nobody finds another user's consumer by accident, and all known users are tried. */
TEST(after_a_restart_consumers_of_known_users_are_found_by_name)
{
    groups g;
    sl_user *user;

    begin(&g, 2);
    groups_as_user(&g, "ada");
    (void)join_named(&g, "a");
    groups_as_user(&g, "eve");
    (void)join_named(&g, "a");
    groups_kill(&g);
    user = sl_users_enter(&g.rig.host->auth->users, SL_STR("ada"));
    EXPECT(user != NULL);
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=away:1"); /* who "eve" was is not known here */
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { NAMED("a") }))), "1/0:1 OK");
    sl_users_unpin(&g.rig.host->auth->users, user);
    groups_done(&g);
}

TEST(after_a_restart_a_stop_of_the_group_waits_for_those_without_a_name)
{
    groups g;
    server_call *stop, *other;

    begin(&g, 2);
    (void)join_named(&g, "a");
    (void)groups_join(&g, (groups_consumer){ .window = 1 }); /* has none */
    groups_kill(&g);
    other = join_named(&g, "b");
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "3/1:2");
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_heard(stop), "3/1:2 3/3:0-2/2! OK");
    EXPECT_HEARD_FROM(other, 1, "stop-requested stopped:0^operator drained:0/0/0");
    groups_done(&g);
}

/* Labels are not in the records: whoever was there before may have it, and is waited for until it comes back with another one. */
TEST(after_a_restart_a_stop_of_a_label_waits_for_those_whose_labels_are_not_known)
{
    groups g;
    server_call *call, *stop;
    sl_uuid id;

    begin(&g, 2);
    call = groups_join(
        &g, (groups_consumer){
                .name = "a", .window = 1, .extensions = true, .labels = version_41, .label_count = 1 });
    id = groups_id(call, 1);
    groups_kill(&g);
    stop = operators_stop(&g, STOP(.who = { LABELLED("42") }, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "1/0:1?1");
    call = groups_join(&g, (groups_consumer){ .name = "a",
                                              .window = 1,
                                              .extensions = true,
                                              .resume = &id,
                                              .resume_count = 1,
                                              .labels = version_41,
                                              .label_count = 1 });
    EXPECT_STR(operators_heard(stop), "1/0:1?1 1/1:0?1! OK");
    EXPECT_HEARD_FROM(call, 1, "");
    groups_done(&g);
}
