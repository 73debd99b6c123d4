/* server/groups/definition.c — the definition of a group as text, and back.
 *
 *      {"version":1, "stream":"orders", "group":"billing", "start":"given", "from":"17", "filter":{...}, "settings":{...}}
 *
 * Numbers that may be larger than a double can hold exactly are texts. The text comes from our own store, but is checked like any
 * other: a disk can bring anything, and a group that means something else than it did must not be served. */
#include "server/groups/definition.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "server/json.h"
#include "store/metadata.h"

#include <cjson/cJSON.h>

enum {
    VERSION = 1,
    NUMBER_BYTES = 32, /* of a number as text, with its unit */
};

static const char *const start_names[] = { [SL_WIRE_START_UNSET] = "",
                                           [SL_WIRE_START_BEGIN] = "begin",
                                           [SL_WIRE_START_END] = "end",
                                           [SL_WIRE_START_GIVEN] = "given" };

static const char *const on_names[] = {
    [SL_WIRE_FILTER_ON_UNSET] = "", [SL_WIRE_FILTER_ON_STREAM] = "stream", [SL_WIRE_FILTER_ON_TYPE] = "type"
};

/* --- the small numbers, all in the same way --- */

typedef struct number_row {
    const char *name;
    size_t offset; /* of an int32_t in sl_wire_group_settings */
} number_row;

#define NUMBER(name, field)                                                                                  \
    {                                                                                                        \
        name, offsetof(sl_wire_group_settings, field)                                                        \
    }

static const number_row number_rows[] = {
    NUMBER("maxRetryCount", max_retry_count),           NUMBER("minCheckPointCount", min_checkpoint_count),
    NUMBER("maxCheckPointCount", max_checkpoint_count), NUMBER("maxSubscriberCount", max_subscriber_count),
    NUMBER("liveBufferSize", live_buffer_size),         NUMBER("readBatchSize", read_batch_size),
    NUMBER("historyBufferSize", history_buffer_size),
};

/* Those of Sluice, which are there only when they were given: older definitions do not have them. */
typedef struct limit_row {
    const char *name;
    size_t offset; /* of an sl_wire_group_limit in sl_wire_group_settings */
} limit_row;

static const limit_row limit_rows[] = {
    { "maxInterrupts", offsetof(sl_wire_group_settings, max_interrupts) },
    { "maxKills", offsetof(sl_wire_group_settings, max_kills) },
};

static sl_wire_group_limit *limit_at(sl_wire_group_settings *settings, const limit_row *row)
{
    return (sl_wire_group_limit *)(void *)((char *)settings + row->offset);
}

static int32_t *number_at(sl_wire_group_settings *settings, const number_row *row)
{
    return (int32_t *)(void *)((char *)settings + row->offset);
}

/* --- writing --- */

/* A zero byte would end the text too early, and what is no UTF-8 would not come back as it was. */
static bool is_text(sl_str text)
{
    return sl_utf8_valid(text) && (text.bytes == 0 || memchr(text.data, 0, text.bytes) == NULL);
}

