/* Rules of streams_control.h, persistent_control.h and server_control.h. protobuf-c is under them, so what is tested here is
 * that each field goes where its name says, and that nothing that is set reads as unset. */
#include "codec/compare.h"

#include "wire/codec/gossip.pb-c.h"
#include "wire/codec/monitoring.pb-c.h"
#include "wire/codec/operations.pb-c.h"
#include "wire/codec/serverfeatures.pb-c.h"
#include "wire/codec/users.pb-c.h"
#include "wire/persistent_control.h"
#include "wire/server_control.h"
#include "wire/streams_control.h"

/* A service includes these beside all of ours, so no name may be in both. */
#include "core/group.h"
#include "store/filter.h"
#include "store/store.h"
#include "wire/error_details.h"
#include "wire/multi_append.h"
#include "wire/persistent_codec.h"
#include "wire/streams_codec.h"

static bool same_slices(const sl_str *ours, size_t our_count, char *const *theirs, size_t count)
{
    for (size_t i = 0; i < count && i < our_count; i++)
        if (!same_text(ours[i], theirs[i]))
            return false;
    return our_count == count;
}

/* --- ReadReq --- */

typedef EventStore__Client__Streams__ReadReq__Options read_options;

static bool same_filter(const sl_wire_filter *ours,
                        const EventStore__Client__Streams__ReadReq__Options__FilterOptions *theirs)
{
    const EventStore__Client__Streams__ReadReq__Options__FilterOptions__Expression *const expression =
        theirs->event_type;

    return (int)ours->on == (int)theirs->filter_case && /* 0, 1, 2 in both */
           ours->checkpoint_multiplier == theirs->checkpointintervalmultiplier &&
           (ours->window == SL_WIRE_WINDOW_MAX) == (theirs->window_case == 3) &&
           (ours->window == SL_WIRE_WINDOW_COUNT) == (theirs->window_case == 4) &&
           (theirs->window_case != 3 || ours->window_max == theirs->max) &&
           (theirs->filter_case == 0 ||
            (same_text(ours->regex, expression->regex) &&
             same_slices(ours->prefixes, ours->prefix_count, expression->prefix, expression->n_prefix)));
}

static bool same_start(const sl_read_request *ours, const read_options *theirs)
{
    static const sl_wire_start of_stream[] = { SL_WIRE_START_UNSET, SL_WIRE_START_UNSET, SL_WIRE_START_GIVEN,
                                               SL_WIRE_START_BEGIN, SL_WIRE_START_END };
    static const sl_wire_start of_all[] = { SL_WIRE_START_UNSET, SL_WIRE_START_GIVEN, SL_WIRE_START_BEGIN,
                                            SL_WIRE_START_END };

    if (theirs->stream_option_case == 1)
        return ours->start == of_stream[theirs->stream->revision_option_case] &&
               same_stream(ours->stream, theirs->stream->stream_identifier) &&
               (theirs->stream->revision_option_case != 2 || ours->revision == theirs->stream->revision);
    if (theirs->stream_option_case == 2)
        return ours->start == of_all[theirs->all->all_option_case] &&
               (theirs->all->all_option_case != 1 ||
                (ours->position.commit == theirs->all->position->commit_position &&
                 ours->position.prepare == theirs->all->position->prepare_position));
    return ours->start == SL_WIRE_START_UNSET;
}

static bool same_read_request(const sl_read_request *ours, const read_options *theirs)
{
    const int id_case = theirs->uuid_option == NULL ? 0 : (int)theirs->uuid_option->content_case;

    return (int)ours->source == (int)theirs->stream_option_case && same_start(ours, theirs) &&
           ours->backwards == (theirs->read_direction == 1) && ours->resolve_links == theirs->resolve_links &&
           (ours->extent == SL_READ_EXTENT_COUNT) == (theirs->count_option_case == 5) &&
           (ours->extent == SL_READ_EXTENT_SUBSCRIPTION) == (theirs->count_option_case == 6) &&
           (theirs->count_option_case != 5 || ours->count == theirs->count) &&
           (ours->filter.kind == SL_WIRE_FILTER_GIVEN) == (theirs->filter_option_case == 7) &&
           (ours->filter.kind == SL_WIRE_FILTER_NONE) == (theirs->filter_option_case == 8) &&
           (theirs->filter_option_case != 7 || same_filter(&ours->filter, theirs->filter)) &&
           ours->has_id_option == (theirs->uuid_option != NULL) && (int)ours->id_form == id_case &&
           ours->compatibility ==
               (theirs->control_option == NULL ? 0 : theirs->control_option->compatibility);
}

