/* tests/unit/server/test_groups_failures.c — what is kept of failures until a message is parked, and that it is kept no longer. */
#include "groups_rig.h"
#include "read_rig.h"

#include "../base/support.h"
#include "server/groups/desk_private.h"

#include <stdio.h>
#include <string.h>

static const char parked[] = "$persistentsubscription-orders::g-parked";

/* A group of "orders" with so many events and retries, and its only consumer. */
static server_call *start_with(groups *g, sl_store *store, unsigned events, int32_t retries)
{
    sl_group_definition definition = groups_definition("orders", "g");

    groups_start_on(g, store);
    definition.settings.max_retry_count = retries;
    definition.settings.live_buffer_size = 2000;
    reads_append(&g->rig, "orders", events);
    groups_create(g, &definition);
    return groups_join(g, (groups_consumer){ .window = 1000, .name = "pod-1" });
}

static server_call *start(groups *g, unsigned events, int32_t retries)
{
    return start_with(g, groups_memory_store(), events, retries);
}

static sl_desk *desk_of(groups *g)
{
    return groups_find(g, "orders", "g");
}

static bool is_in_metadata(groups *g, const char *text)
{
    return strstr(groups_stored_metadata(g, parked), text) != NULL;
}

/* The reasons are "no 1", "no 2" ...; a message is delivered again at once. */
static void fail_again(server_call *call, size_t first, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        char reason[32];

        (void)snprintf(reason, sizeof reason, "no %zu", i + 1);
        groups_nack(call, first + i, 1, SL_WIRE_NACK_RETRY, reason);
    }
}

static const char *history_of(groups *g)
{
    static char text[1024];
    const char *at = strstr(groups_stored_metadata(g, parked), "\"history\":");
    sl_text out;

    sl_text_init(&out, text, sizeof text);
    for (at = at == NULL ? "" : at; *at != '\0';) {
        const char *const time = strstr(at, "\"time\":\"");

        if (time == NULL) {
            sl_text_add(&out, at);
            break;
        }
        EXPECT(strncmp(time + 8, "20", 2) == 0 && time[8 + 24] == '"');
        sl_text_add_str(&out, (sl_str){ at, (size_t)(time - at) });
        at = time + 8 + 24 + 2; /* times differ: left out, with the comma behind */
    }
    return text;
}

TEST(a_parked_event_has_the_reason_of_its_last_failure_its_counts_and_its_history_S3_38_B15)
{
    groups g;
    server_call *call = start(&g, 1, 2);

    fail_again(call, 1, 3);
    EXPECT(is_in_metadata(&g, "\"reason\":\"Reached retry count of 2\\nno 3\""));
    EXPECT(is_in_metadata(&g, "\"attempts\":3,\"deliveries\":3,\"interrupts\":0,\"kills\":0,\"history\":["));
    EXPECT_STR(history_of(&g),
               "\"history\":[{\"attempt\":1,\"reason\":\"no 1\"},{\"attempt\":2,\"reason\":\"no 2\"},"
               "{\"attempt\":3,\"reason\":\"no 3\"}]}");
    EXPECT(desk_of(&g)->failures.table == NULL); /* nothing of it is kept */
    EXPECT_EQ(desk_of(&g)->failures_bytes, 0);
    groups_done(&g);
}

TEST(a_history_ends_with_what_a_consumer_says_who_parks_B15)
{
    groups g;
    server_call *call = start(&g, 1, 10);

    fail_again(call, 1, 1);
    groups_nack(call, 2, 1, SL_WIRE_NACK_PARK, "never");
    EXPECT(is_in_metadata(&g, "\"attempts\":2,\"deliveries\":2,"));
    EXPECT_STR(history_of(&g),
               "\"history\":[{\"attempt\":1,\"reason\":\"no 1\"},{\"attempt\":2,\"reason\":\"never\"}]}");
    groups_done(&g);
}