static bool add_u64(cJSON *object, const char *name, uint64_t value)
{
    char buffer[NUMBER_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_u64(&text, value);
    return sl_json_add(object, name, cJSON_CreateString(buffer));
}

/* "30000 ms" or "300000000 ticks"; nothing when it was not given. */
static bool add_time(cJSON *object, const char *name, sl_wire_group_time time)
{
    char buffer[NUMBER_BYTES];
    sl_text text;

    if (!time.given)
        return true;
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_i64(&text, time.value);
    sl_text_add(&text, time.in_ticks ? " ticks" : " ms");
    return sl_json_add(object, name, cJSON_CreateString(buffer));
}

static cJSON *prefix_items(const sl_wire_filter *filter, sl_arena *arena)
{
    cJSON *const array = cJSON_CreateArray();

    for (size_t i = 0; array != NULL && i < filter->prefix_count; i++) {
        cJSON *const item = sl_json_text(filter->prefixes[i], arena);

        if (item == NULL || !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}

static cJSON *filter_item(const sl_wire_filter *filter, sl_arena *arena)
{
    cJSON *const object = cJSON_CreateObject();

    if (object != NULL && sl_json_add(object, "on", cJSON_CreateString(on_names[filter->on])) &&
        sl_json_add(object, "regex", sl_json_text(filter->regex, arena)) &&
        sl_json_add(object, "prefixes", prefix_items(filter, arena)))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool fill_settings(cJSON *object, const sl_wire_group_settings *settings, sl_arena *arena)
{
    sl_wire_group_settings copy = *settings;
    bool fits = sl_json_add(object, "resolveLinkTos", cJSON_CreateBool(settings->resolve_links)) &&
                sl_json_add(object, "extraStatistics", cJSON_CreateBool(settings->extra_statistics)) &&
                add_time(object, "messageTimeout", settings->message_timeout) &&
                add_time(object, "checkPointAfter", settings->checkpoint_after) &&
                sl_json_add(object, "namedConsumerStrategy", sl_json_text(settings->strategy, arena));

    for (size_t i = 0; fits && i < SL_COUNT_OF(number_rows); i++)
        fits =
            sl_json_add(object, number_rows[i].name, cJSON_CreateNumber(*number_at(&copy, &number_rows[i])));
    for (size_t i = 0; fits && i < SL_COUNT_OF(limit_rows); i++) {
        const sl_wire_group_limit *const limit = limit_at(&copy, &limit_rows[i]);

        fits = !limit->given || sl_json_add(object, limit_rows[i].name, cJSON_CreateNumber(limit->value));
    }
    return fits;
}

static cJSON *settings_item(const sl_wire_group_settings *settings, sl_arena *arena)
{
    cJSON *const object = cJSON_CreateObject();

    if (object != NULL && fill_settings(object, settings, arena))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool fill(cJSON *object, const sl_group_definition *definition, sl_arena *arena)
{
    return sl_json_add(object, "version", cJSON_CreateNumber(VERSION)) &&
           sl_json_add(object, "all", cJSON_CreateBool(definition->of_all)) &&
           sl_json_add(object, "stream", sl_json_text(definition->stream, arena)) &&
           sl_json_add(object, "group", sl_json_text(definition->name, arena)) &&
           sl_json_add(object, "start", cJSON_CreateString(start_names[definition->start])) &&
           add_u64(object, "from", definition->from) &&
           (definition->filter.kind != SL_WIRE_FILTER_GIVEN ||
            sl_json_add(object, "filter", filter_item(&definition->filter, arena))) &&
           sl_json_add(object, "settings", settings_item(&definition->settings, arena));
}

static bool has_only_text(const sl_group_definition *definition)
{
    for (size_t i = 0; i < definition->filter.prefix_count; i++)
        if (!is_text(definition->filter.prefixes[i]))
            return false;
    return is_text(definition->stream) && is_text(definition->name) && is_text(definition->filter.regex) &&
           is_text(definition->settings.strategy);
}

static bool has_known_kinds(const sl_group_definition *definition)
{
    return (size_t)definition->start < SL_COUNT_OF(start_names) &&
           (size_t)definition->filter.on < SL_COUNT_OF(on_names);
}

sl_err sl_group_definition_encode(const sl_group_definition *definition, sl_arena *arena, sl_str *ret_text)
{
    cJSON *object;
    char *text;
    const char *copy;

    if (!has_known_kinds(definition) || !has_only_text(definition))
        return SL_ERR_INVALID;
    object = cJSON_CreateObject();
    text = object != NULL && fill(object, definition, arena) ? cJSON_PrintUnformatted(object) : NULL;
    copy = text == NULL ? NULL : sl_arena_copy_str(arena, sl_str_from(text));
    cJSON_free(text);
    cJSON_Delete(object);
    if (copy == NULL)
        return SL_ERR_NOMEM;
    if (strlen(copy) > SL_GROUP_DEFINITION_BYTES_MAX)
        return SL_ERR_TOO_LARGE;
    *ret_text = sl_str_from(copy);
    return SL_OK;
}

/* --- reading --- */

static sl_err read_text(const cJSON *object, const char *name, sl_arena *arena, sl_str *ret_text)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);
    const char *copy;

    if (!cJSON_IsString(item))
        return SL_ERR_CORRUPT;
    copy = sl_arena_copy_str(arena, sl_str_from(item->valuestring));
    if (copy == NULL)
        return SL_ERR_NOMEM;
    *ret_text = sl_str_from(copy);
    return SL_OK;
}

static sl_err read_bool(const cJSON *object, const char *name, bool *ret_value)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsBool(item))
        return SL_ERR_CORRUPT;
    *ret_value = cJSON_IsTrue(item);
    return SL_OK;
}

static sl_err read_u64(const cJSON *object, const char *name, uint64_t *ret_value)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text != NULL && sl_str_parse_u64(sl_str_from(text), ret_value) == SL_OK ? SL_OK : SL_ERR_CORRUPT;
}

