/* base/str.c — slices, the numbers and durations in them, and the builder that writes them.
 *
 * A duration is read and written with one table of units, and both ways are exact: what
 * sl_text_add_duration() writes, sl_str_parse_duration() reads back as the same number of nanoseconds. */
#include "base/str.h"

#include "base/cleanup.h"

#include <assert.h>

/* From large to small, which is the order in which the parts of a duration stand. */
static const struct unit {
    sl_str name;
    uint64_t ns;
} units[] = {
    { SL_STR_INIT("h"), 3600000000000 }, { SL_STR_INIT("m"), 60000000000 }, { SL_STR_INIT("s"), 1000000000 },
    { SL_STR_INIT("ms"), 1000000 },      { SL_STR_INIT("us"), 1000 },       { SL_STR_INIT("ns"), 1 },
};

enum {
    UNIT_S = 2 /* index of the second: a duration below one is written in a single smaller unit */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

sl_str sl_str_skip(sl_str text, size_t bytes)
{
    assert(bytes <= text.bytes);
    if (bytes == 0)
        return text; /* also keeps us from adding to a NULL pointer */
    return (sl_str){ text.data + bytes, text.bytes - bytes };
}

bool sl_str_equal(sl_str a, sl_str b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

bool sl_str_starts_with(sl_str text, sl_str prefix)
{
    return text.bytes >= prefix.bytes && sl_str_equal((sl_str){ text.data, prefix.bytes }, prefix);
}

bool sl_str_ends_with(sl_str text, sl_str suffix)
{
    return text.bytes >= suffix.bytes && sl_str_equal(sl_str_skip(text, text.bytes - suffix.bytes), suffix);
}

int sl_str_compare(sl_str a, sl_str b)
{
    const size_t shared = a.bytes < b.bytes ? a.bytes : b.bytes;
    const int order = shared == 0 ? 0 : memcmp(a.data, b.data, shared);

    if (order != 0)
        return order;
    return (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

size_t sl_str_find(sl_str text, char wanted)
{
    const char *at = text.bytes == 0 ? NULL : memchr(text.data, wanted, text.bytes);

    return at == NULL ? text.bytes : (size_t)(at - text.data);
}

bool sl_str_cut(sl_str text, char at, sl_str *ret_before, sl_str *ret_after)
{
    const size_t index = sl_str_find(text, at);

    if (index == text.bytes)
        return false;
    *ret_before = (sl_str){ text.data, index };
    *ret_after = sl_str_skip(text, index + 1);
    return true;
}

sl_str sl_str_trim(sl_str text)
{
    while (text.bytes > 0 && is_blank(text.data[text.bytes - 1]))
        text.bytes--;
    while (text.bytes > 0 && is_blank(text.data[0]))
        text = sl_str_skip(text, 1);
    return text;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int sl_str_hex_byte(sl_str text)
{
    const int high = text.bytes < 2 ? -1 : hex_digit(text.data[0]);
    const int low = text.bytes < 2 ? -1 : hex_digit(text.data[1]);

    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

sl_err sl_str_parse_u64(sl_str text, uint64_t *ret_value)
{
    bool too_large = false;
    uint64_t value = 0;

    if (text.bytes == 0)
        return SL_ERR_INVALID;
    for (size_t i = 0; i < text.bytes; i++) {
        if (!is_digit(text.data[i])) /* looked for to the end: "too large" is said only about numbers */
            return SL_ERR_INVALID;
        const uint64_t digit = (uint64_t)(text.data[i] - '0');
        too_large = too_large || value > (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (too_large)
        return SL_ERR_TOO_LARGE;
    *ret_value = value;
    return SL_OK;
}

/* Takes the digits at the front of *text away from it. */
static sl_str take_digits(sl_str *text)
{
    sl_str digits = { text->data, 0 };

    while (digits.bytes < text->bytes && is_digit(text->data[digits.bytes]))
        digits.bytes++;
    *text = sl_str_skip(*text, digits.bytes);
    return digits;
}

/* Takes everything up to the next digit away from *text: the name of a unit, if it is one. Only units from
 * index `from` on are allowed. Returns its index, or the length of the table. */
static size_t take_unit(sl_str *text, size_t from)
{
    sl_str name = { text->data, 0 };
    size_t index = from;

    while (name.bytes < text->bytes && !is_digit(text->data[name.bytes]))
        name.bytes++;
    while (index < SL_COUNT_OF(units) && !sl_str_equal(units[index].name, name))
        index++;
    *text = sl_str_skip(*text, name.bytes);
    return index;
}

static sl_err whole_ns(sl_str digits, uint64_t unit_ns, uint64_t *ret_ns)
{
    uint64_t count;
    const sl_err err = sl_str_parse_u64(digits, &count);

    if (err != SL_OK)
        return err;
    if (count > UINT64_MAX / unit_ns)
        return SL_ERR_TOO_LARGE;
    *ret_ns = count * unit_ns;
    return SL_OK;
}

/* The value of 0.digits units. From the last digit to the first, each step adds a digit and divides by ten.
 * The sum stays below ten units, and if the result is a whole number, so is each step; else it is refused. */
static sl_err fraction_ns(sl_str digits, uint64_t unit_ns, uint64_t *ret_ns)
{
    uint64_t sum_ns = 0;

    for (size_t i = digits.bytes; i > 0; i--) {
        sum_ns += (uint64_t)(digits.data[i - 1] - '0') * unit_ns;
        if (sum_ns % 10 != 0)
            return SL_ERR_INVALID;
        sum_ns /= 10;
    }
    *ret_ns = sum_ns;
    return SL_OK;
}

/* Takes one "12.5ms" from *text and adds it to *sum_ns. *unit_from moves on, past the unit that was found. */
static sl_err take_part(sl_str *text, size_t *unit_from, uint64_t *sum_ns)
{
    const sl_str whole = take_digits(text);
    const bool has_point = text->bytes > 0 && text->data[0] == '.';
    sl_str fraction = { 0 };
    uint64_t part_ns = 0, rest_ns = 0;

    if (has_point) {
        *text = sl_str_skip(*text, 1);
        fraction = take_digits(text);
    }
    const size_t unit = take_unit(text, *unit_from);
    if (unit == SL_COUNT_OF(units) || (has_point && (fraction.bytes == 0 || text->bytes > 0)))
        return SL_ERR_INVALID;

    sl_err err = whole_ns(whole, units[unit].ns, &part_ns);
    if (err == SL_OK)
        err = fraction_ns(fraction, units[unit].ns, &rest_ns);
    if (err != SL_OK)
        return err;
    if (part_ns > UINT64_MAX - rest_ns || part_ns + rest_ns > UINT64_MAX - *sum_ns)
        return SL_ERR_TOO_LARGE;
    *sum_ns += part_ns + rest_ns;
    *unit_from = unit + 1;
    return SL_OK;
}

sl_err sl_str_parse_duration(sl_str text, sl_duration_bounds bounds, uint64_t *ret_ns)
{
    const bool bare_zero = sl_str_equal(text, SL_STR("0")); /* zero of any unit is the same */
    uint64_t sum_ns = 0;
    size_t unit_from = 0;

    assert(bounds.min_ns <= bounds.max_ns);
    if (text.bytes == 0)
        return SL_ERR_INVALID;
    while (text.bytes > 0 && !bare_zero) {
        const sl_err err = take_part(&text, &unit_from, &sum_ns);
        if (err != SL_OK)
            return err;
    }
    if (sum_ns < bounds.min_ns)
        return SL_ERR_INVALID;
    if (sum_ns > bounds.max_ns)
        return SL_ERR_TOO_LARGE;
    *ret_ns = sum_ns;
    return SL_OK;
}

void sl_text_init(sl_text *text, char *buffer, size_t capacity)
{
    assert(capacity > 0);
    *text = (sl_text){ .data = buffer, .capacity = capacity };
    buffer[0] = '\0';
}

/* How many of the first `bytes` bytes end with a whole character. A UTF-8 character has at most three bytes
 * after its first; where there are more of them in a row it is no UTF-8, and any place is as good as another. */
static size_t whole_characters(sl_str text, size_t bytes)
{
    for (size_t back = 0; back <= 3 && back <= bytes; back++) {
        if (((unsigned char)text.data[bytes - back] & 0xc0) != 0x80)
            return bytes - back;
    }
    return bytes;
}

void sl_text_add_str(sl_text *text, sl_str added)
{
    const size_t room = text->capacity - 1 - text->bytes;

    if (text->cut || added.bytes == 0)
        return;
    if (added.bytes > room) {
        text->cut = true;
        added.bytes = whole_characters(added, room);
    }
    memcpy(text->data + text->bytes, added.data, added.bytes);
    text->bytes += added.bytes;
    text->data[text->bytes] = '\0';
}

void sl_text_add(sl_text *text, const char *added)
{
    sl_text_add_str(text, sl_str_from(added));
}

void sl_text_add_char(sl_text *text, char added)
{
    sl_text_add_str(text, (sl_str){ &added, 1 });
}

static void add_whole(sl_text *text, sl_str added)
{
    if (added.bytes > text->capacity - 1 - text->bytes)
        text->cut = true;
    sl_text_add_str(text, added);
}

enum {
    DIGITS_MAX = 20 /* of UINT64_MAX */
};

/* The digits at the end of `space`, with zeros in front up to `digits_min`. */
static sl_str digits_of(uint64_t value, size_t digits_min, char space[DIGITS_MAX])
{
    char *first = space + DIGITS_MAX;

    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || (size_t)(space + DIGITS_MAX - first) < digits_min);
    return (sl_str){ first, (size_t)(space + DIGITS_MAX - first) };
}

void sl_text_add_u64(sl_text *text, uint64_t value)
{
    char space[DIGITS_MAX];

    add_whole(text, digits_of(value, 1, space));
}

void sl_text_add_i64(sl_text *text, int64_t value)
{
    const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; /* right for INT64_MIN as well */
    char buffer[DIGITS_MAX + 2];
    sl_text number;

    sl_text_init(&number, buffer, sizeof buffer);
    if (value < 0)
        sl_text_add_char(&number, '-');
    sl_text_add_u64(&number, size);
    add_whole(text, sl_text_str(&number));
}

/* Adds ".5" for 500 of 1000; nothing for 0. parts is a power of ten. */
static void add_fraction(sl_text *text, uint64_t value, uint64_t parts)
{
    char space[DIGITS_MAX];
    size_t digit_count = 0;

    if (value == 0)
        return;
    for (; value % 10 == 0; value /= 10)
        parts /= 10;
    for (; parts > 1; parts /= 10)
        digit_count++;
    sl_text_add_char(text, '.');
    sl_text_add_str(text, digits_of(value, digit_count, space));
}

static void add_part(sl_text *text, uint64_t duration_ns, const struct unit *unit)
{
    sl_text_add_u64(text, duration_ns / unit->ns);
    add_fraction(text, duration_ns % unit->ns, unit->ns);
    sl_text_add_str(text, unit->name);
}

/* The largest unit, from the second down, of which there is at least one; for 0 the second. */
static const struct unit *unit_below_minute(uint64_t duration_ns)
{
    const struct unit *unit = &units[UNIT_S];

    while (duration_ns > 0 && duration_ns < unit->ns)
        unit++;
    return unit;
}

void sl_text_add_duration(sl_text *text, uint64_t duration_ns)
{
    char buffer[40]; /* the longest is "5124095h34m33.709551615s" */
    uint64_t left_ns = duration_ns;
    sl_text parts;

    sl_text_init(&parts, buffer, sizeof buffer);
    for (size_t i = 0; i < UNIT_S; i++) {
        if (left_ns >= units[i].ns)
            add_part(&parts, left_ns - left_ns % units[i].ns, &units[i]);
        left_ns %= units[i].ns;
    }
    if (parts.bytes == 0)
        add_part(&parts, left_ns, unit_below_minute(left_ns));
    else if (left_ns > 0)
        add_part(&parts, left_ns,
                 &units[UNIT_S]); /* "2m0.25s", not "2m250ms": people read it as one number */
    add_whole(text, sl_text_str(&parts));
}

typedef struct date {
    uint64_t year, month, day; /* month and day count from 1 */
} date;

static bool is_leap(uint64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static uint64_t days_in_month(uint64_t year, uint64_t month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (uint64_t)(month == 2 && is_leap(year));
}

enum {
    YEAR_NEAR = 2020,
    DAYS_UNTIL_YEAR_NEAR = 18262 /* from 1970 */
};

/* Walked year by year: 64 bits of nanoseconds end in 2554, so the walk is short and needs no formula. It begins near what is asked for
 * nearly always. */
static date date_of(uint64_t days_since_1970)
{
    const bool is_near = days_since_1970 >= DAYS_UNTIL_YEAR_NEAR;
    date d = { is_near ? YEAR_NEAR : 1970, 1, 1 };
    uint64_t left = days_since_1970 - (is_near ? DAYS_UNTIL_YEAR_NEAR : 0);

    for (; left >= 365 + (uint64_t)is_leap(d.year); d.year++)
        left -= 365 + (uint64_t)is_leap(d.year);
    for (; left >= days_in_month(d.year, d.month); d.month++)
        left -= days_in_month(d.year, d.month);
    d.day += left;
    return d;
}

/* Decimal digits with zeros in front, and a character behind them. */
static char *put_digits(char *at, uint64_t value, size_t digits, char after)
{
    for (size_t i = digits; i-- > 0; value /= 10)
        at[i] = (char)('0' + value % 10);
    at[digits] = after;
    return at + digits + 1;
}

/* Written in one piece: it stands in each line of a log and each message for a handler. */
void sl_text_add_time(sl_text *text, uint64_t wall_ns)
{
    const uint64_t ms = wall_ns / 1000000, seconds = ms / 1000;
    const date d = date_of(seconds / 86400);
    const uint32_t of_day = (uint32_t)(seconds % 86400);
    char time[sizeof "2026-11-15T22:53:32.123Z"], *at = time;

    at = put_digits(at, d.year, 4, '-');
    at = put_digits(at, d.month, 2, '-');
    at = put_digits(at, d.day, 2, 'T');
    at = put_digits(at, of_day / 3600, 2, ':');
    at = put_digits(at, of_day / 60 % 60, 2, ':');
    at = put_digits(at, of_day % 60, 2, '.');
    at = put_digits(at, ms % 1000, 3, 'Z');
    add_whole(text, (sl_str){ time, (size_t)(at - time) });
}
