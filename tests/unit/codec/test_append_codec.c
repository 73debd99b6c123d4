/* Rules of Append in wire/streams_codec.h, with protobuf-c as the other opinion. */
#include "codec/compare.h"

#include "wire/streams_codec.h"

typedef EventStore__Client__Streams__AppendReq append_req;
typedef EventStore__Client__Streams__AppendResp append_resp;
typedef EventStore__Client__Streams__AppendResp__WrongExpectedVersion wrong_version;

static bool encodes_to(const sl_append_request *request, sl_str wanted)
{
    const size_t bytes = sl_append_request_size(request);
    uint8_t *const message = malloc(bytes + 1);
    bool same;

    assert_non_null(message);
    sl_append_request_encode(request, message, bytes);
    same = sl_str_equal((sl_str){ (char *)message, bytes }, wanted);
    free(message);
    return same;
}

static bool same_options(const sl_append_options *ours,
                         const EventStore__Client__Streams__AppendReq__Options *theirs)
{
    static const int cases[] = { [SL_WIRE_REVISION_UNSET] = 0,
                                 [SL_WIRE_REVISION_NUMBER] = 2,
                                 [SL_WIRE_REVISION_NO_STREAM] = 3,
                                 [SL_WIRE_REVISION_ANY] = 4,
                                 [SL_WIRE_REVISION_STREAM_EXISTS] = 5 };

    return same_stream(ours->stream, theirs->stream_identifier) &&
           cases[ours->expected.kind] == (int)theirs->expected_stream_revision_case &&
           (ours->expected.kind != SL_WIRE_REVISION_NUMBER || ours->expected.number == theirs->revision);
}

static bool same_request(const sl_append_request *ours, const append_req *theirs)
{
    switch (ours->kind) {
    case SL_APPEND_REQUEST_UNSET: return theirs->content_case == 0;
    case SL_APPEND_REQUEST_OPTIONS:
        return theirs->content_case == 1 && same_options(&ours->options, theirs->options);
    case SL_APPEND_REQUEST_EVENT:
        return theirs->content_case == 2 && same_proposed(&ours->event, theirs->proposed_message);
    }
    return false;
}

TEST(append_requests_are_read_and_written_as_protobuf_c_does)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_append_request ours;

        test_arena_init(&arena);
        const append_req *const theirs =
            random_message(&event_store__client__streams__append_req__descriptor, &d, &arena);
        const sl_str bytes = packed(theirs, &arena);
        EXPECT_OK(sl_append_request_decode(bytes, &ours, NULL));
        EXPECT_RUN(same_request(&ours, theirs), run, 0);
        EXPECT_RUN(encodes_to(&ours, bytes), run, 1);
        sl_arena_done(&arena);
    }
}

/* --- the answer --- */

static void to_wrong(const sl_append_response *ours, wrong_version *theirs, EventStore__Client__Empty *marker)
{
    event_store__client__streams__append_resp__wrong_expected_version__init(theirs);
    theirs->current_revision_option_20_6_0_case = ours->current.kind == SL_WIRE_REVISION_NUMBER ? 1 : 2;
    theirs->current_revision_option_case = ours->current.kind == SL_WIRE_REVISION_NUMBER ? 6 : 7;
    if (ours->current.kind == SL_WIRE_REVISION_NUMBER)
        theirs->current_revision_20_6_0 = theirs->current_revision = ours->current.number;
    else
        theirs->no_stream_20_6_0 = theirs->current_no_stream = marker;
    theirs->any_20_6_0 = theirs->expected_any = marker;
    switch (ours->expected.kind) {
    case SL_WIRE_REVISION_UNSET: break;
    case SL_WIRE_REVISION_NUMBER:
        theirs->expected_revision_option_20_6_0_case = 3;
        theirs->expected_revision_option_case = 8;
        theirs->expected_revision_20_6_0 = theirs->expected_revision = ours->expected.number;
        break;
    case SL_WIRE_REVISION_NO_STREAM:
        theirs->expected_revision_option_20_6_0_case = 3;
        theirs->expected_revision_20_6_0 = UINT64_MAX;
        theirs->expected_revision_option_case = 11;
        break;
    case SL_WIRE_REVISION_ANY:
        theirs->expected_revision_option_20_6_0_case = 4;
        theirs->expected_revision_option_case = 9;
        break;
    case SL_WIRE_REVISION_STREAM_EXISTS:
        theirs->expected_revision_option_20_6_0_case = 5;
        theirs->expected_revision_option_case = 10;
        break;
    }
}

