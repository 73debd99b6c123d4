/* cli/commands.h — the commands of sluice, and the way from argv to one of them.
 *
 *     sluice COMMAND [WORD]... [OPTION]...
 *
 * The command comes first and is one word or two ("journal verify"); --help and --version may stand in its place.
 * A command is a row, at the end of its own file, and a line in command_table.c. Its options name its bit. Help, manual
 * and completion are made from the row. */
#ifndef SL_CLI_COMMANDS_H
#define SL_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/options.h"

/* What the process ends with; part of the interface, because scripts and orchestrators read it. */
enum {
    SL_EXIT_OK = 0,
    SL_EXIT_FAILED = 1,  /* understood, but it did not work */
    SL_EXIT_USAGE = 2,   /* not understood: nothing was done */
    SL_EXIT_DAMAGE = 3,  /* the journal that was looked at is damaged */
    SL_EXIT_HELD = 4,    /* a consumer still holds messages: it is not safe to end it */
    SL_EXIT_UNCLEAN = 5, /* a worker ended as asked, but its drain timed out or left something behind */
    SL_EXIT_LOST = 6,    /* a worker's source refused it, or is gone for good */
};

/* Bits for sl_option.commands; macros, because an enum of C17 ends at 31 of them. */
#define SL_COMMAND_BIT(index) (UINT64_C(1) << (index))

#define SL_COMMAND_HELP            SL_COMMAND_BIT(0)
#define SL_COMMAND_VERSION         SL_COMMAND_BIT(1)
#define SL_COMMAND_BUDGET          SL_COMMAND_BIT(2)
#define SL_COMMAND_JOURNAL_VERIFY  SL_COMMAND_BIT(3)
#define SL_COMMAND_JOURNAL_DUMP    SL_COMMAND_BIT(4)
#define SL_COMMAND_JOURNAL_STATS   SL_COMMAND_BIT(5)
#define SL_COMMAND_BACKUP          SL_COMMAND_BIT(6)
#define SL_COMMAND_SCAVENGE        SL_COMMAND_BIT(7)
#define SL_COMMAND_COMPLETION      SL_COMMAND_BIT(8)
#define SL_COMMAND_MANUAL          SL_COMMAND_BIT(9)
#define SL_COMMAND_SERVE           SL_COMMAND_BIT(10)
#define SL_COMMAND_APPEND          SL_COMMAND_BIT(11)
#define SL_COMMAND_READ            SL_COMMAND_BIT(12)
#define SL_COMMAND_STREAM_INFO     SL_COMMAND_BIT(13)
#define SL_COMMAND_STREAM_DELETE   SL_COMMAND_BIT(14)
#define SL_COMMAND_STREAM_METADATA SL_COMMAND_BIT(15)
#define SL_COMMAND_USER_ADD        SL_COMMAND_BIT(16)
#define SL_COMMAND_USER_PASSWD     SL_COMMAND_BIT(17)
#define SL_COMMAND_USER_LIST       SL_COMMAND_BIT(18)
#define SL_COMMAND_USER_REMOVE     SL_COMMAND_BIT(19)
#define SL_COMMAND_GROUP_CREATE    SL_COMMAND_BIT(20)
#define SL_COMMAND_GROUP_UPDATE    SL_COMMAND_BIT(21)
#define SL_COMMAND_GROUP_DELETE    SL_COMMAND_BIT(22)
#define SL_COMMAND_GROUP_INFO      SL_COMMAND_BIT(23)
#define SL_COMMAND_GROUP_LIST      SL_COMMAND_BIT(24)
#define SL_COMMAND_GROUP_WATCH     SL_COMMAND_BIT(25)
#define SL_COMMAND_CONSUMER_LIST   SL_COMMAND_BIT(26)
#define SL_COMMAND_CONSUMER_SHOW   SL_COMMAND_BIT(27)
#define SL_COMMAND_CONSUMER_STOP   SL_COMMAND_BIT(28)
#define SL_COMMAND_CONSUMER_RESUME SL_COMMAND_BIT(29)
#define SL_COMMAND_CONSUMER_DRAINS SL_COMMAND_BIT(30)
#define SL_COMMAND_PARKED_LIST     SL_COMMAND_BIT(31)
#define SL_COMMAND_PARKED_SHOW     SL_COMMAND_BIT(32)
#define SL_COMMAND_PARKED_REPLAY   SL_COMMAND_BIT(33)
#define SL_COMMAND_PARKED_TRUNCATE SL_COMMAND_BIT(34)
#define SL_COMMAND_WORK            SL_COMMAND_BIT(35)

/* Sets of them: all that work on the folder of a journal, that are about streams, users, groups, consumers, parked messages, and that
 * talk to a server. */
#define SL_COMMAND_JOURNAL                                                                                   \
    (SL_COMMAND_JOURNAL_VERIFY | SL_COMMAND_JOURNAL_DUMP | SL_COMMAND_JOURNAL_STATS | SL_COMMAND_BACKUP |    \
     SL_COMMAND_SCAVENGE)
#define SL_COMMAND_STREAM (SL_COMMAND_STREAM_INFO | SL_COMMAND_STREAM_DELETE | SL_COMMAND_STREAM_METADATA)
#define SL_COMMAND_USER                                                                                      \
    (SL_COMMAND_USER_ADD | SL_COMMAND_USER_PASSWD | SL_COMMAND_USER_LIST | SL_COMMAND_USER_REMOVE)
