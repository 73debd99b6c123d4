/* store/metadata.c — reading and rewriting stream metadata.
 *
 * cJSON says whether the text is JSON and what the numbers are. It keeps every number as a double, so a whole number is
 * exact up to 2^53; that is enough for counts and seconds, and 2^63 - 1, the mark of a soft-deleted stream, becomes 2^63,
 * which no other allowed value does.
 *
 * Rewriting works on the text instead. cJSON has found it valid before, so the scanner below has to know only strings,
 * brackets and commas. */
#include "store/metadata.h"

#include "store/store.h"

#include <cjson/cJSON.h>

#include <assert.h>
#include <pthread.h>

enum {
    JSON_BYTES_MAX =
        SL_METADATA_BYTES_MAX + 64 /* with the "$tb" that sl_metadata_undelete() may have added */
};

#define REVISION_MAX_AS_DOUBLE 9223372036854775808.0 /* the nearest double to 2^63 - 1 */
#define WHOLE_MAX              9007199254740992.0    /* 2^53: above it a double skips whole numbers */

/* cJSON writes a global whenever it parses: the loop's thread does, and the one that seals segments. */
static pthread_mutex_t parse_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

cJSON *sl_metadata_object(sl_str json)
{
    const char *end = NULL;
    cJSON *root;

    if (json.bytes == 0 || json.bytes > JSON_BYTES_MAX)
        return NULL;
    pthread_mutex_lock(&parse_mutex);
    root = cJSON_ParseWithLengthOpts(json.data, json.bytes, &end, 0);
    pthread_mutex_unlock(&parse_mutex);
    while (root != NULL && end < json.data + json.bytes && is_blank(*end))
        end++;
    if (root != NULL && cJSON_IsObject(root) && end == json.data + json.bytes)
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* False for what is no whole number from `min` on. */
static bool whole_number(const cJSON *item, uint64_t min, uint64_t *ret_value)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;

    if (value == REVISION_MAX_AS_DOUBLE) {
        *ret_value = SL_REVISION_MAX;
        return true;
    }
    if (!(value >= (double)min) || value > REVISION_MAX_AS_DOUBLE) /* also for "not a number" */
        return false;
    if (value < WHOLE_MAX && (double)(uint64_t)value != value)
        return false;
    *ret_value = (uint64_t)value;
    return true;
}

static void read_member(const cJSON *item, sl_retention *retention)
{
    const sl_str name = sl_str_from(item->string);

    if (sl_str_equal(name, SL_STR("$maxCount")))
        (void)whole_number(item, 1, &retention->max_count);
    else if (sl_str_equal(name, SL_STR("$maxAge")))
        (void)whole_number(item, 1, &retention->max_age_s);
    else if (sl_str_equal(name, SL_STR("$tb")))
        (void)whole_number(item, 0, &retention->truncate_before);
}

sl_retention sl_metadata_parse(sl_str json)
{
    sl_retention retention = { 0 };
    cJSON *const root = sl_metadata_object(json);
    const cJSON *item;

    if (root == NULL)
        return retention;
    cJSON_ArrayForEach(item, root) read_member(item, &retention);
    cJSON_Delete(root);
    return retention;
}

/* --- rewriting --- */

/* Behind the string that begins at `at`. */
static size_t after_string(sl_str json, size_t at)
{
    assert(json.data[at] == '"');
    for (at++; at < json.bytes && json.data[at] != '"'; at++)
        at += json.data[at] == '\\';
    return at + 1;
}

/* Behind the value that begins at `at`: at the comma or brace of the object around it. */
static size_t after_value(sl_str json, size_t at)
{
    size_t depth = 0;

    while (at < json.bytes) {
        const char c = json.data[at];

        if (depth == 0 && (c == ',' || c == '}'))
            return at;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at = c == '"' ? after_string(json, at) : at + 1;
    }
    return at;
}

static size_t after_blanks(sl_str json, size_t at)
{
    while (at < json.bytes && is_blank(json.data[at]))
        at++;
    return at;
}

/* Appends the members but "$tb", each with a comma behind it. `at` is behind the opening brace. */
static sl_err keep_members(sl_str json, size_t at, sl_buf *out)
{
    sl_err err = SL_OK;

    for (at = after_blanks(json, at); err == SL_OK && at < json.bytes && json.data[at] == '"';) {
        const size_t name_end = after_string(json, at);
        const size_t end = after_value(json, name_end);
        const sl_str name = { json.data + at, name_end - at };

        if (!sl_str_equal(name, SL_STR("\"$tb\"")))
            err = sl_buf_append(out, json.data + at, end - at);
        if (err == SL_OK && !sl_str_equal(name, SL_STR("\"$tb\"")))
            err = sl_buf_append_u8(out, ',');
        at = after_blanks(json, end + 1); /* over the comma or the last brace */
    }
    return err;
}

static sl_err append_truncate_before(uint64_t truncate_before, sl_buf *out)
{
    char memory[40];
    sl_text text;

    sl_text_init(&text, memory, sizeof memory);
    sl_text_add(&text, "\"$tb\":");
    sl_text_add_u64(&text, truncate_before);
    sl_text_add(&text, "}");
    assert(!text.cut);
    return sl_buf_append(out, text.data, text.bytes);
}

sl_err sl_metadata_undelete(sl_str json, uint64_t truncate_before, sl_buf *out)
{
    cJSON *const root = sl_metadata_object(json);
    const size_t brace = root == NULL ? 0 : sl_str_find(json, '{'); /* behind blanks or a byte order mark */
    sl_err err = sl_buf_append_u8(out, '{');

    if (err == SL_OK && root != NULL)
        err = keep_members(json, brace + 1, out);
    if (err == SL_OK)
        err = append_truncate_before(truncate_before, out);
    cJSON_Delete(root);
    return err;
}

bool sl_metadata_owner(sl_str stream, sl_str *ret_owner)
{
    if (!sl_str_starts_with(stream, SL_STR("$$")))
        return false;
    *ret_owner = (sl_str){ stream.data + 2, stream.bytes - 2 };
    return true;
}
