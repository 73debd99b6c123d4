/* tests/unit/base/test_json_text.c — JSON is what RFC 8259 says, up to a depth, and nothing else. */
#include "support.h"

#include "base/cleanup.h"
#include "base/json_text.h"

static bool is_value(sl_str text)
{
    return sl_json_text_is_value(text, SL_JSON_TEXT_DEPTH_MAX);
}

TEST(json_text_is_what_the_standard_says)
{
    static const char *const rows[] = { "{}",
                                        "[]",
                                        " { } ",
                                        "[ [ ] , { } ]",
                                        "0",
                                        "-0",
                                        "10.25e-3",
                                        "1E+9",
                                        "\"\"",
                                        " \t\r\n true \n",
                                        "false",
                                        "null",
                                        "[1,[2,{\"a\":[]}],\"x\"]",
                                        "{\"a\":1,\"a\":2, \"\\u00e9\\\"\\\\\\/\\b\\f\\n\\r\\t\":null}",
                                        "{\"a\" : { \"b\" : [ { } , 1 ] } , \"\" : \"\\uD800\" }",
                                        "\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"" };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(is_value(sl_str_from(rows[i])), i);
}

TEST(json_text_is_nothing_that_the_standard_does_not_say)
{
    static const char *const rows[] = { "",
                                        " ",
                                        "{",
                                        "}",
                                        "]",
                                        "[",
                                        "[1",
                                        "[1,]",
                                        "[,1]",
                                        "{\"a\"}",
                                        "{a:1}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{,}",
                                        "[1}",
                                        "{]",
                                        "{\"a\":1]",
                                        "{1:2}",
                                        "01",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "-",
                                        "-a",
                                        "1.e5",
                                        "tru",
                                        "nul",
                                        "True",
                                        "truex",
                                        "'a'",
                                        "\"a",
                                        "\"",
                                        "\"\\",
                                        "\"\\x\"",
                                        "\"\\u12",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"\n\"",
                                        "1 2",
                                        "{} x",
                                        "[1 2]",
                                        "\"a\"\"b\"",
                                        "\"\xff\"",
                                        "\"\xc3\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xc0\x80\"",
                                        "NaN",
                                        "Infinity",
                                        "/*c*/1",
                                        "\xef\xbb\xbf{}",
                                        "\f1",
                                        "\v1" };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(!is_value(sl_str_from(rows[i])), i);
    EXPECT(!is_value((sl_str){ NULL, 0 }));
    EXPECT(!is_value((sl_str){ "1\0", 2 }));
    EXPECT(!is_value((sl_str){ "\"\0\"", 3 }));
    EXPECT(!is_value((sl_str){ "\"\\\0\"", 4 }));
}

/* Texts are looked at eight bytes at a time: each byte is judged in each place of those. */
TEST(json_text_has_each_byte_judged_alike_wherever_it_stands)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';

        for (size_t at = 1; at <= 20; at++) {
            char json[] = "\"aaaaaaaaaaaaaaaaaaaaa\"";
            const sl_str inside = { json + 1, sizeof json - 3 };

            json[at] = (char)byte;
            EXPECT_ROW(is_value((sl_str){ json, sizeof json - 1 }) == is_plain, byte);
            EXPECT_ROW(sl_json_text_plain_bytes(inside) == (is_plain ? inside.bytes : at - 1), byte);
        }
    }
    EXPECT_EQ(sl_json_text_plain_bytes((sl_str){ NULL, 0 }), 0);
}

/* Brackets of both kinds in turn; more than 64 of them, of which each has a bit, do not mix up either. */
static size_t nest(char *text, size_t depth)
{
    size_t bytes = 0;

    for (size_t i = 0; i < depth; i++)
        bytes += (size_t)sprintf(text + bytes, "%s", i % 3 == 0 ? "{\"a\":" : "[");
    text[bytes++] = '1';
    for (size_t i = depth; i-- > 0;)
        text[bytes++] = i % 3 == 0 ? '}' : ']';
    return bytes;
}

TEST(json_text_that_is_nested_deeper_than_the_caller_allows_is_none)
{
    static const size_t rows[] = { 0, 1, 63, 64, 65, 256, SL_JSON_TEXT_DEPTH_MAX };
    static char text[6 * (SL_JSON_TEXT_DEPTH_MAX + 2)];

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        size_t bytes = nest(text, rows[i]);
        EXPECT_ROW(sl_json_text_is_value((sl_str){ text, bytes }, rows[i]), i);
        text[bytes - 1] ^= ']' ^ '}'; /* or, of depth 0, no number */
        EXPECT_ROW(!sl_json_text_is_value((sl_str){ text, bytes }, rows[i]), i);
        bytes = nest(text, rows[i] + 1);
        EXPECT_ROW(!sl_json_text_is_value((sl_str){ text, bytes }, rows[i]), i);
    }
}

TEST(json_text_of_any_bytes_is_read_without_harm)
{
    static const char seedling[] = "{\"a\":[1,-2.5e-3,true],\"\\u0041\303\244\":{\"b\":null}}";

    for (uint64_t seed = 0; seed < 3000; seed++) {
        dice d = dice_from(seed);
        const size_t bytes = dice_pick(&d, sizeof seedling);
        char *text = malloc(bytes + 1); /* of its own, so that reading past its end is seen */

        assert_non_null(text);
        memcpy(text + 1, seedling, bytes);
        for (size_t changes = dice_pick(&d, 4); changes > 0 && bytes > 0; changes--)
            text[1 + dice_pick(&d, bytes)] = (char)dice_u64(&d);
        (void)is_value((sl_str){ text + 1, bytes });
        free(text);
    }
}
