/* tests/unit/cli/test_completion.c — scripts and man pages are made from the tables: nothing of these is missing, and nothing in
 * them can be taken for something else. tests/integration/test_shells.py lets the shells and man judge. */
#include "test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/manual.h"

typedef void write_fn(FILE *out);

static char *written(write_fn *write)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);

    write(out);
    fclose(out);
    return text;
}

static char *page_of(const sl_command *command)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);

    sl_manual_page(command, out);
    fclose(out);
    return text;
}

static const sl_option_table all = { .rows = sl_options,
                                     .row_count = SL_OPT_COUNT_,
                                     .command = SL_COMMAND_EVERY };

TEST(completion_scripts_know_every_command_and_every_option)
{
    static const struct {
        write_fn *write;
        const char *option; /* how the script names one */
    } scripts[] = {
        { sl_completion_bash, "--%s " },
        { sl_completion_zsh, "--%s" },
        { sl_completion_fish, "-l '%s'" },
    };
    char wanted[64];

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        char *const text = written(scripts[i].write);
        for (size_t j = 0; j < sl_command_count; j++)
            EXPECT(strstr(text, sl_commands[j]->name) != NULL);
        for (size_t j = 0; j < all.row_count; j++) {
            snprintf(wanted, sizeof wanted, scripts[i].option, all.rows[j].name);
            if (strstr(text, wanted) == NULL)
                fail_msg("'%s' is missing", wanted);
        }
        free(text);
    }
}

/* Between apostrophes, so an apostrophe in a text of the tables must not end them. */
TEST(completion_scripts_close_every_quotation)
{
    write_fn *const scripts[] = { sl_completion_bash, sl_completion_zsh };

    for (size_t i = 0; i < 2; i++) {
        char *const text = written(scripts[i]);
        unsigned marks = 0;
        for (const char *c = text; *c != '\0'; c++) {
            if (*c == '\\')
                c++;
            else if (*c == '#' && (c == text || c[-1] == '\n' || c[-1] == ' '))
                c += strcspn(c, "\n");
            else
                marks += *c == '\'';
        }
        EXPECT_EQ(marks % 2, 0);
        free(text);
    }
}

TEST(completion_escapes_what_a_shell_would_read_as_more_than_text)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);

    sl_completion_escaped(out, "a[1]: b\\c", "[]:\\");
    sl_completion_choices(out, "|x|y");
    fclose(out);
    EXPECT_STR(text, "a\\[1\\]\\: b\\\\c x y");
    free(text);
}

TEST(completion_takes_each_first_word_once)
{
    unsigned families = 0, count = 0;
    sl_str word;
    bool family;

    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_command *const command = sl_completion_first(i, &word, &family);
        if (command == NULL)
            continue;
        EXPECT_EQ(family, strchr(command->name, ' ') != NULL);
        families += family;
        count++;
    }
    EXPECT(families >= 1);
    EXPECT(count < sl_command_count); /* "journal" stands for several */
}

/* --- man pages --- */

static const char *const macros[] = { ".TH ",  ".SH ",  ".TP\n", ".PP\n", ".RS ", ".RE\n",
                                      ".EX\n", ".EE\n", ".BR ",  ".sp\n", ".\\\"" };

static bool begins_with_macro(const char *line)
{
    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++) {
        if (strncmp(line, macros[i], strlen(macros[i])) == 0)
            return true;
    }
    return false;
}

/* Roff obeys a line that begins with a dot or an apostrophe. */
static void expect_harmless(const char *page)
{
    for (const char *line = page; *line != '\0'; line += strcspn(line, "\n") + 1) {
        EXPECT(*line != '\'' && *line != '\n');
        EXPECT(*line != '.' || begins_with_macro(line));
    }
}

TEST(manual_pages_have_every_option_of_their_command_and_every_section)
{
    static const char *const sections[] = { ".SH NAME\n",    ".SH SYNOPSIS\n",    ".SH DESCRIPTION\n",
                                            ".SH OPTIONS\n", ".SH EXIT STATUS\n", ".SH SEE ALSO\n" };
    char wanted[64];

    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_option_table table = sl_command_options(sl_commands[i]);
        char *const page = page_of(sl_commands[i]);
        unsigned labels = 0, options = 0;

        for (size_t j = 0; j < sizeof sections / sizeof sections[0]; j++)
            EXPECT(strstr(page, sections[j]) != NULL);
        for (size_t j = 0; j < table.row_count; j++)
            options += sl_option_belongs(&table, &table.rows[j]);
        for (const char *at = page; (at = strstr(at, "\\fB\\-\\-")) != NULL; at++)
            labels++;
        EXPECT_EQ(labels, options);
        snprintf(wanted, sizeof wanted, "\n\\fBsluice %s", sl_commands[i]->name);
        EXPECT(strchr(sl_commands[i]->name, '-') != NULL || strstr(page, wanted) != NULL);
        expect_harmless(page);
        free(page);
    }
}

