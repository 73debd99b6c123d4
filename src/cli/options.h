/* cli/options.h — every option of every command: one table, and the reader that works from it.
 *
 * A row says all there is to know about an option: names, type, default, environment variable, bounds, help,
 * and which commands take it. Reading, --help, manual, completion and the configuration file come from the row, so
 * they cannot disagree. A default is text that goes through the same reader as what a user types.
 *
 * What counts, strongest first: command line, environment, file (cli/config.h), default. The reader never prints; a
 * complaint is a whole sentence that the caller shows, with the user's words made safe for a terminal (cli/print.h).
 *
 * Two rows may have the same name when no command takes both: --data is a flag of one command and a folder of another. */
#ifndef SL_CLI_OPTIONS_H
#define SL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

typedef enum sl_option_kind {
    SL_OPTION_FLAG,     /* takes no argument; elsewhere, and as --name=no, 1, true, yes or 0, false, no */
    SL_OPTION_TEXT,     /* bounds are bytes */
    SL_OPTION_NUMBER,   /* a whole number; bounds are its values */
    SL_OPTION_DURATION, /* "30s", see base/str.h; bounds are nanoseconds */
    SL_OPTION_CHOICE,   /* one of `choices`; the number is its place in the list, from 0 */
} sl_option_kind;

/* What a shell offers when it completes a word. */
typedef enum sl_completes {
    SL_COMPLETES_NOTHING, /* only the user knows it; choices are offered without being asked for here */
    SL_COMPLETES_FILE,
    SL_COMPLETES_FOLDER,
    SL_COMPLETES_COMMAND,
} sl_completes;

typedef struct sl_option {
    const char *name; /* without the dashes */
    char letter;      /* the short form, or 0 */
    sl_option_kind kind;
    const char *argument;     /* what --help calls the value; NULL for a flag */
    const char *choices;      /* of a choice: "sync|os" */
    const char *default_text; /* NULL: unset unless given */
    const char *environment; /* SLUICE_ and the name; NULL: command line only, neither environment nor file */
    uint64_t min, max;       /* both allowed; unused for a flag and a choice */
    uint64_t commands;       /* bits of the commands that take it, see cli/commands.h */
    bool repeats;            /* may be given several times: walk value->all. Not for a flag */
    bool is_address;         /* may have a password in it, which is not shown */
    bool of_member;          /* about one member: may stand in [COMMAND NAME] too, see cli/config.h */
    bool is_in_file;         /* may stand in a file although its variable means something else elsewhere */
    sl_completes completes;
    const char *help; /* a phrase without a full stop; the printer breaks it into lines */
    const char *more; /* a paragraph for the manual, or NULL */
} sl_option;

typedef enum sl_option_source {
    SL_OPTION_UNSET,
    SL_OPTION_FROM_DEFAULT,
    SL_OPTION_FROM_FILE,
    SL_OPTION_FROM_ENVIRONMENT,
    SL_OPTION_FROM_COMMAND_LINE,
} sl_option_source;

/* One value of an option that repeats. All of them come from the same source: the strongest replaces the others. */
typedef struct sl_option_repeat {
    const char *text;
    uint64_t number;
    const struct sl_option_repeat *next; /* in the order given; NULL: the last */
} sl_option_repeat;

typedef struct sl_option_value {
    sl_option_source source;
    const char *text; /* as given, the last one; borrowed from argv, the environment, the file or the table */
    uint64_t number;  /* flag: 0 or 1; duration: nanoseconds; choice: its place; text: its bytes */
    const sl_option_repeat *all; /* an option that repeats: its first value; else NULL */
    unsigned line;               /* from a file: where */
} sl_option_value;

typedef const char *sl_option_environment(const char *name);

typedef struct sl_option_table {
    const sl_option *rows;
    size_t row_count;
    uint64_t command; /* one bit: rows of other commands are unknown options here */
} sl_option_table;

enum {
    SL_COMPLAINT_BYTES = 512,
    SL_OPTION_ROWS_MAX = 256,    /* of a table */
    SL_OPTION_REPEATS_MAX = 256, /* of all options of one call together; a command line is no database */
    SL_OPTION_BOUNDS_BYTES = 160,
    SL_OPTION_LABEL_BYTES = 64,
};
typedef struct sl_complaint {
    char text[SL_COMPLAINT_BYTES]; /* a sentence with its full stop; cut when longer */
} sl_complaint;

/* One call on its way from words to values. The caller fills the first part. */
typedef struct sl_option_reading {
    const sl_option_table *table;
    sl_option_environment *environment;
    char **words; /* argv behind the command. Those that are no options move to the front */
    size_t word_count;
    sl_option_value *values; /* room for one for each row */

    size_t plain_count; /* how many words were no options */
    sl_complaint complaint;
    sl_option_repeat repeats[SL_OPTION_REPEATS_MAX]; /* what value->all points into */
    size_t repeat_count;
} sl_option_reading;

