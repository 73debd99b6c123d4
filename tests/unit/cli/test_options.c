/* tests/unit/cli/test_options.c — reading options by table: forms, bounds, sources, and what is said when
 * wrong. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/environment.h"
#include "cli/options.h"

enum {
    MINE = 1u,
    OTHER = 2u
};
enum {
    QUIET,
    NAME,
    COUNT,
    GRACE,
    SYNC,
    GROUP,
    ONCE,
    FOREIGN,
    FOREIGN_NAME,
    ROW_COUNT
};

static const sl_option rows[ROW_COUNT] = {
    [QUIET] = { .name = "quiet",
                .letter = 'q',
                .kind = SL_OPTION_FLAG,
                .environment = "T_QUIET",
                .commands = MINE,
                .help = "say less" },
    [NAME] = { .name = "name",
               .kind = SL_OPTION_TEXT,
               .argument = "NAME",
               .environment = "T_NAME",
               .min = 1,
               .max = 5,
               .commands = MINE,
               .help = "who it is" },
    [COUNT] = { .name = "count",
                .letter = 'c',
                .kind = SL_OPTION_NUMBER,
                .argument = "N",
                .default_text = "7",
                .environment = "T_COUNT",
                .min = 2,
                .max = 9,
                .commands = MINE | OTHER,
                .help = "how many" },
    [GRACE] = { .name = "grace",
                .letter = 'g',
                .kind = SL_OPTION_DURATION,
                .argument = "TIME",
                .default_text = "30s",
                .min = UINT64_C(1000000000),
                .max = UINT64_C(60000000000),
                .commands = MINE,
                .help = "how long" },
    [SYNC] = { .name = "sync",
               .kind = SL_OPTION_CHOICE,
               .argument = "WHEN",
               .choices = "always|often|never",
               .default_text = "often",
               .environment = "T_SYNC",
               .commands = MINE,
               .help = "when" },
    [GROUP] = { .name = "group",
                .letter = 'G',
                .kind = SL_OPTION_NUMBER,
                .argument = "N",
                .repeats = true,
                .environment = "T_GROUP",
                .min = 1,
                .max = 9,
                .commands = MINE,
                .help = "which" },
    [ONCE] = { .name = "once", .kind = SL_OPTION_FLAG, .commands = MINE, .help = "only here" },
    [FOREIGN] = { .name = "foreign",
                  .letter = 'x',
                  .kind = SL_OPTION_FLAG,
                  .commands = OTHER,
                  .help = "of another command" },
    [FOREIGN_NAME] = { .name = "name", .kind = SL_OPTION_FLAG, .commands = OTHER, .help = "the same name" },
};
static const sl_option_table mine = { .rows = rows, .row_count = ROW_COUNT, .command = MINE };

static const char *variable_name, *variable_text;

static const char *fake_environment(const char *name)
{
    return variable_name != NULL && strcmp(name, variable_name) == 0 ? variable_text : NULL;
}

enum {
    WORDS_MAX = 8
};

typedef struct reading {
    char line[128];
    char *words[WORDS_MAX];
    size_t word_count;
    sl_option_value values[ROW_COUNT];
    sl_option_reading to;
    sl_err err;
} reading;

static void split_line(reading *r, const char *line)
{
    snprintf(r->line, sizeof r->line, "%s", line);
    for (char *word = strtok(r->line, " "); word != NULL; word = strtok(NULL, " "))
        r->words[r->word_count++] = word;
}

/* Reads a command line that is written with single blanks. */
static void read_line(reading *r, const char *line)
{
    *r = (reading){ 0 };
    split_line(r, line);
    r->to = (sl_option_reading){ .table = &mine,
                                 .environment = fake_environment,
                                 .words = r->words,
                                 .word_count = r->word_count,
                                 .values = r->values };
    r->err = sl_options_read(&r->to);
}

static void set_variable(const char *name, const char *text)
{
    variable_name = name;
    variable_text = text;
}

TEST(options_not_given_have_their_default_or_are_unset)
{
    reading r;

    set_variable(NULL, NULL);
    read_line(&r, "");
    EXPECT_OK(r.err);
    EXPECT_EQ(r.to.plain_count, 0);
    EXPECT_EQ(r.values[COUNT].number, 7);
    EXPECT_EQ(r.values[COUNT].source, SL_OPTION_FROM_DEFAULT);
    EXPECT_EQ(r.values[GRACE].number, UINT64_C(30000000000));
    EXPECT_EQ(r.values[QUIET].source, SL_OPTION_UNSET);
    EXPECT_EQ(r.values[NAME].source, SL_OPTION_UNSET);
}

