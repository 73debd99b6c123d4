/* tests/unit/cli/test_budget_command.c — the command shows what core/budget decided, and fails when it
 * refused. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/budget_command.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct answer {
    int code;
    char *out, *err;
    size_t out_bytes, err_bytes;
} answer;

static answer ask(const sl_option_value *values)
{
    answer a = { 0 };
    FILE *out = open_memstream(&a.out, &a.out_bytes), *err = open_memstream(&a.err, &a.err_bytes);
    const sl_invocation invocation = { .values = values, .out = out, .err = err };

    a.code = sl_budget_command(&invocation);
    fclose(out);
    fclose(err);
    return a;
}

static void forget(answer *a)
{
    free(a->out);
    free(a->err);
}

TEST(budget_shows_every_part_and_the_nesting_S3_32)
{
    static const char *const wanted[] = { "fence", "settle",  "abort",       "flush",
                                          "close", "reserve", "outer 30s > " };
    const sl_option_value values[SL_OPT_COUNT_] = { [SL_OPT_GRACE] = { .number = 30 * SECOND_NS } };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_OK);
    EXPECT_STR(a.err, "");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        EXPECT(strstr(a.out, wanted[i]) != NULL);
    forget(&a);
}

TEST(budget_keeps_a_part_that_was_set)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = 60 * SECOND_NS },
        [SL_OPT_SETTLE] = { .number = 41 * SECOND_NS },
        [SL_OPT_JSON] = { .number = 1 },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_OK);
    EXPECT(strstr(a.out, "\"settle_ns\": 41000000000") != NULL);
    EXPECT(strstr(a.out, "\"grace_ns\": 60000000000") != NULL);
    EXPECT(strstr(a.out, "\"fits\": true") != NULL);
    forget(&a);
}

TEST(budget_that_does_not_fit_is_refused_with_the_arithmetic_S3_32)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = 30 * SECOND_NS },
        [SL_OPT_SETTLE] = { .number = 40 * SECOND_NS },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_FAILED);
    EXPECT_STR(a.out, "");
    EXPECT(strstr(a.err, "settle 40s") != NULL);
    EXPECT(strstr(a.err, "does not fit into grace 30s") != NULL);
    forget(&a);
}

TEST(budget_refused_is_json_too_when_asked_for)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = 30 * SECOND_NS },
        [SL_OPT_SETTLE] = { .number = 40 * SECOND_NS },
        [SL_OPT_JSON] = { .number = 1 },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_FAILED);
    EXPECT_STR(a.err, "");
    EXPECT(strncmp(a.out, "{\"fits\": false", 14) == 0);
    EXPECT(strstr(a.out, "does not fit into grace 30s") != NULL);
    forget(&a);
}

TEST(budget_shows_no_more_than_milliseconds_and_no_rest_below_one)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = 45 * SECOND_NS },
        [SL_OPT_SETTLE] = { .number = 40 * SECOND_NS + 123456 },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_OK);
    EXPECT(strstr(a.out, " 40s ") != NULL);
    EXPECT(strstr(a.out, "123456") == NULL);
    EXPECT(strstr(a.out, "unused") == NULL);
    forget(&a);
}