/* What has two spellings is given the one that we write. */
static void unify(read_options *theirs)
{
    if (theirs->read_direction != 1)
        theirs->read_direction = 0;
    if (theirs->control_option != NULL && theirs->control_option->compatibility == 0)
        theirs->control_option = NULL;
}

TEST(read_requests_are_read_and_written_field_by_field)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_read_request ours;
        sl_str again;
        EventStore__Client__Streams__ReadReq theirs = EVENT_STORE__CLIENT__STREAMS__READ_REQ__INIT;

        test_arena_init(&arena);
        theirs.options =
            random_message(&event_store__client__streams__read_req__options__descriptor, &d, &arena);
        unify(theirs.options);
        const sl_str bytes = packed(&theirs, &arena);
        EXPECT_OK(sl_read_request_decode(bytes, &arena, &ours, NULL));
        EXPECT_RUN(same_read_request(&ours, theirs.options), run, 0);
        EXPECT_OK(sl_read_request_encode(&ours, &arena, &again));
        EXPECT_RUN(sl_str_equal(again, bytes), run, 1);
        sl_arena_done(&arena);
    }
}

TEST(a_request_without_options_is_read_as_all_unset)
{
    sl_arena arena;
    sl_read_request read;
    sl_delete_request remove;
    sl_wire_group_request group;
    sl_wire_group_name name;
    sl_parked_request parked;
    sl_wire_group_list_request list;
    sl_user_request user;

    test_arena_init(&arena);
    EXPECT_OK(sl_read_request_decode((sl_str){ 0 }, &arena, &read, NULL));
    EXPECT(read.source == SL_WIRE_SOURCE_UNSET && !read.has_id_option &&
           read.filter.kind == SL_WIRE_FILTER_UNSET);
    EXPECT_OK(sl_delete_request_decode((sl_str){ 0 }, &arena, &remove, NULL));
    EXPECT(remove.expected.kind == SL_WIRE_REVISION_UNSET && remove.stream.bytes == 0);
    EXPECT_OK(sl_wire_group_create_decode((sl_str){ 0 }, &arena, &group, NULL));
    EXPECT(group.source == SL_WIRE_SOURCE_STREAM && !group.has_settings);
    EXPECT_OK(sl_wire_group_delete_decode((sl_str){ 0 }, &arena, &name, NULL));
    EXPECT_OK(sl_wire_group_info_request_decode((sl_str){ 0 }, &arena, &name, NULL));
    EXPECT(name.source == SL_WIRE_SOURCE_UNSET);
    EXPECT_OK(sl_parked_request_decode((sl_str){ 0 }, &arena, &parked, NULL));
    EXPECT(parked.limit == SL_PARKED_LIMIT_UNSET);
    EXPECT_OK(sl_wire_group_list_request_decode((sl_str){ 0 }, &arena, &list, NULL));
    EXPECT(list.kind == SL_WIRE_GROUP_LIST_UNSET);
    EXPECT_OK(sl_user_request_decode(SL_USER_CALL_NAME_ONLY, (sl_str){ 0 }, &arena, &user, NULL));
    EXPECT(user.login_name.bytes == 0);
    sl_arena_done(&arena);
}

/* --- DeleteReq --- */

