/* What protobuf says about fields that come twice, in the wrong order, or from a later version: our decoders and protobuf-c
 * get the same bytes. */
#include "codec/compare.h"

#include "wire/persistent_codec.h"
#include "wire/streams_codec.h"

/* Two messages one behind the other are one message: numbers and texts of the second win, embedded messages merge. */
static sl_str joined(sl_str a, sl_str b, sl_arena *arena)
{
    char *const both = sl_arena_alloc(arena, a.bytes + b.bytes);

    memcpy(both, a.data, a.bytes);
    memcpy(both + a.bytes, b.data, b.bytes);
    return (sl_str){ both, a.bytes + b.bytes };
}

/* protobuf-c frees what it replaces, with the allocator that made it. */
static void *theirs_from(const ProtobufCMessageDescriptor *kind, sl_str bytes)
{
    void *const message = protobuf_c_message_unpack(kind, NULL, bytes.bytes, (const uint8_t *)bytes.data);

    assert_non_null(message);
    return message;
}

TEST(two_joined_acks_are_one_and_what_follows_another_kind_is_forgotten)
{
    uint8_t memory[64];
    sl_persistent_request request;
    sl_wire_walk walk;
    sl_wire_id id;

    EXPECT_OK(sl_persistent_request_decode(
        from_hex("12 06 12 04 0a 02 08 01  12 06 12 04 0a 02 08 02", memory), &request, NULL));
    EXPECT(request.kind == SL_PERSISTENT_REQUEST_ACK && request.ids.count == 2);
    walk = sl_wire_items_walk(&request.ids.items);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.uuid.bytes[7] == 1);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.uuid.bytes[7] == 2);
    EXPECT(!sl_wire_ids_next(&walk, &id));

    EXPECT_OK(sl_persistent_request_decode(
        from_hex("12 06 12 04 0a 02 08 01  1a 00  12 06 12 04 0a 02 08 02  78 01", memory), &request, NULL));
    EXPECT(request.kind == SL_PERSISTENT_REQUEST_ACK && request.ids.count == 1);
    walk = sl_wire_items_walk(&request.ids.items);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.uuid.bytes[7] == 2);
    EXPECT(!sl_wire_ids_next(&walk, &id));
}

/* Where the second half names another kind. When both name the same, protobuf-c forgets the first half, while the
 * reference implementation merges the two, as we do. */
TEST(the_last_kind_of_a_persistent_request_counts_as_for_protobuf_c)
{
    const ProtobufCMessageDescriptor *const kind =
        &event_store__client__persistent_subscriptions__read_req__descriptor;

    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_persistent_request ours, first;

        test_arena_init(&arena);
        const sl_str half = packed(random_message(kind, &d, &arena), &arena);
        const sl_str bytes = joined(half, packed(random_message(kind, &d, &arena), &arena), &arena);
        EventStore__Client__PersistentSubscriptions__ReadReq *const theirs = theirs_from(kind, bytes);
        EXPECT_OK(sl_persistent_request_decode(half, &first, NULL));
        EXPECT_OK(sl_persistent_request_decode(bytes, &ours, NULL));
        EXPECT_EQ((int)ours.kind, (int)theirs->content_case);
        if (ours.kind == SL_PERSISTENT_REQUEST_NACK && first.kind != ours.kind) {
            EXPECT(same_ids(&ours.ids, theirs->nack->ids, theirs->nack->n_ids));
            EXPECT(ours.action == (int32_t)theirs->nack->action &&
                   same_text(ours.reason, theirs->nack->reason) && ours.delay_ms == theirs->nack->delay_ms);
        }
        if (ours.kind == SL_PERSISTENT_REQUEST_OPTIONS && first.kind != ours.kind) {
            EXPECT(same_text(ours.options.group, theirs->options->group_name));
            EXPECT(same_ids(&ours.options.resume, theirs->options->resume, theirs->options->n_resume));
        }
        protobuf_c_message_free_unpacked(&theirs->base, NULL);
        sl_arena_done(&arena);
    }
}

