/* tests/unit/cli/test_config.c — options from a file: forms, sections, strength, mistakes, and the way back. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/config.h"
#include "cli/config_text.h"

/* --- a small program of its own, so that the tests do not depend on what sluice has --- */

enum {
    RUN = 1u,
    USER_ADD = 2u,
    USER_LIST = 4u
};
enum {
    LOUD,
    PORT,
    NAME,
    GROUP,
    SYNC,
    ONCE,
    CONFIG,
    OTHER_NAME,
    ROW_COUNT
};

static const sl_option rows[ROW_COUNT] = {
    [LOUD] = { .name = "loud",
               .kind = SL_OPTION_FLAG,
               .environment = "T_LOUD",
               .commands = RUN | USER_ADD | USER_LIST },
    [PORT] = { .name = "port",
               .kind = SL_OPTION_NUMBER,
               .default_text = "7",
               .environment = "T_PORT",
               .min = 1,
               .max = 99,
               .commands = RUN | USER_ADD },
    [NAME] = { .name = "name",
               .kind = SL_OPTION_TEXT,
               .environment = "T_NAME",
               .min = 1,
               .max = 99,
               .commands = RUN },
    [GROUP] = { .name = "group",
                .kind = SL_OPTION_TEXT,
                .default_text = "base",
                .environment = "T_GROUP",
                .min = 1,
                .max = 9,
                .repeats = true,
                .commands = USER_ADD },
    [SYNC] = { .name = "sync",
               .kind = SL_OPTION_CHOICE,
               .choices = "always|never",
               .environment = "T_SYNC",
               .commands = RUN },
    [ONCE] = { .name = "once", .kind = SL_OPTION_FLAG, .commands = RUN },
    [CONFIG] = { .name = "config",
                 .kind = SL_OPTION_TEXT,
                 .environment = "T_CONFIG",
                 .min = 1,
                 .max = 99,
                 .commands = RUN },
    [OTHER_NAME] = { .name = "name", .kind = SL_OPTION_FLAG, .commands = USER_LIST },
};
static const sl_command run_row = { .name = "run", .bit = RUN };
static const sl_command add_row = { .name = "user add", .bit = USER_ADD };
static const sl_command list_row = { .name = "user list", .bit = USER_LIST };
static const sl_command *const commands[] = { &run_row, &add_row, &list_row };
static const sl_config_tables tables = {
    .rows = rows, .row_count = ROW_COUNT, .commands = commands, .command_count = 3
};

/* --- reading a text as a file --- */

typedef struct reading {
    char path[32];
    sl_option_table table;
    sl_option_value values[ROW_COUNT];
    sl_option_reading to;
    sl_config *config;
    sl_err err;
} reading;

static const char *variable_name, *variable_text;

static const char *fake_environment(const char *name)
{
    return variable_name != NULL && strcmp(name, variable_name) == 0 ? variable_text : NULL;
}

static void write_file(reading *r, const char *text, size_t bytes)
{
    FILE *file;

    strcpy(r->path, "/tmp/sluice-config-XXXXXX");
    file = fdopen(mkstemp(r->path), "w");
    EXPECT(file != NULL);
    EXPECT_EQ(fwrite(text, 1, bytes, file), bytes);
    EXPECT_EQ(fclose(file), 0);
}

/* As commands.c does it: command line and environment first, then the file. */
static void read_bytes(reading *r, const sl_command *command, const char *line, const char *text,
                       size_t bytes)
{
    char words[2][32] = { "", "" };
    char *pointers[] = { words[0], words[1] };

    *r = (reading){ .table = { .rows = rows, .row_count = ROW_COUNT, .command = command->bit } };
    r->to = (sl_option_reading){
        .table = &r->table, .environment = fake_environment, .words = pointers, .values = r->values
    };
    while (r->to.word_count < 2 && sscanf(line, "%31s", words[r->to.word_count]) == 1) {
        line += strlen(words[r->to.word_count++]);
        line += strspn(line, " ");
    }
    EXPECT_OK(sl_options_read(&r->to));
    write_file(r, text, bytes);
    r->err = sl_config_load(&sl_alloc_default, &tables, r->path, &r->config, &r->to.complaint);
    unlink(r->path);
    if (r->err == SL_OK)
        r->err = sl_config_apply(r->config, command, &r->to);
}

