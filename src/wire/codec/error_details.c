/* wire/codec/error_details.c — details of version 1, as they go into a BatchAppendResp. */
#include "wire/error_details.h"

#include "wire/codec/shared.pb-c.h"
#include "wire/codec/unpack.h"

#define TYPE(name) SL_STR("type.googleapis.com/event_store.client." name)

#define CURRENT(name)  EVENT_STORE__CLIENT__WRONG_EXPECTED_VERSION__CURRENT_STREAM_REVISION_OPTION_##name
#define EXPECTED(name) EVENT_STORE__CLIENT__WRONG_EXPECTED_VERSION__EXPECTED_STREAM_POSITION_OPTION_##name

static sl_err finish(sl_packer *packer, const ProtobufCMessage *message, sl_str type,
                     sl_wire_detail *ret_detail)
{
    sl_str value;
    const sl_err err = sl_pack(packer, message, &value);

    if (err == SL_OK)
        *ret_detail = (sl_wire_detail){ .type = type, .value = value };
    return err;
}

sl_wire_detail sl_detail_access_denied(void)
{
    return (sl_wire_detail){ .type = TYPE("AccessDenied") };
}

sl_wire_detail sl_detail_timeout(void)
{
    return (sl_wire_detail){ .type = TYPE("Timeout") };
}

sl_wire_detail sl_detail_unknown(void)
{
    return (sl_wire_detail){ .type = TYPE("Unknown") };
}

sl_wire_detail sl_detail_empty(void)
{
    return (sl_wire_detail){ .type = SL_STR("type.googleapis.com/google.protobuf.Empty") };
}

static void to_current(sl_wire_revision current, EventStore__Client__WrongExpectedVersion *into,
                       Google__Protobuf__Empty *marker)
{
    if (current.kind == SL_WIRE_REVISION_NUMBER) {
        into->current_stream_revision_option_case = CURRENT(CURRENT_STREAM_REVISION);
        into->current_stream_revision = current.number;
    } else if (current.kind == SL_WIRE_REVISION_NO_STREAM) {
        into->current_stream_revision_option_case = CURRENT(CURRENT_NO_STREAM);
        into->current_no_stream = marker;
    }
}

static void to_expected(sl_wire_revision expected, EventStore__Client__WrongExpectedVersion *into,
                        Google__Protobuf__Empty *marker)
{
    switch (expected.kind) {
    case SL_WIRE_REVISION_UNSET: return;
    case SL_WIRE_REVISION_NUMBER:
        into->expected_stream_position_option_case = EXPECTED(EXPECTED_STREAM_POSITION);
        into->expected_stream_position = expected.number;
        return;
    case SL_WIRE_REVISION_NO_STREAM:
        into->expected_stream_position_option_case = EXPECTED(EXPECTED_NO_STREAM);
        break;
    case SL_WIRE_REVISION_ANY: into->expected_stream_position_option_case = EXPECTED(EXPECTED_ANY); break;
    case SL_WIRE_REVISION_STREAM_EXISTS:
        into->expected_stream_position_option_case = EXPECTED(EXPECTED_STREAM_EXISTS);
        break;
    }
    into->expected_any = marker; /* the three markers share the place */
}

sl_err sl_detail_wrong_revision(sl_wire_revision current, sl_wire_revision expected, sl_arena *arena,
                                sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__WrongExpectedVersion packed = EVENT_STORE__CLIENT__WRONG_EXPECTED_VERSION__INIT;
    Google__Protobuf__Empty marker = GOOGLE__PROTOBUF__EMPTY__INIT;

    to_current(current, &packed, &marker);
    to_expected(expected, &packed, &marker);
    return finish(&packer, &packed.base, TYPE("WrongExpectedVersion"), ret_detail);
}

sl_err sl_detail_stream_deleted(sl_str stream, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__StreamDeleted packed = EVENT_STORE__CLIENT__STREAM_DELETED__INIT;
    EventStore__Client__StreamIdentifier identifier = EVENT_STORE__CLIENT__STREAM_IDENTIFIER__INIT;

    identifier.stream_name = sl_packer_bytes(stream);
    packed.stream_identifier = &identifier;
    return finish(&packer, &packed.base, TYPE("StreamDeleted"), ret_detail);
}

sl_err sl_detail_append_too_large(uint32_t max_bytes, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__MaximumAppendSizeExceeded packed =
        EVENT_STORE__CLIENT__MAXIMUM_APPEND_SIZE_EXCEEDED__INIT;

    packed.maxappendsize = max_bytes;
    return finish(&packer, &packed.base, TYPE("MaximumAppendSizeExceeded"), ret_detail);
}

sl_err sl_detail_event_too_large(sl_str event_id, sl_detail_sizes sizes, sl_arena *arena,
                                 sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__MaximumAppendEventSizeExceeded packed =
        EVENT_STORE__CLIENT__MAXIMUM_APPEND_EVENT_SIZE_EXCEEDED__INIT;

    packed.eventid = sl_packer_text(&packer, event_id);
    packed.proposedeventsize = sizes.bytes;
    packed.maxappendeventsize = sizes.max_bytes;
    return finish(&packer, &packed.base, TYPE("MaximumAppendEventSizeExceeded"), ret_detail);
}

sl_err sl_detail_bad_request(sl_str message, sl_arena *arena, sl_wire_detail *ret_detail)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__BadRequest packed = EVENT_STORE__CLIENT__BAD_REQUEST__INIT;

    packed.message = sl_packer_text(&packer, message);
    return finish(&packer, &packed.base, TYPE("BadRequest"), ret_detail);
}

/* --- read by a client --- */

sl_err sl_detail_wrong_revision_decode(sl_str value, sl_arena *arena, sl_wire_revision *ret_current,
                                       const char **ret_reason)
{
    EventStore__Client__WrongExpectedVersion *unpacked;
    const sl_err err = sl_unpack(&event_store__client__wrong_expected_version__descriptor, value, arena,
                                 &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_current = (sl_wire_revision){ .kind = SL_WIRE_REVISION_UNSET };
    if (unpacked->current_stream_revision_option_case == CURRENT(CURRENT_STREAM_REVISION))
        *ret_current = (sl_wire_revision){ SL_WIRE_REVISION_NUMBER, unpacked->current_stream_revision };
    else if (unpacked->current_stream_revision_option_case == CURRENT(CURRENT_NO_STREAM))
        ret_current->kind = SL_WIRE_REVISION_NO_STREAM;
    return SL_OK;
}

sl_err sl_detail_bad_request_decode(sl_str value, sl_arena *arena, sl_str *ret_message,
                                    const char **ret_reason)
{
    EventStore__Client__BadRequest *unpacked;
    const sl_err err =
        sl_unpack(&event_store__client__bad_request__descriptor, value, arena, &unpacked, ret_reason);

    if (err == SL_OK)
        *ret_message = sl_unpacked_text(unpacked->message);
    return err;
}
