/* tests/unit/base/test_str.c — slices, numbers, durations, and the builder that cannot overflow. */
#include "support.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

static const sl_duration_bounds any = { 0, UINT64_MAX };

TEST(a_slice_of_a_literal_leaves_out_the_closing_zero)
{
    static const sl_str in_a_table[] = { SL_STR_INIT("one"), SL_STR_INIT("") };

    EXPECT_EQ(SL_STR("abc").bytes, 3);
    EXPECT_EQ(SL_STR("a\0b").bytes, 3);
    EXPECT_EQ(in_a_table[0].bytes, 3);
    EXPECT_EQ(in_a_table[1].bytes, 0);
    EXPECT_EQ(sl_str_from("four").bytes, 4);
    EXPECT_EQ(sl_str_from(NULL).bytes, 0);
}

TEST(slices_compare_by_bytes_and_length)
{
    static const struct {
        sl_str a, b;
        int order;
        bool a_starts_with_b;
    } rows[] = {
        { SL_STR_INIT(""), SL_STR_INIT(""), 0, true },
        { { NULL, 0 }, SL_STR_INIT(""), 0, true },
        { SL_STR_INIT("a"), { NULL, 0 }, 1, true },
        { SL_STR_INIT("a"), SL_STR_INIT("a"), 0, true },
        { SL_STR_INIT("a"), SL_STR_INIT("b"), -1, false },
        { SL_STR_INIT("a"), SL_STR_INIT("ab"), -1, false },
        { SL_STR_INIT("ab"), SL_STR_INIT("a"), 1, true },
        { SL_STR_INIT("a\0b"), SL_STR_INIT("a\0c"), -1, false },
        { SL_STR_INIT("a\0"), SL_STR_INIT("a"), 1, true },
        { SL_STR_INIT("\xff"), SL_STR_INIT("a"), 1, false }, /* as unsigned bytes */
        { SL_STR_INIT("$et-order"), SL_STR_INIT("$et-"), 1, true },
        { { "abc", 1 }, SL_STR_INIT("abc"), -1, false }, /* what stands behind a slice is not part of it */
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const int order = sl_str_compare(rows[i].a, rows[i].b), back = sl_str_compare(rows[i].b, rows[i].a);
        EXPECT_ROW((order > 0) - (order < 0) == rows[i].order, i);
        EXPECT_ROW((back > 0) - (back < 0) == -rows[i].order, i);
        EXPECT_ROW(sl_str_equal(rows[i].a, rows[i].b) == (rows[i].order == 0), i);
        EXPECT_ROW(sl_str_starts_with(rows[i].a, rows[i].b) == rows[i].a_starts_with_b, i);
    }
}

TEST(a_text_ends_with_what_stands_last)
{
    static const struct {
        sl_str text, end;
        bool is_so;
    } rows[] = {
        { SL_STR_INIT(""), SL_STR_INIT(""), true },
        { { NULL, 0 }, { NULL, 0 }, true },
        { { NULL, 0 }, SL_STR_INIT("a"), false },
        { SL_STR_INIT("a"), { NULL, 0 }, true },
        { SL_STR_INIT("a.seg"), SL_STR_INIT(".seg"), true },
        { SL_STR_INIT(".seg"), SL_STR_INIT(".seg"), true },
        { SL_STR_INIT("seg"), SL_STR_INIT(".seg"), false },
        { SL_STR_INIT("a.seg.tmp"), SL_STR_INIT(".seg"), false },
        { SL_STR_INIT("a.seg\0"), SL_STR_INIT(".seg"), false },
        { SL_STR_INIT("a\0b"), SL_STR_INIT("\0b"), true },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_str_ends_with(rows[i].text, rows[i].end) == rows[i].is_so, i);
}