static void read_text(reading *r, const sl_command *command, const char *text)
{
    read_bytes(r, command, "", text, strlen(text));
}

static void forget(reading *r)
{
    sl_config_free(r->config);
}

/* --- forms --- */

TEST(a_configuration_has_sections_keys_comments_and_quoted_values)
{
    static const char text[] = "\xef\xbb\xbf# first\r\n"
                               "; second\n"
                               "\n"
                               "loud = yes ; behind a blank\n"
                               "  [ run ]  # a section\n"
                               "port=8\n"
                               "\tname  =  \"a \\\"b\\\" \\\\ \\xe2\\x82\\xac ; # \"   ; comment\n"
                               "sync = never";
    reading r;

    read_text(&r, &run_row, text);
    EXPECT_OK(r.err);
    EXPECT_EQ(r.values[LOUD].number, 1);
    EXPECT_EQ(r.values[PORT].number, 8);
    EXPECT_EQ(r.values[PORT].source, SL_OPTION_FROM_FILE);
    EXPECT_EQ(r.values[PORT].line, 6);
    EXPECT_STR(r.values[NAME].text, "a \"b\" \\ \xe2\x82\xac ; # ");
    EXPECT_EQ(r.values[SYNC].number, 1);
    EXPECT_EQ(r.values[ONCE].source, SL_OPTION_UNSET);
    forget(&r);
}

TEST(a_configuration_without_a_line_changes_nothing)
{
    static const char *const texts[] = { "", "\n\n", "# only\n; comments", "[run]\n[user]" };
    reading r;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(&r, &run_row, texts[i]);
        EXPECT_OK(r.err);
        EXPECT_EQ(r.values[PORT].source, SL_OPTION_FROM_DEFAULT);
        forget(&r);
    }
}

TEST(a_configuration_takes_a_comment_sign_inside_of_a_word_as_part_of_it)
{
    reading r;

    read_text(&r, &run_row, "[run]\nname = a;b#c d\n");
    EXPECT_OK(r.err);
    EXPECT_STR(r.values[NAME].text, "a;b#c d");
    forget(&r);
}

/* --- who wins --- */

TEST(a_configuration_is_stronger_than_a_default_and_weaker_than_all_else)
{
    static const char text[] = "[run]\nport = 8\n";
    reading r;

    read_text(&r, &run_row, text);
    EXPECT_EQ(r.values[PORT].number, 8);
    forget(&r);
    variable_name = "T_PORT";
    variable_text = "9";
    read_text(&r, &run_row, text);
    EXPECT_EQ(r.values[PORT].number, 9);
    EXPECT_EQ(r.values[PORT].source, SL_OPTION_FROM_ENVIRONMENT);
    forget(&r);
    read_bytes(&r, &run_row, "--port 10", text, strlen(text));
    EXPECT_EQ(r.values[PORT].number, 10);
    forget(&r);
    variable_name = NULL;
}

TEST(a_configuration_takes_the_nearest_section)
{
    static const struct {
        const char *text;
        uint64_t run, add;
    } cases[] = {
        { "port = 1\n", 1, 1 },
        { "port = 1\n[user]\nport = 2\n", 1, 2 },
        { "port = 1\n[user add]\nport = 3\n[user]\nport = 2\n", 1, 3 },
        { "[user add]\nport = 3\n", 7, 3 },
        { "[user list]\nloud = yes\n[run]\nport = 4\n", 4, 7 },
    };
    reading r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_text(&r, &run_row, cases[i].text);
        EXPECT_EQ(r.values[PORT].number, cases[i].run);
        forget(&r);
        read_text(&r, &add_row, cases[i].text);
        EXPECT_EQ(r.values[PORT].number, cases[i].add);
        forget(&r);
    }
}

