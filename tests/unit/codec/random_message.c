/* tests/unit/codec/random_message.c — see the header. */
#include "codec/random_message.h"

#include "wire/codec/shared.pb-c.h"

enum {
    LIST_MAX = 3,
    BYTES_MAX = 300,
    DEPTH_MAX = 30,
    ARENA_BYTES = 4 << 20,
};

void test_arena_init(sl_arena *arena)
{
    sl_arena_init(arena, &sl_alloc_default,
                  (sl_arena_sizes){ .chunk_bytes = 65536, .limit_bytes = ARENA_BYTES });
}

uint64_t random_u64(dice *d)
{
    const size_t bits = dice_pick(d, 65);
    const uint64_t top = bits == 64 ? 0 : UINT64_C(1) << bits;

    switch (dice_pick(d, 3)) {
    case 0: return top - 1;
    case 1: return top;
    default: return bits == 0 ? 0 : dice_u64(d) >> (64 - bits);
    }
}

/* ASCII mostly, with characters of two, three and four bytes in between. */
static char *random_text(dice *d, sl_arena *arena)
{
    static const char *const pieces[] = {
        "a", "Z", "0", "-", "$", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x98", "order"
    };
    char buffer[64];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t left = dice_pick(d, 20); left > 0; left--)
        sl_text_add(&text, pieces[dice_pick(d, sizeof pieces / sizeof pieces[0])]);
    return sl_arena_copy_str(arena, sl_text_str(&text));
}

static ProtobufCBinaryData random_bytes(dice *d, sl_arena *arena)
{
    const size_t length = dice_pick(d, 2) == 0 ? dice_pick(d, 4) : dice_pick(d, BYTES_MAX);
    uint8_t *const data = sl_arena_alloc(arena, length);

    for (size_t i = 0; i < length; i++)
        data[i] = (uint8_t)dice_u64(d);
    return (ProtobufCBinaryData){ .len = length, .data = data };
}

static void fill_scalar(const ProtobufCFieldDescriptor *field, dice *d, sl_arena *arena, void *into)
{
    const uint64_t number = random_u64(d);

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: *(char **)into = random_text(d, arena); break;
    case PROTOBUF_C_TYPE_BYTES: *(ProtobufCBinaryData *)into = random_bytes(d, arena); break;
    case PROTOBUF_C_TYPE_MESSAGE: *(void **)into = random_message(field->descriptor, d, arena); break;
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)into = (protobuf_c_boolean)(number & 1); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: memcpy(into, &number, 8); break;
    case PROTOBUF_C_TYPE_DOUBLE: *(double *)into = (double)number; break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM: memcpy(into, &number, 4); break;
    }
}

static size_t scalar_size(ProtobufCType type)
{
    const bool small =
        type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_ENUM;

    if (type == PROTOBUF_C_TYPE_BYTES)
        return sizeof(ProtobufCBinaryData);
    return small ? 4 : 8;
}

/* Map entries begin with two texts in every message that has them. */
typedef struct map_entry {
    ProtobufCMessage base;
    char *key, *value;
} map_entry;

static void *metadata_entry(const ProtobufCFieldDescriptor *field, sl_arena *arena, const char *key,
                            sl_str value)
{
    map_entry *const entry = random_message(field->descriptor, &(dice){ 1 }, arena);

    entry->key = sl_arena_copy_str(arena, sl_str_from(key));
    entry->value = sl_arena_copy_str(arena, value);
    return entry;
}

static sl_str never_empty(dice *d, sl_arena *arena)
{
    const sl_str text = sl_str_from(random_text(d, arena));

    return text.bytes > 0 ? text : SL_STR("x");
}

/* type, created, content-type: `created` always when an event comes out, never when it goes in. */
static size_t fill_metadata(const ProtobufCFieldDescriptor *field, bool comes_out, dice *d, sl_arena *arena,
                            void **list)
{
    size_t count = 0;
    char ticks[24];
    sl_text text;

    sl_text_init(&text, ticks, sizeof ticks);
    sl_text_add_u64(&text, random_u64(d));
    if (dice_pick(d, 8) > 0)
        list[count++] = metadata_entry(field, arena, "type", never_empty(d, arena));
    if (comes_out)
        list[count++] = metadata_entry(field, arena, "created", sl_text_str(&text));
    if (dice_pick(d, 8) > 0)
        list[count++] = metadata_entry(field, arena, "content-type", never_empty(d, arena));
    return count;
}

static void fill_list(const ProtobufCFieldDescriptor *field, bool comes_out, dice *d, sl_arena *arena,
                      char *message)
{
    const size_t item_size = scalar_size(field->type);
    char *const items = sl_arena_alloc_zero(arena, LIST_MAX * item_size);
    size_t count = dice_pick(d, LIST_MAX + 1);

    if (strcmp(field->name, "metadata") == 0)
        count = fill_metadata(field, comes_out, d, arena, (void **)(void *)items);
    else
        for (size_t i = 0; i < count; i++)
            fill_scalar(field, d, arena, items + i * item_size);
    memcpy(message + field->offset, &items, sizeof items);
    memcpy(message + field->quantifier_offset, &count, sizeof count);
}

