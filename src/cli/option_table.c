/* cli/option_table.c — the options of sluice, all of them. cli/options.h says what each column means. */
#include <assert.h>

#include <sluice.h>

#include "cli/commands.h"
#include "cli/config.h"
#include "cli/options.h"
#include "client/address.h"
#include "core/budget.h"
#include "server/auth.h"
#include "store/store.h"
#include "worker/worker.h"

static_assert(SL_OPT_RESERVE - SL_OPT_FENCE == SL_BUDGET_RESERVE - SL_BUDGET_FENCE,
              "an option for each part");
static_assert(SL_OPT_SETTLE - SL_OPT_FENCE == SL_BUDGET_SETTLE, "the options are in the order of the parts");

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS      (1000 * MILLISECOND_NS)

/* A part of the shutdown budget, with the bounds of the core: what the help says is what will be accepted. */
#define PART(part, option_name, text)                                                                        \
    {                                                                                                        \
        .name = option_name, .kind = SL_OPTION_DURATION, .argument = "TIME", .environment = "SLUICE_" #part, \
        .min = SL_BUDGET_##part##_LEAST_MS * MILLISECOND_NS, .max = SL_BUDGET_GRACE_MAX_NS,                  \
        .commands = SL_COMMAND_BUDGET | SL_COMMAND_WORK, .help = text                                        \
    }

/* A setting of a group: with its default for a new one, and without, because a group that is there has a value already. */
#define SETTING(setting, option_name, option_kind, option_argument, least, most, usual, text)                \
    [SL_OPT_CREATE_##setting] = { .name = option_name,                                                       \
                                  .kind = option_kind,                                                       \
                                  .argument = option_argument,                                               \
                                  .default_text = usual,                                                     \
                                  .min = least,                                                              \
                                  .max = most,                                                               \
                                  .commands = SL_COMMAND_GROUP_CREATE,                                       \
                                  .help = text },                                                            \
    [SL_OPT_UPDATE_##setting] = { .name = option_name,                                                       \
                                  .kind = option_kind,                                                       \
                                  .argument = option_argument,                                               \
                                  .min = least,                                                              \
                                  .max = most,                                                               \
                                  .commands = SL_COMMAND_GROUP_UPDATE,                                       \
                                  .help = text }
#define COUNT_SETTING(setting, option_name, least, usual, text)                                              \
    SETTING(setting, option_name, SL_OPTION_NUMBER, "N", least, INT32_MAX, usual, text)
#define TIME_SETTING(setting, option_name, least, usual, text)                                               \
    SETTING(setting, option_name, SL_OPTION_DURATION, "TIME", least, INT32_MAX *MILLISECOND_NS, usual, text)

/* An option of work: what the macro has is about one worker, what it has not about the process. */
#define OF_WORKER(option_name, variable)                                                                     \
    .name = option_name, .environment = variable, .commands = SL_COMMAND_WORK, .of_member = true
#define OF_CREW(option_name, variable)                                                                       \
    .name = option_name, .environment = variable, .commands = SL_COMMAND_WORK
#define TEXT(name_of_it, least, most)                                                                        \
    .kind = SL_OPTION_TEXT, .argument = name_of_it, .min = least, .max = most
#define COUNT(least, most, usual)                                                                            \
    .kind = SL_OPTION_NUMBER, .argument = "N", .min = least, .max = most, .default_text = usual
#define TIME(least, most, usual)                                                                             \
    .kind = SL_OPTION_DURATION, .argument = "TIME", .min = least, .max = most, .default_text = usual
#define HOUR_NS       (3600 * SECOND_NS)
#define WORK_TEXT_MAX 8192

#define STRATEGIES "RoundRobin|DispatchToSingle|Pinned|PinnedByCorrelation"

static const char strategy_help[] = "which consumer gets the next message";
static const char strategy_more[] = "RoundRobin: in turn. DispatchToSingle: one of them until it has enough. "
                                    "Pinned: messages of one stream go "
                                    "to one consumer, and wait while another still holds one of that stream. "
                                    "PinnedByCorrelation: the same for "
                                    "messages with the same $correlationId in their metadata.";

