/* cli/commands.c — from argv to a row of the command table, and what is said when there is none.
 *
 * Everything a user can get wrong is answered with one sentence that says what is wrong, and one that says
 * where to look. */
#include "cli/commands.h"

#include <stdarg.h>
#include <string.h>

#include "cli/config.h"
#include "cli/help.h"
#include "cli/print.h"
#include "cli/suggest.h"

enum {
    SENTENCES_BYTES = SL_COMPLAINT_BYTES + 128,
    NAME_BYTES = 64,
};

/* What documents speak of and this version does not have: better told than guessed at. */
static const char *const planned[] = { "outbox" };

static bool is_planned(const char *name)
{
    for (size_t i = 0; i < sizeof planned / sizeof planned[0]; i++) {
        if (strcmp(planned[i], name) == 0)
            return true;
    }
    return false;
}

/* --- finding one --- */

const sl_command *sl_command_find(const char *name)
{
    for (size_t i = 0; i < sl_command_count; i++) {
        if (strcmp(sl_commands[i]->name, name) == 0)
            return sl_commands[i];
    }
    return NULL;
}

bool sl_command_in_family(const sl_command *command, const char *family)
{
    const size_t bytes = strlen(family);

    return strncmp(command->name, family, bytes) == 0 && command->name[bytes] == ' ';
}

bool sl_command_is_family(const char *name)
{
    for (size_t i = 0; i < sl_command_count; i++) {
        if (sl_command_in_family(sl_commands[i], name))
            return true;
    }
    return false;
}

static const char *join(const char *first, const char *second, char name[static NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s %s", first, second);
    return name;
}

const sl_command *sl_command_find_words(char *const *words, size_t word_count, size_t *ret_used)
{
    char name[NAME_BYTES];

    *ret_used = 1;
    if (!sl_command_is_family(words[0]))
        return sl_command_find(words[0]);
    *ret_used = word_count < 2 ? 1 : 2;
    return word_count < 2 ? NULL : sl_command_find(join(words[0], words[1], name));
}

sl_option_table sl_command_options(const sl_command *command)
{
    return (sl_option_table){ .rows = sl_options, .row_count = SL_OPT_COUNT_, .command = command->bit };
}

/* --- complaints --- */

int sl_cli_complain(const sl_invocation *invocation, const char *sentences)
{
    sl_print_complaint(invocation->err, sentences);
    if (invocation->json) {
        fputs("{\"error\": ", invocation->out);
        sl_print_json_text(invocation->out, sentences);
        fputs("}\n", invocation->out);
    }
    return SL_EXIT_USAGE;
}

int sl_cli_fail(const sl_invocation *invocation, const char *sentences)
{
    char quoted[4 * SENTENCES_BYTES], stopped[4 * SENTENCES_BYTES + 1];

    sl_quote_into(quoted, sizeof quoted, sentences); /* it may name files as the user did */
    const size_t bytes = strlen(quoted);
    const bool is_question = bytes > 0 && quoted[bytes - 1] == '?';
    snprintf(stopped, sizeof stopped, "%s%s", quoted, is_question ? "" : ".");
    (void)sl_cli_complain(invocation, stopped);
    return SL_EXIT_FAILED;
}

__attribute__((format(printf, 2, 3))) static int complain(const sl_invocation *invocation, const char *format,
                                                          ...)
{
    char sentences[SENTENCES_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentences, sizeof sentences, format, arguments);
    va_end(arguments);
    return sl_cli_complain(invocation, sentences);
}

/* "--server", "--server=x" or "-c": an option of some command. */
static bool is_option(const char *word)
{
    const size_t bytes = strcspn(word, "=");

    for (size_t i = 0; i < SL_OPT_COUNT_; i++) {
        const sl_option *const row = &sl_options[i];

        if (strncmp(word, "--", 2) == 0 && strlen(row->name) == bytes - 2 &&
            strncmp(word + 2, row->name, bytes - 2) == 0)
            return true;
        if (bytes == 2 && word[0] == '-' && row->letter == word[1])
            return true;
    }
    return false;
}

int sl_cli_complain_command(const sl_invocation *invocation, const char *name)
{
    static const char where[] = "'sluice help' shows what this version can do.";
    const char *names[SL_COMMANDS_MAX + 2];
    const char *const what = name[0] == '-' ? "option" : "command";

    if (is_planned(name))
        return complain(invocation, "'%s' is not in this version yet. %s", name, where);
    if (is_option(name))
        return complain(invocation,
                        "'%s' stands before the command: options stand behind it, as in "
                        "'sluice COMMAND %.*s ...'. %s",
                        sl_quote(name).text, (int)strcspn(name, "="), name, where);
    for (size_t i = 0; i < sl_command_count; i++)
        names[i] = sl_commands[i]->name;
    names[sl_command_count] = "--help";
    names[sl_command_count + 1] = "--version";
    const char *nearest = sl_suggest_nearest(name, names, sl_command_count + 2);
    if (nearest == NULL)
        return complain(invocation, "there is no %s '%s'. %s", what, sl_quote(name).text, where);
    return complain(invocation, "there is no %s '%s'. Did you mean '%s'? %s", what, sl_quote(name).text,
                    nearest, where);
}

int sl_cli_complain_family(const sl_invocation *invocation, const char *family, const char *second)
{
    char name[NAME_BYTES], buffer[SENTENCES_BYTES];
    const size_t bytes = strlen(family);
    sl_text text;

    if (second != NULL && second[0] != '-')
        return sl_cli_complain_command(invocation, join(family, second, name));
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (!sl_command_in_family(sl_commands[i], family))
            continue;
        sl_text_add(&text, text.bytes == 0 ? "" : ", ");
        sl_text_add(&text, sl_commands[i]->name + bytes + 1);
    }
    return complain(invocation,
                    "'%s' needs one of these words behind it: %s. 'sluice help %s' explains them.", family,
                    buffer, family);
}

