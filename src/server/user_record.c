/* server/user_record.c — users to JSON and back, and the rules for the texts in them. */
#include "server/user_record.h"

#include "base/utf8.h"
#include "server/auth.h"
#include "server/json.h"
#include "server/passwords.h"
#include "store/metadata.h"

#include <cjson/cJSON.h>

enum {
    PASSWORD_BYTES_MIN = 8,
    BYTES_OF_AN_ESCAPE = 6, /* \u001f */
    BYTES_AROUND = 256,     /* member names, commas, quotes, the hash */
};

_Static_assert(BYTES_OF_AN_ESCAPE *(SL_LOGIN_NAME_BYTES_MAX + SL_FULL_NAME_BYTES_MAX +
                                    SL_USER_GROUPS_MAX * (SL_USER_GROUP_BYTES_MAX + 1)) +
                       SL_PASSWORD_HASH_BYTES + BYTES_AROUND <
                   SL_USER_RECORD_BYTES_MAX,
               "the largest user fits");

bool sl_user_record_has_group(const sl_user_record *record, sl_str group)
{
    for (size_t i = 0; i < record->group_count; i++)
        if (sl_str_equal(record->groups[i], group))
            return true;
    return false;
}

bool sl_user_record_is_admin(const sl_user_record *record)
{
    return !record->disabled && sl_user_record_has_group(record, SL_STR(SL_GROUP_ADMINS));
}

/* --- texts that are allowed --- */

static sl_err refuse(sl_text *problem, const char *sentence)
{
    if (problem != NULL)
        sl_text_add(problem, sentence);
    return SL_ERR_INVALID;
}

/* UTF-8 without the control characters of ASCII and Latin-1. */
static bool is_printable(sl_str text)
{
    uint32_t code;

    while (text.bytes > 0) {
        const size_t bytes = sl_utf8_first(text, &code);

        if (bytes == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0))
            return false;
        text = (sl_str){ text.data + bytes, text.bytes - bytes };
    }
    return true;
}

static bool has_any(sl_str text, const char *characters)
{
    for (; *characters != '\0'; characters++)
        if (sl_str_find(text, *characters) < text.bytes)
            return true;
    return false;
}

sl_err sl_user_check_name(sl_str name, sl_text *problem)
{
    if (name.bytes == 0)
        return refuse(problem, "The login name is empty.");
    if (name.bytes > SL_LOGIN_NAME_BYTES_MAX)
        return refuse(problem, "The login name is longer than 64 bytes.");
    if (!is_printable(name) || has_any(name, ":/"))
        return refuse(problem,
                      "The login name has a character that is not allowed: a colon, a slash, a control "
                      "character, or bytes that are no UTF-8.");
    if (name.data[0] == '$')
        return refuse(problem, "The login name begins with $, which is kept for groups such as $admins.");
    if (sl_str_trim(name).bytes != name.bytes)
        return refuse(problem, "The login name begins or ends with a blank.");
    return SL_OK;
}

sl_err sl_user_check_full_name(sl_str full_name, sl_text *problem)
{
    if (full_name.bytes > SL_FULL_NAME_BYTES_MAX)
        return refuse(problem, "The full name is longer than 256 bytes.");
    if (!is_printable(full_name))
        return refuse(problem, "The full name has a control character, or bytes that are no UTF-8.");
    return SL_OK;
}

sl_err sl_user_check_groups(const sl_str *groups, size_t group_count, sl_text *problem)
{
    if (group_count > SL_USER_GROUPS_MAX)
        return refuse(problem, "The user has more than 64 groups.");
    for (size_t i = 0; i < group_count; i++) {
        if (groups[i].bytes == 0 || groups[i].bytes > SL_USER_GROUP_BYTES_MAX)
            return refuse(problem, "The name of a group is empty or longer than 64 bytes.");
        if (!is_printable(groups[i]))
            return refuse(problem,
                          "The name of a group has a control character, or bytes that are no UTF-8.");
    }
    return SL_OK;
}

sl_err sl_user_check_password(sl_str password, sl_text *problem)
{
    if (password.bytes < PASSWORD_BYTES_MIN)
        return refuse(problem, "The password is shorter than 8 bytes.");
    if (password.bytes > SL_PASSWORD_BYTES_MAX)
        return refuse(problem, "The password is longer than 1024 bytes.");
    if (!sl_utf8_valid(password) || memchr(password.data, 0, password.bytes) != NULL)
        return refuse(problem, "The password has a zero byte, or bytes that are no UTF-8.");
    return SL_OK;
}

/* --- writing --- */