static void expect_same_response(const sl_append_response *ours, sl_str bytes)
{
    uint8_t message[256];
    const size_t size = sl_append_response_size(ours);
    sl_append_response again;

    EXPECT_EQ(size, bytes.bytes);
    sl_append_response_encode(ours, message, size);
    EXPECT_MEM(message, bytes.data, size);
    EXPECT_OK(sl_append_response_decode(bytes, &again, NULL));
    EXPECT(again.kind == ours->kind);
    EXPECT(again.current.kind == ours->current.kind && again.current.number == ours->current.number);
    EXPECT(again.expected.kind == ours->expected.kind && again.expected.number == ours->expected.number);
    EXPECT(again.position.kind == ours->position.kind && again.position.commit == ours->position.commit &&
           again.position.prepare == ours->position.prepare);
}

TEST(a_wrong_revision_is_said_in_the_old_and_in_the_new_form)
{
    dice d = dice_from(3);

    for (int run = 0; run < 500; run++) {
        const sl_wire_revision_kind currents[] = { SL_WIRE_REVISION_NUMBER, SL_WIRE_REVISION_NO_STREAM };
        sl_append_response ours = { .kind = SL_APPEND_RESPONSE_WRONG_REVISION };
        append_resp theirs = EVENT_STORE__CLIENT__STREAMS__APPEND_RESP__INIT;
        EventStore__Client__Empty marker = EVENT_STORE__CLIENT__EMPTY__INIT;
        wrong_version wrong;
        sl_arena arena;

        test_arena_init(&arena);
        ours.current.kind = currents[dice_pick(&d, 2)];
        ours.expected.kind = (sl_wire_revision_kind)dice_pick(&d, 5);
        if (ours.current.kind == SL_WIRE_REVISION_NUMBER)
            ours.current.number = random_u64(&d);
        if (ours.expected.kind == SL_WIRE_REVISION_NUMBER)
            ours.expected.number = random_u64(&d);
        to_wrong(&ours, &wrong, &marker);
        theirs.result_case = EVENT_STORE__CLIENT__STREAMS__APPEND_RESP__RESULT_WRONG_EXPECTED_VERSION;
        theirs.wrong_expected_version = &wrong;
        expect_same_response(&ours, packed(&theirs, &arena));
        sl_arena_done(&arena);
    }
}

TEST(a_wrong_revision_in_the_old_form_alone_is_understood)
{
    uint8_t memory[32];
    sl_append_response response;

    EXPECT_OK(sl_append_response_decode(from_hex("12 0d 08 07 18 ff ff ff ff ff ff ff ff ff 01", memory),
                                        &response, NULL));
    EXPECT(response.kind == SL_APPEND_RESPONSE_WRONG_REVISION);
    EXPECT(response.current.kind == SL_WIRE_REVISION_NUMBER && response.current.number == 7);
    EXPECT(response.expected.kind == SL_WIRE_REVISION_NO_STREAM);
    EXPECT_OK(sl_append_response_decode(from_hex("12 04 12 00 22 00", memory), &response, NULL));
    EXPECT(response.current.kind == SL_WIRE_REVISION_NO_STREAM &&
           response.expected.kind == SL_WIRE_REVISION_ANY);
    EXPECT_OK(sl_append_response_decode(from_hex("12 04 18 00 2a 00", memory), &response, NULL));
    EXPECT(response.expected.kind == SL_WIRE_REVISION_STREAM_EXISTS);
}

TEST(append_successes_are_written_and_read_as_protobuf_c_does)
{
    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        append_resp theirs = EVENT_STORE__CLIENT__STREAMS__APPEND_RESP__INIT;
        EventStore__Client__Streams__AppendResp__Success *success;
        sl_append_response ours = { .kind = SL_APPEND_RESPONSE_SUCCESS };

        test_arena_init(&arena);
        success = random_message(&event_store__client__streams__append_resp__success__descriptor, &d, &arena);
        theirs.result_case = EVENT_STORE__CLIENT__STREAMS__APPEND_RESP__RESULT_SUCCESS;
        theirs.success = success;
        ours.current.kind =
            (sl_wire_revision_kind)success->current_revision_option_case; /* 1 and 2 in both */
        if (ours.current.kind == SL_WIRE_REVISION_NUMBER)
            ours.current.number = success->current_revision;
        if (success->position_option_case == 3)
            ours.position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, success->position->commit_position,
                                                success->position->prepare_position };
        else if (success->position_option_case == 4)
            ours.position.kind = SL_WIRE_POSITION_NONE;
        expect_same_response(&ours, packed(&theirs, &arena));
        sl_arena_done(&arena);
    }
}

