/* cli/manual.c — the command: one page to the output, or all of them into a folder. */
#include "cli/manual.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/print.h"

enum {
    PATH_BYTES = 4096 + 128,
    SENTENCE_BYTES = 512,
};

/* "sluice-journal-verify.1" */
static void file_name(const sl_command *command, char *name, size_t capacity)
{
    snprintf(name, capacity, "sluice%s%s.1", command == NULL ? "" : "-",
             command == NULL ? "" : command->name);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == ' ' ? '-' : *c;
}

static int fail_file(const sl_invocation *invocation, const char *path)
{
    char sentence[SENTENCE_BYTES];

    snprintf(sentence, sizeof sentence, "%.300s cannot be written: %s", path, strerror(errno));
    return sl_cli_fail(invocation, sentence);
}

static int write_page(const sl_invocation *invocation, const sl_command *command)
{
    const char *const folder = invocation->values[SL_OPT_INTO].text;
    char path[PATH_BYTES], name[SL_OPTION_LABEL_BYTES];
    FILE *file;

    file_name(command, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "we");
    if (file == NULL)
        return fail_file(invocation, path);
    sl_manual_page(command, file);
    const bool broken = ferror(file) != 0;
    if (fclose(file) != 0 || broken)
        return fail_file(invocation, path);
    fprintf(invocation->out, "%s\n", name);
    return SL_EXIT_OK;
}

static int write_all(const sl_invocation *invocation)
{
    const char *const folder = invocation->values[SL_OPT_INTO].text;
    int code;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail_file(invocation, folder);
    code = write_page(invocation, NULL);

    for (size_t i = 0; code == SL_EXIT_OK && i < sl_command_count; i++)
        code = write_page(invocation, sl_commands[i]);
    return code;
}

static int run_manual(const sl_invocation *invocation)
{
    const sl_command *command = NULL;
    size_t used = 0;

    if (invocation->values[SL_OPT_INTO].text != NULL && invocation->word_count > 0)
        return sl_cli_complain(invocation, "--into writes all pages: name no command with it.");
    if (invocation->values[SL_OPT_INTO].text != NULL)
        return write_all(invocation);
    if (invocation->word_count > 0) {
        command = sl_command_find_words(invocation->words, invocation->word_count, &used);
        if (command == NULL && sl_command_is_family(invocation->words[0]))
            return sl_cli_complain_family(invocation, invocation->words[0],
                                          invocation->word_count < 2 ? NULL : invocation->words[1]);
        if (command == NULL)
            return sl_cli_complain_command(invocation, invocation->words[0]);
        if (used < invocation->word_count)
            return sl_cli_complain_word(invocation, invocation->command, invocation->words[used]);
    }
    sl_manual_page(command, invocation->out);
    return SL_EXIT_OK;
}

const sl_command sl_command_manual = {
    .name = "manual",
    .bit = SL_COMMAND_MANUAL,
    .words = "[COMMAND]",
    .words_max = 2,
    .completes = SL_COMPLETES_COMMAND,
    .run = run_manual,
    .summary = "write a page of the manual",
    .details = "Writes a man page to the output, in the language of man: about sluice, or about one command. "
               "With --into all "
               "pages go into a folder, which is made if it is not there, and their names to the output; "
               "'make install' does that.\n",
    .examples = "Read one that is not installed:\n"
                "  sluice manual journal dump | man -l -\n",
};