static void expect_merged(const sl_batch_append_request *ours,
                          const EventStore__Client__Streams__BatchAppendReq *theirs)
{
    EXPECT(ours->is_final == theirs->is_final && ours->event_count == theirs->n_proposed_messages);
    EXPECT_EQ(ours->has_options, theirs->options != NULL);
    if (!ours->has_options)
        return;
    EXPECT(same_stream(ours->options.stream, theirs->options->stream_identifier));
    EXPECT_EQ(ours->options.expected.kind == SL_WIRE_REVISION_NUMBER,
              theirs->options->expected_stream_position_case == 2);
    EXPECT_EQ(ours->options.deadline_kind == SL_BATCH_DEADLINE_AT,
              theirs->options->deadline_option_case == 6);
}

/* protobuf-c refuses some embedded messages in two parts: where neither part sets a oneof. */
TEST(joined_batches_are_merged_as_protobuf_c_merges_them)
{
    const ProtobufCMessageDescriptor *const kind =
        &event_store__client__streams__batch_append_req__descriptor;
    unsigned compared = 0;

    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_batch_append_request ours;

        test_arena_init(&arena);
        const sl_str bytes = joined(packed(random_message(kind, &d, &arena), &arena),
                                    packed(random_message(kind, &d, &arena), &arena), &arena);
        EXPECT_OK(sl_batch_append_request_decode(bytes, &ours, NULL));
        EventStore__Client__Streams__BatchAppendReq *const theirs =
            event_store__client__streams__batch_append_req__unpack(NULL, bytes.bytes,
                                                                   (const uint8_t *)bytes.data);
        if (theirs != NULL) {
            expect_merged(&ours, theirs);
            compared++;
            protobuf_c_message_free_unpacked(&theirs->base, NULL);
        }
        sl_arena_done(&arena);
    }
    EXPECT(compared > RANDOM_RUNS / 2);
}

TEST(the_parts_of_an_event_that_comes_in_two_are_merged)
{
    uint8_t memory[128];
    sl_read_response response;

    /* stream "a", revision 1, type "x"; then revision 2, commit 9, type "y", data "d"; between them another field. */
    EXPECT_OK(sl_read_response_decode(
        from_hex("0a 14 0a 12  12 03 1a 01 61  18 01  32 09 0a 04 74 79 70 65 12 01 78"
                 "78 05"
                 "0a 16 0a 14  18 02  28 09  32 09 0a 04 74 79 70 65 12 01 79  42 01 64 20 03",
                 memory),
        &response, NULL));
    EXPECT(response.kind == SL_READ_RESPONSE_EVENT && response.event.has_event && !response.event.has_link);
    EXPECT(sl_str_equal(response.event.event.stream, SL_STR("a")));
    EXPECT(response.event.event.revision == 2 && response.event.event.commit_position == 9);
    EXPECT(response.event.event.prepare_position == 3);
    EXPECT(sl_str_equal(response.event.event.type, SL_STR("y")) &&
           sl_str_equal(response.event.event.data, SL_STR("d")));
}

TEST(a_member_of_a_oneof_that_another_follows_is_forgotten)
{
    uint8_t memory[64];
    sl_append_request request;
    sl_read_response response;
    sl_append_response answer;

    /* options with a stream, then an event, then options without one. */
    EXPECT_OK(sl_append_request_decode(from_hex("0a 05 0a 03 1a 01 61  12 00  0a 02 22 00", memory), &request,
                                       NULL));
    EXPECT(request.kind == SL_APPEND_REQUEST_OPTIONS && request.options.stream.bytes == 0);
    EXPECT(request.options.expected.kind == SL_WIRE_REVISION_ANY);
    /* a revision, then no_stream; an event position, then none. */
    EXPECT_OK(sl_append_request_decode(from_hex("0a 04 10 07 1a 00", memory), &request, NULL));
    EXPECT(request.options.expected.kind == SL_WIRE_REVISION_NO_STREAM &&
           request.options.expected.number == 0);
    EXPECT_OK(sl_read_response_decode(from_hex("0a 04 18 07 22 00", memory), &response, NULL));
    EXPECT(response.event.position_kind == SL_WIRE_POSITION_NONE && response.event.commit_position == 0);
    /* an event, then a confirmation, then an event. */
    EXPECT_OK(sl_read_response_decode(from_hex("0a 04 0a 02 18 07  12 03 0a 01 73  0a 02 18 08", memory),
                                      &response, NULL));
    EXPECT(response.kind == SL_READ_RESPONSE_EVENT && !response.event.has_event);
    EXPECT(response.event.position_kind == SL_WIRE_POSITION_GIVEN && response.event.commit_position == 8);
    /* success, then wrong revision, then success. */
    EXPECT_OK(
        sl_append_response_decode(from_hex("0a 02 08 07  12 02 30 01  0a 02 22 00", memory), &answer, NULL));
    EXPECT(answer.kind == SL_APPEND_RESPONSE_SUCCESS && answer.current.kind == SL_WIRE_REVISION_UNSET);
    EXPECT(answer.position.kind == SL_WIRE_POSITION_NONE);
}