const sl_option sl_options[SL_OPT_COUNT_] = {
    /* clang-format off */
    [SL_OPT_HELP] = {
        .name = "help", .letter = 'h', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_EVERY,
        .help = "explain this command",
    },
    [SL_OPT_JSON] = {
        .name = "json", .letter = 'j', .kind = SL_OPTION_FLAG,
        .commands = SL_COMMAND_VERSION | SL_COMMAND_BUDGET | SL_COMMAND_JOURNAL | SL_COMMAND_SERVE | SL_COMMAND_CLIENT |
                    SL_COMMAND_WORK,
        .environment = "SLUICE_JSON",
        .help = "print JSON, for programs",
    },
    [SL_OPT_CONFIG] = {
        .name = "config", .letter = 'c', .kind = SL_OPTION_TEXT, .argument = "FILE", .commands = SL_COMMAND_EVERY & ~SL_COMMAND_ABOUT,
        .environment = "SLUICE_CONFIG", .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "read options from this file too",
        .more = "The file has a section for each command, [serve] for example, and lines of the form NAME = VALUE with the "
                "names of the long options. Lines before the first section are for all commands that have such an option. "
                "What the command line and the environment say is stronger. No file is read unless it is named.",
    },
    [SL_OPT_PRINT_CONFIG] = {
        .name = "print-config", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_EVERY & ~SL_COMMAND_ABOUT,
        .help = "show all settings and where each comes from, as a file for --config, and do nothing",
    },
    [SL_OPT_INTO] = {
        .name = "into", .kind = SL_OPTION_TEXT, .argument = "FOLDER", .commands = SL_COMMAND_MANUAL,
        .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FOLDER,
        .help = "write all pages into this folder",
    },
    [SL_OPT_GRACE] = {
        .name = "grace", .letter = 'g', .kind = SL_OPTION_DURATION, .argument = "TIME",
        .commands = SL_COMMAND_BUDGET | SL_COMMAND_WORK, .default_text = "30s", .environment = "SLUICE_GRACE",
        .min = SL_BUDGET_GRACE_LEAST_MS * MILLISECOND_NS, .max = SL_BUDGET_GRACE_MAX_NS,
        .help = "from SIGTERM to SIGKILL, as the orchestrator has it",
    },
    /* clang-format on */
    [SL_OPT_FENCE] = PART(FENCE, "fence", "the source confirms that nothing new will come"),
    [SL_OPT_SETTLE] = PART(SETTLE, "settle", "work that was started finishes"),
    [SL_OPT_ABORT] = PART(ABORT, "abort", "handlers are ended, what is left is released"),
    [SL_OPT_FLUSH] = PART(FLUSH, "flush", "acknowledgements are confirmed"),
    [SL_OPT_CLOSE] = PART(CLOSE, "close", "channels, producers and connections are closed"),
    [SL_OPT_RESERVE] = PART(RESERVE, "reserve", "the report and the way out"),
    /* clang-format off */
    [SL_OPT_SEGMENT] = {
        .name = "segment", .letter = 's', .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = UINT64_MAX,
        .help = "only this segment: its number, which its file name has in hexadecimal",
    },
    [SL_OPT_FROM] = {
        .name = "from", .letter = 'f', .kind = SL_OPTION_NUMBER, .argument = "POSITION", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 0, .max = UINT64_MAX,
        .help = "begin with this position",
    },
    [SL_OPT_LIMIT] = {
        .name = "count", .letter = 'n', .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = UINT64_MAX,
        .help = "end after so many records",
    },
    [SL_OPT_STREAM] = {
        .name = "stream", .kind = SL_OPTION_TEXT, .argument = "NAME", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = SL_STREAM_NAME_BYTES_MAX,
        .help = "only events of this stream",
    },
    [SL_OPT_DATA] = {
        .name = "data", .letter = 'd', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_JOURNAL_DUMP,
        .help = "show data and metadata of events, and what is in states of groups",
    },
    [SL_OPT_DEAD_SHARE] = {
        .name = "dead-share", .kind = SL_OPTION_NUMBER, .argument = "PERCENT", .commands = SL_COMMAND_SCAVENGE,
        .default_text = "10", .min = 0, .max = 100,
        .help = "rewrite segments of which at least so much is dead; 0: all with anything dead",
    },
    [SL_OPT_PROGRESS] = {
        .name = "progress", .letter = 'p', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_JOURNAL | SL_COMMAND_APPEND,
        .help = "show progress also when the error output is no terminal",
    },
    /* clang-format on */
    /* clang-format off */
    [SL_OPT_HOST] = {
        .name = "host", .kind = SL_OPTION_TEXT, .argument = "ADDRESS", .commands = SL_COMMAND_SERVE,
        .default_text = "127.0.0.1", .environment = "SLUICE_HOST", .min = 1, .max = 255,
        .help = "where clients connect to; other machines need TLS and users, or --insecure",
        .more = "An address of this machine or a name that stands for one; 0.0.0.0 and :: are all of them. An address that other "
                "machines can reach is refused unless --tls-certificate and --tls-key are given and a user exists, or --insecure is.",
    },
    [SL_OPT_PORT] = {
        .name = "port", .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_SERVE,
        .default_text = "2113", .environment = "SLUICE_PORT", .min = 0, .max = 65535,
        .help = "the port for clients; 0: any that is free",
    },
    [SL_OPT_ADMIN_HOST] = {
        .name = "admin-host", .kind = SL_OPTION_TEXT, .argument = "ADDRESS", .commands = SL_COMMAND_SERVE,
        .default_text = "127.0.0.1", .environment = "SLUICE_ADMIN_HOST", .min = 1, .max = 255,
        .help = "where the admin pages are shown",
        .more = "They ask nobody for a password, so an address that other machines can reach is refused without --insecure.",
    },
    [SL_OPT_ADMIN_PORT] = {
        .name = "admin-port", .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_SERVE,
        .default_text = "2114", .environment = "SLUICE_ADMIN_PORT", .min = 0, .max = 65535,
        .help = "the port for the admin pages; 0: any that is free",
    },
    [SL_OPT_ADVERTISE_HOST] = {
        .name = "advertise-host", .kind = SL_OPTION_TEXT, .argument = "NAME", .commands = SL_COMMAND_SERVE,
        .environment = "SLUICE_ADVERTISE_HOST", .min = 1, .max = 255,
        .help = "what clients that ask for the cluster are told to connect to; else what they have used",
        .more = "A name or address, with :PORT behind it where clients need another port than the server's own. It is needed only "
                "where clients cannot come back by the address that they have come by.",
    },
    [SL_OPT_DATA_FOLDER] = {
        .name = "data", .kind = SL_OPTION_TEXT, .argument = "FOLDER", .commands = SL_COMMAND_SERVE,
        .default_text = "sluice-data", .environment = "SLUICE_DATA", .min = 1, .max = 4095, .completes = SL_COMPLETES_FOLDER,
        .help = "where everything is kept; made if it is not there",
    },
    [SL_OPT_DURABILITY] = {
        .name = "durability", .kind = SL_OPTION_CHOICE, .argument = "WHEN", .choices = "sync|os", .commands = SL_COMMAND_SERVE,
        .default_text = "sync", .environment = "SLUICE_DURABILITY",
        .help = "when an append is confirmed: the disk has it, or the operating system",
    },
    [SL_OPT_INSECURE] = {
        .name = "insecure", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_SERVE, .environment = "SLUICE_INSECURE",
        .help = "ask nobody for a password, and allow any address without TLS",
    },
    [SL_OPT_ANONYMOUS] = {
        .name = "anonymous", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_SERVE, .environment = "SLUICE_ANONYMOUS",
        .help = "callers without a password may do what stream ACLs allow to everybody",
    },
    [SL_OPT_TLS_CERTIFICATE] = {
        .name = "tls-certificate", .kind = SL_OPTION_TEXT, .argument = "FILE", .commands = SL_COMMAND_SERVE,
        .environment = "SLUICE_TLS_CERTIFICATE", .min = 1, .max = 4095, .completes = SL_COMPLETES_FILE,
        .help = "PEM: the certificate, then its chain; read again on SIGHUP",
    },
    [SL_OPT_TLS_KEY] = {
        .name = "tls-key", .kind = SL_OPTION_TEXT, .argument = "FILE", .commands = SL_COMMAND_SERVE,
        .environment = "SLUICE_TLS_KEY", .min = 1, .max = 4095, .completes = SL_COMPLETES_FILE,
        .help = "PEM: the key of the certificate, without a passphrase",
    },
    [SL_OPT_SERVE_GRACE] = {
        .name = "grace", .letter = 'g', .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_SERVE,
        .default_text = "10s", .environment = "SLUICE_GRACE",
        .min = SL_BUDGET_GRACE_LEAST_MS * MILLISECOND_NS, .max = SL_BUDGET_GRACE_MAX_NS,
        .help = "from SIGTERM to SIGKILL, as the orchestrator has it",
    },
    [SL_OPT_CONNECTIONS_MAX] = {
        .name = "connections-max", .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_SERVE,
        .default_text = "10000", .environment = "SLUICE_CONNECTIONS_MAX", .min = 1, .max = 1000000,
        .help = "more connections at a time are refused",
    },
    [SL_OPT_APPEND_BYTES_MAX] = {
        .name = "append-bytes-max", .kind = SL_OPTION_NUMBER, .argument = "BYTES", .commands = SL_COMMAND_SERVE,
        .default_text = "33554432", .environment = "SLUICE_APPEND_BYTES_MAX", .min = 1, .max = SL_BATCH_BYTES_MAX,
        .help = "all events of one append together",
    },
    [SL_OPT_EVENT_BYTES_MAX] = {
        .name = "event-bytes-max", .kind = SL_OPTION_NUMBER, .argument = "BYTES", .commands = SL_COMMAND_SERVE,
        .default_text = "16777216", .environment = "SLUICE_EVENT_BYTES_MAX", .min = 1, .max = SL_EVENT_BYTES_MAX,
        .help = "data, metadata and type of one event",
    },
    [SL_OPT_WRITE_TIMEOUT] = {
        .name = "write-timeout", .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_SERVE,
        .default_text = "2s", .environment = "SLUICE_WRITE_TIMEOUT", .min = 10 * MILLISECOND_NS, .max = 3600 * SECOND_NS,
        .help = "an append that is not durable by then is answered with a timeout",
    },
    [SL_OPT_IDLE_TIMEOUT] = {
        .name = "idle-timeout", .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_SERVE,
        .default_text = "10m", .environment = "SLUICE_IDLE_TIMEOUT", .min = 0, .max = 30 * 24 * 3600 * SECOND_NS,
        .help = "a connection without any call is closed after this time; 0: never",
    },
    [SL_OPT_LOG_LEVEL] = {
        .name = "log-level", .kind = SL_OPTION_CHOICE, .argument = "LEVEL", .choices = "debug|info|warn|error",
        .commands = SL_COMMAND_SERVE | SL_COMMAND_WORK, .default_text = "info", .environment = "SLUICE_LOG_LEVEL",
        .help = "what is written to the log at least",
    },
    [SL_OPT_LOG_FORMAT] = {
        .name = "log-format", .kind = SL_OPTION_CHOICE, .argument = "FORMAT", .choices = "auto|text|json",
        .commands = SL_COMMAND_SERVE | SL_COMMAND_WORK, .default_text = "auto", .environment = "SLUICE_LOG_FORMAT",
        .help = "how the log looks; auto: text on a terminal, JSON elsewhere",
    },
    /* --- commands that talk to a server --- */
    [SL_OPT_SERVER] = {
        .name = "server", .letter = 's', .kind = SL_OPTION_TEXT, .argument = "ADDRESS", .commands = SL_COMMAND_CLIENT,
        .default_text = "127.0.0.1:2113", .environment = "SLUICE_SERVER", .min = 1, .max = SL_CLIENT_ADDRESS_BYTES_MAX, .is_address = true,
        .help = "the server: HOST, HOST:PORT or a connection string",
        .more = "A connection string is SCHEME://[USER[:PASSWORD]@]HOST[:PORT][?OPTION=VALUE&...]. SCHEME is sluice, which speaks "
                "without TLS unless it says ?tls=true, or one that clients of KurrentDB use (kurrentdb, kdb, kurrent, esdb), which "
                "speaks TLS unless it says ?tls=false. Other options: tlsCAFile, tlsVerifyCert, connectionName. Special characters "
                "of user and password are written as %XX.",
    },
    [SL_OPT_USER] = {
        .name = "user", .letter = 'u', .kind = SL_OPTION_TEXT, .argument = "NAME",
        .commands = SL_COMMAND_CLIENT | SL_COMMAND_WORK, .of_member = true,
        .environment = "SLUICE_USER", .min = 1, .max = SL_CLIENT_USER_BYTES_MAX,
        .help = "who asks; the password comes from $SLUICE_PASSWORD or --password-file",
        .more = "Without them a command asks for it at the terminal, if there is one. A worker never asks.",
    },
    [SL_OPT_PASSWORD_FILE] = {
        .name = "password-file", .kind = SL_OPTION_TEXT, .argument = "FILE",
        .commands = SL_COMMAND_CLIENT | SL_COMMAND_WORK, .of_member = true,
        .environment = "SLUICE_PASSWORD_FILE", .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "its first line is the password of --user",
    },
    [SL_OPT_TIMEOUT] = {
        .name = "timeout", .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_CLIENT,
        .default_text = "10s", .environment = "SLUICE_TIMEOUT", .min = 1 * MILLISECOND_NS, .max = 24 * 3600 * SECOND_NS,
        .help = "to connect, and for an answer; reading and --lines may take longer when the first answer has come",
    },
    [SL_OPT_CA] = {
        .name = "ca", .kind = SL_OPTION_TEXT, .argument = "FILE",
        .commands = SL_COMMAND_CLIENT | SL_COMMAND_WORK, .of_member = true,
        .environment = "SLUICE_CA", .min = 1, .max = SL_CLIENT_FILE_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "speak TLS, and trust servers whose certificates were signed by these authorities (PEM)",
    },
    [SL_OPT_TYPE] = {
        .name = "type", .letter = 't', .kind = SL_OPTION_TEXT, .argument = "TYPE", .commands = SL_COMMAND_APPEND,
        .min = 1, .max = SL_EVENT_TYPE_BYTES_MAX,
        .help = "what kind of event it is",
    },
    [SL_OPT_EVENT_DATA] = {
        .name = "data", .letter = 'd', .kind = SL_OPTION_TEXT, .argument = "TEXT", .commands = SL_COMMAND_APPEND,
        .min = 0, .max = SL_EVENT_BYTES_MAX,
        .help = "the data of the event",
    },
    [SL_OPT_FILE] = {
        .name = "file", .letter = 'f', .kind = SL_OPTION_TEXT, .argument = "FILE", .commands = SL_COMMAND_APPEND,
        .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "the content of this file is the data; -: what is piped in",
    },
    [SL_OPT_LINES] = {
        .name = "lines", .letter = 'l', .kind = SL_OPTION_TEXT, .argument = "FILE", .commands = SL_COMMAND_APPEND,
        .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "one event for each line of this file that is not empty; -: what is piped in",
    },
    [SL_OPT_METADATA] = {
        .name = "metadata", .letter = 'm', .kind = SL_OPTION_TEXT, .argument = "JSON", .commands = SL_COMMAND_APPEND,
        .min = 1, .max = SL_EVENT_BYTES_MAX,
        .help = "the metadata of the event, with --lines of each",
    },
    [SL_OPT_EVENT_ID] = {
        .name = "id", .kind = SL_OPTION_TEXT, .argument = "UUID", .commands = SL_COMMAND_APPEND, .min = 1, .max = 64,
        .help = "the id of the event; else a new one is made",
    },
    [SL_OPT_EXPECT] = {
        .name = "expect", .letter = 'e', .kind = SL_OPTION_TEXT, .argument = "WHAT",
        .commands = SL_COMMAND_APPEND | SL_COMMAND_STREAM_DELETE | SL_COMMAND_STREAM_METADATA, .default_text = "any", .min = 1, .max = 32,
        .help = "where the stream has to be: any, none, exists, or the revision of its last event",
    },
    [SL_OPT_CONTENT_TYPE] = {
        .name = "content-type", .kind = SL_OPTION_CHOICE, .argument = "TYPE", .choices = "auto|json|binary",
        .commands = SL_COMMAND_APPEND, .default_text = "auto",
        .help = "what the data is; auto: JSON if it is",
    },
    [SL_OPT_ALL] = {
        .name = "all", .letter = 'a', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_READ,
        .help = "events of all streams",
    },
    [SL_OPT_FOLLOW] = {
        .name = "follow", .letter = 'f', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_READ,
        .help = "go on with events as they come",
    },
    [SL_OPT_START] = {
        .name = "from", .kind = SL_OPTION_TEXT, .argument = "WHERE", .commands = SL_COMMAND_READ, .min = 1, .max = 32,
        .help = "start, end, or a revision, with --all a position; else the start, backwards the end",
    },
    [SL_OPT_EVENT_COUNT] = {
        .name = "count", .letter = 'n', .kind = SL_OPTION_NUMBER, .argument = "N",
        .commands = SL_COMMAND_READ | SL_COMMAND_PARKED_LIST,
        .min = 1, .max = INT64_MAX,
        .help = "end after so many events",
    },
    [SL_OPT_BACKWARDS] = {
        .name = "backwards", .letter = 'b', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_READ,
        .help = "the newest event first",
    },
    [SL_OPT_RESOLVE_LINKS] = {
        .name = "resolve-links", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_READ,
        .help = "show the events that links point to",
    },
    [SL_OPT_FILTER_STREAM] = {
        .name = "filter-stream", .kind = SL_OPTION_TEXT, .argument = "PREFIX", .repeats = true,
        .commands = SL_COMMAND_READ | SL_COMMAND_GROUP_CREATE,
        .min = 1, .max = SL_STREAM_NAME_BYTES_MAX,
        .help = "of all streams only those whose names begin with this",
    },
    [SL_OPT_FILTER_TYPE] = {
        .name = "filter-type", .kind = SL_OPTION_TEXT, .argument = "PREFIX", .repeats = true,
        .commands = SL_COMMAND_READ | SL_COMMAND_GROUP_CREATE,
        .min = 1, .max = SL_EVENT_TYPE_BYTES_MAX,
        .help = "of all streams only events whose types begin with this",
    },
    [SL_OPT_REGEX] = {
        .name = "regex", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_READ | SL_COMMAND_GROUP_CREATE,
        .help = "the filter is a regular expression",
    },
    [SL_OPT_TOMBSTONE] = {
        .name = "tombstone", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_STREAM_DELETE,
        .help = "for ever; needs --yes",
    },
    [SL_OPT_YES] = {
        .name = "yes", .letter = 'y', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_STREAM_DELETE,
        .help = "yes, I know that this cannot be taken back",
    },
    [SL_OPT_SET] = {
        .name = "set", .kind = SL_OPTION_TEXT, .argument = "JSON", .commands = SL_COMMAND_STREAM_METADATA,
        .min = 1, .max = SL_METADATA_BYTES_MAX,
        .help = "replace the metadata by this object",
    },
    [SL_OPT_FULL_NAME] = {
        .name = "full-name", .kind = SL_OPTION_TEXT, .argument = "TEXT", .commands = SL_COMMAND_USER_ADD,
        .min = 1, .max = SL_FULL_NAME_BYTES_MAX,
        .help = "the name as people know it",
    },
    [SL_OPT_GROUP] = {
        .name = "group", .kind = SL_OPTION_TEXT, .argument = "NAME", .commands = SL_COMMAND_USER_ADD, .repeats = true,
        .min = 1, .max = SL_LOGIN_NAME_BYTES_MAX,
        .help = "a group that the user is in",
    },
    [SL_OPT_ADMIN] = {
        .name = "admin", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_USER_ADD,
        .help = "may do everything: the group $admins",
    },
    [SL_OPT_OPS] = {
        .name = "ops", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_USER_ADD,
        .help = "may run the server: the group $ops",
    },
    [SL_OPT_USER_FOLDER] = {
        .name = "data", .kind = SL_OPTION_TEXT, .argument = "FOLDER", .commands = SL_COMMAND_USER,
        .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FOLDER,
        .help = "do it in the data folder of a server that does not run",
    },
    [SL_OPT_NEW_PASSWORD_FILE] = {
        .name = "new-password-file", .kind = SL_OPTION_TEXT, .argument = "FILE",
        .commands = SL_COMMAND_USER_ADD | SL_COMMAND_USER_PASSWD,
        .min = 1, .max = SL_CONFIG_PATH_BYTES_MAX, .completes = SL_COMPLETES_FILE,
        .help = "its first line is the new password",
    },
    /* --- groups --- */
    [SL_OPT_CREATE_STRATEGY] = {
        .name = "strategy", .kind = SL_OPTION_CHOICE, .argument = "NAME", .choices = STRATEGIES,
        .commands = SL_COMMAND_GROUP_CREATE, .default_text = "RoundRobin", .help = strategy_help, .more = strategy_more,
    },
    [SL_OPT_UPDATE_STRATEGY] = {
        .name = "strategy", .kind = SL_OPTION_CHOICE, .argument = "NAME", .choices = STRATEGIES,
        .commands = SL_COMMAND_GROUP_UPDATE, .help = strategy_help, .more = strategy_more,
    },
    /* clang-format on */
    SETTING(START, "start", SL_OPTION_TEXT, "WHERE", 1, 32, "end",
            "the first event for a group that has settled none yet: start, end, or a revision, for $all a "
            "position"),
    TIME_SETTING(MESSAGE_TIMEOUT, "message-timeout", MILLISECOND_NS, "30s",
                 "a message that is not settled by then is given to a consumer again"),
    COUNT_SETTING(MAX_RETRY_COUNT, "max-retry-count", 0, "10",
                  "so many tries after the first one; then the message is parked"),
    COUNT_SETTING(MAX_INTERRUPTS, "max-interrupts", 0, "20",
                  "so often begun work may be handed back, by a shutdown say; each further time counts as a "
                  "try. 0: it never does"),
    COUNT_SETTING(MAX_KILLS, "max-kills", 0, "5",
                  "when so many consumers have died while they worked on it, the message is parked; 0: only "
                  "--max-retry-count counts"),
    COUNT_SETTING(MAX_SUBSCRIBER_COUNT, "max-subscriber-count", 0, "0", "so many consumers; 0: any number"),
    [SL_OPT_CREATE_RESOLVE_LINKS] = { .name = "resolve-links", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_GROUP_CREATE, .help = "give consumers the events that links point to" },
    [SL_OPT_UPDATE_RESOLVE_LINKS] = { .name = "resolve-links", .kind = SL_OPTION_CHOICE, .argument = "WHETHER", .choices = "no|yes", .commands = SL_COMMAND_GROUP_UPDATE, .help = "give consumers the events that links point to" },
    COUNT_SETTING(HISTORY_BUFFER_SIZE, "history-buffer-size", 1, "500",
                  "so many messages are read ahead"),
    COUNT_SETTING(LIVE_BUFFER_SIZE, "live-buffer-size", 1, "500",
                  "kept for clients of KurrentDB, without an effect"),
    COUNT_SETTING(READ_BATCH_SIZE, "read-batch-size", 1, "20", "less than --history-buffer-size, as KurrentDB wants it; without an effect"),
    TIME_SETTING(CHECKPOINT_AFTER, "checkpoint-after", 0, "2s",
                 "a checkpoint is written at most this often, unless --max-checkpoint-count is reached; 0: "
                 "only then"),
    COUNT_SETTING(MIN_CHECKPOINT_COUNT, "min-checkpoint-count", 0, "10",
                  "and after at least so many messages"),
    COUNT_SETTING(MAX_CHECKPOINT_COUNT, "max-checkpoint-count", 0, "1000",
                  "after so many messages it is written at once"),
    [SL_OPT_CREATE_EXTRA_STATISTICS] = { .name = "extra-statistics", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_GROUP_CREATE, .help = "measure how long consumers take, for group info" },
    [SL_OPT_UPDATE_EXTRA_STATISTICS] = { .name = "extra-statistics", .kind = SL_OPTION_CHOICE, .argument = "WHETHER", .choices = "no|yes", .commands = SL_COMMAND_GROUP_UPDATE, .help = "measure how long consumers take, for group info" },
    /* clang-format off */
    [SL_OPT_INTERVAL] = {
        .name = "interval", .letter = 'i', .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_GROUP_WATCH,
        .default_text = "1s", .min = 10 * MILLISECOND_NS, .max = 3600 * SECOND_NS,
        .help = "time between two looks",
    },
    /* --- consumers --- */
    [SL_OPT_CONSUMER_STREAM] = {
        .name = "stream", .kind = SL_OPTION_TEXT, .argument = "STREAM", .commands = SL_COMMAND_CONSUMER,
        .min = 1, .max = SL_STREAM_NAME_BYTES_MAX,
        .help = "only consumers of groups on this stream; $all: of groups on all streams",
    },
    [SL_OPT_CONSUMER_GROUP] = {
        .name = "group", .kind = SL_OPTION_TEXT, .argument = "GROUP", .commands = SL_COMMAND_CONSUMER,
        .min = 1, .max = SL_STREAM_NAME_BYTES_MAX,
        .help = "only consumers of this group; needs --stream",
    },
    [SL_OPT_CONSUMER_NAME] = {
        .name = "name", .kind = SL_OPTION_TEXT, .argument = "NAME",
        .commands = SL_COMMAND_CONSUMER_LIST | SL_COMMAND_CONSUMER_DRAINS, .min = 1, .max = SL_CLIENT_NAME_BYTES_MAX,
        .help = "only consumers of this name",
    },
    [SL_OPT_LABEL] = {
        .name = "label", .letter = 'l', .kind = SL_OPTION_TEXT, .argument = "KEY=VALUE", .commands = SL_COMMAND_CONSUMER,
        .min = 3, .max = 1024,
        .help = "only consumers that have this label, such as version=42",
    },
    [SL_OPT_WAIT] = {
        .name = "wait", .letter = 'w', .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_CONSUMER_STOP,
        .min = 1 * MILLISECOND_NS, .max = 24 * 3600 * SECOND_NS,
        .help = "return when everybody is drained, at most after this time",
    },
    [SL_OPT_REASON] = {
        .name = "reason", .letter = 'r', .kind = SL_OPTION_TEXT, .argument = "TEXT", .commands = SL_COMMAND_CONSUMER_STOP,
        .min = 1, .max = 512,
        .help = "told to the consumers",
    },
    [SL_OPT_DEADLINE] = {
        .name = "deadline", .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_CONSUMER_STOP,
        .min = 1 * MILLISECOND_NS, .max = 24 * 3600 * SECOND_NS,
        .help = "how much time they have, told to the consumers: sluice work drains within it, others as they see fit",
    },
    [SL_OPT_HAND_BACK] = {
        .name = "hand-back", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_CONSUMER_STOP,
        .help = "consumers that know this wish give back what they have not begun, so that others get it at once",
    },
    [SL_OPT_NEWCOMERS] = {
        .name = "newcomers", .kind = SL_OPTION_CHOICE, .argument = "WHAT", .choices = "join|stop",
        .commands = SL_COMMAND_CONSUMER_STOP,
        .help = "what whoever joins later and is meant does; else join with a NAME, stop without",
    },
    [SL_OPT_STOP_AT] = {
        .name = "stop-at", .kind = SL_OPTION_NUMBER, .argument = "NUMBER",
        .commands = SL_COMMAND_PARKED_REPLAY | SL_COMMAND_PARKED_TRUNCATE, .min = 0, .max = INT64_MAX,
        .help = "only messages with lower numbers than this, as parked list shows them; else all",
    },
    /* --- workers --- */
    [SL_OPT_WORK_FROM] = {
        OF_WORKER("from", "SLUICE_FROM"), TEXT("SOURCE", 1, SL_CLIENT_ADDRESS_BYTES_MAX), .is_address = true,
        .help = "where messages come from: sluice://HOST:PORT/STREAM/GROUP, kurrentdb://..., schedule:every=TIME, memory:count=N",
        .more = "The address of a server is as for --server, with the stream and the group behind it, separated by slashes; special "
                "characters are written as %XX, and $all is the stream of all streams. kurrentdb:// is a server of that make, without "
                "tokens and drains. schedule:every=30m,jitter=10%,cooldown=5m makes a message at each tick, "
                "and memory:count=1000,bytes=100 messages out of nothing, for trying things out.",
    },
    [SL_OPT_WORK_EXEC] = {
        OF_WORKER("exec", "SLUICE_EXEC"), TEXT("COMMAND", 1, WORK_TEXT_MAX), .completes = SL_COMPLETES_FILE,
        .help = "handler: run this by the shell for each message, with its data as the input",
        .more = "Exit code 0: done. 75: again later. 65: it will never work, to the dead letters. Others: again as --retry says, then to "
                "the dead letters. SLUICE_ID, SLUICE_TOKEN, SLUICE_ATTEMPT and others are in its environment.",
    },
    [SL_OPT_WORK_LINES] = {
        OF_WORKER("lines", "SLUICE_LINES"), TEXT("COMMAND", 1, WORK_TEXT_MAX), .completes = SL_COMPLETES_FILE,
        .help = "handler: keep this running; a line of JSON for each message, and one for each answer",
    },
    [SL_OPT_WORK_HTTP] = {
        OF_WORKER("http", "SLUICE_HTTP"), TEXT("URL", 1, SL_CLIENT_ADDRESS_BYTES_MAX), .is_address = true,
        .help = "handler: send each message there",
        .more = "2xx: done. 408, 425, 429, 503: again later, not before Retry-After. 4xx other than 401, 403, 404, 405 and 407: to the dead "
                "letters. All else: again as --retry says, then to the dead letters.",
    },
    [SL_OPT_WORK_APPEND] = {
        OF_WORKER("append", "SLUICE_APPEND"), TEXT("ADDRESS/STREAM", 1, SL_CLIENT_ADDRESS_BYTES_MAX), .is_address = true,
        .help = "handler: append each message to this stream, once",
    },
    [SL_OPT_WORK_NAME] = {
        OF_WORKER("name", "SLUICE_NAME"), TEXT("NAME", 1, SL_WORKER_NAME_BYTES_MAX),
        .help = "how the server lists this consumer; of a single worker also its name in logs and metrics",
    },
    [SL_OPT_WORK_LABEL] = {
        OF_WORKER("label", "SLUICE_LABEL"), TEXT("KEY=VALUE", 1, 1024), .repeats = true,
        .help = "a label of the consumer, such as version=42",
    },
    [SL_OPT_SLOTS] = {
        OF_WORKER("slots", "SLUICE_SLOTS"), COUNT(1, SL_WORKER_SLOTS_MAX, "4"),
        .help = "so many messages are worked on at the same time",
    },
    [SL_OPT_WINDOW] = {
        OF_WORKER("window", "SLUICE_WINDOW"), COUNT(1, SL_CONSUMER_WINDOW_MAX, NULL),
        .help = "so many messages are held, those that wait for a slot included; else twice the slots",
    },
    [SL_OPT_WORK_TIMEOUT] = {
        .name = "timeout", .commands = SL_COMMAND_WORK, .of_member = true, .is_in_file = true, TIME(0, 24 * HOUR_NS, "60s"),
        .help = "of one message: its work is ended then, and has failed; 0: none; SLUICE_TIMEOUT is not about this",
        .more = "It may stand in a file, but has no variable: SLUICE_TIMEOUT is the time limit of the commands that ask a server, and "
                "handlers that call these have the environment of their worker.",
    },
    [SL_OPT_HOLD_MAX] = {
        OF_WORKER("hold-max", "SLUICE_HOLD_MAX"), TIME(SECOND_NS, 24 * HOUR_NS, "10m"),
        .help = "so long a message may wait here, and so long again its work may take",
    },
    [SL_OPT_HEARTBEAT] = {
        OF_WORKER("heartbeat", "SLUICE_HEARTBEAT"), TIME(0, 24 * HOUR_NS, "0"),
        .help = "a handler that gives no sign for so long is stuck, and its message is not held any more; 0: off",
    },
    [SL_OPT_FINISH_UNSTARTED] = {
        OF_WORKER("finish-unstarted", "SLUICE_FINISH_UNSTARTED"), .kind = SL_OPTION_FLAG,
        .help = "in a drain work on what waits too, instead of handing it back",
    },
    [SL_OPT_RETRY] = {
        OF_WORKER("retry", "SLUICE_RETRY"), .kind = SL_OPTION_CHOICE, .argument = "HOW",
        .choices = "none|constant|linear|exponential", .default_text = "exponential",
        .help = "how the pauses between attempts grow; none: the first failure is the last",
    },
    [SL_OPT_RETRY_FIRST] = {
        OF_WORKER("retry-first", "SLUICE_RETRY_FIRST"), TIME(0, 24 * HOUR_NS, "1s"),
        .help = "the first pause",
    },
    [SL_OPT_RETRY_STEP] = {
        OF_WORKER("retry-step", "SLUICE_RETRY_STEP"), TIME(0, 24 * HOUR_NS, "1s"),
        .help = "with --retry linear: so much longer each time",
    },
    [SL_OPT_RETRY_MAX] = {
        OF_WORKER("retry-max", "SLUICE_RETRY_MAX"), TIME(0, 24 * HOUR_NS, "5m"),
        .help = "no pause is longer",
    },
    [SL_OPT_ATTEMPTS] = {
        OF_WORKER("attempts", "SLUICE_ATTEMPTS"), COUNT(0, 1000000, "10"),
        .help = "so many in all, then to the dead letters; 0: the source alone decides",
    },
    [SL_OPT_BREAKER_FAILURES] = {
        OF_WORKER("breaker-failures", "SLUICE_BREAKER_FAILURES"), COUNT(0, 1000000, "5"),
        .help = "after so many failures in a row nothing is sent for a while; 0: no breaker",
    },
    [SL_OPT_COOL_DOWN] = {
        OF_WORKER("cool-down", "SLUICE_COOL_DOWN"), TIME(MILLISECOND_NS, 24 * HOUR_NS, "60s"),
        .help = "for so long; then one message is tried",
    },
    [SL_OPT_KEY] = {
        OF_WORKER("key", "SLUICE_KEY"), TEXT("WHAT", 1, 80),
        .help = "a breaker and a rate for each value of this: stream, type, data.NAME or metadata.NAME",
    },
    [SL_OPT_RATE] = {
        OF_WORKER("rate", "SLUICE_RATE"), TEXT("COUNT/TIME", 1, 64),
        .help = "so many messages are begun at most, such as 1/s, 10/m or 1/30s; with --key for each of its values",
    },
    [SL_OPT_CONCURRENT_PER_KEY] = {
        OF_WORKER("concurrent-per-key", "SLUICE_CONCURRENT_PER_KEY"), COUNT(0, SL_WORKER_SLOTS_MAX, "0"),
        .help = "so many at the same time for each value of --key; 1 keeps their order; 0: any number",
    },
    [SL_OPT_ACK_FILE] = {
        OF_WORKER("ack-file", "SLUICE_ACK_FILE"), TEXT("FILE", 1, SL_CONFIG_PATH_BYTES_MAX), .completes = SL_COMPLETES_FILE,
        .help = "keeps what is finished until the source has confirmed it, so that a killed worker repeats nothing",
    },
    [SL_OPT_RECONNECT] = {
        OF_WORKER("reconnect", "SLUICE_RECONNECT"), TIME(10 * MILLISECOND_NS, HOUR_NS, "2s"),
        .help = "so long the server keeps what was begun for a worker whose connection broke",
    },
    [SL_OPT_GIVE_UP] = {
        OF_WORKER("give-up", "SLUICE_GIVE_UP"), TIME(0, 30 * 24 * HOUR_NS, "0"),
        .help = "a source that cannot be reached for so long is lost; 0: never",
    },
    [SL_OPT_HEADER] = {
        OF_WORKER("header", "SLUICE_HEADER"), TEXT("NAME:VALUE", 1, 4096), .repeats = true,
        .help = "with --http: a header of each request",
    },
    [SL_OPT_METHOD] = {
        OF_WORKER("method", "SLUICE_METHOD"), .kind = SL_OPTION_CHOICE, .argument = "METHOD", .choices = "POST|PUT|PATCH",
        .default_text = "POST",
        .help = "with --http: what kind of request",
    },
    [SL_OPT_STATUS_HOST] = {
        OF_CREW("status-host", "SLUICE_STATUS_HOST"), TEXT("ADDRESS", 1, 255), .default_text = "127.0.0.1",
        .help = "where /livez, /readyz, /metrics and /v1/state are shown",
    },
    [SL_OPT_STATUS_PORT] = {
        OF_CREW("status-port", "SLUICE_STATUS_PORT"), COUNT(0, 65535, "2115"),
        .help = "their port; 0: any that is free",
    },
    [SL_OPT_NO_STATUS] = {
        OF_CREW("no-status", "SLUICE_NO_STATUS"), .kind = SL_OPTION_FLAG,
        .help = "no such pages, and no port",
    },
    [SL_OPT_REPORT] = {
        OF_CREW("report", "SLUICE_REPORT"), TEXT("FILE", 1, SL_CONFIG_PATH_BYTES_MAX), .completes = SL_COMPLETES_FILE,
        .help = "write there as JSON what the drain was like",
    },
    [SL_OPT_RESTARTS] = {
        OF_CREW("restarts", "SLUICE_RESTARTS"), COUNT(0, 1000000, "5"),
        .help = "a worker whose source fails is started again, so often in a row; then all of them end",
    },
    [SL_OPT_NOTIFY] = {
        OF_CREW("notify", "SLUICE_NOTIFY"), .kind = SL_OPTION_FLAG,
        .help = "tell systemd when it is ready, alive and stopping (Type=notify, WatchdogSec)",
    },
    [SL_OPT_EXPLAIN] = {
        .name = "explain", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_WORK,
        .help = "start nothing; show what would be done, also on SIGTERM, and the numbers for the deployment",
    },
    /* clang-format on */
};
