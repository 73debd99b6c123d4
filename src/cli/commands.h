/* cli/commands.h — the commands of sluice, and the way from argv to one of them.
 *
 *     sluice COMMAND [WORD]... [OPTION]...
 *
 * The command comes first and is one word or two ("journal verify"); --help and --version may stand in its place. A row of the table in commands.c is
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
    SL_EXIT_DAMAGE = 3, /* the journal that was looked at is damaged */
};

/* Bits for sl_option.commands. */
enum {
    SL_COMMAND_HELP = 1u << 0,
    SL_COMMAND_VERSION = 1u << 1,
    SL_COMMAND_BUDGET = 1u << 2,
    SL_COMMAND_JOURNAL_VERIFY = 1u << 3,
    SL_COMMAND_JOURNAL_DUMP = 1u << 4,
    SL_COMMAND_JOURNAL_STATS = 1u << 5,
    SL_COMMAND_BACKUP = 1u << 6,
    SL_COMMAND_SCAVENGE = 1u << 7,
    SL_COMMAND_JOURNAL = SL_COMMAND_JOURNAL_VERIFY | SL_COMMAND_JOURNAL_DUMP | SL_COMMAND_JOURNAL_STATS |
                         SL_COMMAND_BACKUP | SL_COMMAND_SCAVENGE, /* all that work on one */
    SL_COMMAND_EVERY = SL_COMMAND_HELP | SL_COMMAND_VERSION | SL_COMMAND_BUDGET | SL_COMMAND_JOURNAL,
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

/* The same for what was understood but did not work; returns SL_EXIT_FAILED. The full stop is added. */
int sl_cli_fail(const sl_invocation *invocation, const char *sentences);

#endif
