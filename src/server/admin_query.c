/* server/admin_query.c — see admin_query.h. */
#include "server/admin_query.h"

#include "base/utf8.h"

sl_err sl_admin_decode(sl_str text, bool plus_is_blank, sl_arena *arena, sl_str *ret_text)
{
    char *const made = sl_arena_alloc(arena, text.bytes + 1);
    size_t bytes = 0;

    if (made == NULL)
        return SL_ERR_NOMEM;
    for (size_t at = 0; at < text.bytes; at++) {
        const int byte = text.data[at] == '%' ? sl_str_hex_byte(sl_str_skip(text, at + 1)) : -1;

        if (text.data[at] == '%' && byte <= 0) /* malformed, or a zero byte */
            return SL_ERR_INVALID;
        made[bytes++] = byte > 0 ? (char)byte : plus_is_blank && text.data[at] == '+' ? ' ' : text.data[at];
        at += byte > 0 ? 2 : 0;
    }
    made[bytes] = '\0';
    *ret_text = (sl_str){ made, bytes };
    return sl_utf8_valid(*ret_text) ? SL_OK : SL_ERR_INVALID;
}

/* --- parameters --- */

static sl_admin_parameter *find(sl_str name, sl_admin_parameter *parameters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(name, sl_str_from(parameters[i].name)))
            return &parameters[i];
    return NULL;
}

static const char *take(sl_str pair, sl_arena *arena, sl_admin_parameter *parameters, size_t count)
{
    sl_str name = pair, value = { 0 };
    sl_admin_parameter *parameter;

    (void)sl_str_cut(pair, '=', &name, &value);
    parameter = find(name, parameters, count);
    if (parameter == NULL)
        return "There is a parameter behind the ? that this page does not know.";
    if (parameter->is_given)
        return "A parameter is there twice.";
    parameter->is_given = true;
    return sl_admin_decode(value, true, arena, &parameter->value) == SL_OK
               ? NULL
               : "A parameter is not percent-encoded UTF-8.";
}

const char *sl_admin_parameters(sl_str query, sl_arena *arena, sl_admin_parameter *parameters, size_t count)
{
    const char *complaint = NULL;

    while (query.bytes > 0 && complaint == NULL) {
        sl_str pair = query, rest = { 0 };

        (void)sl_str_cut(query, '&', &pair, &rest);
        if (pair.bytes > 0)
            complaint = take(pair, arena, parameters, count);
        query = rest;
    }
    return complaint;
}

/* --- paths --- */

/* Cuts off the part up to the next slash. */
static sl_str next_part(sl_str *rest)
{
    sl_str part = *rest, behind = { 0 };

    (void)sl_str_cut(*rest, '/', &part, &behind);
    *rest = behind;
    return part;
}

static size_t count_slashes(sl_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.bytes; i++)
        count += text.data[i] == '/';
    return count;
}

static bool is_open(sl_str part)
{
    return part.bytes > 0 && part.data[0] >= 'A' && part.data[0] <= 'Z';
}

bool sl_admin_path_fits(const char *pattern, sl_str path, sl_str parts[2])
{
    sl_str wanted = sl_str_from(pattern);
    unsigned found = 0;

    if (count_slashes(wanted) != count_slashes(path))
        return false;
    while (wanted.bytes > 0) {
        const sl_str want = next_part(&wanted), have = next_part(&path);

        if (is_open(want) ? have.bytes == 0 : !sl_str_equal(want, have))
            return false;
        if (is_open(want) && found < 2)
            parts[found++] = have;
    }
    return path.bytes == 0;
}
