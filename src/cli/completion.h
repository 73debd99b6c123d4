/* cli/completion.h — `sluice completion SHELL`: the tables as a script that completes words in a shell.
 *
 * The scripts hold the tables of the version that wrote them and run nothing, so completing a word costs no process and works
 * without a server. Install a new one with each version; `make install` does. */
#ifndef SL_CLI_COMPLETION_H
#define SL_CLI_COMPLETION_H

#include "cli/commands.h"

extern const sl_command sl_command_completion;

/* Each is a whole script; completion_bash.c and so on. */
void sl_completion_bash(FILE *out);
void sl_completion_zsh(FILE *out);
void sl_completion_fish(FILE *out);

/* --- for those three --- */

/* The command with this number, when no command before it begins with the same word: so each first word comes once. NULL
 * otherwise. *ret_word is the first word, *ret_family whether more follow. */
const sl_command *sl_completion_first(size_t index, sl_str *ret_word, bool *ret_family);

/* The second word of a name, or NULL. */
const char *sl_completion_second(const sl_command *command);

/* "sync os" of "sync|os". */
void sl_completion_choices(FILE *out, const char *choices);

/* The text with a backslash before each of `special`, as scripts need it in descriptions. */
void sl_completion_escaped(FILE *out, const char *text, const char *special);

#endif
