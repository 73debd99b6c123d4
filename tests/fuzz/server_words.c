/* tests/fuzz/server_words.c — see server_words.h.
 *
 * One piece of the input in each declaration or statement: C does not say in which order the parts of an initialiser are worked
 * out, and an input has to mean the same with every compiler. */
#include "server_words.h"

#include "server_group_words.h"
#include "server_passwords.h"

#include "base/cleanup.h"
#include "server/services.h"
#include "wire/multi_append.h"
#include "wire/server_control.h"
#include "wire/streams_codec.h"
#include "wire/streams_control.h"

#include <assert.h>

enum {
    LARGE_BYTES = 20 * 1000, /* some of them fill every window */
    MEDIUM_BYTES = 3 * 1000, /* some of them are too much for one append, where limits are small */
    EVENTS_MAX = 4,
    PATH_BYTES_MAX = 128
};

#define PICK(s, table) ((table)[script_next(s) % SL_COUNT_OF(table)])

static void *take(sl_arena *arena, size_t bytes)
{
    void *const memory = sl_arena_alloc_zero(arena, bytes);

    assert(memory != NULL);
    return memory;
}

static sl_str filled(sl_arena *arena, size_t bytes)
{
    char *const data = take(arena, bytes);

    memset(data, 'x', bytes);
    return (sl_str){ data, bytes };
}

/* --- names --- */

static const sl_str streams[] = {
    SL_STR_INIT("a"),         SL_STR_INIT("b"),         SL_STR_INIT("a"),    SL_STR_INIT("b"),
    SL_STR_INIT("c"),         SL_STR_INIT("$$a"),       SL_STR_INIT("$$b"),  SL_STR_INIT("$users"),
    SL_STR_INIT("$user-bob"), SL_STR_INIT("$settings"), SL_STR_INIT("$all"), SL_STR_INIT(""),
    SL_STR_INIT("$$"),        SL_STR_INIT("$$$$a"),     SL_STR_INIT("\xff"), SL_STR_INIT("a\0b"),
};

static const sl_str types[] = {
    SL_STR_INIT("t"),
    SL_STR_INIT("t"),
    SL_STR_INIT("$>"),
    SL_STR_INIT("$metadata"),
    SL_STR_INIT("$User"),
    SL_STR_INIT("u"),
    SL_STR_INIT("$UserCreated"),
    SL_STR_INIT("$UserUpdated"),
    SL_STR_INIT(""),
    SL_STR_INIT("$@"),
    SL_STR_INIT("$PasswordChanged"),
    SL_STR_INIT("\xc3"),
    SL_STR_INIT("$UserDeleted"),
};

static const sl_str contents[] = {
    SL_STR_INIT("{}"),
    SL_STR_INIT(""),
    SL_STR_INIT("{\"n\":1}"),
    SL_STR_INIT("0@a"),
    SL_STR_INIT("1@b"),
    SL_STR_INIT("99999999999999999999@a"),
    SL_STR_INIT("0@$user-root"),
    SL_STR_INIT("{\"$maxCount\":2}"),
    SL_STR_INIT("{\"$tb\":1}"),
    SL_STR_INIT("{\"$maxAge\":1}"),
    SL_STR_INIT("{\"$acl\":{\"$r\":\"bob\",\"$w\":[\"$ops\",\"readers\"],\"$d\":\"$all\"}}"),
    SL_STR_INIT("{\"$userStreamAcl\":{\"$r\":[\"$all\"],\"$w\":\"bob\"},\"$systemStreamAcl\":{}}"),
    SL_STR_INIT("{\"$acl\":{\"$mr\":[],\"$mw\":null,\"$r\":7}}"),
    SL_STR_INIT("bob"),
    SL_STR_INIT("eve"),
    SL_STR_INIT(
        "{\"loginName\":\"bob\",\"fullName\":\"B\",\"groups\":[\"$admins\"],\"hash\":\"$argon2id$v=19$m="
        "65536,t=2,p=1$0\",\"disabled\":true}"),
    SL_STR_INIT("[[[[[[[[[[[[[[[[[["),
    SL_STR_INIT("\xff\x00\x80"),
};

static const sl_str logins[] = {
    SL_STR_INIT("bob"), SL_STR_INIT("root"), SL_STR_INIT("eve"), SL_STR_INIT("zoe"),
    SL_STR_INIT(""),    SL_STR_INIT("$x"),   SL_STR_INIT("a:b"), SL_STR_INIT("\n"),
};

