/* tests/unit/server/test_groups_call.c — the call itself: what is refused, with which words, and who may call. */
#include "groups_rig.h"
#include "read_rig.h"

#include "server/method.h"

#include "../base/support.h"
#include "base/cleanup.h"

#include <string.h>

static void send_bytes(server_call *call, const char *bytes, size_t count)
{
    server_call_send(call, (sl_str){ bytes, count });
    server_rig_run(call->peer->rig);
}

TEST(a_group_that_does_not_exist_is_told_with_its_names)
{
    groups g;
    server_call *call;

    groups_start(&g);
    call = groups_join(&g, (groups_consumer){ .stream = "orders", .group = "none" });
    EXPECT_HEARD(call, "NOT_FOUND");
    EXPECT_STR(call->message, "Subscription group none on stream orders does not exist.");
    EXPECT_STR(server_call_trailer(call, "exception"), "persistent-subscription-does-not-exist");
    EXPECT_STR(server_call_trailer(call, "stream-name"), "orders");
    EXPECT_STR(server_call_trailer(call, "group-name"), "none");
    groups_done(&g);
}

TEST(anything_before_options_and_options_twice_are_refused)
{
    groups g;
    server_call *early, *twice, *empty;
    const sl_uuid id = { { 1 } };

    groups_start(&g);
    groups_plain(&g);
    early = server_rig_call(&g.rig, GROUPS_PATH);
    groups_send_ids(early, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD(early, "INVALID_ARGUMENT");
    twice = groups_join(&g, (groups_consumer){ 0 });
    groups_send(twice, &(sl_persistent_request){
                           .kind = SL_PERSISTENT_REQUEST_OPTIONS,
                           .options = { .source = SL_WIRE_SOURCE_STREAM, .stream = SL_STR("orders") } });
    server_rig_run(&g.rig);
    EXPECT_HEARD(twice, "confirmed:orders::g INVALID_ARGUMENT");
    EXPECT_STR(twice->message, "Options are sent once, as the first request.");
    empty = groups_join(&g, (groups_consumer){ 0 });
    send_bytes(empty, "", 0);
    EXPECT_HEARD(empty, "confirmed:orders::g INVALID_ARGUMENT");
    EXPECT_EQ(g.rig.host->counters.consumers_now, 0);
    groups_done(&g);
}

TEST(a_call_that_ends_its_side_before_options_is_refused)
{
    groups g;
    server_call *call;

    groups_start(&g);
    call = server_rig_call(&g.rig, GROUPS_PATH);
    server_call_half_close(call);
    server_rig_run(&g.rig);
    EXPECT_HEARD(call, "INVALID_ARGUMENT");
    groups_done(&g);
}

typedef struct options_row {
    sl_persistent_options options;
    const char *words; /* that the sentence has */
} options_row;

#define GOOD                                                                                                 \
    .source = SL_WIRE_SOURCE_STREAM, .stream = SL_STR_INIT("orders"), .group = SL_STR_INIT("g"),             \
    .buffer_size = 10, .has_id_option = true, .id_form = SL_WIRE_ID_TEXT

TEST(options_that_cannot_be_right_are_refused_with_a_sentence)
{
    static const sl_wire_label many[9] = {
        { SL_STR_INIT("a"), SL_STR_INIT("b") }, { SL_STR_INIT("a"), SL_STR_INIT("b") },
        { SL_STR_INIT("a"), SL_STR_INIT("b") }, { SL_STR_INIT("a"), SL_STR_INIT("b") },
        { SL_STR_INIT("a"), SL_STR_INIT("b") }, { SL_STR_INIT("a"), SL_STR_INIT("b") },
        { SL_STR_INIT("a"), SL_STR_INIT("b") }, { SL_STR_INIT("a"), SL_STR_INIT("b") },
        { SL_STR_INIT("a"), SL_STR_INIT("b") }
    };
    options_row rows[] = {
        { { GOOD }, "name a stream" },
        { { GOOD }, "stream must not be empty" },
        { { GOOD }, "group must not be empty" },
        { { GOOD }, "buffer_size" },
        { { GOOD }, "uuid_option" },
        { { GOOD }, "at most 8 labels" },
        { { GOOD }, "reconnect_ms" },
        { { GOOD }, "buffer_size" },
    };
    groups g;

    rows[0].options.source = SL_WIRE_SOURCE_UNSET;
    rows[1].options.stream = SL_STR("");
    rows[2].options.group = SL_STR("");
    rows[3].options.buffer_size = 0;
    rows[4].options.has_id_option = false;
    rows[5].options.labels = (sl_wire_labels){ .count = 9, .list = many };
    rows[6].options.reconnect_ms = -1;
    rows[7].options.buffer_size = -5;
    groups_start(&g);
    groups_plain(&g);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        server_call *const call = server_rig_call(&g.rig, GROUPS_PATH);

        groups_send(call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_OPTIONS,
                                                    .options = rows[i].options });
        server_rig_run(&g.rig);
        EXPECT_ROW(call->ended && call->status == SL_STATUS_INVALID_ARGUMENT, i);
        EXPECT_ROW(strstr(call->message, rows[i].words) != NULL, i);
    }
    groups_done(&g);
}

