/* tests/unit/cli/test_print.c — what reaches a terminal: safe words, lines that fit, JSON that can be read. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print.h"

TEST(print_quotes_words_so_that_a_terminal_obeys_none_of_them)
{
    static const struct {
        const char *word, *quoted;
    } cases[] = {
        { "", "" },
        { "plain --word=1", "plain --word=1" },
        { "\x1b[31m", "\\x1b[31m" },
        { "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
        { "\x7f", "\\x7f" },
        { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" }, /* letters stay letters */
        { "\xc2\x9b"
          "31m",
          "\\xc2\\x9b31m" },          /* C1: an escape sequence in one character */
        { "\xff\xc3", "\\xff\\xc3" }, /* no UTF-8 */
        { "\\x1b", "\\\\x1b" },       /* pretends to be escaped */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        EXPECT_STR(sl_quote(cases[i].word).text, cases[i].quoted);
}

TEST(print_cuts_long_words_between_characters_and_says_so)
{
    char word[300];

    for (size_t bytes = 70; bytes < 80; bytes++) {
        memset(word, 'a', bytes);
        strcpy(word + bytes, "\xe2\x82\xac\xe2\x82\xac\x1b\x1b\x1b\x1b\x1b\x1b");
        const sl_quoted quoted = sl_quote(word);
        const size_t length = strlen(quoted.text);
        EXPECT(length < SL_QUOTE_BYTES);
        EXPECT_STR(quoted.text + length - 3, "...");
        EXPECT(quoted.text[length - 4] == 'a' || strncmp(quoted.text + length - 6, "\xe2\x82\xac", 3) == 0);
    }
    memset(word, 'a', 76);
    word[76] = '\0';
    EXPECT_STR(sl_quote(word).text, word); /* the longest that is shown whole */
    word[76] = 'a';
    word[77] = '\0';
    EXPECT_EQ(strlen(sl_quote(word).text), 76 + 3);
}

static char *wrapped(sl_print_place place, const char *text)
{
    char *output = NULL;
    size_t output_bytes = 0;
    FILE *out = open_memstream(&output, &output_bytes);

    sl_print_wrapped(out, place, text);
    fclose(out);
    return output;
}

static void expect_wrapped(sl_print_place place, const char *text, const char *wanted)
{
    char *is = wrapped(place, text);

    EXPECT_STR(is, wanted);
    free(is);
}

#define TEN_COLUMNS "123456789 "
#define SEVENTY     TEN_COLUMNS TEN_COLUMNS TEN_COLUMNS TEN_COLUMNS TEN_COLUMNS TEN_COLUMNS TEN_COLUMNS

TEST(print_breaks_lines_at_80_columns_and_not_before)
{
    const sl_print_place start = { 0 };

    expect_wrapped(start, "", "\n");
    expect_wrapped(start, "one word", "one word\n");
    expect_wrapped(start, SEVENTY "123456789X end", SEVENTY "123456789X\nend\n");
    expect_wrapped(start, SEVENTY "123456789XY end",
                   "123456789 123456789 123456789 123456789 123456789 "
                   "123456789 123456789\n123456789XY end\n");
    expect_wrapped((sl_print_place){ .column = 70, .indent = 4 }, "123456789X end", "123456789X\n    end\n");
}

TEST(print_keeps_line_breaks_and_examples_as_they_are)
{
    const sl_print_place start = { 0 };

    expect_wrapped(start, "a\n\nb\n", "a\n\nb\n\n");
    expect_wrapped(start, "such as\n    x   y\nthen", "such as\n    x   y\nthen\n");
    expect_wrapped((sl_print_place){ .column = 2, .indent = 2 }, "a\nb", "a\n  b\n");
}

TEST(print_json_text_can_always_be_read_back)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        { "", "\"\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "a\nb\x1b", "\"a\\u000ab\\u001b\"" },
        { "\xc3\xa4\xff", "\"\xc3\xa4\\ufffd\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *output = NULL;
        size_t output_bytes = 0;
        FILE *out = open_memstream(&output, &output_bytes);
        sl_print_json_text(out, cases[i].text);
        fclose(out);
        EXPECT_STR(output, cases[i].json);
        free(output);
    }
}