TEST(of_many_failures_the_last_ones_are_kept_B15)
{
    groups g;
    server_call *call = start(&g, 1, 10);

    fail_again(call, 1, 10);
    EXPECT_EQ(desk_of(&g)->failures.count, DESK_FAILURES_MAX);
    groups_nack(call, 11, 1, SL_WIRE_NACK_RETRY, "no 11");
    EXPECT(is_in_metadata(&g, "\"attempts\":11,"));
    EXPECT_STR(history_of(&g),
               "\"history\":[{\"attempt\":7,\"reason\":\"no 7\"},{\"attempt\":8,\"reason\":\"no 8\"},"
               "{\"attempt\":9,\"reason\":\"no 9\"},{\"attempt\":10,\"reason\":\"no 10\"},"
               "{\"attempt\":11,\"reason\":\"no 11\"}]}");
    groups_done(&g);
}

/* The first byte of a character that does not fit goes with it. */
TEST(a_long_reason_is_cut_between_two_characters)
{
    char reason[DESK_FAILURE_REASON_BYTES + 16];
    groups g;
    server_call *call = start(&g, 1, 10);
    const desk_failure *failure;

    memset(reason, 'x', sizeof reason);
    memcpy(reason + DESK_FAILURE_REASON_BYTES - 1, "\xc3\xa4", 3);
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, reason);
    failure = SL_CONTAINER_OF(sl_list_first(&desk_of(&g)->failures_by_age), desk_failure, by_age);
    EXPECT_EQ(failure->bytes, DESK_FAILURE_REASON_BYTES - 1);
    reason[DESK_FAILURE_REASON_BYTES - 1] = 'x';
    reason[DESK_FAILURE_REASON_BYTES] = '\0';
    groups_nack(call, 2, 1, SL_WIRE_NACK_RETRY, reason);
    failure = SL_CONTAINER_OF(sl_list_last(&desk_of(&g)->failures_by_age), desk_failure, by_age);
    EXPECT_EQ(failure->bytes, DESK_FAILURE_REASON_BYTES);
    groups_done(&g);
}

TEST(failures_of_a_group_have_a_limit_and_the_oldest_go_first)
{
    enum {
        EVENTS = 900,
        TIMES = 4, /* more than there is room for */
        ONE_REQUEST = 60,
    };
    char reason[DESK_FAILURE_REASON_BYTES + 1];
    groups g;
    server_call *call = start(&g, EVENTS, 10);
    const sl_desk *const desk = desk_of(&g);

    memset(reason, 'x', sizeof reason);
    reason[DESK_FAILURE_REASON_BYTES] = '\0';
    for (size_t i = 0; i < EVENTS * TIMES; i += ONE_REQUEST)
        groups_nack(call, 1 + i, ONE_REQUEST, SL_WIRE_NACK_RETRY, reason);
    EXPECT(desk->failures_bytes <= DESK_FAILURES_BYTES_MAX);
    EXPECT(desk->failures_bytes > DESK_FAILURES_BYTES_MAX - sizeof reason - sizeof(desk_failure));
    EXPECT_EQ(SL_CONTAINER_OF(sl_list_first(&desk->failures_by_age), desk_failure, by_age)->attempt, 1);
    EXPECT_EQ(SL_CONTAINER_OF(sl_list_last(&desk->failures_by_age), desk_failure, by_age)->attempt, TIMES);
    groups_nack(call, 1 + TIMES * EVENTS, 1, SL_WIRE_NACK_PARK, "the first of all");
    EXPECT(is_in_metadata(&g, "\"attempts\":5,"));
    EXPECT(!is_in_metadata(&g, "\"attempt\":1,"));
    EXPECT(is_in_metadata(&g, "\"attempt\":2,"));
    groups_done(&g);
}

TEST(failures_are_forgotten_when_a_message_is_settled)
{
    static const sl_wire_nack ways[] = { SL_WIRE_NACK_SKIP, SL_WIRE_NACK_PARK };
    groups g;
    server_call *call = start(&g, 3, 10);

    groups_nack(call, 1, 3, SL_WIRE_NACK_RETRY, "no");
    EXPECT_EQ(desk_of(&g)->failures.count, 3);
    for (size_t i = 0; i < 2; i++) {
        groups_nack(call, 4 + i, 1, ways[i], "no");
        EXPECT_EQ(desk_of(&g)->failures.count, 2 - i);
    }
    groups_ack(call, 6, 1);
    EXPECT_EQ(desk_of(&g)->failures.count, 0);
    EXPECT(desk_of(&g)->failures.table == NULL);
    groups_done(&g);
}