TEST(options_are_read_in_every_form)
{
    static const char *lines[] = { "--count 3", "--count=3",           "-c 3",
                                   "-c3",       "--count 9 --count 3", "--grace=1s -c 3" };
    reading r;

    set_variable(NULL, NULL);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        read_line(&r, lines[i]);
        EXPECT_OK(r.err);
        EXPECT_EQ(r.values[COUNT].number, 3);
        EXPECT_EQ(r.values[COUNT].source, SL_OPTION_FROM_COMMAND_LINE);
        EXPECT_STR(r.values[COUNT].text, "3");
    }
}

TEST(options_may_stand_between_plain_words_and_end_with_two_dashes)
{
    reading r;

    set_variable(NULL, NULL);
    read_line(&r, "one -q two - -- --count -q");
    EXPECT_OK(r.err);
    EXPECT_EQ(r.to.plain_count, 5);
    EXPECT_STR(r.words[0], "one");
    EXPECT_STR(r.words[1], "two");
    EXPECT_STR(r.words[2], "-");
    EXPECT_STR(r.words[3], "--count");
    EXPECT_STR(r.words[4], "-q");
    EXPECT_EQ(r.values[QUIET].number, 1);
    EXPECT_EQ(r.values[COUNT].source, SL_OPTION_FROM_DEFAULT);
}

TEST(options_are_held_to_their_bounds_and_the_bounds_are_allowed)
{
    static const struct {
        const char *line;
        sl_err err;
    } cases[] = {
        { "-c 2", SL_OK },
        { "-c 9", SL_OK },
        { "-c 1", SL_ERR_INVALID },
        { "-c 10", SL_ERR_INVALID },
        { "-g 1s", SL_OK },
        { "-g 60s", SL_OK },
        { "-g 999ms", SL_ERR_INVALID },
        { "-g 60001ms", SL_ERR_INVALID },
        { "--name abcde", SL_OK },
        { "--name abcdef", SL_ERR_INVALID },
        { "--name=", SL_ERR_INVALID },
        { "-c 99999999999999999999", SL_ERR_INVALID },
    };
    reading r;

    set_variable(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_line(&r, cases[i].line);
        EXPECT_ERR(r.err, cases[i].err);
    }
}

TEST(options_that_are_wrong_are_answered_with_a_sentence)
{
    static const struct {
        const char *line, *complaint;
    } cases[] = {
        { "--cuont 3", "there is no option '--cuont'. Did you mean '--count'?" },
        { "--cuont=3", "there is no option '--cuont=3'. Did you mean '--count'?" },
        { "--zebra", "there is no option '--zebra'." },
        { "--foreign", "there is no option '--foreign'." },
        { "-x", "there is no option '-x'." },
        { "--count", "--count needs a value behind it." },
        { "--count --quiet", "--count needs a value behind it." },
        { "--count -q", "--count needs a value behind it." },
        { "--count -", "--count needs a whole number, not '-'." },
        { "--count -3", "--count must be 2 to 9, not '-3'." },
        { "--grace -5s", "--grace must be 1s to 1m, not '-5s'." },
        { "-c \x1b[31m", "--count needs a whole number, not '\\x1b[31m'." },
        { "--\x07", "there is no option '--\\x07'." },
        { "--once=1", "--once takes no value." },
        { "--quiet=maybe", "--quiet needs 1, true, yes, 0, false or no, not 'maybe'." },
        { "--sync sometimes", "--sync must be always, often or never, not 'sometimes'." },
        { "--sync=", "--sync must be always, often or never, not ''." },
        { "--sync of", "--sync must be always, often or never, not 'of'." },
        { "--sync often|never", "--sync must be always, often or never, not 'often|never'." },
        { "-G 3 -G 0", "--group must be 1 to 9, not '0'." },
        { "-qc", "--quiet takes no value." },
        { "-c three", "--count needs a whole number, not 'three'." },
        { "--count=", "--count needs a whole number, not ''." },
        { "-c 10", "--count must be 2 to 9, not '10'." },
        { "-g 30", "--grace needs a duration with its unit, such as 30s or 250ms, not '30'." },
        { "-g 2m", "--grace must be 1s to 1m, not '2m'." },
        { "--name abcdef", "--name must be 1 to 5 bytes, not 'abcdef'." },
    };
    reading r;

    set_variable(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_line(&r, cases[i].line);
        EXPECT_ERR(r.err, SL_ERR_INVALID);
        EXPECT_STR(r.to.complaint.text, cases[i].complaint);
    }
}

