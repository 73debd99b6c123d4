/* tests/unit/server/test_groups_create.c — what a Create may say: names, settings, starts and filters, the old form and the new, and every
 * mistake with the answer that clients know. */
#include "manage_rig.h"

#include "read_rig.h"
#include "wire/codec/persistent.pb-c.h"

#include <string.h>

/* kurrent-semantics 2.1: what a request may not say, and what its client is told. */
typedef struct bad_request {
    void (*spoil)(sl_wire_group_request *request);
    const char *stream, *reason;
} bad_request;

static void no_stream(sl_wire_group_request *request)
{
    request->stream = SL_STR("");
}

static void stream_all(sl_wire_group_request *request)
{
    request->stream = SL_STR("$all");
}

static void no_group(sl_wire_group_request *request)
{
    request->group = SL_STR("");
}

static void unknown_strategy(sl_wire_group_request *request)
{
    request->settings.strategy = SL_STR("Fastest");
}

static void far_revision(sl_wire_group_request *request)
{
    request->start = SL_WIRE_START_GIVEN;
    request->revision = UINT64_C(1) << 63;
}

static void large_batch(sl_wire_group_request *request)
{
    request->settings.read_batch_size = request->settings.history_buffer_size;
}

static void negative_buffer(sl_wire_group_request *request)
{
    request->settings.history_buffer_size = -1;
}

TEST(what_cannot_be_a_group_of_a_stream_is_refused_with_the_reason)
{
    static const bad_request rows[] = {
        { no_stream, "", "Bad stream name." },
        { stream_all, "$all",
          "Persistent subscriptions to $all are only supported over gRPC through gRPC clients" },
        { unknown_strategy, "orders", "Consumer strategy Fastest does not exist." },
        { far_revision, "orders", "Invalid Start From position: the revision must not be below -1." },
        { large_batch, "orders", "The read batch size must be smaller than the history buffer size." },
        { negative_buffer, "orders", "The read batch size must be smaller than the history buffer size." },
    };
    manage m;

    manage_start(&m);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_wire_group_request request = manage_request("orders", "g");

        rows[i].spoil(&request);
        manage_expect_failed(manage_create(&m, &request), rows[i].stream, "g", rows[i].reason);
    }
    manage_done(&m);
}

TEST(names_that_a_store_cannot_keep_are_refused)
{
    static char long_name[SL_STREAM_NAME_BYTES_MAX + 1];
    sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    no_group(&request);
    manage_expect_failed(manage_create(&m, &request), "orders", "", "Bad group name: it is empty.");
    memset(long_name, 'x', sizeof long_name);
    request = manage_request("orders", "g");
    request.group = (sl_str){ long_name, SL_GROUP_NAME_BYTES_MAX + 1 };
    EXPECT_CALL_STATUS(manage_create(&m, &request), SL_STATUS_INTERNAL);
    request.group = (sl_str){ long_name, SL_GROUP_NAME_BYTES_MAX };
    manage_make(&m, &request);
    request.stream = (sl_str){ long_name, SL_STREAM_NAME_BYTES_MAX - SL_GROUP_NAME_BYTES_MAX };
    EXPECT_CALL_STATUS(manage_create(&m, &request), SL_STATUS_INTERNAL);
    manage_done(&m);
}

static void prepare_behind_commit(sl_wire_group_request *request)
{
    request->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, 1, 2 };
}

static void commit_at_end(sl_wire_group_request *request)
{
    request->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, 1000 * 1000, 1000 * 1000 };
}

static void commit_negative(sl_wire_group_request *request)
{
    request->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, UINT64_MAX - 1, UINT64_MAX - 1 };
}

static void half_an_end(sl_wire_group_request *request)
{
    request->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, UINT64_MAX, 3 };
}

TEST(a_position_that_no_event_of_all_can_have_is_refused)
{
    static const bad_request rows[] = {
        { prepare_behind_commit, "$all",
          "Invalid Start From position: the prepare position is behind the commit position." },
        { commit_at_end, "$all", "Invalid Start From position: it is behind the last event of this server." },
        { commit_negative, "$all",
          "Invalid Start From position: both parts are at most 2^63-1, or both 2^64-1 for the end." },
        { half_an_end, "$all",
          "Invalid Start From position: both parts are at most 2^63-1, or both 2^64-1 for the end." },
    };
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_wire_group_request request = manage_request("$all", "g");

        request.start = SL_WIRE_START_GIVEN;
        rows[i].spoil(&request);
        manage_expect_failed(manage_create(&m, &request), "$all", "g", rows[i].reason);
    }
    manage_done(&m);
}

/* Between strategy and sizes the real server looks whether the group is there. */
TEST(of_several_mistakes_the_first_in_the_order_of_the_real_server_is_told)
{
    sl_wire_group_request request = manage_request("orders", "g");
    manage m;

    manage_start(&m);
    manage_make(&m, &request);
    large_batch(&request);
    manage_expect_exists(manage_create(&m, &request), "orders", "g");
    far_revision(&request);
    manage_expect_failed(manage_create(&m, &request), "orders", "g",
                         "Invalid Start From position: the revision must not be below -1.");
    unknown_strategy(&request);
    manage_expect_failed(manage_create(&m, &request), "orders", "g",
                         "Consumer strategy Fastest does not exist.");
    no_stream(&request);
    manage_expect_failed(manage_create(&m, &request), "", "g", "Bad stream name.");
    manage_done(&m);
}

