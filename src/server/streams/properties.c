/* server/streams/properties.c — writes JSON, and nothing else: every text was checked to be UTF-8 and every nesting to be shallow by the
 * codec.
 *
 * Why not cJSON here: it ends texts at the first zero byte and would need a copy of each, and writing takes fewer lines. */
#include "server/streams/properties.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static sl_err put(sl_buf *out, const char *text)
{
    return sl_buf_append(out, text, strlen(text));
}

/* --- texts --- */

static bool needs_escape(uint8_t byte)
{
    return byte < 0x20 || byte == '"' || byte == '\\';
}

static sl_err put_escape(sl_buf *out, uint8_t byte)
{
    char text[8];

    if (byte == '"' || byte == '\\')
        (void)snprintf(text, sizeof text, "\\%c", byte);
    else
        (void)snprintf(text, sizeof text, "\\u%04x", byte);
    return put(out, text);
}

static sl_err put_text(sl_buf *out, sl_str text)
{
    size_t plain = 0; /* where the part begins that is copied as it is */
    sl_err err = put(out, "\"");

    for (size_t i = 0; i < text.bytes && err == SL_OK; i++) {
        if (!needs_escape((uint8_t)text.data[i]))
            continue;
        err = sl_buf_append(out, text.data + plain, i - plain);
        if (err == SL_OK)
            err = put_escape(out, (uint8_t)text.data[i]);
        plain = i + 1;
    }
    if (err == SL_OK && plain < text.bytes)
        err = sl_buf_append(out, text.data + plain, text.bytes - plain);
    return err == SL_OK ? put(out, "\"") : err;
}

/* --- numbers --- */

/* The shortest of three lengths that is read back as the same number. */
static sl_err put_number(sl_buf *out, double number)
{
    char text[40];

    if (!isfinite(number))
        return SL_ERR_INVALID;
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return put(out, text);
}

/* --- values --- */

static sl_err put_value(sl_buf *out, const sl_wire_value *value, sl_arena *scratch);

static sl_err put_list(sl_buf *out, const sl_wire_value *list, sl_arena *scratch)
{
    sl_err err = put(out, "[");

    for (size_t i = 0; i < list->item_count && err == SL_OK; i++) {
        err = i == 0 ? SL_OK : put(out, ",");
        if (err == SL_OK)
            err = put_value(out, &list->items[i], scratch);
    }
    return err == SL_OK ? put(out, "]") : err;
}

/* By name, and by place among those of one name. */
static int compare_members(const void *a, const void *b)
{
    const sl_wire_value *const one = *(const sl_wire_value *const *)a, *const other =
                                                                           *(const sl_wire_value *const *)b;
    const int order = sl_str_compare(one->name, other->name);

    return order != 0 ? order : (one > other) - (one < other);
}

static sl_err put_member(sl_buf *out, sl_str name, bool is_first)
{
    sl_err err = is_first ? SL_OK : put(out, ",");

    if (err == SL_OK)
        err = put_text(out, name);
    return err == SL_OK ? put(out, ":") : err;
}

/* Without the brackets. *count: how many were written. */
static sl_err put_members(sl_buf *out, const sl_wire_value *members, size_t member_count, sl_arena *scratch,
                          size_t *count)
{
    const sl_wire_value **const sorted = sl_arena_alloc(scratch, member_count * sizeof *sorted);
    sl_err err = SL_OK;

    if (sorted == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < member_count; i++)
        sorted[i] = &members[i];
    qsort(sorted, member_count, sizeof *sorted, compare_members);
    for (size_t i = 0; i < member_count && err == SL_OK; i++) {
        if (i + 1 < member_count && sl_str_equal(sorted[i]->name, sorted[i + 1]->name))
            continue;
        err = put_member(out, sorted[i]->name, *count == 0);
        if (err == SL_OK)
            err = put_value(out, sorted[i], scratch);
        ++*count;
    }
    return err;
}

static sl_err put_object(sl_buf *out, const sl_wire_value *object, sl_arena *scratch)
{
    size_t count = 0;
    sl_err err = put(out, "{");

    if (err == SL_OK)
        err = put_members(out, object->items, object->item_count, scratch, &count);
    return err == SL_OK ? put(out, "}") : err;
}

static sl_err put_value(sl_buf *out, const sl_wire_value *value, sl_arena *scratch)
{
    switch (value->kind) {
    case SL_WIRE_VALUE_UNSET:
    case SL_WIRE_VALUE_NULL: return put(out, "null");
    case SL_WIRE_VALUE_NUMBER: return put_number(out, value->number);
    case SL_WIRE_VALUE_TEXT: return put_text(out, value->text);
    case SL_WIRE_VALUE_BOOL: return put(out, value->flag ? "true" : "false");
    case SL_WIRE_VALUE_OBJECT: return put_object(out, value, scratch);
    case SL_WIRE_VALUE_LIST: return put_list(out, value, scratch);
    }
    return SL_ERR_INVALID;
}

/* --- the record --- */

const char *sl_schema_format_name(int32_t format)
{
    static const char *const names[] = {
        [SL_SCHEMA_JSON] = "Json",
        [SL_SCHEMA_PROTOBUF] = "Protobuf",
        [SL_SCHEMA_AVRO] = "Avro",
        [SL_SCHEMA_BYTES] = "Bytes",
    };

    return format < SL_SCHEMA_JSON || format > SL_SCHEMA_BYTES ? NULL : names[format];
}

static sl_err put_schema(sl_buf *out, sl_str name, sl_str value, size_t *count)
{
    sl_err err = put_member(out, name, *count == 0);

    ++*count;
    return err == SL_OK ? put_text(out, value) : err;
}

static bool is_schema_name(sl_str name)
{
    return sl_str_equal(name, SL_STR("$schema.name")) || sl_str_equal(name, SL_STR("$schema.format")) ||
           sl_str_equal(name, SL_STR("$schema.id"));
}

/* Those properties whose names the schema does not take. */
static sl_err own_properties(const sl_multi_record *record, sl_arena *scratch, sl_wire_value **ret_own,
                             size_t *ret_count)
{
    sl_wire_value *const own = sl_arena_alloc(scratch, record->property_count * sizeof *own);
    size_t count = 0;

    if (own == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < record->property_count; i++)
        if (!is_schema_name(record->properties[i].name))
            own[count++] = record->properties[i];
    *ret_own = own;
    *ret_count = count;
    return SL_OK;
}

sl_err sl_properties_write(const sl_multi_record *record, sl_arena *scratch, sl_buf *out)
{
    const char *const format = sl_schema_format_name(record->schema_format);
    sl_wire_value *own = NULL;
    size_t own_count = 0, count = 0;
    sl_err err = format == NULL ? SL_ERR_INVALID : own_properties(record, scratch, &own, &own_count);

    if (err == SL_OK)
        err = put(out, "{");
    if (err == SL_OK)
        err = put_members(out, own, own_count, scratch, &count);
    if (err == SL_OK)
        err = put_schema(out, SL_STR("$schema.name"), record->schema_name, &count);
    if (err == SL_OK)
        err = put_schema(out, SL_STR("$schema.format"), sl_str_from(format), &count);
    if (err == SL_OK && record->schema_id.bytes > 0)
        err = put_schema(out, SL_STR("$schema.id"), record->schema_id, &count);
    return err == SL_OK ? put(out, "}") : err;
}