int sl_cli_complain_word(const sl_invocation *invocation, const sl_command *command, const char *word)
{
    return complain(invocation, "'%s' is one word too many. 'sluice help %s' shows the usage.",
                    sl_quote(word).text, command->name);
}

/* --- dispatch --- */

/* What stands in the command's place and means a command: the two options that people try first. */
static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return "version";
    return word;
}

/* Words of which only some are allowed: the nearest of these is named. */
static int check_choice(const sl_invocation *invocation, const char *word)
{
    const sl_command *const command = invocation->command;
    const sl_option as_option = { .kind = SL_OPTION_CHOICE, .choices = command->word_choices };
    sl_complaint complaint;

    if (command->word_choices == NULL ||
        sl_option_check(&as_option, "the word behind it", word, &complaint) == SL_OK)
        return SL_EXIT_OK;
    return complain(invocation, "'%s': %s 'sluice help %s' shows the usage.", command->name, complaint.text,
                    command->name);
}

static int run_command(const sl_command *which, const sl_invocation *invocation)
{
    if (invocation->word_count > which->words_max)
        return sl_cli_complain_word(invocation, which, invocation->words[which->words_max]);
    if (invocation->word_count < which->words_min)
        return complain(invocation, "'%s' needs %s behind it. 'sluice help %s' shows the usage.", which->name,
                        which->words, which->name);
    for (size_t i = 0; i < invocation->word_count; i++) {
        if (check_choice(invocation, invocation->words[i]) != SL_EXIT_OK)
            return SL_EXIT_USAGE;
    }
    return which->run(invocation);
}

static int complain_options(const sl_invocation *invocation, const sl_complaint *complaint)
{
    return complain(invocation, "%s 'sluice help %s' shows the options.", complaint->text,
                    invocation->command->name);
}

static int run_with_values(sl_invocation *invocation, const sl_option_reading *reading)
{
    invocation->json = invocation->values[SL_OPT_JSON].number != 0;
    if (invocation->values[SL_OPT_PRINT_CONFIG].number == 0)
        return run_command(invocation->command, invocation);
    sl_config_print(invocation, reading->table, invocation->values[SL_OPT_CONFIG].text);
    return SL_EXIT_OK;
}

/* The file is named by the command line or the environment, so it is known only when these were read. */
static int read_file_and_run(sl_invocation *invocation, sl_option_reading *reading)
{
    const sl_config_tables tables = { .rows = sl_options,
                                      .row_count = SL_OPT_COUNT_,
                                      .commands = sl_commands,
                                      .command_count = sl_command_count };
    const char *const path = invocation->values[SL_OPT_CONFIG].text;
    sl_config *config = NULL;
    sl_err err = SL_OK;
    int code;

    if (path != NULL)
        err = sl_config_load(&sl_alloc_default, &tables, path, &config, &reading->complaint);
    if (config != NULL)
        err = sl_config_apply(config, invocation->command, reading);
    invocation->config = config;
    if (err == SL_OK)
        code = run_with_values(invocation, reading);
    else if (err == SL_ERR_NOMEM)
        code = sl_cli_fail(invocation, sl_err_text(err));
    else
        code = sl_cli_complain(invocation, reading->complaint.text);
    sl_config_free(config);
    return err == SL_ERR_IO ? SL_EXIT_FAILED : code;
}

static int read_and_run(sl_invocation *invocation)
{
    const sl_option_table options = sl_command_options(invocation->command);
    sl_option_value values[SL_OPT_COUNT_];
    sl_option_reading reading = { .table = &options,
                                  .environment = invocation->environment,
                                  .words = invocation->words,
                                  .word_count = invocation->word_count,
                                  .values = values };

    if (sl_options_read(&reading) != SL_OK)
        return complain_options(invocation, &reading.complaint);
    invocation->word_count = reading.plain_count;
    invocation->values = values;
    return read_file_and_run(invocation, &reading);
}

/* Help is given before the rest of the line is judged: whoever asks for it may have come because of a mistake. */
int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err)
{
    sl_invocation invocation = { .out = out, .err = err, .environment = environment };

    if (argc < 2) {
        fprintf(err, "usage: sluice COMMAND [OPTION]...\n'sluice help' shows what this version can do.\n");
        return SL_EXIT_USAGE;
    }
    size_t used;
    const sl_command *which = sl_command_find_words(argv + 1, (size_t)argc - 1, &used);

    if (used == 1 && which == NULL)
        which = sl_command_find(command_name(argv[1]));
    invocation.command = which;
    invocation.words = argv + 1 + used;
    invocation.word_count = (size_t)argc - 1 - used;
    invocation.json = sl_options_asks_for(&sl_options[SL_OPT_JSON], environment, argv + 1, (size_t)argc - 1);
    const bool help = sl_options_asks_for(&sl_options[SL_OPT_HELP], environment, argv + 2, (size_t)argc - 2);

    if (which == NULL && sl_command_is_family(argv[1]) && !(help && (used == 1 || argv[2][0] == '-')))
        return sl_cli_complain_family(&invocation, argv[1], used == 1 ? NULL : argv[2]);
    if (which == NULL && !sl_command_is_family(argv[1]) && !(help && argv[1][0] == '-'))
        return sl_cli_complain_command(&invocation, argv[1]);
    if (which == NULL && sl_command_is_family(argv[1]))
        sl_help_family(argv[1], out);
    else if (which == NULL)
        sl_help_overview(out);
    else if (help)
        sl_help_command(which, out);
    else
        return read_and_run(&invocation);
    return SL_EXIT_OK;
}
