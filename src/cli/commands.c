/* cli/commands.c — the command table, `help`, `version`, and the dispatch.
 *
 * Everything a user can get wrong is answered with one sentence that says what is wrong, and one that says
 * where to look. The help texts name only what works in this version. */
#include "cli/commands.h"

#include <stdbool.h>
#include <string.h>

#include <sluice.h>

#include "cli/budget_command.h"
#include "cli/suggest.h"

typedef struct command {
    const char *name;
    unsigned bit;
    const char *words; /* for the usage line: "[COMMAND]" */
    size_t words_max;
    int (*run)(const sl_invocation *invocation);
    const char *summary; /* for the list; a phrase */
    const char *details; /* for `help COMMAND`; whole lines */
} command;

static int run_help(const sl_invocation *invocation);
static int run_version(const sl_invocation *invocation);

static const command commands[] = {
    { "help", SL_COMMAND_HELP, "[COMMAND]", 1, run_help, "explain sluice, or one command",
      "Without a word: what sluice can do. With a command: its options, defaults and limits.\n" },
    { "budget", SL_COMMAND_BUDGET, "", 0, sl_budget_command, "split a shutdown grace into its parts",
      "Shows how a worker will spend the time that the orchestrator gives it between SIGTERM and SIGKILL. "
      "Parts that\n"
      "are not set are derived from the grace. A budget that does not fit is refused with the arithmetic, "
      "and the\n"
      "exit code is 1: run it in a deploy pipeline with the numbers of the deployment.\n" },
    { "version", SL_COMMAND_VERSION, "", 0, run_version, "show the version",
      "Prints \"sluice\" and the version. With --json: {\"version\": \"...\"}.\n" },
};
enum {
    COMMAND_COUNT = sizeof commands / sizeof commands[0]
};

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static sl_option_table options_of(const command *which)
{
    return (sl_option_table){ .rows = sl_options, .row_count = SL_OPT_COUNT_, .command = which->bit };
}

static int complain_command(const char *name, FILE *err)
{
    const char *names[COMMAND_COUNT + 2];

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    names[COMMAND_COUNT] = "--help";
    names[COMMAND_COUNT + 1] = "--version";
    const char *nearest = sl_suggest_nearest(name, names, COMMAND_COUNT + 2);
    fprintf(err, "sluice: there is no %s '%s'.", name[0] == '-' ? "option" : "command", name);
    if (nearest != NULL)
        fprintf(err, " Did you mean '%s'?", nearest);
    fprintf(err, " 'sluice help' shows what this version can do.\n");
    return SL_EXIT_USAGE;
}

/* --- help --- */

static void help_overview(FILE *out)
{
    fprintf(out,
            "sluice %s - message delivery that a deploy neither loses nor repeats\n\n"
            "usage: sluice COMMAND [OPTION]...\n\n"
            "commands:\n",
            sl_version());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(
        out,
        "\n"
        "'sluice help COMMAND' explains one. 'sluice --help' and 'sluice --version' work as well.\n"
        "Exit codes: 0 done, 1 failed, 2 the command line was not understood and nothing was done.\n\n"
        "This version holds the delivery core and its tests. The server and the worker are not in it yet.\n");
}

static void help_command(const command *which, FILE *out)
{
    const sl_option_table options = options_of(which);

    fprintf(out, "usage: sluice %s %s%s[OPTION]...\n\n%s\noptions:\n", which->name, which->words,
            which->words[0] == '\0' ? "" : " ", which->details);
    sl_options_help(&options, out);
}

static int run_help(const sl_invocation *invocation)
{
    if (invocation->word_count == 0) {
        help_overview(invocation->out);
        return SL_EXIT_OK;
    }
    const command *which = find_command(invocation->words[0]);
    if (which == NULL)
        return complain_command(invocation->words[0], invocation->err);
    help_command(which, invocation->out);
    return SL_EXIT_OK;
}

/* --- version --- */

static int run_version(const sl_invocation *invocation)
{
    const bool json = invocation->values[SL_OPT_JSON].number != 0;

    fprintf(invocation->out, json ? "{\"version\": \"%s\"}\n" : "sluice %s\n", sl_version());
    return SL_EXIT_OK;
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

static int run_command(const command *which, const sl_invocation *invocation)
{
    if (invocation->values[SL_OPT_HELP].number != 0) {
        help_command(which, invocation->out);
        return SL_EXIT_OK;
    }
    if (invocation->word_count > which->words_max) {
        fprintf(invocation->err, "sluice: '%s' is one word too many. 'sluice help %s' shows the usage.\n",
                invocation->words[which->words_max], which->name);
        return SL_EXIT_USAGE;
    }
    return which->run(invocation);
}

int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err)
{
    sl_option_value values[SL_OPT_COUNT_];
    sl_complaint complaint;
    sl_invocation invocation = { .values = values, .out = out, .err = err };

    if (argc < 2) {
        fprintf(err, "usage: sluice COMMAND [OPTION]...\n'sluice help' shows what this version can do.\n");
        return SL_EXIT_USAGE;
    }
    const command *which = find_command(command_name(argv[1]));
    if (which == NULL)
        return complain_command(argv[1], err);

    const sl_option_table options = options_of(which);
    invocation.words = argv + 2;
    if (sl_options_read(&options, environment, argv + 2, (size_t)argc - 2, values, &invocation.word_count,
                        &complaint) != SL_OK) {
        fprintf(err, "sluice: %s 'sluice help %s' shows the options.\n", complaint.text, which->name);
        return SL_EXIT_USAGE;
    }
    return run_command(which, &invocation);
}