/* Written by protoc 3.21, the reference implementation, from the same values as text. */
TEST(an_append_request_has_the_bytes_of_the_reference_implementation)
{
    const sl_append_request options = {
        .kind = SL_APPEND_REQUEST_OPTIONS,
        .options = { .stream = SL_STR_INIT("order-1"),
                     .expected = { SL_WIRE_REVISION_NUMBER, UINT64_MAX - 1 } },
    };
    const sl_append_request event = {
        .kind = SL_APPEND_REQUEST_EVENT,
        .event = { .id = { .form = SL_WIRE_ID_STRUCTURED },
                   .type = SL_STR_INIT("T"),
                   .content_type = { 0 },
                   .custom_metadata = SL_STR_INIT("m"),
                   .data = SL_STR_INIT("d") },
    };
    uint8_t memory[64];

    EXPECT(encodes_to(&options, from_hex("0a160a091a076f726465722d3110feffffffffffffffff01", memory)));
    EXPECT(encodes_to(&event, from_hex("12150a020a0012090a04747970651201541a016d220164", memory)));
}

TEST(an_empty_append_request_is_read_as_unset)
{
    sl_append_request request;

    EXPECT_OK(sl_append_request_decode((sl_str){ 0 }, &request, NULL));
    EXPECT(request.kind == SL_APPEND_REQUEST_UNSET && sl_append_request_size(&request) == 0);
    EXPECT_OK(sl_append_request_decode(SL_STR("\x0a\x00"), &request, NULL));
    EXPECT(request.kind == SL_APPEND_REQUEST_OPTIONS &&
           request.options.expected.kind == SL_WIRE_REVISION_UNSET);
    EXPECT_OK(sl_append_request_decode(SL_STR("\x12\x00"), &request, NULL));
    EXPECT(request.kind == SL_APPEND_REQUEST_EVENT && request.event.type.data == NULL);
}

TEST(a_metadata_key_with_an_empty_value_is_there_and_a_missing_one_is_not)
{
    uint8_t memory[64];
    sl_append_request request;

    EXPECT_OK(
        sl_append_request_decode(from_hex("12 0a 12 08 0a 04 74 79 70 65 12 00", memory), &request, NULL));
    EXPECT(request.event.type.data != NULL && request.event.type.bytes == 0);
    EXPECT(request.event.content_type.data == NULL);
    EXPECT_OK(sl_append_request_decode(from_hex("12 08 12 06 0a 04 74 79 70 65", memory), &request, NULL));
    EXPECT(request.event.type.data != NULL && request.event.type.bytes == 0);
}

/* Entries of the metadata map that are not written the way every client writes them. */
TEST(a_metadata_entry_in_an_unusual_form_is_read_or_refused)
{
    static const struct {
        const char *entry;
        const char *type; /* NULL: no such key */
        sl_err err;
    } rows[] = {
        { "", NULL, SL_OK },
        { "12 01 78", NULL, SL_OK },
        { "12 01 78 0a 04 74 79 70 65", "x", SL_OK },
        { "0a 04 74 79 70 65 12 81 00 78", "x", SL_OK },
        { "0a 84 00 74 79 70 65 12 01 78", "x", SL_OK },
        { "0a 04 74 79 70 65 12 01 78 18 05", "x", SL_OK },
        { "0a 04 74 79 70 65 12 01 78 12 01 79", "y", SL_OK },
        { "0a 04 74 79 70 65 12 02 c3 a4", "\xc3\xa4", SL_OK },
        { "0a 04 74 79 70 65 12 01 ff", NULL, SL_ERR_INVALID },
        { "0a 04 74 79 70 ff 12 01 78", NULL, SL_ERR_INVALID },
        { "0a 04 74 79 70 65 12", NULL, SL_ERR_INVALID },
        { "0a 04 74 79 70 65 12 02 78", NULL, SL_ERR_INVALID },
        { "0a 05 74 79 70 65", NULL, SL_ERR_INVALID },
        { "0a 04 74 79 70 65 10 01", NULL, SL_ERR_INVALID },
        { "08 04", NULL, SL_ERR_INVALID },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t memory[64];
        const size_t bytes = from_hex(rows[i].entry, memory + 4).bytes;
        sl_append_request request;
        char *copy;

        memcpy(memory, (uint8_t[]){ 0x12, (uint8_t)(bytes + 2), 0x12, (uint8_t)bytes }, 4);
        copy = exact_copy((sl_str){ (char *)memory, bytes + 4 });
        EXPECT_ROW(sl_append_request_decode((sl_str){ copy, bytes + 4 }, &request, NULL) == rows[i].err, i);
        if (rows[i].err == SL_OK)
            EXPECT_ROW((request.event.type.data != NULL) == (rows[i].type != NULL) &&
                           same_text(request.event.type, rows[i].type),
                       i);
        free(copy);
    }
}