/* One of the names of a table; index 0 is none of them. */
static sl_err read_name(const cJSON *object, const char *name, const char *const *names, size_t name_count,
                        size_t *ret_index)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    for (size_t i = 1; text != NULL && i < name_count; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_index = i;
            return SL_OK;
        }
    return SL_ERR_CORRUPT;
}

/* The smallest int64 has no positive counterpart, so the sign comes last. */
static sl_err parse_i64(sl_str text, int64_t *ret_value)
{
    const bool negative = sl_str_starts_with(text, SL_STR("-"));
    const sl_str digits = negative ? (sl_str){ text.data + 1, text.bytes - 1 } : text;
    const uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t value;

    if (sl_str_parse_u64(digits, &value) != SL_OK || value > most)
        return SL_ERR_CORRUPT;
    *ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
    return SL_OK;
}

static sl_err read_time(const cJSON *object, const char *name, sl_wire_group_time *ret_time)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);
    const char *const text = cJSON_GetStringValue(item);
    sl_str number, unit;

    *ret_time = (sl_wire_group_time){ 0 };
    if (item == NULL)
        return SL_OK;
    if (text == NULL || !sl_str_cut(sl_str_from(text), ' ', &number, &unit))
        return SL_ERR_CORRUPT;
    ret_time->given = true;
    ret_time->in_ticks = sl_str_equal(unit, SL_STR("ticks"));
    if (!ret_time->in_ticks && !sl_str_equal(unit, SL_STR("ms")))
        return SL_ERR_CORRUPT;
    return parse_i64(number, &ret_time->value);
}

static sl_err read_number(const cJSON *object, const char *name, int32_t *ret_value)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= INT32_MIN && item->valuedouble <= INT32_MAX) ||
        item->valuedouble != (double)(int32_t)item->valuedouble)
        return SL_ERR_CORRUPT;
    *ret_value = (int32_t)item->valuedouble;
    return SL_OK;
}

static sl_err read_limit(const cJSON *object, const char *name, sl_wire_group_limit *ret_limit)
{
    ret_limit->given = cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
    return ret_limit->given ? read_number(object, name, &ret_limit->value) : SL_OK;
}

static sl_err read_settings(const cJSON *object, sl_arena *arena, sl_wire_group_settings *settings)
{
    sl_err err = read_bool(object, "resolveLinkTos", &settings->resolve_links);

    if (err == SL_OK)
        err = read_bool(object, "extraStatistics", &settings->extra_statistics);
    if (err == SL_OK)
        err = read_time(object, "messageTimeout", &settings->message_timeout);
    if (err == SL_OK)
        err = read_time(object, "checkPointAfter", &settings->checkpoint_after);
    if (err == SL_OK)
        err = read_text(object, "namedConsumerStrategy", arena, &settings->strategy);
    for (size_t i = 0; err == SL_OK && i < SL_COUNT_OF(number_rows); i++)
        err = read_number(object, number_rows[i].name, number_at(settings, &number_rows[i]));
    for (size_t i = 0; err == SL_OK && i < SL_COUNT_OF(limit_rows); i++)
        err = read_limit(object, limit_rows[i].name, limit_at(settings, &limit_rows[i]));
    return err;
}