TEST(delete_requests_and_answers_are_read_and_written_field_by_field)
{
    for (uint64_t run = 0; run < 500; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_delete_request ours;
        sl_wire_position position;
        sl_str again;
        EventStore__Client__Streams__TombstoneReq theirs = EVENT_STORE__CLIENT__STREAMS__TOMBSTONE_REQ__INIT;

        test_arena_init(&arena);
        theirs.options =
            random_message(&event_store__client__streams__tombstone_req__options__descriptor, &d, &arena);
        sl_str bytes = packed(&theirs, &arena);
        EXPECT_OK(sl_delete_request_decode(bytes, &arena, &ours, NULL));
        EXPECT(same_stream(ours.stream, theirs.options->stream_identifier));
        EXPECT_EQ(ours.expected.kind == SL_WIRE_REVISION_UNSET ? 0 : (int)ours.expected.kind + 1,
                  (int)theirs.options->expected_stream_revision_case);
        EXPECT_OK(sl_delete_request_encode(&ours, &arena, &again));
        EXPECT(sl_str_equal(again, bytes));

        const EventStore__Client__Streams__TombstoneResp *const answer =
            random_message(&event_store__client__streams__tombstone_resp__descriptor, &d, &arena);
        bytes = packed(answer, &arena);
        EXPECT_OK(sl_delete_response_decode(bytes, &arena, &position, NULL));
        EXPECT(answer->position_option_case != 1 || position.commit == answer->position->commit_position);
        EXPECT(answer->position_option_case != 1 || position.prepare == answer->position->prepare_position);
        EXPECT_EQ(position.kind == SL_WIRE_POSITION_NONE, answer->position_option_case == 2);
        EXPECT_OK(sl_delete_response_encode(&position, &arena, &again));
        EXPECT(sl_str_equal(again, bytes));
        sl_arena_done(&arena);
    }
}

/* --- groups --- */

typedef EventStore__Client__PersistentSubscriptions__CreateReq__Options create_options;
typedef EventStore__Client__PersistentSubscriptions__CreateReq__Settings create_settings;

static bool same_limit(sl_wire_group_limit ours, bool given, int32_t value)
{
    return ours.given == given && (!given || ours.value == value);
}

static bool same_settings(const sl_wire_group_settings *ours, const create_settings *theirs)
{
    static const char *const names[] = { "DispatchToSingle", "RoundRobin", "Pinned" };
    const unsigned number = (unsigned)theirs->named_consumer_strategy;
    const char *const name = number < 3 ? names[number] : "";
    const int timeout = (int)theirs->message_timeout_case, checkpoint = (int)theirs->checkpoint_after_case;

    return ours->resolve_links == theirs->resolve_links &&
           ours->extra_statistics == theirs->extra_statistics &&
           ours->message_timeout.given == (timeout != 0) &&
           ours->message_timeout.in_ticks == (timeout == 4) &&
           (timeout != 4 || ours->message_timeout.value == theirs->message_timeout_ticks) &&
           (timeout != 14 || ours->message_timeout.value == theirs->message_timeout_ms) &&
           ours->checkpoint_after.given == (checkpoint != 0) &&
           ours->checkpoint_after.in_ticks == (checkpoint == 6) &&
           (checkpoint != 6 || ours->checkpoint_after.value == theirs->checkpoint_after_ticks) &&
           (checkpoint != 15 || ours->checkpoint_after.value == theirs->checkpoint_after_ms) &&
           ours->max_retry_count == theirs->max_retry_count &&
           ours->min_checkpoint_count == theirs->min_checkpoint_count &&
           ours->max_checkpoint_count == theirs->max_checkpoint_count &&
           ours->max_subscriber_count == theirs->max_subscriber_count &&
           ours->live_buffer_size == theirs->live_buffer_size &&
           ours->read_batch_size == theirs->read_batch_size &&
           ours->history_buffer_size == theirs->history_buffer_size &&
           same_limit(ours->max_interrupts, (int)theirs->interrupts_limit_case == 100,
                      theirs->max_interrupts) &&
           same_limit(ours->max_kills, (int)theirs->kills_limit_case == 101, theirs->max_kills) &&
           same_text(ours->strategy, theirs->consumer_strategy[0] != '\0' ? theirs->consumer_strategy : name);
}