/* Reads command line, environment and defaults. "--" ends the options.
 *   SL_OK           values, words and plain_count are set
 *   SL_ERR_INVALID  complaint says what is wrong and names the nearest option; the values are undefined */
sl_err sl_options_read(sl_option_reading *reading);

/* Does the table's command take the option? May it be set in the environment and in a file? */
bool sl_option_belongs(const sl_option_table *table, const sl_option *row);
bool sl_option_is_setting(const sl_option *row);

/* Checks kind and bounds and stores the value; one more for an option that repeats, unless the source is a stronger one
 * than before. `from` is how the user knows the option: "--grace", the variable's name, "sluice.ini, line 3: grace".
 *   SL_OK, or SL_ERR_INVALID with the complaint */
sl_err sl_option_take(sl_option_reading *reading, const sl_option *row, const char *from, const char *text,
                      sl_option_source source);

/* Only the check; for values that will not be used. */
sl_err sl_option_check(const sl_option *row, const char *from, const char *text, sl_complaint *ret_complaint);

/* Was this flag asked for, as far as can be told before anything is read? Looks for its name or letter among the
 * words up to "--", then at its variable. So --help and the form of a complaint do not depend on whether the
 * rest of the line is right. */
bool sl_options_asks_for(const sl_option *flag, sl_option_environment *environment, char *const *words,
                         size_t word_count);

/* Walks "sync|os": the next word and true, or false at the end. *rest is moved on. */
bool sl_choice_next(const char **rest, sl_str *ret_word);

/* --- what is shown of a row: cli/option_help.c --- */

/* "1s to 5m", "1 to 64 bytes", "sync or os": as a user would type it. Empty for a flag. */
const char *sl_option_bounds(const sl_option *row, char buffer[static SL_OPTION_BOUNDS_BYTES]);

/* "-g, --grace TIME"; four blanks stand for a letter that it has not. Returns the bytes. */
size_t sl_option_label(const sl_option *row, char text[static SL_OPTION_LABEL_BYTES]);

/* Writes the options of the table's command, aligned, with default, bounds and variable. */
void sl_options_help(const sl_option_table *table, FILE *out);

