/* tests/unit/cli/test_suggest.c — what is near enough to be what was meant. */
#include "test.h"

#include <string.h>

#include "cli/suggest.h"

TEST(suggest_counts_single_letter_slips)
{
    static const struct {
        const char *left, *right;
        size_t distance;
    } cases[] = {
        { "", "", 0 },
        { "", "abc", 3 },
        { "abc", "", 3 },
        { "same", "same", 0 },
        { "help", "hlp", 1 },
        { "hlp", "help", 1 },
        { "help", "helq", 1 },
        { "help", "hepl", 1 },
        { "budget", "bugdet", 1 },
        { "kitten", "sitting", 3 },
        { "abcd", "dcba", 3 },
        { "Help", "hELP", 0 },
        { "BUGDET", "budget", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        EXPECT_EQ(sl_suggest_distance(cases[i].left, cases[i].right), cases[i].distance);
}

TEST(suggest_takes_overlong_words_as_wholly_different)
{
    char overlong[80], longest[64];

    memset(overlong, 'a', sizeof overlong - 1);
    overlong[sizeof overlong - 1] = '\0';
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    EXPECT_EQ(sl_suggest_distance(overlong, longest), 79 + 63);
    EXPECT_EQ(sl_suggest_distance(longest, longest), 0);
}

TEST(suggest_names_the_nearest_or_nothing)
{
    static const char *const names[] = { NULL, "help", "version", "budget", "--help" };
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        { "versoin", "version" }, { "hlep", "help" }, { "bugdet", "budget" }, { "--hlp", "--help" },
        { "serve", NULL },        { "", NULL },       { "h", NULL },          { "completely-else", NULL },
        { "vrsion", "version" },  { "help", "help" }, { "hxlp", "help" },     { "hxlpx", NULL },
        { "VERSION", "version" }, { "Hepl", "help" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *is = sl_suggest_nearest(cases[i].word, names, sizeof names / sizeof names[0]);
        EXPECT((is == NULL) == (cases[i].nearest == NULL));
        if (is != NULL)
            EXPECT_STR(is, cases[i].nearest);
    }
}

TEST(suggest_takes_the_first_among_equals)
{
    static const char *const names[] = { "car", "can" };

    EXPECT_STR(sl_suggest_nearest("cab", names, 2), "car");
}