static void expect_same_source(const sl_wire_group_request *ours, const create_options *theirs)
{
    if (theirs->stream_option_case == 4) {
        EXPECT(ours->source == SL_WIRE_SOURCE_STREAM &&
               same_stream(ours->stream, theirs->stream->stream_identifier));
        EXPECT_EQ(ours->start == SL_WIRE_START_GIVEN, theirs->stream->revision_option_case == 2);
        EXPECT_EQ(ours->start == SL_WIRE_START_BEGIN, theirs->stream->revision_option_case == 3);
        EXPECT_EQ(ours->start == SL_WIRE_START_END, theirs->stream->revision_option_case == 4);
        EXPECT(theirs->stream->revision_option_case != 2 || ours->revision == theirs->stream->revision);
    } else if (theirs->stream_option_case == 5) {
        EXPECT(ours->source == SL_WIRE_SOURCE_ALL);
        EXPECT_EQ(ours->start == SL_WIRE_START_GIVEN, theirs->all->all_option_case == 1);
        EXPECT_EQ(ours->start == SL_WIRE_START_BEGIN, theirs->all->all_option_case == 2);
        EXPECT_EQ(ours->start == SL_WIRE_START_END, theirs->all->all_option_case == 3);
        EXPECT(theirs->all->all_option_case != 1 ||
               ours->position.commit == theirs->all->position->commit_position);
        EXPECT_EQ(ours->filter.kind == SL_WIRE_FILTER_NONE, theirs->all->filter_option_case == 5);
        EXPECT(theirs->all->filter_option_case != 4 ||
               same_filter(&ours->filter, (const void *)theirs->all->filter));
    } else {
        EXPECT(ours->source == SL_WIRE_SOURCE_STREAM && same_stream(ours->stream, theirs->stream_identifier));
        EXPECT(ours->start == (theirs->settings != NULL && theirs->settings->revision == UINT64_MAX
                                   ? SL_WIRE_START_END
                                   : SL_WIRE_START_GIVEN));
    }
}

TEST(requests_to_create_a_group_are_read_field_by_field)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_wire_group_request ours;
        EventStore__Client__PersistentSubscriptions__CreateReq theirs =
            EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__INIT;

        test_arena_init(&arena);
        theirs.options = random_message(
            &event_store__client__persistent_subscriptions__create_req__options__descriptor, &d, &arena);
        EXPECT_OK(sl_wire_group_create_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT(same_text(ours.group, theirs.options->group_name));
        EXPECT_EQ(ours.has_settings, theirs.options->settings != NULL);
        EXPECT_RUN(!ours.has_settings || same_settings(&ours.settings, theirs.options->settings), run, 0);
        expect_same_source(&ours, theirs.options);
        sl_arena_done(&arena);
    }
}

