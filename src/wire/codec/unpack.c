/* wire/codec/unpack.c — the guard, and the bridge from protobuf-c's allocator to ours. */
#include "wire/codec/unpack.h"

#include "base/utf8.h"
#include "wire/proto_bytes.h"

/* --- the guard --- */

static sl_proto_type wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return SL_PROTO_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return SL_PROTO_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return SL_PROTO_BYTES;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM: break;
    }
    return SL_PROTO_VARINT;
}

static const char *text_complaint(sl_str text)
{
    if (!sl_utf8_valid(text))
        return "a text is not UTF-8";
    if (sl_str_find(text, '\0') != text.bytes)
        return "a text holds a zero byte";
    return NULL;
}

static const char *guard(const ProtobufCMessageDescriptor *kind, sl_str message, unsigned depth);

static const char *field_complaint(const ProtobufCFieldDescriptor *known, const sl_proto_field *field,
                                   unsigned depth)
{
    if (known == NULL)
        return NULL;
    if (field->type != wire_type_of(known->type))
        return "a known field has the wrong wire type";
    if (known->type == PROTOBUF_C_TYPE_STRING)
        return text_complaint(field->bytes);
    if (known->type == PROTOBUF_C_TYPE_MESSAGE)
        return guard(known->descriptor, field->bytes, depth + 1);
    return NULL;
}

/* NULL, or why the message is refused. Its own depth is limited by the same number that it enforces. */
static const char *guard(const ProtobufCMessageDescriptor *kind, sl_str message, unsigned depth)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field field;

    if (depth > SL_UNPACK_DEPTH_MAX)
        return "messages are nested too deep";
    while (sl_proto_next(&reader, &field)) {
        const char *const complaint =
            field_complaint(protobuf_c_message_descriptor_get_field(kind, field.number), &field, depth);
        if (complaint != NULL)
            return complaint;
    }
    return reader.reason;
}

/* --- the arena as protobuf-c's allocator --- */

typedef struct source {
    sl_arena *arena;
    sl_err err; /* of the first piece that could not be had */
} source;

static void *take(void *ctx, size_t bytes)
{
    source *const from = ctx;
    void *const piece = sl_arena_alloc(from->arena, bytes);
    const size_t left = from->arena->sizes.limit_bytes - from->arena->given_bytes;

    if (piece == NULL && from->err == SL_OK)
        from->err = bytes + _Alignof(max_align_t) > left ? SL_ERR_TOO_LARGE : SL_ERR_NOMEM;
    return piece;
}

/* The arena gives everything back at once. */
static void keep(void *ctx, void *piece)
{
    (void)ctx;
    (void)piece;
}

sl_err sl_unpack(const ProtobufCMessageDescriptor *kind, sl_str message, sl_arena *arena, void *ret_unpacked,
                 const char **ret_reason)
{
    source from = { .arena = arena };
    ProtobufCAllocator allocator = { .alloc = take, .free = keep, .allocator_data = &from };
    const char *reason = guard(kind, message, 0);
    ProtobufCMessage *unpacked = NULL;

    if (reason == NULL)
        unpacked = protobuf_c_message_unpack(kind, &allocator, message.bytes, (const uint8_t *)message.data);
    if (unpacked == NULL && from.err != SL_OK)
        return from.err;
    if (unpacked == NULL) {
        if (ret_reason != NULL)
            *ret_reason = reason == NULL ? "the message is malformed" : reason;
        return SL_ERR_INVALID;
    }
    memcpy(ret_unpacked, &unpacked, sizeof unpacked);
    return SL_OK;
}

bool sl_unpacked_texts(sl_arena *arena, char *const *texts, size_t count, const sl_str **ret_slices)
{
    sl_str *const slices = count == 0 ? NULL : sl_arena_alloc(arena, count * sizeof *slices);

    if (count > 0 && slices == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        slices[i] = sl_str_from(texts[i]);
    *ret_slices = slices;
    return true;
}

/* --- packing --- */

void *sl_packer_take(sl_packer *packer, size_t bytes)
{
    void *const piece = packer->failed ? NULL : sl_arena_alloc_zero(packer->arena, bytes);

    packer->failed |= piece == NULL;
    return piece;
}

static char *empty_text(void)
{
    static char empty[1]; /* never written: protobuf-c only reads what it packs */

    return empty;
}

char *sl_packer_text(sl_packer *packer, sl_str text)
{
    char *const copy = packer->failed ? NULL : sl_arena_copy_str(packer->arena, text);

    packer->failed |= copy == NULL;
    return copy == NULL ? empty_text() : copy;
}

char **sl_packer_texts(sl_packer *packer, const sl_str *texts, size_t count)
{
    char **const copies = sl_packer_take(packer, count * sizeof *copies);

    for (size_t i = 0; copies != NULL && i < count; i++)
        copies[i] = sl_packer_text(packer, texts[i]);
    return copies;
}

ProtobufCBinaryData sl_packer_bytes(sl_str bytes)
{
    /* Through an integer: protobuf-c has no type for bytes that it only reads. */
    return (ProtobufCBinaryData){ .len = bytes.bytes, .data = (uint8_t *)(uintptr_t)bytes.data };
}

sl_err sl_pack(sl_packer *packer, const ProtobufCMessage *message, sl_str *ret_bytes)
{
    size_t bytes;
    uint8_t *packed;

    if (packer->failed) /* the message may have holes */
        return SL_ERR_NOMEM;
    bytes = protobuf_c_message_get_packed_size(message);
    packed = sl_packer_take(packer, bytes);
    if (packed == NULL)
        return SL_ERR_NOMEM;
    protobuf_c_message_pack(message, packed);
    *ret_bytes = (sl_str){ (const char *)packed, bytes };
    return SL_OK;
}