TEST(other_oneofs_forget_as_well)
{
    uint8_t memory[64];
    sl_append_response answer;
    sl_batch_append_request batch;
    sl_persistent_request request;
    sl_persistent_response response;

    /* A position in two parts is merged. */
    EXPECT_OK(sl_append_response_decode(from_hex("0a 08 1a 02 08 07 1a 02 10 08", memory), &answer, NULL));
    EXPECT(answer.position.commit == 7 && answer.position.prepare == 8);
    /* A wrong revision, success, another wrong revision. */
    EXPECT_OK(
        sl_append_response_decode(from_hex("12 04 30 01 40 02  0a 00  12 02 30 03", memory), &answer, NULL));
    EXPECT(answer.current.number == 3 && answer.expected.kind == SL_WIRE_REVISION_UNSET);
    /* A deadline as a time, then as a duration. */
    EXPECT_OK(
        sl_batch_append_request_decode(from_hex("12 08 32 02 08 07 3a 02 10 08", memory), &batch, NULL));
    EXPECT(batch.options.deadline_kind == SL_BATCH_DEADLINE_AFTER);
    EXPECT(batch.options.deadline.seconds == 0 && batch.options.deadline.nanos == 8);
    /* A stream, then all of them. */
    EXPECT_OK(sl_persistent_request_decode(from_hex("0a 07 0a 03 1a 01 61 2a 00", memory), &request, NULL));
    EXPECT(request.options.source == SL_WIRE_SOURCE_ALL && request.options.stream.bytes == 0);
    /* A retry count, then none. */
    EXPECT_OK(sl_persistent_response_decode(from_hex("0a 04 28 05 32 00", memory), &response, NULL));
    EXPECT(response.event.retry_kind == SL_WIRE_RETRY_NONE && response.event.retry_count == 0);
}

TEST(the_halves_of_an_id_that_comes_in_two_parts_are_merged)
{
    uint8_t memory[64];
    sl_wire_id id;

    EXPECT_OK(sl_wire_id_decode(from_hex("0a 02 08 01  0a 02 10 02", memory), &id, NULL));
    EXPECT(id.form == SL_WIRE_ID_STRUCTURED && id.uuid.bytes[7] == 1 && id.uuid.bytes[15] == 2);
    EXPECT_OK(sl_wire_id_decode(from_hex("0a 02 08 01  12 20 31313131313131313131313131313131 "
                                         "31313131313131313131313131313131  0a 02 10 02",
                                         memory),
                                &id, NULL));
    EXPECT(id.form == SL_WIRE_ID_STRUCTURED && id.uuid.bytes[7] == 0 && id.uuid.bytes[15] == 2);
}

/* Unknown fields of every wire type, spread over a message and put into each of its embedded messages. */
static const char unknown_fields[] = "\xf8\x3f\x05"                             /* 1023: a number */
                                     "\xf9\x3f\x01\x02\x03\x04\x05\x06\x07\x08" /* 64 bits */
                                     "\xfd\x3f\x01\x02\x03\x04"                 /* 32 bits */
                                     "\xfa\x3f\x04\x08\x80\x80\x80"; /* bytes that are no message */

static void expect_the_same_with_unknown_fields(dice *d, sl_arena *arena)
{
    const EventStore__Client__Streams__ReadResp *const theirs =
        random_message(&event_store__client__streams__read_resp__descriptor, d, arena);
    const sl_str bytes = packed(theirs, arena);
    const sl_str extra = { unknown_fields, sizeof unknown_fields - 1 };
    sl_read_response plain, ours;
    uint8_t a[8192], b[8192];

    EXPECT_OK(sl_read_response_decode(bytes, &plain, NULL));
    EXPECT_OK(sl_read_response_decode(joined(joined(extra, bytes, arena), extra, arena), &ours, NULL));
    EXPECT_EQ(sl_read_response_size(&plain), sl_read_response_size(&ours));
    assert_true(sl_read_response_size(&plain) <= sizeof a);
    sl_read_response_encode(&plain, a, sl_read_response_size(&plain));
    sl_read_response_encode(&ours, b, sl_read_response_size(&ours));
    EXPECT_MEM(a, b, sl_read_response_size(&plain));
}

