/* cli/commands.c — the command table, `help`, `version`, and the dispatch.
 *
 * Everything a user can get wrong is answered with one sentence that says what is wrong, and one that says
 * where to look. The help texts name only what works in this version. */
#include "cli/commands.h"

#include <stdarg.h>
#include <string.h>

#include <sluice.h>

#include "cli/backup_command.h"
#include "cli/budget_command.h"
#include "cli/dump_command.h"
#include "cli/journal_command.h"
#include "cli/print.h"
#include "cli/scavenge_command.h"
#include "cli/suggest.h"

enum {
    SENTENCES_BYTES = SL_COMPLAINT_BYTES + 128,
    NAME_BYTES = 64
};

typedef struct command {
    const char *name;
    unsigned bit;
    const char *words; /* for the usage line: "[COMMAND]" */
    size_t words_min, words_max;
    int (*run)(const sl_invocation *invocation);
    const char *summary; /* for the list; a phrase */
    const char *details; /* for `help COMMAND`; paragraphs, the printer breaks them into lines */
} command;

static int run_help(const sl_invocation *invocation);
static int run_version(const sl_invocation *invocation);

static const char budget_details[] =
    "Shows how a worker will spend its grace: the time that the orchestrator leaves it between SIGTERM and "
    "SIGKILL. The parts follow each other in the order of the options below.\n"
    "\n"
    "TIME is a number with its unit: h, m, s, ms, us or ns. Units may be joined, from large to small, and "
    "the "
    "last number may have a fraction: 30s, 250ms, 1.5m, 2m30s.\n"
    "\n"
    "A part that is not set is derived. Each gets its lower bound; what is left of the grace is shared in "
    "proportion, up to the usual lengths (fence 2s, settle 20s, abort 3s, flush 2s, close 2s, reserve 1s: "
    "30s "
    "together); and what is left then goes to settle. With settle set it stays unused.\n"
    "\n"
    "A budget that does not fit is refused with the arithmetic, and the exit code is 1: run it in a deploy "
    "pipeline with the numbers of the deployment. The refusal names the least grace that would be accepted, "
    "where derived parts are at their lower bounds, and the comfortable one, where they have their usual "
    "lengths.\n"
    "\n"
    "The answer ends with four limits, each inside the one before: outer is the grace; consumer is all but "
    "the reserve; workers is settle and abort, until the last handler is gone; handler is settle, what a "
    "single message may still take. Timeouts that you set elsewhere should be in the same order.\n";

static const char verify_details[] =
    "Reads everything in the data folder of a server: all segments with their checksums and positions, all "
    "indexes against their segments, all lists of streams. Shows all damage, not only the first: file, byte, "
    "what it means, which positions are lost, what to do.\n"
    "\n"
    "What a crash left behind the end is no damage: it is shown as a note and cut when the journal is "
    "opened. "
    "Neither is a missing index: it is made anew.\n"
    "\n"
    "Nothing is changed and nothing is locked: a server may be running on the folder. It may fill the disk's "
    "time, though: everything is read once.\n"
    "\n"
    "Exit codes: 0 no damage, 3 damage, 1 the folder could not be read.\n";

static const char dump_details[] =
    "Shows the records of a journal, one line for each: position, kind, and what it says. Events with "
    "stream, "
    "revision, type, id, time and sizes, records of groups with their fields. A line that begins with # is "
    "about "
    "the file: a segment begins, or something in it is damaged; then it goes on with the next frame that can "
    "be "
    "read. With --json each line is an object.\n"
    "\n"
    "Events that are hidden (by deletion, $maxCount, $maxAge or $tb) and not yet scavenged are shown as "
    "well. A "
    "server may be running on the folder: what it has written is shown, also what it has not confirmed yet.\n"
    "\n"
    "Exit codes: 0 done, 3 damage was passed on the way, 1 the folder could not be read.\n";

static const char stats_details[] =
    "Reads all segments and shows what is in them: records by kind, events, streams, groups, the largest "
    "streams, "
    "what is hidden and waits for a scavenge, sizes of indexes, how often the journal was opened.\n"
    "\n"
    "Hidden events are estimated from revisions, without those that only $maxAge hides. Memory grows with "
    "the number "
    "of streams, about 150 bytes each. A server may be running on the folder.\n"
    "\n"
    "Exit codes: 0 done, 3 damage was found and is not in the numbers, 1 the folder could not be read.\n";

