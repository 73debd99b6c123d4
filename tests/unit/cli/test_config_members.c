/* tests/unit/cli/test_config_members.c — sections for members of a command: who wins, what may stand where, and the way back. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/config.h"

/* --- a small program of its own --- */

enum {
    CREW = 1u,
    OTHER = 2u
};
enum {
    PLACE,
    SIZE,
    TAG,
    PORT,
    HIDDEN,
    ROW_COUNT
};

static const sl_option rows[ROW_COUNT] = {
    [PLACE] = { .name = "place",
                .kind = SL_OPTION_TEXT,
                .environment = "T_PLACE",
                .min = 1,
                .max = 99,
                .commands = CREW,
                .of_member = true },
    [SIZE] = { .name = "size",
               .kind = SL_OPTION_NUMBER,
               .default_text = "7",
               .environment = "T_SIZE",
               .min = 1,
               .max = 99,
               .commands = CREW | OTHER,
               .of_member = true },
    [TAG] = { .name = "tag",
              .kind = SL_OPTION_TEXT,
              .environment = "T_TAG",
              .min = 1,
              .max = 9,
              .repeats = true,
              .commands = CREW,
              .of_member = true },
    [PORT] = { .name = "port",
               .kind = SL_OPTION_NUMBER,
               .default_text = "1",
               .environment = "T_PORT",
               .min = 1,
               .max = 99,
               .commands = CREW },
    [HIDDEN] = { .name = "hidden",
                 .kind = SL_OPTION_NUMBER,
                 .min = 1,
                 .max = 99,
                 .commands = CREW,
                 .of_member = true,
                 .is_in_file = true },
};
static const sl_command crew_row = { .name = "crew", .bit = CREW, .member = "sailor" };
static const sl_command other_row = { .name = "other", .bit = OTHER };
static const sl_command *const commands[] = { &crew_row, &other_row };
static const sl_config_tables tables = {
    .rows = rows, .row_count = ROW_COUNT, .commands = commands, .command_count = 2
};
static const sl_option_table crew_table = { .rows = rows, .row_count = ROW_COUNT, .command = CREW };

typedef struct reading {
    char word[64];
    char *words[1];
    sl_option_value values[ROW_COUNT];
    sl_option_reading to;
    sl_config *config;
    sl_err err;
} reading;

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static void read_file(reading *r, const char *option, const char *text)
{
    char path[] = "/tmp/sluice-members-XXXXXX";
    FILE *const file = fdopen(mkstemp(path), "w");

    EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    *r = (reading){ .err = SL_OK };
    snprintf(r->word, sizeof r->word, "%s", option);
    r->words[0] = r->word;
    r->to = (sl_option_reading){ .table = &crew_table,
                                 .environment = no_environment,
                                 .words = r->words,
                                 .word_count = option[0] == '\0' ? 0 : 1,
                                 .values = r->values };
    EXPECT_OK(sl_options_read(&r->to));
    r->err = sl_config_load(&sl_alloc_default, &tables, path, &r->config, &r->to.complaint);
    unlink(path);
    if (r->err == SL_OK)
        r->err = sl_config_apply(r->config, &crew_row, &r->to);
}

typedef struct sailor {
    sl_option_value values[ROW_COUNT];
    sl_option_reading to;
} sailor;

static void read_sailor(const reading *r, size_t index, sailor *s)
{
    *s = (sailor){ .to = { .table = &crew_table } };
    s->to.values = s->values;
    memcpy(s->values, r->values, sizeof s->values);
    EXPECT_OK(sl_config_apply_member(r->config, &crew_row, index, &s->to));
}

TEST(a_member_has_the_options_of_its_section_then_of_its_command_then_of_all)
{
    static const char text[] = "size = 2\n[crew]\nplace = deck\ntag = all\nport = 9\n"
                               "[crew anna]\nsize = 3\ntag = a\ntag = b\nhidden = 5\n"
                               "[crew  berta]\n[other]\nsize = 4\n";
    reading r;
    sailor s;

    read_file(&r, "", text);
    EXPECT_OK(r.err);
    EXPECT_EQ(sl_config_member_count(r.config, &crew_row), 2);
    EXPECT_EQ(sl_config_member_count(r.config, &other_row), 0);
    EXPECT_EQ(sl_config_member_count(NULL, &crew_row), 0);
    EXPECT_STR(sl_config_member_name(r.config, &crew_row, 0), "anna");
    EXPECT_STR(sl_config_member_name(r.config, &crew_row, 1), "berta");
    read_sailor(&r, 0, &s);
    EXPECT_EQ(s.values[SIZE].number, 3);
    EXPECT_EQ(s.values[SIZE].line, 7);
    EXPECT_EQ(s.values[HIDDEN].number, 5);
    EXPECT_EQ(s.values[PORT].number, 9);
    EXPECT_STR(s.values[PLACE].text, "deck");
    EXPECT_STR(s.values[TAG].all->text, "a");
    EXPECT_STR(s.values[TAG].all->next->text, "b");
    EXPECT(s.values[TAG].all->next->next == NULL);
    read_sailor(&r, 1, &s);
    EXPECT_EQ(s.values[SIZE].number, 2);
    EXPECT_STR(s.values[TAG].all->text, "all");
    EXPECT(s.values[TAG].all->next == NULL);
    EXPECT_EQ(s.values[HIDDEN].source, SL_OPTION_UNSET);
    EXPECT_EQ(r.values[SIZE].number, 2); /* nobody's own section counts for all */
    sl_config_free(r.config);
}