TEST(a_configuration_repeats_what_may_be_repeated_and_from_one_section_only)
{
    const sl_option_repeat *each;
    reading r;

    read_text(&r, &add_row, "group = far\n[user add]\ngroup = one\nport = 3\ngroup = two\n");
    EXPECT_OK(r.err);
    each = r.values[GROUP].all;
    EXPECT_STR(each->text, "one");
    each = each->next;
    EXPECT_STR(each->text, "two");
    EXPECT(each->next == NULL);
    forget(&r);
}

/* --- mistakes --- */

TEST(a_configuration_that_is_wrong_is_answered_with_file_line_and_the_nearest_name)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        { "[run]\nprot = 1\n", "line 2: there is no option 'prot' in [run]. Did you mean 'port'?" },
        { "zebra = 1\n", "line 1: there is no option 'zebra'." },
        { "[run]\ngroup = x\n", "line 2: there is no option 'group' in [run]." },
        { "\n\n[user ad]\n", "line 3: there is no command 'user ad'. Did you mean '[user add]'?" },
        { "[zebra]\n", "line 1: there is no command 'zebra'." },
        { "[run]\nonce = yes\n", "line 2: 'once' can be set on the command line only." },
        { "[user list]\nname = x\n", "line 2: 'name' can be set on the command line only." },
        { "config = other.ini\n", "line 1: 'config' can be set on the command line only." },
        { "[run]\nport = many\n", "line 2: port needs a whole number, not 'many'." },
        { "[run]\nport = 100\n", "line 2: port must be 1 to 99, not '100'." },
        { "[run]\nport =\n", "line 2: port needs a whole number, not ''." },
        { "[user add]\nport = 0\n",
          "line 2: port must be 1 to 99, not '0'." }, /* of another command: checked too */
        { "loud = on\n", "line 1: loud needs 1, true, yes, 0, false or no, not 'on'." },
        { "[run]\nsync = often\n", "line 2: sync must be always or never, not 'often'." },
        { "[run]\nport = 1\n[user]\n[run]\nport = 2\n", "line 5: 'port' was set in line 2 already." },
        { "port = 1\nport = 1\n", "line 2: 'port' was set in line 1 already." },
        { "[run\n", "line 1: a section needs a ] at its end." },
        { "[]\n", "line 1: a section needs a name between [ and ]." },
        { "[run] x\n", "line 1: there is something behind the ]." },
        { "port 1\n", "line 1: this is neither NAME = VALUE nor [COMMAND]." },
        { "= 1\n", "line 1: there is no name before the =." },
        { "[run]\nname = \"a\n", "line 2: the quotation mark at the beginning has none at the end." },
        { "[run]\nname = \"a\" b\n", "line 2: there is something behind the closing quotation mark." },
        { "[run]\nname = \"\\n\"\n", "line 2: in quotation marks a backslash needs another one" },
        { "[run]\nname = \"\\x0\"\n", "line 2: in quotation marks a backslash needs" },
        { "[run]\nname = \"\\x00\"\n", "line 2: in quotation marks a backslash needs" },
        { "[run]\nname = \"\\", "line 2: in quotation marks a backslash needs" },
        { "\x1b[2J = 1\n", "line 1: there is no option '\\x1b[2J'." },
    };
    reading r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_text(&r, &run_row, cases[i].text);
        EXPECT_ERR(r.err, SL_ERR_INVALID);
        EXPECT(strncmp(r.to.complaint.text, r.path, strlen(r.path)) == 0);
        if (strstr(r.to.complaint.text, cases[i].complaint) == NULL)
            fail_msg("'%s' is not in '%s'", cases[i].complaint, r.to.complaint.text);
        EXPECT(r.config == NULL);
    }
}

