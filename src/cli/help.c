/* cli/help.c — the tables as help. Texts name only what works in this version. */
#include "cli/help.h"

#include <string.h>

#include <sluice.h>

#include "cli/print.h"

enum {
    TEXT_BYTES = 256
};

static size_t name_width(void)
{
    size_t width = 10;

    for (size_t i = 0; i < sl_command_count; i++)
        width = strlen(sl_commands[i]->name) > width ? strlen(sl_commands[i]->name) : width;
    return width;
}

void sl_help_family(const char *family, FILE *out)
{
    fprintf(out, "usage: sluice %s WORD [OPTION]...\n\ncommands:\n", family);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (sl_command_in_family(sl_commands[i], family))
            sl_print_entry(out, sl_commands[i]->name, name_width(), sl_commands[i]->summary);
    }
    fprintf(out, "\n'sluice help %s WORD' explains one.\n", family);
}

void sl_help_overview(FILE *out)
{
    fprintf(out,
            "sluice %s - message delivery that a deploy neither loses nor repeats\n\n"
            "usage: sluice COMMAND [OPTION]...\n\n"
            "commands:\n",
            sl_version());
    for (size_t i = 0; i < sl_command_count; i++)
        sl_print_entry(out, sl_commands[i]->name, name_width(), sl_commands[i]->summary);
    sl_print_wrapped(
        out, (sl_print_place){ 0 },
        "\n'sluice help COMMAND' explains one. 'sluice --help' and 'sluice --version' work as well.\n"
        "\n"
        "Exit codes: 0 done, 1 failed, 2 the command line was not understood and nothing was done, 3 the "
        "journal is damaged, 4 a consumer still holds messages, 5 a worker left something behind, 6 a worker "
        "lost its "
        "source.");
}

static void print_exits(const char *exits, FILE *out)
{
    char text[TEXT_BYTES];

    fprintf(out, "\nexit codes:\n");
    for (const char *line = exits; *line != '\0'; line += strcspn(line, "\n") + 1) {
        const char code[] = { line[0], '\0' };
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
        sl_print_entry(out, code, 1, text);
    }
}

/* What is typed stands further in than the sentence about it. */
static void print_examples(const char *examples, FILE *out)
{
    char text[TEXT_BYTES];

    for (const char *line = examples; *line != '\0'; line += strcspn(line, "\n") + 1) {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        fprintf(out, "  ");
        sl_print_wrapped(out, (sl_print_place){ .column = 2, .indent = 2 }, text);
    }
}

void sl_help_command(const sl_command *command, FILE *out)
{
    const sl_option_table options = sl_command_options(command);

    fprintf(out, "usage: sluice %s %s%s[OPTION]...\n\n", command->name, command->words,
            command->words[0] == '\0' ? "" : " ");
    sl_print_wrapped(out, (sl_print_place){ 0 }, command->details);
    fprintf(out, "options:\n");
    sl_options_help(&options, out);
    if (command->examples != NULL) {
        fprintf(out, "\nexamples:\n");
        print_examples(command->examples, out);
    }
    print_exits(command->exits == NULL ? SL_EXITS_USUAL : command->exits, out);
}

static int run_help(const sl_invocation *invocation)
{
    char *const *const words = invocation->words;
    size_t used;

    if (invocation->word_count == 0) {
        sl_help_overview(invocation->out);
        return SL_EXIT_OK;
    }
    const sl_command *which = sl_command_find_words(words, invocation->word_count, &used);
    if (which == NULL && sl_command_is_family(words[0]) && used == 1) {
        sl_help_family(words[0], invocation->out);
        return SL_EXIT_OK;
    }
    if (which == NULL && used == 2)
        return sl_cli_complain_family(invocation, words[0], words[1]);
    if (which == NULL)
        return sl_cli_complain_command(invocation, words[0]);
    if (used < invocation->word_count)
        return sl_cli_complain_word(invocation, invocation->command, words[used]);
    sl_help_command(which, invocation->out);
    return SL_EXIT_OK;
}

const sl_command sl_command_help = {
    .name = "help",
    .bit = SL_COMMAND_HELP,
    .words = "[COMMAND]",
    .words_max = 2,
    .completes = SL_COMPLETES_COMMAND,
    .run = run_help,
    .summary = "explain sluice, or one command",
    .details = "Without a word: what sluice can do. With a command: its options, defaults and limits.\n",
    .examples = "Two ways to ask for the same:\n"
                "  sluice help journal dump\n"
                "  sluice journal dump --help\n",
};

static int run_version(const sl_invocation *invocation)
{
    fprintf(invocation->out, invocation->json ? "{\"version\": \"%s\"}\n" : "sluice %s\n", sl_version());
    return SL_EXIT_OK;
}

const sl_command sl_command_version = {
    .name = "version",
    .bit = SL_COMMAND_VERSION,
    .words = "",
    .run = run_version,
    .summary = "show the version",
    .details = "Prints \"sluice\" and the version. With --json: {\"version\": \"...\"}.\n",
};
