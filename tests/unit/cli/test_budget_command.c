/* tests/unit/cli/test_budget_command.c — the command shows what core/budget decided, and fails when it
 * refused. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/budget_command.h"
#include "core/budget.h"

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
    const sl_invocation invocation = {
        .values = values, .json = values[SL_OPT_JSON].number != 0, .out = out, .err = err
    };

    a.code = sl_command_budget.run(&invocation);
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
    static const char *const wanted[] = { "fence",        "settle",      "abort",        "flush",
                                          "close",        "reserve",     "outer    30s", "consumer 29s",
                                          "workers  23s", "handler  20s" };
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
    EXPECT(strstr(a.out, "\"minimum_grace_ns\": 41400000000, \"comfortable_grace_ns\": 51000000000") != NULL);
    EXPECT(strstr(a.out, "\"unused_ns\": 9000000000") != NULL);
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
    EXPECT(strstr(a.out, "\"minimum_grace_ns\": 40400000000, \"comfortable_grace_ns\": 50000000000") != NULL);
    EXPECT(strstr(a.out, "does not fit into grace 30s") != NULL);
    forget(&a);
}

TEST(budget_advises_no_grace_that_would_be_refused)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = SL_BUDGET_GRACE_MAX_NS },
        [SL_OPT_SETTLE] = { .number = SL_BUDGET_GRACE_MAX_NS },
        [SL_OPT_JSON] = { .number = 1 },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_FAILED);
    EXPECT(strstr(a.out, "\"minimum_grace_ns\": null, \"comfortable_grace_ns\": null") != NULL);
    forget(&a);
}

/* The option table has the same bounds, so only a table that forgot one comes here. */
TEST(budget_out_of_bounds_is_a_mistake_of_the_caller_and_no_answer)
{
    const sl_option_value values[SL_OPT_COUNT_] = {
        [SL_OPT_GRACE] = { .number = 30 * SECOND_NS },
        [SL_OPT_SETTLE] = { .number = 1 },
        [SL_OPT_JSON] = { .number = 1 },
    };
    answer a = ask(values);

    EXPECT_EQ(a.code, SL_EXIT_USAGE);
    EXPECT_STR(a.out, "{\"error\": \"settle 1ns is out of bounds: set it between 100ms and 720h.\"}\n");
    EXPECT_STR(a.err, "sluice: settle 1ns is out of bounds: set it between 100ms and 720h.\n");
    forget(&a);
}

/* The second column of the rows from "fence" on, as numbers. */
static uint64_t sum_shown(const char *table)
{
    uint64_t sum_ns = 0, length_ns;
    char name[16], length[64];

    for (const char *line = strchr(table, '\n') + 1; *line != '\n'; line += strcspn(line, "\n") + 1) {
        if (line[2] == ' ') /* the rest of a long text */
            continue;
        EXPECT_EQ(sscanf(line, "%15s %63s", name, length), 2);
        EXPECT_OK(sl_str_parse_duration(sl_str_from(length), (sl_duration_bounds){ .max_ns = UINT64_MAX },
                                        &length_ns));
        sum_ns += length_ns;
    }
    return sum_ns;
}

TEST(budget_shows_parts_that_add_up_to_the_grace)
{
    static const struct {
        uint64_t grace_ns, settle_ns;
    } cases[] = {
        { 30 * SECOND_NS, 0 },
        { 45 * SECOND_NS, 40 * SECOND_NS + 123456 },
        { 7 * SECOND_NS + 1, 0 },
        { 100 * SECOND_NS, 20 * SECOND_NS },
        { 1234567891, 0 },
        { SL_BUDGET_GRACE_MAX_NS, SL_BUDGET_GRACE_MAX_NS - 401 * UINT64_C(1000000) - 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sl_option_value values[SL_OPT_COUNT_] = { [SL_OPT_GRACE] = { .number = cases[i].grace_ns },
                                                        [SL_OPT_SETTLE] = { .number = cases[i].settle_ns } };
        answer a = ask(values);

        EXPECT_EQ(a.code, SL_EXIT_OK);
        EXPECT_EQ(sum_shown(a.out), cases[i].grace_ns);
        for (const char *line = a.out; *line != '\0'; line += strcspn(line, "\n") + 1)
            EXPECT(strcspn(line, "\n") <= 80);
        forget(&a);
    }
}