/* Malformed is the end of the call, and nothing of the request counts. */
TEST(a_malformed_id_or_an_unknown_action_ends_the_call_before_anything_counts)
{
    /* ack { ids: <structured of the event>, ids: string "no uuid" } is made from bytes below. */
    groups g;
    server_call *call, *next;
    uint8_t bytes[64], id[SL_WIRE_ID_BYTES_MAX];
    size_t id_bytes;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    id_bytes = sl_wire_id_encode((sl_wire_id){ groups_id(call, 1), SL_WIRE_ID_STRUCTURED }, id);
    bytes[0] = 0x12;
    bytes[1] = (uint8_t)(2 + id_bytes + 2 + 2 + 3);
    bytes[2] = 0x12;
    bytes[3] = (uint8_t)id_bytes;
    memcpy(bytes + 4, id, id_bytes);
    memcpy(bytes + 4 + id_bytes, "\x12\x05\x12\x03xyz", 7);
    send_bytes(call, (const char *)bytes, 4 + id_bytes + 7);
    EXPECT_HEARD_FROM(call, 2, "INVALID_ARGUMENT");
    next = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD_FROM(next, 1, "orders:0#1"); /* not settled; its first consumer has left */
    groups_nack(next, 1, 1, (sl_wire_nack)5, "");
    EXPECT_HEARD_FROM(next, 2, "INVALID_ARGUMENT");
    groups_done(&g);
}

TEST(who_may_not_read_the_stream_is_denied)
{
    groups g;
    server_call *call;

    groups_start(&g);
    groups_plain(&g);
    reads_set_metadata(&g.rig, "orders", "{\"$acl\":{\"$r\":\"somebody\"}}");
    groups_as_user(&g, "nobody");
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "PERMISSION_DENIED");
    EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
    groups_done(&g);
}

/* A call that comes while the group is being opened waits for it and is not refused. */
TEST(a_consumer_that_comes_early_waits_until_the_group_is_open)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    {
        const sl_group_definition definition = groups_definition("orders", "g");

        groups_held_store_hold(store, true);
        EXPECT_OK(sl_desk_update(groups_find(&g, "orders", "g"), &definition));
    }
    call = groups_call(&g, (groups_consumer){ .extensions = true });
    groups_send(call, &(sl_persistent_request){
                          .kind = SL_PERSISTENT_REQUEST_STOP }); /* behind the options, in order */
    while (server_rig_turn(&g.rig))
        continue;
    EXPECT_HEARD(call, "");
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_EQ(call->message_count > 0, 1);
    EXPECT(strstr(groups_heard(call), "confirmed:orders::g") == groups_heard(call));
    EXPECT(strstr(groups_heard(call), "stopped:") != NULL);
    groups_done(&g);
}

/* Acks of ids that nobody knows, many at a time, until the server takes no more. */
static unsigned send_until_held(groups *g, server_call *call)
{
    static sl_uuid ids[4000];
    static uint8_t message[128 * 1024];
    const sl_persistent_request request = {
        .kind = SL_PERSISTENT_REQUEST_ACK,
        .ids = { .count = SL_COUNT_OF(ids), .list = ids, .form = SL_WIRE_ID_STRUCTURED }
    };
    sl_str text = { (const char *)message, 0 };
    unsigned sent = 0;

    for (unsigned i = 0; i < SL_COUNT_OF(ids); i++)
        ids[i] = (sl_uuid){ { 1, (uint8_t)(i >> 8), (uint8_t)i } };
    text.bytes = sl_persistent_request_size(&request);
    EXPECT(text.bytes <= sizeof message);
    sl_persistent_request_encode(&request, message, text.bytes);
    for (; sent < 100 && sl_call_send(call->call, &text, 1) != SL_ERR_FULL; sent++)
        server_rig_run(&g->rig);
    return sent;
}

TEST(a_consumer_that_sends_acks_and_reads_nothing_is_not_listened_to_for_ever)
{
    groups g;
    server_call *call;

    groups_start(&g);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    call->slow = true;
    EXPECT(send_until_held(&g, call) < 100);
    EXPECT(g.rig.host->unsent_ids > 16 * 1024);
    server_call_read_on(call);
    server_rig_run(&g.rig);
    EXPECT(!call->ended);
    EXPECT_EQ(g.rig.host->unsent_ids, 0);
    groups_done(&g);
}