TEST(an_update_knows_neither_a_filter_nor_a_strategy_as_text)
{
    for (uint64_t run = 0; run < 500; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_wire_group_request ours;
        EventStore__Client__PersistentSubscriptions__CreateReq theirs =
            EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__CREATE_REQ__INIT;

        test_arena_init(&arena);
        theirs.options = random_message(
            &event_store__client__persistent_subscriptions__create_req__options__descriptor, &d, &arena);
        if (theirs.options->settings != NULL)
            theirs.options->settings->named_consumer_strategy = 1;
        EXPECT_OK(sl_wire_group_update_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT(ours.filter.kind == SL_WIRE_FILTER_UNSET);
        EXPECT(!ours.has_settings || sl_str_equal(ours.settings.strategy, SL_STR("RoundRobin")));
        sl_arena_done(&arena);
    }
}

TEST(requests_about_a_group_name_it)
{
    uint8_t memory[64];
    sl_arena arena;
    sl_wire_group_name name;
    sl_parked_request parked;
    sl_wire_group_list_request list;

    test_arena_init(&arena);
    EXPECT_OK(
        sl_wire_group_delete_decode(from_hex("0a 08 0a 03 1a 01 73 12 01 67", memory), &arena, &name, NULL));
    EXPECT(name.source == SL_WIRE_SOURCE_STREAM && same_text(name.stream, "s") && same_text(name.group, "g"));
    EXPECT_OK(sl_wire_group_delete_decode(from_hex("0a 05 12 01 67 1a 00", memory), &arena, &name, NULL));
    EXPECT(name.source == SL_WIRE_SOURCE_ALL && name.stream.bytes == 0);
    EXPECT_OK(sl_wire_group_info_request_decode(from_hex("0a 08 0a 03 1a 01 73 1a 01 67", memory), &arena,
                                                &name, NULL));
    EXPECT(name.source == SL_WIRE_SOURCE_STREAM && same_text(name.stream, "s") && same_text(name.group, "g"));
    EXPECT_OK(
        sl_wire_group_info_request_decode(from_hex("0a 05 12 00 1a 01 67", memory), &arena, &name, NULL));
    EXPECT(name.source == SL_WIRE_SOURCE_ALL && same_text(name.group, "g"));
    EXPECT_OK(sl_parked_request_decode(from_hex("0a 0a 0a 01 67 12 03 1a 01 73 20 05", memory), &arena,
                                       &parked, NULL));
    EXPECT(parked.name.source == SL_WIRE_SOURCE_STREAM && same_text(parked.name.group, "g"));
    EXPECT(parked.limit == SL_PARKED_LIMIT_STOP_AT && parked.stop_at == 5);
    EXPECT_OK(sl_parked_request_decode(from_hex("0a 04 1a 00 2a 00", memory), &arena, &parked, NULL));
    EXPECT(parked.name.source == SL_WIRE_SOURCE_ALL && parked.limit == SL_PARKED_LIMIT_NONE);
    EXPECT_OK(sl_wire_group_list_request_decode(from_hex("0a 02 0a 00", memory), &arena, &list, NULL));
    EXPECT(list.kind == SL_WIRE_GROUP_LIST_EVERY);
    EXPECT_OK(sl_wire_group_list_request_decode(from_hex("0a 07 12 05 0a 03 1a 01 73", memory), &arena, &list,
                                                NULL));
    EXPECT(list.kind == SL_WIRE_GROUP_LIST_OF && list.source == SL_WIRE_SOURCE_STREAM &&
           same_text(list.stream, "s"));
    EXPECT_OK(sl_wire_group_list_request_decode(from_hex("0a 04 12 02 12 00", memory), &arena, &list, NULL));
    EXPECT(list.kind == SL_WIRE_GROUP_LIST_OF && list.source == SL_WIRE_SOURCE_ALL);
    sl_arena_done(&arena);
}

/* Each number is its field number, each text its name: an exchanged pair would show. */
TEST(the_facts_about_a_group_go_where_their_names_say)
{
    static const sl_wire_group_measurement measured[] = { { SL_STR_INIT("Mean"), 1 },
                                                          { SL_STR_INIT("Median"), -2 } };
    static const sl_wire_group_connection connection = {
        .from = SL_STR_INIT("from"),
        .username = SL_STR_INIT("user"),
        .connection_name = SL_STR_INIT("name"),
        .average_items_per_second = 3,
        .total_items = 4,
        .count_since_last_measurement = 5,
        .available_slots = 7,
        .in_flight_messages = 8,
        .measurements = measured,
        .measurement_count = 2,
    };
    static const sl_wire_group_info info = {
        .event_source = SL_STR_INIT("1"),
        .group = SL_STR_INIT("2"),
        .status = SL_STR_INIT("3"),
        .connections = &connection,
        .connection_count = 1,
        .average_per_second = 5,
        .total_items = 6,
        .count_since_last_measurement = 7,
        .last_checkpointed_position = SL_STR_INIT("8"),
        .last_known_position = SL_STR_INIT("9"),
        .resolve_links = true,
        .start_from = SL_STR_INIT("11"),
        .message_timeout_ms = 12,
        .extra_statistics = true,
        .max_retry_count = 14,
        .live_buffer_size = 15,
        .buffer_size = 16,
        .read_batch_size = 17,
        .checkpoint_after_ms = 18,
        .min_checkpoint_count = 19,
        .max_checkpoint_count = 20,
        .read_buffer_count = 21,
        .live_buffer_count = 22,
        .retry_buffer_count = 23,
        .in_flight_count = 24,
        .outstanding_count = 25,
        .strategy = SL_STR_INIT("26"),
        .max_subscriber_count = 27,
        .parked_count = 28,
        .stop_rules = 100,
        .everyone_stopped = true,
        .max_interrupts = 102,
        .max_kills = 103,
    };
    /* Written by protoc 3.21 from the same facts as text. */
    static const char wanted[] =
        "0a95010a01311201321a0133223b0a0466726f6d12047573657218032004280532080a044d65616e1001"
        "32130a064d656469616e10feffffffffffffffff01380740084a046e616d652805300638074201384a0139"
        "50015a023131600c6801700e780f800110880111900112980113a00114a80115b00116b80117c00118c80119"
        "d201023236d8011be0011ca00664a80601b00666b80667";
    uint8_t memory[256];
    sl_arena arena;
    sl_str bytes, list;

    test_arena_init(&arena);
    EXPECT_OK(sl_wire_group_info_encode(&info, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex(wanted, memory)));
    EXPECT_OK(sl_wire_group_list_encode(&info, 1, &arena, &list));
    EXPECT(sl_str_equal(list, bytes)); /* field 1 in both answers */
    EXPECT_OK(sl_wire_group_list_encode(NULL, 0, &arena, &list));
    EXPECT_EQ(list.bytes, 0);
    sl_arena_done(&arena);
}

/* --- the server about itself --- */

TEST(features_are_written_and_read_back)
{
    static const sl_str features[] = { SL_STR_INIT("stream"), SL_STR_INIT("all") };
    static const sl_supported_method methods[] = { { SL_STR_INIT("read"), SL_STR_INIT("a.b"), features, 2 },
                                                   { SL_STR_INIT("append"), SL_STR_INIT("c.d"), NULL, 0 } };
    const sl_supported_methods given = { methods, 2, SL_STR("26.0.0") };
    sl_supported_methods again;
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_supported_methods_encode(&given, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x18\x0a\x04read\x12\x03"
                                      "a.b\x1a\x06stream\x1a\x03"
                                      "all"
                                      "\x0a\x0d\x0a\x06"
                                      "append\x12\x03"
                                      "c.d\x12\x06"
                                      "26.0.0")));
    EXPECT_OK(sl_supported_methods_decode(bytes, &arena, &again, NULL));
    EXPECT(again.method_count == 2 && same_text(again.version, "26.0.0"));
    EXPECT(same_text(again.methods[0].method, "read") && same_text(again.methods[0].service, "a.b"));
    EXPECT(again.methods[0].feature_count == 2 && same_text(again.methods[0].features[1], "all"));
    EXPECT(again.methods[1].feature_count == 0);
    sl_arena_done(&arena);
}