static const sl_str passwords[] = {
    SL_STR_INIT("bob-secret"), SL_STR_INIT("root-secret"),
    SL_STR_INIT("eve-secret"), SL_STR_INIT("short"),
    SL_STR_INIT(""),           SL_STR_INIT(FUZZ_PASSWORD_OF_NO_MEMORY),
};

static const sl_str groups[] = {
    SL_STR_INIT("$admins"),
    SL_STR_INIT("$ops"),
    SL_STR_INIT("readers"),
    SL_STR_INIT(""),
};

static sl_str content(script *s, sl_arena *arena)
{
    const uint8_t choice = script_next(s);

    if (choice >= 0xf8)
        return filled(arena, LARGE_BYTES);
    return choice >= 0xf0 ? filled(arena, MEDIUM_BYTES) : contents[choice % SL_COUNT_OF(contents)];
}

static sl_wire_revision revision(script *s)
{
    const uint8_t choice = script_next(s);
    const sl_wire_revision_kind kinds[] = { SL_WIRE_REVISION_ANY, SL_WIRE_REVISION_NUMBER,
                                            SL_WIRE_REVISION_NO_STREAM, SL_WIRE_REVISION_STREAM_EXISTS };

    if (choice == 255)
        return (sl_wire_revision){ .kind = SL_WIRE_REVISION_UNSET };
    return (sl_wire_revision){ .kind = kinds[choice % 4],
                               .number = choice == 253 ? UINT64_MAX : (uint64_t)choice >> 2 };
}

/* Few ids, so that some appends are repetitions. */
static sl_wire_id event_id(script *s)
{
    const uint8_t choice = script_next(s);

    return (sl_wire_id){ .uuid = sl_uuid_from_halves(choice == 255 ? 0 : 5, choice == 255 ? 0 : choice),
                         .form = choice % 2 == 0 ? SL_WIRE_ID_STRUCTURED : SL_WIRE_ID_TEXT };
}

static sl_wire_proposed event(script *s, sl_arena *arena)
{
    const uint8_t flags = script_next(s);
    sl_wire_proposed made = { .content_type = SL_STR("application/json") };

    made.id = event_id(s);
    made.type = PICK(s, types);
    made.data = content(s, arena);
    if ((flags & 1) != 0)
        made.content_type = SL_STR("application/octet-stream");
    if ((flags & 2) != 0)
        made.custom_metadata = content(s, arena);
    return made;
}

/* --- version 1 of Streams --- */

static sl_append_options append_options(script *s)
{
    const sl_str stream = PICK(s, streams);

    return (sl_append_options){ stream, revision(s) };
}

static sl_str append_message(script *s, sl_arena *arena, uint32_t message_index)
{
    sl_append_request request = { .kind = SL_APPEND_REQUEST_OPTIONS };
    uint8_t *message;
    size_t bytes;

    if (message_index == 0)
        request.options = append_options(s);
    else
        request = (sl_append_request){ .kind = SL_APPEND_REQUEST_EVENT, .event = event(s, arena) };
    bytes = sl_append_request_size(&request);
    message = take(arena, bytes);
    sl_append_request_encode(&request, message, bytes);
    return (sl_str){ (const char *)message, bytes };
}

static sl_batch_options batch_options(script *s)
{
    static const sl_batch_deadline_kind kinds[] = { SL_BATCH_DEADLINE_NONE, SL_BATCH_DEADLINE_AT,
                                                    SL_BATCH_DEADLINE_AFTER, SL_BATCH_DEADLINE_NONE };
    const uint8_t flags = script_next(s);
    const sl_append_options first = append_options(s);

    return (sl_batch_options){ .stream = first.stream,
                               .expected = first.expected,
                               .deadline_kind = kinds[flags & 3],
                               .deadline = { .given = true, .seconds = flags >> 2, .nanos = 1 } };
}

static sl_str batch_message(script *s, sl_arena *arena)
{
    const uint8_t flags = script_next(s);
    const sl_batch_options options = batch_options(s);
    sl_wire_proposed events[EVENTS_MAX];
    const size_t event_count = flags >> 2 & 3;

    for (size_t i = 0; i < event_count; i++)
        events[i] = event(s, arena);
    const sl_batch_append_draft draft = { .correlation = { .uuid = sl_uuid_from_halves(9, flags >> 4),
                                                           .form = SL_WIRE_ID_STRUCTURED },
                                          .options = (flags & 1) != 0 ? NULL : &options,
                                          .events = events,
                                          .event_count = event_count,
                                          .is_final = (flags & 2) == 0 };
    const size_t bytes = sl_batch_append_request_size(&draft);
    uint8_t *const message = take(arena, bytes);

    sl_batch_append_request_encode(&draft, message, bytes);
    return (sl_str){ (const char *)message, bytes };
}

