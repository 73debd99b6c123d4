/* tests/unit/cli/test_commands.c — from argv to an answer and an exit code, without a process. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "cli/commands.h"
#include "core/budget.h"

enum {
    WORDS_MAX = 8
};

typedef struct run {
    int code;
    char *out, *err;
    size_t out_bytes, err_bytes;
} run;

static const char *variable; /* "NAME=TEXT", or NULL */

static const char *fake_environment(const char *name)
{
    const size_t name_bytes = strlen(name);

    if (variable == NULL || strncmp(variable, name, name_bytes) != 0 || variable[name_bytes] != '=')
        return NULL;
    return variable + name_bytes + 1;
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
    r.code = sl_cli_run(word_count, words, fake_environment, out, err);
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
        { "sluice budget --nope --help", "usage: sluice budget" },
        { "sluice budget --grace -h", "usage: sluice budget" },
        { "sluice --nope --help", "usage: sluice COMMAND" },
        { "sluice help journal", "usage: sluice journal WORD" },
        { "sluice journal --help", "usage: sluice journal WORD" },
        { "sluice help journal dump", "usage: sluice journal dump FOLDER" },
        { "sluice journal verify --help", "usage: sluice journal verify FOLDER" },
        { "sluice backup -h", "usage: sluice backup FOLDER TARGET" },
        { "sluice completion bash", "complete -F _sluice sluice\n" },
        { "sluice manual", ".TH \"SLUICE\" 1" },
        { "sluice manual journal dump", ".TH \"SLUICE-JOURNAL-DUMP\" 1" },
        { "sluice budget --print-config", "[budget]\njson = no" },
        { "sluice budget --print-config --json", "{\"command\": \"budget\", \"file\": null" },
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
        { "sluice VERSOIN", "no command 'VERSOIN'. Did you mean 'version'?" },
        { "sluice outbox", "'outbox' is not in this version yet" },
        { "sluice help outbox", "'outbox' is not in this version yet" },
        { "sluice nope --help", "no command 'nope'" },
        { "sluice \x1b[2J", "no command '\\x1b[2J'" },
        { "sluice version \x1b[2J", "'\\x1b[2J' is one word too many" },
        { "sluice budget --settle 99ms", "--settle must be 100ms to 720h, not '99ms'" },
        { "sluice budget --close 49ms", "--close must be 50ms to 720h, not '49ms'" },
        { "sluice budget --grace 499ms", "--grace must be 500ms to 720h, not '499ms'" },
        { "sluice budget --grace -5s", "not '-5s'" },
        { "sluice journal", "'journal' needs one of these words behind it: verify, dump, stats." },
        { "sluice journal --nope", "'journal' needs one of these words behind it" },
        { "sluice journal vrify x", "no command 'journal vrify'. Did you mean 'journal verify'?" },
        { "sluice help journal nope", "no command 'journal nope'" },
        { "sluice journal verify", "'journal verify' needs FOLDER behind it" },
        { "sluice journal verify --count 3 x", "no option '--count'" },
        { "sluice backup x", "'backup' needs FOLDER TARGET behind it" },
        { "sluice scavenge x --dead-share 101", "--dead-share must be 0 to 100" },
        { "sluice completion", "'completion' needs bash|zsh|fish behind it" },
        { "sluice completion tcsh",
          "'completion': the word behind it must be bash, zsh or fish, not 'tcsh'." },
        { "sluice manual journal", "'journal' needs one of these words behind it" },
        { "sluice manual nope", "no command 'nope'" },
        { "sluice manual journal nope", "no command 'journal nope'" },
        { "sluice manual budget more", "'more' is one word too many" },
        { "sluice manual budget --into x", "--into writes all pages" },
        { "sluice version --config x", "no option '--config'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r = run_line(cases[i].line);
        EXPECT_EQ(r.code, SL_EXIT_USAGE);
        EXPECT_STR(r.out, "");
        EXPECT(strstr(r.err, cases[i].part) != NULL);
        end(&r);
    }
}

