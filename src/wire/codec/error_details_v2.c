/* wire/codec/error_details_v2.c — details of version 2, and the status that carries them in a trailer. */
#include "wire/error_details.h"

#include "wire/codec/google_rpc.pb-c.h"
#include "wire/codec/kurrent_rpc.pb-c.h"
#include "wire/codec/streams_v2_errors.pb-c.h"
#include "wire/codec/unpack.h"

#define URL           "type.googleapis.com/"
#define STREAMS(name) SL_STR(URL "kurrentdb.protocol.v2.streams.errors." name)

enum {
    NS_PER_SECOND = 1000000000
};

static sl_err finish(sl_packer *packer, const ProtobufCMessage *message, sl_str type,
                     sl_wire_detail *ret_detail)
{
    sl_str value;
    const sl_err err = sl_pack(packer, message, &value);

    if (err == SL_OK)
        *ret_detail = (sl_wire_detail){ .type = type, .value = value };
    return err;
}

static int32_t saturated(uint32_t bytes)
{
    return bytes > INT32_MAX ? INT32_MAX : (int32_t)bytes;
}

/* --- streams --- */

/* The five have the same single field, so the message of one serves all. */
sl_err sl_v2_detail_stream(sl_v2_stream_error error, sl_str stream, sl_arena *arena,
                           sl_wire_detail *ret_detail)
{
    static const sl_str types[] = {
        [SL_V2_STREAM_NOT_FOUND] =
            SL_STR_INIT(URL "kurrentdb.protocol.v2.streams.errors.StreamNotFoundErrorDetails"),
        [SL_V2_STREAM_ALREADY_EXISTS] =
            SL_STR_INIT(URL "kurrentdb.protocol.v2.streams.errors.StreamAlreadyExistsErrorDetails"),
        [SL_V2_STREAM_DELETED] =
            SL_STR_INIT(URL "kurrentdb.protocol.v2.streams.errors.StreamDeletedErrorDetails"),
        [SL_V2_STREAM_TOMBSTONED] =
            SL_STR_INIT(URL "kurrentdb.protocol.v2.streams.errors.StreamTombstonedErrorDetails"),
        [SL_V2_STREAM_ALREADY_IN_SESSION] =
            SL_STR_INIT(URL "kurrentdb.protocol.v2.streams.errors.StreamAlreadyInAppendSessionErrorDetails"),
    };
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__Errors__StreamNotFoundErrorDetails packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__STREAM_NOT_FOUND_ERROR_DETAILS__INIT;

    packed.stream = sl_packer_text(&packer, stream);
    return finish(&packer, &packed.base, types[error], ret_detail);
}

sl_err sl_v2_detail_revision_conflict(const sl_v2_conflict *conflict, sl_arena *arena,
                                      sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__Errors__StreamRevisionConflictErrorDetails packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__STREAM_REVISION_CONFLICT_ERROR_DETAILS__INIT;

    packed.stream = sl_packer_text(&packer, conflict->stream);
    packed.has_expected_revision = packed.has_actual_revision = true;
    packed.expected_revision = conflict->expected;
    packed.actual_revision = conflict->actual;
    return finish(&packer, &packed.base, STREAMS("StreamRevisionConflictErrorDetails"), ret_detail);
}

typedef Kurrentdb__Protocol__V2__Streams__Errors__ConsistencyViolation violation;
typedef Kurrentdb__Protocol__V2__Streams__Errors__ConsistencyViolation__StreamStateViolation state_violation;

static void to_violation(sl_packer *packer, const sl_v2_conflict *from, violation *into,
                         state_violation *state)
{
    kurrentdb__protocol__v2__streams__errors__consistency_violation__init(into);
    kurrentdb__protocol__v2__streams__errors__consistency_violation__stream_state_violation__init(state);
    into->has_check_index = true;
    into->check_index = saturated(from->check_index);
    into->type_case = KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__CONSISTENCY_VIOLATION__TYPE_STREAM_STATE;
    into->stream_state = state;
    state->stream = sl_packer_text(packer, from->stream);
    state->has_expected_state = state->has_actual_state = true;
    state->expected_state = from->expected;
    state->actual_state = from->actual;
}

sl_err sl_v2_detail_violations(const sl_v2_conflict *conflicts, size_t conflict_count, sl_arena *arena,
                               sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__Errors__AppendConsistencyViolationErrorDetails packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__APPEND_CONSISTENCY_VIOLATION_ERROR_DETAILS__INIT;
    violation **const list = sl_packer_take(&packer, conflict_count * sizeof *list);
    violation *const items = sl_packer_take(&packer, conflict_count * sizeof *items);
    state_violation *const states = sl_packer_take(&packer, conflict_count * sizeof *states);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < conflict_count; i++) {
        to_violation(&packer, &conflicts[i], &items[i], &states[i]);
        list[i] = &items[i];
    }
    packed.n_violations = conflict_count;
    packed.violations = list;
    return finish(&packer, &packed.base, STREAMS("AppendConsistencyViolationErrorDetails"), ret_detail);
}