TEST(gossip_names_one_member)
{
    const sl_cluster_member member = { .instance = sl_uuid_from_halves(-1, 2),
                                       .now_ticks = 3,
                                       .state = SL_MEMBER_LEADER,
                                       .is_alive = true,
                                       .address = SL_STR("h"),
                                       .port = 2113 };
    EventStore__Client__Gossip__ClusterInfo *info;
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_cluster_info_encode(&member, &arena, &bytes));
    info = event_store__client__gossip__cluster_info__unpack(NULL, bytes.bytes, (const uint8_t *)bytes.data);
    assert_non_null(info);
    EXPECT_EQ(info->n_members, 1);
    EXPECT(info->members[0]->instance_id->structured->most_significant_bits == -1);
    EXPECT(info->members[0]->instance_id->structured->least_significant_bits == 2);
    EXPECT(info->members[0]->time_stamp == 3 && info->members[0]->is_alive);
    EXPECT_EQ(info->members[0]->state, EVENT_STORE__CLIENT__GOSSIP__MEMBER_INFO__VNODE_STATE__Leader);
    EXPECT_STR(info->members[0]->http_end_point->address, "h");
    EXPECT_EQ(info->members[0]->http_end_point->port, 2113);
    event_store__client__gossip__cluster_info__free_unpacked(info, NULL);
    sl_arena_done(&arena);
}