TEST(two_hexadecimal_digits_are_a_byte_and_nothing_else_is)
{
    static const struct {
        sl_str text;
        int byte;
    } rows[] = {
        { SL_STR_INIT("00"), 0 },
        { SL_STR_INIT("ff"), 255 },
        { SL_STR_INIT("Fa9"), 250 },
        { SL_STR_INIT("9A"), 0x9a },
        { SL_STR_INIT("0g"), -1 },
        { SL_STR_INIT("g0"), -1 },
        { SL_STR_INIT(" 1"), -1 },
        { SL_STR_INIT("+1"), -1 },
        { SL_STR_INIT("1"), -1 },
        { { "12", 1 }, -1 },
        { { NULL, 0 }, -1 },
        { SL_STR_INIT("@1"), -1 },
        { SL_STR_INIT("`1"), -1 },
        { SL_STR_INIT("/:"), -1 },
        { SL_STR_INIT("\xff"
                      "1"),
          -1 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_str_hex_byte(rows[i].text) == rows[i].byte, i);
}

TEST(a_character_is_found_at_its_first_place_or_at_the_end)
{
    EXPECT_EQ(sl_str_find(SL_STR("key=a=b"), '='), 3);
    EXPECT_EQ(sl_str_find(SL_STR("=x"), '='), 0);
    EXPECT_EQ(sl_str_find(SL_STR("none"), '='), 4);
    EXPECT_EQ(sl_str_find((sl_str){ NULL, 0 }, '='), 0);
    EXPECT_EQ(sl_str_find((sl_str){ "ab=", 2 }, '='), 2);
}

TEST(cutting_leaves_the_separator_out_and_touches_nothing_without_one)
{
    static const struct {
        const char *text, *before, *after;
    } rows[] = { { "key=a=b", "key", "a=b" }, { "=b", "", "b" }, { "a=", "a", "" }, { "=", "", "" } };
    sl_str before = SL_STR("old"), after = SL_STR("old");

    EXPECT(!sl_str_cut(SL_STR("none"), '=', &before, &after));
    EXPECT(!sl_str_cut(SL_STR(""), '=', &before, &after));
    EXPECT(sl_str_equal(before, SL_STR("old")) && sl_str_equal(after, SL_STR("old")));
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_ROW(sl_str_cut(sl_str_from(rows[i].text), '=', &before, &after), i);
        EXPECT_ROW(sl_str_equal(before, sl_str_from(rows[i].before)), i);
        EXPECT_ROW(sl_str_equal(after, sl_str_from(rows[i].after)), i);
    }
}

TEST(trimming_takes_blanks_from_both_ends_only)
{
    static const struct {
        const char *text, *trimmed;
    } rows[] = { { "", "" },    { " ", "" },   { " \t\r\n ", "" },   { "a", "a" },
                 { " a", "a" }, { "a ", "a" }, { "\ta b\n", "a b" }, { "\v", "\v" } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_str_equal(sl_str_trim(sl_str_from(rows[i].text)), sl_str_from(rows[i].trimmed)), i);
    EXPECT_EQ(sl_str_trim((sl_str){ NULL, 0 }).bytes, 0);
}