TEST(a_configuration_has_limits_and_the_limits_are_allowed)
{
    char *const text = calloc(1, SL_CONFIG_FILE_BYTES_MAX + 2);
    reading r;

    memset(text, '\n', SL_CONFIG_FILE_BYTES_MAX + 1);
    read_bytes(&r, &run_row, "", text, SL_CONFIG_FILE_BYTES_MAX);
    EXPECT_OK(r.err);
    forget(&r);
    read_bytes(&r, &run_row, "", text, SL_CONFIG_FILE_BYTES_MAX + 1);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT(strstr(r.to.complaint.text, "the file is larger than 262144 bytes") != NULL);

    memset(text, '#', SL_CONFIG_LINE_BYTES_MAX + 1);
    read_bytes(&r, &run_row, "", text, SL_CONFIG_LINE_BYTES_MAX);
    EXPECT_OK(r.err);
    forget(&r);
    read_bytes(&r, &run_row, "", text, SL_CONFIG_LINE_BYTES_MAX + 1);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT(strstr(r.to.complaint.text, "line 1: the line is longer than 8192 bytes") != NULL);

    read_bytes(&r, &run_row, "", "port = 1\n\0\n", 11);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT(strstr(r.to.complaint.text, "line 2: there is a zero byte") != NULL);
    free(text);
}

TEST(a_configuration_has_a_limit_on_its_settings)
{
    char *const text = calloc(1, 16 * (SL_CONFIG_ENTRIES_MAX + 2));
    reading r;

    strcpy(text, "[user add]\n");
    for (unsigned i = 0; i < SL_CONFIG_ENTRIES_MAX + 1; i++)
        strcpy(text + 11 + 10 * i, "group = a\n");
    read_text(&r, &run_row, text);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT(strstr(r.to.complaint.text, "line 1026: more than 1024 settings are too many.") != NULL);
    text[11 + 10 * SL_CONFIG_ENTRIES_MAX] = '\0';
    read_text(&r, &run_row, text);
    EXPECT_OK(r.err);
    forget(&r);
    free(text);
}

TEST(a_configuration_that_cannot_be_read_is_named_with_the_reason)
{
    static const struct {
        const char *path, *complaint;
    } cases[] = {
        { "/nonexistent/sluice.ini", "/nonexistent/sluice.ini: the file cannot be read: No such file or "
                                     "directory. --config and SLUICE_CONFIG "
                                     "must name one that is there and may be read." },
        { "/", "/: the file cannot be read: Is a directory. --config and SLUICE_CONFIG must name one that is "
               "there "
               "and may be read." },
    };
    sl_config *config = NULL;
    sl_complaint complaint;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_ERR(sl_config_load(&sl_alloc_default, &tables, cases[i].path, &config, &complaint), SL_ERR_IO);
        EXPECT_STR(complaint.text, cases[i].complaint);
        EXPECT(config == NULL);
    }
}

/* --- and back --- */

static char *printed(reading *r, const sl_command *command, bool json)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);
    const sl_invocation invocation = { .command = command, .values = r->values, .json = json, .out = out };

    sl_config_print(&invocation, &r->table, "my.ini");
    fclose(out);
    return text;
}

TEST(a_configuration_that_is_printed_tells_where_each_setting_comes_from)
{
    char *text;
    reading r;

    variable_name = "T_NAME";
    variable_text = "from outside; \"quoted\"";
    read_bytes(&r, &run_row, "--loud", "[run]\nport = 8\n", 15);
    text = printed(&r, &run_row, false);
    EXPECT_STR(
        text,
        "# Settings of 'sluice run'; strongest first: command line, environment, file (--config), default.\n"
        "[run]\n"
        "loud = yes                               # command line\n"
        "port = 8                                 # my.ini, line 2\n"
        "name = \"from outside; \\\"quoted\\\"\"        # $T_NAME\n"
        "# sync =                                 # not set\n");
    free(text);
    text = printed(&r, &run_row, true);
    EXPECT_STR(text, "{\"command\": \"run\", \"file\": \"my.ini\", \"settings\": {"
                     "\"loud\": {\"value\": true, \"source\": \"command line\"}, "
                     "\"port\": {\"value\": 8, \"source\": \"file\", \"line\": 2}, "
                     "\"name\": {\"value\": \"from outside; \\\"quoted\\\"\", \"source\": \"environment\", "
                     "\"variable\": \"T_NAME\"}, "
                     "\"sync\": {\"value\": null, \"source\": \"unset\"}}}\n");
    free(text);
    forget(&r);
    variable_name = NULL;
}