static const char backup_details[] =
    "Copies the data folder of a server, also while the server runs, into TARGET: a folder that does not "
    "exist or "
    "is empty. All that was confirmed before the backup began is in the copy, and what comes after it is "
    "there up "
    "to some moment, nothing half.\n"
    "\n"
    "The copy is made in TARGET.partial, verified, and gets its name at the end: under that name it is "
    "complete or "
    "not there. When it fails, nothing is left. When it is killed, TARGET.partial is left; delete it.\n"
    "\n"
    "To restore, copy TARGET back, or name it as the data folder. Of the same moment there should be only "
    "one server: "
    "do not run one on the copy and one on the original.\n"
    "\n"
    "Exit codes: 0 done, 3 the journal is damaged and nothing was copied, 1 the copy could not be made.\n";

static const char scavenge_details[] =
    "Gives space back that hidden events (by deletion, $maxCount, $maxAge, $tb) and old records of groups "
    "take: "
    "segments are rewritten without them. Positions do not change, and the last event of a stream stays.\n"
    "\n"
    "It opens the journal, so no server may run on the folder: it is refused then, with the number of the "
    "process. A "
    "running server does the same by itself, each time it has filled a segment, with segments that are half "
    "dead. The "
    "last segment is never rewritten.\n"
    "\n"
    "It can be ended at any time: each segment is replaced in one step.\n"
    "\n"
    "Exit codes: 0 done, 3 the journal is damaged, 1 it could not be done.\n";

static const command commands[] = {
    { "help", SL_COMMAND_HELP, "[COMMAND]", 0, 2, run_help, "explain sluice, or one command",
      "Without a word: what sluice can do. With a command: its options, defaults and limits.\n" },
    { "budget", SL_COMMAND_BUDGET, "", 0, 0, sl_budget_command, "split a shutdown grace into its parts",
      budget_details },
    { "journal verify", SL_COMMAND_JOURNAL_VERIFY, "FOLDER", 1, 1, sl_journal_verify_command,
      "look for damage in a journal", verify_details },
    { "journal dump", SL_COMMAND_JOURNAL_DUMP, "FOLDER", 1, 1, sl_journal_dump_command,
      "show the records of a journal", dump_details },
    { "journal stats", SL_COMMAND_JOURNAL_STATS, "FOLDER", 1, 1, sl_journal_stats_command,
      "show what is in a journal", stats_details },
    { "backup", SL_COMMAND_BACKUP, "FOLDER TARGET", 2, 2, sl_backup_command,
      "copy a journal, also while a server runs", backup_details },
    { "scavenge", SL_COMMAND_SCAVENGE, "FOLDER", 1, 1, sl_scavenge_command,
      "give space back that nobody needs any more", scavenge_details },
    { "version", SL_COMMAND_VERSION, "", 0, 0, run_version, "show the version",
      "Prints \"sluice\" and the version. With --json: {\"version\": \"...\"}.\n" },
};
enum {
    COMMAND_COUNT = sizeof commands / sizeof commands[0]
};

/* What documents speak of and this version does not have: better told than guessed at. */
static const char *const planned[] = { "serve", "work", "outbox", "group", "consumer", "parked" };

static bool is_planned(const char *name)
{
    for (size_t i = 0; i < sizeof planned / sizeof planned[0]; i++) {
        if (strcmp(planned[i], name) == 0)
            return true;
    }
    return false;
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

/* "journal": a word that commands begin with and that is none. */
static bool is_family(const char *name)
{
    const size_t bytes = strlen(name);

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strncmp(commands[i].name, name, bytes) == 0 && commands[i].name[bytes] == ' ')
            return true;
    }
    return false;
}