TEST(a_number_is_digits_within_64_bits)
{
    static const struct {
        const char *text;
        sl_err err;
        uint64_t value;
    } rows[] = {
        { "0", SL_OK, 0 },
        { "007", SL_OK, 7 },
        { "18446744073709551614", SL_OK, UINT64_MAX - 1 },
        { "18446744073709551615", SL_OK, UINT64_MAX },
        { "000000000018446744073709551615", SL_OK, UINT64_MAX },
        { "18446744073709551616", SL_ERR_TOO_LARGE, 0 },
        { "18446744073709551620", SL_ERR_TOO_LARGE, 0 },
        { "28446744073709551615", SL_ERR_TOO_LARGE, 0 },
        { "184467440737095516150", SL_ERR_TOO_LARGE, 0 },
        { "999999999999999999999999999999999999999999", SL_ERR_TOO_LARGE, 0 },
        { "99999999999999999999x", SL_ERR_INVALID, 0 },
        { "", SL_ERR_INVALID, 0 },
        { "-1", SL_ERR_INVALID, 0 },
        { "+1", SL_ERR_INVALID, 0 },
        { " 1", SL_ERR_INVALID, 0 },
        { "1 ", SL_ERR_INVALID, 0 },
        { "0x1", SL_ERR_INVALID, 0 },
        { "1/", SL_ERR_INVALID, 0 },
        { "1:", SL_ERR_INVALID, 0 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        uint64_t value = 77;
        EXPECT_ROW(sl_str_parse_u64(sl_str_from(rows[i].text), &value) == rows[i].err, i);
        EXPECT_ROW(value == (rows[i].err == SL_OK ? rows[i].value : 77), i);
    }
    EXPECT_ERR(sl_str_parse_u64(SL_STR("1\0"), &(uint64_t){ 0 }), SL_ERR_INVALID);
}

TEST(a_duration_is_numbers_with_units_from_large_to_small)
{
    static const struct {
        const char *text;
        sl_err err;
        uint64_t ns;
    } rows[] = {
        { "30s", SL_OK, 30000000000 },
        { "1.5m", SL_OK, 90000000000 },
        { "250ms", SL_OK, 250000000 },
        { "2h", SL_OK, 7200000000000 },
        { "10us", SL_OK, 10000 },
        { "7ns", SL_OK, 7 },
        { "0", SL_OK, 0 },
        { "0s", SL_OK, 0 },
        { "0.0h", SL_OK, 0 },
        { "2m30s", SL_OK, 150000000000 },
        { "2m30.5s", SL_OK, 150500000000 },
        { "1h1m1s1ms1us1ns", SL_OK, 3661001001001 },
        { "90s", SL_OK, 90000000000 },
        { "0.000000001s", SL_OK, 1 },
        { "0.0000000010000s", SL_OK, 1 },
        { "0.00000000025h", SL_OK, 900 },
        { "0.0000000000025h", SL_OK, 9 },
        { "1.000000000000000000000000s", SL_OK, 1000000000 },
        { "18446744073709551615ns", SL_OK, UINT64_MAX },
        { "5124095h34m33.709551615s", SL_OK, UINT64_MAX },
        { "5124095h34m33.709551616s", SL_ERR_TOO_LARGE, 0 },
        { "18446744073709551616ns", SL_ERR_TOO_LARGE, 0 },
        { "18446744073709552us", SL_ERR_TOO_LARGE, 0 },
        { "18446744073709551.616us", SL_ERR_TOO_LARGE, 0 },
        { "5124095.999h", SL_ERR_TOO_LARGE, 0 },
        { "5124096h", SL_ERR_TOO_LARGE, 0 },
        { "99999999999999999999999h", SL_ERR_TOO_LARGE, 0 },
        { "0.0000000001s", SL_ERR_INVALID, 0 }, /* a tenth of a nanosecond */
        { "0.5ns", SL_ERR_INVALID, 0 },
        { "1.1234567891s", SL_ERR_INVALID, 0 },
        { "", SL_ERR_INVALID, 0 },
        { "30", SL_ERR_INVALID, 0 },
        { "00", SL_ERR_INVALID, 0 },
        { "s", SL_ERR_INVALID, 0 },
        { ".s", SL_ERR_INVALID, 0 },
        { ".5s", SL_ERR_INVALID, 0 },
        { "1.s", SL_ERR_INVALID, 0 },
        { "1..5s", SL_ERR_INVALID, 0 },
        { "1.5.5s", SL_ERR_INVALID, 0 },
        { "1.5m30s", SL_ERR_INVALID, 0 }, /* a fraction that is not at the end */
        { "1.0m30s", SL_ERR_INVALID, 0 },
        { "30s2m", SL_ERR_INVALID, 0 },
        { "1s1s", SL_ERR_INVALID, 0 },
        { "1s1", SL_ERR_INVALID, 0 },
        { "-1s", SL_ERR_INVALID, 0 },
        { "+1s", SL_ERR_INVALID, 0 },
        { "1 s", SL_ERR_INVALID, 0 },
        { " 1s", SL_ERR_INVALID, 0 },
        { "1s ", SL_ERR_INVALID, 0 },
        { "1S", SL_ERR_INVALID, 0 },
        { "1d", SL_ERR_INVALID, 0 },
        { "1sec", SL_ERR_INVALID, 0 },
        { "1,5s", SL_ERR_INVALID, 0 },
        { "1e3s", SL_ERR_INVALID, 0 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        uint64_t ns = 77;
        EXPECT_ROW(sl_str_parse_duration(sl_str_from(rows[i].text), any, &ns) == rows[i].err, i);
        EXPECT_ROW(ns == (rows[i].err == SL_OK ? rows[i].ns : 77), i);
    }
}

TEST(a_duration_outside_of_its_bounds_is_refused)
{
    static const struct {
        const char *text;
        sl_err err;
    } rows[] = {
        { "999ms", SL_ERR_INVALID },
        { "0", SL_ERR_INVALID },
        { "0.999999999s", SL_ERR_INVALID },
        { "1s", SL_OK },
        { "1.000000001s", SL_OK },
        { "1m", SL_OK },
        { "60s", SL_OK },
        { "60.000000001s", SL_ERR_TOO_LARGE },
        { "1h", SL_ERR_TOO_LARGE },
    };
    const sl_duration_bounds second_to_minute = { 1000000000, 60000000000 };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        uint64_t ns = 77;
        EXPECT_ROW(sl_str_parse_duration(sl_str_from(rows[i].text), second_to_minute, &ns) == rows[i].err, i);
        EXPECT_ROW((ns == 77) == (rows[i].err != SL_OK), i);
    }
}

static const char *shown(uint64_t duration_ns, char *buffer, size_t capacity)
{
    sl_text text;

    sl_text_init(&text, buffer, capacity);
    sl_text_add_duration(&text, duration_ns);
    EXPECT(!text.cut);
    return buffer;
}

TEST(a_duration_is_written_as_people_say_it)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0s" },
        { 1, "1ns" },
        { 999, "999ns" },
        { 1000, "1us" },
        { 1500, "1.5us" },
        { 999999, "999.999us" },
        { 1000000, "1ms" },
        { 250000000, "250ms" },
        { 250000001, "250.000001ms" },
        { 1000000000, "1s" },
        { 1500000000, "1.5s" },
        { 1050000000, "1.05s" },
        { 30000000000, "30s" },
        { 59999999999, "59.999999999s" },
        { 60000000000, "1m" },
        { 60250000000, "1m0.25s" },
        { 150000000000, "2m30s" },
        { 3600000000000, "1h" },
        { 3601000000000, "1h1s" },
        { 3660000000000, "1h1m" },
        { 360000000000000, "100h" },
        { UINT64_MAX, "5124095h34m33.709551615s" },
    };
    char buffer[40];

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_STR(shown(rows[i].ns, buffer, sizeof buffer), rows[i].text);
}

