/* cli/completion_zsh.c — a function for zsh's _arguments, which wants one specification for each option. */
#include "cli/completion.h"

#include <string.h>

/* In a specification between apostrophes; an apostrophe itself has to leave them. */
static void write_text(FILE *out, const char *text)
{
    char piece[2] = "";

    for (; *text != '\0'; text++) {
        piece[0] = *text;
        if (*text == '\'')
            fputs("'\\''", out);
        else
            sl_completion_escaped(out, piece, "[]:\\");
    }
}

static void write_action(FILE *out, sl_completes completes, const char *choices)
{
    if (choices != NULL) {
        fputc('(', out);
        sl_completion_choices(out, choices);
        fputc(')', out);
        return;
    }
    switch (completes) {
    case SL_COMPLETES_NOTHING: fputc(' ', out); break;
    case SL_COMPLETES_FILE: fputs("_files", out); break;
    case SL_COMPLETES_FOLDER: fputs("_files -/", out); break;
    case SL_COMPLETES_COMMAND: fputs("_sluice_commands", out); break;
    }
}

static void write_option(FILE *out, const sl_option *row)
{
    const bool flag = row->kind == SL_OPTION_FLAG;

    fputs("        ", out);
    if (row->repeats)
        fputs("'*'", out);
    if (row->letter != 0 && !row->repeats)
        fprintf(out, "'(-%c --%s)'", row->letter, row->name);
    if (row->letter != 0)
        fprintf(out, "{-%c%s,--%s%s}'[", row->letter, flag ? "" : "+", row->name, flag ? "" : "=");
    else
        fprintf(out, "'--%s%s[", row->name, flag ? "" : "=");
    write_text(out, row->help);
    fputc(']', out);
    if (!flag) {
        fputc(':', out);
        write_text(out, row->argument);
        fputc(':', out);
        write_action(out, row->completes, row->choices);
    }
    fputs("' \\\n", out);
}

static void write_command(FILE *out, const sl_command *command)
{
    const sl_option_table table = sl_command_options(command);

    fprintf(out, "    ('%s')\n        _arguments -s -S \\\n", command->name);
    for (size_t i = 0; i < table.row_count; i++) {
        if (sl_option_belongs(&table, &table.rows[i]))
            write_option(out, &table.rows[i]);
    }
    if (command->words_max == 0) {
        fputs("        && return\n        ;;\n", out);
        return;
    }
    fputs("        '*:", out);
    write_text(out, command->words);
    fputc(':', out);
    write_action(out, command->completes, command->word_choices);
    fputs("' && return\n        ;;\n", out);
}

static void write_described(FILE *out, sl_str word, const char *summary)
{
    fprintf(out, "        '%.*s:", (int)word.bytes, word.data);
    write_text(out, summary);
    fputs("'\n", out);
}

static void write_first_words(FILE *out)
{
    sl_str word;
    bool family;

    fputs("_sluice_commands()\n{\n    local -a commands=(\n", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        const sl_command *const command = sl_completion_first(i, &word, &family);
        if (command != NULL)
            write_described(out, word, family ? "several commands" : command->summary);
    }
    fputs("    )\n    _describe command commands\n}\n\n", out);
}

static void write_family(FILE *out, sl_str family)
{
    fprintf(out, "    ('%.*s')\n        commands=(\n", (int)family.bytes, family.data);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (strncmp(sl_commands[i]->name, family.data, family.bytes + 1) == 0)
            write_described(out, sl_str_from(sl_completion_second(sl_commands[i])), sl_commands[i]->summary);
    }
    fputs("        )\n        ;;\n", out);
}

static void write_second_words(FILE *out)
{
    sl_str word;
    bool family;

    fputs("    case $command in\n", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (sl_completion_first(i, &word, &family) != NULL && family)
            write_family(out, word);
    }
    fputs("    esac\n", out);
}

void sl_completion_zsh(FILE *out)
{
    fputs("#compdef sluice\n# zsh completion for sluice, made by 'sluice completion zsh'\n\n", out);
    write_first_words(out);
    fputs("_sluice()\n"
          "{\n"
          "    local command=$words[2]\n"
          "    local -a commands\n\n"
          "    if ((CURRENT == 2)); then\n"
          "        _sluice_commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n",
          out);
    write_second_words(out);
    fputs("    if (($#commands)) && ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    elif (($#commands)); then\n"
          "        command=\"$command $words[2]\"\n"
          "        shift words\n"
          "        ((CURRENT--))\n"
          "    fi\n"
          "    case $command in\n",
          out);
    for (size_t i = 0; i < sl_command_count; i++)
        write_command(out, sl_commands[i]);
    fputs("    esac\n"
          "    return 1\n"
          "}\n\n"
          "# As a file in the search path it is the function itself; sourced, it has to be announced.\n"
          "if [[ $funcstack[1] == _sluice ]]; then\n"
          "    _sluice \"$@\"\n"
          "else\n"
          "    compdef _sluice sluice\n"
          "fi\n",
          out);
}