TEST(a_configuration_that_is_not_there_is_a_failure_and_nothing_is_done)
{
    run r = run_line("sluice budget --config /nonexistent/x.ini");

    EXPECT_EQ(r.code, SL_EXIT_FAILED);
    EXPECT_STR(r.out, "");
    EXPECT_STR(r.err, "sluice: /nonexistent/x.ini: the file cannot be read: No such file or directory. "
                      "--config and SLUICE_CONFIG must name one that is there and may be read.\n");
    end(&r);
}

TEST(a_wrong_variable_does_not_keep_anybody_from_the_help)
{
    variable = "SLUICE_GRACE=30";
    run help = run_line("sluice budget --help"), budget = run_line("sluice budget");

    variable = NULL;
    EXPECT_EQ(help.code, SL_EXIT_OK);
    EXPECT(strstr(help.out, "usage: sluice budget") != NULL);
    EXPECT_EQ(budget.code, SL_EXIT_USAGE);
    EXPECT(strstr(budget.err, "SLUICE_GRACE needs a duration") != NULL);
    end(&help);
    end(&budget);
}

TEST(a_mistake_is_told_to_programs_as_well_when_json_was_asked_for)
{
    static const struct {
        const char *variable, *line, *out;
    } cases[] = {
        { NULL, "sluice version --jsn --json",
          "{\"error\": \"there is no option '--jsn'. Did you mean '--json'?" },
        { NULL, "sluice nope -j", "{\"error\": \"there is no command 'nope'." },
        { NULL, "sluice version \"\\ --json", "{\"error\": \"'\\\"\\\\\\\\' is one word too many." },
        { "SLUICE_JSON=yes", "sluice budget --grace 1", "{\"error\": \"--grace needs a duration" },
        { "SLUICE_JSON=no", "sluice budget --grace 1", "" },
        { "SLUICE_JSON=maybe", "sluice budget", "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        variable = cases[i].variable;
        run r = run_line(cases[i].line);
        variable = NULL;
        EXPECT_EQ(r.code, SL_EXIT_USAGE);
        EXPECT(strncmp(r.out, cases[i].out, strlen(cases[i].out)) == 0);
        EXPECT((cases[i].out[0] == '\0') == (r.out[0] == '\0'));
        EXPECT(strncmp(r.err, "sluice: ", 8) == 0);
        end(&r);
    }
}

static void expect_narrow(const char *line_text)
{
    run r = run_line(line_text);

    EXPECT_EQ(r.code, SL_EXIT_OK);
    for (const char *line = r.out; *line != '\0'; line += strcspn(line, "\n") + 1)
        EXPECT(strcspn(line, "\n") <= 80);
    end(&r);
}

TEST(no_line_of_any_help_is_longer_than_80_columns)
{
    char line[64];

    expect_narrow("sluice help");
    expect_narrow("sluice help journal");
    for (size_t i = 0; i < sl_command_count; i++) {
        snprintf(line, sizeof line, "sluice help %s", sl_commands[i]->name);
        expect_narrow(line);
    }
}

TEST(the_help_of_budget_names_the_usual_length_of_every_part)
{
    char wanted[64];
    run r = run_line("sluice help budget");

    for (char *c = r.out; *c != '\0'; c++)
        *c = *c == '\n' ? ' ' : *c; /* a line may break in the middle of what is looked for */
    for (sl_budget_part part = 0; part < SL_BUDGET_PART_COUNT_; part++) {
        sl_text text;
        sl_text_init(&text, wanted, sizeof wanted);
        sl_text_add(&text, sl_budget_part_name(part));
        sl_text_add(&text, " ");
        sl_text_add_duration(&text, sl_budget_usual_ns(part));
        EXPECT(strstr(r.out, wanted) != NULL);
    }
    end(&r);
}
