/* cli/completion_bash.c — a function for `complete -F`.
 *
 * It sets `kind`, what the word under the cursor is: "words A B C", "file", "folder", "command" or "nothing". Nothing but bash
 * itself is needed, from version 3.2 on, since not every machine has the package of helper functions. */
#include "cli/completion.h"

#include <string.h>

static const char *rest_kind(sl_completes completes)
{
    switch (completes) {
    case SL_COMPLETES_NOTHING: return "nothing";
    case SL_COMPLETES_FILE: return "file";
    case SL_COMPLETES_FOLDER: return "folder";
    case SL_COMPLETES_COMMAND: return "command";
    }
    return "";
}

static void write_first_words(FILE *out)
{
    const char *separator = "";
    sl_str word;
    bool family;

    fputs("_sluice_commands='", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (sl_completion_first(i, &word, &family) == NULL)
            continue;
        fprintf(out, "%s%.*s", separator, (int)word.bytes, word.data);
        separator = " ";
    }
    fputs("'\n\n", out);
}

/* The words behind "journal", or nothing: then the first word is a command. */
static void write_second_words(FILE *out)
{
    sl_str word;
    bool family;

    fputs("_sluice_second()\n{\n    case $1 in\n", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        if (sl_completion_first(i, &word, &family) == NULL || !family)
            continue;
        const char *separator = "";
        fprintf(out, "    '%.*s') echo '", (int)word.bytes, word.data);
        for (size_t j = i; j < sl_command_count; j++) {
            if (strncmp(sl_commands[j]->name, word.data, word.bytes + 1) != 0)
                continue;
            fprintf(out, "%s%s", separator, sl_completion_second(sl_commands[j]));
            separator = " ";
        }
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n\n", out);
}

/* What may stand behind an option; flags have no line here. */
static void write_value(FILE *out, const sl_option *row)
{
    if (row->kind == SL_OPTION_FLAG)
        return;
    fprintf(out, "        '--%s'", row->name);
    if (row->letter != 0)
        fprintf(out, " | '-%c'", row->letter);
    fputs(") kind='", out);
    if (row->kind == SL_OPTION_CHOICE) {
        fputs("words ", out);
        sl_completion_choices(out, row->choices);
    } else {
        fputs(rest_kind(row->completes), out);
    }
    fputs("' ;;\n", out);
}

static void write_command(FILE *out, const sl_command *command)
{
    const sl_option_table table = sl_command_options(command);

    fprintf(out, "    '%s')\n        options='", command->name);
    for (size_t i = 0; i < table.row_count; i++) {
        if (sl_option_belongs(&table, &table.rows[i]))
            fprintf(out, "--%s ", table.rows[i].name);
    }
    fputs("' rest='", out);
    if (command->word_choices != NULL) {
        fputs("words ", out);
        sl_completion_choices(out, command->word_choices);
    } else {
        fputs(rest_kind(command->completes), out);
    }
    fputs("'\n        case $prev in\n", out);
    for (size_t i = 0; i < table.row_count; i++) {
        if (sl_option_belongs(&table, &table.rows[i]))
            write_value(out, &table.rows[i]);
    }
    fputs("        esac\n        ;;\n", out);
}

static const char head[] =
    "# bash completion for sluice, made by 'sluice completion bash'\n\n"
    "# The lines that a command prints, each as one answer: names of files may have blanks.\n"
    "_sluice_take()\n"
    "{\n"
    "    local line\n"
    "    while IFS= read -r line; do\n"
    "        COMPREPLY+=(\"$line\")\n"
    "    done < <(\"$@\")\n"
    "}\n\n";

static const char beginning[] =
    "_sluice()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command=${COMP_WORDS[1]} begin=2 options='' rest='nothing' kind=''\n\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _sluice_take compgen -W \"$_sluice_commands --help --version\" -- \"$cur\"\n"
    "        return\n"
    "    fi\n"
    "    # --name=value comes as three words\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == '=' ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    local second=$(_sluice_second \"$command\")\n"
    "    if [[ -n $second ]] && ((COMP_CWORD == 2)); then\n"
    "        _sluice_take compgen -W \"$second --help\" -- \"$cur\"\n"
    "        return\n"
    "    elif [[ -n $second ]]; then\n"
    "        command=\"$command ${COMP_WORDS[2]}\" begin=3\n"
    "    fi\n"
    "    case $command in\n";

static const char ending[] =
    "    *) return ;;\n"
    "    esac\n"
    "    if [[ -z $kind && $cur == -* ]]; then\n"
    "        kind=\"words $options\"\n"
    "    elif [[ -z $kind ]]; then\n"
    "        kind=$rest\n"
    "    fi\n"
    "    if [[ $kind == 'command' ]]; then\n"
    "        kind=\"words $( ((COMP_CWORD == begin)) && echo \"$_sluice_commands\" || _sluice_second "
    "\"$prev\")\"\n"
    "    fi\n"
    "    case $kind in\n"
    "    'words '*) _sluice_take compgen -W \"${kind#words }\" -- \"$cur\" ;;\n"
    "    'file') _sluice_take compgen -f -- \"$cur\" && compopt -o filenames 2>/dev/null ;;\n"
    "    'folder') _sluice_take compgen -d -- \"$cur\" && compopt -o filenames 2>/dev/null ;;\n"
    "    esac\n"
    "    return 0\n"
    "}\n\n"
    "complete -F _sluice sluice\n";

void sl_completion_bash(FILE *out)
{
    fputs(head, out);
    write_first_words(out);
    write_second_words(out);
    fputs(beginning, out);
    for (size_t i = 0; i < sl_command_count; i++)
        write_command(out, sl_commands[i]);
    fputs(ending, out);
}