TEST(every_strategy_that_clients_know_can_be_chosen)
{
    static const char *const strategies[] = { "DispatchToSingle", "RoundRobin", "Pinned",
                                              "PinnedByCorrelation" };
    manage m;

    manage_start(&m);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        sl_wire_group_request request = manage_request("orders", strategies[i]);

        request.settings.strategy = sl_str_from(strategies[i]);
        manage_make(&m, &request);
        EXPECT_STR(manage_look(&m, "orders", strategies[i]).strategy.data, strategies[i]);
    }
    manage_done(&m);
}

/* Settings that the real server does not look at: clients have created such groups. */
TEST(odd_numbers_are_no_reason_to_refuse_a_group)
{
    sl_wire_group_request request = manage_request("orders", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 1);
    request.settings = (sl_wire_group_settings){ .message_timeout = { true, false, -5 },
                                                 .max_retry_count = -1,
                                                 .min_checkpoint_count = -1,
                                                 .max_checkpoint_count = -1,
                                                 .max_subscriber_count = -1,
                                                 .live_buffer_size = -1,
                                                 .read_batch_size = -1,
                                                 .history_buffer_size = 0,
                                                 .strategy = SL_STR("RoundRobin") };
    manage_make(&m, &request);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:0");
    manage_done(&m);
}

/* --- the form of requests --- */

typedef EventStore__Client__PersistentSubscriptions__CreateReq create_req;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Options create_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__StreamOptions stream_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__AllOptions all_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Settings create_settings;

#define CREATE_INIT(name, message)                                                                           \
    event_store__client__persistent_subscriptions__create_req##name##__init(message)

/* A request as both Node clients still write it: nothing about a stream but its name. */
static sl_str pack(manage *m, create_options *options)
{
    create_req request;
    uint8_t *bytes;

    CREATE_INIT(, &request);
    request.options = options;
    bytes = sl_arena_alloc(&m->arena, 4096);
    return (sl_str){ (const char *)bytes,
                     event_store__client__persistent_subscriptions__create_req__pack(&request, bytes) };
}

static create_settings old_settings(uint64_t revision)
{
    create_settings settings;

    CREATE_INIT(__settings, &settings);
    settings.revision = revision;
    settings.read_batch_size = 20;
    settings.history_buffer_size = 500;
    settings.live_buffer_size = 500;
    settings.max_retry_count = 10;
    settings.named_consumer_strategy =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__CONSUMER_STRATEGY__RoundRobin;
    return settings;
}

TEST(the_old_form_of_a_request_makes_the_same_group)
{
    static const struct {
        uint64_t revision;
        const char *start_from, *heard;
    } rows[] = {
        { 0, "0", "confirmed:orders::g orders:0 orders:1 orders:2 orders:3" },
        { 2, "2", "confirmed:orders::g orders:2 orders:3" },
        { UINT64_MAX, "-1", "confirmed:orders::g orders:3" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EventStore__Client__StreamIdentifier stream = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;
        create_settings settings = old_settings(rows[i].revision);
        create_options options;
        server_call *consumer;
        char name[] = "orders", group[] = "g";
        manage m;

        CREATE_INIT(__options, &options);
        manage_start(&m);
        reads_append(&m.g.rig, "orders", 3);
        stream.stream_name = (ProtobufCBinaryData){ 6, (uint8_t *)name };
        options.stream_identifier = &stream;
        options.group_name = group;
        options.settings = &settings;
        EXPECT_CALL_STATUS(server_rig_unary(&m.g.rig, MANAGE_PATH("Create"), pack(&m, &options)),
                           SL_STATUS_OK);
        EXPECT_STR(manage_look(&m, "orders", "g").start_from.data, rows[i].start_from);
        consumer = groups_join(&m.g, (groups_consumer){ 0 });
        reads_append(&m.g.rig, "orders", 1);
        EXPECT_HEARD(consumer, rows[i].heard);
        manage_done(&m);
    }
}

static void expect_invalid(manage *m, const char *path, sl_str message)
{
    const server_call *const call = server_rig_unary(&m->g.rig, path, message);

    EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
    EXPECT(call->message[0] != 0);
}

TEST(a_request_that_leaves_out_where_to_begin_or_what_to_filter_is_invalid)
{
    EventStore__Client__Empty nothing = EVENT_STORE__CLIENT__EMPTY__INIT;
    create_settings settings = old_settings(0);
    stream_options of_stream;
    all_options of_all;
    create_options options;
    char group[] = "g";
    manage m;

    CREATE_INIT(__stream_options, &of_stream);
    CREATE_INIT(__all_options, &of_all);
    CREATE_INIT(__options, &options);
    manage_start(&m);
    options.group_name = group;
    options.settings = &settings;
    options.stream_option_case =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__OPTIONS__STREAM_OPTION_STREAM;
    options.stream = &of_stream; /* no revision_option */
    expect_invalid(&m, MANAGE_PATH("Create"), pack(&m, &options));
    options.stream_option_case =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__OPTIONS__STREAM_OPTION_ALL;
    options.all = &of_all; /* no all_option */
    expect_invalid(&m, MANAGE_PATH("Create"), pack(&m, &options));
    of_all.all_option_case =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__ALL_OPTIONS__ALL_OPTION_START;
    of_all.start = &nothing; /* no filter_option */
    expect_invalid(&m, MANAGE_PATH("Create"), pack(&m, &options));
    of_all.filter_option_case =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__ALL_OPTIONS__FILTER_OPTION_NO_FILTER;
    of_all.no_filter = &nothing;
    EXPECT_CALL_STATUS(server_rig_unary(&m.g.rig, MANAGE_PATH("Create"), pack(&m, &options)), SL_STATUS_OK);
    options.settings = NULL;
    expect_invalid(&m, MANAGE_PATH("Create"), pack(&m, &options));
    manage_done(&m);
}

TEST(requests_that_are_no_protobuf_or_name_nothing_are_invalid)
{
    static const char *const paths[] = { MANAGE_PATH("Create"),       MANAGE_PATH("Update"),
                                         MANAGE_PATH("Delete"),       MANAGE_PATH("GetInfo"),
                                         MANAGE_PATH("ReplayParked"), MANAGE_PATH("TruncateParked"),
                                         MANAGE_PATH("List") };
    manage m;

    manage_start(&m);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        expect_invalid(&m, paths[i], SL_STR("\x0a\x7f\x01"));
        if (i != 1) /* an Update without a word is about the group "" of the stream "", which is not there */
            expect_invalid(&m, paths[i], SL_STR(""));
    }
    manage_expect_missing(server_rig_unary(&m.g.rig, MANAGE_PATH("Update"), SL_STR("")), "", "");
    manage_done(&m);
}

