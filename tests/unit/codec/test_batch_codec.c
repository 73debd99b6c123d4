/* Rules of BatchAppend in wire/streams_codec.h, with protobuf-c as the other opinion. */
#include "codec/compare.h"

#include "wire/streams_codec.h"

typedef EventStore__Client__Streams__BatchAppendReq batch_req;
typedef EventStore__Client__Streams__BatchAppendResp batch_resp;

enum {
    EVENTS_MAX = 8
};

static bool same_options(const sl_batch_options *ours,
                         const EventStore__Client__Streams__BatchAppendReq__Options *theirs)
{
    static const int cases[] = { [SL_WIRE_REVISION_UNSET] = 0,
                                 [SL_WIRE_REVISION_NUMBER] = 2,
                                 [SL_WIRE_REVISION_NO_STREAM] = 3,
                                 [SL_WIRE_REVISION_ANY] = 4,
                                 [SL_WIRE_REVISION_STREAM_EXISTS] = 5 };
    static const int deadlines[] = {
        [SL_BATCH_DEADLINE_NONE] = 0, [SL_BATCH_DEADLINE_AT] = 6, [SL_BATCH_DEADLINE_AFTER] = 7
    };

    if (deadlines[ours->deadline_kind] != (int)theirs->deadline_option_case)
        return false;
    if (ours->deadline_kind == SL_BATCH_DEADLINE_AT && !same_time(ours->deadline, theirs->deadline_21_10_0))
        return false;
    if (ours->deadline_kind == SL_BATCH_DEADLINE_AFTER && !same_duration(ours->deadline, theirs->deadline))
        return false;
    return same_stream(ours->stream, theirs->stream_identifier) &&
           cases[ours->expected.kind] == (int)theirs->expected_stream_position_case &&
           (ours->expected.kind != SL_WIRE_REVISION_NUMBER ||
            ours->expected.number == theirs->stream_position);
}

/* Decodes all events into `events`; the walk has to end by itself. */
static size_t take_events(const sl_batch_append_request *request, sl_wire_proposed events[EVENTS_MAX])
{
    sl_wire_walk walk = sl_wire_items_walk(&request->events);
    size_t count = 0;

    while (sl_batch_append_next(&walk, &events[count], NULL) == SL_OK)
        count++;
    EXPECT_ERR(sl_batch_append_next(&walk, &events[count], NULL), SL_ERR_EMPTY);
    return count;
}

static void expect_same(const sl_batch_append_request *ours, const batch_req *theirs, sl_str bytes)
{
    sl_wire_proposed events[EVENTS_MAX];
    sl_batch_append_draft draft = { .events = events, .is_final = ours->is_final };
    uint8_t *message;

    EXPECT(ours->is_final == theirs->is_final && ours->has_options == (theirs->options != NULL));
    EXPECT(!ours->has_options || same_options(&ours->options, theirs->options));
    EXPECT((ours->correlation.data != NULL) == (theirs->correlation_id != NULL));
    if (ours->correlation.data != NULL)
        EXPECT_OK(sl_wire_id_decode(ours->correlation, &draft.correlation, NULL));
    EXPECT(same_id(draft.correlation, theirs->correlation_id));
    draft.event_count = take_events(ours, events);
    EXPECT_EQ(draft.event_count, theirs->n_proposed_messages);
    EXPECT_EQ(ours->event_count, theirs->n_proposed_messages);
    for (size_t i = 0; i < draft.event_count; i++) /* declared twice, with the same members */
        EXPECT(same_proposed(&events[i], (const void *)theirs->proposed_messages[i]));
    draft.options = ours->has_options ? &ours->options : NULL;
    EXPECT_EQ(sl_batch_append_request_size(&draft), bytes.bytes);
    message = malloc(bytes.bytes + 1);
    assert_non_null(message);
    sl_batch_append_request_encode(&draft, message, bytes.bytes);
    EXPECT_MEM(message, bytes.data, bytes.bytes);
    free(message);
}