TEST(unknown_fields_of_every_wire_type_are_stepped_over)
{
    dice d = dice_from(1);

    for (int run = 0; run < 500; run++) {
        sl_arena arena;

        test_arena_init(&arena);
        expect_the_same_with_unknown_fields(&d, &arena);
        sl_arena_done(&arena);
    }
}

TEST(what_a_list_does_not_belong_to_is_not_walked)
{
    uint8_t memory[64];
    sl_persistent_request request;
    sl_wire_walk walk;
    sl_wire_id id;

    /* An ack with one id, then a field that we do not know and that looks like another ack. */
    EXPECT_OK(sl_persistent_request_decode(
        from_hex("12 06 12 04 0a 02 08 01  fa 3f 06 12 04 0a 02 08 02", memory), &request, NULL));
    walk = sl_wire_items_walk(&request.ids.items);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.uuid.bytes[7] == 1);
    EXPECT(!sl_wire_ids_next(&walk, &id));
    /* What is field 4 of a nack is unknown in an ack, and its wire type does not matter. */
    EXPECT_OK(sl_persistent_request_decode(from_hex("12 02 20 01", memory), &request, NULL));
    EXPECT_ERR(sl_persistent_request_decode(from_hex("1a 02 20 01", memory), &request, NULL), SL_ERR_INVALID);
}

TEST(unknown_fields_inside_of_embedded_messages_are_stepped_over)
{
    uint8_t memory[64];
    sl_append_request request;

    /* inside the options, the stream identifier and the marker of a oneof. */
    EXPECT_OK(sl_append_request_decode(from_hex("0a 0e  0a 05 08 01 1a 01 61  22 02 78 01  f8 3f 05", memory),
                                       &request, NULL));
    EXPECT(sl_str_equal(request.options.stream, SL_STR("a")) &&
           request.options.expected.kind == SL_WIRE_REVISION_ANY);
    EXPECT_ERR(sl_append_request_decode(from_hex("0a 04 22 02 7b 7c", memory), &request, NULL),
               SL_ERR_INVALID);
}

TEST(a_wrong_wire_type_is_refused_in_every_known_field)
{
    /* Each field of the message as a fixed number of 32 bits, which no field of ours is. */
    static const uint8_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

    for (size_t i = 0; i < sizeof numbers; i++) {
        const char message[] = { (char)(numbers[i] << 3 | 5), 0, 0, 0, 0 };
        const char inner[] = { 0x0a, 7, 0x0a, 5, (char)(numbers[i] << 3 | 5), 0, 0, 0, 0 };
        sl_read_response response;

        EXPECT_ERR(sl_read_response_decode((sl_str){ message, sizeof message }, &response, NULL),
                   SL_ERR_INVALID);
        EXPECT_ERR(sl_read_response_decode((sl_str){ inner, sizeof inner }, &response, NULL),
                   numbers[i] == 9 ? SL_OK : SL_ERR_INVALID);
    }
}

TEST(every_beginning_of_a_message_is_read_or_refused_as_protobuf_c_does)
{
    for (uint64_t run = 0; run < 60; run++) {
        dice d = dice_from(run);
        sl_arena arena;

        test_arena_init(&arena);
        const sl_str bytes =
            packed(random_message(&event_store__client__streams__read_resp__descriptor, &d, &arena), &arena);
        for (size_t length = 0; length <= bytes.bytes; length++) {
            char *const copy = exact_copy((sl_str){ bytes.data, length });
            sl_read_response ours;
            ProtobufCMessage *const theirs = protobuf_c_message_unpack(
                &event_store__client__streams__read_resp__descriptor, NULL, length, (const uint8_t *)copy);

            EXPECT_RUN((sl_read_response_decode((sl_str){ copy, length }, &ours, NULL) == SL_OK) ==
                           (theirs != NULL),
                       run, length);
            if (theirs != NULL)
                protobuf_c_message_free_unpacked(theirs, NULL);
            free(copy);
        }
        sl_arena_done(&arena);
    }
}