static const char *join(const char *first, const char *second, char name[static NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s %s", first, second);
    return name;
}

/* The command that the words begin with; *ret_used: how many of them are its name. */
static const command *find_words(char *const *words, size_t word_count, size_t *ret_used)
{
    char name[NAME_BYTES];

    *ret_used = 1;
    if (!is_family(words[0]))
        return find_command(words[0]);
    *ret_used = word_count < 2 ? 1 : 2;
    return word_count < 2 ? NULL : find_command(join(words[0], words[1], name));
}

static sl_option_table options_of(const command *which)
{
    return (sl_option_table){ .rows = sl_options, .row_count = SL_OPT_COUNT_, .command = which->bit };
}

/* --- complaints --- */

int sl_cli_complain(const sl_invocation *invocation, const char *sentences)
{
    sl_print_complaint(invocation->err, sentences);
    if (invocation->json) {
        fputs("{\"error\": ", invocation->out);
        sl_print_json_text(invocation->out, sentences);
        fputs("}\n", invocation->out);
    }
    return SL_EXIT_USAGE;
}

int sl_cli_fail(const sl_invocation *invocation, const char *sentences)
{
    char quoted[4 * SENTENCES_BYTES], stopped[4 * SENTENCES_BYTES + 1];

    sl_quote_into(quoted, sizeof quoted, sentences); /* it may name files as the user did */
    snprintf(stopped, sizeof stopped, "%s.", quoted);
    (void)sl_cli_complain(invocation, stopped);
    return SL_EXIT_FAILED;
}

__attribute__((format(printf, 2, 3))) static int complain(const sl_invocation *invocation, const char *format,
                                                          ...)
{
    char sentences[SENTENCES_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentences, sizeof sentences, format, arguments);
    va_end(arguments);
    return sl_cli_complain(invocation, sentences);
}

static int complain_command(const sl_invocation *invocation, const char *name)
{
    static const char where[] = "'sluice help' shows what this version can do.";
    const char *names[COMMAND_COUNT + 2];
    const char *const what = name[0] == '-' ? "option" : "command";

    if (is_planned(name))
        return complain(invocation, "'%s' is not in this version yet. %s", name, where);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    names[COMMAND_COUNT] = "--help";
    names[COMMAND_COUNT + 1] = "--version";
    const char *nearest = sl_suggest_nearest(name, names, COMMAND_COUNT + 2);
    if (nearest == NULL)
        return complain(invocation, "there is no %s '%s'. %s", what, sl_quote(name).text, where);
    return complain(invocation, "there is no %s '%s'. Did you mean '%s'? %s", what, sl_quote(name).text,
                    nearest, where);
}

/* A word of a family stands alone, or with one that does not belong to it. */
static int complain_family(const sl_invocation *invocation, const char *family, const char *second)
{
    char name[NAME_BYTES], buffer[SENTENCES_BYTES];
    const size_t bytes = strlen(family);
    sl_text text;

    if (second != NULL && second[0] != '-')
        return complain_command(invocation, join(family, second, name));
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strncmp(commands[i].name, family, bytes) != 0 || commands[i].name[bytes] != ' ')
            continue;
        sl_text_add(&text, text.bytes == 0 ? "" : ", ");
        sl_text_add(&text, commands[i].name + bytes + 1);
    }
    return complain(invocation,
                    "'%s' needs one of these words behind it: %s. 'sluice help %s' explains them.", family,
                    buffer, family);
}

/* --- help --- */

static size_t name_width(void)
{
    size_t width = 10;

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        width = strlen(commands[i].name) > width ? strlen(commands[i].name) : width;
    return width;
}

static void help_family(const char *family, FILE *out)
{
    const size_t bytes = strlen(family);

    fprintf(out, "usage: sluice %s WORD [OPTION]...\n\ncommands:\n", family);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strncmp(commands[i].name, family, bytes) == 0 && commands[i].name[bytes] == ' ')
            sl_print_entry(out, commands[i].name, name_width(), commands[i].summary);
    }
    fprintf(out, "\n'sluice help %s WORD' explains one.\n", family);
}

static void help_overview(FILE *out)
{
    fprintf(out,
            "sluice %s - message delivery that a deploy neither loses nor repeats\n\n"
            "usage: sluice COMMAND [OPTION]...\n\n"
            "commands:\n",
            sl_version());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        sl_print_entry(out, commands[i].name, name_width(), commands[i].summary);
    sl_print_wrapped(
        out, (sl_print_place){ 0 },
        "\n'sluice help COMMAND' explains one. 'sluice --help' and 'sluice --version' work as well.\n"
        "\n"
        "Exit codes: 0 done, 1 failed, 2 the command line was not understood and nothing was done, 3 the "
        "journal "
        "is damaged.\n"
        "\n"
        "This version holds the delivery core, the journal and their tests. The server and the worker are "
        "not in "
        "it yet.");
}