/* --- $all --- */

TEST(a_filter_that_cannot_be_used_is_refused)
{
    sl_wire_group_request request = manage_request("$all", "g");
    manage m;

    manage_start(&m);
    request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                       .on = SL_WIRE_FILTER_ON_STREAM,
                                       .regex = SL_STR("("),
                                       .window = SL_WIRE_WINDOW_COUNT };
    EXPECT_CALL_STATUS(manage_create(&m, &request), SL_STATUS_INTERNAL);
    request.filter.regex = SL_STR("");
    EXPECT_CALL_STATUS(manage_create(&m, &request), SL_STATUS_INTERNAL);
    EXPECT(sl_registry_find(m.g.rig.host->registry, SL_STR("$all"), SL_STR("g")) == NULL);
    manage_done(&m);
}

TEST(a_filter_is_kept_when_a_group_of_all_is_updated)
{
    static const sl_str prefixes[] = { SL_STR_INIT("or"), SL_STR_INIT("x,y") };
    sl_wire_group_request request = manage_request("$all", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                       .on = SL_WIRE_FILTER_ON_STREAM,
                                       .prefixes = prefixes,
                                       .prefix_count = 2,
                                       .window = SL_WIRE_WINDOW_COUNT };
    manage_make(&m, &request);
    request.settings.max_retry_count = 3;
    EXPECT_CALL_STATUS(manage_update(&m, &request), SL_STATUS_OK);
    reads_append(&m.g.rig, "orders", 1);
    reads_append(&m.g.rig, "people", 1);
    reads_append(&m.g.rig, "x,y", 1);
    consumer = groups_join(&m.g, (groups_consumer){ .stream = "$all" });
    EXPECT_HEARD(consumer, "confirmed:$all::g orders:0 x,y:0");
    EXPECT_EQ(manage_look(&m, "$all", "g").max_retry_count, 3);
    manage_done(&m);
}

/* KurrentDB begins at the end again and loses what came between. */
TEST(a_group_that_began_at_the_end_knows_that_end_after_a_restart)
{
    sl_wire_group_request request = manage_request("orders", "g");
    sl_wire_group_request of_all = manage_request("$all", "g");
    server_call *consumer;
    manage m;

    manage_start(&m);
    reads_append(&m.g.rig, "orders", 2);
    request.start = of_all.start = SL_WIRE_START_END;
    manage_make(&m, &request);
    manage_make(&m, &of_all);
    reads_append(&m.g.rig, "orders", 1);
    groups_kill(&m.g);
    reads_append(&m.g.rig, "orders", 1);
    consumer = groups_join(&m.g, (groups_consumer){ 0 });
    EXPECT_HEARD(consumer, "confirmed:orders::g orders:2 orders:3");
    consumer = groups_join(&m.g, (groups_consumer){ .stream = "$all" });
    EXPECT_HEARD(consumer, "confirmed:$all::g orders:2 orders:3");
    manage_done(&m);
}
