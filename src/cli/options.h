/* cli/options.h — every option of every command: one table, and the reader that works from it.
 *
 * A row says all there is to know about an option: names, type, default, environment variable, bounds, help,
 * and which commands take it. Reading, --help and the docs come from the row, so they cannot disagree. A
 * default is text that goes through the same reader as what a user types.
 *
 * What counts, strongest first: command line, environment, default. The reader never prints; a complaint is a
 * whole sentence that the caller shows, with the user's words made safe for a terminal (cli/print.h). */
#ifndef SL_CLI_OPTIONS_H
#define SL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef enum sl_option_kind {
    SL_OPTION_FLAG,     /* takes no argument; in the environment 1, true, yes or 0, false, no */
    SL_OPTION_TEXT,     /* bounds are bytes */
    SL_OPTION_NUMBER,   /* a whole number; bounds are its values */
    SL_OPTION_DURATION, /* "30s", see base/str.h; bounds are nanoseconds */
} sl_option_kind;

typedef struct sl_option {
    const char *name; /* without the dashes */
    char letter;      /* the short form, or 0 */
    sl_option_kind kind;
    const char *argument;     /* what --help calls the value; NULL for a flag */
    const char *default_text; /* NULL: unset unless given */
    const char *environment;  /* NULL: command line only */
    uint64_t min, max;        /* both allowed; unused for a flag */
    unsigned commands;        /* bits of the commands that take it, see cli/commands.h */
    const char *help;         /* a phrase without a full stop; the printer breaks it into lines */
} sl_option;

typedef enum sl_option_source {
    SL_OPTION_UNSET,
    SL_OPTION_FROM_DEFAULT,
    SL_OPTION_FROM_ENVIRONMENT,
    SL_OPTION_FROM_COMMAND_LINE,
} sl_option_source;

typedef struct sl_option_value {
    sl_option_source source;
    const char *text; /* as given; borrowed from argv, the environment or the table */
    uint64_t number;  /* flag: 0 or 1; duration: nanoseconds */
} sl_option_value;

typedef const char *sl_option_environment(const char *name);

typedef struct sl_option_table {
    const sl_option *rows;
    size_t row_count;
    unsigned command; /* one bit: rows of other commands are unknown options here */
} sl_option_table;

enum {
    SL_COMPLAINT_BYTES = 512
};
typedef struct sl_complaint {
    char text[SL_COMPLAINT_BYTES]; /* a sentence with its full stop; cut when longer */
} sl_complaint;

/* Reads `words` (argv behind the command) into values[], one for each row of the table. Words that are no
 * options move to the front of `words` and are counted in *ret_plain_count. "--" ends the options.
 *   SL_OK           values, words and *ret_plain_count are set
 *   SL_ERR_INVALID  *ret_complaint says what is wrong and names the nearest option; values are undefined */
sl_err sl_options_read(const sl_option_table *table, sl_option_environment *environment, char **words,
                       size_t word_count, sl_option_value *values, size_t *ret_plain_count,
                       sl_complaint *ret_complaint);

/* Was this flag asked for, as far as can be told before anything is read? Looks for its name or letter among the
 * words up to "--", then at its variable. So --help and the form of a complaint do not depend on whether the
 * rest of the line is right. */
bool sl_options_asks_for(const sl_option *flag, sl_option_environment *environment, char *const *words,
                         size_t word_count);

/* Writes the options of the table's command, aligned, with default, bounds and variable. */
void sl_options_help(const sl_option_table *table, FILE *out);

/* The options of sluice. The id is the index of the row, and of the value after reading. */
typedef enum sl_option_id {
    SL_OPT_HELP,
    SL_OPT_JSON,
    SL_OPT_GRACE,
    SL_OPT_FENCE, /* from here on in the order of sl_budget_part */
    SL_OPT_SETTLE,
    SL_OPT_ABORT,
    SL_OPT_FLUSH,
    SL_OPT_CLOSE,
    SL_OPT_RESERVE,
    SL_OPT_SEGMENT,
    SL_OPT_FROM,
    SL_OPT_LIMIT,
    SL_OPT_STREAM,
    SL_OPT_DATA,
    SL_OPT_DEAD_SHARE,
    SL_OPT_PROGRESS,
    SL_OPT_COUNT_
} sl_option_id;
extern const sl_option sl_options[SL_OPT_COUNT_];

#endif
