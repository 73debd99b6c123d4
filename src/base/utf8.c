/* base/utf8.c — the checks of utf8.h.
 *
 * The first byte says how many follow, each with six more bits. What makes a decoder safe is what it refuses:
 * a longer form than needed would give one character two spellings (and "../" a way past a check), a
 * surrogate is half of a character in another encoding. */
#include "base/utf8.h"

#include "base/cleanup.h"

/* One row for each length: how the first byte begins, and the smallest number that needs this length. */
static const struct {
    uint8_t mask, begin;
    uint32_t code_min;
} forms[] = {
    { 0x80, 0x00, 0 },
    { 0xe0, 0xc0, 0x80 },
    { 0xf0, 0xe0, 0x800 },
    { 0xf8, 0xf0, 0x10000 },
};

static bool is_character(uint32_t code, uint32_t code_min)
{
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;

    return code >= code_min && code <= 0x10ffff && !surrogate;
}

/* The number from `bytes` bytes of the given form; UINT32_MAX when one of them cannot follow the first. */
static uint32_t decode(const unsigned char *data, size_t bytes, uint8_t mask)
{
    uint32_t code = data[0] & (uint8_t)~mask;

    for (size_t i = 1; i < bytes; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        code = code << 6 | (data[i] & 0x3f);
    }
    return code;
}

size_t sl_utf8_first(sl_str text, uint32_t *ret_code)
{
    const unsigned char *data = (const unsigned char *)text.data;
    size_t form = 0;
    uint32_t code;

    if (text.bytes == 0)
        return 0;
    while (form < SL_COUNT_OF(forms) && (data[0] & forms[form].mask) != forms[form].begin)
        form++;
    if (form == SL_COUNT_OF(forms) || form + 1 > text.bytes)
        return 0;
    code = decode(data, form + 1, forms[form].mask);
    if (!is_character(code, forms[form].code_min))
        return 0;
    *ret_code = code;
    return form + 1;
}

/* Names are nearly always ASCII: eight bytes of that are one look. */
static bool eight_are_ascii(const char *data)
{
    uint64_t eight;

    memcpy(&eight, data, sizeof eight);
    return (eight & UINT64_C(0x8080808080808080)) == 0;
}

bool sl_utf8_valid(sl_str text)
{
    for (size_t at = 0; at < text.bytes;) {
        if (text.bytes - at >= 8 && eight_are_ascii(text.data + at)) {
            at += 8;
            continue;
        }
        uint32_t code;
        const size_t bytes = sl_utf8_first((sl_str){ text.data + at, text.bytes - at }, &code);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}