/* What costs no attempt is no failure. */
TEST(acks_and_messages_that_are_handed_back_leave_nothing)
{
    groups g;
    server_call *call = start(&g, 2, 10);

    groups_ack(call, 1, 1);
    groups_release(call, 2, 1);
    EXPECT_EQ(desk_of(&g)->failures.count, 0);
    EXPECT(desk_of(&g)->failures.table == NULL);
    groups_done(&g);
}

/* Charged once, so it is one failure; what its consumer says of it is worth more than that it was late. */
TEST(a_lease_that_runs_out_is_a_failure_and_a_late_nack_says_why)
{
    groups g;
    server_call *call = start(&g, 1, 10);

    groups_stop(call, false);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_EQ(desk_of(&g)->failures.count, 1);
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "too slow");
    EXPECT_EQ(desk_of(&g)->failures.count, 1);
    call = groups_join(&g, (groups_consumer){ 0 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    groups_nack(call, 2, 1, SL_WIRE_NACK_PARK, "never");
    EXPECT(is_in_metadata(&g, "\"attempts\":3,\"deliveries\":3,"));
    EXPECT_STR(history_of(&g), "\"history\":[{\"attempt\":1,\"reason\":\"too slow\"},"
                               "{\"attempt\":2,\"reason\":\"There was no answer before the lease ran out.\"},"
                               "{\"attempt\":3,\"reason\":\"never\"}]}");
    groups_done(&g);
}

TEST(a_late_nack_that_parks_is_the_attempt_whose_lease_ran_out)
{
    groups g;
    server_call *call = start(&g, 1, 10);

    groups_stop(call, false);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "never");
    EXPECT(is_in_metadata(&g, "\"attempts\":1,\"deliveries\":1,"));
    EXPECT_STR(history_of(&g), "\"history\":[{\"attempt\":1,\"reason\":\"never\"}]}");
    groups_done(&g);
}

/* The call with the nack is also the one in which the other lease is found to be over. */
TEST(a_nack_is_not_the_reason_of_what_is_parked_beside_it)
{
    groups g;
    server_call *call = start(&g, 2, 0);

    sl_clock_manual_advance(&g.rig.time, 31 * GROUPS_SECOND_NS);
    groups_send_nack(call, groups_id(call, 2), SL_WIRE_NACK_RETRY, "mine");
    server_rig_run(&g.rig);
    EXPECT_STR(groups_stored(&g, parked), "0:0@orders 1:1@orders");
    EXPECT(strstr(strstr(groups_stored_metadata(&g, parked), "mine"), "} {") ==
           NULL); /* not in the first link */
    EXPECT(is_in_metadata(
        &g, "\"reason\":\"Reached retry count of 0\\nThere was no answer before the lease ran out.\""));
    groups_done(&g);
}

static void interrupt(groups *g, server_call *call)
{
    (void)g;
    for (size_t i = 1; i <= 2; i++) { /* one is free */
        groups_started(call, i, 1);
        groups_release(call, i, 1);
    }
}

static void leave(groups *g, server_call *call)
{
    groups_started(call, 1, 1);
    server_call_cancel(call);
    server_rig_run(&g->rig);
}

static void get_lost(groups *g, server_call *call)
{
    groups_started(call, 1, 1);
    server_rig_break(g->rig.first);
    server_rig_advance(&g->rig, 2 * GROUPS_SECOND_NS);
}

static void let_expire(groups *g, server_call *call)
{
    (void)call;
    server_rig_advance(&g->rig, 31 * GROUPS_SECOND_NS);
}