TEST(manual_has_a_page_about_all_with_every_command_and_every_variable)
{
    char *const page = page_of(NULL);
    char wanted[64];

    for (size_t i = 0; i < sl_command_count; i++) {
        snprintf(wanted, sizeof wanted, ".TP\n\\fB%s\\fR\n", sl_commands[i]->name);
        EXPECT(strstr(page, wanted) != NULL);
    }
    for (size_t i = 0; i < SL_OPT_COUNT_; i++) {
        unsigned found = 0;
        if (sl_options[i].environment == NULL)
            continue;
        snprintf(wanted, sizeof wanted, ".TP\n\\fB%s\\fR\n", sl_options[i].environment);
        for (const char *at = page; (at = strstr(at, wanted)) != NULL; at++)
            found++;
        EXPECT_EQ(found, 1); /* rows of several commands share one */
    }
    expect_harmless(page);
    free(page);
}

TEST(manual_takes_no_text_for_a_command_of_roff)
{
    static const sl_command row = {
        .name = "odd",
        .bit = SL_COMMAND_BIT(63),
        .words = ".WORD",
        .summary = "it is 'odd' - \\n and ~",
        .details = ".first\n\n'second\n  .example\n  'other -x\nlast\n",
        .examples = "Do it:\n  sluice odd 'a b' ^ `c`\n",
    };
    static const char *const wanted[] = {
        "\n\\&.first\n.PP\n\\(aqsecond\n.PP\n.RS 4\n.EX\n\\&.example\n\\(aqother \\-x\n.EE\n.RE\nlast\n",
        "it is \\(aqodd\\(aq \\- \\en and \\(ti\n", "\\(ha \\(gac\\(ga\n.EE\n.RE\n"
    };
    char *const page = page_of(&row);

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strstr(page, wanted[i]) == NULL)
            fail_msg("'%s' is not in '%s'", wanted[i], page);
    }
    expect_harmless(page);
    free(page);
}

/* --- the table of commands --- */

static void expect_exits(const char *exits)
{
    char last = '0' - 1;

    EXPECT(strstr(exits, SL_EXITS_USAGE) != NULL);
    for (const char *line = exits; *line != '\0'; line += strcspn(line, "\n") + 1) {
        EXPECT(line[0] > last && line[1] == ' ' && line[2] != '\n');
        EXPECT(strchr(line, '\n') != NULL);
        last = line[0];
    }
}

static void expect_examples(const char *examples)
{
    bool typed = true;

    for (const char *line = examples; *line != '\0'; line += strcspn(line, "\n") + 1) {
        EXPECT(strchr(line, '\n') != NULL && line[0] != '\n');
        EXPECT(typed || line[0] == ' '); /* a sentence has something to type behind it */
        typed = line[0] == ' ';
        EXPECT(!typed || (line[1] == ' ' && line[2] != ' '));
    }
    EXPECT(typed);
}

TEST(commands_of_sluice_are_complete_and_unambiguous)
{
    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_command *const row = sl_commands[i];
        const size_t bytes = strlen(row->details);
        EXPECT(row->run != NULL && row->summary[0] != '\0' && !isupper((unsigned char)row->summary[0]));
        EXPECT(row->bit != 0 && (row->bit & (row->bit - 1)) == 0);
        EXPECT(bytes > 1 && row->details[bytes - 1] == '\n' && row->details[bytes - 2] != '\n');
        EXPECT(row->words_min <= row->words_max && (row->words_max == 0) == (row->words[0] == '\0'));
        EXPECT(row->summary[strlen(row->summary) - 1] != '.');
        if (row->exits != NULL)
            expect_exits(row->exits);
        if (row->examples != NULL)
            expect_examples(row->examples);
        for (size_t j = 0; j < i; j++) {
            EXPECT(row->bit != sl_commands[j]->bit && strcmp(row->name, sl_commands[j]->name) != 0);
            EXPECT(!sl_command_in_family(sl_commands[j], row->name));
            EXPECT(!sl_command_in_family(row, sl_commands[j]->name));
        }
    }
    expect_exits(SL_EXITS_USUAL);
}