static cJSON *group_items(const sl_user_record *record, sl_arena *arena)
{
    cJSON *const array = cJSON_CreateArray();

    for (size_t i = 0; array != NULL && i < record->group_count; i++) {
        cJSON *const item = sl_json_text(record->groups[i], arena);

        if (item == NULL || !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}

static bool fill(cJSON *object, const sl_user_record *record, sl_arena *arena)
{
    return sl_json_add(object, "loginName", sl_json_text(record->login_name, arena)) &&
           sl_json_add(object, "fullName", sl_json_text(record->full_name, arena)) &&
           sl_json_add(object, "groups", group_items(record, arena)) &&
           sl_json_add(object, "hash", sl_json_text(record->hash, arena)) &&
           sl_json_add(object, "disabled", cJSON_CreateBool(record->disabled));
}

sl_err sl_user_record_encode(const sl_user_record *record, sl_arena *arena, sl_str *ret_json)
{
    cJSON *const object = cJSON_CreateObject();
    char *const text = object != NULL && fill(object, record, arena) ? cJSON_PrintUnformatted(object) : NULL;
    const char *const copy = text == NULL ? NULL : sl_arena_copy_str(arena, sl_str_from(text));

    if (copy != NULL)
        *ret_json = (sl_str){ copy, strlen(copy) };
    cJSON_free(text);
    cJSON_Delete(object);
    return copy == NULL ? SL_ERR_NOMEM : SL_OK;
}

/* --- reading --- */

static sl_err read_text(const cJSON *item, sl_arena *arena, sl_str *ret_text)
{
    const char *copy;

    if (!cJSON_IsString(item))
        return SL_ERR_INVALID;
    copy = sl_arena_copy_str(arena, sl_str_from(item->valuestring));
    if (copy == NULL)
        return SL_ERR_NOMEM;
    *ret_text = sl_str_from(copy);
    return SL_OK;
}

static sl_err read_groups(const cJSON *array, sl_arena *arena, sl_user_record *record)
{
    const int count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : -1;
    const cJSON *item;
    sl_str *groups;
    sl_err err = SL_OK;

    if (count < 0 || count > SL_USER_GROUPS_MAX)
        return SL_ERR_INVALID;
    groups = sl_arena_alloc(arena, (size_t)count * sizeof *groups);
    if (groups == NULL)
        return SL_ERR_NOMEM;
    record->groups = groups;
    cJSON_ArrayForEach(item, array)
    {
        if (err == SL_OK)
            err = read_text(item, arena, &groups[record->group_count++]);
    }
    return err;
}

static sl_err read_members(const cJSON *object, sl_arena *arena, sl_user_record *record)
{
    const cJSON *const disabled = cJSON_GetObjectItemCaseSensitive(object, "disabled");
    sl_err err = read_text(cJSON_GetObjectItemCaseSensitive(object, "loginName"), arena, &record->login_name);

    if (err == SL_OK)
        err = read_text(cJSON_GetObjectItemCaseSensitive(object, "fullName"), arena, &record->full_name);
    if (err == SL_OK)
        err = read_text(cJSON_GetObjectItemCaseSensitive(object, "hash"), arena, &record->hash);
    if (err == SL_OK)
        err = read_groups(cJSON_GetObjectItemCaseSensitive(object, "groups"), arena, record);
    if (err == SL_OK && !cJSON_IsBool(disabled))
        err = SL_ERR_INVALID;
    record->disabled = cJSON_IsTrue(disabled);
    return err;
}

sl_err sl_user_record_decode(sl_str json, sl_arena *arena, sl_user_record *ret_record)
{
    cJSON *const object = sl_metadata_object(json);
    sl_user_record record = { 0 };
    sl_err err = object == NULL ? SL_ERR_INVALID : read_members(object, arena, &record);

    cJSON_Delete(object);
    if (err == SL_OK)
        err = sl_user_check_name(record.login_name, NULL);
    if (err == SL_OK)
        err = sl_user_check_full_name(record.full_name, NULL);
    if (err == SL_OK)
        err = sl_user_check_groups(record.groups, record.group_count, NULL);
    if (err == SL_OK && !sl_password_hash_valid(record.hash))
        err = SL_ERR_INVALID;
    if (err == SL_OK)
        *ret_record = record;
    return err;
}

/* --- copying --- */

static sl_err copy_text(sl_str from, sl_arena *arena, sl_str *ret_copy)
{
    const char *const data = sl_arena_copy_str(arena, from);

    if (data == NULL)
        return SL_ERR_NOMEM;
    *ret_copy = (sl_str){ data, from.bytes };
    return SL_OK;
}

sl_err sl_user_record_copy(const sl_user_record *from, sl_arena *arena, sl_user_record *ret_copy)
{
    sl_user_record copy = *from;
    sl_str *const groups = sl_arena_alloc(arena, from->group_count * sizeof *groups);
    sl_err err = groups == NULL ? SL_ERR_NOMEM : copy_text(from->login_name, arena, &copy.login_name);

    if (err == SL_OK)
        err = copy_text(from->full_name, arena, &copy.full_name);
    if (err == SL_OK)
        err = copy_text(from->hash, arena, &copy.hash);
    for (size_t i = 0; err == SL_OK && i < from->group_count; i++)
        err = copy_text(from->groups[i], arena, &groups[i]);
    copy.groups = groups;
    if (err == SL_OK)
        *ret_copy = copy;
    return err;
}
