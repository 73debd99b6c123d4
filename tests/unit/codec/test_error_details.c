/* Rules of wire/error_details.h. */
#include "codec/compare.h"

#include "wire/codec/google_rpc.pb-c.h"
#include "wire/error_details.h"

#define V1 "type.googleapis.com/event_store.client."
#define V2 "type.googleapis.com/kurrentdb.protocol.v2.streams.errors."

static sl_arena arena;

static void expect_detail(sl_wire_detail detail, const char *type, const char *hex)
{
    uint8_t memory[64];

    EXPECT(same_text(detail.type, type));
    EXPECT(sl_str_equal(detail.value, from_hex(hex, memory)));
}

TEST(details_of_version_1_have_their_type_and_fields)
{
    const sl_wire_revision five = { SL_WIRE_REVISION_NUMBER, 5 },
                           none = { .kind = SL_WIRE_REVISION_NO_STREAM };
    const sl_wire_revision any = { .kind = SL_WIRE_REVISION_ANY },
                           exists = { .kind = SL_WIRE_REVISION_STREAM_EXISTS };
    sl_wire_detail detail;

    test_arena_init(&arena);
    EXPECT_OK(sl_detail_wrong_revision(five, five, &arena, &detail));
    expect_detail(detail, V1 "WrongExpectedVersion", "08 05 18 05");
    EXPECT_OK(sl_detail_wrong_revision(none, none, &arena, &detail));
    expect_detail(detail, V1 "WrongExpectedVersion", "12 00 32 00");
    EXPECT_OK(sl_detail_wrong_revision(none, any, &arena, &detail));
    expect_detail(detail, V1 "WrongExpectedVersion", "12 00 22 00");
    EXPECT_OK(sl_detail_wrong_revision(none, exists, &arena, &detail));
    expect_detail(detail, V1 "WrongExpectedVersion", "12 00 2a 00");
    EXPECT_OK(sl_detail_stream_deleted(SL_STR("s"), &arena, &detail));
    expect_detail(detail, V1 "StreamDeleted", "0a 03 1a 01 73");
    EXPECT_OK(sl_detail_append_too_large(300, &arena, &detail));
    expect_detail(detail, V1 "MaximumAppendSizeExceeded", "08 ac 02");
    EXPECT_OK(sl_detail_event_too_large(SL_STR("i"), (sl_detail_sizes){ 2, 1 }, &arena, &detail));
    expect_detail(detail, V1 "MaximumAppendEventSizeExceeded", "0a 01 69 10 02 18 01");
    EXPECT_OK(sl_detail_bad_request(SL_STR("m"), &arena, &detail));
    expect_detail(detail, V1 "BadRequest", "0a 01 6d");
    expect_detail(sl_detail_access_denied(), V1 "AccessDenied", "");
    expect_detail(sl_detail_timeout(), V1 "Timeout", "");
    expect_detail(sl_detail_unknown(), V1 "Unknown", "");
    expect_detail(sl_detail_empty(), "type.googleapis.com/google.protobuf.Empty", "");
    sl_arena_done(&arena);
}

TEST(details_of_version_2_have_their_type_and_fields)
{
    const sl_v2_conflict conflict = { .check_index = 0, .stream = SL_STR("s"), .expected = -1, .actual = 0 };
    static const char *const names[] = { V2 "StreamNotFoundErrorDetails",
                                         V2 "StreamAlreadyExistsErrorDetails", V2 "StreamDeletedErrorDetails",
                                         V2 "StreamTombstonedErrorDetails",
                                         V2 "StreamAlreadyInAppendSessionErrorDetails" };
    sl_wire_detail detail;

    test_arena_init(&arena);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT_OK(sl_v2_detail_stream((sl_v2_stream_error)i, SL_STR("s"), &arena, &detail));
        expect_detail(detail, names[i], "0a 01 73");
    }
    EXPECT_OK(sl_v2_detail_revision_conflict(&conflict, &arena, &detail));
    expect_detail(detail, V2 "StreamRevisionConflictErrorDetails", "0a 01 73 10 01 18 00");
    EXPECT_OK(sl_v2_detail_violations(&conflict, 1, &arena, &detail));
    expect_detail(detail, V2 "AppendConsistencyViolationErrorDetails",
                  "0a 0b 08 00 12 07 0a 01 73 10 01 18 00");
    EXPECT_OK(sl_v2_detail_record_too_large(SL_STR("s"), SL_STR("i"), (sl_detail_sizes){ 2, UINT32_MAX },
                                            &arena, &detail));
    expect_detail(detail, V2 "AppendRecordSizeExceededErrorDetails",
                  "0a 01 73 12 01 69 18 02 20 ff ff ff ff 07");
    EXPECT_OK(sl_v2_detail_transaction_too_large((sl_detail_sizes){ 2, 1 }, &arena, &detail));
    expect_detail(detail, V2 "AppendTransactionSizeExceededErrorDetails", "08 02 10 01");
    EXPECT_OK(sl_v2_detail_access_denied(SL_STR("o"), SL_STR("u"), &arena, &detail));
    expect_detail(detail, "type.googleapis.com/kurrent.rpc.AccessDeniedErrorDetails", "0a 01 6f 12 01 75");
    EXPECT_OK(sl_v2_detail_bad_request(SL_STR("f"), SL_STR("d"), &arena, &detail));
    expect_detail(detail, "type.googleapis.com/google.rpc.BadRequest", "0a 06 0a 01 66 12 01 64");
    EXPECT_OK(sl_v2_detail_retry_after(UINT64_C(1500000000), &arena, &detail));
    expect_detail(detail, "type.googleapis.com/google.rpc.RetryInfo", "0a 08 08 01 10 80 ca b5 ee 01");
    sl_arena_done(&arena);
}

TEST(a_status_of_version_2_has_the_reason_first_and_the_detail_last)
{
    const sl_wire_detail detail = { .type = SL_STR("type"), .value = SL_STR("value") };
    const sl_v2_status statuses[] = {
        { .code = 9,
          .message = SL_STR("m"),
          .reason = SL_STR("R"),
          .domain = SL_STR("d"),
          .detail = &detail },
        { .code = 9, .message = SL_STR("m"), .reason = SL_STR("R"), .domain = SL_STR("d") },
    };

    for (size_t i = 0; i < 2; i++) {
        sl_str bytes;
        Google__Rpc__Status *status;

        test_arena_init(&arena);
        EXPECT_OK(sl_v2_status_encode(&statuses[i], &arena, &bytes));
        status = google__rpc__status__unpack(NULL, bytes.bytes, (const uint8_t *)bytes.data);
        assert_non_null(status);
        EXPECT(status->code == GOOGLE__RPC__CODE__FAILED_PRECONDITION && strcmp(status->message, "m") == 0);
        EXPECT_EQ(status->n_details, 2 - i);
        EXPECT_STR(status->details[0]->type_url, "type.googleapis.com/google.rpc.ErrorInfo");
        EXPECT(same_bytes(SL_STR("\x0a\x01R\x12\x01"
                                 "d"),
                          status->details[0]->value));
        if (i == 0)
            EXPECT(strcmp(status->details[1]->type_url, "type") == 0 &&
                   same_bytes(SL_STR("value"), status->details[1]->value));
        google__rpc__status__free_unpacked(status, NULL);
        sl_arena_done(&arena);
    }
}
