/* tests/fuzz/fuzz_codec_control.c — hostile bytes as the messages that go through protobuf-c.
 *
 * The first byte chooses the message. It is refused, or it fits into the arena, and then every text of it is UTF-8 without
 * a zero byte and every list as long as it says. A read request is written again and means the same. */
#include "base/utf8.h"
#include "wire/multi_append.h"
#include "wire/persistent_client.h"
#include "wire/persistent_control.h"
#include "wire/server_control.h"
#include "wire/streams_control.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    ARENA_BYTES = 1 << 20,
};

static void expect_text(sl_str text)
{
    assert(sl_utf8_valid(text) && sl_str_find(text, '\0') == text.bytes);
}

static void expect_texts(const sl_str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_text(texts[i]);
}

static void expect_filter(const sl_wire_filter *filter)
{
    expect_text(filter->regex);
    expect_texts(filter->prefixes, filter->prefix_count);
}

static void try_read(sl_str message, sl_arena *arena)
{
    sl_read_request request, again;
    sl_str first, second;

    if (sl_read_request_decode(message, arena, &request, NULL) != SL_OK)
        return;
    expect_filter(&request.filter);
    if (sl_read_request_encode(&request, arena, &first) != SL_OK ||
        sl_read_request_decode(first, arena, &again, NULL) != SL_OK ||
        sl_read_request_encode(&again, arena, &second) != SL_OK) {
        assert(arena->given_bytes > ARENA_BYTES / 8); /* there is no other reason */
        return;
    }
    assert(sl_str_equal(first, second) && again.source == request.source && again.start == request.start);
}

static void try_delete(sl_str message, sl_arena *arena)
{
    sl_delete_request request;
    sl_wire_position position;

    (void)sl_delete_request_decode(message, arena, &request, NULL);
    (void)sl_delete_response_decode(message, arena, &position, NULL);
}

static void try_groups(sl_str message, sl_arena *arena)
{
    sl_wire_group_request request;

    if (sl_wire_group_create_decode(message, arena, &request, NULL) == SL_OK) {
        expect_text(request.group);
        expect_text(request.settings.strategy);
        expect_filter(&request.filter);
    }
    if (sl_wire_group_update_decode(message, arena, &request, NULL) == SL_OK)
        assert(request.filter.kind == SL_WIRE_FILTER_UNSET);
}

static void try_group_names(sl_str message, sl_arena *arena)
{
    sl_wire_group_name name;
    sl_parked_request parked;
    sl_wire_group_list_request list;

    if (sl_wire_group_delete_decode(message, arena, &name, NULL) == SL_OK)
        expect_text(name.group);
    if (sl_wire_group_info_request_decode(message, arena, &name, NULL) == SL_OK)
        expect_text(name.group);
    if (sl_parked_request_decode(message, arena, &parked, NULL) == SL_OK)
        expect_text(parked.name.group);
    (void)sl_wire_group_list_request_decode(message, arena, &list, NULL);
}

/* What a server could answer to a client of groups. */
static void try_group_answers(sl_str message, sl_arena *arena)
{
    sl_wire_group_info info;
    sl_wire_group_infos infos;

    if (sl_wire_group_info_decode(message, arena, &info, NULL) == SL_OK)
        expect_text(info.group);
    if (sl_wire_group_list_decode(message, arena, &infos, NULL) == SL_OK) {
        for (size_t i = 0; i < infos.count; i++)
            expect_text(infos.list[i].status);
    }
}

static void try_server(sl_str message, sl_arena *arena)
{
    sl_supported_methods methods;
    sl_scavenge_start start;
    sl_stats_request stats;
    int32_t priority;
    sl_str id;

    if (sl_supported_methods_decode(message, arena, &methods, NULL) == SL_OK)
        for (size_t i = 0; i < methods.method_count; i++)
            expect_texts(methods.methods[i].features, methods.methods[i].feature_count);
    (void)sl_scavenge_start_decode(message, arena, &start, NULL);
    if (sl_scavenge_stop_decode(message, arena, &id, NULL) == SL_OK)
        expect_text(id);
    (void)sl_node_priority_decode(message, arena, &priority, NULL);
    (void)sl_stats_request_decode(message, arena, &stats, NULL);
}

static void try_users(sl_str message, sl_arena *arena)
{
    sl_user_request request;

    for (int call = SL_USER_CALL_CREATE; call <= SL_USER_CALL_RESET_PASSWORD; call++)
        if (sl_user_request_decode((sl_user_call)call, message, arena, &request, NULL) == SL_OK) {
            expect_text(request.login_name);
            expect_text(request.password);
            expect_texts(request.groups, request.group_count);
        }
}

/* Recursive, as the values are; their depth is limited by the decoder. */
static void expect_values(const sl_wire_value *values, size_t count, unsigned depth)
{
    assert(depth <= 50);
    for (size_t i = 0; i < count; i++) {
        expect_text(values[i].name);
        expect_text(values[i].text);
        expect_values(values[i].items, values[i].item_count, depth + 1);
    }
}

static void expect_records(const sl_multi_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_text(records[i].id);
        expect_text(records[i].schema_name);
        expect_values(records[i].properties, records[i].property_count, 0);
    }
}

static void try_multi(sl_str message, sl_arena *arena)
{
    sl_multi_append append;
    sl_multi_records records;

    if (sl_multi_append_decode(message, arena, &append, NULL) == SL_OK)
        expect_records(append.records, append.record_count);
    if (sl_multi_records_decode(message, arena, &records, NULL) == SL_OK) {
        expect_records(records.records, records.record_count);
        for (size_t i = 0; i < records.check_count; i++)
            expect_text(records.checks[i].stream);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static void (*const tries[])(sl_str message, sl_arena * arena) = {
        try_read,   try_delete, try_groups, try_group_names,
        try_server, try_users,  try_multi,  try_group_answers,
    };
    sl_arena arena;

    if (data_bytes == 0)
        return 0;
    sl_arena_init(&arena, &sl_alloc_default,
                  (sl_arena_sizes){ .chunk_bytes = 4096, .limit_bytes = ARENA_BYTES });
    tries[data[0] % (sizeof tries / sizeof tries[0])]((sl_str){ (const char *)data + 1, data_bytes - 1 },
                                                      &arena);
    assert(arena.given_bytes <= ARENA_BYTES);
    sl_arena_done(&arena);
    return 0;
}