sl_err sl_v2_detail_record_too_large(sl_str stream, sl_str record_id, sl_detail_sizes sizes, sl_arena *arena,
                                     sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__Errors__AppendRecordSizeExceededErrorDetails packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__APPEND_RECORD_SIZE_EXCEEDED_ERROR_DETAILS__INIT;

    packed.stream = sl_packer_text(&packer, stream);
    packed.record_id = sl_packer_text(&packer, record_id);
    packed.has_size = packed.has_max_size = true;
    packed.size = saturated(sizes.bytes);
    packed.max_size = saturated(sizes.max_bytes);
    return finish(&packer, &packed.base, STREAMS("AppendRecordSizeExceededErrorDetails"), ret_detail);
}

sl_err sl_v2_detail_transaction_too_large(sl_detail_sizes sizes, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Kurrentdb__Protocol__V2__Streams__Errors__AppendTransactionSizeExceededErrorDetails packed =
        KURRENTDB__PROTOCOL__V2__STREAMS__ERRORS__APPEND_TRANSACTION_SIZE_EXCEEDED_ERROR_DETAILS__INIT;

    packed.has_size = packed.has_max_size = true;
    packed.size = saturated(sizes.bytes);
    packed.max_size = saturated(sizes.max_bytes);
    return finish(&packer, &packed.base, STREAMS("AppendTransactionSizeExceededErrorDetails"), ret_detail);
}

/* --- any service --- */

sl_err sl_v2_detail_access_denied(sl_str operation, sl_str username, sl_arena *arena,
                                  sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Kurrent__Rpc__AccessDeniedErrorDetails packed = KURRENT__RPC__ACCESS_DENIED_ERROR_DETAILS__INIT;

    packed.operation = sl_packer_text(&packer, operation);
    packed.username = sl_packer_text(&packer, username);
    return finish(&packer, &packed.base, SL_STR(URL "kurrent.rpc.AccessDeniedErrorDetails"), ret_detail);
}

sl_err sl_v2_detail_bad_request(sl_str field, sl_str description, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Google__Rpc__BadRequest packed = GOOGLE__RPC__BAD_REQUEST__INIT;
    Google__Rpc__BadRequest__FieldViolation one = GOOGLE__RPC__BAD_REQUEST__FIELD_VIOLATION__INIT;
    Google__Rpc__BadRequest__FieldViolation *list[] = { &one };

    one.field = sl_packer_text(&packer, field);
    one.description = sl_packer_text(&packer, description);
    packed.n_field_violations = 1;
    packed.field_violations = list;
    return finish(&packer, &packed.base, SL_STR(URL "google.rpc.BadRequest"), ret_detail);
}

sl_err sl_v2_detail_retry_after(uint64_t delay_ns, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Google__Rpc__RetryInfo packed = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;

    delay.seconds = (int64_t)(delay_ns / NS_PER_SECOND);
    delay.nanos = (int32_t)(delay_ns % NS_PER_SECOND);
    packed.retry_delay = &delay;
    return finish(&packer, &packed.base, SL_STR(URL "google.rpc.RetryInfo"), ret_detail);
}

/* --- the status --- */

static sl_err encode_reason(const sl_v2_status *status, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    Google__Rpc__ErrorInfo packed = GOOGLE__RPC__ERROR_INFO__INIT;

    packed.reason = sl_packer_text(&packer, status->reason);
    packed.domain = sl_packer_text(&packer, status->domain);
    return finish(&packer, &packed.base, SL_STR(URL "google.rpc.ErrorInfo"), ret_detail);
}

static void to_any(sl_packer *packer, const sl_wire_detail *from, Google__Protobuf__Any *into)
{
    google__protobuf__any__init(into);
    into->type_url = sl_packer_text(packer, from->type);
    into->value = sl_packer_bytes(from->value);
}

sl_err sl_v2_status_encode(const sl_v2_status *status, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Google__Rpc__Status packed = GOOGLE__RPC__STATUS__INIT;
    Google__Protobuf__Any any[2];
    Google__Protobuf__Any *details[] = { &any[0], &any[1] };
    sl_wire_detail reason;
    const sl_err err = encode_reason(status, arena, &reason);

    if (err != SL_OK)
        return err;
    to_any(&packer, &reason, &any[0]);
    if (status->detail != NULL)
        to_any(&packer, status->detail, &any[1]);
    packed.code = (Google__Rpc__Code)status->code;
    packed.message = sl_packer_text(&packer, status->message);
    packed.n_details = status->detail == NULL ? 1 : 2;
    packed.details = details;
    return sl_pack(&packer, &packed.base, ret_message);
}