static void help_command(const command *which, FILE *out)
{
    const sl_option_table options = options_of(which);

    fprintf(out, "usage: sluice %s %s%s[OPTION]...\n\n", which->name, which->words,
            which->words[0] == '\0' ? "" : " ");
    sl_print_wrapped(out, (sl_print_place){ 0 }, which->details);
    fprintf(out, "options:\n");
    sl_options_help(&options, out);
}

static int complain_words(const sl_invocation *invocation, const command *which, const char *word)
{
    return complain(invocation, "'%s' is one word too many. 'sluice help %s' shows the usage.",
                    sl_quote(word).text, which->name);
}

static int run_help(const sl_invocation *invocation)
{
    if (invocation->word_count == 0) {
        help_overview(invocation->out);
        return SL_EXIT_OK;
    }
    size_t used;
    const command *which = find_words(invocation->words, invocation->word_count, &used);
    if (which == NULL && is_family(invocation->words[0]) && used == 1) {
        help_family(invocation->words[0], invocation->out);
        return SL_EXIT_OK;
    }
    if (which == NULL && used == 2)
        return complain_family(invocation, invocation->words[0], invocation->words[1]);
    if (which == NULL)
        return complain_command(invocation, invocation->words[0]);
    if (used < invocation->word_count)
        return complain_words(invocation, find_command("help"), invocation->words[used]);
    help_command(which, invocation->out);
    return SL_EXIT_OK;
}

/* --- version --- */

static int run_version(const sl_invocation *invocation)
{
    fprintf(invocation->out, invocation->json ? "{\"version\": \"%s\"}\n" : "sluice %s\n", sl_version());
    return SL_EXIT_OK;
}

/* --- dispatch --- */

/* What stands in the command's place and means a command: the two options that people try first. */
static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return "version";
    return word;
}

static int run_command(const command *which, const sl_invocation *invocation)
{
    if (invocation->word_count > which->words_max)
        return complain_words(invocation, which, invocation->words[which->words_max]);
    if (invocation->word_count < which->words_min)
        return complain(invocation, "'%s' needs %s behind it. 'sluice help %s' shows the usage.", which->name,
                        which->words, which->name);
    return which->run(invocation);
}

static int read_and_run(const command *which, sl_option_environment *environment, sl_invocation *invocation)
{
    const sl_option_table options = options_of(which);
    sl_option_value values[SL_OPT_COUNT_];
    sl_complaint complaint;

    if (sl_options_read(&options, environment, invocation->words, invocation->word_count, values,
                        &invocation->word_count, &complaint) != SL_OK)
        return complain(invocation, "%s 'sluice help %s' shows the options.", complaint.text, which->name);
    invocation->values = values;
    invocation->json = values[SL_OPT_JSON].number != 0;
    return run_command(which, invocation);
}

/* Help is given before the rest of the line is judged: whoever asks for it may have come because of a mistake. */
int sl_cli_run(int argc, char **argv, sl_option_environment *environment, FILE *out, FILE *err)
{
    sl_invocation invocation = { .out = out, .err = err };

    if (argc < 2) {
        fprintf(err, "usage: sluice COMMAND [OPTION]...\n'sluice help' shows what this version can do.\n");
        return SL_EXIT_USAGE;
    }
    size_t used;
    const command *which = find_words(argv + 1, (size_t)argc - 1, &used);

    if (used == 1 && which == NULL)
        which = find_command(command_name(argv[1]));
    invocation.words = argv + 1 + used;
    invocation.word_count = (size_t)argc - 1 - used;
    invocation.json = sl_options_asks_for(&sl_options[SL_OPT_JSON], environment, argv + 1, (size_t)argc - 1);
    const bool help = sl_options_asks_for(&sl_options[SL_OPT_HELP], environment, argv + 2, (size_t)argc - 2);

    if (which == NULL && is_family(argv[1]) && !(help && (used == 1 || argv[2][0] == '-')))
        return complain_family(&invocation, argv[1], used == 1 ? NULL : argv[2]);
    if (which == NULL && !is_family(argv[1]) && !(help && argv[1][0] == '-'))
        return complain_command(&invocation, argv[1]);
    if (which == NULL && is_family(argv[1]))
        help_family(argv[1], out);
    else if (which == NULL)
        help_overview(out);
    else if (help)
        help_command(which, out);
    else
        return read_and_run(which, environment, &invocation);
    return SL_EXIT_OK;
}