TEST(a_dead_letter_that_nobody_asked_for_tells_how_its_last_delivery_ended_S3_38_B15)
{
    static const struct {
        void (*end)(groups *g, server_call *call);
        const char *words;
    } rows[] = { { interrupt, "It was handed back unfinished too often." },
                 { leave, "Its consumer left without an answer." },
                 { get_lost, "Its consumer was lost and did not come back for it in time." },
                 { let_expire, "There was no answer before the lease ran out." } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_group_definition definition = groups_definition("orders", "g");
        char wanted[256];
        groups g;

        groups_start_on(&g, groups_memory_store());
        definition.settings.max_retry_count = 0;
        definition.settings.max_interrupts = (sl_wire_group_limit){ true, 1 };
        reads_append(&g.rig, "orders", 1);
        groups_create(&g, &definition);
        rows[i].end(&g, groups_join(&g, (groups_consumer){ .extensions = true, .reconnect_ms = 1000 }));
        (void)snprintf(wanted, sizeof wanted, "\"reason\":\"Reached retry count of 0\\n%s\"", rows[i].words);
        EXPECT(is_in_metadata(&g, wanted));
        (void)snprintf(wanted, sizeof wanted, "\"history\":[{\"attempt\":1,\"reason\":\"%s\"}]}",
                       rows[i].words);
        EXPECT_STR(history_of(&g), wanted);
        groups_done(&g);
    }
}

/* Its link is made when there is room again; why it failed is known since before. */
TEST(a_dead_letter_that_waits_for_room_keeps_how_its_last_delivery_ended_B15)
{
    sl_store *const store = groups_held_store();
    groups g;

    start_with(&g, store, 1, 0);
    groups_held_store_fill(store, true);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_STR(groups_stored(&g, parked), "");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_STR(history_of(&g), "\"history\":[{\"attempt\":1,\"reason\":\"There was no answer before "
                               "the lease ran out.\"}]}");
    groups_done(&g);
}

TEST(an_update_of_the_group_keeps_what_is_known_of_failures)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *call = start(&g, 1, 10);

    fail_again(call, 1, 1);
    definition.settings.max_retry_count = 1;
    EXPECT_OK(sl_desk_update(desk_of(&g), &definition));
    server_rig_run(&g.rig);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "no 2");
    EXPECT(strstr(history_of(&g), "{\"attempt\":1,\"reason\":\"no 1\"}") != NULL);
    groups_done(&g);
}

/* The counts are in the records; what was said is not. */
TEST(after_a_restart_the_counts_are_there_and_the_history_begins_anew)
{
    groups g;
    server_call *call = start(&g, 1, 10);

    fail_again(call, 1, 2);
    groups_ack(call, 3, 0);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-2" });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "never");
    EXPECT(is_in_metadata(&g, "\"attempts\":4,\"deliveries\":4,"));
    EXPECT(!is_in_metadata(&g, "no 1"));
    EXPECT(strstr(history_of(&g), "{\"attempt\":4,\"reason\":\"never\"}]}") != NULL);
    groups_done(&g);
}

/* Its link is made when it is read again, long after the nack. */
TEST(why_an_event_failed_too_often_is_kept_until_it_is_read_again)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call = start_with(&g, store, 1, 0);
    const sl_uuid id = groups_id(call, 1);

    groups_held_store_stick(store, true);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-1" });
    groups_send_nack(call, id, SL_WIRE_NACK_RETRY, "bad item");
    server_rig_run(&g.rig);
    EXPECT_EQ(desk_of(&g)->failures.count, 1);
    groups_held_store_stick(store, false);
    reads_append(&g.rig, "other", 1); /* the store has something to say, so readers ask it again */
    server_rig_run(&g.rig);
    EXPECT(is_in_metadata(&g, "\"reason\":\"Reached retry count of 0\\nbad item\""));
    EXPECT_STR(history_of(&g), "\"history\":[{\"attempt\":1,\"reason\":\"bad item\"}]}");
    EXPECT_EQ(desk_of(&g)->failures.count, 0);
    groups_done(&g);
}

/* The history is lost, never the message. */
TEST(failures_are_noted_and_told_with_any_memory_that_is_there)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at++) {
        test_alloc failing = { 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        groups g;
        server_call *call;

        groups_start_with(&g, groups_memory_store(), &alloc);
        reads_append(&g.rig, "orders", 1);
        groups_plain(&g);
        call = groups_join(&g, (groups_consumer){ 0 });
        groups_send_nack(call, groups_id(call, 1), SL_WIRE_NACK_RETRY, "no");
        failing.fail_at = failing.call_count + fail_at;
        server_rig_run(&g.rig);
        ran_through = failing.call_count < failing.fail_at;
        failing.fail_at = 0;
        server_rig_run(&g.rig);
        groups_done(&g);
        EXPECT_EQ(failing.block_count, 0);
    }
}