static sl_wire_filter filter(script *s)
{
    static const sl_str prefixes[] = { SL_STR_INIT("a"), SL_STR_INIT("$"), SL_STR_INIT(""),
                                       SL_STR_INIT("t") };
    static const sl_str expressions[] = { SL_STR_INIT("^a"), SL_STR_INIT("^[^$].*"), SL_STR_INIT("("),
                                          SL_STR_INIT("(a*)*b") };
    const uint8_t flags = script_next(s), window = script_next(s);

    return (sl_wire_filter){ .kind = (flags & 1) != 0 ? SL_WIRE_FILTER_GIVEN : SL_WIRE_FILTER_NONE,
                             .on = (flags & 2) != 0 ? SL_WIRE_FILTER_ON_STREAM : SL_WIRE_FILTER_ON_TYPE,
                             .regex = (flags & 4) != 0 ? expressions[flags >> 6] : SL_STR(""),
                             .prefixes = prefixes,
                             .prefix_count = flags >> 4 & 3,
                             .window = (window & 1) != 0 ? SL_WIRE_WINDOW_MAX : SL_WIRE_WINDOW_COUNT,
                             .window_max = window >> 3,
                             .checkpoint_multiplier = window >> 1 & 3 };
}

static sl_str read_message(script *s, sl_arena *arena)
{
    static const sl_wire_start starts[] = { SL_WIRE_START_BEGIN, SL_WIRE_START_END, SL_WIRE_START_GIVEN,
                                            SL_WIRE_START_UNSET };
    const uint8_t flags = script_next(s), start = script_next(s), count = script_next(s);
    const uint64_t number = start == 255 ? UINT64_MAX : start >> 2;
    const sl_str stream = PICK(s, streams);
    const sl_read_request request = {
        .source = (flags & 1) != 0 ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
        .stream = stream,
        .start = starts[start & 3],
        .revision = number,
        .position = { .commit = number, .prepare = number },
        .backwards = (flags & 2) != 0,
        .resolve_links = (flags & 4) != 0,
        .extent = (flags & 8) != 0 ? SL_READ_EXTENT_SUBSCRIPTION : SL_READ_EXTENT_COUNT,
        .count = count == 255 ? UINT64_MAX : count,
        .filter = (flags & 16) != 0 ? filter(s) : (sl_wire_filter){ .kind = SL_WIRE_FILTER_NONE },
        .has_id_option = true,
        .id_form = (flags & 32) != 0 ? SL_WIRE_ID_TEXT : SL_WIRE_ID_STRUCTURED,
        .compatibility = flags >> 6 & 1,
    };
    sl_str message = { NULL, 0 };
    const sl_err err = sl_read_request_encode(&request, arena, &message);

    assert(err == SL_OK);
    return message;
}

static sl_str delete_message(script *s, sl_arena *arena)
{
    const sl_append_options wanted = append_options(s);
    const sl_delete_request request = { .stream = wanted.stream, .expected = wanted.expected };
    sl_str message = { NULL, 0 };
    const sl_err err = sl_delete_request_encode(&request, arena, &message);

    assert(err == SL_OK);
    return message;
}

/* --- version 2: our own code has no encoder, because no client of ours sends it --- */

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static int64_t expected_state(script *s)
{
    static const int64_t states[] = {
        SL_STATE_ANY, SL_STATE_NO_STREAM, SL_STATE_EXISTS, 0, 1, -3, INT64_MAX
    };

    return PICK(s, states);
}

/* Backwards, as writers of proto_bytes.h do: what is put first stands last. */
static void put_property(sl_proto_writer *writer, script *s)
{
    const size_t before = writer->used;
    const uint8_t kind = script_next(s);
    size_t inner;

    if (kind % 4 == 0)
        sl_proto_put_bytes_given(writer, 3, SL_STR("text"));
    else if (kind % 4 == 1)
        sl_proto_put_given(writer, 4, 1);
    else if (kind % 4 == 2)
        sl_proto_put_given(writer, 1, 0);
    else
        sl_proto_put_empty(writer, 5);
    inner = writer->used - before;
    sl_proto_put_varint(writer, inner);
    sl_proto_put_tag(writer, 2, SL_PROTO_BYTES);
    sl_proto_put_bytes(writer, 1, kind >> 2 & 1 ? SL_STR("p") : SL_STR("$schema.name"));
    sl_proto_wrap(writer, 2, before);
}

