/* tests/unit/cli/test_work_make.c — from a plan to source, handler and ack file: every kind, and nothing is left when one fails. */
#include "scarce.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/work_command.h"
#include "cli/work_make.h"

enum {
    WORDS_MAX = 24
};

typedef struct made {
    char line[512];
    char *words[WORDS_MAX];
    sl_option_table table;
    sl_option_value values[SL_OPT_COUNT_];
    sl_option_reading reading;
    sl_budget budget;
    sl_work_plan plan;
    sl_complaint complaint;
    char problem[512];
    sl_crew_parts parts;
    sl_loop *loop;
    sl_err err;
} made;

static const char *password;

static const char *environment_with_password(const char *name)
{
    return strcmp(name, "SLUICE_PASSWORD") == 0 ? password : NULL;
}

static void read_plan(made *m, const char *line)
{
    size_t count = 0;

    *m = (made){ .table = sl_command_options(&sl_command_work) };
    snprintf(m->line, sizeof m->line, "%s", line);
    for (char *word = strtok(m->line, " "); word != NULL; word = strtok(NULL, " "))
        m->words[count++] = word;
    m->reading = (sl_option_reading){ .table = &m->table,
                                      .environment = environment_with_password,
                                      .words = m->words,
                                      .word_count = count,
                                      .values = m->values };
    EXPECT_OK(sl_options_read(&m->reading));
    EXPECT_OK(sl_work_budget_read(m->values, &m->budget, &m->complaint));
    EXPECT_OK(sl_work_plan_read(m->values, NULL, &m->budget, &m->plan, &m->complaint));
}

static void make_parts(made *m)
{
    sl_work_maker maker = { .plan = &m->plan, .environment = environment_with_password };
    static const sl_logger quiet = { .level_min = SL_LOG_LEVEL_COUNT_ };
    sl_text problem;

    sl_text_init(&problem, m->problem, sizeof m->problem);
    m->parts = (sl_crew_parts){ .acks = NULL };
    m->err = sl_work_make(&maker, m->loop, &quiet, &problem, &m->parts);
}

static made *make(const char *line)
{
    static made m;
    static const sl_loop_handler nothing = { .on_turn_end = NULL };

    read_plan(&m, line);
    EXPECT_OK(sl_loop_new(&sl_alloc_default, &nothing, NULL, &m.loop));
    make_parts(&m);
    return &m;
}

static void forget_parts(made *m)
{
    if (m->parts.handler != NULL)
        m->parts.handler->class->free(m->parts.handler, UINT64_MAX);
    if (m->parts.source != NULL)
        m->parts.source->class->free(m->parts.source);
    sl_ack_file_close(m->parts.acks);
}

static void forget(made *m)
{
    forget_parts(m);
    sl_loop_free(m->loop);
}

TEST(every_kind_of_source_and_handler_can_be_made)
{
    static const struct {
        const char *line, *source, *handler;
    } cases[] = {
        { "--from sluice://127.0.0.1:1/s/g --exec true --label a=1 --label b=2", "sluice", "exec" },
        { "--from schedule:every=1h --lines cat", "schedule", "lines" },
        { "--from memory:count=1 --http http://127.0.0.1:1/ --header=A:b --method PUT", "memory", "http" },
        { "--from memory:count=1 --append 127.0.0.1:1/s", "memory", "append" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made *const m = make(cases[i].line);
        if (m->err != SL_OK)
            fail_msg("%s: %s", cases[i].line, m->problem);
        EXPECT_STR(m->parts.source->class->name, cases[i].source);
        EXPECT_STR(m->parts.handler->class->name, cases[i].handler);
        EXPECT(m->parts.acks == NULL);
        forget(m);
    }
}

static bool make_again(void *ctx)
{
    made *const m = ctx;

    make_parts(m);
    forget_parts(m);
    if (m->err != SL_OK)
        EXPECT_ERR(m->err, SL_ERR_NOMEM);
    EXPECT_EQ(m->err == SL_OK, m->problem[0] == '\0');
    return m->err == SL_OK;
}

TEST(what_there_is_no_memory_for_cannot_be_made_and_leaves_nothing_behind)
{
    static const char *const lines[] = {
        "--from sluice://127.0.0.1:1/s/g --exec true --label a=1 --label b=2",
        "--from schedule:every=1h --lines cat",
        "--from memory:count=1 --http http://127.0.0.1:1/ --header=A:b --method PUT",
        "--from memory:count=1 --append 127.0.0.1:1/s",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        made *const m = make(lines[i]);

        EXPECT_OK(m->err);
        forget_parts(m);
        scarce_sweep(lines[i], make_again, m);
        sl_loop_free(m->loop);
    }
}

TEST(what_cannot_be_made_says_why_and_leaves_nothing_behind)
{
    static const struct {
        const char *line, *problem;
        sl_err err;
    } cases[] = {
        { "--from sluice://127.0.0.1:1/s/g --exec true --user anna", "needs a password", SL_ERR_INVALID },
        { "--from memory:count=1 --append 127.0.0.1:1/s --user anna", "needs a password", SL_ERR_INVALID },
        { "--from sluice://127.0.0.1:1/s/g --exec true --user anna --password-file /nonexistent/x",
          "nonexistent", SL_ERR_IO },
        { "--from sluice://127.0.0.1:1/s/g --exec true --ack-file /nonexistent/folder/acks",
          "/nonexistent/folder/acks", SL_ERR_IO },
    };

    password = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made *const m = make(cases[i].line);
        EXPECT_ERR(m->err, cases[i].err);
        if (strstr(m->problem, cases[i].problem) == NULL)
            fail_msg("%s: %s", cases[i].line, m->problem);
        EXPECT(m->parts.source == NULL && m->parts.handler == NULL && m->parts.acks == NULL);
        forget(m);
    }
}

