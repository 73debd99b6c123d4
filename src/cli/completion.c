/* cli/completion.c — the command, and what the writers of the three scripts share. */
#include "cli/completion.h"

#include <string.h>

const sl_command *sl_completion_first(size_t index, sl_str *ret_word, bool *ret_family)
{
    const char *const name = sl_commands[index]->name;
    const size_t bytes = strcspn(name, " ");

    for (size_t i = 0; i < index; i++) {
        if (strcspn(sl_commands[i]->name, " ") == bytes && strncmp(sl_commands[i]->name, name, bytes) == 0)
            return NULL;
    }
    *ret_word = (sl_str){ name, bytes };
    *ret_family = name[bytes] == ' ';
    return sl_commands[index];
}

const char *sl_completion_second(const sl_command *command)
{
    const char *const blank = strchr(command->name, ' ');

    return blank == NULL ? NULL : blank + 1;
}

void sl_completion_choices(FILE *out, const char *choices)
{
    const char *separator = "";
    sl_str word;

    for (const char *rest = choices; sl_choice_next(&rest, &word); separator = " ")
        fprintf(out, "%s%.*s", separator, (int)word.bytes, word.data);
}

void sl_completion_escaped(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
}

static int run_completion(const sl_invocation *invocation)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } shells[] = { { "bash", sl_completion_bash },
                   { "zsh", sl_completion_zsh },
                   { "fish", sl_completion_fish } };

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, invocation->words[0]) == 0)
            shells[i].write(invocation->out);
    }
    return SL_EXIT_OK;
}

const sl_command sl_command_completion = {
    .name = "completion",
    .bit = SL_COMMAND_COMPLETION,
    .words = "bash|zsh|fish",
    .words_min = 1,
    .words_max = 1,
    .word_choices = "bash|zsh|fish",
    .run = run_completion,
    .summary = "write a script that completes words in a shell",
    .details = "Writes the script to the output. It knows the commands, their options, the words that an "
               "option may have, "
               "and where a file or a folder is meant. It is made from the tables of this version and runs "
               "nothing while "
               "you type; 'make install' puts it where the shells look.\n",
    .examples = "For this session of bash, or of zsh:\n"
                "  source <(sluice completion bash)\n"
                "For all sessions of fish:\n"
                "  sluice completion fish > ~/.config/fish/completions/sluice.fish\n",
};