TEST(a_configuration_that_is_printed_gives_the_same_when_it_is_read)
{
    static const char text[] =
        "[user add]\nloud = no\ngroup = \" a \"\ngroup = \"#;\\\\\\x0a\\xff\"\ngroup = \"\\\"\"\n";
    const sl_option_repeat *first, *second;
    char *once, *twice;
    reading r, again;

    read_text(&r, &add_row, text);
    EXPECT_OK(r.err);
    once = printed(&r, &add_row, false);
    read_text(&again, &add_row, once);
    EXPECT_OK(again.err);
    second = again.values[GROUP].all;
    for (first = r.values[GROUP].all; first != NULL; first = first->next, second = second->next)
        EXPECT_STR(second->text, first->text);
    EXPECT(second == NULL);
    EXPECT_EQ(again.values[LOUD].number, 0);
    EXPECT_EQ(again.values[PORT].number, 7);
    twice = printed(&again, &add_row, true);
    EXPECT(strstr(twice, "[\" a \", \"#;\\\\\\u000a\\ufffd\", \"\\\"\"]") != NULL);
    free(once);
    free(twice);
    forget(&r);
    forget(&again);
}

/* Any bytes but zero: what is written is read again as the same. */
TEST(a_value_survives_being_written_and_read)
{
    uint32_t random = 1;

    for (unsigned round = 0; round < 3000; round++) {
        char value[16] = "", *line = NULL, *key = NULL, *read = NULL;
        size_t bytes = 0;
        FILE *const out = open_memstream(&line, &bytes);

        for (unsigned i = 0; i < round % 15; i++) {
            random = random * 1103515245 + 12345;
            const unsigned char byte = (unsigned char)(random >> 16);
            value[i] = byte == 0 ? ' ' : (char)(random >> 28 < 8 ? "\"\\#; \tx="[random >> 28] : byte);
        }
        fputs("key = ", out);
        sl_config_write_value(out, value);
        fputs("  # comment", out);
        fclose(out);
        for (const char *c = line; *c != '\0'; c++)
            EXPECT((unsigned char)*c >= ' ' && *c != 0x7f); /* a terminal may show it */
        EXPECT(sl_config_cut_line(line, &key, &read) == NULL);
        EXPECT_STR(key, "key");
        EXPECT_STR(read, value);
        free(line);
    }
}

TEST(a_value_that_a_terminal_would_obey_is_written_as_an_escape)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        { "plain value", "plain value" },     { "\x1b[2J", "\"\\x1b[2J\"" },
        { "\xc2\x9b", "\"\\xc2\\x9b\"" }, /* the same in one character */
        { "gr\xc3\xbcn", "\"gr\xc3\xbcn\"" }, { "", "\"\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *const out = open_memstream(&text, &bytes);

        sl_config_write_value(out, cases[i].value);
        fclose(out);
        EXPECT_STR(text, cases[i].written);
        free(text);
    }
}

/* An allocator that fails at its n-th call: nothing leaks, and the answer says why. */
typedef struct config_failing {
    unsigned calls_left;
    long out;
} config_failing;

static void *config_resize(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    config_failing *const f = ctx;

    if (new_bytes > 0 && f->calls_left-- == 0)
        return NULL;
    f->out += (long)new_bytes - (long)old_bytes;
    return sl_alloc_default.resize(NULL, memory, old_bytes, new_bytes);
}

TEST(a_configuration_without_memory_is_no_configuration)
{
    config_failing f = { 0 };
    const sl_alloc failing = { .ctx = &f, .resize = config_resize };
    sl_config *config = NULL;
    sl_complaint complaint;
    reading r = { .path = "" };

    write_file(&r, "port = 1\n", 9);
    for (unsigned n = 0;; n++) {
        f = (config_failing){ .calls_left = n };
        const sl_err err = sl_config_load(&failing, &tables, r.path, &config, &complaint);
        if (err == SL_OK)
            break;
        EXPECT_ERR(err, SL_ERR_NOMEM);
        EXPECT_EQ(f.out, 0);
        EXPECT(n < 10);
    }
    sl_config_free(config);
    EXPECT_EQ(f.out, 0);
    sl_config_free(NULL);
    unlink(r.path);
}