TEST(a_password_from_the_environment_is_enough_for_a_user)
{
    password = "secret";
    made *const m = make("--from sluice://127.0.0.1:1/s/g --append 127.0.0.1:1/t --user anna");
    EXPECT_OK(m->err);
    forget(m);
    password = NULL;
}

/* Who the entries belong to is where they came from, not who asked. */
TEST(an_ack_file_keeps_its_source_when_the_user_changes_B3)
{
    char path[] = "/tmp/sluice-acks-XXXXXX", line[256];
    const int file = mkstemp(path);

    EXPECT(file >= 0);
    close(file);
    unlink(path);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "--from sluice://%s127.0.0.1:1/s/g --exec true --ack-file %s",
                 i == 0 ? "" : "anna:secret@", path);
        made *const m = make(line);
        EXPECT_OK(m->err);
        EXPECT(m->parts.acks != NULL && sl_ack_file_name(m->parts.acks).bytes > 0);
        forget(m);
    }
    unlink(path);
}

TEST(an_ack_file_of_another_version_is_a_mistake_that_no_restart_mends)
{
    enum {
        VERSION_AT = 8 /* behind the magic number */
    };
    const char other = 99;
    char path[] = "/tmp/sluice-acks-XXXXXX", line[256];
    int file = mkstemp(path);

    EXPECT(file >= 0);
    close(file);
    snprintf(line, sizeof line, "--from sluice://127.0.0.1:1/s/g --exec true --ack-file %s", path);
    made *m = make(line);
    EXPECT_OK(m->err);
    forget(m);
    file = open(path, O_WRONLY);
    EXPECT_EQ(pwrite(file, &other, 1, VERSION_AT), 1);
    close(file);
    m = make(line);
    EXPECT_ERR(m->err, SL_ERR_INVALID);
    EXPECT(strstr(m->problem, "another version") != NULL);
    forget(m);
    unlink(path);
}

TEST(the_password_of_the_source_goes_to_no_other_server)
{
    static const struct {
        const char *line, *target;
        bool is_for;
    } cases[] = {
        { "--from sluice://a:2113/s/g --append a:2113/t", "a:2113", true },
        { "--from sluice://a:2113/s/g --append b:2113/t", "b:2113", false },
        { "--from sluice://a:2113/s/g --append a:2114/t", "a:2114", false },
        { "--from memory:count=1 --append b:2113/t", "b:2113", true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sentence[1024];
        sl_client_address address;
        sl_text problem;
        made m;

        read_plan(&m, cases[i].line);
        sl_text_init(&problem, sentence, sizeof sentence);
        EXPECT_OK(sl_client_address_parse(sl_str_from(cases[i].target), &problem, &address));
        EXPECT_EQ(sl_work_user_is_for(&m.plan, &address), cases[i].is_for);
    }
}