TEST(options_come_from_the_environment_unless_the_command_line_says_otherwise)
{
    reading r;

    set_variable("T_COUNT", "4");
    read_line(&r, "");
    EXPECT_OK(r.err);
    EXPECT_EQ(r.values[COUNT].number, 4);
    EXPECT_EQ(r.values[COUNT].source, SL_OPTION_FROM_ENVIRONMENT);
    read_line(&r, "--count 5");
    EXPECT_EQ(r.values[COUNT].number, 5);
    set_variable("T_COUNT", "");
    read_line(&r, "");
    EXPECT_EQ(r.values[COUNT].number, 7);
}

TEST(options_name_the_variable_that_is_wrong)
{
    reading r;

    set_variable("T_COUNT", "many");
    read_line(&r, "");
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT_STR(r.to.complaint.text, "T_COUNT needs a whole number, not 'many'.");
    read_line(&r, "-c 3");
    EXPECT_OK(r.err);
}

TEST(options_that_are_flags_take_plain_words_from_the_environment)
{
    static const struct {
        const char *text;
        sl_err err;
        uint64_t number;
    } cases[] = {
        { "1", SL_OK, 1 },     { "0", SL_OK, 0 },           { "true", SL_OK, 1 },
        { "false", SL_OK, 0 }, { "YES", SL_OK, 1 },         { "No", SL_OK, 0 },
        { "", SL_OK, 0 },      { "on", SL_ERR_INVALID, 0 }, { "2", SL_ERR_INVALID, 0 },
    };
    reading r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_variable("T_QUIET", cases[i].text);
        read_line(&r, "");
        EXPECT_ERR(r.err, cases[i].err);
        if (r.err == SL_OK)
            EXPECT_EQ(r.values[QUIET].number, cases[i].number);
        else
            EXPECT(strstr(r.to.complaint.text, "T_QUIET needs 1, true, yes, 0, false or no, not '") != NULL);
        EXPECT_EQ(sl_options_asks_for(&rows[QUIET], fake_environment, r.words, r.word_count),
                  cases[i].number != 0);
    }
}

TEST(options_can_be_asked_for_in_a_line_that_is_wrong)
{
    static const struct {
        const char *line;
        bool asks;
    } cases[] = {
        { "--nope --quiet", true }, { "--count -q", true },     { "--nope", false },
        { "-- --quiet", false },    { "--quiet=1", true },      { "quiet", false },
        { "--quiet=no -q", false }, { "--quiet=maybe", false }, { "-- -q", false },
        { "--quietly", false },     { "x y -q z", true },
    };
    reading r;

    set_variable("T_COUNT", "wrong");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        r = (reading){ 0 };
        split_line(&r, cases[i].line);
        EXPECT_EQ(sl_options_asks_for(&rows[QUIET], fake_environment, r.words, r.word_count), cases[i].asks);
    }
}

TEST(options_help_is_made_from_the_rows)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);

    EXPECT(out != NULL);
    sl_options_help(&mine, out);
    fclose(out);
    EXPECT_STR(text, "  -q, --quiet       say less ($T_QUIET)\n"
                     "      --name NAME   who it is ($T_NAME)\n"
                     "  -c, --count N     how many; 2 to 9 [7] ($T_COUNT)\n"
                     "  -g, --grace TIME  how long; 1s to 1m [30s]\n"
                     "      --sync WHEN   when; always, often or never [often] ($T_SYNC)\n"
                     "  -G, --group N     which; 1 to 9; may be given several times ($T_GROUP)\n"
                     "      --once        only here\n");
    free(text);
}

TEST(options_of_a_choice_are_their_place_in_the_list)
{
    static const struct {
        const char *line;
        uint64_t place;
    } cases[] = { { "", 1 }, { "--sync always", 0 }, { "--sync=often", 1 }, { "--sync never", 2 } };
    reading r;

    set_variable(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_line(&r, cases[i].line);
        EXPECT_OK(r.err);
        EXPECT_EQ(r.values[SYNC].number, cases[i].place);
    }
}

TEST(options_that_repeat_keep_all_their_values_in_order)
{
    static const uint64_t wanted[] = { 5, 3, 5 };
    const sl_option_repeat *each;
    reading r;

    set_variable("T_GROUP", "9"); /* weaker: it must not be among them */
    read_line(&r, "-G5 -q --group=3 x --group 5");
    EXPECT_OK(r.err);
    each = r.values[GROUP].all;
    for (size_t i = 0; i < 3; i++, each = each->next) {
        EXPECT(each != NULL);
        EXPECT_EQ(each->number, wanted[i]);
    }
    EXPECT(each == NULL);
    EXPECT_EQ(r.values[GROUP].number, 5);
    EXPECT(r.values[QUIET].all == NULL);
    read_line(&r, "");
    EXPECT_EQ(r.values[GROUP].all->number, 9);
    EXPECT(r.values[GROUP].all->next == NULL);
}

