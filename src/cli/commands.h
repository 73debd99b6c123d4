/* cli/commands.h — the commands of sluice, and the way from argv to one of them.
 *
 *     sluice COMMAND [WORD]... [OPTION]...
 *
 * The command comes first; --help and --version may stand in its place. A row of the table in commands.c is
 * all that a new command needs, besides its function and the options that name its bit. */
#ifndef SL_CLI_COMMANDS_H
#define SL_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/options.h"

/* What the process ends with; part of the interface, because scripts and orchestrators read it. */
enum {
    SL_EXIT_OK = 0,
    SL_EXIT_FAILED = 1, /* understood, but it did not work */
    SL_EXIT_USAGE = 2,  /* not understood: nothing was done */
};

/* Bits for sl_option.commands. */
enum {
    SL_COMMAND_HELP = 1u << 0,
    SL_COMMAND_VERSION = 1u << 1,
    SL_COMMAND_BUDGET = 1u << 2,
    SL_COMMAND_EVERY = SL_COMMAND_HELP | SL_COMMAND_VERSION | SL_COMMAND_BUDGET,
};

typedef struct sl_invocation {
    const sl_option_value *values; /* by sl_option_id */
    char **words;                  /* what stood behind the command and is no option */
    size_t word_count;
    bool json; /* answers are for a program */
    FILE *out, *err;
} sl_invocation;

/* Runs what argv asks for and returns an SL_EXIT_ code. Output goes to `out`, complaints to `err`, so that a
 * test can read both. argv is reordered. */
int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err);

/* Says that the command line was not understood, in whole sentences, and returns SL_EXIT_USAGE. The sentences go
 * to `err`; when JSON was asked for they go to `out` as well, as {"error": "..."}. */
int sl_cli_complain(const sl_invocation *invocation, const char *sentences);

#endif
