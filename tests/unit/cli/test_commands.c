/* tests/unit/cli/test_commands.c — from argv to an answer and an exit code, without a process. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "cli/commands.h"

enum {
    WORDS_MAX = 8
};

typedef struct run {
    int code;
    char *out, *err;
    size_t out_bytes, err_bytes;
} run;

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

/* Runs a command line that is written with single blanks, "sluice" included. */
static run run_line(const char *text)
{
    run r = { 0 };
    char line[128];
    char *words[WORDS_MAX + 1] = { 0 };
    int word_count = 0;
    FILE *out = open_memstream(&r.out, &r.out_bytes), *err = open_memstream(&r.err, &r.err_bytes);

    snprintf(line, sizeof line, "%s", text);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        words[word_count++] = word;
    r.code = sl_cli_run(word_count, words, no_environment, out, err);
    fclose(out);
    fclose(err);
    return r;
}

static void end(run *r)
{
    free(r->out);
    free(r->err);
}

TEST(a_command_line_that_is_understood_writes_to_out_only_and_ends_with_0)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        { "sluice help", "usage: sluice COMMAND" },
        { "sluice --help", "usage: sluice COMMAND" },
        { "sluice -h", "usage: sluice COMMAND" },
        { "sluice help version", "usage: sluice version" },
        { "sluice --help version", "usage: sluice version" },
        { "sluice version --help", "usage: sluice version" },
        { "sluice version", "sluice " SL_VERSION_TEXT "\n" },
        { "sluice --version", "sluice " SL_VERSION_TEXT "\n" },
        { "sluice -V", "sluice " SL_VERSION_TEXT "\n" },
        { "sluice version --json", "{\"version\": \"" SL_VERSION_TEXT "\"}\n" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r = run_line(cases[i].line);
        EXPECT_EQ(r.code, SL_EXIT_OK);
        EXPECT(strstr(r.out, cases[i].part) != NULL);
        EXPECT_STR(r.err, "");
        end(&r);
    }
}

TEST(a_command_line_that_is_not_understood_writes_to_err_only_and_ends_with_2)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        { "sluice", "usage: sluice COMMAND" },
        { "sluice versoin", "no command 'versoin'. Did you mean 'version'?" },
        { "sluice xyzzy", "no command 'xyzzy'. 'sluice help' shows" },
        { "sluice --verson", "no option '--verson'. Did you mean '--version'?" },
        { "sluice help versoin", "no command 'versoin'. Did you mean 'version'?" },
        { "sluice help version more", "'more' is one word too many" },
        { "sluice version --jsno", "no option '--jsno'. Did you mean '--json'?" },
        { "sluice version now", "'now' is one word too many" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r = run_line(cases[i].line);
        EXPECT_EQ(r.code, SL_EXIT_USAGE);
        EXPECT_STR(r.out, "");
        EXPECT(strstr(r.err, cases[i].part) != NULL);
        end(&r);
    }
}