/* How many members of the same oneof stand before this one. */
static size_t members_before(const ProtobufCMessageDescriptor *kind, unsigned index)
{
    size_t count = 0;

    for (unsigned i = 0; i < index; i++)
        count += (kind->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                 kind->fields[i].quantifier_offset == kind->fields[index].quantifier_offset;
    return count;
}

/* "Not set" and each member are equally likely: the second of two things that could be replaces the first in one case of
 * two, the third in one of three, and so on. */
static void fill_oneofs(const ProtobufCMessageDescriptor *kind, dice *d, sl_arena *arena, char *message)
{
    for (unsigned i = 0; i < kind->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &kind->fields[i];
        const int number = (int)field->id;

        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 ||
            dice_pick(d, members_before(kind, i) + 2) > 0)
            continue;
        memset(message + field->offset, 0, scalar_size(field->type));
        fill_scalar(field, d, arena, message + field->offset);
        memcpy(message + field->quantifier_offset, &number, sizeof number);
    }
}

static void fill_single(const ProtobufCFieldDescriptor *field, dice *d, sl_arena *arena, char *message)
{
    const protobuf_c_boolean given = 1;
    const bool has_flag = field->quantifier_offset != 0 && field->label == PROTOBUF_C_LABEL_OPTIONAL;

    if (dice_pick(d, 4) == 0 && field->descriptor != &event_store__client__stream_identifier__descriptor)
        return;
    fill_scalar(field, d, arena, message + field->offset);
    if (has_flag && field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
        memcpy(message + field->quantifier_offset, &given, sizeof given);
}

static void make_a_uuid(EventStore__Client__UUID *id, dice *d, sl_arena *arena)
{
    char text[SL_UUID_TEXT_BYTES + 1];

    if (id->value_case == EVENT_STORE__CLIENT__UUID__VALUE__NOT_SET) {
        id->value_case = EVENT_STORE__CLIENT__UUID__VALUE_STRUCTURED;
        id->structured = random_message(&event_store__client__uuid__structured__descriptor, d, arena);
    }
    if (id->value_case != EVENT_STORE__CLIENT__UUID__VALUE_STRING)
        return;
    sl_uuid_format(sl_uuid_from_halves((int64_t)dice_u64(d), (int64_t)dice_u64(d)), text);
    id->string = sl_arena_copy_str(arena, sl_str_from(text));
}

static bool is_entry(const ProtobufCMessageDescriptor *kind)
{
    const size_t length = strlen(kind->short_name);

    return length > 5 && strcmp(kind->short_name + length - 5, "Entry") == 0;
}

/* An empty side of an entry is written by some encoders and left out by others. */
static void make_an_entry(map_entry *entry, dice *d, sl_arena *arena)
{
    entry->key = sl_arena_copy_str(arena, never_empty(d, arena));
    if (entry->base.descriptor->fields[1].type == PROTOBUF_C_TYPE_STRING)
        entry->value = sl_arena_copy_str(arena, never_empty(d, arena));
}

static void fill(const ProtobufCMessageDescriptor *kind, dice *d, sl_arena *arena, char *message)
{
    const bool comes_out = strcmp(kind->short_name, "RecordedEvent") == 0;

    for (unsigned i = 0; i < kind->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &kind->fields[i];

        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            fill_list(field, comes_out, d, arena, message);
        else
            fill_single(field, d, arena, message);
    }
    fill_oneofs(kind, d, arena, message);
}

void *random_message(const ProtobufCMessageDescriptor *kind, dice *d, sl_arena *arena)
{
    static unsigned depth; /* JSON values may hold each other without end */
    char *const message = sl_arena_alloc(arena, kind->sizeof_message);

    assert_non_null(message);
    protobuf_c_message_init(kind, message);
    depth++;
    if (depth <= DEPTH_MAX)
        fill(kind, d, arena, message);
    depth--;
    if (is_entry(kind))
        make_an_entry((map_entry *)(void *)message, d, arena);
    if (kind == &event_store__client__uuid__descriptor)
        make_a_uuid((EventStore__Client__UUID *)(void *)message, d, arena);
    return message;
}

sl_str packed(const void *message, sl_arena *arena)
{
    const size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *const data = sl_arena_alloc(arena, bytes);

    assert_int_equal(protobuf_c_message_pack(message, data), bytes);
    return (sl_str){ (const char *)data, bytes };
}

char *exact_copy(sl_str bytes)
{
    char *const copy = malloc(bytes.bytes == 0 ? 1 : bytes.bytes);

    assert_non_null(copy);
    if (bytes.bytes > 0)
        memcpy(copy, bytes.data, bytes.bytes);
    return copy;
}

bool same_text(sl_str ours, const char *theirs)
{
    return sl_str_equal(ours, sl_str_from(theirs));
}

bool same_bytes(sl_str ours, ProtobufCBinaryData theirs)
{
    return sl_str_equal(ours, (sl_str){ (const char *)theirs.data, theirs.len });
}

const char *metadata_value(ProtobufCMessage *const *entries, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        const map_entry *const entry = (const map_entry *)(const void *)entries[i];

        if (strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}