TEST(operations_are_read_and_answered)
{
    uint8_t memory[32];
    sl_scavenge_start start;
    sl_str id, bytes;
    int32_t priority;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_scavenge_start_decode(from_hex("0a 04 08 02 10 03", memory), &arena, &start, NULL));
    EXPECT(start.thread_count == 2 && start.start_from_chunk == 3);
    EXPECT_OK(sl_scavenge_stop_decode(from_hex("0a 03 0a 01 78", memory), &arena, &id, NULL));
    EXPECT(same_text(id, "x"));
    EXPECT_OK(sl_node_priority_decode(from_hex("08 fb ff ff ff ff ff ff ff ff 01", memory), &arena, &priority,
                                      NULL));
    EXPECT_EQ(priority, -5);
    EXPECT_OK(sl_scavenge_response_encode(SL_STR("x"), SL_SCAVENGE_RESULT_STOPPED, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x01x\x10\x02")));
    sl_arena_done(&arena);
}

TEST(what_the_texts_of_a_user_request_mean_depends_on_the_call)
{
    /* name n, second s, third t, group g */
    static const char hex[] = "0a 0c 0a 01 6e 12 01 73 1a 01 74 22 01 67";
    static const struct {
        sl_user_call call;
        const char *password, *new_password, *full_name;
        size_t groups;
    } rows[] = { { SL_USER_CALL_CREATE, "s", "", "t", 1 },
                 { SL_USER_CALL_UPDATE, "s", "", "t", 1 },
                 { SL_USER_CALL_NAME_ONLY, "", "", "", 0 },
                 { SL_USER_CALL_CHANGE_PASSWORD, "s", "t", "", 0 },
                 { SL_USER_CALL_RESET_PASSWORD, "", "s", "", 0 } };
    uint8_t memory[32];
    sl_arena arena;

    test_arena_init(&arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_user_request request;

        EXPECT_OK(sl_user_request_decode(rows[i].call, from_hex(hex, memory), &arena, &request, NULL));
        EXPECT_ROW(same_text(request.login_name, "n") && same_text(request.password, rows[i].password), i);
        EXPECT_ROW(same_text(request.new_password, rows[i].new_password), i);
        EXPECT_ROW(same_text(request.full_name, rows[i].full_name) && request.group_count == rows[i].groups,
                   i);
    }
    sl_arena_done(&arena);
}

TEST(user_details_and_statistics_are_written)
{
    static const sl_str groups[] = { SL_STR_INIT("g") };
    static const sl_wire_label stats[] = { { SL_STR_INIT("k"), SL_STR_INIT("v") } };
    const sl_user_details details = { .login_name = SL_STR("n"),
                                      .full_name = SL_STR("f"),
                                      .groups = groups,
                                      .group_count = 1,
                                      .updated_ticks = 9,
                                      .disabled = true };
    uint8_t memory[32];
    sl_stats_request request;
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_user_details_encode(&details, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x0f\x0a\x01n\x12\x01"
                                      "f\x1a\x01g\x22\x02\x08\x09\x28\x01")));
    EXPECT_OK(sl_stats_encode(stats, 1, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, SL_STR("\x0a\x06\x0a\x01k\x12\x01v")));
    EXPECT_OK(sl_stats_request_decode(from_hex("08 01 20 e8 07", memory), &arena, &request, NULL));
    EXPECT(request.use_metadata && request.refresh_ms == 1000);
    sl_arena_done(&arena);
}
