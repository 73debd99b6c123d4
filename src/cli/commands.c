/* cli/commands.c — the command table, `help`, `version`, and the dispatch.
 *
 * Everything a user can get wrong is answered with one sentence that says what is wrong, and one that says
 * where to look. The help texts name only what works in this version. */
#include "cli/commands.h"

#include <stdarg.h>
#include <string.h>

#include <sluice.h>

#include "cli/budget_command.h"
#include "cli/print.h"
#include "cli/suggest.h"

enum {
    SENTENCES_BYTES = SL_COMPLAINT_BYTES + 128
};

typedef struct command {
    const char *name;
    unsigned bit;
    const char *words; /* for the usage line: "[COMMAND]" */
    size_t words_max;
    int (*run)(const sl_invocation *invocation);
    const char *summary; /* for the list; a phrase */
    const char *details; /* for `help COMMAND`; paragraphs, the printer breaks them into lines */
} command;

static int run_help(const sl_invocation *invocation);
static int run_version(const sl_invocation *invocation);

static const char budget_details[] =
    "Shows how a worker will spend its grace: the time that the orchestrator leaves it between SIGTERM and "
    "SIGKILL. The parts follow each other in the order of the options below.\n"
    "\n"
    "TIME is a number with its unit: h, m, s, ms, us or ns. Units may be joined, from large to small, and "
    "the "
    "last number may have a fraction: 30s, 250ms, 1.5m, 2m30s.\n"
    "\n"
    "A part that is not set is derived. Each gets its lower bound; what is left of the grace is shared in "
    "proportion, up to the usual lengths (fence 2s, settle 20s, abort 3s, flush 2s, close 2s, reserve 1s: "
    "30s "
    "together); and what is left then goes to settle. With settle set it stays unused.\n"
    "\n"
    "A budget that does not fit is refused with the arithmetic, and the exit code is 1: run it in a deploy "
    "pipeline with the numbers of the deployment. The refusal names the least grace that would be accepted, "
    "where derived parts are at their lower bounds, and the comfortable one, where they have their usual "
    "lengths.\n"
    "\n"
    "The answer ends with four limits, each inside the one before: outer is the grace; consumer is all but "
    "the reserve; workers is settle and abort, until the last handler is gone; handler is settle, what a "
    "single message may still take. Timeouts that you set elsewhere should be in the same order.\n";

static const command commands[] = {
    { "help", SL_COMMAND_HELP, "[COMMAND]", 1, run_help, "explain sluice, or one command",
      "Without a word: what sluice can do. With a command: its options, defaults and limits.\n" },
    { "budget", SL_COMMAND_BUDGET, "", 0, sl_budget_command, "split a shutdown grace into its parts",
      budget_details },
    { "version", SL_COMMAND_VERSION, "", 0, run_version, "show the version",
      "Prints \"sluice\" and the version. With --json: {\"version\": \"...\"}.\n" },
};
enum {
    COMMAND_COUNT = sizeof commands / sizeof commands[0]
};

/* What documents speak of and this version does not have: better told than guessed at. */
static const char *const planned[] = { "serve", "work", "outbox", "group", "consumer", "parked" };

static bool is_planned(const char *name)
{
    for (size_t i = 0; i < sizeof planned / sizeof planned[0]; i++) {
        if (strcmp(planned[i], name) == 0)
            return true;
    }
    return false;
}

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

static int complain_command(const sl_invocation *invocation, const char *name)
{
    static const char where[] = "'sluice help' shows what this version can do.";
    const char *names[COMMAND_COUNT + 2];
    const char *const what = name[0] == '-' ? "option" : "command";

    if (is_planned(name))
        return complain(invocation, "'%s' is not in this version yet. %s", name, where);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    names[COMMAND_COUNT] = "--help";
    names[COMMAND_COUNT + 1] = "--version";
    const char *nearest = sl_suggest_nearest(name, names, COMMAND_COUNT + 2);
    if (nearest == NULL)
        return complain(invocation, "there is no %s '%s'. %s", what, sl_quote(name).text, where);
    return complain(invocation, "there is no %s '%s'. Did you mean '%s'? %s", what, sl_quote(name).text,
                    nearest, where);
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
        sl_print_entry(out, commands[i].name, 10, commands[i].summary);
    sl_print_wrapped(
        out, (sl_print_place){ 0 },
        "\n'sluice help COMMAND' explains one. 'sluice --help' and 'sluice --version' work as well.\n"
        "\n"
        "Exit codes: 0 done, 1 failed, 2 the command line was not understood and nothing was done.\n"
        "\n"
        "This version holds the delivery core and its tests. The server and the worker are not in it yet.");
}

static void help_command(const command *which, FILE *out)
{
    const sl_option_table options = options_of(which);

    fprintf(out, "usage: sluice %s %s%s[OPTION]...\n\n", which->name, which->words,
            which->words[0] == '\0' ? "" : " ");
    sl_print_wrapped(out, (sl_print_place){ 0 }, which->details);
    fprintf(out, "options:\n");
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
        return complain_command(invocation, invocation->words[0]);
    help_command(which, invocation->out);
    return SL_EXIT_OK;
}

/* --- version --- */

static int run_version(const sl_invocation *invocation)
{
    fprintf(invocation->out, invocation->json ? "{\"version\": \"%s\"}\n" : "sluice %s\n", sl_version());
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
    if (invocation->word_count > which->words_max)
        return complain(invocation, "'%s' is one word too many. 'sluice help %s' shows the usage.",
                        sl_quote(invocation->words[which->words_max]).text, which->name);
    return which->run(invocation);
}

static int read_and_run(const command *which, sl_option_environment *environment, sl_invocation *invocation)
{
    const sl_option_table options = options_of(which);
    sl_option_value values[SL_OPT_COUNT_];
    sl_complaint complaint;

    if (sl_options_read(&options, environment, invocation->words, invocation->word_count, values,
                        &invocation->word_count, &complaint) != SL_OK)
        return complain(invocation, "%s 'sluice help %s' shows the options.", complaint.text, which->name);
    invocation->values = values;
    invocation->json = values[SL_OPT_JSON].number != 0;
    return run_command(which, invocation);
}

/* Help is given before the rest of the line is judged: whoever asks for it may have come because of a mistake. */
int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err)
{
    sl_invocation invocation = { .out = out, .err = err };

    if (argc < 2) {
        fprintf(err, "usage: sluice COMMAND [OPTION]...\n'sluice help' shows what this version can do.\n");
        return SL_EXIT_USAGE;
    }
    invocation.words = argv + 2;
    invocation.word_count = (size_t)argc - 2;
    invocation.json =
        sl_options_asks_for(&sl_options[SL_OPT_JSON], environment, argv + 1, invocation.word_count + 1);
    const bool help =
        sl_options_asks_for(&sl_options[SL_OPT_HELP], environment, invocation.words, invocation.word_count);
    const command *which = find_command(command_name(argv[1]));

    if (which == NULL && !(help && argv[1][0] == '-'))
        return complain_command(&invocation, argv[1]);
    if (which == NULL)
        help_overview(out);
    else if (help)
        help_command(which, out);
    else
        return read_and_run(which, environment, &invocation);
    return SL_EXIT_OK;
}
