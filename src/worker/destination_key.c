/* worker/destination_key.c — see destination_key.h, and sl_key_parse() of destination.h. */
#include "worker/destination_key.h"

#include "base/cleanup.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

static const struct {
    sl_str text;
    sl_key_kind kind;
    bool has_field;
} key_kinds[] = {
    { SL_STR_INIT("stream"), SL_KEY_STREAM, false },
    { SL_STR_INIT("type"), SL_KEY_TYPE, false },
    { SL_STR_INIT("data."), SL_KEY_DATA, true },
    { SL_STR_INIT("metadata."), SL_KEY_METADATA, true },
};

static_assert(SL_COUNT_OF(key_kinds) == SL_KEY_KIND_COUNT_ - 1, "one row for each kind that has a name");

/* A field's name is looked up as a text that ends with a zero, so it may not hold one itself. */
static bool is_field(sl_str name)
{
    const size_t room = sizeof((sl_destination_rules *)NULL)->field;

    return name.bytes > 0 && name.bytes < room && memchr(name.data, '\0', name.bytes) == NULL;
}

sl_err sl_key_parse(sl_str text, sl_destination_rules *rules)
{
    for (size_t i = 0; i < SL_COUNT_OF(key_kinds); i++) {
        const sl_str name = key_kinds[i].text;
        sl_str field;

        if (!sl_str_starts_with(text, name))
            continue;
        field = (sl_str){ text.data + name.bytes, text.bytes - name.bytes };
        if (key_kinds[i].has_field ? !is_field(field) : field.bytes > 0)
            return SL_ERR_INVALID;
        rules->key = key_kinds[i].kind;
        memset(rules->field, 0, sizeof rules->field);
        memcpy(rules->field, field.data, field.bytes);
        return SL_OK;
    }
    return SL_ERR_INVALID;
}

static sl_str shorten(sl_str key)
{
    if (key.bytes > SL_DESTINATION_KEY_BYTES_MAX)
        key.bytes = SL_DESTINATION_KEY_BYTES_MAX;
    return key;
}

static sl_str show(const cJSON *item, sl_key_room *room)
{
    sl_text text;

    sl_text_init(&text, room->bytes, sizeof room->bytes);
    if (cJSON_IsString(item))
        sl_text_add(&text, item->valuestring);
    else if (cJSON_IsBool(item))
        sl_text_add(&text, cJSON_IsTrue(item) ? "true" : "false");
    else if (cJSON_IsNumber(item) &&
             cJSON_PrintPreallocated((cJSON *)(uintptr_t)item, room->bytes, (int)sizeof room->bytes, false))
        return sl_str_from(room->bytes);
    return sl_text_str(&text);
}

/* Only messages of workers whose key is a field pay for this. cJSON refuses what is nested too deep. */
static sl_str read_field(sl_str json, const char *field, sl_key_room *room)
{
    cJSON *const root = json.bytes == 0 ? NULL : cJSON_ParseWithLength(json.data, json.bytes);
    sl_str key = { 0 };

    if (cJSON_IsObject(root))
        key = show(cJSON_GetObjectItemCaseSensitive(root, field), room);
    cJSON_Delete(root);
    return key;
}

sl_str sl_destination_key_of(const sl_destination_rules *rules, const sl_job_message *message,
                             sl_key_room *room)
{
    switch (rules->key) {
    case SL_KEY_STREAM: return shorten(message->stream);
    case SL_KEY_TYPE: return shorten(message->type);
    case SL_KEY_DATA: return read_field(message->data, rules->field, room);
    case SL_KEY_METADATA: return read_field(message->metadata, rules->field, room);
    case SL_KEY_NONE:
    case SL_KEY_KIND_COUNT_: break;
    }
    return (sl_str){ 0 };
}
