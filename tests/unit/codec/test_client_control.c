/* Rules of the half of server_control.h that only a client needs: requests that it writes, answers that it reads. protobuf-c makes the
 * messages, so what is tested is that each field goes where its name says. */
#include "codec/compare.h"

#include "wire/codec/gossip.pb-c.h"
#include "wire/codec/users.pb-c.h"
#include "wire/error_details.h"
#include "wire/server_control.h"

TEST(what_a_client_writes_about_a_user_is_what_the_server_reads)
{
    static const sl_str groups[] = { SL_STR_INIT("$admins"), SL_STR_INIT(""), SL_STR_INIT("g") };
    static const sl_user_request full = { .login_name = SL_STR_INIT("n"),
                                          .password = SL_STR_INIT("p"),
                                          .new_password = SL_STR_INIT("q"),
                                          .full_name = SL_STR_INIT("f"),
                                          .groups = groups,
                                          .group_count = 3 };
    static const struct {
        sl_user_call call;
        const char *bytes; /* field 1: the options; in them 1 name, 2, 3, 4 groups */
    } rows[] = {
        { SL_USER_CALL_CREATE, "0a 17 0a 01 6e 12 01 70 1a 01 66 22 07 24 61 64 6d 69 6e 73 22 00 22 01 67" },
        { SL_USER_CALL_UPDATE, "0a 17 0a 01 6e 12 01 70 1a 01 66 22 07 24 61 64 6d 69 6e 73 22 00 22 01 67" },
        { SL_USER_CALL_NAME_ONLY, "0a 03 0a 01 6e" },
        { SL_USER_CALL_CHANGE_PASSWORD, "0a 09 0a 01 6e 12 01 70 1a 01 71" },
        { SL_USER_CALL_RESET_PASSWORD, "0a 06 0a 01 6e 12 01 71" }
    };
    uint8_t memory[64];
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_OK(sl_user_request_encode(rows[i].call, &full, &arena, &bytes));
        EXPECT_ROW(sl_str_equal(bytes, from_hex(rows[i].bytes, memory)), i);
    }
    sl_arena_done(&arena);
}

typedef EventStore__Client__Users__DetailsResp__UserDetails user_details;

static bool same_details(const sl_user_details *ours, const user_details *theirs)
{
    for (size_t i = 0; i < theirs->n_groups; i++)
        if (i >= ours->group_count || !same_text(ours->groups[i], theirs->groups[i]))
            return false;
    return ours->group_count == theirs->n_groups && same_text(ours->login_name, theirs->login_name) &&
           same_text(ours->full_name, theirs->full_name) && ours->disabled == (theirs->disabled != 0) &&
           ours->updated_ticks ==
               (theirs->last_updated == NULL ? 0 : (uint64_t)theirs->last_updated->ticks_since_epoch);
}

TEST(details_of_a_user_are_read_and_written_field_by_field)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        EventStore__Client__Users__DetailsResp theirs = EVENT_STORE__CLIENT__USERS__DETAILS_RESP__INIT;
        EventStore__Client__Users__DetailsResp__UserDetails__DateTime never =
            EVENT_STORE__CLIENT__USERS__DETAILS_RESP__USER_DETAILS__DATE_TIME__INIT;
        sl_user_details ours;
        sl_arena arena;
        sl_str again;

        test_arena_init(&arena);
        theirs.user_details =
            random_message(&event_store__client__users__details_resp__user_details__descriptor, &d, &arena);
        EXPECT_OK(sl_user_details_decode(packed(&theirs, &arena), &arena, &ours, NULL));
        EXPECT_RUN(same_details(&ours, theirs.user_details), run, 0);
        if (theirs.user_details->last_updated == NULL)
            theirs.user_details->last_updated = &never; /* we always write it */
        EXPECT_OK(sl_user_details_encode(&ours, &arena, &again));
        EXPECT_RUN(sl_str_equal(again, packed(&theirs, &arena)), run, 1);
        sl_arena_done(&arena);
    }
}

static bool same_instance(sl_uuid ours, const EventStore__Client__UUID *theirs)
{
    sl_uuid wanted = { 0 };

    if (theirs != NULL && theirs->value_case == 1)
        wanted = sl_uuid_from_halves(theirs->structured->most_significant_bits,
                                     theirs->structured->least_significant_bits);
    if (theirs != NULL && theirs->value_case == 2)
        (void)sl_uuid_parse(theirs->string, strlen(theirs->string), &wanted);
    return sl_uuid_equal(ours, wanted);
}

