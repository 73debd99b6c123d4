/* tests/unit/server/test_link.c — what the settings say about a connection. */
#include "../base/support.h"
#include "made.h"

TEST(a_connection_has_as_many_calls_as_the_settings_allow_and_the_others_wait)
{
    server_rig rig;
    server_call *calls[3];
    sl_request *first;

    server_rig_init(&rig);
    rig.settings.calls_per_connection_max = 2;
    made_start(&rig);
    EXPECT_CALL_STATUS(server_rig_unary(&rig, MADE_ECHO, SL_STR("the client knows the settings")),
                       SL_STATUS_OK);
    calls[0] = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    first = made_last;
    for (int i = 1; i < 3; i++)
        calls[i] = server_rig_call(&rig, MADE_LATER);
    server_rig_run(&rig);
    EXPECT_EQ(rig.host->counters.calls_now, 2);
    sl_request_answer(first, SL_STR("x"));
    server_rig_run(&rig);
    EXPECT(calls[0]->ended);
    EXPECT_EQ(rig.host->counters.calls_begun, 4);
    server_rig_done(&rig);
}

TEST(a_connection_without_calls_ends_after_the_idle_time)
{
    server_rig rig;

    server_rig_init(&rig);
    rig.settings.idle_timeout_ns = 7000000000;
    made_start(&rig);
    server_rig_unary(&rig, MADE_ECHO, SL_STR("x"));
    server_rig_advance(&rig, 6000000000);
    EXPECT_EQ(rig.first->goaways, 0);
    server_rig_advance(&rig, 2000000000);
    EXPECT_EQ(rig.first->goaways, 1);
    server_rig_advance(&rig, 2000000000);
    EXPECT(rig.first->link == NULL);
    EXPECT(sl_list_empty(&rig.host->links));
    EXPECT_EQ(rig.host->counters.wire.connections_ended[SL_END_IDLE], 1);
    server_rig_done(&rig);
}

TEST(a_connection_without_a_call_that_is_let_in_goes_after_a_minute)
{
    server_rig rig;
    server_peer *silent, *refused, *known;

    server_rig_init(&rig);
    made_start(&rig);
    silent = server_rig_connect(&rig, "10.0.0.1:1");
    refused = server_rig_connect(&rig, "10.0.0.1:2");
    known = server_rig_connect(&rig, "10.0.0.1:3");
    server_rig_unary_with(&rig, &(server_call_options){ .peer = known, .path = MADE_ECHO }, SL_STR("x"));
    server_rig_unary_with(&rig, &(server_call_options){ .peer = refused, .path = "/no/Method" }, SL_STR("x"));
    server_rig_advance(&rig, SL_LINK_NEWCOMER_NS - 1000000000);
    EXPECT_EQ(silent->goaways + refused->goaways + known->goaways, 0);
    server_rig_advance(&rig, 2000000000);
    EXPECT_EQ(known->goaways, 0);
    EXPECT(silent->goaways > 0 && refused->goaways > 0);
    server_rig_advance(&rig, 2000000000);
    server_rig_advance(&rig, 2000000000);
    EXPECT(silent->link == NULL && refused->link == NULL);
    EXPECT(known->link != NULL);
    server_rig_done(&rig);
}

TEST(messages_that_are_not_complete_are_counted_over_all_connections)
{
    static char large[300 * 1024];
    server_rig rig;

    server_rig_init(&rig);
    made_start(&rig);
    EXPECT_EQ(rig.host->input.bytes_max, SL_HOST_INPUT_BYTES_MAX);
    rig.host->input.bytes = SL_HOST_INPUT_BYTES_MAX; /* somebody else's */
    EXPECT_CALL_STATUS(server_rig_unary(&rig, MADE_ECHO, (sl_str){ large, sizeof large }),
                       SL_STATUS_RESOURCE_EXHAUSTED);
    EXPECT_CALL_STATUS(server_rig_unary(&rig, MADE_ECHO, SL_STR("small")), SL_STATUS_OK);
    rig.host->input.bytes = 0;
    EXPECT_CALL_STATUS(server_rig_unary(&rig, MADE_ECHO, (sl_str){ large, sizeof large }), SL_STATUS_OK);
    EXPECT_EQ(rig.host->input.bytes, 0);
    server_rig_done(&rig);
}

TEST(the_address_of_a_peer_is_kept_and_never_overflows)
{
    char address[200];
    server_rig rig;
    server_peer *peer;

    server_rig_init(&rig);
    made_start(&rig);
    memset(address, 'a', sizeof address - 1);
    address[sizeof address - 1] = 0;
    peer = server_rig_connect(&rig, address);
    memset(address, 'b', sizeof address - 1);
    EXPECT_EQ(peer->link->owner.peer.bytes, sizeof peer->link->peer - 1);
    EXPECT_EQ(peer->link->owner.peer.data[0], 'a');
    server_rig_done(&rig);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

TEST(a_link_that_gets_no_memory_leaves_nothing_behind)
{
    sl_err err = SL_ERR_NOMEM;
    server_rig rig;
    test_alloc memory = { 0 };
    const sl_alloc alloc = test_alloc_use(&memory);
    size_t before;

    server_rig_init(&rig);
    rig.alloc = &alloc;
    made_start(&rig);
    before = memory.block_count;
    for (size_t fail_at = 1; err != SL_OK; fail_at++) {
        sl_link *link;

        memory.call_count = 0;
        memory.fail_at = fail_at;
        err = sl_link_new(rig.host, &(sl_link_owner){ .touch = nothing }, &link);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, fail_at);
        if (err == SL_OK)
            sl_link_free(link);
        EXPECT_ROW(memory.block_count == before, fail_at);
        EXPECT_ROW(sl_list_empty(&rig.host->links), fail_at);
    }
    sl_link_free(NULL);
    memory.fail_at = 0;
    server_rig_done(&rig);
    EXPECT_EQ(memory.block_count, 0);
}
