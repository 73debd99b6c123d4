/* Rules of wire/persistent_client.h. protobuf-c is the other opinion about bytes; the decoders of persistent_control.h, which have tests of
 * their own, say what a server would read. */
#include "codec/compare.h"

#include "wire/persistent_client.h"

typedef EventStore__Client__PersistentSubscriptions__CreateReq create_req;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Options create_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Settings create_settings;

#define CREATE_OPTIONS(d, arena)                                                                             \
    random_message(&event_store__client__persistent_subscriptions__create_req__options__descriptor, d, arena)

/* What a client of today leaves out. */
static void drop_old_form(create_options *options, create_settings *spare)
{
    event_store__client__persistent_subscriptions__create_req__settings__init(spare);
    options->stream_identifier = NULL;
    if (options->settings == NULL)
        options->settings = spare;
    options->settings->revision = 0;
}

static bool is_present_form(const create_options *options)
{
    return options->stream_option_case == 4 || options->stream_option_case == 5;
}

TEST(what_a_client_writes_to_create_a_group_is_what_protobuf_would)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        create_req theirs = EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__INIT;
        create_settings spare;
        char strategy[] = "Pinned";
        sl_wire_group_request ours;
        sl_arena arena;
        sl_str again;

        test_arena_init(&arena);
        theirs.options = CREATE_OPTIONS(&d, &arena);
        drop_old_form(theirs.options, &spare);
        theirs.options->settings->consumer_strategy = strategy; /* as text, and never as a number */
        theirs.options->settings->named_consumer_strategy = 0;
        EXPECT_OK(sl_wire_group_create_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT_OK(sl_wire_group_create_encode(&ours, &arena, &again));
        EXPECT_RUN(!is_present_form(theirs.options) || sl_str_equal(again, packed(&theirs, &arena)), run, 0);
        sl_arena_done(&arena);
    }
}

TEST(what_a_client_writes_to_update_a_group_has_neither_filter_nor_text_of_a_strategy)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        create_req theirs = EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__INIT;
        create_settings spare;
        char none[] = "";
        sl_wire_group_request ours;
        sl_arena arena;
        sl_str again;

        test_arena_init(&arena);
        theirs.options = CREATE_OPTIONS(&d, &arena);
        drop_old_form(theirs.options, &spare);
        theirs.options->settings->named_consumer_strategy =
            (EventStore__Client__PersistentSubscriptions__CreateReq__ConsumerStrategy)(run % 3);
        EXPECT_OK(sl_wire_group_update_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT_OK(sl_wire_group_update_encode(&ours, &arena, &again));
        theirs.options->settings->consumer_strategy = none;
        if (theirs.options->stream_option_case == 5)
            theirs.options->all->filter_option_case = 0;
        EXPECT_RUN(!is_present_form(theirs.options) || sl_str_equal(again, packed(&theirs, &arena)), run, 0);
        sl_arena_done(&arena);
    }
}

TEST(an_update_cannot_say_a_strategy_that_has_no_number)
{
    sl_wire_group_request request = { .source = SL_WIRE_SOURCE_STREAM,
                                      .settings = { .strategy = SL_STR("PinnedByCorrelation") } };
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_EQ(sl_wire_group_update_encode(&request, &arena, &bytes), SL_ERR_INVALID);
    request.settings.strategy = SL_STR("");
    EXPECT_EQ(sl_wire_group_update_encode(&request, &arena, &bytes), SL_ERR_INVALID);
    EXPECT_OK(sl_wire_group_create_encode(&request, &arena, &bytes));
    sl_arena_done(&arena);
}

