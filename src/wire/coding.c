/* wire/coding.c — see coding.h. */
#include "wire/coding.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdbool.h>

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char digits16[] = "0123456789ABCDEF";

/* Three bytes become four digits; one or two at the end become two or three. */
sl_err sl_base64_append(sl_buf *buf, sl_str bytes)
{
    const uint8_t *data = (const uint8_t *)bytes.data;
    const size_t chars = bytes.bytes / 3 * 4 + (bytes.bytes % 3 == 0 ? 0 : bytes.bytes % 3 + 1);
    const sl_err err = sl_buf_reserve(buf, chars);
    uint32_t bits = 0;
    unsigned bit_count = 0;

    if (err != SL_OK)
        return err;
    for (size_t i = 0; i < bytes.bytes; i++) {
        bits = bits << 8 | data[i];
        for (bit_count += 8; bit_count >= 6; bit_count -= 6)
            sl_buf_append_u8(buf, (uint8_t)digits64[bits >> (bit_count - 6) & 63]);
    }
    return bit_count == 0 ? SL_OK : sl_buf_append_u8(buf, (uint8_t)digits64[bits << (6 - bit_count) & 63]);
}

static int value64(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* Without the '=' at the end, of which there are at most two. */
static sl_str without_padding(sl_str text)
{
    for (int i = 0; i < 2 && text.bytes % 4 == (i == 0 ? 0 : 3) && text.bytes > 0; i++)
        if (text.data[text.bytes - 1] == '=')
            text.bytes--;
    return text;
}

static bool is_base64(sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (value64(text.data[i]) < 0)
            return false;
    return text.bytes % 4 != 1; /* one digit alone is less than a byte */
}

sl_err sl_base64_append_decoded(sl_buf *buf, sl_str padded)
{
    const sl_str text = without_padding(padded);
    uint32_t bits = 0;
    unsigned bit_count = 0;
    sl_err err;

    if (!is_base64(text))
        return SL_ERR_INVALID;
    err = sl_buf_reserve(buf, text.bytes / 4 * 3 + 2);
    for (size_t i = 0; i < text.bytes && err == SL_OK; i++) {
        bits = bits << 6 | (uint32_t)value64(text.data[i]);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            err = sl_buf_append_u8(buf, (uint8_t)(bits >> bit_count));
        }
    }
    return err;
}

static bool travels_plain(sl_str text, size_t at)
{
    const uint8_t c = (uint8_t)text.data[at];
    const bool at_an_end = at == 0 || at == text.bytes - 1;

    return c >= 0x20 && c < 0x7f && c != '%' && !(c == ' ' && at_an_end);
}

sl_err sl_percent_append(sl_buf *buf, sl_str text)
{
    sl_err err;

    if (text.bytes > SIZE_MAX / 3)
        return SL_ERR_TOO_LARGE;
    err = sl_buf_reserve(buf, 3 * text.bytes);
    for (size_t i = 0; i < text.bytes && err == SL_OK; i++) {
        const uint8_t c = (uint8_t)text.data[i];
        const char hex[3] = { '%', digits16[c >> 4], digits16[c & 15] };
        err = travels_plain(text, i) ? sl_buf_append_u8(buf, c) : sl_buf_append(buf, hex, sizeof hex);
    }
    return err;
}

sl_err sl_percent_append_decoded(sl_buf *buf, sl_str text)
{
    sl_err err = sl_buf_reserve(buf, text.bytes);

    for (size_t i = 0; i < text.bytes && err == SL_OK; i++) {
        const int byte = text.data[i] == '%' ? sl_str_hex_byte(sl_str_skip(text, i + 1)) : -1;
        err = sl_buf_append_u8(buf, byte < 0 ? (uint8_t)text.data[i] : (uint8_t)byte);
        i += byte < 0 ? 0 : 2;
    }
    return err;
}

static const struct {
    char letter;
    uint64_t ns;
} units[] = {
    { 'n', 1 },          { 'u', 1000 },        { 'm', 1000000 },
    { 'S', 1000000000 }, { 'M', 60000000000 }, { 'H', 3600000000000 },
};

enum {
    TIMEOUT_DIGITS_MAX = 8,
    TIMEOUT_NUMBER_MAX = 99999999
};

sl_err sl_timeout_parse(sl_str text, uint64_t *ret_ns)
{
    uint64_t number;

    if (text.bytes < 2 || text.bytes > TIMEOUT_DIGITS_MAX + 1)
        return SL_ERR_INVALID;
    if (sl_str_parse_u64((sl_str){ text.data, text.bytes - 1 }, &number) != SL_OK)
        return SL_ERR_INVALID;
    for (size_t i = 0; i < SL_COUNT_OF(units); i++)
        if (units[i].letter == text.data[text.bytes - 1]) {
            *ret_ns = number > UINT64_MAX / units[i].ns ? UINT64_MAX : number * units[i].ns;
            return SL_OK;
        }
    return SL_ERR_INVALID;
}

void sl_timeout_format(uint64_t timeout_ns, char *ret_text)
{
    sl_text text;
    size_t i = 0;
    uint64_t number = timeout_ns;

    while (number > TIMEOUT_NUMBER_MAX && i + 1 < SL_COUNT_OF(units)) {
        i++;
        number = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
    }
    sl_text_init(&text, ret_text, SL_TIMEOUT_CHARS_MAX);
    sl_text_add_u64(&text, number);
    sl_text_add_char(&text, units[i].letter);
    assert(!text.cut); /* UINT64_MAX ns are 5,124,096 hours */
}