static void put_record(sl_proto_writer *writer, script *s, sl_arena *arena, uint32_t number,
                       bool names_stream)
{
    const size_t before = writer->used;
    const uint8_t flags = script_next(s);
    char id[SL_UUID_TEXT_BYTES + 1];
    size_t schema;

    if (names_stream)
        sl_proto_put_bytes(writer, 5, PICK(s, streams));
    sl_proto_put_bytes(writer, 4, content(s, arena));
    schema = writer->used;
    sl_proto_put_bytes(writer, 2, PICK(s, types));
    sl_proto_put_u64(writer, 1, flags & 7);
    sl_proto_wrap(writer, 3, schema);
    if ((flags & 8) != 0)
        put_property(writer, s);
    sl_uuid_format(event_id(s).uuid, id);
    if ((flags & 16) == 0)
        sl_proto_put_bytes(writer, 1, sl_str_from(id));
    sl_proto_wrap(writer, number, before);
}

static sl_str written(const sl_proto_writer *writer)
{
    return (sl_str){ (const char *)writer->memory + writer->capacity - writer->used, writer->used };
}

static sl_proto_writer room_for_records(sl_arena *arena)
{
    const size_t bytes = EVENTS_MAX * (LARGE_BYTES + 1024);

    return (sl_proto_writer){ .memory = take(arena, bytes), .capacity = bytes };
}

static sl_str session_message(script *s, sl_arena *arena)
{
    sl_proto_writer writer = room_for_records(arena);
    const uint8_t flags = script_next(s);

    if ((flags & 4) == 0)
        sl_proto_put_given(&writer, 3, zigzag(expected_state(s)));
    for (unsigned i = 0; i < (flags & 3u); i++)
        put_record(&writer, s, arena, 2, false);
    sl_proto_put_bytes(&writer, 1, PICK(s, streams));
    return written(&writer);
}

static sl_str records_message(script *s, sl_arena *arena)
{
    sl_proto_writer writer = room_for_records(arena);
    const uint8_t flags = script_next(s);

    for (unsigned i = 0; i < (flags >> 2 & 3u); i++) {
        const size_t before = writer.used;

        sl_proto_put_given(&writer, 2, zigzag(expected_state(s)));
        sl_proto_put_bytes(&writer, 1, PICK(s, streams));
        sl_proto_wrap(&writer, 1, before);
        sl_proto_wrap(&writer, 2, before);
    }
    for (unsigned i = 0; i < (flags & 3u); i++)
        put_record(&writer, s, arena, 1, true);
    return written(&writer);
}

/* --- the other services --- */

static sl_str user_message(script *s, sl_arena *arena, sl_user_call call)
{
    const uint8_t flags = script_next(s);
    const sl_str login_name = PICK(s, logins), password = PICK(s, passwords), changed = PICK(s, passwords);
    const sl_user_request request = { .login_name = login_name,
                                      .password = password,
                                      .new_password = changed,
                                      .full_name = (flags & 4) != 0 ? SL_STR("Bob B.") : SL_STR(""),
                                      .groups = groups + (flags >> 4 & 1),
                                      .group_count = flags & 3 };
    sl_str message = { NULL, 0 };
    const sl_err err = sl_user_request_encode(call, &request, arena, &message);

    assert(err == SL_OK);
    return message;
}

/* Statistics every so many milliseconds; a scavenge with so many threads; a priority: numbers all of them. */
static sl_str number_message(script *s, sl_arena *arena)
{
    sl_proto_writer writer = { .memory = take(arena, 64), .capacity = 64 };
    const uint8_t flags = script_next(s);

    sl_proto_put_u64(&writer, 4, (uint64_t)flags << (flags & 31));
    sl_proto_put_u64(&writer, 1, flags & 1);
    if ((flags & 2) != 0)
        sl_proto_wrap(&writer, 1, 0);
    return written(&writer);
}

typedef struct user_row {
    const sl_method *method;
    sl_user_call call;
} user_row;

static const user_row user_rows[] = {
    { &sl_method_users_create, SL_USER_CALL_CREATE },
    { &sl_method_users_update, SL_USER_CALL_UPDATE },
    { &sl_method_users_delete, SL_USER_CALL_NAME_ONLY },
    { &sl_method_users_disable, SL_USER_CALL_NAME_ONLY },
    { &sl_method_users_enable, SL_USER_CALL_NAME_ONLY },
    { &sl_method_users_details, SL_USER_CALL_NAME_ONLY },
    { &sl_method_users_change_password, SL_USER_CALL_CHANGE_PASSWORD },
    { &sl_method_users_reset_password, SL_USER_CALL_RESET_PASSWORD },
};