static bool same_member(const sl_cluster_member *ours, const EventStore__Client__Gossip__MemberInfo *theirs)
{
    const EventStore__Client__Gossip__EndPoint *const place = theirs->http_end_point;

    return same_instance(ours->instance, theirs->instance_id) &&
           ours->now_ticks == (uint64_t)theirs->time_stamp && (int)ours->state == (int)theirs->state &&
           ours->is_alive == (theirs->is_alive != 0) &&
           same_text(ours->address, place == NULL ? "" : place->address) &&
           ours->port == (place == NULL ? 0 : place->port);
}

TEST(members_of_a_cluster_are_read_field_by_field)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        const EventStore__Client__Gossip__ClusterInfo *theirs;
        sl_cluster_info ours;
        sl_arena arena;

        test_arena_init(&arena);
        theirs = random_message(&event_store__client__gossip__cluster_info__descriptor, &d, &arena);
        EXPECT_OK(sl_cluster_info_decode(packed(theirs, &arena), &arena, &ours, NULL));
        EXPECT_RUN(ours.member_count == theirs->n_members, run, 0);
        for (size_t i = 0; i < ours.member_count; i++)
            EXPECT_RUN(same_member(&ours.members[i], theirs->members[i]), run, i + 1);
        sl_arena_done(&arena);
    }
}

TEST(an_instance_that_is_written_as_text_is_read_too)
{
    uint8_t memory[64];
    char text[SL_UUID_TEXT_BYTES + 1];
    sl_cluster_info info;
    sl_arena arena;

    test_arena_init(&arena);
    /* one member, its id as text: 36 digits and dashes */
    EXPECT_OK(sl_cluster_info_decode(from_hex("0a 28 0a 26 12 24 30 30 30 31 30 32 30 33 2d 30 34 30 35 2d "
                                              "30 36 30 37 2d 30 38 30 39 2d 30 61 30 62 "
                                              "30 63 30 64 30 65 30 66",
                                              memory),
                                     &arena, &info, NULL));
    EXPECT_EQ(info.member_count, 1);
    sl_uuid_format(info.members[0].instance, text);
    EXPECT_STR(text, "00010203-0405-0607-0809-0a0b0c0d0e0f");
    sl_arena_done(&arena);
}

TEST(answers_that_are_no_protobuf_are_refused_with_a_reason)
{
    uint8_t memory[8];
    const char *reason = NULL;
    sl_cluster_info info;
    sl_user_details details;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_ERR(sl_cluster_info_decode(from_hex("0a 05 01", memory), &arena, &info, &reason), SL_ERR_INVALID);
    EXPECT(reason != NULL);
    reason = NULL;
    EXPECT_ERR(sl_user_details_decode(from_hex("0a 02 0a 09", memory), &arena, &details, &reason),
               SL_ERR_INVALID);
    EXPECT(reason != NULL);
    EXPECT_OK(sl_user_details_decode((sl_str){ 0 }, &arena, &details, NULL));
    EXPECT(details.login_name.bytes == 0 && details.group_count == 0);
    sl_arena_done(&arena);
}

TEST(a_client_reads_where_a_stream_is_and_what_was_wrong_with_a_request)
{
    uint8_t memory[16];
    sl_wire_revision current;
    sl_str message;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_detail_wrong_revision_decode(from_hex("08 05 18 06", memory), &arena, &current, NULL));
    EXPECT(current.kind == SL_WIRE_REVISION_NUMBER && current.number == 5);
    EXPECT_OK(sl_detail_wrong_revision_decode(from_hex("12 00 22 00", memory), &arena, &current, NULL));
    EXPECT(current.kind == SL_WIRE_REVISION_NO_STREAM);
    EXPECT_OK(sl_detail_wrong_revision_decode((sl_str){ 0 }, &arena, &current, NULL));
    EXPECT(current.kind == SL_WIRE_REVISION_UNSET);
    EXPECT_ERR(sl_detail_wrong_revision_decode(from_hex("08", memory), &arena, &current, NULL),
               SL_ERR_INVALID);
    EXPECT_OK(sl_detail_bad_request_decode(from_hex("0a 01 6d", memory), &arena, &message, NULL));
    EXPECT(same_text(message, "m"));
    sl_arena_done(&arena);
}