TEST(batch_append_requests_are_read_and_written_as_protobuf_c_does)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_batch_append_request ours;

        test_arena_init(&arena);
        const batch_req *const theirs =
            random_message(&event_store__client__streams__batch_append_req__descriptor, &d, &arena);
        const sl_str bytes = packed(theirs, &arena);
        char *const copy = exact_copy(bytes);
        EXPECT_OK(sl_batch_append_request_decode((sl_str){ copy, bytes.bytes }, &ours, NULL));
        expect_same(&ours, theirs, bytes);
        free(copy);
        sl_arena_done(&arena);
    }
}

TEST(a_broken_event_is_found_when_its_turn_comes)
{
    uint8_t memory[32];
    sl_batch_append_request request;
    sl_wire_proposed event;
    sl_wire_walk walk;
    const char *reason = NULL;

    EXPECT_OK(
        sl_batch_append_request_decode(from_hex("1a 02 1a 00  1a 02 18 00  20 01", memory), &request, NULL));
    EXPECT(request.event_count == 2 && request.is_final);
    walk = sl_wire_items_walk(&request.events);
    EXPECT_OK(sl_batch_append_next(&walk, &event, &reason));
    EXPECT_ERR(sl_batch_append_next(&walk, &event, &reason), SL_ERR_INVALID);
    EXPECT_STR(reason, "a known field has the wrong wire type");
    EXPECT_ERR(sl_batch_append_request_decode(from_hex("18 01", memory), &request, &reason), SL_ERR_INVALID);
}

TEST(the_time_left_for_a_batch_saturates_at_both_ends)
{
    static const struct {
        sl_batch_deadline_kind kind;
        int64_t seconds;
        int32_t nanos;
        uint64_t left_ns;
    } rows[] = {
        { SL_BATCH_DEADLINE_NONE, 0, 0, UINT64_MAX },
        { SL_BATCH_DEADLINE_AFTER, 2, 5, 2000000005 },
        { SL_BATCH_DEADLINE_AFTER, 0, 0, 0 },
        { SL_BATCH_DEADLINE_AFTER, 0, -1, 0 },
        { SL_BATCH_DEADLINE_AFTER, 1, -1, 999999999 },
        { SL_BATCH_DEADLINE_AFTER, 1, INT32_MIN, 0 },
        { SL_BATCH_DEADLINE_AFTER, -1, 0, 0 },
        { SL_BATCH_DEADLINE_AFTER, INT64_MIN, INT32_MIN, 0 },
        { SL_BATCH_DEADLINE_AFTER, 315576000000, 0, UINT64_MAX }, /* Python's "for ever" */
        { SL_BATCH_DEADLINE_AFTER, INT64_MAX, INT32_MAX, UINT64_MAX },
        { SL_BATCH_DEADLINE_AT, 1000, 1, 1 },
        { SL_BATCH_DEADLINE_AT, 1000, 0, 0 },
        { SL_BATCH_DEADLINE_AT, 999, 999999999, 0 },
        { SL_BATCH_DEADLINE_AT, 253402300799, 0, UINT64_MAX }, /* the year 9999, .NET's "for ever" */
        { SL_BATCH_DEADLINE_AT, -62135596800, 0, 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_batch_options options = { .deadline_kind = rows[i].kind,
                                           .deadline = { true, rows[i].seconds, rows[i].nanos } };
        EXPECT_ROW(sl_batch_options_left_ns(&options, UINT64_C(1000000000000)) == rows[i].left_ns, i);
    }
}

/* --- the answer --- */

static void expect_same_result(const sl_batch_append_response *ours, const batch_resp *theirs)
{
    EXPECT_EQ(ours->kind == SL_BATCH_APPEND_RESPONSE_ERROR, theirs->result_case == 2);
    EXPECT_EQ(ours->kind == SL_BATCH_APPEND_RESPONSE_SUCCESS, theirs->result_case == 3);
    if (ours->kind == SL_BATCH_APPEND_RESPONSE_ERROR) {
        EXPECT_EQ(ours->error.code, (int32_t)theirs->error->code);
        EXPECT(same_text(ours->error.message, theirs->error->message));
        if (theirs->error->n_details == 1) {
            EXPECT(same_text(ours->error.detail_type, theirs->error->details[0]->type_url));
            EXPECT(same_bytes(ours->error.detail_value, theirs->error->details[0]->value));
        }
    }
    if (ours->kind == SL_BATCH_APPEND_RESPONSE_SUCCESS) {
        const EventStore__Client__Streams__BatchAppendResp__Success *const success = theirs->success;
        EXPECT_EQ((int)ours->current.kind, (int)success->current_revision_option_case); /* 1 and 2 in both */
        EXPECT(ours->current.kind != SL_WIRE_REVISION_NUMBER ||
               ours->current.number == success->current_revision);
        EXPECT_EQ(ours->position.kind == SL_WIRE_POSITION_GIVEN, success->position_option_case == 3);
        EXPECT_EQ(ours->position.kind == SL_WIRE_POSITION_NONE, success->position_option_case == 4);
        if (ours->position.kind == SL_WIRE_POSITION_GIVEN) {
            EXPECT(ours->position.commit == success->position->commit_position);
            EXPECT(ours->position.prepare == success->position->prepare_position);
        }
    }
}

/* We write one detail with a type, or none. */
static void simplify(batch_resp *theirs)
{
    if (theirs->result_case != 2)
        return;
    if (theirs->error->n_details > 1)
        theirs->error->n_details = 1;
    if (theirs->error->n_details == 1 && theirs->error->details[0]->type_url[0] == '\0')
        theirs->error->n_details = 0;
}

TEST(batch_append_responses_are_read_and_written_as_protobuf_c_does)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_batch_append_response ours;
        uint8_t message[2048];

        test_arena_init(&arena);
        batch_resp *const theirs =
            random_message(&event_store__client__streams__batch_append_resp__descriptor, &d, &arena);
        simplify(theirs);
        const sl_str bytes = packed(theirs, &arena);
        EXPECT_OK(sl_batch_append_response_decode(bytes, &ours, NULL));
        expect_same_result(&ours, theirs);
        EXPECT(same_stream(ours.stream, theirs->stream_identifier));
        EXPECT_EQ(ours.expected.kind == SL_WIRE_REVISION_UNSET ? 0 : (int)ours.expected.kind + 4,
                  (int)theirs->expected_stream_position_case);
        EXPECT_EQ(sl_batch_append_response_size(&ours), bytes.bytes);
        assert_true(bytes.bytes <= sizeof message);
        sl_batch_append_response_encode(&ours, message, bytes.bytes);
        EXPECT_MEM(message, bytes.data, bytes.bytes);
        sl_arena_done(&arena);
    }
}

