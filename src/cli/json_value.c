/* cli/json_value.c — see cli/json_value.h. The grammar of RFC 8259, a function for each of its rules. */
#include "cli/json_value.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

typedef struct scanner {
    sl_str rest;
    unsigned depth;
} scanner;

static bool scan_value(scanner *s);

static char first(const scanner *s)
{
    return s->rest.bytes == 0 ? '\0' : s->rest.data[0];
}

static void step(scanner *s, size_t bytes)
{
    s->rest = (sl_str){ s->rest.data + bytes, s->rest.bytes - bytes };
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(scanner *s)
{
    while (s->rest.bytes > 0 && is_blank(s->rest.data[0]))
        step(s, 1);
}

static bool take(scanner *s, char wanted)
{
    if (s->rest.bytes == 0 || s->rest.data[0] != wanted)
        return false;
    step(s, 1);
    return true;
}

static bool take_word(scanner *s, sl_str word)
{
    if (!sl_str_starts_with(s->rest, word))
        return false;
    step(s, word.bytes);
    return true;
}

/* --- numbers --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(scanner *s)
{
    if (!is_digit(first(s)))
        return false;
    while (is_digit(first(s)))
        step(s, 1);
    return true;
}

static bool scan_number(scanner *s)
{
    (void)take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (!take(s, 'e') && !take(s, 'E'))
        return true;
    if (!take(s, '+'))
        (void)take(s, '-');
    return scan_digits(s);
}

/* --- strings --- */

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool scan_escape(scanner *s)
{
    const char c = first(s);

    if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
        return false;
    step(s, 1);
    for (int i = 0; c == 'u' && i < 4; i++) {
        if (!is_hex(first(s)))
            return false;
        step(s, 1);
    }
    return true;
}

/* Most of most strings: letters that need no second look. */
static size_t plain_bytes(sl_str text)
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

static bool scan_string(scanner *s)
{
    uint32_t code;

    if (!take(s, '"'))
        return false;
    for (;;) {
        step(s, plain_bytes(s->rest));
        if (take(s, '"'))
            return true;
        if (take(s, '\\')) {
            if (!scan_escape(s))
                return false;
            continue;
        }
        const size_t bytes = sl_utf8_first(s->rest, &code);
        if (bytes == 0 || code < 0x20)
            return false;
        step(s, bytes);
    }
}

/* --- what holds others --- */

static bool scan_member(scanner *s)
{
    skip_blanks(s);
    if (!scan_string(s))
        return false;
    skip_blanks(s);
    return take(s, ':') && scan_value(s);
}

/* Behind the opening bracket: nothing, or items with commas between them, up to the closing one. */
static bool scan_items(scanner *s, bool (*scan_item)(scanner *s), char end)
{
    skip_blanks(s);
    if (take(s, end))
        return true;
    do {
        if (!scan_item(s))
            return false;
    } while (take(s, ','));
    return take(s, end);
}

static bool scan_nested(scanner *s)
{
    bool is_good;

    if (s->depth == SL_JSON_DEPTH_MAX)
        return false;
    s->depth++;
    is_good = take(s, '{') ? scan_items(s, scan_member, '}') : take(s, '[') && scan_items(s, scan_value, ']');
    s->depth--;
    return is_good;
}

static bool scan_bare(scanner *s)
{
    switch (first(s)) {
    case '{':
    case '[': return scan_nested(s);
    case '"': return scan_string(s);
    case 't': return take_word(s, SL_STR("true"));
    case 'f': return take_word(s, SL_STR("false"));
    case 'n': return take_word(s, SL_STR("null"));
    default: return scan_number(s);
    }
}

/* With the blanks around it. */
static bool scan_value(scanner *s)
{
    skip_blanks(s);
    if (!scan_bare(s))
        return false;
    skip_blanks(s);
    return true;
}

bool sl_json_is_value(sl_str text)
{
    scanner s = { .rest = text };

    return scan_value(&s) && s.rest.bytes == 0;
}

bool sl_json_is_object(sl_str text)
{
    const sl_str trimmed = sl_str_trim(text);

    return trimmed.bytes > 0 && trimmed.data[0] == '{' && sl_json_is_value(text);
}

/* --- on one line --- */

/* DEL and the C1 characters: the only ones that JSON leaves alone and a terminal does not. */
static sl_err add_character(sl_str character, uint32_t code, sl_buf *into)
{
    char escape[8];

    if (code != 0x7f && (code < 0x80 || code >= 0xa0))
        return sl_buf_append(into, character.data, character.bytes);
    snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code);
    return sl_buf_append(into, escape, 6);
}

/* What plain_bytes() stopped at: an escape, the closing quotation mark, or a character that needs a look. */
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
        const size_t plain = plain_bytes((sl_str){ text.data + at, text.bytes - at });
        err = sl_buf_append(into, text.data + at, plain);
        if (err != SL_OK)
            break;
        at += plain;
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