TEST(a_command_line_wins_over_the_section_of_a_member)
{
    reading r;
    sailor s;

    read_file(&r, "--size=50", "[crew anna]\nsize = 3\nplace = mast\n");
    EXPECT_OK(r.err);
    read_sailor(&r, 0, &s);
    EXPECT_EQ(s.values[SIZE].number, 50);
    EXPECT_STR(s.values[PLACE].text, "mast");
    sl_config_free(r.config);
}

TEST(a_section_of_a_member_that_is_wrong_is_answered_with_line_and_what_to_do)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        { "[crew anna]\nport = 3\n",
          "line 2: 'port' is about all sailors of the process together: put it into [crew]." },
        { "[crew anna]\nsiez = 3\n",
          "line 2: there is no option 'siez' in [crew anna]. Did you mean 'size'?" },
        { "[crew anna]\nprot = 3\n", "line 2: there is no option 'prot' in [crew anna]." },
        { "[crew anna]\nsize = 100\n", "line 2: size must be 1 to 99, not '100'." },
        { "[crew anna]\nsize = 1\nsize = 2\n", "line 3: 'size' was set in line 2 already." },
        { "[crew anna]\n[crew berta]\n\n[crew anna]\n", "line 4: [crew anna] was begun in line 1 already." },
        { "[crew anna]\n[crew\tanna]\n", "line 2: [crew anna] was begun in line 1 already." },
        { "[crew an na]\n", "line 1: 'an na' is no name for a sailor: 1 to 64 letters" },
        { "[crew \x1b[2J]\n", "'\\x1b[2J' is no name for a sailor" },
        { "[crew a/b]\n", "'a/b' is no name for a sailor" },
        { "[crwe anna]\n", "there is no command 'crwe anna'. Did you mean '[crew anna]'?" },
        { "[other anna]\n", "there is no command 'other anna'." },
        { "[crewanna]\n", "there is no command 'crewanna'." },
    };
    reading r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_file(&r, "", cases[i].text);
        if (r.err != SL_ERR_INVALID || strstr(r.to.complaint.text, cases[i].complaint) == NULL)
            fail_msg("'%s' is not in '%s'", cases[i].complaint, r.to.complaint.text);
    }
}

TEST(a_name_of_a_member_and_the_number_of_them_have_limits)
{
    char text[SL_CONFIG_MEMBERS_MAX * 16 + 128] = "", name[SL_CONFIG_MEMBER_NAME_BYTES_MAX + 2];
    reading r;

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, "[crew %s]\n", name);
    read_file(&r, "", text);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    snprintf(text, sizeof text, "[crew %s]\n", name + 1);
    read_file(&r, "", text);
    EXPECT_OK(r.err);
    sl_config_free(r.config);
    text[0] = '\0';
    for (unsigned i = 0; i < SL_CONFIG_MEMBERS_MAX; i++)
        sprintf(text + strlen(text), "[crew s%u]\n", i);
    read_file(&r, "", text);
    EXPECT_OK(r.err);
    EXPECT_EQ(sl_config_member_count(r.config, &crew_row), SL_CONFIG_MEMBERS_MAX);
    sl_config_free(r.config);
    strcat(text, "[crew more]\n");
    read_file(&r, "", text);
    EXPECT_ERR(r.err, SL_ERR_INVALID);
    EXPECT(strstr(r.to.complaint.text, "line 65: more than 64 sections") != NULL);
}

static char *printed(const reading *r, bool json)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);
    const sl_invocation invocation = {
        .command = &crew_row, .values = r->values, .config = r->config, .json = json, .out = out
    };

    sl_config_print(&invocation, &crew_table, "my.ini");
    fclose(out);
    return text;
}

TEST(a_configuration_with_members_that_is_printed_gives_the_same_when_it_is_read)
{
    char *once, *twice, *json;
    reading r, again;
    sailor s;

    read_file(&r, "--size=50", "[crew]\ntag = x\n[crew anna]\nsize = 3\nplace = mast\ntag = a\ntag = b\n");
    EXPECT_OK(r.err);
    once = printed(&r, false);
    EXPECT(strstr(once, "[crew]\n") != NULL && strstr(once, "\n[crew anna]\nplace = mast") != NULL);
    EXPECT(strstr(once, "size = 50") != NULL && strstr(once, "size = 3") == NULL); /* it does not count */
    json = printed(&r, true);
    EXPECT(strstr(json, "}, \"sailors\": {\"anna\": {\"place\": {\"value\": \"mast\"") != NULL);
    EXPECT(strstr(json, "\"tag\": {\"value\": [\"a\", \"b\"], \"source\": \"file\", \"line\": 7}}}}\n") !=
           NULL);
    read_file(&again, "", once);
    EXPECT_OK(again.err);
    read_sailor(&again, 0, &s);
    EXPECT_EQ(s.values[SIZE].number, 50);
    EXPECT_STR(s.values[TAG].all->next->text, "b");
    twice = printed(&again, false);
    EXPECT(strstr(twice, "\n[crew anna]\nplace = mast") != NULL);
    free(once);
    free(twice);
    free(json);
    sl_config_free(r.config);
    sl_config_free(again.config);
}