TEST(a_correlation_id_is_echoed_byte_for_byte)
{
    uint8_t memory[64], message[64];
    sl_batch_append_request request;
    sl_batch_append_response response = { 0 };

    /* A text that is no UUID and a field that we do not know. */
    EXPECT_OK(sl_batch_append_request_decode(from_hex("0a 06 12 01 78 98 06 01", memory), &request, NULL));
    response.correlation = request.correlation;
    const size_t size = sl_batch_append_response_size(&response);
    sl_batch_append_response_encode(&response, message, size);
    EXPECT_EQ(size, 10);
    EXPECT_MEM(message, "\x0a\x06\x12\x01\x78\x98\x06\x01\x22\x00", 10);
    /* One that is there and says nothing. */
    EXPECT_OK(sl_batch_append_request_decode(from_hex("0a 00", memory), &request, NULL));
    response.correlation = request.correlation;
    EXPECT_EQ(sl_batch_append_response_size(&response), 4);
}

TEST(of_several_details_of_a_status_the_last_is_read)
{
    uint8_t memory[64];
    sl_batch_append_response response;

    EXPECT_OK(sl_batch_append_response_decode(
        from_hex("12 0f 08 05  1a 06 0a 01 61 12 01 62  1a 03 0a 01 63", memory), &response, NULL));
    EXPECT(response.error.code == 5 && sl_str_equal(response.error.detail_type, SL_STR("c")));
    EXPECT_EQ(response.error.detail_value.bytes, 0);
}