/* The bytes are those that test_control.c reads. */
TEST(what_a_client_writes_about_a_group_names_it)
{
    static const sl_wire_group_name of_stream = { SL_WIRE_SOURCE_STREAM, SL_STR_INIT("s"), SL_STR_INIT("g") };
    static const sl_wire_group_name of_all = { .source = SL_WIRE_SOURCE_ALL, .group = SL_STR_INIT("g") };
    const sl_parked_request some = { of_stream, SL_PARKED_LIMIT_STOP_AT, 7 };
    const sl_parked_request every = { of_all, SL_PARKED_LIMIT_NONE, 0 };
    static const sl_wire_group_list_request lists[] = {
        { .kind = SL_WIRE_GROUP_LIST_EVERY },
        { SL_WIRE_GROUP_LIST_OF, SL_WIRE_SOURCE_STREAM, SL_STR_INIT("s") },
        { SL_WIRE_GROUP_LIST_OF, SL_WIRE_SOURCE_ALL, SL_STR_INIT("") },
    };
    sl_str bytes[9];
    static const char *const wanted[9] = {
        "0a 08 0a 03 1a 01 73 12 01 67",
        "0a 05 12 01 67 1a 00",
        "0a 08 0a 03 1a 01 73 1a 01 67",
        "0a 05 12 00 1a 01 67",
        "0a 0a 0a 01 67 12 03 1a 01 73 20 07",
        "0a 07 0a 01 67 1a 00 2a 00",
        "0a 02 0a 00",
        "0a 07 12 05 0a 03 1a 01 73",
        "0a 04 12 02 12 00",
    };
    uint8_t memory[64];
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_wire_group_delete_encode(&of_stream, &arena, &bytes[0]));
    EXPECT_OK(sl_wire_group_delete_encode(&of_all, &arena, &bytes[1]));
    EXPECT_OK(sl_wire_group_info_request_encode(&of_stream, &arena, &bytes[2]));
    EXPECT_OK(sl_wire_group_info_request_encode(&of_all, &arena, &bytes[3]));
    EXPECT_OK(sl_parked_request_encode(&some, &arena, &bytes[4]));
    EXPECT_OK(sl_parked_request_encode(&every, &arena, &bytes[5]));
    for (size_t i = 0; i < 3; i++)
        EXPECT_OK(sl_wire_group_list_request_encode(&lists[i], &arena, &bytes[6 + i]));
    for (size_t i = 0; i < 9; i++)
        EXPECT_ROW(sl_str_equal(bytes[i], from_hex(wanted[i], memory)), i);
    sl_arena_done(&arena);
}

TEST(the_facts_about_a_group_are_read_as_they_were_written)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        EventStore__Client__PersistentSubscriptions__GetInfoResp theirs =
            EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_RESP__INIT;
        EventStore__Client__PersistentSubscriptions__ListResp two =
            EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_RESP__INIT;
        EventStore__Client__PersistentSubscriptions__SubscriptionInfo *both[2];
        sl_wire_group_infos infos;
        sl_wire_group_info ours;
        sl_arena arena;
        sl_str again;

        test_arena_init(&arena);
        for (size_t i = 0; i < 2; i++)
            both[i] = random_message(
                &event_store__client__persistent_subscriptions__subscription_info__descriptor, &d, &arena);
        theirs.subscription_info = both[0];
        EXPECT_OK(sl_wire_group_info_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT_OK(sl_wire_group_info_encode(&ours, &arena, &again));
        EXPECT_RUN(sl_str_equal(again, packed(&theirs, &arena)), run, 0);
        two.n_subscriptions = run % 3;
        two.subscriptions = both;
        EXPECT_OK(sl_wire_group_list_decode(packed(&two, &arena), &arena, &infos, NULL));
        EXPECT_OK(sl_wire_group_list_encode(infos.list, infos.count, &arena, &again));
        EXPECT_RUN(sl_str_equal(again, packed(&two, &arena)), run, 1);
        sl_arena_done(&arena);
    }
}

TEST(answers_about_groups_that_are_no_protobuf_are_refused_with_a_reason)
{
    sl_wire_group_infos infos;
    sl_wire_group_info info;
    const char *reason = NULL;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_EQ(sl_wire_group_info_decode(SL_STR("\x0a\x05x"), &arena, &info, &reason), SL_ERR_INVALID);
    EXPECT(reason != NULL);
    reason = NULL;
    EXPECT_EQ(sl_wire_group_list_decode(SL_STR("\xff"), &arena, &infos, &reason), SL_ERR_INVALID);
    EXPECT(reason != NULL);
    EXPECT_OK(sl_wire_group_info_decode(SL_STR(""), &arena, &info, NULL));
    EXPECT_EQ(info.group.bytes, 0);
    sl_arena_done(&arena);
}
