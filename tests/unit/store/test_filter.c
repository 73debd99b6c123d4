/* Filters: what matches, what is refused, and that a hostile expression costs little. */
#include "../base/support.h"

#include "store/filter.h"

#include <time.h>

static sl_filter *by_expression(const char *expression)
{
    const sl_filter_setup setup = { .on = SL_FILTER_ON_STREAM, .expression = sl_str_from(expression) };
    sl_filter *filter = NULL;

    EXPECT_OK(sl_filter_new(&setup, NULL, &filter));
    return filter;
}

static bool expression_matches(const char *expression, sl_str text)
{
    sl_filter *const filter = by_expression(expression);
    const sl_filter_verdict verdict = sl_filter_judge(filter, text, SL_STR("type"));

    EXPECT(verdict != SL_FILTER_GAVE_UP);
    sl_filter_free(filter);
    return verdict == SL_FILTER_YES;
}

TEST(an_expression_is_searched_anywhere_and_case_sensitive)
{
    static const struct {
        const char *expression, *text;
        bool matches;
    } rows[] = {
        { "b", "abc", true },
        { "B", "abc", false },
        { "(?i)B", "abc", true },
        { "^b", "abc", false },
        { "^[^$].*", "orders", true },
        { "^[^$].*", "$orders", false },
        { "^[^$].*", "", false },
        { "^(?!(\\$|order-))", "cart", true },
        { "^(?!(\\$|order-))", "order-1", false },
        { "(?<=a)c$", "abac", true },
        { "^.$", "€", true },
        { "^\\w+$", "größe", true },
        { "^\\d$", "٣", true },
        { "\\p{Lu}", "aÄ", true },
        { "(?<word>a)\\k<word>", "aa", true },
        { "a{3}", "aa", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW(expression_matches(rows[i].expression, sl_str_from(rows[i].text)) == rows[i].matches, i);
}

TEST(a_text_with_zeros_or_no_utf8_is_searched_as_far_as_it_is_text)
{
    EXPECT(expression_matches("b$", SL_STR("a\0b")));
    EXPECT(expression_matches("b$", SL_STR("\xff\xff\x62")));
    EXPECT(!expression_matches("c", SL_STR("\xff\xc3")));
    EXPECT(expression_matches("^$", (sl_str){ 0 }));
}

TEST(any_of_the_prefixes_is_enough)
{
    char changing[] = "order-";
    const sl_str prefixes[] = { { changing, 6 }, SL_STR_INIT("cart"), SL_STR_INIT("ü") };
    const sl_filter_setup setup = { .on = SL_FILTER_ON_TYPE, .prefixes = prefixes, .prefix_count = 3 };
    sl_filter *filter = NULL;

    EXPECT_OK(sl_filter_new(&setup, NULL, &filter));
    changing[0] = 'x'; /* they were copied */
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("none"), SL_STR("order-7")), SL_FILTER_YES);
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("none"), SL_STR("cart")), SL_FILTER_YES);
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("none"), SL_STR("über")), SL_FILTER_YES);
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("order-7"), SL_STR("order")), SL_FILTER_NO);
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("cart"), SL_STR("my-cart")), SL_FILTER_NO);
    EXPECT_EQ(sl_filter_judge(filter, SL_STR("cart"), (sl_str){ 0 }), SL_FILTER_NO);
    sl_filter_free(filter);
}

