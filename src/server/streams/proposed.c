/* server/streams/proposed.c — the rules for one event, and words for those that the store itself holds. */
#include "server/streams/proposed.h"

#include "base/utf8.h"

bool sl_expected_from_wire(sl_wire_revision revision, sl_expected *ret_expected)
{
    switch (revision.kind) {
    case SL_WIRE_REVISION_UNSET: return false;
    case SL_WIRE_REVISION_ANY: *ret_expected = (sl_expected){ .kind = SL_EXPECT_ANY }; return true;
    case SL_WIRE_REVISION_NO_STREAM:
        *ret_expected = (sl_expected){ .kind = SL_EXPECT_NO_STREAM };
        return true;
    case SL_WIRE_REVISION_STREAM_EXISTS:
        *ret_expected = (sl_expected){ .kind = SL_EXPECT_STREAM_EXISTS };
        return true;
    case SL_WIRE_REVISION_NUMBER: break;
    }
    if (revision.number == UINT64_MAX)
        *ret_expected = (sl_expected){ .kind = SL_EXPECT_NO_STREAM };
    else
        *ret_expected = (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = revision.number };
    return revision.number == UINT64_MAX || revision.number <= SL_REVISION_MAX;
}

sl_wire_revision sl_revision_to_wire(uint64_t revision)
{
    if (revision == SL_REVISION_NONE)
        return (sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM };
    return (sl_wire_revision){ .kind = SL_WIRE_REVISION_NUMBER, .number = revision };
}

/* --- sizes --- */

/* As UTF-16 counts: every character but those that take four bytes here is one unit, and those are two. */
static uint64_t utf16_units(sl_str text)
{
    uint64_t units = 0;

    for (size_t i = 0; i < text.bytes; i++) {
        const uint8_t byte = (uint8_t)text.data[i];

        units += (byte & 0xc0) == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1;
    }
    return units;
}

uint64_t sl_event_size(const sl_event_in *event)
{
    return event->data.bytes + event->metadata.bytes + 2 * utf16_units(event->type);
}

/* --- one event --- */

static bool refuse(sl_refusal *ret_refusal, sl_refusal refusal)
{
    *ret_refusal = refusal;
    return false;
}

static bool refuse_id(const sl_wire_proposed *proposed, sl_refusal *ret_refusal)
{
    static const char *const sentences[] = {
        [SL_WIRE_ID_ABSENT] = "An event has no id. Each event needs a UUID.",
        [SL_WIRE_ID_STRUCTURED] = "The id of an event is all zeros. Each event needs a UUID of its own.",
        [SL_WIRE_ID_TEXT] = "The id of an event is all zeros. Each event needs a UUID of its own.",
        [SL_WIRE_ID_MALFORMED] = "The id of an event is no UUID.",
    };

    return refuse(ret_refusal,
                  (sl_refusal){ .kind = SL_REFUSAL_INVALID, .text = sentences[proposed->id.form] });
}

static bool refuse_missing(const char *key, sl_refusal *ret_refusal)
{
    return refuse(ret_refusal, (sl_refusal){ .kind = SL_REFUSAL_MISSING_METADATA, .text = key });
}

static bool refuse_size(const sl_event_in *event, uint64_t size, sl_refusal *ret_refusal)
{
    return refuse(ret_refusal,
                  (sl_refusal){ .kind = SL_REFUSAL_EVENT_TOO_LARGE,
                                .event_id = event->id,
                                .event_bytes = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size });
}

bool sl_proposed_take(const sl_wire_proposed *proposed, const sl_server_settings *settings,
                      sl_event_in *ret_event, sl_refusal *ret_refusal)
{
    uint64_t size;

    if (proposed->type.bytes == 0)
        return refuse_missing("type", ret_refusal);
    if (proposed->content_type.data == NULL)
        return refuse_missing("content-type", ret_refusal);
    if (sl_uuid_is_zero(proposed->id.uuid))
        return refuse_id(proposed, ret_refusal);
    *ret_event = (sl_event_in){ .id = proposed->id.uuid,
                                .type = proposed->type,
                                .data = proposed->data,
                                .metadata = proposed->custom_metadata,
                                .is_json = sl_str_equal(proposed->content_type, SL_STR("application/json")) };
    size = sl_event_size(ret_event);
    return size <= settings->event_bytes_max || refuse_size(ret_event, size, ret_refusal);
}

/* --- what the store does not take --- */

static const char *text_complaint(sl_str text, size_t bytes_max, const char *const sentences[3])
{
    if (text.bytes > bytes_max)
        return sentences[0];
    if (sl_str_find(text, '\0') < text.bytes)
        return sentences[1];
    return sl_utf8_valid(text) ? NULL : sentences[2];
}

#define NO_SUCH_METADATA "There is no such metadata stream: $$ stands before the name of a stream, once."

const char *sl_stream_name_complaint(sl_str name)
{
    static const char *const sentences[] = {
        "The name of the stream is longer than 1022 bytes.",
        "The name of the stream has a zero byte.",
        "The name of the stream is no UTF-8.",
    };
    const bool is_metadata = sl_str_starts_with(name, SL_STR("$$"));

    if (name.bytes == 0)
        return "The name of the stream is empty.";
    if (sl_str_equal(name, SL_STR("$$")))
        return NO_SUCH_METADATA;
    return text_complaint(name, is_metadata ? SL_STREAM_NAME_BYTES_MAX : SL_STREAM_NAME_BYTES_MAX - 2,
                          sentences);
}

const char *sl_stream_complaint(sl_str name)
{
    if (sl_str_equal(name, SL_STR("$all")))
        return "$all is what is read from all streams together: it cannot be written to.";
    if (sl_str_starts_with(name, SL_STR("$$$$")))
        return NO_SUCH_METADATA;
    return sl_stream_name_complaint(name);
}

static_assert(SL_STREAM_NAME_BYTES_MAX == 1024 && SL_EVENT_TYPE_BYTES_MAX == 1024 &&
                  SL_METADATA_BYTES_MAX == 64 * 1024,
              "the sentences name these limits");

const char *sl_type_complaint(sl_str type)
{
    static const char *const sentences[] = {
        "The type of an event is longer than 1024 bytes.",
        "The type of an event has a zero byte.",
        "The type of an event is no UTF-8.",
    };

    return type.bytes == 0 ? "The type of an event is empty."
                           : text_complaint(type, SL_EVENT_TYPE_BYTES_MAX, sentences);
}

static const char *events_complaint(const sl_op *append)
{
    const bool is_metadata = sl_str_starts_with(append->append.stream, SL_STR("$$"));
    const char *complaint = NULL;

    for (uint32_t i = 0; i < append->append.event_count && complaint == NULL; i++) {
        complaint = sl_type_complaint(append->append.events[i].type);
        if (complaint == NULL && is_metadata && append->append.events[i].data.bytes > SL_METADATA_BYTES_MAX)
            complaint = "The metadata of a stream is larger than 65536 bytes.";
    }
    return complaint;
}

sl_refusal sl_append_refusal(const sl_op *append, sl_err err)
{
    const char *complaint = NULL;

    if (err != SL_ERR_INVALID && err != SL_ERR_TOO_LARGE)
        return (sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = err };
    complaint = sl_stream_complaint(append->append.stream);
    if (complaint == NULL)
        complaint = events_complaint(append);
    if (complaint != NULL)
        return (sl_refusal){ .kind = SL_REFUSAL_INVALID, .text = complaint };
    if (err == SL_ERR_TOO_LARGE)
        return (sl_refusal){ .kind = SL_REFUSAL_APPEND_TOO_LARGE };
    return (sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = err };
}
