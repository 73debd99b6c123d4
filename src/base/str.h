/* base/str.h — text that is read (sl_str, a slice) and text that is made (sl_text, a builder).
 *
 * A slice is a pointer and a length: it owns nothing, needs no closing zero and may hold zero bytes, so parts
 * of a request are named without copying. A builder writes into a buffer of the caller: it never overflows,
 * always ends with a zero, and remembers that something did not fit, so that callers check once at the end
 * instead of at each step. Nothing here allocates. */
#ifndef SL_BASE_STR_H
#define SL_BASE_STR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sl_str {
    const char *data; /* may be NULL when bytes is 0 */
    size_t bytes;
} sl_str;

/* A slice of a string literal; the second form is for initialisers of static tables. */
#define SL_STR(literal) ((sl_str)SL_STR_INIT(literal))
#define SL_STR_INIT(literal)                                                                                 \
    {                                                                                                        \
        "" literal, sizeof(literal) - 1                                                                      \
    }

/* All of a zero-terminated text; NULL gives the empty slice. */
static inline sl_str sl_str_from(const char *text)
{
    return (sl_str){ text, text == NULL ? 0 : strlen(text) };
}

bool sl_str_equal(sl_str a, sl_str b);
bool sl_str_starts_with(sl_str text, sl_str prefix);
bool sl_str_ends_with(sl_str text, sl_str suffix);

/* Below, at or above 0, by bytes as unsigned numbers; a text comes after its own beginnings. */
int sl_str_compare(sl_str a, sl_str b);

/* Index of the first `wanted`, or text.bytes when there is none. */
size_t sl_str_find(sl_str text, char wanted);

/* Splits at the first `at`, which goes into neither part. False when there is none: both are untouched. */
bool sl_str_cut(sl_str text, char at, sl_str *ret_before, sl_str *ret_after);

/* Without its first `bytes` bytes, of which there must be as many. */
sl_str sl_str_skip(sl_str text, size_t bytes);

/* Without blanks, tabs and line ends at both ends. */
sl_str sl_str_trim(sl_str text);

/* Decimal digits and nothing else: no sign, no blanks. Leading zeros are allowed.
 *   SL_OK             *ret_value is set
 *   SL_ERR_INVALID    empty, or another character
 *   SL_ERR_TOO_LARGE  above UINT64_MAX */
sl_err sl_str_parse_u64(sl_str text, uint64_t *ret_value);

/* The byte that the first two characters say in hexadecimal, as behind a "%" or a "\x"; -1 when they are no such digits. */
int sl_str_hex_byte(sl_str text);

typedef struct sl_duration_bounds {
    uint64_t min_ns, max_ns; /* both are allowed values */
} sl_duration_bounds;

/* "30s", "1.5m", "250ms", "10us", "2h", "2m30s", or a bare "0". Units are h, m, s, ms, us, ns, from large to
 * small and each at most once; only the last number may have a fraction. A value is never rounded: a fraction
 * that is no whole number of nanoseconds is refused.
 *   SL_OK             *ret_ns is set
 *   SL_ERR_INVALID    not a duration, or below bounds.min_ns
 *   SL_ERR_TOO_LARGE  above bounds.max_ns */
sl_err sl_str_parse_duration(sl_str text, sl_duration_bounds bounds, uint64_t *ret_ns);

typedef struct sl_text {
    char *data;             /* the caller's buffer; data[bytes] is always zero */
    size_t capacity, bytes; /* capacity counts the closing zero, bytes does not */
    bool cut;               /* something did not fit; from then on nothing more is added */
} sl_text;

/* capacity must be at least 1. */
void sl_text_init(sl_text *text, char *buffer, size_t capacity);

static inline sl_str sl_text_str(const sl_text *text)
{
    return (sl_str){ text->data, text->bytes };
}

/* Adds as much as fits; a cut never leaves the first half of a UTF-8 character behind. */
void sl_text_add(sl_text *text, const char *added);
void sl_text_add_str(sl_text *text, sl_str added);
void sl_text_add_char(sl_text *text, char added);

/* These are added whole or not at all, because half a number is a wrong number. */
void sl_text_add_u64(sl_text *text, uint64_t value);
void sl_text_add_i64(sl_text *text, int64_t value);

/* "0s", "250ms", "1.5s", "2m30s", "100h": exact, and read back by sl_str_parse_duration(). */
void sl_text_add_duration(sl_text *text, uint64_t duration_ns);

/* "2026-11-15T22:53:32.123Z" from nanoseconds since 1970 in UTC; parts of a millisecond are dropped. */
void sl_text_add_time(sl_text *text, uint64_t wall_ns);

#endif
