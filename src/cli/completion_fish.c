/* cli/completion_fish.c — one `complete` line for each word; a function says when it counts. */
#include "cli/completion.h"

#include <string.h>

static const char head[] =
    "# fish completion for sluice, made by 'sluice completion fish'\n\n"
    "# True when the words before the cursor begin with these, and sluice has no other in front.\n"
    "function __sluice_begins\n"
    "    set -l typed (commandline -opc)[2..]\n"
    "    test (count $typed) -ge (count $argv); and test \"$typed[1..\"(count $argv)\"]\" = \"$argv\"\n"
    "end\n\n"
    "# True when these are all the words before the cursor.\n"
    "function __sluice_is\n"
    "    set -l typed (commandline -opc)[2..]\n"
    "    test \"$typed\" = \"$argv\"\n"
    "end\n\n"
    "complete -c sluice -f\n";

static void write_text(FILE *out, const char *text)
{
    fputc('\'', out);
    sl_completion_escaped(out, text, "'\\");
    fputc('\'', out);
}

/* A word, offered behind `before` and nothing else. */
static void write_word(FILE *out, const char *before, sl_str word, const char *summary)
{
    fprintf(out, "complete -c sluice -n '__sluice_is%s%s' -a '%.*s' -d ", before[0] == '\0' ? "" : " ",
            before, (int)word.bytes, word.data);
    write_text(out, summary);
    fputc('\n', out);
}

static void write_first_words(FILE *out, const char *before)
{
    sl_str word;
    bool family;

    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_command *const command = sl_completion_first(i, &word, &family);
        if (command != NULL)
            write_word(out, before, word, family ? "several commands" : command->summary);
    }
}

/* The second words of one family, behind `before` and the first. */
static void write_second_words(FILE *out, const char *before)
{
    char both[SL_OPTION_LABEL_BYTES];

    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_command *const command = sl_commands[i];
        const char *const second = sl_completion_second(command);
        if (second == NULL)
            continue;
        snprintf(both, sizeof both, "%s%s%.*s", before, before[0] == '\0' ? "" : " ",
                 (int)strcspn(command->name, " "), command->name);
        write_word(out, both, sl_str_from(second), command->summary);
    }
}

static void write_values(FILE *out, sl_completes completes, const char *choices)
{
    if (choices != NULL) {
        fputs(" -a '", out);
        sl_completion_choices(out, choices);
        fputs("'", out);
        return;
    }
    switch (completes) {
    case SL_COMPLETES_NOTHING:
    case SL_COMPLETES_COMMAND: break;
    case SL_COMPLETES_FILE: fputs(" -F", out); break;
    case SL_COMPLETES_FOLDER: fputs(" -a '(__fish_complete_directories)'", out); break;
    }
}

static void write_option(FILE *out, const sl_command *command, const sl_option *row)
{
    fprintf(out, "complete -c sluice -n '__sluice_begins %s' -l '%s'", command->name, row->name);
    if (row->letter != 0)
        fprintf(out, " -s '%c'", row->letter);
    if (row->kind != SL_OPTION_FLAG) {
        fputs(row->completes == SL_COMPLETES_FILE ? " -r" : " -x", out);
        write_values(out, row->completes, row->choices);
    }
    fputs(" -d ", out);
    write_text(out, row->help);
    fputc('\n', out);
}

static void write_command(FILE *out, const sl_command *command)
{
    const sl_option_table table = sl_command_options(command);

    for (size_t i = 0; i < table.row_count; i++) {
        if (sl_option_belongs(&table, &table.rows[i]))
            write_option(out, command, &table.rows[i]);
    }
    if (command->word_choices == NULL && command->completes == SL_COMPLETES_NOTHING)
        return;
    if (command->completes == SL_COMPLETES_COMMAND) {
        write_first_words(out, command->name);
        write_second_words(out, command->name);
        return;
    }
    fprintf(out, "complete -c sluice -n '__sluice_begins %s'", command->name);
    write_values(out, command->completes, command->word_choices);
    fputc('\n', out);
}

void sl_completion_fish(FILE *out)
{
    fputs(head, out);
    write_first_words(out, "");
    write_second_words(out, "");
    for (size_t i = 0; i < sl_command_count; i++)
        write_command(out, sl_commands[i]);
}
