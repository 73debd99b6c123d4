/* Rules of ReadResp in wire/streams_codec.h, with protobuf-c as the other opinion. */
#include "codec/compare.h"

#include "wire/streams_codec.h"

typedef EventStore__Client__Streams__ReadResp read_resp;

/* CaughtUp and FellBehind have the same members in the same order. */
static bool same_boundary(const sl_read_boundary *ours,
                          const EventStore__Client__Streams__ReadResp__CaughtUp *theirs)
{
    const bool has_revision = theirs->stream_revision_option_case != 0;
    const bool has_position = theirs->position != NULL;

    return same_time(ours->time, theirs->timestamp) && ours->has_revision == has_revision &&
           (!has_revision || ours->revision == theirs->stream_revision) &&
           (ours->position.kind == SL_WIRE_POSITION_GIVEN) == has_position &&
           (!has_position || (ours->position.commit == theirs->position->commit_position &&
                              ours->position.prepare == theirs->position->prepare_position));
}

static bool same_response(const sl_read_response *ours, const read_resp *theirs)
{
    if ((int)ours->kind != (int)theirs->content_case)
        return false;
    switch (ours->kind) {
    case SL_READ_RESPONSE_UNSET: return true;
    case SL_READ_RESPONSE_EVENT: return same_read_event(&ours->event, theirs->event);
    case SL_READ_RESPONSE_CONFIRMATION:
        return same_text(ours->subscription_id, theirs->confirmation->subscription_id);
    case SL_READ_RESPONSE_CHECKPOINT:
        return ours->checkpoint.position.commit == theirs->checkpoint->commit_position &&
               ours->checkpoint.position.prepare == theirs->checkpoint->prepare_position &&
               same_time(ours->checkpoint.time, theirs->checkpoint->timestamp);
    case SL_READ_RESPONSE_STREAM_NOT_FOUND:
        return same_stream(ours->stream, theirs->stream_not_found->stream_identifier);
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION:
        return ours->stream_position == theirs->first_stream_position;
    case SL_READ_RESPONSE_LAST_STREAM_POSITION: return ours->stream_position == theirs->last_stream_position;
    case SL_READ_RESPONSE_LAST_ALL_POSITION:
        return ours->all_position.commit == theirs->last_all_stream_position->commit_position &&
               ours->all_position.prepare == theirs->last_all_stream_position->prepare_position;
    case SL_READ_RESPONSE_CAUGHT_UP: return same_boundary(&ours->boundary, theirs->caught_up);
    case SL_READ_RESPONSE_FELL_BEHIND:
        return same_boundary(&ours->boundary, (const void *)theirs->fell_behind);
    }
    return false;
}

static bool encodes_to(const sl_read_response *response, sl_str wanted)
{
    const size_t bytes = sl_read_response_size(response);
    uint8_t *const message = malloc(bytes + 1);
    bool same;

    assert_non_null(message);
    sl_read_response_encode(response, message, bytes);
    same = sl_str_equal((sl_str){ (char *)message, bytes }, wanted);
    if (response->kind == SL_READ_RESPONSE_EVENT) {
        EXPECT_EQ(sl_read_event_size(&response->event), bytes);
        memset(message, 0, bytes);
        sl_read_event_encode(&response->event, message, bytes);
        same = same && sl_str_equal((sl_str){ (char *)message, bytes }, wanted);
    }
    free(message);
    return same;
}

TEST(read_responses_are_read_and_written_as_protobuf_c_does)
{
    unsigned seen[SL_READ_RESPONSE_FELL_BEHIND + 1] = { 0 };

    for (uint64_t run = 0; run < 4 * RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_read_response ours;

        test_arena_init(&arena);
        memset(&ours, 0xa5, sizeof ours); /* nothing of what was there before may show */
        const read_resp *const theirs =
            random_message(&event_store__client__streams__read_resp__descriptor, &d, &arena);
        const sl_str bytes = packed(theirs, &arena);
        char *const copy = exact_copy(bytes);
        EXPECT_OK(sl_read_response_decode((sl_str){ copy, bytes.bytes }, &ours, NULL));
        seen[ours.kind]++;
        EXPECT_RUN(same_response(&ours, theirs), run, 0);
        EXPECT_RUN(encodes_to(&ours, bytes), run, 1);
        free(copy);
        sl_arena_done(&arena);
    }
    for (size_t kind = 1; kind < sizeof seen / sizeof seen[0]; kind++)
        EXPECT_ROW(seen[kind] > 0, kind);
}

/* Written by protoc 3.21, the reference implementation, from the same values as text. */
TEST(an_event_has_the_bytes_of_the_reference_implementation)
{
    const sl_read_response response = {
        .kind = SL_READ_RESPONSE_EVENT,
        .event = { .has_event = true,
                   .event = { .id = { .uuid = { { 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
                                      .form = SL_WIRE_ID_STRUCTURED },
                              .stream = SL_STR_INIT("s"),
                              .revision = UINT64_C(1) << 63,
                              .commit_position = 300,
                              .prepare_position = 299,
                              .type = SL_STR_INIT("T"),
                              .content_type = SL_STR_INIT("application/json"),
                              .created_ticks = 17000000000000000,
                              .data = SL_STR_INIT("{}") },
                   .position_kind = SL_WIRE_POSITION_GIVEN,
                   .commit_position = 300 },
    };
    uint8_t memory[256];

    EXPECT(encodes_to(
        &response, from_hex("0a83010a7e0a170a1508878c94a0b0c0c0808001108f9cb4e0b0c1c2840812031a01731880808080"
                            "80808080800120ab0228ac0232090a0474797065120154321c0a0763726561746564121131"
                            "3730303030303030303030303030303032200a0c636f6e74656e742d7479706512106170"
                            "706c69636174696f6e2f6a736f6e42027b7d18ac02",
                            memory)));
}

TEST(the_time_of_an_event_is_decimal_text_in_ticks_and_read_as_zero_when_it_is_none)
{
    static const struct {
        const char *text;
        uint64_t ticks;
    } rows[] = { { "0", 0 },
                 { "17000000000000001", 17000000000000001 },
                 { "", 0 },
                 { "12x", 0 },
                 { "-5", 0 },
                 { "18446744073709551615", UINT64_MAX },
                 { "18446744073709551616", 0 },
                 { "99999999999999999999", 0 },
                 { "1:", 0 } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t length = strlen(rows[i].text);
        char message[64];
        sl_read_response response;

        const int bytes =
            snprintf(message, sizeof message, "%c%c%c%c%c%c%c%ccreated%c%c%s", 0x0a, (int)length + 15, 0x0a,
                     (int)length + 13, 0x32, (int)length + 11, 0x0a, 7, 0x12, (int)length, rows[i].text);
        EXPECT_OK(
            sl_read_response_decode((sl_str){ message, length == 0 ? 17 : (size_t)bytes }, &response, NULL));
        EXPECT_ROW(response.event.event.created_ticks == rows[i].ticks, i);
    }
}

TEST(a_time_is_cut_into_seconds_and_nanoseconds)
{
    const sl_wire_time time = sl_wire_time_from_ns(UINT64_C(1700000000123456789));

    EXPECT(time.given && time.seconds == 1700000000 && time.nanos == 123456789);
}