TEST(options_that_repeat_end_with_a_sentence_before_memory_does)
{
    char word[] = "-G1";
    char *words[SL_OPTION_REPEATS_MAX + 1];
    sl_option_value values[ROW_COUNT];
    sl_option_reading to = {
        .table = &mine, .environment = fake_environment, .words = words, .values = values
    };

    set_variable(NULL, NULL);
    for (size_t i = 0; i < SL_OPTION_REPEATS_MAX + 1; i++)
        words[i] = word;
    to.word_count = SL_OPTION_REPEATS_MAX;
    EXPECT_OK(sl_options_read(&to));
    to.word_count = SL_OPTION_REPEATS_MAX + 1;
    EXPECT_ERR(sl_options_read(&to), SL_ERR_INVALID);
    EXPECT_STR(to.complaint.text, "--group: more than 256 repeated values are too many.");
}

TEST(options_that_are_flags_can_be_switched_off_where_something_weaker_has_switched_them_on)
{
    reading r;

    set_variable("T_QUIET", "yes");
    read_line(&r, "--quiet=no");
    EXPECT_OK(r.err);
    EXPECT_EQ(r.values[QUIET].number, 0);
    EXPECT_EQ(r.values[QUIET].source, SL_OPTION_FROM_COMMAND_LINE);
    read_line(&r, "--quiet=no -q");
    EXPECT_EQ(r.values[QUIET].number, 1);
    EXPECT(!sl_options_asks_for(&rows[QUIET], fake_environment, (char *[]){ (char[]){ "--quiet=no" } }, 1));
}

TEST(options_of_the_same_name_are_of_different_kinds_for_different_commands)
{
    const sl_option_table other = { .rows = rows, .row_count = ROW_COUNT, .command = OTHER };
    char word[] = "--name";
    char *words[] = { word };
    sl_option_value values[ROW_COUNT];
    sl_option_reading to = {
        .table = &other, .environment = fake_environment, .words = words, .word_count = 1, .values = values
    };

    set_variable(NULL, NULL);
    EXPECT_OK(sl_options_read(&to));
    EXPECT_EQ(values[FOREIGN_NAME].number, 1);
    EXPECT_EQ(values[NAME].source, SL_OPTION_UNSET);
}

static void expect_variable(const sl_option *row)
{
    char wanted[64] = "SLUICE_";
    size_t bytes = strlen(wanted);

    for (const char *c = row->name; *c != '\0'; c++)
        wanted[bytes++] = *c == '-' ? '_' : (char)(*c - 'a' + 'A');
    wanted[bytes] = '\0';
    EXPECT_STR(row->environment, wanted);           /* the same name everywhere */
    EXPECT(!sl_environment_is_of_handlers(wanted)); /* or a handler that calls us would set it */
}

/* The table that is shipped: what the reader relies on, for every row that is ever added. */
TEST(options_of_sluice_are_complete_and_unambiguous)
{
    for (size_t i = 0; i < SL_OPT_COUNT_; i++) {
        const sl_option *row = &sl_options[i];
        EXPECT(row->name != NULL && row->help != NULL && row->commands != 0);
        EXPECT((row->kind == SL_OPTION_FLAG) == (row->argument == NULL));
        EXPECT(row->min <= row->max);
        EXPECT(row->kind == SL_OPTION_FLAG || row->kind == SL_OPTION_CHOICE || row->max > 0);
        EXPECT((row->kind == SL_OPTION_CHOICE) == (row->choices != NULL));
        EXPECT(!row->repeats || row->kind != SL_OPTION_FLAG);
        EXPECT(strlen(row->name) < SL_OPTION_LABEL_BYTES / 2);
        if (row->environment != NULL)
            expect_variable(row);
        for (size_t j = 0; j < i; j++) {
            const bool together = (row->commands & sl_options[j].commands) != 0;
            EXPECT(!together || strcmp(row->name, sl_options[j].name) != 0);
            EXPECT(!together || row->letter == 0 || row->letter != sl_options[j].letter);
        }
    }
}

TEST(what_handlers_are_told_is_no_mistake_in_the_environment)
{
    static char attempt[] = "SLUICE_ATTEMPT=3", id[] = "SLUICE_ID=x", mistake[] = "SLUICE_ATTEMPTZ=3";
    char *const variables[] = { attempt, id, mistake, NULL };
    char *text = NULL;
    size_t bytes = 0;
    FILE *const err = open_memstream(&text, &bytes);

    sl_environment_warn(variables, err);
    fclose(err);
    EXPECT(strstr(text, "SLUICE_ATTEMPTZ means nothing. Did you mean SLUICE_ATTEMPTS?") != NULL);
    EXPECT(strstr(text, "SLUICE_ATTEMPT ") == NULL && strstr(text, "SLUICE_ID") == NULL);
    free(text);
}