TEST(a_written_duration_is_read_back_as_the_same_number)
{
    const uint64_t seed = 11;
    dice d = dice_from(seed);

    for (size_t step = 0; step < 20000; step++) {
        const uint64_t ns = dice_u64(&d) >> dice_pick(&d, 64);
        uint64_t read_ns = 0;
        char buffer[40];
        const sl_str text = sl_str_from(shown(ns, buffer, sizeof buffer));
        EXPECT_RUN(sl_str_parse_duration(text, any, &read_ns) == SL_OK && read_ns == ns, seed, step);
    }
}

TEST(a_text_that_fits_is_not_cut)
{
    char buffer[9];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    EXPECT_STR(buffer, "");
    sl_text_add(&text, "abc");
    sl_text_add_str(&text, (sl_str){ "defgh", 3 });
    sl_text_add_str(&text, (sl_str){ NULL, 0 });
    sl_text_add(&text, NULL);
    sl_text_add_char(&text, '-');
    sl_text_add_u64(&text, 7);
    EXPECT_STR(buffer, "abcdef-7");
    EXPECT(!text.cut);
    EXPECT(sl_str_equal(sl_text_str(&text), SL_STR("abcdef-7")));

    sl_text_add(&text, "");
    EXPECT(!text.cut);
    sl_text_add_char(&text, 'x');
    EXPECT(text.cut);
    EXPECT_STR(buffer, "abcdef-7");
}

TEST(a_text_of_any_capacity_ends_with_a_zero_and_remembers_the_cut)
{
    for (size_t capacity = 1; capacity <= 12; capacity++) {
        char *buffer = malloc(capacity); /* the address sanitizer guards its end */
        sl_text text;
        sl_text_init(&text, buffer, capacity);
        sl_text_add(&text, "0123");
        sl_text_add(&text, "456789");
        EXPECT_ROW(text.cut == (capacity < 11), capacity);
        EXPECT_ROW(text.bytes == (capacity < 11 ? capacity - 1 : 10), capacity);
        EXPECT_ROW(strlen(buffer) == text.bytes, capacity);
        EXPECT_ROW(memcmp(buffer, "0123456789", text.bytes) == 0, capacity);
        free(buffer);
    }
}