#define SL_COMMAND_GROUP                                                                                     \
    (SL_COMMAND_GROUP_CREATE | SL_COMMAND_GROUP_UPDATE | SL_COMMAND_GROUP_DELETE | SL_COMMAND_GROUP_INFO |   \
     SL_COMMAND_GROUP_LIST | SL_COMMAND_GROUP_WATCH)
#define SL_COMMAND_CONSUMER                                                                                  \
    (SL_COMMAND_CONSUMER_LIST | SL_COMMAND_CONSUMER_SHOW | SL_COMMAND_CONSUMER_STOP |                        \
     SL_COMMAND_CONSUMER_RESUME | SL_COMMAND_CONSUMER_DRAINS)
#define SL_COMMAND_PARKED                                                                                    \
    (SL_COMMAND_PARKED_LIST | SL_COMMAND_PARKED_SHOW | SL_COMMAND_PARKED_REPLAY | SL_COMMAND_PARKED_TRUNCATE)
#define SL_COMMAND_CLIENT                                                                                    \
    (SL_COMMAND_APPEND | SL_COMMAND_READ | SL_COMMAND_STREAM | SL_COMMAND_USER | SL_COMMAND_GROUP |          \
     SL_COMMAND_CONSUMER | SL_COMMAND_PARKED)

/* About sluice itself: they answer without looking at anything outside, so nothing can be configured about them. */
#define SL_COMMAND_ABOUT (SL_COMMAND_HELP | SL_COMMAND_VERSION | SL_COMMAND_COMPLETION | SL_COMMAND_MANUAL)
#define SL_COMMAND_EVERY UINT64_MAX

typedef struct sl_command sl_command;
struct sl_config;

typedef struct sl_invocation {
    const sl_command *command;
    const sl_option_value *values; /* by sl_option_id */
    char **words;                  /* what stood behind the command and is no option */
    size_t word_count;
    bool json; /* answers are for a program */
    FILE *out, *err;
    sl_option_environment *environment; /* for what must not be an option, such as a password */
    const struct sl_config *config;     /* the file, for what it says about members; NULL: none */
} sl_invocation;

struct sl_command {
    const char *name; /* "budget", "journal verify" */
    uint64_t bit;
    const char *words; /* for the usage line: "FOLDER TARGET", "[COMMAND]"; "" when there are none */
    size_t words_min, words_max;
    sl_completes completes; /* what the words are */
    const char
        *word_choices; /* "bash|zsh|fish": the words that are allowed, checked before `run`; NULL: any */
    int (*run)(const sl_invocation *invocation); /* returns an SL_EXIT_ code */
    const char *member; /* "worker": a file may have a section [COMMAND NAME] for each; NULL: no such thing */
    const char *summary; /* for the list; a phrase */
    const char
        *details; /* paragraphs, each ended with \n; a line that begins with a blank is shown as it is */
    const char *examples; /* a sentence with a colon, then lines that begin with two blanks; NULL: none */
    const char *exits;    /* "0 no damage\n" "1 ...\n" SL_EXITS_USAGE "3 damage\n"; NULL: SL_EXITS_USUAL */
};

#define SL_EXITS_USAGE "2 the command line was not understood and nothing was done\n"
#define SL_EXITS_USUAL "0 done\n1 it did not work\n" SL_EXITS_USAGE

enum {
    SL_COMMANDS_MAX = 64 /* as many as there are bits */
};

/* All of them, in the order of the help; command_table.c. */
extern const sl_command *const sl_commands[];
extern const size_t sl_command_count;

/* Runs what argv asks for and returns an SL_EXIT_ code. Output goes to `out`, complaints to `err`, so that a
 * test can read both. argv is reordered. */
int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err);

/* Says that the command line was not understood, in whole sentences, and returns SL_EXIT_USAGE. The sentences go
 * to `err`; when JSON was asked for they go to `out` as well, as {"error": "..."}. */
int sl_cli_complain(const sl_invocation *invocation, const char *sentences);

/* No command of this name, which is one word or two: the nearest that exists. SL_EXIT_USAGE. */
int sl_cli_complain_command(const sl_invocation *invocation, const char *name);

/* A word of a family stands alone (`second` is NULL or an option), or with one that does not belong to it. */
int sl_cli_complain_family(const sl_invocation *invocation, const char *family, const char *second);

/* A word that the command has no place for. */
int sl_cli_complain_word(const sl_invocation *invocation, const sl_command *command, const char *word);

/* The same for what was understood but did not work; returns SL_EXIT_FAILED. The full stop is added. */
int sl_cli_fail(const sl_invocation *invocation, const char *sentences);

/* NULL when there is none of that name. */
const sl_command *sl_command_find(const char *name);

/* Is it the first word of commands and none itself: "journal"? Is this command one of that family? */
bool sl_command_is_family(const char *name);
bool sl_command_in_family(const sl_command *command, const char *family);

/* The command that the words begin with, or NULL; *ret_used: how many of them are its name, one or two. There must be
 * at least one word. */
const sl_command *sl_command_find_words(char *const *words, size_t word_count, size_t *ret_used);

/* The rows of sl_options[] that a command takes. */
sl_option_table sl_command_options(const sl_command *command);

#endif
