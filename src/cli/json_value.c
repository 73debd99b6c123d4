/* cli/json_value.c — see cli/json_value.h. */
#include "cli/json_value.h"

#include "base/json_text.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>

static_assert((int)SL_JSON_DEPTH_MAX <= (int)SL_JSON_TEXT_DEPTH_MAX, "it can be looked for");

bool sl_json_is_value(sl_str text)
{
    return sl_json_text_is_value(text, SL_JSON_DEPTH_MAX);
}

bool sl_json_is_object(sl_str text)
{
    const sl_str trimmed = sl_str_trim(text);

    return trimmed.bytes > 0 && trimmed.data[0] == '{' && sl_json_is_value(text);
}

/* --- on one line --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Most of most strings: letters that need no second look. DEL needs one, because a terminal obeys it. */
static size_t shown_bytes(sl_str text)
{
    size_t bytes = 0;

    while (bytes < text.bytes) {
        const unsigned char c = (unsigned char)text.data[bytes];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            break;
        bytes++;
    }
    return bytes;
}

/* DEL and the C1 characters: the only ones that JSON leaves alone and a terminal does not. */
static sl_err add_character(sl_str character, uint32_t code, sl_buf *into)
{
    char escape[8];

    if (code != 0x7f && (code < 0x80 || code >= 0xa0))
        return sl_buf_append(into, character.data, character.bytes);
    snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code);
    return sl_buf_append(into, escape, 6);
}

/* What shown_bytes() stopped at: an escape, the closing quotation mark, or a character that needs a look. */
static sl_err add_special(sl_str text, sl_buf *into, size_t *ret_used)
{
    uint32_t code = 0;

    if (text.data[0] == '"' || text.data[0] == '\\') {
        *ret_used = text.data[0] == '"' ? 1 : 2;
        return sl_buf_append(into, text.data, *ret_used);
    }
    *ret_used = sl_utf8_first(text, &code);
    return add_character((sl_str){ text.data, *ret_used }, code, into);
}

/* The string at the front, with its quotation marks; *ret_used: its bytes. */
static sl_err add_string(sl_str text, sl_buf *into, size_t *ret_used)
{
    size_t at = 1, used = 0;
    bool is_over = false;
    sl_err err = sl_buf_append_u8(into, '"');

    while (err == SL_OK && !is_over) {
        const size_t shown = shown_bytes((sl_str){ text.data + at, text.bytes - at });
        err = sl_buf_append(into, text.data + at, shown);
        if (err != SL_OK)
            break;
        at += shown;
        is_over = text.data[at] == '"';
        err = add_special((sl_str){ text.data + at, text.bytes - at }, into, &used);
        at += used;
    }
    *ret_used = at;
    return err;
}

sl_err sl_json_compact(sl_str text, sl_buf *into)
{
    sl_err err = SL_OK;

    while (text.bytes > 0 && err == SL_OK) {
        size_t used = 1;
        if (text.data[0] == '"')
            err = add_string(text, into, &used);
        else if (!is_blank(text.data[0]))
            err = sl_buf_append_u8(into, (uint8_t)text.data[0]);
        text = (sl_str){ text.data + used, text.bytes - used };
    }
    return err;
}