static sl_str other_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index)
{
    const sl_wire_filter chosen = method == &sl_method_persistent_create ? filter(s) : (sl_wire_filter){ 0 };
    sl_str message;

    if (group_words_message(s, arena, method, message_index, &chosen, &message))
        return message;
    for (size_t i = 0; i < SL_COUNT_OF(user_rows); i++)
        if (method == user_rows[i].method)
            return user_message(s, arena, user_rows[i].call);
    return number_message(s, arena);
}

static sl_str good_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index)
{
    if (method == &sl_method_streams_append)
        return append_message(s, arena, message_index);
    if (method == &sl_method_streams_batch_append)
        return batch_message(s, arena);
    if (method == &sl_method_streams_read)
        return read_message(s, arena);
    if (method == &sl_method_streams_delete || method == &sl_method_streams_tombstone)
        return delete_message(s, arena);
    if (method == &sl_method_streams_v2_append_session)
        return session_message(s, arena);
    if (method == &sl_method_streams_v2_append_records)
        return records_message(s, arena);
    return other_message(s, arena, method, message_index);
}

/* Changes some bytes, or cuts the message. */
static sl_str spoilt(script *s, sl_arena *arena, sl_str message, uint8_t change_count)
{
    char *const copy = sl_arena_copy_str(arena, message);

    assert(copy != NULL);
    for (uint8_t i = 0; i < change_count && message.bytes > 0; i++) {
        const size_t at = script_next_u16(s) % message.bytes;
        const uint8_t with = script_next(s);

        copy[at] = (char)(copy[at] ^ with);
        if (with == 0)
            message.bytes = at;
    }
    return (sl_str){ copy, message.bytes };
}

sl_str words_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index)
{
    const uint8_t choice = script_next(s);
    const sl_str message = good_message(s, arena, method, message_index);

    return choice >= 0xf0 ? spoilt(s, arena, message, choice & 7) : message;
}

/* --- what comes with a call --- */

sl_str words_path(script *s, sl_arena *arena)
{
    static const sl_str missing[] = { SL_STR_INIT("/event_store.client.projections.Projections/Create"),
                                      SL_STR_INIT("/x"), SL_STR_INIT("/"), SL_STR_INIT("//") };
    const uint8_t choice = script_next(s);
    const sl_method *const method = sl_methods[choice % sl_method_count];
    sl_text path;

    if (choice >= 250)
        return missing[choice % SL_COUNT_OF(missing)];
    sl_text_init(&path, take(arena, PATH_BYTES_MAX), PATH_BYTES_MAX);
    sl_text_add_char(&path, '/');
    sl_text_add_str(&path, method->service);
    sl_text_add_char(&path, '/');
    sl_text_add_str(&path, method->name);
    return sl_text_str(&path);
}

size_t words_metadata(script *s, sl_metadata rows[4])
{
    static const sl_str credentials[] = {
        SL_STR_INIT("Basic cm9vdDpyb290LXNlY3JldA=="), /* root:root-secret */
        SL_STR_INIT("Basic Ym9iOmJvYi1zZWNyZXQ="),     /* bob:bob-secret */
        SL_STR_INIT("Basic Ym9iOndyb25n"),             /* bob:wrong */
        SL_STR_INIT("Basic em9lOnpvZQ=="),             /* zoe:zoe */
        SL_STR_INIT("basic ZXZlOmV2ZS1zZWNyZXQ="),     /* eve:eve-secret */
        SL_STR_INIT("Basic !"),
        SL_STR_INIT("Bearer x"),
    };
    const uint8_t choice = script_next(s);
    size_t count = 0;

    if ((choice & 7) != 7)
        rows[count++] = (sl_metadata){ SL_STR("authorization"), credentials[choice & 7] };
    if ((choice & 8) != 0)
        rows[count++] = (sl_metadata){ SL_STR("requires-leader"), SL_STR("true") };
    if ((choice & 16) != 0)
        rows[count++] = (sl_metadata){ SL_STR("connection-name"), SL_STR("fuzz \xff\n") };
    if ((choice & 32) != 0)
        rows[count++] = (sl_metadata){ SL_STR("x-bin"), SL_STR("\0\1") };
    return count;
}