TEST(nothing_is_added_after_a_cut)
{
    char buffer[4];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "a\xc3\xa4\xc3\xa4"); /* the second of the two umlauts does not fit */
    sl_text_add(&text, "bb\xc3\xa4");
    EXPECT_STR(buffer, "a\xc3\xa4");
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_u64(&text, 1234);
    sl_text_add(&text, "x");
    EXPECT_STR(buffer, "");
    EXPECT(text.cut);
}

TEST(a_cut_never_splits_a_character)
{
    static const char sample[] =
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* of one, two, three and four bytes */

    for (size_t capacity = 1; capacity <= sizeof sample; capacity++) {
        char buffer[sizeof sample];
        sl_text text;
        sl_text_init(&text, buffer, capacity);
        sl_text_add(&text, sample);
        EXPECT_ROW(sl_utf8_valid(sl_text_str(&text)), capacity);
        EXPECT_ROW(text.bytes + 4 >= capacity,
                   capacity); /* and no more is lost than the one that does not fit */
    }
}

TEST(bytes_that_are_no_characters_are_cut_anywhere)
{
    char buffer[9];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    EXPECT_EQ(text.bytes, 8);
    EXPECT(text.cut);
}

TEST(a_number_is_added_whole_or_not_at_all)
{
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = { { 0, "0" },
                 { -1, "-1" },
                 { 42, "42" },
                 { INT64_MAX, "9223372036854775807" },
                 { INT64_MIN, "-9223372036854775808" } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const size_t bytes = strlen(rows[i].text);
        for (size_t capacity = 1; capacity <= 24; capacity++) {
            char buffer[24];
            sl_text text;
            sl_text_init(&text, buffer, capacity);
            sl_text_add_i64(&text, rows[i].value);
            EXPECT_ROW(text.cut == (capacity <= bytes), i);
            EXPECT_STR(buffer, text.cut ? "" : rows[i].text);
        }
    }
}

TEST(unsigned_numbers_and_durations_are_added_whole_or_not_at_all)
{
    for (size_t capacity = 1; capacity <= 30; capacity++) {
        char buffer[30];
        sl_text text;
        sl_text_init(&text, buffer, capacity);
        sl_text_add_u64(&text, UINT64_MAX);
        EXPECT_STR(buffer, capacity <= 20 ? "" : "18446744073709551615");
        EXPECT_EQ(text.cut, capacity <= 20);
        sl_text_init(&text, buffer, capacity);
        sl_text_add_duration(&text, UINT64_MAX);
        EXPECT_STR(buffer, capacity <= 24 ? "" : "5124095h34m33.709551615s");
        EXPECT_EQ(text.cut, capacity <= 24);
    }
}

TEST(a_time_is_written_as_a_date_in_utc)
{
    static const struct {
        uint64_t seconds, ns;
        const char *text;
    } rows[] = {
        { 0, 0, "1970-01-01T00:00:00.000Z" },
        { 0, 999999, "1970-01-01T00:00:00.000Z" },
        { 0, 1000000, "1970-01-01T00:00:00.001Z" },
        { 86399, 999999999, "1970-01-01T23:59:59.999Z" },
        { 86400, 0, "1970-01-02T00:00:00.000Z" },
        { 951782399, 0, "2000-02-28T23:59:59.000Z" },
        { 951782400, 0, "2000-02-29T00:00:00.000Z" }, /* 2000 was a leap year */
        { 951868800, 0, "2000-03-01T00:00:00.000Z" },
        { 1577836799, 0, "2019-12-31T23:59:59.000Z" },
        { 1577836800, 0, "2020-01-01T00:00:00.000Z" }, /* where the walk over the years begins */
        { 1709251199, 0, "2024-02-29T23:59:59.000Z" },
        { 1735603200, 0, "2024-12-31T00:00:00.000Z" },
        { 1735689600, 0, "2025-01-01T00:00:00.000Z" },
        { 1794783212, 123456789, "2026-11-15T22:53:32.123Z" },
        { 4107542399, 0, "2100-02-28T23:59:59.000Z" },
        { 4107542400, 0, "2100-03-01T00:00:00.000Z" }, /* 2100 will be none */
        { 18446744073, 709551615, "2554-07-21T23:34:33.709Z" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        char buffer[25];
        sl_text text;
        sl_text_init(&text, buffer, sizeof buffer);
        sl_text_add_time(&text, rows[i].seconds * 1000000000 + rows[i].ns);
        EXPECT_STR(buffer, rows[i].text);
        EXPECT(!text.cut);
    }
}