TEST(a_bad_expression_is_explained)
{
    static const struct {
        const char *expression, *contains;
    } rows[] = {
        { "(", "parenthes" },
        { "a[", "at byte 2" },
        { "*", "at byte 0" },
        { "\\C", "\\C" },
        { "(?<=a+)", "lookbehind" },
        { "\xff", "UTF-8" },
        { "(((((a{1000}){1000}){1000}){1000}){1000})", "too large" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_filter_setup setup = { .expression = sl_str_from(rows[i].expression) };
        sl_filter *filter = NULL;
        char memory[256];
        sl_text why;

        sl_text_init(&why, memory, sizeof memory);
        EXPECT_ERR(sl_filter_new(&setup, &why, &filter), SL_ERR_INVALID);
        EXPECT_ERR(sl_filter_new(&setup, NULL, &filter), SL_ERR_INVALID);
        EXPECT(filter == NULL);
        if (strstr(memory, rows[i].contains) == NULL)
            fail_msg("row %zu says \"%s\"", i, memory);
    }
}

TEST(a_filter_has_either_prefixes_or_an_expression)
{
    const sl_str prefix = SL_STR("a");
    const sl_filter_setup neither = { .on = SL_FILTER_ON_TYPE };
    const sl_filter_setup both = { .prefixes = &prefix, .prefix_count = 1, .expression = SL_STR("a") };
    sl_filter *filter = NULL;
    char memory[100];
    sl_text why;

    sl_text_init(&why, memory, sizeof memory);
    EXPECT_ERR(sl_filter_new(&neither, &why, &filter), SL_ERR_INVALID);
    EXPECT(why.bytes > 0);
    EXPECT_ERR(sl_filter_new(&both, NULL, &filter), SL_ERR_INVALID);
}

TEST(filters_have_limits)
{
    static char text[SL_FILTER_PREFIX_BYTES_MAX + 1];
    static sl_str prefixes[SL_FILTER_PREFIXES_MAX + 1];
    sl_filter_setup setup = { .prefixes = prefixes, .prefix_count = SL_FILTER_PREFIXES_MAX + 1 };
    sl_filter *filter = NULL;

    memset(text, 'x', sizeof text);
    EXPECT_ERR(sl_filter_new(&setup, NULL, &filter), SL_ERR_TOO_LARGE);
    setup.prefix_count--;
    prefixes[0] = (sl_str){ text, SL_FILTER_PREFIX_BYTES_MAX };
    EXPECT_OK(sl_filter_new(&setup, NULL, &filter));
    sl_filter_free(filter);
    prefixes[SL_FILTER_PREFIXES_MAX - 1] = (sl_str){ text, 1 };
    EXPECT_ERR(sl_filter_new(&setup, NULL, &filter), SL_ERR_TOO_LARGE);
    setup = (sl_filter_setup){ .expression = { text, SL_FILTER_EXPRESSION_BYTES_MAX + 1 } };
    EXPECT_ERR(sl_filter_new(&setup, NULL, &filter), SL_ERR_TOO_LARGE);
    setup.expression.bytes--;
    EXPECT_OK(sl_filter_new(&setup, NULL, &filter));
    sl_filter_free(filter);
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

TEST(a_hostile_expression_gives_up_soon_and_says_so)
{
    static const char *const expressions[] = { "(a+)+$",
                                               "(a|aa)+$",
                                               "(.*)*b",
                                               "(?:(?:(?:a*)*)*)*$x",
                                               "(?R)?a\\1?(x+x+)+y",
                                               "^(([a-z])+.)+[A-Z]([a-z])+$",
                                               "(a?){64}a{64}b" };
    static char text[SL_STREAM_NAME_BYTES_MAX];
    uint64_t given_up = 0;

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '!';
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++) {
        const sl_filter_setup setup = { .expression = sl_str_from(expressions[i]) };
        sl_filter_verdict verdict = SL_FILTER_NO;
        sl_filter *filter = NULL;
        double started_s;

        if (sl_filter_new(&setup, NULL, &filter) != SL_OK)
            continue;
        started_s = seconds_now();
        for (int times = 0; times < 10; times++)
            verdict = sl_filter_judge(filter, (sl_str){ text, sizeof text }, SL_STR("t"));
        EXPECT_ROW(seconds_now() - started_s < 1.0, i); /* unlimited, some of these run for years */
        given_up += verdict == SL_FILTER_GAVE_UP;
        sl_filter_free(filter);
    }
    EXPECT(given_up >= 3);
}

/* The other side of the limit: what clients send gets through on the longest name. */
TEST(an_honest_expression_does_not_give_up_on_the_longest_name)
{
    static const char *const expressions[] = {
        "^[^$].*",        "^(?!(\\$|order-|cart-))", "^(\\w+-)*[0-9a-f]+$",
        "(foo|bar|baz)$", "^.*-completed$",          "^[a-z]+(-[a-z]+)+$"
    };
    static char text[SL_STREAM_NAME_BYTES_MAX];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 8 == 7 ? '-' : 'a';
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
        (void)expression_matches(expressions[i], (sl_str){ text, sizeof text }); /* expects a verdict */
}

TEST(no_filter_is_freed_without_harm)
{
    sl_filter_free(NULL);
}