static sl_err read_prefixes(const cJSON *object, sl_arena *arena, sl_wire_filter *filter)
{
    const cJSON *const array = cJSON_GetObjectItemCaseSensitive(object, "prefixes");
    const int count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : -1;
    sl_str *const list = count < 0 ? NULL : sl_arena_alloc(arena, (size_t)count * sizeof *list);
    const cJSON *item;

    if (count < 0 || count > SL_FILTER_PREFIXES_MAX)
        return SL_ERR_CORRUPT;
    if (list == NULL)
        return SL_ERR_NOMEM;
    cJSON_ArrayForEach(item, array)
    {
        const char *copy;

        if (!cJSON_IsString(item))
            return SL_ERR_CORRUPT;
        copy = sl_arena_copy_str(arena, sl_str_from(item->valuestring));
        if (copy == NULL)
            return SL_ERR_NOMEM;
        list[filter->prefix_count++] = sl_str_from(copy);
    }
    filter->prefixes = list;
    return SL_OK;
}

static sl_err read_filter(const cJSON *object, sl_arena *arena, sl_wire_filter *filter)
{
    size_t on = 0;
    sl_err err;

    filter->kind = object == NULL ? SL_WIRE_FILTER_NONE : SL_WIRE_FILTER_GIVEN;
    if (object == NULL)
        return SL_OK;
    err = read_name(object, "on", on_names, SL_COUNT_OF(on_names), &on);
    filter->on = (sl_wire_filter_on)on;
    if (err == SL_OK)
        err = read_text(object, "regex", arena, &filter->regex);
    return err == SL_OK ? read_prefixes(object, arena, filter) : err;
}

static sl_err read_members(const cJSON *object, sl_arena *arena, sl_group_definition *definition)
{
    const cJSON *const version = cJSON_GetObjectItemCaseSensitive(object, "version");
    size_t start = 0;
    sl_err err = cJSON_IsNumber(version) && version->valuedouble == VERSION ? SL_OK : SL_ERR_CORRUPT;

    if (err == SL_OK)
        err = read_bool(object, "all", &definition->of_all);
    if (err == SL_OK)
        err = read_text(object, "stream", arena, &definition->stream);
    if (err == SL_OK)
        err = read_text(object, "group", arena, &definition->name);
    if (err == SL_OK)
        err = read_name(object, "start", start_names, SL_COUNT_OF(start_names), &start);
    definition->start = (sl_wire_start)start;
    if (err == SL_OK)
        err = read_u64(object, "from", &definition->from);
    if (err == SL_OK)
        err = read_filter(cJSON_GetObjectItemCaseSensitive(object, "filter"), arena, &definition->filter);
    if (err == SL_OK)
        err =
            read_settings(cJSON_GetObjectItemCaseSensitive(object, "settings"), arena, &definition->settings);
    return err;
}

sl_err sl_group_definition_decode(sl_str text, sl_arena *arena, sl_group_definition *ret_definition)
{
    cJSON *const object = sl_metadata_object(text);
    sl_group_definition definition = { 0 };
    const char *reason;
    sl_err err = object == NULL ? SL_ERR_CORRUPT : read_members(object, arena, &definition);

    cJSON_Delete(object);
    if (err == SL_OK)
        err = sl_group_definition_check(&definition, &reason);
    if (err == SL_OK)
        *ret_definition = definition;
    return err == SL_ERR_INVALID ? SL_ERR_CORRUPT : err;
}
