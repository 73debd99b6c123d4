/* base/json_text.c — the grammar of RFC 8259, a function for each of its rules. What is open is kept as bits and not as calls, so that
 * depth costs no stack. */
#include "base/json_text.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdint.h>

/* --- characters that stand for themselves --- */

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Is one of these eight a control character, a quotation mark, a backslash, or none of ASCII? Subtracting borrows only beyond a byte that
 * is one of these itself, so what it finds too much is never alone. */
static bool has_special(uint64_t eight)
{
    const uint64_t quote = eight ^ EACH_BYTE('"'), backslash = eight ^ EACH_BYTE('\\');
    const uint64_t below = (eight - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1));

    return ((below | eight) & EACH_BYTE(0x80)) != 0;
}

/* They are nearly all, so eight at a time are looked at. */
size_t sl_json_text_plain_bytes(sl_str text)
{
    uint64_t eight;
    size_t i = 0;

    for (; i + sizeof eight <= text.bytes; i += sizeof eight) {
        memcpy(&eight, text.data + i, sizeof eight);
        if (has_special(eight))
            break;
    }
    while (i < text.bytes && (uint8_t)text.data[i] >= 0x20 && (uint8_t)text.data[i] < 0x80 &&
           text.data[i] != '"' && text.data[i] != '\\')
        i++;
    return i;
}

/* --- values that hold no others --- */

typedef struct reading {
    const char *at, *end;
    uint64_t objects[SL_JSON_TEXT_DEPTH_MAX / 64]; /* a bit for each open bracket: is it one of an object? */
    size_t depth, depth_max;
} reading;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(reading *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static bool skip_char(reading *r, char wanted)
{
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool skip_escape(reading *r)
{
    if (r->at == r->end)
        return false;
    const char kind = *r->at++;
    if (kind != 'u')
        return kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL;
    for (int i = 0; i < 4; i++) {
        if (r->at == r->end || !is_hex(*r->at++))
            return false;
    }
    return true;
}

static bool skip_text(reading *r)
{
    uint32_t code;

    if (!skip_char(r, '"'))
        return false;
    for (;;) {
        r->at += sl_json_text_plain_bytes((sl_str){ r->at, (size_t)(r->end - r->at) });
        if (r->at == r->end)
            return false;
        const uint8_t byte = (uint8_t)*r->at;
        size_t bytes = 1;
        if (byte < 0x20)
            return false;
        if (byte >= 0x80)
            bytes = sl_utf8_first((sl_str){ r->at, (size_t)(r->end - r->at) }, &code);
        if (bytes == 0)
            return false;
        r->at += bytes;
        if (byte == '"')
            return true;
        if (byte == '\\' && !skip_escape(r))
            return false;
    }
}

static bool skip_digits(reading *r)
{
    const char *const first = r->at;

    while (r->at < r->end && is_digit(*r->at))
        r->at++;
    return r->at > first;
}

static bool skip_number(reading *r)
{
    (void)skip_char(r, '-');
    if (!skip_char(r, '0') && !skip_digits(r))
        return false;
    if (skip_char(r, '.') && !skip_digits(r))
        return false;
    if (!skip_char(r, 'e') && !skip_char(r, 'E'))
        return true;
    if (!skip_char(r, '+'))
        (void)skip_char(r, '-');
    return skip_digits(r);
}

static bool skip_word(reading *r, sl_str word)
{
    if ((size_t)(r->end - r->at) < word.bytes || memcmp(r->at, word.data, word.bytes) != 0)
        return false;
    r->at += word.bytes;
    return true;
}

static bool skip_plain(reading *r)
{
    switch (r->at == r->end ? '\0' : *r->at) {
    case '"': return skip_text(r);
    case 't': return skip_word(r, SL_STR("true"));
    case 'f': return skip_word(r, SL_STR("false"));
    case 'n': return skip_word(r, SL_STR("null"));
    default: return skip_number(r);
    }
}

/* --- what holds others --- */

static bool in_object(const reading *r)
{
    return (r->objects[(r->depth - 1) / 64] >> ((r->depth - 1) % 64) & 1) != 0;
}

static bool skip_name(reading *r)
{
    skip_blanks(r);
    if (!skip_text(r))
        return false;
    skip_blanks(r);
    return skip_char(r, ':');
}

static bool push(reading *r, bool is_object)
{
    const uint64_t bit = UINT64_C(1) << (r->depth % 64);

    if (r->depth == r->depth_max)
        return false;
    uint64_t *const word = &r->objects[r->depth++ / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    return true;
}

/* After an opening bracket. *ret_is_empty: it was closed again. */
static bool enter(reading *r, bool is_object, bool *ret_is_empty)
{
    if (!push(r, is_object))
        return false;
    skip_blanks(r);
    *ret_is_empty = skip_char(r, is_object ? '}' : ']');
    if (*ret_is_empty)
        r->depth--;
    return *ret_is_empty || !is_object || skip_name(r);
}

/* After a value: closes what ends here. *ret_is_over: it was the last one. */
static bool leave(reading *r, bool *ret_is_over)
{
    for (skip_blanks(r); r->depth > 0; skip_blanks(r)) {
        const bool is_object = in_object(r);
        if (skip_char(r, ','))
            return !is_object || skip_name(r);
        if (!skip_char(r, is_object ? '}' : ']'))
            return false;
        r->depth--;
    }
    *ret_is_over = true;
    return r->at == r->end;
}

static bool skip_all(reading *r)
{
    bool is_over = false;

    while (!is_over) {
        bool has_value = true;
        skip_blanks(r);
        const bool is_object = skip_char(r, '{');
        if (is_object || skip_char(r, '[')) {
            if (!enter(r, is_object, &has_value))
                return false;
        } else if (!skip_plain(r)) {
            return false;
        }
        if (has_value && !leave(r, &is_over))
            return false;
    }
    return true;
}

bool sl_json_text_is_value(sl_str text, size_t depth_max)
{
    reading r = { .at = text.data, .depth_max = depth_max };

    assert(depth_max <= SL_JSON_TEXT_DEPTH_MAX);
    if (text.bytes == 0)
        return false; /* its data may be NULL */
    r.end = text.data + text.bytes;
    return skip_all(&r);
}