/* Its length in two bytes, the first of which happens to be what a reader in a hurry would expect. */
TEST(a_metadata_value_is_as_long_as_its_length_says)
{
    uint8_t memory[256] = { 0 };
    const size_t bytes =
        from_hex("12 8e 01 12 8b 01  0a 04 74 79 70 65  12 83 00 61 62 63  7a 7d", memory).bytes + 125;
    sl_append_request request;

    EXPECT_OK(sl_append_request_decode((sl_str){ (char *)memory, bytes }, &request, NULL));
    EXPECT(same_text(request.event.type, "abc"));
}

TEST(an_id_is_read_in_every_form_that_clients_write)
{
    static const struct {
        const char *text;
        sl_wire_id_form form;
    } rows[] = {
        { "00112233-4455-6677-8899-aabbccddeeff", SL_WIRE_ID_TEXT },
        { "00112233-4455-6677-8899-AABBCCDDEEFF", SL_WIRE_ID_TEXT },
        { "00112233445566778899aabbccddeeff", SL_WIRE_ID_TEXT },
        { "{00112233-4455-6677-8899-aabbccddeeff}", SL_WIRE_ID_TEXT },
        { "(00112233-4455-6677-8899-aabbccddeeff)", SL_WIRE_ID_TEXT },
        { "{00112233-4455-6677-8899-aabbccddeeff)", SL_WIRE_ID_MALFORMED },
        { "00112233+4455-6677-8899-aabbccddeeff", SL_WIRE_ID_MALFORMED },
        { "00112233-4455+6677-8899-aabbccddeeff", SL_WIRE_ID_MALFORMED },
        { "00112233-4455-6677+8899-aabbccddeeff", SL_WIRE_ID_MALFORMED },
        { "00112233-4455-6677-8899+aabbccddeeff", SL_WIRE_ID_MALFORMED },
        { "00112233-4455-6677-8899-aabbccddeef", SL_WIRE_ID_MALFORMED },
        { "00112233445566778899aabbccddeefg", SL_WIRE_ID_MALFORMED },
        { "", SL_WIRE_ID_MALFORMED },
    };
    const sl_uuid wanted = sl_uuid_from_halves(0x0011223344556677, (int64_t)0x8899aabbccddeeff);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_str text = sl_str_from(rows[i].text);
        char message[64] = { 0x12, (char)text.bytes };
        sl_wire_id id;

        memcpy(message + 2, text.data, text.bytes);
        EXPECT_OK(sl_wire_id_decode((sl_str){ message, text.bytes + 2 }, &id, NULL));
        EXPECT_ROW(id.form == rows[i].form, i);
        EXPECT_ROW(sl_uuid_equal(id.uuid, wanted) == (id.form == SL_WIRE_ID_TEXT), i);
        EXPECT_ROW(!sl_uuid_is_zero(id.uuid) || id.form == SL_WIRE_ID_MALFORMED, i);
    }
}

TEST(an_id_that_is_none_is_written_as_if_it_were_absent)
{
    sl_append_request request = { .kind = SL_APPEND_REQUEST_EVENT };

    EXPECT_EQ(sl_append_request_size(&request), 2);
    request.event.id.form = SL_WIRE_ID_MALFORMED;
    EXPECT_EQ(sl_append_request_size(&request), 2);
}

TEST(an_id_on_its_own_is_written_and_read_back_in_both_forms)
{
    for (uint64_t run = 0; run < 500; run++) {
        dice d = dice_from(run);
        const sl_wire_id_form forms[] = { SL_WIRE_ID_ABSENT, SL_WIRE_ID_STRUCTURED, SL_WIRE_ID_TEXT };
        sl_wire_id id = { .form = forms[dice_pick(&d, 3)] }, again;
        uint8_t message[SL_WIRE_ID_BYTES_MAX];

        if (id.form != SL_WIRE_ID_ABSENT)
            id.uuid = sl_uuid_from_halves((int64_t)random_u64(&d), (int64_t)random_u64(&d));
        const size_t bytes = sl_wire_id_encode(id, message);
        EXPECT_OK(sl_wire_id_decode((sl_str){ (char *)message, bytes }, &again, NULL));
        EXPECT(again.form == id.form && sl_uuid_equal(again.uuid, id.uuid));
    }
}