TEST(it_is_listened_to_even_less_while_many_do_so)
{
    enum {
        OF_OTHERS = 2 * 1024 * 1024
    };
    groups g;
    server_call *call;

    groups_start(&g);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    call->slow = true;
    g.rig.host->unsent_ids = OF_OTHERS;
    EXPECT(send_until_held(&g, call) < 100);
    EXPECT(g.rig.host->unsent_ids - OF_OTHERS <= 8 * 1024);
    groups_done(&g);
}

/* The retry count with which an event came first. */
static int32_t first_retry_count(const server_call *call, uint64_t revision)
{
    for (size_t i = 1; i < call->message_count; i++) {
        const sl_persistent_response response = groups_message(call, i);

        if (response.kind == SL_PERSISTENT_RESPONSE_EVENT && response.event.event.revision == revision)
            return response.event.retry_count;
    }
    return -1;
}

/* B2. What the server has sent is what its client has received, and a little that was on the way. */
static void expect_only_sent_is_charged(bool extensions, void (*end)(server_call *call))
{
    groups g;
    server_call *slow, *next;
    size_t received;

    groups_start(&g);
    groups_plain(&g);
    slow = groups_join(&g, (groups_consumer){ .window = 40,
                                              .extensions = extensions,
                                              .peer = server_rig_connect(&g.rig, "127.0.0.1:40001") });
    slow->slow = true;
    for (unsigned i = 0; i < 20; i++)
        reads_append_bytes(&g.rig, "orders", 200 * 1000);
    server_rig_run(&g.rig);
    received = slow->message_count - 1;
    EXPECT(received > 0 && received < 10);
    end(slow);
    server_rig_run(&g.rig);
    next = groups_join(&g, (groups_consumer){ .window = 40 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS); /* so long it may be away with what it was sent */
    for (uint64_t revision = 0; revision < 20; revision++)
        if (revision < received || revision >= 2 * received)
            EXPECT_EQ(first_retry_count(next, revision), revision < received);
    groups_done(&g);
}

static void break_off(server_call *call)
{
    server_rig_break(call->peer);
}

TEST(what_never_left_the_server_is_not_charged_when_its_call_ends)
{
    expect_only_sent_is_charged(false, break_off);
    expect_only_sent_is_charged(false, server_call_cancel);
    expect_only_sent_is_charged(true, break_off);
    expect_only_sent_is_charged(true, server_call_cancel);
}

TEST(the_read_method_says_what_it_can)
{
    const char *why;
    const sl_method *const method = sl_method_find(sl_str_from(GROUPS_PATH), &why);

    assert_non_null(method);
    EXPECT_EQ(method->feature_count, 4);
    EXPECT(sl_str_equal(method->features[2], SL_STR("stop"))); /* S1.28 */
    EXPECT(sl_str_equal(method->features[3], SL_STR("nack_delay")));
}

/* --- Started without ids --- */

static server_call *join_and_say(groups *g, sl_persistent_request_kind kind, server_peer **ret_peer)
{
    server_call *call;

    *ret_peer = server_rig_connect(&g->rig, "127.0.0.1:7");
    call = groups_call(g, (groups_consumer){ .name = "w", .extensions = true, .peer = *ret_peer });
    groups_send_ids(call, kind, NULL, 0);
    server_rig_run(&g->rig);
    EXPECT_HEARD(call, "confirmed:orders::g orders:0");
    return call;
}

TEST(started_without_ids_right_behind_the_options_marks_the_session)
{
    groups g;
    server_peer *peer;
    server_call *other;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    (void)join_and_say(&g, SL_PERSISTENT_REQUEST_STARTED, &peer);
    server_rig_break(peer);
    other = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(other, 1, "orders:0"); /* at once, and not counted */
    groups_done(&g);
}

TEST(an_ack_or_release_without_ids_says_nothing)
{
    static const sl_persistent_request_kind kinds[] = { SL_PERSISTENT_REQUEST_ACK,
                                                        SL_PERSISTENT_REQUEST_RELEASE,
                                                        SL_PERSISTENT_REQUEST_EXTEND };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        groups g;
        server_peer *peer;
        server_call *other;

        groups_start(&g);
        reads_append(&g.rig, "orders", 1);
        groups_plain(&g);
        (void)join_and_say(&g, kinds[i], &peer);
        server_rig_break(peer);
        other = groups_join(&g, (groups_consumer){ 0 });
        EXPECT_HEARD_FROM(other, 1, ""); /* perhaps it works on it: kept for a while, then counted */
        server_rig_advance(&g.rig, 3 * GROUPS_SECOND_NS);
        EXPECT_HEARD_FROM(other, 1, "orders:0#1");
        groups_done(&g);
    }
}