/* The options of sluice. The id is the index of the row, and of the value after reading. */
typedef enum sl_option_id {
    SL_OPT_HELP,
    SL_OPT_JSON,
    SL_OPT_CONFIG,
    SL_OPT_PRINT_CONFIG,
    SL_OPT_INTO,
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
    SL_OPT_HOST, /* of serve, up to SL_OPT_LOG_FORMAT */
    SL_OPT_PORT,
    SL_OPT_ADMIN_HOST,
    SL_OPT_ADMIN_PORT,
    SL_OPT_ADVERTISE_HOST,
    SL_OPT_DATA_FOLDER,
    SL_OPT_DURABILITY,
    SL_OPT_INSECURE,
    SL_OPT_ANONYMOUS,
    SL_OPT_TLS_CERTIFICATE,
    SL_OPT_TLS_KEY,
    SL_OPT_SERVE_GRACE,
    SL_OPT_CONNECTIONS_MAX,
    SL_OPT_APPEND_BYTES_MAX,
    SL_OPT_EVENT_BYTES_MAX,
    SL_OPT_WRITE_TIMEOUT,
    SL_OPT_IDLE_TIMEOUT,
    SL_OPT_LOG_LEVEL,
    SL_OPT_LOG_FORMAT,
    SL_OPT_SERVER, /* of the commands that talk to a server, up to SL_OPT_NEW_PASSWORD_FILE */
    SL_OPT_USER,
    SL_OPT_PASSWORD_FILE,
    SL_OPT_TIMEOUT,
    SL_OPT_CA,
    SL_OPT_TYPE, /* of append */
    SL_OPT_EVENT_DATA,
    SL_OPT_FILE,
    SL_OPT_LINES,
    SL_OPT_METADATA,
    SL_OPT_EVENT_ID,
    SL_OPT_EXPECT,
    SL_OPT_CONTENT_TYPE,
    SL_OPT_ALL, /* of read */
    SL_OPT_FOLLOW,
    SL_OPT_START,
    SL_OPT_EVENT_COUNT,
    SL_OPT_BACKWARDS,
    SL_OPT_RESOLVE_LINKS,
    SL_OPT_FILTER_STREAM,
    SL_OPT_FILTER_TYPE,
    SL_OPT_REGEX,
    SL_OPT_TOMBSTONE, /* of stream */
    SL_OPT_YES,
    SL_OPT_SET,
    SL_OPT_FULL_NAME, /* of user */
    SL_OPT_GROUP,
    SL_OPT_ADMIN,
    SL_OPT_OPS,
    SL_OPT_USER_FOLDER,
    SL_OPT_NEW_PASSWORD_FILE,
    SL_OPT_CREATE_START, /* of group create, in the order of cli/group_settings.h */
    SL_OPT_CREATE_STRATEGY,
    SL_OPT_CREATE_MESSAGE_TIMEOUT,
    SL_OPT_CREATE_MAX_RETRY_COUNT,
    SL_OPT_CREATE_MAX_INTERRUPTS,
    SL_OPT_CREATE_MAX_KILLS,
    SL_OPT_CREATE_MAX_SUBSCRIBER_COUNT,
    SL_OPT_CREATE_RESOLVE_LINKS,
    SL_OPT_CREATE_HISTORY_BUFFER_SIZE,
    SL_OPT_CREATE_LIVE_BUFFER_SIZE,
    SL_OPT_CREATE_READ_BATCH_SIZE,
    SL_OPT_CREATE_CHECKPOINT_AFTER,
    SL_OPT_CREATE_MIN_CHECKPOINT_COUNT,
    SL_OPT_CREATE_MAX_CHECKPOINT_COUNT,
    SL_OPT_CREATE_EXTRA_STATISTICS,
    SL_OPT_UPDATE_START, /* of group update, which has no defaults; the same order */
    SL_OPT_UPDATE_STRATEGY,
    SL_OPT_UPDATE_MESSAGE_TIMEOUT,
    SL_OPT_UPDATE_MAX_RETRY_COUNT,
    SL_OPT_UPDATE_MAX_INTERRUPTS,
    SL_OPT_UPDATE_MAX_KILLS,
    SL_OPT_UPDATE_MAX_SUBSCRIBER_COUNT,
    SL_OPT_UPDATE_RESOLVE_LINKS,
    SL_OPT_UPDATE_HISTORY_BUFFER_SIZE,
    SL_OPT_UPDATE_LIVE_BUFFER_SIZE,
    SL_OPT_UPDATE_READ_BATCH_SIZE,
    SL_OPT_UPDATE_CHECKPOINT_AFTER,
    SL_OPT_UPDATE_MIN_CHECKPOINT_COUNT,
    SL_OPT_UPDATE_MAX_CHECKPOINT_COUNT,
    SL_OPT_UPDATE_EXTRA_STATISTICS,
    SL_OPT_INTERVAL,        /* of group watch */
    SL_OPT_CONSUMER_STREAM, /* of consumer, up to SL_OPT_NEWCOMERS */
    SL_OPT_CONSUMER_GROUP,
    SL_OPT_CONSUMER_NAME,
    SL_OPT_LABEL,
    SL_OPT_WAIT,
    SL_OPT_REASON,
    SL_OPT_DEADLINE,
    SL_OPT_HAND_BACK,
    SL_OPT_NEWCOMERS,
    SL_OPT_STOP_AT,   /* of parked */
    SL_OPT_WORK_FROM, /* of work, up to SL_OPT_EXPLAIN */
    SL_OPT_WORK_EXEC, /* the handlers, in the order of sl_work_handler_kind */
    SL_OPT_WORK_LINES,
    SL_OPT_WORK_HTTP,
    SL_OPT_WORK_APPEND,
    SL_OPT_WORK_NAME,
    SL_OPT_WORK_LABEL,
    SL_OPT_SLOTS,
    SL_OPT_WINDOW,
    SL_OPT_WORK_TIMEOUT,
    SL_OPT_HOLD_MAX,
    SL_OPT_HEARTBEAT,
    SL_OPT_FINISH_UNSTARTED,
    SL_OPT_RETRY,
    SL_OPT_RETRY_FIRST,
    SL_OPT_RETRY_STEP,
    SL_OPT_RETRY_MAX,
    SL_OPT_ATTEMPTS,
    SL_OPT_BREAKER_FAILURES,
    SL_OPT_COOL_DOWN,
    SL_OPT_KEY,
    SL_OPT_RATE,
    SL_OPT_CONCURRENT_PER_KEY,
    SL_OPT_ACK_FILE,
    SL_OPT_RECONNECT,
    SL_OPT_GIVE_UP,
    SL_OPT_HEADER,
    SL_OPT_METHOD,
    SL_OPT_STATUS_HOST, /* from here on about the whole process */
    SL_OPT_STATUS_PORT,
    SL_OPT_NO_STATUS,
    SL_OPT_REPORT,
    SL_OPT_RESTARTS,
    SL_OPT_NOTIFY,
    SL_OPT_EXPLAIN,
    SL_OPT_COUNT_
} sl_option_id;
extern const sl_option sl_options[SL_OPT_COUNT_];

#endif
